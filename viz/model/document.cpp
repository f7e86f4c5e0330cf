#include "viz/model/document.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <QtCore/QCoreApplication>

#include "core/base/errors.h"
#include "viz/playback/happened.h"
#include "viz/playback/meant.h"
#include "viz/playback/tile_selection.h"

namespace kvscope::viz {

QStringList Document::lines_of(const std::exception& error) {
  QStringList lines;
  for (const std::string& line : fault_lines(error)) lines.push_back(QString::fromStdString(line));
  return lines;
}

Document::Document(std::shared_ptr<const Run> run, QString path, QObject* parent)
    : QObject(parent), cursor_(std::move(run)), path_(std::move(path)), attention_(new AttentionModel(*this)) {
  connect(&timer_, &QTimer::timeout, this, &Document::tick);
  connect(&tile_timer_, &QTimer::timeout, this, &Document::tile_tick);
  tile_request_.path = path_meant(cursor_.run().facts());
  if (cursor_.run().facts().rows > 1) cursor_.seek_row(1);
}

// --- moving ----------------------------------------------------------------------------------------------------------

template <class Work>
bool Document::guarded(Work&& work) {
  const Position before = cursor_.position();
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    const QStringList faults = lines_of(error);
    try {
      become(Doing::standing);
      if (cursor_.position() != before) moved();
    } catch (const std::exception&) {  // the first fault is reported; the same cause often ends this too
    }
    Q_EMIT failed(faults);
    return false;
  }
}

template <class MoveFunction>
void Document::go(MoveFunction&& move) {
  pause();
  guarded([&] {
    if (move()) moved();
  });
}

void Document::moved() {
  restage();
  follow_compared();
  relight();
  Q_EMIT position_changed();
  if (tile_follows_ && !playing()) ask_for_tile();
}

void Document::relight() {
  pinned_lit_ = resolve(shown_state(), run().facts(), tile(), pinned_);
  hovered_lit_ = resolve(shown_state(), run().facts(), tile(), hovered_);
  relight_compared();
}

void Document::step() {
  go([this] { return cursor_.step(); });
}
void Document::step_back() {
  go([this] { return cursor_.step_back(); });
}
void Document::next_event() {
  go([this] { return cursor_.event(); });
}
void Document::previous_event() {
  go([this] { return cursor_.event_back(); });
}
void Document::to_start() {
  seek(Position{0});
}
void Document::to_end() {
  seek(Position{run().facts().events});
}

void Document::seek(Position position) {
  const Position to(std::clamp<std::int64_t>(position.value, 0, run().facts().events));
  go([this, to] { return cursor_.seek(to); });
}

void Document::seek_step(StepIdx step) {
  const std::int64_t row = run().row_of_step(step);
  go([this, row] { return cursor_.seek_row(row); });
}

// --- playing ---------------------------------------------------------------------------------------------------------

void Document::become(Doing doing) {
  if (doing == doing_) return;
  const bool was_playing = playing();
  doing_ = doing;
  if (playing()) {
    timer_.start(doing == Doing::playing ? kFrame : 0);
  } else {
    timer_.stop();
    search_ = {};
  }
  if (was_playing == playing()) return;
  Q_EMIT playing_changed();
  if (tile_follows_ && !playing()) ask_for_tile();
}

void Document::play() {
  if (doing_ == Doing::playing) return;
  pause();
  if (cursor_.at_end() && !guarded([this] {
        if (cursor_.seek(Position{0})) moved();
      }))
    return;
  player_.restart();
  clock_.start();
  become(Doing::playing);
}

void Document::pause() {
  become(Doing::standing);
}

void Document::toggle_playing() {
  by_event_ = false;
  playing() ? pause() : play();
}

void Document::toggle_playing_events() {
  const bool play_them = !playing();
  toggle_playing();
  by_event_ = play_them;
}

void Document::set_speed(double steps_per_second) {
  const double before = player_.speed();
  player_.set_speed(steps_per_second);
  if (player_.speed() != before) Q_EMIT speed_changed();
}

void Document::tick() {
  guarded([this] { doing_ == Doing::searching ? search_on() : play_on(); });
}

void Document::play_on() {
  std::int64_t due = player_.due(static_cast<double>(clock_.restart()));
  const Position from = cursor_.position();
  std::optional<Stop> stop;
  // If the machine is too slow for the speed, it shows fewer steps per second and the missing ones are dropped, so that
  // the window stays responsive.
  for (; due > 0 && !cursor_.at_end() && !stop && clock_.elapsed() < kPlaying; --due) {
    const std::int64_t row = cursor_.row();
    const bool inside = cursor_.position() < run().end_of_row(row);
    const Position to =
        by_event_ ? cursor_.position() + 1 : run().end_of_row(inside || row + 1 >= run().facts().rows ? row : row + 1);
    stop = stop_between(cursor_.position(), to);
    if (stop) {
      cursor_.seek(stop->position);
    } else {
      by_event_ ? cursor_.event() : cursor_.step();
    }
  }
  const bool ended = !stop && cursor_.at_end();
  if (stop || ended) become(Doing::standing);
  if (cursor_.position() != from) moved();
  if (stop) light_last_event();
  if (stop) Q_EMIT stopped(words_of(stop->breakpoint));
  if (ended) Q_EMIT stopped(tr("end of the run"));
}

std::optional<Document::Stop> Document::stop_between(Position from, Position to) const {
  if (std::none_of(breakpoints_.begin(), breakpoints_.end(), [](const Breakpoint& b) { return b.enabled; })) return {};
  while (from < to) {
    const std::int64_t row = run().row_at(from + 1);
    const auto events = run().events_of_row(row);
    const std::int64_t first = run().span(row).first_event;
    const std::int64_t end = std::min(to.value, run().end_of_row(row).value);
    for (; from.value < end; ++from) {
      const trace::Event& event = (*events)[static_cast<std::size_t>(from.value - first)];
      for (std::size_t i = 0; i < breakpoints_.size(); ++i) {
        if (matches(breakpoints_[i], event)) return Stop{from + 1, i};
      }
    }
  }
  return {};
}

bool Document::at_breakpoint() const {
  const Position now = cursor_.position();
  return now.value > 0 && stop_between(Position(now.value - 1), now).has_value();
}

// --- breakpoints and events ------------------------------------------------------------------------------------------

void Document::run_to_breakpoint() {
  search({breakpoints_, false, std::nullopt});
}
void Document::run_back_to_breakpoint() {
  search({breakpoints_, true, std::nullopt});
}

void Document::search(Search search) {
  pause();
  search_ = std::move(search);
  guarded([this] { search_on(); });
}

void Document::search_on() {
  if (search_.row) return search_difference();
  QElapsedTimer slice;
  slice.start();
  bool more = false;
  const auto keep_going = [&](Position) { return !(more = slice.elapsed() >= kSlice); };
  const Position from = cursor_.position();
  const std::optional<std::size_t> match = search_.back ? cursor_.run_back_to(search_.breakpoints, keep_going)
                                                        : cursor_.run_to(search_.breakpoints, keep_going);
  if (!match && more && !(search_.back ? cursor_.at_start() : cursor_.at_end())) {
    become(Doing::searching);
    if (cursor_.position() != from) moved();
    return;
  }
  const Search done = std::exchange(search_, {});
  become(Doing::standing);
  if (!match && done.origin) cursor_.seek(*done.origin);
  if (cursor_.position() != from) moved();
  if (match) light_last_event();
  if (match && !done.origin) {
    Q_EMIT stopped(words_of(*match));
  } else if (!match) {
    Q_EMIT stopped(done.origin ? tr("no such event after this")
                   : done.back ? tr("start of the run")
                               : tr("end of the run"));
  }
}

// What the run stopped at is lit until the pointer lights something else.
void Document::light_last_event() {
  const std::int64_t row = cursor_.row();
  const std::int64_t last = cursor_.position().value - 1 - run().span(row).first_event;
  const auto events = run().events_of_row(row);
  const Selection object = object_of((*events)[static_cast<std::size_t>(last)]);
  if (object.kind != Selection::Kind::step) hover(object);
}

QString Document::words_of(std::size_t index) const {
  return tr("breakpoint %1: %2 at event %3, step %4")
      .arg(QString::number(index + 1), QString::fromStdString(to_text(breakpoints_[index])),
           QString::number(cursor_.position().value - 1), QString::number(cursor_.state().step.value));
}

void Document::set_breakpoints(std::vector<Breakpoint> breakpoints) {
  if (breakpoints == breakpoints_) return;
  // A search reports the number of the breakpoint that matched. These numbers change here, so the search ends.
  if (doing_ == Doing::searching) pause();
  breakpoints_ = std::move(breakpoints);
  Q_EMIT breakpoints_changed();
}

// --- selection -------------------------------------------------------------------------------------------------------

void Document::pin(const Selection& selection) {
  if (selection.kind == Selection::Kind::tile_event) return seek_tile(selection.event);
  if (selection.kind == Selection::Kind::tile_layout) {
    if (selection.layout >= 0) choose_layout(static_cast<std::size_t>(selection.layout));
    return;
  }
  if (selection.kind == Selection::Kind::tile_path) {
    TileRequest request = tile_request_;
    request.path = static_cast<TilePath>(selection.layout);
    return choose_tile(request);
  }
  if (selection.kind == Selection::Kind::step) seek_step(selection.step);
  if (selection == pinned_) return;
  pinned_ = selection;
  relight();
  Q_EMIT pinned_changed();
  if (tile_follows_) ask_for_tile();
}

void Document::hover(const Selection& selection) {
  if (selection == hovered_) return;
  hovered_ = selection;
  hovered_lit_ = resolve(shown_state(), run().facts(), tile(), hovered_);
  relight_compared();
  Q_EMIT hovered_changed();
}

void Document::go_to(const Target& target) {
  if (const auto* selection = std::get_if<Selection>(&target)) {
    pin(*selection);
  } else if (const auto* place = std::get_if<FindPosition>(&target)) {
    seek(place->position);
  } else if (const auto* event = std::get_if<FindEvent>(&target)) {
    Breakpoint kind;
    kind.kind = event->kind;
    search({{kind}, false, cursor_.position()});
  } else if (const auto* byte = std::get_if<FindByte>(&target)) {
    Q_EMIT byte_wanted(byte->offset);
  }
}

}  // namespace kvscope::viz

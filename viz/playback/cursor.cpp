#include "viz/playback/cursor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/errors.h"
#include "viz/playback/event_tape.h"
#include "viz/playback/replay.h"

namespace kvscope::viz {
namespace {

constexpr std::array<std::int64_t, 2> kKeptBefore{65536, 8192};  // [events] between a position and the states kept
constexpr std::int64_t kEventsBetweenAsks = 16384;               // [events] between two calls of keep_going

// Index of the first breakpoint that the event matches.
class Watch {
 public:
  explicit Watch(std::span<const Breakpoint> breakpoints) : breakpoints_(breakpoints) {
    for (const Breakpoint& breakpoint : breakpoints) {
      if (breakpoint.enabled) kinds_ |= std::uint32_t{1} << breakpoint.kind;
    }
  }
  [[nodiscard]] bool may_be_in(std::uint32_t kinds) const { return (kinds & kinds_) != 0; }
  [[nodiscard]] std::optional<std::size_t> match(const trace::Event& event) const {
    if (!may_be_in(std::uint32_t{1} << event.index())) return std::nullopt;
    for (std::size_t i = 0; i < breakpoints_.size(); ++i) {
      if (matches(breakpoints_[i], event)) return i;
    }
    return std::nullopt;
  }

 private:
  std::span<const Breakpoint> breakpoints_;
  std::uint32_t kinds_ = 0;
};

}  // namespace

Cursor::Cursor(std::shared_ptr<const Run> run) : run_(std::move(run)), state_(run_->state_at(Position{0})) {}

std::int64_t Cursor::row() const {
  return run_->row_at(position_);
}

bool Cursor::at_start() const {
  return position_.value == 0;
}

bool Cursor::at_end() const {
  return position_.value == run_->facts().events;
}

bool Cursor::step() {
  if (at_end()) return false;
  // The row of the next event: the current row if it has more events, else the row after it.
  return seek_row(run_->row_at(position_ + 1));
}

bool Cursor::step_back() {
  if (at_start()) return false;
  return seek(Position{run_->span(row()).first_event});
}

bool Cursor::event() {
  if (at_end()) return false;
  return seek(position_ + 1);
}

bool Cursor::event_back() {
  if (at_start()) return false;
  return seek(position_ - 1);
}

bool Cursor::seek_row(std::int64_t row) {
  return seek(run_->end_of_row(row));
}

bool Cursor::seek(Position position) {
  check_index("position", position.value, run_->facts().events + 1);
  if (position == position_) return false;
  // Forward, and no checkpoint in between: continue from the current state.
  if (position > position_ && run_->checkpoint_before(position) <= position_) {
    replay(state_, run_->facts(), run_->tape(), position_.value, position.value,
           [this](const trace::Event& event, std::int64_t) { add(marks_, event); });
  } else {
    go_back(position);
    marks_ = run_->marks_at(position);
  }
  position_ = position;
  return true;
}

// Backward, or far forward. On the way from the checkpoint it keeps two states shortly before the position.
void Cursor::go_back(Position position) {
  const Position checkpoint = run_->checkpoint_before(position);
  std::erase_if(kept_, [&](const auto& kept) { return kept->position > position || kept->position < checkpoint; });
  Position at = kept_.empty() ? checkpoint : kept_.back()->position;
  State state = kept_.empty() ? run_->state_at(checkpoint) : kept_.back()->state;
  for (const std::int64_t before : kKeptBefore) {
    const Position keep = position - before;
    if (keep <= at + before / 2) continue;  // one so near to it is there already
    replay(state, run_->facts(), run_->tape(), at.value, keep.value);
    at = keep;
    kept_.push_back(std::make_shared<const Kept>(Kept{at, state}));
  }
  replay(state, run_->facts(), run_->tape(), at.value, position.value);
  state_ = std::move(state);
}

std::optional<std::size_t> Cursor::run_to(std::span<const Breakpoint> breakpoints,
                                          const std::function<bool(Position)>& keep_going) {
  const EventTape& tape = run_->tape();
  const Watch watch(breakpoints);
  std::int64_t asked = position_.value;
  for (std::int64_t at = position_.value; at < tape.size();) {
    const std::int64_t frame = at / EventTape::kFrame;
    const std::int64_t end = std::min((frame + 1) * EventTape::kFrame, tape.size());
    if (watch.may_be_in(tape.kinds_in(frame))) {
      for (EventTape::Reader reader(tape, at); reader.position() < end;) {
        if (const auto which = watch.match(reader.next())) {
          seek(Position{reader.position()});
          return which;
        }
      }
    }
    at = end;
    if (at - asked >= kEventsBetweenAsks && keep_going && !keep_going(Position{at})) {
      seek(Position{at});
      return std::nullopt;
    }
    if (at - asked >= kEventsBetweenAsks) asked = at;
  }
  seek(Position{tape.size()});
  return std::nullopt;
}

std::optional<std::size_t> Cursor::run_back_to(std::span<const Breakpoint> breakpoints,
                                               const std::function<bool(Position)>& keep_going) {
  const EventTape& tape = run_->tape();
  const Watch watch(breakpoints);
  std::int64_t asked = position_.value;
  // The position after event e is e + 1, which must be less than the current position.
  for (std::int64_t end = position_.value - 1; end > 0;) {
    const std::int64_t frame = (end - 1) / EventTape::kFrame;
    const std::int64_t first = frame * EventTape::kFrame;
    if (watch.may_be_in(tape.kinds_in(frame))) {
      std::optional<std::size_t> last;
      Position after;
      for (EventTape::Reader reader(tape, first); reader.position() < end;) {
        if (const auto which = watch.match(reader.next())) {
          last = which;
          after = Position{reader.position()};
        }
      }
      if (last) {
        seek(after);
        return last;
      }
    }
    end = first;
    if (asked - end >= kEventsBetweenAsks && keep_going && !keep_going(Position{end})) {
      seek(Position{end});
      return std::nullopt;
    }
    if (asked - end >= kEventsBetweenAsks) asked = end;
  }
  seek(Position{0});
  return std::nullopt;
}

}  // namespace kvscope::viz

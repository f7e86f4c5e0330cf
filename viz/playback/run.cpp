#include "viz/playback/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "viz/playback/checkpoints.h"
#include "viz/playback/event_tape.h"
#include "viz/playback/facts_scan.h"
#include "viz/playback/replay.h"
#include "viz/playback/timeline_fold.h"

namespace kvscope::viz {
namespace {

constexpr std::int64_t kAskEvery = 16384;  // [events] between two calls of the progress function

}  // namespace

class Run::Impl {
 public:
  Impl(EventSource& source, std::string shown, const OpenProgress& progress) {
    ask_ = &progress;
    FactsScan scan(source, shown);
    read(source, scan);
    facts = scan.finish();
    fold(shown);
    ask_ = nullptr;
  }

  [[nodiscard]] std::int64_t row_at(std::int64_t position) const {
    if (position == 0) return 0;
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), position - 1,
                         [](std::int64_t event, const trace::StepSpan& span) { return event < span.end_event(); });
    return after - spans.begin();
  }

  [[nodiscard]] Position checkpoint_before(std::int64_t position) const {
    return checkpoints_->before(Position{position}).position;
  }

  [[nodiscard]] State state_at(std::int64_t position) const {
    const Checkpoint& checkpoint = checkpoints_->before(Position{position});
    State state = checkpoint.state;
    replay(state, facts, *tape, checkpoint.position.value, position);
    return state;
  }

  std::shared_ptr<const std::vector<trace::Event>> events_of_row(std::int64_t row) {
    const std::lock_guard lock(kept_mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.row == row; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front().events;
    }
    const trace::StepSpan& span = spans[static_cast<std::size_t>(row)];
    kept_.push_front(
        {row, std::make_shared<const std::vector<trace::Event>>(tape->read(span.first_event, span.end_event()))});
    events_kept_ += span.events;
    for (; events_kept_ > kKeptEvents && kept_.size() > 1; kept_.pop_back()) {
      events_kept_ -= static_cast<std::int64_t>(kept_.back().events->size());
    }
    return kept_.front().events;
  }

  Facts facts;
  trace::Meta meta;
  std::vector<std::string> remarks;
  Timeline timeline;
  std::vector<trace::StepSpan> spans;
  std::shared_ptr<const EventTape> tape;

 private:
  void read(EventSource& source, FactsScan& scan) {
    meta = source.meta();
    remarks = source.remarks();
    const std::int64_t rows = source.rows();
    spans.reserve(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) spans.push_back(source.span(row));
    ask(0, source.events());
    tape = source.tape();
    if (tape) return read_packed(scan);
    EventTape packed;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const trace::Event& event : source.events_of_row(row)) {
        scan.add(event);
        packed.push(event);
        if (packed.size() % kAskEvery == 0) ask(packed.size(), source.events());
      }
    }
    tape = std::make_shared<const EventTape>(std::move(packed));
  }

  void read_packed(FactsScan& scan) const {
    for (EventTape::Reader reader(*tape, 0); reader.position() < tape->size();) {
      scan.add(reader.next());
      if (reader.position() % kAskEvery == 0) ask(reader.position(), tape->size());
    }
  }

  void fold(const std::string& shown) {
    TimelineFold timeline_fold(facts);
    State state = empty_state(facts);
    checkpoints_.emplace(state, kCheckpointEvents, checkpoint_bytes(facts.blocks));
    std::int64_t done = 0;
    try {
      replay(state, facts, *tape, 0, tape->size(), [&](const trace::Event& event, std::int64_t position) {
        done = position;
        timeline_fold.add(event);
        if (position % kAskEvery == 0) ask(facts.events, facts.events);
        checkpoints_->offer(Position{position}, state);
      });
    } catch (const InputError& error) {
      throw InputError(shown, fmt::format("event {}", done), error.faults().front().message);
    }
    timeline = timeline_fold.take();
  }

  void ask(std::int64_t done, std::int64_t all) const {
    if (*ask_ && !(*ask_)(done, all)) throw Cancelled();
  }

  struct Kept {
    std::int64_t row;
    std::shared_ptr<const std::vector<trace::Event>> events;
  };
  static constexpr std::int64_t kKeptEvents = std::int64_t{1} << 18;  // 30 MB; a longer row is kept as the only one

  const OpenProgress* ask_ = nullptr;
  std::optional<Checkpoints> checkpoints_;
  std::mutex kept_mutex_;  // of the next two
  std::list<Kept> kept_;   // the most recently used first
  std::int64_t events_kept_ = 0;
};

void add(Marks& marks, const trace::Event& event) {
  if (std::holds_alternative<trace::StepBegan>(event)) {
    marks = {};
  } else if (const auto* written = std::get_if<trace::TokensWritten>(&event)) {
    marks.written.push_back(*written);
  } else if (const auto* allocated = std::get_if<trace::BlockAllocated>(&event)) {
    marks.allocated.push_back(allocated->block);
  } else if (const auto* shared = std::get_if<trace::BlockShared>(&event)) {
    marks.shared.push_back(shared->block);
  } else if (const auto* copied = std::get_if<trace::BlockCopied>(&event)) {
    marks.copied.push_back(copied->to);
  } else if (const auto* released = std::get_if<trace::BlockReleased>(&event)) {
    marks.released.push_back(released->block);
  } else if (const auto* evicted = std::get_if<trace::BlockEvicted>(&event)) {
    marks.evicted.push_back(evicted->block);
  } else if (const auto* admitted = std::get_if<trace::RequestAdmitted>(&event)) {
    marks.admitted.push_back(admitted->seq);
  } else if (const auto* preempted = std::get_if<trace::RequestPreempted>(&event)) {
    marks.preempted.push_back(preempted->seq);
  } else if (const auto* finished = std::get_if<trace::RequestFinished>(&event)) {
    marks.finished.push_back(finished->seq);
  } else if (const auto* refused = std::get_if<trace::RequestRefused>(&event)) {
    marks.refused.push_back(refused->seq);
  }
}

bool operator==(const Marks& a, const Marks& b) {
  const auto same = [](const trace::TokensWritten& x, const trace::TokensWritten& y) {
    return trace::same_event(x, y);
  };
  return std::equal(a.written.begin(), a.written.end(), b.written.begin(), b.written.end(), same) &&
         std::tie(a.allocated, a.shared, a.copied, a.released, a.evicted, a.admitted, a.preempted, a.finished,
                  a.refused) == std::tie(b.allocated, b.shared, b.copied, b.released, b.evicted, b.admitted,
                                         b.preempted, b.finished, b.refused);
}

Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Run::~Run() = default;

std::unique_ptr<Run> Run::open(std::unique_ptr<EventSource> source, std::string shown, const OpenProgress& progress) {
  return std::unique_ptr<Run>(new Run(std::make_unique<Impl>(*source, std::move(shown), progress)));
}

const Facts& Run::facts() const {
  return impl_->facts;
}
const trace::Meta& Run::meta() const {
  return impl_->meta;
}
const std::vector<std::string>& Run::remarks() const {
  return impl_->remarks;
}
const Timeline& Run::timeline() const {
  return impl_->timeline;
}
const EventTape& Run::tape() const {
  return *impl_->tape;
}

const trace::StepSpan& Run::span(std::int64_t row) const {
  check_index("row", row, facts().rows);
  return impl_->spans[static_cast<std::size_t>(row)];
}

std::int64_t Run::row_at(Position position) const {
  check_index("position", position.value, facts().events + 1);
  return impl_->row_at(position.value);
}

Position Run::end_of_row(std::int64_t row) const {
  return Position{span(row).end_event()};
}
Position Run::written_of_row(std::int64_t row) const {
  const auto events = events_of_row(row);
  for (std::size_t n = events->size(); n > 0; --n) {
    if (std::holds_alternative<trace::TokensWritten>((*events)[n - 1])) {
      return Position{span(row).first_event + static_cast<std::int64_t>(n)};
    }
  }
  return end_of_row(row);
}
std::int64_t Run::row_of_step(StepIdx step) const {
  const std::vector<std::int64_t>& steps = timeline().step;
  return std::upper_bound(steps.begin(), steps.end(), step.value) - steps.begin();
}

std::optional<std::int64_t> Run::find_row(StepIdx step) const {
  const std::int64_t row = row_of_step(step);
  return row > 0 && span(row).step == step ? std::optional(row) : std::nullopt;
}

std::shared_ptr<const std::vector<trace::Event>> Run::events_of_row(std::int64_t row) const {
  check_index("row", row, facts().rows);
  return impl_->events_of_row(row);
}

Position Run::checkpoint_before(Position position) const {
  check_index("position", position.value, facts().events + 1);
  return impl_->checkpoint_before(position.value);
}

State Run::state_at(Position position) const {
  check_index("position", position.value, facts().events + 1);
  return impl_->state_at(position.value);
}

Marks Run::marks_at(Position position) const {
  Marks marks;
  for (EventTape::Reader reader(tape(), span(row_at(position)).first_event); reader.position() < position.value;) {
    add(marks, reader.next());
  }
  return marks;
}

}  // namespace kvscope::viz

// The interface through which stages report events. A stage holds a `Recorder&`, records structs of events.h, and does
// not depend on the consumer. A recorder that is off costs one predictable branch per event and builds nothing.
//
//   recorder.record(BlockAllocated{block, seq, page});
#pragma once

#include <vector>

#include "core/trace/events.h"

namespace kvscope::trace {

class Recorder {
 public:
  explicit Recorder(Detail detail = Detail::off) : detail_(detail) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  [[nodiscard]] Detail detail() const { return detail_; }
  [[nodiscard]] bool wants(Detail detail) const { return detail <= detail_; }

  template <class E>
  void record(const E& event) {
    if (wants(E::kDetail)) [[unlikely]]
      write(Event(event));
  }

 protected:
  virtual void write(const Event&) {}  // called only for events of the recorded detail

 private:
  Detail detail_;
};

// Keeps events in memory, for tests, the viewer and short runs.
class MemoryRecorder final : public Recorder {
 public:
  explicit MemoryRecorder(Detail detail = Detail::full) : Recorder(detail) {}
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

 private:
  void write(const Event& event) override { events_.push_back(event); }
  std::vector<Event> events_;
};

}  // namespace kvscope::trace

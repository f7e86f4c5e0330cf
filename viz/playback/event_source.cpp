#include "viz/playback/event_source.h"

#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "core/trace/trace_reader.h"

namespace kvscope::viz {
namespace {

class FileSource final : public EventSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : reader_(path) {}
  const trace::Meta& meta() const override { return reader_.meta(); }
  trace::Detail detail() const override { return reader_.detail(); }
  std::int64_t events() const override { return reader_.events(); }
  std::int64_t rows() const override { return reader_.rows(); }
  trace::StepSpan span(std::int64_t row) const override { return reader_.span(row); }
  std::vector<trace::Event> events_of_row(std::int64_t row) override { return reader_.events_of_row(row); }

 private:
  trace::TraceReader reader_;
};

class MemorySource final : public EventSource {
 public:
  MemorySource(std::vector<trace::Event> events, trace::Meta meta, trace::Detail detail)
      : events_(std::move(events)), meta_(std::move(meta)), detail_(detail), spans_(1) {
    spans_[0].step = StepIdx{-1};
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (const auto* began = std::get_if<trace::StepBegan>(&events_[i])) {
        spans_.push_back({began->step, static_cast<std::int64_t>(i), 0, 0});
      }
      ++spans_.back().events;
    }
  }
  const trace::Meta& meta() const override { return meta_; }
  trace::Detail detail() const override { return detail_; }
  std::int64_t events() const override { return static_cast<std::int64_t>(events_.size()); }
  std::int64_t rows() const override { return static_cast<std::int64_t>(spans_.size()); }
  trace::StepSpan span(std::int64_t row) const override {
    check_index("row of the step index", row, rows());
    return spans_[static_cast<std::size_t>(row)];
  }
  std::vector<trace::Event> events_of_row(std::int64_t row) override {
    const trace::StepSpan of = span(row);
    return {events_.begin() + of.first_event, events_.begin() + of.end_event()};
  }

 private:
  std::vector<trace::Event> events_;
  trace::Meta meta_;
  trace::Detail detail_;
  std::vector<trace::StepSpan> spans_;  // crc: 0
};

}  // namespace

std::unique_ptr<EventSource> open_trace(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<EventSource> from_memory(std::vector<trace::Event> events, trace::Meta meta, trace::Detail detail) {
  return std::make_unique<MemorySource>(std::move(events), std::move(meta), detail);
}

}  // namespace kvscope::viz

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

class TapeSource final : public EventSource {
 public:
  TapeSource(EventTape tape, trace::Meta meta, trace::Detail detail, std::vector<std::string> remarks)
      : tape_(std::make_shared<const EventTape>(std::move(tape))),
        meta_(std::move(meta)),
        detail_(detail),
        remarks_(std::move(remarks)),
        spans_(1) {
    spans_[0].step = StepIdx{-1};
    for (EventTape::Reader reader(*tape_, 0); reader.position() < tape_->size(); ++spans_.back().events) {
      const std::int64_t number = reader.position();
      const trace::Event event = reader.next();
      if (const auto* began = std::get_if<trace::StepBegan>(&event)) spans_.push_back({began->step, number, 0, 0});
    }
  }
  const trace::Meta& meta() const override { return meta_; }
  trace::Detail detail() const override { return detail_; }
  std::int64_t events() const override { return tape_->size(); }
  std::int64_t rows() const override { return static_cast<std::int64_t>(spans_.size()); }
  trace::StepSpan span(std::int64_t row) const override {
    check_index("row of the step index", row, rows());
    return spans_[static_cast<std::size_t>(row)];
  }
  std::vector<trace::Event> events_of_row(std::int64_t row) override {
    const trace::StepSpan of = span(row);
    return tape_->read(of.first_event, of.end_event());
  }
  std::vector<std::string> remarks() const override { return remarks_; }
  std::shared_ptr<const EventTape> tape() const override { return tape_; }

 private:
  std::shared_ptr<const EventTape> tape_;
  trace::Meta meta_;
  trace::Detail detail_;
  std::vector<std::string> remarks_;
  std::vector<trace::StepSpan> spans_;  // their checksums are not set
};

}  // namespace

std::unique_ptr<EventSource> open_trace(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<EventSource> from_tape(EventTape tape, trace::Meta meta, trace::Detail detail,
                                       std::vector<std::string> remarks) {
  return std::make_unique<TapeSource>(std::move(tape), std::move(meta), detail, std::move(remarks));
}

}  // namespace kvscope::viz

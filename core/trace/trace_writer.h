// A recorder that writes a trace file (format: trace_file.h). Events go to a temporary name beside the file; finish()
// renames it. Without finish() the destructor removes it. Memory use does not grow with the number of events.
//
//   TraceWriter trace("run.kvt", Detail::full, {{"producer", "kvscope 0.1.0"}, {"scenario", scenario_text}});
//   run(engine, trace);
//   trace.finish();
//
// With Detail::off it makes no file. Two runs that record the same events write the same bytes (with one version of
// SQLite, which stores its version number in every database's header).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/trace/recorder.h"
#include "core/trace/trace_file.h"

namespace kvscope::trace {

class TraceWriter final : public Recorder {
 public:
  // Throws InputError "<path> rejected: cannot be written: ..." when the folder is missing or may not be written to.
  // Preconditions: no key of `meta` is reserved (detail, events, steps, checksum); keys and values hold no zero byte.
  TraceWriter(const OutputPath& path, Detail detail, Meta meta = {});
  ~TraceWriter() override;

  // Adds a key or replaces its value, for values known only at the end of a run. Same preconditions.
  void set_meta(std::string_view key, std::string value);

  // Writes buffered events, closes and renames. Call once; record nothing afterwards.
  // Throws InputError when the disk is full, or when meta is larger than kMaxMetaBytes; the trace is then lost.
  void finish();

  [[nodiscard]] std::int64_t events() const;  // so far

 private:
  // Throws InputError when the disk is full. The trace is then lost, and finish() throws the error again.
  void write(const Event& event) override;

  class File;
  Meta meta_;
  std::unique_ptr<File> file_;  // null: off, or finished
  std::int64_t finished_events_ = 0;
};

}  // namespace kvscope::trace

// A recorder that writes a trace file (trace_file.h says what is in it). Events go to a temporary name beside the file;
// finish() renames. A writer destroyed without finish() leaves nothing behind. Memory is bounded whatever the length.
//
//   TraceWriter trace("run.kvt", Detail::full, {{"producer", "kvscope 0.1.0"}, {"scenario", scenario_text}});
//   run(engine, trace);
//   trace.finish();
//
// With Detail::off it makes no file at all. Two runs that record the same events write the same bytes (with one version
// of SQLite: its number stands in every database's header).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/trace/recorder.h"
#include "core/trace/trace_file.h"

namespace kvscope::trace {

class TraceWriter final : public Recorder {
 public:
  // Throws InputError "<path> rejected: cannot be written: ..." when the folder is missing or may not be written to.
  // Preconditions: no key of `meta` is reserved (detail, events, steps, checksum); keys and values hold no zero byte.
  TraceWriter(const std::filesystem::path& path, Detail detail, Meta meta = {});
  ~TraceWriter() override;

  // One more key, or another value for one: what is known only at the end of a run. Same preconditions.
  void set_meta(std::string_view key, std::string value);

  // Writes what is still held, closes and renames. Call once; nothing may be recorded afterwards.
  // Throws InputError when the disk is full, or when meta is past kMaxMetaBytes; the trace is then gone.
  void finish();

  [[nodiscard]] std::int64_t events() const;  // so far

 private:
  // Throws InputError when the disk is full. The trace is then lost: finish() would throw it again.
  void write(const Event& event) override;

  class File;
  Meta meta_;
  std::unique_ptr<File> file_;  // null: off, or finished
  std::int64_t finished_events_ = 0;
};

}  // namespace kvscope::trace

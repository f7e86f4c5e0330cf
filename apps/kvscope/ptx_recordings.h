// The files that `ptx run` writes during a run: the trace of tiles (--trace) and the list of events (--events).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::apps {

struct RecordingOptions {
  std::string trace;  // file, or empty
  std::int32_t trace_cta = 0;
  std::optional<std::int32_t> trace_warp;
  bool trace_lanes = false;
  std::vector<std::string> tiles;  // "seq=1,head=1,rows=64", one per tile

  std::string events;  // file, "-" or empty
  std::vector<std::string> event_kinds;
  std::optional<std::int32_t> event_cta, event_warp;
  std::string event_steps;  // "A:B"
  bool event_lanes = false;
  bool event_json = false;
};

// Keys of --tile, and kinds of --event-kinds.
[[nodiscard]] std::string tile_note_keys(std::string_view between);
[[nodiscard]] std::vector<std::string> event_kind_names();

class Recordings {
 public:
  // Throws InputError with every invalid option, and for files that cannot be written.
  Recordings(const RecordingOptions& options, const ptx::LaunchConfig& config, const ptx::Program& program);
  ~Recordings();

  void watch(ptx::Checks& checks);  // this object must outlive `checks`
  // Call after the launch: renames the files from their temporary names. Returns one line per file about its content.
  [[nodiscard]] std::string finish();

 private:
  class Trace;
  class Events;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Events> events_;
};

}  // namespace kvscope::apps

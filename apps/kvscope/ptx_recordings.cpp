#include "apps/kvscope/ptx_recordings.h"

#include <fmt/format.h>

#include <array>
#include <iostream>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/numbers.h"
#include "core/trace/trace_writer.h"
#include "gpu/virtual/debug/event_list.h"
#include "gpu/virtual/debug/tile_trace.h"

namespace kvscope::apps {
namespace {

// The text after a separator; empty if there is no separator.
std::string_view behind(std::string_view text, std::size_t separator) {
  return separator == std::string_view::npos ? std::string_view{} : text.substr(separator + 1);
}

struct NoteKey {
  std::string_view name;
  std::optional<std::int64_t> ptx::TileNote::*member;
};
constexpr std::array<NoteKey, 17> kNoteKeys = {{{"step", &ptx::TileNote::step},
                                                {"seq", &ptx::TileNote::seq},
                                                {"layer", &ptx::TileNote::layer},
                                                {"head", &ptx::TileNote::head},
                                                {"value", &ptx::TileNote::value},
                                                {"first_token", &ptx::TileNote::first_token},
                                                {"rows", &ptx::TileNote::rows},
                                                {"tokens", &ptx::TileNote::tokens},
                                                {"columns", &ptx::TileNote::columns},
                                                {"bytes", &ptx::TileNote::bytes},
                                                {"shared", &ptx::TileNote::shared},
                                                {"column", &ptx::TileNote::column},
                                                {"row_axis", &ptx::TileNote::row_axis},
                                                {"head_axis", &ptx::TileNote::head_axis},
                                                {"page_size", &ptx::TileNote::page_size},
                                                {"layers", &ptx::TileNote::layers},
                                                {"kinds", &ptx::TileNote::kinds}}};

// Parses "seq=1,head=1". Faults of each piece are added to `faults`.
ptx::TileNote note_of(std::string_view text, std::vector<Fault>& faults) {
  ptx::TileNote note;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view piece = text.substr(0, comma);
    text = behind(text, comma);
    const std::size_t equals = piece.find('=');
    const std::string_view name = piece.substr(0, equals);
    const auto number = whole_number<std::int64_t>(behind(piece, equals));
    std::optional<std::int64_t> ptx::TileNote::*member = nullptr;
    for (const NoteKey& key : kNoteKeys) {
      if (key.name == name) member = key.member;
    }
    if (member == nullptr) {
      faults.push_back({"--tile", fmt::format("'{}' is not one of {}", name, tile_note_keys(", "))});
    } else if (!number || *number < 0) {
      faults.push_back({"--tile", fmt::format("'{}' is not {}=NUMBER, from 0 on", piece, name)});
    } else if (note.*member) {
      faults.push_back({"--tile", fmt::format("'{}' gives {} a second time: give each key once", piece, name)});
    } else {
      note.*member = *number;
    }
  }
  return note;
}

std::int64_t cta_count(const ptx::LaunchConfig& config) {
  return config.grid[0] * config.grid[1] * config.grid[2];
}
std::int64_t warp_count(const ptx::LaunchConfig& config) {
  return (config.block[0] * config.block[1] * config.block[2] + ptx::kLanes - 1) / ptx::kLanes;
}

void require_below(const char* option, std::int64_t value, std::int64_t count, const char* what,
                   std::vector<Fault>& faults) {
  if (value >= 0 && value < count) return;
  faults.push_back({option, fmt::format("{} is outside [0, {}): {}", value, count, what)});
}

ptx::TileTraceOptions trace_options(const RecordingOptions& options, const ptx::LaunchConfig& config,
                                    std::vector<Fault>& faults) {
  ptx::TileTraceOptions out;
  out.cta = options.trace_cta;
  out.lanes = options.trace_lanes;
  require_below("--trace-cta", options.trace_cta, cta_count(config), "CTAs of the grid", faults);
  if (options.trace_warp) {
    out.warp = *options.trace_warp;
    require_below("--trace-warp", out.warp, warp_count(config), "warps of a CTA", faults);
  }
  for (const std::string& tile : options.tiles) out.notes.push_back(note_of(tile, faults));
  return out;
}

ptx::EventFilter event_filter(const RecordingOptions& options, const ptx::LaunchConfig& config,
                              std::vector<Fault>& faults) {
  ptx::EventFilter filter;
  for (const std::string& kind : options.event_kinds) filter.kinds.push_back(*ptx::find_machine_event(kind));
  filter.lane_addresses = options.event_lanes;
  if (options.event_cta) {
    filter.cta = *options.event_cta;
    require_below("--event-cta", filter.cta, cta_count(config), "CTAs of the grid", faults);
  }
  if (options.event_warp) {
    filter.warp = *options.event_warp;
    require_below("--event-warp", filter.warp, warp_count(config), "warps of a CTA", faults);
  }
  if (!options.event_steps.empty()) {
    const std::string_view text = options.event_steps;
    const std::size_t colon = text.find(':');
    const auto first = whole_number<std::uint64_t>(text.substr(0, colon));
    const auto last = whole_number<std::uint64_t>(behind(text, colon));
    if (!first || !last || *last < *first) {
      faults.push_back({"--event-steps", fmt::format("'{}' is not FIRST:LAST, two steps in order", text)});
    } else {
      filter.first_step = *first;
      filter.last_step = *last;
    }
  }
  return filter;
}

}  // namespace

std::string tile_note_keys(std::string_view between) {
  std::string keys;
  for (const NoteKey& key : kNoteKeys) keys += fmt::format("{}{}", keys.empty() ? "" : between, key.name);
  return keys;
}

std::vector<std::string> event_kind_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < ptx::kMachineEventKinds; ++kind) {
    names.emplace_back(ptx::name(static_cast<ptx::MachineEventKind>(kind)));
  }
  return names;
}

class Recordings::Trace {
 public:
  Trace(const std::string& path, ptx::TileTraceOptions options, const ptx::LaunchConfig& config)
      : path_(path),
        writer_(path, trace::Detail::full, {{"producer", "kvscope " KVSCOPE_VERSION}, {"kernel", config.kernel}}),
        monitor_(writer_, std::move(options)) {}

  [[nodiscard]] ptx::Monitor& monitor() { return monitor_; }
  std::string finish() {
    writer_.finish();
    const std::int64_t tiles = monitor_.tiles();
    return fmt::format("trace       {}: {} tile{}, {} events\n", path_, tiles, tiles == 1 ? "" : "s", writer_.events());
  }

 private:
  std::string path_;
  trace::TraceWriter writer_;
  ptx::TileTrace monitor_;
};

class Recordings::Events {
 public:
  Events(const std::string& path, ptx::EventFilter filter, bool json, const ptx::Program& program)
      : path_(path),
        list_(std::move(filter), [this, json, &program](const ptx::MachineEvent& e, ptx::LaneAddressSpan addresses) {
          const std::string line =
              (json ? ptx::to_json_line(e, addresses, program) : ptx::to_text(e, addresses, program)) + '\n';
          if (pending_) {
            pending_->write(line);
          } else {
            std::cout << line;
          }
        }) {
    if (path != "-") pending_.emplace(path);
  }

  [[nodiscard]] ptx::Monitor& monitor() { return list_; }
  std::string finish() {
    if (!pending_) return "";
    pending_->commit();
    return fmt::format("events      {}: {}\n", path_, list_.count());
  }

 private:
  std::string path_;
  std::optional<PendingFile> pending_;  // nullopt: standard output
  ptx::EventList list_;
};

Recordings::Recordings(const RecordingOptions& options, const ptx::LaunchConfig& config, const ptx::Program& program) {
  std::vector<Fault> faults;
  ptx::TileTraceOptions trace;
  ptx::EventFilter filter;
  if (!options.trace.empty()) trace = trace_options(options, config, faults);
  if (!options.events.empty()) filter = event_filter(options, config, faults);
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  if (!options.trace.empty()) trace_ = std::make_unique<Trace>(options.trace, std::move(trace), config);
  if (!options.events.empty()) {
    events_ = std::make_unique<Events>(options.events, std::move(filter), options.event_json, program);
  }
}
Recordings::~Recordings() = default;

void Recordings::watch(ptx::Checks& checks) {
  if (trace_ != nullptr) checks.add(trace_->monitor());
  if (events_ != nullptr) checks.add(events_->monitor());
}

std::string Recordings::finish() {
  std::string lines;
  if (trace_ != nullptr) lines += trace_->finish();
  if (events_ != nullptr) lines += events_->finish();
  return lines;
}

}  // namespace kvscope::apps

// The first difference between two runs: which event, in which step, which of its numbers, and the events around it.
// The search stops there, because later differences are mostly consequences of the first.
//
//   first divergence at event 57, step 4: tokens_written
//     tokens: 16 | 15
//   both, before:
//     56  block_allocated block=3 seq=0 page=1
//   a.kvt:
//     57  tokens_written seq=0 first_token=16 tokens=16 block=3 slot=0 decode=0
//   b.kvt:
//     57  tokens_written seq=0 first_token=16 tokens=15 block=3 slot=0 decode=0
//
// Two traces with different content, such as one of the model and one of a kernel, are compared in the part they share:
// events of some kinds, or of one tile of each. Events then keep the numbers of their traces, and meta is not compared:
//   first divergence at event 58 | 4: box_copied
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/trace_reader.h"

namespace kvscope::trace {

// Default number of events shown before and after a divergence.
inline constexpr std::int64_t kDiffContext = 3;

struct FieldDifference {
  std::string_view field;
  std::int64_t left = 0;
  std::int64_t right = 0;
  friend bool operator==(const FieldDifference&, const FieldDifference&) = default;
};

struct Divergence {
  std::int64_t event = 0;               // number of equal compared events before it
  StepIdx step{-1};                     // its step, -1 before the first
  std::vector<FieldDifference> fields;  // of two events of one kind; empty when kinds differ or a side ended
  std::vector<Event> before;            // [<= context] equal events that lead to it
  std::vector<Event> left;              // [<= 1 + context] from `event` on; empty: the left trace ended
  std::vector<Event> right;             // likewise; not both are empty
  // Event numbers in the traces; for `before`, numbers of the left trace.
  std::vector<std::int64_t> before_numbers, left_numbers, right_numbers;
};

// What is compared.
struct DiffOptions {
  std::int64_t context = kDiffContext;  // >= 0
  std::vector<std::size_t> kinds = {};  // empty: all
  // Compare one tile of each trace: from its tile_opened to the next. Tiles are numbered from 0; empty: everything.
  std::optional<std::int64_t> left_tile{}, right_tile{};
  [[nodiscard]] bool leaves_out() const { return !kinds.empty() || left_tile || right_tile; }
};

// A key of the traces' meta that is missing in one of them or has different values. Totals and checksums are not
// compared, because they follow from the events.
struct MetaDifference {
  std::string key;
  std::optional<std::string> left;
  std::optional<std::string> right;
  friend bool operator==(const MetaDifference&, const MetaDifference&) = default;
};

struct TraceDiff {
  std::vector<MetaDifference> meta;  // by key
  std::optional<Divergence> first;   // empty: the events are equal
  std::int64_t equal_events = 0;     // from the start
  bool partial = false;              // the options excluded some events
  [[nodiscard]] bool same_events() const { return !first.has_value(); }
};

// Precondition of both: context >= 0.
[[nodiscard]] std::optional<Divergence> first_divergence(std::span<const Event> left, std::span<const Event> right,
                                                         std::int64_t context = kDiffContext);

// Reads both files step by step, never whole. InputError when a file is damaged before the first divergence, or has no
// tile of the requested number.
[[nodiscard]] TraceDiff diff_traces(TraceReader& left, TraceReader& right, const DiffOptions& options = {});

// The text above, preceded by one line for each difference of meta. Long values are cut to the place where they differ:
//   meta 'detail': steps | full
//   meta 'scenario': differs from character 120 on: ...ocks":64, | ...ocks":32,
//   the 1234 events are the same
[[nodiscard]] std::string to_text(const TraceDiff& diff, std::string_view left_name, std::string_view right_name);

}  // namespace kvscope::trace

// The events of three tiles, by TMA, through LDS and as operand of wgmma, each with one number changed: to numbers at and
// beyond the ends of any range.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/trace/event_text.h"
#include "tests/viz/geometry/staged_tile.h"

namespace kvscope::viz::testing_support {

inline constexpr std::array<std::int64_t, 9> kNumbersOfTiles{std::numeric_limits<std::int64_t>::min(),
                                                             std::int64_t{-1} << 40,
                                                             -2,
                                                             -1,
                                                             0,
                                                             std::int64_t{1} << 31,
                                                             std::int64_t{1} << 40,
                                                             std::int64_t{1} << 62,
                                                             std::numeric_limits<std::int64_t>::max()};

inline std::vector<std::vector<trace::Event>> tiles_to_change() {
  TileOrder tma;
  tma.rows = 16;
  TileOrder lds;
  lds.path = StagingPath::lds, lds.page = 64;
  std::vector<trace::Event> wgmma = staged_for_wgmma(tma);
  trace::OperandRead operand;
  operand.operand = 1, operand.stride = 1024, operand.span = 128, operand.lines = 8, operand.depth = 16;
  wgmma.emplace_back(operand);
  for (std::int64_t n = 0; n < 16; ++n) wgmma.emplace_back(trace::OperandChunk{0, n / 2, n % 2 * 8, n * 16});
  return {staged_events(tma), staged_events(lds), wgmma};
}

// Calls visit(events) for each number of the first and the last event of each kind. Every `step`-th call is made:
// give one that shares no divisor with the 9 numbers.
inline void for_changed_tiles(std::size_t step, const auto& visit) {
  std::size_t calls = 0;
  for (std::vector<trace::Event> events : tiles_to_change()) {
    ASSERT_FALSE(events.empty());
    for (std::size_t kind = 0; kind < trace::kKinds; ++kind) {
      const auto is_kind = [&](const trace::Event& e) { return e.index() == kind; };
      const auto first = std::ranges::find_if(events, is_kind);
      if (first == events.end()) continue;
      const auto last = std::find_if(events.rbegin(), events.rend(), is_kind).base() - 1;
      for (const auto at : {first, last}) {
        const trace::Event before = *at;
        std::array<std::int64_t, trace::kMaxFields> values{};
        const std::size_t fields = trace::field_values(before, values);
        for (std::size_t field = 0; field < fields; ++field) {
          for (const std::int64_t number : kNumbersOfTiles) {
            auto changed = values;
            changed[field] = number;
            const auto event = trace::event_from(kind, std::span(changed).first(fields));
            if (!event || calls++ % step != 0) continue;  // no event: no reader of files lets it in
            *at = *event;
            SCOPED_TRACE(trace::to_text(*event));
            visit(events);
            *at = before;
          }
        }
      }
    }
  }
}

}  // namespace kvscope::viz::testing_support

// Any number in an event of a tile: the tile is rejected, or everything that panels ask of it has an answer. Under the
// sanitizers a sum that overflows and an index outside of an array end the test.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/trace/event_text.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/playback/support.h"
#include "viz/playback/happened.h"
#include "viz/playback/motion.h"
#include "viz/playback/tile_banks.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_layouts.h"
#include "viz/playback/tile_reads.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::tile_numbers_test {
namespace {

using testing_support::small_facts;
using testing_support::staged_events;
using testing_support::staged_for_wgmma;

constexpr std::array<std::int64_t, 9> kNumbers{std::numeric_limits<std::int64_t>::min(),
                                               std::int64_t{-1} << 40,
                                               -2,
                                               -1,
                                               0,
                                               std::int64_t{1} << 31,
                                               std::int64_t{1} << 40,
                                               std::int64_t{1} << 62,
                                               std::numeric_limits<std::int64_t>::max()};

// What the panels ask, at some events; of long lists the first and the last.
void ask_everything(const Tile& tile) {
  const Facts facts = small_facts();
  const State state;
  const auto ends = [](auto size, const auto& visit) {
    const auto count = static_cast<std::int64_t>(size);
    if (count > 0) visit(std::int64_t{0});
    if (count > 1) visit(count - 1);
  };
  std::vector<TileElement> elements{{0, 0}, {-1, -1}, {tile.rows() - 1, tile.columns() - 1}, {tile.rows(), 0}};
  for (const TileElement& element : elements) {
    static_cast<void>(tile.chunk_of(element));
    static_cast<void>(tile.shared_byte(element));
    static_cast<void>(tile.pool_byte(element));
    for (const std::int32_t fill : tile.fills_of(element)) {
      ASSERT_LT(static_cast<std::size_t>(fill), tile.fills.size());
    }
  }
  ends(tile.registers().size(), [&](std::int64_t n) {
    for (const TileElement& e : tile.elements_of(tile.registers()[static_cast<std::size_t>(n)])) {
      ASSERT_TRUE(e.row >= 0 && e.row < tile.rows() && e.column >= 0 && e.column < tile.columns());
    }
  });
  ends(tile.rows(), [&](std::int64_t row) {
    static_cast<void>(tile.row_of(tile.opened.seq, tile.token_of(row)));
    if (tile.page_of(row)) static_cast<void>(tile.slot_of(row));
  });
  ends(tile.chunks.size(), [&](std::int64_t n) {
    const std::int64_t byte = tile.chunks[static_cast<std::size_t>(n)].shared;
    ASSERT_TRUE(tile.chunk_at(byte));
    static_cast<void>(tile.unswizzled(byte));
  });
  static_cast<void>(tile.gathers());
  static_cast<void>(title(tile, facts) + no_registers(tile) + read_name(tile) + matrix_name(tile));
  static_cast<void>(swizzle_formula(tile));
  for (const TileLayout& layout : tile_layouts(tile)) static_cast<void>(layout_cost(tile, layout));
  ends(tile.reads.size(), [&](std::int64_t read) {
    static_cast<void>(bank_use(tile, read, true));
    static_cast<void>(bank_use(tile, read, false));
  });

  TileState before = tile_state(tile, 0);
  for (const std::int64_t event : {std::int64_t{0}, tile.events / 3, event_of_landed(tile), tile.events}) {
    const TileState now = tile_state(tile, event);
    ends(tile.copies.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_copy(tile, now, n)); });
    ends(tile.chunks.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_chunk(tile, now, n)); });
    ends(tile.reads.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_read(tile, now, n)); });
    ends(tile.fills.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_fill(tile, now, n)); });
    static_cast<void>(what_happened(tile, now));
    static_cast<void>(uncovered_copies(tile, event));
    static_cast<void>(next_early_read(tile, event));
    static_cast<void>(flights_between(tile, before, now, 100));
    static_cast<void>(lights_between(tile, before, now));
    Selection token;
    token.kind = Selection::Kind::token;
    token.seq = tile.opened.seq;
    token.token = tile.opened.first_token;
    const Lit lit = resolve(state, facts, &tile, token);
    static_cast<void>(chain(tile, now, lit.tile));
    static_cast<void>(describe(state, facts, &tile, token));
    static_cast<void>(lit_reads(tile, lit.tile));
    if (const auto shown = shown_read(tile, now, lit.tile)) static_cast<void>(taken_in_words(tile, *shown));
    before = now;
  }
}

std::vector<std::vector<trace::Event>> tiles() {
  testing_support::TileOrder tma;
  tma.rows = 16;
  testing_support::TileOrder lds;
  lds.path = StagingPath::lds, lds.page = 64;
  std::vector<trace::Event> wgmma = staged_for_wgmma(tma);
  trace::OperandRead operand;
  operand.operand = 1, operand.stride = 1024, operand.span = 128, operand.lines = 8, operand.depth = 16;
  wgmma.emplace_back(operand);
  for (std::int64_t n = 0; n < 16; ++n) wgmma.emplace_back(trace::OperandChunk{0, n / 2, n % 2 * 8, n * 16});
  return {staged_events(tma), staged_events(lds), wgmma};
}

TEST(TileNumbers, AreRejectedOrEveryQuestionHasAnAnswer) {
  std::size_t accepted = 0, rejected = 0;
  for (std::vector<trace::Event> events : tiles()) {
    ASSERT_FALSE(events.empty());
    ask_everything(fold_tile(events));
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
          for (const std::int64_t number : kNumbers) {
            auto changed = values;
            changed[field] = number;
            const auto event = trace::event_from(kind, std::span(changed).first(fields));
            if (!event) continue;  // no reader of files lets it in
            *at = *event;
            SCOPED_TRACE(trace::to_text(*event));
            try {
              ask_everything(fold_tile(events));
              ++accepted;
            } catch (const InputError&) {
              ++rejected;
            }
            *at = before;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 500u);
  EXPECT_GT(rejected, 500u);
}

}  // namespace
}  // namespace kvscope::viz::tile_numbers_test

// The read that is shown for a selection and its words, against the tile's own events: the group of lanes takes the
// bytes of what is selected, a formula gives the place of every chunk, and a read without its wait is found.
#include "viz/playback/tile_reads.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/playback/support.h"
#include "tests/whole_grid.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::tile_reads_test {
namespace {

using namespace testing_support;

struct Choice {
  StagingPath path = StagingPath::tma;
  DType dtype = DType::bf16;
  KOrV kv = KOrV::k;
  SwizzleMode swizzle = SwizzleMode::b128;
  std::int64_t head = 64;
};

// Tokens 64 to 127 of a sequence of 150, pages of 64.
std::vector<trace::Event> events_of(const Choice& choice) {
  Scenario scenario;
  scenario.name = "reads";
  scenario.model = {"custom", 1, 2, 1, choice.head, false, choice.head};
  scenario.cache.dtype = choice.dtype;
  scenario.cache.page_size = 64;
  scenario.cache.blocks = 8;
  scenario.requests.list = {Request{0, 150, 3, {}}};
  scenario.tile = {.BN = 64, .BK = choice.head};
  scenario.tile.swizzle = choice.swizzle;
  trace::Recorder off;
  const EngineRun run = run_engine(scenario, scenario.requests.list, off);
  const CacheState state = kvscope::state_at(scenario, scenario.requests.list, focus_step(scenario, run.report)).cache;
  TileQuestion question;
  question.path = choice.path;
  question.seq = SeqIdx{0};
  question.kv = choice.kv;
  question.tile = 1;
  trace::MemoryRecorder recorder;
  record_tile(scenario, state, question, recorder);
  return recorder.events();
}

// Under the sanitizers every third point.
template <class Check>
int for_each_read_tile(const Check& check) {
  const std::int64_t thin = test::size_for_sanitizers(3, 1);
  std::int64_t point = 0;
  int tiles = 0;
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) {
      for (const KOrV kv : {KOrV::k, KOrV::v}) {
        for (const SwizzleMode swizzle : {SwizzleMode::b128, SwizzleMode::b64, SwizzleMode::b32, SwizzleMode::none}) {
          for (const std::int64_t head : {64, 128}) {
            if (path == StagingPath::lds && swizzle != SwizzleMode::b128) continue;  // a choice of TMA's
            if (point++ % thin != 0) continue;
            std::vector<trace::Event> events;
            try {
              events = events_of({path, dtype, kv, swizzle, head});
            } catch (const GeometryError&) {
              continue;
            }
            SCOPED_TRACE(fmt::format("{} {} {} {} {}", path == StagingPath::tma ? "tma" : "lds", name(dtype),
                                     kv == KOrV::k ? "K" : "V", name(swizzle), head));
            check(fold_tile(events));
            ++tiles;
            if (testing::Test::HasFailure()) return tiles;
          }
        }
      }
    }
  }
  return tiles;
}

LitTile lit_of(const Tile& tile, const TileRegister& reg) {
  LitTile lit;
  lit.reg = reg;
  lit.element = tile.elements_of(reg).front();
  lit.rows = {lit.element->row};
  lit.registers = {reg};
  return lit;
}

bool takes(const BankPhaseUse& group, std::int64_t byte) {
  return std::ranges::any_of(group.words,
                             [&](const BankWord& word) { return byte >= word.byte && byte < word.byte + 4; });
}

TEST(ShownRead, OfEveryRegisterFillsItFromTheBytesOfItsGroup) {
  std::int64_t asked = 0;
  const int tiles = for_each_read_tile([&](const Tile& tile) {
    const TileState now = tile_state(tile, event_of_landed(tile));
    for (std::size_t n = 0; n < tile.registers().size(); n += 7) {
      const TileRegister& reg = tile.registers()[n];
      const auto shown = shown_read(tile, now, lit_of(tile, reg));
      ASSERT_TRUE(shown);
      const auto fills = tile.fills_in(reg);
      ASSERT_TRUE(std::ranges::any_of(
          fills, [&](std::int32_t fill) { return tile.fills[static_cast<std::size_t>(fill)].read == shown->read; }));
      const BankUse use = bank_use(tile, shown->read, true);
      const TileElement first = tile.elements_of(reg).front();
      ASSERT_TRUE(takes(use.phases[static_cast<std::size_t>(shown->group)], tile.shared_byte(first)))
          << reg.wave << " " << reg.lane << " " << reg.index;
      ++asked;
    }
  });
  EXPECT_GE(tiles, test::size_for_sanitizers(5, 16));
  EXPECT_GT(asked, test::size_for_sanitizers(1'500, 5'000));
}

TEST(ShownRead, WithoutASelectionIsTheLastThatHasBegunAndTheFirstBeforeThat) {
  const Tile tile = fold_tile(events_of({}));
  EXPECT_EQ(shown_read(tile, tile_state(tile, 0), {}), (ShownRead{0, 0}));
  EXPECT_EQ(shown_read(tile, tile_state(tile, tile.events), {}), (ShownRead{std::ssize(tile.reads) - 1, 0}));
}

// Each lane's request is an event: while they come in, the group of the last one is shown.
TEST(ShownRead, OneThatIsUnderWayComesBeforeTheSelection) {
  const Tile tile = fold_tile(events_of({}));
  const TileRead& third = tile.reads[2];
  const LitTile lit = lit_of(tile, tile.registers().front());
  EXPECT_EQ(shown_read(tile, tile_state(tile, third.event + 1 + 4), lit), (ShownRead{2, 0}));
  EXPECT_EQ(shown_read(tile, tile_state(tile, third.event + 1 + 20), lit), (ShownRead{2, 2}));
}

// Shared memory and Registers show one read at all times, whatever is selected.
TEST(ShownRead, IsTheReadOfTheRegistersGridAtEachEventAndForEachSelection) {
  for_each_read_tile([&](const Tile& tile) {
    std::vector<Selection> selections{{},
                                      of_tile_row(6),
                                      of_tile_row(tile.opened.tokens - 1),
                                      of_tile_lane(0, 26),
                                      of_tile_register(tile.registers()[tile.registers().size() / 2])};
    if (tile.chunk_columns() > 0) selections.push_back(of_tile_chunk({6, 3 * tile.chunk_columns()}));
    for (const Selection& selection : selections) {
      const LitTile lit = resolve(State{}, Facts{}, &tile, selection).tile;
      for (std::int64_t at = 0; at <= tile.events; at += std::max<std::int64_t>(tile.events / 40, 1)) {
        const TileState now = tile_state(tile, at);
        const auto shown = shown_read(tile, now, lit);
        ASSERT_TRUE(shown);
        ASSERT_EQ(shown->read, read_of_grid(tile, now, lit))
            << at << ", selection " << static_cast<int>(selection.kind);
      }
    }
  });
}

TEST(ShownRead, AbsentWhereLanesAreNotRecorded) {
  std::vector<trace::Event> events;
  for (const trace::Event& event : events_of({})) {
    if (!std::holds_alternative<trace::LaneRead>(event)) events.push_back(event);
  }
  const Tile tile = fold_tile(events);
  EXPECT_EQ(shown_read(tile, tile_state(tile, 0), {}), std::nullopt);
}

// --- words -----------------------------------------------------------------------------------------------------------

TEST(ReadWords, EightRowsOf128BytesAre8BankGroupsWithTheSwizzleAnd8WavefrontsWithoutIt) {
  const Tile tile = fold_tile(events_of({}));
  LitTile lit;
  lit.element = TileElement{6, 24};  // chunk c3 of row 6
  lit.rows = {6};
  const auto shown = shown_read(tile, tile_state(tile, 0), lit);
  ASSERT_TRUE(shown);
  const auto group = static_cast<std::size_t>(shown->group);
  EXPECT_EQ(taken_in_words(tile, *shown), "ldmatrix takes chunk c3 of 8 rows");
  EXPECT_EQ(banks_in_words(tile, bank_use(tile, shown->read, true).phases[group]), "8 bank groups, 1 wavefront");
  EXPECT_EQ(banks_in_words(tile, bank_use(tile, shown->read, false).phases[group]), "8 wavefronts, all in banks 12–15");
}

TEST(ReadWords, SixteenRowsThroughLdsAre16BankGroups) {
  const Tile tile = fold_tile(events_of({.path = StagingPath::lds}));
  const ShownRead first{0, 0};
  EXPECT_EQ(taken_in_words(tile, first), "ds_read_b128 takes chunk c0 of 16 rows");
  EXPECT_EQ(banks_in_words(tile, bank_use(tile, 0, true).phases[0]), "16 bank groups, 1 wavefront");
  EXPECT_EQ(banks_in_words(tile, bank_use(tile, 0, false).phases[0]), "4 wavefronts, all in 16 of 64 banks");
  EXPECT_EQ(ranges(lanes_of(bank_use(tile, 0, true).phases[0])), "0–3, 12–15, 20–27");
}

TEST(ReadWords, RangesOfNumbers) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({4}), "4");
  EXPECT_EQ(ranges({0, 1}), "0–1");
  EXPECT_EQ(ranges({0, 1, 2, 5, 7, 8}), "0–2, 5, 7–8");
}

// The formula's numbers, put in by hand, give the place of every chunk of every tile.
TEST(SwizzleFormula, GivesThePlaceOfEveryChunk) {
  std::vector<std::string> seen;
  for_each_read_tile([&](const Tile& tile) {
    const std::string formula = swizzle_formula(tile);
    if (std::ranges::find(seen, formula) == seen.end()) seen.push_back(formula);
    const std::int64_t row_bytes = tile.shared->row_bytes, of_row = row_bytes / 16;
    const std::int64_t band = tile.shared->rows * row_bytes;
    for (const TileChunk& chunk : tile.chunks) {
      const std::int64_t column = chunk.column / tile.chunk_columns(), c = column % of_row;
      const std::int64_t base = column / of_row * band, row = chunk.row;
      long long a = 0, b = 0;
      std::int64_t place = c;
      if (std::sscanf(formula.c_str(), "16-byte place n at n XOR (n / %lld mod %lld)", &a, &b) == 2) {
        const std::int64_t n = row * of_row + c;
        ASSERT_EQ(chunk.shared, base + 16 * (n ^ (n / a % b))) << formula << " row " << row << " c" << c;
        continue;
      }
      if (std::sscanf(formula.c_str(), "chunk c at c XOR (row / %lld mod %lld)", &a, &b) == 2) {
        place = c ^ (row / a % b);
      } else if (std::sscanf(formula.c_str(), "chunk c at c XOR (row mod %lld)", &b) == 1) {
        place = c ^ (row % b);
      } else {
        ASSERT_EQ(formula, "no swizzle: chunk c at c");
      }
      ASSERT_EQ(chunk.shared, base + row * row_bytes + 16 * place) << formula << " row " << row << " c" << c;
    }
  });
  EXPECT_THAT(seen, testing::UnorderedElementsAre("chunk c at c XOR (row mod 8)", "chunk c at c XOR (row / 2 mod 4)",
                                                  "chunk c at c XOR (row / 4 mod 2)", "no swizzle: chunk c at c",
                                                  "16-byte place n at n XOR (n / 16 mod 8)"));
}

// --- too early -------------------------------------------------------------------------------------------------------

TEST(EarlyRead, NoReadOfAStagedTileIsEarly) {
  for_each_read_tile([](const Tile& tile) { EXPECT_FALSE(next_early_read(tile, 0)); });
}

TEST(EarlyRead, AWaitThatAllowsOneCopyTooManyIsFoundAtTheReadThatTakesIt) {
  std::vector<trace::Event> events = events_of({.path = StagingPath::lds});
  for (trace::Event& event : events) {
    if (auto* const wait = std::get_if<trace::WaveWaited>(&event)) wait->allowed = wait->wave == 2 ? 1 : 0;
  }
  const Tile tile = fold_tile(events);
  const auto early = next_early_read(tile, 0);
  ASSERT_TRUE(early);
  const TileCopy& copy = tile.copies[static_cast<std::size_t>(early->copy)];
  EXPECT_EQ(copy.wave, 2);
  // The last copy of the wave is the one that is allowed to be outstanding.
  for (const TileCopy& other : tile.copies) {
    if (other.wave == 2) {
      EXPECT_LE(other.number, copy.number);
    }
  }
  // The read takes a byte of it, and no read before does.
  const auto touches = [&](const TileRead& read) {
    return std::any_of(tile.lane_reads.begin() + read.first_lane,
                       tile.lane_reads.begin() + read.first_lane + read.lanes, [&](const TileLaneRead& lane) {
                         const auto chunk = tile.chunk_at(lane.shared);
                         return chunk && tile.chunks[static_cast<std::size_t>(*chunk)].copy == early->copy;
                       });
  };
  for (std::int64_t n = 0; n < early->read; ++n) EXPECT_FALSE(touches(tile.reads[static_cast<std::size_t>(n)]));
  EXPECT_TRUE(touches(tile.reads[static_cast<std::size_t>(early->read)]));
  EXPECT_EQ(uncovered_copies(tile, tile.events), std::vector<std::int64_t>{early->copy});
}

TEST(EarlyRead, WithoutWaitsTheFirstReadIsEarlyAndEveryCopyUncovered) {
  std::vector<trace::Event> events;
  for (const trace::Event& event : events_of({.path = StagingPath::lds})) {
    if (!std::holds_alternative<trace::WaveWaited>(event)) events.push_back(event);
  }
  const Tile tile = fold_tile(events);
  const auto early = next_early_read(tile, 0);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->read, 0);
  EXPECT_EQ(std::ssize(uncovered_copies(tile, tile.events)), std::ssize(tile.copies));
}

TEST(EarlyRead, UncoveredCopiesAreThoseThatTheCountersSay) {
  const Tile tile = fold_tile(events_of({.path = StagingPath::lds, .head = 128}));
  for (const TileAction& action : tile.actions) {
    const TileState now = tile_state(tile, action.end);
    std::vector<std::int64_t> of_wave(static_cast<std::size_t>(tile.waves()), 0);
    for (const std::int64_t copy : uncovered_copies(tile, action.end)) {
      ++of_wave[static_cast<std::size_t>(tile.copies[static_cast<std::size_t>(copy)].wave)];
    }
    EXPECT_EQ(of_wave, now.outstanding) << action.end;
  }
}

}  // namespace
}  // namespace kvscope::viz::tile_reads_test

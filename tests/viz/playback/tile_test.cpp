// A tile as pictures need it, against core/staging: every register followed back arrives at the token and the column
// that locate() names, every token forwards at the registers and bytes that explain() names.
#include "viz/playback/tile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/staging/locate.h"
#include "core/staging/staging_events.h"
#include "tests/viz/playback/support.h"
#include "tests/whole_grid.h"
#include "viz/playback/tile_banks.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::tile_test {
namespace {

using namespace testing_support;
using testing::HasSubstr;

struct Staged {
  Scenario scenario;
  std::vector<Request> requests;
  CacheState state;
  TileQuestion question;
  std::vector<trace::Event> events;
  Tile tile;
};

// Two sequences of 70 and 150 tokens: the tile is the second of the longer one, or its last, which is not full.
Scenario scenario_of(DType dtype, std::int64_t page, std::int64_t head_size, SwizzleMode swizzle) {
  Scenario scenario;
  scenario.name = "tile";
  scenario.model = {"custom", 2, 4, 2, head_size, false, head_size};
  scenario.cache.dtype = dtype;
  scenario.cache.page_size = page;
  scenario.cache.blocks = 640 / page;
  scenario.requests.list = {Request{0, 70, 3, {}}, Request{0, 150, 3, {}}};
  scenario.tile = {.BN = 64, .BK = head_size};
  scenario.tile.swizzle = swizzle;
  return scenario;
}

// Nothing: the path cannot take the tile.
std::optional<Staged> stage(const Scenario& scenario, StagingPath path, KOrV kv, std::int64_t tile) {
  Staged staged{scenario, scenario.requests.list, {}, {}, {}, {}};
  trace::Recorder off;
  const EngineRun run = run_engine(scenario, staged.requests, off);
  staged.state = kvscope::state_at(scenario, staged.requests, focus_step(scenario, run.report)).cache;
  staged.question.path = path;
  staged.question.seq = SeqIdx{1};
  staged.question.layer = LayerIdx{1};
  staged.question.head = HeadIdx{1};
  staged.question.kv = kv;
  staged.question.tile = tile;
  trace::MemoryRecorder recorder;
  try {
    record_tile(scenario, staged.state, staged.question, recorder);
  } catch (const GeometryError&) {
    return std::nullopt;
  }
  staged.events = recorder.events();
  staged.tile = fold_tile(staged.events);
  return staged;
}

// The grid of the properties: both paths, three types, three page sizes, K and V, every swizzle, a full tile and the
// last one; under the sanitizers every fifth point.
template <class Check>
int for_each_tile(const Check& check) {
  const std::int64_t thin = test::size_for_sanitizers(5, 1);
  std::int64_t point = 0;
  int tiles = 0;
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3}) {
      for (const std::int64_t page : {16, 64, 128}) {
        for (const KOrV kv : {KOrV::k, KOrV::v}) {
          for (const SwizzleMode swizzle : {SwizzleMode::b128, SwizzleMode::b64, SwizzleMode::b32, SwizzleMode::none}) {
            if (path == StagingPath::lds && swizzle != SwizzleMode::b128) continue;  // a choice of TMA's
            if (point++ % thin != 0) continue;
            const std::int64_t number = 1 + (page / 16 + static_cast<int>(kv)) % 2;
            const auto staged = stage(scenario_of(dtype, page, 64, swizzle), path, kv, number);
            if (!staged) continue;
            SCOPED_TRACE(fmt::format("{} {} page {} {} {}", path == StagingPath::tma ? "tma" : "lds", name(dtype), page,
                                     kv == KOrV::k ? "K" : "V", name(swizzle)));
            check(*staged);
            ++tiles;
            if (testing::Test::HasFailure()) return tiles;
          }
        }
      }
    }
  }
  return tiles;
}

TileElement element_of(const Staged& staged, const trace::Question& q) {
  return {q.token - staged.tile.opened.first_token, q.dim.value};
}

TEST(TileFold, EveryRegisterFollowedBackArrivesAtTheTokenThatLocateNames) {
  std::int64_t asked = 0, empty = 0;
  const int tiles = for_each_tile([&](const Staged& staged) {
    const Tile& tile = staged.tile;
    ASSERT_FALSE(tile.registers().empty());
    const std::size_t stride = tile.tma() ? 3 : 29;  // all of them take minutes: locate() stages the tile anew
    for (std::size_t n = 0; n < tile.registers().size(); n += stride) {
      const TileRegister& reg = tile.registers()[n];
      TileQuestion question = staged.question;
      question.step = reg.step;
      std::vector<TileElement> expected;
      const std::vector<TileElement> elements = tile.elements_of(reg);
      // Past the head's 64 columns (8-bit rows of 128 B) and past the last token there is nothing to name.
      const bool tokens =
          std::ranges::all_of(elements, [&](const TileElement& e) { return tile.holds_token(e.row) && e.column < 64; });
      try {
        for (const trace::Question& q : locate_register(staged.scenario, staged.state, question, WaveIdx{reg.wave},
                                                        static_cast<int>(reg.lane), reg.index)) {
          ASSERT_EQ(q.seq, tile.opened.seq);
          expected.push_back(element_of(staged, q));
        }
      } catch (const IndexError&) {
        ASSERT_FALSE(tokens) << reg.lane << ' ' << reg.index;
        ++empty;
        continue;
      }
      ASSERT_EQ(elements, expected) << reg.wave << ' ' << reg.lane << ' ' << reg.index;
      ++asked;
    }
  });
  EXPECT_GE(tiles, test::size_for_sanitizers(10, 50));
  EXPECT_GT(asked, test::size_for_sanitizers(2'000, 10'000));
  EXPECT_GT(empty, test::size_for_sanitizers(50, 500));
}

TEST(TileFold, EveryElementOfATokenIsInTheRegistersThatExplainNames) {
  std::int64_t asked = 0;
  for_each_tile([&](const Staged& staged) {
    const Tile& tile = staged.tile;
    for (std::int64_t n = 0; n < tile.opened.tokens * 64; n += 97) {
      const TileElement element{n / 64, n % 64};
      const trace::Question q{SeqIdx{1},        tile.token_of(element.row), LayerIdx{1},
                              HeadIdx{1},       DimIdx{element.column},     staged.question.kv,
                              staged.state.step};
      const auto answer = explain(staged.scenario, staged.requests, q, staged.state);
      const auto result = [&](std::string_view link) {
        const auto found = std::ranges::find(answer.links, link, &trace::Link::name);
        return found == answer.links.end() ? std::string("no such link") : found->result;
      };
      const TileFill& fill = tile.fills[static_cast<std::size_t>(tile.fills_of(element).front())];
      EXPECT_THAT(result(tile.tma() ? "register" : "wave register"),
                  HasSubstr(fmt::format("lane {}, register {}, ", fill.reg.lane, fill.reg.index)));
      EXPECT_THAT(result("byte"), testing::StartsWith(fmt::format("{} (0x", tile.pool_byte(element))));
      const std::int64_t shared = tile.shared_byte(element);
      if (tile.tma()) {
        EXPECT_THAT(result("swizzle"), testing::EndsWith(fmt::format("shared byte {}", shared)));
      } else {
        EXPECT_EQ(result("LDS byte"), std::to_string(shared));
      }
      EXPECT_EQ(result(tile.tma() ? "bank" : "LDS bank"), std::to_string(shared / 4 % tile.shared->banks));
      EXPECT_EQ(element_of(staged, locate_shared(staged.scenario, staged.state, staged.question, shared)), element);
      // Page and block, by the lookup table alone.
      const auto page = tile.page_of(element.row);
      ASSERT_TRUE(page);
      const std::int64_t row = std::ranges::find(staged.state.batch, SeqIdx{1}) - staged.state.batch.begin();
      const std::int64_t size = staged.scenario.cache.page_size;
      EXPECT_EQ(tile.pages[static_cast<std::size_t>(*page)].page.value, q.token.value / size);
      EXPECT_EQ(tile.slot_of(element.row), q.token.value % size);
      EXPECT_EQ(
          tile.pages[static_cast<std::size_t>(*page)].block.value,
          staged.state.lookup_table[static_cast<std::size_t>(row * staged.state.table_columns + q.token.value / size)]);
      ++asked;
      if (testing::Test::HasFailure()) return;
    }
  });
  EXPECT_GT(asked, test::size_for_sanitizers(200, 1000));
}

TEST(TileFold, EveryElementLeadsToRegistersThatLeadBackToIt) {
  for_each_tile([](const Staged& staged) {
    const Tile& tile = staged.tile;
    std::map<std::int64_t, std::int64_t> copies;  // how many registers hold an element -> how often
    for (std::int64_t row = 0; row < tile.rows(); ++row) {
      for (std::int64_t column = 0; column < tile.columns(); ++column) {
        const auto fills = tile.fills_of({row, column});
        ASSERT_FALSE(fills.empty()) << row << ' ' << column;
        ++copies[std::ssize(fills)];
        for (const std::int32_t fill : fills) {
          const auto elements = tile.elements_of(tile.fills[static_cast<std::size_t>(fill)].reg);
          ASSERT_NE(std::ranges::find(elements, TileElement{row, column}), elements.end());
        }
      }
    }
    EXPECT_EQ(copies.size(), 1u) << "one warp, or the same number of waves, holds each element";
  });
}

TEST(TileFold, ConflictsCountedFromTheAddressesAreThoseOfTheReads) {
  std::int64_t reads = 0, without = 0;
  for_each_tile([&](const Staged& staged) {
    for (std::int64_t n = 0; n < std::ssize(staged.tile.reads); ++n) {
      const TileRead& read = staged.tile.reads[static_cast<std::size_t>(n)];
      const BankUse use = bank_use(staged.tile, n, true);
      ASSERT_EQ(use.wavefronts, read.cycles);
      ASSERT_EQ(use.conflicts, read.conflicts);
      without += bank_use(staged.tile, n, false).conflicts;
      ++reads;
    }
  });
  EXPECT_GT(reads, test::size_for_sanitizers(200, 1000));
  EXPECT_GT(without, 0);
}

// The picture's worked example: ldmatrix asks for one chunk of 8 rows of 128 B.
TEST(TileFold, WithoutTheSwizzleEightRowsOf128BytesShareFourBanks) {
  const auto staged = stage(scenario_of(DType::bf16, 16, 64, SwizzleMode::b128), StagingPath::tma, KOrV::k, 1);
  ASSERT_TRUE(staged);
  const BankUse swizzled = bank_use(staged->tile, 0, true), plain = bank_use(staged->tile, 0, false);
  ASSERT_EQ(swizzled.phases.size(), 4u);
  EXPECT_EQ(swizzled.phases[0].wavefronts, 1);
  EXPECT_EQ(plain.phases[0].wavefronts, 8);
  EXPECT_EQ(plain.wavefronts, 32);
  EXPECT_EQ(std::ranges::count(plain.phases[0].of_bank, 8), 4);
}

// --- how much of it has happened -------------------------------------------------------------------------------------

TEST(TileState, IsTheCountOfTheEventsBeforeIt) {
  for_each_tile([](const Staged& staged) {
    const Tile& tile = staged.tile;
    TileState counted;
    counted.outstanding.assign(static_cast<std::size_t>(tile.waves()), 0);
    for (std::int64_t at = 0; at <= tile.events; ++at) {
      const TileState now = tile_state(tile, at);
      ASSERT_EQ(now.issued, counted.issued) << at;
      ASSERT_EQ(now.landed, counted.landed) << at;
      ASSERT_EQ(now.arrived, 16 * counted.landed) << at;
      ASSERT_EQ(now.expected, counted.expected) << at;
      ASSERT_EQ(now.reads, counted.reads) << at;
      ASSERT_EQ(now.fills, counted.fills) << at;
      ASSERT_EQ(now.outstanding, counted.outstanding) << at;
      if (at == tile.events) break;
      const trace::Event& event = staged.events[static_cast<std::size_t>(at)];
      if (const auto* e = std::get_if<trace::BarrierExpects>(&event)) counted.expected += e->bytes;
      if (std::holds_alternative<trace::BoxCopied>(event)) ++counted.issued;
      if (const auto* e = std::get_if<trace::LdsCopied>(&event)) {
        ++counted.issued;
        ++counted.outstanding[static_cast<std::size_t>(e->wave)];
      }
      if (const auto* e = std::get_if<trace::WaveWaited>(&event)) {
        counted.outstanding[static_cast<std::size_t>(e->wave)] = e->allowed;
      }
      if (std::holds_alternative<trace::ChunkLanded>(event)) ++counted.landed;
      if (std::holds_alternative<trace::FragmentRead>(event)) ++counted.reads;
      if (std::holds_alternative<trace::RegisterFilled>(event)) ++counted.fills;
    }
    const TileState last = tile_state(tile, tile.events);
    EXPECT_TRUE(last.complete);
    EXPECT_EQ(last.action, std::ssize(tile.actions));
    if (tile.tma()) {
      EXPECT_EQ(last.arrived, last.expected);
    }
  });
}

TEST(TileState, ActionsCoverTheEventsWithoutAGap) {
  for_each_tile([](const Staged& staged) {
    std::int64_t at = 0;
    for (const TileAction& action : staged.tile.actions) {
      ASSERT_EQ(action.first, at);
      ASSERT_LT(action.first, action.end);
      at = action.end;
    }
    ASSERT_EQ(at, staged.tile.events);
  });
}

TEST(TileState, WhatHasNotArrivedIsOutlinedAndWhatHasIsThere) {
  const auto staged = stage(scenario_of(DType::bf16, 16, 64, SwizzleMode::b128), StagingPath::tma, KOrV::k, 1);
  const Tile& tile = staged->tile;
  ASSERT_EQ(tile.copies.size(), 4u);
  const TileState now = tile_state(tile, tile.copies[1].event + 10);  // box 1, and nine of its chunks
  EXPECT_EQ(now.arrived, 2048 + 9 * 16);
  EXPECT_EQ(arrival_of_copy(tile, now, 0), Arrival::there);
  EXPECT_EQ(arrival_of_copy(tile, now, 1), Arrival::moving);
  EXPECT_EQ(arrival_of_copy(tile, now, 2), Arrival::outlined);
  EXPECT_EQ(arrival_of_chunk(tile, now, 128 + 8), Arrival::there);
  EXPECT_EQ(arrival_of_chunk(tile, now, 128 + 9), Arrival::moving);
  EXPECT_EQ(arrival_of_chunk(tile, now, 256), Arrival::outlined);
  EXPECT_EQ(arrival_of_fill(tile, now, 0), Arrival::outlined);
  EXPECT_FALSE(now.complete);
  const TileState landed = tile_state(tile, event_of_landed(tile));
  EXPECT_TRUE(landed.complete);
  EXPECT_EQ(landed.landed, std::ssize(tile.chunks));
  EXPECT_EQ(landed.reads, 0);
  EXPECT_THROW(static_cast<void>(tile_state(tile, tile.events + 1)), IndexError);
}

// --- selection -------------------------------------------------------------------------------------------------------

struct Shown {
  Staged staged;
  Recorded recorded;
  std::shared_ptr<const Run> run;
  State state;
};

Shown shown(StagingPath path, KOrV kv) {
  const auto staged = stage(scenario_of(DType::bf16, 64, 64, SwizzleMode::b128), path, kv, 1);
  Shown shown{*staged, record(staged->scenario, staged->requests), {}, {}};
  shown.run = shown.recorded.open();
  shown.state = shown.run->state_at(shown.run->end_of_row(staged->state.step.value + 1));
  return shown;
}

TEST(TileSelection, ATokenLightsItsRowItsChunksAndItsRegistersAndTheseLightTheToken) {
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    for (const KOrV kv : {KOrV::k, KOrV::v}) {
      const Shown s = shown(path, kv);
      const Tile& tile = s.staged.tile;
      const Facts& facts = s.run->facts();
      const Selection token = of_token(SeqIdx{1}, TokIdx{70});
      const Lit lit = resolve(s.state, facts, &tile, token);
      EXPECT_THAT(lit.tile.rows, testing::ElementsAre(6));
      EXPECT_EQ(lit.tile.chunks.size(), 8u);
      std::set<TileRegister> registers;
      for (std::int64_t column = 0; column < 64; ++column) {
        for (const std::int32_t fill : tile.fills_of({6, column})) {
          registers.insert(tile.fills[static_cast<std::size_t>(fill)].reg);
        }
      }
      EXPECT_EQ(lit.tile.registers, std::vector<TileRegister>(registers.begin(), registers.end()));
      const Lit row = resolve(s.state, facts, &tile, of_tile_row(6));
      EXPECT_EQ(row, lit) << "a row that holds a token is that token";
      for (const TileRegister& reg : registers) {
        const Lit back = resolve(s.state, facts, &tile, of_tile_register(reg));
        ASSERT_TRUE(std::ranges::binary_search(back.tile.rows, 6));
        ASSERT_EQ(back.block, lit.block);
        ASSERT_EQ(back.page, PageIdx{1});
        const auto one = kv == KOrV::k ? std::optional(TokIdx{70}) : std::nullopt;  // two share a register of V
        ASSERT_EQ(back.token, one);
      }
      for (const std::int64_t chunk : lit.tile.chunks) {
        const TileChunk& of = tile.chunks[static_cast<std::size_t>(chunk)];
        const Lit back = resolve(s.state, facts, &tile, of_tile_chunk({of.row, of.column}));
        ASSERT_EQ(back.token, TokIdx{70});
        ASSERT_EQ(back.tile.chunk, chunk);
        ASSERT_TRUE(std::ranges::includes(registers, back.tile.registers));
      }
      const Lit page = resolve(s.state, facts, &tile, of_page(SeqIdx{1}, PageIdx{1}));
      EXPECT_EQ(page.tile.rows.size(), 64u);
      EXPECT_EQ(resolve(s.state, facts, &tile, of_block(*lit.block)).tile, page.tile);
      EXPECT_EQ(resolve(s.state, facts, &tile, of_token(SeqIdx{1}, TokIdx{3})).tile, LitTile{}) << "of another tile";
      EXPECT_EQ(resolve(s.state, facts, &tile, of_token(SeqIdx{0}, TokIdx{70})).tile, LitTile{});
      EXPECT_EQ(resolve(s.state, facts, nullptr, of_tile_row(6)), Lit{});
    }
  }
}

TEST(TileSelection, SaysWhatEachObjectIs) {
  const Shown s = shown(StagingPath::tma, KOrV::k);
  const auto words = [&](const Selection& selection) {
    return describe(s.state, s.run->facts(), &s.staged.tile, selection);
  };
  EXPECT_EQ(words(of_tile_row(6)), "Row 6 of the tile: token 70");
  EXPECT_EQ(words(of_tile_chunk({6, 24})), "Chunk c3 of row 6: columns 24 to 31, shared byte 848, banks 20 to 23");
  EXPECT_EQ(words(of_tile_lane(0, 26)), "Lane 26: 64 registers");
  EXPECT_EQ(words(of_tile_register({0, 26, 0, 0})), "Lane 26, register 0: token 70, dims 4 and 5");
  EXPECT_EQ(words(of_tile_register({0, 26, 99, 0})), "Lane 26, register 99: holds nothing of the tile");
  EXPECT_EQ(describe(s.state, s.run->facts(), nullptr, of_tile_row(6)), "No tile is shown");
}

TEST(TileSelection, OneSentenceIsTheWholeChainAsFarAsItHasCome) {
  const Shown s = shown(StagingPath::tma, KOrV::k);
  const Tile& tile = s.staged.tile;
  const auto sentence = [&](const Selection& selection, std::int64_t event) {
    return chain(tile, tile_state(tile, event), resolve(s.state, s.run->facts(), &tile, selection).tile);
  };
  const trace::TilePage& page = tile.pages.front();
  const Selection reg = of_tile_register({0, 26, 4, 0});  // dims 20 and 21: chunk c2
  EXPECT_EQ(sentence(reg, tile.events),
            fmt::format("Token 70 is row 6 of the tile: page 1 → block {} → row {}. Box 0 copied it; its chunk c2 is "
                        "stored at 2 XOR 6 = 4, shared byte 832, banks 16 to 19; lane 26 holds dims 20 and 21 in "
                        "register 4.",
                        page.block.value, page.row + 6));
  EXPECT_THAT(sentence(reg, event_of_landed(tile)), HasSubstr("lane 26 will hold dims"));
  EXPECT_THAT(sentence(reg, 0), HasSubstr("Box 0 will copy it"));
  EXPECT_THAT(sentence(of_token(SeqIdx{1}, TokIdx{70}), tile.events),
              HasSubstr("its chunk c0 is stored at 0 XOR 6 = 6"));
  EXPECT_THAT(sentence({}, 0), HasSubstr("Select a token"));
}

// A type without a register map is in shared memory all the same, and the reason is part of the sentence.
TEST(TileSelection, F32ReachesSharedMemoryAndSaysWhyNoRegisterHoldsIt) {
  const auto staged = stage(scenario_of(DType::f32, 16, 64, SwizzleMode::b128), StagingPath::tma, KOrV::k, 1);
  ASSERT_TRUE(staged);
  const Tile& tile = staged->tile;
  EXPECT_FALSE(tile.chunks.empty());
  EXPECT_TRUE(tile.reads.empty());
  EXPECT_EQ(no_registers(tile), "the matrix instruction takes elements of 8 and 16 bits, and these have 32");
  const Lit lit = resolve({}, {}, &tile, of_token(SeqIdx{1}, TokIdx{70}));
  EXPECT_THAT(chain(tile, tile_state(tile, tile.events), lit.tile), HasSubstr("No register holds it: the matrix"));
  EXPECT_FALSE(stage(scenario_of(DType::f32, 64, 64, SwizzleMode::b128), StagingPath::lds, KOrV::k, 1))
      << "KVBuffer has no f32";
}

// --- what a trace may hold -------------------------------------------------------------------------------------------

TEST(TileFold, EventsThatContradictOneAnotherAreRejectedByNumber) {
  const auto staged = stage(scenario_of(DType::bf16, 16, 64, SwizzleMode::b128), StagingPath::tma, KOrV::k, 1);
  const auto fault = [&](const std::function<void(std::vector<trace::Event>&)>& change) {
    std::vector<trace::Event> events = staged->events;
    change(events);
    try {
      static_cast<void>(fold_tile(events));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(fault([](auto& e) { e.erase(e.begin()); }), HasSubstr("event 0: a tile begins with tile_opened"));
  EXPECT_THAT(fault([](auto& e) { e.push_back(e.front()); }), HasSubstr("tile_opened begins another tile"));
  EXPECT_THAT(fault([](auto& e) { e.push_back(trace::BlockEvicted{}); }),
              HasSubstr("block_evicted is not an event of a tile"));
  EXPECT_THAT(fault([](auto& e) { e.insert(e.begin() + 1, trace::ChunkLanded{}); }),
              HasSubstr("event 1: chunk_landed of copy 0 is not behind that copy"));
  EXPECT_THAT(fault([](auto& e) {
                e.push_back(trace::LaneRead{99, 0, 0});
              }),
              HasSubstr("lane_read of read 99 is not behind that read"));
  EXPECT_THAT(fault([](auto& e) {
                auto filled = std::get<trace::RegisterFilled>(e.back());
                filled.row = 64;
                e.back() = filled;
              }),
              HasSubstr("are outside the tile of 64 x 64"));
  EXPECT_THAT(fault([](auto& e) {
                auto opened = std::get<trace::TileOpened>(e.front());
                opened.rows = std::int64_t{1} << 60;
                e.front() = opened;
              }),
              HasSubstr("cannot be shown"));
}

// What is recorded without lanes, as a trace of `focus.staging` copies holds it.
TEST(TileFold, ATraceWithoutLanesHasCopiesAndReads) {
  const auto staged = stage(scenario_of(DType::bf16, 16, 64, SwizzleMode::b128), StagingPath::tma, KOrV::k, 1);
  std::vector<trace::Event> coarse;
  for (const trace::Event& event : staged->events) {
    const bool kept = std::holds_alternative<trace::TileOpened>(event) ||
                      std::holds_alternative<trace::BoxCopied>(event) ||
                      std::holds_alternative<trace::FragmentRead>(event);
    if (kept) coarse.push_back(event);
  }
  const Tile tile = fold_tile(coarse);
  EXPECT_EQ(tile.copies.size(), 4u);
  EXPECT_TRUE(tile.chunks.empty());
  EXPECT_EQ(tile.page_of(0), std::nullopt);
  EXPECT_EQ(tile.chunk_of({0, 0}), std::nullopt);
  EXPECT_EQ(tile.shared_byte({0, 0}), -1);
  EXPECT_EQ(tile_state(tile, 3).arrived, 2 * 2048);
  EXPECT_TRUE(bank_use(tile, 0, true).phases.empty());
}

TEST(TileFold, TilesOfARunAreFoundOneByOne) {
  const auto staged = stage(scenario_of(DType::bf16, 16, 64, SwizzleMode::b128), StagingPath::tma, KOrV::k, 1);
  std::vector<trace::Event> events{trace::StepBegan{}};
  for (int n = 0; n < 2; ++n) events.insert(events.end(), staged->events.begin(), staged->events.end());
  const std::vector<TileSpan> tiles = tiles_in(events);
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0].first, 1);
  EXPECT_EQ(tiles[1].first, tiles[0].end);
  EXPECT_EQ(tiles[1].end, std::ssize(events));
}

// --- what is asked for -----------------------------------------------------------------------------------------------

TEST(TileRequest, IsReadInAnyOrderAndWrittenInOne) {
  const TileRequest request = parse_tile_request("LDS  head 1 v seq 3 token 70");
  EXPECT_EQ(to_text(request), "seq 3 token 70 v layer 0 head 1 dim 0 lds");
  EXPECT_EQ(parse_tile_request(to_text(request)), request);
  EXPECT_EQ(parse_tile_request("seq 3").path, TilePath::tma);
  const auto fault = [](const char* text) {
    try {
      static_cast<void>(parse_tile_request(text));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(fault("k tma"), HasSubstr("names no sequence"));
  EXPECT_THAT(fault("seq 3 wave 1"), HasSubstr("'wave': is no word of a tile"));
  EXPECT_THAT(fault("seq three"), HasSubstr("'seq': needs a number, not 'three'"));
  EXPECT_THAT(fault("seq 3 k v"), HasSubstr("is given twice"));
  EXPECT_THAT(fault("seq 3 token -1"), HasSubstr("needs a number, not '-1'"));
}

}  // namespace
}  // namespace kvscope::viz::tile_test

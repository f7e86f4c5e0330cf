#include "core/staging/staging_events.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/errors.h"
#include "core/pipeline/run_scenario.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/trace/event_text.h"
#include "core/trace/trace_reader.h"
#include "core/trace/trace_writer.h"

namespace kvscope::staging_events_test {
namespace {

using trace::Event;

// Two sequences of 150 and 70 tokens, two layers, two KV heads of 128. The focus is the second head of the second
// layer, and the third tile of the longer sequence, which is not full.
Scenario scenario_of(DType dtype, std::int64_t page, StagingDetail staging) {
  Scenario scenario;
  scenario.name = "events";
  scenario.model = {"custom", 2, 4, 2, 128, false, 128};
  scenario.cache.dtype = dtype;
  scenario.cache.kind = page > 0 ? CacheKind::paged : CacheKind::continuous;
  scenario.cache.page_size = page > 0 ? page : 16;
  scenario.cache.blocks = page > 0 ? 512 / page : 3;
  scenario.cache.max_tokens = page > 0 ? 0 : 200;
  scenario.cache.prefix_sharing = page > 0;
  scenario.requests.list = {Request{0, 70, 3, {}}, Request{0, 150, 3, {}}};
  scenario.tile = {.BN = 64, .BK = 128};
  scenario.focus = {.layer = 1, .head = 1, .tile = 2, .staging = staging};
  return scenario;
}

const std::vector<Request>& requests_of(const Scenario& scenario) {
  return scenario.requests.list;
}

CacheState state_of(const Scenario& scenario) {
  trace::Recorder off;
  const EngineRun run = run_engine(scenario, requests_of(scenario), off);
  return state_at(scenario, requests_of(scenario), focus_step(scenario, run.report)).cache;
}

std::vector<Event> events_of(const Scenario& scenario, trace::Detail detail = trace::Detail::full) {
  trace::MemoryRecorder recorder(detail);
  record_staging(scenario, state_of(scenario), recorder);
  return recorder.events();
}

std::string kind(const Event& event) {
  return std::visit([](const auto& e) { return std::string(e.kName); }, event);
}

// Kinds in order, runs of one kind counted: "tile_opened barrier_expects box_copied*4 ...".
std::string shape_of(const std::vector<Event>& events) {
  std::string text, last;
  int run = 0;
  const auto close = [&] {
    if (run > 1) text += '*' + std::to_string(run);
  };
  for (const Event& event : events) {
    const std::string now = kind(event);
    if (now == last) {
      ++run;
      continue;
    }
    close();
    text += (text.empty() ? "" : " ") + now;
    last = now;
    run = 1;
  }
  close();
  return text;
}

// Recorded with focus.staging = lanes alone.
const std::vector<std::string> kOfLanes{"tile_memory", "tile_page",    "tile_map",  "tile_shared",    "tile_fragments",
                                        "bank_phase",  "chunk_landed", "lane_read", "register_filled"};

std::vector<Event> without(const std::vector<Event>& events, const std::vector<std::string>& kinds) {
  std::vector<Event> rest;
  for (const Event& event : events) {
    if (std::ranges::find(kinds, kind(event)) == kinds.end()) rest.push_back(event);
  }
  return rest;
}

template <class E>
std::vector<E> all(const std::vector<Event>& events) {
  std::vector<E> found;
  for (const Event& event : events) {
    if (const auto* e = std::get_if<E>(&event)) found.push_back(*e);
  }
  return found;
}

std::vector<std::string> texts(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(to_text(event));
  return lines;
}

// The events of each tile, by (V?, TMA?).
using Tile = std::pair<bool, bool>;
std::map<Tile, std::vector<Event>> by_tile(const std::vector<Event>& events) {
  std::map<Tile, std::vector<Event>> tiles;
  std::optional<Tile> now;
  for (const Event& event : events) {
    if (const auto* opened = std::get_if<trace::TileOpened>(&event)) now = Tile{opened->value, opened->tma};
    EXPECT_TRUE(now) << "events before the first tile";
    if (now) tiles[*now].push_back(event);
  }
  return tiles;
}

// --- the sequence ----------------------------------------------------------------------------------------------------

// bf16 tiles of 64 x 128: 16 KiB, two chunks of columns. Pages of 16 give 4 pages per tile; the last tile's 23 tokens
// are in two of them: K copies these, V fills the others with zeros. LDS does not support pages of 16.
TEST(StagingEvents, CopiesOfPagesOf16AreBoxesAndReadsOfEveryPiece) {
  const auto events = events_of(scenario_of(DType::bf16, 16, StagingDetail::copies));
  EXPECT_EQ(shape_of(events),
            "tile_opened barrier_expects box_copied*4 barrier_completed fragment_read*32 "
            "tile_opened barrier_expects box_copied*8 barrier_completed fragment_read*32");
  EXPECT_EQ(texts(events)[0],
            "tile_opened step=1 seq=1 layer=1 head=1 value=0 tma=1 first_token=128 rows=64 tokens=23 columns=128 "
            "bytes=16384");
}

// Pages of 64 are one box of K and one chunk each; the waves copy 8 sub-tiles of 32 rows, two instructions each, and
// read 64 registers of every lane: 16 bytes of K, 8 of V at a time, in each of the four waves.
TEST(StagingEvents, CopiesOfPagesOf64GoBothWays) {
  EXPECT_EQ(shape_of(events_of(scenario_of(DType::bf16, 64, StagingDetail::copies))),
            "tile_opened barrier_expects box_copied*2 barrier_completed fragment_read*32 "
            "tile_opened lds_copied*16 wave_waited*4 fragment_read*64 "
            "tile_opened barrier_expects box_copied*2 barrier_completed fragment_read*32 "
            "tile_opened lds_copied*16 wave_waited*4 fragment_read*128");
}

TEST(StagingEvents, LanesAreTheSameEventsWithWhatEachCopyAndReadIsMadeOf) {
  for (const std::int64_t page : {0, 16, 64}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) {
      SCOPED_TRACE(page);
      const auto copies = events_of(scenario_of(dtype, page, StagingDetail::copies));
      const auto lanes = events_of(scenario_of(dtype, page, StagingDetail::lanes));
      EXPECT_EQ(texts(without(lanes, kOfLanes)), texts(copies));
      // Each follows its copy or read.
      std::int64_t copy = -1, read = -1, chunks = 0, reads = 0;
      bool waves = false;
      const auto next_copy = [&](std::int64_t number) {
        EXPECT_TRUE(!waves || copy < 0 || chunks == 64) << chunks << " chunks of copy " << copy;
        copy = number;
        chunks = 0;
      };
      for (const Event& event : lanes) {
        if (const auto* opened = std::get_if<trace::TileOpened>(&event)) {
          waves = !opened->tma;
          copy = -1;
        }
        if (const auto* box = std::get_if<trace::BoxCopied>(&event)) next_copy(box->copy);
        if (const auto* instruction = std::get_if<trace::LdsCopied>(&event)) next_copy(instruction->copy);
        if (const auto* chunk = std::get_if<trace::ChunkLanded>(&event)) {
          EXPECT_EQ(chunk->copy, copy);
          ++chunks;
        }
        if (const auto* fragment = std::get_if<trace::FragmentRead>(&event)) {
          read = fragment->read;
          reads = 0;
        }
        if (const auto* lane = std::get_if<trace::LaneRead>(&event)) {
          EXPECT_EQ(lane->read, read);
          EXPECT_EQ(lane->lane, reads++);
        }
      }
    }
  }
}

// --- copies ----------------------------------------------------------------------------------------------------------

std::int64_t slots_of(const Scenario& scenario) {
  return scenario.cache.kind == CacheKind::paged ? scenario.cache.page_size : scenario.cache.max_tokens;
}

// Where the lookup table has the token of sequence 1.
std::int64_t block_of(const Scenario& scenario, const CacheState& state, std::int64_t token) {
  const std::int64_t row = std::ranges::find(state.batch, SeqIdx{1}) - state.batch.begin();
  return state.lookup_table[static_cast<std::size_t>(row * state.table_columns + token / slots_of(scenario))];
}

// The byte of the pool by its axes and the lookup table alone.
std::int64_t pool_byte(const Scenario& scenario, const CacheState& state, KOrV kv, std::int64_t token,
                       std::int64_t dim) {
  const std::int64_t slots = slots_of(scenario);
  const std::int64_t block = block_of(scenario, state, token);
  std::int64_t element = block * 2 + (kv == KOrV::v ? 1 : 0);
  element = (element * 2 + scenario.focus.layer) * slots + token % slots;
  return ((element * 2 + scenario.focus.head) * 128 + dim) * size_of(scenario.cache.dtype);
}

TEST(StagingEvents, EveryChunkNamesTheBytesThatExplainNames) {
  std::int64_t checked = 0, filled = 0, asked = 0;
  for (const std::int64_t page : {0, 16, 64}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) {
      SCOPED_TRACE(page);
      const Scenario scenario = scenario_of(dtype, page, StagingDetail::lanes);
      const CacheState state = state_of(scenario);
      for (const auto& [tile, events] : by_tile(events_of(scenario))) {
        const KOrV kv = tile.first ? KOrV::v : KOrV::k;
        const auto opened = std::get<trace::TileOpened>(events.at(0));
        std::map<std::int64_t, std::int64_t> landed;  // shared -> how often
        for (const auto& chunk : all<trace::ChunkLanded>(events)) {
          ++landed[chunk.shared];
          const std::int64_t token = opened.first_token.value + chunk.row;
          if (chunk.row >= opened.tokens) {
            filled += chunk.pool == -1 ? 1 : 0;
            EXPECT_TRUE(tile.second || chunk.pool == -1) << "LDS is zero past the last token";
            continue;
          }
          ASSERT_EQ(chunk.pool, pool_byte(scenario, state, kv, token, chunk.column))
              << chunk.row << ' ' << chunk.column;
          ++checked;
          if (checked % 61 != 0) continue;
          const trace::Question q{SeqIdx{1}, TokIdx{token}, LayerIdx{1}, HeadIdx{1}, DimIdx{chunk.column},
                                  kv,        state.step};
          for (const trace::Link& link : explain(scenario, requests_of(scenario), q, state).links) {
            if (link.name != "byte") continue;
            EXPECT_THAT(link.result, testing::StartsWith(std::to_string(chunk.pool) + " (0x"));
            ++asked;
          }
        }
        for (const auto& [shared, count] : landed) {
          EXPECT_EQ(count, 1) << "two copies into shared byte " << shared;
          EXPECT_EQ(shared % 16, 0);
          EXPECT_TRUE(shared >= 0 && shared < opened.bytes);
        }
      }
    }
  }
  EXPECT_GT(checked, 4000);
  EXPECT_GT(filled, 500);
  EXPECT_GT(asked, 60);
}

// --- other boxes of TMA ----------------------------------------------------------------------------------------------

std::vector<Event> tile_by(const Scenario& scenario, const CacheState& state, TmaBoxes boxes, KOrV kv = KOrV::k,
                           std::int64_t tile = 2) {
  TileQuestion question;
  question.seq = SeqIdx{1};
  question.layer = LayerIdx{1};
  question.head = HeadIdx{scenario.model.kv_heads - 1};
  question.kv = kv;
  question.tile = tile;
  trace::MemoryRecorder recorder;
  record_tile(scenario, state, question, recorder, boxes);
  return recorder.events();
}

// (row, column) of the tile -> (pool byte, shared byte)
using Landed = std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>>;
Landed landed(const std::vector<Event>& events) {
  Landed places;
  for (const auto& chunk : all<trace::ChunkLanded>(events)) {
    EXPECT_TRUE(places.try_emplace({chunk.row, chunk.column}, chunk.pool, chunk.shared).second);
  }
  return places;
}

// Four rows a copy, in any blocks: the bytes and their places are those of boxes of pages.
TEST(StagingEvents, GatheredRowsLandWhereBoxesOfPagesDo) {
  for (const std::int64_t page : {2, 8, 16, 64}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) {
      for (const KOrV kv : {KOrV::k, KOrV::v}) {
        SCOPED_TRACE(std::to_string(page) + (kv == KOrV::k ? " K" : " V"));
        const Scenario scenario = scenario_of(dtype, page, StagingDetail::lanes);
        const CacheState state = state_of(scenario);
        const std::vector<Event> events = tile_by(scenario, state, TmaBoxes::gather4, kv);
        const auto opened = std::get<trace::TileOpened>(events.at(0));
        const Landed gathered = landed(events);
        std::int64_t of_pages = 0;
        for (const auto& [place, bytes] : landed(tile_by(scenario, state, TmaBoxes::pages, kv))) {
          if (place.first >= opened.tokens) continue;  // a whole page is copied, four rows at a time are not
          ++of_pages;
          const auto found = gathered.find(place);
          ASSERT_NE(found, gathered.end());
          EXPECT_EQ(found->second, bytes);
        }
        EXPECT_EQ(of_pages, opened.tokens * 128 * size_of(dtype) / 16);
        for (const auto& [place, bytes] : gathered) EXPECT_EQ(bytes.first < 0, place.first >= opened.tokens);
        const auto boxes = all<trace::BoxCopied>(events);
        const auto expects = all<trace::BarrierExpects>(events);
        std::int64_t bytes = 0, filled = 0;
        for (const auto& box : boxes) bytes += box.bytes, filled += box.filled;
        ASSERT_EQ(expects.size(), 1U);
        EXPECT_EQ(bytes, expects[0].bytes);
        const std::int64_t rows = kv == KOrV::k ? (opened.tokens + 3) / 4 * 4 : opened.rows;
        EXPECT_EQ(bytes, rows * 128 * size_of(dtype));
        EXPECT_EQ(filled, (rows - opened.tokens) * 128 * size_of(dtype));
        const auto map = all<trace::TileMap>(events).at(0);
        EXPECT_EQ(map.columns, 2 * 128);
        EXPECT_EQ(map.box_rows, 1);
        EXPECT_EQ(std::ssize(boxes), rows / 4 * 128 / map.box_columns);
        // The registers hold the same elements.
        EXPECT_EQ(texts(without(events, {"tile_opened", "tile_memory", "tile_page", "tile_map", "barrier_expects",
                                         "box_copied", "chunk_landed", "barrier_completed"})),
                  texts(without(tile_by(scenario, state, TmaBoxes::pages, kv),
                                {"tile_opened", "tile_memory", "tile_page", "tile_map", "barrier_expects", "box_copied",
                                 "chunk_landed", "barrier_completed"})));
      }
    }
  }
}

// A map of rows has no heads: columns past the head would be the next head's.
TEST(StagingEvents, AGatherOfColumnsPastTheHeadIsRejected) {
  Scenario scenario = scenario_of(DType::e4m3, 16, StagingDetail::lanes);
  scenario.model.head_size = scenario.model.value_size = 64;
  scenario.tile.BK = 64;
  const CacheState state = state_of(scenario);
  try {
    static_cast<void>(tile_by(scenario, state, TmaBoxes::gather4));
    FAIL() << "was accepted";
  } catch (const GeometryError& error) {
    EXPECT_STREQ(
        error.what(),
        "TMA copy of K rejected: depth: columns 0 to 127 do not fit a head of 64: the map has no heads, so the "
        "next head's columns would be copied: use a narrower swizzle or tile");
  }
}

// 512 bytes of e4m3 content and 64 bf16 rope values: 640 bytes a row, value i of a row at byte 512 + 2 i.
TEST(StagingEvents, RopeValuesAreReadAsBf16BehindTheContentOfTheirRow) {
  Scenario scenario = scenario_of(DType::e4m3, 16, StagingDetail::lanes);
  scenario.model = {"mla", 2, 16, 1, 640, true, 512};
  scenario.attention.scale = 0.1;
  const CacheState state = state_of(scenario);
  const std::vector<Event> events = tile_by(scenario, state, TmaBoxes::rope);
  const auto opened = std::get<trace::TileOpened>(events.at(0));
  EXPECT_EQ(opened.columns, 64);
  const auto memory = all<trace::TileMemory>(events).at(0);
  EXPECT_EQ(memory.element_bytes, 2);
  EXPECT_EQ(memory.head_size, 320);
  EXPECT_EQ(memory.first_column, 256);
  const Landed places = landed(events);
  std::int64_t checked = 0;
  for (const auto& [place, bytes] : places) {
    const auto& [row, column] = place;
    const std::int64_t token = opened.first_token.value + row;
    if (row >= opened.tokens) continue;
    const std::int64_t block = block_of(scenario, state, token);
    const std::int64_t of_pool = (block * 2 + 1) * 16 + token % 16;  // of the second of two layers
    EXPECT_EQ(bytes.first, 640 * of_pool + 512 + 2 * column) << row << ' ' << column;
    ++checked;
  }
  EXPECT_EQ(checked, opened.tokens * 8);
  EXPECT_FALSE(all<trace::RegisterFilled>(events).empty());
  // Rows of one type have no rope values of another.
  scenario.cache.dtype = DType::bf16;
  EXPECT_THROW(static_cast<void>(tile_by(scenario, state, TmaBoxes::rope)), GeometryError);
}

TEST(StagingEvents, BytesOfTheBoxesAddUpToWhatTheBarrierExpects) {
  for (const std::int64_t page : {0, 16, 64}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::e4m3}) {
      SCOPED_TRACE(page);
      for (const auto& [tile, events] : by_tile(events_of(scenario_of(dtype, page, StagingDetail::lanes)))) {
        if (!tile.second) continue;
        const auto expects = all<trace::BarrierExpects>(events);
        ASSERT_EQ(expects.size(), 1u);
        std::int64_t bytes = 0, filled = 0, chunks = 0;
        std::map<std::int64_t, std::int64_t> filled_chunks;  // copy -> bytes
        for (const auto& chunk : all<trace::ChunkLanded>(events)) {
          ++chunks;
          if (chunk.pool == -1) filled_chunks[chunk.copy] += 16;
        }
        std::int64_t number = 0;
        for (const auto& box : all<trace::BoxCopied>(events)) {
          EXPECT_EQ(box.copy, number++);
          bytes += box.bytes;
          filled += box.filled;
          EXPECT_EQ(box.filled, filled_chunks[box.copy]);
          EXPECT_EQ(box.shared % 128, 0);
        }
        EXPECT_EQ(bytes, expects[0].bytes);
        EXPECT_EQ(bytes, 16 * chunks);
        const auto opened = std::get<trace::TileOpened>(events.at(0));
        if (tile.first) {
          EXPECT_EQ(bytes, opened.bytes) << "V is whole: pages past the last are filled";
        }
        if (page == 16) {
          EXPECT_EQ(filled, tile.first ? bytes / 2 : 0);  // two of the four pages
        }
      }
    }
  }
}

// Page p of the sequence is in the block that the engine chose; boxes of one page differ only in their column.
TEST(StagingEvents, BoxesNameTheirPageColumnAndRow) {
  const Scenario scenario = scenario_of(DType::bf16, 16, StagingDetail::copies);
  const CacheState state = state_of(scenario);
  const auto boxes = all<trace::BoxCopied>(by_tile(events_of(scenario)).at({true, true}));
  ASSERT_EQ(boxes.size(), 8u);
  for (std::int64_t n = 0; n < 8; ++n) {
    const trace::BoxCopied& box = boxes[static_cast<std::size_t>(n)];
    EXPECT_EQ(box.sub_tile, n / 2);
    EXPECT_EQ(box.column, n % 2 * 64);
    EXPECT_EQ(box.shared, (n % 2 * 64 + n / 2 * 16) * 128);  // chunks of 64 rows of 128 B
    EXPECT_EQ(box.bytes, 2048);
    EXPECT_EQ(box.filled, n < 4 ? 0 : 2048);
    const std::int64_t block = block_of(scenario, state, 128 + n / 2 * 16);
    EXPECT_EQ(box.row, n < 4 ? block * 64 : std::int64_t{1} << 30);  // a block is K and V of two layers, 16 rows each
  }
}

TEST(StagingEvents, WavesWaitForAllTheyCopied) {
  for (const auto& [tile, events] : by_tile(events_of(scenario_of(DType::bf16, 64, StagingDetail::copies)))) {
    if (tile.second) continue;
    std::map<std::int64_t, std::int64_t> copied;
    std::int64_t zero_lanes = 0, number = 0;
    for (const auto& copy : all<trace::LdsCopied>(events)) {
      EXPECT_EQ(copy.copy, number++);
      EXPECT_EQ(copy.stage, 0);
      EXPECT_EQ(copy.shared % 1024, 0);
      ++copied[copy.wave];
      zero_lanes += copy.zero_lanes;
    }
    EXPECT_EQ(zero_lanes, (64 - 23) * 128 / 8);  // a lane is 8 elements
    std::int64_t wave = 0;
    for (const auto& wait : all<trace::WaveWaited>(events)) {
      EXPECT_EQ(wait.wave, wave++);
      EXPECT_EQ(wait.outstanding, copied[wait.wave]);
      EXPECT_EQ(wait.allowed, 0);
    }
    EXPECT_EQ(wave, 4);
  }
}

// --- reads -----------------------------------------------------------------------------------------------------------

// Every register of a wave is filled once, in any order; only bytes that a copy wrote are read.
TEST(StagingEvents, ReadsFillEveryRegisterOfEachWaveFromBytesThatLanded) {
  for (const DType dtype : {DType::bf16, DType::e4m3}) {
    for (const auto& [tile, events] : by_tile(events_of(scenario_of(dtype, 64, StagingDetail::lanes)))) {
      SCOPED_TRACE(std::string(tile.first ? "V" : "K") + (tile.second ? " by TMA" : " through LDS"));
      const auto opened = std::get<trace::TileOpened>(events.at(0));
      std::map<std::int64_t, std::map<std::int64_t, int>> filled;  // [wave][register]
      std::int64_t number = 0;
      for (const auto& read : all<trace::FragmentRead>(events)) {
        EXPECT_EQ(read.read, number++);
        EXPECT_GE(read.cycles, 1);
        EXPECT_TRUE(read.conflicts >= 0 && read.conflicts < read.cycles);
        for (std::int64_t r = 0; r < read.registers; ++r) ++filled[read.wave][read.first_register + r];
      }
      const std::int64_t lanes = tile.second ? 32 : 64;
      for (const auto& [wave, registers] : filled) {
        EXPECT_EQ(static_cast<std::int64_t>(registers.size()), opened.bytes / 4 / lanes);
        for (const auto& [index, count] : registers) EXPECT_EQ(count, 1) << "wave " << wave << ", register " << index;
        EXPECT_EQ(registers.rbegin()->first, opened.bytes / 4 / lanes - 1);
      }
      EXPECT_EQ(filled.size(), tile.second ? 1u : 4u);
      std::map<std::int64_t, int> landed;
      for (const auto& chunk : all<trace::ChunkLanded>(events)) landed[chunk.shared] = 1;
      for (const auto& lane : all<trace::LaneRead>(events)) EXPECT_TRUE(landed.contains(lane.shared / 16 * 16));
    }
  }
}

TEST(StagingEvents, ValuesOf32BitsAreCopiedAndReadByNoFragment) {
  EXPECT_EQ(shape_of(events_of(scenario_of(DType::f32, 64, StagingDetail::copies))),
            "tile_opened barrier_expects box_copied*4 barrier_completed "
            "tile_opened barrier_expects box_copied*4 barrier_completed");
}

TEST(StagingEvents, MlaHasNoTileOfV) {
  Scenario scenario = scenario_of(DType::bf16, 64, StagingDetail::copies);
  scenario.model = {"mla", 2, 16, 1, 576, true, 512};
  scenario.attention.scale = 0.1;
  scenario.focus.head = 0;
  std::vector<Tile> tiles;
  for (const auto& [tile, events] : by_tile(events_of(scenario))) tiles.push_back(tile);
  EXPECT_EQ(tiles, (std::vector<Tile>{{false, false}, {false, true}}));
}

// --- when events are recorded ----------------------------------------------------------------------------------------

TEST(StagingEvents, NothingIsRecordedUnlessRequested) {
  EXPECT_TRUE(events_of(scenario_of(DType::bf16, 64, StagingDetail::none)).empty());
  EXPECT_TRUE(events_of(scenario_of(DType::bf16, 64, StagingDetail::lanes), trace::Detail::steps).empty());
  EXPECT_TRUE(events_of(scenario_of(DType::bf16, 64, StagingDetail::lanes), trace::Detail::off).empty());
  // The focus is not checked either.
  Scenario nowhere = scenario_of(DType::bf16, 64, StagingDetail::none);
  nowhere.focus.tile = 1000;
  EXPECT_TRUE(events_of(nowhere).empty());
}

TEST(StagingEvents, ARunEndsWithThemWhicheverWayItIsRun) {
  const Scenario scenario = scenario_of(DType::bf16, 64, StagingDetail::copies);
  const auto staged = texts(events_of(scenario));
  trace::MemoryRecorder engine;
  const EngineRun run = run_engine(scenario, requests_of(scenario), engine);
  auto expected = texts(engine.events());
  expected.insert(expected.end(), staged.begin(), staged.end());

  record_staging(scenario, requests_of(scenario), run.report, engine);
  EXPECT_EQ(texts(engine.events()), expected);
  trace::MemoryRecorder whole;
  static_cast<void>(run_scenario(scenario, requests_of(scenario), whole));
  EXPECT_EQ(texts(whole.events()), expected);

  trace::MemoryRecorder nothing;
  record_staging(scenario, requests_of(scenario), RunReport{}, nothing);
  EXPECT_TRUE(nothing.events().empty()) << "no step ran";
}

std::string rejection(const Scenario& scenario) {
  try {
    static_cast<void>(events_of(scenario));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StagingEvents, AFocusThatTheStepDoesNotHaveIsRejected) {
  Scenario scenario = scenario_of(DType::bf16, 64, StagingDetail::copies);
  scenario.focus.sequence = 7;
  EXPECT_EQ(rejection(scenario),
            "scenario 'events' rejected: $.focus.sequence: 7 is not in the batch of step 1, which holds 0, 1: "
            "choose one of these, or -1 for the longest");
  scenario.focus.sequence = 0;
  EXPECT_EQ(rejection(scenario),
            "scenario 'events' rejected: $.focus.tile: 2 is outside [0, 2): sequence 0 has 71 tokens at step "
            "1, 64 a tile");
  scenario.focus.tile = 1;
  EXPECT_EQ(rejection(scenario), "no error");
}

// A pool that no request fits into runs one step with an empty batch, which has no longest sequence.
TEST(StagingEvents, AStepThatComputesNothingHasNoTile) {
  Scenario scenario = scenario_of(DType::bf16, 64, StagingDetail::copies);
  scenario.requests.list = {Request{0, 1000000, 3, {}}};
  scenario.focus.step = 0;
  ASSERT_TRUE(state_of(scenario).batch.empty());
  EXPECT_EQ(rejection(scenario),
            "scenario 'events' rejected: $.focus.step: step 0 computes no sequence, so there is no tile: choose "
            "another step, or requests that fit into the pool");
}

TEST(StagingEvents, TheFocusIsTheSequenceAskedForOrTheLongest) {
  Scenario scenario = scenario_of(DType::bf16, 64, StagingDetail::copies);
  const CacheState state = state_of(scenario);
  const StagedTile longest = focus_tile(scenario, state, KOrV::v, 32);
  EXPECT_EQ(state.batch[static_cast<std::size_t>(longest.batch_row.value)], SeqIdx{1});
  EXPECT_EQ(longest.first_token, TokIdx{64});  // tile 2 of 32
  EXPECT_EQ(longest.tokens, 151);
  EXPECT_EQ(longest.layer, LayerIdx{1});
  EXPECT_EQ(longest.head, HeadIdx{1});
  EXPECT_EQ(longest.kv, KOrV::v);
  scenario.focus.sequence = 0;
  EXPECT_EQ(focus_tile(scenario, state, KOrV::k, 32).tokens, 71);
  // Of two sequences of equal length, the first one.
  scenario.focus.sequence = -1;
  scenario.requests.list = {Request{0, 150, 3, {}}, Request{0, 150, 3, {}}};
  EXPECT_EQ(focus_tile(scenario, state_of(scenario), KOrV::k, 64).batch_row, SeqIdx{0});
}

TEST(StagingEvents, ATraceFileGivesThemBackAsTheyWere) {
  std::string folder = (std::filesystem::temp_directory_path() / "kvscope_staging_XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(folder) / "trace.kvt";
  const Scenario scenario = scenario_of(DType::e4m3, 64, StagingDetail::lanes);
  trace::MemoryRecorder memory;
  static_cast<void>(run_scenario(scenario, requests_of(scenario), memory));
  trace::TraceWriter writer(path, trace::Detail::full);
  static_cast<void>(run_scenario(scenario, requests_of(scenario), writer));
  writer.finish();
  trace::TraceReader reader(path);
  reader.verify_all();
  std::vector<Event> read;
  reader.for_each([&](std::int64_t, const Event& event) { read.push_back(event); });
  EXPECT_EQ(texts(read), texts(memory.events()));
  EXPECT_GT(all<trace::LaneRead>(read).size(), 1000u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kvscope::staging_events_test

// What the viewer knows of a tile's origin, against the sizes of the scenario, the lookup table and the tile's events.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/kvscope-viewer/step_engine.h"
#include "apps/kvscope-viewer/tile_source.h"
#include "core/base/errors.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/staging_events.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_fold.h"

namespace kvscope::apps::viewer_tile_source_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using viz::TilePath;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

// Two sequences of 40 and 70 tokens in pages of `page`, two layers, two heads.
Scenario scenario_of(DType dtype, std::int64_t page, std::int64_t head_size, std::int64_t BN = 32) {
  Scenario scenario;
  scenario.name = "source";
  scenario.model = {"custom", 2, 4, 2, head_size, false, head_size};
  scenario.cache.dtype = dtype;
  scenario.cache.page_size = page;
  scenario.cache.blocks = std::max<std::int64_t>(256 / page, 4);
  scenario.requests.list = {Request{0, 40, 4, {}}, Request{0, 70, 4, {}}};
  scenario.tile = {.BN = BN, .BK = 64};
  return scenario;
}

struct Asked {
  StepEngine engine;
  viz::TileRequest request;

  explicit Asked(const Scenario& scenario) : engine(scenario, make_requests(scenario, kGallery)) {
    request.seq = SeqIdx{1};
    request.token = TokIdx{66};
    request.layer = LayerIdx{scenario.model.layers - 1};
    request.head = HeadIdx{scenario.model.kv_heads - 1};
    request.step = StepIdx{0};
  }
  explicit Asked(const std::string& gallery) : Asked(load_scenario((kGallery / (gallery + ".json")).string())) {}
  [[nodiscard]] viz::TileSource source() { return tile_source(engine.scenario(), engine.at(request.step), request); }
  [[nodiscard]] viz::Tile tile() {
    const StagedRequest staged = staged_request(engine.scenario(), request);
    trace::MemoryRecorder recorder;
    record_tile(engine.scenario(), engine.at(request.step), staged.question, recorder, staged.boxes);
    return viz::fold_tile(recorder.events());
  }
  [[nodiscard]] std::string staging_fault() {
    try {
      static_cast<void>(tile());
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }
  [[nodiscard]] std::int64_t block_of(TokIdx token) {
    const CacheState& state = engine.at(request.step);
    const auto row = std::ranges::find(state.batch, request.seq) - state.batch.begin();
    return state.lookup_table[static_cast<std::size_t>(row * state.table_columns + token.value / state.page_size)];
  }
};

const viz::TileOffer* offer_of(const viz::TileSource& source, TilePath path) {
  const auto found = std::ranges::find(source.offers, path, &viz::TileOffer::path);
  return found == source.offers.end() ? nullptr : &*found;
}

std::vector<std::int64_t> broken_axes(const viz::TileSource& source) {
  std::vector<std::int64_t> axes;
  for (const viz::TileFault& fault : source.faults) axes.push_back(fault.axis.value_or(-1));
  return axes;
}

// --- the tensor map --------------------------------------------------------------------------------------------------

// Extents, strides and box by the scenario's sizes alone; a fault exactly where the tile is not staged.
TEST(TileSource, TheMapIsThatOfTheScenariosSizes) {
  std::int64_t staged = 0, rejected = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::e4m3}) {
    for (const std::int64_t page : {1, 8, 16, 64}) {
      for (const std::int64_t head : {8, 20, 64, 72, 128}) {
        SCOPED_TRACE(std::string(name(dtype)) + " page " + std::to_string(page) + " head " + std::to_string(head));
        Asked asked(scenario_of(dtype, page, head));
        const viz::TileSource source = asked.source();
        ASSERT_TRUE(source.map);
        const std::int64_t bytes = size_of(dtype), blocks = asked.engine.scenario().cache.blocks;
        const std::int64_t rows =
            blocks * 2 * 2 * page + page;  // two of K and V, two layers, and the null page's slots
        EXPECT_EQ(source.map->axes[0], (viz::TileMapAxis{"columns", head, bytes, 128 / bytes}));
        EXPECT_EQ(source.map->axes[1], (viz::TileMapAxis{"heads", 2, head * bytes, 1}));
        EXPECT_EQ(source.map->axes[2],
                  (viz::TileMapAxis{"rows", rows, 2 * head * bytes, std::min<std::int64_t>(page, 32)}));
        EXPECT_EQ(source.faults.empty(), asked.staging_fault().empty()) << asked.staging_fault();
        if (!source.faults.empty()) {
          ++rejected;
          EXPECT_EQ(source.broken(1), head * bytes % 16 != 0);
          EXPECT_EQ(source.broken(2), 2 * head * bytes % 16 != 0);
          continue;
        }
        ++staged;
        const viz::Tile tile = asked.tile();
        EXPECT_EQ(tile.map->columns, head);
        EXPECT_EQ(tile.map->rows, rows);
        EXPECT_EQ(tile.map->box_rows, source.map->axes[2].box);
      }
    }
  }
  EXPECT_GT(staged, 30);
  EXPECT_GT(rejected, 8);
}

TEST(TileSource, EachFaultIsAtItsAxis) {
  const auto faults = [](const Scenario& scenario) { return Asked(scenario).source(); };
  // 40 B from head to head; 80 B from row to row are whole chunks.
  const viz::TileSource stride = faults(scenario_of(DType::bf16, 16, 20));
  EXPECT_THAT(broken_axes(stride), ElementsAre(1));
  EXPECT_EQ(stride.faults[0].place, "stride");
  EXPECT_THAT(stride.faults[0].message, HasSubstr("40 B is not a multiple of 16 B"));
  // A box of 512 rows.
  Scenario high = scenario_of(DType::bf16, 512, 64, 512);
  const viz::TileSource box = faults(high);
  EXPECT_THAT(broken_axes(box), ElementsAre(2));
  EXPECT_EQ(box.faults[0].place, "box");
  EXPECT_THAT(box.faults[0].message, HasSubstr("512 is outside 1 to 256"));
  // Boxes of two rows of 32 B: the second one would begin unaligned.
  Scenario low = scenario_of(DType::bf16, 2, 64, 32);
  low.tile.swizzle = SwizzleMode::b32;
  const viz::TileSource start = faults(low);
  ASSERT_FALSE(start.faults.empty());
  EXPECT_EQ(start.faults[0].axis, 2);
  // No map carries e5m2: there is no axis that the fault could be at.
  const viz::TileSource type = faults(scenario_of(DType::e5m2, 16, 64));
  EXPECT_FALSE(type.map);
  EXPECT_THAT(broken_axes(type), ElementsAre(-1));
  EXPECT_THAT(type.faults[0].message, HasSubstr("e5m2 is not supported by TMA"));
}

TEST(TileSource, EveryScenarioOfTheGalleryHasALegalMap) {
  std::int64_t asked_of = 0;
  for (const auto& entry : fs::directory_iterator(kGallery)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".json" || stem.starts_with("real_traffic")) continue;
    SCOPED_TRACE(stem);
    Asked asked(stem);
    asked.request.seq = SeqIdx{0};
    asked.request.token = TokIdx{0};
    const viz::TileSource source = asked.source();
    EXPECT_TRUE(source.faults.empty());
    ASSERT_TRUE(source.map);
    EXPECT_FALSE(source.engines.empty());
    const viz::Tile tile = asked.tile();
    EXPECT_EQ(source.map->axes.front().box, tile.map->box_columns);
    EXPECT_EQ(source.map->axes.back().box, tile.map->box_rows);
    EXPECT_EQ(source.map->axes.back().extent, tile.map->rows);
    ++asked_of;
  }
  EXPECT_GT(asked_of, 15);
}

// --- other paths -----------------------------------------------------------------------------------------------------

TEST(TileSource, OffersThePathsThatCanTakeTheTileAndTheReasonsOfTheOthers) {
  Asked small("lds_small_pages");
  small.request.seq = SeqIdx{0};
  small.request.token = TokIdx{3};
  small.request.path = TilePath::lds;
  const viz::TileSource lds = small.source();
  EXPECT_FALSE(lds.faults.empty());
  EXPECT_FALSE(lds.map) << "there is no map on this path";
  ASSERT_NE(offer_of(lds, TilePath::tma), nullptr);
  EXPECT_TRUE(offer_of(lds, TilePath::tma)->why_not.empty());
  small.request.path = TilePath::tma;
  const viz::TileSource tma = small.source();
  EXPECT_THAT(offer_of(tma, TilePath::lds)->why_not, HasSubstr("do not divide a page of 16"));
  // An offer is kept: the tile is staged by the path, and by as many instructions.
  for (const std::int64_t page : {1, 2, 8, 64}) {
    Asked asked(scenario_of(DType::bf16, page, 64));
    const viz::TileSource source = asked.source();
    for (const viz::TileOffer& offer : source.offers) {
      asked.request.path = offer.path;
      EXPECT_EQ(asked.staging_fault().empty(), offer.why_not.empty()) << asked.staging_fault();
      if (offer.copies > 0) {
        EXPECT_EQ(std::ssize(asked.tile().copies), offer.copies);
      }
    }
    EXPECT_EQ(offer_of(source, TilePath::gather4) != nullptr, page < 4) << "fewer instructions than boxes";
    EXPECT_EQ(offer_of(source, TilePath::rope), nullptr);
  }
}

// --- scales ----------------------------------------------------------------------------------------------------------

// [block, K or V, layer, slot, head, granule], packed, by the lookup table alone.
TEST(TileSource, ScalesAreWhereTheirPoolHasThem) {
  for (const KOrV kv : {KOrV::k, KOrV::v}) {
    for (const TilePath path : {TilePath::tma, TilePath::lds}) {
      for (const std::int64_t granularity : {32, 64, 128}) {
        Scenario scenario = scenario_of(DType::e4m3, 64, 128, 64);
        scenario.tile.BK = 128;
        scenario.cache.quantization = Quantization{DType::f32, granularity};
        Asked asked(scenario);
        asked.request.kv = kv;
        asked.request.path = path;
        const viz::TileSource source = asked.source();
        ASSERT_TRUE(source.scales);
        const std::int64_t granules = 128 / granularity;
        EXPECT_EQ(source.scales->first, 0);
        EXPECT_EQ(source.scales->count, granules);
        EXPECT_EQ(source.scales->granularity, granularity);
        EXPECT_EQ(source.scales->dtype, "f32");
        ASSERT_EQ(source.scales->place.size(), 6U) << "70 tokens: rows 64 to 69";
        for (std::int64_t row = 0; row < 6; ++row) {
          const TokIdx token{64 + row};
          const std::int64_t line =
              ((asked.block_of(token) * 2 + (kv == KOrV::v ? 1 : 0)) * 2 + 1) * 64 + token.value % 64;
          const auto at = static_cast<std::size_t>(row);
          EXPECT_EQ(source.scales->place[at], (line * 2 + 1) * granules * 4);
          EXPECT_EQ(source.scales->row[at], asked.block_of(token) * 2 * 2 * 64 + token.value % 64);
        }
      }
    }
  }
  EXPECT_FALSE(Asked(scenario_of(DType::bf16, 16, 64)).source().scales);
}

// --- bytes of a row --------------------------------------------------------------------------------------------------

TEST(TileSource, TheBytesOfAnMlaRowAreContentAndRope) {
  Scenario scenario = scenario_of(DType::bf16, 16, 576);
  scenario.model = {"mla", 2, 16, 1, 576, true, 512};
  scenario.attention.scale = 0.1;
  Asked plain(scenario);
  EXPECT_THAT(plain.source().row.parts, ElementsAre(viz::TileRowPart{"content", "bf16", 0, 1024, 2},
                                                    viz::TileRowPart{"rope", "bf16", 1024, 128, 2}));
  // 64 rope values of one byte: no kernel reads them as bf16.
  scenario.cache.dtype = DType::e4m3;
  EXPECT_THAT(Asked(scenario).source().row.parts, ElementsAre(viz::TileRowPart{"content", "e4m3", 0, 512, 1},
                                                              viz::TileRowPart{"rope", "e4m3", 512, 64, 1}));
  scenario.model.head_size = 640;
  Asked aware(scenario);
  const viz::TileSource source = aware.source();
  EXPECT_THAT(source.row.parts, ElementsAre(viz::TileRowPart{"content", "e4m3", 0, 512, 1},
                                            viz::TileRowPart{"rope", "bf16", 512, 128, 2}));
  ASSERT_NE(offer_of(source, TilePath::rope), nullptr);
  for (std::int64_t row = 0; row < 6; ++row) {
    const TokIdx token{64 + row};
    EXPECT_EQ(source.row.place[static_cast<std::size_t>(row)],
              ((aware.block_of(token) * 2 + 1) * 16 + token.value % 16) * 640);
  }
  aware.request.path = TilePath::rope;
  const viz::TileSource rope = aware.source();
  EXPECT_EQ(rope.dtype, "bf16");
  EXPECT_EQ(rope.map->first_column, 0) << "the map begins behind the content";
  EXPECT_THAT(rope.map->axes[2].stride, 640);
  const viz::Tile tile = aware.tile();
  for (const viz::TileChunk& chunk : tile.chunks) {
    if (chunk.row >= 6) continue;
    EXPECT_EQ(chunk.pool, source.row.place[static_cast<std::size_t>(chunk.row)] + 512 + 2 * chunk.column);
  }
  EXPECT_TRUE(Asked(scenario_of(DType::bf16, 16, 64)).source().row.parts.empty());
}

TEST(TileSource, RejectsWhatTheStepDoesNotHave) {
  Asked asked(scenario_of(DType::bf16, 16, 64));
  asked.request.seq = SeqIdx{2};
  EXPECT_THROW(static_cast<void>(asked.source()), IndexError);
  asked.request.seq = SeqIdx{1};
  asked.request.layer = LayerIdx{2};
  EXPECT_THROW(static_cast<void>(asked.source()), IndexError);
}

}  // namespace
}  // namespace kvscope::apps::viewer_tile_source_test

// The numbers in the notes of the scenarios that follow a tile to its registers or show how staging fails. Each number
// is computed from the tile's events, and the notes must have it: a reader who opens the link finds what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/scenario/notes.h"
#include "tests/viz/window/fake_backend.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::gallery_tiles_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::gallery_path;

// A scenario, its notes, and its tiles at any step.
class Shown {
 public:
  explicit Shown(const std::string& name) : scenario(load_scenario(gallery_path(name))), path_(gallery_path(name)) {
    facts_.scenario = scenario;
  }
  void says(const std::string& sentence) const { EXPECT_THAT(plain_notes(scenario.description), HasSubstr(sentence)); }
  [[nodiscard]] Tile tile(const std::string& request, std::int64_t step) {
    TileRequest asked = parse_tile_request(request);
    asked.step = StepIdx{step};
    return fold_tile(backend_.stage(facts_, path_, asked));
  }
  // The same of `scenario` as it is now.
  [[nodiscard]] Tile tile_of_changed(const std::string& request, std::int64_t step) {
    facts_.scenario = scenario;
    return tile(request, step);
  }
  // The message of a tile that is not staged.
  [[nodiscard]] std::string fault(const std::string& request, std::int64_t step) {
    try {
      static_cast<void>(tile(request, step));
    } catch (const GeometryError& error) {
      return error.what();
    }
    return "the tile was staged";
  }
  Scenario scenario;

 private:
  std::string path_;
  Facts facts_;
  testing_support::FakeBackend backend_;
};

std::string grouped_number(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::int64_t expected_bytes(const Tile& tile) {
  std::int64_t bytes = 0;
  for (const auto& expects : tile.expects) bytes += expects.bytes;
  return bytes;
}

std::int64_t copies_of_wave(const Tile& tile, std::int64_t wave) {
  return std::ranges::count(tile.copies, wave, &TileCopy::wave);
}

// The first tile of the first step of each scenario of the gallery, K by TMA, ends in registers.
TEST(GalleryTiles, EveryScenarioReachesARegister) {
  for (const auto& entry : fs::directory_iterator(fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().stem());
    Shown shown(entry.path().stem().string());
    EXPECT_FALSE(shown.tile("seq 0 k tma", 0).fills.empty());
  }
}

// The place of the test of a tile over several pages was a tile of two tokens in one page. Blocks that follow one another
// would hide the error of that test.
TEST(GalleryTiles, TheTileOfLab02HasPagesInBlocksThatAreNoNeighbors) {
  const std::string manifest = fs::path(KVSCOPE_SOURCE_DIR) / "docs" / "labs" / "02_rows" / "lab.json";
  const json::Value lab = json::parse(read_file(manifest, 1 << 16), manifest);
  std::string place;
  for (const json::Value& test : *lab.find("tests")->as_array()) {
    if (*test.find("name")->as_string() == "tile_of_pages") place = *test.find("place")->as_string();
  }
  const std::size_t begin = place.find("tile=seq") + 5, end = place.find(',', begin), step = place.find("step=") + 5;
  ASSERT_LT(end, place.size()) << place;
  Shown shown(fs::path(*lab.find("scenario")->as_string()).stem());
  const Tile tile = shown.tile(place.substr(begin, end - begin), std::stoll(place.substr(step)));
  const std::int64_t rows_of_block = 2 * shown.scenario.model.layers * shown.scenario.cache.page_size;
  std::set<std::int64_t> blocks;
  for (const TileCopy& copy : tile.copies) blocks.insert(copy.row / rows_of_block);
  ASSERT_GE(blocks.size(), 2U);
  EXPECT_GT(*blocks.rbegin() - *blocks.begin(), std::ssize(blocks) - 1);
  EXPECT_GT(tile.opened.tokens, shown.scenario.cache.page_size);
}

TEST(GalleryTiles, ATileByTmaTakesTwoBoxesAndEightReads) {
  Shown shown("tile_by_tma");
  const Tile k = shown.tile("seq 3 token 70 k layer 0 head 1 tma", 8);
  shown.says(
      fmt::format("has tokens {} to {}", k.opened.first_token.value, k.opened.first_token.value + k.opened.tokens - 1));
  ASSERT_EQ(k.copies.size(), 2U);
  shown.says(fmt::format("rows {} to {} and {} to {}", k.copies[0].row, k.copies[0].row + 15, k.copies[1].row,
                         k.copies[1].row + k.opened.tokens - 16 - 1));
  shown.says(fmt::format("two boxes of {} bytes", grouped_number(k.copies[0].bytes)));
  shown.says(fmt::format("expects {} bytes", grouped_number(expected_bytes(k))));
  const auto second = std::ranges::count_if(k.chunks, [](const TileChunk& c) { return c.copy == 1 && c.event < 200; });
  shown.says(fmt::format("At event 200 the first box has landed. {} bytes of the second one", second * 16));
  const TileChunk& chunk = k.chunks[static_cast<std::size_t>(*k.chunk_of({6, 24}))];
  shown.says(fmt::format("stores chunk c3 of row 6 in place 3 XOR 6 = {}", chunk.shared % 128 / 16));
  const TileRead& read = k.reads[1];
  EXPECT_EQ(read.first_register, 4);
  const auto elements = k.elements_of({0, 26, 5, 0});
  ASSERT_EQ(elements.size(), 2U);
  EXPECT_EQ(k.token_of(elements[0].row), TokIdx{70});
  shown.says(
      fmt::format("register 5 of lane 26 with dims {} and {} of token 70", elements[0].column, elements[1].column));
  EXPECT_EQ(k.reads.size(), 8U);
  shown.says(
      fmt::format("Eight reads fill {} registers of each lane, without a bank conflict", k.fragments->registers));
  for (const TileRead& each : k.reads) EXPECT_EQ(each.conflicts, 0);
  const Tile v = shown.tile("seq 3 token 70 v layer 0 head 1 tma", 8);
  const auto keys = v.elements_of({0, 5, 2, 0});
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].column, keys[1].column);
  EXPECT_NE(keys[0].row, keys[1].row);
  shown.says("a register holds two keys of one dim");
}

TEST(GalleryTiles, ATileThroughLdsIsCopiedByFourWaves) {
  Shown shown("tile_through_lds");
  const Tile k = shown.tile("seq 3 token 70 k layer 0 head 1 lds", 8);
  shown.says(fmt::format("Its tile has {} keys of one page", k.rows()));
  ASSERT_EQ(k.waits.size(), 4U);
  for (std::int64_t wave = 0; wave < 4; ++wave) EXPECT_EQ(copies_of_wave(k, wave), 2);
  for (const TileCopy& copy : k.copies) {
    EXPECT_EQ(copy.bytes, 1024);
    EXPECT_EQ(copy.wave >= 2, copy.filled == copy.bytes) << "waves 2 and 3 write only zeros";
  }
  for (const TileChunk& chunk : k.chunks) {
    const std::int64_t wave = k.copies[static_cast<std::size_t>(chunk.copy)].wave;
    if (wave < 2) {
      EXPECT_EQ(chunk.column / 32, wave);
    }
  }
  shown.says(fmt::format("copy all {} keys that exist", k.opened.tokens));
  const auto elements = k.elements_of({0, 6, 0, 0});
  EXPECT_EQ(k.token_of(elements.at(0).row), TokIdx{70});
  shown.says(fmt::format("fills register 0 of lane 6 with dims {} and {} of token 70", elements[0].column,
                         elements[1].column));
}

TEST(GalleryTiles, WithoutASwizzleLdsHasConflictsAndTmaMoreBoxes) {
  Shown shown("swizzle_off");
  const auto first_read = [&] { return shown.tile("seq 3 token 70 k layer 0 head 1 lds", 8).reads.front(); };
  const TileRead plain = first_read();
  shown.says(fmt::format("takes {} wavefronts in place of {}: {} of them are bank conflicts", plain.cycles,
                         plain.cycles - plain.conflicts, plain.conflicts));
  const Tile k = shown.tile("seq 3 token 70 k layer 0 head 1 lds", 8);
  const auto reads = std::ranges::count(k.reads, 0, &TileRead::wave);
  EXPECT_EQ(reads, 8);
  shown.says(
      fmt::format("take {} wavefronts in place of {}", reads * plain.cycles, reads * (plain.cycles - plain.conflicts)));
  const Tile tma = shown.tile("seq 3 token 70 k layer 0 head 1 tma", 8);
  EXPECT_EQ(tma.copies.size(), 8U);
  shown.says(fmt::format("eight boxes of {} bytes", grouped_number(tma.copies[0].bytes)));
  Shown swizzled("tile_through_lds");
  const Tile one = swizzled.tile("seq 3 token 70 k layer 0 head 1 tma", 8);
  ASSERT_EQ(one.copies.size(), 1U);
  shown.says(fmt::format("one box of {} bytes", grouped_number(one.copies[0].bytes)));
}

TEST(GalleryTiles, AMissingPageOfVIsFilledAndOneOfKIsNotCopied) {
  Shown shown("partial_page");
  const Tile k = shown.tile("seq 1 token 100 k layer 0 head 1 tma", 3);
  const Tile v = shown.tile("seq 1 token 100 v layer 0 head 1 tma", 3);
  shown.says(fmt::format("has {} tokens, and its fourth page does not exist", k.opened.tokens));
  shown.says(fmt::format("Sequence 1 has {} tokens", k.opened.first_token.value + k.opened.tokens));
  EXPECT_EQ(k.copies.size(), 6U);
  EXPECT_EQ(v.copies.size(), 8U);
  shown.says(fmt::format("expects {} bytes", grouped_number(expected_bytes(k))));
  shown.says(fmt::format("eight boxes and {} bytes", grouped_number(expected_bytes(v))));
  EXPECT_FALSE(k.chunk_of({60, 0}));
  EXPECT_TRUE(v.chunk_of({60, 0}));
  shown.says(fmt::format("have the row {}", v.copies.back().row));
  shown.says(fmt::format("with {} bytes of zeros", grouped_number(v.copies[6].filled + v.copies[7].filled)));
}

TEST(GalleryTiles, PagesOfOneTokenAreGatheredRowByRow) {
  Shown shown("gather_sparse");
  const Tile k = shown.tile("seq 0 token 20 k layer 0 head 1 tma", 20);
  shown.says(fmt::format("gathered from {} rows, {} apart: {}, {}, {}", k.copies.size(),
                         k.copies[1].row - k.copies[0].row, k.copies[0].row, k.copies[1].row, k.copies[2].row));
  for (std::size_t n = 1; n < k.copies.size(); ++n) EXPECT_EQ(k.copies[n].row - k.copies[n - 1].row, 12);
  shown.says(fmt::format("Box 4 copies token {} from row {}", k.token_of(4).value, k.copies[4].row));
  shown.says(fmt::format("a separate box of {} bytes", k.copies[4].bytes));
}

// Four rows for each instruction; the row coordinates are those of the boxes of single rows.
TEST(GalleryTiles, FourGathersCopyWhatThirteenBoxesDo) {
  Shown shown("gather_sparse");
  const Tile boxes = shown.tile("seq 0 token 20 k layer 0 head 1 tma", 20);
  const Tile k = shown.tile("seq 0 token 20 k layer 0 head 1 gather4", 20);
  ASSERT_EQ(k.copies.size(), 4U);
  shown.says("so four gathers are enough");
  EXPECT_EQ(event_of_landed(k), 156);
  shown.says(fmt::format("Gather 1 copies rows {}, {}, {} and {}", boxes.copies[4].row, boxes.copies[5].row,
                         boxes.copies[6].row, boxes.copies[7].row));
  EXPECT_EQ(k.copies[1].row, boxes.copies[4].row);
  shown.says(fmt::format("the rows {}, -1, -1 and -1", k.copies[3].row));
  EXPECT_EQ(k.copies[3].filled, 3 * 128);
  shown.says(fmt::format("the barrier expects {} bytes in place of {}", grouped_number(expected_bytes(k)),
                         grouped_number(expected_bytes(boxes))));
  EXPECT_EQ(k.map->columns, 2 * 64);
  shown.says("head 1 begins at column 64");
}

TEST(GalleryTiles, TheRopePartIsItsOwnBox) {
  Shown shown("mla_rope");
  const Tile rope = shown.tile("seq 0 token 70 k dim 512 tma", 4);
  ASSERT_EQ(rope.copies.size(), 1U);
  EXPECT_EQ(rope.memory->first_column + rope.copies[0].column, 512);
  shown.says(fmt::format("32 rows of 128 bytes: {} bytes", grouped_number(rope.copies[0].bytes)));
  EXPECT_EQ(rope.token_of(rope.elements_of({0, 25, 4, 0}).at(0).row), TokIdx{70});
  const Tile lds = shown.tile("seq 0 token 70 k lds", 4);
  EXPECT_EQ(lds.memory->first_column, 512);
  EXPECT_EQ(lds.columns(), 64);
  EXPECT_EQ(lds.waves(), 2);
  shown.says("of the ten keys that exist");
  EXPECT_EQ(lds.opened.tokens, 10);
  const ModelGeometry& model = shown.scenario.model;
  const std::int64_t element = size_of(shown.scenario.cache.dtype), content = model.value_size * element;
  shown.says(fmt::format("{} bytes of content and, from byte {} on, {} bytes of rope values", grouped_number(content),
                         content, (model.head_size - model.value_size) * element));
  // What the notes propose as the next change.
  shown.scenario.cache.dtype = DType::e4m3;
  shown.scenario.model.head_size = 640;
  const Tile aware = shown.tile_of_changed("seq 0 token 70 rope", 4);
  EXPECT_EQ(aware.columns(), 64);
  EXPECT_EQ(aware.element_bytes(), 2);
  EXPECT_FALSE(aware.fills.empty());
  shown.says(fmt::format("{} bytes of e4m3 content and {} rope values in bf16", model.value_size, aware.columns()));
}

// The scales of the quantized cache: packed [block, K or V, layer, slot, head, granule].
TEST(GalleryTiles, AScaleHasItsPlaceInAPoolOfItsOwn) {
  Shown shown("quantized_e4m3");
  const Tile k = shown.tile("seq 0 token 70 k layer 0 head 1 tma", 6);
  EXPECT_EQ(event_of_landed(k), 401);
  const trace::TilePage& page = k.pages[static_cast<std::size_t>(*k.page_of(6))];
  EXPECT_EQ(k.token_of(6), TokIdx{70});
  const std::int64_t line = page.block.value * 2 * 2 * 16 + k.slot_of(6);  // K of layer 0
  const std::int64_t first = (line * 2 + 1) * 2 * 4;                       // head 1, two scales of four bytes
  shown.says(fmt::format("at bytes {} and {} of their pool", grouped_number(first), grouped_number(first + 4)));
  const std::int64_t column = k.chunks[static_cast<std::size_t>(*k.chunk_of({6, 64}))].column;
  EXPECT_EQ(column / shown.scenario.cache.quantization->granularity, 1);
  shown.says(fmt::format("The selected chunk, dims {} to {}, has the second one", column, column + 15));
}

// --- staging failures ------------------------------------------------------------------------------------------------

TEST(GalleryTiles, SixWavesIssueUnequalNumbersOfCopies) {
  Shown shown("lds_six_waves");
  const Tile k = shown.tile("seq 1 token 133 k layer 0 head 1 lds", 4);
  for (std::int64_t wave = 0; wave < 6; ++wave) EXPECT_EQ(copies_of_wave(k, wave), wave < 2 ? 4 : 2) << wave;
  ASSERT_EQ(k.waits.size(), 6U);
  for (const TileWait& wait : k.waits) EXPECT_EQ(wait.allowed, 0);
  shown.says("4 outstanding for waves 0 and 1, 2 for the others");
}

TEST(GalleryTiles, EachWaveBringsAQuarterOfTheColumnsAndWaitsForItAlone) {
  Shown shown("lds_missing_barrier");
  const Tile k = shown.tile("seq 1 token 133 k layer 0 head 1 lds", 4);
  for (const TileChunk& chunk : k.chunks) {
    if (chunk.column < 0) continue;
    EXPECT_EQ(chunk.column / 32, k.copies[static_cast<std::size_t>(chunk.copy)].wave);
  }
  std::int64_t outstanding = 0;
  for (const TileWait& wait : k.waits) outstanding += wait.wave > 0 ? wait.outstanding : 0;
  shown.says(fmt::format("no wait covers {} copies", outstanding));
  EXPECT_EQ(k.token_of(k.elements_of({0, 5, 0, 0}).at(0).row), TokIdx{133});
}

TEST(GalleryTiles, AReaderOfVWithTheSwizzleOfKFindsOtherDims) {
  Shown shown("lds_two_swizzles");
  const Tile k = shown.tile("seq 1 token 132 k layer 0 head 1 lds", 4);
  const Tile v = shown.tile("seq 1 token 132 v layer 0 head 1 lds", 4);
  const auto stored = [](const Tile& tile, std::int64_t column) {
    return tile.chunks[static_cast<std::size_t>(*tile.chunk_of({4, column}))].shared;
  };
  shown.says(fmt::format("first eight dims at byte {}: vector {} is moved to {}", stored(k, 0), stored(v, 0) / 16,
                         stored(k, 0) / 16));
  shown.says(fmt::format("has them at byte {}, in vector {}", stored(v, 0), stored(v, 0) / 16));
  EXPECT_EQ(stored(v, 16), stored(k, 0));
  shown.says("which holds dims 16 to 23 of the same key");
}

TEST(GalleryTiles, ASwizzleOfTooManyVectorsIsRejectedForKOnly) {
  Shown shown("lds_swizzle_reach");
  EXPECT_THAT(shown.fault("seq 1 token 133 k layer 0 head 1 lds", 4), HasSubstr("repeats after 128 vectors"));
  EXPECT_EQ(shown.fault("seq 1 token 133 v layer 0 head 1 lds", 4), "the tile was staged");
  EXPECT_EQ(shown.fault("seq 1 token 133 k layer 0 head 1 tma", 4), "the tile was staged");
}

TEST(GalleryTiles, NarrowWavesHoldHalfOfTheKeysOfKAndAllOfV) {
  Shown shown("lds_narrow_waves");
  const Tile k = shown.tile("seq 1 token 110 k layer 0 head 1 lds", 4);
  const Tile v = shown.tile("seq 1 token 133 v layer 0 head 1 lds", 4);
  for (const TileFill& fill : k.fills) EXPECT_EQ(fill.row / 32, fill.reg.wave % 2);
  shown.says(
      fmt::format("a lane holds {} registers of K in place of {}", k.fragments->registers, v.fragments->registers));
  for (std::int64_t wave = 0; wave < 4; ++wave) {
    std::vector<bool> held(64, false);
    for (const TileFill& fill : v.fills) {
      if (fill.reg.wave != wave) continue;
      for (std::int64_t n = 0; n < (fill.down ? fill.elements : 1); ++n)
        held.at(static_cast<std::size_t>(fill.row + n)) = true;
    }
    EXPECT_TRUE(std::ranges::all_of(held, [](bool h) { return h; })) << wave;
  }
}

TEST(GalleryTiles, FourStagesOfALargeTileExceedTheLds) {
  Shown shown("lds_too_large");
  const Tile k = shown.tile("seq 1 token 140 k layer 0 head 1 lds", 4);
  shown.says(fmt::format("has {} bytes. K and V", grouped_number(k.opened.bytes)));
  shown.says(fmt::format("{} bytes together", grouped_number(4 * k.opened.bytes)));
  EXPECT_EQ(k.copies.size(), 64U);
  EXPECT_EQ(copies_of_wave(k, 0), 16);
  const auto zeros =
      std::ranges::count_if(k.copies, [](const TileCopy& c) { return c.wave == 0 && c.filled == c.bytes; });
  shown.says(fmt::format("16 copies of wave 0: {} of them write only zeros, as {} of the {} keys exist", zeros,
                         k.opened.tokens, k.rows()));
}

TEST(GalleryTiles, SmallPagesAreRejectedThroughLdsAndTakenByTma) {
  Shown shown("lds_small_pages");
  EXPECT_THAT(shown.fault("seq 1 token 133 k layer 0 head 1 lds", 4), HasSubstr("do not divide a page of 16"));
  const Tile k = shown.tile("seq 1 token 133 k layer 0 head 1 tma", 4);
  EXPECT_EQ(k.copies.size(), 4U);
  shown.says(fmt::format("four boxes for its {} tokens", k.opened.tokens));
}

}  // namespace
}  // namespace kvscope::viz::gallery_tiles_test

// What is known of a tile's origin: in words, lit with the tile's other objects, found and asked for by text.
#include "viz/playback/tile_source.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "tests/viz/geometry/staged_tile.h"
#include "viz/playback/find.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::tile_source_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::staged_tile;
using testing_support::TileOrder;

TileSource broken_map() {
  TileSource source;
  source.path = TilePath::tma;
  source.map = TileMapPlan{{{"columns", 20, 2, 64}, {"heads", 2, 40, 1}, {"rows", 1281, 80, 16}}, "128B swizzle", 0};
  source.faults = {{1, "stride", "40 B is not a multiple of 16 B: pad the rows"}, {std::nullopt, "", "too large"}};
  source.offers = {{TilePath::lds, 0, "one reason"}, {TilePath::gather4, 3, ""}};
  source.engines = {{"one", true, ""}, {"another", false, "pages of 64: 16"}};
  return source;
}

TEST(TileSource, AFaultIsToldWithItsAxisAndTheMapWithAllThatHaveNone) {
  const TileSource source = broken_map();
  EXPECT_TRUE(source.broken(1));
  EXPECT_FALSE(source.broken(0));
  EXPECT_EQ(axis_in_words(source, 0), "Axis 0 of the tensor map, columns: 20 of them, 2 B apart, a box takes 64");
  EXPECT_EQ(
      axis_in_words(source, 1),
      "Axis 1 of the tensor map, heads: 2 of them, 40 B apart, a box takes 1. stride: 40 B is not a multiple of 16 "
      "B: pad the rows");
  EXPECT_EQ(
      axis_in_words(source, 3),
      "The tensor map, 128B swizzle. too large. Kernels that would load this cache by TMA: one. Kernels that would "
      "not: another (pages of 64: 16)");
  EXPECT_EQ(axis_in_words(source, 4), "No such axis of the tensor map");
  EXPECT_EQ(axis_in_words(source, -1), "No such axis of the tensor map");
}

TEST(TileSource, AnOfferNamesItsInstructionsOrWhyThePathCannotTakeTheTile) {
  const TileSource source = broken_map();
  EXPECT_EQ(offer_in_words(source, TilePath::gather4), "Stage the tile by gather4: 3 instructions");
  EXPECT_EQ(offer_in_words(source, TilePath::lds), "The tile cannot be staged through LDS: one reason");
  EXPECT_EQ(offer_in_words(source, TilePath::rope), "No such path of the tile");
}

// Two scales of f32 for a head of 128, in a separate pool.
TEST(TileSource, AScaleHasItsElementsItsByteAndItsRow) {
  TileScales scales{"f32", 4, 64, 1, 2, {}, {}};
  scales.row = {320, 321};
  scales.place = {5120, 5136};
  EXPECT_EQ(scale_in_words(scales, 1, 2),
            "Scale 2 of row 1: elements 128 to 191 of the head, f32, byte 5140 of the scales' pool, row 321");
  EXPECT_EQ(scale_in_words(scales, 0, 0), "No such scale of the tile") << "of a column that the tile does not have";
  EXPECT_EQ(scale_in_words(scales, 2, 1), "No such scale of the tile") << "of a row without a token";
}

TEST(TileSource, BytesAreNamedByTheValuesInThem) {
  TileRowBytes row;
  row.parts = {{"content", "e4m3", 0, 512, 1}, {"rope", "bf16", 512, 128, 2}};
  row.place = {6400, 7040};
  EXPECT_EQ(row.bytes(), 640);
  EXPECT_EQ(bytes_in_words(row, 1, 512),
            "Bytes 512 to 527 of row 1: rope values 0 to 7 in bf16, byte 7552 of the pool");
  EXPECT_EQ(bytes_in_words(row, 0, 496),
            "Bytes 496 to 511 of row 0: content values 496 to 511 in e4m3, byte 6896 of the pool");
  EXPECT_EQ(
      bytes_in_words(row, 0, 504),
      "Bytes 504 to 519 of row 0: content values 504 to 511 in e4m3, rope values 0 to 3 in bf16, byte 6904 of the "
      "pool");
  EXPECT_EQ(bytes_in_words(row, 0, 640), "No such bytes of the tile");
  EXPECT_EQ(bytes_in_words(row, 2, 0), "No such bytes of the tile");
}

// --- lit in the tile -------------------------------------------------------------------------------------------------

Lit lit_by(const Tile& tile, const Selection& selection) {
  return resolve(State{}, Facts{}, &tile, selection);
}

// A scale lights the chunks of its elements alone, a whole row all of them.
TEST(TileSource, AScaleLightsTheElementsThatShareIt) {
  Tile tile = *staged_tile({.head_size = 128});
  TileScales scales{"f32", 4, 32, 0, 4, {}, {}};
  scales.row.assign(64, 0);
  scales.place.assign(64, 0);
  tile.source.scales = scales;
  const Lit lit = lit_by(tile, of_tile_scale(6, 3));
  EXPECT_THAT(lit.tile.rows, ElementsAre(6));
  std::vector<std::int64_t> columns;
  for (const std::int64_t chunk : lit.tile.chunks) {
    EXPECT_EQ(tile.chunks[static_cast<std::size_t>(chunk)].row, 6);
    columns.push_back(tile.chunks[static_cast<std::size_t>(chunk)].column);
  }
  EXPECT_THAT(columns, ElementsAre(96, 104, 112, 120));
  for (const TileRegister& reg : lit.tile.registers) {
    for (const TileElement& element : tile.elements_of(reg)) {
      EXPECT_EQ(element.row, 6);
      EXPECT_GE(element.column, 96);
    }
  }
  EXPECT_EQ(std::ssize(lit.tile.registers), 16);
  EXPECT_TRUE(lit_by(tile, of_tile_scale(6, 4)).tile.rows.empty());
  EXPECT_TRUE(lit_by(tile, of_tile_scale(64, 0)).tile.rows.empty());
}

TEST(TileSource, BytesLightTheirChunkAndOnlyTheRowWhereTheTileDoesNotHaveThem) {
  Tile tile = *staged_tile({});
  tile.memory->first_column = 32;  // of a row of 64 bf16 and more
  EXPECT_EQ(column_of_byte(tile, 64), 0);
  EXPECT_EQ(column_of_byte(tile, 80), 8);
  EXPECT_EQ(column_of_byte(tile, 62), std::nullopt);
  EXPECT_EQ(column_of_byte(tile, 64 + 128), std::nullopt);
  const Lit inside = lit_by(tile, of_tile_bytes(3, 80));
  ASSERT_TRUE(inside.tile.chunk);
  EXPECT_EQ(tile.chunks[static_cast<std::size_t>(*inside.tile.chunk)].column, 8);
  const Lit before = lit_by(tile, of_tile_bytes(3, 16));
  EXPECT_THAT(before.tile.rows, ElementsAre(3));
  EXPECT_TRUE(before.tile.chunks.empty());
  tile.source.row.parts = {{"content", "bf16", 0, 64, 2}, {"rope", "bf16", 64, 128, 2}};
  tile.source.row.place.assign(64, 1000);
  EXPECT_THAT(describe(State{}, Facts{}, &tile, of_tile_bytes(3, 16)), HasSubstr("which the tile does not have"));
  EXPECT_THAT(describe(State{}, Facts{}, &tile, of_tile_bytes(3, 80)), HasSubstr("byte 1080 of the pool"));
}

TEST(TileSource, AnAxisLightsWhatABoxSpansAlongIt) {
  Tile tile = *staged_tile({});
  EXPECT_TRUE(lit_by(tile, of_tile_axis(0)).tile.rows.empty()) << "nothing is known of the map";
  tile.source = broken_map();
  EXPECT_THAT(lit_by(tile, of_tile_axis(0)).tile.rows, ElementsAre(0));
  EXPECT_EQ(std::ssize(lit_by(tile, of_tile_axis(2)).tile.rows), tile.opened.tokens);
  EXPECT_TRUE(lit_by(tile, of_tile_axis(3)).tile.rows.empty());
  EXPECT_EQ(describe(State{}, Facts{}, nullptr, of_tile_axis(0), &tile.source), axis_in_words(tile.source, 0));
  EXPECT_EQ(describe(State{}, Facts{}, nullptr, of_tile_path(TilePath::gather4), &tile.source),
            "Stage the tile by gather4: 3 instructions");
  EXPECT_EQ(describe(State{}, Facts{}, nullptr, of_tile_axis(0)), "No tile is shown");
}

TEST(TileSource, TheChainEndsInTheScaleOfItsElement) {
  Tile tile = *staged_tile({.head_size = 128});
  TileScales scales{"f32", 4, 64, 0, 2, {}, {}};
  scales.row.assign(64, 0);
  scales.place.assign(64, 800);
  tile.source.scales = scales;
  const TileState now = tile_state(tile, tile.events);
  const auto chain_of = [&](const TileElement& element) {
    return chain(tile, now, lit_by(tile, of_tile_chunk(element)).tile);
  };
  EXPECT_THAT(chain_of({6, 56}), HasSubstr("; its scale 0 is byte 800 of the scales' pool"));
  EXPECT_THAT(chain_of({6, 64}), HasSubstr("; its scale 1 is byte 804 of the scales' pool"));
}

// --- as text ---------------------------------------------------------------------------------------------------------

TEST(TileSource, EachPathIsAWordOfARequest) {
  for (const TilePath path : {TilePath::tma, TilePath::lds, TilePath::gather4, TilePath::rope}) {
    TileRequest request;
    request.seq = SeqIdx{3};
    request.path = path;
    EXPECT_EQ(parse_tile_request(to_text(request)), request);
  }
  EXPECT_THROW(static_cast<void>(parse_tile_request("seq 3 gather4 rope")), InputError);
}

TEST(TileSource, ScalesBytesAndAxesAreFoundByText) {
  const Facts facts;
  const auto found = [&](const char* text) { return std::get<Selection>(parse_find(text, facts)); };
  EXPECT_EQ(found("scale 6:1"), of_tile_scale(6, 1));
  EXPECT_EQ(found("bytes 6:520"), of_tile_bytes(6, 512));
  EXPECT_EQ(found("axis 2"), of_tile_axis(2));
  EXPECT_THROW(static_cast<void>(parse_find("scale 6", facts)), InputError);
}

}  // namespace
}  // namespace kvscope::viz::tile_source_test

// Laws of box copies over a whole grid: every copied type with either fill, every swizzle, ranks 1 to 5, rows of every
// legal number of chunks up to the swizzle's span, the rows of cache tiles, every element stride, every phase of the
// destination, boxes inside the tensor and across its ends and its beginnings. Unbounded parameters (extents, distances
// between rows, coordinates) are drawn at random in box_copy_test.cpp and box_rows_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tma/box_copy.h"
#include "core/tma/box_plan.h"
#include "core/tma/tensor_map_record.h"
#include "core/tma/tensor_map_rules.h"
#include "core/tma/tma_swizzle.h"
#include "tests/core/tma/any_box.h"
#include "tests/core/tma/gold.h"
#include "tests/whole_grid.h"

namespace kvscope::grid_test {
namespace {

using test::for_whole_grid;
using test::require;

constexpr BoxSwitches kSwitches{.target = TmaTarget::sm_100};

// Every type that is copied byte by byte.
constexpr std::array<TmaDataType, 11> kTypes{TmaDataType::u8,  TmaDataType::u16,  TmaDataType::u32,    TmaDataType::i32,
                                             TmaDataType::u64, TmaDataType::i64,  TmaDataType::f16,    TmaDataType::f32,
                                             TmaDataType::f64, TmaDataType::bf16, TmaDataType::f32_ftz};
// Boxes behind the fastest dimension, by rank: a line; rows of K and V (pages of 1 to 256 rows); the rows of one head;
// all chunks of a head, outside its rows; inside groups of 8 rows.
const std::vector<std::vector<std::uint32_t>> kRows{
    {},      {1},     {4},    {8},        {16},      {32},      {64},         {128},        {256},       {1, 4},
    {1, 16}, {1, 64}, {3, 5}, {16, 2, 1}, {8, 3, 1}, {3, 2, 3}, {8, 2, 2, 1}, {8, 3, 4, 1}, {2, 3, 2, 2}};

struct Point {
  TmaDataType type;
  OobFill fill;
  TmaSwizzle swizzle;
  std::int64_t chunks;  // 16 bytes, of a row
  std::vector<std::uint32_t> rows;
  std::uint32_t step;  // element stride of dimension 1
  std::int64_t phase;  // [128-byte lines] of the destination, modulo 8
  bool one_start;      // one of several points that differ only in step and phase: each tests one start
};

// The maximum number of chunks of a row: as many as the swizzle allows, or 256 elements without one.
std::int64_t most_chunks(TmaDataType type, TmaSwizzle swizzle) {
  return swizzle == TmaSwizzle::none ? 16 * size_of(type) : swizzle_span(swizzle) / 16;
}

std::uint32_t number_of(const std::vector<std::uint32_t>& rows) {
  std::uint32_t product = 1;
  for (const std::uint32_t extent : rows) product *= extent;
  return product;
}

// Tiles of up to 32 KiB. Types of one size differ only in the fill, so only the first type of a size is tested with
// every element stride and every phase (tensor_map.h: only size_of depends on the type).
std::vector<Point> whole_grid() {
  std::vector<Point> points;
  for (const TmaDataType type : kTypes) {
    for (int fill = 0; fill <= (is_float(type) ? 1 : 0); ++fill) {
      for (int mode = 0; mode < 7; ++mode) {
        const auto swizzle = static_cast<TmaSwizzle>(mode);
        for (std::int64_t chunks = 1; chunks <= most_chunks(type, swizzle); ++chunks) {
          for (const auto& rows : kRows) {
            const std::int64_t count = number_of(rows);
            if (count * chunks * 16 > 32 * 1024) continue;
            const bool all = type == test::type_of(static_cast<int>(size_of(type))) && fill == 0 && count <= 16 &&
                             (swizzle != TmaSwizzle::none || chunks <= 8);
            const Point point{type, static_cast<OobFill>(fill), swizzle, chunks, rows, 1, (count + chunks) % 8, all};
            if (!all) {
              points.push_back(point);
              continue;
            }
            for (std::uint32_t step = 1; step <= (rows.empty() ? 1U : 8U); ++step) {
              for (std::int64_t phase = 0; phase < 8; ++phase) {
                points.push_back(point);
                points.back().step = step;
                points.back().phase = phase;
              }
            }
          }
        }
      }
    }
  }
  return points;
}

const std::vector<Point>& grid() {
  static const std::vector<Point> points = whole_grid();
  return points;
}

// A tensor slightly larger than one box in every dimension, with padding after its rows; its rows end inside a
// chunk.
TensorMap map_of(const Point& p) {
  const auto size = static_cast<std::uint64_t>(size_of(p.type));
  const std::uint64_t inner = 16 * static_cast<std::uint64_t>(p.chunks) / size;
  std::vector<std::uint64_t> dims{inner + 16 / size + 1}, strides;
  std::vector<std::uint32_t> box{static_cast<std::uint32_t>(inner)}, steps{1};
  std::uint64_t row = (dims[0] * size + 15) / 16 * 16 + 16;
  for (const std::uint32_t extent : p.rows) {
    dims.push_back(extent + 1);
    strides.push_back(row);
    row = row * dims.back() + 16;
    box.push_back(extent);
    steps.push_back(box.size() == 2 ? p.step : 1);
  }
  TensorMap map = test::map_of(p.type, dims, strides, box, p.swizzle, steps);
  map.fill = p.fill;
  return map;
}

// Starts of boxes: inside the tensor, so that they end outside in every dimension, and before it in every dimension.
std::vector<std::vector<std::int64_t>> starts_of(const TensorMap& map) {
  const auto rank = static_cast<std::size_t>(map.rank);
  const std::int64_t chunk = 16 / size_of(map.data_type);
  std::vector<std::int64_t> inside(rank, 0), behind(rank, 2), before(rank, -1);
  behind[0] = 2 * chunk;
  before[0] = -chunk;
  return {inside, behind, before};
}

std::string text_of(const Point& p) {
  std::string text = std::string(name(p.type)) + ", " + std::string(name(p.swizzle)) + ", fill " +
                     std::to_string(static_cast<int>(p.fill)) + ", " + std::to_string(p.chunks) + " chunks, rows";
  for (const std::uint32_t extent : p.rows) text += " " + std::to_string(extent);
  return text + ", every " + std::to_string(p.step) + ", phase " + std::to_string(p.phase);
}

std::int64_t destination(const Point& p) {
  return 1024 + 128 * p.phase;
}

// The number of points for the lists of types, spans, rows, strides and phases, counted by a separate program.
TEST(WholeGridOfBoxes, HasAsManyPointsAsItsParametersHaveValues) {
  EXPECT_EQ(grid().size(), 109527U);
  for (int rank = 1; rank <= 5; ++rank) {
    EXPECT_TRUE(std::any_of(grid().begin(), grid().end(), [&](const Point& p) {
      return static_cast<int>(p.rows.size()) + 1 == rank;
    })) << rank;
  }
}

// Every map of the grid is legal for the encoder and is restored from its record.
TEST(EveryBox, IsTakenByTheEncoderAndKeptByItsRecord) {
  for_whole_grid(
      "maps", grid(), 37,
      [](const Point& p) {
        const TensorMap map = map_of(p);
        require(check_tensor_map(map, TmaTarget::sm_100).broken.empty(), "a legal map is rejected");
        require(decode_tensor_map("record", encode_tensor_map("map", map, TmaTarget::sm_100)) == map,
                "its record is another map's");
        TensorMap more = map;  // one chunk more than the span
        more.box[0] += 16 / static_cast<std::uint32_t>(size_of(p.type));
        const bool last = p.chunks == most_chunks(p.type, p.swizzle);
        require(check_tensor_map(more, TmaTarget::sm_100).broken.empty() == !last, "the limit of a row is elsewhere");
      },
      text_of);
}

// Chunks and the inverse: every byte of the window belongs to one element or is padding, and the element gives the
// chunk and the source address.
TEST(EveryBox, PutsEachElementInOnePlaceAndFindsItAgain) {
  for_whole_grid(
      "boxes there and back", grid(), 37,
      [](const Point& p) {
        const TensorMap map = map_of(p);
        const std::int64_t dst = destination(p), size = size_of(p.type);
        const BoxShape shape = box_shape(map, kSwitches);
        const auto starts = starts_of(map);
        const TmaCoord at = test::coord_of(starts[static_cast<std::size_t>(p.phase) % 3]);
        std::vector<char> owned(static_cast<std::size_t>(shape.window_bytes));
        for (const BoxChunk& chunk : box_chunks(map, at, dst, kSwitches)) {
          for (std::int64_t i = 0; i < 16; ++i) {
            char& mine = owned.at(static_cast<std::size_t>(chunk.shared + i - dst));
            require(mine == 0, "two chunks have one byte");
            mine = 1;
            if (i % size != 0) continue;  // elements are contiguous: test their first bytes
            const auto element = box_element_at(map, at, dst, chunk.shared + i, kSwitches);
            const std::int64_t byte = chunk.halves_swapped ? i ^ 8 : i;  // of the row, from the chunk's first
            require(element.has_value(), "a byte of a chunk without an element");
            require(element->row == chunk.row && element->byte == 0 &&
                        element->tile[0] * size == chunk.column * size + byte,
                    "another element");
            require(element->global.has_value() == (byte < chunk.data_bytes), "fill, or not");
            require(!element->global || *element->global == chunk.global + static_cast<std::uint64_t>(byte),
                    "from elsewhere");
          }
        }
        std::int64_t bytes = 0;
        for (std::int64_t b = -128; b < shape.window_bytes + 128; ++b) {
          const bool inside = b >= 0 && b < shape.window_bytes && owned[static_cast<std::size_t>(b)] == 1;
          require(box_element_at(map, at, dst, dst + b, kSwitches).has_value() == inside, "an owner of padding");
          bytes += inside ? 1 : 0;
        }
        require(bytes == shape.tx_bytes, "the barrier is told another number");
      },
      text_of);
}

// Every byte of shared memory around the tile equals the result of the walk back. Stored again, the box has its old
// bytes and nothing else has changed.
TEST(EveryBox, IsLoadedByteForByteAndStoredBack) {
  for_whole_grid(
      "boxes loaded and stored", grid(), 37,
      [](const Point& p) {
        const TensorMap map = map_of(p);
        test::Tensor tensor(map);
        const std::vector<std::byte> original = tensor.bytes;
        const std::int64_t dst = destination(p);
        const BoxShape shape = box_shape(map, kSwitches);
        const std::int64_t window = (shape.window_bytes + 127) / 128 * 128;
        const auto starts = starts_of(map);
        for (std::size_t n = 0; n < starts.size(); ++n) {
          if (p.one_start && n != (p.step + static_cast<std::size_t>(p.phase)) % 3) continue;
          const auto& start = starts[n];
          SharedImage image(dst + window + 128);
          const BoxLoad load = load_box(map, test::coord_of(start), tensor.memory, image, dst, CopyIdx{0}, kSwitches);
          const auto expected = test::inverse_walk(map, start, static_cast<std::uint64_t>(dst), window);
          const auto actual = image.bytes();
          require(std::equal(expected.begin(), expected.end(), actual.begin() + dst), "other bytes");
          require(image.unwritten(0, image.size()) == image.size() - shape.tx_bytes, "bytes outside the tile");
          require(load.tx_bytes == shape.tx_bytes, "the barrier is told another number");
          if (start[0] < 0 || p.swizzle == TmaSwizzle::b128_atom32_flip8) continue;
          std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0xEE});
          const BoxStore store =
              store_box(map, test::coord_of(start), tensor.memory, image, dst,
                        {.target = TmaTarget::sm_100, .store_edge = BoxSwitches::StoreEdge::element});
          require(store == BoxStore{load.tx_bytes - load.filled_bytes, 0, 0}, "another number of bytes stored");
          // Loaded again after the store: the box has the same bytes, and ...
          SharedImage again(image.size());
          (void)load_box(map, test::coord_of(start), tensor.memory, again, dst, CopyIdx{0}, kSwitches);
          require(std::ranges::equal(again.bytes(), image.bytes()), "stored elsewhere");
          // ... only the stored bytes have changed: none twice, none outside.
          std::int64_t changed = 0;
          for (std::size_t b = 0; b < original.size(); ++b) {
            if (tensor.bytes[b] == std::byte{0xEE} && original[b] != std::byte{0xEE}) continue;
            require(tensor.bytes[b] == original[b], "another byte stored");
            ++changed;
          }
          require(changed >= store.global_bytes, "fewer bytes than stored");
          tensor.bytes.assign(original.begin(), original.end());
        }
      },
      text_of);
}

}  // namespace
}  // namespace kvscope::grid_test

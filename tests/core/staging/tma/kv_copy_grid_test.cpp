// Coordinates and rows of whole tiles of K and V over a whole grid: every type and swizzle of caches, heads of 16 to
// 576 columns, tiles of 32 to 256 rows over no pages and pages of up to 256, plain and folded tiles, K of one CTA and
// of either CTA of a pair, V in one to four parts, every number of valid pages. A copy depends on type and swizzle only
// through the columns of a chunk and the number of chunks (core/staging/tma/kv_copy.cpp uses nothing else of a tile),
// so each pair of these is tested once.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/staging/tma/kv_copy.h"
#include "core/tma/tile_sizes.h"
#include "tests/core/cache/fixtures.h"
#include "tests/whole_grid.h"

namespace kvscope::kv_copy_grid_test {
namespace {

using test::for_whole_grid;
using test::head;
using test::require;

enum class Kind { plain, outer, inner };
struct Width {
  DType dtype;
  SwizzleMode mode;
  std::int64_t depth;
};
struct Point {
  Width width;
  Kind kind;
  std::int64_t BN, page;
  KOrV operand;
  bool pair, leader;         // of K
  std::int64_t parts, part;  // of V
};

// One of each number of columns in a chunk and of chunks in a head.
std::vector<Width> widths() {
  std::map<std::pair<std::int64_t, std::int64_t>, Width> distinct;
  for (const DType dtype : {DType::e4m3, DType::bf16, DType::f32}) {
    for (int mode = 0; mode < 4; ++mode) {
      for (const std::int64_t depth : {16, 32, 64, 80, 96, 128, 192, 256, 576}) {
        const Width width{dtype, static_cast<SwizzleMode>(mode), depth};
        const std::int64_t gran = swizzle_granularity(dtype, width.mode);
        distinct.try_emplace({gran, (depth + gran - 1) / gran}, width);
      }
    }
  }
  std::vector<Width> list;
  for (const auto& [key, width] : distinct) list.push_back(width);
  return list;
}

// K of one CTA, of a pair's leader and of its peer; V whole, in halves and in quarters.
std::vector<Point> whole_grid() {
  std::vector<Point> points;
  for (const Width& width : widths()) {
    for (const Kind kind : {Kind::plain, Kind::outer, Kind::inner}) {
      for (const std::int64_t BN : {32, 64, 96, 128, 192, 256}) {
        for (const std::int64_t page : {0, 8, 16, 32, 64, 128, 256}) {
          if (page > 0 && page < BN && BN % page != 0) continue;  // populate_plan's rule
          const auto add = [&](KOrV operand, bool pair, bool leader, std::int64_t parts, std::int64_t part) {
            const std::int64_t rows = operand == KOrV::k ? BN / (pair ? 2 : 1) : BN / parts;
            const std::int64_t pages = page > 0 && page < BN ? BN / page : 1;
            const std::int64_t sharers = operand == KOrV::k ? (pair ? 2 : 1) : parts;
            if (pages > 1 && pages % sharers != 0) return;  // a page cannot be split
            const std::int64_t issue = page > 0 && page < rows ? page : rows;
            if (kind == Kind::outer && issue != rows) return;               // chunks outside: one page
            if (kind == Kind::outer && operand == KOrV::k && pair) return;  // its chunks are BN apart
            if (kind == Kind::inner && issue % 8 != 0) return;              // groups of 8 rows
            points.push_back({width, kind, BN, page, operand, pair, leader, parts, part});
          };
          add(KOrV::k, false, true, 1, 0);
          add(KOrV::k, true, true, 1, 0);
          add(KOrV::k, true, false, 1, 0);
          for (const std::int64_t parts : {1, 2, 4}) {
            for (std::int64_t part = 0; part < parts; ++part) add(KOrV::v, false, true, parts, part);
          }
        }
      }
    }
  }
  return points;
}

std::string text_of(const Point& p) {
  return std::string(p.operand == KOrV::k ? "K " : "V ") + std::string(name(p.width.dtype)) + ", " +
         std::string(name(p.width.mode)) + ", depth " + std::to_string(p.width.depth) + ", kind " +
         std::to_string(static_cast<int>(p.kind)) + ", BN " + std::to_string(p.BN) + ", page " +
         std::to_string(p.page) + (p.pair ? (p.leader ? ", leader" : ", peer") : "") + ", part " +
         std::to_string(p.part) + " of " + std::to_string(p.parts);
}

// Rows of the pages: scattered over the matrix, never adjacent.
std::uint32_t first_row(std::int64_t page) {
  return static_cast<std::uint32_t>(256 * (page * 37 % 64) + 8 * (page % 3));
}

struct Made {
  KvCopy copy;
  PagedRowIndices rows;
  std::int64_t first_token;  // of the whole tile: row 0 of this copy
};

Made make(const Point& p, std::int64_t valid) {
  const std::int64_t rows = p.operand == KOrV::k ? p.BN / (p.pair ? 2 : 1) : p.BN / p.parts;
  const std::int64_t issue = kv_sub_tile_rows(rows, p.page);
  const std::int64_t gran = swizzle_granularity(p.width.dtype, p.width.mode);
  const std::int64_t columns = (p.width.depth + gran - 1) / gran * gran;
  alignas(16) static std::byte pool[16];  // a tile is a description: nothing is read
  const TmaRows matrix{"rows", pool, p.width.dtype, std::int64_t{1} << 16, 2, columns};
  TileOptions options{.mode = p.width.mode, .BN = issue, .BK = columns};
  if (p.kind != Kind::plain) options.fold_chunks = columns / gran, options.row_major = p.kind == Kind::inner;
  const TmaTile tile = make_tma_tile(matrix, options);
  PagedRowIndices list({.BN = p.BN, .pair_cta = p.pair, .is_leader = p.leader}, p.page);
  for (std::size_t i = 0; i < list.rows().size(); ++i) list.rows()[i] = first_row(static_cast<std::int64_t>(i));
  if (p.operand == KOrV::k) {
    return {tma_copy_k(tile, list,
                       {.head = head(1),
                        .smem_BN = p.kind == Kind::plain ? p.BN + 8 : p.BN,  // a gap between chunks
                        .needs_partial = true,
                        .valid_pages = valid}),
            list, p.pair && !p.leader ? rows : 0};
  }
  return {
      tma_copy_v(
          tile, list,
          {.head = head(1), .num_v_sub_tiles = p.parts, .v_idx = p.part, .needs_partial = true, .valid_pages = valid}),
      list, p.part * rows};
}

// [bytes] of one box: a chunk of columns, or all of them where chunks are folded.
std::int64_t box_bytes(const Point& p) {
  const std::int64_t rows = p.operand == KOrV::k ? p.BN / (p.pair ? 2 : 1) : p.BN / p.parts;
  const std::int64_t gran = swizzle_granularity(p.width.dtype, p.width.mode);
  const std::int64_t columns = p.kind == Kind::plain ? gran : (p.width.depth + gran - 1) / gran * gran;
  return kv_sub_tile_rows(rows, p.page) * columns * size_of(p.width.dtype);
}

bool is_rejected(const Point& p) {
  try {
    (void)make(p, 1);
  } catch (const GeometryError& error) {
    return std::string(error.what()).find("box (V23)") != std::string::npos;
  }
  return false;
}

// Each element of the tile has one place, is found there by the inverse, and is copied by the issue whose box contains
// it, from the row that the cache's list of rows has for its token.
TEST(EveryTileOfKAndV, HasAPlaceForEachElementAndARowForEachPlace) {
  const std::vector<Point> points = whole_grid();
  EXPECT_EQ(points.size(), 37632U);  // 42 widths of 896 tiles
  for_whole_grid(
      "tiles of K and V", points, 37,
      [](const Point& p) {
        if (box_bytes(p) > 228 * 1024) {  // the shared memory of an SM: rule V23 of tensor maps
          require(is_rejected(p), "a box past the shared memory of an SM was accepted");
          return;
        }
        const std::int64_t pages = make(p, 1).copy.pages;
        for (std::int64_t valid = p.operand == KOrV::v ? 0 : 1; valid <= pages; ++valid) {
          const bool last = valid == pages;
          if (!last && p.width.depth != 128) continue;  // which pages are valid does not depend on the chunks' columns
          const auto [copy, rows, first_token] = make(p, valid);
          std::vector<char> taken(static_cast<std::size_t>(copy.smem_elements()));
          std::vector<std::int64_t> brought(copy.issues.size());
          const std::int64_t columns = copy.chunks * copy.gran;
          for (std::int64_t r = 0; r < copy.tile_rows; ++r) {
            const std::int64_t matrix_row = rows.get_row(first_token + r).value;
            for (std::int64_t d = 0; d < columns; ++d) {
              const std::int64_t at = kv_smem_offset(copy, r, d);
              char& mine = taken.at(static_cast<std::size_t>(at));
              require(mine == 0, "two elements have one place");
              mine = 1;
              if (d % copy.gran != 0 && d % copy.gran != copy.gran - 1 && !last) continue;
              const auto element = kv_element_at(copy, at);
              require(element && element->row == r && element->depth == d && element->page == r / copy.issue_rows,
                      "the way back leads elsewhere");
              require((element->issue >= 0) == (element->page < valid), "a page that is not valid was copied");
              if (element->issue < 0) continue;
              const auto number = static_cast<std::size_t>(element->issue);
              const KvIssue& issue = copy.issues[number];
              ++brought[number];
              require(element->matrix_row == matrix_row, "another row of the cache");
              require(at >= issue.smem && at < issue.smem + issue.bytes / copy.element_bytes, "outside its box");
            }
          }
          if (!last) continue;
          std::int64_t elements = 0, bytes = 0;
          for (std::int64_t at = 0; at < copy.smem_elements(); ++at) {
            const bool mine = taken[static_cast<std::size_t>(at)] == 1;
            if (!mine) require(!kv_element_at(copy, at), "an element in the gap");
            elements += mine ? 1 : 0;
          }
          require(elements == copy.tile_rows * columns, "an element has no place");
          for (std::size_t i = 0; i < brought.size(); ++i) {
            require(brought[i] * copy.element_bytes == copy.issues[i].bytes, "a box brings another number");
            bytes += copy.issues[i].bytes;
          }
          require(bytes == copy.expected_bytes, "the barrier is told another number");
        }
      },
      text_of);
}

}  // namespace
}  // namespace kvscope::kv_copy_grid_test

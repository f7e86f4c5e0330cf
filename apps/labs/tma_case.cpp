#include "apps/labs/tma_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kvscope::labs {

TmaCase make_tma(const CounterRng& random, std::int64_t tiles, std::int64_t pages) {
  std::uint64_t at = 0;
  TmaCase made;
  made.tiles = tiles;
  made.pages = pages;
  // A block of the pool has four times the rows of a page: K and V of two layers.
  const std::int64_t stride = 4 * made.page_rows(), blocks = kMapRows / stride;
  std::vector<std::int32_t> used;
  while (static_cast<std::int64_t>(made.rows.size()) < tiles * pages) {
    const auto row = static_cast<std::int32_t>(random.integer(at++, 0, blocks - 1) * stride);
    const bool repeats = std::ranges::find(used, row) != used.end();
    if (repeats) continue;
    used.push_back(row);
    made.rows.push_back(row);
    // Where the pool has fewer blocks than the case has pages, tiles share blocks; the pages of a tile never do.
    const auto in_tile = std::ssize(made.rows) % pages;
    if (static_cast<std::int64_t>(used.size()) == blocks) used.assign(made.rows.end() - in_tile, made.rows.end());
  }
  made.pool.resize(static_cast<std::size_t>(kMapRows * kTileColumns));
  for (std::size_t e = 0; e < made.pool.size(); ++e) made.pool[e] = static_cast<std::uint16_t>(random.bits(1000 + e));
  return made;
}

LabCall tma_call(const TmaCase& made) {
  TensorMap map;
  map.data_type = TmaDataType::bf16;
  map.rank = 2;
  map.dims = {static_cast<std::uint64_t>(kTileColumns), static_cast<std::uint64_t>(kMapRows)};
  map.strides = {static_cast<std::uint64_t>(kTileColumns * 2)};
  map.box = {64, static_cast<std::uint32_t>(made.page_rows())};
  map.swizzle = TmaSwizzle::b128;
  LabCall call;
  call.entry = "tile";
  call.block = {kTmaThreads, 1, 1};
  const auto out_bytes = static_cast<std::size_t>(made.tiles * kTileBytes);
  call.arrays = {{"pool", lab_bytes(made.pool)},
                 {"rows", lab_bytes(made.rows)},
                 {"out", std::vector<std::byte>(out_bytes, kUnwritten), false}};
  call.params = {MapOf{0, map}, AddressOf{1}, AddressOf{2}, static_cast<std::uint64_t>(made.tiles),
                 static_cast<std::uint64_t>(made.pages)};
  call.global_races = false;
  return call;
}

std::string tma_text(const TmaCase& made) {
  return fmt::format("{} of {} pages of {} rows; first rows {}", made.tiles == 1 ? "one tile" : "tiles", made.pages,
                     made.page_rows(), fmt::join(made.rows, " "));
}

}  // namespace kvscope::labs

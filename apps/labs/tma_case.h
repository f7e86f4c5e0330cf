// A case of lab 11: tiles whose pages are anywhere in a map, and the call of the kernel that loads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/labs/kernel_run.h"
#include "core/base/random.h"

namespace kvscope::labs {

inline constexpr std::int64_t kTileRows = 64, kTileColumns = 128, kTileBytes = kTileRows * kTileColumns * 2;
inline constexpr std::int64_t kHalfBytes = kTileBytes / 2, kMapRows = 640, kTmaThreads = 128;

struct TmaCase {
  std::int64_t tiles = 1, pages = 4;
  std::vector<std::int32_t> rows;   // [tiles, pages]
  std::vector<std::uint16_t> pool;  // [kMapRows, kTileColumns]
  [[nodiscard]] std::int64_t page_rows() const { return kTileRows / pages; }
  // Map row of row r of tile n.
  [[nodiscard]] std::int64_t row(std::int64_t n, std::int64_t r) const {
    return rows[static_cast<std::size_t>(n * pages + r / page_rows())] + r % page_rows();
  }
  [[nodiscard]] std::uint16_t element(std::int64_t map_row, std::int64_t column) const {
    return pool[static_cast<std::size_t>(map_row * kTileColumns + column)];
  }
};

[[nodiscard]] TmaCase make_tma(const CounterRng& random, std::int64_t tiles, std::int64_t pages);
// Arrays: the pool of the map, rows, out.
[[nodiscard]] LabCall tma_call(const TmaCase& made);
[[nodiscard]] std::string tma_text(const TmaCase& made);

}  // namespace kvscope::labs

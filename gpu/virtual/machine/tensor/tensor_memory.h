// The tensor memory of a CTA: 128 lanes of 512 columns of 32 bits, and which of its columns are allocated.
//
//   address    31 .. 16  15 .. 0          example: 0x0020'0040 is lane 32, column 64
//              lane      column
//
//   tcgen05.alloc 64 -> columns 0 .. 63, all lanes        tcgen05.alloc 32 -> columns 64 .. 95
//
// An allocation is 32, 64, 128, 256 or 512 columns, begins at a multiple of its size, and takes the lowest free place.
// A later one of the same CTA must not be larger than an earlier one. Each CTA has a tensor memory of its own here; on
// hardware, the CTAs of a multiprocessor share one, and tcgen05.alloc waits until there is room.
// Source: PTX ISA 9.0, "Tensor Memory", "tcgen05.alloc, dealloc, relinquish_alloc_permit".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvscope::ptx {

inline constexpr int kTensorLanes = 128, kTensorColumns = 512, kTensorUnit = 32;

struct TensorAddress {
  std::int64_t lane = 0, column = 0;
  friend bool operator==(const TensorAddress&, const TensorAddress&) = default;
};
[[nodiscard]] constexpr TensorAddress tensor_address(std::uint32_t bits) {
  return {bits >> 16, bits & 0xffff};
}
[[nodiscard]] constexpr std::uint32_t tensor_bits(TensorAddress at) {
  return static_cast<std::uint32_t>(at.lane) << 16 | static_cast<std::uint32_t>(at.column);
}

// A rectangle of cells: lanes [lane, lane + lanes) of columns [column, column + columns).
struct TensorRegion {
  std::int32_t lane = 0, lanes = 0, column = 0, columns = 0;
  friend bool operator==(const TensorRegion&, const TensorRegion&) = default;
};
[[nodiscard]] constexpr bool overlaps(const TensorRegion& a, const TensorRegion& b) {
  return a.lane < b.lane + b.lanes && b.lane < a.lane + a.lanes && a.column < b.column + b.columns &&
         b.column < a.column + a.columns;
}

struct TensorAllocation {
  std::int32_t column = 0, columns = 0;
  std::int32_t warp = -1, pc = -1;              // that allocated it
  std::int32_t freed_warp = -1, freed_pc = -1;  // that freed it; -1: live
  [[nodiscard]] bool live() const { return freed_pc < 0; }
  [[nodiscard]] bool contains(std::int64_t c) const { return c >= column && c < column + columns; }
};

class TensorMemory {
 public:
  // std::nullopt: no room. Precondition: is_size(columns).
  [[nodiscard]] std::optional<std::int32_t> allocate(std::int32_t columns, std::int32_t warp, std::int32_t pc);
  // False: no live allocation has exactly these columns.
  [[nodiscard]] bool free(std::int32_t column, std::int32_t columns, std::int32_t warp, std::int32_t pc);
  [[nodiscard]] static bool is_size(std::uint64_t columns) {
    return columns >= kTensorUnit && columns <= kTensorColumns && (columns & (columns - 1)) == 0;
  }

  // The first column of the region that no live allocation contains, or a lane past the last one; std::nullopt: none.
  [[nodiscard]] std::optional<TensorAddress> outside(const TensorRegion& region) const;
  // Allocations in the order they were made. Of those that were freed, the last ones.
  [[nodiscard]] const std::vector<TensorAllocation>& allocations() const { return allocations_; }

  [[nodiscard]] std::uint32_t* row(std::int64_t lane) { return cells_.data() + lane * kTensorColumns; }
  [[nodiscard]] const std::uint32_t* row(std::int64_t lane) const { return cells_.data() + lane * kTensorColumns; }

  std::int32_t most_columns = kTensorColumns;  // of the next allocation
  std::int32_t relinquished_pc = -1;           // of relinquish_alloc_permit; -1: not executed
  std::int32_t relinquished_warp = -1;
  std::int32_t cta_group = 0;     // of the first instruction; 0: none yet
  std::int64_t pair_actions = 0;  // allocations, frees and so on with .cta_group::2

 private:
  std::vector<std::uint32_t> cells_;  // [lane][column]; empty until the first allocation
  std::vector<TensorAllocation> allocations_;
};

}  // namespace kvscope::ptx

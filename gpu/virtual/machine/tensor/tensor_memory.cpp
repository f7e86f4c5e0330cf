#include "gpu/virtual/machine/tensor/tensor_memory.h"

#include <algorithm>
#include <cstddef>

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostFreed = 32;               // allocations remembered after they were freed
constexpr std::uint32_t kNeverWritten = 0xffffffff;  // a NaN in every floating-point type

}  // namespace

std::optional<std::int32_t> TensorMemory::allocate(std::int32_t columns, std::int32_t warp, std::int32_t pc) {
  for (std::int32_t from = 0; from + columns <= kTensorColumns; from += columns) {
    const TensorRegion wanted{0, 1, from, columns};
    const bool taken = std::any_of(allocations_.begin(), allocations_.end(), [&](const TensorAllocation& a) {
      return a.live() && overlaps(wanted, {0, 1, a.column, a.columns});
    });
    if (taken) continue;
    if (cells_.empty()) cells_.resize(std::size_t{kTensorLanes} * kTensorColumns);
    for (std::int64_t lane = 0; lane < kTensorLanes; ++lane) std::fill_n(row(lane) + from, columns, kNeverWritten);
    if (allocations_.size() >= kMostFreed) {
      const auto oldest =
          std::find_if(allocations_.begin(), allocations_.end(), [](const TensorAllocation& a) { return !a.live(); });
      if (oldest != allocations_.end()) allocations_.erase(oldest);
    }
    allocations_.push_back({.column = from, .columns = columns, .warp = warp, .pc = pc});
    most_columns = columns;
    return from;
  }
  return std::nullopt;
}

bool TensorMemory::free(std::int32_t column, std::int32_t columns, std::int32_t warp, std::int32_t pc) {
  const auto found = std::find_if(allocations_.begin(), allocations_.end(), [&](const TensorAllocation& a) {
    return a.live() && a.column == column && a.columns == columns;
  });
  if (found == allocations_.end()) return false;
  found->freed_warp = warp;
  found->freed_pc = pc;
  return true;
}

std::optional<TensorAddress> TensorMemory::outside(const TensorRegion& region) const {
  if (region.lane < 0 || region.lane + region.lanes > kTensorLanes)
    return TensorAddress{std::max(region.lane, region.lane + region.lanes - 1), region.column};
  for (std::int64_t c = region.column; c < std::int64_t{region.column} + region.columns;) {
    const auto in = std::find_if(allocations_.begin(), allocations_.end(),
                                 [c](const TensorAllocation& a) { return a.live() && a.contains(c); });
    if (in == allocations_.end()) return TensorAddress{region.lane, c};
    c = in->column + in->columns;
  }
  return std::nullopt;
}

}  // namespace kvscope::ptx

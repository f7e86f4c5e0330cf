#include "apps/labs/row_accesses.h"

#include <set>
#include <utility>

#include "gpu/virtual/machine/memory/device_memory.h"

namespace kvscope::labs {

void RowAccesses::access(const ptx::Exec& /*exec*/, const ptx::Op& /*op*/, const ptx::WarpAccess& access) {
  if (access.space != ptx::Space::global && access.space != ptx::Space::generic) return;
  std::set<std::pair<std::uint64_t, std::uint64_t>> rows;
  std::set<std::uint64_t> vectors;
  for (std::size_t lane = 0; lane < ptx::kLanes; ++lane) {
    if ((access.lanes >> lane & 1U) == 0) continue;
    const std::uint64_t address = access.addresses[lane], offset = address % ptx::DeviceMemory::kSpacing;
    rows.emplace(address / ptx::DeviceMemory::kSpacing, offset / row_bytes_);
    vectors.insert(address / static_cast<std::uint64_t>(access.bytes));
  }
  if (vectors.size() < 2) return;  // one entry of a table, read by all lanes
  if (rows.size() > 2) {
    ++several_;
  } else if (*vectors.rbegin() - *vectors.begin() + 1 != vectors.size()) {
    ++gaps_;
  } else {
    ++adjacent_;
  }
}

std::string_view RowAccesses::reason() const {
  if (several_ > gaps_ + adjacent_) {
    return "lanes read different rows: adjacent lanes must copy adjacent vectors";
  }
  if (gaps_ > adjacent_) return "there are gaps between the vectors of adjacent lanes";
  return "the same bytes are read or written more than once";
}

}  // namespace kvscope::labs

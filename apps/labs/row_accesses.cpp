#include "apps/labs/row_accesses.h"

#include <set>
#include <utility>

#include "gpu/virtual/machine/memory/device_memory.h"

namespace kvscope::labs {
namespace {

constexpr std::uint64_t kSector = 32;  // [bytes]

}  // namespace

void RowAccesses::access(const ptx::Exec& /*exec*/, const ptx::Op& /*op*/, const ptx::WarpAccess& access) {
  if (access.space != ptx::Space::global && access.space != ptx::Space::generic) return;
  std::set<std::pair<std::uint64_t, std::uint64_t>> rows;
  std::set<std::uint64_t> vectors, sectors;
  const auto bytes = static_cast<std::uint64_t>(access.bytes);
  for (std::size_t lane = 0; lane < ptx::kLanes; ++lane) {
    if ((access.lanes >> lane & 1U) == 0) continue;
    const std::uint64_t address = access.addresses[lane], offset = address % ptx::DeviceMemory::kSpacing;
    rows.emplace(address / ptx::DeviceMemory::kSpacing, offset / row_bytes_);
    vectors.insert(address / bytes);
    sectors.insert(address / kSector);
  }
  const auto touched = static_cast<std::int64_t>(sectors.size());
  const auto needed = static_cast<std::int64_t>((vectors.size() * bytes + kSector - 1) / kSector);
  all_ += touched;
  (rows.size() > 2 ? several_ : gaps_) += touched - needed;
}

std::string_view RowAccesses::reason() const {
  if (several_ >= gaps_ && several_ * 10 > all_) {
    return "lanes read different rows: adjacent lanes must read adjacent vectors";
  }
  if (gaps_ * 10 > all_) return "there are gaps between the vectors of adjacent lanes";
  return "the same bytes are read or written more than once";
}

}  // namespace kvscope::labs

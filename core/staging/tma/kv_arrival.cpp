#include "core/staging/tma/kv_arrival.h"

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/tma/tile_map.h"
#include "core/tma/tma_swizzle.h"

namespace kvscope {

std::vector<BoxLoad> carry_out(const KvCopy& copy, const TensorMap& map, const GlobalMemory& memory, SharedImage& image,
                               std::int64_t dst, ArrivalBarrier& barrier, CopyIdx first, const BoxSwitches& switches) {
  const std::int64_t period = swizzle_period(map.swizzle);
  if (dst % period != 0) {
    throw GeometryError(
        fmt::format("TMA copy of {}: the tile begins at {}, which is not a multiple of {} B, where the "
                    "pattern of the {} begins: align the buffer",
                    copy.operand == KOrV::k ? "K" : "V", dst, period, name(map.swizzle)));
  }
  barrier.arrive_expect_tx(copy.expected_bytes);
  std::vector<BoxLoad> loads;
  loads.reserve(copy.issues.size());
  for (const KvIssue& issue : copy.issues) {
    const auto number = static_cast<std::int64_t>(loads.size());
    loads.push_back(
        load_box(map, issue.at, memory, image, dst + issue.smem * copy.element_bytes, first + number, switches));
    barrier.complete_tx(loads.back().tx_bytes);
  }
  return loads;
}

std::int64_t kv_shared_address(const KvCopy& copy, std::int64_t dst, std::int64_t row, std::int64_t depth) {
  return swizzle_address(tma_swizzle(copy.swizzle), dst + kv_smem_offset(copy, row, depth) * copy.element_bytes);
}

std::optional<KvElement> kv_element_at_address(const KvCopy& copy, std::int64_t dst, std::int64_t address) {
  if (address < 0) return std::nullopt;
  const std::int64_t byte = swizzle_address(tma_swizzle(copy.swizzle), address) - dst;
  if (byte < 0) return std::nullopt;
  return kv_element_at(copy, byte / copy.element_bytes);
}

}  // namespace kvscope

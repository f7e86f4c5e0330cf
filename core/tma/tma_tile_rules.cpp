#include "core/tma/detail/tma_tile_rules.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/tma/tensor_map_rules.h"
#include "core/tma/tile_map.h"

namespace kvscope {

void TmaTileRules::require_whole_granules(std::int64_t BK, std::int64_t granularity) {
  require(BK % granularity == 0, "BK",
          fmt::format("{} columns are not whole boxes of {}: use {}", BK, granularity, round_up(BK, granularity)));
}

void TmaTileRules::throw_if_broken() {
  if (!faults_.empty()) throw GeometryError(fmt::format("tensor map of {}", object_), std::move(faults_));
}

void TmaTileRules::throw_if_broken(const TmaTile& tile) {
  const TensorMap map = unchecked_tensor_map_of(object_, tile, reinterpret_cast<std::uintptr_t>(tile.base));
  // A tile's type and swizzle exist on every target, so it is checked for the oldest one.
  for (Fault& fault : check_tensor_map(map, TmaTarget::sm_90).faults()) faults_.push_back(std::move(fault));
  throw_if_broken();
}

void require_sizes(std::string_view object, std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  TmaTileRules rules(object);
  for (const auto& [what, value] : sizes) {
    rules.require(value > 0, what, fmt::format("{} is not positive: give 1 or more", value));
  }
  rules.throw_if_broken();
}

void require_32_bits(std::string_view object, const char* what, std::int64_t rows) {
  if (rows >= (std::int64_t{1} << 31)) {
    throw OverflowError(
        fmt::format("tensor map of {}: {} {} do not fit a signed 32-bit coordinate, which ends below "
                    "2147483648: use fewer blocks, or a tile with the block as its own coordinate "
                    "(create_paged_tma_tile)",
                    object, rows, what));
  }
}

}  // namespace kvscope

// The rules that makers of tiles (tma_tile.cpp) add to the driver's, collected so that one error names every broken
// rule. The driver's rules are only in tensor_map_rules.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// The faults of one tile. `object` must outlive it.
class TmaTileRules {
 public:
  explicit TmaTileRules(std::string_view object) : object_(object) {}

  void require(bool holds, std::string_view where, std::string message) {
    if (!holds) faults_.push_back({std::string(where), std::move(message)});
  }
  // BK must be a multiple of `granularity`, the columns of one box.
  void require_whole_granules(std::int64_t BK, std::int64_t granularity);
  // GeometryError "tensor map of <object> rejected: ..." with the faults so far.
  void throw_if_broken();
  // The same, followed by the faults that check_tensor_map finds in the map of `tile` at its address in this process.
  void throw_if_broken(const TmaTile& tile);

 private:
  std::string_view object_;
  std::vector<Fault> faults_;
};

// GeometryError unless each size is positive. Thrown before other rules are checked, because they divide by these
// sizes.
void require_sizes(std::string_view object, std::initializer_list<std::pair<const char*, std::int64_t>> sizes);

// OverflowError for 2^31 rows or more: a copy's coordinate is a signed 32-bit number.
void require_32_bits(std::string_view object, const char* what, std::int64_t rows);

}  // namespace kvscope

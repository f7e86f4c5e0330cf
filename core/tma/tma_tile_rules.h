// What a tensor map must obey, gathered so that one error names every broken rule. For the makers in tma_tile.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// The faults of one map. `object` outlives it.
class TmaRules {
 public:
  explicit TmaRules(std::string_view object) : object_(object) {}

  void require(bool holds, std::string_view where, std::string message) {
    if (!holds) faults_.push_back({std::string(where), std::move(message)});
  }
  // GeometryError "tensor map of <object> rejected: ..."; nothing when every rule held.
  void throw_if_broken();

 private:
  std::string_view object_;
  std::vector<Fault> faults_;
};

// Sizes that later divisions rely on; thrown at once, because nothing else can be said about a map without them.
void require_sizes(std::string_view object, std::initializer_list<std::pair<const char*, std::int64_t>> sizes);

// GeometryError for an element type that a tensor map cannot carry.
void require_dtype(std::string_view object, DType dtype);

// OverflowError for 2^31 rows or more.
void require_32_bits(std::string_view object, const char* what, std::int64_t rows);

// What the driver checks when it encodes a map: 16-byte base and strides, innermost stride 1, box extents 1 to 256,
// inner box bytes whole chunks and no more than the swizzle's row.
void require_driver_rules(TmaRules& rules, const TmaTile& tile);

void require_whole_granules(TmaRules& rules, std::int64_t BK, std::int64_t granularity);

}  // namespace kvscope

// The type of a cache's bit patterns: an element type, and for fp8 which of two meanings its bytes have.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/dtype.h"

namespace kvscope::golden {

struct CacheType {
  DType dtype = DType::bf16;
  bool fnuz = false;  // e4m3 only: e4m3fnuz, as AMD's MI300 stores it. Bias 8, no negative zero, 80 is NaN

  bool operator==(const CacheType&) const = default;
};

[[nodiscard]] std::string_view name(CacheType type);                                // "bf16", "e4m3fnuz"
[[nodiscard]] std::optional<CacheType> cache_type_from_name(std::string_view name);  // also those of dtype_from_name()

}  // namespace kvscope::golden

#include "core/golden/layouts/cache_type.h"

namespace kvscope::golden {
namespace {

constexpr std::string_view kFnuz = "e4m3fnuz";

}  // namespace

std::string_view name(CacheType type) {
  return type.fnuz ? kFnuz : kvscope::name(type.dtype);
}

std::optional<CacheType> cache_type_from_name(std::string_view name) {
  if (name == kFnuz) return CacheType{DType::e4m3, true};
  const std::optional<DType> dtype = dtype_from_name(name);
  return dtype ? std::optional(CacheType{*dtype}) : std::nullopt;
}

}  // namespace kvscope::golden

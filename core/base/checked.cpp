#include "core/base/checked.h"

#include <fmt/format.h>

namespace kvscope {

void throw_overflow(std::string_view what, std::int64_t a, const char* op, std::int64_t b) {
  throw OverflowError(fmt::format("{}: {} {} {} does not fit in 64 bits", what, a, op, b));
}

void throw_narrow(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high) {
  throw OverflowError(fmt::format("{} {} is outside [{}, {}]", what, value, low, high));
}

}  // namespace kvscope

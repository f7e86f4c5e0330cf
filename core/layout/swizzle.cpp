#include "core/layout/swizzle.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {

std::string_view name(SwizzleMode mode) {
  switch (mode) {
    case SwizzleMode::none:
      return "no swizzle";
    case SwizzleMode::b32:
      return "32B swizzle";
    case SwizzleMode::b64:
      return "64B swizzle";
    case SwizzleMode::b128:
      return "128B swizzle";
  }
  return "invalid swizzle";
}

std::int64_t swizzle_granularity(DType dtype, SwizzleMode mode) {
  return bytes(mode) / size_of(dtype);
}

Swizzle::Swizzle(int bits, int base, int shift) : bits_(bits), base_(base), shift_(shift), yyy_(0) {
  const std::string object = fmt::format("swizzle ({},{},{})", bits, base, shift);
  const auto distance = std::abs(std::int64_t{shift});
  std::vector<Fault> faults;
  if (bits < 0) faults.push_back({"bits", fmt::format("{} is negative: use 0 or more", bits)});
  if (base < 0) faults.push_back({"base", fmt::format("{} is negative: use 0 or more", base)});
  if (distance < bits) {
    faults.push_back({"shift", fmt::format("{} moves {} bits onto themselves: use at least {} or at most -{}", shift,
                                           bits, bits, bits)});
  }
  const std::int64_t span = std::int64_t{bits} + base + distance;
  if (faults.empty() && span >= 63) {
    faults.push_back({"", fmt::format("bits + base + |shift| = {} is outside [0, 63)", span)});
  }
  if (!faults.empty()) throw GeometryError(object, std::move(faults));
  yyy_ = ((std::uint64_t{1} << bits) - 1) << (base + (shift > 0 ? shift : 0));
}

std::int64_t Swizzle::size() const {
  return std::int64_t{1} << (bits_ + base_ + std::abs(shift_));
}

std::string Swizzle::text() const {
  return fmt::format("({},{},{})", bits_, base_, shift_);
}

Swizzle make_swizzle(DType dtype, SwizzleMode mode) {
  return {static_cast<int>(mode), log2_floor(bytes(SwizzleMode::none) / size_of(dtype)), 3};
}

Swizzle make_swizzle(std::int64_t num_rows, std::int64_t row_size, std::int64_t access_size) {
  const std::string object = fmt::format("swizzle of {} rows of {}, {} at a time", num_rows, row_size, access_size);
  std::vector<Fault> faults;
  if (num_rows < 1) faults.push_back({"num_rows", fmt::format("{} is below 1", num_rows)});
  if (row_size < 1) faults.push_back({"row_size", fmt::format("{} is below 1", row_size)});
  if (access_size < 1) faults.push_back({"access_size", fmt::format("{} is below 1", access_size)});
  if (!faults.empty()) throw GeometryError(object, std::move(faults));
  const int shift = log2_floor(row_size) - log2_floor(access_size);
  if (shift <= 0) {
    throw GeometryError(
        object, {{"access_size",
                  fmt::format("{} is not below half of a row: a row of {} has one access", access_size, row_size)}});
  }
  return {log2_floor(num_rows), log2_floor(access_size), shift};
}

}  // namespace kvscope

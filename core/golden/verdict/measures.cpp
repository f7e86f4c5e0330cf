#include "core/golden/verdict/measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

std::uint64_t pattern_at(const std::byte* at, std::size_t size) {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, at, size);
  return pattern;
}

}  // namespace

std::uint64_t ulp_distance(DType dtype, std::uint64_t a, std::uint64_t b) {
  if (dtype == DType::e8m0) return a > b ? a - b : b - a;  // no sign
  if (is_integer(dtype)) {                                 // one step is a difference of 1
    const int shift = 64 - bits(dtype);
    const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
    const auto wide = [&](std::uint64_t x) {
      return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(x << shift) >> shift) : x;
    };
    const bool a_first = is_signed ? static_cast<std::int64_t>(wide(a)) < static_cast<std::int64_t>(wide(b)) : a < b;
    return a_first ? wide(b) - wide(a) : wide(a) - wide(b);
  }
  const std::uint64_t sign = std::uint64_t{1} << (bits(dtype) - 1);
  const std::uint64_t below_a = a & (sign - 1);  // steps from zero
  const std::uint64_t below_b = b & (sign - 1);
  if ((a & sign) != (b & sign)) return below_a + below_b;
  return below_a > below_b ? below_a - below_b : below_b - below_a;
}

std::vector<double> as_doubles(const Tensor& tensor) {
  std::vector<double> result(tensor.bytes.size() / static_cast<std::size_t>(size_of(tensor.dtype)));
  to_doubles(tensor.dtype, tensor.bytes.data(), result);
  return result;
}

double rounded_to(DType dtype, double g) {
  std::array<std::byte, 8> bytes{};
  store_from_double(dtype, g, bytes.data(), Overflow::non_saturating);
  return load_as_double(dtype, bytes.data());
}

Measures measure(const Tensor& tensor, std::span<const double> candidate, std::span<const double> golden) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype));
  Measures m;
  m.elements = static_cast<std::int64_t>(golden.size());
  double error2 = 0;
  double golden2 = 0;
  double cross = 0;
  double both2 = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const double x = candidate[i];
    const double g = golden[i];
    if (!std::isfinite(x) || !std::isfinite(g)) continue;
    ++m.finite;
    m.max_abs = std::max(m.max_abs, std::abs(x - g));
    error2 += (x - g) * (x - g);
    golden2 += g * g;
    cross += x * g;
    both2 += x * x + g * g;
    if (x == g)
      continue;  // equal patterns, or zeros of two signs; needed for i64 past 2^53, which a double does not represent
    std::array<std::byte, 8> rounded{};
    store_from_double(tensor.dtype, g, rounded.data(), Overflow::non_saturating);
    if (std::isfinite(load_as_double(tensor.dtype, rounded.data()))) {
      m.max_ulp = std::max(m.max_ulp, ulp_distance(tensor.dtype, pattern_at(tensor.bytes.data() + i * size, size),
                                                   pattern_at(rounded.data(), size)));
    }
  }
  if (error2 > 0) m.rms_relative = golden2 > 0 ? std::sqrt(error2 / golden2) : std::numeric_limits<double>::infinity();
  if (both2 > 0) m.cosine_difference = 1 - 2 * cross / both2;
  return m;
}

}  // namespace kvscope::golden

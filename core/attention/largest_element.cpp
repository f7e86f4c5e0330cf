#include "core/attention/detail/largest_element.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/lanes.h"

namespace kvscope::attention {
namespace {

// The larger of `largest` and the bits without sign of `count` elements. Bits: a signed integer of the element's size.
template <class Bits>
Bits larger_of_elements(Bits largest, const std::byte* row, std::int64_t count) {
  for (std::int64_t d = 0; d < count; ++d) {
    Bits x;
    std::memcpy(&x, row + d * static_cast<std::int64_t>(sizeof x), sizeof x);
    x &= std::numeric_limits<Bits>::max();
    largest = x > largest ? x : largest;
  }
  return largest;
}

// The same for doubles, of which baseline instructions compare no pairs as integers. A NaN or an infinity: infinity.
std::int64_t larger_of_doubles(std::int64_t largest, std::span<const std::byte* const> rows, std::int64_t count) {
  using L = Lanes<2>;
  L::Vec pairs[4] = {}, zeros[4] = {};  // one pair would wait for each comparison
  const L::Bits all_but_sign = L::Bits{} + std::numeric_limits<std::int64_t>::max();
  const auto add = [&](const double* at, std::int64_t n, int i) {
    double pair[2] = {};
    std::memcpy(pair, at, static_cast<std::size_t>(n) * sizeof(double));
    const L::Vec x = L::number(L::bits(L::load(pair)) & all_but_sign);
    pairs[i] = x > pairs[i] ? x : pairs[i];
    zeros[i] += x * 0;  // NaN, if x is not finite
  };
  for (const std::byte* row : rows) {
    const auto* at = reinterpret_cast<const double*>(row);
    std::int64_t d = 0;
    for (; d + 8 <= count; d += 8) {
      for (int i = 0; i < 4; ++i) add(at + d + 2 * i, 2, i);
    }
    for (; d < count; d += 2) add(at + d, std::min<std::int64_t>(2, count - d), 0);
  }
  double all = std::bit_cast<double>(largest);
  bool finite = true;
  for (int i = 0; i < 4; ++i) {
    for (int lane = 0; lane < 2; ++lane) {
      all = pairs[i][lane] > all ? pairs[i][lane] : all;
      finite = finite && zeros[i][lane] == 0;
    }
  }
  return std::bit_cast<std::int64_t>(finite ? all : std::numeric_limits<double>::infinity());
}

}  // namespace

std::int64_t larger_of_rows(std::int64_t largest, DType dtype, std::span<const std::byte* const> rows,
                            std::int64_t count) {
  const auto over = [&](auto bits) -> std::int64_t {
    bits = static_cast<decltype(bits)>(largest);
    for (const std::byte* row : rows) bits = larger_of_elements(bits, row, count);
    return bits;
  };
  switch (size_of(dtype)) {
    case 1:
      return over(std::int8_t{});
    case 2:
      return over(std::int16_t{});
    case 4:
      return over(std::int32_t{});
    default:
      return larger_of_doubles(largest, rows, count);
  }
}

}  // namespace kvscope::attention

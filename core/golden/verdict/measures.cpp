#include "core/golden/verdict/measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/convert.h"
#include "core/golden/verdict/detail/verdict_loops.h"

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

Measuring::Measuring(DType type) : type_(type) {}

bool Measuring::add(const std::byte* bytes, std::span<const double> candidate, std::span<const double> golden) {
  if (!is_output_type(type_)) {
    add_one_by_one(bytes, candidate, golden);
    return false;
  }
  bool all_finite = true;
  const NumberType type = number_type(type_);
  const VerdictLoops& loops = verdict_loops();
  const auto size = static_cast<std::size_t>(size_of(type_));
  MeasuredBlock block;
  for (std::size_t at = 0; at < golden.size(); at += kBlock) {
    const std::size_t count = std::min(golden.size() - at, static_cast<std::size_t>(kBlock));
    loops.measure(type, &candidate[at], &golden[at], static_cast<std::int64_t>(count), &block);
    if (!block.finite) {
      all_finite = false;
      add_one_by_one(bytes + at * size, candidate.subspan(at, count), golden.subspan(at, count));
      continue;
    }
    measures_.elements += static_cast<std::int64_t>(count);
    measures_.finite += static_cast<std::int64_t>(count);
    measures_.max_abs = std::max(measures_.max_abs, block.max_abs);
    measures_.max_ulp = std::max(measures_.max_ulp, block.max_ulp);
    double error2 = error2_, golden2 = golden2_, cross = cross_, both2 = both2_;
    for (std::size_t i = 0; i < count; ++i) {
      error2 += block.error2[i];
      golden2 += block.golden2[i];
      cross += block.cross[i];
      both2 += block.both2[i];
    }
    error2_ = error2, golden2_ = golden2, cross_ = cross, both2_ = both2;
  }
  return all_finite;
}

void Measuring::add_one_by_one(const std::byte* bytes, std::span<const double> candidate,
                               std::span<const double> golden) {
  const auto size = static_cast<std::size_t>(size_of(type_));
  Measures& m = measures_;
  m.elements += static_cast<std::int64_t>(golden.size());
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const double x = candidate[i];
    const double g = golden[i];
    if (!std::isfinite(x) || !std::isfinite(g)) continue;
    ++m.finite;
    m.max_abs = std::max(m.max_abs, std::abs(x - g));
    error2_ += (x - g) * (x - g);
    golden2_ += g * g;
    cross_ += x * g;
    both2_ += x * x + g * g;
    if (x == g)
      continue;  // equal patterns, or zeros of two signs; needed for i64 past 2^53, which a double does not represent
    std::array<std::byte, 8> rounded{};
    store_from_double(type_, g, rounded.data(), Overflow::non_saturating);
    if (std::isfinite(load_as_double(type_, rounded.data()))) {
      m.max_ulp = std::max(m.max_ulp,
                           ulp_distance(type_, pattern_at(bytes + i * size, size), pattern_at(rounded.data(), size)));
    }
  }
}

Measures Measuring::result() const {
  Measures m = measures_;
  if (error2_ > 0) {
    m.rms_relative = golden2_ > 0 ? std::sqrt(error2_ / golden2_) : std::numeric_limits<double>::infinity();
  }
  if (both2_ > 0) m.cosine_difference = 1 - 2 * cross_ / both2_;
  return m;
}

Measures measure(const Tensor& tensor, std::span<const double> candidate, std::span<const double> golden) {
  Measuring measuring(tensor.dtype);
  static_cast<void>(measuring.add(tensor.bytes.data(), candidate, golden));
  return measuring.result();
}

}  // namespace kvscope::golden

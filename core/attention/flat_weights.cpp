#include "core/attention/flat_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace kvscope::attention {
namespace {

constexpr int kMoreBits = 3;
// From the fewest bits to the most: a quarter step of one type is inside that of the type before it.
constexpr std::size_t kByBits[kClumpTypes] = {2, 0, 1};  // e4m3, bf16, f16
constexpr int kFewestBits = kClumpKeptBits[2], kMostBits = kClumpKeptBits[1];

// The largest weight of four neighboring significands of a type with `kept` bits; the highest and the lowest are
// neighbors.
template <class T>
double largest_quarter(std::span<const T> weights, int kept) {
  const int shift = 52 - kept - kMoreBits;
  const std::uint64_t count = std::uint64_t{1} << (kept + kMoreBits);
  const std::uint64_t last = count - 1;  // all bits set
  std::vector<double> weight_of(count);
  for (const T weight : weights) {
    const auto e = static_cast<double>(weight);
    weight_of[std::bit_cast<std::uint64_t>(e) >> shift & last] += e;
  }
  double largest = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double four =
        weight_of[i] + weight_of[(i + 1) & last] + weight_of[(i + 2) & last] + weight_of[(i + 3) & last];
    largest = std::max(largest, four);
  }
  return largest;
}

// Errors of the additions of an f32 sum, for kPlaces places of all addends between two multiples of the sum's unit.
class Additions {
 public:
  explicit Additions(double first) : sum_(first) {}

  void add(double e) {
    sum_ += e;
    if (const int exponent = std::ilogb(sum_); exponent != exponent_) {
      finish();
      exponent_ = exponent;
      to_units_ = std::ldexp(1.0, 23 - exponent);
    }
    constexpr double kToInteger = 0x1.8p52;
    const double place = e * to_units_, twice = 2 * sum_;
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const double moved = place + static_cast<double>(i) / kPlaces;
      errors_[i] += (moved - ((moved + kToInteger) - kToInteger)) * twice;
    }
  }
  // In half units of the sum so far times that sum. The errors at each unit count in the place where they are largest.
  double finish() {
    double largest = 0;
    for (double& error : errors_) {
      largest = std::max(largest, std::fabs(error));
      error = 0;
    }
    return one_direction_ += largest;
  }

 private:
  static constexpr std::size_t kPlaces = 8;
  double sum_, one_direction_ = 0, to_units_ = 0;
  double errors_[kPlaces] = {};
  int exponent_ = std::numeric_limits<int>::min();
};

template <class T>
double additions_in_one_direction(std::span<const T> weights, double sink, double row_sum) {
  double most = 0;
  for (const double factor : {1.0, 0x1.ae89f98p-1, 0x1.6a09e66p-1, 0x1.306fe0ap-1}) {  // 2^(-i / 4)
    for (const bool backwards : {false, true}) {
      Additions additions(sink * factor);
      for (std::size_t t = 0; t < weights.size(); ++t) {
        const auto e = static_cast<double>(weights[backwards ? weights.size() - 1 - t : t]);
        if (e > 0) additions.add(e * factor);
      }
      most = std::max(most, additions.finish() / (row_sum * factor));
    }
  }
  return most;
}

// The bits of a weight that an f32 sum of `keys` equal ones keeps at its end, less one.
int bits_that_stay(std::size_t keys) {
  return std::clamp(22 - static_cast<int>(std::bit_width(keys - 1)), kFewestBits, kMostBits);
}

template <class T>
FlatTerms measured(std::span<const T> weights, const WeightSums& sums, double row_sum) {
  FlatTerms terms;
  const double least = kFlatShare * std::sqrt(sums.squares);
  if (!(least > 0 && least < sums.row_sum && std::isfinite(row_sum))) return terms;  // or sums that are no numbers
  for (const std::size_t type : kByBits) {
    const double share = largest_quarter(weights, kClumpKeptBits[type]);
    if (!(share > least)) break;
    terms.clump[type] = share / row_sum / 2;
  }
  // A quarter step of the fewest bits holds those of more bits.
  if (terms.clump[kByBits[0]] > 0 && largest_quarter(weights, bits_that_stay(weights.size())) > least) {
    terms.additions = additions_in_one_direction(weights, row_sum - sums.row_sum, row_sum);
  }
  return terms;
}

}  // namespace

double larger_sums_of_products(double additions, double keys, double sum, double magnitudes, double squares) {
  if (!(additions > 0)) return 1;
  const double half_unit = keys * 0x1p-24;
  const double variance = keys * squares / (magnitudes * magnitudes) - 1;  // relative to the mean of the products
  const bool one_sign = std::fabs(sum) > (1 - half_unit) * magnitudes;
  return one_sign && variance < half_unit * half_unit ? std::max(1.0, additions * additions / (4 * keys)) : 1;
}

FlatTerms flat_terms(std::span<const double> weights, const WeightSums& sums, double row_sum) {
  return measured(weights, sums, row_sum);
}
FlatTerms flat_terms(std::span<const float> weights, const WeightSums& sums, double row_sum) {
  return measured(weights, sums, row_sum);
}

}  // namespace kvscope::attention

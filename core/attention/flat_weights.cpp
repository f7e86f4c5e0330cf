#include "core/attention/flat_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace kvscope::attention {
namespace {

constexpr int kMoreBits = 3;
// From the fewest bits to the most: a quarter step of one type is inside that of the type before it.
constexpr std::size_t kByBits[kClumpTypes] = {2, 0, 1};  // e4m3, bf16, f16
constexpr int kFewestBits = kClumpKeptBits[2], kMostBits = kClumpKeptBits[1];

// The weights by their significands, of a type with a number of bits.
class Significands {
 public:
  template <class T>
  Significands(std::span<const T> weights, int kept) : weight_of_(std::size_t{1} << (kept + kMoreBits)) {
    constexpr std::size_t kSums = 4;  // taken in turn: an addition to the sum of the weight before would wait for it
    const std::size_t last = weight_of_.size() - 1;  // all bits set
    const int shift = 52 - kept - kMoreBits;
    std::vector<double> sums(kSums * weight_of_.size());
    const auto add = [&](std::size_t t, std::size_t sum) {
      const auto e = static_cast<double>(weights[t]);
      sums[(std::bit_cast<std::uint64_t>(e) >> shift & last) * kSums + sum] += e;
    };
    std::size_t t = 0;
    for (; t + kSums <= weights.size(); t += kSums) add(t, 0), add(t + 1, 1), add(t + 2, 2), add(t + 3, 3);
    for (; t < weights.size(); ++t) add(t, 0);
    for (std::size_t i = 0; i < weight_of_.size(); ++i) {
      const double* const of = &sums[i * kSums];
      weight_of_[i] = (of[0] + of[1]) + (of[2] + of[3]);
    }
  }

  // With two bits less.
  [[nodiscard]] Significands fewer() const {
    std::vector<double> weight_of(weight_of_.size() / 4);
    for (std::size_t i = 0; i < weight_of.size(); ++i) {
      const double* const of = &weight_of_[4 * i];
      weight_of[i] = (of[0] + of[1]) + (of[2] + of[3]);
    }
    return Significands(std::move(weight_of));
  }

  // The largest weight of `Count` neighboring significands; the highest and the lowest are neighbors.
  template <std::size_t Count>
  [[nodiscard]] double largest() const {
    std::vector<double> in_turn = weight_of_;
    in_turn.insert(in_turn.end(), weight_of_.begin(), weight_of_.begin() + Count - 1);
    double most[8] = {};  // one maximum would wait for each comparison
    for (std::size_t i = 0; i < weight_of_.size(); i += 8) {
      for (std::size_t j = 0; j < 8; ++j) {
        double sum = in_turn[i + j];
        for (std::size_t n = 1; n < Count; ++n) sum += in_turn[i + j + n];
        most[j] = sum > most[j] ? sum : most[j];
      }
    }
    return *std::ranges::max_element(most);
  }

 private:
  explicit Significands(std::vector<double> weight_of) : weight_of_(std::move(weight_of)) {}

  std::vector<double> weight_of_;
};

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
  // Significands with two more bits than the fewest: four of them are one with the fewest.
  const Significands some(weights, kFewestBits + 2);
  const double of_fewest = some.fewer().largest<4>(), of_pair = some.largest<2>();
  if (!(of_fewest > least)) return terms;  // a quarter step of more bits is inside one of the fewest
  // The share with `kept` bits, or 0 if it is less than `least`: four neighbors with four more bits than the fewest are
  // inside a pair of `some`, whose weight mostly decides. The sums have different orders, so that last digits differ.
  const auto share = [&](int kept) {
    if (kept == kFewestBits) return of_fewest;
    if (kept >= kFewestBits + 4 && of_pair < least * (1 - 1e-9)) return 0.0;
    return Significands(weights, kept).largest<4>();
  };
  for (const std::size_t type : kByBits) {
    const double of_type = share(kClumpKeptBits[type]);
    if (!(of_type > least)) break;
    terms.clump[type] = of_type / row_sum / 2;
  }
  if (share(bits_that_stay(weights.size())) > least) {
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

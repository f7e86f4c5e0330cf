// Keys with the same softmax weight, such as repeated tokens. Their probabilities round by the same amount, so their
// errors do not cancel: the terms a2 and p2 of the bounds (result.h) count such keys as one. Additions of equal numbers
// round alike too, as long as the sum stays between two powers of two: of x, the sum keeps the same multiple of its
// unit each time. This is derived in docs/04_attention_and_golden.md, "Equal weights", and changes two terms.
//
// repeats, of the row sum: a group g of equal weights has an error of at most e c_g, where c_g is the sum, over its
// keys, of the row sum so far divided by the whole one. Errors of different groups are independent. The term is the
// smallest value of c_1 + ... + c_m + 4 sqrt(c_{m+1}^2 + ...), largest groups first: the m largest groups are allowed
// in full, the others 8 standard deviations of e c_g / 2.
//
// running, of the sum of p v: n_h additions of equal products count as n_h^2 instead of n_h. The mean square of the
// sum so far is multiplied by (sum of n_h^2) / keys, but by at most keys / 9, which allows every addition in full.
//
// Example: 48 tokens, each 341 times, with equal weights: c_g = 341 / 2 and repeats = 4 sqrt(48) 170.5 = 4725.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvscope::attention {

class EqualWeights {
 public:
  // Whether at least one in 64 of the keys, or of their squared weights, has the weight of an earlier key. Weights of 0
  // are not counted.
  [[nodiscard]] bool many(std::span<const double> weights);
  [[nodiscard]] bool many(std::span<const float> weights);

  // Indices of the keys with a weight above 0, ordered by weight and then by key.
  [[nodiscard]] static std::vector<std::size_t> sorted(std::span<const double> weights);
  [[nodiscard]] static std::vector<std::size_t> sorted(std::span<const float> weights);

  // `repeats`, times the row sum. `order` is sorted(weights). c_g is the larger of the two values for a sum from the
  // first key on and from the last key on.
  [[nodiscard]] static double systematic_additions(std::span<const double> weights, std::span<const std::size_t> order);
  [[nodiscard]] static double systematic_additions(std::span<const float> weights, std::span<const std::size_t> order);

  // A pseudo-random other member of a group of `size` >= 2 members. How often the two have equal values estimates how
  // many of all pairs do.
  [[nodiscard]] static std::size_t partner(std::size_t member, std::size_t size) {
    const std::uint64_t mixed = (member + 1) * 0x9E3779B97F4A7C15u;
    return (member + 1 + (mixed >> 32) % (size - 1)) % size;
  }

  // The factor of the mean square of the sum so far. `mean_group`: (sum of n_h^2) / keys.
  [[nodiscard]] static double larger_sums(double mean_group, double keys) {
    const double most = keys > 9 ? keys / 9 : 1;
    return mean_group < most ? mean_group : most;
  }

 private:
  template <class T>
  bool many_of(std::span<const T> weights);
  template <class T>
  bool may_be_many(std::span<const T> weights);

  std::vector<std::uint64_t> seen_;    // hash table of bit patterns; 0 is an empty place
  std::vector<std::uint64_t> places_;  // one bit for each place of a larger table, which shows collisions
};

}  // namespace kvscope::attention

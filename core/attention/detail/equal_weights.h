// Keys with the same softmax weight, such as repeated tokens: their probabilities round by the same amount, so their
// errors do not cancel. The terms a2 and p2 of the bounds (result.h) count such keys as one.
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

 private:
  template <class T>
  bool many_of(std::span<const T> weights);

  std::vector<std::uint64_t> seen_;  // hash table of bit patterns; 0 is an empty place
};

}  // namespace kvscope::attention

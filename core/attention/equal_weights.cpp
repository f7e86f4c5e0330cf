#include "core/attention/equal_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace kvscope::attention {
namespace {

// The place of a positive number in a hash table of 2^(64 - shift) places.
std::size_t place_of(double weight, int shift) {
  return std::bit_cast<std::uint64_t>(weight) * 0x9E3779B97F4A7C15u >> shift;
}
std::size_t table_size(std::size_t weights) {
  return std::bit_ceil(2 * weights + 2);
}

// The distinct weights are sorted, and each key is put among the keys of its weight: with many equal weights, ten times
// as fast as a comparison of keys.
template <class T>
std::vector<std::size_t> sorted_of(std::span<const T> weights) {
  struct Group {
    T weight;
    std::size_t keys, number;
  };
  const std::size_t places = table_size(weights.size());
  const int shift = 64 - std::countr_zero(places);
  std::vector<std::size_t> number_at(places), number_of(weights.size());  // of a group, from 1
  std::vector<Group> groups;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const T weight = weights[t];
    if (!(weight > 0)) continue;
    std::size_t place = place_of(static_cast<double>(weight), shift);
    while (number_at[place] != 0 && groups[number_at[place] - 1].weight != weight) place = (place + 1) & (places - 1);
    if (number_at[place] == 0) {
      groups.push_back({weight, 0, groups.size() + 1});
      number_at[place] = groups.size();
    }
    number_of[t] = number_at[place];
    ++groups[number_of[t] - 1].keys;
  }
  std::ranges::sort(groups, {}, &Group::weight);
  std::vector<std::size_t> next(groups.size() + 1);  // place of the next key of each group
  std::size_t keys = 0;
  for (const Group& group : groups) {
    next[group.number] = keys;
    keys += group.keys;
  }
  std::vector<std::size_t> order(keys);
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (number_of[t] != 0) order[next[number_of[t]]++] = t;
  }
  return order;
}

template <class T>
double systematic_additions_of(std::span<const T> weights, std::span<const std::size_t> order) {
  std::vector<double> sums(weights.size());  // up to and with each key
  double total = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) sums[t] = total += static_cast<double>(weights[t]);
  std::vector<double> groups;
  for (std::size_t i = 0; i < order.size();) {
    const auto weight = static_cast<double>(weights[order[i]]);
    const std::size_t first = i;
    double forwards = 0, backwards = 0;
    for (; i < order.size() && static_cast<double>(weights[order[i]]) == weight; ++i) {
      forwards += sums[order[i]];
      backwards += total - sums[order[i]] + weight;
    }
    if (i - first > 1) groups.push_back(std::max(forwards, backwards));
  }
  std::ranges::sort(groups, std::greater<>());
  double squares = 0;  // of the groups after the first m
  for (const double c : groups) squares += c * c;
  double in_full = 0, smallest = 4 * std::sqrt(squares);
  for (const double c : groups) {
    in_full += c;
    squares -= c * c;
    smallest = std::min(smallest, in_full + 4 * std::sqrt(std::max(squares, 0.0)));
  }
  return smallest;
}

// What many() counts: keys with the weight of an earlier key.
class Equal {
 public:
  void add(double e, bool equal) {
    squares_ += e * e;
    keys_equal_ += equal ? 1 : 0;
    squares_equal_ += equal ? e * e : 0;
  }
  [[nodiscard]] bool many(std::size_t keys) const {
    constexpr double kShare = 1.0 / 64;
    return keys_equal_ > 0 &&
           (keys_equal_ >= kShare * static_cast<double>(keys) || squares_equal_ >= kShare * squares_);
  }

 private:
  double keys_equal_ = 0, squares_equal_ = 0, squares_ = 0;
};

}  // namespace

// Counts weights that fall on the place of an earlier one, in 64 places for each key: at least those that are equal,
// and few others. Mostly they are too few, and the places of all keys stay in the first-level cache.
template <class T>
bool EqualWeights::may_be_many(std::span<const T> weights) {
  const std::size_t places = 64 * std::bit_ceil(std::max<std::size_t>(weights.size(), 1));
  const int shift = 64 - std::countr_zero(places);
  places_.assign(places / 64, 0);
  Equal equal;
  for (const T weight : weights) {
    const double e = weight > 0 ? static_cast<double>(weight) : 0;
    const std::size_t place = place_of(e, shift);
    std::uint64_t& word = places_[place / 64];
    const std::uint64_t bit = std::uint64_t{1} << place % 64;
    equal.add(e, e > 0 && (word & bit) != 0);
    word |= bit;
  }
  return equal.many(weights.size());
}

template <class T>
bool EqualWeights::many_of(std::span<const T> weights) {
  if (!may_be_many(weights)) return false;
  const std::size_t places = table_size(weights.size());
  const int shift = 64 - std::countr_zero(places);
  seen_.assign(places, 0);
  Equal equal;
  for (const T weight : weights) {
    const auto e = static_cast<double>(weight);
    if (!(e > 0)) continue;
    const auto bits = std::bit_cast<std::uint64_t>(e);
    std::size_t place = place_of(e, shift);
    while (seen_[place] != 0 && seen_[place] != bits) place = (place + 1) & (places - 1);
    equal.add(e, seen_[place] == bits);
    seen_[place] = bits;
  }
  return equal.many(weights.size());
}

bool EqualWeights::many(std::span<const double> weights) {
  return many_of(weights);
}
bool EqualWeights::many(std::span<const float> weights) {
  return many_of(weights);
}

std::vector<std::size_t> EqualWeights::sorted(std::span<const double> weights) {
  return sorted_of(weights);
}
std::vector<std::size_t> EqualWeights::sorted(std::span<const float> weights) {
  return sorted_of(weights);
}

double EqualWeights::systematic_additions(std::span<const double> weights, std::span<const std::size_t> order) {
  return systematic_additions_of(weights, order);
}
double EqualWeights::systematic_additions(std::span<const float> weights, std::span<const std::size_t> order) {
  return systematic_additions_of(weights, order);
}

}  // namespace kvscope::attention

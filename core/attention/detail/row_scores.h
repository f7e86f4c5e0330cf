// A row's dot products as scores: scale, soft cap, ALiBi, biases. In double, as steps 1 and 2 of reference.h say.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/attention/detail/reference_kernels.h"
#include "core/attention/problem.h"
#include "core/base/portable_math.h"

namespace kvscope::attention {

// Which row it is.
struct RowPlace {
  std::int64_t sequence = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;      // of the sequence
  std::int64_t position = 0;   // of the query among the keys (mask.h)
  std::int64_t first_key = 0;  // the first visible one, which the row starts with
};

// T: type of the dot products, float of the fast path, double of the reference.
template <class T>
class RowScores {
 public:
  RowScores(const Problem& problem, const ReferenceKernels& kernels) : p_(problem), kernels_(kernels) {}

  // The scores of the keys that no bias hides, at the front: in place of doubles, otherwise in a buffer that the next
  // call uses again.
  std::span<double> finish(std::span<T> dots, const RowPlace& row) {
    const std::span<double> s = scaled(dots);
    if (p_.options.soft_cap) {
      const double cap = *p_.options.soft_cap;
      for (double& x : s) x = cap * portable_tanh(x / cap);
    }
    if (!p_.options.alibi_slopes.empty()) {
      const double slope = p_.options.alibi_slopes.data()[row.head];
      for (std::size_t t = 0; t < s.size(); ++t) {
        s[t] += slope * static_cast<double>(row.first_key + static_cast<std::int64_t>(t) - row.position);
      }
    }
    return p_.options.bias.empty() ? s : add_biases(s, row);
  }

  // Moves the weights at the front to the places of their keys; the weights of hidden keys are 0.
  void spread(std::span<T> weights) const {
    for (std::size_t t = weights.size(), left = shown_.size(); t-- > 0;) {
      weights[t] = left > 0 && shown_[left - 1] == t ? weights[--left] : T{0};
    }
  }

 private:
  std::span<double> scaled(std::span<T> dots) {
    if constexpr (std::is_same_v<T, float>) {
      scores_.resize(dots.size());
      kernels_.fast.scale(dots.data(), static_cast<std::int64_t>(dots.size()), p_.options.scale, scores_.data());
      return scores_;
    } else {
      for (double& x : dots) x *= p_.options.scale;
      return dots;
    }
  }

  // Moves the scores of the keys that are not hidden to the front, so that a hidden key counts in no term of the bound.
  std::span<double> add_biases(std::span<double> s, const RowPlace& row) {
    shown_.clear();
    for (std::size_t t = 0; t < s.size(); ++t) {
      const double bias =
          p_.options.bias.at(row.sequence, row.head, row.query, row.first_key + static_cast<std::int64_t>(t));
      if (std::isinf(bias) && bias < 0) continue;
      s[shown_.size()] = s[t] + bias;
      shown_.push_back(t);
    }
    return s.first(shown_.size());
  }

  const Problem& p_;
  const ReferenceKernels& kernels_;
  std::vector<double> scores_;      // [visible key] of one row; fast path only
  std::vector<std::size_t> shown_;  // places of the keys of one row that its biases do not hide
};

}  // namespace kvscope::attention

// The rows of V of keys with equal weights, for the terms of the error bound that count such keys as one
// (equal_weights.h). The rows of a small group of equal weights are decoded once, although each is read twice: as a key
// and as the partner of another key. They stay in the caches. Rejected: decoding all rows of a KV head for all queries
// and heads that read them; the decoded rows are many times as large as the stored ones, and took longer to read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/attention/detail/reference_kernels.h"
#include "core/attention/detail/row_reader.h"
#include "core/attention/equal_weights.h"

namespace kvscope::attention {

template <class T>
class JoinedRows {
 public:
  // `padded`: elements that a row is padded to with zeros.
  JoinedRows(const RowReader& rows, const ReferenceKernels& kernels, std::int64_t padded)
      : rows_(rows), kernels_(kernels), stride_(static_cast<std::size_t>(padded)) {}

  // The rows of V of one KV head. `run` must outlive the calls of join().
  void read(const RowRun& run) {
    run_ = &run;
    decoded_.resize(kSmallGroup * stride_);
  }

  // What keys with equal weights change, not yet divided by the row sum. // [padded]
  struct Terms {
    std::vector<double> squares;      // sum over distinct weights of (sum of e v)^2
    std::vector<double> larger_sums;  // factor of the mean square of the sum so far
    double weights = 0;               // sqrt(sum over distinct weights of (sum of e)^2)
    double additions = 0;             // `repeats`
  };

  // Of the weights `e` of keys whose rows of V start at row `first` of the run. `keys`: the keys of the row, without
  // hidden ones.
  const Terms& join(std::span<const T> e, std::size_t first, double keys) {
    const std::vector<std::size_t> order = EqualWeights::sorted(e);
    terms_.squares.assign(stride_, 0);
    together_.assign(stride_, 0);
    pairs_.assign(stride_, 0);
    double squares = 0;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && e[order[end]] == e[order[begin]]) ++end;
      const std::span<const std::size_t> same = std::span(order).subspan(begin, end - begin);
      const auto weight = static_cast<double>(e[order[begin]]);
      double weights = 0;
      for (std::size_t i = 0; i < same.size(); ++i) weights += weight;
      squares += weights * weights;
      join_keys(weight, same, first);
      kernels_.exact.end_group(static_cast<std::int64_t>(stride_), together_.data(), terms_.squares.data());
    }
    terms_.weights = std::sqrt(squares);
    terms_.additions = EqualWeights::systematic_additions(e, order);
    terms_.larger_sums.resize(stride_);
    for (std::size_t d = 0; d < stride_; ++d) {
      terms_.larger_sums[d] = EqualWeights::larger_sums(1 + pairs_[d] / keys, keys);
    }
    return terms_;
  }

 private:
  static constexpr std::size_t kSmallGroup = 64;  // rows that are kept decoded

  // The keys of one weight, each with its partner.
  void join_keys(double weight, std::span<const std::size_t> keys, std::size_t first) {
    const std::size_t size = keys.size();
    const auto others = static_cast<double>(size - 1);
    const auto decode = [&](std::size_t key, std::size_t place) {
      T* const row = decoded_.data() + place * stride_;
      rows_.decode_row(*run_, first + keys[key], row);
      return static_cast<const T*>(row);
    };
    if (size > kSmallGroup) {
      for (std::size_t i = 0; i < size; ++i) {
        const T* const value = decode(i, 0);
        const T* const partner = decode(EqualWeights::partner(i, size), 1);
        add(weight, &value, &partner, 1, others);
      }
      return;
    }
    values_.clear();
    partners_.clear();
    for (std::size_t i = 0; i < size; ++i) values_.push_back(decode(i, i));
    for (std::size_t i = 0; size > 1 && i < size; ++i) partners_.push_back(values_[EqualWeights::partner(i, size)]);
    add(weight, values_.data(), size > 1 ? partners_.data() : nullptr, size, others);
  }

  void add(double weight, const T* const* values, const T* const* partners, std::size_t count, double others) {
    const auto join = [&] {
      if constexpr (std::is_same_v<T, float>) {
        return kernels_.fast.join;
      } else {
        return kernels_.exact.join;
      }
    }();
    join(weight, values, partners, static_cast<std::int64_t>(count), others, static_cast<std::int64_t>(stride_),
         together_.data(), pairs_.data());
  }

  const RowReader& rows_;
  const ReferenceKernels& kernels_;
  std::size_t stride_;  // [elements]
  const RowRun* run_ = nullptr;
  std::vector<T> decoded_;  // [row of a small group, padded]
  std::vector<const T*> values_, partners_;
  std::vector<double> together_, pairs_;  // [padded]
  Terms terms_;
};

}  // namespace kvscope::attention

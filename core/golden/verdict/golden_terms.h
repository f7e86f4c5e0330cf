// The terms of the error bound (attention/bounds.h) in a golden bundle, by row and by element.
//
// Bundles written before the bound had the terms `running`, `key_counts`, `p2`, `repeats`, `clump` and `faint` are
// read with the largest values that these can have, so that their bound is looser; complete() is then false. Without
// `lost`, all errors of P below its normal range are allowed in one direction. Without `partial_sums`, every partial
// sum of a row sum is as large as the whole one, and every one of a score as large as 1 + smax. Without `row_sum_cut`,
// matrix instructions cut as much from a row sum as from o, and without `largest_value`, faint keys may have all of a1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/bounds.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

class GoldenTerms {
 public:
  // `golden` has o, a1, a2 and smax (compare.h checks them) and must outlive this object.
  explicit GoldenTerms(const Bundle& golden);

  [[nodiscard]] std::int64_t dims() const { return dims_; }
  [[nodiscard]] std::size_t rows() const { return smax_.size(); }
  [[nodiscard]] bool complete() const { return !running_.empty(); }
  // Whether the fast path computed the golden; the bound then includes the golden's own error.
  [[nodiscard]] bool fast() const { return !golden_error_.empty(); }
  // 1 if one key has all the weight that the row's keys have, 1 / sqrt(n) for n keys of equal weight. Without sinks, it
  // is p2. With a sink, the keys' weights add up to an unknown sum below 1, so it is that of the terms p v: the norm of
  // a2 over the norm of a1. Example: one key, and a sink with 0.8 of the weight: p2 = 0.2, and 1 is returned.
  [[nodiscard]] double concentration(std::size_t row) const;
  // `row` counts [query, head]; `element` counts [query, head, dim].
  [[nodiscard]] attention::RowTerms row(std::size_t row) const;
  [[nodiscard]] attention::ElementTerms element(std::size_t element) const;
  [[nodiscard]] attention::ElementRow elements(std::size_t first, std::int64_t count) const;

 private:
  std::int64_t dims_ = 0, heads_ = 0;
  double head_size_ = 1;
  bool base_two_ = false, sinks_ = false;
  std::span<const double> o_, a1_, a2_, smax_, lse_, running_, key_counts_, p2_, repeats_, clump_, faint_, lost_,
      partial_sums_, row_sum_cut_, largest_value_, golden_error_;
  std::vector<double> lengths_;  // [query]: keys of the query's sequence, for a bundle without key_counts
};

// The shape of the optional terms for a golden output of shape [query, head, dim]: {"running", [query, head, dim]}, ...
struct TermShape {
  const char* name;
  std::vector<std::int64_t> shape;
};
[[nodiscard]] std::vector<TermShape> optional_terms(const std::vector<std::int64_t>& output_shape);

}  // namespace kvscope::golden

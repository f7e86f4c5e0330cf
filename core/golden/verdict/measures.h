// The difference between two tensors, in the five numbers of every report.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

// Over the elements that are finite on both sides.
//   max_abs            max |x - g|
//   max_ulp            steps between x and g rounded to x's type: 1 for adjacent numbers, 0 between +0 and -0
//   rms_relative       sqrt(sum (x - g)^2 / sum g^2); 0 when x equals g everywhere, inf when only g is all zero
//   cosine_difference  1 - 2 sum(x g) / sum(x^2 + g^2); 0 when both are all zero
// Example: x = {1, 2}, g = {1, 1} in f32: max_abs 1, max_ulp 2^23, rms_relative 0.707107, cosine_difference 1/7.
struct Measures {
  std::int64_t elements = 0;
  std::int64_t finite = 0;  // number of pairs that the other numbers are computed from
  double max_abs = 0;
  std::uint64_t max_ulp = 0;
  double rms_relative = 0;
  double cosine_difference = 0;
};

// Steps of `dtype` (any but e2m1) between two of its patterns, both finite.
// Example: bf16 0x3f80 (1.0) and 0x3f82 -> 2; f32 -0 and the smallest positive number -> 1.
[[nodiscard]] std::uint64_t ulp_distance(DType dtype, std::uint64_t a, std::uint64_t b);

// The measures of a tensor that is compared piece by piece, in the order of its elements. Their values do not depend on
// where the pieces end.
class Measuring {
 public:
  explicit Measuring(DType type);
  // `candidate` and `golden` hold the next values, and `bytes` those of `candidate` in its type. True when all of them
  // are finite, and the golden's remain finite when rounded to the type; false for types that outputs do not have.
  bool add(const std::byte* bytes, std::span<const double> candidate, std::span<const double> golden);
  [[nodiscard]] Measures result() const;

 private:
  void add_one_by_one(const std::byte* bytes, std::span<const double> candidate, std::span<const double> golden);

  DType type_;
  Measures measures_;
  double error2_ = 0, golden2_ = 0, cross_ = 0, both2_ = 0;
};

// `candidate` and `golden` hold the values of `tensor` and the expected ones; sums run in the order of the elements.
[[nodiscard]] Measures measure(const Tensor& tensor, std::span<const double> candidate, std::span<const double> golden);

// The tensor's elements as doubles; integers too.
[[nodiscard]] std::vector<double> as_doubles(const Tensor& tensor);

// g as the nearest number of `dtype`, which may be an infinity.
[[nodiscard]] double rounded_to(DType dtype, double g);

}  // namespace kvscope::golden

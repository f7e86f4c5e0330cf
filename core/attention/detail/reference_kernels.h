// The inner loops of the reference, once per instruction set. All perform the same IEEE operations in the same
// order, lane by lane, so the bits are equal; only the number of lanes of one instruction differs.
// Held by tests/core/attention/reference_bits_test.cpp.
//
// A fused multiply-add is used only where the product is exact in double, so that it has the bits of a multiplication
// and an addition: products with 1 or -1, and of two numbers whose significands have at most 53 bits together, as
// those of f32 (24 and 24 bits) and all narrower floats.
//
// Rejected: one source with -march=native (the compiler may then fuse a multiply and an add, or split a sum
// differently), and function clones chosen by the loader (sanitizers start before the loader can choose).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/attention/weight_sums.h"

namespace kvscope::attention {

// Dot products are eight interleaved sums, so rows of K and Q are padded with zeros to a multiple of eight doubles.
inline constexpr std::int64_t kLanes = 8;
inline constexpr std::int64_t kFastLanes = 16;  // of floats

// Most keys of one call of the fast path's accumulate(): floats are added this many times before a double takes them.
inline constexpr std::int64_t kFastKeys = 64;

// Rows that the next call will decode: their cache lines are prefetched while this call computes. A row of one head is
// a few hundred bytes, which the hardware prefetcher does not predict.
struct Ahead {
  const std::byte* const* rows = nullptr;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // [bytes] of each row
};

struct ScoreScan {
  double largest = 0, smallest = 0;  // -infinity and infinity without a number
  double magnitude = 0;              // of all numbers
  bool all_numbers = true;
};

// What depends on the type T that rows are decoded to: double, or float for the fast path (fast.h).
template <class T>
struct RowKernels {
  // Elements of one row as T, exactly. `source` need not be aligned.
  void (*widen_f32)(const std::byte* source, std::int64_t count, T* target);
  void (*widen_f16)(const std::byte* source, std::int64_t count, T* target);
  void (*widen_bf16)(const std::byte* source, std::int64_t count, T* target);

  // scores[r * score_stride + t] = dot(q[r], k[t]) for `rows` rows of q and `keys` rows of k, each `padded` long.
  using Dots = void(const T* q, std::int64_t rows, const T* k, std::int64_t keys, std::int64_t padded, double* scores,
                    std::int64_t score_stride, const Ahead& ahead);
  Dots* dots;

  // Key by key, for `rows` rows of weights e and every dim of v: x = e * v, then
  //   sums[r][0][dim] += x      sums[r][1][dim] += |x|      sums[r][2][dim] += x * x
  // v is [key, v_stride]; v_stride >= padded, both in elements.
  void (*accumulate)(const double* weights, std::int64_t weight_stride, std::int64_t rows, const T* v,
                     std::int64_t v_stride, std::int64_t keys, std::int64_t padded, double* sums, const Ahead& ahead);
};

struct ReferenceKernels {
  RowKernels<double> exact;
  RowKernels<double>::Dots* dots_of_exact_products;  // the same bits, sooner, where each product of q and k is exact

  // The extremes of `count` scores. NaN is no extreme.
  void (*scan)(const double* scores, std::int64_t count, ScoreScan* result);

  // The sums over `count` weights e: their own, in the order of reference.h, and those of the error bound, which are
  // added in eight lanes too.
  void (*weigh)(const double* e, std::int64_t count, WeightSums* sums);

  RowKernels<float> fast;  // sums of float in sixteen lanes; fast.h has the error
  // The largest sum of squares of `count` rows, each `padded` long.
  double (*largest_square)(const float* rows, std::int64_t count, std::int64_t padded);
};

namespace baseline {
[[nodiscard]] const ReferenceKernels* reference_kernels();
}
#if defined(__x86_64__)
namespace avx2 {
[[nodiscard]] const ReferenceKernels* reference_kernels();
}
namespace avx512 {
[[nodiscard]] const ReferenceKernels* reference_kernels();
}
#endif

// Declared in reference.h.
enum class InstructionSet : std::uint8_t;
// Null when this build, or this processor, does not have the instructions.
[[nodiscard]] const ReferenceKernels* reference_kernels(InstructionSet set);
// Those of the widest instructions of this machine.
[[nodiscard]] const ReferenceKernels& widest_kernels();

}  // namespace kvscope::attention

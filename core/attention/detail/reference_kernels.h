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
// The fast path has sixteen sums of floats, and reads 32 elements of a row at a time.
inline constexpr std::int64_t kFastLanes = 16;
inline constexpr std::int64_t kFastStep = 32;

// Most keys of one block of the fast path's accumulate(): floats are added this many times before a double takes them.
inline constexpr std::int64_t kFastKeys = 64;

// Rows that a later call will read: their cache lines are prefetched while this call computes. A row of one head is a
// few hundred bytes, which the hardware prefetcher does not predict. Those that fit are fetched to the first-level
// cache: the few places for lines on their way to it would otherwise be shared by reads from the second one and by
// prefetches from memory.
struct Ahead {
  const std::byte* const* rows = nullptr;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // [bytes] of each row
};

// The largest of many floats that are not negative, in lanes: loops keep each lane over many calls, because the largest
// lane takes long to find. Without a sign, the bits of floats have the order of the floats, and those of infinities and
// NaNs come last.
struct LargestLanes {
  alignas(64) std::int32_t bits[16] = {};

  void raise(float x);                 // Precondition: no sign
  [[nodiscard]] double value() const;  // infinity for NaN too
};

struct ScoreScan {
  double largest = 0, smallest = 0;  // -infinity and infinity without a number
  double magnitude = 0;              // of all numbers
  bool all_numbers = true;
};

// The loops of the reference over rows of one element type, each `padded` elements long, which is a multiple of kLanes.
struct ExactRowKernels {
  // scores[r * score_stride + t] = dot(q[r], k[t]) for `rows` rows of q and `keys` rows of k.
  using Dots = void(const double* q, std::int64_t rows, const std::byte* const* k, std::int64_t keys,
                    std::int64_t padded, double* scores, std::int64_t score_stride, const Ahead& ahead);
  Dots* dots;
  Dots* dots_of_exact_products;  // the same bits, sooner, where each product of q and k is exact

  // Key by key, for `rows` rows of weights e and every dim of v: x = e * v, then
  //   sums[r][0][dim] += x      sums[r][1][dim] += |x|      sums[r][2][dim] += x * x
  using Accumulate = void(const double* weights, std::int64_t weight_stride, std::int64_t rows,
                          const std::byte* const* v, std::int64_t keys, std::int64_t padded, double* sums,
                          const Ahead& ahead);
  Accumulate* accumulate;
  // The first of these sums alone, with the same bits: sums[r][dim] += x
  Accumulate* accumulate_output;

  // The larger of `largest` and the |x| of `keys` rows; infinity if an element is not finite.
  double (*larger)(double largest, const std::byte* const* v, std::int64_t keys, std::int64_t padded);
};

// The loops of the reference.
struct ExactKernels {
  // Elements of one row as doubles, exactly. `source` need not be aligned.
  using Widen = void(const std::byte* source, std::int64_t count, double* target);
  Widen* widen_f32;
  Widen* widen_f16;
  Widen* widen_bf16;

  ExactRowKernels f64, f32, bf16;  // by the type of the rows; null functions of f32 and bf16: decode the rows first

  // The extremes of `count` scores. NaN is no extreme.
  void (*scan)(const double* scores, std::int64_t count, ScoreScan* result);

  // The sums over `count` weights e: their own, in the order of reference.h, and those of the error bound, which are
  // added in eight lanes too.
  void (*weigh)(const double* e, std::int64_t count, WeightSums* sums);
  // Their own sum alone, with the same bits.
  double (*row_sum)(const double* e, std::int64_t count);

  // The sums of partial_sums.h over `count` weights, which add up to `row_sum` with the sink's weight.
  void (*partial)(const double* e, std::int64_t count, double sink, double row_sum, PartialRowSums* sums);

  // What a tile of `count` weights adds to the phases if they are taken relative to `maximum` (rising_clump.h):
  //   phases[type][move] = sum over e of e * (phase of e / maximum - phase of e), in eight lanes
  void (*raise)(const double* e, std::int64_t count, double maximum, double (*phases)[kPhaseMoves]);

  // The weighted sum of the values of keys with equal weights (equal_weights.h): for `count` keys of weight e
  //   together[dim] += e * values[i][dim]
  // and, unless `partners` is null, pairs[dim] += others where values[i][dim] == partners[i][dim] and is not 0.
  void (*join)(double e, const double* const* values, const double* const* partners, std::int64_t count, double others,
               std::int64_t padded, double* together, double* pairs);
  // At the end of such a group: squares[dim] += together[dim]^2, then together[dim] = 0.
  void (*end_group)(std::int64_t padded, double* together, double* squares);

  // target[i] = values[i] / divisor, and sqrt(values[i] / count_of_sums) / divisor. A NaN is the positive quiet NaN.
  void (*divide)(const double* values, std::int64_t count, double divisor, double* target);
  void (*divide_roots)(const double* values, std::int64_t count, double count_of_sums, double divisor, double* target);
};

// Sums over a block of at most kFastKeys keys, which several calls of accumulate() make, of floats. The first call
// starts them, the last one adds them to those in double, and then
//   running[r][dim] += sums[r][0][dim]^2
struct BlockSums {
  double* sums = nullptr;           // [row, 3, padded]; of accumulate_output(): [row, padded]
  double* running = nullptr;        // [row, padded]; not used by accumulate_output()
  float* parts = nullptr;           // as sums: of the block so far, in an order of the loops
  LargestLanes* largest = nullptr;  // raised to the largest |v|, unless it is null: V is read once for both
  bool first = true;                // whether the call is the block's first, and its last
  bool last = true;
};

// The loops of the fast path (fast.h) over rows of one element type, each `padded` elements long, which is a multiple
// of kFastStep. Elements become floats in registers.
struct FastRowKernels {
  // The rows of q of one KV head in the order in which dots() reads elements.
  void (*arrange)(const float* q, std::int64_t rows, std::int64_t padded, float* target);

  // scores[r * score_stride + t] = dot(q[r], k[t]); the rows of q are arranged. Raises `largest_square` to the largest
  // sum of squares of a row of k, unless it is null: K is read once for both.
  void (*dots)(const float* q, std::int64_t rows, const std::byte* const* k, std::int64_t keys, std::int64_t padded,
               float* scores, std::int64_t score_stride, LargestLanes* largest_square, const Ahead& ahead);

  // The largest sum of squares of `keys` rows.
  float (*largest_square)(const std::byte* const* k, std::int64_t keys, std::int64_t padded);

  // As of ExactRowKernels, into sums that `to` describes.
  using Accumulate = void(const float* weights, std::int64_t weight_stride, std::int64_t rows,
                          const std::byte* const* v, std::int64_t keys, std::int64_t padded, const BlockSums& to,
                          const Ahead& ahead);
  Accumulate* accumulate;
  Accumulate* accumulate_output;

  // As of ExactRowKernels.
  double (*larger)(double largest, const std::byte* const* v, std::int64_t keys, std::int64_t padded);

  // Elements of one row as floats, exactly.
  void (*widen)(const std::byte* source, std::int64_t count, float* target);
};

struct FastKernels {
  FastRowKernels f32, bf16, f16, e4m3, e5m2;  // by the type of the rows

  // scores[t] = dots[t] * scale
  void (*scale)(const float* dots, std::int64_t count, double scale, double* scores);

  // e[t] = exp(scores[t] - largest) to 3 units of 2^-24 for differences in [-87, 0], and the sums over e. The row sum
  // and the sum of squares are added in double.
  void (*weigh)(const double* scores, std::int64_t count, double largest, float* e, WeightSums* sums);
  // The same weights, and the row sum alone, with the same bits.
  double (*exponentiate)(const double* scores, std::int64_t count, double largest, float* e);

  // As of ExactKernels, with the same bits for weights that are floats.
  void (*partial)(const float* e, std::int64_t count, double sink, double row_sum, PartialRowSums* sums);
  void (*raise)(const float* e, std::int64_t count, double maximum, double (*phases)[kPhaseMoves]);

  // As of ExactKernels.
  void (*join)(double e, const float* const* values, const float* const* partners, std::int64_t count, double others,
               std::int64_t padded, double* together, double* pairs);
};

struct ReferenceKernels {
  ExactKernels exact;
  FastKernels fast;
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
// UnsupportedError when there are none.
[[nodiscard]] const ReferenceKernels& available_kernels(InstructionSet set);
// Those of the widest instructions of this machine.
[[nodiscard]] const ReferenceKernels& widest_kernels();

}  // namespace kvscope::attention

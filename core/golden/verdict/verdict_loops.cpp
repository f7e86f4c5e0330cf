// Compiled once per instruction set (CMakeLists.txt).
#include "core/golden/verdict/detail/verdict_loops.h"
#include "core/attention/step_lanes.h"
#include "core/base/lanes.h"

namespace kvscope::golden::KVSCOPE_ISA {
namespace {

template <int W>
struct Elements {
  using L = Lanes<W>;
  using Vec = typename L::Vec;
  using Bits = typename L::Bits;

  static Bits past(Vec x, double most) { return Bits(!(x <= Vec{} + most)); }

  // |x| rounded to `type`, ties to even; past type.largest, or not a number, where the type has none. Adding
  // 2^53 half steps leaves the bits that the type keeps.
  static Vec rounded(const NumberType& type, Vec magnitude, Vec half_step) {
    if (type.dropped_bits == 0) return magnitude;
    const Vec shift = half_step * 0x1p53;
    return (magnitude + shift) - shift;
  }

  // The pattern of a number of `type` without its sign: steps from zero.
  static Bits pattern(const NumberType& type, Vec magnitude) {
    const Bits bits = L::bits(magnitude);
    if (type.dropped_bits == 0) return bits;
    const Bits normal = (bits >> type.dropped_bits) - type.offset;
    const Bits subnormal = L::bits(magnitude * type.per_smallest + 0x1p52) & 0xfffffffffffffll;
    return magnitude < Vec{} + type.step.smallest ? subnormal : normal;
  }

  struct Measured {
    Bits infinite{};
    Vec max_abs{};
    Bits max_ulp{};
  };

  static void measure(const NumberType& type, const double* candidate, const double* golden, std::int64_t at,
                      MeasuredBlock* block, Measured& so_far) {
    const Vec x = L::load(candidate + at), g = L::load(golden + at);
    const Vec x_size = L::magnitude(x), g_size = L::magnitude(g);
    const Vec rounded_size = rounded(type, g_size, attention::half_step_at<W>(type.step, g));
    so_far.infinite |= past(x_size, __DBL_MAX__) | past(rounded_size, type.largest);
    const Vec error = x - g;
    so_far.max_abs = L::larger(so_far.max_abs, L::magnitude(error));
    L::store(block->error2 + at, error * error);
    L::store(block->golden2 + at, g * g);
    L::store(block->cross + at, x * g);
    L::store(block->both2 + at, x * x + g * g);
    const Bits a = pattern(type, x_size), b = pattern(type, rounded_size);
    const Bits between = a < b ? b - a : a - b;
    // Of f64 with two signs, the sum may need 64 bits: the largest is found as the unsigned number.
    const Bits sum = (Bits)((typename L::UnsignedBits)a + (typename L::UnsignedBits)b);
    const Bits steps = (L::bits(x) ^ L::bits(g)) < 0 ? sum : between;
    constexpr long long kTop = -0x7fffffffffffffffll - 1;
    so_far.max_ulp = (so_far.max_ulp ^ kTop) < (steps ^ kTop) ? steps : so_far.max_ulp;
  }

  static Bits weigh(const NumberType& type, double per_deviations2, const double* candidate, const double* golden,
                    const double* systematic, const double* variance, std::int64_t at, EvidenceBlock* block) {
    const Vec x = L::load(candidate + at), g = L::load(golden + at), v = L::load(variance + at),
              common = L::load(systematic + at), none{};
    const Vec size = L::magnitude(g);
    const Vec half_step = attention::half_step_at<W>(type.step, g);
    const Vec boundary = half_step - L::magnitude(rounded(type, size, half_step) - size) - common;
    const Vec excess = L::magnitude(x - g) - attention::half_step_at<W>(type.step, x) - common;
    const Vec inverse = 1.0 / v;
    const Vec seen = L::larger(none, excess), hidden = L::larger(none, boundary);
    const Vec hidden2 = hidden * hidden * inverse;
    L::store(block->excess2 + at, seen * seen * inverse);
    L::store(block->visible + at, L::larger(none, 1.0 - hidden2 * per_deviations2));
    constexpr double kLast = (kTailEntries - 0.5) / kTailSteps;
    const auto index = L::coarse_root(L::smaller(hidden2, none + kLast * kLast), kTailSteps);
    __builtin_memcpy(block->boundary + at, &index, sizeof index);
    return Bits(!(v >= none + 0x1p-900)) | Bits(!(v <= none + 0x1p900)) | past(L::magnitude(excess), 0x1p500) |
           past(L::magnitude(boundary), 0x1p500);
  }

  static Bits exceeds(const double* candidate, const double* golden, const double* allowed, double share,
                      std::int64_t at) {
    const Vec error = L::magnitude(L::load(candidate + at) - L::load(golden + at));
    return Bits(!(error <= share * L::load(allowed + at)));
  }

  static Bits not_of_type(const NumberType& type, const double* x, std::int64_t at) {
    const Vec size = L::magnitude(L::load(x + at));
    return Bits(rounded(type, size, attention::half_step_at<W>(type.step, size)) != size) | past(size, type.largest);
  }
};

using Wide = Elements<kWidestLanes>;
using Single = Elements<1>;

void measure(const NumberType& type, const double* candidate, const double* golden, std::int64_t count,
             MeasuredBlock* block) {
  const NumberType t = type;  // a copy: the stores cannot change it
  Wide::Measured wide;
  Single::Measured single;
  std::int64_t i = 0;
  for (; i + kWidestLanes <= count; i += kWidestLanes) Wide::measure(t, candidate, golden, i, block, wide);
  for (; i < count; ++i) Single::measure(t, candidate, golden, i, block, single);
  block->finite = !Wide::L::any(wide.infinite) && !Single::L::any(single.infinite);
  block->max_abs = single.max_abs;
  auto max_ulp = static_cast<std::uint64_t>(single.max_ulp);
  for (int lane = 0; lane < kWidestLanes; ++lane) {
    block->max_abs = Single::L::larger(block->max_abs, wide.max_abs[lane]);
    const auto ulp = static_cast<std::uint64_t>(wide.max_ulp[lane]);
    max_ulp = max_ulp < ulp ? ulp : max_ulp;
  }
  block->max_ulp = max_ulp;
}

void weigh(const NumberType& type, double deviations, const double* candidate, const double* golden,
           const double* systematic, const double* variance, std::int64_t count, EvidenceBlock* block) {
  const NumberType t = type;
  const double per_deviations2 = 1 / (deviations * deviations);
  Wide::Bits wide{};
  Single::Bits single{};
  std::int64_t i = 0;
  for (; i + kWidestLanes <= count; i += kWidestLanes) {
    wide |= Wide::weigh(t, per_deviations2, candidate, golden, systematic, variance, i, block);
  }
  for (; i < count; ++i) {
    single |= Single::weigh(t, per_deviations2, candidate, golden, systematic, variance, i, block);
  }
  block->usable = !Wide::L::any(wide) && !Single::L::any(single);
}

bool exceeds(const double* candidate, const double* golden, const double* allowed, double share, std::int64_t count) {
  Wide::Bits wide{};
  Single::Bits single{};
  std::int64_t i = 0;
  for (; i + kWidestLanes <= count; i += kWidestLanes) wide |= Wide::exceeds(candidate, golden, allowed, share, i);
  for (; i < count; ++i) single |= Single::exceeds(candidate, golden, allowed, share, i);
  return Wide::L::any(wide) || Single::L::any(single);
}

bool all_of_type(const NumberType& type, const double* x, std::int64_t count) {
  Wide::Bits wide{};
  Single::Bits single{};
  std::int64_t i = 0;
  for (; i + kWidestLanes <= count; i += kWidestLanes) wide |= Wide::not_of_type(type, x, i);
  for (; i < count; ++i) single |= Single::not_of_type(type, x, i);
  return !Wide::L::any(wide) && !Single::L::any(single);
}

}  // namespace

const VerdictLoops* verdict_loops() {
  static const VerdictLoops kLoops = {&measure, &weigh, &exceeds, &all_of_type};
  return &kLoops;
}

}  // namespace kvscope::golden::KVSCOPE_ISA

#include "gpu/virtual/semantics/detail/matrix_sums.h"

#include "gpu/virtual/semantics/detail/exact.h"

namespace kvscope::ptx::semantics {
namespace {

// An exact sum of doubles between 2^-266 and 2^300: a two's complement number of 640 bits with unit 2^-320.
class FixedSum {
 public:
  static constexpr int kWords = 10;
  static constexpr int kLowest = -320;

  void add(double x) {
    if (x == 0) return;
    const Exact e = exact_of(x);
    const int at_bit = e.exponent - kLowest;  // the summands have no bits below 2^-320
    const u64 significand = static_cast<u64>(e.significand) >> (at_bit < 0 ? -at_bit : 0);
    const int from = at_bit < 0 ? 0 : at_bit;
    const u128 placed = static_cast<u128>(significand) << (from % 64);
    add_at(from / 64, static_cast<u64>(placed), e.negative);
    add_at(from / 64 + 1, static_cast<u64>(placed >> 64), e.negative);
  }

  [[nodiscard]] Exact value() const {
    Exact e;
    e.negative = (words_[kWords - 1] >> 63) != 0;
    u64 magnitude[kWords];
    u64 carry = e.negative ? 1 : 0;
    int top = -1;
    for (int i = 0; i < kWords; ++i) {
      magnitude[i] = (e.negative ? ~words_[i] : words_[i]) + carry;
      carry = carry != 0 && magnitude[i] == 0 ? 1 : 0;
      if (magnitude[i] != 0) top = i;
    }
    if (top < 0) return e;
    e.significand = magnitude[top];
    e.exponent = kLowest + 64 * top;
    if (top == 0) return e;
    e.significand = e.significand << 64 | magnitude[top - 1];
    e.exponent -= 64;
    for (int i = 0; i < top - 1; ++i) e.rest = e.rest || magnitude[i] != 0;
    return e;
  }

 private:
  void add_at(int word, u64 amount, bool negative) {
    for (int i = word; i < kWords && amount != 0; ++i) {
      const u64 before = words_[i];
      words_[i] = negative ? before - amount : before + amount;
      amount = (negative ? words_[i] > before : words_[i] < before) ? 1 : 0;
    }
  }
  u64 words_[kWords] = {};
};

// The result of a sum that contains infinities or NaN; finite: it contains none.
struct Special {
  bool finite = true;
  float value = 0;
};
Special special_of(int count, float c, const float* a, const float* b, int stride) {
  // Infinities and NaN of exact products and their sum follow from an ordinary sum of them.
  double sum = is_finite(double{c}) ? 0.0 : double{c};
  bool finite = is_finite(double{c});
  for (int k = 0; k < count; ++k) {
    const double product = double{a[k]} * double{b[k * stride]};
    if (is_finite(product)) continue;
    sum += product;
    finite = false;
  }
  return {finite, canonical(static_cast<float>(sum))};
}

float rounded(Type d, const Exact& sum) {
  if (d == Type::f16) return f16_to_f32(static_cast<u16>(round_exact<FormatF16>(sum, Rounding::nearest)));
  return bits_as<float>(static_cast<u32>(round_exact<FormatF32>(sum, Rounding::nearest)));
}

// The exponent used for alignment: floor(log2 |x|); for a subnormal, its type's least exponent.
int seen_exponent(float x, int least) {
  const int biased = static_cast<int>(bits_as<u32>(x) >> 23 & 0xff);
  const int exponent = biased == 0 ? -126 : biased - 127;
  return exponent > least ? exponent : least;
}
int least_exponent(Type type) {
  switch (type) {
    case Type::f16:
    case Type::e5m2:
      return -14;
    case Type::e4m3:
      return -6;
    default:
      return -126;
  }
}

double power_of_two(int exponent) {
  return bits_as<double>(static_cast<u64>(exponent + 1023) << 52);
}
// x as an integer multiple of 2^unit, truncated toward zero.
i64 cut(double x, int unit) {
  return static_cast<i64>(x * power_of_two(-unit));
}

bool is_fp8(Type type) {
  return type == Type::e4m3 || type == Type::e5m2 || type == Type::e2m3 || type == Type::e3m2 || type == Type::e2m1;
}

}  // namespace

float exact_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride) {
  const Special special = special_of(product.k, c, a, b, stride);
  if (!special.finite) return special.value;
  FixedSum sum;
  sum.add(double{c});
  for (int k = 0; k < product.k; ++k) sum.add(double{a[k]} * double{b[k * stride]});
  return rounded(product.d, sum.value());
}

HopperRules hopper_rules(const MatrixProduct& product) {
  const bool fp8 = is_fp8(product.a);
  return {.group = fp8                       ? kMostHopperGroup
                   : product.a == Type::tf32 ? 8
                                             : 16,
          .fraction = fp8 ? 13 : 25,
          .least_a = least_exponent(product.a),
          .least_b = least_exponent(product.b),
          .least_d = least_exponent(product.d),
          .dropped = fp8 ? 10 : 0,
          .half = product.d == Type::f16};
}

float hopper_element(const MatrixProduct& product, float c, const float* a, const float* b, int stride) {
  const Special special = special_of(product.k, c, a, b, stride);
  if (!special.finite) return special.value;
  const HopperRules rules = hopper_rules(product);
  for (int first = 0; first < product.k; first += rules.group) {
    const int end = first + rules.group < product.k ? first + rules.group : product.k;
    int highest = c != 0 ? seen_exponent(c, rules.least_d) : -1000;
    for (int k = first; k < end; ++k) {
      if (a[k] == 0 || b[k * stride] == 0) continue;
      const int exponent = seen_exponent(a[k], rules.least_a) + seen_exponent(b[k * stride], rules.least_b);
      highest = exponent > highest ? exponent : highest;
    }
    if (highest == -1000) continue;
    const int unit = highest - rules.fraction;
    i64 sum = cut(double{c}, unit);
    for (int k = first; k < end; ++k) sum += cut(double{a[k]} * double{b[k * stride]}, unit);
    const double exact = static_cast<double>(sum) * power_of_two(unit);
    if (rules.half) {
      c = f16_to_f32(f64_to_f16(exact));
      if (c == 0) c = 0;  // underflow gives +0
    } else if (rules.dropped > 0) {
      c = bits_as<float>(round_to<Format<8, 13>, Rounding::zero>(exact, kNanF32 >> 10) << 10);
    } else {
      c = round_to_f32<Rounding::zero>(exact);
    }
    // Truncated, except past the largest number.
    if (product.d == Type::f32 && absolute_of(exact) >= 0x1p128)
      c = bits_as<float>(exact < 0 ? 0xff800000u : 0x7f800000u);
  }
  return c;
}

}  // namespace kvscope::ptx::semantics

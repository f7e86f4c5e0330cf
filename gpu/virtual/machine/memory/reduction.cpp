#include "gpu/virtual/machine/memory/detail/reduction.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/base/convert.h"
#include "core/base/dtype.h"

namespace kvscope::ptx {
namespace {

template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T, ReduceOp kOp>
void integer(std::byte* memory, const std::byte* b, const std::byte*, bool) {
  const T r = get<T>(memory), x = get<T>(b);
  using U = std::make_unsigned_t<T>;
  if constexpr (kOp == ReduceOp::add) {
    put(memory, static_cast<U>(static_cast<U>(r) + static_cast<U>(x)));
  } else if constexpr (kOp == ReduceOp::min) {
    put(memory, x < r ? x : r);
  } else if constexpr (kOp == ReduceOp::max) {
    put(memory, x > r ? x : r);
  } else if constexpr (kOp == ReduceOp::inc) {
    put(memory, r >= x ? T{0} : static_cast<T>(r + 1));
  } else if constexpr (kOp == ReduceOp::dec) {
    put(memory, r == 0 || r > x ? x : static_cast<T>(r - 1));
  } else if constexpr (kOp == ReduceOp::and_) {
    put(memory, static_cast<T>(r & x));
  } else if constexpr (kOp == ReduceOp::or_) {
    put(memory, static_cast<T>(r | x));
  } else {
    put(memory, static_cast<T>(r ^ x));
  }
}

template <int kBytes>
void exchange(std::byte* memory, const std::byte* b, const std::byte*, bool) {
  std::memcpy(memory, b, kBytes);
}
template <int kBytes>
void compare_and_swap(std::byte* memory, const std::byte* b, const std::byte* c, bool) {
  if (std::memcmp(memory, b, kBytes) == 0) std::memcpy(memory, c, kBytes);
}

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

void add_f32(std::byte* memory, const std::byte* b, const std::byte*, bool flush) {
  float r = get<float>(memory), x = get<float>(b);
  if (flush) r = flushed(r), x = flushed(x);
  float sum = r + x;
  if (flush) sum = flushed(sum);
  put(memory, std::isnan(sum) ? std::bit_cast<float>(0x7fffffffU) : sum);
}
// A NaN: in shared memory the one in memory, otherwise the operand's, quieted, because the sum is computed by the thread;
// in global memory (flush) the operand's, otherwise the one in memory, with its bits. Measured on an H100 (docs/hardware).
void add_f64(std::byte* memory, const std::byte* b, const std::byte*, bool flush) {
  const double r = get<double>(memory), x = get<double>(b);
  const bool operand = flush ? std::isnan(x) : !std::isnan(r);
  if (!std::isnan(r) && !std::isnan(x)) {
    const double sum = r + x;
    return put(memory, std::isnan(sum) ? std::bit_cast<double>(0xfff8000000000000U) : sum);
  }
  const auto bits = std::bit_cast<std::uint64_t>(operand ? x : r);
  put(memory, flush ? bits : bits | 0x0008000000000000U);
}

// f16 and bf16: the sum of two is exact in double, so it is rounded once. NaN: 7fff.
template <class T>
T narrow(double x) {
  if (std::isnan(x)) return T{0x7fff};
  return from_double<T>(x, Overflow::non_saturating);
}
// If one operand is a NaN, the result is the other; -0 is below +0.
template <class T, ReduceOp kOp>
T half_of(T r, T x) {
  const double a = to_double(r), b = to_double(x);
  if constexpr (kOp == ReduceOp::add) return narrow<T>(a + b);
  if (std::isnan(a) && std::isnan(b)) return T{0x7fff};
  if (std::isnan(a)) return x;
  if (std::isnan(b)) return r;
  const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return (kOp == ReduceOp::min) == less ? r : x;
}
template <class T, ReduceOp kOp, int kCount>
void half(std::byte* memory, const std::byte* b, const std::byte*, bool) {
  for (int i = 0; i < kCount; ++i) put(memory + 2 * i, half_of<T, kOp>(get<T>(memory + 2 * i), get<T>(b + 2 * i)));
}

template <class T>
Reduce find_integer(ReduceOp op) {
  switch (op) {
    case ReduceOp::add:
      return integer<T, ReduceOp::add>;
    case ReduceOp::min:
      return integer<T, ReduceOp::min>;
    case ReduceOp::max:
      return integer<T, ReduceOp::max>;
    case ReduceOp::inc:
      return integer<T, ReduceOp::inc>;
    case ReduceOp::dec:
      return integer<T, ReduceOp::dec>;
    case ReduceOp::and_:
      return integer<T, ReduceOp::and_>;
    case ReduceOp::or_:
      return integer<T, ReduceOp::or_>;
    case ReduceOp::xor_:
      return integer<T, ReduceOp::xor_>;
    default:
      return nullptr;
  }
}
template <class T, int kCount>
Reduce find_half(ReduceOp op) {
  switch (op) {
    case ReduceOp::add:
      return half<T, ReduceOp::add, kCount>;
    case ReduceOp::min:
      return half<T, ReduceOp::min, kCount>;
    case ReduceOp::max:
      return half<T, ReduceOp::max, kCount>;
    default:
      return nullptr;
  }
}

Reduce find_exchange(ReduceOp op, int bytes) {
  switch (bytes) {
    case 2:
      return op == ReduceOp::exch ? exchange<2> : compare_and_swap<2>;
    case 4:
      return op == ReduceOp::exch ? exchange<4> : compare_and_swap<4>;
    case 8:
      return op == ReduceOp::exch ? exchange<8> : compare_and_swap<8>;
    default:
      return op == ReduceOp::exch ? exchange<16> : compare_and_swap<16>;
  }
}

}  // namespace

ReduceOp reduce_op(const Instr& instr) {
  constexpr std::pair<Mod, ReduceOp> kOps[] = {
      {Mod::add, ReduceOp::add},   {Mod::min, ReduceOp::min},   {Mod::max, ReduceOp::max}, {Mod::inc, ReduceOp::inc},
      {Mod::dec, ReduceOp::dec},   {Mod::and_, ReduceOp::and_}, {Mod::or_, ReduceOp::or_}, {Mod::xor_, ReduceOp::xor_},
      {Mod::exch, ReduceOp::exch}, {Mod::cas, ReduceOp::cas},
  };
  for (const auto& [mod, op] : kOps) {
    if (instr.has(mod)) return op;
  }
  return ReduceOp::exch;
}

Reduce find_reduce(ReduceOp op, Type type) {
  if (op == ReduceOp::exch || op == ReduceOp::cas) return find_exchange(op, bits(type) / 8);
  switch (type) {
    case Type::u32:
    case Type::b32:
      return find_integer<std::uint32_t>(op);
    case Type::s32:
      return find_integer<std::int32_t>(op);
    case Type::u64:
    case Type::b64:
      return find_integer<std::uint64_t>(op);
    case Type::s64:
      return find_integer<std::int64_t>(op);
    case Type::f32:
      return op == ReduceOp::add ? add_f32 : nullptr;
    case Type::f64:
      return op == ReduceOp::add ? add_f64 : nullptr;
    case Type::f16:
      return find_half<f16, 1>(op);
    case Type::f16x2:
      return find_half<f16, 2>(op);
    case Type::bf16:
      return find_half<bf16, 1>(op);
    case Type::bf16x2:
      return find_half<bf16, 2>(op);
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx

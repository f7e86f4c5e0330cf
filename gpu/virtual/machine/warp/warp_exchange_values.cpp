// The value computations of warp_exchange.h, without warps or waiting.
#include <bit>

#include "gpu/virtual/machine/warp/detail/warp_exchange.h"
#include "gpu/virtual/machine/warp/shfl_source.h"

namespace kvscope::ptx {
namespace {

template <class Visit>
void each(LaneMask lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<std::size_t>(std::countr_zero(lanes)));
}

LaneMask bit(std::size_t lane) {
  return LaneMask{1} << lane;
}

void shuffle(ShflMode mode, LaneMask live, Exchange& x) {
  each(x.lanes, [&](std::size_t lane) {
    const ShflSource from = shfl_source(mode, static_cast<int>(lane), static_cast<std::uint32_t>(x.b[lane]),
                                        static_cast<std::uint32_t>(x.c[lane]));
    const auto source = static_cast<std::size_t>(from.lane);
    const bool takes_part = (x.lanes & bit(source)) != 0;
    x.d[lane] = x.a[takes_part ? source : lane];
    if (from.in_segment) x.p |= bit(lane);
    if (takes_part) return;
    ((live & bit(source)) != 0 ? x.strange : x.absent) |= bit(lane);
  });
}

LaneMask predicates(const Exchange& x) {
  LaneMask out = 0;
  each(x.lanes, [&](std::size_t lane) {
    if (x.a[lane] != 0) out |= bit(lane);
  });
  return out;
}

void vote(const Instr& instr, Exchange& x) {
  const LaneMask set = predicates(x);
  if (instr.has(Mod::ballot)) {
    x.d.fill(set);
    return;
  }
  const bool yes = instr.has(Mod::all) ? set == x.lanes : instr.has(Mod::any) ? set != 0 : set == 0 || set == x.lanes;
  x.d.fill(yes ? 1 : 0);
}

void match(const Instr& instr, Exchange& x) {
  each(x.lanes, [&](std::size_t lane) {
    LaneMask same = 0;
    each(x.lanes, [&](std::size_t other) {
      if (x.a[other] == x.a[lane]) same |= bit(other);
    });
    if (instr.has(Mod::any)) {
      x.d[lane] = same;
    } else if (same == x.lanes) {
      x.d[lane] = x.lanes;
      x.p |= bit(lane);
    } else {
      x.d[lane] = 0;
    }
  });
}

std::uint32_t reduce(const Instr& instr, std::uint32_t a, std::uint32_t b) {
  const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
  const bool is_signed = instr.type() == Type::s32;
  if (instr.has(Mod::add)) return a + b;
  if (instr.has(Mod::and_)) return a & b;
  if (instr.has(Mod::or_)) return a | b;
  if (instr.has(Mod::xor_)) return a ^ b;
  const bool less = is_signed ? sb < sa : b < a;
  return less == instr.has(Mod::min) ? b : a;
}

// Numbers in ascending order have ascending keys; -0 is less than +0.
std::uint32_t order_key(std::uint32_t number) {
  return number >> 31 != 0 ? ~number : number | 0x8000'0000u;
}

// .min or .max of f32. NaN inputs are skipped, or with .NaN any of them makes the result NaN; the NaN is canonical.
std::uint32_t redux_f32(const Instr& instr, const Exchange& x) {
  constexpr std::uint32_t kCanonicalNan = 0x7fff'ffff, kMagnitude = 0x7fff'ffff, kInfinity = 0x7f80'0000;
  std::uint32_t result = 0;
  bool any = false, nan = false;
  each(x.lanes, [&](std::size_t lane) {
    auto value = static_cast<std::uint32_t>(x.a[lane]);
    if (instr.has(Mod::abs)) value &= kMagnitude;
    if ((value & kMagnitude) > kInfinity) {
      nan = true;
      return;
    }
    const bool less = order_key(value) < order_key(result);
    if (!any || less == instr.has(Mod::min)) result = value;
    any = true;
  });
  return !any || (nan && instr.has(Mod::NaN)) ? kCanonicalNan : result;
}

void redux(const Instr& instr, Exchange& x) {
  if (instr.type() == Type::f32) {
    x.d.fill(redux_f32(instr, x));
    return;
  }
  bool first = true;
  std::uint32_t all = 0;
  each(x.lanes, [&](std::size_t lane) {
    const auto value = static_cast<std::uint32_t>(x.a[lane]);
    all = first ? value : reduce(instr, all, value);
    first = false;
  });
  x.d.fill(all);
}

void elect(LaneMask live, Exchange& x) {
  const auto leader = static_cast<std::size_t>(std::countr_zero(x.mask & live));
  x.d.fill(leader);
  x.p = bit(leader);
}

}  // namespace

ShflMode shfl_mode(const Instr& instr) {
  return instr.has(Mod::up)     ? ShflMode::up
         : instr.has(Mod::down) ? ShflMode::down
         : instr.has(Mod::bfly) ? ShflMode::bfly
                                : ShflMode::idx;
}

ShflSource shfl_source(ShflMode mode, int lane, std::uint32_t b_operand, std::uint32_t c_operand) {
  const int b = static_cast<int>(b_operand & 31), m = static_cast<int>(c_operand >> 8 & 31);
  const int c = static_cast<int>(c_operand & 31);
  const int hi = (lane & m) | (c & ~m & 31), lo = lane & m;
  int from = 0;
  bool in_segment = false;
  switch (mode) {
    case ShflMode::up:
      from = lane - b;
      in_segment = from >= hi;
      break;
    case ShflMode::down:
      from = lane + b;
      in_segment = from <= hi;
      break;
    case ShflMode::bfly:
      from = lane ^ b;
      in_segment = from <= hi;
      break;
    case ShflMode::idx:
      from = lo | (b & ~m & 31);
      in_segment = from <= hi;
      break;
  }
  return {in_segment ? from : lane, in_segment};
}

void exchange(const Instr& instr, LaneMask live, Exchange& x) {
  switch (instr.opcode) {
    case Opcode::shfl:
      return shuffle(shfl_mode(instr), live, x);
    case Opcode::vote:
      return vote(instr, x);
    case Opcode::match:
      return match(instr, x);
    case Opcode::redux:
      return redux(instr, x);
    case Opcode::elect:
      return elect(live, x);
    default:
      return;
  }
}

}  // namespace kvscope::ptx

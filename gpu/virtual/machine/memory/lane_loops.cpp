// Compiled once per instruction set (CMakeLists.txt).
#include "gpu/virtual/machine/memory/lane_loops.h"

#include "gpu/virtual/machine/memory/detail/lane_loop_sets.h"

namespace kvscope::ptx::lanes::KVSCOPE_ISA {
namespace {

void add64(const std::uint64_t* base, std::uint64_t offset, std::uint64_t* out) {
  for (int i = 0; i < kLanes; ++i) out[i] = base[i] + offset;
}

void add32(const std::uint32_t* base, std::uint64_t offset, std::uint64_t* out) {
  for (int i = 0; i < kLanes; ++i) out[i] = base[i] + offset;
}

void fill(const std::uint64_t* at, LaneMask lanes, std::uint64_t* out) {
  const std::uint64_t lead = at[__builtin_ctz(lanes)];
  for (int i = 0; i < kLanes; ++i) out[i] = (lanes >> i & 1) != 0 ? at[i] : lead;
}

LanePattern pattern(const std::uint64_t* at, std::uint64_t bytes) {
  std::uint64_t row = 0, one = 0;
  for (int i = 0; i + 1 < kLanes; ++i) row |= (at[i + 1] - at[i]) ^ bytes;
  for (int i = 0; i < kLanes; ++i) one |= at[i] ^ at[0];
  return {row, one};
}

// x <= last exactly if neither x nor last - x has its highest bit: x would be negative, or last - x would wrap. Addresses
// are added as integers: those of lanes that are elsewhere are no pointers, and are not used.
bool locate(const std::uint64_t* at, std::uint64_t start, std::uint64_t last, std::byte* bytes, std::byte** out) {
  std::uint64_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t x = at[i] - start;
    bits |= x | (last - x);
    out[i] = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(bytes) + x);
  }
  return bits >> 63 == 0;
}

bool any_within(const std::uint64_t* at, std::uint64_t from, std::uint64_t last) {
  std::uint64_t outside = ~std::uint64_t{0};
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t x = at[i] - from;
    outside &= x | (last - x);
  }
  return outside >> 63 == 0;
}

bool apart(const std::uint64_t* at, std::uint64_t distance) {
  std::uint64_t bits = 0;
  for (int i = 0; i + 1 < kLanes; ++i) bits |= at[i + 1] - at[i] - distance;
  return bits >> 63 == 0;
}

bool any_equal(const std::uint64_t* at) {
  std::uint32_t x[2 * kLanes];  // twice, so that x[i + turn] is a lane too
  for (int i = 0; i < kLanes; ++i) x[i] = x[i + kLanes] = static_cast<std::uint32_t>(at[i] - at[0]);
  std::uint32_t equal = 0;
  for (int turn = 1; turn <= kLanes / 2; ++turn) {
    for (int i = 0; i < kLanes; ++i) equal |= static_cast<std::uint32_t>(x[i] == x[i + turn]);
  }
  return equal != 0;
}

std::uint64_t offsets(const std::uint64_t* at, std::uint64_t first, std::int32_t* out) {
  std::uint64_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t offset = at[i] - first;
    bits |= offset;
    out[i] = static_cast<std::int32_t>(offset);
  }
  return bits;
}

std::uint32_t differing(const std::int32_t* offsets) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<std::uint32_t>(offsets[i] ^ offsets[0]);
  return bits;
}

// One bit per access in an aligned block of 128 of them, and one per sector in an aligned block of 2 KiB, in words of 32 bits.
bool sectors(const std::uint64_t* at, int shift, LaneSectors& out) {
  std::uint32_t x[kLanes];
  std::uint64_t differing = 0;
  for (int i = 0; i < kLanes; ++i) {
    differing |= at[i] ^ at[0];
    x[i] = static_cast<std::uint32_t>(at[i]);
  }
  if (differing >> shift >= 128 || differing >= 2048) return false;
  std::uint32_t slots0 = 0, slots1 = 0, slots2 = 0, slots3 = 0, sectors0 = 0, sectors1 = 0;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t slot = x[i] >> shift, word = slot >> 5 & 3, bit = 1u << (slot & 31);
    slots0 |= word == 0 ? bit : 0;
    slots1 |= word == 1 ? bit : 0;
    slots2 |= word == 2 ? bit : 0;
    slots3 |= word == 3 ? bit : 0;
  }
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t bit = 1u << (x[i] >> 5 & 31);
    sectors0 |= (x[i] >> 10 & 1) == 0 ? bit : 0;
    sectors1 |= (x[i] >> 10 & 1) != 0 ? bit : 0;
  }
  const std::uint64_t all = sectors0 | std::uint64_t{sectors1} << 32;
  const std::uint64_t lines = (all | all >> 1 | all >> 2 | all >> 3) & 0x1111'1111'1111'1111;
  out.accesses = __builtin_popcountll(slots0 | std::uint64_t{slots1} << 32) +
                 __builtin_popcountll(slots2 | std::uint64_t{slots3} << 32);
  out.sectors = __builtin_popcountll(all);
  out.lines = __builtin_popcountll(lines);
  return true;
}

LaneExtent extent(const std::int32_t* offsets) {
  std::int32_t low = offsets[0], high = offsets[0];
  for (int i = 0; i < kLanes; ++i) {
    low = offsets[i] < low ? offsets[i] : low;
    high = offsets[i] > high ? offsets[i] : high;
  }
  return {low, high};
}

}  // namespace

const LaneLoops kLoops{add64, add32,     fill,    pattern, locate,    any_within,
                       apart, any_equal, sectors, offsets, differing, extent};

}  // namespace kvscope::ptx::lanes::KVSCOPE_ISA

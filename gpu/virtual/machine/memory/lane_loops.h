// Loops over the 32 addresses of an access, compiled once per instruction set with equal results: the machine and its monitors run
// several of them for each memory instruction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// How the addresses of all lanes lie, relative to that of lane 0.
struct LanePattern {
  std::uint64_t from_row =
      0;  // bits in which the distance of any two adjacent lanes differs from `bytes`; 0: contiguous
  std::uint64_t from_one = 0;  // bits in which any differs from lane 0's; 0: all are equal
};

// The smallest and the largest offset.
struct LaneExtent {
  std::int32_t low = 0, high = 0;
};

// The distinct accesses of the lanes, and the distinct sectors of 32 bytes and lines of 128 bytes that have them.
struct LaneSectors {
  int accesses = 0, sectors = 0, lines = 0;
};

// Every array has 32 elements. Pointers, because code for one instruction set may not instantiate the library's inline functions: the
// linker would keep one copy of them for all.
struct LaneLoops {
  // out[i] = base[i] + offset, for bases of 8 and of 4 bytes.
  void (*add64)(const std::uint64_t* base, std::uint64_t offset, std::uint64_t* out);
  void (*add32)(const std::uint32_t* base, std::uint64_t offset, std::uint64_t* out);
  // Lanes outside `lanes` (not 0) get the address of the first lane inside.
  void (*fill)(const std::uint64_t* at, LaneMask lanes, std::uint64_t* out);
  LanePattern (*pattern)(const std::uint64_t* at, std::uint64_t bytes);
  // Whether start <= at[i] <= start + last for every lane; `last` is below 2^63. If so, out[i] = bytes + (at[i] - start).
  bool (*locate)(const std::uint64_t* at, std::uint64_t start, std::uint64_t last, std::byte* bytes, std::byte** out);
  // Whether from <= at[i] <= from + last for any lane; `last` is below 2^63.
  bool (*any_within)(const std::uint64_t* at, std::uint64_t from, std::uint64_t last);
  // Whether at[i + 1] is at least `distance` above at[i] for every lane but the last; addresses are below 2^63.
  bool (*apart)(const std::uint64_t* at, std::uint64_t distance);
  // Whether two of the differences at[i] - at[0] are equal in their low 32 bits.
  bool (*any_equal)(const std::uint64_t* at);
  // Counts accesses of 1 << shift bytes, at multiples of their size, within 128 times their size and within 2 KiB. Returns false if they
  // are further apart.
  bool (*sectors)(const std::uint64_t* at, int shift, LaneSectors& out);
  // out[i] = the low 32 bits of at[i] - first. Returns the OR of all 64-bit differences: it is below a power of two p exactly if every
  // address is in [first, first + p).
  std::uint64_t (*offsets)(const std::uint64_t* at, std::uint64_t first, std::int32_t* out);
  // The bits in which any two offsets differ: all are in one block of 2^n bytes, aligned, exactly if the result is below 2^n.
  std::uint32_t (*differing)(const std::int32_t* offsets);
  LaneExtent (*extent)(const std::int32_t* offsets);
};
// Those of the widest instruction set that this processor has.
[[nodiscard]] const LaneLoops& lane_loops();
[[nodiscard]] const LaneLoops& lane_loops(Simd simd);

}  // namespace kvscope::ptx

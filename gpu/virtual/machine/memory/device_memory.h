// The device's global memory: allocations with names, gigabytes of virtual addresses apart, and nothing in between.
//
//   DeviceMemory memory;
//   std::uint64_t x = memory.allocate(4000, "x");     0x200000000
//   std::uint64_t y = memory.allocate(4000, "y");     0x300000000: the next multiple of 4 GiB
//   memory.write(x, bytes);                           IllegalAddress outside one allocation
//
//   array      from 0x2'0000'0000, each at a multiple of 4 GiB, with at least 1 GiB unmapped on both sides. A table entry
//              of -1, or one row past the end, is out of bounds of every array. Example: page 0xffffffff of 4096-byte
//              pages is at x + 2^44 - 4096: 4096 bytes before a multiple of 4 GiB, where no array smaller than 3 GiB ends.
//   heap       malloc of a kernel, from 0x7000'0000'0000, 4 KiB apart: one heap, as on hardware, and many small blocks
//   constants  variables of space const: a bank of 4 GiB with 32-bit offsets (windows.h), 4 KiB apart
//
// Addresses are never given out twice. A device has room for 28670 arrays of at most 3 GiB in its life, freed ones
// included; a larger array takes one more place per 4 GiB. OverflowError past that.
// Addresses never depend on the host: the same calls give the same addresses on every machine. A copy is a second memory
// with the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {

struct Allocation {
  std::string name;
  std::uint64_t address = 0;
  std::vector<std::byte> bytes;
  bool freed = false;       // kept, so that a use after free can be named
  bool initialised = true;  // false: every byte counts as never written until it is
  bool heap = false;        // by a kernel's malloc

  [[nodiscard]] std::uint64_t end() const { return address + bytes.size(); }
};

class DeviceMemory {
 public:
  static constexpr std::uint64_t kBase = 0x2'0000'0000;
  static constexpr std::uint64_t kSpacing = std::uint64_t{4} << 30;   // [bytes] an array begins at a multiple of this
  static constexpr std::uint64_t kUnmapped = std::uint64_t{1} << 30;  // [bytes] at least, on both sides of an array
  static constexpr std::uint64_t kHeapBase = 0x7000'0000'0000;        // arrays end before it
  static constexpr std::uint64_t kAlign = 256;                        // of a block of the heap, of a constant
  static constexpr std::uint64_t kGap = 4096;                         // [bytes] between two of them

  // Where the allocation behind one that ends at `end` begins: `gap` bytes further on, at a multiple of `align`.
  [[nodiscard]] static constexpr std::uint64_t place_behind(std::uint64_t end, std::uint64_t gap = kUnmapped,
                                                            std::uint64_t align = kSpacing) {
    return (end + gap + align - 1) / align * align;
  }

  // OverflowError past `most` bytes of all allocations together, and when the addresses are used up.
  explicit DeviceMemory(std::int64_t most = std::int64_t{16} << 30);

  // GeometryError below 1 byte. Filled with ff when not `initialised`, else zero. `heap`: a block of a kernel's malloc.
  std::uint64_t allocate(std::int64_t bytes, std::string_view name, bool initialised = true, bool heap = false);
  // The same in the bank of constants, which kernels cannot write: its address is in kConstWindow, and its low 32 bits
  // are the offset that a 32-bit address register holds.
  std::uint64_t allocate_constant(std::int64_t bytes, std::string_view name);
  // GeometryError: not the start of a live allocation.
  void free(std::uint64_t address);
  // IllegalAddress unless the range lies in one live allocation.
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t address, std::int64_t count) const;

  // The allocation that the address is in, freed ones included; null: none. Fast when it is the last one asked.
  [[nodiscard]] const Allocation* find(std::uint64_t address) const {
    if (last_ < allocations_.size()) {
      const Allocation& a = allocations_[last_];
      if (address - a.address < a.bytes.size()) return &a;
    }
    return look_up(address);
  }
  // The bytes of [address, address + count) when they lie in one live allocation, else null.
  [[nodiscard]] std::byte* at(std::uint64_t address, std::int64_t count) const;
  // The allocation nearest to an address that is in none, for a message.
  [[nodiscard]] const Allocation* nearest(std::uint64_t address) const;
  [[nodiscard]] const std::vector<Allocation>& allocations() const { return allocations_; }

 private:
  // A range of addresses that is given out from its start, and never again.
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t gap;    // [bytes] unmapped behind an allocation
    std::uint64_t align;  // of the next one
    std::uint64_t next = begin;
  };
  std::uint64_t place(Range& range, std::int64_t bytes, std::string_view name);
  [[nodiscard]] const Allocation* look_up(std::uint64_t address) const;

  std::int64_t most_;
  std::int64_t used_ = 0;
  Range arrays_{kBase, kHeapBase, kUnmapped, kSpacing};
  Range heap_{kHeapBase, kParamWindow, kGap, kAlign};
  Range constants_{kConstWindow, kConstWindow + kWindowBytes, kGap, kAlign};
  std::vector<Allocation> allocations_;  // by address
  mutable std::size_t last_ = 0;
};

}  // namespace kvscope::ptx

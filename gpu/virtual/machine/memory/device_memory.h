// The device's global memory: named allocations, gigabytes of virtual addresses apart, with unmapped space in between.
//
//   DeviceMemory memory;
//   std::uint64_t x = memory.allocate(4000, "x");     0x200000000
//   std::uint64_t y = memory.allocate(4000, "y");     0x300000000: the next multiple of 4 GiB
//   memory.write(x, bytes);                           IllegalAddress outside one allocation
//
//   array      from 0x2'0000'0000, each at a multiple of 4 GiB, with at least 1 GiB unmapped on both sides. A table entry
//              of -1, or one row past the end, is out of bounds of every array. Example: page 0xffffffff of 4096-byte
//              pages is at x + 2^44 - 4096: 4096 bytes before a multiple of 4 GiB, where no array smaller than 3 GiB ends.
//   heap       malloc in a kernel, from 0x7000'0000'0000, 4 KiB apart: one heap, as on hardware, and many small blocks
//   constants  variables of space const: a bank of 4 GiB with 32-bit offsets (windows.h), 4 KiB apart
//
// Addresses are never reused for another allocation. A device has addresses for 28670 arrays of at most 3 GiB during its
// lifetime, freed ones included; a larger array uses one more slot per 4 GiB. OverflowError past that.
// Addresses do not depend on the host: the same calls return the same addresses on every machine. A copy of this object
// is a second memory with the same bytes, unless it belongs to a part of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/limits.h"
#include "gpu/virtual/machine/memory/allocation_bytes.h"
#include "gpu/virtual/machine/memory/memory_part.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {

struct Allocation {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;   // [bytes]
  AllocationBytes bytes;    // `size` of them; none once it is freed
  bool freed = false;       // kept, so that a use after free can be reported by name
  bool initialized = true;  // false: each byte counts as uninitialized until it is written
  bool heap = false;        // allocated by a kernel's malloc

  [[nodiscard]] std::uint64_t end() const { return address + size; }
};

class DeviceMemory {
 public:
  static constexpr std::uint64_t kBase = 0x2'0000'0000;
  static constexpr std::uint64_t kSpacing = std::uint64_t{4} << 30;   // [bytes] an array begins at a multiple of this
  static constexpr std::uint64_t kUnmapped = std::uint64_t{1} << 30;  // [bytes] at least, on both sides of an array
  static constexpr std::uint64_t kHeapBase = 0x7000'0000'0000;        // arrays end before it
  static constexpr std::uint64_t kAlign = 256;                        // of a heap block or a constant
  static constexpr std::uint64_t kGap = 4096;                         // [bytes] between two heap blocks or constants

  // The start of the allocation after one that ends at `end`: at least `gap` bytes later, at a multiple of `align`.
  [[nodiscard]] static constexpr std::uint64_t place_behind(std::uint64_t end, std::uint64_t gap = kUnmapped,
                                                            std::uint64_t align = kSpacing) {
    return (end + gap + align - 1) / align * align;
  }

  // Throws OverflowError past `most` bytes of all allocations together, and when the addresses are exhausted.
  explicit DeviceMemory(std::int64_t most = kDeviceBytes);
  // The allocations of `whole`, with the bytes of `part`, which was made from them: an access reads and writes there, and is
  // recorded. Both must outlive this object.
  DeviceMemory(const DeviceMemory& whole, MemoryPart& part);
  [[nodiscard]] bool is_part() const { return part_ != nullptr; }
  // Takes over what a part has written.
  void commit(const MemoryPart& part);

  [[nodiscard]] std::int64_t room() const { return most_ - used_; }      // [bytes] that can be allocated
  [[nodiscard]] std::int64_t heap_bytes() const { return heap_used_; }   // of heap blocks that are not freed
  [[nodiscard]] std::int64_t heap_blocks() const { return heap_live_; }  // that are not freed

  // Throws GeometryError below 1 byte. Filled with ff if not `initialized`, otherwise with zeros. `heap`: a block of a
  // kernel's malloc.
  std::uint64_t allocate(std::int64_t bytes, std::string_view name, bool initialized = true, bool heap = false);
  // The same in the constant bank, which kernels cannot write: the address is in kConstWindow, and its low 32 bits are
  // the offset that a 32-bit address register contains.
  std::uint64_t allocate_constant(std::int64_t bytes, std::string_view name);
  // Throws GeometryError if `address` is not the start of a live allocation.
  void free(std::uint64_t address);
  // From now on the bytes of this live allocation are those at `host`, as many, until it is freed: the caller and kernels see
  // what the other writes. Throws GeometryError as free does.
  void lend(std::uint64_t address, std::byte* host);
  // An array that was freed exists again at its address, without its values: the memory of a graph at each launch. Throws
  // GeometryError if `address` is not the start of a freed array, OverflowError past the limit of all allocations.
  void allocate_again(std::uint64_t address);
  // Sets this memory to what it was when `earlier` was copied from it. Bytes that are lent stay with their owner.
  void restore(const DeviceMemory& earlier);
  // Throws IllegalAddress unless the range is inside one live allocation.
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t address, std::int64_t count) const;

  // The allocation that contains the address, freed ones included; null: none. Fast if it was also the previous result.
  [[nodiscard]] const Allocation* find(std::uint64_t address) const {
    if (last_ < allocations_.size()) {
      const Allocation& a = allocations_[last_];
      if (address - a.address < a.size) return &a;
    }
    return look_up(address);
  }
  // The bytes of [address, address + count), to read or to write, if they are inside one live allocation, otherwise null.
  [[nodiscard]] const std::byte* at(std::uint64_t address, std::int64_t count) const;
  [[nodiscard]] std::byte* writable_at(std::uint64_t address, std::int64_t count);
  // Whether they are, without an access.
  [[nodiscard]] bool contains(std::uint64_t address, std::int64_t count) const {
    return inside(address, count) != nullptr;
  }
  // The allocation nearest to an unmapped address, for a message.
  [[nodiscard]] const Allocation* nearest(std::uint64_t address) const;
  [[nodiscard]] const std::vector<Allocation>& allocations() const { return allocations_; }

 private:
  // A range of addresses that are assigned in ascending order and never reused.
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t gap;    // [bytes] unmapped after an allocation
    std::uint64_t align;  // of the next allocation
    std::uint64_t next = begin;
  };
  void check_room(std::int64_t bytes, std::string_view name) const;
  // The live allocation that begins at `address`. Throws GeometryError, which names the operation, if there is none.
  [[nodiscard]] Allocation& begins_at(std::uint64_t address, std::string_view operation);
  std::uint64_t place(Range& range, std::int64_t bytes, std::string_view name);
  // The first allocation that begins after `address`.
  [[nodiscard]] std::vector<Allocation>::const_iterator first_after(std::uint64_t address) const;
  [[nodiscard]] const Allocation* look_up(std::uint64_t address) const;
  // The live allocation that contains the range; null: none does.
  [[nodiscard]] const Allocation* inside(std::uint64_t address, std::int64_t count) const;
  [[nodiscard]] std::size_t index_of(const Allocation& a) const {
    return static_cast<std::size_t>(&a - allocations_.data());
  }

  std::int64_t most_;
  std::int64_t used_ = 0;
  std::int64_t heap_used_ = 0;
  std::int64_t heap_live_ = 0;
  Range arrays_{kBase, kHeapBase, kUnmapped, kSpacing};
  Range heap_{kHeapBase, kParamWindow, kGap, kAlign};
  Range constants_{kConstWindow, kConstWindow + kWindowBytes, kGap, kAlign};
  std::vector<Allocation> allocations_;  // by address
  mutable std::size_t last_ = 0;
  MemoryPart* part_ = nullptr;  // of a part of a launch: has the bytes
};

}  // namespace kvscope::ptx

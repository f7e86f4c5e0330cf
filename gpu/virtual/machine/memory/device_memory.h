// The device's global memory: allocations with names at addresses of its own, and nothing in between.
//
//   DeviceMemory memory;
//   std::uint64_t x = memory.allocate(4000, "x");     0x200000000; the next allocation at least 4096 bytes further on
//   memory.write(x, bytes);                            IllegalAddress outside one allocation
//
// Variables of space const are allocations of their own bank, at generic addresses (windows.h). Addresses never depend
// on the host: the same calls give the same addresses on every machine. A copy is a second memory with the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"

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
  static constexpr std::uint64_t kAlign = 256;
  static constexpr std::uint64_t kGap = 4096;

  // OverflowError past `most` bytes of all allocations together.
  explicit DeviceMemory(std::int64_t most = std::int64_t{16} << 30);

  // GeometryError below 1 byte. Filled with ff when not `initialised`, else zero.
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
  std::uint64_t place(std::uint64_t& next, std::int64_t bytes, std::string_view name);
  [[nodiscard]] const Allocation* look_up(std::uint64_t address) const;

  std::int64_t most_;
  std::int64_t used_ = 0;
  std::uint64_t next_ = kBase;
  std::uint64_t next_constant_;
  std::vector<Allocation> allocations_;  // by address
  mutable std::size_t last_ = 0;
};

}  // namespace kvscope::ptx

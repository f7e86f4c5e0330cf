// Global memory as the copy engine sees it: allocations at 64-bit device addresses; other addresses do not exist.
//
//   GlobalMemory memory;
//   memory.add("K pool", 0x7f00'0000'0000, pool);         the caller's bytes, not a copy of them
//   memory.read(0x7f00'0000'0010, 16)                     bytes 16..31 of the pool
//   memory.read(pool's last byte, 16)                     IllegalAddress: what a GPU reports as error 700
//
// Encoding a tensor map does not check it against allocations: a wrong map fails at the first copy that touches memory
// outside every allocation, and other copies by it work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {

class GlobalMemory {
 public:
  // `bytes` must outlive this object. GeometryError: no bytes, past 2^64, or overlapping an existing allocation.
  void add(std::string_view name, std::uint64_t address, std::span<std::byte> bytes);
  // At the address that the bytes have in this process, as the maps of the caches use it.
  void add(std::string_view name, std::span<std::byte> bytes);

  // IllegalAddress unless [address, address + count) is inside one allocation; the message names the nearest one.
  [[nodiscard]] std::span<const std::byte> read(std::uint64_t address, std::int64_t count) const;
  [[nodiscard]] std::span<std::byte> at(std::uint64_t address, std::int64_t count);
  // The same for callers with a fallback: empty instead of an error.
  [[nodiscard]] std::optional<std::span<const std::byte>> read_if(std::uint64_t address, std::int64_t count) const;
  [[nodiscard]] std::optional<std::span<std::byte>> at_if(std::uint64_t address, std::int64_t count);

 private:
  struct Allocation {
    std::string name;
    std::uint64_t address;
    std::span<std::byte> bytes;
  };
  [[nodiscard]] std::optional<std::span<std::byte>> in_one(std::uint64_t address, std::int64_t count) const;
  [[nodiscard]] std::span<std::byte> find(std::uint64_t address, std::int64_t count) const;

  std::vector<Allocation> allocations_;  // by address
};

}  // namespace kvscope

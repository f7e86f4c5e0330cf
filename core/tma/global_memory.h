// Global memory as a copy engine sees it: allocations at 64-bit device addresses, and nothing in between.
//
//   GlobalMemory memory;
//   memory.add("K pool", 0x7f00'0000'0000, pool);         the caller's bytes, not a copy of them
//   memory.read(0x7f00'0000'0010, 16)                     bytes 16..31 of the pool
//   memory.read(pool's last byte, 16)                     IllegalAddress: what a GPU reports as error 700
//
// A tensor map is not held against allocations when it is encoded: a wrong one stops the copy that touches what is not
// there, and only that one.
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
  // `bytes` outlive this. GeometryError: no bytes, past 2^64, or over an allocation that is there already.
  void add(std::string_view name, std::uint64_t address, std::span<std::byte> bytes);
  // At the address the bytes have in this program, as the caches' maps use it.
  void add(std::string_view name, std::span<std::byte> bytes);

  // IllegalAddress unless [address, address + count) lies in one allocation; the message names the nearest one.
  [[nodiscard]] std::span<const std::byte> read(std::uint64_t address, std::int64_t count) const;
  [[nodiscard]] std::span<std::byte> at(std::uint64_t address, std::int64_t count);
  // The same for who has another way to go: nothing instead of an error.
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

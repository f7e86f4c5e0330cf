#include "core/tma/global_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kvscope {

namespace {

bool inside(std::uint64_t address, std::int64_t count, std::uint64_t begin, std::size_t size) {
  return address >= begin && address - begin <= size && static_cast<std::uint64_t>(count) <= size - (address - begin);
}

}  // namespace

void GlobalMemory::add(std::string_view name, std::uint64_t address, std::span<std::byte> bytes) {
  const auto reject = [&](const std::string& message) {
    throw GeometryError(fmt::format("allocation '{}' at {:#x}, {} bytes", name, address, bytes.size()),
                        {{"", message}});
  };
  if (bytes.empty()) reject("has no bytes: give 1 or more");
  if (address + (bytes.size() - 1) < address) reject("ends past 2^64: move it down");
  const auto next = std::find_if(allocations_.begin(), allocations_.end(),
                                 [&](const Allocation& other) { return other.address >= address; });
  const auto reject_overlap = [&](const Allocation& other) {
    reject(fmt::format("overlaps allocation '{}' at {:#x}, {} bytes: move one", other.name, other.address,
                       other.bytes.size()));
  };
  if (next != allocations_.end() && next->address - address < bytes.size()) reject_overlap(*next);
  if (next != allocations_.begin() && address - std::prev(next)->address < std::prev(next)->bytes.size()) {
    reject_overlap(*std::prev(next));
  }
  allocations_.insert(next, {std::string(name), address, bytes});
}

void GlobalMemory::add(std::string_view name, std::span<std::byte> bytes) {
  add(name, reinterpret_cast<std::uintptr_t>(bytes.data()), bytes);
}

std::optional<std::span<std::byte>> GlobalMemory::in_one(std::uint64_t address, std::int64_t count) const {
  if (count < 0) throw GeometryError(fmt::format("{} bytes of global memory: give 0 or more", count));
  for (const Allocation& allocation : allocations_) {
    if (inside(address, count, allocation.address, allocation.bytes.size())) {
      return allocation.bytes.subspan(address - allocation.address, static_cast<std::size_t>(count));
    }
  }
  return std::nullopt;
}

std::span<std::byte> GlobalMemory::find(std::uint64_t address, std::int64_t count) const {
  if (const auto found = in_one(address, count)) return *found;
  const auto distance = [&](const Allocation& a) {
    const std::uint64_t end = a.address + (a.bytes.size() - 1);
    return address < a.address ? a.address - address : address > end ? address - end : 0;
  };
  const auto nearest =
      std::min_element(allocations_.begin(), allocations_.end(),
                       [&](const Allocation& a, const Allocation& b) { return distance(a) < distance(b); });
  throw IllegalAddress(
      fmt::format("illegal address (error 700): {} bytes at {:#x} are in no allocation; {}", count, address,
                  nearest == allocations_.end()
                      ? std::string("there is none")
                      : fmt::format("the nearest is '{}', {} bytes at {:#x}: check the map's base, dims and strides",
                                    nearest->name, nearest->bytes.size(), nearest->address)),
      address, count);
}

std::span<const std::byte> GlobalMemory::read(std::uint64_t address, std::int64_t count) const {
  return find(address, count);
}

std::optional<std::span<const std::byte>> GlobalMemory::read_if(std::uint64_t address, std::int64_t count) const {
  return in_one(address, count);
}

std::optional<std::span<std::byte>> GlobalMemory::at_if(std::uint64_t address, std::int64_t count) {
  return in_one(address, count);
}

std::span<std::byte> GlobalMemory::at(std::uint64_t address, std::int64_t count) {
  return find(address, count);
}

}  // namespace kvscope

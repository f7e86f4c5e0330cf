#include "gpu/virtual/machine/memory/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope::ptx {
namespace {

// Describes the surroundings of a range that is in no live allocation.
std::string what_is_there(const DeviceMemory& memory, std::uint64_t address) {
  if (const Allocation* a = memory.find(address)) {
    if (a->freed) return fmt::format("'{}' has been freed", a->name);
    return fmt::format("it begins at byte {} of '{}', which has {}", address - a->address, a->name, a->size);
  }
  const Allocation* a = memory.nearest(address);
  if (a == nullptr) return "nothing is allocated";
  if (address < a->address) return fmt::format("{} bytes before '{}'", a->address - address, a->name);
  return fmt::format("{} bytes past the end of '{}'", address - a->end(), a->name);
}

}  // namespace

DeviceMemory::DeviceMemory(std::int64_t most) : most_(most) {}

DeviceMemory::DeviceMemory(const DeviceMemory& whole, MemoryPart& part)
    : most_(whole.most_),
      used_(whole.used_),
      heap_used_(whole.heap_used_),
      heap_live_(whole.heap_live_),
      arrays_(whole.arrays_),
      heap_(whole.heap_),
      constants_(whole.constants_),
      part_(&part) {
  allocations_.reserve(whole.allocations_.size());
  for (const Allocation& a : whole.allocations_)
    allocations_.push_back({a.name, a.address, a.size, {}, a.freed, a.initialized, a.heap});
}

void DeviceMemory::commit(const MemoryPart& part) {
  for (std::size_t i = 0; i < part.allocations(); ++i) part.commit(i, allocations_[i].bytes.all());
}

void DeviceMemory::check_room(std::int64_t bytes, std::string_view name) const {
  if (bytes <= most_ - used_) return;
  throw OverflowError(
      fmt::format("allocation '{}' of {} bytes: {} of the device's {} bytes are left: smaller arrays, or a larger "
                  "limit: --max-memory",
                  name, bytes, most_ - used_, most_));
}

std::uint64_t DeviceMemory::place(Range& range, std::int64_t bytes, std::string_view name) {
  if (bytes < 1) throw GeometryError(fmt::format("allocation '{}' of {} bytes: at least 1", name, bytes));
  check_room(bytes, name);
  const auto size = static_cast<std::uint64_t>(bytes);
  if (range.next > range.end || range.end - range.next < size || range.end - range.next - size < range.gap) {
    throw OverflowError(
        fmt::format("allocation '{}' of {} bytes: the addresses from 0x{:x} to 0x{:x} are used up: every allocation "
                    "there begins at a "
                    "multiple of {} bytes, {} or more behind the end of the one before, and freed addresses are not "
                    "given out again: "
                    "make fewer, larger allocations, or a new device",
                    name, bytes, range.begin, range.end, range.align, range.gap));
  }
  Allocation a;
  a.name = name;
  a.address = range.next;
  a.size = size;
  a.bytes = AllocationBytes(static_cast<std::size_t>(bytes));
  used_ += bytes;
  range.next = place_behind(a.end(), range.gap, range.align);
  const std::uint64_t address = a.address;
  allocations_.insert(first_after(address), std::move(a));
  return address;
}

std::uint64_t DeviceMemory::allocate(std::int64_t bytes, std::string_view name, bool initialized, bool heap) {
  const std::uint64_t address = place(heap ? heap_ : arrays_, bytes, name);
  auto* a = const_cast<Allocation*>(find(address));
  a->initialized = initialized;
  a->heap = heap;
  if (heap) heap_used_ += bytes, ++heap_live_;
  if (!initialized) std::ranges::fill(a->bytes.all(), std::byte{0xff});
  return address;
}

std::uint64_t DeviceMemory::allocate_constant(std::int64_t bytes, std::string_view name) {
  return place(constants_, bytes, name);
}

Allocation& DeviceMemory::begins_at(std::uint64_t address, std::string_view operation) {
  auto* const a = const_cast<Allocation*>(find(address));
  if (a != nullptr && a->address == address && !a->freed) return *a;
  throw GeometryError(
      fmt::format("{} of 0x{:x}: {}", operation, address,
                  a == nullptr || a->address != address ? "no allocation begins there" : "it has been freed already"));
}

void DeviceMemory::free(std::uint64_t address) {
  Allocation& a = begins_at(address, "free");
  const auto size = static_cast<std::int64_t>(a.size);
  a.freed = true;
  a.bytes = {};
  used_ -= size;
  if (a.heap) heap_used_ -= size, --heap_live_;
}

void DeviceMemory::lend(std::uint64_t address, std::byte* host) {
  Allocation& a = begins_at(address, "lend");
  a.bytes = AllocationBytes(std::span(host, static_cast<std::size_t>(a.size)));
}

void DeviceMemory::allocate_again(std::uint64_t address) {
  auto* const a = const_cast<Allocation*>(find(address));
  if (a == nullptr || a->address != address || !a->freed || a->heap)
    throw GeometryError(fmt::format("allocation of 0x{:x} again: no freed array begins there", address));
  const auto size = static_cast<std::int64_t>(a->size);
  check_room(size, a->name);
  a->bytes = AllocationBytes(static_cast<std::size_t>(a->size));
  std::ranges::fill(a->bytes.all(), std::byte{0xff});
  a->freed = false;
  a->initialized = false;
  used_ += size;
}

void DeviceMemory::restore(const DeviceMemory& earlier) {
  DeviceMemory then = earlier;
  for (Allocation& a : then.allocations_) {
    const Allocation* const now = find(a.address);
    if (now == nullptr || !now->bytes.are_lent()) continue;
    const std::span<std::byte> lent = now->bytes.all();
    std::ranges::copy(a.bytes.all(), lent.begin());
    a.bytes = AllocationBytes(lent);
  }
  *this = std::move(then);
}

void DeviceMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  std::byte* to = writable_at(address, count);
  if (to == nullptr) {
    throw IllegalAddress(fmt::format("write of {} bytes at 0x{:x}: {}", count, address, what_is_there(*this, address)),
                         address, count);
  }
  std::copy(bytes.begin(), bytes.end(), to);
  auto* a = const_cast<Allocation*>(find(address));
  if (bytes.size() == a->size) a->initialized = true;
}

std::vector<std::byte> DeviceMemory::read(std::uint64_t address, std::int64_t count) const {
  const std::byte* from = at(address, count);
  if (from == nullptr) {
    throw IllegalAddress(fmt::format("read of {} bytes at 0x{:x}: {}", count, address, what_is_there(*this, address)),
                         address, count);
  }
  return {from, from + count};
}

const Allocation* DeviceMemory::inside(std::uint64_t address, std::int64_t count) const {
  const Allocation* a = find(address);
  if (a == nullptr || a->freed || count < 0) return nullptr;
  return static_cast<std::uint64_t>(count) > a->size - (address - a->address) ? nullptr : a;
}

const std::byte* DeviceMemory::at(std::uint64_t address, std::int64_t count) const {
  const Allocation* a = inside(address, count);
  if (a == nullptr) return nullptr;
  const std::uint64_t offset = address - a->address;
  if (part_ != nullptr) return part_->read(index_of(*a), offset, static_cast<std::uint64_t>(count));
  return a->bytes.data() + offset;
}

std::byte* DeviceMemory::writable_at(std::uint64_t address, std::int64_t count) {
  const Allocation* a = inside(address, count);
  if (a == nullptr) return nullptr;
  const std::uint64_t offset = address - a->address;
  if (part_ != nullptr) return part_->write(index_of(*a), offset, static_cast<std::uint64_t>(count));
  return a->bytes.data() + offset;
}

std::vector<Allocation>::const_iterator DeviceMemory::first_after(std::uint64_t address) const {
  return std::upper_bound(allocations_.begin(), allocations_.end(), address,
                          [](std::uint64_t x, const Allocation& a) { return x < a.address; });
}

const Allocation* DeviceMemory::look_up(std::uint64_t address) const {
  const auto after = first_after(address);
  if (after == allocations_.begin()) return nullptr;
  const Allocation& a = *(after - 1);
  if (address - a.address >= a.size) return nullptr;
  last_ = static_cast<std::size_t>(after - allocations_.begin()) - 1;
  return &a;
}

const Allocation* DeviceMemory::nearest(std::uint64_t address) const {
  const auto after = first_after(address);
  const Allocation* const next = after == allocations_.end() ? nullptr : &*after;
  if (after == allocations_.begin()) return next;
  const Allocation& before = *(after - 1);
  const bool nearer = next == nullptr || address < before.end() || address - before.end() <= next->address - address;
  return nearer ? &before : next;
}

}  // namespace kvscope::ptx

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/base/errors.h"
#include "gpu/driver/runtime.h"

namespace kvscope::driver {
namespace {

std::size_t in_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Memory of the host at the address that the device uses, so that one pointer is valid on both sides.
std::byte* map_at(std::uint64_t address, std::size_t bytes) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const made = mmap(wanted, in_pages(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  if (made == wanted) return static_cast<std::byte*>(made);
  munmap(made, in_pages(bytes));
  return nullptr;
}

}  // namespace

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "device memory";
    case MemoryKind::managed:
      return "managed memory";
    case MemoryKind::pinned:
      return "pinned host memory";
    case MemoryKind::registered:
      return "registered host memory";
    case MemoryKind::variable:
      return "a managed variable";
  }
  return "memory";
}

void Runtime::share(Block& block, std::byte* host) {
  block.host = host;
  shared_.emplace(reinterpret_cast<std::uint64_t>(host), &block);
  engine_->memory().lend(block.address, host);
}

void Runtime::unshare(Block& block) {
  if (block.host == nullptr) return;
  shared_.erase(reinterpret_cast<std::uint64_t>(block.host));
  if (block.kind != MemoryKind::registered) munmap(block.host, in_pages(block.size));
  block.host = nullptr;
}

Status Runtime::allocate(MemoryKind kind, std::size_t bytes, unsigned flags, std::uint64_t& address) {
  ptx::DeviceMemory& memory = engine_->memory();
  if (bytes == 0 || bytes > static_cast<std::size_t>(std::max<std::int64_t>(memory.room(), 0))) return kOutOfMemory;
  call.detail = fmt::format("of {} bytes", bytes);
  const bool initialized = kind != MemoryKind::device;
  const std::string label = fmt::format("{} {}", call.function, call.ordinal);
  try {
    address = memory.allocate(static_cast<std::int64_t>(bytes), label, initialized);
  } catch (const OverflowError& error) {  // there is room, but no address is left
    if (!std::exchange(told_of_addresses_, true)) report_call("LIMIT", fmt::format("{} bytes", bytes), 0, error.what());
    return kOutOfMemory;
  }
  Block block{
      .kind = kind, .address = address, .size = bytes, .host = nullptr, .flags = flags, .made = call, .freed = {}};
  std::byte* host = nullptr;
  if (kind == MemoryKind::managed || kind == MemoryKind::pinned) {
    host = map_at(address, bytes);
    if (host == nullptr) {
      memory.free(address);
      return kOutOfMemory;
    }
  }
  Block& kept = blocks_.emplace(address, std::move(block)).first->second;
  if (host != nullptr) share(kept, host);
  return kSuccess;
}

Status Runtime::register_host(void* host, std::size_t bytes, unsigned flags) {
  if (host == nullptr || bytes == 0) return kInvalidValue;
  if (const Status status = check_unsafe(); status != kSuccess) return status;
  if (find_shared_block(reinterpret_cast<std::uint64_t>(host), bytes) != nullptr) return kHostMemoryRegistered;
  std::uint64_t address = 0;
  if (const Status status = allocate(MemoryKind::registered, bytes, flags, address); status != kSuccess) return status;
  share(blocks_.at(address), static_cast<std::byte*>(host));
  return kSuccess;
}

Status Runtime::unregister_host(void* host) {
  if (const Status status = check_unsafe(); status != kSuccess) return status;
  const Block* const block = find_shared_block(reinterpret_cast<std::uint64_t>(host));
  if (block == nullptr || block->kind != MemoryKind::registered || block->host != host) return kHostMemoryNotRegistered;
  return release(block->address, {MemoryKind::registered});
}

Status Runtime::release(std::uint64_t address, const std::vector<MemoryKind>& kinds) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) {
    const Block* const around = find_block(address);
    report_call("INVALID_FREE", fmt::format("0x{:x}", address), address,
                around != nullptr ? fmt::format("pass the start of the allocation, 0x{:x}", around->address)
                : is_device_address(address)
                    ? "no runtime function returned this address"
                    : "this is host memory: release it with the function that matches its allocation");
    return kInvalidValue;
  }
  Block& block = found->second;
  if (!block.is_live()) {
    report_call("DOUBLE_FREE", fmt::format("0x{:x} ({} bytes)", address, block.size), address,
                "free each allocation once");
    return kInvalidValue;
  }
  if (std::find(kinds.begin(), kinds.end(), block.kind) == kinds.end()) {
    report_call("INVALID_FREE", fmt::format("0x{:x} ({})", address, name(block.kind)), address,
                "use the function that matches the allocation: cudaFree, cudaFreeHost or cudaHostUnregister");
    return kInvalidValue;
  }
  end(block);
  return kSuccess;
}

void Runtime::end(Block& block) {
  unshare(block);
  engine_->memory().free(block.address);
  engine_->written().host_freed(block.address);
  block.freed = call;
}

Status Runtime::reserve(std::size_t bytes, std::uint64_t& address) {
  if (const Status status = allocate(MemoryKind::device, bytes, 0, address); status != kSuccess) return status;
  Block& block = blocks_.at(address);
  block.of_graph = true;
  end(block);
  return kSuccess;
}

Status Runtime::allocate_reserved(std::uint64_t address) {
  Block& block = blocks_.at(address);
  if (block.is_live()) return kInvalidValue;  // the launch before did not free it
  engine_->memory().allocate_again(address);
  block.made = call;
  block.freed = {};
  return kSuccess;
}

bool Runtime::claim_free_node(std::uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || !found->second.of_graph) return false;
  return !std::exchange(found->second.has_free_node, true);
}

const Block* Runtime::find_block(std::uint64_t address) const {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  return address - block.address < block.size ? &block : nullptr;
}

const Block* Runtime::find_shared_block(std::uint64_t host, std::size_t bytes) const {
  const auto after = shared_.lower_bound(host + bytes);
  if (after == shared_.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(after);
  return begin + block->size > host ? block : nullptr;
}

bool Runtime::is_device_address(std::uint64_t address) {
  using ptx::DeviceMemory;
  ptx::DeviceMemory& memory = engine_->memory();
  if (memory.find(address) != nullptr) return true;
  const ptx::Allocation* const nearest = memory.nearest(address);
  return nearest != nullptr && address + DeviceMemory::kUnmapped > nearest->address &&
         address < nearest->end() + DeviceMemory::kUnmapped;
}

Runtime::Side Runtime::side_of(std::uint64_t address, std::size_t bytes, bool write, bool as_device) {
  ptx::DeviceMemory& memory = engine_->memory();
  const std::string range = fmt::format("0x{:x} ({} bytes)", address, bytes);
  if (!is_device_address(address)) {
    if (address == 0) {
      report_call("NULL_POINTER", fmt::format("the {} of a copy", write ? "target" : "source"), 0,
                  "pass memory of at least the size of the copy");
      return {};
    }
    if (!as_device) return {reinterpret_cast<std::byte*>(address), false};
    report_call("HOST_POINTER", range, address,
                fmt::format("this is host memory, but the kind of the copy has the {} on the device",
                            write ? "target" : "source"));
    return {};
  }
  const Block* const block = find_block(address);
  if (block != nullptr && !block->is_live()) {
    report_call("USE_AFTER_FREE", range, address, "copy before the memory is freed");
    return {};
  }
  std::byte* const at = memory.writable_at(address, static_cast<std::int64_t>(bytes));
  if (at == nullptr) {
    const ptx::Allocation* const nearest = memory.nearest(address);
    report_call("OUT_OF_BOUNDS", range, address,
                nearest == nullptr
                    ? "the device has no memory there"
                    : fmt::format("{} has {} bytes from 0x{:x} on", nearest->name, nearest->size, nearest->address));
    return {};
  }
  return {at, block == nullptr || block->host == nullptr};
}

Status Runtime::copy(const Copy& copy) {
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return kSuccess;
  if (copy.kind < kHostToHost || copy.kind > kByAddresses) return kInvalidDirection;
  const bool rows = copy.height > 1 || copy.depth > 1;
  if (rows && (copy.width > copy.to_pitch || copy.width > copy.from_pitch)) return kInvalidPitch;
  const bool to_device = copy.kind == kHostToDevice || copy.kind == kDeviceToDevice;
  const bool from_device = copy.kind == kDeviceToHost || copy.kind == kDeviceToDevice;
  if (copy.kind != kByAddresses) {
    const auto plain_device = [&](std::uint64_t address) {
      const Block* const block = find_block(address);
      return is_device_address(address) && (block == nullptr || block->host == nullptr);
    };
    for (const auto& [address, expected, what] :
         {std::tuple{copy.to, to_device, "target"}, std::tuple{copy.from, from_device, "source"}}) {
      if (expected || !plain_device(address)) continue;
      report_call("DEVICE_POINTER", fmt::format("0x{:x}", address), address,
                  fmt::format("this is device memory, but the kind of the copy has the {} on the host", what));
      return kInvalidValue;
    }
  }
  const auto width = static_cast<std::int64_t>(copy.width);
  bool told = false;
  for (std::size_t z = 0; z < copy.depth; ++z) {
    for (std::size_t y = 0; y < copy.height; ++y) {
      const std::uint64_t to = copy.to + z * copy.to_slice + y * copy.to_pitch;
      const std::uint64_t from = copy.from + z * copy.from_slice + y * copy.from_pitch;
      const Side target = side_of(to, copy.width, true, to_device);
      if (target.bytes == nullptr) return kInvalidValue;
      const Side source = side_of(from, copy.width, false, from_device);
      if (source.bytes == nullptr) return kInvalidValue;
      std::memmove(target.bytes, source.bytes, copy.width);
      ptx::InitChecker& written = engine_->written();
      if (target.device && source.device) {
        written.host_copied(engine_->memory(), to, from, width);
      } else if (target.device) {
        written.host_wrote(engine_->memory(), to, width);
      } else if (source.device && !told) {
        const std::int64_t missing = written.host_missing(engine_->memory(), from, width);
        if (missing < 0) continue;
        told = true;
        const std::uint64_t first = from + static_cast<std::uint64_t>(missing);
        report_call("UNINITIALIZED", fmt::format("0x{:x}", first), first,
                    "the host reads device memory that no kernel and no copy has written");
      }
    }
  }
  return kSuccess;
}

Status Runtime::set(std::uint64_t address, std::size_t pitch, std::size_t slice, unsigned value, std::size_t element,
                    std::size_t count, std::size_t height, std::size_t depth) {
  std::size_t width = 0;  // [bytes] all addresses if the product does not fit: out of bounds of every allocation
  if (__builtin_mul_overflow(element, count, &width)) width = ~std::size_t{0};
  if (width == 0 || height == 0 || depth == 0) return kSuccess;
  for (std::size_t z = 0; z < depth; ++z) {
    for (std::size_t y = 0; y < height; ++y) {
      const std::uint64_t at = address + z * slice + y * pitch;
      const Side target = side_of(at, width, true, true);
      if (target.bytes == nullptr) return kInvalidValue;
      for (std::size_t i = 0; i < count; ++i) std::memcpy(target.bytes + i * element, &value, element);
      if (target.device) engine_->written().host_wrote(engine_->memory(), at, static_cast<std::int64_t>(width));
    }
  }
  return kSuccess;
}

}  // namespace kvscope::driver

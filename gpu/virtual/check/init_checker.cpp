#include "gpu/virtual/check/init_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/virtual/check/lane_offsets.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {

void InitChecker::Written::set(std::uint64_t address, std::int64_t count) {
  std::uint64_t i = address - first;
  const std::uint64_t end = std::min<std::uint64_t>(bytes, i + static_cast<std::uint64_t>(count));
  while (i < end) {
    const std::uint64_t in_word = std::min<std::uint64_t>(end - i, 64 - i % 64);
    words[i / 64] |= (~std::uint64_t{0} >> (64 - in_word)) << i % 64;
    i += in_word;
  }
}

void InitChecker::Written::clear(std::uint64_t address, std::int64_t count) {
  const std::uint64_t begin = address - first;
  const std::uint64_t end = std::min<std::uint64_t>(bytes, begin + static_cast<std::uint64_t>(count));
  for (std::uint64_t i = begin; i < end; ++i) words[i / 64] &= ~(std::uint64_t{1} << i % 64);
}

std::int64_t InitChecker::Written::missing(std::uint64_t address, std::int64_t count) const {
  const std::uint64_t begin = address - first;
  std::uint64_t i = begin;
  const std::uint64_t end = std::min<std::uint64_t>(bytes, i + static_cast<std::uint64_t>(count));
  while (i < end) {
    const std::uint64_t in_word = std::min<std::uint64_t>(end - i, 64 - i % 64);
    const std::uint64_t wanted = (~std::uint64_t{0} >> (64 - in_word)) << i % 64;
    const std::uint64_t not_there = wanted & ~words[i / 64];
    if (not_there != 0) {
      return static_cast<std::int64_t>(i / 64 * 64 - begin) + std::countr_zero(not_there);
    }
    i += in_word;
  }
  return -1;
}

void InitChecker::launch_begins(Launch&) {
  shared_.clear();
  last_cta_ = nullptr;
  // Between launches the host may have written the discarded bytes again: these allocations count as written.
  std::erase_if(global_, [](const auto& place) { return place.second.everywhere; });
}

void InitChecker::cta_begins(Launch&, const Cta& cta) {
  if (options_.shared) {
    Written written(kSharedBase, cta.shared.size());
    written.words.resize(std::bit_ceil(written.words.size() + 1));  // for is_quick
    shared_.insert_or_assign(cta.index, std::move(written));
  }
  last_cta_ = nullptr;
}

void InitChecker::cta_ends(Launch&, const Cta& cta) {
  shared_.erase(cta.index);
  last_cta_ = nullptr;
}

InitChecker::Written* InitChecker::shared_of(const Launch& launch, const Cta& cta, std::uint64_t address) {
  const Cta* owner = rank_of(address) == static_cast<std::uint64_t>(cta.cluster_rank)
                         ? &cta
                         : cta_of_rank(launch, cta, rank_of(address));
  if (owner == nullptr) return nullptr;
  if (owner == last_cta_) return last_;
  const auto place = shared_.find(owner->index);
  last_cta_ = owner;
  last_ = place == shared_.end() ? nullptr : &place->second;
  return last_;
}

InitChecker::Written* InitChecker::global_of(const DeviceMemory& memory, std::uint64_t address) {
  if (!options_.global && global_.empty()) return nullptr;
  const Allocation* a = memory.find(address);
  if (a == nullptr) return nullptr;
  if (const auto place = global_.find(a->address); place != global_.end()) return &place->second;
  if (!options_.global || a->initialized) return nullptr;
  return &global_.try_emplace(a->address, a->address, a->size).first->second;
}

void InitChecker::host_wrote(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes) {
  if (bytes <= 0 || memory.at(address, bytes) == nullptr) return;
  if (Written* written = global_of(memory, address)) written->set(address, bytes);
}

void InitChecker::host_copied(const DeviceMemory& memory, std::uint64_t to, std::uint64_t from, std::int64_t bytes) {
  if (bytes <= 0 || memory.at(to, bytes) == nullptr || memory.at(from, bytes) == nullptr) return;
  Written* const target = global_of(memory, to);
  if (target == nullptr) return;
  Written* const source = global_of(memory, from);
  if (source == nullptr || source->missing(from, bytes) < 0) return target->set(to, bytes);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(bytes); ++i) {
    if (source->missing(from + i, 1) < 0) {
      target->set(to + i, 1);
    } else {
      target->clear(to + i, 1);
    }
  }
}

std::int64_t InitChecker::host_missing(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes) {
  if (bytes <= 0 || memory.at(address, bytes) == nullptr) return -1;
  const Written* const written = global_of(memory, address);
  return written == nullptr ? -1 : written->missing(address, bytes);
}

bool InitChecker::is_quick(const Exec& exec, const WarpAccess& access) {
  const std::uint64_t first = shared_address(static_cast<std::uint64_t>(exec.cta.cluster_rank), kSharedBase);
  Written* written = shared_of(exec.launch, exec.cta, first);
  LaneOffsets offsets;
  if (written == nullptr || access.bytes > 16 ||
      lane_offsets(first, access.addresses, access.lanes, offsets) >= written->words.size() * 64)
    return false;
  // An aligned access is in one word.
  std::uint64_t* const words = written->words.data();
  const std::uint64_t ones = (std::uint64_t{1} << access.bytes) - 1;
  const auto word = [&](std::int32_t offset) -> std::uint64_t& { return words[static_cast<std::size_t>(offset) / 64]; };
  if (access.kind != AccessKind::store) {
    std::uint64_t there = ones;
    for (const std::int32_t offset : offsets) there &= word(offset) >> (offset & 63);
    if (there != ones) return false;
    if (access.kind == AccessKind::load) return true;
  }
  for (const std::int32_t offset : offsets) word(offset) |= ones << (offset & 63);
  return true;
}

void InitChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  const bool looks_at_global = options_.global || !global_.empty();
  if (access.space != Space::shared && (access.space != Space::global || !looks_at_global)) return;
  if (access.space == Space::shared && is_quick(exec, access)) return;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    const bool shared = access.space == Space::shared;
    Written* written = shared ? shared_of(exec.launch, exec.cta, address) : global_of(*exec.launch.memory, address);
    if (written == nullptr) continue;
    const std::uint64_t at = shared ? offset_of(address) : address;
    if (access.kind != AccessKind::store) {
      const std::int64_t first = written->missing(at, access.bytes);
      if (first >= 0) {
        const std::uint64_t byte = address + static_cast<std::uint64_t>(first);
        tell(exec, op, lane, access.space, byte, access.bytes - first);
        written->set(at, access.bytes);  // report each byte once
      }
    }
    if (access.kind != AccessKind::load) written->set(at, access.bytes);
  }
}

void InitChecker::discarded(const Exec& exec, const Op&, const WarpAccess& access) {
  if (access.space != Space::global) return;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(std::countr_zero(left))];
    const Allocation* a = exec.launch.memory->find(address);
    if (a == nullptr) continue;
    const auto [place, fresh] = global_.try_emplace(a->address, a->address, a->size);
    Written& written = place->second;
    // Without InitOptions::global, writes were not recorded: every byte counts as written.
    if (fresh && (a->initialized || !options_.global)) {
      written.set(a->address, static_cast<std::int64_t>(a->size));
      written.everywhere = true;
    }
    written.clear(address, access.bytes);
    written.discarded = true;
  }
}

void InitChecker::async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges) {
  for (const ByteRange& range : reads) {
    if (range.space != Space::shared) continue;
    Written* written = shared_of(exec.launch, exec.cta, range.address);
    if (written == nullptr) continue;
    const std::int64_t first = written->missing(offset_of(range.address), range.bytes);
    if (first < 0) continue;
    tell(exec, exec.program().ops[static_cast<std::size_t>(op.pc)], op.thread % kLanes, Space::shared,
         range.address + static_cast<std::uint64_t>(first), range.bytes - first);
    written->set(offset_of(range.address), range.bytes);
  }
}

void InitChecker::async_moves(Launch& launch, const Cta& cta, const AsyncOp&, ByteRanges, ByteRanges writes) {
  for (const ByteRange& range : writes) {
    if (range.space == Space::shared) {
      if (Written* written = shared_of(launch, cta, range.address)) written->set(offset_of(range.address), range.bytes);
    } else if (Written* written = global_of(*launch.memory, range.address)) {
      written->set(range.address, range.bytes);
    }
  }
}

// The eight bytes of an mbarrier object belong to the machine, whether the object is live or not.
void InitChecker::mbarrier(Launch& launch, const Cta& cta, const Exec*, LaneMask, MbarrierEvent event,
                           std::uint64_t address, std::int64_t, Order, Scope) {
  if (event != MbarrierEvent::init) return;
  if (Written* written = shared_of(launch, cta, address)) written->set(offset_of(address), 8);
}

void InitChecker::tell(const Exec& exec, const Op& op, int lane, Space space, std::uint64_t address,
                       std::int64_t bytes) {
  Report r;
  r.kind = ReportKind::uninitialized;
  r.severity = severity_of(r.kind);
  r.address = name_address(exec.launch, space, address, bytes);
  r.parties = {lane_party(exec, op, lane, LaneMask{1} << lane, "read")};
  const Written* const global = space == Space::global ? global_of(*exec.launch.memory, address) : nullptr;
  r.message = space == Space::shared ? "no thread and no copy has written this byte since the CTA began"
              : global != nullptr && global->discarded
                  ? "no thread and no copy has written this byte since it was allocated or discarded"
                  : "no thread and no copy has written this byte since it was allocated";
  Exec copy = exec;
  (void)report(copy, std::move(r));
}

}  // namespace kvscope::ptx

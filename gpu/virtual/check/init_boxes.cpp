// Undefined bytes of global memory that a tensor load copies to shared memory. Fill is defined.
#include <algorithm>
#include <bit>
#include <optional>

#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// async_moves has marked the whole box as defined.
void InitChecker::box_moves(Launch& launch, const Cta& cta, const PendingOp& copy) {
  const bool complete = std::all_of(copy.reads.begin(), copy.reads.end(), [&](const ByteRange& range) {
    const Global* const from = global_of(*launch.memory, range.address);
    return from == nullptr || from->bytes.first(range.address, range.bytes) < 0;
  });
  if (complete) return;
  const bool rounds = copy.map.element().rounds != ElementFormat::Rounds::never;  // TF32
  std::optional<std::uint32_t> origin;
  const auto mark = [&](std::uint64_t rank, std::uint64_t global, std::uint64_t offset, int bytes) {
    const Global* const from = global_of(*launch.memory, global);
    std::uint64_t undefined = from == nullptr ? 0 : from->bytes.mask(global, bytes);
    if (undefined == 0) return;
    const Cta* const owner = cta_of_rank(launch, cta, rank);
    if (owner == nullptr) return;
    if (!origin) {
      origin = add_origin({.pc = copy.op.pc,
                           .warp = copy.op.thread / kLanes,
                           .lane = copy.op.thread % kLanes,
                           .space = Space::global,
                           .address = global + static_cast<std::uint64_t>(std::countr_zero(undefined)),
                           .bytes = bytes - std::countr_zero(undefined)});
    }
    if (rounds) undefined = ((undefined & 0x0f) != 0 ? 0x0fU : 0U) | ((undefined & 0xf0) != 0 ? 0xf0U : 0U);
    shared_.try_emplace(owner->index, UndefinedBytes(kSharedBase, owner->shared.size(), false));
    last_cta_ = nullptr;
    shared_.at(owner->index).assign(offset, bytes, undefined);
    for (; undefined != 0; undefined &= undefined - 1) {
      const std::uint64_t byte = offset + static_cast<std::uint64_t>(std::countr_zero(undefined));
      stored_[place_of(launch, cta, copy.op.thread, Space::shared, shared_address(rank, byte))] = *origin;
    }
  };
  for (std::uint32_t rest = copy.ranks(); rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(rest));
    each_loaded_run(copy,
                    [&](std::uint64_t global, std::uint64_t offset, int bytes) { mark(rank, global, offset, bytes); });
  }
}

}  // namespace kvscope::ptx

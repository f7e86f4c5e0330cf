// Copies by engines and matrix products that read and write shared memory, and the arrival barriers they count on.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "gpu/virtual/check/detail/race_cluster.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {
namespace {

bool is_async_proxy(AsyncKind kind) {
  return kind != AsyncKind::cp_async && kind != AsyncKind::st_async && kind != AsyncKind::red_async;
}

}  // namespace

// --- arrival barriers ------------------------------------------------------------------------------------------------

// The object itself is written by init and inval alone. All other operations on it may come in any order between them.
void RaceChecker::touch_object(Toucher& who, MbarrierEvent event, LaneMask lanes, std::uint64_t address) {
  Cluster::Object& object = who.cluster.objects[address];
  Mark mark{.actor = who.warp.lane0(),
            .lanes = lanes,
            .step = who.warp.act(lanes),
            .pc = who.exec.lane_group.pc,
            .bytes = static_cast<ChunkBytes>(0xff << address % kChunkBytes),
            .meets = who.warp.meets()};
  mark.first = static_cast<std::uint8_t>(address % kChunkBytes);
  mark.shift = Mark::kEveryLane;
  mark.generic = false;  // the bytes of an object are not data: no proxy fence is needed
  const auto against = [&](const Mark& before) {
    if (before.bytes == 0 || before.meets_itself(mark) || covers(who.known, before)) return;
    each_lane(mark.lanes, [&](int lane) {
      each_lane(before.lanes, [&](int other) {
        if (!who.warp.is_ordered(lane, before.actor + static_cast<ActorKey>(other), before.step))
          conflict(who, address, before, mark, lane, other);
      });
    });
  };
  if (event != MbarrierEvent::init && event != MbarrierEvent::inval) {
    against(object.made);
    bool merged = false;
    for (Mark& use : object.uses) {
      if (use.actor != mark.actor || use.pc != mark.pc) continue;
      if (use.step == mark.step) {
        use.lanes |= mark.lanes;
        merged = true;
      } else {
        use.lanes &= ~mark.lanes;
      }
    }
    std::erase_if(object.uses, [](const Mark& use) { return use.lanes == 0; });
    if (!merged) object.uses.push_back(mark);
    return;
  }
  mark.write = true;
  for (const Mark& use : object.uses) against(use);
  std::array<std::uint64_t, kLanes> at;
  at.fill(address);
  touch_writes(who, mark, 8, lanes, at);
  if (event == MbarrierEvent::inval) {
    who.cluster.objects.erase(address);
  } else {
    object = {.made = mark, .uses = {}};
  }
}

void RaceChecker::mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                           std::uint64_t address, std::int64_t amount, Order order, Scope scope) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr) return;
  if (exec != nullptr && event != MbarrierEvent::phase_done) {
    Toucher who(*exec, *cluster, std::countr_zero(lanes));
    touch_object(who, event, lanes, address);
  }
  OrderMonitor::mbarrier(launch, cta, exec, lanes, event, address, amount, order, scope);
}

// --- engines ---------------------------------------------------------------------------------------------------------

// A copy is a mark of its lane. All lanes of one instruction share a step. Their copies are not ordered: two of one chunk conflict.
void RaceChecker::copies_issue(const Exec& exec, const LaneCopies& copies) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int bytes = static_cast<int>(copies.bytes);
  Toucher lanes(exec, *cluster, std::countr_zero(copies.lanes));
  Mark mark{.actor = kCopiesOf + lanes.warp.lane0(),
            .step = lanes.warp.issue_copy(copies.first, exec.launch.step, copies.pc),
            .pc = copies.pc,
            .write = true};
  mark.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(bytes)));
  each_lane(write_far_lanes(lanes, mark, bytes, copies.lanes, copies.targets), [&](int lane) {
    const std::uint64_t address = copies.targets[static_cast<std::size_t>(lane)];
    mark.lanes = LaneMask{1} << lane;
    mark.bytes = chunk_bytes(address, bytes);
    mark.first = static_cast<std::uint8_t>(address % kChunkBytes);
    Toucher who(exec, *cluster, lane, false);
    touch_write(who, mark, address);
  });
}

void RaceChecker::async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) {
  Cluster* cluster = of(exec.cta);
  if (cluster == nullptr) return;
  const int lane = op.thread % kLanes;
  HappensBefore& order = cluster->order;
  Toucher who(exec, *cluster, lane, is_async_proxy(op.kind));
  const std::uint32_t engine =
      op.mbarrier != 0 ? engine_of_barrier(op.kind, op.mbarrier)
                       : engine_of_thread(op.kind, op.kind == AsyncKind::wgmma ? who.warp.index() / 4
                                                                               : thread_of(who.warp.thread(lane)));
  Mark mark{.actor = order.key(who.warp.cta(), engine),
            .step = step_of(op.number),
            .pc = op.pc,
            .issuer = static_cast<std::uint16_t>(op.thread),
            .generic = !who.async_proxy};
  if (op.mbarrier != 0) {
    order.issue(mark.actor, op.number, bytes_of(writes));
  } else if (op.kind != AsyncKind::wgmma && op.kind != AsyncKind::tcgen05) {
    who.warp.issue_grouped(op.kind);
  }
  touch_ranges(who, mark, reads);
  mark.write = true;
  touch_ranges(who, mark, writes);

  // The copy will count its bytes on an object, which must have been initialized for the engine as well.
  if (op.mbarrier == 0 || !options_.init_fence || !who.async_proxy) return;
  const auto object = cluster->objects.find(op.mbarrier);
  if (object == cluster->objects.end() || object->second.made.bytes == 0) return;
  const Mark& made = object->second.made;
  const int maker = std::countr_zero(made.lanes);
  mark.write = false;
  mark.bytes = made.bytes;
  if (!who.warp.is_ordered(lane, made.actor + static_cast<ActorKey>(maker), made.step)) {
    conflict(who, op.mbarrier, made, mark, lane, maker);
  } else if (!order.warp(made.actor).published_since(made.step)) {
    missing_fence(who, op.mbarrier, made, mark, maker,
                  "mbarrier.init must be followed by fence.mbarrier_init or a barrier before a copy counts on it");
  }
}

void RaceChecker::async_moves(Launch&, const Cta& cta, const AsyncOp& op, ByteRanges, ByteRanges writes) {
  Cluster* cluster = of(cta);
  if (cluster == nullptr || op.mbarrier == 0 || op.kind == AsyncKind::cp_async) return;
  HappensBefore& order = cluster->order;
  const std::uint32_t engine = engine_of_barrier(op.kind, op.mbarrier);
  order.moved(order.key(order.number_of_cta(cta), engine), op.number, bytes_of(writes));
}

}  // namespace kvscope::ptx

// Reports of the race checker: both sides of a conflict with their places in the sources, and what is missing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "gpu/virtual/check/detail/race_cluster.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

std::string order_text(const Exec& exec, const WarpViews& warp, int lane) {
  const LastSync& sync = warp.last_sync(lane);
  const int thread = exec.warp.index * kLanes + lane;
  if (sync.pc < 0) return fmt::format("no order between them; thread {} has not synchronized since it began", thread);
  return fmt::format("no order between them; thread {} last synchronized at {} ({})", thread,
                     exec.program().source_text(sync.pc), sync.how);
}

// Why the lane's last wait does not order the copy of `before`, if both use one arrival barrier; else empty.
std::string passed_text(const Exec& exec, const WarpViews& warp, int lane, const Mark& before) {
  const LastSync& sync = warp.last_sync(lane);
  const bool waited = before.lanes == 0 && counts_on_barrier(before.actor) && sync.mbarrier != 0 &&
                      sync.mbarrier == mbarrier_of_engine(before.actor);
  if (!waited) return {};
  const std::string barrier = place_name(name_address(exec.launch, Space::shared, sync.mbarrier, 8));
  if (sync.complete == 0) {
    return fmt::format(
        "this wait returned before any phase of mbarrier {} was complete: a new barrier lets a wait for parity 1 pass\n"
        "wait for parity 0 first",
        barrier);
  }
  return fmt::format(
      "this wait returned on phase {} of mbarrier {}, which does not include the copy\n"
      "check the parity of the wait, the bytes of expect_tx, and that the copy begins after the last use of its target",
      sync.complete - 1, barrier);
}

// Whether `before` is a cp.async that its own thread has not waited for, which no barrier of threads can order; else empty.
std::string unwaited_text(HappensBefore& order, const WarpViews& warp, int lane, const Mark& before, int other) {
  if (!is_copy(before.actor) || warp.last_sync(lane).mbarrier != 0) return {};
  const ActorKey copy = before.actor + static_cast<ActorKey>(other);
  const int thread = thread_of(copy);
  const WarpViews& issuer = order.warp(actor_key(cta_of(copy), static_cast<std::uint32_t>(thread)));
  if (issuer.is_ordered(thread % kLanes, copy, before.step)) return {};
  const bool own = copy - kCopiesOf == warp.thread(lane);
  return fmt::format("thread {} has not waited for this copy: cp.async.wait_group or wait_all has to come {}", thread,
                     own ? "first" : "before the barrier");
}

// Two lanes of a warp have met between their accesses.
std::string met_text(const Exec& exec, std::int32_t pc) {
  return fmt::format(
      "only {} at {} is between them: PTX does not say that it orders memory accesses\n"
      "bar.warp.sync (__syncwarp) does; --check collectives_order accepts such an order",
      exec.program().statement(pc).opcode, exec.program().source_text(pc));
}

ChunkBytes bytes_of_lane(const Mark& mark, int lane) {
  if (mark.lanes == 0) return mark.bytes;
  return mark.bytes_of(std::popcount(mark.lanes & ((LaneMask{1} << lane) - 1)));
}

// The contents of a chunk; zeros past the end of the window.
std::array<std::byte, kChunkBytes> bytes_of_chunk(const Exec& exec, std::uint64_t address) {
  std::array<std::byte, kChunkBytes> out{};
  const Cta* cta = cta_of_rank(exec.launch, exec.cta, rank_of(address));
  if (cta == nullptr) return out;
  const std::uint64_t from = offset_of(address) - kSharedBase;
  for (std::size_t i = 0; i < out.size() && from + i < cta->shared.size(); ++i) out[i] = cta->shared[from + i];
  return out;
}

// The bytes that a cp.async of one lane brings to a chunk: those of its source, and zeros past what it reads. The CTA
// lists the copy until a wait retires it; then its bytes are in shared memory.
std::array<std::byte, kChunkBytes> bytes_by_copy(const Exec& exec, const Mark& copy, std::uint64_t address) {
  const auto thread = static_cast<std::size_t>(thread_of(copy.actor) + std::countr_zero(copy.lanes));
  const std::uint64_t chunk = offset_of(address) / kChunkBytes * kChunkBytes;
  std::array<std::byte, kChunkBytes> out = bytes_of_chunk(exec, shared_address(rank_of(address), chunk));
  const auto& all = exec.cta.async.cp_async;
  if (thread >= all.size()) return out;
  const auto& copies = all[thread].copies;
  const auto found = std::find_if(copies.rbegin(), copies.rend(), [&](const CpAsyncCopy& c) {
    return c.pc == copy.pc && offset_of(c.target) / kChunkBytes * kChunkBytes == chunk;
  });
  if (found == copies.rend()) return out;
  const std::byte* const from = found->read > 0 ? exec.launch.memory->at(found->source, found->read) : nullptr;
  std::byte* const to = out.data() + offset_of(found->target) % kChunkBytes;
  std::fill(to, to + found->bytes, std::byte{0});
  if (from != nullptr) std::copy(from, from + found->read, to);
  return out;
}

// Whether two unordered cp.async bring the same bytes to those that they have in common.
bool copy_the_same(const Exec& exec, const Mark& before, const Mark& now, std::uint64_t address) {
  const std::array<std::byte, kChunkBytes> one = bytes_by_copy(exec, before, address);
  const std::array<std::byte, kChunkBytes> two = bytes_by_copy(exec, now, address);
  bool equal = true;
  for (std::size_t i = 0; i < kChunkBytes; ++i) {
    if (((before.bytes & now.bytes) >> i & 1) != 0) equal = equal && one[i] == two[i];
  }
  return equal;
}

}  // namespace

// Whether this pair of places has been reported; each is reported once.
bool RaceChecker::told(ReportKind kind, Severity severity, const Mark& before, const Mark& now) {
  const std::tuple what{kind, severity, before.pc, now.pc};
  if (std::find(told_.begin(), told_.end(), what) != told_.end()) return true;
  told_.push_back(what);
  return false;
}

std::int32_t RaceChecker::meeting(const WarpViews& warp, const Mark& before, int other, const Mark& now, int lane) {
  const bool one_warp =
      before.lanes != 0 && now.lanes != 0 && before.actor == warp.lane0() && now.actor == before.actor;
  return one_warp ? warp.met_since(lane, other, before.meets) : -1;
}

ReportParty RaceChecker::party(const Exec& exec, const Cluster& cluster, const Mark& mark, int lane) const {
  const auto rank = static_cast<int>(cta_of(mark.actor));
  ReportParty out;
  out.action = mark.write ? "write" : "read";
  out.pc = mark.pc;
  out.source = exec.program().source_text(mark.pc);
  if (mark.lanes == 0) {
    const AsyncKind kind = kind_of_engine(mark.actor);
    out.actor = std::string(name(kind));
    if (kind == AsyncKind::wgmma) {
      out.actor += fmt::format(" of warpgroup {}", rank * warps_ / 4 + thread_of(mark.actor));
    } else {
      if (counts_on_barrier(mark.actor)) {
        const std::uint64_t mbarrier = mbarrier_of_engine(mark.actor);
        out.actor += ", mbarrier " + place_name(name_address(exec.launch, Space::shared, mbarrier, 8));
      }
      out.actor += fmt::format(" issued by thread {}", mark.issuer);
    }
    return out;
  }
  out.warp = thread_of(mark.actor) / kLanes;
  out.thread = out.warp * kLanes + lane;
  out.lanes = mark.lanes;
  if (is_copy(mark.actor)) {
    out.actor = fmt::format("cp.async of thread {}", out.thread);
    return out;
  }
  out.actor = fmt::format("thread {} (warp {} lane {})", out.thread, out.warp, lane);
  if (cluster.shadows.size() > 1) out.actor += fmt::format(" of rank {}", rank);
  out.opcode = exec.program().statement(mark.pc).opcode;
  return out;
}

Report RaceChecker::race(const Exec& exec, const Cluster& cluster, ReportKind kind, std::uint64_t address,
                         const Mark& before, int other, const Mark& now, int lane) const {
  const unsigned common = bytes_of_lane(before, other) & bytes_of_lane(now, lane);
  Report r;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.address = name_address(exec.launch, Space::shared,
                           address / kChunkBytes * kChunkBytes + static_cast<std::uint64_t>(std::countr_zero(common)),
                           std::popcount(common));
  r.parties = {party(exec, cluster, before, other), party(exec, cluster, now, lane)};
  return r;
}

void RaceChecker::conflict(Toucher& who, std::uint64_t address, const Mark& before, const Mark& now, int lane,
                           int other) {
  if (!options_.races) return;
  ReportKind kind = before.write ? (now.write ? ReportKind::race_ww : ReportKind::race_wr) : ReportKind::race_rw;
  const bool both_copy = is_copy(before.actor) && is_copy(now.actor);
  if (kind == ReportKind::race_ww && both_copy && options_.same_value != SameValue::error &&
      copy_the_same(who.exec, before, now, address)) {
    if (options_.same_value == SameValue::ignore) return;
    kind = ReportKind::same_value;
  }
  const bool stores = before.lanes != 0 && now.lanes != 0 && !is_copy(before.actor) && !is_copy(now.actor);
  if (kind == ReportKind::race_ww && stores && before.generic && now.generic) {
    // Memory still has the bytes of the earlier write. stored() compares them with the new ones.
    Suspect suspect{address / kChunkBytes * kChunkBytes,
                    static_cast<ChunkBytes>(before.bytes & now.bytes),
                    before,
                    now,
                    other,
                    lane,
                    {}};
    suspect.old = bytes_of_chunk(who.exec, suspect.address);
    suspects_.push_back(suspect);
    return;
  }
  const std::int32_t met = meeting(who.warp, before, other, now, lane);
  const Severity severity = met >= 0 ? Severity::warning : severity_of(kind);
  if (told(kind, severity, before, now)) return;
  Report r = race(who.exec, who.cluster, kind, address, before, other, now, lane);
  r.severity = severity;
  r.message = met >= 0 ? met_text(who.exec, met) : order_text(who.exec, who.warp, lane);
  if (met < 0) {
    r.hint = passed_text(who.exec, who.warp, lane, before);
    if (r.hint.empty()) r.hint = unwaited_text(who.cluster.order, who.warp, lane, before, other);
  }
  if (kind == ReportKind::same_value) r.message += "; both copy the same bytes";
  Exec exec = who.exec;
  static_cast<void>(report(exec, std::move(r)));
}

void RaceChecker::stored(const Exec& exec, const Op&, const WarpAccess&) {
  if (suspects_.empty()) return;
  Cluster* cluster = of(exec.cta);
  for (const Suspect& suspect : suspects_) {
    const std::array<std::byte, kChunkBytes> now = bytes_of_chunk(exec, suspect.address);
    bool equal = true;
    for (std::size_t i = 0; i < kChunkBytes && equal; ++i) {
      equal = (suspect.bytes >> i & 1) == 0 || now[i] == suspect.old[i];
    }
    if (equal && options_.same_value == SameValue::ignore) continue;
    const bool note = equal && options_.same_value == SameValue::note;
    const ReportKind kind = note ? ReportKind::same_value : ReportKind::race_ww;
    const WarpViews& warp = cluster->order.warp(exec);
    const std::int32_t met = meeting(warp, suspect.before, suspect.other, suspect.now, suspect.lane);
    const Severity severity = met >= 0 && !note ? Severity::warning : severity_of(kind);
    if (told(kind, severity, suspect.before, suspect.now)) continue;
    Report r = race(exec, *cluster, kind, suspect.address, suspect.before, suspect.other, suspect.now, suspect.lane);
    r.severity = severity;
    r.message = met >= 0 ? met_text(exec, met) : order_text(exec, warp, suspect.lane);
    if (note) r.message += "; both wrote the same bytes";
    Exec copy = exec;
    static_cast<void>(report(copy, std::move(r)));
  }
  suspects_.clear();
}

void RaceChecker::missing_fence(Toucher& who, std::uint64_t address, const Mark& before, const Mark& now, int other,
                                std::string_view message) {
  // If there is no order at all, the race is reported instead.
  const ActorKey actor = before.actor + static_cast<ActorKey>(other);
  if (!who.warp.is_ordered(who.lane, actor, before.step)) return;
  if (told(ReportKind::proxy_fence, severity_of(ReportKind::proxy_fence), before, now)) return;
  Report r = race(who.exec, who.cluster, ReportKind::proxy_fence, address, before, other, now, who.lane);
  r.message = message;
  Exec exec = who.exec;
  static_cast<void>(report(exec, std::move(r)));
}

}  // namespace kvscope::ptx

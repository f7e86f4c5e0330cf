// What the race checker says: both sides of a conflict, where each stands in the sources, and what was missing.
#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstring>

#include "core/ptx/check/race_cluster.h"
#include "core/ptx/machine/access.h"
#include "core/ptx/machine/scheduler.h"

namespace kvscope::ptx {

bool RaceChecker::told(ReportKind kind, const Mark& before, const Mark& now) {
  return !told_.insert({kind, before.pc, now.pc}).second;
}

ReportParty RaceChecker::party(const Exec& exec, const Cluster& cluster, const Mark& mark, int lane) const {
  ReportParty out;
  out.action = mark.write ? "write" : "read";
  out.pc = mark.pc;
  out.source = exec.program().source_text(mark.pc);
  if (mark.lanes == 0) {
    const Engine& engine = cluster.engines[mark.actor - kEngines];
    out.actor = std::string(name(engine.kind));
    if (engine.kind == AsyncKind::wgmma) {
      out.actor += fmt::format(" of warpgroup {}", engine.owner);
    } else {
      if (engine.owner >= kSharedBase && mark.write) {
        const ReportAddress at = name_address(exec.launch, Space::shared, engine.owner, 8);
        out.actor += at.symbol.empty() ? fmt::format(", mbarrier 0x{:05x}", engine.owner)
                                       : fmt::format(", mbarrier {} + {}", at.symbol, at.offset);
      }
      out.actor += fmt::format(" issued by thread {}", mark.issuer);
    }
    return out;
  }
  const int warp = static_cast<int>(thread_behind(mark.actor)) / kLanes;
  out.warp = warp % warps_;
  out.thread = out.warp * kLanes + lane;
  out.lanes = mark.lanes;
  if (is_copy(mark.actor)) {
    out.actor = fmt::format("cp.async of thread {}", out.thread);
    return out;
  }
  out.actor = fmt::format("thread {} (warp {} lane {})", out.thread, out.warp, lane);
  if (cluster.shadows.size() > 1) out.actor += fmt::format(" of rank {}", warp / warps_);
  out.opcode = exec.program().statement(mark.pc).opcode;
  return out;
}

void RaceChecker::conflict(Toucher& who, std::uint64_t address, const Mark& before, const Mark& now, int lane,
                           int other) {
  if (!options_.races) return;
  const ReportKind kind = before.write ? (now.write ? ReportKind::race_ww : ReportKind::race_wr) : ReportKind::race_rw;
  const bool may_be_equal = kind == ReportKind::race_ww && before.lanes != 0 && now.lanes != 0 &&
                            !is_copy(before.actor) && !is_copy(now.actor);
  if (!may_be_equal && told(kind, before, now)) return;
  const auto common = static_cast<ChunkBytes>(before.bytes & now.bytes);
  const std::uint64_t from = address / kChunkBytes * kChunkBytes;
  Suspect suspect;
  Report& r = suspect.report;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.address = name_address(who.exec.launch, Space::shared,
                           from + static_cast<std::uint64_t>(std::countr_zero(static_cast<unsigned>(common))),
                           std::popcount(static_cast<unsigned>(common)));
  r.parties = {party(who.exec, who.cluster, before, other), party(who.exec, who.cluster, now, lane)};
  const LastSync& sync = who.cluster.threads.last_sync(who.warp, lane);
  const int thread = who.warp % warps_ * kLanes + lane;
  r.message = "no order between them; ";
  r.message += sync.pc < 0 ? fmt::format("thread {} has not synchronised since it began", thread)
                           : fmt::format("thread {} last synchronised at {} ({})", thread,
                                         who.exec.program().source_text(sync.pc), sync.how);
  suspect.address = from;
  suspect.bytes = common;
  if (may_be_equal) {
    // The bytes that are there now are the earlier write's: stored() compares.
    const std::byte* bytes = shared_at(who.exec.cta, from, kChunkBytes);
    if (bytes != nullptr) std::memcpy(suspect.old.data(), bytes, kChunkBytes);
    suspects_.push_back(std::move(suspect));
    return;
  }
  Exec exec = who.exec;
  (void)report(exec, std::move(r));
}

void RaceChecker::stored(const Exec& exec, const Op&, const WarpAccess&) {
  for (Suspect& suspect : suspects_) {
    const std::byte* now = shared_at(exec.cta, suspect.address, kChunkBytes);
    bool equal = now != nullptr;
    for (std::size_t i = 0; i < kChunkBytes && equal; ++i) {
      equal = (suspect.bytes >> i & 1) == 0 || now[i] == suspect.old[i];
    }
    if (equal) {
      if (options_.same_value == SameValue::ignore) continue;
      if (options_.same_value == SameValue::note) {
        suspect.report.kind = ReportKind::same_value;
        suspect.report.severity = severity_of(ReportKind::same_value);
        suspect.report.message += "; both wrote the same bytes";
      }
    }
    Report& r = suspect.report;
    if (!told_.insert({r.kind, r.parties[0].pc, r.parties[1].pc}).second) continue;
    Exec copy = exec;
    (void)report(copy, std::move(r));
  }
  suspects_.clear();
}

void RaceChecker::missing_fence(Toucher& who, std::uint64_t address, const Mark& before, const Mark& now, int other) {
  // Where there is no order at all, that is what is reported.
  if (told_.count({now.write ? ReportKind::race_ww : ReportKind::race_wr, before.pc, now.pc}) != 0) return;
  if (told(ReportKind::proxy_fence, before, now)) return;
  const auto common = static_cast<ChunkBytes>(before.bytes & now.bytes);
  Report r;
  r.kind = ReportKind::proxy_fence;
  r.severity = severity_of(r.kind);
  r.address = name_address(
      who.exec.launch, Space::shared,
      address / kChunkBytes * kChunkBytes + static_cast<std::uint64_t>(std::countr_zero(static_cast<unsigned>(common))),
      std::popcount(static_cast<unsigned>(common)));
  r.parties = {party(who.exec, who.cluster, before, other), party(who.exec, who.cluster, now, who.lane)};
  r.message = "ordinary stores must be followed by fence.proxy.async before the barrier";
  Exec exec = who.exec;
  (void)report(exec, std::move(r));
}

}  // namespace kvscope::ptx

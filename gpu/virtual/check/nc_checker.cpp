#include "gpu/virtual/check/nc_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {

void NcChecker::launch_begins(Launch& launch) {
  const auto& instrs = launch.program->decoded.instrs;
  needed_ = std::any_of(instrs.begin(), instrs.end(), [](const Instr& instr) { return instr.has(Mod::nc); });
  written_.clear();
}

void NcChecker::note(std::uint64_t address, std::int64_t bytes, const Writer& writer) {
  for (std::uint64_t cell = address / 4; cell * 4 < address + static_cast<std::uint64_t>(bytes); ++cell) {
    written_[cell] = writer;
  }
}

void NcChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  if (!needed_ || access.space != Space::global) return;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    if (access.kind != AccessKind::load) {
      note(address, access.bytes, {pc_of(exec, op), exec.cta.index, thread_of(exec, lane)});
      continue;
    }
    if (!access.read_only || written_.empty()) continue;
    for (std::uint64_t cell = address / 4; cell * 4 < address + static_cast<std::uint64_t>(access.bytes); ++cell) {
      const auto found = written_.find(cell);
      if (found == written_.end()) continue;
      const Writer writer = found->second;
      Report r;
      r.kind = ReportKind::nc_modified;
      r.severity = severity_of(r.kind);
      r.address = name_address(exec.launch, Space::global, address, access.bytes);
      ReportParty party;
      party.action = "write";
      party.actor = fmt::format("thread {} (warp {} lane {}) of cta {}", writer.thread, writer.thread / kLanes,
                                writer.thread % kLanes, writer.cta);
      party.thread = writer.thread;
      party.pc = writer.pc;
      party.opcode = exec.program().statement(writer.pc).opcode;
      party.source = exec.program().source_text(writer.pc);
      r.parties = {std::move(party), lane_party(exec, op, lane, LaneMask{1} << lane, "read")};
      r.message = "ld.global.nc may read what was there before this launch: use ld.global for bytes that it writes";
      Exec copy = exec;
      static_cast<void>(report(copy, std::move(r)));
      return;  // one report per instruction
    }
  }
}

void NcChecker::async_moves(Launch&, const Cta& cta, const AsyncOp& op, ByteRanges, ByteRanges writes) {
  if (!needed_) return;
  for (const ByteRange& range : writes) {
    if (range.space == Space::global) note(range.address, range.bytes, {op.pc, cta.index, op.thread});
  }
}

}  // namespace kvscope::ptx

// The text of memory reports: addresses and lanes.
#include <fmt/format.h>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::ptx {
namespace {

// The variable of the kernel's shared layout that contains or precedes an offset; dynamic ones extend to the end.
void name_shared(const Launch& launch, std::uint64_t offset, ReportAddress& to) {
  if (launch.layout == nullptr || launch.program == nullptr) return;
  std::int64_t best = -1;
  for (const auto& [variable, begin] : launch.layout->shared) {
    if (static_cast<std::uint64_t>(begin) > offset || begin < best) continue;
    best = begin;
    to.symbol = declared_name(launch.program->module->variables[static_cast<std::size_t>(variable)].name);
    to.offset = static_cast<std::int64_t>(offset) - begin;
  }
}

}  // namespace

ReportAddress name_address(const Launch& launch, Space space, std::uint64_t address, std::int64_t bytes) {
  ReportAddress to;
  to.space = space;
  to.absolute = address;
  to.bytes = bytes;
  to.known = true;
  switch (space) {
    case Space::shared:
      name_shared(launch, offset_of(address), to);
      break;
    case Space::global:
    case Space::constant: {
      const Allocation* a = launch.memory->find(address);
      if (a == nullptr) a = launch.memory->nearest(address);
      // Beyond the unmapped space around an array, an offset from it would mislead: a null pointer is not "x - 8 GB".
      if (a != nullptr && address + DeviceMemory::kUnmapped > a->address &&
          address < a->end() + DeviceMemory::kUnmapped) {
        to.symbol = declared_name(a->name);
        to.offset = static_cast<std::int64_t>(address - a->address);
      }
      break;
    }
    default:
      break;
  }
  return to;
}

std::string place_name(const ReportAddress& a) {
  if (!a.symbol.empty()) {
    return fmt::format("{} {} {}", a.symbol, a.offset < 0 ? '-' : '+', a.offset < 0 ? -a.offset : a.offset);
  }
  if (a.space == Space::param || a.space == Space::local) return fmt::format("{} {}", name(a.space), a.absolute);
  return a.space == Space::shared ? fmt::format("shared 0x{:05x}", a.absolute) : fmt::format("0x{:x}", a.absolute);
}

ReportParty lane_party(const Exec& exec, const Op& op, int lane, LaneMask lanes, std::string_view action) {
  ReportParty party;
  party.action = action;
  party.thread = thread_of(exec, lane);
  party.warp = exec.warp.index;
  party.lanes = lanes;
  party.actor = fmt::format("thread {} (warp {} lane {})", party.thread, party.warp, lane);
  party.pc = pc_of(exec, op);
  party.opcode = exec.program().statement(party.pc).opcode;
  party.source = exec.program().source_text(party.pc);
  return party;
}

Flow fault(Exec& exec, const Op& op, int lane, ReportKind kind, std::string message, std::string hint,
           ReportAddress address, std::string_view action) {
  Report r;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.message = std::move(message);
  r.hint = std::move(hint);
  r.address = std::move(address);
  r.parties.push_back(lane_party(exec, op, lane, LaneMask{1} << lane, action));
  return report(exec, std::move(r));
}

namespace {

void engine_report(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, Severity severity,
                   std::string message, std::string hint, ReportAddress address) {
  Report r;
  r.kind = kind;
  r.severity = severity;
  r.message = std::move(message);
  r.hint = std::move(hint);
  r.address = std::move(address);
  if (op.pc >= 0) {
    ReportParty party;
    party.action = "issued";
    party.actor = fmt::format("{} of thread {}", name(op.kind), op.thread);
    party.pc = op.pc;
    party.opcode = launch.program->statement(op.pc).opcode;
    party.source = launch.program->source_text(op.pc);
    r.parties.push_back(std::move(party));
  }
  static_cast<void>(add_report(launch, cta, std::move(r)));
}

}  // namespace

void engine_fault(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, std::string message,
                  std::string hint, ReportAddress address) {
  engine_report(launch, cta, op, kind, severity_of(kind), std::move(message), std::move(hint), std::move(address));
}

void engine_note(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, std::string message,
                 std::string hint, ReportAddress address) {
  engine_report(launch, cta, op, kind, Severity::note, std::move(message), std::move(hint), std::move(address));
}

}  // namespace kvscope::ptx

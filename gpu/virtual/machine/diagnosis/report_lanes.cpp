// Reports of the machine about lanes of a warp.
#include <fmt/format.h>

#include <bit>

#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::ptx {
namespace {

// Kinds after which the kernel's execution has no meaning.
bool ends_launch(ReportKind kind) {
  switch (kind) {
    case ReportKind::trap:
    case ReportKind::assert_:
    case ReportKind::unsupported:
    case ReportKind::stack:
    case ReportKind::deadlock:
    case ReportKind::global_spin:
    case ReportKind::runaway:
    case ReportKind::limit:
      return true;
    default:
      return false;
  }
}

}  // namespace

ReportParty lanes_party(const Launch& launch, const Warp& warp, LaneMask lanes, std::int32_t pc,
                        std::string_view action) {
  ReportParty p;
  p.action = action;
  p.warp = warp.index;
  p.lanes = lanes;
  p.pc = pc;
  if (std::has_single_bit(lanes)) {
    const int lane = std::countr_zero(lanes);
    p.thread = warp.index * kLanes + lane;
    p.actor = fmt::format("thread {} (warp {} lane {})", p.thread, warp.index, lane);
  } else {
    p.actor = fmt::format("warp {} lanes {:08x}", warp.index, lanes);
  }
  p.opcode = launch.program->statement(pc).opcode;
  p.source = launch.program->source_text(pc);
  return p;
}

bool add_report(Launch& launch, const Cta& cta, Report report) {
  report.kernel = launch.config.kernel;
  if (launch.short_kernel.empty()) launch.short_kernel = short_name(*launch.program->module, launch.function);
  report.short_kernel = launch.short_kernel;
  for (ReportParty& p : report.parties) p.has_line = p.pc >= 0 && launch.program->statement(p.pc).frame >= 0;
  report.cta = cta.at;
  report.cluster_rank = cta.cluster_rank;
  report.step = launch.step;
  const bool error = report.severity == Severity::error;
  const bool stops = ends_launch(report.kind) || (error && launch.config.options.stop_at_first_error);
  if (launch.reports.add(std::move(report)) && launch.monitor != nullptr) {
    launch.monitor->reported(launch, launch.reports.all().back());
  }
  if (stops || launch.reports.full()) launch.status = LaunchStatus::failed;
  return launch.status == LaunchStatus::running;
}

Flow report(Exec& exec, Report report) {
  if (report.parties.empty()) {
    report.parties.push_back(lanes_party(exec.launch, exec.warp, exec.lane_group.lanes, exec.lane_group.pc, "at"));
  }
  return add_report(exec.launch, exec.cta, std::move(report)) ? Flow::next : Flow::stopped;
}

}  // namespace kvscope::ptx

#include "apps/kvscope-viewer/kernel_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "gpu/virtual/debug/state_text.h"
#include "gpu/virtual/machine/warp/residents.h"

namespace kvscope::apps {
namespace {

using viz::KernelGroup;
using viz::KernelState;

std::string coordinates(const std::array<std::int64_t, 3>& at) {
  return fmt::format("({},{},{})", at[0], at[1], at[2]);
}

// "lanes 0-15"; many runs of lanes are a mask: "lanes 49249249".
std::string short_lanes(ptx::LaneMask lanes) {
  constexpr std::size_t kMostLetters = 20;
  std::string text = ptx::lanes_text(lanes);
  return text.size() <= kMostLetters ? text : fmt::format("lanes {:08x}", lanes);
}

// The next instruction is of a CTA that starts with it.
KernelGroup starting_group(const ptx::Launch& launch, const ptx::Position& next) {
  const auto& grid = launch.config.grid;
  return {.cta = next.cta,
          .warp = next.warp,
          .cta_name = coordinates({next.cta % grid[0], next.cta / grid[0] % grid[1], next.cta / grid[0] / grid[1]}),
          .lanes = short_lanes(next.lanes),
          .state = KernelGroup::State::next,
          .instruction = next.pc,
          .waits_for = {}};
}

// Fills state.groups and state.next; returns the lanes of each group.
std::vector<ptx::LaneMask> add_groups(const ptx::Launch& launch, const ptx::Position& next, KernelState& state) {
  std::vector<ptx::LaneMask> lanes;
  for (const ptx::Cta& cta : launch.ctas) {
    if (cta.state == ptx::CtaState::done) continue;
    for (const ptx::Warp& warp : cta.warps) {
      for (const ptx::LaneGroup& group : warp.lane_groups) {
        if (group.lanes == 0) continue;
        const bool is_next = next.cta == cta.index && next.warp == warp.index && (next.lanes & group.lanes) != 0;
        const bool waits = group.state == ptx::LaneGroupState::waiting;
        if (is_next) state.next = static_cast<std::int32_t>(state.groups.size());
        state.groups.push_back({.cta = cta.index,
                                .warp = warp.index,
                                .cta_name = coordinates(cta.at),
                                .lanes = short_lanes(group.lanes),
                                .state = is_next ? KernelGroup::State::next
                                         : waits ? KernelGroup::State::waits
                                                 : KernelGroup::State::ready,
                                .instruction = group.instruction(),
                                .waits_for = waits ? ptx::wait_text(launch, group) : std::string()});
        lanes.push_back(group.lanes);
      }
    }
  }
  if (state.next < 0 && next.cta >= 0) {
    state.next = static_cast<std::int32_t>(state.groups.size());
    state.groups.push_back(starting_group(launch, next));
    lanes.push_back(next.lanes);
  }
  return lanes;
}

viz::KernelRegister register_of(const ptx::RegisterValue& value) {
  viz::KernelRegister out{.name = value.name, .type = std::string(name(value.type)), .values = {}, .bits = {}};
  for (std::size_t lane = 0; lane < viz::kWarpLanes; ++lane) {
    if ((value.lanes >> lane & 1) == 0) continue;
    out.values[lane] = ptx::value_text(value.type, value.bits[lane]);
    out.bits[lane] = value.type == ptx::Type::pred
                         ? std::to_string(value.bits[lane])
                         : fmt::format("{:0{}x}", value.bits[lane], std::max(1, ptx::bits(value.type) / 4));
  }
  return out;
}

viz::KernelWriter writer_of(const ptx::Writer& writer, const ptx::Program& program) {
  const std::int32_t warp = writer.thread / viz::kWarpLanes;
  viz::KernelWriter out{.text = {}, .step = writer.step, .instruction = writer.pc, .warp = writer.engine ? -1 : warp};
  out.text =
      writer.engine ? fmt::format("{} issued by warp {}", name(writer.copy), warp) : fmt::format("warp {}", warp);
  out.text += fmt::format("  {}  {}", program.statement(writer.pc).opcode, program.source_text(writer.pc));
  return out;
}

viz::KernelShared shared_of(const ptx::ControlledRun& run, const ptx::Cta& cta) {
  viz::KernelShared out{.base = ptx::kSharedBase, .bytes = {}, .writer = {}, .writers = {}, .variables = {}};
  out.bytes.reserve(cta.shared.size());
  out.writer.reserve(cta.shared.size());
  std::map<std::tuple<std::uint64_t, std::int32_t, std::int32_t, bool>, std::int32_t> numbers;
  ptx::Writer before;  // of the byte before, mostly the same
  std::int32_t number = -1;
  for (std::size_t i = 0; i < cta.shared.size(); ++i) {
    out.bytes.push_back(std::to_integer<std::uint8_t>(cta.shared[i]));
    const ptx::Writer writer = run.writers().of(cta.index, ptx::kSharedBase + i);
    if (writer.pc < 0) {
      number = -1;
    } else if (writer != before) {
      const auto [place, is_new] =
          numbers.try_emplace({writer.step, writer.pc, writer.thread / viz::kWarpLanes, writer.engine},
                              static_cast<std::int32_t>(out.writers.size()));
      if (is_new) out.writers.push_back(writer_of(writer, *run.launch().program));
      number = place->second;
    }
    before = writer;
    out.writer.push_back(number);
  }
  const ptx::Module& module = *run.launch().program->module;
  for (const auto& [variable, address] : run.launch().layout->shared) {
    const ptx::Variable& v = module.variables[static_cast<std::size_t>(variable)];
    out.variables.emplace_back(static_cast<std::uint64_t>(address), ptx::declared_name(v.name));
  }
  std::ranges::sort(out.variables);
  return out;
}

viz::KernelReport report_of(const ptx::Report& report) {
  viz::KernelReport out;
  out.step = report.step;
  out.title = name(report.kind);
  out.message = report.address.symbol.empty()
                    ? report.message
                    : fmt::format("{} + {}: {}", report.address.symbol, report.address.offset, report.message);
  out.text = to_text(report);
  out.severity = name(report.severity);
  // The last of them is the one at whose step the report was made.
  for (const ptx::ReportParty& party : report.parties) {
    if (party.pc >= 0) out.instruction = party.pc;
  }
  return out;
}

// The index of the group to show: the one with these lanes, else of that warp the one that is next or the first, else
// the next one. -1: no group is there.
std::int32_t shown_group(const KernelState& state, const ShownWarp& wanted) {
  std::int32_t of_warp = -1;
  for (std::int32_t i = 0; i < std::ssize(state.groups); ++i) {
    const KernelGroup& group = state.groups[static_cast<std::size_t>(i)];
    if (group.cta != wanted.cta || group.warp != wanted.warp) continue;
    if (group.lanes == wanted.lanes) return i;
    if (of_warp < 0 || i == state.next) of_warp = i;
  }
  if (of_warp >= 0) return of_warp;
  if (state.next >= 0) return state.next;
  return state.groups.empty() ? -1 : 0;  // a deadlock: no warp can run
}

}  // namespace

KernelState kernel_state(ptx::ControlledRun& run, const std::vector<ptx::Report>& reports, const ShownWarp& wanted) {
  KernelState state;
  const ptx::Position next = run.position();
  const ptx::Launch& launch = run.launch();
  state.step = run.step();
  state.status = launch.status == ptx::LaunchStatus::running    ? viz::KernelStatus::running
                 : launch.status == ptx::LaunchStatus::finished ? viz::KernelStatus::finished
                                                                : viz::KernelStatus::failed;
  const std::vector<ptx::LaneMask> lanes = add_groups(launch, next, state);
  state.shown = shown_group(state, wanted);
  if (state.shown >= 0) {
    const auto number = static_cast<std::size_t>(state.shown);
    const KernelGroup& shown = state.groups[number];
    for (const ptx::RegisterValue& value : ptx::live_registers(launch, shown.cta, shown.warp, lanes[number])) {
      state.registers.push_back(register_of(value));
    }
    if (const ptx::Cta* const cta = ptx::find_cta(launch, shown.cta)) state.shared = shared_of(run, *cta);
    state.barriers = ptx::barriers_text(launch, shown.cta);
    state.copies = ptx::copies_text(launch, shown.cta);
  }
  for (const ptx::Report& report : reports) state.reports.push_back(report_of(report));
  state.printed = launch.printed;
  return state;
}

}  // namespace kvscope::apps

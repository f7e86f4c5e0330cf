#include "apps/kvscope-viewer/kernel_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "gpu/virtual/debug/state_text.h"
#include "gpu/virtual/machine/warp/residents.h"

namespace kvscope::apps {
namespace {

using viz::KernelGroup;
using viz::KernelState;

// Where a row of KernelState::groups comes from.
struct GroupPlace {
  std::int32_t cta = -1, warp = -1;
  ptx::LaneMask lanes = 0;
};

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

std::vector<GroupPlace> add_groups(const ptx::Launch& launch, const ptx::Position& next, KernelState& state) {
  std::vector<GroupPlace> places;
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
        places.push_back({cta.index, warp.index, group.lanes});
      }
    }
  }
  if (state.next < 0 && next.cta >= 0) {
    state.next = static_cast<std::int32_t>(state.groups.size());
    state.groups.push_back(starting_group(launch, next));
    places.push_back({next.cta, next.warp, next.lanes});
  }
  return places;
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

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

viz::KernelReport report_of(const ptx::Report& report, const ptx::Launch& launch) {
  viz::KernelReport out;
  out.step = report.step;
  out.title = name(report.kind);
  out.message = report.address.symbol.empty()
                    ? report.message
                    : fmt::format("{} + {}: {}", report.address.symbol, report.address.offset, report.message);
  out.text = to_text(report);
  out.severity = name(report.severity);
  const auto& grid = launch.config.grid;
  out.cta = static_cast<std::int32_t>(report.cta[0] + grid[0] * (report.cta[1] + grid[1] * report.cta[2]));
  // The last of them is the one at whose step the report was made.
  for (const ptx::ReportParty& party : report.parties) {
    if (party.pc < 0) continue;
    out.warp = party.warp;
    out.instruction = party.pc;
  }
  return out;
}

}  // namespace

KernelState kernel_state(ptx::ControlledRun& run, const std::vector<ptx::Report>& reports, const ShownWarp& shown) {
  KernelState state;
  const ptx::Position next = run.position();
  const ptx::Launch& launch = run.launch();
  state.step = run.step();
  state.status = launch.status == ptx::LaunchStatus::running    ? viz::KernelStatus::running
                 : launch.status == ptx::LaunchStatus::finished ? viz::KernelStatus::finished
                                                                : viz::KernelStatus::failed;
  const std::vector<GroupPlace> places = add_groups(launch, next, state);
  state.shown = state.next;
  std::int32_t of_warp = -1;
  const bool is_next_warp = state.next >= 0 && shown.cta == next.cta && shown.warp == next.warp;
  for (std::int32_t i = 0; i < std::ssize(state.groups); ++i) {
    const KernelGroup& group = state.groups[static_cast<std::size_t>(i)];
    if (group.cta != shown.cta || group.warp != shown.warp) continue;
    if (group.lanes == shown.lanes) {
      of_warp = i;
      break;
    }
    if (of_warp < 0) of_warp = is_next_warp ? state.next : i;
  }
  if (of_warp >= 0) state.shown = of_warp;
  if (state.shown < 0 && !places.empty()) state.shown = 0;  // nothing can run: a deadlock shows who waits
  if (state.shown >= 0) {
    const GroupPlace& place = places[static_cast<std::size_t>(state.shown)];
    for (const ptx::RegisterValue& value : ptx::live_registers(launch, place.cta, place.warp, place.lanes)) {
      state.registers.push_back(register_of(value));
    }
    if (const ptx::Cta* const cta = ptx::find_cta(launch, place.cta)) state.shared = shared_of(run, *cta);
    state.barriers = list_of(ptx::barriers_text(launch, place.cta));
    state.copies = list_of(ptx::copies_text(launch, place.cta));
  }
  for (const ptx::Report& report : reports) state.reports.push_back(report_of(report, launch));
  state.printed = launch.printed;
  return state;
}

}  // namespace kvscope::apps

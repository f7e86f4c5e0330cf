// st.bulk: each lane fills a range of its CTA's shared memory with zeros. An ordinary store of the thread: 8 bytes at a time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr std::uint64_t kWord = 8, kMostBulkBytes = std::uint64_t{16} << 20;  // PTX ISA 9.0, "st.bulk"

using Sizes = std::array<std::uint64_t, kLanes>;

// Fills the word at `addresses` in these lanes. False: a report ended the launch.
bool fill_word(Exec& exec, const Op& op, LaneMask lanes, LaneAddresses& addresses) {
  const AccessRequest request{.space = space_of(exec.program().instr(op)),
                              .kind = AccessKind::store,
                              .bytes = static_cast<std::int32_t>(kWord),
                              .own_cta = true};
  Monitor* const monitor = exec.launch.monitor;
  Reach r;
  for (LaneMask left = lanes; left != 0;) {
    if (!reach(exec, op, request, addresses, left, r)) return false;
    if (r.lanes == 0) continue;
    if (monitor != nullptr) tell_access(exec, op, request, r, addresses);
    for (LaneMask rest = r.lanes; rest != 0; rest &= rest - 1)
      std::memset(r.of(std::countr_zero(rest), request.bytes), 0, kWord);
    event(exec);
    if (monitor != nullptr) tell_stored(exec, op, request, r, addresses);
  }
  return true;
}

// The lanes whose operands are valid; the first of the others is reported.
LaneMask valid_lanes(Exec& exec, const Op& op, LaneMask lanes, const LaneAddresses& from, const Sizes& sizes) {
  const bool generic = space_of(exec.program().instr(op)) == Space::generic;
  LaneMask valid = 0;
  bool told = false;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto i = static_cast<std::size_t>(lane);
    const bool size_fits = sizes[i] % kWord == 0 && sizes[i] <= kMostBulkBytes;
    const bool window_fits = !generic || space_of(from.at[i]) == Space::shared;
    if (size_fits && window_fits) {
      valid |= LaneMask{1} << lane;
    } else if (!told) {
      told = true;
      const Flow flow =
          size_fits ? fault(exec, op, lane, ReportKind::bad_window,
                            fmt::format("0x{:x} is an address of {}: st.bulk fills shared memory of its CTA only",
                                        from.at[i], name(space_of(from.at[i]))))
                    : fault(exec, op, lane, ReportKind::cp_arg,
                            fmt::format("{} bytes: a multiple of {}, at most {}", sizes[i], kWord, kMostBulkBytes));
      if (flow == Flow::stopped) return 0;
    }
  }
  return valid;
}

// [a], size, 0
Flow fill(Exec& exec, const Op& op, LaneMask lanes) {
  LaneAddresses from;
  operand_addresses(exec, op, 0, from);
  Sizes sizes{};
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    sizes[static_cast<std::size_t>(lane)] = lane_value(exec, op.at[1], 8, lane);
  }
  lanes = valid_lanes(exec, op, lanes, from, sizes);
  for (std::uint64_t offset = 0; exec.launch.status == LaunchStatus::running; offset += kWord) {
    LaneMask some = 0;
    LaneAddresses at = from;
    for (std::size_t i = 0; i < kLanes; ++i) {
      at.at[i] += offset;
      some |= static_cast<LaneMask>(offset < sizes[i]) << i;
    }
    some &= lanes;
    if (some == 0) return Flow::next;
    if (!fill_word(exec, op, some, at)) return Flow::stopped;
  }
  return Flow::stopped;
}

}  // namespace

MachineHandler find_bulk_fill(const Instr& instr) {
  return instr.opcode == Opcode::st_bulk ? fill : nullptr;
}

}  // namespace kvscope::ptx

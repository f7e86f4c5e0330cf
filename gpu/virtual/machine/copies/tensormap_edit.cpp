#include "gpu/virtual/machine/copies/detail/tensormap_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/copies/copy_map.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// The offset of a field in the record, and the value to write.
struct Edit {
  std::size_t at = 0;
  std::size_t bytes = 0;
  std::uint64_t value = 0;
  bool legal = true;
};

// The instruction's type number -> the driver API's.
constexpr std::array<std::uint8_t, 13> kTypes = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};

Edit edit_of(const Instr& instr, std::uint64_t ordinal, std::uint64_t value) {
  const auto at = [&](std::size_t first, std::size_t each, std::size_t count, std::uint64_t written) {
    return Edit{first + each * static_cast<std::size_t>(ordinal), each, written, ordinal < count};
  };
  if (instr.has(Mod::global_address)) return {map_field::kBase, 8, value, true};
  if (instr.has(Mod::rank)) return {map_field::kRank, 1, (value & 0xffffffffU) + 1, value < 5};
  if (instr.has(Mod::global_stride)) return at(map_field::kStrides, 8, 4, value);
  if (instr.has(Mod::global_dim)) return at(map_field::kDims, 4, 5, (value - 1) & 0xffffffffU);
  if (instr.has(Mod::box_dim)) return at(map_field::kBox, 2, 5, value & 0xffffU);
  if (instr.has(Mod::element_stride)) return at(map_field::kElementStrides, 1, 5, value & 0xffU);
  if (instr.has(Mod::elemtype))
    return {map_field::kType, 1, value < kTypes.size() ? kTypes[value] : 0U, value < kTypes.size()};
  if (instr.has(Mod::interleave_layout)) return {map_field::kInterleave, 1, value, value <= 2};
  if (instr.has(Mod::swizzle_mode)) return {map_field::kSwizzle, 1, value, value <= 3};
  return {map_field::kFill, 1, value, value <= 1};  // fill_mode
}

// Kernels that make a map themselves begin with 128 zero bytes: such a record becomes an empty map.
void begin_map(std::byte* record) {
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  if (!std::all_of(record, record + kMapRecordBytes, is_zero)) return;
  std::memcpy(record, kMapMagic.data(), kMapMagic.size());
  record[map_field::kVersion] = std::byte{1};
}

Flow replace(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool numbered = instr.has(Mod::box_dim) || instr.has(Mod::global_dim) || instr.has(Mod::element_stride) ||
                        instr.has(Mod::global_stride);
  const int value_at = numbered ? 2 : 1;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    Space space = space_of(instr);
    const LaneRequest request{space, AccessKind::store, static_cast<std::int64_t>(kMapRecordBytes), 64, true};
    std::byte* const record = reach_lane(exec, op, lane, request, space, address);
    if (record == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    const std::uint64_t ordinal = numbered ? lane_value(exec, op.at[1], width_of(op, 1), lane) : 0;
    const std::uint64_t value =
        lane_value(exec, op.at[static_cast<std::size_t>(value_at)], width_of(op, value_at), lane);
    const Edit edit = edit_of(instr, ordinal, value);
    if (edit.legal) begin_map(record);
    if (!edit.legal || std::memcmp(record, kMapMagic.data(), kMapMagic.size()) != 0) {
      const Flow flow = fault(
          exec, op, lane, ReportKind::tma_arg,
          edit.legal ? std::string("the 128 bytes are not a tensor map of this machine")
                     : fmt::format("tensormap.replace: field {} or value {} is not one there is", ordinal, value));
      if (flow == Flow::stopped) return flow;
      continue;
    }
    std::memcpy(record + edit.at, &edit.value, edit.bytes);
    const std::uint32_t sum = map_checksum(std::span<const std::byte, kMapRecordBytes>(record, kMapRecordBytes));
    std::memcpy(record + map_field::kChecksum, &sum, sizeof sum);
    event(exec);
  }
  return Flow::next;
}

// [global], [shared], 128: one copy for the warp.
Flow copy_and_release(Exec& exec, const Op& op, LaneMask lanes) {
  const int lane = std::countr_zero(lanes);
  std::uint64_t to_address = lane_address(exec.registers, op, 0, lane),
                from_address = lane_address(exec.registers, op, 1, lane);
  const auto bytes = static_cast<std::int64_t>(kMapRecordBytes);
  Space to_space = Space::global, from_space = Space::shared;
  const LaneRequest to_request{Space::global, AccessKind::store, bytes, bytes};
  const LaneRequest from_request{Space::shared, AccessKind::load, bytes, bytes, true};
  std::byte* const to = reach_lane(exec, op, lane, to_request, to_space, to_address);
  const std::byte* const from = reach_lane(exec, op, lane, from_request, from_space, from_address);
  if (to != nullptr && from != nullptr) {
    std::memcpy(to, from, kMapRecordBytes);
    event(exec);
    if (exec.launch.monitor != nullptr) {
      exec.launch.monitor->fence(exec, lanes, Order::release, scope_of(exec.program().instr(op)));
    }
  }
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

}  // namespace

MachineHandler find_tensormap_edit(const Instr& instr) {
  return instr.opcode == Opcode::tensormap_replace ? replace : copy_and_release;
}

}  // namespace kvscope::ptx

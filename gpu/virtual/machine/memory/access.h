// Converts the addresses of 32 lanes to bytes, and checks space, allocation, bounds and alignment of every lane. The
// common case (all lanes in one allocation, contiguous in it, or at one address) costs a few vector instructions.
//
//   LaneMask left = lanes;
//   while (left != 0) {                                  lanes of one generic access may be in several spaces
//     if (!reach(exec, op, request, addresses, left, r)) return Flow::stopped;
//     ... r.lanes may go on: the bytes of a lane are at r.of(lane, bytes)
//   }
//
// A lane with an invalid access is reported (one report per instruction, for the first such lane) and excluded: its
// store has no effect, and its load returns bytes of ff.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// A register contains the result of the last instruction that wrote it, whatever its type was.
template <class T>
struct RegisterCell {
  typedef T type __attribute__((may_alias));
};
template <class T>
[[nodiscard]] inline typename RegisterCell<T>::type* register_of(const Exec& exec, std::uint32_t reg) {
  return static_cast<typename RegisterCell<T>::type*>(
      __builtin_assume_aligned(static_cast<void*>(exec.registers + reg), sizeof(T) < 2 ? 4 : 64));
}
// A lane's value, zero-extended: for operands that are read a few times (counts, coordinates, policies).
[[nodiscard]] inline std::uint64_t lane_value(const Exec& exec, std::uint32_t reg, int bytes, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, exec.registers + reg + lane * bytes, static_cast<std::size_t>(bytes));
  return value;
}

// Writes the lanes of a predicate's word; no effect for kNoRegister.
void write_predicate(Exec& exec, std::uint32_t reg, LaneMask lanes, LaneMask value);

// Not initialized: every instruction fills it in.
struct alignas(64) LaneAddresses {
  std::array<std::uint64_t, kLanes> at;
};

struct AccessRequest {
  Space space = Space::generic;
  AccessKind kind = AccessKind::load;
  std::int32_t bytes = 4;    // per lane, whole vector; a power of two: also the alignment
  bool own_cta = false;      // .shared::cta, and .shared alone: no other rank is allowed
  bool mbarrier = false;     // may access a live mbarrier: an mbarrier instruction
  bool matrix_rows = false;  // WarpAccess
};

// The addresses of a bracketed operand, in all lanes.
void operand_addresses(const Exec& exec, const Op& op, int operand, LaneAddresses& out);

struct Reach {
  Space space = Space::global;  // of these lanes; `addresses` has been converted to it (monitor.h, WarpAccess)
  LaneMask lanes = 0;
  bool one = false;                     // all 32 lanes at one address, that of lane 0
  bool filled = false;                  // `addresses` of lanes outside is that of the first lane inside
  std::byte* contiguous = nullptr;      // all 32 lanes contiguous from here
  std::array<std::byte*, kLanes> lane;  // of `lanes`, if contiguous is null
  [[nodiscard]] std::byte* of(int i, std::int32_t bytes) const {
    return contiguous != nullptr ? contiguous + i * bytes : lane[static_cast<std::size_t>(i)];
  }
};

// Removes the lanes of the next space from `left`. `addresses` of lanes that are not in `left` may have any value.
// Returns false if a report ended the launch.
[[nodiscard]] bool reach(Exec& exec, const Op& op, const AccessRequest& request, LaneAddresses& addresses,
                         LaneMask& left, Reach& out);

// One lane, any number of bytes. Returns null if the access is invalid; the fault has then been reported. `align` is a
// power of two. Converts the address to one in `space`.
struct LaneRequest {
  Space space = Space::generic;
  AccessKind kind = AccessKind::load;
  std::int64_t bytes = 4;
  std::int64_t align = 4;
  bool own_cta = false;
  bool mbarrier = false;
};
[[nodiscard]] std::byte* reach_lane(Exec& exec, const Op& op, int lane, const LaneRequest& request, Space& space,
                                    std::uint64_t& address);

// --- CTAs and threads ------------------------------------------------------------------------------------------------

// CTAs per cluster; 1 without clusters.
[[nodiscard]] std::int64_t cluster_size(const Launch& launch);
// The CTA of that rank in the same cluster; null if there is none or it is no longer resident.
[[nodiscard]] Cta* cta_of_rank(Launch& launch, Cta& cta, std::uint64_t rank);
[[nodiscard]] const Cta* cta_of_rank(const Launch& launch, const Cta& cta, std::uint64_t rank);
// The byte at an offset in a CTA's window if all `bytes` of it exist, otherwise null.
[[nodiscard]] inline const std::byte* shared_at(const Cta& cta, std::uint64_t offset, std::int64_t bytes) {
  const std::uint64_t from = offset - kSharedBase, size = cta.shared.size();
  if (from > size || static_cast<std::uint64_t>(bytes) > size - from) return nullptr;
  return cta.shared.data() + from;
}
[[nodiscard]] inline std::byte* shared_at(Cta& cta, std::uint64_t offset, std::int64_t bytes) {
  return const_cast<std::byte*>(shared_at(std::as_const(cta), offset, bytes));
}
// A lane's number in its CTA.
[[nodiscard]] inline std::int32_t thread_of(const Exec& exec, int lane) {
  return exec.warp.index * kLanes + lane;
}
// The pc of the running op.
[[nodiscard]] inline std::int32_t pc_of(const Exec& exec, const Op& op) {
  return static_cast<std::int32_t>(&op - exec.program().ops.data());
}

// --- reports ---------------------------------------------------------------------------------------------------------

// The variable or allocation that contains an address or is nearest to it, with the offset: "x + 16".
[[nodiscard]] ReportAddress name_address(const Launch& launch, Space space, std::uint64_t address, std::int64_t bytes);
// "x + 16", "x - 16"; "0x10" if no variable or allocation is known there.
[[nodiscard]] std::string place_name(const ReportAddress& address);
[[nodiscard]] ReportParty lane_party(const Exec& exec, const Op& op, int lane, LaneMask lanes, std::string_view action);
// Reports a fault of a lane at the running op; returns the Flow of report().
Flow fault(Exec& exec, const Op& op, int lane, ReportKind kind, std::string message, std::string hint = {},
           ReportAddress address = {}, std::string_view action = "issued");
// The same for an engine. An engine has no lane, and its fault does not stop a lane by itself.
void engine_fault(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, std::string message,
                  std::string hint = {}, ReportAddress address = {});
void engine_note(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, std::string message,
                 std::string hint = {}, ReportAddress address = {});

}  // namespace kvscope::ptx

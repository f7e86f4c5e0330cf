// Addresses of 32 lanes -> bytes: which space, whose memory, inside it, aligned. Every lane of every access is checked;
// the common case (all lanes in one allocation, or side by side in it) costs a few vector instructions.
//
//   LaneMask left = lanes;
//   while (left != 0) {                                  lanes of one generic access may be in several spaces
//     if (!reach(exec, op, request, addresses, left, r)) return Flow::stopped;
//     ... r.lanes may go on: the bytes of a lane are at r.of(lane, bytes)
//   }
//
// A lane that must not touch what it names is reported (one report an instruction, for its first such lane) and left
// out: it stores nothing and loads bytes of ff.
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

// A register holds what the last instruction made of it, whatever its type was.
template <class T>
struct RegisterCell {
  typedef T type __attribute__((may_alias));
};
template <class T>
[[nodiscard]] inline typename RegisterCell<T>::type* register_of(const Exec& exec, std::uint32_t reg) {
  return static_cast<typename RegisterCell<T>::type*>(
      __builtin_assume_aligned(static_cast<void*>(exec.registers + reg), sizeof(T) < 2 ? 4 : 64));
}
// A value of a lane, widened without a sign: for operands that are read a few times (counts, coordinates, policies).
[[nodiscard]] inline std::uint64_t lane_value(const Exec& exec, std::uint32_t reg, int bytes, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, exec.registers + reg + lane * bytes, static_cast<std::size_t>(bytes));
  return value;
}

// The lanes of a predicate's word; nothing for kNoRegister.
void write_predicate(Exec& exec, std::uint32_t reg, LaneMask lanes, LaneMask value);

// Not initialised: every instruction fills it in.
struct alignas(64) LaneAddresses {
  std::array<std::uint64_t, kLanes> at;
};

struct AccessRequest {
  Space space = Space::generic;
  AccessKind kind = AccessKind::load;
  std::int32_t bytes = 4;    // a lane, whole vector; a power of two: also the alignment
  bool own_cta = false;      // .shared::cta, and .shared alone: no other rank
  bool mbarrier = false;     // may touch a live mbarrier: it is one of its instructions
  bool matrix_rows = false;  // WarpAccess
};

// The addresses of an operand in brackets, in all lanes.
void operand_addresses(const Exec& exec, const Op& op, int operand, LaneAddresses& out);

struct Reach {
  Space space = Space::global;  // of these lanes; their addresses are in it now (monitor.h, WarpAccess)
  LaneMask lanes = 0;
  std::byte* contiguous = nullptr;      // all 32 lanes side by side from here
  std::array<std::byte*, kLanes> lane;  // of `lanes`, when contiguous is null
  [[nodiscard]] std::byte* of(int i, std::int32_t bytes) const {
    return contiguous != nullptr ? contiguous + i * bytes : lane[static_cast<std::size_t>(i)];
  }
};

// Takes the lanes of the next space off `left`. `addresses` of lanes that are not in `left` may be anything.
// False: a report ended the launch.
[[nodiscard]] bool reach(Exec& exec, const Op& op, const AccessRequest& request, LaneAddresses& addresses,
                         LaneMask& left, Reach& out);

// One lane, of any number of bytes: null when it must not, and the report has been made. `align` is a power of two.
// The address becomes the one in `space` that it is in.
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

// --- who is where ----------------------------------------------------------------------------------------------------

// CTAs of a cluster; 1 without.
[[nodiscard]] std::int64_t cluster_size(const Launch& launch);
// The CTA of that rank in the same cluster; null: there is none, or it is not resident any more.
[[nodiscard]] Cta* cta_of_rank(Launch& launch, Cta& cta, std::uint64_t rank);
[[nodiscard]] const Cta* cta_of_rank(const Launch& launch, const Cta& cta, std::uint64_t rank);
// The byte of an offset in a CTA's window when all `bytes` of it are there, else null.
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
// Where the running op stands.
[[nodiscard]] inline std::int32_t pc_of(const Exec& exec, const Op& op) {
  return static_cast<std::int32_t>(&op - exec.program().ops.data());
}

// --- reports ---------------------------------------------------------------------------------------------------------

// "x + 16" of an address: the variable or allocation that it is in or next to.
[[nodiscard]] ReportAddress name_address(const Launch& launch, Space space, std::uint64_t address, std::int64_t bytes);
// "x + 16", "x - 16"; "0x10" when nothing has a name there.
[[nodiscard]] std::string place_name(const ReportAddress& address);
[[nodiscard]] ReportParty lane_party(const Exec& exec, const Op& op, int lane, LaneMask lanes, std::string_view action);
// A report of a lane about the running op; its Flow as report() gives it.
Flow fault(Exec& exec, const Op& op, int lane, ReportKind kind, std::string message, std::string hint = {},
           ReportAddress address = {}, std::string_view action = "issued");
// The same of an engine, which has no lane and stops nobody by itself.
void engine_fault(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, std::string message,
                  std::string hint = {}, ReportAddress address = {});
void engine_note(Launch& launch, const Cta& cta, const AsyncOp& op, ReportKind kind, std::string message,
                 std::string hint = {}, ReportAddress address = {});

}  // namespace kvscope::ptx

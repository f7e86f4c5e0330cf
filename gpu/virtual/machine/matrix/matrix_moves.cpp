#include "gpu/virtual/machine/matrix/detail/matrix_moves.h"

#include <cstring>

#include "gpu/virtual/machine/matrix/detail/wmma.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr int kRowBytes = 16;

int matrices_of(const Instr& instr) {
  return instr.has(Mod::x4) ? 4 : instr.has(Mod::x2) ? 2 : 1;
}

AccessRequest op_request(const Instr& instr, AccessKind kind) {
  const Space space = space_of(instr);
  return {.space = space, .kind = kind, .bytes = kRowBytes, .own_cta = space == Space::shared, .matrix_rows = true};
}

// Transposes 8 x 8 halfwords: column g of `rows` becomes the 16 bytes from to + 16 g on.
void transpose(const std::byte* const* rows, std::byte* to) {
  using Row = std::uint16_t __attribute__((vector_size(kRowBytes)));
  Row m[8], n[8];
  for (int k = 0; k < 8; ++k) std::memcpy(&m[k], rows[k], kRowBytes);
  // Each step interleaves row i with row i + 4: after three, the three bits of the row and of the column have changed places.
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 4; ++i) {
      n[2 * i] = __builtin_shufflevector(m[i], m[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      n[2 * i + 1] = __builtin_shufflevector(m[i], m[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::memcpy(m, n, sizeof m);
  }
  std::memcpy(to, m, sizeof m);
}

// Looks up the rows that lanes 0 .. 8 * count - 1 name. An invalid row is null in `rows`. False: stopped.
bool reach_rows(Exec& exec, const Op& op, const AccessRequest& request, int count, LaneAddresses& addresses, Reach& r,
                std::byte** rows) {
  const LaneMask named = count == 4 ? kAllLanes : (LaneMask{1} << (8 * count)) - 1;
  for (int i = 0; i < 8 * count; ++i) rows[i] = nullptr;
  for (LaneMask left = named; left != 0;) {
    if (!reach(exec, op, request, addresses, left, r)) return false;
    if (exec.launch.monitor != nullptr && r.lanes != 0) tell_access(exec, op, request, r, addresses);
    for (int i = 0; i < 8 * count; ++i) {
      if ((r.lanes >> i & 1) != 0) rows[i] = r.of(i, kRowBytes);
    }
  }
  return true;
}

Flow ldmatrix(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  const Instr& instr = exec.program().instr(op);
  const int count = matrices_of(instr);
  const std::uint32_t* to = op.list != nullptr ? op.list : op.at.data();
  LaneAddresses addresses;
  operand_addresses(exec, op, 1, addresses);
  Reach r;
  std::byte* rows[kLanes];
  if (!reach_rows(exec, op, op_request(instr, AccessKind::load), count, addresses, r, rows)) return Flow::stopped;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->collective(exec, op, lanes);
  static constexpr std::byte kUnknown[kRowBytes] = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                                    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                                    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                                    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  for (int m = 0; m < count; ++m) {
    if (to[m] == kNoRegister) continue;
    std::byte* const reg = exec.registers + to[m];
    if (!instr.has(Mod::trans)) {  // lane 4g + t: word t of row g, so the rows side by side
      for (int g = 0; g < 8; ++g) {
        const std::byte* from = rows[8 * m + g];
        std::memcpy(reg + g * kRowBytes, from != nullptr ? from : kUnknown, kRowBytes);
      }
    } else {  // halfword h of lane 4g + t: row 2t + h, column g
      const std::byte* from[8];
      for (int k = 0; k < 8; ++k) from[k] = rows[8 * m + k] != nullptr ? rows[8 * m + k] : kUnknown;
      transpose(from, reg);
    }
  }
  return Flow::next;
}

Flow stmatrix(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  const Instr& instr = exec.program().instr(op);
  const int count = matrices_of(instr);
  const std::uint32_t* from = op.list != nullptr ? op.list + 1 : op.at.data() + 1;
  const AccessRequest request = op_request(instr, AccessKind::store);
  LaneAddresses addresses;
  operand_addresses(exec, op, 0, addresses);
  Reach r;
  std::byte* rows[kLanes];
  if (!reach_rows(exec, op, request, count, addresses, r, rows)) return Flow::stopped;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->collective(exec, op, lanes);
  for (int m = 0; m < count; ++m) {
    const std::byte* const reg = exec.registers + from[m];
    for (int k = 0; k < 8; ++k) {
      std::byte* const to = rows[8 * m + k];
      if (to == nullptr) continue;
      if (!instr.has(Mod::trans)) {
        std::memcpy(to, reg + k * kRowBytes, kRowBytes);
      } else {
        for (int g = 0; g < 8; ++g) std::memcpy(to + 2 * g, reg + (4 * g + k / 2) * 4 + k % 2 * 2, 2);
      }
    }
  }
  event(exec);
  if (exec.launch.monitor != nullptr && r.lanes != 0) tell_stored(exec, op, request, r, addresses);
  return Flow::next;
}

}  // namespace

MachineHandler find_matrix_move(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::ldmatrix:
      return ldmatrix;
    case Opcode::stmatrix:
      return stmatrix;
    default:
      return find_wmma(instr);
  }
}

}  // namespace kvscope::ptx

// Instructions of tensor memory: what their handlers share.
//
//   alloc dealloc relinquish_alloc_permit     tensor_alloc.cpp     a warp; with .cta_group::2 a warp of each CTA of a
//   pair
//   ld st wait::ld wait::st fence             tensor_moves.cpp     a warp
//   mma cp commit                             tensor_engine.cpp    a lane issues, the tensor core performs, in issue
//   order
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/tensor/tensor_memory.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_tensor_alloc(const Instr& instr);
[[nodiscard]] MachineHandler find_tensor_move(const Instr& instr);
[[nodiscard]] MachineHandler find_tensor_engine(const Instr& instr);

// The other CTA of a pair: its rank differs in bit 0 alone. Null: none is resident.
[[nodiscard]] Cta* peer_of(Launch& launch, Cta& cta);
// The even CTA of the pair, then the odd one; without .cta_group::2 the CTA alone.
[[nodiscard]] std::vector<Cta*> ctas_of(Launch& launch, Cta& cta, bool pair);

// Whether the kernel uses one .cta_group throughout; otherwise the first use of another is reported. False: stopped.
[[nodiscard]] bool agrees_on_group(Exec& exec, const Op& op);

// Reports cells that no allocation of `cta` contains. `what`: "tcgen05.ld reads". True: all are allocated.
[[nodiscard]] bool is_allocated(Exec& exec, const Op& op, int lane, const Cta& cta, const TensorRegion& region,
                                std::string_view what);

// The value of an operand that must be equal in all lanes, from the first of them; differing values are reported.
struct UniformValue {
  std::uint64_t value = 0;
  bool stopped = false;
};
[[nodiscard]] UniformValue uniform_value(Exec& exec, const Op& op, LaneMask lanes, int operand, std::string_view what);

// Performs the oldest operation of the CTA's tensor core. Precondition: there is one.
void perform_tensor_op(Launch& launch, Cta& cta);
// D of a product, or the cells of a copy, of operations that have been checked at their issue.
void perform_product(Launch& launch, Cta& cta, const TensorOp& t);
void perform_tensor_copy(Launch& launch, Cta& cta, const TensorOp& t);
// The CTA has ended: reports operations in flight, and performs them; reports columns that are still allocated.
void end_tensor_memory(Launch& launch, Cta& cta);

}  // namespace kvscope::ptx

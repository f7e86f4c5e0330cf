// Whether the CTAs of a kernel can see one another's writes, decided by its instructions alone.
//
//   waits     a CTA can wait for another one: a barrier of the grid, or a volatile, relaxed or acquire load of global memory in
//             a loop. Such a kernel needs all its CTAs.
//   shares    a CTA can see what another one did: the same, and atomics, reductions and strong accesses of global memory, malloc,
//             cluster launch control, %globaltimer. Such CTAs run one after the other.
//
// Accesses with a generic address count as global. Plain loads and stores to the same bytes are not found: that depends on
// addresses.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

struct CtaCommunication {
  std::string waits;   // the reason: "ld.acquire.gpu.u32 in a loop (k.cu:7)"; "": none
  std::string shares;  // the same
};
// Of the kernel and all functions that it may call.
[[nodiscard]] CtaCommunication cta_communication(const Program& program, std::int32_t kernel);

}  // namespace kvscope::ptx

// Every fragment map by name, for the tables of the command line, the viewer's list and the tests.
//
//   mma.m16n8k16.a | .b | .c            mma.m16n8k32.a | .b | .c
//   mfma.32x32x16.k | .v | .sum         and of 32x32x8, 16x16x32, 32x32x64, 16x16x128
//   ldmatrix.k_as_b.16 | .8             the same for k_as_a; v_as_b.16, v_as_a.16
//   fp8_v                               V of 8 bits after ldmatrix.trans and two byte permutations
//   wgmma.m64n64.d                      n 8, 16, 32, 64, 128, 256; wgmma.a.16 | .8: A in registers
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/fragment/fragment_map.h"

namespace kvscope {

struct CatalogedFragment {
  std::string name;
  std::function<FragmentMap()> make;
};

[[nodiscard]] std::span<const CatalogedFragment> fragment_catalog();

// The map of that name. InputError naming `where` and the nearest name when there is none.
[[nodiscard]] FragmentMap cataloged_fragment(std::string_view where, std::string_view name);

}  // namespace kvscope

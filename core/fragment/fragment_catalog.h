// Every fragment map there is, by name: what a table is drawn of, a viewer offers, and a test goes through.
//
//   mma.m16n8k16.a | .b | .c            mma.m16n8k32.a | .b | .c
//   mfma.32x32x16.k | .v | .sum         and of 32x32x8, 16x16x32, 32x32x64, 16x16x128
//   ldmatrix.k_as_b.16 | .8             k_as_a likewise; v_as_b.16, v_as_a.16
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

// InputError naming `where` for a name that is not there, with the nearest one that is.
[[nodiscard]] FragmentMap cataloged_fragment(std::string_view where, std::string_view name);

}  // namespace kvscope

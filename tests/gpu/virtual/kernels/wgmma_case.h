// 64 x 64 x 16 of small integers: A(i, k) = (i + 2k) mod 5 - 2, B(k, n) = (3k + n) mod 7 - 3, added to C(i, n) = i - n.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test {

class WgmmaCase {
 public:
  WgmmaCase();

  struct Launch {
    Run run;
    std::uint64_t out = 0;
  };
  // `row`: bytes of a row of the layout, 16 without swizzle. `bug`: 0 or a number of wgmma.cu.
  [[nodiscard]] Launch launch(Gpu& gpu, int row, bool a_along_m, bool b_along_n, bool a_in_registers, int bug) const;
  [[nodiscard]] const std::vector<float>& expected() const { return expected_; }  // [64][64]

 private:
  std::vector<std::uint16_t> a_, b_;  // [64][16] bf16: k fastest in both
  std::vector<float> c_, expected_;   // [64][64]
};

}  // namespace kvscope::ptx::test

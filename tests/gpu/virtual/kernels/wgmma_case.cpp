#include "tests/gpu/virtual/kernels/wgmma_case.h"

#include <array>

namespace kvscope::ptx::test {
namespace {

int a_of(int i, int k) {
  return (i + 2 * k) % 5 - 2;
}
int b_of(int k, int n) {
  return (3 * k + n) % 7 - 3;
}

// As the kernel's parameter: bytes of a row, leading and stride offsets, along m or n.
using Layout = std::array<std::int32_t, 4>;
// The densest layout of a 64 x 16 operand. Without swizzle: blocks of 8 x 16 bytes, along k first or along m first.
Layout layout(int row, bool along_mn) {
  if (!along_mn) return row == 16 ? Layout{16, 128, 256, 0} : Layout{row, 0, 8 * row, 0};
  return row == 16 ? Layout{16, 1024, 128, 1} : Layout{row, 16 * row, 8 * row, 1};
}

}  // namespace

WgmmaCase::WgmmaCase() {
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < 16; ++k) {
      a_.push_back(bf16(static_cast<float>(a_of(i, k))));
      b_.push_back(bf16(static_cast<float>(b_of(k, i))));
    }
  for (int i = 0; i < 64; ++i)
    for (int n = 0; n < 64; ++n) {
      int sum = i - n;
      c_.push_back(static_cast<float>(sum));
      for (int k = 0; k < 16; ++k) sum += a_of(i, k) * b_of(k, n);
      expected_.push_back(static_cast<float>(sum));
    }
}

WgmmaCase::Launch WgmmaCase::launch(Gpu& gpu, int row, bool a_along_m, bool b_along_n, bool a_in_registers,
                                    int bug) const {
  const std::uint64_t a = gpu.upload("a", a_), b = gpu.upload("b", b_), out = gpu.upload("d", c_);
  return {{.kernel = "wgmma_tile",
           .block = {128, 1, 1},
           .values = {out, a, b, block(layout(row, a_along_m)), block(layout(row, b_along_n)),
                      value(a_in_registers ? 1 : 0), value(bug)},
           .dynamic_shared = 32768},
          out};
}

}  // namespace kvscope::ptx::test

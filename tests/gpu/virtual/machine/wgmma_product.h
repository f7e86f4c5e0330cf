// One wgmma.mma_async in a generated kernel: operands are stored at the addresses of the descriptors by formulas of
// this file, and the sums are read from the registers that the manual defines.
//
//   WgmmaProduct p{.n = 24, .d = Type::f32, .a = Type::bf16, .b = Type::bf16, .row = 64, .a_along_m = true};
//   EXPECT_EQ(run_wgmma(p).d[i * 24 + j], ...)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/virtual/machine/device.h"

namespace kvscope::ptx::test {

struct WgmmaProduct {
  int n = 8;
  Type d = Type::f32, a = Type::bf16, b = Type::bf16;
  int row = 128;  // [bytes] of a row of shared memory: 16 for no swizzle, otherwise the swizzle's width
  bool a_along_m = false, b_along_n = false;
  bool a_in_registers = false;
  bool saturate = false;
  bool sparse = false;  // A has half of its elements: sparse_column
  int selector = 0;     // of the lanes that have the metadata; the other lanes' is random
  int sign_a = 1, sign_b = 1;
  bool adds = true;                  // scale-d
  bool scale_by_register = false;    // scale-d is a predicate
  bool descriptors_in_text = false;  // numbers in place of registers
  SumMode sum = SumMode::seq;
  Simd simd = best_simd();
  Policy policy = Policy::late;
  // The numbers; by default small integers, for which every order of adding is exact.
  std::function<double(int i, int k)> a_at = {};
  std::function<double(int k, int j)> b_at = {};
  std::function<double(int i, int j)> c_at = {};
};

inline constexpr int kWgmmaRows = 64;
[[nodiscard]] int wgmma_k(Type a);  // 32 bytes of k
// The column of stored element j of row i of a sparse A: two of four elements, of tf32 one of two.
[[nodiscard]] int sparse_column(Type a, int i, int j);
[[nodiscard]] double integer_a(Type type, int i, int k);
[[nodiscard]] double integer_b(Type type, int k, int j);

// The whole PTX, and its instruction: "wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16 {..}, .."
[[nodiscard]] std::string wgmma_text(const WgmmaProduct& product, const std::string& kernel = "k");

struct WgmmaOutcome {
  std::vector<double> d;  // [64][n]
  std::vector<std::string> messages;
};
[[nodiscard]] WgmmaOutcome run_wgmma(const WgmmaProduct& product);

}  // namespace kvscope::ptx::test

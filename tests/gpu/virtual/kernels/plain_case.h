// A matrix product and an attention by kernels without tensor cores (cuda/plain.cu): the data, the launches, and the expected output in
// double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test {

struct PlainLaunch {
  Run run;
  std::uint64_t out = 0;
};

// c = a b, all sizes multiples of 16.
class PlainGemmCase {
 public:
  static constexpr std::size_t kRows = 32, kColumns = 48, kDepth = 64;

  PlainGemmCase();
  [[nodiscard]] PlainLaunch launch(Gpu& gpu) const;
  // The largest difference from the output in double; infinity if there is a NaN.
  [[nodiscard]] double error(Gpu& gpu, const PlainLaunch& launch) const;

 private:
  std::vector<float> a_, b_;    // [row][depth], [depth][column]
  std::vector<double> answer_;  // [row][column]
};

// Attention of every row over all rows of its head.
class PlainFlashCase {
 public:
  static constexpr std::size_t kHeads = 2, kRows = 64, kDim = 64;

  PlainFlashCase();
  [[nodiscard]] PlainLaunch launch(Gpu& gpu) const;
  [[nodiscard]] double error(Gpu& gpu, const PlainLaunch& launch) const;

 private:
  std::vector<float> queries_, keys_, values_;  // [head][row][dim]
  std::vector<double> answer_;
};

}  // namespace kvscope::ptx::test

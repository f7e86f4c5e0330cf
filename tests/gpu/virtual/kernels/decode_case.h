// A sequence of a paged cache, two KV heads, four query rows each: the data in blocks of a pool, the launch, and the
// expected output in double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test {

class DecodeCase {
 public:
  static constexpr std::int64_t kHeads = 2, kGroup = 4, kDim = 128, kPage = 128;

  explicit DecodeCase(std::int64_t tokens);

  struct Launch {
    Run run;
    std::uint64_t out = 0;
  };
  [[nodiscard]] Launch launch(Gpu& gpu, const std::string& kernel, int bug = -1) const;
  [[nodiscard]] std::vector<float> output(Gpu& gpu, const Launch& launch) const;
  // The largest difference from the output in double; infinity if there is a NaN.
  [[nodiscard]] double error(const std::vector<float>& output) const;

 private:
  [[nodiscard]] std::size_t place(std::int64_t token, std::int64_t head) const;

  std::int64_t tokens_, pages_;
  std::vector<std::int32_t> table_;           // page -> block
  std::vector<std::uint16_t> keys_, values_;  // [block][page row][head][128] bf16
  std::vector<std::uint16_t> queries_;        // [head][4][128]
  std::vector<double> answer_;                // [head][4][128]
};

}  // namespace kvscope::ptx::test

// 64 queries and 64 keys of 128 elements: the data, the launches of every kernel that computes their scores, and the
// expected scores by a loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test {

class QkCase {
 public:
  static constexpr std::size_t kRows = 64, kDim = 128;

  QkCase();

  struct Launch {
    Run run;
    std::uint64_t scores = 0;
  };
  // A kernel of (map of the keys, queries, scores), and with `bug` of one more.
  [[nodiscard]] Launch by_tensor_copies(Gpu& gpu, const std::string& kernel, int bug = -1) const;
  // A kernel of (keys, queries, scores).
  [[nodiscard]] Launch by_cp_async(Gpu& gpu, const std::string& kernel, int bug = -1) const;

  // The number of scores whose bits differ from the loop's.
  [[nodiscard]] int differences(Gpu& gpu, const Launch& launch) const;

 private:
  std::vector<std::uint16_t> keys_;     // [64][128] bf16
  std::vector<std::uint16_t> queries_;  // [64][128]
  std::vector<float> scores_;           // [query][key]
};

}  // namespace kvscope::ptx::test

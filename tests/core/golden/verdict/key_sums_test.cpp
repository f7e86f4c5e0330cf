// The loops of every instruction set against plain loops, bit for bit, around the lanes of a vector.
#include "core/golden/verdict/detail/key_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace kvscope::golden::key_sums_test {
namespace {

std::vector<double> drawn(std::int64_t count, std::uint64_t stream) {
  const CounterRng rng(1, stream);
  std::vector<double> values;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) values.push_back(rng.bell(i));
  return values;
}

TEST(KeySums, EveryInstructionSetHasTheBitsOfPlainLoops) {
  for (const attention::InstructionSet set : attention::available_instruction_sets()) {
    const KeySums& sums = key_sums(set);
    for (const std::int64_t dims : {1, 2, 3, 7, 8, 9, 16, 21}) {
      for (const std::int64_t keys : {0, 1, 5}) {
        SCOPED_TRACE(std::to_string(dims) + " dims, " + std::to_string(keys) + " keys");
        const std::vector<double> e = drawn(keys, 1), v = drawn(keys * dims, 2), start = drawn(dims, 3);
        std::vector<const double*> rows;
        for (std::int64_t t = 0; t < keys; ++t) rows.push_back(v.data() + t * dims);
        std::vector<double> o = start, a1 = start, a2 = start, want_o = start, want_a1 = start, want_a2 = start;
        sums.add(e.data(), rows.data(), keys, dims, o.data(), a1.data(), a2.data());
        for (std::size_t t = 0; t < rows.size(); ++t) {
          for (std::size_t d = 0; d < start.size(); ++d) {
            want_o[d] += e[t] * rows[t][d];
            want_a1[d] += e[t] * std::fabs(rows[t][d]);
            want_a2[d] += e[t] * e[t] * rows[t][d] * rows[t][d];
          }
        }
        EXPECT_EQ(o, want_o);
        EXPECT_EQ(a1, want_a1);
        EXPECT_EQ(a2, want_a2);
      }
      const std::vector<double> value = drawn(dims, 4), o = drawn(dims, 5);
      const std::vector<double> columns = drawn(dims * static_cast<std::int64_t>(kTogether), 6);
      std::vector<double> have(kTogether), want(kTogether);
      sums.project(value.data(), o.data(), columns.data(), dims, have.data());
      for (std::size_t i = 0; i < value.size(); ++i) {
        for (std::size_t j = 0; j < kTogether; ++j) want[j] += columns[i * kTogether + j] * (value[i] - o[i]);
      }
      EXPECT_EQ(have, want);
    }
  }
}

}  // namespace
}  // namespace kvscope::golden::key_sums_test

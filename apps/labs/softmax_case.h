// Lab 06: a row of scores that is handed out tile by tile, or two parts to merge, with the right results and their
// bounds in float32.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "apps/labs/case_stream.h"
#include "core/base/random.h"

namespace kvscope::labs {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr std::size_t kSoftmaxCases = 12;  // of each test

using Numbers = std::vector<float>;

// attend(): scores and values. merge(): two outputs and two lse.
struct SoftmaxCase {
  std::int64_t dim = 1, tile = 1;
  std::int64_t repeats = 1;     // the row consists of the tiles of `scores`, one after the other, this many times
  bool taken = false;           // a tile is overwritten when the next one is handed out
  Numbers scores;               // [period]; empty: a merge
  Numbers values;               // [period, dim], or [2, dim]
  std::array<float, 2> lse{0};  // of the two parts of a merge

  [[nodiscard]] bool is_merge() const { return scores.empty(); }
  [[nodiscard]] std::int64_t period() const { return static_cast<std::int64_t>(scores.size()); }
  [[nodiscard]] std::int64_t keys() const { return period() * repeats; }
  [[nodiscard]] std::int64_t bytes() const { return keys() * (1 + dim) * std::int64_t{sizeof(float)}; }
  [[nodiscard]] float score(std::int64_t key) const { return scores[static_cast<std::size_t>(key % period())]; }
  [[nodiscard]] float part_lse(int part) const { return lse[static_cast<std::size_t>(part)]; }
  // Of key `row`, or of part `row` of a merge.
  [[nodiscard]] float value(std::int64_t row, std::int64_t d) const {
    return values[static_cast<std::size_t>((is_merge() ? row : row % period()) * dim + d)];
  }
};

enum class Scores : std::uint8_t { small, large, rising, masked, once, merge };

struct SoftmaxTest {
  std::string_view name;
  Scores scores;
};
inline constexpr std::array kSoftmaxTests{
    SoftmaxTest{"small", Scores::small},   SoftmaxTest{"large_scores", Scores::large},
    SoftmaxTest{"tiles", Scores::rising},  SoftmaxTest{"masked", Scores::masked},
    SoftmaxTest{"one_pass", Scores::once}, SoftmaxTest{"merge", Scores::merge}};

// The memory of the student's process in the test one_pass: half of the scores and values of the test's last case.
inline constexpr std::int64_t kOnePassMemory = std::int64_t{64} << 20;

// Case `number` of a test. Those of one_pass have their largest score in the first tile and full tiles, so that a
// mistake of another test does not fail it; all but the last are small enough to compute by hand.
[[nodiscard]] SoftmaxCase make_softmax_case(Scores kind, const CounterRng& random, std::size_t number);

// The frame that docs/labs/06_softmax/harness.cpp reads.
[[nodiscard]] Words words_of(const SoftmaxCase& made);

struct Allowed {
  std::vector<double> value, error;  // [dim + 1]: o, then lse
};
[[nodiscard]] Allowed expected_result(const SoftmaxCase& made);

}  // namespace kvscope::labs

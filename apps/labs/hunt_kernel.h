// The kernels of lab 07: one correct, and one for each fault of the list that students choose from.
//
// The cache holds *tracers*: each row states its own address, so that an output shows which rows were averaged. Row of
// (block, K or V, layer, slot, head), 8 numbers:
//
//   dim 0 block    1 slot      2 KV head   3 layer
//   dim 4 1 in K, 2 in V       5 position  6 sequence    7 16^page
//
// Positions and sequences of slots without a token are -1, and dim 7 is 0. A query is a number in dim 4 and zeros, so
// all keys of a row have one score, the weights are equal, and o is the mean of the rows of V that were read:
//
//   o[5] = (n - 1) / 2        for n keys        o[7] * n in hexadecimal: digit p counts the keys of page p
//   lse  = score + ln n
//
// Example: 6 keys on pages of 4 tokens. o[7] = (4 * 1 + 2 * 16) / 6, so o[7] * 6 = 0x24: 4 keys of page 0, 2 of page 1.
//
// Each fault is written here as the programming mistake that it is. Neither addresses nor loops are shared with the
// predictions of core/golden/diagnosis, and the correct kernel is compared with core/attention by
// tests/labs/hunt_kernel_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/random.h"

namespace kvscope::labs {

// In groups of three: the faults of a group concern one part of the kernel and are easily taken for each other.
enum class HuntFault : std::uint8_t {
  none,
  // lookup table
  table_entry,
  table_rows_exchanged,
  first_page_repeated,
  // length
  one_key_too_many,
  last_page_unmasked,
  new_token_missing,
  // heads
  head_modulo,
  head_divided_by_kv_heads,
  head_zero,
  // address
  k_read_as_v,
  other_layer,
  stride_of_one_layer,
  // score
  scale_missing,
  scale_twice,
  maximum_not_added,
  // lse
  lse_base_two,
  lse_without_logarithm,
  lse_negated,
  // merge of splits
  splits_averaged,
  last_split_lost,
  last_split_twice,
  // division by the sum of the weights
  not_normalized,
  divided_by_slots,
  divided_twice
};
inline constexpr std::size_t kHuntGroups = 8, kFaultsPerGroup = 3;

// The sizes of a student's kernels, and the parameters of the faults.
struct HuntProblem {
  static constexpr std::int64_t kDims = 8, kScoreDim = 4, kGroup = 2;  // kGroup query heads read one KV head
  std::int64_t blocks = 0;                                             // without the null page
  std::int64_t layers = 0, page_size = 0, kv_heads = 0;
  std::int64_t layer = 0;             // that the kernel reads
  std::int64_t tokens_per_split = 0;  // keys are read in splits of so many tokens, which are merged
  double scale = 0;
  std::vector<std::int64_t> lengths;  // [batch] keys of each sequence; one query each
  std::int64_t columns = 0;           // of the table
  std::vector<std::uint32_t> table;   // [batch, columns]; unused entries are the null page
  std::vector<double> query;          // [query_heads] the number in dim 4
  std::vector<float> pool;            // [block, 2, layer, slot, head, dim]
  std::int64_t entry_sequence = 0, entry_page = 0, entry_block = 0;  // table_entry
  std::array<std::int64_t, 2> exchanged{};  // table_rows_exchanged: two sequences, in rising order

  [[nodiscard]] std::int64_t batch() const { return static_cast<std::int64_t>(lengths.size()); }
  [[nodiscard]] std::int64_t query_heads() const { return kGroup * kv_heads; }
  [[nodiscard]] std::int64_t pages(std::int64_t sequence) const;
  [[nodiscard]] std::uint32_t entry(std::int64_t sequence, std::int64_t page) const;
};

[[nodiscard]] HuntProblem make_hunt_problem(const CounterRng& random);

// Sets `pool` from the sizes, the lengths and the table.
void fill_with_tracers(HuntProblem& problem);

struct HuntOutput {
  std::vector<float> o;    // [sequence, query_head, dim]
  std::vector<float> lse;  // [sequence, query_head]
};

// Whether two numbers of an output differ by more than their rounding to f32.
[[nodiscard]] bool hunt_differs(float golden, float candidate);

// The output of a kernel with this fault, computed in double and stored as f32.
[[nodiscard]] HuntOutput run_hunt_kernel(const HuntProblem& problem, HuntFault fault);

}  // namespace kvscope::labs

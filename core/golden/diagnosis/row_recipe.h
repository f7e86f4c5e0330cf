// One output row as a kernel with a known fault would compute it.
//
// A recipe lists, for one query row and one query head, the stored rows that the kernel reads for each key and every
// convention it applies. `correct_recipe` makes the recipe of a correct kernel; a hypothesis (hypotheses.h) changes it.
// `RowEvaluator` evaluates recipes in double, in plain loops that share no code with attention/reference.h: for the
// correct recipe the two must agree, which diagnose.h checks before it trusts any hypothesis.
//
// Example: 3 visible keys in pages of 2 tokens with lookup table {7, 4}: keys {7, 0}, {7, 1}, {4, 0}. The hypothesis
// "page 1 was read from block 9" replaces the last key by {9, 0}.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/equal_weights.h"
#include "core/attention/problem.h"
#include "core/layout/swizzle.h"

namespace kvscope::golden {

// The stored row that is read for one key. Block and slot may exceed the block axis as an overrunning kernel's do; the
// evaluator reports rows outside the pool instead of reading them.
struct KeyRead {
  std::int64_t block = 0, slot = 0;
  std::int64_t position = 0;                // of the key in its sequence, for ALiBi and rotary embeddings
  double weight = 1;                        // 2: counted twice
  double bias = 0;                          // added to its score
  bool zeros = false;                       // K and V of this key read as zeros
  bool v_zeros = false;                     // V alone
  std::int64_t v_block = -1, v_slot = -1;   // the row of V where it is not that of K
  bool k_from_v = false, v_from_k = false;  // this row alone is read on the other side of the K/V axis
  // Distance from the problem's layer to the layer that this row alone is read from.
  std::int64_t layer_bytes = 0, k_scale_layer_bytes = 0, v_scale_layer_bytes = 0;
  // Row of the scales' block axis; -1: `block`.
  std::int64_t k_scale_block = -1, v_scale_block = -1;
};

// How partial results over tiles or splits of the keys are combined. `online` is correct.
enum class Combine : std::uint8_t {
  online,
  without_rescaling,              // the running output and sum are not rescaled when the running maximum rises
  output_without_rescaling,       // only the running output is not
  sum_without_rescaling,          // only the running sum is not
  without_common_maximum,         // parts are added, each with weights relative to a separate maximum
  output_without_common_maximum,  // the outputs of the parts are, their sums are not
  mean,                           // the outputs of the splits are averaged
  other_base,                     // splits are merged with 2^lse of a natural lse, or with e^lse of a base-2 lse
};

// When the sink joins a running maximum and sum that are never rescaled.
enum class SinkJoins : std::uint8_t { first_tile, before, after };

// What the kernel stores as log-sum-exp.
enum class StoredLse : std::uint8_t {
  correct,
  other_base,
  sum_only,
  maximum_only,
  mean_of_splits,
  maximum_and_count,  // of the splits: largest lse + log(number of splits)
  maximum_twice,      // largest lse of the splits + lse
  largest_maximum,    // of parts without a common maximum: the largest of their maxima + log(sum). `correct`: the first
  first_lane,         // of Recipe::lane_sums: maximum + log(sum of lane 0)
  mixed_bases,        // maximum * lse_maximum + log(sum) * lse_sum
};

// Order of the elements of a head.
enum class DimOrder : std::uint8_t { stored, halves_exchanged, interleaved, deinterleaved };

// A step of the shuffles that add a score over the lanes of a warp is missing: the lanes are in two halves. The lanes
// of half e / run % 2 multiply element e of q and K. The maximum, the sum and lse are those of half 0. Example: run 16,
// 32 lanes, lane e % 32 has element e: a sum that begins with lane ^ 8 adds 16 lanes.
struct LaneHalves {
  enum class Output : std::uint8_t {
    of_half_0,  // lane 0 hands its score to all lanes
    by_sum_0,   // element d of o has the scores of half d / run % 2, and the maximum and sum of half 0 in the merge
    by_own_sum  // it has the sum of these scores too
  };
  std::int64_t run = 0;  // [elements]; 0: no step is missing
  Output output = Output::of_half_0;
  std::int64_t half = 0;  // whose scores a recipe means
};

struct Rotary {
  double base = 10000;       // theta
  bool interleaved = false;  // pairs (2i, 2i + 1) instead of (i, i + D / 2)
  bool query = false, key = false;
};

// Shared memory: this swizzle mode of TMA puts the 16-byte chunks of a row where row r + first_row of an aligned tile
// has them, and chunk c of row r is read at c ^ ((r >> shift) & mask). Example: bf16, b128, mask 0, the key at position
// 3: elements 0 to 7 are the stored elements 24 to 31. With mask 1, chunk 0 is read at 1 and is chunk 1 ^ 3: elements
// 16 to 23.
struct ChunkOrder {
  SwizzleMode stored = SwizzleMode::none;
  int shift = 0;
  std::int64_t mask = 0;
  std::int64_t first_row = 0;  // the tile begins so many rows after a multiple of 1,024 bytes
};

struct Recipe {
  attention::PagedRows k, v;  // where rows are read: strides, types, scales
  std::int64_t k_head = 0, v_head = 0;
  std::int64_t query_row = 0, query_head = 0;  // the row of q
  std::vector<KeyRead> keys;
  std::vector<KeyRead> zero_weight_keys;  // past the end: their values are multiplied by 0, which keeps NaN
  double scale = 1;
  std::optional<double> soft_cap;
  bool cap_before_scale = false;
  double slope = 0;            // of ALiBi
  double slope_origin = 0;     // position that ALiBi measures from
  std::optional<double> sink;  // logit
  SinkJoins sink_joins = SinkJoins::first_tile;
  double extra_denominator = 0;  // logits of 0 that join the denominator: splits without keys
  DimOrder k_dims = DimOrder::stored;
  DimOrder v_dims = DimOrder::stored;
  ChunkOrder k_chunks, v_chunks;
  // Squares of 8 keys and 8 elements are read with their axes exchanged: element 3 of key 9 is element 1 of key 11.
  bool k_transposed = false, v_transposed = false;
  bool zeros_past_end = false;  // of transposed squares: rows past the end of the sequence are zeros, not as stored
  std::int64_t k_rotation = 0;  // element d of q meets element (d + k_rotation) % head size of K
  std::int64_t k_used = 0;      // elements of q and K that a score has; 0: all
  LaneHalves lanes;             // of the correct keys
  bool fnuz = false;            // fp8 elements are decoded as e4m3fnuz or e5m2fnuz
  std::optional<Rotary> rotary;
  std::int64_t query_position = 0;
  Combine combine = Combine::online;
  std::int64_t split = 0;  // keys of a tile or split; for combine other than online
  // Warps that take turns over the tiles: tile t belongs to part t % parts, which has its own maximum, sum and output.
  std::int64_t parts = 1;
  // Keys of a split whose result joins the others with the right weight. Its tiles and parts are counted from its first
  // key. 0: all keys are one split.
  std::int64_t merged_split = 0;
  std::int64_t scale_vector = 1;  // elements that the kernel multiplies by the scale of the first of them
  bool normalized = true;         // false: o is not divided by the sum
  // Lanes that do not add their sums: element d of o is divided by the sum of the keys t with lane(t) = lane(d), where
  // lane(x) = x % period / run. Example: period 8, run 2, as in the results of mma: elements 2 and 3 by the sum of keys
  // 2, 3, 10, 11, ...
  struct LaneSums {
    std::int64_t period = 0, run = 1;  // period 0: the lanes add their sums
  } lane_sums;
  attention::LseBase lse_base = attention::LseBase::natural;
  attention::EmptyRow empty_row = attention::EmptyRow::minus_infinity;
  StoredLse stored_lse = StoredLse::correct;
  // Factors of StoredLse::mixed_bases. The maximum is that of the scores and, unless it joins after the last tile, the
  // sink; with `split` > 0 it is the largest lse of the splits.
  double lse_maximum = 1, lse_sum = 1;
};

// The predicted row with the terms of the error bound (attention/bounds.h).
struct RowValue {
  std::vector<double> o, a1, a2;  // [value_dim]; empty when lse alone rules the recipe out (RowEvaluator::expect)
  std::vector<double> running;    // [value_dim]; empty: a1, its largest value
  attention::RowTerms terms;      // with lse
  bool outside = false;           // a row past the pool was read: the values mean nothing
  // The recipe leaves this row no key, but a correct kernel reads some. What a kernel stores after a loop without
  // iterations is not a part of the fault: zeros or 0 / 0.
  bool lost_keys = false;

  [[nodiscard]] attention::ElementTerms element(std::size_t dim) const {
    return {o[dim], a1[dim], a2[dim], running.empty() ? a1[dim] : running[dim]};
  }
};

class RowEvaluator {
 public:
  // Query `query` (row of q) of `sequence`, query head `head`. `pool`: the bytes that a recipe may read besides the
  // rows of the problem's K and V, such as other layers. The problem must have passed check_problem; problem and pool
  // must outlive the evaluator.
  RowEvaluator(const attention::Problem& problem, std::span<const std::byte> pool, std::int64_t sequence,
               std::int64_t query, std::int64_t head);

  [[nodiscard]] const Recipe& correct() const { return correct_; }
  [[nodiscard]] std::int64_t sequence() const { return sequence_; }
  [[nodiscard]] std::int64_t query() const { return query_; }  // row of q
  [[nodiscard]] std::int64_t head() const { return head_; }
  [[nodiscard]] std::int64_t query_in_sequence() const { return query_ - problem_.first_query(sequence_); }
  [[nodiscard]] const attention::Problem& problem() const { return problem_; }

  [[nodiscard]] RowValue evaluate(const Recipe& recipe) const;

  [[nodiscard]] double largest_score() const;                // of the correct recipe; -infinity without keys
  [[nodiscard]] std::int64_t dims() const { return dims_; }  // elements of o that evaluate computes
  // From now on the two use the same decoded rows of V, which the first to need them reads. Only rows with the same
  // keys and the same KV head can: false for others.
  bool share_values(const RowEvaluator& other);

  // An evaluator of the same row that computes the first `dims` elements of o only, which are enough to rule most
  // hypotheses out. It expects no lse.
  [[nodiscard]] RowEvaluator first_dims(std::int64_t dims) const;

  // From now on `evaluate` leaves o out when the recipe's lse differs from `lse` by more than its bound for a kernel
  // that rounds as `rounding`: most hypotheses are ruled out before any V row is read.
  void expect(double lse, const attention::Rounding& rounding) { expected_ = {lse, rounding}; }

  // The score of each key and its V row, before softmax; for searches that add and remove keys. The rows of V that a
  // correct kernel reads are decoded once per evaluator, which must outlive the terms.
  struct Terms {
    Terms() = default;
    Terms(Terms&&) = default;
    Terms& operator=(Terms&&) = default;

    std::vector<double> scores;         // [keys]
    std::vector<const double*> values;  // [keys] rows of `dims()` elements, the evaluator's or `decoded`
    std::vector<double> decoded;
    bool outside = false;
  };
  [[nodiscard]] Terms terms(const Recipe& recipe) const;

 private:
  // Dot products of the query with the K rows, before any factor, and the V rows.
  void read_scores(const Recipe& recipe, Terms& terms) const;
  void read_values(const Recipe& recipe, Terms& terms) const;
  [[nodiscard]] Terms scores(const Recipe& recipe) const;
  // Dot products of the correct keys over the elements of one half of the lanes; `run` is a power of two.
  [[nodiscard]] const std::vector<double>& half_scores(const LaneHalves& lanes) const;
  // Row of `key` where squares of 8 keys and 8 elements have their axes exchanged. Slots past the end of the sequence
  // are read as they are stored, or as zeros. False: a row outside the pool. `squares` keeps the 8 rows from key to
  // key.
  struct Squares {
    std::int64_t first = -1;   // position of the first key
    std::vector<double> rows;  // [8, elements]
    bool known = false;        // all rows are inside the pool
  };
  [[nodiscard]] bool read_transposed(const attention::PagedRows& rows, const KeyRead& key, const Recipe& recipe,
                                     std::int64_t head, Squares& squares, std::span<double> row) const;
  // Whether `base_scores_` or `base_values_` holds the dot products or the V rows of the correct keys, which the first
  // call reads. Most rows of a diagnosis are compared with few recipes and need neither.
  [[nodiscard]] bool has_base_scores() const;
  [[nodiscard]] bool has_base_values() const;
  // Index of a key's row among the correct keys, or their number. `near` and the key's position are tried first.
  [[nodiscard]] std::size_t known(const KeyRead& key, std::size_t near) const;
  // The faulty combinations of tiles and splits.
  [[nodiscard]] RowValue combine(const Recipe& recipe, const Terms& terms, RowValue row) const;
  // A recipe whose elements of o have the scores of two halves of the lanes.
  [[nodiscard]] RowValue evaluate_halves(const Recipe& recipe) const;
  [[nodiscard]] double largest(const Terms& terms) const;  // |v|; -1 if an element is not finite
  // Sets lse, as of a recipe whose keys are combined correctly, and the terms of the bound that need no values.
  // Returns the weights of the keys, exp(score - maximum), and their sum.
  struct Weights {
    std::vector<double> of_keys;
    std::vector<std::size_t> joined;  // keys ordered by weight, where many weights are equal; empty: few are
    double sum = 0;
  };
  [[nodiscard]] Weights weigh(const Recipe& recipe, const std::vector<double>& scores, attention::RowTerms& row) const;

  const attention::Problem& problem_;
  std::span<const std::byte> pool_;
  std::int64_t sequence_, query_, head_;
  std::int64_t dims_;  // elements of o that evaluate computes
  Recipe correct_;
  // Dot products and V rows of the correct keys, kept because most recipes read mostly these: the index of a key's
  // (block, slot) among them.
  mutable std::unordered_map<std::int64_t, std::size_t> index_;
  enum class Kept : std::uint8_t { not_yet, no, yes };
  struct BaseValues {
    Kept kept = Kept::not_yet;
    std::vector<const double*> rows;  // [keys]
    std::vector<double> decoded;
  };
  mutable Kept scores_kept_ = Kept::not_yet;
  mutable std::vector<double> base_scores_;               // [keys] dot products
  mutable std::vector<std::vector<double>> half_scores_;  // [2 * log2(run) + half][keys]
  std::shared_ptr<BaseValues> base_values_;               // other rows may share them
  mutable std::vector<double> zeros_;                     // the V row of keys that are read as zeros
  std::optional<std::pair<double, attention::Rounding>> expected_;
  mutable attention::EqualWeights equal_weights_;  // its memory is kept from recipe to recipe
};

// The recipe of a correct kernel.
[[nodiscard]] Recipe correct_recipe(const attention::Problem& problem, std::int64_t sequence, std::int64_t query,
                                    std::int64_t head);

// Sets the biases of keys that a query of `sequence` reads, by their positions, and leaves hidden keys out.
void add_biases(const attention::Problem& problem, std::int64_t sequence, std::int64_t query_in_sequence,
                std::int64_t head, std::vector<KeyRead>& keys);

// The key at `position` of a sequence through its lookup table, without a bias. Past the table: block -1.
[[nodiscard]] KeyRead key_of(const attention::Problem& problem, std::int64_t sequence, std::int64_t position);
// Keys [first, last) of it.
[[nodiscard]] std::vector<KeyRead> keys_of(const attention::Problem& problem, std::int64_t sequence, std::int64_t first,
                                           std::int64_t last);

}  // namespace kvscope::golden

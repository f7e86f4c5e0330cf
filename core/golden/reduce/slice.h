// A part of an attention problem, cut from a user's tensors: fewer sequences, queries, keys, heads, dims, blocks,
// layers and table columns, in the same layout, under the same names and in the same types. The axes of each tensor and
// the form of the table come from the layout's description, so every named and every described layout can be cut.
//
//   sequences {2}, keys [4, 11) of 2, KV heads {1}, 8 of 64 dims:
//   k_cache [100, 16, 4, 64] -> [1, 16, 1, 8]   block_table [3, 8] -> [1, 1]   cache_seqlens [3] -> [1] = 7
//
// A page is the run of keys that one table entry stands for: 1 key where the table has an entry for each token, all
// positions of a sequence in a padded cache without a table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct SequenceSlice {
  std::int64_t index = 0;       // in the whole problem
  std::int64_t first_page = 0;  // the pages before it are left out
  std::int64_t keys = 0;        // the keys [first_page * page_size, keys) are kept
  std::int64_t first_query = 0, end_query = 0;
  friend bool operator==(const SequenceSlice&, const SequenceSlice&) = default;
};

struct ProblemSlice {
  std::vector<SequenceSlice> sequences;
  std::vector<std::int64_t> kv_heads;
  std::vector<std::int64_t> group_heads;  // query heads within each group, [0, query_heads / kv_heads)
  std::int64_t dims = 0;                  // the first elements of each head; of V: at most this many
  bool only_used_blocks = false;          // blocks that no kept table row names are left out, the others renumbered
  bool only_used_columns = false;         // of a table; rows of a request table, positions of a padded cache
  bool only_layer = false;                // of a cache of several layers: the layer of the options
  friend bool operator==(const ProblemSlice&, const ProblemSlice&) = default;
};

struct ProblemSizes {
  std::int64_t sequences = 0, queries = 0, keys = 0, kv_heads = 0, query_heads = 0, head_size = 0, blocks = 0;
};
// "2 sequences, 2 queries, 13 keys, 2 KV heads, 4 query heads, head size 8, 6 blocks"
[[nodiscard]] std::string sizes_text(const ProblemSizes& sizes);

struct SlicedInput;  // detail/sliced_input.h
struct SlicedTensor;

class Slicer {
 public:
  // The tensors must outlive the slicer. InputError naming `source` when the input is no problem of its layout, or when
  // it is flat storage whose sequences are fixed by the description.
  Slicer(const Bundle& tensors, const LayoutOptions& options, std::string_view source);

  [[nodiscard]] const ProblemSlice& whole() const { return whole_; }
  // The problem without its mask tensors.
  [[nodiscard]] const PreparedProblem& problem() const;
  // Dims are cut in multiples of this: 1, or the elements that share a scale, a run or a byte; 0: dims cannot be cut
  // (MLA, packed rows, flat storage).
  [[nodiscard]] std::int64_t dims_step() const { return dims_step_; }
  // KV heads and blocks of flat storage have fixed strides.
  [[nodiscard]] bool can_cut_heads() const;
  // The scale is 1 / sqrt(head size), and no tensor states it: a kernel may compute it from the head size.
  [[nodiscard]] bool scale_is_default() const;
  // A tree mask is square, and keys of a sliding window in MLC's form have two parts.
  [[nodiscard]] bool can_cut_queries() const;
  [[nodiscard]] bool can_cut_keys() const;
  // The rows of a correct kernel's output keep their values when the queries from `end_query` on are left out together
  // with the keys that only those see; slice() of such a slice needs `keys` from here.
  [[nodiscard]] bool queries_are_exact() const;
  [[nodiscard]] std::int64_t keys_of(const SequenceSlice& sequence) const;

  // InputError for a slice that the tensors cannot hold: sequences of different numbers of queries, where q has an axis
  // for them.
  [[nodiscard]] Bundle cut(const ProblemSlice& slice) const;
  [[nodiscard]] LayoutOptions options(const ProblemSlice& slice) const;
  [[nodiscard]] ProblemSizes sizes(const ProblemSlice& slice) const;
  // The rows and heads of the slice, of an output [rows, heads, dims] or [rows, heads] of the whole problem.
  [[nodiscard]] Tensor cut_output(const Tensor& output, const ProblemSlice& slice) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> used_blocks(const ProblemSlice& slice) const;
  [[nodiscard]] std::vector<std::int64_t> rows(const ProblemSlice& slice) const;
  [[nodiscard]] std::vector<std::int64_t> query_heads(const ProblemSlice& slice) const;
  [[nodiscard]] std::vector<std::int64_t> kept_along(const SlicedTensor& tensor, const std::string& axis,
                                                     const ProblemSlice& slice,
                                                     const std::vector<std::int64_t>& blocks) const;
  [[nodiscard]] std::int64_t value_dims(const ProblemSlice& slice) const;

  const Bundle& tensors_;
  LayoutOptions options_;
  std::shared_ptr<const SlicedInput> input_;
  ProblemSlice whole_;
  std::int64_t dims_step_ = 0;
};

}  // namespace kvscope::golden

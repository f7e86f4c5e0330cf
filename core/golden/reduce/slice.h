// A part of an attention problem, cut from a user's tensors: fewer sequences, queries, keys, heads, dims, blocks,
// layers and table columns, in the same layout, under the same names and in the same types.
//
//   sequences {2}, keys [4, 11) of 2, KV heads {1}, 8 of 64 dims:
//   k_cache [100, 16, 4, 64] -> [1, 16, 1, 8]   block_table [3, 8] -> [1, 1]   cache_seqlens [3] -> [1] = 7
#pragma once

#include <cstdint>
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
  std::int64_t dims = 0;                  // the first elements of each head
  bool only_used_blocks = false;          // blocks that no kept table row names are left out, the others renumbered
  bool only_used_columns = false;         // of a table
  bool only_layer = false;                // of layout max: the layer of the options
  friend bool operator==(const ProblemSlice&, const ProblemSlice&) = default;
};

struct ProblemSizes {
  std::int64_t sequences = 0, queries = 0, keys = 0, kv_heads = 0, query_heads = 0, head_size = 0, blocks = 0;
};
// "2 sequences, 2 queries, 13 keys, 2 KV heads, 4 query heads, head size 8, 6 blocks"
[[nodiscard]] std::string sizes_text(const ProblemSizes& sizes);

class Slicer {
 public:
  // The tensors must outlive the slicer. InputError naming `source` when the layout cannot be cut.
  Slicer(const Bundle& tensors, const LayoutOptions& options, std::string_view source);

  [[nodiscard]] const ProblemSlice& whole() const { return whole_; }
  [[nodiscard]] const PreparedProblem& problem() const { return prepared_; }
  // Dims are cut in multiples of this: 1, or the elements that share a scale or a run; 0: dims cannot be cut (MLA).
  [[nodiscard]] std::int64_t dims_step() const { return dims_step_; }
  // The scale is 1 / sqrt(head size), and no tensor states it: a kernel may compute it from the head size.
  [[nodiscard]] bool scale_is_default() const;
  [[nodiscard]] bool can_cut_queries() const { return can_cut_queries_; }
  // The rows of a correct kernel's output keep their values when the queries from `end_query` on are left out together
  // with the keys that only those see; slice() of such a slice needs `keys` from here.
  [[nodiscard]] bool queries_are_exact() const;
  [[nodiscard]] std::int64_t keys_of(const SequenceSlice& sequence) const;

  [[nodiscard]] Bundle cut(const ProblemSlice& slice) const;
  [[nodiscard]] LayoutOptions options(const ProblemSlice& slice) const;
  [[nodiscard]] ProblemSizes sizes(const ProblemSlice& slice) const;
  // The rows and heads of the slice, of an output [rows, heads, dims] or [rows, heads] of the whole problem.
  [[nodiscard]] Tensor cut_output(const Tensor& output, const ProblemSlice& slice) const;

 private:
  struct NamedAxes {
    std::string name;       // in the file
    std::string canonical;  // known_tensors.h
    std::string axes;       // a letter for each axis
  };
  [[nodiscard]] std::vector<std::int64_t> used_blocks(const ProblemSlice& slice) const;
  [[nodiscard]] std::vector<std::int64_t> rows(const ProblemSlice& slice) const;
  [[nodiscard]] std::vector<std::int64_t> query_heads(const ProblemSlice& slice) const;
  [[nodiscard]] const NamedAxes* named(std::string_view canonical) const;
  void cut_indices(const ProblemSlice& slice, const std::vector<std::int64_t>& blocks, Bundle& bundle) const;

  const Bundle& tensors_;
  LayoutOptions options_;
  PreparedProblem prepared_;
  ProblemSlice whole_;
  std::vector<NamedAxes> axes_;
  std::vector<std::vector<std::int64_t>> entries_;  // [sequence] its table row, or its part of kv_indices
  std::int64_t columns_ = 0;                        // of a table; 0: indptr
  std::int64_t dims_step_ = 0, run_ = 1;            // run_: x of vllm_legacy
  bool can_cut_queries_ = true;
};

}  // namespace kvscope::golden

// Finds tensors by name and rank, reads index tensors as integers, and collects faults. Reading continues after a
// fault, so that one run reports all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/detail/known_tensors.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

// What is wrong with a tensor of integers in the place of one of floats, and how to state the type of its bit patterns:
// "is u16: which floats are its bit patterns? Pass --query-dtype bf16, or end its name in _bf16 or _f16". `stated` is
// the type that the option states.
[[nodiscard]] std::string pattern_fault(DType stored, std::optional<DType> stated, std::string_view option);

class LayoutReader {
 public:
  // A tensor given under two of its names is a fault.
  LayoutReader(const Bundle& bundle, const LayoutOptions& options, const LayoutDescription& layout);

  void fault(std::string where, std::string message) { faults.push_back({std::move(where), std::move(message)}); }
  [[nodiscard]] bool ok() const { return faults.empty(); }

  // Tensors are requested by their canonical name (known_tensors.h), and found under any of their synonyms.
  [[nodiscard]] bool has(const std::string& name) const { return given_.contains(name); }
  [[nodiscard]] std::string given(const std::string& name) const;   // its name in the bundle, or `name`
  [[nodiscard]] const Tensor* find(const std::string& name);        // null when missing; marks it as used
  [[nodiscard]] const Tensor* peek(const std::string& name) const;  // the same without the mark

  // The tensor, or null and a fault with the required shape in words: "k_cache [N, P, H, D]".
  const Tensor* tensor(const std::string& name, std::size_t rank, std::string_view shape_words);
  // A cache tensor: its type must be one for stored values, and the same for all cache tensors of a problem.
  const Tensor* cache(const std::string& name, std::size_t rank, std::string_view shape_words);
  // A cache tensor of packed rows: of any type of one byte.
  const Tensor* bytes(const std::string& name, std::size_t rank, std::string_view shape_words);
  // An index tensor of any integer type as 64-bit integers; empty after a fault.
  std::vector<std::int64_t> integers(const std::string& name, std::size_t rank, std::string_view shape_words);

  std::vector<Fault> faults;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;

  // Properties of the cache tensors; read_cache sets them.
  DType cache_dtype = DType::f32;
  std::int64_t blocks = 0, page_size = 0, heads = 0, head_size = 0, value_size = 0;
  std::int64_t layers = 1;
  std::string axes;                 // of the cache without D, in its order: N block, 2 K or V, L layer, P slot, H head
  bool values_in_keys = false;      // MLA: V is the first elements of K's rows
  bool scales_by_sequence = false;  // k_descale [B, H]

  // Contents of the index tensors: entries of each sequence's pages, and its keys.
  struct Pages {
    std::string table_name;
    std::vector<std::int64_t> entries;  // all of them, in the order of the tensor
    std::vector<std::int64_t> first;    // [batch] index of a sequence's first entry
    std::vector<std::int64_t> columns;  // [batch] entries that it may use
    std::vector<std::int64_t> lengths;  // [batch] as the tensor has them
    std::string lengths_name;
    bool lengths_without_new = false;  // keys = length + queries
    bool by_token = false;             // an entry is a token's slot, block * page_size + slot, whatever the pages
    // Instead of `entries`, for rows that a mask tensor states: makes the entries of sequence b, all `columns[b]`.
    std::function<void(std::size_t b, std::vector<std::int64_t>& entries)> make_row;
  };
  Pages pages;
  std::optional<QueryMasks> masks;  // set by read_pages for indices, and by apply_mask_tensors

  [[nodiscard]] const LayoutOptions& options() const { return options_; }
  [[nodiscard]] const LayoutDescription& layout() const { return layout_; }
  [[nodiscard]] bool is_used(const std::string& name) const { return used_.contains(name); }  // its name in the bundle

  // Called last: adds a fault for each tensor that is neither used nor ignored, with the nearest known name.
  void check_unused();

  // Reads the tensors of the layout's table into `pages`. The sizes of the cache must be set.
  void read_pages();

 private:
  [[nodiscard]] bool ignored(const std::string& name) const;
  void read_blocks();  // table [B, columns], lengths [B]
  void read_indptr();  // indptr, indices, last_page_len or lengths
  void read_windows(const std::vector<std::int64_t>& indptr, const std::vector<std::int64_t>& info);
  void read_tokens();    // indptr, indices: one entry per token
  void read_requests();  // req_to_token, req_pool_indices, lengths
  void read_offsets();   // table [B, 2, columns] of entries for K and V
  void read_dense();     // no table: sequence b is block b
  void read_ragged();    // indptr into the tokens
  void read_chunk();     // one sequence
  void read_sparse();    // indices of each query: every query is a sequence
  void read_attention_mask(std::vector<std::int64_t>& padding);
  void check_lengths();  // a fault for each length outside [0, 2^40]
  // After the fault of one of them: their number is not known, and does not become a fault of q.
  void forget_sequences();

  const Bundle& bundle_;
  const LayoutOptions& options_;
  const LayoutDescription& layout_;
  std::vector<KnownTensor> known_;
  std::map<std::string, std::string> given_;  // canonical name -> name in the bundle
  std::set<std::string> used_;                // names in the bundle
};

}  // namespace kvscope::golden

// An input that is cut: its tensors with the meaning of their axes, and its table, both read by the description of its
// layout.
//
// Axes are the words of layout_description.h, and these:
//   sequence      B, of a tensor that is not the cache
//   slots         the slots of all blocks as one axis
//   query_head    Hq
//   "1"           an axis that is not cut
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/golden/layouts/detail/cache_view.h"
#include "core/golden/layouts/detail/layout_reader.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct SlicedTensor {
  std::string name;  // in the file
  std::vector<std::string> axes;
  bool is_v = false;           // its head has V's elements
  std::int64_t group = 1;      // elements that axis group counts as one
  bool two_in_a_byte = false;  // e2m1: the last axis counts bytes
};

struct SlicedInput {
  PreparedProblem prepared;  // without mask tensors, which make a sequence of each query
  const LayoutDescription* layout = nullptr;
  std::vector<SlicedTensor> tensors;         // all but queries, masks and the table
  std::map<std::string, std::string> names;  // canonical name -> name in the file
  LayoutReader::Pages pages;
  CacheSizes sizes;
  std::vector<std::int64_t> first_row;  // [sequence] its first row of q, with the axes B and queries as one
  bool flat = false;                    // the description has strides: the tensors of the cache are not cut
  bool windows = false;                 // form indptr with a sliding window: layout_description.h
  bool values_in_keys = false;
  bool two_are_ambiguous = false;  // a pool of 2 blocks fits another form too, as an axis for K and V
  std::int64_t granularity = 0;    // of the block scales; 0: none
  bool uneven = false;             // the head cannot be cut: packed rows, or K and V with different block scales

  [[nodiscard]] bool has(const std::string& canonical) const { return names.contains(canonical); }
  [[nodiscard]] const std::string& name(const std::string& canonical) const { return names.at(canonical); }
  [[nodiscard]] TableForm form() const { return layout->table.form; }
  // The name in the file of the table's tensor of that role; null: the input does not have it.
  [[nodiscard]] const std::string* role(const std::string& role) const;
  [[nodiscard]] std::int64_t entry(std::int64_t sequence, std::int64_t page) const;
  // The block of an entry, which is that of a token where the table has an entry for each.
  [[nodiscard]] std::int64_t block_of(std::int64_t entry) const;
  [[nodiscard]] std::string_view mask() const;  // the canonical name of the mask tensor; "": none
  // Positions of padding before the first key of a sequence of a padded cache.
  [[nodiscard]] std::int64_t padding(std::int64_t sequence) const;
};

// InputError naming `source`, with all faults of the input.
[[nodiscard]] SlicedInput read_sliced_input(const Bundle& tensors, const LayoutOptions& options,
                                            std::string_view source);

}  // namespace kvscope::golden

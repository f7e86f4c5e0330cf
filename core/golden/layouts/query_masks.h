// The keys that each query sees when a tensor states them, as the tensor has them. prepare_problem makes a sequence of
// each query; a diagnosis reads the tensor again as a faulty kernel would.
//
//   custom_mask         values [sum of queries * keys], 0 or 1
//   packed_custom_mask  values are bytes, lowest bit first; each sequence starts at a byte
//   attn_mask           as custom_mask: the values of each sequence's queries and keys
//   tree_mask           values [S, S], [B, S, S] or [sum of S * S] among the last S keys of a sequence, its queries;
//                       all keys before are seen. Trees of bits: values are the bytes of rows of integers, lowest bit
//                       first. Trees with all keys: as custom_mask
//   indices             slots of the cache [T, width], -1 for none
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::golden {

struct QueryMasks {
  enum class Form : std::uint8_t { custom, packed, tree, packed_tree, indices };
  Form form = Form::custom;
  std::string name;  // of the tensor
  // A sequence as it was given. For indices: one sequence for each query, without values.
  struct Sequence {
    std::int64_t first_query = 0, queries = 0;  // rows of q
    std::int64_t keys = 0;
    std::int64_t first_slot = 0;   // in `key_slots`
    std::int64_t first_value = 0;  // in `values`
  };
  std::vector<Sequence> sequences;
  std::vector<std::int64_t> key_slots;  // of each key of each sequence: block * page_size + slot; -1: outside the cache
  std::vector<std::uint8_t> values;     // 0 or 1, or bytes
  std::int64_t row_bits = 0, word_bits = 0;  // of a row of a packed tree, and of its integers
  std::int64_t width = 0;                    // of a row of indices
  std::vector<std::int64_t> indices;         // [T, width]
  std::vector<std::int64_t> lengths;         // [T] indices that are used; all `width` without a tensor of lengths
  std::int64_t page_size = 1, blocks = 0;    // of the cache
};

}  // namespace kvscope::golden

// Where a mask tensor has its value for a query and a key, in every form that engines have.
//
//   custom       0 or 1, the rows of all sequences in one list: [sum of queries * keys]
//   packed       the same as bits of u8, lowest bit first; each sequence starts at a byte
//   tree         among the last S keys of a sequence, its S queries: [S, S], [B, S, S], or all of them in one list
//   packed_tree  a tree of bits, lowest bit first: an integer for each query, or [B, S, W] of at least 16 bits for
//                trees past its bits
//   dense        [Sq, Sk], [B, Sq, Sk] or [B, Hq, Sq, Sk]; an axis of length 1 is shared
//
// The value of query head h, query i and key t of sequence b is number
//   first[b] + h * head_stride + i * query_stride[b] + (t - origin[b]) * key_stride
// of the elements, or of the bits where `bits` is set. A key before origin[b] is seen; only trees have such keys.
//
// Example: a packed mask of sequences with 2 queries of 5 keys and 3 queries of 4 keys. Query 1 and key 3 of sequence 1
// are bit 16 + 1 * 4 + 3 = 23: the 10 bits of sequence 0 fill 2 bytes.
//
// Integers are 0 or 1, 1 for a key that is seen. Floats of a tree or a dense mask are added to the scores: a finite
// number, and -inf or at most hidden_bias for a hidden key. Floats of a custom mask are 0 or 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

enum class MaskForm : std::uint8_t { custom, packed, tree, packed_tree, dense };

// The sequences that a mask is for.
struct MaskBatch {
  std::vector<std::int64_t> queries, keys;  // [batch]
  std::vector<std::int64_t> padding;        // [batch] positions before the first key, where columns count positions
  std::int64_t query_heads = 0;
  std::int64_t padded_queries = 0;  // rows of each sequence in a padded q; 0: q is not padded
  std::int64_t capacity = 0;        // keys that the longest row of the table, or a sequence of the cache, can hold

  [[nodiscard]] std::size_t size() const { return keys.size(); }
};

struct MaskWalk {
  MaskForm form = MaskForm::custom;
  bool bits = false;                                      // numbers count bits
  std::vector<std::int64_t> first, query_stride, origin;  // [batch]
  std::int64_t head_stride = 0, key_stride = 1;
  std::int64_t heads = 1;              // with masks of their own
  bool by_sequence = true;             // false: all sequences share the values
  std::int64_t rows = 0, columns = 0;  // of a dense mask or a tree
  std::int64_t end = 0;                // numbers that the tensor has

  [[nodiscard]] std::int64_t at(std::size_t b, std::int64_t head, std::int64_t query, std::int64_t key) const {
    return first[b] + head * head_stride + query * query_stride[b] + (key - origin[b]) * key_stride;
  }
};

// A fault in the shape or the values of a mask, with the rule of `kvscope lint` that finds it.
struct MaskFault {
  std::string rule;     // "shape", "type", "indptr", "mask-value"
  std::string object;   // "attn_mask[1, 0, 3]"
  std::string problem;  // "is 7"
  std::string allowed;  // "0 or 1"; empty: the problem states it
  std::string next;     // what to do; may be empty
  std::optional<std::int64_t> value;

  [[nodiscard]] std::string message() const;  // without the object
};

struct MaskReading {
  MaskWalk walk;
  std::vector<MaskFault> faults;  // all of them; the walk is usable if there are none
  std::vector<std::string> warnings;
};

// The canonical names of the tensors that are masks.
[[nodiscard]] const std::vector<std::string>& mask_names();

struct MaskOffsets {  // mask_indptr
  std::string name;   // in the file
  std::vector<std::int64_t> values;
};

// `name`: the canonical one, `given`: that of the file. Precondition: counts of the batch are not negative.
[[nodiscard]] MaskReading read_mask_walk(std::string_view name, const std::string& given, const Tensor& mask,
                                         const std::optional<MaskOffsets>& offsets, const MaskBatch& batch);

// A mask tensor with its walk.
class MaskValues {
 public:
  MaskValues(const Tensor& tensor, const MaskWalk& walk) : tensor_(&tensor), walk_(&walk) {}

  // Whether floats are added to the scores.
  [[nodiscard]] bool additive() const;
  // The stored value: of a bit 0 or 1. Precondition: key is not before the origin.
  [[nodiscard]] double value(std::size_t b, std::int64_t head, std::int64_t query, std::int64_t key) const;
  [[nodiscard]] bool sees(std::size_t b, std::int64_t head, std::int64_t query, std::int64_t key) const;
  [[nodiscard]] double number(std::int64_t at) const;  // element or bit
  [[nodiscard]] bool shows(std::int64_t at) const;     // whether that number is of a visible key
  // "[1, 0, 3]", or "[23]" of a list; for bits, the element that holds the bit: "[2] bit 7".
  [[nodiscard]] std::string place(std::int64_t at) const;

 private:
  const Tensor* tensor_;
  const MaskWalk* walk_;
};

// A mask can have a fault for each of its values, and a fault is much larger than a value: the first are kept.
inline constexpr std::int64_t kMostListedFaults = 64;

struct MaskValueFaults {
  std::vector<MaskFault> first;
  std::int64_t others = 0;         // that are not listed
  std::optional<MaskFault> doubt;  // legal, and rarely meant

  void add(const auto& make_fault) {
    if (std::cmp_less(first.size(), kMostListedFaults)) {
      first.push_back(make_fault());
    } else {
      ++others;
    }
  }
};

// Values of used queries and keys that the type does not allow, in the order of sequences, heads, queries and keys; and
// bits past the nodes in the rows of a packed tree [B, S, W], one for a row.
[[nodiscard]] MaskValueFaults check_mask_values(const std::string& given, const Tensor& mask, const MaskWalk& walk,
                                                const MaskBatch& batch);

// An attn_mask of two axes that holds the padding of each sequence, [B, Sk] as in Hugging Face: it is legal if there
// are as many queries as sequences, and is read as [Sq, Sk]. Empty where the data does not tell the two apart: rows
// that are all alike, and rows that move by at most one key, as those of a causal mask or a window do.
//
// Example: 3 sequences of 9, 5 and 7 keys with 3 queries each, and rows of 9, 5 and 7 ones.
[[nodiscard]] std::optional<MaskFault> padding_as_rows(const std::string& given, const Tensor& mask,
                                                       const MaskWalk& walk, const MaskBatch& batch);

// A dense mask whose columns are positions, with a column for each key instead: key t of sequence b is column t, the
// columns of longer padding left out. Sequences with different padding no longer share a mask.
[[nodiscard]] Tensor with_columns_of_keys(const Tensor& mask, const MaskBatch& batch);

}  // namespace kvscope::golden

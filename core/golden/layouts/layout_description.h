// A cache layout as data: which tensors hold K and V, the order of their axes, and where the table and the lengths are.
// Each named layout is a file of layouts/*.json, embedded when kvscope is built; a user's file has the same form. The
// file of layout nhd (FlashAttention):
//
//   {"about": "FlashAttention, vLLM: K and V apart, tokens before heads",
//    "forms": [                     alternatives; the input must have the tensors of one
//      {"tensors": [
//        {"name": "k_cache", "also": ["key_cache"], "holds": "k", "axes": "[block, slot, head, dim]"},
//        {"name": "v_cache", "also": ["value_cache"], "holds": "v", "axes": "[block, slot, head, dim]"}]}],
//    "table": {"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["cache_seqlens", "seq_lens"]}}}
//
//   axis           extent
//   block          N blocks; a block holds one page
//   slot           P tokens of a page
//   token          slots of a pool without pages, or the tokens of all sequences
//   seq, position  B sequences, S tokens of each (caches without a table)
//   head           H KV heads
//   dim            D elements of a head; dim/x and x: the same in runs of x elements
//   latent, rope   the two parts of an MLA row; all parts of K are joined in the order of the tensors
//   kv, layer, 1   2 (K and V), L layers, an axis of length 1
//   group          scales of a head: its elements in equal groups
//   row            the bytes of a packed row, whose "row" lists the elements and scales in it
//   head*dim       one axis that counts through both, here H * D; dim+vdim: K's elements, then V's
//
// "strides": [...], "sizes": [...] and "offset" [elements] describe a tensor that is saved as flat storage, of one
// axis: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ...
//
//   table form   tensors (the first name of each is the canonical one)
//   blocks       table [B, columns], lengths [B]
//   indptr       indptr [B + 1], indices [pages], last_page_len [B] or lengths [B]; or last_page_len [3, B] for a
//                sliding window, with rows of its first slot and of the attention sinks (MLC)
//   tokens       indptr [B + 1], indices [tokens]
//   requests     table [requests, columns] of token slots, requests [B], lengths [B]
//   offsets      table [B, 2, columns] of entries for K and for V (TensorRT-LLM), lengths [B]
//   dense        none; lengths [B], left_padding [B] and attention_mask [B, S] are optional
//   ragged       indptr [B + 1] into the tokens; lengths [B] is optional
//   chunk        none: one sequence, all tokens
//   sparse       indices [T, k] or [B, queries, k]: slots that each query sees, -1 for none; lengths [T] is optional
//
// "counts": "cached" marks lengths that leave out the new tokens. "values": "leading": V is the first elements of K.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/json.h"

namespace kvscope::golden {

enum class Holds : std::uint8_t { k, v, kv, k_scales, v_scales, kv_scales };

// Consecutive elements of a packed row, and their scales if they have any.
struct RowField {
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  std::int64_t at = 0;  // [bytes] from the start of the row
  DType scale_dtype = DType::f32;
  std::int64_t scales_at = 0;   // [bytes]
  std::int64_t scale_each = 0;  // elements that share a scale; 0: none
};

struct CacheTensor {
  std::string name;               // canonical
  std::vector<std::string> also;  // other names
  Holds holds = Holds::k;
  std::vector<std::string> axes;             // "block", "head*dim", ...
  std::vector<std::int64_t> strides, sizes;  // of flat storage, by axis; empty: the tensor has the axes itself
  std::int64_t offset = 0;                   // of flat storage
  std::int64_t row_bytes = 0;
  std::vector<RowField> row;
  bool optional = false;

  [[nodiscard]] bool holds_scales() const { return holds >= Holds::k_scales; }
  [[nodiscard]] std::string shape_words() const;  // "[N, P, H, D]"
};

// One way in which an input may hold the cache.
struct CacheForm {
  std::vector<CacheTensor> tensors;
  bool values_in_keys = false;
};

enum class TableForm : std::uint8_t { blocks, indptr, tokens, requests, offsets, dense, ragged, chunk, sparse };

struct TableDescription {
  TableForm form = TableForm::blocks;
  bool lengths_without_new = false;
  std::map<std::string, std::vector<std::string>> tensors;  // role -> names, the canonical one first
  [[nodiscard]] bool has(const std::string& role) const { return tensors.contains(role); }
  [[nodiscard]] const std::string& name(const std::string& role) const { return tensors.at(role).front(); }
};

// A limit of one engine, reported as a note or a warning.
struct EngineLimit {
  std::int64_t value = 0;  // 0: none
  std::string engine;
};

struct LayoutDescription {
  std::string name, about;
  std::vector<CacheForm> forms;
  TableDescription table;
  bool v_may_differ = false;         // in head size and dtype
  bool descale_by_sequence = false;  // k_descale [B, H]
  bool queries_by_head = false;      // q [B, Hq, queries, D]
  EngineLimit page_multiple;         // [tokens]
  EngineLimit index_bits;
  EngineLimit run_bytes;  // of axis x

  [[nodiscard]] bool has_axis(std::string_view axis) const;
  [[nodiscard]] bool needs_value_size() const;
};

// The roles of a table form in the order in which they are read.
[[nodiscard]] std::vector<std::string> table_roles(TableForm form);
[[nodiscard]] std::string_view name(TableForm form);
[[nodiscard]] std::string_view name(Holds holds);

// InputError naming `source` and the JSON path, with all faults.
[[nodiscard]] LayoutDescription parse_layout(const json::Value& file, std::string name, std::string_view source);

// A file of the user, or one tensor per text, as in --axes "kv=[block, kv, head, slot, dim]": k=, v= or kv=, with the
// name of the tensor in front if it is not a usual one: "pages:kv=[...]". Table and lengths are block_table and
// seq_lens, or, for a pool of tokens, kv_indptr and kv_indices.
[[nodiscard]] LayoutDescription read_layout_file(const std::string& path);
[[nodiscard]] LayoutDescription layout_of_axes(const std::vector<std::string>& texts);

// The axes of "[block, slot, head, dim]"; InputError naming `source` and `where` for unknown axes.
[[nodiscard]] std::vector<std::string> parse_axes(std::string_view text, std::string_view source,
                                                  const std::string& where);

// Named layouts, in the order of the list in CMakeLists.txt.
[[nodiscard]] const std::vector<LayoutDescription>& named_layouts();
[[nodiscard]] const LayoutDescription* find_layout(std::string_view name);
// The file of a named layout as it was embedded; empty for other names.
[[nodiscard]] std::string_view layout_file_text(std::string_view name);

// The description as JSON, in the form of the files.
[[nodiscard]] json::Value to_json(const LayoutDescription& layout);

}  // namespace kvscope::golden

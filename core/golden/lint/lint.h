// Checks the index and mask tensors of a paged cache, before a kernel reads them. A kernel follows a wrong entry
// without a message, to a wrong result or to an illegal address; lint reports all faults of a file at once.
//
//   rule        finds
//   missing     an index tensor that the layout needs
//   type        an index tensor that holds no integers; 64-bit indices where the engine's kernels read 32 bits
//   shape       tensors whose sizes do not fit each other; cache tensors that do not fit the layout
//   indptr      offsets that do not start at 0, that decrease, or that end outside the entries
//   last-page   a last page that holds 0 tokens, or more than the page size P
//   length      a length below 0, or one that needs more pages than the table has, more positions than the cache, or
//               more queries than q
//   padding     left padding outside a sequence; an attention mask with a 0 between its ones
//   range       an entry outside the pool, of a page that a query sees; a request outside its table
//   pair        TensorRT-LLM's entries: K of a block at an odd entry, or V not at the next one
//   duplicate   a block twice in one sequence, a key twice for one query, a request twice in a batch
//   sharing     a block in two sequences at different pages, or behind pages of different contents
//   write       a block that takes a new token of one sequence in a slot that another sequence reads
//   mask-value  a value of a mask that is not 0 or 1; NaN or +inf in a mask that is added to the scores; a bit past the
//               nodes in a row of a packed tree [B, S, W]
//   mask-past   values past the keys of a sequence that a kernel which reads the whole mask takes for visible keys
//   mask-row    a query that sees no key
//   mask-later  a key after the query's own token, where the kernel is causal too
//   mask-sense  a mask that is 1, or a float of 0, where the key is hidden; floats of 0 and 1, which are added to the
//               scores
//   mask-axes   a mask of two axes whose rows are the padding of each sequence
//   vector      a table row that a kernel which loads several entries at once reads past, or loads unaligned
//   overflow    a row, element or byte offset of a used block that does not fit 32 bits
//   tma         strides, sizes and boxes that a tensor map of the cache cannot have
//
// The rules up to write and mask-value are faults of the data, except for the sharing of a file without cache tensors;
// the others are warnings about kernels that read the data in a certain way, or about masks that are rarely meant.
// Masks have faults of the rules type, shape and indptr too. Only entries of pages that the mask shows to a query are
// judged: an engine may free the others. Every form of table is checked; caches without one (padded, ragged, chunks)
// have lengths, offsets and strides to check. A sparse table has a row for each query, which may share keys.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct LintOptions {
  LayoutOptions layout;                            // its mask and layer decide which entries are read
  std::int64_t vector_read = 1;                    // [entries] that a kernel loads at once; 1: the rule is not checked
  bool tma = false;                                // check a tensor map of K and V
  bool causal = false;                             // the kernel is causal too: check rule mask-later
  std::optional<std::array<std::int64_t, 2>> box;  // of the tensor map, [rows, elements]; empty: a page, 128 bytes
  // For a file without cache tensors: the shape and type that they have. The first axis is the number of blocks.
  std::vector<std::int64_t> cache_shape;
  DType cache_type = DType::bf16;
};

enum class LintSeverity : std::uint8_t { fault, warning };

struct LintFinding {
  LintSeverity severity = LintSeverity::fault;
  std::string rule;                   // "range"
  std::string object;                 // "block_table[0, 2]"
  std::string problem;                // "is 9 for page 2 of sequence 0"
  std::string range;                  // "[0, 6)"; empty where the problem states it
  std::string next;                   // what to look at
  std::optional<std::int64_t> value;  // the offending number
  std::int64_t count = 1;             // findings that it stands for: a mask may have one for each of its values
};

struct LintReport {
  std::string layout;
  // pages: entries that are read; blocks and page_size: those that an entry stands for, of one token where the table
  // has an entry for each
  std::int64_t sequences = 0, pages = 0, blocks = 0, page_size = 0;
  std::vector<LintFinding> findings;     // in the order of the rules
  std::vector<std::string> not_checked;  // with the option that checks it

  [[nodiscard]] std::int64_t faults() const;  // of all counts
  [[nodiscard]] std::int64_t warnings() const;
};

// The rules in the order of the table above.
[[nodiscard]] const std::vector<std::string_view>& lint_rules();

// The tensors are moved into the check. Throws InputError for options that do not fit the layout: a `cache_shape` of a
// rank that it does not have, or beside a cache, `vector_read` below 1, a box below 1, `causal` for a file without a
// mask tensor.
[[nodiscard]] LintReport lint(Bundle tensors, const LintOptions& options);

// At most `most` findings of each rule; 0: all of them. Example:
//   FAULT    range      block_table[0, 2] is 9 for page 2 of sequence 0; allowed [0, 6): ...
[[nodiscard]] std::string text_report(const LintReport& report, std::string_view file, std::size_t most = 8);
[[nodiscard]] json::Value json_report(const LintReport& report, std::string_view file);

}  // namespace kvscope::golden

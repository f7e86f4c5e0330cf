// What lint reads of a file: the index tensors as sequences with their pages, and the sizes and strides of the cache.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/golden/lint/lint.h"

namespace kvscope::golden {

// The pages of one sequence. Pages past `columns` are needed but are not in the tensor; that is reported already.
struct LintSequence {
  std::int64_t first = 0;    // index of its first entry in `entries`
  std::int64_t columns = 0;  // entries that it may use
  std::int64_t keys = 0;     // this step's tokens included
  std::int64_t queries = 1;  // this step's tokens
  std::int64_t begin = 0;    // the pages that its queries see, [begin, end), within `columns`
  std::int64_t end = 0;
  bool known = true;         // false: its offsets or its length are faulty
  std::int64_t padding = 0;  // positions before its first token, in a padded cache
};

// The table, in whichever form. An entry stands for a page: of P tokens, or of one token where the table has an entry
// for each of them. Caches without a table have the entries 0, 1, 2, ...: their sequences or their tokens.
struct LintIndices {
  TableForm form = TableForm::blocks;
  std::string table_name;               // as the file names it: "block_table", "kv_indices"
  std::vector<std::int64_t> entries;    // of the whole tensor; form offsets: those for K
  std::vector<std::int64_t> v_entries;  // form offsets: those for V
  std::int64_t table_columns = 0;       // of a table with rows
  std::int64_t page_tokens = 0;         // of an entry
  std::int64_t places = 0;              // entries are below it
  std::vector<LintSequence> sequences;
  bool queries_known = false;  // the file shows which tokens are new

  [[nodiscard]] bool by_token() const {
    return form == TableForm::tokens || form == TableForm::requests || form == TableForm::sparse ||
           form == TableForm::ragged || form == TableForm::chunk;
  }
  [[nodiscard]] bool has_rows() const {
    return form == TableForm::blocks || form == TableForm::offsets || form == TableForm::requests ||
           form == TableForm::sparse;
  }
  [[nodiscard]] bool has_table() const { return has_rows() || form == TableForm::indptr || form == TableForm::tokens; }
  // "block_table[0, 2]", "kv_indices[5]", "sequence 3" of a padded cache.
  [[nodiscard]] std::string entry_name(std::int64_t sequence, std::int64_t page) const;
  [[nodiscard]] std::int64_t entry(const LintSequence& sequence, std::int64_t page) const {
    return entries[static_cast<std::size_t>(sequence.first + page)];
  }
};

// K's and V's rows, by block and slot; `blocks` 0: the file has no cache tensors and the options do not give their
// shape.
struct LintCache {
  std::int64_t blocks = 0, page_size = 0;
  attention::PagedRows k, v;
  std::int64_t k_start = 0, v_start = 0;  // [bytes] of the first element within its tensor
  bool has_contents = false;              // false: only a shape
  bool rearranged = false;                // K and V are copies in another order: their strides are not the file's
  Bundle tensors;
  PreparedProblem prepared;
};

// Both add findings of the rules missing, type, shape, indptr, last-page, length and padding.
[[nodiscard]] LintCache read_lint_cache(Bundle& tensors, const LintOptions& options,
                                        std::vector<LintFinding>& findings);
[[nodiscard]] LintIndices read_lint_indices(const Bundle& tensors, const LintOptions& options, const LintCache& cache,
                                            std::vector<LintFinding>& findings);

// A tensor under its canonical name or a synonym.
struct LintTensor {
  std::string name;  // in the file, or the canonical one
  const Tensor* tensor = nullptr;
};

// The tensors of a file under their canonical names.
class LintTensors {
 public:
  LintTensors(const Bundle& bundle, const LayoutOptions& options);
  [[nodiscard]] const LayoutDescription& layout() const { return layout_; }
  [[nodiscard]] LintTensor get(const std::string& canonical) const;
  [[nodiscard]] LintTensor role(const std::string& role) const;  // of the table; no name: the layout does not have it

 private:
  const LayoutDescription& layout_;
  std::map<std::string, LintTensor> found_;
};

// The elements of an index tensor; empty with a finding when it is missing or of another type or rank.
[[nodiscard]] std::optional<std::vector<std::int64_t>> index_values(const LintTensor& found, std::size_t rank,
                                                                    std::string_view shape,
                                                                    std::vector<LintFinding>& findings);

// Offsets into `count` entries. Returns for each sequence whether its two offsets can be used.
[[nodiscard]] std::vector<bool> check_offsets(const std::string& tensor, const std::vector<std::int64_t>& offsets,
                                              std::int64_t count, std::string_view of,
                                              std::vector<LintFinding>& findings);

// Sets the entries and sequences of `indices`, whose form, page_tokens and places are set.
void read_lint_table(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
                     std::vector<LintFinding>& findings);

// Rules of the mask tensors (lint_masks.cpp). `causal`: rule mask-later is checked.
void check_lint_masks(const LintTensors& tensors, const LintCache& cache, const LintIndices& indices, bool causal,
                      LintReport& report);

// The finding in one call.
inline LintFinding lint_fault(std::string rule, std::string object, std::string problem, std::string range,
                              std::string next, std::optional<std::int64_t> value = std::nullopt) {
  return {LintSeverity::fault,
          std::move(rule),
          std::move(object),
          std::move(problem),
          std::move(range),
          std::move(next),
          value};
}
inline LintFinding lint_warning(std::string rule, std::string object, std::string problem, std::string range,
                                std::string next, std::optional<std::int64_t> value = std::nullopt) {
  LintFinding finding =
      lint_fault(std::move(rule), std::move(object), std::move(problem), std::move(range), std::move(next), value);
  finding.severity = LintSeverity::warning;
  return finding;
}

}  // namespace kvscope::golden

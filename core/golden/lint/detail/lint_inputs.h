// What lint reads of a file: the index tensors as sequences with their pages, and the sizes and strides of the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/lint/lint.h"

namespace kvscope::golden {

// The pages of one sequence. Pages past `readable` are needed but are not in the tensor; that is reported already.
struct LintSequence {
  std::int64_t first = 0;    // index of its first entry in `entries`
  std::int64_t columns = 0;  // entries that it may use
  std::int64_t keys = 0;     // this step's tokens included
  std::int64_t queries = 1;  // this step's tokens
  std::int64_t begin = 0;    // the pages that its queries see, [begin, end), within `columns`
  std::int64_t end = 0;
  bool known = true;  // false: its offsets or its length are faulty
};

struct LintIndices {
  enum class Form { table, pages, tokens };  // [B, columns]; indptr of pages; indptr of tokens
  Form form = Form::table;
  std::string table_name;             // as the file names it: "block_table", "kv_indices"
  std::vector<std::int64_t> entries;  // of the whole tensor
  std::int64_t table_columns = 0;     // of a table
  std::vector<LintSequence> sequences;
  bool queries_known = false;  // the file shows which tokens are new

  // "block_table[0, 2]" or "kv_indices[5]".
  [[nodiscard]] std::string entry_name(std::int64_t sequence, std::int64_t page) const;
  [[nodiscard]] std::int64_t entry(const LintSequence& sequence, std::int64_t page) const {
    return entries[static_cast<std::size_t>(sequence.first + page)];
  }
};

// K's and V's rows; `blocks` 0: the file has no cache tensors and the options do not give their shape.
struct LintCache {
  std::int64_t blocks = 0, page_size = 0;
  attention::PagedRows k, v;
  std::int64_t k_start = 0, v_start = 0;  // [bytes] of the first element within its tensor
  bool has_contents = false;              // false: only a shape
  bool rearranged = false;                // K and V are copies in another order: their strides are not the file's
  Bundle tensors;
  PreparedProblem prepared;
};

// Both add findings of the rules missing, type, shape, indptr, last-page and length.
[[nodiscard]] LintCache read_lint_cache(Bundle& tensors, const LintOptions& options,
                                        std::vector<LintFinding>& findings);
[[nodiscard]] LintIndices read_lint_indices(const Bundle& tensors, const LintOptions& options, const LintCache& cache,
                                            std::vector<LintFinding>& findings);

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

// Where an output fails: over sequences, heads, dims, visible keys and pages of keys, as counts and as a small map.
//
//   by sequence  ..#          one character each: . correct, - some rows fail, # half of them or more
//                          (for dims: # any row)
//   by keys      1 .  16-31 #
//   by page      sequence 2: ...#....    # replaced or left out, + counted twice
//
// The map by page is about the keys that a query reads, not about the query's own position. For a page j with
// c_j = sum of p_t (v_t - o) over its keys, a kernel that loses the page changes o by -c_j; the share of page j is the
// least-squares factor -<o' - o, c_j> / <c_j, c_j> over a few rows, 1 for a page that was replaced or left out.
//
// A wrong scale changes the weights of all pages, and some of them may then seem to be replaced or counted twice. So a
// map of a failure whose cause names no page is kept only if no cause is certain and the marked pages explain most of
// the squared error. A page that was replaced explains about half of its error: the rest is what was read instead.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/row_recipe.h"

namespace kvscope::golden {

struct FailurePattern {
  std::vector<std::int64_t> sequences, heads, dims;                 // failing elements of each
  std::int64_t rows = 0, failing_rows = 0;                          // a row also fails by its lse
  std::vector<std::int64_t> rows_of_sequence, failing_of_sequence;  // rows
  std::vector<std::int64_t> rows_of_head, failing_of_head;
  struct Lengths {
    std::int64_t first = 0, last = 0;  // visible keys of these rows
    std::int64_t rows = 0, failing_rows = 0;
  };
  std::vector<Lengths> lengths;  // those that occur: 0, 1, 2-3, 4-7, ...
  std::int64_t page_sequence = -1;
  std::vector<double> pages;  // of page_sequence: the share of each page; 0 where it is not significant
  double pages_explain = 0;   // share of the squared error along the pages with a share of at least 0.5
  bool only_nan = false;      // every failing row holds NaN or an infinity
  bool no_numbers = false;    // o of every failing row holds nothing else
  bool only_zeros = false;    // o of every failing row is zero
  bool lse_correct = false;   // the candidate has lse, which is correct in every failing row
  double worst = 0;           // largest error of an element of o / its sum of |p v|; of groups: 0
  std::string words;          // "all heads of sequence 0; all dims; the other 3 sequences are correct"
};

// Counts one row: its place, how many keys it sees, and the dims that fail.
void count_row(FailurePattern& pattern, std::int64_t sequence, std::int64_t head, std::int64_t visible_keys, bool fails,
               const std::vector<std::size_t>& failing_dims);

// A failing row for the map by page: its evaluator, o of the candidate and of the golden, the golden's lse in base e,
// and exp(candidate lse - golden lse).
struct PageRow {
  const RowEvaluator* row = nullptr;
  const std::vector<double>* candidate = nullptr;
  std::vector<double> golden;
  double lse = 0;
  double factor = 1;
};
// Rows of one sequence.
void find_pages(FailurePattern& pattern, const std::vector<PageRow>& rows);

// Sets `words`.
void describe_pattern(FailurePattern& pattern);

// Lines of the map, each with its newline; axes on which all entries are alike are left out.
[[nodiscard]] std::string map_text(const FailurePattern& pattern);

}  // namespace kvscope::golden

// Compares a candidate's tensors with the golden's. The verdict is a list of criteria, each of which can fail alone:
//
//   o: masks       NaN, +inf and -inf are at the same elements. A golden value past the candidate's type counts as
//                  infinity
//   o: bound       every element within attention/bounds.h for what the candidate rounds (candidate_rounding.h) and the
//                  golden's terms; with a profile: "o: profile vllm", every element within that suite's fixed tolerance
//                  (tolerance.h)
//   o: rows        groups of rows (group_tests.h); not with a profile
//   o: pages       the directions that a missing or exchanged page would take (page_tests.h); with the golden's inputs
//   lse: masks, bound, rows, pages   the same for lse, in the type of lse. With a profile: the tolerance for o's type
//   exact: <name>  bit for bit, no tolerance: movement tensors, those under "exact" in the golden's manifest, and
//                  those named in the options
//
// A correct kernel fails a report with a probability below 1e-6: each of the six statistical criteria takes 1e-7.
// Every element must meet the bound; no share of elements may differ. A candidate without `lse` is legal; the report
// notes that it was not checked. The error of quantization (golden tensor `o_unquantized`: the same attention over the
// values before quantization) is reported separately and belongs to no criterion.
//
// The golden of an attention output has, besides `o` [query, head, dim] and `lse` [query, head]: `a1`, `a2` like o,
// `smax` like lse, `query_offsets` [batch + 1], `key_lengths` [batch], `block_table` [batch, columns] and
// "page_size" in the manifest; golden_bundle.h makes one. The candidate's o may also be [batch, queries, head, dim],
// and its lse [batch, queries, head] or, for one query per sequence, [batch, head, 1]: the order of elements is the
// same.
//
// Throws InputError with all faults when the two cannot be compared: missing tensors, shapes, types, conventions that
// differ between the two manifests, a golden without the tensors that the bound needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/problem.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/verdict/candidate_rounding.h"
#include "core/golden/verdict/failing_group.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::golden {

struct CompareOptions {
  std::optional<std::string> profile;  // empty: the derived bound
  std::vector<std::string> exact;      // tensors to compare bit for bit, in addition to those of the manifest
  std::string golden_name = "golden";  // names of the two in reports
  std::string candidate_name = "candidate";
  const attention::Problem* inputs = nullptr;  // those of the golden, for the tests of pages; empty: not tested
  StatedRounding rounding = {};  // what the candidate's kernel rounds; with a profile only the output's type is used
};

// The place of an output element. Its token is the query's: position = key_length - queries + query, which is in
// page position / page_size of the sequence, at slot position % page_size of `block`. -1: not known, or no token (top
// rows of a sequence with more queries than keys).
struct Place {
  std::int64_t sequence = -1, query = -1, head = -1, dim = -1;  // query counts within its sequence; dim is -1 for lse
  std::int64_t position = -1, page = -1, slot = -1, block = -1;
};
[[nodiscard]] std::string describe(const Place& place);

struct Worst {
  Place place;
  double candidate = 0, golden = 0;
  double allowed = 0;  // by the bound or the profile
  double ratio = 0;    // |candidate - golden| / allowed; above 1 fails
};

struct Criterion {
  std::string name;
  bool passed = true;
  std::string detail;  // one line: the finding, and the place of the first or worst element
};

struct TensorReport {
  std::string name;
  DType dtype = DType::f32;  // the candidate's
  std::vector<std::int64_t> shape;
  Measures measures;
  std::optional<Worst> worst;  // of o and lse
};

// One head of one sequence, worst first.
struct HeadSummary {
  std::int64_t sequence = 0, head = 0;
  std::int64_t failing = 0, elements = 0;
  double max_abs = 0, worst_ratio = 0;
};

// What an element's bound consists of, at the element with the largest error / allowed.
struct BudgetReport {
  std::string tensor;  // "o" or "lse"
  Place place;
  attention::Rounding rounding;
  attention::Budget budget;
};

struct CompareResult {
  bool passed = true;
  std::string golden_name, candidate_name, policy;  // "derived bound, bf16" or "profile vllm, bf16"
  std::vector<Criterion> criteria;
  std::vector<TensorReport> tensors;
  std::int64_t failing_heads = 0;            // heads of sequences that have failing elements
  std::vector<HeadSummary> worst_heads;      // the worst 5 of them
  std::optional<Measures> quantization;      // o_unquantized against o
  std::vector<BudgetReport> budgets;         // of o and lse; none with a profile
  std::vector<std::string> conventions;      // "lse_base: natural"
  std::vector<std::string> notes;            // checks that were not made, with the reason
  std::vector<FailingGroup> failing_groups;  // the worst of each criterion of rows or pages that fails
};

[[nodiscard]] CompareResult compare(const Bundle& golden, const Bundle& candidate, const CompareOptions& options = {});

// The error of each element of o over its bound, as the criterion "o: bound" judges it, and the place of each row.
struct ElementErrors {
  std::int64_t rows = 0, heads = 0, dims = 0;
  DType dtype = DType::f32;  // the candidate's
  // [row, head, dim] |candidate - golden| / bound; 0 where both are the same NaN or infinity, infinity where one of
  // them is NaN or infinite and the other is not.
  std::vector<float> ratio;
  std::vector<Place> places;  // [row]; head and dim are -1
};

// Throws as compare() with default options, and InputError for a golden without o.
[[nodiscard]] ElementErrors element_errors(const Bundle& golden, const Bundle& candidate,
                                           const CompareOptions& options = {});

}  // namespace kvscope::golden

// Which rows a diagnosis of groups looks at, and the words for them. Faults in whole outputs are in
// tests/apps/diagnose_groups_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/golden_bundle.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::group_diagnosis_test {
namespace {

using testing::HasSubstr;

// The small batch: 5 sequences of 1, 1, 2, 1 and 3 queries, 4 heads. The candidate is correct.
struct Case {
  Bundle bundle = SmallBatch().in("nhd");
  PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("nhd"), "nhd");
  const attention::Problem& problem = prepared.problem;
  Bundle golden = golden_bundle(problem, attention::reference(problem), {});
  Bundle candidate;

  Case() {
    for (const char* name : {"o", "lse"}) {
      const Tensor& want = golden.tensors.at(name);
      Tensor have = make_tensor(DType::f32, want.shape);
      convert(DType::f64, want.bytes.data(), DType::f32, have.bytes.data(),
              static_cast<std::int64_t>(values<double>(want).size()), Overflow::non_saturating);
      candidate.tensors[name] = std::move(have);
    }
  }
  // A NaN of golden and candidate in each row of sequence 0.
  void lose_numbers() {
    for (std::size_t head = 0; head < SmallBatch::kQueryHeads; ++head) {
      values<double>(golden.tensors["o"])[head * SmallBatch::kDims + 1] = std::nan("");
      values<float>(candidate.tensors["o"])[head * SmallBatch::kDims + 1] = std::nanf("");
    }
  }
  [[nodiscard]] Diagnosis of(std::vector<FailingGroup> groups) const {
    DiagnosisInput input{problem, golden, candidate, {}};
    input.failing_groups = std::move(groups);
    return diagnose(input);
  }
};

struct Expected {
  std::vector<FailingGroup> groups;
  std::int64_t failing, looked_at;
  const char* words;
};

TEST(GroupDiagnosis, LooksAtTheRowsOfTheFailingGroups) {
  const Case c;
  for (const auto& [groups, failing, looked_at, words] : std::vector<Expected>{
           {{{2, -1, -1, -1}}, 8, 8, "sequence 2; all heads"},
           {{{-1, 1, -1, -1}}, 8, 8, "all sequences; head 1"},
           {{{4, 2, -1, -1}}, 3, 3, "sequence 4; head 2"},
           {{{0, -1, -1, -1}, {3, -1, -1, -1}}, 8, 8, "2 of 5 sequences; all heads"},
           {{{4, 1, -1, -1}, {4, 3, -1, -1}}, 6, 6, "sequence 4; 2 of 4 heads"},
           {{{4, -1, 3, -1}}, 4, 4, "sequence 4; all heads"},                  // the last query of three
           {{{4, -1, 4, -1}, {4, -1, 4, -1}}, 4, 4, "sequence 4; all heads"},  // the last page, named twice
           {{{4, 0, 1, 3}, {4, 0, 3, 1}}, 1, 1, "sequence 4; head 0"},         // and two pages in both orders
           {{{-1, -1, -1, -1}}, 32, 16, "all sequences; all heads"}}) {        // the strongest 16
    const Diagnosis d = c.of(groups);
    EXPECT_TRUE(d.of_groups) << words;
    EXPECT_FALSE(d.candidate_passes) << words;
    EXPECT_EQ(d.pattern.rows, 32) << words;
    EXPECT_EQ(d.pattern.failing_rows, failing) << words;
    EXPECT_EQ(d.failing_rows, looked_at) << words;
    EXPECT_EQ(d.correct_rows, failing == 32 ? 0 : 8) << words;
    EXPECT_EQ(d.pattern.words, std::string(words) + "; each element is within its bound");
    EXPECT_TRUE(d.explanations.empty()) << text_report(d);  // the candidate has no fault
    EXPECT_FALSE(d.certain);
    EXPECT_THAT(text_report(d), HasSubstr(" rows together: " + d.pattern.words));
  }
}

// Without lse the errors of o alone are compared: the same rows, and no cause.
TEST(GroupDiagnosis, NeedsNoLse) {
  Case c;
  c.candidate.tensors.erase("lse");
  const Diagnosis d = c.of({{2, -1, -1, -1}});
  EXPECT_EQ(d.failing_rows, 8);
  EXPECT_TRUE(d.explanations.empty()) << text_report(d);
}

// NaN is compared as a mask: its row is in no test of many elements, neither among the failing rows nor among the others.
TEST(GroupDiagnosis, LeavesOutRowsWithoutNumbers) {
  Case c;
  c.lose_numbers();
  const Diagnosis others = c.of({{2, -1, -1, -1}});
  EXPECT_EQ(others.failing_rows, 8);
  EXPECT_EQ(others.correct_rows, 8);
  const Diagnosis some = c.of({{-1, 1, -1, -1}});
  EXPECT_EQ(some.pattern.failing_rows, 8);
  EXPECT_EQ(some.failing_rows, 7);
  const Diagnosis none = c.of({{0, -1, -1, -1}});
  EXPECT_EQ(none.pattern.failing_rows, 4);
  EXPECT_EQ(none.failing_rows, 0);
  EXPECT_EQ(none.hypotheses, 0);
  EXPECT_EQ(none.pattern.words, "sequence 0; all heads; each element is within its bound");
  // An lse without a number does the same, in the golden as well as in both.
  Case infinite;
  const double minus = -std::numeric_limits<double>::infinity();
  values<double>(infinite.golden.tensors["lse"])[8] = minus;  // row 2, head 0: sequence 2
  values<float>(infinite.candidate.tensors["lse"])[8] = static_cast<float>(minus);
  EXPECT_EQ(infinite.of({{2, -1, -1, -1}}).failing_rows, 7);
}

// A group that names a page of a sequence without such rows adds no trial of this page, and reads no evaluator.
TEST(GroupDiagnosis, OfAPageOfASequenceWithoutNumbersTriesTheOthers) {
  Case c;
  c.lose_numbers();
  const Diagnosis d = c.of({{0, -1, 0, -1}, {4, -1, 1, -1}});
  EXPECT_EQ(d.pattern.failing_rows, 8);
  EXPECT_EQ(d.failing_rows, 4);
  EXPECT_TRUE(d.explanations.empty()) << text_report(d);
}

}  // namespace
}  // namespace kvscope::golden::group_diagnosis_test

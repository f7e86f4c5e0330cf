#include "core/golden/verdict/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/convert.h"
#include "core/golden/verdict/compare_report.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::compare_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor filled(std::vector<std::int64_t> shape, double value) {
  Tensor tensor = make_tensor(DType::f64, std::move(shape));
  for (double& x : values<double>(tensor)) x = value;
  return tensor;
}

Tensor in_type(DType dtype, const Tensor& from) {
  Tensor tensor = make_tensor(dtype, from.shape);
  convert(from.dtype, from.bytes.data(), dtype, tensor.bytes.data(),
          static_cast<std::int64_t>(values<double>(from).size()), Overflow::non_saturating);
  return tensor;
}

// Two sequences of 1 and 2 queries, 2 heads, 4 dims; pages of 4 tokens, 5 and 9 keys. The bound of f32 is 6.1e-6
// everywhere.
Bundle small_golden() {
  Bundle golden;
  golden.tensors["o"] = filled({3, 2, 4}, 0.5);
  golden.tensors["a1"] = filled({3, 2, 4}, 2);
  golden.tensors["a2"] = filled({3, 2, 4}, 0.25);
  golden.tensors["smax"] = filled({3, 2}, 3);
  golden.tensors["lse"] = filled({3, 2}, 10);
  golden.tensors["running"] = filled({3, 2, 4}, 0.5);
  golden.tensors["key_counts"] = filled({3, 2}, 9);
  golden.tensors["p2"] = filled({3, 2}, 0.125);
  golden.tensors["repeats"] = filled({3, 2}, 0);
  golden.tensors["clump"] = filled({3, 2, 3}, 0);
  golden.tensors["faint"] = filled({3, 2, 3}, 0);
  golden.tensors["query_offsets"] = tensor_of<std::int64_t>({3}, std::array<std::int64_t, 3>{0, 1, 3});
  golden.tensors["key_lengths"] = tensor_of<std::int64_t>({2}, std::array<std::int64_t, 2>{5, 9});
  golden.tensors["block_table"] = tensor_of<std::uint32_t>({2, 3}, std::array<std::uint32_t, 6>{7, 2, ~0u, 4, 9, 1});
  golden.manifest.set("page_size", 4);
  golden.manifest.set("conventions", json::Object{{"mask", "causal"}, {"lse_base", "natural"}});
  return golden;
}

Bundle candidate_of(const Bundle& golden, DType dtype = DType::f32) {
  Bundle candidate;
  candidate.tensors["o"] = in_type(dtype, golden.tensors.at("o"));
  candidate.tensors["lse"] = in_type(DType::f32, golden.tensors.at("lse"));
  return candidate;
}

std::vector<std::string> failed(const CompareResult& result) {
  std::vector<std::string> names;
  for (const Criterion& c : result.criteria) {
    if (!c.passed) names.push_back(c.name);
  }
  EXPECT_EQ(result.passed, names.empty());
  return names;
}
using Names = std::vector<std::string>;

TEST(Compare, EqualTensorsPassInEveryOutputType) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Bundle golden = small_golden();
    EXPECT_EQ(failed(compare(golden, candidate_of(golden, dtype))), Names{}) << name(dtype);
  }
}

// A golden of the fast path has an error, which is not the candidate's.
TEST(Compare, BoundIncludesTheErrorOfAFastGolden) {
  Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden, DType::f64);
  for (double& x : values<double>(candidate.tensors["o"])) x += 2e-5;
  for (double& x : values<double>(golden.tensors["o"])) x -= 1e-5;
  candidate.tensors["lse"] = filled({3, 2}, 10.00001);
  EXPECT_EQ(failed(compare(golden, candidate)), (Names{"o: bound", "o: rows", "lse: bound", "lse: rows"}));
  golden.tensors["golden_error"] = filled({3, 2, 2}, 1e-5);  // o: 1.01e-5 * 2.5 + 1e-5 * 2
  const CompareResult result = compare(golden, candidate);
  EXPECT_EQ(failed(result), Names{});
  EXPECT_TRUE(std::ranges::any_of(
      result.notes, [](const std::string& note) { return note.find("--accuracy fast") != std::string::npos; }));
  EXPECT_NEAR(result.budgets.at(0).budget.golden, 4.525e-5, 1e-9);
  EXPECT_NE(budget_report(result).find("  golden  4.52e-05"), std::string::npos) << budget_report(result);
  for (double& x : values<double>(candidate.tensors["o"])) x += 2e-5;
  EXPECT_FALSE(compare(golden, candidate).passed);
  golden.tensors["golden_error"] = filled({3, 2}, 1e-5);
  EXPECT_THROW(static_cast<void>(compare(golden, candidate)), InputError);
}

TEST(Compare, AnErrorWhereNextToNoneIsAllowedHasWordsForItsRatio) {
  for (const DType type : {DType::f64, DType::f32}) {  // allowed: 0 and 2^-150
    Bundle golden = small_golden();
    for (const char* name : {"o", "a1", "a2", "running"}) golden.tensors[name] = filled({3, 2, 4}, 0);
    Bundle candidate = candidate_of(golden, type);
    Tensor wrong = filled({3, 2, 4}, 0);
    values<double>(wrong)[5] = 0.125;
    candidate.tensors["o"] = in_type(type, wrong);
    const std::string report = text_report(compare(golden, candidate));
    EXPECT_THAT(report, testing::HasSubstr("1 of 24 elements exceed the bound; largest error more than 1e12x the "
                                           "allowed error, at sequence 0, query 0, head 1, dim 1"));
    EXPECT_THAT(report, testing::HasSubstr("max abs 0.125, largest error more than 1e12x the allowed error\n"));
  }
}

// An element index read as [head, query, dim], or a position counted from the first key, gives another place.
TEST(Compare, ReportSaysWhichElementWhichTokenWhichBlock) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  values<float>(candidate.tensors["o"])[2 * 8 + 1 * 4 + 3] = 0.5625f;  // row 2, head 1, dim 3
  const CompareResult result = compare(golden, candidate, {{}, {}, "golden.npz", "out.npz"});
  EXPECT_EQ(failed(result), Names{"o: bound"});
  EXPECT_EQ(text_report(result), R"(FAIL  out.npz against golden.npz (derived bound, f32)
  pass  o: masks    NaN and infinities at the same elements (0 of 24)
  FAIL  o: bound    1 of 24 elements exceed the bound; largest error 1.09e+04x the allowed error, at sequence 1, query 1, head 1, dim 3 (query at token 8): 0.5625, golden 0.5
  pass  o: rows     0 of 8 groups of rows exceed the bound; largest sum of squares 0x the allowed sum, head 0 of all sequences (1 row)
  pass  lse: masks  NaN and infinities at the same elements (0 of 6)
  pass  lse: bound  0 of 6 elements exceed the bound; largest error 0x the allowed error, at sequence 0, query 0, head 0 (query at token 4): 10, golden 10
  pass  lse: rows   0 of 8 groups of rows exceed the bound; largest sum of squares 0x the allowed sum, head 0 of all sequences (1 row)
o f32 [3, 2, 4]: max abs 0.0625, max ulp > 1e6 (see max abs), rms relative 0.0255, cosine difference 0.000324
lse f32 [3, 2]: max abs 0, max ulp 0, rms relative 0, cosine difference 0
elements that exceed the bound, by sequence and head, worst first:
  sequence 1, head 1: 1 of 8 exceed the bound, max abs 0.0625, largest error 1.09e+04x the allowed error
conventions: mask: causal, lse_base: natural
note: the candidate states no conventions: the golden's are assumed
)");
}

TEST(Compare, EachCriterionCanFailAlone) {
  const Bundle golden = small_golden();
  {
    Bundle c = candidate_of(golden);
    values<float>(c.tensors["o"])[5] = std::nanf("");
    EXPECT_EQ(failed(compare(golden, c)), Names{"o: masks"});
  }
  {
    Bundle c = candidate_of(golden);
    values<float>(c.tensors["o"])[5] += 6.5e-6f;
    EXPECT_EQ(failed(compare(golden, c)), Names{"o: bound"});
  }
  {
    Bundle c = candidate_of(golden);
    values<float>(c.tensors["lse"])[5] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(failed(compare(golden, c)), Names{"lse: masks"});
  }
  {
    Bundle c = candidate_of(golden);
    values<float>(c.tensors["lse"])[5] += 0.01f;
    EXPECT_EQ(failed(compare(golden, c)), Names{"lse: bound"});
  }
  {
    Bundle g = golden;
    g.tensors["slots"] = tensor_of<float>({2}, std::array{0.f, 1.f});
    g.manifest.set("exact", json::Array{"slots"});
    Bundle c = candidate_of(g);
    c.tensors["slots"] = tensor_of<float>({2}, std::array{-0.f, 1.f});  // equal as numbers, not as bits
    const CompareResult result = compare(g, c);
    EXPECT_EQ(failed(result), Names{"exact: slots"});
    EXPECT_EQ(result.criteria.back().detail,
              "1 of 2 elements differ; the first is [0]: bits 80000000, golden 00000000");
  }
  {
    Bundle c = candidate_of(golden, DType::bf16);
    for (bf16& x : values<bf16>(c.tensors["o"])) x.bits = 0x3f01;  // 0.50390625: within 2.01/128, but all on one side
    EXPECT_EQ(failed(compare(golden, c, {"flashmla", {}, "g", "c"})), Names{"o: profile flashmla, cosine"});
  }
}

TEST(Compare, MasksAskForTheKindNotOnlyForNonFinite) {
  Bundle golden = small_golden();
  auto o = values<double>(golden.tensors["o"]);
  o[0] = kInf;
  o[1] = -kInf;
  o[2] = std::nan("");
  values<double>(golden.tensors["lse"])[0] = -kInf;
  Bundle candidate = candidate_of(golden);
  EXPECT_EQ(failed(compare(golden, candidate)), Names{});
  values<float>(candidate.tensors["o"])[1] = std::numeric_limits<float>::infinity();
  values<float>(candidate.tensors["lse"])[0] = std::numeric_limits<float>::infinity();
  const CompareResult result = compare(golden, candidate);
  EXPECT_EQ(failed(result), (Names{"o: masks", "lse: masks"}));
  EXPECT_EQ(result.criteria[0].detail,
            "1 of 24 elements differ in kind; the first is sequence 0, query 0, head 0, dim 1 (query at token 4): +inf "
            "where the golden has -inf");
}

// A value that f16 cannot hold is an infinity in a correct f16 output.
TEST(Compare, GoldenPastTheCandidatesTypeCountsAsInfinity) {
  Bundle golden = small_golden();
  values<double>(golden.tensors["o"])[0] = 1e5;
  EXPECT_EQ(failed(compare(golden, candidate_of(golden, DType::f16))), Names{});
  EXPECT_EQ(failed(compare(golden, candidate_of(golden, DType::f32))), Names{});
}

// A comparison with a NaN bound is always false, which must not mean "passed".
TEST(Compare, ANaNBoundFails) {
  Bundle golden = small_golden();
  values<double>(golden.tensors["a1"])[5] = std::nan("");
  Bundle candidate = candidate_of(golden);
  values<float>(candidate.tensors["o"])[5] = 0.75f;
  EXPECT_EQ(failed(compare(golden, candidate)), Names{"o: bound"});
}

// The terms that older bundles lack are replaced by their largest values: the bound is looser, never tighter.
TEST(Compare, BundlesWithoutTheNewerTermsAreReadWithALooserBound) {
  Bundle golden = small_golden();
  const double allowed = compare(golden, candidate_of(golden)).tensors[0].worst->allowed;
  for (const char* term : {"running", "key_counts", "p2", "repeats", "clump", "faint"}) {
    Bundle older = golden;
    older.tensors.erase(term);
    const CompareResult result = compare(older, candidate_of(golden));
    EXPECT_EQ(failed(result), Names{}) << term;
    EXPECT_GT(result.tensors[0].worst->allowed, allowed) << term;
    EXPECT_NE(result.notes.back().find("written by an older kvscope"), std::string::npos);
  }
}

// Bundles written before `lost` allow all errors of P below its normal range in one direction.
TEST(Compare, BundlesWithoutLostAreReadWithALooserBound) {
  Bundle golden = small_golden();
  golden.tensors["faint"] = filled({3, 2, 3}, 1e-3);
  golden.tensors["lost"] = filled({3, 2, 5}, 1e-6);
  CompareOptions options;
  options.rounding.probabilities = DType::f16;
  const CompareResult tight = compare(golden, candidate_of(golden), options);
  EXPECT_EQ(failed(tight), Names{});
  golden.tensors.erase("lost");
  const CompareResult loose = compare(golden, candidate_of(golden), options);
  EXPECT_EQ(failed(loose), Names{});
  EXPECT_GT(loose.tensors[0].worst->allowed, 1.01 * tight.tensors[0].worst->allowed);
  golden.tensors["lost"] = filled({3, 2, 3}, 1e-6);
  EXPECT_THROW(static_cast<void>(compare(golden, candidate_of(golden), options)), InputError);
}

// Bundles written before `partial_sums` take every partial sum of a row sum for as large as the whole one.
TEST(Compare, BundlesWithoutPartialSumsAreReadWithALooserBound) {
  Bundle golden = small_golden();
  const double loose = compare(golden, candidate_of(golden)).tensors[0].worst->allowed;
  golden.tensors["partial_sums"] = filled({3, 2, 2}, 0.25);  // of a score; of a row sum
  const CompareResult tight = compare(golden, candidate_of(golden));
  EXPECT_EQ(failed(tight), Names{});
  EXPECT_LT(tight.tensors[0].worst->allowed, 0.99 * loose);
  golden.tensors["partial_sums"] = filled({3, 2}, 0.25);
  EXPECT_THROW(static_cast<void>(compare(golden, candidate_of(golden))), InputError);
}

// Bundles written before `largest_value` allow faint keys the whole of a1.
TEST(Compare, BundlesWithoutTheLargestValueAreReadWithALooserBound) {
  Bundle golden = small_golden();
  golden.tensors["faint"] = filled({3, 2, 3}, 1e-9);
  CompareOptions options;
  options.rounding.probabilities = DType::f16;
  const double loose = compare(golden, candidate_of(golden), options).tensors[0].worst->allowed;
  golden.tensors["largest_value"] = filled({3, 2}, 3);
  const CompareResult tight = compare(golden, candidate_of(golden), options);
  EXPECT_EQ(failed(tight), Names{});
  EXPECT_LT(tight.tensors[0].worst->allowed, 0.01 * loose);
  golden.tensors["largest_value"] = filled({3, 2, 1}, 3);
  EXPECT_THROW(static_cast<void>(compare(golden, candidate_of(golden), options)), InputError);
}

// Matrix instructions cut row sums toward zero: lse may be smaller by what they cut, but not larger.
TEST(Compare, TruncatedRowSumsExcuseASmallerLseOnly) {
  Bundle golden = small_golden();
  golden.tensors["key_counts"] = filled({3, 2}, 65536);
  golden.tensors["p2"] = filled({3, 2}, 1e-3);
  Bundle smaller = candidate_of(golden, DType::f16), larger = smaller;
  for (float& lse : values<float>(smaller.tensors["lse"])) lse -= 1e-3f;
  for (float& lse : values<float>(larger.tensors["lse"])) lse += 1e-3f;
  EXPECT_EQ(failed(compare(golden, smaller)), Names{});
  const CompareResult failing = compare(golden, larger);
  EXPECT_EQ(failed(failing), (Names{"lse: bound", "lse: rows"}));
  const CompareResult passing = compare(golden, smaller);
  EXPECT_NEAR(passing.tensors[1].worst->allowed - failing.tensors[1].worst->allowed, 1.625 * 0x1p-26 * 65536, 1e-6);
  EXPECT_NEAR(failing.budgets.back().budget.total(), failing.tensors[1].worst->allowed, 1e-15);
}

// The type of lse is its own: a bf16 kernel that writes lse in f32 has an exact row sum or a rounded one, but never the
// rounding of o.
TEST(Compare, LseIsJudgedByItsOwnTypeAndRowSum) {
  const Bundle golden = small_golden();
  Bundle c = candidate_of(golden, DType::bf16);
  values<float>(c.tensors["lse"])[0] += 1e-4f;  // within u * p2 of rounded probabilities
  EXPECT_EQ(failed(compare(golden, c)), Names{});
  CompareOptions exact;
  exact.rounding.row_sum = attention::RowSum::exact;
  EXPECT_EQ(failed(compare(golden, c, exact)), (Names{"lse: bound", "lse: rows"}));
  c.tensors["lse"] = in_type(DType::bf16, golden.tensors.at("lse"));
  values<bf16>(c.tensors["lse"])[0] = from_double<bf16>(10.03, Overflow::saturate);
  EXPECT_EQ(failed(compare(golden, c, exact)), Names{});
}

TEST(Compare, ProfileJudgesLseToo) {
  const Bundle golden = small_golden();
  Bundle c = candidate_of(golden);
  values<float>(c.tensors["lse"])[0] += 0.1f;  // vllm allows 0.015 + 0.1
  EXPECT_EQ(failed(compare(golden, c, {"vllm", {}, "g", "c"})), Names{});
  EXPECT_EQ(failed(compare(golden, c, {"flashinfer", {}, "g", "c"})), Names{"lse: profile flashinfer"});
}

// Distinct values between the numbers of bf16, 64 rows of 32 elements.
Bundle uneven_golden(double size) {
  Bundle golden;
  golden.tensors["o"] = filled({64, 1, 32}, 0);
  std::uint64_t n = 0;
  for (double& x : values<double>(golden.tensors["o"])) x = size * (1 + 0.5 * std::sin(static_cast<double>(++n)));
  golden.tensors["a1"] = filled({64, 1, 32}, 2);
  golden.tensors["a2"] = filled({64, 1, 32}, 0.01);
  golden.tensors["running"] = filled({64, 1, 32}, 1);
  for (const char* row : {"smax", "lse", "key_counts", "p2"}) golden.tensors[row] = filled({64, 1}, 0.01);
  n = 0;
  for (double& x : values<double>(golden.tensors["lse"])) x = 8 + 0.01 * static_cast<double>(++n);
  for (double& x : values<double>(golden.tensors["key_counts"])) x = 4096;
  golden.tensors["repeats"] = filled({64, 1}, 0);
  golden.tensors["clump"] = filled({64, 1, 3}, 0);
  golden.tensors["faint"] = filled({64, 1, 3}, 0);
  return golden;
}

TEST(Compare, AShiftOfEveryElementWithinItsBoundFailsTheRows) {
  const Bundle golden = uneven_golden(0.01);
  Bundle moved = golden;
  const auto want = values<double>(golden.tensors.at("o"));
  // What matrix instructions may cut from every element, with one sign, and 4.4 deviations of the rounding of P; the bound
  // allows 7. 4,096 keys with a sum so far of at most running + a2, 32 products of scores, and a1 + |o|.
  const double cut = 1.625 * 0x1p-26 * (4096 * (1 + 0.01) + 32 * (1 + 0.01) * (2 + 0.015));
  const double shift = cut + 1e-4;
  std::uint64_t n = 0;
  for (double& x : values<double>(moved.tensors["o"])) x += ++n % 2 == 0 ? shift : -shift;
  const CompareResult right = compare(golden, candidate_of(golden, DType::bf16));
  EXPECT_EQ(failed(right), Names{});
  const CompareResult wrong = compare(golden, candidate_of(moved, DType::bf16));
  EXPECT_EQ(failed(wrong), Names{"o: rows"});
  EXPECT_EQ(wrong.criteria[2].detail.substr(0, 52), "3 of 3 groups of rows exceed the bound; largest sum ");
  EXPECT_EQ(want.size(), 64u * 32);
}

// Values that only bf16 kernels write prove a bf16 kernel, whatever the file's type.
TEST(Compare, AnF32FileThatHoldsBf16ValuesIsJudgedAsBf16) {
  const Bundle golden = uneven_golden(1);
  Bundle candidate = candidate_of(golden, DType::bf16);
  const std::vector<double> narrow = as_doubles(candidate.tensors["o"]);
  candidate.tensors["o"] = in_type(DType::f32, tensor_of<double>({64, 1, 32}, std::span(narrow)));
  const CompareResult found = compare(golden, candidate);
  EXPECT_EQ(failed(found), Names{});
  EXPECT_EQ(found.policy, "derived bound, f32 holding bf16 values");
  CompareOptions stated;
  stated.rounding.output = DType::f32;
  EXPECT_EQ(failed(compare(golden, candidate, stated)), (Names{"o: bound", "o: rows"}));
  // Values that the golden itself has exactly prove nothing.
  EXPECT_EQ(compare(small_golden(), candidate_of(small_golden())).policy, "derived bound, f32");
}

TEST(Compare, AStatedTypeThatTheValuesAreNotOfIsRejected) {
  const Bundle golden = uneven_golden(1);
  CompareOptions stated;
  stated.rounding.output = DType::bf16;
  const std::string message = message_of([&] { static_cast<void>(compare(golden, candidate_of(golden), stated)); });
  EXPECT_EQ(
      message,
      "candidate rejected: candidate 'o': is stated to hold bf16 values, but element 0 is 1.42073548, which is not "
      "a bf16 number. Pass the type that the kernel wrote with --candidate-dtype");
}

// 48 rows whose row sums are exact to f32: rounded probabilities would have moved most of them by 1e-5 or more.
TEST(Compare, ExactRowSumsAreFoundAndThenHeldToTheirBound) {
  const Bundle golden = uneven_golden(1);
  Bundle candidate = candidate_of(golden, DType::bf16);
  EXPECT_EQ(failed(compare(golden, candidate)), Names{});
  values<float>(candidate.tensors["lse"])[7] += 1e-4f;  // u * p2 * 7 / sqrt 3 = 1.6e-4
  EXPECT_EQ(failed(compare(golden, candidate)), (Names{"lse: bound", "lse: rows"}));
  CompareOptions rounded;
  rounded.rounding.row_sum = attention::RowSum::rounded;
  EXPECT_EQ(failed(compare(golden, candidate, rounded)), Names{});
}

TEST(CompareReport, BudgetPrintsEachSourceOfRounding) {
  const Bundle golden = small_golden();
  const std::string text = budget_report(compare(golden, candidate_of(golden, DType::bf16)));
  for (const char* line :
       {"error budget of o at sequence 0, query 0, head 0, dim 0",
        "\n  inputs  0           q, K and V used as stored\n", "\n  p       0.00356     P rounded to bf16\n",
        "\n  sum     ", "\n  merge   ", "\n  output  0.00195     o rounded to bf16\n", "error budget of lse at",
        "possibly rounded to bf16\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
  }
  EXPECT_EQ(budget_report(compare(golden, candidate_of(golden), {"vllm", {}, "g", "c"})), "");
}

TEST(Compare, WorstHeadsComeWorstFirstAndAtMostFive) {
  Bundle golden = small_golden();
  golden.tensors["query_offsets"] = tensor_of<std::int64_t>({4}, std::array<std::int64_t, 4>{0, 1, 2, 3});
  golden.tensors["key_lengths"] = tensor_of<std::int64_t>({3}, std::array<std::int64_t, 3>{5, 9, 9});
  golden.tensors.erase("block_table");
  Bundle candidate = candidate_of(golden);
  auto o = values<float>(candidate.tensors["o"]);
  for (std::size_t pair = 0; pair < 6; ++pair) o[pair * 4] += 0.1f * static_cast<float>(pair + 1);
  const CompareResult result = compare(golden, candidate);
  ASSERT_EQ(result.worst_heads.size(), 5u);
  EXPECT_EQ(result.worst_heads[0].sequence, 2);
  EXPECT_EQ(result.worst_heads[0].head, 1);
  EXPECT_EQ(result.worst_heads[0].elements, 4);
  EXPECT_EQ(result.worst_heads[4].sequence, 0);
  EXPECT_EQ(result.worst_heads[4].head, 1);
  EXPECT_EQ(result.failing_heads, 6);
  EXPECT_THAT(text_report(result), testing::HasSubstr("\n  and 1 more\n"));
  const std::string diagnosed = text_report(result, "diagnosis  a fault\n");
  EXPECT_THAT(diagnosed, testing::HasSubstr("(derived bound, f32)\ndiagnosis  a fault\ncriteria\n  pass  o: masks"));
  EXPECT_THAT(diagnosed, testing::Not(testing::HasSubstr("by sequence and head")));
}

TEST(Compare, CandidateWithoutLseIsLegalAndSaysSo) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  candidate.tensors.erase("lse");
  candidate.manifest.set("conventions", json::Object{{"mask", "causal"}});
  const CompareResult result = compare(golden, candidate);
  EXPECT_EQ(failed(result), Names{});
  EXPECT_EQ(result.notes, Names{"lse was not checked: the candidate has none"});
}

TEST(Compare, BatchAndQueryAxesMayStandApart) {
  Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  candidate.tensors["o"].shape = {3, 1, 2, 4};
  EXPECT_EQ(failed(compare(golden, candidate)), Names{});
}

// The quantization error is reported but belongs to no criterion: 0.1 here would fail every bound.
TEST(Compare, QuantizationIsReportedApart) {
  Bundle golden = small_golden();
  golden.tensors["o_unquantized"] = filled({3, 2, 4}, 0.6);
  const CompareResult result = compare(golden, candidate_of(golden));
  EXPECT_EQ(failed(result), Names{});
  ASSERT_TRUE(result.quantization.has_value());
  EXPECT_NEAR(result.quantization->max_abs, 0.1, 1e-12);
}

TEST(Compare, AGoldenWithoutOutputIsComparedBitForBit) {
  Bundle golden;
  golden.tensors["blocks"] = tensor_of<std::uint16_t>({2, 3}, std::array<std::uint16_t, 6>{1, 2, 3, 4, 5, 6});
  Bundle candidate = golden;
  EXPECT_EQ(failed(compare(golden, candidate)), Names{});
  values<std::uint16_t>(candidate.tensors["blocks"])[4] = 7;
  const CompareResult result = compare(golden, candidate);
  EXPECT_EQ(failed(result), Names{"exact: blocks"});
  EXPECT_EQ(result.criteria[0].detail, "1 of 6 elements differ; the first is [1, 1]: bits 0007, golden 0005");
}

std::string rejection(const Bundle& golden, const Bundle& candidate, const CompareOptions& options = {}) {
  return message_of([&] { static_cast<void>(compare(golden, candidate, options)); });
}

// FlashAttention returns lse as [batch, head, query]. With one query it has the golden's order, otherwise it has not.
TEST(Compare, AnLseByBatchAndHeadIsReadOnlyWithOneQuery) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  candidate.tensors["lse"].shape = {3, 2, 1};
  EXPECT_TRUE(compare(golden, candidate).passed);
  candidate.tensors["lse"].shape = {1, 2, 3};
  EXPECT_EQ(
      rejection(golden, candidate),
      "candidate rejected: candidate 'lse': has shape [1, 2, 3], the golden [3, 2]: transpose it to [batch, query, "
      "head]");
  candidate.tensors["lse"].shape = {1, 3, 2};
  EXPECT_TRUE(compare(golden, candidate).passed);
}

TEST(Compare, AnOutputInAnotherOrderNamesTheGoldens) {
  const Bundle golden = small_golden();
  const auto rejected = [&](std::vector<std::int64_t> shape) {
    Bundle candidate = candidate_of(golden);
    candidate.tensors["o"] = make_tensor(DType::f32, std::move(shape));
    const std::string text = rejection(golden, candidate);
    return text.substr(text.find("[3, 2, 4]") + 9);
  };
  EXPECT_EQ(rejected({2, 3, 4}), ": transpose it to [query, head, dim]");
  EXPECT_EQ(rejected({1, 2, 3, 4}), ": transpose it to [batch, query, head, dim]");
  EXPECT_EQ(rejected({24}), ": save it in the order and shape [query, head, dim]");
  EXPECT_EQ(rejected({3, 2, 8}), "");
}

TEST(Compare, WhatCannotBeComparedIsRejectedWithAllFaults) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  candidate.tensors["o"] = make_tensor(DType::e4m3, {3, 4, 2});
  candidate.tensors["lse"] = make_tensor(DType::f32, {2, 3});
  candidate.manifest.set("conventions", json::Object{{"lse_base", "two"}});
  EXPECT_EQ(
      rejection(golden, candidate, {{}, {"k"}, "g", "out.npz"}),
      "out.npz rejected, 5 faults:\n"
      "  candidate 'o': has shape [3, 4, 2], the golden [3, 2, 4]: save it in the order and shape [query, head, dim]\n"
      "  candidate 'o': is e4m3; an output is f64, f32, f16 or bf16\n"
      "  candidate 'lse': has shape [2, 3], the golden [3, 2]: transpose it to [query, head]\n"
      "  candidate 'k': is to be compared bit for bit, but the golden does not have it\n"
      "  candidate convention 'lse_base': is \"two\", the golden's is \"natural\": make both the same way");
  EXPECT_EQ(rejection(golden, {}),
            "candidate rejected: candidate 'o': is missing; the golden has f64 [3, 2, 4]. The candidate has no tensor");
  EXPECT_EQ(rejection({}, candidate), "candidate rejected: golden: holds no tensor: nothing to compare");
  EXPECT_EQ(
      rejection(golden, candidate_of(golden), {"loose", {}, "g", "c"}),
      "command line rejected: --profile: 'loose' is not a profile; profiles are flashattention, flashinfer, vllm, "
      "flashmla, "
      "torch");
}

TEST(Compare, AGoldenThatIsNoneIsRejected) {
  Bundle golden = small_golden();
  const Bundle candidate = candidate_of(golden);
  golden.tensors.erase("a2");
  golden.tensors["p2"] = filled({6}, 1);
  golden.tensors["smax"] = filled({2, 3}, 1);
  EXPECT_EQ(rejection(golden, candidate),
            "golden rejected, 3 faults:\n"
            "  golden 'a2': is missing; the bound is made of it: make the golden with `kvscope golden`\n"
            "  golden 'smax': is f64 [2, 3], but must be f64 [3, 2]\n"
            "  golden 'p2': is f64 [6], but must be f64 [3, 2]");
  golden = small_golden();
  values<std::int64_t>(golden.tensors["query_offsets"])[1] = 7;
  values<std::int64_t>(golden.tensors["key_lengths"])[0] = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(rejection(golden, candidate),
            "golden rejected, 2 faults:\n"
            "  golden 'query_offsets': is i64 [3], but must be i64 [batch + 1], rising from 0 to the rows of o\n"
            "  golden 'key_lengths': is i64 [2], but must be i64 [batch] of lengths");
}

TEST(CompareReport, JsonHasTheSameVerdictAndPlaces) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  values<float>(candidate.tensors["o"])[8] = 0.75f;
  const json::Value report = json_report(compare(golden, candidate));
  EXPECT_EQ(*report.find("passed")->as_bool(), false);
  const json::Value& worst = *report.find("tensors")->as_array()->front().find("worst");
  EXPECT_EQ(*worst.find("sequence")->as_i64(), 1);
  EXPECT_EQ(*worst.find("token")->as_i64(), 7);
  EXPECT_EQ(*worst.find("block")->as_i64(), 9);
  EXPECT_EQ(json::parse(json::dump(report), "report"), report);
}

TEST(CompareReport, JUnitIsWellFormedWhateverTheNamesHold) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  values<float>(candidate.tensors["o"])[8] = 0.75f;
  const std::string xml = junit_report(compare(golden, candidate, {{}, {}, "<g & \"h\">", "c\x01\xff\xc3\xa9\n"}));
  const TempFolder folder;
  spit(folder / "r.xml", xml);
  EXPECT_EQ(python(folder, R"(
import xml.etree.ElementTree as e
t = e.parse('r.xml').getroot()
print(ascii(t.get('name')), t.get('tests'), t.get('failures'), [c.get('name') for c in t.iter('testcase') if len(c)])
)"),
            "'c??\\xe9\\n against <g & \"h\">' 6 2 ['o: bound', 'o: rows']\n");
}

// --- element by element ---

TEST(ElementErrors, AreTheErrorOverTheBoundOfTheFormula) {
  const Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  auto o = values<float>(candidate.tensors["o"]);
  for (std::size_t i = 0; i < o.size(); ++i) o[i] += 1e-6f * static_cast<float>(i);
  const ElementErrors errors = element_errors(golden, candidate);
  EXPECT_EQ(errors.rows, 3);
  EXPECT_EQ(errors.heads, 2);
  EXPECT_EQ(errors.dims, 4);
  const double bound = compare(golden, candidate).tensors[0].worst->allowed;  // equal for all elements
  double worst = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const double ratio = std::abs(static_cast<double>(o[i]) - 0.5) / bound;
    worst = std::max(worst, ratio);
    EXPECT_FLOAT_EQ(errors.ratio[i], static_cast<float>(ratio)) << i;
  }
  const CompareResult compared = compare(golden, candidate);
  EXPECT_FLOAT_EQ(static_cast<float>(compared.tensors[0].worst->ratio), static_cast<float>(worst));
  EXPECT_EQ(errors.places[2].sequence, 1);
  EXPECT_EQ(errors.places[2].query, 1);
  EXPECT_EQ(errors.places[2].position, 8);
  EXPECT_EQ(errors.places[2].page, 2);
  EXPECT_EQ(errors.places[2].block, 1);
}

TEST(ElementErrors, AnotherKindOfNumberIsInfinitelyWrongAndTheSameKindIsRight) {
  Bundle golden = small_golden();
  Bundle candidate = candidate_of(golden);
  auto want = values<double>(golden.tensors["o"]);
  auto have = values<float>(candidate.tensors["o"]);
  want[0] = std::nan(""), have[0] = std::nanf("");
  want[1] = kInf, have[1] = static_cast<float>(kInf);
  want[2] = kInf, have[2] = static_cast<float>(-kInf);
  have[3] = std::nanf("");
  const ElementErrors errors = element_errors(golden, candidate);
  EXPECT_EQ(errors.ratio[0], 0);
  EXPECT_EQ(errors.ratio[1], 0);
  EXPECT_TRUE(std::isinf(errors.ratio[2]));
  EXPECT_TRUE(std::isinf(errors.ratio[3]));
  EXPECT_EQ(errors.ratio[4], 0);
}

TEST(ElementErrors, NeedAnAttentionOutput) {
  Bundle golden = small_golden();
  const Bundle candidate = candidate_of(golden);
  golden.tensors.erase("o");
  EXPECT_THROW(static_cast<void>(element_errors(golden, candidate)), InputError);
  golden = small_golden();
  golden.tensors.erase("a1");
  EXPECT_THROW(static_cast<void>(element_errors(golden, candidate)), InputError);
}

}  // namespace
}  // namespace kvscope::golden::compare_test

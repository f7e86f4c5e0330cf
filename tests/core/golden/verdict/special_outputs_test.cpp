// Outputs without elements, without numbers, past their type's range, and goldens whose manifest was edited: the cases in which
// a comparison divides by an extent, or by nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/compare_report.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::special_outputs_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Tensor of_f64(std::vector<std::int64_t> shape, double value) {
  Tensor tensor = make_tensor(DType::f64, std::move(shape));
  for (double& x : values<double>(tensor)) x = value;
  return tensor;
}

// `rows` rows, one sequence, with all terms of the bound.
Bundle golden(std::int64_t rows, std::int64_t heads, std::int64_t dims) {
  Bundle bundle;
  bundle.tensors["o"] = of_f64({rows, heads, dims}, 0.5);
  bundle.tensors["a1"] = of_f64({rows, heads, dims}, 2);
  bundle.tensors["a2"] = of_f64({rows, heads, dims}, 0.25);
  bundle.tensors["running"] = of_f64({rows, heads, dims}, 0.5);
  bundle.tensors["smax"] = of_f64({rows, heads}, 3);
  bundle.tensors["lse"] = of_f64({rows, heads}, 10);
  bundle.tensors["key_counts"] = of_f64({rows, heads}, 9);
  bundle.tensors["p2"] = of_f64({rows, heads}, 0.125);
  bundle.tensors["repeats"] = of_f64({rows, heads}, 0);
  bundle.tensors["clump"] = of_f64({rows, heads, 3}, 0);
  bundle.tensors["faint"] = of_f64({rows, heads, 3}, 0);
  bundle.tensors["query_offsets"] = tensor_of<std::int64_t>({2}, std::vector<std::int64_t>{0, rows});
  bundle.tensors["key_lengths"] = tensor_of<std::int64_t>({1}, std::vector<std::int64_t>{9});
  return bundle;
}

Bundle candidate(const Bundle& golden, DType dtype = DType::f32) {
  Bundle bundle;
  for (const auto& [name, type] : {std::pair{"o", dtype}, {"lse", DType::f32}}) {
    const auto found = golden.tensors.find(name);
    if (found == golden.tensors.end()) continue;
    Tensor tensor = make_tensor(type, found->second.shape);
    convert(DType::f64, found->second.bytes.data(), type, tensor.bytes.data(),
            static_cast<std::int64_t>(values<double>(found->second).size()), Overflow::non_saturating);
    bundle.tensors[name] = std::move(tensor);
  }
  return bundle;
}

// "o: masks, o: bound!": the criteria in order; ! marks those that fail.
std::string criteria(const CompareResult& result) {
  std::string text;
  for (const Criterion& c : result.criteria) text += (text.empty() ? "" : ", ") + c.name + (c.passed ? "" : "!");
  return text;
}

// --- no element, no number --------------------------------------------------------------------------------------------

// A place is an index divided by the heads and the dims: of an output without them there is none.
TEST(SpecialOutputs, WithoutElementsNothingIsComparedAndNothingFails) {
  const std::string nothing = "no finite element to compare";
  for (const auto& [rows, heads, dims] :
       std::vector<std::array<std::int64_t, 3>>{{0, 2, 4}, {3, 0, 4}, {0, 0, 4}, {3, 0, 0}}) {
    const Bundle g = golden(rows, heads, dims);
    const CompareResult result = compare(g, candidate(g));
    EXPECT_EQ(criteria(result), "o: masks, o: bound, lse: masks, lse: bound") << rows << ' ' << heads << ' ' << dims;
    EXPECT_EQ(result.criteria[0].detail, "NaN and infinities at the same elements (0 of 0)");
    EXPECT_EQ(result.criteria[1].detail, nothing);
    EXPECT_EQ(result.criteria[3].detail, nothing);
    EXPECT_THAT(element_errors(g, candidate(g)).ratio, IsEmpty());
  }
  const Bundle g = golden(3, 2, 0);  // lse has its elements
  Bundle c = candidate(g);
  EXPECT_EQ(criteria(compare(g, c)), "o: masks, o: bound, lse: masks, lse: bound, lse: rows");
  values<float>(c.tensors["lse"])[3] = 11;
  const CompareResult wrong = compare(g, c);
  EXPECT_EQ(criteria(wrong), "o: masks, o: bound, lse: masks, lse: bound!, lse: rows");  // equal rows count once
  EXPECT_EQ(wrong.tensors[1].worst->place.query, 1);
  EXPECT_EQ(wrong.tensors[1].worst->place.head, 1);
}

TEST(SpecialOutputs, WithoutNumbersOnlyTheKindsAreCompared) {
  Bundle g = golden(3, 2, 4);
  std::ranges::fill(values<double>(g.tensors["o"]), std::nan(""));
  std::ranges::fill(values<double>(g.tensors["lse"]), -kInfinite);
  const CompareResult result = compare(g, candidate(g));
  EXPECT_EQ(criteria(result), "o: masks, o: bound, o: rows, lse: masks, lse: bound, lse: rows");
  EXPECT_EQ(result.criteria[0].detail, "NaN and infinities at the same elements (24 of 24)");
  EXPECT_EQ(result.criteria[1].detail, "no finite element to compare");
  EXPECT_EQ(result.criteria[4].detail, "no finite element to compare");
  EXPECT_THAT(result.budgets, IsEmpty());
  const json::Value report = json_report(result);
  for (const json::Value& tensor : *report.find("tensors")->as_array()) EXPECT_EQ(tensor.find("worst"), nullptr);
  CompareOptions fixed;
  fixed.profile = "vllm";
  EXPECT_EQ(criteria(compare(g, candidate(g), fixed)), "o: masks, o: profile vllm, lse: masks, lse: profile vllm");
  Bundle c = candidate(g);
  values<float>(c.tensors["o"])[7] = 0.5F;
  EXPECT_EQ(criteria(compare(g, c)), "o: masks!, o: bound, o: rows, lse: masks, lse: bound, lse: rows");
  EXPECT_EQ(criteria(compare(g, c, fixed)), "o: masks!, o: profile vllm, lse: masks, lse: profile vllm");
}

// Elements beside a NaN are judged one by one, and by the same tolerance.
TEST(SpecialOutputs, NumbersBesideNaNAreHeldToTheProfile) {
  Bundle g = golden(3, 2, 4);
  values<double>(g.tensors["o"])[1] = std::nan("");
  CompareOptions fixed;
  fixed.profile = "flashinfer";  // 0.001 + 0.001 * 0.5
  Bundle c = candidate(g);
  values<float>(c.tensors["o"])[2] += 0.0014F;
  EXPECT_EQ(criteria(compare(g, c, fixed)), "o: masks, o: profile flashinfer, lse: masks, lse: profile flashinfer");
  values<float>(c.tensors["o"])[2] += 0.0002F;
  EXPECT_EQ(criteria(compare(g, c, fixed)), "o: masks, o: profile flashinfer!, lse: masks, lse: profile flashinfer");
}

// 1e5 is an infinity of f16. A kernel that writes f16, saved as f32, stores one.
TEST(SpecialOutputs, AGoldenPastTheStatedTypeIsAnInfinity) {
  Bundle g = golden(3, 2, 4);
  values<double>(g.tensors["o"])[9] = 1e5;
  Bundle c = candidate(g);
  CompareOptions stated;
  stated.rounding.output = DType::f16;
  EXPECT_THAT(message_of([&] { static_cast<void>(compare(g, c, stated)); }),
              HasSubstr("is stated to hold f16 values, but element 9 is 100000, which is not a f16 number"));
  values<float>(c.tensors["o"])[9] = std::numeric_limits<float>::infinity();
  const CompareResult result = compare(g, c, stated);
  EXPECT_EQ(result.policy, "derived bound, f32 holding f16 values");
  EXPECT_EQ(criteria(result), "o: masks, o: bound, o: rows, lse: masks, lse: bound, lse: rows");
  values<float>(c.tensors["o"])[9] = 65504;
  EXPECT_EQ(criteria(compare(g, c, stated)), "o: masks!, o: bound!, o: rows, lse: masks, lse: bound, lse: rows");
  // The pictures of single elements agree: the infinity is right, and a number in its place is infinitely wrong.
  const Bundle narrow = candidate(g, DType::f16);
  EXPECT_EQ(element_errors(g, narrow).ratio[9], 0);
  Bundle number = narrow;
  values<f16>(number.tensors["o"])[9] = from_double<f16>(65504, Overflow::saturate);
  EXPECT_EQ(element_errors(g, number).ratio[9], std::numeric_limits<float>::infinity());
}

TEST(SpecialOutputs, ATypeThatTheFileCannotHoldIsNotStated) {
  const Bundle g = golden(3, 2, 4);
  CompareOptions stated;
  stated.rounding.output = DType::f32;
  EXPECT_EQ(message_of([&] { static_cast<void>(compare(g, candidate(g, DType::bf16), stated)); }),
            "candidate rejected: candidate 'o': is bf16, which cannot hold the f32 output that --candidate-dtype "
            "states: save the output in the type that the kernel wrote, and remove the option");
}

// --- what a golden lacks, or states in another way ---------------------------------------------------------------------

TEST(SpecialOutputs, AGoldenWithoutLseLeavesTheCandidatesUnchecked) {
  Bundle g = golden(3, 2, 4);
  const Bundle c = candidate(g);
  g.tensors.erase("lse");
  const CompareResult result = compare(g, c);
  EXPECT_EQ(criteria(result), "o: masks, o: bound, o: rows");
  EXPECT_THAT(result.notes, Contains("lse was not checked: the golden has none"));
  // Each row counts in its groups: without lse no two rows are the same.
  EXPECT_THAT(result.criteria[2].detail, HasSubstr("0 of 5 groups of rows exceed the bound"));
  Bundle wrong = c;
  for (float& x : values<float>(wrong.tensors["o"])) x += 4e-6F;
  EXPECT_THAT(compare(g, wrong).criteria[2].detail, HasSubstr("(6 rows)"));
}

// The head size decides how many products a score sums: 64 of them err more than 4.
TEST(SpecialOutputs, AHeadSizeThatIsNotStatedIsThatOfO) {
  const auto allowed = [](const json::Value& size) {
    Bundle g = golden(3, 2, 4);
    if (!size.is_null()) g.manifest.set("head_size", size);
    return compare(g, candidate(g)).tensors[0].worst->allowed;
  };
  const double of_dims = allowed({});
  EXPECT_EQ(allowed(4), of_dims);
  EXPECT_GT(allowed(64), of_dims);
  EXPECT_LT(allowed(1), of_dims);
  EXPECT_THROW(allowed("64"), InputError);
  EXPECT_THROW(allowed(-7), InputError);
}

// lse in base 2 is log2(e) times as large, and so is what rounding adds to it.
TEST(SpecialOutputs, ABaseThatIsNotStatedIsNatural) {
  const auto allowed = [](const json::Value& base) {
    Bundle g = golden(3, 2, 4);
    if (!base.is_null()) g.manifest.set("conventions", json::Object{{"lse_base", base}});
    return compare(g, candidate(g)).tensors[1].worst->allowed;
  };
  const double natural = allowed("natural");
  EXPECT_EQ(allowed({}), natural);
  EXPECT_THROW(allowed(2), InputError);
  EXPECT_NE(allowed("two"), natural);
}

TEST(SpecialOutputs, OneUnquantizedOutputOfAnotherShapeIsNoQuantizationError) {
  Bundle g = golden(3, 2, 4);
  g.tensors["o_unquantized"] = of_f64({3, 2, 5}, 0.6);
  EXPECT_FALSE(compare(g, candidate(g)).quantization.has_value());
  g.tensors["o_unquantized"] = of_f64({3, 2, 4}, 0.6);
  const CompareResult result = compare(g, candidate(g));
  EXPECT_NEAR(result.quantization->max_abs, 0.1, 1e-12);
  EXPECT_THAT(text_report(result),
              HasSubstr("quantization error, reported separately from the criteria: max abs 0.1,"));
  EXPECT_NEAR(json_report(result).find("quantization")->find("max_abs")->number(), 0.1, 1e-12);
}

// --- candidates --------------------------------------------------------------------------------------------------------

TEST(SpecialOutputs, ANpyFileIsNamedAfterItsTensor) {
  const Bundle g = golden(3, 2, 4);
  Bundle c;
  c.tensors["result"] = make_tensor(DType::f32, {2, 2});
  CompareOptions options;
  options.candidate_name = "result.npy";
  EXPECT_EQ(message_of([&] { static_cast<void>(compare(g, c, options)); }),
            "result.npy rejected: candidate 'o': is missing; the golden has f64 [3, 2, 4]. The candidate has result: a "
            ".npy file has the name of its tensor, so rename the file to o.npy");
}

TEST(SpecialOutputs, ShapesOfOtherCountsGetNoAdviceToTranspose) {
  const Bundle g = golden(3, 2, 4);
  const auto with = [&](const char* name, std::vector<std::int64_t> shape) {
    Bundle c = candidate(g);
    c.tensors[name] = make_tensor(DType::f32, std::move(shape));
    return message_of([&] { static_cast<void>(compare(g, c)); });
  };
  EXPECT_EQ(with("lse", {2, 2, 1}), "candidate rejected: candidate 'lse': has shape [2, 2, 1], the golden [3, 2]");
  EXPECT_EQ(with("o", {1, 4, 3, 2}),
            "candidate rejected: candidate 'o': has shape [1, 4, 3, 2], the golden [3, 2, 4]: save it in the order and "
            "shape [query, head, dim]");
  EXPECT_EQ(with("o", {1, 2, 3, 8}), "candidate rejected: candidate 'o': has shape [1, 2, 3, 8], the golden [3, 2, 4]");
}

TEST(SpecialOutputs, ArithmeticIsNotComparedBitForBit) {
  const Bundle g = golden(3, 2, 4);
  CompareOptions exact;
  exact.exact = {"o", "lse"};
  const std::string advice =
      ": data that a kernel only moves has the same type and shape; compare the result of arithmetic without --exact";
  EXPECT_EQ(message_of([&] { static_cast<void>(compare(g, candidate(g), exact)); }),
            "candidate rejected, 2 faults:\n"
            "  candidate 'lse': is f32 [3, 2], the golden f64 [3, 2]" +
                advice +
                "\n"
                "  candidate 'o': is f32 [3, 2, 4], the golden f64 [3, 2, 4]" +
                advice);
}

// "exact" of the manifest is a list; the names of the options replace all tensors of a golden without o.
TEST(SpecialOutputs, OnlyNamedTensorsOfAGoldenWithoutOutputAreCompared) {
  Bundle g;
  g.tensors["a"] = g.tensors["b"] = tensor_of<float>({2}, std::vector<float>{1, 2});
  EXPECT_EQ(criteria(compare(g, g)), "exact: a, exact: b");
  CompareOptions options;
  options.exact = {"b"};
  const CompareResult result = compare(g, g, options);
  EXPECT_EQ(criteria(result), "exact: b");
  EXPECT_THAT(result.notes, Contains("candidate 'a' was not compared"));
  // A candidate that also holds the inputs that its kernel read is not told about them.
  Bundle with_inputs = g;
  with_inputs.manifest = {};
  with_inputs.manifest.set("holds", "inputs");
  EXPECT_THAT(compare(g, with_inputs, options).notes, Not(Contains("candidate 'a' was not compared")));
}

// --- reports -----------------------------------------------------------------------------------------------------------

TEST(SpecialOutputs, AReportThatPassesHasNoHeadsAndNoConventionsOfAGoldenWithoutThem) {
  const Bundle g = golden(1, 1, 2);
  const std::string text = text_report(compare(g, candidate(g), {{}, {}, "g.npz", "c.npz"}));
  EXPECT_EQ(text.substr(0, text.find('\n')), "pass  c.npz against g.npz (derived bound, f32)");
  EXPECT_THAT(text, Not(HasSubstr("by sequence and head")));
  EXPECT_THAT(text, Not(HasSubstr("conventions: ")));
}

TEST(SpecialOutputs, AHeadOfAnUnknownSequenceIsCalledSo) {
  Bundle g = golden(3, 2, 4);
  g.tensors.erase("query_offsets");
  Bundle c = candidate(g);
  values<float>(c.tensors["o"])[13] = 0.75F;
  const std::string text = text_report(compare(g, c));
  EXPECT_THAT(text, HasSubstr("at query row 1, head 1, dim 1: 0.75, golden 0.5"));
  EXPECT_THAT(text, HasSubstr("\n  sequence unknown, head 1: 1 of 12 exceed the bound, max abs 0.25,"));
}

TEST(SpecialOutputs, ABudgetNamesWhatWasStated) {
  const Bundle g = golden(3, 2, 4);
  const auto budget = [&](const StatedRounding& stated) {
    CompareOptions options;
    options.rounding = stated;
    return budget_report(compare(g, candidate(g, DType::bf16), options));
  };
  StatedRounding stated;
  EXPECT_THAT(budget(stated), HasSubstr("keys added one by one"));
  EXPECT_THAT(budget(stated), HasSubstr("matrix instructions truncate their f32 sums"));
  stated.inputs = DType::e4m3;
  stated.row_sum = attention::RowSum::exact;
  stated.tile_keys = 128;
  stated.accumulator_bits = 14;
  stated.ex2_error = 0.001;
  stated.partials = DType::f16;
  const std::string text = budget(stated);
  for (const char* words : {"q, K and V rounded to e4m3\n", "row sum of unrounded P\n", "tiles of 128 keys\n",
                            "matrix instructions cut addends to 14 bits\n", "exponential, relative error 0.001\n",
                            "splits merged by lse, partial outputs in f16\n"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

}  // namespace
}  // namespace kvscope::golden::special_outputs_test

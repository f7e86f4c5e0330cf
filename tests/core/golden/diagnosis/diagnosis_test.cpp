// The parts of a diagnosis: the correct recipe against the reference, the inputs of a golden found again, single pages and
// keys found from one row, and the answers without a cause. Faults written by other code are in
// tests/apps/diagnose_test.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/diagnosis/page_search.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "tests/core/golden/diagnosis/candidate_of.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::diagnosis_test {
namespace {

using attention::Problem;

// Every convention that changes a row, one at a time.
std::vector<attention::Options> conventions_to_try(const std::vector<double>& slopes,
                                                   const std::vector<double>& sinks) {
  std::vector<attention::Options> all(8);
  all[1].mask = MaskKind::none;
  all[2].alignment = CausalAlignment::top_left;
  all[3].mask = MaskKind::sliding_window;
  all[3].window_left = 2;
  all[4].mask = MaskKind::chunked;
  all[4].chunk = 3;
  all[5].soft_cap = 1.5;
  all[6].alibi_slopes = slopes;
  all[6].lse_base = attention::LseBase::two;
  all[7].sinks = sinks;
  return all;
}

TEST(RowRecipe, OfACorrectKernelGivesTheReferenceInEveryLayoutUnderEveryConvention) {
  const std::vector<double> slopes{0.5, 0.25, 0.125, 0.0625}, sinks{0.1, -0.3, 1.2, 0.7};
  std::int64_t rows = 0;
  for (const std::string layout : SmallBatch::kLayouts) {
    const Bundle bundle = SmallBatch().in(layout);
    LayoutOptions options = SmallBatch::options(layout);
    if (layout == "mla") {
      options.value_size = SmallBatch::kLatent;
      options.scale = 0.3;
    }
    for (const attention::Options& convention : conventions_to_try(slopes, sinks)) {
      PreparedProblem prepared = prepare_problem(bundle, options, layout);
      Problem& problem = prepared.problem;
      const double scale = problem.options.scale;
      problem.options = convention;
      problem.options.scale = scale;
      const attention::Result want = attention::reference(problem);
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t q = problem.first_query(b); q < problem.first_query(b + 1); ++q) {
          for (std::int64_t h = 0; h < problem.query_heads; ++h, ++rows) {
            const RowEvaluator evaluator(problem, {}, b, q, h);
            const RowValue have = evaluator.evaluate(evaluator.correct());
            ASSERT_FALSE(have.outside) << layout;
            const double lse = want.lse(static_cast<std::size_t>(q), static_cast<std::size_t>(h));
            if (std::isinf(lse)) {
              EXPECT_EQ(have.terms.lse, lse) << layout;
            } else {
              EXPECT_NEAR(have.terms.lse, lse, 1e-13) << layout << ", row " << q << ", head " << h;
            }
            for (std::size_t d = 0; d < have.o.size(); ++d) {
              const auto row = static_cast<std::size_t>(q);
              const auto head = static_cast<std::size_t>(h);
              EXPECT_NEAR(have.o[d], want.o(row, head, d), 1e-13) << layout;
              EXPECT_NEAR(have.a1[d], want.a1(row, head, d), 1e-13) << layout;
              EXPECT_NEAR(have.a2[d], want.a2(row, head, d), 1e-13) << layout;
            }
            EXPECT_NEAR(have.terms.smax, want.smax(static_cast<std::size_t>(q), static_cast<std::size_t>(h)), 1e-13);
          }
        }
      }
    }
  }
  EXPECT_EQ(rows, static_cast<std::int64_t>(std::size(SmallBatch::kLayouts)) * 8 * 8 * SmallBatch::kQueryHeads);
}

// 16 tokens, 24 times each. Errors of equal probabilities are equal: without joining them, a recipe would have a bound a
// fifth of the golden's, and a kernel with that fault and correct rounding would match no hypothesis.
TEST(RowRecipe, JoinsEqualWeightsAsTheReferenceDoes) {
  constexpr std::int64_t kTokens = 16, kKeys = 24 * kTokens, kDims = 4;
  std::vector<float> q(kDims, 0.5F), k, v;
  for (std::int64_t i = 0; i < kKeys * kDims; ++i) {
    const auto x = static_cast<double>(i % (kTokens * kDims));
    k.push_back(static_cast<float>(std::sin(1.7 * x)));
    v.push_back(static_cast<float>(1 + 0.25 * std::cos(2.3 * x)));
  }
  const std::vector<std::int64_t> offsets{0, 1}, lengths{kKeys};
  const std::uint32_t block = 0;
  Problem problem;
  problem.batch = problem.query_heads = 1;
  problem.q = reinterpret_cast<const std::byte*>(q.data());
  problem.query_offsets = offsets;
  problem.key_lengths = lengths;
  problem.k = {.data = reinterpret_cast<const std::byte*>(k.data()),
               .blocks = 1,
               .page_size = kKeys,
               .heads = 1,
               .head_size = kDims,
               .block_stride = kKeys * kDims,
               .token_stride = kDims,
               .head_stride = kDims,
               .table = &block,
               .table_stride = 1};
  problem.v = problem.k;
  problem.v.data = reinterpret_cast<const std::byte*>(v.data());
  const attention::Result want = attention::reference(problem);
  const RowEvaluator evaluator(problem, {}, 0, 0, 0);
  const RowValue have = evaluator.evaluate(evaluator.correct());
  EXPECT_GT(want.p2(0, 0), 0.2);
  EXPECT_GT(want.repeats(0, 0), 10);
  EXPECT_NEAR(have.terms.p2, want.p2(0, 0), 1e-13);
  EXPECT_NEAR(have.terms.repeats, want.repeats(0, 0), 1e-9);
  EXPECT_NEAR(have.terms.row_sum_so_far, want.partial_sums(0, 0, 1), 1e-13);
  for (std::size_t d = 0; d < have.o.size(); ++d) {
    EXPECT_NEAR(have.a2[d], want.a2(0, 0, d), 1e-13);
    EXPECT_GE(have.element(d).running, want.running(0, 0, d));  // the sums so far are not computed: a1 times the factor
    EXPECT_LT(have.element(d).running, 2 * want.running(0, 0, d));
  }
}

// The rows of V are decoded once for the heads of a group; another KV head or another query has other rows.
TEST(RowRecipe, HeadsOfAGroupShareTheRowsOfVAndPredictTheSame) {
  const Bundle bundle = SmallBatch().in("nhd");
  const PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("nhd"), "nhd");
  const Problem& problem = prepared.problem;
  const std::int64_t group = problem.query_heads / problem.k.heads, query = problem.first_query(5) - 1;
  ASSERT_GT(group, 1);
  const RowEvaluator first(problem, {}, 4, query, 0);
  for (std::int64_t head = 1; head < problem.query_heads; ++head) {
    RowEvaluator shared(problem, {}, 4, query, head);
    const RowEvaluator alone(problem, {}, 4, query, head);
    EXPECT_EQ(shared.share_values(first), head < group);
    EXPECT_EQ(shared.evaluate(shared.correct()).o, alone.evaluate(alone.correct()).o);
    EXPECT_EQ(shared.first_dims(3).evaluate(shared.correct()).o.size(), 3u);
  }
  RowEvaluator earlier(problem, {}, 4, query - 1, 0);
  EXPECT_FALSE(earlier.share_values(first));
}

TEST(GoldenInputs, GiveTheSameProblemAgain) {
  const std::vector<double> slopes{0.5, 0.25, 0.125, 0.0625}, sinks{0.1, -0.3, 1.2, 0.7};
  for (const attention::Options& convention : conventions_to_try(slopes, sinks)) {
    Bundle bundle = SmallBatch().in("nhd");
    const auto tensor = [](const std::vector<double>& x) {
      return tensor_of<double>({static_cast<std::int64_t>(x.size())}, std::span(x));
    };
    if (!convention.alibi_slopes.empty()) bundle.tensors["alibi_slopes"] = tensor(slopes);
    if (!convention.sinks.empty()) bundle.tensors["sinks"] = tensor(sinks);
    LayoutOptions options = SmallBatch::options("nhd");
    options.attention = convention;
    options.attention.alibi_slopes = {};
    options.attention.sinks = {};
    options.scale = 0.7;
    options.ignore = {"workspace"};
    bundle.tensors["workspace"] = make_tensor(DType::u8, {3});
    const PreparedProblem prepared = prepare_problem(bundle, options, "inputs");
    Bundle golden = golden_bundle(prepared.problem, attention::reference(prepared.problem), {"kvscope", "nhd", {}});
    EXPECT_FALSE(inputs_file(golden, "g.npz"));
    golden.manifest.set("inputs", inputs_manifest(options, "some/inputs.npz"));
    EXPECT_EQ(inputs_file(golden, "g.npz"), "some/inputs.npz");
    EXPECT_FALSE(holds_inputs(golden));
    const PreparedProblem again = prepare_problem(bundle, layout_options_of(golden, "golden"), "inputs");
    EXPECT_EQ(conventions(again.problem.options), conventions(prepared.problem.options));
    EXPECT_EQ(again.key_lengths, prepared.key_lengths);
  }
}

TEST(GoldenInputs, OfAnotherProgramsGoldenAreAnErrorWithBothFaults) {
  const Bundle golden;
  try {
    static_cast<void>(layout_options_of(golden, "g.npz"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.faults().size(), 2u);
    EXPECT_NE(std::string(error.what()).find("kvscope golden"), std::string::npos);
  }
}

// The batch with every slot filled, so that a wrong read finds a number and not NaN.
struct Case {
  Bundle bundle = [] {
    Bundle filled = SmallBatch().in("max");
    std::uint64_t n = 0;
    for (float& x : values<float>(filled.tensors["blocks"])) {
      if (std::isnan(x)) x = static_cast<float>(CounterRng(6, 0).bell(n));
      ++n;
    }
    return filled;
  }();
  PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("max"), "batch");
  Problem& problem = prepared.problem;
  Bundle golden = golden_bundle(problem, attention::reference(problem), {});
};

Diagnosis diagnose_change(const std::function<void(Case&)>& change) {
  const Case right;
  Case wrong;
  change(wrong);
  const Bundle candidate = candidate_of(attention::reference(wrong.problem));
  return diagnose({right.problem, right.golden, candidate, {}});
}

TEST(Diagnose, NamesThePageAndTheBlockForEveryPageOfTheLongestSequenceAndEveryBlock) {
  std::int64_t named = 0;
  for (std::int64_t page = 0; page < 5; ++page) {
    for (std::uint32_t block = 0; block < SmallBatch::kBlocks; ++block) {
      const Case right;
      const std::uint32_t correct = right.problem.k.table[4 * right.problem.k.table_stride + page];
      if (block == correct) continue;
      const Diagnosis d = diagnose_change(
          [&](Case& c) { c.prepared.table[static_cast<std::size_t>(4 * c.problem.k.table_stride + page)] = block; });
      const std::string want = "page " + std::to_string(page) + " of sequence 4 was read from block " +
                               std::to_string(block) + ", not " + std::to_string(correct);
      ASSERT_FALSE(d.explanations.empty()) << want << "\n" << text_report(d);
      EXPECT_TRUE(d.explanations.front().cause.starts_with(want)) << want << "\n" << text_report(d);
      EXPECT_EQ(d.explanations.front().sequence, 4);
      EXPECT_EQ(d.explanations.front().page, page);
      EXPECT_NE(text_report(d).find("\n  excluded "), std::string::npos) << text_report(d);
      EXPECT_EQ(text_report(d).find("\n  nearest  "), std::string::npos) << text_report(d);
      ++named;
    }
  }
  EXPECT_EQ(named, 5 * (SmallBatch::kBlocks - 1));
}

TEST(Diagnose, ACorrectCandidateNeedsNoExplanation) {
  const Diagnosis d = diagnose_change([](Case&) {});
  EXPECT_TRUE(d.candidate_passes);
  EXPECT_EQ(text_report(d), "diagnosis  the candidate is within its bound: nothing to explain\n");
}

// Two faults at once, and noise: no hypothesis fits, and the answer says so.
TEST(Diagnose, NoneIsAnAnswer) {
  const Diagnosis two = diagnose_change([](Case& c) {
    c.problem.options.scale *= 1.01;
    std::swap(c.problem.k.data, c.problem.v.data);
  });
  EXPECT_TRUE(two.explanations.empty()) << text_report(two);
  EXPECT_FALSE(two.certain);
  EXPECT_NE(text_report(two).find("none of "), std::string::npos);
  EXPECT_NE(text_report(two).find("two faults: turn off splits"), std::string::npos);
  EXPECT_NE(text_report(two).find("\n  nearest  "), std::string::npos);
  EXPECT_EQ(text_report(two).find("\n  excluded "), std::string::npos);

  const Case right;
  attention::Result noise = attention::reference(right.problem);
  std::uint64_t n = 0;
  for (double& x : noise.o) x = CounterRng(7, 0).bell(n++);
  const Bundle candidate = candidate_of(noise);
  const Diagnosis d = diagnose({right.problem, right.golden, candidate, {}});
  EXPECT_TRUE(d.explanations.empty()) << text_report(d);
  EXPECT_EQ(d.failing_rows, 16);
}

// A kernel that wrote nothing, and one that wrote NaN: said before anything else is guessed.
TEST(Diagnose, ZerosAndNaNEverywhereAreNamed) {
  const Case right;
  attention::Result output = attention::reference(right.problem);
  std::ranges::fill(output.o, 0.0);
  const Bundle zeros = candidate_of(output);
  const Diagnosis nothing = diagnose({right.problem, right.golden, zeros, {}});
  ASSERT_FALSE(nothing.explanations.empty());
  EXPECT_EQ(nothing.explanations.front().cause, "every element of o is zero, but lse is correct");
  std::ranges::fill(output.o, std::numeric_limits<double>::quiet_NaN());
  const Bundle nans = candidate_of(output);
  const Diagnosis nan = diagnose({right.problem, right.golden, nans, {}});
  EXPECT_TRUE(nan.explanations.empty());
  EXPECT_TRUE(nan.pattern.no_numbers);
  EXPECT_FALSE(nan.certain);
  EXPECT_NE(text_report(nan).find("o of the failing rows holds only NaN or infinities, which many faults cause"),
            std::string::npos);
}

// Rows that no thread block wrote: zeros in one sequence, or in all without an lse. A last tile that is left out gives
// zeros for short sequences too, which is no reason to call it the probable cause.
TEST(Diagnose, RowsOfZerosAreSaidToBeUnwritten) {
  const Case right;
  const std::string said =
      "diagnosis  o of the failing rows holds only zeros: no cause is certain\n  look at  the store of o";
  const std::int64_t rows = right.problem.first_query(1);
  for (const bool all : {false, true}) {
    attention::Result output = attention::reference(right.problem);
    const auto per_row = static_cast<std::int64_t>(output.o.shape(1) * output.o.shape(2));
    std::fill(output.o.begin(), all ? output.o.end() : output.o.begin() + rows * per_row, 0.0);
    Bundle candidate = candidate_of(output);
    candidate.tensors.erase("lse");
    const Diagnosis d = diagnose({right.problem, right.golden, candidate, {}});
    EXPECT_TRUE(d.pattern.only_zeros);
    EXPECT_FALSE(d.certain);
    EXPECT_EQ(text_report(d).substr(0, said.size()), said);
    EXPECT_NE(text_report(d).find("  fits     "), std::string::npos) << text_report(d);
  }
  // One element that is not zero: the rows were written.
  attention::Result output = attention::reference(right.problem);
  std::ranges::fill(output.o, 0.0);
  output.o(0, 0, 0) = 1;
  EXPECT_FALSE(diagnose({right.problem, right.golden, candidate_of(output), {}}).pattern.only_zeros);
}

// Rows without keys, of which only lse is another one: a convention, or a store that is missing. All hypotheses about
// keys predict the same for them, so that one of those would be named for a reason that has nothing to do with it.
TEST(Diagnose, LseOfRowsWithoutKeysIsNamedApart) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> sinks{0.1, -0.3, 1.2, 0.7};
  const std::vector<std::int64_t> lengths{0, 3, 4, 5, 17};
  Case right, with_sinks;
  with_sinks.problem.options.sinks = sinks;
  with_sinks.problem.options.lse_base = attention::LseBase::two;
  for (Case* c : {&right, &with_sinks}) {
    c->problem.key_lengths = lengths;
    c->golden = golden_bundle(c->problem, attention::reference(c->problem), {});
  }
  const auto cause = [](const Case& c, const std::function<double(std::size_t)>& lse_of_head) {
    attention::Result output = attention::reference(c.problem);
    std::int64_t empty = 0;
    for (std::size_t row = 0; row < output.lse.shape(0); ++row) {
      for (std::size_t head = 0; head < output.lse.shape(1); ++head) {
        if (!std::isinf(output.lse(row, head))) continue;
        output.lse(row, head) = lse_of_head(head);
        ++empty;
      }
    }
    EXPECT_GT(empty, 0);
    const Diagnosis d = diagnose({c.problem, c.golden, candidate_of(output), {}});
    EXPECT_TRUE(d.certain);
    return d.explanations.empty() ? "" : d.explanations.front().cause;
  };
  const std::string start = "lse of rows that see no key is ";
  EXPECT_EQ(cause(right, [](std::size_t) { return kInf; }), start + "+inf instead of -inf");
  EXPECT_EQ(cause(right, [](std::size_t) { return std::nan(""); }), start + "NaN instead of -inf");
  EXPECT_EQ(cause(right, [](std::size_t) { return 0.0; }), start + "a number instead of -inf");
  EXPECT_EQ(cause(with_sinks, [&](std::size_t head) { return sinks[head] / std::log(2.0); }),
            start + "the logit of the sink instead of -inf");
  EXPECT_EQ(cause(with_sinks, [&](std::size_t head) { return sinks[head]; }), start + "a number instead of -inf");
  // Another row fails too: then it is no matter of rows without keys.
  attention::Result output = attention::reference(right.problem);
  for (double& lse : output.lse) lse = std::isinf(lse) ? kInf : lse + 1;
  const Diagnosis both = diagnose({right.problem, right.golden, candidate_of(output), {}});
  for (const Explanation& e : both.explanations) EXPECT_NE(e.name, "lse_of_empty_rows");
}

// K of a wrong head with V of the right one, and the neighboring slot.
TEST(Diagnose, NamesAHeadMapOfKAloneAndASlot) {
  const Case right;
  for (const auto& [name, change] : std::vector<std::pair<std::string, std::function<void(Recipe&)>>>{
           {"k_head_map", [](Recipe& r) { r.k_head = r.query_head % 2; }}, {"slot_off_by_one", [](Recipe& r) {
                                                                              for (KeyRead& key : r.keys)
                                                                                key.slot =
                                                                                    (key.slot + 1) % SmallBatch::kPage;
                                                                            }}}) {
    attention::Result output = attention::reference(right.problem);
    for (std::int64_t b = 0; b < right.problem.batch; ++b) {
      for (std::int64_t q = right.problem.first_query(b); q < right.problem.first_query(b + 1); ++q) {
        for (std::int64_t h = 0; h < right.problem.query_heads; ++h) {
          const RowEvaluator evaluator(right.problem, {}, b, q, h);
          Recipe recipe = evaluator.correct();
          change(recipe);
          const RowValue value = evaluator.evaluate(recipe);
          const auto row = static_cast<std::size_t>(q), head = static_cast<std::size_t>(h);
          for (std::size_t d = 0; d < value.o.size(); ++d) output.o(row, head, d) = value.o[d];
          output.lse(row, head) = value.terms.lse;
        }
      }
    }
    const Bundle candidate = candidate_of(output);
    const Diagnosis d = diagnose({right.problem, right.golden, candidate, {}});
    ASSERT_FALSE(d.explanations.empty()) << name << text_report(d);
    EXPECT_EQ(d.explanations.front().name, name) << text_report(d);
  }
}

// A recipe that leaves a row without keys predicts zeros under a bound without limit. It explains zeros, not any output.
TEST(Diagnose, ABoundWithoutLimitExplainsThePredictedValueOnly) {
  RowValue nothing;
  nothing.o = {0, 0};
  nothing.a1 = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  nothing.a2 = nothing.a1;
  CandidateRow zeros, other;
  zeros.o = {0, 0};
  other.o = {0.25, -3};
  zeros.rounding = other.rounding = attention::rounding_of(DType::f32);
  EXPECT_LE(misfit(zeros, nothing), 1);
  EXPECT_GT(misfit(other, nothing), 1);
}

// Two of three sequences fail, in one head and in rows that see 16 keys or more; dims of one half.
TEST(FailurePattern, IsAMapOfTheAxesThatDiffer) {
  FailurePattern pattern;
  pattern.sequences = pattern.rows_of_sequence = pattern.failing_of_sequence = {0, 0, 0};
  pattern.heads = pattern.rows_of_head = pattern.failing_of_head = {0, 0};
  pattern.dims = {0, 0, 0, 0};
  for (std::int64_t sequence = 0; sequence < 3; ++sequence) {
    for (const std::int64_t keys : {0, 1, 15, 16, 40}) {
      for (std::int64_t head = 0; head < 2; ++head) {
        const bool fails = sequence > 0 && head == 1 && keys >= 16;
        count_row(pattern, sequence, head, keys, fails,
                  fails ? std::vector<std::size_t>{2, 3} : std::vector<std::size_t>{});
      }
    }
  }
  describe_pattern(pattern);
  EXPECT_EQ(pattern.rows, 30);
  EXPECT_EQ(pattern.failing_rows, 4);
  EXPECT_EQ(pattern.words, "sequences 1 to 2 of 3; head 1 of 2; dims 2 to 3 of 4");
  EXPECT_EQ(map_text(pattern),
            "  by sequence  .--\n"
            "  by head      .-\n"
            "  by dim       ..##\n"
            "  by keys      0 .  1 .  8-15 .  16-31 -  32-63 -\n");
  pattern.page_sequence = 2;
  pattern.pages = {0, 0.97, 0.1, -1.02};
  EXPECT_NE(map_text(pattern).find("  by page      sequence 2: .#.+\n"), std::string::npos);
}

// The output is a sum of positive and negative terms, so that a lost maximum shows only where f32 overflows.
TEST(Diagnose, NamesAMissingMaximumByTheRowsThatOverflow) {
  Case loud;
  loud.problem.options.scale *= 100;
  const attention::Result reference = attention::reference(loud.problem);
  const Bundle golden = golden_bundle(loud.problem, reference, {});
  attention::Result output = reference;
  std::int64_t over = 0, between = 0;
  for (std::int64_t b = 0; b < loud.problem.batch; ++b) {
    for (std::int64_t q = loud.problem.first_query(b); q < loud.problem.first_query(b + 1); ++q) {
      for (std::int64_t h = 0; h < loud.problem.query_heads; ++h) {
        const double largest = RowEvaluator(loud.problem, {}, b, q, h).largest_score();
        if (largest < 88.7 && largest > -87) {
          ++between;
          continue;
        }
        over += largest > 0 ? 1 : 0;
        const auto row = static_cast<std::size_t>(q), head = static_cast<std::size_t>(h);
        const double nan = std::numeric_limits<double>::quiet_NaN();
        for (std::size_t d = 0; d < output.o.shape(2); ++d) output.o(row, head, d) = largest > 0 ? nan : 0.0;
        output.lse(row, head) = std::numeric_limits<double>::infinity() * (largest > 0 ? 1 : -1);
      }
    }
  }
  ASSERT_GT(over, 0);
  ASSERT_GT(between, 0);
  const Bundle candidate = candidate_of(output);
  const Diagnosis d = diagnose({loud.problem, golden, candidate, {}});
  ASSERT_FALSE(d.explanations.empty()) << text_report(d);
  EXPECT_EQ(d.explanations.front().name, "maximum_missing") << text_report(d);
}

TEST(Diagnose, RejectsInputsOfAnotherGolden) {
  const Case right;
  Case other;
  for (float& x : values<float>(other.bundle.tensors["q"])) x += 1;
  const Bundle candidate = candidate_of(attention::reference(other.problem));
  EXPECT_THROW(static_cast<void>(diagnose({other.problem, right.golden, candidate, {}})), InputError);
}

// What a kernel that runs past its lookup table row meets: predictions that leave the pool are no explanation and read
// nothing.
TEST(Diagnose, HypothesesNeverReadOutsideThePool) {
  Case c;
  c.problem.k.blocks = c.problem.v.blocks = 12;  // block 12 is now outside
  const RowEvaluator evaluator(c.problem, {}, 4, 5, 0);
  Recipe recipe = evaluator.correct();
  EXPECT_TRUE(evaluator.evaluate(recipe).outside);
  recipe.keys.resize(4);  // page 0 is block 3
  EXPECT_FALSE(evaluator.evaluate(recipe).outside);
  recipe.keys[0].block = -1;
  EXPECT_TRUE(evaluator.evaluate(recipe).outside);
  recipe.keys[0].zeros = true;
  EXPECT_FALSE(evaluator.evaluate(recipe).outside);
}

}  // namespace
}  // namespace kvscope::golden::diagnosis_test

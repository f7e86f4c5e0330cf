// Tests of pages against errors made key by key in plain loops: correct ones, and a part of what a wrong page changes.
#include "core/golden/verdict/page_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/base/random.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::golden::page_tests_test {
namespace {

constexpr std::int64_t kHeads = 4, kKvHeads = 2, kDims = 16, kKeys = 500, kPage = 16, kBlocks = 32;

// One query over 500 normal keys in 32 pages.
struct Case {
  std::vector<float> q, k, v;
  std::vector<std::uint32_t> table;
  std::vector<std::int64_t> offsets{0, 1}, lengths{kKeys};
  attention::Problem problem;
  Bundle golden;

  explicit Case(double offset_of_v, double deviation_of_v = 1) {
    const auto fill = [](std::vector<float>& x, std::int64_t count, std::uint64_t stream, double offset,
                         double deviation = 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        double sum = -6;
        for (std::uint64_t n = 0; n < 12; ++n) sum += CounterRng(5 + stream, n).uniform(static_cast<std::uint64_t>(i));
        x.push_back(static_cast<float>(offset + deviation * sum));
      }
    };
    fill(q, kHeads * kDims, 0, 0);
    fill(k, kBlocks * kPage * kKvHeads * kDims, 20, 0);
    fill(v, kBlocks * kPage * kKvHeads * kDims, 40, offset_of_v, deviation_of_v);
    for (std::uint32_t page = 0; page < kBlocks; ++page) table.push_back((page * 7 + 3) % kBlocks);
    problem.batch = 1;
    problem.query_heads = kHeads;
    problem.q = reinterpret_cast<const std::byte*>(q.data());
    problem.query_offsets = offsets;
    problem.key_lengths = lengths;
    problem.k = {.data = reinterpret_cast<const std::byte*>(k.data()),
                 .blocks = kBlocks,
                 .page_size = kPage,
                 .heads = kKvHeads,
                 .head_size = kDims,
                 .block_stride = kPage * kKvHeads * kDims,
                 .token_stride = kKvHeads * kDims,
                 .head_stride = kDims,
                 .table = table.data(),
                 .table_stride = kBlocks};
    problem.v = problem.k;
    problem.v.data = reinterpret_cast<const std::byte*>(v.data());
    problem.options.scale = 0.25;
    golden = golden_bundle(problem, attention::reference(problem), {});
  }

  [[nodiscard]] const float* row(const std::vector<float>& pool, std::int64_t key, std::int64_t head) const {
    const auto block = static_cast<std::int64_t>(table[static_cast<std::size_t>(key / kPage)]);
    return pool.data() + ((block * kPage + key % kPage) * kKvHeads + head / (kHeads / kKvHeads)) * kDims;
  }

  // o and lse with the weight of key t in head h multiplied by factor(h, t), in the row sum as well if `in_sum`.
  struct Output {
    std::vector<double> o, lse;
  };
  template <class Factor>
  [[nodiscard]] Output attend(bool in_sum, const Factor& factor) const {
    Output output;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      double sum = 0;
      std::vector<double> o(kDims);
      for (std::int64_t t = 0; t < kKeys; ++t) {
        double score = 0;
        for (std::int64_t d = 0; d < kDims; ++d) {
          score += double{q[static_cast<std::size_t>(head * kDims + d)]} * row(k, t, head)[d];
        }
        const double e = std::exp(0.25 * score), f = factor(head, t);
        sum += in_sum ? f * e : e;
        for (std::int64_t d = 0; d < kDims; ++d) o[static_cast<std::size_t>(d)] += f * e * row(v, t, head)[d];
      }
      for (const double x : o) output.o.push_back(x / sum);
      output.lse.push_back(std::log(sum));
    }
    return output;
  }

  [[nodiscard]] Bundle candidate(const Output& output, DType dtype) const {
    Bundle bundle;
    Tensor o = make_tensor(dtype, {1, kHeads, kDims});
    for (std::size_t i = 0; i < output.o.size(); ++i) {
      store_from_double(dtype, output.o[i], o.bytes.data() + i * static_cast<std::size_t>(size_of(dtype)),
                        Overflow::non_saturating);
    }
    Tensor lse = make_tensor(DType::f32, {1, kHeads});
    for (std::size_t i = 0; i < output.lse.size(); ++i) {
      values<float>(lse)[i] = static_cast<float>(output.lse[i]);
    }
    bundle.tensors["o"] = std::move(o);
    bundle.tensors["lse"] = std::move(lse);
    return bundle;
  }

  [[nodiscard]] CompareResult compared(const Output& output, DType dtype, DType p = DType::f32) const {
    CompareOptions options;
    options.inputs = &problem;
    options.rounding.probabilities = p;
    return compare(golden, candidate(output, dtype), options);
  }
};

bool passed(const CompareResult& result, const std::string& name) {
  for (const Criterion& c : result.criteria) {
    if (c.name == name) return c.passed;
  }
  ADD_FAILURE() << "no criterion " << name;
  return false;
}

std::string detail(const CompareResult& result, const std::string& name) {
  for (const Criterion& c : result.criteria) {
    if (c.name == name) return c.detail;
  }
  return "";
}

// With sums of 14 bits, the row sum of 500 keys may lose 0.06 of itself, toward zero: a smaller lse is that of a correct
// kernel, and a larger one follows the direction of a missing page.
TEST(PageTests, TruncatedRowSumsExcuseASmallerLseOnly) {
  const Case c(0);
  CompareOptions options;
  options.inputs = &c.problem;
  options.rounding.accumulator_bits = 14;
  const auto of_lse_changed_by = [&](double change) {
    Case::Output output = c.attend(true, [](std::int64_t, std::int64_t) { return 1.0; });
    for (double& lse : output.lse) lse += change;
    return compare(c.golden, c.candidate(output, DType::f32), options);
  };
  options.rounding.row_sum = attention::RowSum::rounded;
  EXPECT_TRUE(passed(of_lse_changed_by(-0.06), "lse: pages"));
  EXPECT_FALSE(passed(of_lse_changed_by(0.03), "lse: pages"));
  EXPECT_FALSE(passed(of_lse_changed_by(-0.09), "lse: pages"));
  options.rounding.row_sum = attention::RowSum::exact;
  EXPECT_FALSE(passed(of_lse_changed_by(-0.06), "lse: pages"));
}

// Errors of P that are as large as bf16 makes them, in any row and key.
TEST(PageTests, ErrorsOfProbabilitiesHaveNoDirection) {
  for (const double offset : {0.0, 2.0}) {
    const Case c(offset);
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto output = c.attend(seed % 2 == 0, [&](std::int64_t head, std::int64_t t) {
        return 1 +
               0x1p-8 *
                   (2 * CounterRng(seed, static_cast<std::uint64_t>(head)).uniform(static_cast<std::uint64_t>(t)) - 1);
      });
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const CompareResult result = c.compared(output, dtype, DType::bf16);
        EXPECT_TRUE(passed(result, "o: pages")) << offset << ' ' << seed << ' ' << detail(result, "o: pages");
        EXPECT_TRUE(passed(result, "lse: pages")) << offset << ' ' << seed << ' ' << detail(result, "lse: pages");
      }
    }
  }
}

// An error that multiplies every element of a row is no page's.
TEST(PageTests, ACommonFactorHasNoDirection) {
  const Case c(2);
  const auto output = c.attend(false, [](std::int64_t, std::int64_t) { return 1 + 0x1p-9; });
  EXPECT_TRUE(passed(c.compared(output, DType::f32, DType::bf16), "o: pages"));
}

// A part of a page's weight: every element and row is within its bound, and the page is named.
// All values of o are near 1 + 2^-8, the middle of two numbers of bf16, and differ by page 7 alone: a small common factor
// takes them to the other number one after another, in the order of that page's direction.
TEST(PageTests, NearlyEqualOutputsStepTogether) {
  constexpr double kMiddle = 1 + 0x1p-8;
  Case c(kMiddle, 1e-4);
  constexpr std::size_t kOfPage = kPage * kKvHeads * kDims;
  for (std::size_t i = 0; i < c.v.size(); ++i) {
    if (i / kOfPage != c.table[7]) c.v[i] = static_cast<float>(kMiddle);
  }
  c.golden = golden_bundle(c.problem, attention::reference(c.problem), {});
  const Case::Output exact = c.attend(true, [](std::int64_t, std::int64_t) { return 1.0; });
  for (int i = -30; i <= 30; ++i) {
    Case::Output output = exact;
    for (double& x : output.o) x *= 1 + 1e-7 * i;
    const std::string text = detail(c.compared(output, DType::bf16, DType::bf16), "o: pages");
    const std::size_t at = text.find("largest ");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_LT(std::stod(text.substr(at + 8)), 0.45) << text;  // 0.66, and above 1 for more elements, without that
  }
}

TEST(PageTests, AFaintPageIsFoundWhereElementsAndRowsPass) {
  const Case c(0);
  const auto output = c.attend(true, [](std::int64_t, std::int64_t t) { return t / kPage == 21 ? 0.97 : 1; });
  const CompareResult result = c.compared(output, DType::f32, DType::bf16);
  EXPECT_TRUE(passed(result, "o: bound")) << detail(result, "o: bound");
  EXPECT_TRUE(passed(result, "o: rows")) << detail(result, "o: rows");
  EXPECT_FALSE(passed(result, "o: pages")) << detail(result, "o: pages");
  EXPECT_NE(detail(result, "o: pages").find("page 21 of sequence 0, all heads (4 rows)"), std::string::npos)
      << detail(result, "o: pages");
}

// A scale that is 1.5 % too large, with P in bf16: the errors of the four heads add up in its direction.
TEST(PageTests, AWrongScaleHasADirection) {
  const Case c(0);
  const auto grown = [&](double relative) {
    return c.attend(true, [&](std::int64_t head, std::int64_t t) {
      double score = 0;
      for (std::int64_t d = 0; d < kDims; ++d) {
        score += double{c.q[static_cast<std::size_t>(head * kDims + d)]} * c.row(c.k, t, head)[d];
      }
      return std::exp(relative * 0.25 * score);
    });
  };
  const CompareResult result = c.compared(grown(0.015), DType::f32, DType::bf16);
  EXPECT_FALSE(passed(result, "o: pages")) << detail(result, "o: pages");
  EXPECT_NE(detail(result, "o: pages").find("scale of the scores of sequence 0, all heads (4 rows)"), std::string::npos)
      << detail(result, "o: pages");
  EXPECT_FALSE(passed(c.compared(grown(1e-3), DType::f32), "o: pages"));
  EXPECT_TRUE(passed(c.compared(grown(1e-7), DType::f32), "o: pages"));  // the rounding of a scale in f32
}

TEST(PageTests, AMissingPageFailsInEveryOutputType) {
  for (const double offset : {0.0, 2.0}) {
    const Case c(offset);
    const auto output = c.attend(true, [](std::int64_t, std::int64_t t) { return t / kPage == 30 ? 0 : 1; });
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const CompareResult result = c.compared(output, dtype, dtype);
      EXPECT_FALSE(passed(result, "o: pages")) << offset << ' ' << name(dtype) << ' ' << detail(result, "o: pages");
      EXPECT_FALSE(passed(result, "lse: pages")) << offset << ' ' << name(dtype) << ' ' << detail(result, "lse: pages");
    }
  }
}

// Page 4 from the block of page 9: 4 is missing and 9 is counted twice.
TEST(PageTests, APageReadFromAnothersBlockIsNamedWithBoth) {
  const Case c(0);
  const auto output = c.attend(true, [](std::int64_t, std::int64_t t) {
    return t / kPage == 4 ? 1 - 0.05 : t / kPage == 9 ? 1 + 0.05 : 1;
  });
  const CompareResult result = c.compared(output, DType::f32, DType::bf16);
  EXPECT_FALSE(passed(result, "o: pages"));
  EXPECT_NE(detail(result, "o: pages").find("page 4 of sequence 0 from the block of page 9"), std::string::npos)
      << detail(result, "o: pages");
}

// The last page has 4 keys, so page 12 loses its keys from slot 4 on when the two are exchanged.
TEST(PageTests, APageExchangedWithAShortLastPageIsNamedByTheSlotsItLoses) {
  const Case c(0);
  const auto output = c.attend(
      true, [](std::int64_t, std::int64_t t) { return t / kPage == 12 && t % kPage >= kKeys % kPage ? 0.93 : 1; });
  const CompareResult result = c.compared(output, DType::f32, DType::bf16);
  EXPECT_FALSE(passed(result, "o: pages"));
  EXPECT_NE(detail(result, "o: pages").find("page 12 from slot 4 on of sequence 0"), std::string::npos)
      << detail(result, "o: pages");
}

// All pages and all their ends: 64 units, and each pair of them for the sequence and each of its 4 heads.
TEST(PageTests, CountEveryPairForTheSequenceAndForEachHead) {
  const Case c(0);
  const auto output = c.attend(true, [](std::int64_t, std::int64_t) { return 1; });
  const CompareResult result = c.compared(output, DType::f32);
  EXPECT_NE(detail(result, "o: pages").find("0 of 20480 directions"), std::string::npos) << detail(result, "o: pages");
}

// The tests need the weights of the golden, which other inputs do not have.
TEST(PageTests, OtherInputsAreReportedAndNotTested) {
  const Case c(0), other(2);
  CompareOptions options;
  attention::Problem wrong = other.problem;
  wrong.k.data = wrong.v.data;
  options.inputs = &wrong;
  const auto output = c.attend(true, [](std::int64_t, std::int64_t) { return 1; });
  const CompareResult result = compare(c.golden, c.candidate(output, DType::f32), options);
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.notes.size(), 2u);  // and the candidate's missing conventions
}

bool has_note(const CompareResult& result, const std::string& note) {
  return std::find(result.notes.begin(), result.notes.end(), note) != result.notes.end();
}

constexpr auto kCorrect = [](std::int64_t, std::int64_t) { return 1.0; };

TEST(PageTests, InputsOfAnotherShapeAreReportedAndNotTested) {
  const Case c(0);
  const Bundle candidate = c.candidate(c.attend(true, kCorrect), DType::f32);
  const auto reported = [&](const std::function<void(attention::Problem&)>& change) {
    attention::Problem wrong = c.problem;
    change(wrong);
    CompareOptions options;
    options.inputs = &wrong;
    return has_note(compare(c.golden, candidate, options),
                    "pages were not tested: the inputs are not those of the golden");
  };
  const std::vector<std::int64_t> two{0, 1, 2};
  EXPECT_FALSE(reported([](attention::Problem&) {}));
  EXPECT_TRUE(reported([&](attention::Problem& p) { p.query_offsets = two, p.batch = 2; }));
  EXPECT_TRUE(reported([](attention::Problem& p) { p.query_heads = 2; }));
  EXPECT_TRUE(reported([](attention::Problem& p) { p.v.head_size = 8; }));
}

TEST(PageTests, NeedAllTermsOfTheGolden) {
  const Case c(0);
  const Bundle candidate = c.candidate(c.attend(true, kCorrect), DType::f32);
  CompareOptions options;
  options.inputs = &c.problem;
  for (const char* term : {"lse", "p2"}) {
    Bundle golden = c.golden;
    golden.tensors.erase(term);
    EXPECT_TRUE(has_note(compare(golden, candidate, options),
                         "pages were not tested: the golden has not all terms of the bound"))
        << term;
  }
}

TEST(PageTests, WithoutLseOnlyTheOutputIsTested) {
  const Case c(0);
  CompareOptions options;
  options.inputs = &c.problem;
  Bundle candidate =
      c.candidate(c.attend(true, [](std::int64_t, std::int64_t t) { return t / kPage == 30 ? 0 : 1; }), DType::f32);
  candidate.tensors.erase("lse");
  const CompareResult result = compare(c.golden, candidate, options);
  EXPECT_FALSE(passed(result, "o: pages"));
  EXPECT_EQ(detail(result, "lse: pages"), "");
}

// 496 keys fill 31 pages, which have no ends to lose: 31 units, and each pair of them for the sequence and its 4 heads. Two
// pages have one pair of each sign; of one page there is nothing to test.
TEST(PageTests, FullPagesHaveNoEnds) {
  for (const auto& [keys, tests] : std::vector<std::pair<std::int64_t, std::string>>{
           {31 * kPage, "0 of 4805 directions"}, {2 * kPage, "0 of 20 directions"}, {kPage, ""}}) {
    Case c(0);
    c.lengths = {keys};
    c.problem.key_lengths = c.lengths;
    c.golden = golden_bundle(c.problem, attention::reference(c.problem), {});
    Bundle candidate;
    for (const char* name : {"o", "lse"}) candidate.tensors[name] = c.golden.tensors.at(name);
    CompareOptions options;
    options.inputs = &c.problem;
    const CompareResult result = compare(c.golden, candidate, options);
    EXPECT_TRUE(result.passed);
    EXPECT_EQ(detail(result, "o: pages").substr(0, tests.size()), tests);
    EXPECT_EQ(detail(result, "o: pages").empty(), tests.empty()) << keys;
  }
}

// The first sequence has no query, and the third one page: only the second is tested.
TEST(PageTests, SequencesWithoutQueriesOrWithOnePageAreNotTested) {
  Case c(0);
  std::vector<std::uint32_t> table;
  for (int sequence = 0; sequence < 3; ++sequence) table.insert(table.end(), c.table.begin(), c.table.end());
  c.q.insert(c.q.end(), c.q.begin(), c.q.end());
  c.offsets = {0, 0, 1, 2};
  c.lengths = {kKeys, kKeys, kPage};
  c.problem.batch = 3;
  c.problem.q = reinterpret_cast<const std::byte*>(c.q.data());
  c.problem.query_offsets = c.offsets;
  c.problem.key_lengths = c.lengths;
  c.problem.k.table = c.problem.v.table = table.data();
  c.golden = golden_bundle(c.problem, attention::reference(c.problem), {});
  Bundle candidate;
  for (const char* name : {"o", "lse"}) candidate.tensors[name] = c.golden.tensors.at(name);
  CompareOptions options;
  options.inputs = &c.problem;
  EXPECT_NE(detail(compare(c.golden, candidate, options), "o: pages").find("0 of 20480 directions"), std::string::npos);
}

// The weights of the keys are exp(score - lse) of a natural lse, and a sink has a weight of its own: with another one they do
// not add up to 1, and the inputs would be taken for another golden's.
TEST(PageTests, WeightsAreThoseOfTheBaseAndOfTheSink) {
  const std::vector<double> sinks{0.5, 3, -1, 2};
  for (const bool two : {false, true}) {
    for (const bool with_sinks : {false, true}) {
      Case c(0);
      if (two) c.problem.options.lse_base = attention::LseBase::two;
      if (with_sinks) c.problem.options.sinks = sinks;
      c.golden = golden_bundle(c.problem, attention::reference(c.problem), {});
      for (const bool missing : {false, true}) {
        Case::Output output =
            c.attend(true, [&](std::int64_t, std::int64_t t) { return missing && t / kPage == 30 ? 0 : 1; });
        for (std::size_t head = 0; head < kHeads; ++head) {
          const double keys = std::exp(output.lse[head]), sum = keys + (with_sinks ? std::exp(sinks[head]) : 0);
          for (std::size_t d = 0; d < kDims; ++d) output.o[head * kDims + d] *= keys / sum;
          output.lse[head] = two ? std::log2(sum) : std::log(sum);
        }
        const CompareResult result = c.compared(output, DType::f32);
        EXPECT_EQ(passed(result, "o: pages"), !missing) << two << with_sinks;
        EXPECT_EQ(passed(result, "lse: pages"), !missing) << two << with_sinks;
      }
    }
  }
}

// NaN and infinities are compared as masks. The tests of the other heads go on; without any there is no direction to name.
TEST(PageTests, HeadsWithoutNumbersAreNotTested) {
  const Case c(0);
  const Case::Output output = c.attend(true, [](std::int64_t, std::int64_t t) { return t / kPage == 21 ? 0.96 : 1; });
  CompareOptions options;
  options.inputs = &c.problem;
  options.rounding.probabilities = DType::bf16;
  const float nan = std::nanf(""), infinite = std::numeric_limits<float>::infinity();
  Bundle golden = c.golden, candidate = c.candidate(output, DType::f32);
  const auto pages = [&] { return detail(compare(golden, candidate, options), "o: pages"); };
  EXPECT_NE(pages().find("page 21 of sequence 0, all heads (4 rows)"), std::string::npos) << pages();
  values<float>(candidate.tensors["o"])[kDims + 3] = nan;
  EXPECT_NE(pages().find("page 21 of sequence 0, all heads (3 rows)"), std::string::npos) << pages();
  values<float>(candidate.tensors["lse"])[3] = infinite;
  EXPECT_NE(pages().find("page 21 of sequence 0, all heads (2 rows)"), std::string::npos) << pages();
  values<double>(golden.tensors["o"])[0] = nan;
  EXPECT_NE(pages().find("page 21 of sequence 0"), std::string::npos) << pages();
  EXPECT_NE(pages().find(" (1 row)"), std::string::npos) << pages();
  values<double>(golden.tensors["lse"])[2] = -infinite;
  EXPECT_EQ(pages(), "0 of 20480 directions of pages exceed the bound");
}

// Heads 0 and 1 share a KV head: with equal queries they have equal errors, which count once.
TEST(PageTests, EqualHeadsCountOnce) {
  Case c(0);
  std::copy(c.q.begin(), c.q.begin() + kDims, c.q.begin() + kDims);
  c.golden = golden_bundle(c.problem, attention::reference(c.problem), {});
  const Case::Output output = c.attend(true, [](std::int64_t, std::int64_t t) { return t / kPage == 21 ? 0.96 : 1; });
  const std::string text = detail(c.compared(output, DType::f32, DType::bf16), "o: pages");
  EXPECT_NE(text.find("page 21 of sequence 0, all heads (3 rows)"), std::string::npos) << text;
}

// A first sequence of 2^20 keys, all in one block, would read 2^27 elements; the second is tested.
TEST(PageTests, ASequencePastTheLimitIsReportedAndLaterOnesAreTested) {
  Case c(0);
  constexpr std::int64_t kMany = std::int64_t{1} << 20;
  std::vector<std::uint32_t> table(2 * kMany / kPage);
  std::copy(c.table.begin(), c.table.end(), table.begin() + kMany / kPage);
  c.q.insert(c.q.end(), c.q.begin(), c.q.end());
  c.offsets = {0, 1, 2};
  c.lengths = {kMany, kKeys};
  c.problem.batch = 2;
  c.problem.q = reinterpret_cast<const std::byte*>(c.q.data());
  c.problem.query_offsets = c.offsets;
  c.problem.key_lengths = c.lengths;
  for (attention::PagedRows* operand : {&c.problem.k, &c.problem.v}) {
    operand->table = table.data();
    operand->table_stride = kMany / kPage;
  }
  c.golden = golden_bundle(c.problem, attention::reference(c.problem), {});
  Bundle candidate;
  for (const char* name : {"o", "lse"}) candidate.tensors[name] = c.golden.tensors.at(name);
  CompareOptions options;
  options.inputs = &c.problem;
  const CompareResult result = compare(c.golden, candidate, options);
  EXPECT_NE(std::find(result.notes.begin(), result.notes.end(),
                      "pages of 1 sequence were not tested: the tests read at most 2^26 elements of K and V"),
            result.notes.end());
  EXPECT_NE(detail(result, "o: pages").find("0 of 20480 directions"), std::string::npos) << detail(result, "o: pages");
}

}  // namespace
}  // namespace kvscope::golden::page_tests_test

// The report of a diagnosis, from diagnoses made by hand: which sentence says what, for one cause, several, and none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/diagnose.h"

namespace kvscope::golden::diagnosis_report_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kFar = std::numeric_limits<double>::infinity();

// A cause that explains `failing` of the rows that fail, and `correct` of the others.
Explanation cause(const std::string& name, const std::string& text, std::int64_t failing, std::int64_t correct,
                  double misfit = 0.25) {
  Explanation e;
  e.name = name;
  e.cause = text;
  e.look_at = "the " + name;
  e.failing_explained = failing;
  e.correct_explained = correct;
  e.misfit = misfit;
  return e;
}

// Four failing rows and two correct ones were looked at, of ten that fail.
Diagnosis diagnosis(std::vector<Explanation> explanations, std::vector<Explanation> nearest = {}) {
  Diagnosis d;
  d.hypotheses = 90;
  d.failing_rows = 4;
  d.correct_rows = 2;
  d.explanations = std::move(explanations);
  d.nearest = std::move(nearest);
  d.pattern.rows = 12;
  d.pattern.failing_rows = 10;
  d.pattern.words = "all 2 heads";
  return d;
}

const std::string kFails = "fails at   10 of 12 rows: all 2 heads\n";
const std::string kEvidence = "4 of 4 failing rows reproduced within 0.25x the allowed error";

TEST(DiagnosisReport, OneCertainCause) {
  Diagnosis d = diagnosis({cause("scale", "the scale is missing", 4, 2)});
  d.certain = true;
  const std::string head = "diagnosis  the scale is missing\n  look at  the scale\n  evidence ";
  EXPECT_EQ(text_report(d), head + kEvidence + "; 2 of 2 correct rows too\n" + kFails);
  d.correct_rows = 0;
  d.explanations[0].correct_explained = 0;
  EXPECT_EQ(text_report(d), head + kEvidence + "\n" + kFails);
  d.explanations[0].failing_explained = 3;
  d.explanations[0].failing_outside = 1;
  EXPECT_EQ(text_report(d), head +
                                "3 of 4 failing rows reproduced within 0.25x the allowed error; 1 read past the cache, "
                                "which holds unknown values\n" +
                                kFails);
}

// A cause that also changes a correct row is that of a part of the output only.
TEST(DiagnosisReport, ACauseThatChangesCorrectRowsIsQualified) {
  const Diagnosis d = diagnosis({cause("scale", "the scale is missing", 4, 1)});
  EXPECT_EQ(
      text_report(d),
      "diagnosis  probably: the scale is missing\n  look at  the scale\n  evidence " + kEvidence +
          "; 1 of 2 correct rows too\n"
          "  but      this fault would also change rows that are correct: it concerns only a part of the output\n" +
          kFails);
}

// One line a hypothesis, which counts its other parameters. Evidence is repeated only where it differs.
TEST(DiagnosisReport, SeveralCausesAreListedByHypothesis) {
  const Diagnosis d = diagnosis(
      {cause("tile", "tiles of 16", 4, 2), cause("tile", "tiles of 32", 4, 2), cause("split", "2 splits", 4, 2),
       cause("split", "3 splits", 4, 2), cause("split", "4 splits", 4, 2), cause("head", "head 0", 4, 2, 0.5),
       cause("mask", "no mask", 4, 2), cause("page", "page 7", 4, 2), cause("row", "row 3", 4, 2)});
  EXPECT_EQ(text_report(d),
            "diagnosis  probably: tiles of 16\n  look at  the tile\n  evidence " + kEvidence +
                "; 2 of 2 correct rows too\n"
                "  or       the same with other parameters: 1 more\n"
                "  or       2 splits, or with other parameters (2 more)\n"
                "  or       head 0 (4 of 4 failing rows reproduced within 0.5x the allowed error; 2 of 2 correct rows "
                "too)\n"
                "  or       no mask\n"
                "  or       2 more hypotheses (--json)\n" +
                kFails);
}

// --- rows without numbers, or of zeros ---------------------------------------------------------------------------------

TEST(DiagnosisReport, RowsOfNaNFitManyFaults) {
  Diagnosis d = diagnosis({cause("pad", "a padded slot is read", 4, 2), cause("pad", "another slot is read", 4, 2)},
                          {cause("scale", "the scale is missing", 0, 0, 3)});
  d.pattern.no_numbers = d.pattern.only_nan = true;
  const std::string head =
      "diagnosis  o of the failing rows holds only NaN or infinities, which many faults cause: no cause is certain\n";
  EXPECT_EQ(text_report(d), head +
                                "  look at  slots that no sequence owns (are they read?), a division by a sum of 0, "
                                "overflow of exp, rows that were never written\n"
                                "  fits     a padded slot is read, or with other parameters (1 more)\n" +
                                kFails);
  d.pattern.lse_correct = true;
  d.explanations.clear();
  EXPECT_EQ(text_report(d), head +
                                "  look at  rows of V: lse is correct, so q, K, scale, mask and lengths are; is V of a "
                                "slot that no sequence owns read, also with a weight of 0?\n"
                                "  nearest  the scale is missing: differs from the output by at least 3x the allowed "
                                "error\n" +
                                kFails);
}

TEST(DiagnosisReport, RowsOfZerosWereNotWrittenUnlessOneCauseIsCertain) {
  Diagnosis d = diagnosis({cause("length", "the length is 0", 4, 2)}, {cause("scale", "no scale", 0, 0, 3)});
  d.pattern.only_zeros = true;
  const std::string head = "diagnosis  o of the failing rows holds only zeros: no cause is certain\n";
  const std::string fits = "  fits     the length is 0\n";
  EXPECT_EQ(text_report(d),
            head +
                "  look at  the store of o, the grid and the copy to the host: were these rows written? "
                "If they were, the kernel found no key for them: lengths and number of tiles; or a race or a missing "
                "wait: run the kernel with `kvscope cuda` (docs/15_virtual_gpu.md)\n" +
                fits + kFails);
  d.pattern.lse_correct = true;
  EXPECT_EQ(text_report(d),
            head +
                "  look at  the store of o, the grid and the copy to the host: were these rows written? "
                "lse is correct\n" +
                fits + kFails);
  d.certain = true;
  EXPECT_THAT(text_report(d), testing::StartsWith("diagnosis  the length is 0\n"));
  EXPECT_THAT(text_report(d), HasSubstr("  excluded no scale: differs from the output by at least 3x"));
}

TEST(DiagnosisReport, NoneIsSaidWithWhatTheRowsHold) {
  Diagnosis d = diagnosis({});
  const std::string head = "diagnosis  none of 90 hypotheses explains the failing rows\n";
  const std::string look =
      "  look at  rounding that was not stated (kvscope verify --explain); or two faults: turn off splits, windows and "
      "scales one at a time; or a race or a missing wait: run the kernel with `kvscope cuda` "
      "(docs/15_virtual_gpu.md)\n";
  EXPECT_EQ(text_report(d), head + look + kFails);
  d.pattern.only_nan = true;
  EXPECT_EQ(text_report(d), head + "  but      each of them also holds NaN or an infinity\n" + look + kFails);
}

// A correct lse clears the scores, correct dims the weights; an error of half of what o is made of is no rounding.
TEST(DiagnosisReport, NoneIsSaidWithThePlacesThatAreLeft) {
  const auto look_at = [](bool lse_correct, std::int64_t dim_1, double worst) {
    Diagnosis d = diagnosis({});
    d.pattern.lse_correct = lse_correct;
    d.pattern.dims = {3, dim_1};
    d.pattern.worst = worst;
    const std::string text = text_report(d);
    const std::size_t at = text.find("  look at  ");
    return text.substr(at, text.find('\n', at) - at);
  };
  const std::string two =
      "two faults: turn off splits, windows and scales one at a time; or a race or a missing wait: run the kernel with "
      "`kvscope cuda` (docs/15_virtual_gpu.md)";
  EXPECT_EQ(look_at(false, 1, 0.5), "  look at  " + two);
  EXPECT_EQ(
      look_at(true, 1, 0.5),
      "  look at  the rows of V, their products with the weights and the store of o: lse is correct, so q, K, scale, "
      "mask and lengths are; or " +
          two);
  EXPECT_EQ(
      look_at(true, 0, 0.5),
      "  look at  the store of o, its index and other writes there, and V of these dims: lse and the other dims are "
      "correct, so the weights are; or " +
          two);
  EXPECT_THAT(look_at(true, 0, 0.25),
              HasSubstr("; or rounding that was not stated (kvscope verify --explain); or two faults"));
}

// --- the next best hypothesis ------------------------------------------------------------------------------------------

TEST(DiagnosisReport, TheNearestHypothesisIsSaidWithTheReasonAgainstIt) {
  const Explanation best = cause("scale", "the scale is missing", 4, 2);
  const auto line = [](const Diagnosis& d) {
    const std::string text = text_report(d);
    for (const char* label : {"  nearest  ", "  excluded "}) {
      const std::size_t at = text.find(label);
      if (at != std::string::npos) return text.substr(at, text.find('\n', at) - at);
    }
    return std::string("none");
  };
  EXPECT_EQ(line(diagnosis({best})), "none");
  EXPECT_EQ(line(diagnosis({best}, {cause("cap", "a cap", 4, 2, 0.5)})),
            "  excluded a cap: within the bound of these rows too, but farther from the candidate");
  EXPECT_EQ(line(diagnosis({best}, {cause("cap", "a cap", 4, 1, 0.5)})),
            "  excluded a cap: reproduces all 4 failing rows, but only 1 of 2 correct rows");
  EXPECT_EQ(line(diagnosis({}, {cause("cap", "a cap", 4, 2, 0.5)})),
            "  nearest  a cap: reproduces all 4 failing rows, but only 2 of 2 correct rows");
  EXPECT_EQ(line(diagnosis({best}, {cause("cap", "a cap", 3, 0, 0.5)})),
            "  excluded a cap: reproduces only 3 of 4 failing rows");
  EXPECT_EQ(line(diagnosis({}, {cause("cap", "a cap", 0, 0, 41.25)})),
            "  nearest  a cap: differs from the output by at least 41.2x the allowed error");
  EXPECT_EQ(line(diagnosis({best}, {cause("cap", "a cap", 0, 0, kFar)})), "  excluded all other hypotheses, by far");
  EXPECT_EQ(line(diagnosis({}, {cause("cap", "a cap", 0, 0, kFar)})), "none");
}

// --- groups ------------------------------------------------------------------------------------------------------------

TEST(DiagnosisReport, OfGroupsSpeaksOfTheChangeInDeviations) {
  Explanation best = cause("page_missing", "page 3 is left out", 4, 2), next = cause("scale", "no scale", 0, 0);
  best.change_share = 1.02;
  best.change_deviations = 18.25;
  next.change_share = 0.4;
  next.change_deviations = 7;
  Diagnosis d = diagnosis({best}, {next});
  d.of_groups = d.certain = true;
  d.pattern.only_zeros = true;  // rows whose correct output is zero too
  EXPECT_EQ(text_report(d),
            "diagnosis  page 3 is left out\n  look at  the page_missing\n"
            "  evidence 1.02x of the change that this fault makes, which is 18.2 deviations of rounding, 4 rows\n"
            "  excluded no scale: the output has 0.40x of its change, 7 deviations\n"
            "fails at   10 of 12 rows together: all 2 heads\n");
  d.explanations.clear();
  EXPECT_THAT(text_report(d), HasSubstr("none of 90 hypotheses"));
}

// --- JSON --------------------------------------------------------------------------------------------------------------

TEST(DiagnosisReport, JsonHasTheMembersThatAreKnown) {
  Explanation place = cause("page", "page 7", 3, 2), group = cause("scale", "no scale", 4, 2);
  place.sequence = 1;
  place.page = 7;
  place.failing_outside = 1;
  group.change_share = 0.5;
  group.change_deviations = 9;
  Diagnosis d = diagnosis({place}, {group});
  d.pattern.page_sequence = 1;
  d.pattern.pages = {0, 0.5};
  const json::Value report = json_report(d);
  const json::Value& first = report.find("explanations")->as_array()->front();
  EXPECT_EQ(*first.find("sequence")->as_i64(), 1);
  EXPECT_EQ(*first.find("page")->as_i64(), 7);
  EXPECT_EQ(*first.find("failing_outside")->as_i64(), 1);
  EXPECT_EQ(first.find("change_share"), nullptr);
  const json::Value& nearest = report.find("nearest")->as_array()->front();
  EXPECT_EQ(nearest.find("sequence"), nullptr);
  EXPECT_EQ(nearest.find("page"), nullptr);
  EXPECT_EQ(nearest.find("failing_outside"), nullptr);
  EXPECT_EQ(nearest.find("change_share")->number(), 0.5);
  EXPECT_EQ(nearest.find("change_deviations")->number(), 9);
  const json::Value& pages = *report.find("pattern")->find("pages");
  EXPECT_EQ(*pages.find("sequence")->as_i64(), 1);
  EXPECT_EQ(pages.find("missing_share")->as_array()->size(), 2U);
  EXPECT_EQ(json_report(diagnosis({})).find("pattern")->find("pages"), nullptr);
}

// --- the pattern in words and as a map ---------------------------------------------------------------------------------

TEST(FailurePatternWords, NameOneSomeARunOrManyEntries) {
  const auto words = [](std::vector<std::int64_t> heads, std::vector<std::int64_t> dims = {1}, bool lse = false) {
    FailurePattern pattern;
    pattern.failing_of_sequence = {1};
    pattern.failing_of_head = std::move(heads);
    pattern.dims = std::move(dims);
    pattern.lse_correct = lse;
    describe_pattern(pattern);
    return pattern.words;
  };
  const auto of_heads = [](const std::string& heads) { return "the only sequence; " + heads + "; the only dim"; };
  EXPECT_EQ(words({3}), of_heads("the only head"));
  EXPECT_EQ(words({3, 1}), of_heads("all 2 heads"));
  EXPECT_EQ(words({0, 1, 0}), of_heads("head 1 of 3"));
  EXPECT_EQ(words({0, 1, 1}), of_heads("heads 1 to 2 of 3"));
  EXPECT_EQ(words({1, 0, 1}), of_heads("heads 0, 2 of 3"));
  EXPECT_EQ(words({1, 0, 1, 1, 1, 1, 1, 1, 1}), of_heads("heads 0, 2, 3, 4, 5, 6, 7, 8 of 9"));
  EXPECT_EQ(words({1, 0, 1, 1, 1, 1, 1, 1, 1, 1}), of_heads("9 of 10 heads"));
  EXPECT_EQ(words({3}, {1}, true), of_heads("the only head") + "; lse is correct");
  EXPECT_EQ(words({3}, {0, 0}), "o is correct everywhere; only lse fails");
}

// A row that fails by its lse alone is one of the failing rows that the line counts: its sequence and head are named too.
TEST(FailurePatternWords, NameSequencesAndHeadsWhoseLseFails) {
  FailurePattern pattern;
  pattern.sequences = pattern.rows_of_sequence = pattern.failing_of_sequence = {0, 0, 0};
  pattern.heads = pattern.rows_of_head = pattern.failing_of_head = {0, 0};
  pattern.dims = {0, 0};
  count_row(pattern, 0, 0, 5, true, {0, 1});
  count_row(pattern, 1, 0, 5, false, {});
  count_row(pattern, 2, 1, 1, true, {});
  describe_pattern(pattern);
  EXPECT_EQ(pattern.words, "sequences 0, 2 of 3; all 2 heads; all 2 dims");
}

// 130 sequences share 44 columns of 3; those without rows are blank.
TEST(FailurePatternWords, ALongAxisSharesColumns) {
  FailurePattern pattern;
  pattern.rows_of_sequence.assign(130, 2);
  pattern.failing_of_sequence.assign(130, 0);
  pattern.failing_of_sequence[3] = 1;  // 1 of the 6 rows of column 1
  for (std::size_t b = 6; b < 9; ++b) pattern.failing_of_sequence[b] = 1;
  for (std::size_t b = 9; b < 12; ++b) pattern.rows_of_sequence[b] = 0;
  pattern.page_sequence = 4;
  pattern.pages.assign(70, 0);
  pattern.pages[2] = 0.75;
  pattern.pages[3] = -0.9;  // the larger of its column
  pattern.pages[69] = 0.5;
  EXPECT_EQ(map_text(pattern), "  by sequence  .-# " + std::string(40, '.') +
                                   "   3 per column\n  by page      sequence 4: .+" + std::string(32, '.') +
                                   "#   2 per column\n");
}

}  // namespace
}  // namespace kvscope::golden::diagnosis_report_test

#include "core/attention/problem_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::problem_checks_test {
namespace {

using ::testing::ElementsAre;
using testing::PagedCase;
using testing::Spec;

// "where: message" of each fault; empty when the problem is accepted.
std::vector<std::string> faults_of(const Problem& problem) {
  try {
    check_problem(problem);
  } catch (const GeometryError& error) {
    std::vector<std::string> texts;
    for (const Fault& fault : error.faults()) texts.push_back(fault.where + ": " + fault.message);
    return texts;
  }
  return {};
}

std::vector<std::string> faults_after(const std::function<void(Problem&)>& spoil) {
  const PagedCase c((Spec()));
  Problem p = c.problem;
  spoil(p);
  return faults_of(p);
}

TEST(ProblemChecks, LetsAWellFormedProblemThrough) {
  EXPECT_THAT(faults_after([](Problem&) {}), ElementsAre());
}

TEST(ProblemChecks, CollectsAllFaultsOfOneProblem) {
  const PagedCase c((Spec()));
  Problem p = c.problem;
  const std::int64_t lengths[] = {5};
  p.key_lengths = lengths;
  p.k.page_size = 0;
  try {
    check_problem(p);
    FAIL();
  } catch (const GeometryError& error) {
    EXPECT_STREQ(error.what(),
                 "attention problem rejected, 2 faults:\n"
                 "  key_lengths: 1 entry, batch 2 needs 2\n"
                 "  k.page_size: 0 tokens, a page holds at least 1");
  }
}

TEST(ProblemChecks, BatchAndItsArrays) {
  EXPECT_THAT(faults_after([](Problem& p) { p.batch = -1; }), ElementsAre("batch: -1 sequences, at least 0"));
  static const std::int64_t falling[] = {1, 3, 2};
  EXPECT_THAT(faults_after([](Problem& p) { p.query_offsets = falling; }),
              ElementsAre("query_offsets[0]: 1, the first sequence starts at row 0",
                          "query_offsets[2]: 2 after 3, offsets never fall"));
  EXPECT_THAT(faults_after([](Problem& p) { p.query_offsets = {}; }),
              ElementsAre("query_offsets: 0 entries, batch 2 needs 3"));
  static const std::int64_t negative[] = {4, -2};
  EXPECT_THAT(faults_after([](Problem& p) { p.key_lengths = negative; }),
              ElementsAre("key_lengths[1]: -2 tokens, a length is at least 0"));
}

TEST(ProblemChecks, Heads) {
  EXPECT_THAT(
      faults_after([](Problem& p) { p.query_heads = 3; }),
      ElementsAre("query_heads: 3 is not a multiple of the 2 KV heads, so a group has no whole number of them"));
  EXPECT_THAT(faults_after([](Problem& p) { p.query_heads = 0; }), ElementsAre("query_heads: 0 heads, at least 1"));
  EXPECT_THAT(faults_after([](Problem& p) { p.v.heads = 1; }),
              ElementsAre("v.heads: 1 heads, K has 2: every query head needs both"));
}

TEST(ProblemChecks, Options) {
  EXPECT_THAT(faults_after([](Problem& p) { p.options.scale = std::numeric_limits<double>::infinity(); }),
              ElementsAre("options.scale: inf, a finite number is needed"));
  EXPECT_THAT(faults_after([](Problem& p) { p.options.soft_cap = 0; }),
              ElementsAre("options.soft_cap: 0, a finite number above 0 is needed; leave it out for none"));
  EXPECT_THAT(faults_after([](Problem& p) {
                p.options.mask = MaskKind::sliding_window;
                p.options.window_left = p.options.window_right = -2;
              }),
              ElementsAre("options.window_left: -2 keys, at least 0, or -1 for no limit",
                          "options.window_right: -2 keys, at least 0, or -1 for no limit"));
  EXPECT_THAT(faults_after([](Problem& p) { p.options.mask = MaskKind::chunked; }),
              ElementsAre("options.chunk: 0 positions, a chunk holds at least 1"));
  static const double three[] = {1, 2, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(faults_after([](Problem& p) { p.options.alibi_slopes = three; }),
              ElementsAre("options.alibi_slopes: 3 entries, 4 query heads need as many, or none",
                          "options.alibi_slopes[2]: nan, a finite number is needed"));
  EXPECT_THAT(faults_after([](Problem& p) { p.options.sinks = std::span<const double>(three, 2); }),
              ElementsAre("options.sinks: 2 entries, 4 query heads need as many, or none"));
}

TEST(ProblemChecks, RowsOfKAndV) {
  EXPECT_THAT(
      faults_after([](Problem& p) { p.k.dtype = DType::e2m1; }),
      ElementsAre("k.dtype: e2m1 packs two elements in a byte, which a row of elements has no address for; unpack "
                  "it first"));
  EXPECT_THAT(faults_after([](Problem& p) { p.v.block_stride = -4; }),
              ElementsAre("v.block_stride: -4 elements, a stride is at least 0"));
  EXPECT_THAT(faults_after([](Problem& p) { p.v.data = nullptr; }),
              ElementsAre("v.data: no memory, yet a sequence has keys"));
  EXPECT_THAT(faults_after([](Problem& p) { p.k.table = nullptr; }),
              ElementsAre("k.table: no lookup table, yet a sequence has keys"));
  EXPECT_THAT(faults_after([](Problem& p) { p.q = nullptr; }), ElementsAre("q: no memory, yet there are queries"));
  EXPECT_THAT(faults_after([](Problem& p) { p.k.head_size = 0; }), ElementsAre("k.head_size: 0 elements, at least 1"));
}

TEST(ProblemChecks, StridesThatReachPastTheAddressSpace) {
  const auto faults = faults_after([](Problem& p) { p.k.block_stride = std::int64_t{1} << 61; });
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0], ::testing::StartsWith("k: the last element lies past 2^63 bytes: "));
}

TEST(ProblemChecks, Scales) {
  static const float one = 1;
  EXPECT_THAT(faults_after([](Problem& p) { p.k.scales = reinterpret_cast<const std::byte*>(&one); }),
              ElementsAre("k.granularity: 0 elements, a scale covers at least 1"));
}

// With a table row that is too short, the sequence would use the first pages of the next one.
TEST(ProblemChecks, TableRowMustHoldThePagesASequenceNeeds) {
  EXPECT_THAT(faults_after([](Problem& p) { p.k.table_stride = 2; }),
              ElementsAre("k.table_stride: 2 entries, sequence 0 of 9 tokens needs 3 pages of 4"));
  // Three columns would be enough; but with that stride, sequence 1 starts in the tail of sequence 0's row.
  EXPECT_THROW(faults_after([](Problem& p) { p.k.table_stride = 3; }), IndexError);
}

TEST(ProblemChecks, EntryPastThePoolNamesSequencePageAndEntry) {
  PagedCase c((Spec()));
  const auto blocks = c.problem.k.blocks;
  c.table[static_cast<std::size_t>(c.problem.k.table_stride)] = static_cast<std::uint32_t>(blocks);
  for (const bool tiles : {false, true}) {
    try {
      if (tiles) {
        static_cast<void>(tiled(c.problem));
      } else {
        static_cast<void>(reference(c.problem));
      }
      FAIL();
    } catch (const IndexError& error) {
      EXPECT_EQ(std::string(error.what()), "k.table: sequence 1, page 0 (tokens 0 to 3): entry " +
                                               std::to_string(blocks) + " is outside [0, " + std::to_string(blocks) +
                                               "): assign the page a block before its tokens are attended to");
    }
  }
  c.table[static_cast<std::size_t>(c.problem.k.table_stride)] = static_cast<std::uint32_t>(blocks - 1);
  EXPECT_NO_THROW(check_problem(c.problem));
}

TEST(ProblemChecks, ScaleTableIsJudgedByTheScalePool) {
  Spec spec;
  spec.granularity = 4;
  spec.own_scales_table = true;
  PagedCase c(spec);
  EXPECT_NO_THROW(check_problem(c.problem));
  c.problem.k.scale_blocks = 1;
  EXPECT_THROW(check_problem(c.problem), IndexError);
  c.scales_table[0] = 0xffffffffu;
  c.problem.k.scale_blocks = 0;
  try {
    check_problem(c.problem);
    FAIL();
  } catch (const IndexError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("k.scales_table: sequence 0, page 0 "));
  }
}

// When a window has passed a page, its block may have been released: the entry is not read.
TEST(ProblemChecks, EntriesOfPagesThatNoQuerySeesMayBeAnything) {
  Spec spec;
  spec.options.mask = MaskKind::sliding_window;
  spec.options.window_left = 1;
  PagedCase c(spec);
  EXPECT_EQ(c.table[0], 0xffffffffu);
  EXPECT_NO_THROW(check_problem(c.problem));
  spec.options.window_left = 5;
  c.problem.options.window_left = 5;
  EXPECT_THROW(check_problem(c.problem), IndexError);
}

TEST(ProblemChecks, NeededKeysSpanAllQueriesOfTheSequence) {
  Spec spec;
  spec.lengths = {20, 0};
  spec.queries = {3, 2};
  spec.options.mask = MaskKind::sliding_window;
  spec.options.window_left = 4;
  const PagedCase c(spec);
  EXPECT_EQ(needed_keys(c.problem, 0), (KeyRange{13, 20}));
  EXPECT_TRUE(needed_keys(c.problem, 1).empty());
  EXPECT_EQ(query_count(c.problem, 1), 2);
}

}  // namespace
}  // namespace kvscope::attention::problem_checks_test

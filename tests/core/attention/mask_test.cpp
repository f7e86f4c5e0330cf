#include "core/attention/mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tests/core/attention/paged_case.h"
#include "tests/property.h"

namespace kvscope::attention::mask_test {
namespace {

// "11110 / 11111": one character per key, one word per query.
std::string drawn(const Options& options, std::int64_t queries, std::int64_t keys) {
  std::string text;
  for (std::int64_t i = 0; i < queries; ++i) {
    if (i > 0) text += " / ";
    const KeyRange range = visible_keys(options, i, queries, keys);
    for (std::int64_t t = 0; t < keys; ++t) text += t >= range.first && t < range.last ? '1' : '0';
  }
  return text;
}

TEST(Mask, CausalExamplesOfTheFlashAttentionReadme) {
  Options options;
  EXPECT_EQ(drawn(options, 2, 5), "11110 / 11111");
  EXPECT_EQ(drawn(options, 5, 2), "00 / 00 / 00 / 10 / 11");
  options.alignment = CausalAlignment::top_left;
  EXPECT_EQ(drawn(options, 2, 5), "10000 / 11000");
  EXPECT_EQ(drawn(options, 5, 2), "10 / 11 / 11 / 11 / 11");
}

TEST(Mask, WindowCountsKeysBesideTheOwnOne) {
  Options options;
  options.mask = MaskKind::sliding_window;
  options.window_left = 1;
  options.window_right = 0;
  EXPECT_EQ(drawn(options, 3, 5), "01100 / 00110 / 00011");
  options.window_right = 1;
  EXPECT_EQ(drawn(options, 3, 5), "01110 / 00111 / 00011");
  options.window_left = -1;
  EXPECT_EQ(drawn(options, 3, 5), "11110 / 11111 / 11111");
  options.window_left = 0;
  options.window_right = -1;
  EXPECT_EQ(drawn(options, 3, 5), "00111 / 00011 / 00001");
}

TEST(Mask, ChunkEndsWhereTheNextBegins) {
  Options options;
  options.mask = MaskKind::chunked;
  options.chunk = 2;
  EXPECT_EQ(drawn(options, 5, 5), "10000 / 11000 / 00100 / 00110 / 00001");
}

// Limits near 2^63 are how some engines write "no limit": a sum would wrap.
TEST(Mask, HugeWindowsAreNoLimit) {
  Options options;
  options.mask = MaskKind::sliding_window;
  options.window_left = options.window_right = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(visible_keys(options, 1, 3, 7), (KeyRange{0, 7}));
  EXPECT_EQ(visible_keys(options, 0, 9, 7), (KeyRange{0, 7}));
}

TEST(Mask, QueryPositionIsNegativeBeforeTheFirstKey) {
  Options options;
  EXPECT_EQ(query_position(options, 0, 5, 2), -3);
  options.alignment = CausalAlignment::top_left;
  EXPECT_EQ(query_position(options, 3, 5, 2), 3);
}

TEST(Mask, IntervalIsThePredicateKeyByKey) {
  EXPECT_TRUE(prop::check("an interval holds exactly the visible keys", [] {
    Options options;
    options.mask = prop::one_of(MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked);
    options.alignment = prop::one_of(CausalAlignment::bottom_right, CausalAlignment::top_left);
    options.window_left = prop::in_range<std::int64_t>(-1, 9);
    options.window_right = prop::in_range<std::int64_t>(-1, 9);
    options.chunk = prop::in_range<std::int64_t>(1, 6);
    const auto queries = prop::in_range<std::int64_t>(1, 12);
    const auto keys = prop::in_range<std::int64_t>(0, 12);
    const auto from = prop::in_range<std::int64_t>(0, queries);
    std::int64_t first = keys, last = 0;
    for (std::int64_t i = 0; i < queries; ++i) {
      const KeyRange range = visible_keys(options, i, queries, keys);
      for (std::int64_t t = 0; t < keys; ++t) {
        const bool seen = testing::sees(options, i, queries, keys, t);
        RC_ASSERT((t >= range.first && t < range.last) == seen);
        if (seen && i >= from) first = std::min(first, t), last = std::max(last, t + 1);
      }
      if (range.empty()) RC_ASSERT(range == KeyRange{});
    }
    const KeyRange all = visible_keys_of(options, from, queries, queries, keys);
    RC_ASSERT(all == (last == 0 ? KeyRange{} : KeyRange{first, last}));
  }));
}

// Offsets of a file can claim any number of queries: their keys are found without a visit to each.
TEST(Mask, AnyNumberOfQueriesIsJudgedAtOnce) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  Options options;
  for (const MaskKind mask : {MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked}) {
    for (const CausalAlignment alignment : {CausalAlignment::bottom_right, CausalAlignment::top_left}) {
      options.mask = mask;
      options.alignment = alignment;
      options.window_left = options.window_right = 2;
      options.chunk = 3;
      EXPECT_EQ(visible_keys_of(options, 0, kMany, kMany, 5), (KeyRange{0, 5}));
      EXPECT_EQ(visible_keys_of(options, 0, kMany, kMany, 0), KeyRange{});
    }
  }
}

}  // namespace
}  // namespace kvscope::attention::mask_test

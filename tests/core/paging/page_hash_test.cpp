#include "core/paging/page_hash.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "tests/property.h"

namespace kvscope::page_hash_test {
namespace {

Request request_of(std::vector<ContentSpan> content) {
  Request r;
  for (const ContentSpan& span : content) r.prompt_tokens += span.length;
  r.content = std::move(content);
  r.generate_tokens = 100;
  return r;
}

PageHash hash_of(const Request& r, std::int64_t seq, std::int64_t page, std::int64_t page_size) {
  return SequenceText(r, SeqIdx(seq)).page_hash(PageIdx(page), page_size);
}

TEST(PageHash, IsEqualForEqualPrefixesOfDifferentSequences) {
  const Request a = request_of({{7, 10}, {8, 6}});
  const Request b = request_of({{7, 10}, {9, 6}});
  EXPECT_EQ(hash_of(a, 0, 0, 4), hash_of(b, 1, 0, 4));
  EXPECT_EQ(hash_of(a, 0, 1, 4), hash_of(b, 1, 1, 4));
  EXPECT_NE(hash_of(a, 0, 2, 4), hash_of(b, 1, 2, 4));  // tokens 8..11: two common ones, two different ones
  EXPECT_NE(hash_of(a, 0, 3, 4), hash_of(b, 1, 3, 4));
}

// The same tokens after a different prefix have other keys and values: a hash of the page alone would share them.
TEST(PageHash, DiffersForEqualPagesAfterDifferentPages) {
  const Request a = request_of({{1, 4}, {5, 4}});
  const Request b = request_of({{2, 4}, {5, 4}});
  EXPECT_NE(hash_of(a, 0, 1, 4), hash_of(b, 0, 1, 4));
}

TEST(PageHash, DoesNotSeeHowTheTextIsCutIntoSpansOfLengthZero) {
  const Request a = request_of({{1, 4}, {2, 4}});
  const Request b = request_of({{9, 0}, {1, 4}, {9, 0}, {9, 0}, {2, 4}});
  EXPECT_EQ(hash_of(a, 0, 1, 4), hash_of(b, 0, 1, 4));
}

// A text's second appearance starts again at its first token: {1, 2} {1, 2} is not {1, 4}.
TEST(PageHash, TellsARepeatedTextFromALongOne) {
  EXPECT_NE(hash_of(request_of({{1, 2}, {1, 2}}), 0, 0, 4), hash_of(request_of({{1, 4}}), 0, 0, 4));
}

TEST(PageHash, SharesNothingBetweenPromptsWithoutContentOrGeneratedTokens) {
  Request own;
  own.prompt_tokens = 4;
  own.generate_tokens = 8;
  EXPECT_NE(hash_of(own, 0, 0, 4), hash_of(own, 1, 0, 4)) << "own prompts";
  const Request named = request_of({{0, 4}});
  EXPECT_NE(hash_of(named, 0, 0, 4), hash_of(own, 0, 0, 4)) << "text 0 is not the prompt of sequence 0";
  EXPECT_EQ(hash_of(named, 0, 0, 4), hash_of(named, 1, 0, 4));
  EXPECT_NE(hash_of(named, 0, 1, 4), hash_of(named, 1, 1, 4)) << "what they generate";
}

TEST(PageHash, IsTheSameInAnyOrderOfAskingAndAfterForgetting) {
  const Request r = request_of({{7, 5}, {8, 1}, {9, 1}, {10, 1}, {11, 1}, {12, 9}});
  SequenceText backwards(r, SeqIdx(3));
  const PageHash last = backwards.page_hash(PageIdx(3), 6);
  SequenceText forwards(r, SeqIdx(3));
  for (std::int64_t p = 0; p < 4; ++p) EXPECT_EQ(forwards.page_hash(PageIdx(p), 6), backwards.page_hash(PageIdx(p), 6));
  backwards.forget_hashes();
  EXPECT_EQ(backwards.page_hash(PageIdx(3), 6), last);
}

// Every token separately, in the simplest way.
using Token = std::tuple<int, std::uint64_t, std::int64_t>;
std::vector<Token> tokens_one_by_one(const Request& r, std::uint64_t seq, std::int64_t count) {
  std::vector<Token> all;
  for (const ContentSpan& span : r.content) {
    for (std::int64_t i = 0; i < span.length; ++i) all.emplace_back(0, span.content, i);
  }
  for (std::int64_t i = 0; r.content.empty() && i < r.prompt_tokens; ++i) all.emplace_back(1, seq, i);
  for (std::int64_t i = 0; static_cast<std::int64_t>(all.size()) < count; ++i) all.emplace_back(2, seq, i);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

// Few texts, short spans, pages of up to 9 tokens: many pages have more runs than the hasher's fixed buffer holds.
TEST(PageHash, IsEqualExactlyWhenAllTokensUpToThePagesEndAreEqual) {
  EXPECT_TRUE(prop::check("hash == prefix", [] {
    const auto page_size = prop::in_range<std::int64_t>(1, 10);
    std::map<PageHash, std::vector<Token>> prefix_of;
    std::map<std::vector<Token>, PageHash> hash_of_prefix;
    for (std::int64_t seq = 0; seq < 6; ++seq) {
      std::vector<ContentSpan> spans;
      for (const int code : prop::vector_of(0, 8)) {
        spans.push_back({static_cast<std::uint64_t>(code % 2), code / 2});
      }
      Request r = request_of(spans);
      r.prompt_tokens = std::max<std::int64_t>(r.prompt_tokens, spans.empty() ? 7 : 0);
      SequenceText text(r, SeqIdx(seq));
      for (std::int64_t p = 0; p < 5; ++p) {
        const PageHash hash = text.page_hash(PageIdx(p), page_size);
        const auto prefix = tokens_one_by_one(r, static_cast<std::uint64_t>(seq), (p + 1) * page_size);
        RC_ASSERT(prefix_of.emplace(hash, prefix).first->second == prefix);
        RC_ASSERT(hash_of_prefix.emplace(prefix, hash).first->second == hash);
      }
    }
  }));
}

TEST(TokenIds, AreEqualExactlyForEqualTextAndPosition) {
  const Request a = request_of({{7, 3}, {8, 2}});
  const Request b = request_of({{7, 2}, {8, 2}});
  const auto ids_a = SequenceText(a, SeqIdx(0)).token_ids(7);
  const auto ids_b = SequenceText(b, SeqIdx(1)).token_ids(6);
  ASSERT_EQ(ids_a.size(), 7u);
  std::map<std::uint64_t, Token> seen;
  const auto agree = [&](const std::vector<std::uint64_t>& ids, const Request& r, std::uint64_t seq) {
    const auto tokens = tokens_one_by_one(r, seq, static_cast<std::int64_t>(ids.size()));
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(seen.emplace(ids[i], tokens[i]).first->second, tokens[i]);
  };
  agree(ids_a, a, 0);
  agree(ids_b, b, 1);
  EXPECT_EQ(seen.size(), 3u + 2u + 2u + 2u);  // 7:0..2, 8:0..1, two generated each
  EXPECT_TRUE(SequenceText(a, SeqIdx(0)).token_ids(0).empty());
}

}  // namespace
}  // namespace kvscope::page_hash_test

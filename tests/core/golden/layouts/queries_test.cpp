// The queries of an input: their shapes, offsets and lengths, and the values per query head.
#include "core/golden/layouts/detail/queries.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::queries_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

std::vector<float> rows_of(const PreparedProblem& prepared) {
  const auto& p = prepared.problem;
  const auto* first = reinterpret_cast<const float*>(p.q);
  return {first, first + p.query_offsets.back() * p.query_heads * p.k.head_size};
}

class Queries : public testing::Test {
 protected:
  Bundle bundle_ = SmallBatch().in("nhd");
  LayoutOptions options_ = SmallBatch::options("nhd");

  void SetUp() override { bundle_.tensors.erase("query_offsets"); }
  [[nodiscard]] PreparedProblem prepared() const { return prepare_problem(bundle_, options_, "x"); }
  [[nodiscard]] std::string rejection() const {
    return message_of([&] { static_cast<void>(prepare_problem(bundle_, options_, "mine.npz")); });
  }
};

TEST_F(Queries, HaveThreeOrFourAxes) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {6}, {8, 24}, {1, 1, 8, 4, 6}}) {
    bundle_.tensors["q"] = make_tensor(DType::f32, shape);
    EXPECT_EQ(rejection(), fmt::format("mine.npz rejected: q: has shape {}; it is [T, Hq, D] or [B, queries, Hq, D]",
                                       shape_text(shape)));
  }
  bundle_.tensors["q"] = make_tensor(DType::f32, {4, 2, 4, 6});
  EXPECT_EQ(rejection(), "mine.npz rejected: q: has shape [4, 2, 4, 6], but there are 5 sequences");
  bundle_.tensors["q"] = make_tensor(DType::f32, {5, 0, 6});
  EXPECT_EQ(rejection(), "mine.npz rejected: q: has 0 heads, not a multiple of the 2 kv heads");
}

TEST_F(Queries, OfBitPatternsNeedTheirType) {
  bundle_.tensors["q"] = make_tensor(DType::u16, {5, 4, 6});
  const std::string needed =
      "mine.npz rejected: q: is u16: which floats are its bit patterns? Pass --query-dtype bf16, or end its name in "
      "_bf16 or "
      "_f16";
  EXPECT_EQ(rejection(), needed);
  options_.query_dtype = DType::bf16;
  EXPECT_EQ(rejection(), "(no InputError)");
  options_.query_dtype = DType::f32;  // of other bits
  EXPECT_EQ(rejection(), "mine.npz rejected: q: is u16, which holds no f32 bit patterns");
  options_.query_dtype = DType::u16;  // no float
  EXPECT_EQ(rejection(), needed);
  bundle_.tensors["q"] = make_tensor(DType::f32, {5, 4, 6});
  options_.query_dtype = DType::bf16;
  EXPECT_EQ(
      rejection(),
      "mine.npz rejected: q: is f32: --query-dtype bf16 is for bit patterns that are stored as u8 or u16; remove it");
}

TEST_F(Queries, OffsetsOfFloatsAreOneFault) {
  bundle_.tensors["query_offsets"] = make_tensor(DType::f32, {6});
  EXPECT_EQ(rejection(), "mine.npz rejected: query_offsets: is f32; an index tensor is i32, u32, i64 or u64");
  bundle_.tensors["query_offsets"] = list({0, 1, 2, 5, 4, 8});
  EXPECT_EQ(rejection(), "mine.npz rejected: query_offsets: must be 6 entries, rising from 0 to the 8 rows of q");
  bundle_.tensors["query_offsets"] = list({1, 1, 2, 4, 5, 8});
  EXPECT_EQ(rejection(), "mine.npz rejected: query_offsets: must be 6 entries, rising from 0 to the 8 rows of q");
}

// q_lens: sequence b has the first q_lens[b] rows of its part of q, whether q is padded or has offsets.
TEST_F(Queries, WithoutPaddingAreTheFirstRowsOfEachSequence) {
  bundle_.tensors["q"] = rising({5, 3, 4, 6});
  bundle_.tensors["q_lens"] = list({1, 0, 2, 1, 3});
  std::vector<float> expected;
  const auto add = [&](int row) {
    for (int i = 0; i < 24; ++i) expected.push_back(static_cast<float>(row * 24 + i));
  };
  for (const int row : {0, 6, 7, 9, 12, 13, 14}) add(row);
  const PreparedProblem padded = prepared();
  EXPECT_THAT(padded.query_offsets, ElementsAre(0, 1, 1, 3, 4, 7));
  EXPECT_THAT(rows_of(padded), ElementsAreArray(expected));

  // The same rows of q [15, 4, 6] with offsets 0, 3, 6, 9, 12, 15.
  bundle_.tensors["q"].shape = {15, 4, 6};
  bundle_.tensors["query_offsets"] = list({0, 3, 6, 9, 12, 15});
  const PreparedProblem listed = prepared();
  EXPECT_THAT(listed.query_offsets, ElementsAre(0, 1, 1, 3, 4, 7));
  EXPECT_THAT(rows_of(listed), ElementsAreArray(expected));

  // Offsets of a padded q are those of the rows without padding.
  bundle_.tensors.erase("q_lens");
  bundle_.tensors["q"].shape = {5, 3, 4, 6};
  bundle_.tensors["query_offsets"] = list({0, 1, 1, 3, 4, 7});
  EXPECT_THAT(rows_of(prepared()), ElementsAreArray(expected));
}

TEST_F(Queries, PastTheirPartOfQAreAFault) {
  bundle_.tensors["q"] = make_tensor(DType::f32, {5, 3, 4, 6});
  const auto fault = [](const char* name, int sequence, int count, const char* shape) {
    return fmt::format("mine.npz rejected: {}: gives sequence {} {} queries, more than q {} has for it", name, sequence,
                       count, shape);
  };
  bundle_.tensors["q_lens"] = list({1, 4, 2, 1, 3});
  EXPECT_EQ(rejection(), fault("q_lens", 1, 4, "[5, 3, 4, 6]"));
  bundle_.tensors["q_lens"] = list({1, 3, 2, -1, 3});
  EXPECT_EQ(rejection(), fault("q_lens", 3, -1, "[5, 3, 4, 6]"));
  bundle_.tensors["q_lens"] = list({1, 3, 2, 1});
  EXPECT_EQ(rejection(), "mine.npz rejected: q_lens: is given for 4 sequences, but there are 5");
  bundle_.tensors["q_lens"] = make_tensor(DType::f32, {5});
  EXPECT_EQ(rejection(), "mine.npz rejected: q_lens: is f32; an index tensor is i32, u32, i64 or u64");

  bundle_.tensors["q_lens"] = list({1, 0, 2, 1, 3});
  bundle_.tensors["q"] = make_tensor(DType::f32, {15, 4, 6});
  EXPECT_EQ(rejection(), fault("q_lens", 0, 1, "[15, 4, 6]"));  // no offsets: no part of q is its own
  bundle_.tensors["query_offsets"] = list({0, 3, 6, 9, 12, 16});
  EXPECT_EQ(rejection(), fault("q_lens", 4, 3, "[15, 4, 6]"));
  bundle_.tensors["query_offsets"] = list({-3, 3, 6, 9, 12, 15});
  EXPECT_EQ(rejection(), fault("q_lens", 0, 1, "[15, 4, 6]"));

  bundle_.tensors.erase("q_lens");
  bundle_.tensors["q"] = make_tensor(DType::f32, {5, 3, 4, 6});
  bundle_.tensors["query_offsets"] = list({0, 1, 5, 5, 6, 7});
  EXPECT_EQ(rejection(), fault("query_offsets", 1, 4, "[5, 3, 4, 6]"));
  bundle_.tensors["query_offsets"] = list({0, 1, 2, 3, 4});
  EXPECT_EQ(rejection(), "mine.npz rejected: query_offsets: is given for 4 sequences, but there are 5");
  bundle_.tensors["query_offsets"] = list({});
  EXPECT_EQ(rejection(), "mine.npz rejected: query_offsets: is given for 0 sequences, but there are 5");
  bundle_.tensors["q_lens"] = list({});
  EXPECT_EQ(rejection(), "mine.npz rejected: q_lens: is given for 0 sequences, but there are 5");
}

TEST_F(Queries, ValuesPerHeadHaveOneForEachQueryHead) {
  bundle_.tensors["q"] = make_tensor(DType::f32, {5, 4, 6});
  for (const char* name : {"alibi_slopes", "sinks"}) {
    Bundle kept = bundle_;
    bundle_.tensors[name] = make_tensor(DType::f32, {3});
    EXPECT_EQ(rejection(), fmt::format("mine.npz rejected: {}: has 3 entries for 4 query heads", name));
    bundle_.tensors[name] = make_tensor(DType::f32, {4, 1});
    EXPECT_EQ(rejection(), fmt::format("mine.npz rejected: {}: has shape [4, 1], but layout 'nhd' needs [Hq]", name));
    bundle_ = kept;
  }
  bundle_.tensors["alibi_slopes"] = tensor_of<float>({4}, std::vector<float>{0.5F, 0.25F, 0.125F, 2});
  bundle_.tensors["s_aux"] = tensor_of<float>({4}, std::vector<float>{1, -1, 3, 4});
  EXPECT_THAT(prepared().alibi_slopes, ElementsAre(0.5, 0.25, 0.125, 2));
  EXPECT_THAT(prepared().sinks, ElementsAre(1, -1, 3, 4));
}

// hf has heads before queries: q [B, Hq, queries, D].
TEST_F(Queries, WithHeadsFirstAreTurned) {
  bundle_ = SmallBatch().in("hf");
  bundle_.tensors.erase("query_offsets");
  options_ = SmallBatch::options("hf");
  bundle_.tensors["q"] = rising({5, 4, 2, 6});
  const PreparedProblem turned = prepared();
  EXPECT_THAT(turned.query_offsets, ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_EQ(rows_of(turned)[6], 12);  // query 0, head 1 of sequence 0
  EXPECT_EQ(rows_of(turned)[24], 6);  // query 1, head 0
  bundle_.tensors.erase("q");
  EXPECT_EQ(rejection(),
            "mine.npz rejected: q: is missing; it is [B, Hq, queries, D], or [T, Hq, D] with query_offsets [B + 1]");
}

TEST(ExchangeMiddleAxes, IsItsOwnInverse) {
  const Tensor q = rising({2, 3, 4, 5});
  const Tensor turned = exchange_middle_axes(q);
  EXPECT_THAT(turned.shape, ElementsAre(2, 4, 3, 5));
  EXPECT_EQ(values<float>(turned)[((1 * 4 + 3) * 3 + 2) * 5 + 1], ((1 * 3 + 2) * 4 + 3) * 5 + 1);
  const Tensor again = exchange_middle_axes(turned);
  EXPECT_EQ(again.shape, q.shape);
  EXPECT_TRUE(std::ranges::equal(values<float>(again), values<float>(q)));
}

// --- q_nope and q_pe, the parts of a query of an MLA model ----------------------------------------------------------

class QueryParts : public testing::Test {
 protected:
  Bundle bundle_;
  LayoutOptions options_ = SmallBatch::options("mla");

  void SetUp() override {
    options_.scale = 0.5;
    bundle_.tensors["ckv"] = make_tensor(DType::f32, {3, 2, 4});
    bundle_.tensors["kpe"] = make_tensor(DType::f32, {3, 2, 2});
    bundle_.tensors["block_table"] = SmallBatch::ints<std::int32_t>({2, 1}, {2, 0});
    bundle_.tensors["cache_seqlens"] = list({2, 1});
    bundle_.tensors["q_nope"] = rising({2, 3, 4});
    bundle_.tensors["q_pe"] = rising({2, 3, 2});
  }
  [[nodiscard]] std::string rejection() const {
    return message_of([&] { static_cast<void>(prepare_problem(bundle_, options_, "mine.npz")); });
  }
};

TEST_F(QueryParts, AreJoinedRowByRow) {
  const PreparedProblem prepared = prepare_problem(bundle_, options_, "x");
  const std::vector<float> rows = rows_of(prepared);
  ASSERT_EQ(rows.size(), 36U);
  EXPECT_THAT(std::vector<float>(rows.begin() + 6, rows.begin() + 12), ElementsAre(4, 5, 6, 7, 2, 3));
}

TEST_F(QueryParts, BelongTogether) {
  Bundle kept = bundle_;
  bundle_.tensors.erase("q_nope");
  EXPECT_EQ(rejection(), "mine.npz rejected: q_nope: is missing; q_pe is only a part of q");
  bundle_ = kept;
  bundle_.tensors.erase("q_pe");
  EXPECT_EQ(rejection(), "mine.npz rejected: q_pe: is missing; q_nope is only a part of q");
}

TEST_F(QueryParts, AreAlikeButForTheLastAxis) {
  const auto with = [&](Tensor pe) {
    bundle_.tensors["q_pe"] = std::move(pe);
    return rejection();
  };
  const std::string all = "all axes but the last, and the type, must be alike";
  EXPECT_EQ(with(make_tensor(DType::f16, {2, 3, 2})),
            "mine.npz rejected: q_pe: is f16 [2, 3, 2], but q_nope is f32 [2, 3, 4]: " + all);
  EXPECT_EQ(with(make_tensor(DType::f32, {2, 2, 2})),
            "mine.npz rejected: q_pe: is f32 [2, 2, 2], but q_nope is f32 [2, 3, 4]: " + all);
  EXPECT_EQ(with(make_tensor(DType::f32, {2, 3, 1, 2})),
            "mine.npz rejected: q_pe: is f32 [2, 3, 1, 2], but q_nope is f32 [2, 3, 4]: " + all);
  bundle_.tensors["q_nope"] = make_tensor(DType::u16, {2, 3, 4});
  EXPECT_EQ(with(make_tensor(DType::u16, {2, 3, 2})),
            "mine.npz rejected: q_pe: is u16 [2, 3, 2], but q_nope is u16 [2, 3, 4]: " + all);
  bundle_.tensors["q_nope"] = make_tensor(DType::f32, {});
  EXPECT_EQ(with(make_tensor(DType::f32, {})), "mine.npz rejected: q_pe: is f32 [], but q_nope is f32 []: " + all);
  bundle_.tensors["q_nope"] = make_tensor(DType::f32, {2, 3, 0});
  EXPECT_THAT(with(make_tensor(DType::f32, {2, 3, 2})),
              testing::HasSubstr("q_nope: has shape [2, 3, 2], but a head of the cache has 6 elements"));
}

}  // namespace
}  // namespace kvscope::golden::queries_test

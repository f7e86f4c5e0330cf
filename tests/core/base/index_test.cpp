#include "core/base/index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <unordered_set>

namespace kvscope::index_test {
namespace {

struct Load {
  int operator()(SeqIdx, HeadIdx, TokIdx, DimIdx) const { return 1; }
};

// The purpose of the types: each of these is a bug that plain integers would let through.
static_assert(std::is_invocable_v<Load, SeqIdx, HeadIdx, TokIdx, DimIdx>);
static_assert(!std::is_invocable_v<Load, SeqIdx, TokIdx, HeadIdx, DimIdx>, "head and token swapped");
static_assert(!std::is_invocable_v<Load, HeadIdx, SeqIdx, TokIdx, DimIdx>, "sequence and head swapped");
static_assert(!std::is_invocable_v<Load, SeqIdx, HeadIdx, PageIdx, DimIdx>, "page for a token");
static_assert(!std::is_invocable_v<Load, std::int64_t, HeadIdx, TokIdx, DimIdx>, "a bare number");
static_assert(!std::is_convertible_v<std::int64_t, BlockIdx> && !std::is_convertible_v<BlockIdx, std::int64_t>);
static_assert(!std::is_constructible_v<BlockIdx, PageIdx>, "a page is not the block that holds it");

// All pairs of the nine types: none converts into another, implicitly or explicitly.
template <class A, class... B>
constexpr bool apart_from_all =
    ((std::is_same_v<A, B> || (!std::is_constructible_v<A, B> && !std::is_assignable_v<A&, B>)) && ...);
template <class... T>
constexpr bool pairwise_apart = (apart_from_all<T, T...> && ...);
static_assert(pairwise_apart<SeqIdx, TokIdx, PageIdx, BlockIdx, LayerIdx, HeadIdx, DimIdx, StepIdx, RowIdx>);

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

static_assert(Addable<TokIdx, std::int64_t> && Subtractable<TokIdx, std::int64_t> && Subtractable<TokIdx, TokIdx>);
static_assert(!Addable<TokIdx, TokIdx>, "the sum of two positions means nothing");
static_assert(!Subtractable<TokIdx, HeadIdx> && !Comparable<TokIdx, HeadIdx> && !Comparable<TokIdx, int>);
static_assert(!Multipliable<TokIdx, std::int64_t>, "scaling goes through .value, in sight");
static_assert(std::is_same_v<decltype(TokIdx{5} - TokIdx{2}), std::int64_t>, "a difference is a count");
static_assert(sizeof(TokIdx) == 8 && sizeof(RowIdx) == 4 && std::is_trivially_copyable_v<TokIdx>);
static_assert(static_cast<int>(KOrV::k) == 0 && static_cast<int>(KOrV::v) == 1, "the values are axis indices");

TEST(IndexTest, CountsAndComparesLikeThePositionItIs) {
  TokIdx t{5};
  EXPECT_EQ((t + 3).value, 8);
  EXPECT_EQ((t - 7).value, -2);
  EXPECT_EQ(TokIdx{9} - t, 4);
  EXPECT_EQ(++t, TokIdx{6});
  EXPECT_EQ(t += 4, TokIdx{10});
  EXPECT_LT(TokIdx{-1}, TokIdx{0});
  EXPECT_EQ(TokIdx{}.value, 0);
}

// 32 unsigned bits: a row past 2^32 wraps, as in the kernel that computes it. A 64-bit row would hide the bug.
TEST(IndexTest, ARowWrapsAtThirtyTwoBitsAsTheKernelsDoes) {
  const RowIdx last{std::numeric_limits<std::uint32_t>::max()};
  EXPECT_EQ((last + 2u).value, 1u);
  EXPECT_EQ((RowIdx{0} - 1u).value, 4294967295u);
  EXPECT_EQ(RowIdx{1} - RowIdx{3}, 4294967294u);
}

TEST(IndexTest, HashesByValue) {
  std::unordered_set<BlockIdx> blocks = {BlockIdx{3}, BlockIdx{7}, BlockIdx{3}};
  EXPECT_EQ(blocks.size(), 2u);
  EXPECT_TRUE(blocks.contains(BlockIdx{7}));
  EXPECT_FALSE(blocks.contains(BlockIdx{4}));
}

}  // namespace
}  // namespace kvscope::index_test

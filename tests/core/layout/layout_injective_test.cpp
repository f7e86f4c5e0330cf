// Injectivity by brute force: the offsets of every coordinate of every small layout.
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "core/layout/layout_expr.h"

namespace kvscope::layout::layout_injective_test {
namespace {

IntTuple leaf(std::int64_t value) {
  IntTuple t;
  t.value = value;
  return t;
}

Layout flat(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride) {
  Layout l;
  l.shape.leaf = l.stride.leaf = false;
  for (const std::int64_t s : shape) l.shape.items.push_back(leaf(s));
  for (const std::int64_t d : stride) l.stride.items.push_back(leaf(d));
  return l;
}

// All layouts of `rank` modes with shapes 1..largest and the given strides.
std::vector<Layout> all_layouts(int rank, std::int64_t largest, const std::vector<std::int64_t>& strides) {
  std::vector<Layout> out;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank)), stride(static_cast<std::size_t>(rank));
  const std::function<void(std::size_t)> next = [&](std::size_t mode) {
    if (mode == shape.size()) {
      out.push_back(flat(shape, stride));
      return;
    }
    for (shape[mode] = 1; shape[mode] <= largest; ++shape[mode]) {
      for (const std::int64_t d : strides) {
        stride[mode] = d;
        next(mode + 1);
      }
    }
  };
  next(0);
  return out;
}

std::vector<Layout> small_layouts() {
  std::vector<Layout> out = all_layouts(1, 9, {0, 1, 2, 3, 4, 5, 6, 8});
  for (const Layout& l : all_layouts(2, 4, {0, 1, 2, 3, 4, 6, 8, 12})) out.push_back(l);
  for (const Layout& l : all_layouts(3, 3, {0, 1, 2, 4, 6, 9})) out.push_back(l);
  return out;
}

std::vector<std::int64_t> offsets(const Layout& l) {
  std::vector<std::int64_t> out;
  for (std::int64_t c = 0; c < size(l); ++c) out.push_back(offset_of(l, c));
  return out;
}

template <class F>
std::string geometry_message(F f) {
  try {
    (void)f();
  } catch (const GeometryError& e) {
    return e.what();
  }
  return "no GeometryError";
}

TEST(LayoutInjectiveTest, InjectivityIsExactOverEverySmallLayout) {
  int injective = 0;
  for (const Layout& l : small_layouts()) {
    const std::vector<std::int64_t> own = offsets(l);
    const bool want = std::set<std::int64_t>(own.begin(), own.end()).size() == own.size();
    injective += want ? 1 : 0;
    ASSERT_EQ(is_injective(l), want) << text(l);
  }
  EXPECT_GT(injective, 500);
  EXPECT_TRUE(is_injective(parse_layout("(3,2):(2,3)"))) << "the modes interleave and still never meet";
  EXPECT_FALSE(is_injective(parse_layout("(4,3):(2,3)"))) << "3 * 2 = 2 * 3";
}

// No enumeration where arithmetic decides, and a bound where it does not.
TEST(LayoutInjectiveTest, InjectivityOfHugeLayoutsIsDecidedOrRefusedAtOnce) {
  EXPECT_TRUE(is_injective(parse_layout("(1048576,1048576):(1048576,1)")));
  EXPECT_TRUE(is_injective(parse_layout("Sw<3,4,3> o (1048576,1048576):(1048576,1)"))) << "a swizzle is a bijection";
  EXPECT_FALSE(is_injective(parse_layout("(1048576,1048576):(1,0)")));
  EXPECT_FALSE(is_injective(parse_layout("(1048576,1048576):(1,2)"))) << "more coordinates than offsets";
  EXPECT_THAT(geometry_message([] { return is_injective(parse_layout("(1048576,1048576):(3000000,2999999)")); }),
              ::testing::HasSubstr("are more than the 1048576 that are tried one by one"));
}

TEST(LayoutInjectiveTest, LayoutsBuiltByHandAreCheckedFirst) {
  EXPECT_EQ(geometry_message([] {
              return is_injective(flat({2, 3}, {1}));
            }),
            "layout (2,3):(1) rejected: the stride is not nested as the shape is");
  EXPECT_EQ(geometry_message([] {
              return is_injective(flat({2, 0}, {1, 1}));
            }),
            "layout mode 0:1 rejected: a shape is at least 1 and a stride at least 0");
  EXPECT_THROW((void)is_injective(flat({2}, {-1})), GeometryError);
}

}  // namespace
}  // namespace kvscope::layout::layout_injective_test

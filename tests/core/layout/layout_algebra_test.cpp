// The laws of the algebra by brute force: every small layout, every coordinate, the functions themselves compared.
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "core/layout/layout_expr.h"

namespace kvscope::layout::layout_algebra_test {
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

std::string coalesced(const char* expression) {
  return text(coalesce(parse_layout(expression)));
}

TEST(LayoutAlgebraTest, CoalescingWorkedCases) {
  EXPECT_EQ(coalesced("(2,(1,6)):(1,(6,2))"), "12:1");
  EXPECT_EQ(coalesced("(2,4):(4,1)"), "(2,4):(4,1)") << "neighbours only, and in this order only";
  EXPECT_EQ(coalesced("((2,2),(2,2)):((1,2),(4,8))"), "16:1");
  EXPECT_EQ(coalesced("(1,1):(5,7)"), "1:0");
  EXPECT_EQ(coalesced("(2,3):(0,0)"), "6:0");
  EXPECT_EQ(coalesced("Sw<3,3,3> o (8,64):(64,1)"), "Sw<3,3,3> o (8,64):(64,1)");
}

TEST(LayoutAlgebraTest, CoalescingKeepsTheFunctionAndLeavesNothingToMerge) {
  for (const Layout& l : small_layouts()) {
    const Layout c = coalesce(l);
    ASSERT_EQ(offsets(c), offsets(l)) << text(l) << " -> " << text(c);
    // Fewest modes: the function of two neighbours is never that of one mode.
    if (!c.shape.leaf) {
      for (std::size_t i = 0; i < c.shape.items.size(); ++i) {
        ASSERT_GT(c.shape.items[i].value, 1) << text(c);
        if (i > 0) {
          ASSERT_NE(c.stride.items[i].value, c.shape.items[i - 1].value * c.stride.items[i - 1].value) << text(c);
        }
      }
    }
  }
}

std::string composed(const char* outer, const char* inner) {
  return text(composition(parse_layout(outer), parse_layout(inner)));
}

TEST(LayoutAlgebraTest, CompositionWorkedCases) {
  EXPECT_EQ(composed("(6,2):(8,2)", "(4,3):(3,1)"), "((2,2),3):((24,2),8)")
      << "the example of CuTe's own documentation";
  EXPECT_EQ(composed("20:2", "(5,4):(4,1)"), "(5,4):(8,2)");
  EXPECT_EQ(composed("(10,2):(16,4)", "(5,4):(1,5)"), "(5,(2,2)):(16,(80,4))");
  EXPECT_EQ(composed("(8,4):(4,1)", "4:8"), "4:1") << "along a row";
  EXPECT_EQ(composed("Sw<3,3,3> o (8,64):(64,1)", "(8,8):(1,8)"), "Sw<3,3,3> o (8,8):(64,1)");
}

TEST(LayoutAlgebraTest, CompositionRefusesWhatNoLayoutIs) {
  EXPECT_EQ(geometry_message([] { return composition(parse_layout("(4,2):(1,10)"), parse_layout("5:1")); }),
            "composition of (4,2):(1,10) with 5:1 rejected: 5 steps of 1 cross an outer mode after 4, which does not "
            "divide 5");
  EXPECT_EQ(geometry_message([] { return composition(parse_layout("(2,2):(1,10)"), parse_layout("(2,2):(1,1)")); }),
            "composition of (2,2):(1,10) with (2,2):(1,1) rejected: the inner modes together reach digit 2 of outer "
            "mode 2:1");
  EXPECT_EQ(geometry_message([] { return composition(parse_layout("8:1"), parse_layout("(3,3):(1,3)")); }),
            "composition of 8:1 with (3,3):(1,3) rejected: the inner layout reaches offset 8, outside the outer one's "
            "[0, 8)");
  EXPECT_THAT(geometry_message([] { return composition(parse_layout("64"), parse_layout("Sw<2,0,3> o 32")); }),
              ::testing::HasSubstr("the inner layout is swizzled"));
}

// Is g, given by its values, the function of any layout? By definition: some first mode p, linear below p; the rest,
// counted in steps of p, is one again and adds to it.
bool is_layout_function(const std::vector<std::int64_t>& g) {
  const std::size_t n = g.size();
  if (n == 1) return true;
  for (std::size_t p = 2; p <= n; ++p) {
    if (n % p != 0) continue;
    bool fits = true;
    std::vector<std::int64_t> rest;
    for (std::size_t c1 = 0; c1 < n / p; ++c1) {
      rest.push_back(g[c1 * p]);
      for (std::size_t c0 = 0; c0 < p; ++c0)
        fits = fits && g[c1 * p + c0] == g[c1 * p] + static_cast<std::int64_t>(c0) * g[1];
    }
    if (fits && is_layout_function(rest)) return true;
  }
  return false;
}

// Whether c -> outer(inner(c)) is a layout whose top-level modes are the inner one's.
bool composition_exists(const std::vector<std::int64_t>& outer, const Layout& inner) {
  std::vector<std::int64_t> f;
  for (const std::int64_t offset : offsets(inner)) {
    if (offset >= static_cast<std::int64_t>(outer.size())) return false;
    f.push_back(outer[static_cast<std::size_t>(offset)]);
  }
  std::size_t step = 1;
  std::vector<std::int64_t> sum(f.size(), 0);
  for (const IntTuple& mode : inner.shape.items) {
    const auto s = static_cast<std::size_t>(mode.value);
    std::vector<std::int64_t> g;
    for (std::size_t c = 0; c < s; ++c) g.push_back(f[c * step]);
    if (!is_layout_function(g)) return false;
    for (std::size_t c = 0; c < f.size(); ++c) sum[c] += g[c / step % s];
    step *= s;
  }
  return sum == f;
}

// The same modes with strides of which no small sums are equal. For (2,3,2):(1,1,4), offsets 3 and 6 lie on a line only
// because two carries cancel; that is no reason for a layout, and with these strides it does not happen.
Layout with_unrelated_strides(const Layout& l) {
  const Layout c = coalesce(l);
  if (c.shape.leaf) return c;
  const std::vector<std::int64_t> unrelated = {1000003, 1000000007, 1000000000039};
  Layout out = c;
  for (std::size_t i = 0; i < c.stride.items.size(); ++i) out.stride.items[i].value = unrelated[i];
  return out;
}

// Both directions of the law: what is given is the composed function, and what is refused does not exist.
TEST(LayoutAlgebraTest, CompositionIsTheComposedFunctionAndIsRefusedOnlyWhereNoneExists) {
  std::vector<Layout> outers = all_layouts(2, 4, {0, 1, 2, 3, 5, 8});
  for (const Layout& l : all_layouts(1, 12, {0, 1, 3})) outers.push_back(l);
  for (const Layout& l : all_layouts(3, 3, {1, 4, 9})) outers.push_back(l);
  std::vector<Layout> inners = all_layouts(2, 4, {0, 1, 2, 3, 4});
  for (const Layout& l : all_layouts(1, 12, {0, 1, 2, 3, 4, 5, 6})) inners.push_back(l);
  int composed_count = 0;
  int refused = 0;
  for (const Layout& outer : outers) {
    const std::vector<std::int64_t> values = offsets(outer);
    for (const Layout& inner : inners) {
      if (cosize(inner) > size(outer)) continue;
      try {
        const Layout r = composition(outer, inner);
        ++composed_count;
        ASSERT_EQ(size(r), size(inner));
        ASSERT_EQ(rank(r.shape), rank(inner.shape)) << "the inner layout's modes stay where they are";
        for (std::int64_t c = 0; c < size(inner); ++c) {
          ASSERT_EQ(offset_of(r, c), values[static_cast<std::size_t>(offset_of(inner, c))])
              << text(outer) << " o " << text(inner) << " = " << text(r) << " at " << c;
        }
      } catch (const GeometryError&) {
        ++refused;
        ASSERT_FALSE(composition_exists(offsets(with_unrelated_strides(outer)), inner))
            << text(outer) << " o " << text(inner);
      }
    }
  }
  EXPECT_GT(composed_count, 20000);
  EXPECT_GT(refused, 1000);
}

TEST(LayoutAlgebraTest, ComplementWorkedCases) {
  const auto of = [](const char* expression, std::int64_t cosize_hi) {
    return text(complement(parse_layout(expression), cosize_hi));
  };
  EXPECT_EQ(of("4:1", 24), "6:4");
  EXPECT_EQ(of("6:4", 24), "4:1");
  EXPECT_EQ(of("(4,6):(1,4)", 24), "1:0");
  EXPECT_EQ(of("4:2", 24), "(2,3):(1,8)");
  EXPECT_EQ(of("(2,4):(1,6)", 24), "3:2");
  EXPECT_EQ(of("(2,2):(1,6)", 24), "(3,2):(2,12)");
  EXPECT_EQ(of("4:1", 22), "6:4") << "rounded up to whole periods";
}

TEST(LayoutAlgebraTest, ComplementRefusesModesThatOverlapAndEmptyRanges) {
  EXPECT_EQ(geometry_message([] { return complement(parse_layout("(2,2):(2,3)"), 24); }),
            "complement of (2,2):(2,3) rejected: stride 3 is not a multiple of 4, which the modes before it reach");
  EXPECT_EQ(geometry_message([] { return complement(parse_layout("4:1"), 0); }),
            "complement of 4:1 in [0, 0) rejected: the range is empty");
  EXPECT_THAT(geometry_message([] { return complement(parse_layout("Sw<2,0,3> o 32"), 64); }),
              ::testing::HasSubstr("a swizzled layout has none"));
}

// Together they reach every offset once: nothing of the complement but 0 is in the layout, and no offset is left out.
TEST(LayoutAlgebraTest, ComplementIsDisjointFromTheLayoutAndCoversTheRest) {
  int found = 0;
  for (const Layout& l : small_layouts()) {
    for (const std::int64_t cosize_hi : {1, 7, 24, 36}) {
      Layout rest;
      try {
        rest = complement(l, cosize_hi);
      } catch (const GeometryError&) {
        continue;
      }
      ++found;
      const std::vector<std::int64_t> own = offsets(l);
      const std::set<std::int64_t> image(own.begin(), own.end());  // modes of stride 0 repeat offsets
      std::set<std::int64_t> reached;
      std::int64_t before = -1;
      for (const std::int64_t r : offsets(rest)) {
        ASSERT_GT(r, before) << text(rest) << ": ordered";
        before = r;
        ASSERT_TRUE(r == 0 || !image.contains(r)) << text(l) << " and " << text(rest) << " share " << r;
        for (const std::int64_t a : image) ASSERT_TRUE(reached.insert(a + r).second) << text(l) << " + " << text(rest);
      }
      const auto count = static_cast<std::int64_t>(reached.size());
      ASSERT_GE(count, cosize_hi) << text(l) << " + " << text(rest);
      ASSERT_EQ(*reached.rbegin(), count - 1) << text(l) << " + " << text(rest) << ": a hole";
    }
  }
  EXPECT_GT(found, 3000);
}

TEST(LayoutAlgebraTest, RightInverseWorkedCases) {
  const auto of = [](const char* expression) { return text(right_inverse(parse_layout(expression))); };
  EXPECT_EQ(of("(4,8):(8,1)"), "(8,4):(4,1)");
  EXPECT_EQ(of("(4,8):(1,4)"), "32:1");
  EXPECT_EQ(of("(4,8):(1,5)"), "4:1") << "from 4 on there are holes";
  EXPECT_EQ(of("4:2"), "1:0");
  EXPECT_THAT(geometry_message([] { return right_inverse(parse_layout("Sw<2,0,3> o 32")); }),
              ::testing::HasSubstr("a swizzled layout has none"));
}

TEST(LayoutAlgebraTest, RightInverseUndoesTheLayoutAndIsWholeForBijections) {
  int whole = 0;
  for (const Layout& l : small_layouts()) {
    const Layout inverse = right_inverse(l);
    for (std::int64_t i = 0; i < size(inverse); ++i) {
      ASSERT_EQ(offset_of(l, offset_of(inverse, i)), i) << text(l) << " after " << text(inverse);
    }
    const std::vector<std::int64_t> own = offsets(l);
    const std::set<std::int64_t> image(own.begin(), own.end());
    if (image.size() == own.size() && *image.rbegin() == size(l) - 1) {
      ++whole;
      ASSERT_EQ(size(inverse), size(l)) << text(l);
    }
  }
  EXPECT_GT(whole, 50);
}

TEST(LayoutAlgebraTest, InjectivityIsExactOverEverySmallLayout) {
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
TEST(LayoutAlgebraTest, InjectivityOfHugeLayoutsIsDecidedOrRefusedAtOnce) {
  EXPECT_TRUE(is_injective(parse_layout("(1048576,1048576):(1048576,1)")));
  EXPECT_TRUE(is_injective(parse_layout("Sw<3,4,3> o (1048576,1048576):(1048576,1)"))) << "a swizzle is a bijection";
  EXPECT_FALSE(is_injective(parse_layout("(1048576,1048576):(1,0)")));
  EXPECT_FALSE(is_injective(parse_layout("(1048576,1048576):(1,2)"))) << "more coordinates than offsets";
  EXPECT_THAT(geometry_message([] { return is_injective(parse_layout("(1048576,1048576):(3000000,2999999)")); }),
              ::testing::HasSubstr("are more than the 1048576 that are tried one by one"));
}

TEST(LayoutAlgebraTest, LayoutsBuiltByHandAreCheckedFirst) {
  EXPECT_EQ(geometry_message([] {
              return coalesce(flat({2, 3}, {1}));
            }),
            "layout (2,3):(1) rejected: the stride is not nested as the shape is");
  EXPECT_EQ(geometry_message([] {
              return coalesce(flat({2, 0}, {1, 1}));
            }),
            "layout mode 0:1 rejected: a shape is at least 1 and a stride at least 0");
  EXPECT_THROW((void)right_inverse(flat({2}, {-1})), GeometryError);
  EXPECT_THROW((void)composition(parse_layout("8"), flat({2}, {-1})), GeometryError);
}

}  // namespace
}  // namespace kvscope::layout::layout_algebra_test

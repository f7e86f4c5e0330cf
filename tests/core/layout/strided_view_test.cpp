#include "core/layout/strided_view.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace kvscope::strided_view_test {
namespace {

static_assert(std::is_trivially_copyable_v<StridedView<float, 4>>, "kernels take views by value");
static_assert(std::is_trivially_copyable_v<AnyView<4>>);
static_assert(std::is_standard_layout_v<StridedView<float, 4>>);
static_assert(std::is_invocable_v<StridedView<float, 2>, int, int> &&
                  !std::is_invocable_v<StridedView<float, 2>, int> &&
                  !std::is_invocable_v<StridedView<float, 2>, int, int, int>,
              "as many indices as axes");

template <class E, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing of that kind was thrown";
}

TEST(StridedViewTest, RowMajorStridesOfTheBlockPool) {
  EXPECT_EQ(row_major<6>({5, 2, 3, 4, 2, 8}), (Shape<6>{384, 192, 64, 16, 8, 1}));
  EXPECT_EQ(count_of<6>({5, 2, 3, 4, 2, 8}), 1920);
  EXPECT_EQ(row_major<6>({4, 1, 3, 4, 1, 8}), (Shape<6>{96, 96, 32, 8, 8, 1})) << "an MLA pool: one half, one head";
  EXPECT_EQ(row_major<1>({7}), (Shape<1>{1}));
  EXPECT_EQ(row_major<3>({2, 0, 3}), (Shape<3>{0, 3, 1}));
  EXPECT_EQ(count_of<3>({2, 0, 3}), 0);
}

TEST(StridedViewTest, SizesPastSixtyFourBitsAreRejected) {
  constexpr std::int64_t kBig = std::int64_t{1} << 32;
  EXPECT_EQ(message_of<OverflowError>([] {
              return row_major<2>({kBig, kBig});
            }),
            "tensor size: 4294967296 * 4294967296 does not fit in 64 bits");
  EXPECT_THROW((void)count_of<2>({kBig, kBig}), OverflowError);
  EXPECT_EQ((row_major<2>({kBig / 2 - 1, kBig})), (Shape<2>{kBig, 1}));
}

// Rows of 8 with 3 in use: a view that used extents as strides would read 3 * 2 + 1.
TEST(StridedViewTest, ElementsStandAtTheirStrides) {
  std::vector<float> data(40);
  std::iota(data.begin(), data.end(), 0.0f);
  const StridedView<float, 2> m{data.data(), {4, 3}, {8, 1}};
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(m(i, j), static_cast<float>(8 * i + j));
      EXPECT_EQ(&m.unchecked(i, j), &m(i, j));
    }
  }
  EXPECT_EQ(m(2, 1), data[17]);
  m(3, 2) = -1;
  EXPECT_EQ(data[26], -1.0f);
  EXPECT_EQ(m.dim(1), 3);
  EXPECT_EQ(m.stride(0), 8);
  const StridedView<const float, 2> transposed{data.data(), {3, 4}, {1, 8}};
  EXPECT_EQ(transposed(1, 2), 17.0f);
  const StridedView<float, 2> packed{data.data(), {4, 3}};
  EXPECT_EQ(packed(2, 1), data[7]);
}

// (2,3) is inside the memory and outside the view: element 19 is padding.
TEST(StridedViewTest, AnIndexOutsideAnAxisIsRejectedByName) {
  std::vector<float> data(40);
  const StridedView<float, 2> m{data.data(), {4, 3}, {8, 1}};
  EXPECT_EQ(message_of<IndexError>([&] { return m(2, 3); }), "axis 1 index 3 is outside [0, 3)");
  EXPECT_EQ(message_of<IndexError>([&] { return m(4, 0); }), "axis 0 index 4 is outside [0, 4)");
  EXPECT_EQ(message_of<IndexError>([&] { return m(-1, 2); }), "axis 0 index -1 is outside [0, 4)");
  EXPECT_EQ(message_of<IndexError>([&] { return m(std::numeric_limits<std::int64_t>::max(), 0); }),
            "axis 0 index 9223372036854775807 is outside [0, 4)");
  const StridedView<float, 2> empty;
  EXPECT_EQ(message_of<IndexError>([&] { return empty(0, 0); }), "axis 0 index 0 is outside [0, 0)");
}

TEST(StridedViewTest, ARunTimeTypeScalesItsStridesByItsSize) {
  std::vector<std::byte> data(200);
  for (const DType dtype : {DType::e4m3, DType::bf16, DType::f32, DType::i64}) {
    const AnyView<3> view{data.data(), dtype, {2, 3, 2}, {9, 3, 1}};
    EXPECT_EQ(view.at(1, 2, 1) - data.data(), (9 + 6 + 1) * size_of(dtype)) << name(dtype);
    EXPECT_THROW((void)view.at(1, 3, 0), IndexError);
  }
  const AnyView<2> packed{data.data(), DType::bf16, {5, 4}};
  EXPECT_EQ(packed.at(3, 1) - data.data(), 26);
  EXPECT_EQ(packed.stride(0), 4);
  EXPECT_EQ(packed.dim(0), 5);
  const AnyView<1> nibbles{data.data(), DType::e2m1, {8}};
  EXPECT_THROW((void)nibbles.at(3), UnsupportedError) << "element 3 has no address";
}

TEST(StridedViewTest, ATypedViewSeesTheSameMemoryAndAWrongTypeIsRejected) {
  std::vector<std::byte> data(64);
  const AnyView<2> any{data.data(), DType::bf16, {4, 3}, {8, 1}};
  const StridedView<bf16, 2> typed = any.as<bf16>();
  EXPECT_EQ(reinterpret_cast<std::byte*>(&typed(2, 1)), any.at(2, 1));
  EXPECT_EQ(typed.strides, any.strides);
  // Types of the same width differ only in the dtype.
  EXPECT_EQ(message_of<GeometryError>([&] { return any.as<f16>(); }), "view of bf16 read as f16");
}

}  // namespace
}  // namespace kvscope::strided_view_test

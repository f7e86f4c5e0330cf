// The largest |x| of rows as they are stored, against the elements read one by one.
#include "core/attention/detail/largest_element.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/base/convert.h"
#include "core/base/dtype.h"

namespace kvscope::attention::largest_element_test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Row = std::vector<std::byte>;

double largest_of(DType dtype, const std::vector<Row>& rows, std::int64_t count) {
  std::vector<const std::byte*> at;
  for (const Row& row : rows) at.push_back(row.data());
  const std::int64_t bits = larger_of_rows(0, dtype, at, count);
  const double x = load_as_double(dtype, reinterpret_cast<const std::byte*>(&bits));
  return std::isfinite(x) ? x : kInfinite;
}

// Infinite if an element is not finite.
double one_by_one(DType dtype, const std::vector<Row>& rows, std::int64_t count) {
  double largest = 0;
  for (const Row& row : rows) {
    for (std::int64_t d = 0; d < count; ++d) {
      const double x = std::fabs(load_as_double(dtype, row.data() + d * size_of(dtype)));
      largest = std::isfinite(x) ? std::max(largest, x) : kInfinite;
      if (largest == kInfinite) return largest;
    }
  }
  return largest;
}

// Any bits: NaNs and infinities too, and rows without them. The element behind the last one is the largest finite one.
TEST(LargestElement, IsThatOfTheElementsOneByOne) {
  std::mt19937_64 random(5);
  int infinite = 0, finite = 0;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    const std::int64_t size = size_of(dtype);
    for (std::int64_t count = 1; count <= 40; ++count) {
      for (int turn = 0; turn < 20; ++turn) {
        std::vector<Row> rows(1 + random() % 4, Row(static_cast<std::size_t>((count + 1) * size)));
        for (Row& row : rows) {
          for (std::byte& b : row) b = static_cast<std::byte>(random());
          for (std::int64_t d = 0; d < count && turn % 2 == 0; ++d) {  // small numbers of both signs
            std::byte& highest = row[static_cast<std::size_t>((d + 1) * size - 1)];
            highest &= std::byte{0xbf};
          }
          row[static_cast<std::size_t>(count * size + size - 1)] = std::byte{0x7b};
        }
        const double expected = one_by_one(dtype, rows, count);
        ASSERT_EQ(largest_of(dtype, rows, count), expected) << name(dtype) << ", " << count << " elements";
        ++(expected == kInfinite ? infinite : finite);
      }
    }
  }
  EXPECT_GT(infinite, 100);
  EXPECT_GT(finite, 1000);
}

TEST(LargestElement, KeepsALargerOneOfEarlierRows) {
  const double rows[2][3] = {{1, -3, 2}, {0.5, 0, -0.25}};
  const std::byte* const first[] = {reinterpret_cast<const std::byte*>(rows[0])};
  const std::byte* const second[] = {reinterpret_cast<const std::byte*>(rows[1])};
  const std::int64_t bits = larger_of_rows(larger_of_rows(0, DType::f64, first, 3), DType::f64, second, 3);
  EXPECT_EQ(std::bit_cast<double>(bits), 3);
}

}  // namespace
}  // namespace kvscope::attention::largest_element_test

#include "core/layout/filled.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kvscope::filled_test {
namespace {

TEST(Filled, HasTheExtentsInOrderAndOneElementEverywhere) {
  const xt::xtensor<std::int32_t, 3> tensor = filled(std::int32_t{-7}, std::int64_t{2}, 3, std::size_t{5});
  EXPECT_EQ(tensor.shape(0), 2u);
  EXPECT_EQ(tensor.shape(1), 3u);
  EXPECT_EQ(tensor.shape(2), 5u);
  for (const std::int32_t element : tensor) EXPECT_EQ(element, -7);
  EXPECT_EQ(filled(0.0, std::int64_t{0}, 4).size(), 0u);
}

}  // namespace
}  // namespace kvscope::filled_test

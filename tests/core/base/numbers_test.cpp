#include "core/base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace kvscope::numbers_test {
namespace {

TEST(WholeNumber, IsTheWholeTextOrNothing) {
  EXPECT_EQ(whole_number<int>("12"), 12);
  EXPECT_EQ(whole_number<int>("-12"), -12);
  for (const char* text : {"", " 12", "12 ", "+12", "12x", "0x12", "1.5", "-"})
    EXPECT_EQ(whole_number<int>(text), std::nullopt) << text;
  EXPECT_EQ(whole_number<std::uint64_t>("-1"), std::nullopt);
}

TEST(WholeNumber, PastItsTypesRangeIsNothing) {
  EXPECT_EQ(whole_number<std::int64_t>("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(whole_number<std::int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(whole_number<std::int8_t>("128"), std::nullopt);
}

TEST(WholeNumber, TakesABaseOrAFormOfDoubles) {
  EXPECT_EQ(whole_number<std::uint64_t>("ff", 16), 255u);
  EXPECT_EQ(whole_number<std::uint64_t>("0xff", 16), std::nullopt);
  EXPECT_EQ(whole_number<double>("1e3"), 1000.0);
  EXPECT_EQ(whole_number<double>("1.8", std::chars_format::hex), 1.5);
}

}  // namespace
}  // namespace kvscope::numbers_test

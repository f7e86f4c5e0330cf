#include "gpu/virtual/machine/schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace kvscope::ptx::test::schedule_test {
namespace {

TEST(PolicyFromName, ReadsTheThreeForms) {
  EXPECT_EQ(policy_from_name("late")->policy, Policy::late);
  EXPECT_EQ(policy_from_name("early")->policy, Policy::early);
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    const auto schedule = policy_from_name("seed:" + std::to_string(seed));
    ASSERT_TRUE(schedule.has_value()) << seed;
    EXPECT_EQ(schedule->policy, Policy::seeded);
    EXPECT_EQ(schedule->seed, seed);
  }
}

TEST(PolicyFromName, RejectsOtherTextsAndTellsWhichForms) {
  for (const char* const text : {"", "Late", "late ", "soon", "seed", "seed7"}) {
    EXPECT_FALSE(policy_from_name(text).has_value()) << text;
    EXPECT_EQ(policy_fault(text), "'" + std::string(text) + "' is not one of late, early, seed:N");
  }
  for (const char* const text :
       {"seed:", "seed:0", "seed:-1", "seed:+1", "seed: 1", "seed:1x", "seed:18446744073709551616"}) {
    EXPECT_FALSE(policy_from_name(text).has_value()) << text;
    EXPECT_EQ(policy_fault(text), "'" + std::string(text) + "' is not seed:N with N from 1 to 18446744073709551615");
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::schedule_test

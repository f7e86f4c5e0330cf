#include "gpu/virtual/isa/opcode.h"

#include <gtest/gtest.h>

#include <set>

namespace kvscope::ptx::opcode_test {
namespace {

// A list that misses an enumerator leaves an empty name: a message without its opcode.
TEST(Opcode, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Opcode::unsupported); ++i) {
    const std::string_view text = name(static_cast<Opcode>(i));
    EXPECT_FALSE(text.empty()) << i;
    EXPECT_TRUE(names.insert(text).second) << text;
  }
  EXPECT_EQ(name(Opcode::cp_async_bulk_tensor), "cp.async.bulk.tensor");
  EXPECT_EQ(name(Opcode::cp_async_bulk_wait_group), "cp.async.bulk.wait_group");
  EXPECT_EQ(name(Opcode::bar_sync), "bar.sync");
  EXPECT_EQ(name(Opcode::xor_), "xor");
  EXPECT_EQ(name(Opcode::unsupported), "unsupported");
}

TEST(Mod, IsCalledAsItIsWritten) {
  for (int i = 0; i < static_cast<int>(Mod::count); ++i) EXPECT_FALSE(name(static_cast<Mod>(i)).empty()) << i;
  EXPECT_EQ(name(Mod::L2_cache_hint), "L2::cache_hint");
  EXPECT_EQ(name(Mod::mbarrier_complete_tx_bytes), "mbarrier::complete_tx::bytes");
  EXPECT_EQ(name(Mod::sync_restrict_shared_cluster), "sync_restrict::shared::cluster");
  EXPECT_EQ(name(Mod::d5), "5d");
  EXPECT_EQ(name(Mod::lo), "lo");
  EXPECT_EQ(name(Mod::lo_unsigned), "lo");  // two meanings, one word
  EXPECT_EQ(name(Mod::a_row), "row");
}

}  // namespace
}  // namespace kvscope::ptx::opcode_test

#include "core/base/fnv.h"

#include <gtest/gtest.h>

#include <string_view>

namespace kvscope::fnv_test {
namespace {

std::uint64_t of(std::string_view text) {
  return fnv1a(std::as_bytes(std::span(text)));
}

// The published vectors of FNV-1a, 64 bits: multiplying before the XOR would be FNV-1 and give other values.
TEST(Fnv, GivesThePublishedChecksums) {
  EXPECT_EQ(of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(of("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(of("foobar"), 0x85944171f73967e8U);
}

}  // namespace
}  // namespace kvscope::fnv_test

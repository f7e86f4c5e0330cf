// Acts as another user, for tests of files that a user may not touch. Only root can.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

namespace kvscope::test {

// The process is of user and group `id`, with root's access given up, until the object is destroyed.
class AsUser {
 public:
  explicit AsUser(unsigned id) {
    EXPECT_EQ(::setresgid(id, id, 0), 0);
    EXPECT_EQ(::setresuid(id, id, 0), 0);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  ~AsUser() {
    EXPECT_EQ(::setresuid(0, 0, 0), 0);
    EXPECT_EQ(::setresgid(0, 0, 0), 0);
  }
};

}  // namespace kvscope::test

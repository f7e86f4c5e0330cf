#include "core/base/child_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

namespace kvscope::child_group_test {
namespace {

// A process that ignores requests to end, and one that it has started, in a separate group. The pipe has a writer
// as long as one of them runs.
struct Pair {
  pid_t leader = 0;
  int end = -1;  // reading it returns when both have ended
};

Pair start() {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t leader = fork();
  if (leader == 0) {
    setpgid(0, 0);
    std::signal(SIGTERM, SIG_IGN);
    alarm(60);  // a test that fails leaves nothing behind
    if (fork() == 0) alarm(60);
    for (const char ready = 'r'; write(ends[1], &ready, 1) == 1;) pause();
    _exit(0);
  }
  close(ends[1]);
  for (int ready = 0; ready < 2; ++ready) {
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
  }
  return {leader, ends[0]};
}

bool both_have_ended(const Pair& pair) {
  char byte = 0;
  const bool ended = read(pair.end, &byte, 1) == 0;
  close(pair.end);
  return ended;
}

TEST(ChildGroup, EndsTheProgramAndWhatItHasStarted) {
  const Pair pair = start();
  const ChildGroup group(pair.leader);
  kill_child_groups();
  EXPECT_TRUE(both_have_ended(pair));
  EXPECT_LT(waitpid(pair.leader, nullptr, WNOHANG), 0) << "its leader has been waited for";
}

TEST(ChildGroup, LeavesAGroupAloneThatIsNotRegisteredAnyMore) {
  const Pair before = start(), now = start();
  std::optional<ChildGroup> group(std::in_place, before.leader);
  group.reset();
  const ChildGroup none(0), other(now.leader);
  none.signal(SIGKILL);  // not the group of this process
  kill_child_groups();
  EXPECT_TRUE(both_have_ended(now));
  EXPECT_EQ(waitpid(before.leader, nullptr, WNOHANG), 0) << "it runs";
  ChildGroup(before.leader).signal(SIGTERM);
  EXPECT_EQ(waitpid(before.leader, nullptr, WNOHANG), 0) << "it ignores this signal";
  ChildGroup(before.leader).signal(SIGKILL);
  EXPECT_TRUE(both_have_ended(before));
  EXPECT_EQ(waitpid(before.leader, nullptr, 0), before.leader);
}

}  // namespace
}  // namespace kvscope::child_group_test

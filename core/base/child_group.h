// Process groups that end with this program: a program that was started, with all programs that it started itself. They
// are registered while they run, so that the signal handler of an application can end them.
#pragma once

#include <sys/types.h>

namespace kvscope {

class ChildGroup {
 public:
  explicit ChildGroup(pid_t leader);  // 0: none; at most kMostChildGroups are registered at a time
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;
  ~ChildGroup();
  void signal(int number) const noexcept;  // to every process of the group; a group without one is left alone

 private:
  pid_t leader_;
  int slot_ = -1;
};

inline constexpr int kMostChildGroups = 16;

// Kills all registered groups, and waits until their leaders have ended. Async-signal-safe.
void kill_child_groups() noexcept;

}  // namespace kvscope

// Process groups that end with this program: a program that was started, with all programs that it started itself. They
// are registered while they run, so that the signal handler of an application can end them.
//
//   const ChildGroup group(pid);   // ffmpeg is process 812, its encoder 813: both are in group 812
//   group.signal(SIGTERM);         // to 812 and 813
#pragma once

#include <sys/types.h>

namespace kvscope {

inline constexpr int kMostChildGroups = 16;  // registered at a time; kill_child_groups() does not know further ones

// A group from its start until it has ended: the caller starts it, makes its first process the leader (setpgid), and
// waits for that process before the destructor takes the group off the list.
class ChildGroup {
 public:
  explicit ChildGroup(pid_t leader);  // 0: none
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;
  ~ChildGroup();
  void signal(int number) const noexcept;  // to every process of the group; no error if it has none

 private:
  pid_t leader_;
  int slot_ = -1;
};

// Kills all registered groups, and waits until their leaders have ended. Async-signal-safe.
void kill_child_groups() noexcept;

}  // namespace kvscope

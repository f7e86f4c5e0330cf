#include "core/base/child_group.h"

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace kvscope {
namespace {

std::array<std::atomic<pid_t>, kMostChildGroups> groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free);  // a signal handler reads them

}  // namespace

ChildGroup::ChildGroup(pid_t leader) : leader_(leader) {
  if (leader <= 0) return;
  for (std::size_t slot = 0; slot < groups.size(); ++slot) {
    pid_t none = 0;
    if (!groups[slot].compare_exchange_strong(none, leader)) continue;
    slot_ = static_cast<int>(slot);
    return;
  }
}

ChildGroup::~ChildGroup() {
  if (slot_ >= 0) groups[static_cast<std::size_t>(slot_)] = 0;
}

void ChildGroup::signal(int number) const noexcept {
  if (leader_ > 0) static_cast<void>(kill(-leader_, number));
}

void kill_child_groups() noexcept {
  for (const std::atomic<pid_t>& group : groups) {
    const pid_t leader = group;
    if (leader <= 0) continue;
    kill(-leader, SIGKILL);
    int status = 0;
    while (waitpid(leader, &status, __WALL) < 0 && errno == EINTR) {  // it writes no file any more
    }
  }
}

}  // namespace kvscope

// A control group (cgroup v2) around one program of the sandbox. Resource limits are of each process; a control group
// limits all processes of the program together:
//
//   memory.max, memory.swap.max   memory with the files in /tmp; no swap
//   pids.max                      processes and threads
//   cpu.max                       CPU time per 100 ms of wall clock
//
// A process may create groups where systemd, or a container, delegated a part of the hierarchy to it:
//   systemd-run --user --scope -p Delegate=yes kvscope lab grade ...
// Elsewhere there are none, and the other limits of the sandbox hold alone (docs/labs/staff/SECURITY.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::labs {

struct ControlLimits {
  std::int64_t memory_bytes = 0;
  int processes = 0;
  int cpus = 1;  // CPU time per wall clock
};

class ControlGroup {
 public:
  // Creates a new folder in `parent`, a result of delegated_group(), and writes its limits. cpu.max is omitted where
  // `parent` has no controller of CPU time. InputError, with the file, when one cannot be written.
  ControlGroup(const std::filesystem::path& parent, const ControlLimits& limits);
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup();  // ends every process in the group, waits until none is left, and removes it

  // The calling process and its later children; for the child between fork and exec. False with errno.
  [[nodiscard]] bool enter() const;
  // A process of the group was ended because all of them used more than memory_bytes.
  [[nodiscard]] bool out_of_memory() const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::string procs_;  // the file that enter() writes
};

// The folder of a process's own group in the hierarchy of version 2, from the texts of /proc/self/mountinfo and
// /proc/self/cgroup. Nothing where that hierarchy is not mounted, or the group is outside the mounted part.
// Example: mounted at /sys/fs/cgroup, "0::/user.slice/a.scope" -> "/sys/fs/cgroup/user.slice/a.scope".
[[nodiscard]] std::optional<std::filesystem::path> own_group(std::string_view mountinfo, std::string_view cgroup);

// Hands the controllers of `own` to the groups in it. Only a group without processes may do that, so this process moves
// to a new group `kvscope` in it if it must. An empty text, or the reason why no groups can be created there.
[[nodiscard]] std::string hand_down_controllers(const std::filesystem::path& own);

struct DelegatedGroup {
  std::optional<std::filesystem::path> folder;
  std::string reason;  // why there is no folder
};
// Where this process may create groups: its own group, if it is marked as delegated or is the root that the process
// sees. Found once per process.
[[nodiscard]] const DelegatedGroup& delegated_group();

}  // namespace kvscope::labs

#include "apps/labs/control_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "apps/labs/sandbox.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::control_group_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder that looks like a group of the hierarchy. It keeps what is written to it.
struct Folder {
  TemporaryFolder place;
  explicit Folder(std::string_view controllers) {
    write("cgroup.controllers", controllers);
    write("cgroup.subtree_control", "");
  }
  void write(const char* name, std::string_view text) const { write_file_atomically(place / name, text); }
  [[nodiscard]] std::string read(const fs::path& name) const { return read_file(path() / name, 4096); }
  [[nodiscard]] fs::path path() const { return (place / "x").parent_path(); }
};

TEST(OwnGroup, IsTheLineOfVersionTwoBelowItsMountPoint) {
  constexpr const char* kMounts =
      "25 30 0:23 / /sys rw - sysfs sysfs rw\n"
      "31 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
  EXPECT_EQ(own_group(kMounts, "0::/user.slice/a.scope\n"), "/sys/fs/cgroup/user.slice/a.scope");
  EXPECT_EQ(own_group(kMounts, "9:name=systemd:/x\n8:pids:/y\n0::/z\n"), "/sys/fs/cgroup/z");
  EXPECT_EQ(own_group(kMounts, "0::/\n"), "/sys/fs/cgroup");
}

// A container may mount a part of the hierarchy; "/b" of another mount is not "/bc".
TEST(OwnGroup, IsRelativeToTheMountedPart) {
  constexpr const char* kPart = "31 25 0:26 /a/b /mnt/group rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(own_group(kPart, "0::/a/b/c\n"), "/mnt/group/c");
  EXPECT_EQ(own_group(kPart, "0::/a/b\n"), "/mnt/group");
  EXPECT_EQ(own_group(kPart, "0::/a/bc\n"), std::nullopt);
  EXPECT_EQ(own_group(kPart, "0::/a\n"), std::nullopt);
}

TEST(OwnGroup, IsMissingWithoutVersionTwoOrOutsideOfTheNamespace) {
  EXPECT_EQ(own_group("36 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/a\n0::/\n"),
            std::nullopt);
  constexpr const char* kMounts = "31 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(own_group(kMounts, "4:memory:/a\n"), std::nullopt);
  EXPECT_EQ(own_group(kMounts, "0::/../other\n"), std::nullopt);
}

TEST(HandDownControllers, SelectsThoseOfTheLimits) {
  const Folder all("cpuset cpu io memory pids\n");
  EXPECT_EQ(hand_down_controllers(all.path()), "");
  EXPECT_EQ(all.read("cgroup.subtree_control"), "+memory +pids +cpu");
  const Folder user("memory pids\n");  // systemd delegates these two to a user's processes
  EXPECT_EQ(hand_down_controllers(user.path()), "");
  EXPECT_EQ(user.read("cgroup.subtree_control"), "+memory +pids");
}

TEST(HandDownControllers, NamesTheControllerThatIsMissing) {
  const Folder folder("cpuset cpu pids\n");
  EXPECT_THAT(hand_down_controllers(folder.path()), HasSubstr("has no controller 'memory'"));
  EXPECT_EQ(folder.read("cgroup.subtree_control"), "");
  // "cpuset" is not "cpu", and "pidsx" is not "pids".
  EXPECT_THAT(hand_down_controllers(Folder("memory pidsx\n").path()), HasSubstr("has no controller 'pids'"));
}

TEST(ControlGroup, WritesItsLimits) {
  const Folder folder("memory pids cpu");
  ASSERT_EQ(hand_down_controllers(folder.path()), "");
  folder.write("memory.swap.max", "max\n");
  fs::path group_folder;
  {
    const ControlGroup group(folder.path(), {1 << 30, 3, 2});
    group_folder = group.folder().filename();
    EXPECT_EQ(folder.read(group_folder / "memory.max"), "1073741824");
    EXPECT_EQ(folder.read(group_folder / "memory.swap.max"), "0");
    EXPECT_EQ(folder.read(group_folder / "memory.oom.group"), "1");
    EXPECT_EQ(folder.read(group_folder / "pids.max"), "3");
    EXPECT_EQ(folder.read(group_folder / "cpu.max"), "200000 100000");
    EXPECT_FALSE(fs::exists(folder.path() / group_folder / "cgroup.kill"));
    const ControlGroup other(folder.path(), {1, 1, 1});
    EXPECT_NE(other.folder(), group.folder());
  }
  EXPECT_EQ(folder.read(group_folder / "cgroup.kill"), "1");
}

TEST(ControlGroup, HasNoLimitOfCpuTimeWithoutTheController) {
  const Folder folder("memory pids cpuset");
  ASSERT_EQ(hand_down_controllers(folder.path()), "");
  const ControlGroup group(folder.path(), {1 << 20, 3, 2});
  EXPECT_FALSE(fs::exists(group.folder() / "cpu.max"));
  EXPECT_FALSE(fs::exists(group.folder() / "memory.swap.max"));
}

TEST(ControlGroup, TakesTheCallingProcess) {
  const Folder folder("memory pids");
  const ControlGroup group(folder.path(), {1 << 20, 3, 1});
  EXPECT_TRUE(group.enter());
  EXPECT_EQ(read_file(group.folder() / "cgroup.procs", 100), "0");
  fs::remove_all(group.folder());
  EXPECT_FALSE(group.enter());
}

TEST(ControlGroup, ReportsThatMemoryRanOut) {
  const Folder folder("memory pids");
  const ControlGroup group(folder.path(), {1 << 20, 3, 1});
  EXPECT_FALSE(group.out_of_memory());
  write_file_atomically(group.folder() / "memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 0\n");
  EXPECT_FALSE(group.out_of_memory());  // allocations at the limit were delayed, and none failed
  write_file_atomically(group.folder() / "memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\n");
  EXPECT_TRUE(group.out_of_memory());
}

TEST(ControlGroup, FailsWhereNoFolderCanBeCreated) {
  EXPECT_THROW(ControlGroup("/proc/self/no_such_folder", {1, 1, 1}), InputError);
}

TEST(ControlLimits, CountFilesAndTheProcessesOfTheSandbox) {
  SandboxLimits limits;
  limits.memory_bytes = 1000;
  limits.file_bytes = 24;
  EXPECT_EQ(control_limits(limits).memory_bytes, 1024);
  EXPECT_LE(control_limits(limits).processes, 8);
  EXPECT_EQ(control_limits(limits).cpus, 1);
  limits.threads = true;  // the group counts them too
  EXPECT_GT(control_limits(limits).processes, 64);
  limits.threads = false;
  limits.processes = true;
  EXPECT_GT(control_limits(limits).processes, 64);
  EXPECT_EQ(control_limits(limits).cpus, 2);
}

// Real controllers. Two processes that each stay below the limit of one process exceed that of their group.
class DelegatedControlGroup : public testing::Test {
 protected:
  void SetUp() override {
    if (!delegated_group().folder.has_value()) GTEST_SKIP() << "no control group: " << delegated_group().reason;
  }
};

TEST_F(DelegatedControlGroup, LimitsTheMemoryOfAllProcesses) {
  SandboxJob job;
  job.limits.processes = true;
  job.limits.memory_bytes = std::int64_t{256} << 20;
  job.limits.file_bytes = std::int64_t{1} << 20;
  const std::string hold = "/usr/bin/dd if=/dev/zero bs=150M count=1 | (/usr/bin/sleep 2; /usr/bin/cat >/dev/null)";
  job.command = {"/usr/bin/dash", "-c", hold + " & " + hold + "; wait"};
  const SandboxEnd end = run_in_sandbox(require_sandbox(false), job);
  EXPECT_TRUE(end.out_of_memory);
  EXPECT_THAT(end_text(end, job.limits), HasSubstr("bytes of memory"));
}

TEST_F(DelegatedControlGroup, EndsItsProcessesAndIsRemoved) {
  fs::path folder;
  pid_t child = -1;
  {
    const ControlGroup group(*delegated_group().folder, {std::int64_t{64} << 20, 8, 1});
    folder = group.folder();
    child = fork();
    if (child == 0) {
      if (!group.enter()) _exit(1);
      while (true) pause();
    }
    ASSERT_GT(child, 0);
    for (int tries = 0; tries < 1000 && read_file_start(folder / "cgroup.procs", 100).empty(); ++tries) usleep(1000);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace kvscope::labs::control_group_test

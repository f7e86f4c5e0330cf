#include "apps/labs/control_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/base/errors.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr int kPeriod = 100'000;  // [us] of wall clock, in which cpu.max counts CPU time
constexpr mode_t kFolderMode = 0755, kFileMode = 0644;

// The files of a control group have no size, so core/base/file.h does not read them.
std::string read_control(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// 0, or the value of errno. The system creates these files with the folder; O_CREAT is for the folders of tests.
int write_control(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kFileMode);
  if (file < 0) return errno;
  const int error = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
  close(file);
  return error;
}

// Whether a list of controllers, "cpu memory pids" or "+memory +pids", has one of that name.
bool has_controller(const std::string& list, std::string_view name) {
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    if (word == name || (word.starts_with('+') && word.substr(1) == name)) return true;
  }
  return false;
}

bool is_delegated(const fs::path& group) {
  std::array<char, 8> value{};
  for (const char* const name : {"user.delegate", "trusted.delegate"}) {  // systemd sets them
    if (getxattr(group.c_str(), name, value.data(), value.size()) > 0 && value[0] == '1') return true;
  }
  return false;
}

// "0::/a/b\n" -> "/a/b": the line of version 2.
std::string_view path_in_hierarchy(std::string_view cgroup) {
  const std::size_t line = cgroup.starts_with("0::") ? 0 : cgroup.find("\n0::");
  if (line == std::string_view::npos) return {};
  const std::size_t begin = cgroup.find("::", line) + 2;
  return cgroup.substr(begin, cgroup.find('\n', begin) - begin);
}

DelegatedGroup find_delegated_group() {
  const std::optional<fs::path> own =
      own_group(read_control("/proc/self/mountinfo"), read_control("/proc/self/cgroup"));
  if (!own.has_value()) return {std::nullopt, "no hierarchy of control groups of version 2 is mounted"};
  const bool is_root = !fs::exists(own->parent_path() / "cgroup.procs");
  if (!is_root && !is_delegated(*own)) {
    return {std::nullopt, fmt::format("{} is not delegated to this program", own->string())};
  }
  const std::string reason = hand_down_controllers(*own);
  return {reason.empty() ? own : std::nullopt, reason};
}

}  // namespace

ControlGroup::ControlGroup(const fs::path& parent, const ControlLimits& limits) {
  static int groups = 0;
  folder_ = parent / fmt::format("kvscope-{}-{}", getpid(), groups++);
  procs_ = (folder_ / "cgroup.procs").string();
  if (mkdir(folder_.c_str(), kFolderMode) != 0) throw InputError(folder_.string(), "", system_message(errno));
  const auto set = [&](const char* name, const std::string& text) {
    if (const int error = write_control((folder_ / name).string(), text); error != 0) {
      rmdir(folder_.c_str());
      throw InputError((folder_ / name).string(), "", system_message(error));
    }
  };
  set("memory.max", fmt::format("{}", limits.memory_bytes));
  // Absent where the kernel has no swap.
  if (fs::exists(parent / "memory.swap.max") || fs::exists(folder_ / "memory.swap.max")) set("memory.swap.max", "0");
  set("memory.oom.group", "1");  // all processes of the program end together
  set("pids.max", fmt::format("{}", limits.processes));
  if (has_controller(read_control(parent / "cgroup.subtree_control"), "cpu")) {
    set("cpu.max", fmt::format("{} {}", std::int64_t{limits.cpus} * kPeriod, kPeriod));
  }
}

ControlGroup::~ControlGroup() {
  constexpr int kMostTries = 1000;
  (void)write_control((folder_ / "cgroup.kill").string(), "1");
  // Ended processes leave the group some time later.
  for (int tries = 0; tries < kMostTries && rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++tries) usleep(1000);
}

bool ControlGroup::enter() const {
  errno = write_control(procs_, "0");
  return errno == 0;
}

bool ControlGroup::out_of_memory() const {
  std::istringstream events(read_control(folder_ / "memory.events"));
  std::string name;
  for (std::int64_t count = 0; events >> name >> count;) {
    if (name == "oom_kill" && count > 0) return true;
  }
  return false;
}

std::optional<fs::path> own_group(std::string_view mountinfo, std::string_view cgroup) {
  const std::string_view path = path_in_hierarchy(cgroup);
  if (path.empty() || path.starts_with("/..")) return std::nullopt;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string skipped, root, place;
    fields >> skipped >> skipped >> skipped >> root >> place;  // number, parent, device, root, mount point
    const std::string_view below = root == "/" ? path : path.substr(std::min(path.size(), root.size()));
    if (root != "/" && (!path.starts_with(root) || !(below.empty() || below.starts_with('/')))) continue;
    return below.empty() || below == "/" ? fs::path(place) : fs::path(place + std::string(below));
  }
  return std::nullopt;
}

std::string hand_down_controllers(const fs::path& own) {
  const std::string controllers = read_control(own / "cgroup.controllers");
  std::string wanted;
  for (const char* const name : {"memory", "pids", "cpu"}) {
    if (has_controller(controllers, name)) {
      wanted += fmt::format("{}+{}", wanted.empty() ? "" : " ", name);
    } else if (std::string_view(name) != "cpu") {  // often not delegated; the limit of CPU time of each process remains
      return fmt::format("{} has no controller '{}'", own.string(), name);
    }
  }
  const std::string control = (own / "cgroup.subtree_control").string();
  int error = write_control(control, wanted);
  if (error != EBUSY) return error == 0 ? "" : fmt::format("{}: {}", control, system_message(error));
  const fs::path leaf = own / "kvscope";
  if (mkdir(leaf.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return fmt::format("{}: {}", leaf.string(), system_message(errno));
  }
  error = write_control((leaf / "cgroup.procs").string(), "0");
  if (error == 0) error = write_control(control, wanted);
  if (error == 0) return {};
  (void)write_control((own / "cgroup.procs").string(), "0");  // other processes are there too
  rmdir(leaf.c_str());
  return fmt::format("{}: {}", control, system_message(error));
}

const DelegatedGroup& delegated_group() {
  static const DelegatedGroup group = find_delegated_group();
  return group;
}

}  // namespace kvscope::labs

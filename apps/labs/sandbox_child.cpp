#include "apps/labs/detail/sandbox_child.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kEmptyFolders[] = {"/proc", "/dev", "/tmp"};
constexpr unsigned kNobody = 65534;
constexpr std::int64_t kOpenFiles = 64;

#if defined(__x86_64__)
constexpr std::uint32_t kAuditArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kAuditArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kAuditArchitecture = 0;
#endif

constexpr std::array kBeyondTheSandbox{SYS_ptrace,
                                       SYS_process_vm_readv,
                                       SYS_process_vm_writev,
                                       SYS_mount,
                                       SYS_umount2,
                                       SYS_pivot_root,
                                       SYS_chroot,
                                       SYS_unshare,
                                       SYS_setns,
                                       SYS_bpf,
                                       SYS_add_key,
                                       SYS_keyctl,
                                       SYS_request_key,
                                       SYS_perf_event_open,
                                       SYS_userfaultfd,
                                       SYS_kexec_load,
                                       SYS_init_module,
                                       SYS_delete_module,
                                       SYS_finit_module,
                                       SYS_io_uring_setup,
                                       SYS_io_uring_enter,
                                       SYS_open_by_handle_at,
                                       SYS_socket,
                                       SYS_connect};

#if defined(SYS_fork)
constexpr std::array kForks{SYS_fork, SYS_vfork};
#else
constexpr std::array<long, 0> kForks{};
#endif
constexpr std::uint32_t kNewThread = 0x10000;  // CLONE_THREAD of <sched.h>

void append(std::string& program, const sock_filter& instruction) {
  program.append(reinterpret_cast<const char*>(&instruction), sizeof instruction);
}

sock_filter statement(unsigned code, std::uint32_t value) {
  return {static_cast<std::uint16_t>(code), 0, 0, value};
}

void reject(std::string& program, long call, int error) {
  append(program, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)});
  append(program, statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
}

void require_zero(long result, const char* what) {
  if (result != 0) sandbox_failed(what);
}

void limit(int resource, std::int64_t value) {
  const rlimit both = {static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  if (setrlimit(static_cast<__rlimit_resource>(resource), &both) != 0) sandbox_failed("setrlimit");
}

// At the limit a process gets SIGXCPU, which tells the reason; one that ignores it gets SIGKILL a second later.
void limit_cpu(std::int64_t seconds) {
  const rlimit soft_and_hard = {static_cast<rlim_t>(seconds), static_cast<rlim_t>(seconds) + 1};
  if (setrlimit(RLIMIT_CPU, &soft_and_hard) != 0) sandbox_failed("setrlimit");
}

void set_limits(const SandboxLimits& limits) {
  limit_cpu(limits.cpu_seconds);
  limit(RLIMIT_AS, limits.memory_bytes);
  limit(RLIMIT_FSIZE, limits.file_bytes);
  limit(RLIMIT_NOFILE, kOpenFiles);
  limit(RLIMIT_CORE, 0);
}

void write_text(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) sandbox_failed(path);
  close(file);
}

void make_folders(const std::string& path) {  // relative to the current folder
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    mkdir(path.substr(0, at).c_str(), 0755);
  }
}

// A descriptor of each place outside, opened before the new root hides it.
struct OpenMount {
  int place = -1;
  std::string inside;  // relative to the new root
  bool writable = false;
};

void bind(const OpenMount& mount_point) {
  struct stat status = {};
  require_zero(fstat(mount_point.place, &status), "fstat");
  make_folders(mount_point.inside);
  if (S_ISDIR(status.st_mode)) {
    mkdir(mount_point.inside.c_str(), 0755);
  } else {
    close(open(mount_point.inside.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  }
  const std::string source = "/proc/self/fd/" + std::to_string(mount_point.place);
  require_zero(mount(source.c_str(), mount_point.inside.c_str(), nullptr, MS_BIND | MS_REC, nullptr), "bind mount");
  if (mount_point.writable) return;
  constexpr unsigned long kReadOnly = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV;
  // A mount that the system locked keeps its own flags, which the remount must repeat.
  for (const unsigned long locked : {0UL, static_cast<unsigned long>(MS_NOEXEC), static_cast<unsigned long>(MS_NOATIME),
                                     static_cast<unsigned long>(MS_RELATIME)}) {
    if (mount(nullptr, mount_point.inside.c_str(), nullptr, kReadOnly | locked, nullptr) == 0) return;
  }
  sandbox_failed("read-only mount");
}

void build_root(const SandboxJob& job) {
  std::vector<OpenMount> mounts;
  std::vector<SandboxMount> all = system_mounts();
  all.insert(all.end(), job.mounts.begin(), job.mounts.end());
  for (const SandboxMount& each : all) {
    const int place = open(each.outside.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0) sandbox_failed(each.outside.c_str());
    mounts.push_back({place, each.inside.substr(1), each.writable});
  }
  const int null_device = open("/dev/null", O_PATH | O_CLOEXEC);
  require_zero(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
  require_zero(mount("kvscope", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755"), "new root");
  require_zero(chdir("/tmp"), "new root");
  for (const std::string_view folder : kEmptyFolders) mkdir(std::string(folder.substr(1)).c_str(), 0755);
  const std::string size = "mode=1777,size=" + std::to_string(job.limits.file_bytes);
  require_zero(mount("kvscope", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, size.c_str()), "work folder");
  for (const OpenMount& each : mounts) bind(each);
  bind({null_device, "dev/null", true});
  for (const char* const name : {"bin", "lib", "lib64"}) {
    if (symlink((std::string("usr/") + name).c_str(), name) != 0 && errno != EEXIST) sandbox_failed(name);
  }
  require_zero(syscall(SYS_pivot_root, ".", "."), "pivot_root");
  require_zero(umount2(".", MNT_DETACH), "old root");
  require_zero(mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr),
               "read-only root");
  require_zero(chdir("/tmp"), "work folder");
}

void drop_rights(const std::string& seccomp) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  require_zero(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  require_zero(syscall(SYS_capset, &header, none.data()), "capset");
  if (seccomp.empty()) return;
  sock_fprog program = {static_cast<unsigned short>(seccomp.size() / sizeof(sock_filter)),
                        reinterpret_cast<sock_filter*>(const_cast<char*>(seccomp.data()))};
  require_zero(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

// Ends as the child ended. Signals end process 1 of a namespace only if it handles them, so the command is process 2.
[[noreturn]] void wait_and_end_as(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

std::vector<SandboxMount> system_mounts() {
  std::vector<SandboxMount> mounts;
  for (const char* const folder :
       {"/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/include"}) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) mounts.push_back({folder, folder});
  }
  return mounts;
}

std::string seccomp_program(const SandboxLimits& limits) {
  if (kAuditArchitecture == 0) return {};
  std::string program;
  append(program, statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  append(program, {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kAuditArchitecture});
  append(program, statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  append(program, statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
  append(program, {BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000});  // calls of the x32 ABI
  append(program, statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
#endif
  for (const long call : kBeyondTheSandbox) reject(program, call, EPERM);
  if (!limits.processes) {
    for (const long call : kForks) reject(program, call, EPERM);
    // The flags of clone3 are in memory, which a filter cannot read: the C library calls clone where it is missing.
    reject(program, SYS_clone3, ENOSYS);
    if (limits.threads) {
      append(program, {BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone});
      append(program,
             statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)));  // the lower half of the flags
      append(program, {BPF_JMP | BPF_JSET | BPF_K, 1, 0, kNewThread});
      append(program, statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
      append(program, statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    } else {
      reject(program, SYS_clone, EPERM);
    }
  }
  append(program, statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return program;
}

std::vector<std::string> bubblewrap_command(const SandboxJob& job, int seccomp) {
  std::vector<std::string> arguments{"/usr/bin/bwrap",
                                     "--unshare-all",
                                     "--die-with-parent",
                                     "--clearenv",
                                     "--setenv",
                                     "PATH",
                                     "/usr/bin:/bin",
                                     "--setenv",
                                     "LC_ALL",
                                     "C.UTF-8",
                                     "--uid",
                                     std::to_string(kNobody),
                                     "--gid",
                                     std::to_string(kNobody),
                                     "--hostname",
                                     "sandbox",
                                     "--dev",
                                     "/dev",
                                     "--size",
                                     std::to_string(job.limits.file_bytes),
                                     "--tmpfs",
                                     "/tmp",
                                     "--chdir",
                                     "/tmp",
                                     "--symlink",
                                     "usr/bin",
                                     "/bin",
                                     "--symlink",
                                     "usr/lib",
                                     "/lib",
                                     "--symlink",
                                     "usr/lib64",
                                     "/lib64"};
  const auto add = [&](const SandboxMount& each) {
    arguments.insert(arguments.end(), {each.writable ? "--bind" : "--ro-bind", each.outside.string(), each.inside});
  };
  for (const SandboxMount& each : system_mounts()) add(each);
  for (const SandboxMount& each : job.mounts) add(each);
  arguments.insert(arguments.end(), {"--remount-ro", "/"});
  if (seccomp >= 0) arguments.insert(arguments.end(), {"--seccomp", std::to_string(seccomp)});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), job.command.begin(), job.command.end());
  return arguments;
}

void run_in_namespaces(const SandboxJob& job, const std::string& seccomp) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  require_zero(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS),
               "unshare");
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", std::to_string(kNobody) + " " + std::to_string(user) + " 1");
  write_text("/proc/self/gid_map", std::to_string(kNobody) + " " + std::to_string(group) + " 1");
  const pid_t first = fork();
  if (first < 0) sandbox_failed("fork");
  if (first != 0) wait_and_end_as(first);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  build_root(job);
  const pid_t second = fork();
  if (second < 0) sandbox_failed("fork");
  if (second != 0) wait_and_end_as(second);
  drop_rights(seccomp);
  run_command(job.command, job.limits);
}

void run_command(const std::vector<std::string>& arguments, const SandboxLimits& limits) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const char* const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", nullptr};
  set_limits(limits);  // last: what this program needs itself may be more
  execve(pointers[0], pointers.data(), const_cast<char* const*>(environment));
  sandbox_failed(pointers[0]);
}

void sandbox_failed(const char* what) {
  const int error = errno;
  const std::string message = std::string(kSandboxFailure) + what + ": " + std::strerror(error) + "\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  _exit(kSandboxFailed);
}

}  // namespace kvscope::labs

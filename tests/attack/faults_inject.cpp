// Preloaded into a program (LD_PRELOAD): makes a chosen call of the C library fail, counts the calls, and records what
// the program does to the file system. README.md describes the variables:
//
//   FAULTS_AT=write:ENOSPC:3     the third write() fails with ENOSPC; "3+": the third and every later one
//   FAULTS_UNDER=/tmp/x          count and record only calls on files below this folder (allocations always count)
//   FAULTS_COUNTS=counts.txt     written when the program ends: "write 12"
//   FAULTS_LOG=log.txt           one line per change of the file system, for faults_replay.py
//
// It uses neither the C++ library nor malloc, so that an injected failure never fails inside the injector.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

enum class Call { open, read, write, fsync, close, rename, mkdir, truncate, malloc };
constexpr const char* kCallNames[] = {"open",   "read",  "write",    "fsync", "close",
                                      "rename", "mkdir", "truncate", "malloc"};
constexpr int kCalls = static_cast<int>(sizeof(kCallNames) / sizeof(kCallNames[0]));
constexpr int kShort = -1;      // in place of an errno: only a part of the bytes is transferred
constexpr int kSignals = -100;  // kSignals - 15: SIGTERM is sent, and then the call succeeds

struct ErrorName {
  const char* name;
  int value;
};
constexpr ErrorName kErrors[] = {{"EIO", EIO},
                                 {"ENOSPC", ENOSPC},
                                 {"EINTR", EINTR},
                                 {"EROFS", EROFS},
                                 {"EMFILE", EMFILE},
                                 {"EACCES", EACCES},
                                 {"EDQUOT", EDQUOT},
                                 {"ENOMEM", ENOMEM},
                                 {"EINVAL", EINVAL},
                                 {"ENOSYS", ENOSYS},
                                 {"EOPNOTSUPP", EOPNOTSUPP},
                                 {"EBUSY", EBUSY},
                                 {"SHORT", kShort},
                                 {"SIGINT", kSignals - SIGINT},
                                 {"SIGTERM", kSignals - SIGTERM},
                                 {"SIGHUP", kSignals - SIGHUP},
                                 {"SIGQUIT", kSignals - SIGQUIT},
                                 {"SIGPIPE", kSignals - SIGPIPE},
                                 {"SIGXCPU", kSignals - SIGXCPU},
                                 {"SIGABRT", kSignals - SIGABRT}};

constexpr int kMaxDescriptors = 4096;

bool is_active = false;
int fault_call = -1;  // none
int fault_error = 0;
long fault_number = 0;
bool is_sticky = false;
char under[PATH_MAX];
char counts_file[PATH_MAX];
std::atomic<long> counts[kCalls];
bool is_tracked[kMaxDescriptors];
int log_descriptor = -1;

[[noreturn]] void give_up(const char* message) {
  static_cast<void>(::syscall(SYS_write, 2, message, std::strlen(message)));
  ::_exit(99);
}

template <class F>
F* next(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) give_up("faults_inject: the C library lacks a function that it replaces\n");
  return reinterpret_cast<F*>(found);
}

// The errno of this call, kShort, or 0 if it succeeds.
int fault_of(Call call) {
  if (!is_active) return 0;
  const long number = counts[static_cast<int>(call)].fetch_add(1) + 1;
  if (static_cast<int>(call) != fault_call) return 0;
  if (number != fault_number && !(is_sticky && number > fault_number)) return 0;
  if (fault_error > kSignals) return fault_error;
  ::raise(kSignals - fault_error);
  return 0;
}

// The absolute path of `path` relative to the folder `at`.
void absolute(int at, const char* path, char* out) {
  out[0] = '\0';
  if (path[0] != '/') {
    char link[64];
    if (at == AT_FDCWD) {
      std::strcpy(link, "/proc/self/cwd");
    } else {
      std::snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    }
    const ssize_t length = ::readlink(link, out, PATH_MAX - 1);
    out[length < 0 ? 0 : length] = '\0';
    std::strncat(out, "/", PATH_MAX - std::strlen(out) - 1);
    if (path[0] == '.' && path[1] == '/') path += 2;
  }
  std::strncat(out, path, PATH_MAX - std::strlen(out) - 1);
}

bool counts_path(const char* path) {
  if (!is_active) return false;
  const std::size_t length = std::strlen(under);
  return length == 0 || (std::strncmp(path, under, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}
bool counts_descriptor(int fd) {
  return is_active && fd >= 0 && fd < kMaxDescriptors && is_tracked[fd];
}

void put(const char* text, std::size_t length) {
  while (length > 0) {
    const ssize_t done = ::syscall(SYS_write, log_descriptor, text, length);
    if (done <= 0) give_up("faults_inject: the log cannot be written\n");
    text += done;
    length -= static_cast<std::size_t>(done);
  }
}

void record(const char* format, ...) __attribute__((format(printf, 1, 2)));
void record(const char* format, ...) {
  if (log_descriptor < 0) return;
  char line[3 * PATH_MAX];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  put(line, static_cast<std::size_t>(length));
}

void record_write(int fd, long long offset, const void* bytes, std::size_t count) {
  if (log_descriptor < 0) return;
  record("write %d %lld ", fd, offset);
  char hex[2048];
  const auto* from = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < count;) {
    std::size_t used = 0;
    for (; i < count && used < sizeof hex; ++i) {
      hex[used++] = "0123456789abcdef"[from[i] >> 4];
      hex[used++] = "0123456789abcdef"[from[i] & 15];
    }
    put(hex, used);
  }
  put("\n", 1);
}

int fail(int error) {
  errno = error;
  return -1;
}

int open_at(int at, const char* path, int flags, mode_t mode) {
  static auto* const real = next<int(int, const char*, int, ...)>("openat");
  if (!is_active) return real(at, path, flags, mode);
  char name[PATH_MAX];
  absolute(at, path, name);
  const bool is_counted = counts_path(name);
  if (is_counted) {
    if (const int error = fault_of(Call::open); error > 0) return fail(error);
  }
  const int fd = real(at, path, flags, mode);
  if (fd >= 0 && fd < kMaxDescriptors) is_tracked[fd] = is_counted;
  if (fd >= 0 && is_counted) record("open %d %x %s\n", fd, static_cast<unsigned>(flags), name);
  return fd;
}

int rename_at(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  char a[PATH_MAX], b[PATH_MAX];
  absolute(from_at, from, a);
  absolute(to_at, to, b);
  const bool is_counted = counts_path(a) || counts_path(b);
  if (is_counted) {
    if (const int error = fault_of(Call::rename); error > 0) return fail(error);
  }
  const auto code = static_cast<int>(::syscall(SYS_renameat2, from_at, from, to_at, to, flags));
  constexpr unsigned kExchange = 2;
  if (code == 0 && is_counted) record("%s %s\t%s\n", (flags & kExchange) != 0 ? "exchange" : "rename", a, b);
  return code;
}

void read_fault(const char* spec) {
  char name[32] = "", error[32] = "", number[32] = "";
  if (std::sscanf(spec, "%31[^:]:%31[^:]:%31s", name, error, number) != 3) give_up("faults_inject: bad FAULTS_AT\n");
  for (int i = 0; i < kCalls; ++i) {
    if (std::strcmp(name, kCallNames[i]) == 0) fault_call = i;
  }
  for (const ErrorName& known : kErrors) {
    if (std::strcmp(error, known.name) == 0) fault_error = known.value;
  }
  fault_number = std::strtol(number, nullptr, 10);
  is_sticky = std::strchr(number, '+') != nullptr;
  if (fault_call < 0 || fault_error == 0 || fault_number < 1) give_up("faults_inject: bad FAULTS_AT\n");
}

__attribute__((constructor)) void start() {
  if (const char* const folder = std::getenv("FAULTS_UNDER")) std::strncpy(under, folder, sizeof under - 1);
  if (const char* const file = std::getenv("FAULTS_COUNTS")) std::strncpy(counts_file, file, sizeof counts_file - 1);
  if (const char* const spec = std::getenv("FAULTS_AT")) read_fault(spec);
  if (const char* const file = std::getenv("FAULTS_LOG")) {
    log_descriptor =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (log_descriptor < 0) give_up("faults_inject: FAULTS_LOG cannot be opened\n");
  }
  ::unsetenv("LD_PRELOAD");  // only this process, and none that it starts
  is_active = true;
}

__attribute__((destructor)) void end() {
  if (!is_active || counts_file[0] == '\0') return;
  is_active = false;
  const auto fd =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, counts_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd < 0) give_up("faults_inject: FAULTS_COUNTS cannot be opened\n");
  log_descriptor = fd;
  for (int i = 0; i < kCalls; ++i) record("%s %ld\n", kCallNames[i], counts[i].load());
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(at, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  static auto* const real = next<FILE*(const char*, const char*)>("fopen");
  if (!is_active) return real(path, mode);
  char name[PATH_MAX];
  absolute(AT_FDCWD, path, name);
  const bool is_counted = counts_path(name);
  if (is_counted) {
    if (const int error = fault_of(Call::open); error > 0) {
      errno = error;
      return nullptr;
    }
  }
  FILE* const file = real(path, mode);
  if (file != nullptr && ::fileno(file) < kMaxDescriptors) is_tracked[::fileno(file)] = is_counted;
  return file;
}
FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}

ssize_t read(int fd, void* to, std::size_t count) {
  const int error = counts_descriptor(fd) ? fault_of(Call::read) : 0;
  if (error > 0) return fail(error);
  return ::syscall(SYS_read, fd, to, error == kShort && count > 1 ? count / 2 : count);
}

ssize_t pread64(int fd, void* to, std::size_t count, off64_t offset) {
  const int error = counts_descriptor(fd) ? fault_of(Call::read) : 0;
  if (error > 0) return fail(error);
  return ::syscall(SYS_pread64, fd, to, error == kShort && count > 1 ? count / 2 : count, offset);
}
ssize_t pread(int fd, void* to, std::size_t count, off_t offset) {
  return pread64(fd, to, count, offset);
}

ssize_t write(int fd, const void* bytes, std::size_t count) {
  const bool is_counted = counts_descriptor(fd);
  const int error = is_counted ? fault_of(Call::write) : 0;
  if (error > 0) return fail(error);
  const long long offset = is_counted ? ::lseek(fd, 0, SEEK_CUR) : 0;
  const ssize_t done = ::syscall(SYS_write, fd, bytes, error == kShort && count > 1 ? count / 2 : count);
  if (is_counted && done > 0) record_write(fd, offset, bytes, static_cast<std::size_t>(done));
  return done;
}

ssize_t pwrite64(int fd, const void* bytes, std::size_t count, off64_t offset) {
  const bool is_counted = counts_descriptor(fd);
  const int error = is_counted ? fault_of(Call::write) : 0;
  if (error > 0) return fail(error);
  const ssize_t done = ::syscall(SYS_pwrite64, fd, bytes, error == kShort && count > 1 ? count / 2 : count, offset);
  if (is_counted && done > 0) record_write(fd, offset, bytes, static_cast<std::size_t>(done));
  return done;
}
ssize_t pwrite(int fd, const void* bytes, std::size_t count, off_t offset) {
  return pwrite64(fd, bytes, count, offset);
}

// As several calls of write(), of which each counts.
ssize_t writev(int fd, const iovec* parts, int count) {
  if (!counts_descriptor(fd)) return ::syscall(SYS_writev, fd, parts, count);
  ssize_t all = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len == 0) continue;
    const ssize_t done = write(fd, parts[i].iov_base, parts[i].iov_len);
    if (done < 0) return all > 0 ? all : -1;
    all += done;
    if (static_cast<std::size_t>(done) < parts[i].iov_len) break;
  }
  return all;
}

int fsync(int fd) {
  const bool is_counted = counts_descriptor(fd);
  if (is_counted) {
    if (const int error = fault_of(Call::fsync); error > 0) return fail(error);
    record("fsync %d\n", fd);
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
int fdatasync(int fd) {
  return fsync(fd);
}

int ftruncate64(int fd, off64_t size) {
  const bool is_counted = counts_descriptor(fd);
  if (is_counted) {
    if (const int error = fault_of(Call::truncate); error > 0) return fail(error);
    record("truncate %d %lld\n", fd, static_cast<long long>(size));
  }
  return static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}
int ftruncate(int fd, off_t size) {
  return ftruncate64(fd, size);
}

// A close that reports an error has closed the descriptor, as on Linux.
int close(int fd) {
  const bool is_counted = counts_descriptor(fd);
  if (is_counted) {
    is_tracked[fd] = false;
    record("close %d\n", fd);
  }
  const auto code = static_cast<int>(::syscall(SYS_close, fd));
  const int error = is_counted ? fault_of(Call::close) : 0;
  return error > 0 ? fail(error) : code;
}

int rename(const char* from, const char* to) {
  return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_at, const char* from, int to_at, const char* to) {
  return rename_at(from_at, from, to_at, to, 0);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  return rename_at(from_at, from, to_at, to, flags);
}

int mkdir(const char* path, mode_t mode) {
  char name[PATH_MAX];
  absolute(AT_FDCWD, path, name);
  const bool is_counted = counts_path(name);
  if (is_counted) {
    if (const int error = fault_of(Call::mkdir); error > 0) return fail(error);
  }
  const auto code = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (code == 0 && is_counted) record("mkdir %s\n", name);
  return code;
}

int unlinkat(int at, const char* path, int flags) {
  char name[PATH_MAX];
  absolute(at, path, name);
  const auto code = static_cast<int>(::syscall(SYS_unlinkat, at, path, flags));
  if (code == 0 && counts_path(name)) record("%s %s\n", (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", name);
  return code;
}
int unlink(const char* path) {
  return unlinkat(AT_FDCWD, path, 0);
}
int rmdir(const char* path) {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
int remove(const char* path) {
  struct stat status = {};
  if (::lstat(path, &status) != 0) return -1;
  return S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}

void* malloc(std::size_t bytes) {
  if (fault_of(Call::malloc) > 0) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  if (fault_of(Call::malloc) > 0) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  if (fault_of(Call::malloc) > 0) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (fault_of(Call::malloc) > 0) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return aligned_alloc(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (fault_of(Call::malloc) > 0) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}

}  // extern "C"

#pragma GCC visibility pop

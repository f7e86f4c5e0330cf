#include "apps/common/signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/base/child_group.h"
#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::apps {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGABRT};

std::array<char, 4096> folder_to_remove{};

// Only async-signal-safe calls: _Fork and exec instead of a walk through the folder.
void remove_registered_folder() {
  if (folder_to_remove[0] == '\0') return;
  const pid_t child = _Fork();
  if (child == 0) {
    execl("/bin/rm", "rm", "-rf", "--", folder_to_remove.data(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

void stop(int signal) {
  clean_up();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void clean_up() {
  kill_child_groups();
  remove_registered_folder();
  remove_pending_files();
}

sigset_t signals_that_clean_up() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  sigaddset(&set, SIGALRM);
  return set;
}

void clean_up_on_signals() {
  // A write past the limit of the file size then fails with EFBIG, which becomes a message.
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = stop;
  action.sa_mask = signals_that_clean_up();  // a second signal is delivered after the cleanup
  for (const int signal : kSignals) {
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

void remove_folder_on_signals(const std::filesystem::path& folder) {
  const std::string& path = folder.native();
  KVSCOPE_ASSERT(path.size() < folder_to_remove.size());
  const SignalsDelayed delayed;
  std::memcpy(folder_to_remove.data(), path.c_str(), path.size() + 1);
}

SignalsDelayed::SignalsDelayed() {
  const sigset_t set = signals_that_clean_up();
  sigprocmask(SIG_BLOCK, &set, &before_);
}

SignalsDelayed::~SignalsDelayed() {
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void SignalsDelayed::undo_in_child() const {
  for (const int signal : kSignals) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
  }
  std::signal(SIGXFSZ, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace kvscope::apps

// On SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU and SIGABRT: kills the commands that were started
// (core/base/child_group.h), removes half-written files and the temporary folder, then lets the signal take its default
// action. SIGXFSZ is ignored: the write that exceeds the limit fails with the system's words instead.
#pragma once

#include <signal.h>

#include <filesystem>

namespace kvscope::apps {

// Call once, before any file is written. A signal that is ignored already (nohup) stays ignored.
void clean_up_on_signals();

// The cleanup before the program ends, by one of these signals or by its time limit (SIGALRM). Async-signal-safe.
void clean_up();

// Those signals and SIGALRM. A handler that calls clean_up() blocks all of them, so that a second one comes afterwards.
[[nodiscard]] sigset_t signals_that_clean_up();

// A folder that a signal removes too: one at a time, of at most 4095 bytes. The empty path: none.
void remove_folder_on_signals(const std::filesystem::path& folder);

// Delays these signals and SIGALRM while it exists, so that what was just started or created is registered first.
class SignalsDelayed {
 public:
  SignalsDelayed();
  SignalsDelayed(const SignalsDelayed&) = delete;
  SignalsDelayed& operator=(const SignalsDelayed&) = delete;
  ~SignalsDelayed();
  // In a child process, before exec: default actions, and the mask from before.
  void undo_in_child() const;

 private:
  sigset_t before_;
};

}  // namespace kvscope::apps

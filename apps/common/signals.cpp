#include "apps/common/signals.h"

#include <csignal>

#include "core/base/file.h"

namespace kvscope::apps {
namespace {

void stop(int signal) {
  remove_pending_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void clean_up_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(signal, stop) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

}  // namespace kvscope::apps

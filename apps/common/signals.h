// On SIGINT, SIGTERM and SIGHUP: removes half-written files, then lets the signal take its default action.
#pragma once

namespace kvscope::apps {

// Call once, before any file is written. A signal that is ignored already (nohup) stays ignored.
void clean_up_on_signals();

}  // namespace kvscope::apps

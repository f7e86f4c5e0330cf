// Interrupted, hung up or told to stop: half-written files go, then the signal does what it always does.
#pragma once

namespace kvscope::apps {

// Once, before anything is written. A signal that is ignored already (nohup) stays ignored.
void clean_up_on_signals();

}  // namespace kvscope::apps

// The commands of `kvscope`, one function and one file each. `add_x` puts a subcommand on `app`; when a person chose
// it, parsing leaves in `chosen` what is to be done. Nothing runs while the line is still being parsed, so a fault in a
// later argument never leaves half a run behind.
//
// An action returns 0 (fine) or 1 (the check it was asked for failed), and throws for bad input: main prints every
// fault and exits 2. Results go to standard output, progress and faults to standard error.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace kvscope::apps {

using Action = std::function<int()>;

void add_layout(CLI::App& app, Action& chosen);  // layout EXPR [--json] [--all]
void add_dtype(CLI::App& app, Action& chosen);   // dtype IN.npy OUT.npy --from TYPE --to TYPE [--no-saturate]
void add_completion(CLI::App& app,
                    Action& chosen);  // completion bash|zsh|fish; reads the commands added before and after

}  // namespace kvscope::apps

// The commands of `kvscope`, one function and one file each. `add_x` adds a subcommand to `app`; when it is
// selected, parsing stores its action in `chosen`. No action runs during parsing, so a fault in a later argument never
// leaves a partial run.
//
// An action returns 0 (success) or 1 (a check failed), and throws for invalid input: main prints every fault and exits
// with 2. Results go to standard output, progress and faults to standard error.
#pragma once

#include <functional>
#include <memory>

namespace CLI {
class App;
}

namespace kvscope::apps {

using Action = std::function<int()>;

// main.cpp groups them, in the order of --help.
void add_run(CLI::App& app, Action& chosen);      // run SCENARIO [--requests FILE] [--out DIR] [--trace ...]
void add_explain(CLI::App& app, Action& chosen);  // explain SCENARIO --seq N --token N [--layer ...] [--json]
void add_stage(CLI::App& app, Action& chosen);    // stage SCENARIO --tile N [--path tma|lds] --out IMAGE
void add_golden(CLI::App& app, Action& chosen);   // golden SCENARIO | --input TENSORS --layout NAME, --out BUNDLE
void add_import(CLI::App& app,
                Action& chosen);               // import DUMP --out FILE [--candidate FILE] [--call NAME] [--uuid UUID]
void add_lint(CLI::App& app, Action& chosen);  // lint FILE [--layout NAME] [--vector-read N] [--tma] [--json]
void add_verify(CLI::App& app, Action& chosen);    // verify BUNDLE CANDIDATE [--profile NAME] [--json] [--junit FILE]
void add_diagnose(CLI::App& app, Action& chosen);  // diagnose GOLDEN CANDIDATE [--input TENSORS] [--json]
void add_reduce(CLI::App& app, Action& chosen);    // reduce GOLDEN [CANDIDATE] [--command COMMAND] [--out FILE]
void add_merge(CLI::App& app, Action& chosen);     // merge PART PART... --out BUNDLE
void add_trace(CLI::App& app, Action& chosen);     // trace show FILE [--step N], trace diff A B [--tile N]
void add_scenario(CLI::App& app, Action& chosen);  // scenario check FILE, scenario schema, scenario presets
void add_tma(CLI::App& app, Action& chosen);       // tma check MAP, copy MAP, gather4 MAP, engines SCENARIO
void add_tma_barrier(CLI::App& tma, Action& chosen);      // tma barrier expect:N arrive complete:N ..., beside them
void add_swizzle(CLI::App& app, Action& chosen);          // swizzle table SWIZZLE, swizzle solve --rows N ...
void add_lds(CLI::App& app, Action& chosen);              // lds table SCENARIO [--what ...]
void add_lds_schedule(CLI::App& lds, Action& chosen);     // lds schedule SCENARIO [--without STEP], beside lds table
void add_fragment(CLI::App& app, Action& chosen);         // fragment list, fragment table NAME
void add_ptx(CLI::App& app, Action& chosen);              // ptx run|survey|disasm FILE
void add_cuda(CLI::App& app, Action& chosen);             // cuda PROGRAM [ARGUMENT...]
void add_nvcc(CLI::App& app, Action& chosen);             // nvcc ARGUMENT...
void add_kernels(CLI::App& app, Action& chosen);          // kernels list, verify [--device virtual|cuda], bench
void add_convert(CLI::App& app, Action& chosen);          // convert FILE --from LAYOUT --to LAYOUT --out FILE
void add_layout(CLI::App& app, Action& chosen);           // layout EXPR [--json] [--all]
void add_layout_files(CLI::App& layout, Action& chosen);  // layout list|show|detect|diff, beside it
void add_dtype(CLI::App& app, Action& chosen);            // dtype IN.npy OUT.npy --from TYPE --to TYPE [--no-saturate]
void add_lab(CLI::App& app, Action& chosen);              // lab list|start|check|hint|pack|grade|report
void add_completion(CLI::App& app, Action& chosen);       // completion bash|zsh|fish, of all the commands here

// After the commands: adds --timeout to each command without subcommands. Returns the limit, 0 without one.
[[nodiscard]] std::shared_ptr<double> add_timeout_option(CLI::App& app);

}  // namespace kvscope::apps

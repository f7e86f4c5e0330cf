// kvscope reduce GOLDEN [CANDIDATE] [--command ...]: the smallest case that still fails, as one file for a bug report.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/common/bundle_input.h"
#include "apps/common/cli.h"
#include "apps/common/diagnosis_inputs.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/progress.h"
#include "apps/common/scratch_folder.h"
#include "apps/common/shell_command.h"
#include "apps/common/written_files.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/rounding_options.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/shell_words.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/reduce/reduce.h"
#include "core/golden/verdict/output_names.h"

namespace kvscope::apps {
namespace {

constexpr const char* kReduceProducer = "kvscope " KVSCOPE_VERSION;

struct ReduceCommand {
  std::string golden;
  std::optional<std::string> candidate, input, shell, out;
  std::int64_t max_runs = 200;
  double time_limit = 60;
  golden::StatedRounding rounding;
  bool json = false;
};

std::string filled_in(std::string command, std::string_view placeholder, const std::string& text) {
  for (std::size_t at = command.find(placeholder); at != std::string::npos; at = command.find(placeholder, at)) {
    command.replace(at, placeholder.size(), text);
    at += text.size();
  }
  return command;
}

// "IndexError: ...": the last line that the command printed.
std::string last_line(std::string output) {
  while (!output.empty() && (output.back() == '\n' || output.back() == ' ')) output.pop_back();
  const std::size_t newline = output.rfind('\n');
  return newline == std::string::npos ? output : output.substr(newline + 1);
}

golden::KernelRun run_once(const ReduceCommand& command, const golden::Bundle& inputs, const ScratchFolder& folder,
                           const std::string& inputs_ending, const std::string& candidate_ending) {
  using End = golden::KernelRun::End;
  const std::filesystem::path from = folder / ("inputs" + inputs_ending),
                              to = folder / ("candidate" + candidate_ending);
  std::filesystem::remove(to);
  golden::save_bundle(from, inputs);
  const std::string line = filled_in(filled_in(*command.shell, "{inputs}", shell_quoted(from.string())), "{candidate}",
                                     shell_quoted(to.string()));
  const CommandEnd end = run_shell(line, command.time_limit, folder / "log");
  golden::KernelRun run;
  const std::string said = last_line(end.output);
  const auto with_output = [&](std::string words) { return said.empty() ? words : words + ": " + said; };
  if (end.timed_out) {
    run.end = End::time_limit;
    run.words = fmt::format("killed at the time limit of {:g} s", command.time_limit);
  } else if (end.signal != 0 || end.exit_code > 128) {  // a shell reports a child's signal N as 128 + N
    run.end = End::signal;
    run.code = end.signal != 0 ? end.signal : end.exit_code - 128;
    run.words = with_output(fmt::format("killed by signal {} ({})", run.code, strsignal(run.code)));
  } else if (end.exit_code != 0) {
    run.end = End::exit_code;
    run.code = end.exit_code;
    run.words = with_output(fmt::format("exit code {}", end.exit_code));
  } else if (!std::filesystem::exists(to)) {
    run.end = End::unusable;
    run.words = with_output("the command did not write the file {candidate}");
  } else {
    try {
      run.candidate = golden::load_bundle(to);
      if (candidate_ending == ".npy") {  // one tensor, which is called as the file is
        auto tensor = run.candidate.tensors.extract(run.candidate.tensors.begin());
        tensor.key() = "o";
        run.candidate.tensors.insert(std::move(tensor));
      }
    } catch (const InputError& error) {
      run.end = End::unusable;
      run.words = fault_lines(error).front();
    }
  }
  return run;
}

// A shell ends with 126 or 127 if it cannot start a program. Every smaller case would "fail in the same way".
void check_command_started(const golden::KernelRun& run) {
  constexpr int kNotExecutable = 126, kNotFound = 127;
  if (run.end != golden::KernelRun::End::exit_code || (run.code != kNotExecutable && run.code != kNotFound)) return;
  throw InputError(
      "command line", "--command",
      fmt::format("cannot be run: {}. Try it in a shell, in this folder, with the files of the whole case", run.words));
}

int run(const ReduceCommand& command) {
  if (command.max_runs < 1) {
    throw InputError("command line", "--max-runs", fmt::format("{}: give at least 1", command.max_runs));
  }
  if (!(command.time_limit > 0 && command.time_limit < 1e6)) {
    throw InputError("command line", "--time-limit", fmt::format("{} s is outside (0, 1e6)", command.time_limit));
  }
  if (!command.candidate && !command.shell) {
    throw InputError("command line", "CANDIDATE", "is required without --command: it is the output that is cut");
  }
  if (command.shell && (command.shell->find("{inputs}") == std::string::npos ||
                        command.shell->find("{candidate}") == std::string::npos)) {
    throw InputError("command line", "--command",
                     "needs the words {inputs} and {candidate}: the file that the kernel reads, and the one that it "
                     "writes");
  }
  golden::Bundle golden_bundle, candidate;
  if (command.candidate) {
    GoldenAndCandidate both = load_both(command.golden, *command.candidate);
    golden_bundle = std::move(both.golden);
    candidate = std::move(both.candidate);
  } else {
    golden_bundle = open_bundle(command.golden);
    golden::check_has_answer(golden_bundle, command.golden, "CANDIDATE");
  }
  const std::string named = required_inputs(golden_bundle, command.golden, command.input);
  const std::string inputs_name = named.empty() ? command.golden : named;
  const golden::LayoutOptions options = golden::layout_options_of(golden_bundle, command.golden);
  const golden::Bundle inputs = named.empty() ? golden::without_answer(std::move(golden_bundle)) : open_bundle(named);
  const std::string ending = std::filesystem::path(inputs_name).extension().string();
  const std::string out = command.out.value_or("reduced" + ending);
  golden::check_bundle_name(out);
  for (const std::string& input : {inputs_name, command.golden, command.candidate.value_or("")}) {
    if (!input.empty() && is_same_file(out, input)) {
      throw InputError("command line", "--out",
                       fmt::format("'{}' is read by this command, and would be replaced: pass another file", out));
    }
  }
  if (std::filesystem::path(out).extension() == ".npy") {
    throw InputError("command line", "--out", "'.npy' holds one tensor: pass a .npz or .safetensors file");
  }

  golden::ReduceInput input{inputs,
                            options,
                            inputs_name,
                            command.candidate ? &candidate : nullptr,
                            command.candidate.value_or(""),
                            {},
                            command.rounding,
                            command.max_runs};
  std::optional<ScratchFolder> folder;
  std::optional<Progress> progress;
  std::int64_t runs = 0;
  if (command.shell) {
    folder.emplace(std::filesystem::temp_directory_path() / "kvscope_reduce_");
    progress.emplace("runs of the command");
    const std::string candidate_ending =
        command.candidate ? std::filesystem::path(*command.candidate).extension().string() : ending;
    input.run = [&, candidate_ending](const golden::Bundle& slice) {
      progress->show(runs++, command.max_runs);
      golden::KernelRun run = run_once(command, slice, *folder, ending, candidate_ending);
      if (runs == 1) check_command_started(run);
      return run;
    };
  }
  golden::ReduceResult result = golden::reduce(input, kReduceProducer);
  progress.reset();
  if (command.shell) {
    json::Value reduced = *result.bundle.manifest.find("reduced");
    reduced.set("command", *command.shell);
    result.bundle.manifest.set("reduced", std::move(reduced));
  }
  golden::save_bundle(out, result.bundle);

  const std::string made = golden::golden_name_of(out);
  const bool has_output = result.bundle.tensors.contains("o");
  if (command.json) {
    json::Value report;
    report.set("file", out);
    report.set("from", golden::sizes_text(result.from));
    report.set("to", golden::sizes_text(result.to));
    report.set("failure", result.failure);
    report.set("runs", result.runs);
    report.set("rejected", result.rejected);
    report.set("stopped", result.stopped);
    report.set("notes", json::strings(result.notes));
    std::cout << json::dump(report) << "\n";
    return kExitFine;
  }
  std::cout << fmt::format("reduced    {}: {}\n", out, golden::reduction_text(result.from, result.to));
  std::cout << fmt::format("from       {}\nto         {}\n", golden::sizes_text(result.from),
                           golden::sizes_text(result.to));
  std::cout << fmt::format("failure    {}\n", result.failure);
  std::cout << fmt::format("tried      {} {}, of which {} did not fail in the same way{}\n", result.runs,
                           command.shell ? "runs of the command" : "parts of the candidate", result.rejected,
                           result.stopped ? "; stopped at --max-runs, a smaller case may exist" : "");
  for (const std::string& note : result.notes) std::cout << "note: " << note << "\n";
  std::cout << fmt::format("check      kvscope golden --input {} --out {}\n", out, made);
  if (has_output) std::cout << fmt::format("           kvscope verify {} {}\n", made, out);
  return kExitFine;
}

}  // namespace

void add_reduce(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ReduceCommand>();
  CLI::App* reduce =
      app.add_subcommand("reduce", "Make a failing case small, and write it as one file for a bug report");
  reduce->add_option("GOLDEN", command->golden, "Golden bundle, written by kvscope golden")->required();
  reduce->add_option("CANDIDATE", command->candidate,
                     "The kernel's output (.safetensors, .npz, .npy); may be left out with --command. If it is "
                     "given, the command must give a wrong output too");
  CLI::Option* shell =
      reduce
          ->add_option(
              "--command", command->shell,
              "Shell command that runs the kernel: {inputs} is replaced by the file to read, {candidate} by the "
              "file to write. Without it, only sequences, queries and heads of CANDIDATE are cut")
          ->type_name("COMMAND");
  reduce->add_option("--out", command->out, "File to write [default: reduced, with the extension of the inputs]")
      ->type_name("FILE")
      ->check(writes_file());
  reduce
      ->add_option("--input", command->input,
                   "Tensors that the golden output was computed from [default: the file that its manifest names]")
      ->type_name("FILE");
  reduce->add_option("--max-runs", command->max_runs, "Most runs of the command")->capture_default_str();
  reduce->add_option("--time-limit", command->time_limit, "Seconds after which a run is killed")
      ->needs(shell)
      ->capture_default_str();
  add_rounding_options(*reduce, command->rounding);
  reduce->add_flag("--json", command->json, "Print the report as JSON");
  add_help_section(*reduce, "Runs of the command that end without an output",
                   {"If the whole case ends with an exit code, a signal, at the time limit or without a readable",
                    "output, a smaller case must end in the same way. If the whole case gives a wrong output, a",
                    "smaller case that ends in another way is not used: a kernel that cannot run some size keeps it."});
  add_examples(*reduce,
               {"kvscope import apps/examples/flashinfer_log --out inputs.npz",
                "kvscope golden --input inputs.npz --out golden.npz",
                "kvscope reduce golden.npz --command 'python3 apps/examples/faulty_kernel.py {inputs} {candidate}'"});
  reduce->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps

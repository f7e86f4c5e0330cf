// kvscope import DUMP: reads the tensors that an engine wrote to disk as inputs for kvscope golden --input.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/bundle_input.h"
#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/base/report.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/dumps/dump.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"

namespace kvscope::apps {
namespace {

constexpr const char* kImportProducer = "kvscope " KVSCOPE_VERSION;
constexpr const char* kOfFlashInfer = "Options with a folder of FlashInfer's log";
constexpr const char* kOfBench = "Options with workloads of flashinfer-bench";

struct ImportCommand {
  std::string source, out;
  std::optional<std::string> candidate;
  golden::FlashInferDumpOptions dump;
  golden::FlashInferBenchOptions bench;
  std::vector<std::string> only_dump, only_bench;  // options given; filled while parsing
};

golden::ImportedDump read_source(const ImportCommand& command) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(command.source, error);
  if (!folder && !command.source.ends_with(".jsonl")) {
    if (command.source.ends_with(".pt")) static_cast<void>(open_bundle(command.source));  // throws the advice
    throw InputError(command.source, "",
                     "is neither a folder of FlashInfer's log nor a .jsonl file with workloads of flashinfer-bench; "
                     "kvscope golden --input reads .safetensors and .npz files");
  }
  std::vector<Fault> faults;
  for (const std::string& option : folder ? command.only_bench : command.only_dump) {
    faults.push_back({option, fmt::format("applies only to {}", folder ? "a .jsonl file of flashinfer-bench"
                                                                       : "a folder of FlashInfer's log")});
  }
  if (!faults.empty()) throw InputError("command line", faults);
  return folder ? golden::read_flashinfer_dump(command.source, command.dump)
                : golden::read_flashinfer_bench(command.source, command.bench);
}

int run(const ImportCommand& command) {
  golden::check_bundle_name(command.out);
  if (command.candidate) golden::check_bundle_name(*command.candidate);
  const golden::ImportedDump dump = read_source(command);
  const golden::PreparedProblem prepared = golden::prepare_problem(dump.tensors, dump.options, command.source);
  if (command.candidate && !dump.candidate) {
    throw InputError(command.source, "--candidate", "the dump has no output of the engine: remove the option");
  }
  golden::save_bundle(command.out, golden::inputs_bundle(dump.tensors, prepared, dump.options, kImportProducer));
  if (command.candidate) golden::save_bundle(*command.candidate, *dump.candidate);
  const attention::Problem& problem = prepared.problem;
  std::int64_t keys = 0;
  for (const std::int64_t length : problem.key_lengths) keys += length;
  std::cout << fmt::format(
      "inputs     {}: {}, layout {}, {}, {}, {}, {} on {}, head size {}\n", command.out, dump.what, dump.options.layout,
      counted(problem.batch, "sequence"), counted(problem.total_queries(), "query", "queries"), counted(keys, "key"),
      counted(problem.query_heads, "query head"), counted(problem.k.heads, "KV head"), problem.k.head_size);
  std::cout << "convention" << golden::conventions_text(problem.options) << "\n";
  if (command.candidate) std::cout << fmt::format("candidate  {}: the engine's output\n", *command.candidate);
  for (const std::string& note : dump.notes) std::cout << "note: " << note << "\n";
  for (const std::string& warning : prepared.warnings) std::cerr << "kvscope: warning: " << warning << "\n";
  std::cout << fmt::format("next       kvscope golden --input {} --out {}\n", command.out,
                           golden::golden_name_of(command.out));
  return kExitFine;
}

}  // namespace

void add_import(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ImportCommand>();
  CLI::App* importer = app.add_subcommand(
      "import", "Read tensors that FlashInfer logged, or a workload of flashinfer-bench, as inputs for kvscope golden");
  importer
      ->add_option(
          "DUMP", command->source,
          "Folder of FlashInfer's log (FLASHINFER_LOGLEVEL=10, with FLASHINFER_DUMP_SAFETENSORS=1), of one call "
          "or of several; or a .jsonl file with workloads of flashinfer-bench")
      ->required();
  importer->add_option("--out", command->out, "Bundle of inputs to write (.safetensors, .npz)")
      ->required()
      ->type_name("FILE")
      ->check(writes_file());
  importer->add_option("--candidate", command->candidate, "Also write the engine's own output, for kvscope verify")
      ->type_name("FILE")
      ->check(writes_file())
      ->group(kOfFlashInfer);
  importer->add_option("--call", command->dump.call, "Folder of the call to read, if there are several")
      ->type_name("NAME")
      ->group(kOfFlashInfer);
  importer
      ->add_option("--kv-layout", command->dump.kv_layout,
                   "Order of the cache's axes [default: as the dump of the wrapper's constructor states, or by shape]")
      ->check(CLI::IsMember(std::vector<std::string>{"NHD", "HND"}))
      ->group(kOfFlashInfer);
  importer->add_option("--uuid", command->bench.uuid, "The workload to read, if there are several")
      ->type_name("UUID")
      ->group(kOfBench);
  importer
      ->add_option("--definition", command->bench.definition,
                   "The definition (.json) [default: definitions/OP/NAME.json beside the folder workloads]")
      ->type_name("FILE")
      ->group(kOfBench);
  importer->add_option("--seed", command->bench.seed, "Seed of the inputs that the workload calls random")
      ->capture_default_str()
      ->group(kOfBench);
  add_examples(
      *importer,
      {"kvscope import apps/examples/flashinfer_log --out inputs.safetensors --candidate engine.safetensors",
       "kvscope import apps/examples/flashinfer_bench/workloads/gqa_paged/gqa_small.jsonl --uuid one --out one.npz"});
  importer->callback([command, importer, &chosen] {
    for (const CLI::Option* option : importer->get_options()) {
      if (option->count() == 0) continue;
      if (option->get_group() == kOfFlashInfer) command->only_dump.push_back(option->get_name());
      if (option->get_group() == kOfBench) command->only_bench.push_back(option->get_name());
    }
    chosen = [command] { return run(*command); };
  });
}

}  // namespace kvscope::apps

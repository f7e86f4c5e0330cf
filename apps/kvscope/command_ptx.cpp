// kvscope ptx survey | disasm FILE: counts the instructions of a PTX file, or prints the parsed file as PTX.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/kvscope/ptx_launch.h"
#include "apps/kvscope/ptx_policy.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/numbers.h"
#include "core/base/report.h"
#include "gpu/virtual/check/check_names.h"
#include "gpu/virtual/isa/survey.h"
#include "gpu/virtual/machine/cta_sample.h"
#include "gpu/virtual/machine/launch_parts.h"
#include "gpu/virtual/text/parser.h"
#include "gpu/virtual/text/print.h"

namespace kvscope::apps {

ptx::Module read_ptx(const std::string& path) {
  std::string text = read_file(path, kMostPtxBytes);
  if (path.ends_with(".cu")) throw InputError(path, "", "is CUDA source: compile it to PTX with nvcc -ptx -lineinfo");
  if (text.starts_with("\x7f"
                       "ELF")) {
    throw InputError(
        path, "",
        fmt::format("is a compiled program or library (ELF), not PTX: run a program with `kvscope cuda {}`, "
                    "or compile its source with nvcc -ptx -lineinfo",
                    path.find('/') == std::string::npos ? "./" + path : path));
  }
  return ptx::parse_module(std::move(text), path);
}

namespace {

constexpr const char* kFileHelp = "PTX file, as nvcc -ptx writes it; compile with -lineinfo to see source lines";
constexpr const char* kTargetHelp =
    "Compute capability of the virtual GPU: 90 for sm_90a, 100 for sm_100a [default: that of the file, or 90 if that "
    "is higher]";

}  // namespace

void add_kernel_limit_options(CLI::App& command, ptx::LaunchLimits& limits, std::int64_t& memory) {
  const auto limit = [&](const char* name, std::int64_t& value, const char* help, const char* type = "N") {
    add_limit_option(command, name, value, help, type);
  };
  limit("--max-instructions", limits.instructions, "Stop after N warp instructions");
  limit("--max-memory", memory, "Device memory: arrays, variables and malloc blocks together", "BYTES");
  limit("--max-local", limits.local_bytes, "Local memory of all threads that have started", "BYTES");
  limit("--max-printed", limits.printed_bytes, "Output of printf", "BYTES");
  limit("--max-heap", limits.heap_bytes, "Malloc blocks of a kernel; past it malloc returns 0", "BYTES");
  limit("--max-mallocs", limits.heap_blocks, "Calls of malloc that return a block");
  limit("--max-copies", limits.copies, "Asynchronous copies and their groups in flight, per CTA");
}

void add_launch_options(CLI::App& command, LaunchRequest& request) {
  command.add_option("FILE", request.path, kFileHelp)->required();
  command
      .add_option("--entry", request.entry,
                  "Kernel to run, by its name in PTX or C++, such as ns::decode<64>, or the beginning of one "
                  "[default: the only kernel of the file]")
      ->type_name("NAME");
  const auto extents = [&](const char* name, std::vector<std::int64_t>& value, const char* help, NumbersRange range) {
    add_numbers<std::int64_t>(command, name, value, help, range)->type_name("X[,Y[,Z]]");
  };
  extents("--grid", request.grid, "CTAs of the grid, such as 4 or 4,2 [default: 1]", {.most = 3});
  extents("--block", request.block, "Threads of a CTA, such as 64 or 32,4 [default: 1]", {.most = 3});
  extents("--cluster", request.cluster, "CTAs of a cluster [default: no clusters]", {.most = 3, .least = 1});
  command.add_option("--smem", request.shared, "Dynamic shared memory of a CTA")
      ->type_name("BYTES")
      ->capture_default_str();
  command
      .add_option("--arg", request.args,
                  "Value of the next kernel parameter, or of a named one or a field: NAME=VALUE, NAME.FIELD=VALUE; see "
                  "below")
      ->type_name("VALUE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--struct", request.structs,
          "Definition of a struct that the kernel takes by value, for its fields: a C header or a .json layout, "
          "such as 0=params.h:Params; may be repeated [default: from debug information, nvcc -G]")
      ->type_name("NAME=FILE[:TYPE]")
      ->allow_extra_args(false);
  command.add_option("--policy", request.policy, kPolicyHelp)->type_name("POLICY")->capture_default_str();
  command.add_option("--target", request.target, kTargetHelp)->check(at_least(1))->type_name("N");
  add_sum_option(command, request.sum);
  command.add_option("--ctas", request.ctas, std::string(ptx::kCtasHelp))->type_name("LIST");
  command.add_flag("--cooperative", request.cooperative, "Start all CTAs together, as a cooperative launch does");
  command.add_flag("--contract", request.contract,
                   "Fuse a product and a sum into one fma where the assembler does, so that the last bit is as on "
                   "hardware");
  command.add_flag("--strict", request.strict,
                   "Reject a file with unsupported instructions, even if the kernel does not execute them");
  add_kernel_limit_options(command, request.limits, request.max_memory);
  add_limit_option(command, "--max-ctas", request.limits.cooperative_ctas, "CTAs of a cooperative launch", "N");
}

void add_argument_help(CLI::App& command) {
  add_help_section(
      command, "Values of --arg",
      {"42, -1, 0x10, 1.5           a number that fits the type of the parameter",
       "x.npy                       a pointer to a copy of the file's array",
       "w.npz:NAME                  a pointer to a copy of one tensor of the file; also w.safetensors:NAME",
       "f32[64], u8[4,16]           a pointer to a new array whose elements are not initialized",
       "@2, @2+64, @p.q+0x40        a pointer into an array given before, plus bytes",
       "null                        the pointer 0",
       "map:k.json@2                a tensor map (see kvscope tma check) over the array of parameter 2, from 0",
       "map:k.json@x.npy            a tensor map over a new array, which only the map points to; also @f32[64,64]",
       "map:k.json                  a tensor map whose base is a device address",
       "@params.json                a struct: {\"fields\": {\"n\": 64}, \"at\": {\"16\": \"@0+32\"}, \"hex\": "
       "\"00ff...\"}"});
  add_help_section(command, "Names of --arg",
                   {"2=VALUE                     parameter 2, from 0",
                    "n=VALUE                     the parameter n of the source, if the file has debug information",
                    "p.in[1].page=VALUE          a field of the struct p; fields that are not set are 0"});
}

void add_limit_option(CLI::App& command, const char* name, std::int64_t& value, const char* help, const char* type,
                      LimitRange range) {
  command.add_option(name, value, help)
      ->type_name(type)
      ->capture_default_str()
      ->check(CLI::Validator(
          [range](const std::string& text) {
            const auto number = whole_number<std::int64_t>(text);
            if (number && *number >= range.least && *number <= range.most) return std::string();
            const bool open = range.most == std::numeric_limits<std::int64_t>::max();
            return fmt::format("'{}' is not a whole number from {} to {}", text, range.least,
                               open ? "2^63 - 1" : std::to_string(range.most));
          },
          ""))
      ->group("Limits");
}

void add_check_option(CLI::App& command, std::vector<std::string>& names) {
  command
      .add_option("--check", names,
                  "Comma-separated checks; all is " + ptx::checks_in_all() +
                      "; docs/15_virtual_gpu.md describes each "
                      "[default: all]")
      ->type_name("CHECK,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(ptx::check_names()));
}

void add_sum_option(CLI::App& command, std::string& sum) {
  command
      .add_option(
          "--sum", sum,
          "How matrix instructions add products. seq: one after the other, each sum rounded; exact: all, rounded "
          "once; hopper: aligned and truncated, with the bits of an H100 where it was measured")
      ->check(CLI::IsMember(std::vector<std::string>(ptx::kSumNames.begin(), ptx::kSumNames.end())))
      ->capture_default_str();
}

void add_jobs_option(CLI::App& command, std::int64_t& jobs) {
  command
      .add_option("--jobs", jobs,
                  "Run CTAs that cannot see one another on N threads. Reports, counters and outputs are those of one "
                  "thread; a launch that needs one thread says why")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, ptx::kMostJobs))
      ->capture_default_str();
}

namespace {

struct SurveyCommand {
  std::string path;
  std::optional<int> target;  // none: that of the file (ptx::target_for)
  bool json = false;
  bool words = false;
};

json::Value survey_json(const ptx::Survey& survey) {
  json::Value out;
  out.set("statements", survey.statements);
  json::Array words, unsupported, kernels;
  for (const ptx::WordUse& use : survey.words) {
    json::Value word;
    word.set("word", use.word);
    word.set("count", use.count);
    if (!use.unsupported.empty()) word.set("unsupported", use.unsupported);
    words.push_back(std::move(word));
  }
  for (const ptx::UnsupportedUse& use : survey.unsupported) {
    json::Value place;
    place.set("word", use.word);
    place.set("message", use.message);
    place.set("function", use.function);
    place.set("line", static_cast<std::int64_t>(use.at.line));
    place.set("column", static_cast<std::int64_t>(use.at.column));
    unsupported.push_back(std::move(place));
  }
  for (const ptx::KernelSurvey& kernel : survey.kernels) {
    json::Value k;
    k.set("name", kernel.name);
    k.set("statements", kernel.statements);
    k.set("can_run", kernel.can_run());
    kernels.push_back(std::move(k));
  }
  out.set("kernels", std::move(kernels));
  out.set("unsupported", std::move(unsupported));
  out.set("words", std::move(words));
  out.set("contraction_pairs", static_cast<std::int64_t>(survey.contraction.size()));
  return out;
}

int show_survey(const SurveyCommand& command) {
  const ptx::Module module = read_ptx(command.path);
  const ptx::Decoded decoded = ptx::decode(module, command.target.value_or(ptx::target_for(module)));
  const ptx::Survey survey = ptx::survey(module, decoded);
  if (command.json) {
    std::cout << json::dump(survey_json(survey)) << '\n';
    return kExitFine;
  }
  std::cout << fmt::format(
      "file        {}: PTX {}.{} for sm_{}{}, {}, {} on {}\n", command.path, module.version / 10, module.version % 10,
      module.target, module.target_suffix != 0 ? std::string(1, module.target_suffix) : "",
      counted(survey.statements, "instruction"), counted(std::ssize(survey.words), "distinct opcode"),
      counted(std::ssize(survey.bases), "base name"));
  for (const ptx::KernelSurvey& kernel : survey.kernels) {
    std::cout << fmt::format(
        "kernel      {}: {}, {}\n", kernel.name, counted(kernel.statements, "instruction"),
        kernel.can_run() ? "all of them can run" : fmt::format("{} cannot run", kernel.unsupported.size()));
  }
  for (const ptx::UnsupportedUse& use : survey.unsupported) {
    std::cout << fmt::format("missing     {}:{}:{} '{}' in {}: {}\n", command.path, use.at.line, use.at.column,
                             use.word, use.function, use.message);
  }
  if (!survey.contraction.empty()) {
    std::cout << fmt::format("contraction {} products and sums that hardware rounds once and this machine twice\n",
                             survey.contraction.size());
  }
  std::cout << "\n";
  for (const ptx::WordUse& use : command.words ? survey.words : survey.bases) {
    std::cout << fmt::format("{:>8}  {}{}\n", use.count, use.word,
                             use.unsupported.empty() ? "" : "   cannot run: " + use.unsupported);
  }
  return kExitFine;
}

}  // namespace

void add_ptx(CLI::App& app, Action& chosen) {
  CLI::App* ptx = app.add_subcommand("ptx", "Run or debug a compiled CUDA kernel on the virtual GPU, without a GPU");
  ptx->require_subcommand(1);
  add_ptx_run(*ptx, chosen);
  add_ptx_debug(*ptx, chosen);

  auto survey_command = std::make_shared<SurveyCommand>();
  CLI::App* survey =
      ptx->add_subcommand("survey", "Count the instructions of a PTX file and list the unsupported ones");
  survey->add_option("FILE", survey_command->path, kFileHelp)->required();
  survey->add_option("--target", survey_command->target, kTargetHelp)->check(at_least(1))->type_name("N");
  survey->add_flag("--words", survey_command->words,
                   "Count full opcodes such as ld.global.f32, not base names such as ld");
  survey->add_flag("--json", survey_command->json, "Print JSON, with all opcodes");
  add_examples(*survey, {"kvscope ptx survey apps/examples/scale.ptx --words"});
  survey->callback([&chosen, survey_command] { chosen = [survey_command] { return show_survey(*survey_command); }; });

  auto path = std::make_shared<std::string>();
  CLI::App* disasm = ptx->add_subcommand("disasm", "Parse a PTX file and print it as PTX again");
  disasm->add_option("FILE", *path, kFileHelp)->required();
  add_examples(*disasm, {"kvscope ptx disasm apps/examples/scale.ptx"});
  disasm->callback([&chosen, path] {
    chosen = [path] {
      std::cout << ptx::to_ptx(read_ptx(*path));
      return kExitFine;
    };
  });
  add_examples(*ptx, {"kvscope ptx run apps/examples/scale.ptx --grid 2 --block 32 --arg 'f32[64]' --arg 2.5"});
}

}  // namespace kvscope::apps

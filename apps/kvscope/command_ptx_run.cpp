// kvscope ptx run FILE --entry KERNEL: runs a compiled kernel on the virtual GPU, with checks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/kvscope/ptx_recordings.h"
#include "apps/launch/arguments.h"
#include "apps/launch/launch.h"
#include "apps/launch/options.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/fnv.h"
#include "core/base/json.h"
#include "core/base/numbers.h"
#include "core/base/report.h"
#include "gpu/virtual/check/check_names.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/debug/state_text.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/machine/diagnosis/suppressions.h"
#include "gpu/virtual/text/kernel_names.h"
#include "gpu/virtual/text/launch_notes.h"

namespace kvscope::apps {
namespace {

constexpr std::size_t kMostLines = 40;  // of counters printed

struct PtxRunCommand {
  LaunchRequest launch;
  std::vector<std::string> saves;  // "2=y.npy"
  std::vector<std::string> checks{"all"};
  bool counters = false;
  std::string json;
  std::optional<std::uint64_t> step;
  int max_reports = 20;
  std::int64_t jobs = 1;
  std::vector<std::string> suppress;  // files
  std::string suggest;
  RecordingOptions recordings;
};

std::vector<std::pair<const DeviceArray*, std::string>> saves_of(const PtxRunCommand& command,
                                                                 const KernelArguments& arguments) {
  std::vector<std::pair<const DeviceArray*, std::string>> out;
  std::vector<Fault> faults;
  for (const std::string& save : command.saves) {
    const std::size_t equals = save.find('=');
    const DeviceArray* found =
        equals == std::string::npos ? nullptr : find_array(arguments.arrays, std::string_view(save).substr(0, equals));
    if (found == nullptr || equals + 1 == save.size()) {
      faults.push_back({"--save", fmt::format("'{}' does not name an array: write ARRAY=FILE.npy; {}", save,
                                              array_names(arguments.arrays))});
    } else {
      out.emplace_back(found, save.substr(equals + 1));
    }
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return out;
}

std::string line_counts(const ptx::OpCounts& c) {
  std::string out = fmt::format("runs {:>9}", c.runs);
  if (c.wavefronts > 0) {
    out += fmt::format("   wavefronts {} of {}", c.wavefronts, c.ideal_wavefronts);
    if (c.conflicts() > 0) out += fmt::format(" (conflicts {})", c.conflicts());
  }
  if (c.sectors > 0) out += fmt::format("   sectors {} of {}", c.sectors, c.ideal_sectors);
  if (c.copies > 0) out += fmt::format("   copies {}, {} bytes", c.copies, c.copied_bytes);
  if (c.waits > 0) out += fmt::format("   waits {}", c.waits);
  if (c.splits > 0) out += fmt::format("   splits {}", c.splits);
  return out;
}

void show_counters(const ptx::Counters& counters) {
  std::cout << "\ninstructions by class\n";
  const auto classes = counters.by_class();
  for (int c = 0; c < ptx::kInstructionClasses; ++c) {
    const std::int64_t runs = classes[static_cast<std::size_t>(c)];
    if (runs > 0) std::cout << fmt::format("  {:<15} {:>10}\n", ptx::name(static_cast<ptx::InstructionClass>(c)), runs);
  }
  std::cout << "by line\n";
  const auto lines = counters.by_line();
  const std::size_t width = widest(lines, &ptx::LineCounts::source);
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
    std::cout << fmt::format("  {:<{}}  {}\n", lines[i].source, width, line_counts(lines[i].counts));
  }
  if (lines.size() > kMostLines)
    std::cout << fmt::format("  and {} more: --json FILE writes all\n", lines.size() - kMostLines);
  std::cout << fmt::format("  {:<{}}  {}\n", "all", width, line_counts(counters.total()));
}

json::Value counts_json(const ptx::OpCounts& c) {
  json::Value out;
  out.set("runs", c.runs);
  out.set("lanes", c.lanes);
  out.set("divergent", c.divergent);
  out.set("splits", c.splits);
  out.set("waits", c.waits);
  out.set("wavefronts", c.wavefronts);
  out.set("ideal_wavefronts", c.ideal_wavefronts);
  out.set("sectors", c.sectors);
  out.set("ideal_sectors", c.ideal_sectors);
  out.set("lines", c.lines);
  out.set("copies", c.copies);
  out.set("copied_bytes", c.copied_bytes);
  return out;
}

json::Value report_json(const ptx::Report& report) {
  json::Value out;
  out.set("kind", ptx::name(report.kind));
  out.set("severity", ptx::name(report.severity));
  out.set("step", report.step);
  out.set("cta", json::Array{report.cta[0], report.cta[1], report.cta[2]});
  out.set("text", ptx::to_text(report));
  out.set("repeated", report.repeated);
  return out;
}

void write_results(const PtxRunCommand& command, const ptx::LaunchConfig& config, const ptx::LaunchResult& result,
                   const ptx::Counters& counters, ptx::Device& device, const KernelArguments& arguments) {
  json::Value out;
  out.set("kvscope_ptx_results", 1);
  out.set("file", command.launch.path);
  out.set("kernel", config.kernel);
  out.set("grid", json::Array{config.grid[0], config.grid[1], config.grid[2]});
  out.set("block", json::Array{config.block[0], config.block[1], config.block[2]});
  out.set("dynamic_shared", config.dynamic_shared);
  out.set("policy", command.launch.policy);
  out.set("sum", command.launch.sum);
  out.set("finished", result.status == ptx::LaunchStatus::finished);
  out.set("warp_instructions", result.steps);
  out.set("ctas_run", result.ctas);
  out.set("threads", result.threads);
  json::Array reports, lines, arrays;
  for (const ptx::Report& report : result.reports) reports.push_back(report_json(report));
  for (const ptx::LineCounts& line : counters.by_line()) {
    json::Value counts = counts_json(line.counts);
    counts.set("source", line.source);
    lines.push_back(std::move(counts));
  }
  for (const DeviceArray& array : arguments.arrays) {
    json::Value a;
    if (const auto number = whole_number<std::int64_t>(array.names.front())) {
      a.set("argument", *number);
    } else {
      a.set("argument", array.names.front());
    }
    a.set("word", array.word);
    a.set("address", array.address);
    a.set("fnv", fmt::format("{:016x}", fnv1a(device.memory().read(array.address, array.bytes))));
    arrays.push_back(std::move(a));
  }
  out.set("reports", std::move(reports));
  out.set("arrays", std::move(arrays));
  out.set("counters", counts_json(counters.total()));
  out.set("lines", std::move(lines));
  write_file_atomically(command.json, json::dump(out) + "\n");
}

// --step N: the position of every warp after N warp instructions.
int show_step(ptx::Device& device, const ptx::LoadedModule& module, const ptx::LaunchConfig& config,
              std::uint64_t step) {
  ptx::ControlledRun run(device, module, config);
  static_cast<void>(run.seek(step));
  const ptx::Position next = run.position();
  std::cout << fmt::format("after {} warp instructions{}\n", run.step(), run.ended() ? ": the launch has ended" : "");
  std::cout << ptx::where_text(run.launch(), &next);
  for (const ptx::Report& report : run.reports()) std::cout << ptx::to_text(report) << '\n';
  return kExitFine;
}

constexpr std::int64_t kMostSuppressionFile = 1 << 20;  // [bytes]

ptx::Suppressions suppressions_of(const PtxRunCommand& command) {
  ptx::Suppressions out;
  for (const std::string& path : command.suppress) out.add(read_file(path, kMostSuppressionFile), path);
  return out;
}

// What was left out, and lines that no report needs any more.
void show_suppressed(const ptx::Suppressions& suppressions) {
  if (suppressions.matched() > 0) std::cout << fmt::format("suppressed  {} reports\n", suppressions.matched());
  for (const std::string& place : suppressions.unmatched()) {
    std::cout << fmt::format("suppressed  nothing by {}: remove the line if no other kernel needs it\n", place);
  }
}

// Each report once per source line, with the number of those that are left out.
void show_reports(const ptx::LaunchResult& result) {
  std::int64_t shown = 0;
  for (const ptx::Report& report : result.reports) {
    std::cout << ptx::to_text(report) << '\n';
    if (report.repeated > 0) std::cout << fmt::format("  {} more at the same lines\n", report.repeated);
    std::cout << '\n';
    shown += report.repeated;
  }
  if (result.repeated_reports > shown) {
    std::cout << fmt::format("and {} more of other lines: --max-reports N prints them\n\n",
                             result.repeated_reports - shown);
  }
}

int run_kernel(const PtxRunCommand& command) {
  ptx::Suppressions suppressions = suppressions_of(command);
  PreparedLaunch prepared = prepare(command.launch);
  prepared.config.options.max_reports = command.max_reports;
  prepared.config.options.jobs = command.jobs;
  prepared.config.options.suppressions = &suppressions;
  ptx::Device& device = *prepared.device;
  const ptx::LoadedModule& module = *prepared.module;
  const ptx::LaunchConfig& config = prepared.config;
  const KernelArguments& arguments = prepared.arguments;
  const auto saves = saves_of(command, arguments);
  if (command.step) return show_step(device, module, config, *command.step);

  ptx::Checks checks(ptx::checks_of(command.checks));
  ptx::Counters counters(*module.program);
  if (command.counters || !command.json.empty()) checks.add(counters);
  Recordings recordings(command.recordings, config, *module.program);
  recordings.watch(checks);
  const ptx::LaunchResult result = device.launch(module, config, checks.monitor());

  std::cout << result.printed;
  if (!result.printed.empty() && !result.printed.ends_with('\n')) std::cout << '\n';
  show_reports(result);
  const auto of = [](std::int64_t n) { return n == 1 ? "" : "s"; };
  const std::int64_t ctas = config.grid[0] * config.grid[1] * config.grid[2];
  const ptx::Module& text = *module.program->module;
  const std::int64_t threads = config.block[0] * config.block[1] * config.block[2];
  std::cout << fmt::format("kernel      {}: {} CTA{} of {} thread{}\n",
                           ptx::short_name(text, text.find_function(config.kernel)), extents_text(config.grid),
                           of(ctas), extents_text(config.block), of(threads));
  if (command.launch.block.empty()) {
    if (const auto note = ptx::missing_block_note(text, "--block")) std::cout << fmt::format("note        {}\n", *note);
  }
  if (result.ctas < result.grid_ctas)
    std::cout << fmt::format(
        "sampled     {} of {} CTAs ran: elements of the others are unchanged, so do not compare arrays with a whole "
        "run's\n",
        result.ctas, result.grid_ctas);
  std::cout << fmt::format("ran         {} warp instructions, {}\n", result.steps,
                           result.status == ptx::LaunchStatus::finished ? "to the end" : "and was stopped");
  if (const std::string jobs = result.jobs_text(); !jobs.empty()) std::cout << fmt::format("jobs        {}\n", jobs);
  for (const DeviceArray& array : arguments.arrays) {
    std::cout << fmt::format("argument {:<2} {} at 0x{:x}, fnv {:016x}\n", array.names.back(), array.word,
                             array.address, fnv1a(device.memory().read(array.address, array.bytes)));
  }
  for (const std::string& line : arguments.unset) std::cout << line << '\n';
  for (const std::string& note : arguments.notes) std::cout << fmt::format("note        {}\n", note);
  std::cout << recordings.finish();
  show_suppressed(suppressions);
  if (command.counters) show_counters(counters);
  if (!command.json.empty()) write_results(command, config, result, counters, device, arguments);
  for (const auto& [array, path] : saves) save_array(device, *array, path);
  if (!command.suggest.empty()) write_file_atomically(command.suggest, ptx::suggested_suppressions(result.reports));
  const std::string_view verdict = !result.clean()          ? "not clean: see the reports above"
                                   : result.reports.empty() ? "clean"
                                                            : "clean, with notes";
  std::cout << fmt::format("verdict     {}{}{}\n", verdict, result.ctas < result.grid_ctas ? "; " : "",
                           result.sample_text());
  return result.clean() ? kExitFine : kExitCheckFailed;
}

void add_recording_options(CLI::App& command, RecordingOptions& options) {
  const std::string of_trace = "Options of --trace";
  CLI::Option* trace =
      command
          .add_option("--trace", options.trace,
                      "Write the tiles that one CTA loads as a trace (.kvt), the format of kvscope run: "
                      "compare both with kvscope trace diff")
          ->type_name("FILE")
          ->check(writes_file());
  command.add_option("--trace-cta", options.trace_cta, "CTA to record: its linear number in the grid, x fastest")
      ->capture_default_str()
      ->needs(trace)
      ->group(of_trace);
  command
      .add_option("--trace-warp", options.trace_warp,
                  "Record reads of this warp of the CTA only, from 0 [default: all]")
      ->needs(trace)
      ->group(of_trace);
  command
      .add_flag("--trace-lanes", options.trace_lanes,
                "Also record every 16-byte chunk and every lane, as focus.staging = lanes does in a scenario")
      ->needs(trace)
      ->group(of_trace);
  command
      .add_option(
          "--tile", options.tiles,
          "Properties of the next tile that the kernel's copies do not show, such as seq=1,head=1,rows=64; once "
          "per tile, in order. Keys: " +
              tile_note_keys(", "))
      ->type_name("KEY=N,...")
      ->allow_extra_args(false)
      ->needs(trace)
      ->group(of_trace);

  const std::string of_events = "Options of --events";
  CLI::Option* events = command
                            .add_option("--events", options.events,
                                        "Write every event of the virtual GPU to this file, one per line; - writes to "
                                        "standard output")
                            ->type_name("FILE");
  command.add_option("--event-kinds", options.event_kinds, "Write events of these kinds only, comma-separated")
      ->type_name("KIND,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(event_kind_names()))
      ->needs(events)
      ->group(of_events);
  command.add_option("--event-cta", options.event_cta, "Write events of this CTA only")
      ->needs(events)
      ->group(of_events);
  command.add_option("--event-warp", options.event_warp, "Write events of this warp of each CTA only")
      ->needs(events)
      ->group(of_events);
  command.add_option("--event-steps", options.event_steps, "Write events of steps FIRST to LAST only, such as 100:120")
      ->type_name("FIRST:LAST")
      ->needs(events)
      ->group(of_events);
  command.add_flag("--event-lanes", options.event_lanes, "Also write the address of every lane")
      ->needs(events)
      ->group(of_events);
  command.add_flag("--event-json", options.event_json, "Write one JSON object per event")
      ->needs(events)
      ->group(of_events);
}

}  // namespace

void add_ptx_run(CLI::App& ptx, Action& chosen) {
  auto command = std::make_shared<PtxRunCommand>();
  CLI::App* run =
      ptx.add_subcommand("run", "Run a kernel of a PTX file, and report races and other errors; exit code 1 if any");
  add_launch_file(*run, command->launch);
  add_launch_options(*run, command->launch);
  run->add_option("--save", command->saves,
                  "Write an array to a file after the run, such as 0=y.npy for parameter 0 or p.out=y.npy; may be "
                  "repeated")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  add_check_option(*run, command->checks);
  run->add_flag("--counters", command->counters,
                "Print instructions, wavefronts, sectors and copies by class and source line");
  add_jobs_option(*run, command->jobs);
  run->add_option("--json", command->json, "Write results, reports and counters to this file")
      ->type_name("FILE")
      ->check(writes_file());
  run->add_option("--max-reports", command->max_reports, "Print at most N different reports")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  run->add_option(
         "--suppress", command->suppress,
         "Leave out the reports that this file lists, one a line: KIND | KERNEL | SOURCE, with * for any text; "
         "may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  run->add_option("--suggest-suppressions", command->suggest, "Write a line of --suppress for each report to this file")
      ->type_name("FILE")
      ->check(writes_file());
  add_recording_options(*run, command->recordings);
  run->add_option("--step", command->step, "Stop after N warp instructions and print the instruction of every warp")
      ->excludes("--trace", "--events");
  add_argument_help(*run);
  add_examples(*run,
               {"kvscope ptx run apps/examples/scale.ptx --grid 2 --block 32 --arg 'f32[64]' --arg 2.5 --save 0=y.npy",
                "kvscope ptx run apps/examples/scale.ptx --block 64 --arg y.npy --arg 2.5 --counters"});
  run->callback([&chosen, command] { chosen = [command] { return run_kernel(*command); }; });
}

}  // namespace kvscope::apps

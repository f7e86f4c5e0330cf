// kvscope run SCENARIO: runs requests through the paging engine, then computes the golden attention output over the
// filled cache. With --device, a kernel computes the same attention and is compared with it.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/progress.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/gpu_devices.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/pending_folder.h"
#include "core/pipeline/run_report_text.h"
#include "core/pipeline/run_scenario.h"
#include "core/trace/event_text.h"
#include "core/trace/trace_writer.h"
#include "gpu/launch/device_error.h"
#include "gpu/offload/candidate_check.h"

namespace kvscope::apps {
namespace {

struct RunCommand {
  std::string scenario;
  std::optional<std::string> requests;
  std::optional<std::string> out;
  std::string trace = "off";
  std::int64_t check_every = 0;
  std::int64_t max_steps = RunLimits{}.steps;
  std::optional<std::string> device;
  bool json = false;
};

// An unsupported request is a fault of the input, with one line per reason.
gpu::CandidateCheck check_on(gpu::Device& device, const RunOutcome& outcome) {
  const std::string option = "--device " + device.info().kind;
  if (!outcome.golden)
    throw InputError("command line", option,
                     "there is no golden output to compare a kernel with: " + outcome.golden_skipped);
  try {
    return gpu::check_candidate(device, outcome.golden->attention.problem, outcome.golden->result);
  } catch (const gpu::NoKernel& error) {
    std::vector<Fault> faults;
    for (const std::string& lack : error.lacks())
      faults.push_back({option, "no kernel computes this attention: " + lack});
    throw InputError("command line", faults);
  } catch (const gpu::DeviceError& error) {
    throw InputError("command line", option, error.what());
  }
}

int run(const RunCommand& command) {
  const trace::Detail detail = *trace::find_detail(command.trace);
  if (detail != trace::Detail::off && !command.out) {
    throw InputError("command line", "--trace", "needs --out DIR: the trace is written there as trace.kvt");
  }
  if (command.check_every < 0) {
    throw InputError("command line", "--check-every",
                     fmt::format("{} is below 0: give a number of steps", command.check_every));
  }
  if (command.max_steps < 1) {
    throw InputError("command line", "--max-steps",
                     fmt::format("{} is below 1: give a number of steps", command.max_steps));
  }
  const ScenarioInput input = read_scenario(command.scenario, command.requests);
  std::unique_ptr<gpu::Device> device;
  if (command.device) device = device_of(*command.device);
  std::optional<PendingFolder> folder;
  if (command.out)
    folder.emplace(*command.out, std::vector<std::string>{"report.txt", "report.json", "scenario.json", "trace.kvt"});
  trace::TraceWriter trace(folder ? *folder / "trace.kvt" : std::filesystem::path(), detail,
                           trace_meta(input.scenario));

  RunOutcome outcome;
  {
    Progress progress("requests");
    EngineOptions options;
    options.check_every = command.check_every;
    options.limits.steps = command.max_steps;
    options.progress = [&](std::int64_t done, std::int64_t all) { return progress.show(done, all), true; };
    outcome = run_scenario(input.scenario, input.requests, trace, options);
  }
  trace.finish();

  std::string text = to_text(input.scenario, outcome);
  json::Value value = to_json(input.scenario, outcome);
  bool all_passed = passed(outcome);
  if (device) {
    const gpu::CandidateCheck check = check_on(*device, outcome);
    all_passed = all_passed && check.passed();
    text += to_text(check);
    value.set("candidate", to_json(check));
    value.set("passed", all_passed);
  }
  const std::string report = json::dump(value) + "\n";
  if (folder) {
    write_file_atomically(*folder / "scenario.json", scenario_text(input.scenario));
    write_file_atomically(*folder / "report.txt", text);
    write_file_atomically(*folder / "report.json", report);
    folder->commit();
  }
  std::cout << (command.json ? report : text);
  return all_passed ? kExitFine : kExitCheckFailed;
}

}  // namespace

void add_run(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<RunCommand>();
  CLI::App* run_app =
      app.add_subcommand("run", "Simulate a scenario's requests, report the cache's use and check attention over it");
  run_app->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  run_app
      ->add_option("--requests", command->requests,
                   "Recorded requests to replace the scenario's own: .csv (timestamp, context, generated) or .jsonl "
                   "(timestamp, input_length, output_length, hash_ids)")
      ->type_name("FILE");
  run_app
      ->add_option(
          "--out", command->out,
          "Folder for report.txt, report.json, scenario.json and the trace; created if missing. The four files of an "
          "earlier run in it are replaced together")
      ->type_name("DIR");
  run_app
      ->add_option("--trace", command->trace,
                   "Events to write to trace.kvt in the folder of --out: none, those of steps and requests, or all")
      ->check(CLI::IsMember(std::vector<std::string>{"off", "steps", "full"}))
      ->capture_default_str();
  run_app
      ->add_option("--check-every", command->check_every,
                   "Check every invariant of the block pool after each N steps; 0: once, at the end")
      ->capture_default_str();
  run_app
      ->add_option("--max-steps", command->max_steps, "Stop with an error after N steps; a step keeps about 700 bytes")
      ->capture_default_str();
  run_app
      ->add_option("--device", command->device,
                   "Also compute the golden attention with a kernel and compare. virtual: on the virtual GPU, on the "
                   "CPU, with all checks enabled; cuda: on the first GPU of this machine [default: no kernel runs]")
      ->check(CLI::IsMember(kDeviceNames));
  run_app->add_flag("--json", command->json, "Print the report as JSON, with every figure per step");
  add_examples(*run_app, {"kvscope run apps/scenarios/first_light.json",
                          "kvscope run apps/scenarios/first_light.json --out run --trace full"});
  run_app->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps

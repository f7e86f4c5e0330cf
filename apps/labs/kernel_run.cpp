#include "apps/labs/kernel_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/tma/tensor_map_record.h"
#include "core/trace/recorder.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/debug/tile_trace.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::labs {
namespace {

constexpr int kTarget = 90;
constexpr std::string_view kArchitecture = "sm_90a";

ptx::LaunchConfig launch_config(const LabCall& call, const Schedule& schedule, const LabLimits& limits) {
  ptx::LaunchConfig config;
  config.kernel = call.entry;
  config.grid = call.grid;
  config.block = call.block;
  config.dynamic_shared = call.dynamic_shared;
  config.options.policy = schedule.policy;
  config.options.seed = schedule.seed;
  config.options.shared_opt_in = ptx::most_shared(kTarget);
  config.options.limits = limits.launch;
  return config;
}

ptx::ParamValue value_of(const LabParam& param, const std::vector<std::uint64_t>& addresses) {
  if (const auto* const bits = std::get_if<std::uint64_t>(&param)) return *bits;
  if (const auto* const number = std::get_if<double>(&param)) return *number;
  if (const auto* const address = std::get_if<AddressOf>(&param)) {
    return addresses[address->array] + static_cast<std::uint64_t>(address->offset);
  }
  const auto& of = std::get<MapOf>(param);
  TensorMap map = of.map;
  map.base = addresses[of.array];
  return map_bytes(map, kTarget);
}

// Pointers to scratch memory, which no kernel of a lab needs (triton.h). Triton 3.4 has one, 3.9 two.
constexpr std::size_t kTritonPointers = 2;

std::size_t parameters_of(const ptx::LoadedModule& module, std::string_view kernel) {
  const ptx::Program& program = *module.program;
  const std::int32_t index = ptx::find_kernel(program, kernel);
  return index < 0 ? 0 : program.module->functions[static_cast<std::size_t>(index)].parameters.size();
}

// The arrays of the lab itself have room. If they had none, a right kernel would lose its points for a limit that the
// teacher chose.
void require_room(const LabCall& call, std::int64_t most) {
  std::int64_t needed = 0;
  for (const LabArray& array : call.arrays) needed += static_cast<std::int64_t>(array.bytes.size());
  if (needed <= most) return;
  throw OverflowError(fmt::format(
      "--max-memory: {} bytes do not hold the arrays of the lab: those of one launch have {} bytes", most, needed));
}

bool is_block_barrier(std::string_view text) {
  return text.starts_with("bar.sync") || text.starts_with("barrier.sync") || text.starts_with("bar.red") ||
         text.starts_with("barrier.cta.sync");
}

}  // namespace

LabKernel compile_kernel(const Grader& grader, const Submission& submission, std::string_view name,
                         const TritonTask& task) {
  LabKernel kernel;
  kernel.limits = grader.options().limits;
  const std::int64_t most_ptx = kernel.limits.ptx_bytes;
  const std::string& triton = grader.lab().triton;
  const auto python = std::ranges::find(submission.files, triton, &SubmittedFile::name);
  if (!triton.empty() && python != submission.files.end()) {
    kernel.file = triton;
    kernel.source = python->text;
    kernel.triton = true;
    const Compiled compiled = compile_triton(grader, *python, task);
    kernel.messages = compile_failure(compiled);
    if (!compiled.ok) return kernel;
    TritonKernel read = read_triton_product(compiled.product, task, most_ptx);
    kernel.ptx = std::move(read.ptx);
    kernel.shared = read.shared;
    if (!read.fault.empty()) kernel.messages = read.fault + "\n";
    return kernel;
  }
  const std::string ptx_name = ptx_name_of(name);
  const auto submitted = std::ranges::find(submission.files, ptx_name, &SubmittedFile::name);
  if (submitted != submission.files.end()) {
    kernel.file = ptx_name;
    kernel.ptx = submitted->text;
    if (kernel.ptx.empty()) kernel.messages = fmt::format("{} is empty\n", ptx_name);
    return kernel;
  }
  kernel.file = std::string(name);
  kernel.source = submission.file(name);
  Compiled compiled = compile_cuda(grader, {kernel.file, kernel.source}, kArchitecture);
  kernel.messages = compile_failure(compiled);
  if (!compiled.ok) return kernel;
  if (static_cast<std::int64_t>(compiled.product.size()) > most_ptx) {
    kernel.messages = fmt::format("the compiled kernel has {} bytes of PTX, more than {}: remove unrolled loops{}\n",
                                  compiled.product.size(), most_ptx, larger_limit("--max-ptx"));
    return kernel;
  }
  kernel.ptx = std::move(compiled.product);
  return kernel;
}

std::string schedule_name(const Schedule& schedule) {
  if (schedule.policy == ptx::Policy::seeded) return fmt::format("random order {}", schedule.seed);
  return schedule.policy == ptx::Policy::late ? "late: copies land as late as the waits allow"
                                              : "early: copies land at once";
}

const std::vector<Schedule>& all_schedules() {
  static const std::vector<Schedule> schedules{
      {ptx::Policy::late, 0},   {ptx::Policy::early, 0},  {ptx::Policy::seeded, 1}, {ptx::Policy::seeded, 2},
      {ptx::Policy::seeded, 3}, {ptx::Policy::seeded, 4}, {ptx::Policy::seeded, 5}};
  return schedules;
}

KernelRun run_kernel(const LabKernel& kernel, const LabCall& call, const Schedule& schedule) {
  KernelRun run;
  run.source = kernel.source;
  require_room(call, kernel.limits.launch_memory);
  try {
    ptx::Device device(ptx::ProgramOptions{.target = kTarget}, kernel.limits.launch_memory);
    const ptx::LoadedModule& module = device.load(ptx::parse_module(kernel.ptx, kernel.file));
    for (const LabArray& array : call.arrays) {
      const auto bytes = static_cast<std::int64_t>(array.bytes.size());
      run.addresses.push_back(device.memory().allocate(bytes, array.name, array.written));
      device.memory().write(run.addresses.back(), array.bytes);
    }
    ptx::LaunchConfig config = launch_config(call, schedule, kernel.limits);
    std::vector<ptx::ParamValue> values;
    for (const LabParam& param : call.params) values.push_back(value_of(param, run.addresses));
    if (kernel.triton) {
      config.dynamic_shared = kernel.shared;
      const std::size_t declared = parameters_of(module, call.entry);
      if (declared <= values.size() + kTritonPointers)
        values.resize(std::max(declared, values.size()), std::uint64_t{0});
    }
    config.params = ptx::pack_params(module, call.entry, values);

    ptx::CheckOptions checked;
    checked.global_init = true;
    checked.global_race = call.global_races;
    ptx::Checks checks(checked);
    ptx::Counters counters(*module.program);
    trace::MemoryRecorder recorder(call.tiles ? trace::Detail::full : trace::Detail::off);
    ptx::TileTrace tiles(recorder);
    checks.add(counters);
    if (call.tiles) checks.add(tiles);
    if (call.monitor != nullptr) checks.add(*call.monitor);
    ptx::LaunchResult result = device.launch(module, config, checks.monitor());

    run.finished = result.status == ptx::LaunchStatus::finished;
    for (ptx::Report& report : result.reports) {
      if (report.severity != ptx::Severity::note) run.reports.push_back(std::move(report));
    }
    for (std::size_t i = 0; i < call.arrays.size(); ++i) {
      run.arrays.push_back(
          device.memory().read(run.addresses[i], static_cast<std::int64_t>(call.arrays[i].bytes.size())));
    }
    run.total = counters.total();
    run.lines = counters.by_line();
    for (std::size_t pc = 0; pc < counters.ops().size(); ++pc) {
      const ptx::OpCounts& counts = counters.ops()[pc];
      const auto at = static_cast<std::int32_t>(pc);
      if (counts.runs > 0 && is_block_barrier(module.program->text(at))) run.barriers += counts.runs;
    }
    run.events = recorder.events();
  } catch (const std::exception& error) {  // PTX that cannot be loaded, other parameters, memory past the limit
    run.failure = error.what();
  }
  return run;
}

}  // namespace kvscope::labs

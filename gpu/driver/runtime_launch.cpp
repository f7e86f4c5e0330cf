#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/base/report.h"
#include "gpu/driver/runtime.h"
#include "gpu/virtual/machine/launch_checks.h"

namespace kvscope::driver {
namespace {

// The status that later calls return, as on hardware after a kernel that failed; success for findings that hardware runs
// past, such as races.
Status status_of(const ptx::Report& report) {
  using K = ptx::ReportKind;
  if (report.severity != ptx::Severity::error) return kSuccess;
  switch (report.kind) {
    case K::out_of_bounds:
    case K::use_after_free:
    case K::bad_window:
    case K::stack:
      return kIllegalAddress;
    case K::misaligned:
      return kMisaligned;
    case K::assert_:
      return kAssert;
    case K::deadlock:
    case K::global_spin:
    case K::runaway:
    case K::limit:
      return kLaunchTimeout;
    case K::trap:
    case K::unsupported:
    case K::tma_arg:
    case K::cp_arg:
      return kLaunchFailure;
    default:
      return kSuccess;
  }
}

// The same for each time that the debugger reaches the report.
std::string report_key(const ptx::Report& report) {
  return fmt::format("{} {} {}", report.step, ptx::name(report.kind), report.message);
}

}  // namespace

void Runtime::set_debugger() {
  if (options_.debug_commands < 0) return;
  debugger_ = std::make_unique<ProgramDebugger>(options_.debug_commands, options_.breaks);
  engine_->set_launcher([this](ptx::Device& device, const ptx::LoadedModule& module, const ptx::LaunchConfig& config,
                               ptx::Monitor* monitor) {
    return debugger_->launch(device, module, config, monitor, [this](const ptx::Report& report) {
      std::fputs(fmt::format("{}\n\n", described(report).text).c_str(), stderr);
      told_.insert(report_key(report));
    });
  });
}

Status Runtime::pack(Kernel& kernel, void** arguments, std::vector<std::byte>& params) {
  if (const Status status = load(*kernel.binary); status != kSuccess) return status;
  const ptx::Function* const function = function_of(kernel);
  if (function == nullptr || !function->entry) {
    report_call("NO_KERNEL", fmt::format("'{}'", kernel.name), 0, "the PTX of this file has no kernel of that name");
    return kInvalidFunction;
  }
  const ptx::Module& module = *kernel.binary->module->program->module;
  params.assign(static_cast<std::size_t>(function->parameter_bytes), std::byte{0});
  if (arguments == nullptr && !function->parameters.empty()) return kInvalidValue;
  for (std::size_t i = 0; i < function->parameters.size(); ++i) {
    const ptx::Variable& parameter = module.variables[static_cast<std::size_t>(function->parameters[i])];
    if (parameter.bytes == 0) continue;
    if (arguments[i] == nullptr) return kInvalidValue;
    std::memcpy(params.data() + parameter.parameter_offset, arguments[i], static_cast<std::size_t>(parameter.bytes));
  }
  return kSuccess;
}

Status Runtime::launch(const KernelLaunch& launch) {
  ptx::LaunchConfig config = launch.config;
  config.kernel = launch.kernel->name;
  config.options.shared_opt_in = std::max<std::int64_t>(launch.kernel->most_dynamic, 48 << 10);
  if (const ptx::Function* const function = function_of(*launch.kernel)) {
    const auto layout = launch.kernel->binary->module->program->kernels.find(
        static_cast<std::int32_t>(function - launch.kernel->binary->module->program->module->functions.data()));
    if (layout != launch.kernel->binary->module->program->kernels.end() && launch.kernel->most_dynamic > (48 << 10))
      config.options.shared_opt_in += layout->second.static_shared;
  }
  config.options.shared_opt_in = std::min(config.options.shared_opt_in, ptx::most_shared(engine_->options().target));
  config.options.non_portable_cluster = launch.kernel->non_portable_cluster;
  ptx::LaunchResult result;
  try {
    result = engine_->launch(*launch.kernel->binary->module, std::move(config));
  } catch (const GeometryError& error) {
    report_call("INVALID_LAUNCH", fmt::format("kernel {}", launch.kernel->name), 0, error.what());
    return kInvalidConfiguration;
  }
  if (!result.printed.empty()) {
    std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
    std::fflush(stdout);
  }
  for (const ptx::Report& report : result.reports) {
    report_kernel(report, options_.prints && !told_.contains(report_key(report)));
    if (sticky == kSuccess) sticky = status_of(report);
  }
  told_.clear();
  if (debugger_ != nullptr && debugger_->quits()) quit();
  if (result.repeated_reports > 0 && options_.prints)
    std::fputs(fmt::format("{} more like these\n\n", counted(result.repeated_reports, "report")).c_str(), stderr);
  if (result.status != ptx::LaunchStatus::finished && sticky == kSuccess) sticky = kLaunchFailure;
  return kSuccess;
}

}  // namespace kvscope::driver

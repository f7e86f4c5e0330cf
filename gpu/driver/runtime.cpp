#include "gpu/driver/runtime.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <utility>

#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "gpu/driver/user_call.h"
#include "gpu/virtual/check/check_names.h"
#include "gpu/virtual/machine/launch_parts.h"
#include "gpu/virtual/machine/schedule.h"

namespace kvscope::driver {
namespace {

constexpr const char* kEnvironment = "environment";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void set_number(const char* name, std::int64_t& to) {
  const std::string text = variable(name);
  if (text.empty()) return;
  const auto value = whole_number<std::int64_t>(text);
  if (!value || *value < 1) throw InputError(kEnvironment, name, fmt::format("'{}' is not a number from 1 on", text));
  to = *value;
}

void set_schedule(EngineOptions& options) {
  const std::string text = variable("KVSCOPE_CUDA_POLICY");
  if (text.empty()) return;
  const auto schedule = ptx::policy_from_name(text);
  if (!schedule) throw InputError(kEnvironment, "KVSCOPE_CUDA_POLICY", ptx::policy_fault(text));
  options.policy = schedule->policy;
  options.seed = schedule->seed;
}

void set_sum(EngineOptions& options) {
  const std::string text = variable("KVSCOPE_CUDA_SUM");
  if (text.empty()) return;
  const auto sum = ptx::sum_from_name(text);
  if (!sum)
    throw InputError(kEnvironment, "KVSCOPE_CUDA_SUM",
                     fmt::format("'{}' is not one of {}", text, fmt::join(ptx::kSumNames, ", ")));
  options.sum = *sum;
}

void set_checks(EngineOptions& options) {
  const std::string text = variable("KVSCOPE_CUDA_CHECKS");
  if (text.empty()) return;
  options.checks.clear();
  const std::vector<std::string> known = ptx::check_names();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    options.checks.push_back(text.substr(at, comma - at));
    if (std::find(known.begin(), known.end(), options.checks.back()) == known.end())
      throw InputError(kEnvironment, "KVSCOPE_CUDA_CHECKS",
                       fmt::format("'{}' is not one of {}", options.checks.back(), fmt::join(known, ", ")));
    at = comma + 1;
  }
  const auto has = [&](std::string_view name) {
    return std::find(options.checks.begin(), options.checks.end(), name) != options.checks.end();
  };
  options.global_init = has("global_init") || !has("none");
}

// The debugger's commands, and its breakpoints, one a line.
void set_debugger(RuntimeOptions& options) {
  std::int64_t commands = -1;
  set_number("KVSCOPE_CUDA_DEBUG", commands);
  if (commands < 0) return;
  options.debug_commands = static_cast<int>(std::min<std::int64_t>(commands, INT32_MAX));
  options.engine.keeps_registers = true;
  std::istringstream breaks(variable("KVSCOPE_CUDA_BREAKS"));
  for (std::string line; std::getline(breaks, line);) options.breaks.push_back(ptx::read_break(line));
}

Runtime* instance = nullptr;
struct sigaction previous_action;

// Only for addresses of the device: any other fault is the program's own. The lock may be held by the thread that faults
// (the mutex is recursive) or by another one; then nothing is reported.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (instance != nullptr && instance->mutex.try_lock()) {
    instance->host_fault(reinterpret_cast<std::uint64_t>(info->si_addr));
    instance->mutex.unlock();
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  if ((previous_action.sa_flags & SA_SIGINFO) == 0 && previous_action.sa_handler != SIG_DFL &&
      previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
    return;
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);  // the access is repeated and ends the process
}

void watch_faults() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &previous_action);
}

}  // namespace

RuntimeOptions options_from_environment() {
  RuntimeOptions out;
  set_schedule(out.engine);
  set_sum(out.engine);
  set_checks(out.engine);
  std::int64_t target = out.engine.target, reports = out.engine.max_reports;
  set_number("KVSCOPE_CUDA_TARGET", target);
  set_number("KVSCOPE_CUDA_MAX_REPORTS", reports);
  set_number("KVSCOPE_CUDA_JOBS", out.engine.jobs);
  if (out.engine.jobs > ptx::kMostJobs)
    throw InputError(kEnvironment, "KVSCOPE_CUDA_JOBS",
                     fmt::format("{} threads: 1 to {}", out.engine.jobs, ptx::kMostJobs));
  set_number("KVSCOPE_CUDA_MAX_MEMORY", out.engine.memory);
  set_number("KVSCOPE_CUDA_MAX_INSTRUCTIONS", out.engine.limits.instructions);
  if (target != 90 && target != 100 && target != 120)
    throw InputError(kEnvironment, "KVSCOPE_CUDA_TARGET", fmt::format("{} is not one of 90, 100, 120", target));
  out.engine.target = static_cast<int>(target);
  out.engine.max_reports = static_cast<int>(std::min<std::int64_t>(reports, 10'000));
  out.engine.ctas = variable("KVSCOPE_CUDA_CTAS");
  out.leaks = variable("KVSCOPE_CUDA_LEAKS") != "0";
  out.report_path = variable("KVSCOPE_CUDA_REPORT");
  out.report_format = variable("KVSCOPE_CUDA_FORMAT");
  set_debugger(out);
  return out;
}

std::string program_name() {
  const std::string path = program_invocation_name;
  return path.substr(path.rfind('/') + 1);
}

std::string CallSite::text() const {
  std::string out = ordinal == 0 ? "the start of the program" : fmt::format("call {}, {}", ordinal, function);
  if (!detail.empty()) out += " " + detail;
  Dl_info info = {};
  if (caller == nullptr || dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return out;
  const std::string file = info.dli_fname;
  const std::string place = fmt::format("{}+0x{:x}", file.substr(file.rfind('/') + 1), place_in_file(caller, info));
  return out + (info.dli_sname == nullptr ? fmt::format(", from {}", place)
                                          : fmt::format(", by {} ({})", info.dli_sname, place));
}

Runtime::Runtime(RuntimeOptions options)
    : options_(std::move(options)), engine_(std::make_unique<Engine>(options_.engine)) {
  set_debugger();
}

Runtime::~Runtime() {
  for (auto& [address, block] : blocks_) unshare(block);
}

Runtime& runtime() {
  static const bool made = [] {
    if (instance == nullptr) {
      RuntimeOptions options;
      try {
        options = options_from_environment();
      } catch (const std::exception& error) {
        std::fputs(fmt::format("kvscope cuda: {}\n", error.what()).c_str(), stderr);
        std::_Exit(2);
      }
      instance = new Runtime(std::move(options));
    }
    watch_faults();
    return true;
  }();
  static_cast<void>(made);
  return *instance;
}

void replace_runtime(RuntimeOptions options) {
  delete instance;
  instance = new Runtime(std::move(options));
}

}  // namespace kvscope::driver

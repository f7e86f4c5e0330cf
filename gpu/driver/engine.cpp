#include "gpu/driver/engine.h"

#include <fmt/format.h>

#include <utility>

#include "gpu/virtual/check/check_names.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::driver {

Engine::Engine(EngineOptions options)
    : options_(std::move(options)),
      device_(
          ptx::ProgramOptions{
              .target = options_.target, .sum = options_.sum, .registers_by_liveness = !options_.keeps_registers},
          options_.memory),
      written_({.shared = false, .global = options_.global_init}) {}

void Engine::set_sum(ptx::SumMode sum) {
  options_.sum = sum;
  device_.set_sum(sum);
}

const ptx::LoadedModule& Engine::load(std::string ptx, const std::string& file) {
  return device_.load(ptx::parse_module(std::move(ptx), file));
}

ptx::LaunchResult Engine::launch(const ptx::LoadedModule& module, ptx::LaunchConfig config) {
  config.options.policy = options_.policy;
  config.options.seed = options_.seed;
  config.options.limits = options_.limits;
  config.options.max_reports = options_.max_reports;
  if (config.options.jobs == 1) config.options.jobs = options_.jobs;
  if (config.options.ctas.empty()) config.options.ctas = options_.ctas;
  // written_ has the record of all launches and of the host's copies. A check of this launch alone would lack both.
  ptx::CheckOptions check_options = ptx::checks_of(options_.checks);
  check_options.global_init = false;
  ptx::Checks checks(check_options);
  if (options_.global_init) checks.add(written_);
  ptx::LaunchResult result = launcher_ ? launcher_(device_, module, config, checks.monitor())
                                       : device_.launch(module, config, checks.monitor());
  warp_instructions_ += result.steps;
  ctas_ += result.ctas;
  grid_ctas_ += result.grid_ctas;
  ++launches_;
  if (result.threads > 1) ++parted_;
  if (one_thread_.empty()) one_thread_ = result.one_thread;
  return result;
}

std::string Engine::jobs_text() const {
  if (options_.jobs < 2) return "";
  const std::string all = fmt::format("{} of {} launches on {} threads", parted_, launches_, options_.jobs);
  if (one_thread_.empty()) return all;
  return fmt::format("{}, the others on one, the first of them because {}", all, one_thread_);
}

}  // namespace kvscope::driver

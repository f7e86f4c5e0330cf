#include "apps/launch/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "apps/launch/policy.h"
#include "apps/launch/ptx_file.h"
#include "core/base/errors.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::apps {
namespace {

std::array<std::int64_t, 3> extents(const std::vector<std::int64_t>& given) {
  std::array<std::int64_t, 3> out{1, 1, 1};
  std::copy(given.begin(), given.end(), out.begin());
  return out;
}

// "_ZN2ns4kernEPf", "void ns::kern(float*)" -> "ns::kern(float*)  _ZN2ns4kernEPf"
std::string shown(const ptx::Function& f) {
  const std::string plain = ptx::demangled(f.name);
  return plain == f.name ? plain : fmt::format("{} ({})", plain, f.name);
}

std::string_view only_kernel(const ptx::Module& module) {
  for (const ptx::Function& f : module.functions) {
    if (f.entry && f.defined) return f.name;
  }
  return "";
}

// The kernel to run: the only one of the file, or the one of that name.
std::string entry_of(const ptx::Module& module, const std::string& asked) {
  std::vector<std::string> names;
  for (const ptx::Function& f : module.functions) {
    if (f.entry && f.defined) names.push_back(shown(f));
  }
  std::vector<std::int32_t> found = ptx::find_kernels(module, asked);
  if (asked.empty() && names.size() == 1) found = ptx::find_kernels(module, only_kernel(module));
  if (found.size() == 1) return std::string(module.functions[static_cast<std::size_t>(found.front())].name);
  const std::string have =
      names.empty() ? "the file has no kernel" : fmt::format("the file has {}", fmt::join(names, ", "));
  if (asked.empty()) throw InputError("command line", "--entry", "is required: " + have);
  if (found.empty())
    throw InputError("command line", "--entry", fmt::format("there is no kernel '{}': {}", asked, have));
  std::vector<std::string> meant;
  for (const std::int32_t f : found) meant.push_back(shown(module.functions[static_cast<std::size_t>(f)]));
  throw InputError(
      "command line", "--entry",
      fmt::format("'{}' can be {} kernels: {}; write more of the name", asked, meant.size(), fmt::join(meant, ", ")));
}

ptx::LaunchConfig config_of(const LaunchRequest& request, const std::string& entry, int target) {
  ptx::LaunchConfig config;
  config.kernel = entry;
  config.grid = extents(request.grid);
  config.block = extents(request.block);
  if (!request.cluster.empty()) config.cluster = extents(request.cluster);
  config.dynamic_shared = request.shared;
  config.options.limits = request.limits;
  config.options.cooperative = request.cooperative;
  config.options.ctas = request.ctas;
  // As if the program had requested the maximum with cudaFuncSetAttribute.
  config.options.shared_opt_in = ptx::most_shared(target);
  const ptx::Schedule schedule = read_policy(request.policy);
  config.options.policy = schedule.policy;
  config.options.seed = schedule.seed;
  return config;
}

void reject_unsupported(const std::string& path, const ptx::Program& program) {
  std::vector<Fault> faults;
  for (const ptx::UnsupportedStatement& s : program.decoded.unsupported) {
    const ptx::Function& f = program.module->functions[static_cast<std::size_t>(s.function)];
    const ptx::TextPlace at = f.body[static_cast<std::size_t>(s.statement)].at;
    faults.push_back({fmt::format("{}:{}", at.line, at.column), s.message});
  }
  if (!faults.empty()) throw InputError(path, std::move(faults));
}

}  // namespace

std::string extents_text(const std::array<std::int64_t, 3>& e) {
  if (e[2] != 1) return fmt::format("{}x{}x{}", e[0], e[1], e[2]);
  return e[1] != 1 ? fmt::format("{}x{}", e[0], e[1]) : fmt::format("{}", e[0]);
}

PreparedLaunch prepare(const LaunchRequest& request, bool keeps_registers) {
  ptx::Module text = read_ptx(request.path);
  const std::string entry = entry_of(text, request.entry);
  PreparedLaunch out;
  const int target = request.target.value_or(ptx::target_for(text));
  out.config = config_of(request, entry, target);
  out.device = std::make_unique<ptx::Device>(ptx::ProgramOptions{.target = target,
                                                                 .sum = sum_of(request.sum),
                                                                 .registers_by_liveness = !keeps_registers,
                                                                 .contract = request.contract},
                                             request.max_memory);
  out.module = &out.device->load(std::move(text));
  if (request.strict) reject_unsupported(request.path, *out.module->program);
  out.arguments = place_arguments(*out.device, *out.module, entry, request.args, request.structs);
  out.config.params = out.arguments.params;
  return out;
}

}  // namespace kvscope::apps

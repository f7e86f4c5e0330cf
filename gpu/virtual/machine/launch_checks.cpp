#include "gpu/virtual/machine/launch_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "gpu/virtual/machine/cta_sample.h"
#include "gpu/virtual/machine/launch_parts.h"
#include "gpu/virtual/machine/program/cta_communication.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

using Extents = std::array<std::int64_t, 3>;

constexpr std::int64_t kMostThreads = 1024;
constexpr Extents kMostBlock{1024, 1024, 64};
constexpr Extents kMostGrid{std::numeric_limits<std::int32_t>::max(), 65535, 65535};
constexpr std::int64_t kSharedWithoutOptIn = 49152;
constexpr std::int64_t kMostParams = 32764;
constexpr std::array<char, 3> kAxis{'x', 'y', 'z'};

std::string text(const Extents& e) {
  return fmt::format("({}, {}, {})", e[0], e[1], e[2]);
}
Extents wide(const std::array<std::int32_t, 3>& e) {
  return {e[0], e[1], e[2]};
}
// Each extent has already been checked, so the product does not overflow.
std::int64_t product(const Extents& e) {
  return e[0] * e[1] * e[2];
}

class Checks {
 public:
  Checks(const Program& program, const LaunchConfig& config, std::int32_t kernel)
      : program_(program),
        config_(config),
        function_(program.module->functions[static_cast<std::size_t>(kernel)]),
        kernel_(kernel),
        layout_(program.kernels.at(kernel)) {}

  std::vector<Fault> all() {
    target();
    const bool block_fits = extents("block", config_.block, kMostBlock);
    if (block_fits) block();
    const bool grid_fits = extents("grid", config_.grid, kMostGrid);
    limits();
    if (block_fits && grid_fits) local();
    shared();
    params();
    if (grid_fits) cluster();
    if (grid_fits && faults_.empty()) sample();
    return std::move(faults_);
  }

 private:
  void fault(std::string_view where, std::string message) {
    faults_.push_back({std::string(where), std::move(message)});
  }

  bool extents(std::string_view what, const Extents& e, const Extents& most) {
    bool fits = true;
    for (std::size_t i = 0; i < 3; ++i) {
      if (e[i] >= 1 && e[i] <= most[i]) continue;
      fault(what, fmt::format("{} is {}: 1 to {}", kAxis[i], e[i], most[i]));
      fits = false;
    }
    return fits;
  }

  void target() {
    const Module& m = *program_.module;
    const int own = program_.options.target;
    const std::string_view suffix(&m.target_suffix, m.target_suffix == 0 ? 0 : 1);
    const bool same_family = m.target_suffix != 'f' || m.target / 10 == own / 10;
    if (m.target > own || (m.target_suffix == 'a' && m.target != own) || !same_family) {
      fault("target", fmt::format("the module is for sm_{}{}, the virtual GPU is sm_{}: pass --target {}", m.target,
                                  suffix, own, m.target));
    }
  }

  void block() {
    const std::int64_t threads = product(config_.block);
    if (threads > kMostThreads) fault("block", fmt::format("{} threads: 1 to {}", threads, kMostThreads));
    const KernelLimits& limits = function_.limits;
    const Extents most = wide(limits.max_threads), exactly = wide(limits.required_threads);
    if (most[0] > 0) {
      const std::int64_t bound = most[0] * std::max<std::int64_t>(most[1], 1) * std::max<std::int64_t>(most[2], 1);
      if (threads > bound) fault("block", fmt::format("{} threads: the kernel's .maxntid is {}", threads, bound));
    }
    if (exactly[0] > 0) {
      const Extents wanted{exactly[0], std::max<std::int64_t>(exactly[1], 1), std::max<std::int64_t>(exactly[2], 1)};
      if (config_.block != wanted) {
        fault("block", fmt::format("{}: the kernel's .reqntid is {}", text(config_.block), text(wanted)));
      }
    }
  }

  void shared() {
    if (config_.dynamic_shared < 0) {
      fault("shared", fmt::format("{} dynamic bytes: 0 or more", config_.dynamic_shared));
      return;
    }
    const std::int64_t most = most_shared(program_.options.target);
    const std::int64_t opt_in = config_.options.shared_opt_in;
    if (opt_in > most) fault("shared", fmt::format("opted in for {} bytes: at most {}", opt_in, most));
    const std::int64_t whole = layout_.static_shared + config_.dynamic_shared;
    const std::int64_t limit = opt_in > 0 ? std::min(std::max(opt_in, kSharedWithoutOptIn), most) : kSharedWithoutOptIn;
    if (whole <= limit) return;
    std::string message = fmt::format("{} static + {} dynamic bytes = {}: at most {}", layout_.static_shared,
                                      config_.dynamic_shared, whole, limit);
    if (limit < most) message += fmt::format("; opt in for up to {}", most);
    fault("shared", std::move(message));
  }

  void limits() {
    const LaunchLimits& own = config_.options.limits;
    const auto at_least = [&](std::string_view what, std::int64_t value) {
      if (value < 1) fault(fmt::format("limit of {}", what), fmt::format("{}: at least 1", value));
    };
    at_least("instructions", own.instructions);
    at_least("local memory", own.local_bytes);
    at_least("printed bytes", own.printed_bytes);
    at_least("heap bytes", own.heap_bytes);
    at_least("malloc blocks", own.heap_blocks);
    at_least("cooperative CTAs", own.cooperative_ctas);
    at_least("copies in flight", own.copies);
    const std::int64_t jobs = config_.options.jobs;
    if (jobs < 1 || jobs > kMostJobs) fault("jobs", fmt::format("{} threads: 1 to {}", jobs, kMostJobs));
  }

  // Extents have already been checked: at most 1024 threads of 2^32 bytes, and 2^63 / 2^42 CTAs are more than any memory.
  void local() {
    const std::int64_t thread = program_.functions[static_cast<std::size_t>(kernel_)].local_bytes;
    if (thread > kMostLocal) {
      return fault("local", fmt::format("'{}' needs {} bytes of local memory per thread: at most {}", function_.name,
                                        thread, kMostLocal));
    }
    const std::int64_t params = program_.functions[static_cast<std::size_t>(kernel_)].param_bytes;
    if (params > kMostLocal) {
      return fault("local", fmt::format("'{}' needs {} bytes of .param variables per thread: at most {}",
                                        function_.name, params, kMostLocal));
    }
    const LaunchLimits& own = config_.options.limits;
    const std::int64_t ctas = config_.grid[0] * config_.grid[1] * config_.grid[2];
    if (config_.options.cooperative && ctas > own.cooperative_ctas) {
      return fault("grid",
                   fmt::format("{} CTAs of a cooperative launch start together: at most {}; a smaller grid, or a "
                               "larger limit: --max-ctas",
                               ctas, own.cooperative_ctas));
    }
    Extents cluster = config_.cluster;
    if (cluster[0] == 0) cluster = wide(function_.limits.cluster);
    std::int64_t together = 1;
    for (const std::int64_t e : cluster) together *= std::clamp<std::int64_t>(e, 1, 16);
    if (config_.options.cooperative) together = ctas;
    const std::int64_t cta = local_bytes_of_cta(config_, program_, kernel_);
    if (cta > own.local_bytes / together) {
      fault("local", fmt::format("{} CTAs start together, with {} bytes of local memory each: at most {} in total; a "
                                 "smaller grid or block, or a larger limit: --max-local",
                                 together, cta, own.local_bytes));
    }
  }

  void params() {
    const auto given = static_cast<std::int64_t>(config_.params.size());
    if (given != function_.parameter_bytes) {
      fault("params", fmt::format("{} bytes: the kernel's block has {}", given, function_.parameter_bytes));
    } else if (given > kMostParams) {
      fault("params", fmt::format("{} bytes: at most {}", given, kMostParams));
    }
  }

  void cluster() {
    const Extents wanted = wide(function_.limits.cluster);
    Extents own = config_.cluster;
    if (own == Extents{}) own = wanted;
    if (own == Extents{}) return;
    for (const std::int64_t e : own) {
      if (e < 1)
        return fault("cluster",
                     fmt::format("{}: each extent is at least 1, or all are 0: the kernel's own", text(own)));
    }
    if (wanted[0] > 0 && own != wanted) {
      fault("cluster", fmt::format("{}: the kernel's .reqnctapercluster is {}", text(own), text(wanted)));
    }
    const std::int64_t most = config_.options.non_portable_cluster ? 16 : 8;
    const std::string_view more = most < 16 ? ", 16 with a non-portable size" : "";
    for (const std::int64_t e : own) {
      if (e > most) return fault("cluster", fmt::format("{}: at most {} CTAs{}", text(own), most, more));
    }
    if (product(own) > most) fault("cluster", fmt::format("{} CTAs: at most {}{}", product(own), most, more));
    for (std::size_t i = 0; i < 3; ++i) {
      if (config_.grid[i] % own[i] == 0) continue;
      fault("cluster", fmt::format("{} is {}, which does not divide the grid's {}", kAxis[i], own[i], config_.grid[i]));
    }
    const std::int32_t rank = function_.limits.max_cluster_rank;
    if (rank > 0 && product(own) > rank) {
      fault("cluster", fmt::format("{} CTAs: the kernel's .maxclusterrank is {}", product(own), rank));
    }
  }

  void sample() {
    if (config_.options.ctas.empty()) return;
    Extents cluster = config_.cluster;
    if (cluster[0] == 0) cluster = wide(function_.limits.cluster);
    const CtaSample chosen = sample_ctas(config_.options.ctas, config_.grid, cluster_extents(cluster));
    if (!chosen.fault.empty()) return fault("ctas", chosen.fault);
    if (chosen.clusters.empty()) return;
    if (config_.options.cooperative)
      return fault("ctas", "the CTAs of a cooperative launch wait for one another: run all of them");
    if (const std::string why = cta_communication(program_, kernel_).waits; !why.empty())
      fault("ctas", fmt::format("CTAs of this kernel can wait for one another: {}: run all of them", why));
  }

  const Program& program_;
  const LaunchConfig& config_;
  const Function& function_;
  std::int32_t kernel_;
  const KernelLayout& layout_;
  std::vector<Fault> faults_;
};

}  // namespace

std::int32_t find_kernel(const Program& program, std::string_view name) {
  const std::int32_t f = program.module->find_function(name);
  return f >= 0 && program.kernels.contains(f) ? f : -1;
}

std::string unknown_kernel(const Program& program, std::string_view name) {
  std::string out = fmt::format("no kernel '{}' in {}", name, program.module->file);
  if (program.kernels.empty()) return out + ": it has none";
  out += ": there are ";
  bool first = true;
  for (const auto& [f, layout] : program.kernels) {
    out += fmt::format("{}'{}'", first ? "" : ", ", program.module->functions[static_cast<std::size_t>(f)].name);
    first = false;
  }
  return out;
}

std::int64_t local_bytes_of_cta(const LaunchConfig& config, const Program& program, std::int32_t kernel) {
  const std::int64_t threads = config.block[0] * config.block[1] * config.block[2];
  const FunctionCode& code = program.functions[static_cast<std::size_t>(kernel)];
  return threads * code.local_bytes + (threads + kLanes - 1) / kLanes * kLanes * code.param_bytes;
}

std::vector<Fault> launch_faults(const Program& program, const LaunchConfig& config) {
  const std::int32_t kernel = find_kernel(program, config.kernel);
  if (kernel < 0) return {{"kernel", unknown_kernel(program, config.kernel)}};
  return Checks(program, config, kernel).all();
}

}  // namespace kvscope::ptx

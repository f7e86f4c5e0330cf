#include "gpu/driver/kvscope_gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "gpu/driver/engine.h"
#include "gpu/virtual/machine/launch_checks.h"

#define KVSCOPE_GPU_API extern "C" __attribute__((visibility("default")))

struct kvscope_gpu {
  explicit kvscope_gpu(const kvscope::driver::EngineOptions& options) : engine(options) {}

  struct Entry {
    std::string kind, severity, text;
  };
  kvscope::driver::Engine engine;
  std::vector<const kvscope::ptx::LoadedModule*> modules;
  std::vector<Entry> reports;
  std::string error, printed, jobs;
  std::int64_t ctas = 0;
};

namespace {

// The value of `work`, or `failure` with the message of its exception.
template <class Result, class Work>
Result guarded(kvscope_gpu* gpu, Result failure, Work&& work) {
  if (gpu == nullptr) return failure;
  try {
    return work();
  } catch (const std::exception& error) {
    gpu->error = error.what();
    return failure;
  }
}

std::array<std::int64_t, 3> wide(const std::uint32_t (&e)[3]) {
  return {e[0], e[1], e[2]};
}

const kvscope_gpu::Entry* entry_at(const kvscope_gpu* gpu, std::int64_t index) {
  if (gpu == nullptr || index < 0 || index >= static_cast<std::int64_t>(gpu->reports.size())) return nullptr;
  return &gpu->reports[static_cast<std::size_t>(index)];
}

}  // namespace

KVSCOPE_GPU_API int kvscope_gpu_version(void) {
  return KVSCOPE_GPU_VERSION;
}
KVSCOPE_GPU_API kvscope_gpu* kvscope_gpu_open(int target) {
  if (target != 90 && target != 100 && target != 120) return nullptr;
  try {
    kvscope::driver::EngineOptions options;
    options.target = target;
    return new kvscope_gpu(options);
  } catch (const std::exception&) {
    return nullptr;
  }
}
KVSCOPE_GPU_API void kvscope_gpu_close(kvscope_gpu* gpu) {
  delete gpu;
}
KVSCOPE_GPU_API const char* kvscope_gpu_error(const kvscope_gpu* gpu) {
  return gpu == nullptr ? "no gpu: kvscope_gpu_open returned NULL" : gpu->error.c_str();
}
KVSCOPE_GPU_API uint64_t kvscope_gpu_allocate(kvscope_gpu* gpu, int64_t bytes, const char* name) {
  return guarded(gpu, std::uint64_t{0},
                 [&] { return gpu->engine.memory().allocate(bytes, name == nullptr ? "" : name, false); });
}
KVSCOPE_GPU_API int kvscope_gpu_free(kvscope_gpu* gpu, uint64_t address) {
  return guarded(gpu, -1, [&] { return gpu->engine.memory().free(address), 0; });
}
KVSCOPE_GPU_API int kvscope_gpu_write(kvscope_gpu* gpu, uint64_t address, const void* from, size_t bytes) {
  return guarded(gpu, -1, [&] {
    if (bytes == 0) return 0;
    gpu->engine.memory().write(address, {static_cast<const std::byte*>(from), bytes});
    gpu->engine.written().host_wrote(gpu->engine.memory(), address, static_cast<std::int64_t>(bytes));
    return 0;
  });
}
KVSCOPE_GPU_API int kvscope_gpu_read(kvscope_gpu* gpu, void* to, uint64_t address, size_t bytes) {
  return guarded(gpu, -1, [&] {
    if (bytes == 0) return 0;
    const std::vector<std::byte> read = gpu->engine.memory().read(address, static_cast<std::int64_t>(bytes));
    std::memcpy(to, read.data(), read.size());
    return 0;
  });
}
KVSCOPE_GPU_API int kvscope_gpu_set_sum(kvscope_gpu* gpu, const char* sum) {
  return guarded(gpu, -1, [&] {
    const std::string name = sum == nullptr ? "" : sum;
    const auto mode = kvscope::ptx::sum_from_name(name);
    if (!mode) {
      gpu->error = fmt::format("sum: '{}' is not one of {}", name, fmt::join(kvscope::ptx::kSumNames, ", "));
      return -1;
    }
    gpu->engine.set_sum(*mode);
    return 0;
  });
}
KVSCOPE_GPU_API int kvscope_gpu_load(kvscope_gpu* gpu, const char* ptx, size_t bytes, const char* file) {
  return guarded(gpu, -1, [&] {
    gpu->modules.push_back(&gpu->engine.load(std::string(ptx, bytes), file == nullptr ? "module.ptx" : file));
    return static_cast<int>(gpu->modules.size()) - 1;
  });
}
KVSCOPE_GPU_API int kvscope_gpu_run(kvscope_gpu* gpu, int module, const struct kvscope_gpu_launch* launch) {
  return guarded(gpu, -1, [&] {
    if (module < 0 || module >= static_cast<int>(gpu->modules.size())) {
      gpu->error = "module " + std::to_string(module) + ": load it first with kvscope_gpu_load";
      return -1;
    }
    if (launch == nullptr || launch->size < offsetof(struct kvscope_gpu_launch, ctas) || launch->kernel == nullptr) {
      gpu->error = "launch: set its size to sizeof(struct kvscope_gpu_launch), and its kernel";
      return -1;
    }
    kvscope::ptx::LaunchConfig config;
    config.kernel = launch->kernel;
    config.grid = wide(launch->grid);
    config.block = wide(launch->block);
    config.cluster = wide(launch->cluster);
    if (config.cluster[0] > 0) {  // {2} in C is {2, 0, 0}
      for (std::int64_t& extent : config.cluster) extent = std::max<std::int64_t>(extent, 1);
    }
    config.dynamic_shared = launch->dynamic_shared;
    const auto* const params = static_cast<const std::byte*>(launch->params);
    if (params != nullptr) config.params.assign(params, params + launch->params_bytes);
    const auto has = [&](std::size_t member, std::size_t bytes) { return launch->size >= member + bytes; };
    if (has(offsetof(struct kvscope_gpu_launch, ctas), sizeof launch->ctas) && launch->ctas != nullptr)
      config.options.ctas = launch->ctas;
    if (has(offsetof(struct kvscope_gpu_launch, jobs), sizeof launch->jobs) && launch->jobs != 0)
      config.options.jobs = launch->jobs;
    config.options.shared_opt_in = kvscope::ptx::most_shared(gpu->engine.options().target);
    kvscope::ptx::LaunchResult result =
        gpu->engine.launch(*gpu->modules[static_cast<std::size_t>(module)], std::move(config));
    for (const kvscope::ptx::Report& report : result.reports)
      gpu->reports.push_back({std::string(name(report.kind)), std::string(name(report.severity)), to_text(report)});
    gpu->printed = std::move(result.printed);
    gpu->ctas = result.ctas;
    gpu->jobs = result.jobs_text();
    return result.status == kvscope::ptx::LaunchStatus::finished ? 0 : 1;
  });
}
KVSCOPE_GPU_API int64_t kvscope_gpu_reports(const kvscope_gpu* gpu) {
  return gpu == nullptr ? 0 : static_cast<std::int64_t>(gpu->reports.size());
}
KVSCOPE_GPU_API const char* kvscope_gpu_report_kind(const kvscope_gpu* gpu, int64_t index) {
  const kvscope_gpu::Entry* const entry = entry_at(gpu, index);
  return entry == nullptr ? nullptr : entry->kind.c_str();
}
KVSCOPE_GPU_API const char* kvscope_gpu_report_severity(const kvscope_gpu* gpu, int64_t index) {
  const kvscope_gpu::Entry* const entry = entry_at(gpu, index);
  return entry == nullptr ? nullptr : entry->severity.c_str();
}
KVSCOPE_GPU_API const char* kvscope_gpu_report_text(const kvscope_gpu* gpu, int64_t index) {
  const kvscope_gpu::Entry* const entry = entry_at(gpu, index);
  return entry == nullptr ? nullptr : entry->text.c_str();
}
KVSCOPE_GPU_API int64_t kvscope_gpu_ctas(const kvscope_gpu* gpu) {
  return gpu == nullptr ? 0 : gpu->ctas;
}
KVSCOPE_GPU_API const char* kvscope_gpu_printed(const kvscope_gpu* gpu) {
  return gpu == nullptr ? "" : gpu->printed.c_str();
}
KVSCOPE_GPU_API const char* kvscope_gpu_jobs(const kvscope_gpu* gpu) {
  return gpu == nullptr ? "" : gpu->jobs.c_str();
}

// libcudart: registration of device code, launches, attributes of kernels, occupancy.
#include <algorithm>
#include <cstring>

#include "gpu/driver/cuda_types.h"
#include "gpu/driver/face.h"
#include "gpu/virtual/machine/device_limits.h"
#include "gpu/virtual/machine/launch_checks.h"

namespace kvscope::driver {
namespace {

// What nvcc's registration passes: magic, version, the container, a list of relocatable parts.
struct FatWrapper {
  std::uint32_t magic, version;
  const void* container;
  const void* parts;
};

struct Shape {
  Dim3 grid, block;
  std::size_t shared = 0;
  void* stream = nullptr;
};
std::vector<Shape>& shapes() {  // of kernel<<<...>>>, from the push to the pop
  thread_local std::vector<Shape> pushed;
  return pushed;
}

std::array<std::int64_t, 3> extents(const Dim3& d) {
  return {d.x, d.y, d.z};
}

constexpr std::int64_t kMostThreads = 1024, kMostCluster = 16;  // of a block; blocks of a cluster

// The product of the extents, or any number above `most` if one of them or the product is: three of 2^32 do not fit.
std::int64_t volume(const std::array<std::int64_t, 3>& extents, std::int64_t most) {
  std::int64_t out = 1;
  for (const std::int64_t extent : extents) out = std::min(out * std::min(extent, most + 1), most + 1);
  return out;
}

Status issue_launch(Runtime& r, const void* function, const Shape& shape, void** arguments, bool cooperative = false,
                    std::array<std::int64_t, 3> cluster = {}) {
  KernelLaunch launch;
  launch.kernel = r.find_kernel(function);
  if (launch.kernel == nullptr) {
    r.report_call(
        "NO_KERNEL", "a function that no fat binary has registered", 0,
        "pass a __global__ function of this program; relocatable device code (nvcc -rdc=true) has no PTX that the "
        "virtual GPU could link");
    return kInvalidFunction;
  }
  r.call.detail = "of " + launch.kernel->name;
  launch.config.grid = extents(shape.grid);
  launch.config.block = extents(shape.block);
  launch.config.cluster = cluster;
  launch.config.dynamic_shared = static_cast<std::int64_t>(shape.shared);
  launch.config.options.cooperative = cooperative;
  if (const Status status = r.pack(*launch.kernel, arguments, launch.config.params); status != kSuccess) return status;
  return r.issue(shape.stream, kKernelNode, [&r, launch] { return r.launch(launch); });
}

// Maximum blocks of a kernel on one multiprocessor. PTX has no final register count, so registers are no limit here.
Status occupancy(Runtime& r, const void* function, int block, std::size_t dynamic, int& blocks) {
  Kernel* const kernel = r.find_kernel(function);
  if (kernel == nullptr) return kInvalidFunction;
  if (const Status status = r.load(*kernel->binary); status != kSuccess) return status;
  if (block < 1) return kInvalidValue;
  const ptx::Program& program = *kernel->binary->module->program;
  const std::int32_t index = ptx::find_kernel(program, kernel->name);
  if (index < 0) return kInvalidFunction;
  const std::int64_t threads = (static_cast<std::int64_t>(block) + 31) / 32 * 32;
  const int target = r.engine().options().target;
  blocks = 0;
  if (threads > kMostThreads || dynamic > static_cast<std::size_t>(ptx::most_shared(target))) return kSuccess;
  const std::int64_t shared =
      program.kernels.at(index).static_shared + static_cast<std::int64_t>(dynamic) + ptx::kReservedShared;
  blocks = static_cast<int>(
      std::min({ptx::threads_of_multiprocessor(target) / threads, ptx::blocks_of_multiprocessor(target),
                ptx::shared_of_multiprocessor(target) / shared}));
  return kSuccess;
}

struct ExtendedLaunch {
  Shape shape;
  std::array<std::int64_t, 3> cluster{};
  bool cooperative = false;
};
ExtendedLaunch extended(const LaunchConfiguration& c) {
  ExtendedLaunch out;
  out.shape = {.grid = c.grid, .block = c.block, .shared = c.dynamic_shared, .stream = c.stream};
  for (unsigned i = 0; i < c.attribute_count; ++i) {
    const LaunchAttribute& a = c.attributes[i];
    if (a.id == 2) out.cooperative = a.value.number != 0;
    if (a.id == 4 && a.value.dim.x > 0) out.cluster = {a.value.dim.x, a.value.dim.y, a.value.dim.z};
  }
  return out;
}

}  // namespace

// --- registration, called before main ---

KVSCOPE_CUDA void** __cudaRegisterFatBinary(void* wrapper) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  FatWrapper fat{};
  std::memcpy(&fat, wrapper, sizeof fat);
  return reinterpret_cast<void**>(r.add_binary(fat.container));
}
KVSCOPE_CUDA void __cudaRegisterFatBinaryEnd(void**) {}
KVSCOPE_CUDA void __cudaUnregisterFatBinary(void** binary) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  r.remove_binary(reinterpret_cast<Binary*>(binary));
}
KVSCOPE_CUDA void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, void*, void*,
                                         void*, void*, int*) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  r.add_kernel(reinterpret_cast<Binary*>(binary), host, name);
}
KVSCOPE_CUDA void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int, std::size_t size, int,
                                    int) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  r.add_variable(reinterpret_cast<Binary*>(binary), host, name, size);
}
KVSCOPE_CUDA void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}
KVSCOPE_CUDA void __cudaRegisterManagedVar(void** binary, void** host, char*, const char* name, int, std::size_t size,
                                           int, int) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  auto* const to = reinterpret_cast<Binary*>(binary);
  to->managed.emplace_back(host, name);
  r.add_variable(to, host, name, size);
}
KVSCOPE_CUDA char __cudaInitModule(void** binary) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  return r.load(*reinterpret_cast<Binary*>(binary)) == kSuccess ? 1 : 0;
}

// --- launches ---

KVSCOPE_CUDA unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, void* stream) {
  shapes().push_back({.grid = grid, .block = block, .shared = shared, .stream = stream});
  return 0;
}
KVSCOPE_CUDA int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  if (has_null({grid, block, shared, stream})) return kInvalidValue;
  if (shapes().empty()) return kMissingConfiguration;
  const Shape shape = shapes().back();
  shapes().pop_back();
  *grid = shape.grid;
  *block = shape.block;
  *shared = shape.shared;
  std::memcpy(stream, &shape.stream, sizeof shape.stream);
  return kSuccess;
}
KVSCOPE_CUDA int cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                                  void* stream) {
  return enter("cudaLaunchKernel", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_launch(r, function, {.grid = grid, .block = block, .shared = shared, .stream = stream}, arguments);
  });
}
KVSCOPE_CUDA int __cudaLaunchKernel(void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                                    void* stream) {
  return enter("cudaLaunchKernel", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_launch(r, kernel, {.grid = grid, .block = block, .shared = shared, .stream = stream}, arguments);
  });
}
KVSCOPE_CUDA int cudaLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                             std::size_t shared, void* stream) {
  return enter("cudaLaunchCooperativeKernel", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_launch(r, function, {.grid = grid, .block = block, .shared = shared, .stream = stream}, arguments,
                        true);
  });
}
KVSCOPE_CUDA int cudaLaunchKernelExC(const LaunchConfiguration* config, const void* function, void** arguments) {
  return enter("cudaLaunchKernelExC", KVSCOPE_CALLER, [&](Runtime& r) {
    if (config == nullptr) return kInvalidValue;
    const ExtendedLaunch e = extended(*config);
    return issue_launch(r, function, e.shape, arguments, e.cooperative, e.cluster);
  });
}
KVSCOPE_CUDA int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return enter("cudaLaunchHostFunc", KVSCOPE_CALLER, [&](Runtime& r) {
    if (function == nullptr) return kInvalidValue;
    return r.issue(stream, kHostNode, [function, data] { return function(data), kSuccess; });
  });
}

// --- kernels as objects ---

namespace {
Status kernel_of(Runtime& r, void** out, const void* function) {
  Kernel* const kernel = r.find_kernel(function);
  if (kernel == nullptr) return kInvalidFunction;
  *out = kernel;
  return kSuccess;
}
}  // namespace

KVSCOPE_CUDA int __cudaGetKernel(void** kernel, const void* function) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  return kernel == nullptr ? kInvalidValue : kernel_of(r, kernel, function);
}
KVSCOPE_CUDA int cudaGetKernel(void** kernel, const void* function) {
  return enter("cudaGetKernel", KVSCOPE_CALLER, {kernel}, [&](Runtime& r) { return kernel_of(r, kernel, function); });
}
KVSCOPE_CUDA int cudaGetFuncBySymbol(void** kernel, const void* function) {
  return enter("cudaGetFuncBySymbol", KVSCOPE_CALLER, {kernel},
               [&](Runtime& r) { return kernel_of(r, kernel, function); });
}
KVSCOPE_CUDA int cudaFuncGetName(const char** name, const void* function) {
  return enter("cudaFuncGetName", KVSCOPE_CALLER, {name}, [&](Runtime& r) {
    const Kernel* const kernel = r.find_kernel(function);
    if (kernel == nullptr) return kInvalidFunction;
    *name = kernel->name.c_str();
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset, std::size_t* size) {
  return enter("cudaFuncGetParamInfo", KVSCOPE_CALLER, {offset}, [&](Runtime& r) {
    Kernel* const kernel = r.find_kernel(function);
    if (kernel == nullptr) return kInvalidFunction;
    if (const Status status = r.load(*kernel->binary); status != kSuccess) return status;
    const ptx::Function* const f = r.function_of(*kernel);
    if (f == nullptr || index >= f->parameters.size()) return kInvalidValue;
    const ptx::Variable& v =
        kernel->binary->module->program->module->variables[static_cast<std::size_t>(f->parameters[index])];
    *offset = static_cast<std::size_t>(v.parameter_offset);
    if (size != nullptr) *size = static_cast<std::size_t>(v.bytes);
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaFuncGetAttributes(FunctionAttributes* out, const void* function) {
  return enter("cudaFuncGetAttributes", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    Kernel* const kernel = r.find_kernel(function);
    if (kernel == nullptr) return kInvalidFunction;
    if (const Status status = r.load(*kernel->binary); status != kSuccess) return status;
    const ptx::Program& program = *kernel->binary->module->program;
    const std::int32_t index = ptx::find_kernel(program, kernel->name);
    if (index < 0) return kInvalidFunction;
    const ptx::KernelLimits& limits = program.module->functions[static_cast<std::size_t>(index)].limits;
    const std::int64_t bound = std::int64_t{std::max(limits.max_threads[0], 1)} * std::max(limits.max_threads[1], 1) *
                               std::max(limits.max_threads[2], 1);
    *out = {};
    out->shared_bytes = static_cast<std::size_t>(program.kernels.at(index).static_shared);
    out->local_bytes = static_cast<std::size_t>(program.functions[static_cast<std::size_t>(index)].local_bytes);
    for (const ptx::Variable& v : program.module->variables)
      out->constant_bytes += v.space == ptx::Space::constant ? static_cast<std::size_t>(v.bytes) : 0;
    out->most_threads = limits.max_threads[0] > 0 ? static_cast<int>(bound) : 1024;
    // PTX has no final count: the bound that the kernel declares, or 32, with which a multiprocessor is full.
    out->registers = limits.max_registers > 0 ? limits.max_registers : 32;
    out->ptx_version = out->binary_version = program.module->target;
    out->most_dynamic_shared = static_cast<int>(kernel->most_dynamic);
    out->carveout = kernel->carveout;
    out->cluster_required = limits.cluster[0] > 0 ? 1 : 0;
    out->cluster_width = limits.cluster[0];
    out->cluster_height = limits.cluster[1];
    out->cluster_depth = limits.cluster[2];
    out->non_portable_cluster = kernel->non_portable_cluster ? 1 : 0;
    return kSuccess;
  });
}

namespace {
Status set_attribute(Runtime& r, const void* function, int attribute, int value) {
  Kernel* const kernel = r.find_kernel(function);
  if (kernel == nullptr) return kInvalidFunction;
  switch (attribute) {
    case 8:
      if (value < 0 || value > ptx::most_shared(r.engine().options().target)) return kInvalidValue;
      kernel->most_dynamic = value;
      return kSuccess;
    case 9:
      kernel->carveout = value;
      return kSuccess;
    case 14:
      kernel->non_portable_cluster = value != 0;
      return kSuccess;
    default:
      return attribute == 10 || attribute == 15 ? kSuccess : kInvalidValue;
  }
}
}  // namespace

KVSCOPE_CUDA int cudaFuncSetAttribute(const void* function, int attribute, int value) {
  return enter("cudaFuncSetAttribute", KVSCOPE_CALLER,
               [&](Runtime& r) { return set_attribute(r, function, attribute, value); });
}
KVSCOPE_CUDA int cudaKernelSetAttributeForDevice(void* kernel, int attribute, int value, int) {
  return enter("cudaKernelSetAttributeForDevice", KVSCOPE_CALLER,
               [&](Runtime& r) { return set_attribute(r, kernel, attribute, value); });
}
KVSCOPE_CUDA int cudaFuncSetCacheConfig(const void*, int) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaFuncSetSharedMemConfig(const void*, int) {
  return kSuccess;
}

// --- occupancy ---

KVSCOPE_CUDA int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block,
                                                                        std::size_t dynamic, unsigned) {
  return enter("cudaOccupancyMaxActiveBlocksPerMultiprocessor", KVSCOPE_CALLER, {blocks},
               [&](Runtime& r) { return occupancy(r, function, block, dynamic, *blocks); });
}
KVSCOPE_CUDA int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block,
                                                               std::size_t dynamic) {
  return enter("cudaOccupancyMaxActiveBlocksPerMultiprocessor", KVSCOPE_CALLER, {blocks},
               [&](Runtime& r) { return occupancy(r, function, block, dynamic, *blocks); });
}
KVSCOPE_CUDA int cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function, int blocks, int) {
  return enter("cudaOccupancyAvailableDynamicSMemPerBlock", KVSCOPE_CALLER, {bytes}, [&](Runtime& r) {
    if (blocks < 1) return kInvalidValue;
    int possible = 0;
    if (const Status status = occupancy(r, function, 32, 0, possible); status != kSuccess) return status;
    const int target = r.engine().options().target;
    const std::int64_t each = ptx::shared_of_multiprocessor(target) / blocks - ptx::kReservedShared;
    *bytes = static_cast<std::size_t>(std::clamp<std::int64_t>(each, 0, ptx::most_shared(target)));
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const LaunchConfiguration*) {
  return enter("cudaOccupancyMaxPotentialClusterSize", KVSCOPE_CALLER, {size}, [&](Runtime& r) {
    const Kernel* const kernel = r.find_kernel(function);
    if (kernel == nullptr) return kInvalidFunction;
    *size = kernel->non_portable_cluster ? 16 : 8;
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                const LaunchConfiguration* config) {
  return enter("cudaOccupancyMaxActiveClusters", KVSCOPE_CALLER, {clusters}, [&](Runtime& r) {
    if (config == nullptr) return kInvalidValue;
    const ExtendedLaunch e = extended(*config);
    int blocks = 0;
    const std::int64_t threads = volume(extents(config->block), kMostThreads), size = volume(e.cluster, kMostCluster);
    if (size > kMostCluster) return kInvalidValue;
    if (const Status status = occupancy(r, function, static_cast<int>(threads), config->dynamic_shared, blocks);
        status != kSuccess)
      return status;
    *clusters = static_cast<int>(ptx::kMultiprocessors * blocks / std::max<std::int64_t>(size, 1));
    return kSuccess;
  });
}

KVSCOPE_CUDA_PER_THREAD(cudaLaunchKernel_ptsz, cudaLaunchKernel,
                        (const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                         void* stream),
                        (function, grid, block, arguments, shared, stream))
KVSCOPE_CUDA_PER_THREAD(__cudaLaunchKernel_ptsz, __cudaLaunchKernel,
                        (void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared, void* stream),
                        (kernel, grid, block, arguments, shared, stream))
KVSCOPE_CUDA_PER_THREAD(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel,
                        (const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                         void* stream),
                        (function, grid, block, arguments, shared, stream))
KVSCOPE_CUDA_PER_THREAD(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC,
                        (const LaunchConfiguration* config, const void* function, void** arguments),
                        (config, function, arguments))
KVSCOPE_CUDA_PER_THREAD(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc,
                        (void* stream, void (*function)(void*), void* data), (stream, function, data))

}  // namespace kvscope::driver

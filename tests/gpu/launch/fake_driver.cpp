// A CUDA driver for machines without one: performs the calls of CudaGpu on the virtual GPU. The arguments (PTX, shapes,
// parameter blocks, tensor maps) are thereby used, not only recorded; and calls fail on request.
#include "tests/gpu/launch/fake_driver.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tma/tensor_map_record.h"
#include "gpu/launch/cuda_driver.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/text/parser.h"

namespace cuda = kvscope::gpu::cuda;
namespace ptx = kvscope::ptx;

namespace kvscope::gpu::cuda {

struct ContextObject {};
struct ModuleObject {
  const ptx::LoadedModule* module = nullptr;
};
struct FunctionObject {
  const ModuleObject* of = nullptr;
  std::string name;
  std::int64_t parameter_bytes = 0;
  std::int64_t dynamic_shared = 48 * 1024;
};
struct EventObject {
  std::uint64_t launches = 0;
};

}  // namespace kvscope::gpu::cuda

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoContext = 201, kNoBinary = 209, kInvalidPtx = 218,
              kNotFound = 500, kIllegalInstruction = 715, kMisalignedAddress = 716, kLaunchFailed = 719;

kvscope::gpu::test::FakeBehavior behavior;
std::optional<ptx::Device> device;
std::vector<std::unique_ptr<cuda::ModuleObject>> modules;
std::vector<std::unique_ptr<cuda::FunctionObject>> functions;
cuda::ContextObject the_context;
thread_local bool current = false;  // the context has been set on this thread
int pending = 0;                    // the error of a kernel: every later call of the context returns it
bool hangs = false;                 // a kernel runs that does not end
std::uint64_t launches = 0;

template <class Work>
cuda::Status guarded(int otherwise, const Work& work) {
  if (!current) return kNoContext;
  if (pending != 0) return pending;
  try {
    return work();
  } catch (const std::exception&) {
    return otherwise;
  }
}

// Whether the environment variable names this kernel.
bool told(const char* variable, const std::string& entry) {
  const char* const named = std::getenv(variable);
  return named != nullptr && entry == named;
}

int major_version() {
  return std::getenv(kvscope::gpu::test::kNewer) != nullptr ? 10 : behavior.major;
}

// The error code that a GPU returns for the machine's report.
// Hardware does not stop for what the virtual GPU warns of.
bool stops(const ptx::LaunchResult& result) {
  return result.status != ptx::LaunchStatus::finished ||
         std::any_of(result.reports.begin(), result.reports.end(),
                     [](const ptx::Report& report) { return report.severity == ptx::Severity::error; });
}
int error_of(const ptx::LaunchResult& result) {
  for (const ptx::Report& report : result.reports) {
    if (report.message.find("error 715") != std::string::npos) return kIllegalInstruction;
    if (report.message.find("error 716") != std::string::npos) return kMisalignedAddress;
  }
  return kLaunchFailed;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void kvscope_fake_driver(const kvscope::gpu::test::FakeBehavior* to) {
  behavior = *to;
  pending = 0;
}

#define FAKE [[gnu::visibility("default")]] cuda::Status

FAKE cuInit(unsigned) {
  return behavior.init;
}
FAKE cuDriverGetVersion(int* version) {
  *version = behavior.version;
  return 0;
}
FAKE cuDeviceGetCount(int* count) {
  *count = std::getenv(kvscope::gpu::test::kNoGpu) != nullptr ? 0 : behavior.gpus;
  return 0;
}
FAKE cuDeviceGet(cuda::DeviceHandle* handle, int ordinal) {
  *handle = ordinal;
  return ordinal < behavior.gpus ? 0 : 101;
}
FAKE cuDeviceGetName(char* name, int length, cuda::DeviceHandle) {
  std::strncpy(name, "Imitation H200", static_cast<std::size_t>(length));
  return 0;
}
FAKE cuDeviceGetAttribute(int* value, int attribute, cuda::DeviceHandle) {
  switch (attribute) {
    case cuda::kAttributeMultiprocessors:
      *value = 132;
      return 0;
    case cuda::kAttributeMajor:
      *value = major_version();
      return 0;
    case cuda::kAttributeMinor:
      *value = behavior.minor;
      return 0;
    case cuda::kAttributeSharedOptIn:
      *value = static_cast<int>(ptx::most_shared(90));
      return 0;
    default:
      return kInvalidValue;
  }
}
FAKE cuDeviceTotalMem_v2(std::size_t* bytes, cuda::DeviceHandle) {
  *bytes = std::size_t{1} << 34;
  return 0;
}
FAKE cuDevicePrimaryCtxRetain(cuda::Context* context, cuda::DeviceHandle) {
  *context = &the_context;
  device.emplace(ptx::ProgramOptions{.target = major_version() * 10});
  return 0;
}
FAKE cuDevicePrimaryCtxRelease_v2(cuda::DeviceHandle) {
  current = false;
  functions.clear();
  modules.clear();
  device.reset();
  return 0;
}
FAKE cuCtxSetCurrent(cuda::Context context) {
  current = context == &the_context;
  return 0;
}
FAKE cuCtxSynchronize() {
  while (hangs) pause();
  return behavior.synchronize != 0 ? behavior.synchronize : pending;
}
FAKE cuModuleLoadDataEx(cuda::Module* module, const void* image, unsigned options, int* names, void** values) {
  const auto complain = [&](const std::string& words) {
    for (unsigned i = 0; i < options; ++i)
      if (names[i] == cuda::kJitErrorLog) std::strcpy(static_cast<char*>(values[i]), words.substr(0, 500).c_str());
    return kInvalidPtx;
  };
  if (behavior.module_load != 0) return complain("ptxas application ptx input, line 9; fatal : unsupported version");
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return kNoBinary;  // machine code for a different GPU
  return guarded(kInvalidPtx, [&] {
    try {
      auto made = std::make_unique<cuda::ModuleObject>();
      made->module = &device->load(ptx::parse_module(static_cast<const char*>(image), "image"));
      *module = made.get();
      modules.push_back(std::move(made));
      return 0;
    } catch (const std::exception& error) {
      return complain(error.what());
    }
  });
}
FAKE cuModuleUnload(cuda::Module) {
  return 0;
}
FAKE cuModuleGetFunction(cuda::Function* function, cuda::Module module, const char* name) {
  for (const ptx::Function& f : module->module->program->module->functions) {
    if (!f.entry || f.name != name) continue;
    auto made = std::make_unique<cuda::FunctionObject>();
    made->of = module;
    made->name = name;
    made->parameter_bytes = f.parameter_bytes;
    *function = made.get();
    functions.push_back(std::move(made));
    return 0;
  }
  return kNotFound;
}
FAKE cuFuncSetAttribute(cuda::Function function, int attribute, int value) {
  if (attribute != cuda::kFunctionDynamicShared || value < 0 || value > ptx::most_shared(90)) return kInvalidValue;
  function->dynamic_shared = value;
  return 0;
}
FAKE cuMemAlloc_v2(cuda::Address* address, std::size_t bytes) {
  if (behavior.allocate != 0) return behavior.allocate;
  return guarded(kOutOfMemory, [&] {
    *address = device->memory().allocate(static_cast<std::int64_t>(bytes), "memory", false);
    return 0;
  });
}
FAKE cuMemFree_v2(cuda::Address address) {
  return guarded(kInvalidValue, [&] {
    device->memory().free(address);
    return 0;
  });
}
FAKE cuMemcpyHtoD_v2(cuda::Address to, const void* from, std::size_t bytes) {
  return guarded(kInvalidValue, [&] {
    device->memory().write(to, {static_cast<const std::byte*>(from), bytes});
    return 0;
  });
}
FAKE cuMemcpyDtoH_v2(void* to, cuda::Address from, std::size_t bytes) {
  return guarded(kInvalidValue, [&] {
    const std::vector<std::byte> read = device->memory().read(from, static_cast<std::int64_t>(bytes));
    std::memcpy(to, read.data(), bytes);
    return 0;
  });
}
FAKE cuMemcpyDtoDAsync_v2(cuda::Address to, cuda::Address from, std::size_t bytes, cuda::Stream) {
  return guarded(kInvalidValue, [&] {
    device->memory().write(to, device->memory().read(from, static_cast<std::int64_t>(bytes)));
    ++launches;
    return 0;
  });
}
FAKE cuLaunchKernel(cuda::Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, cuda::Stream, void** params, void**) {
  if (shared > function->dynamic_shared) return kInvalidValue;
  return guarded(kInvalidValue, [&] {
    ptx::LaunchConfig config;
    config.kernel = function->name;
    config.grid = {gx, gy, gz};
    config.block = {bx, by, bz};
    config.dynamic_shared = shared;
    const auto* bytes = static_cast<const std::byte*>(params[0]);
    config.params.assign(bytes, bytes + function->parameter_bytes);
    config.options.shared_opt_in = ptx::most_shared(90);
    if (told(kvscope::gpu::test::kCrashes, function->name)) std::raise(SIGSEGV);
    if (told(kvscope::gpu::test::kHangs, function->name)) hangs = true;
    if (told(kvscope::gpu::test::kEndsContext, function->name)) pending = kLaunchFailed;
    if (hangs || pending != 0) return 0;
    const ptx::LaunchResult result = device->launch(*function->of->module, config);
    ++launches;
    if (stops(result)) pending = error_of(result);
    return 0;
  });
}
FAKE cuEventCreate(cuda::Event* event, unsigned) {
  *event = new cuda::EventObject;
  return 0;
}
FAKE cuEventRecord(cuda::Event event, cuda::Stream) {
  event->launches = launches;
  return 0;
}
FAKE cuEventSynchronize(cuda::Event) {
  return pending;
}
// A launch takes one millisecond here, and so does a copy on the device.
FAKE cuEventElapsedTime(float* milliseconds, cuda::Event begin, cuda::Event end) {
  *milliseconds = static_cast<float>(end->launches - begin->launches);
  return 0;
}
FAKE cuEventDestroy_v2(cuda::Event event) {
  delete event;
  return 0;
}
FAKE cuGetErrorName(cuda::Status status, const char** name) {
  *name = status == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_FAKE_DRIVER";
  return 0;
}
FAKE cuGetErrorString(cuda::Status status, const char** text) {
  *text = status == kOutOfMemory ? "out of memory" : "the fake driver returned this on request";
  return 0;
}
FAKE cuTensorMapEncodeTiled(void* map, int data_type, std::uint32_t rank, void* base, const std::uint64_t* dims,
                            const std::uint64_t* strides, const std::uint32_t* box,
                            const std::uint32_t* element_strides, int interleave, int swizzle, int l2, int fill) {
  if (behavior.encode != 0) return behavior.encode;
  if (dims == nullptr || strides == nullptr || box == nullptr || element_strides == nullptr) return kInvalidValue;
  return guarded(kInvalidValue, [&] {
    kvscope::TensorMap made;
    made.data_type = static_cast<kvscope::TmaDataType>(data_type);
    made.rank = static_cast<int>(rank);
    made.base = reinterpret_cast<std::uint64_t>(base);
    for (std::size_t i = 0; i < rank; ++i) {
      made.dims.at(i) = dims[i];
      made.box.at(i) = box[i];
      made.element_strides.at(i) = element_strides[i];
      if (i > 0) made.strides.at(i - 1) = strides[i - 1];
    }
    made.interleave = static_cast<kvscope::TmaInterleave>(interleave);
    made.swizzle = static_cast<kvscope::TmaSwizzle>(swizzle);
    made.l2 = static_cast<kvscope::L2Promotion>(l2);
    made.fill = static_cast<kvscope::OobFill>(fill);
    const kvscope::TensorMapRecord record = encode_tensor_map("the fake driver", made, kvscope::TmaTarget::sm_90);
    std::memcpy(map, record.data(), record.size());
    return 0;
  });
}

}  // extern "C"

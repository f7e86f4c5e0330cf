#include "gpu/launch/cuda_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/tma/tensor_map_rules.h"
#include "gpu/launch/cuda_driver.h"
#include "gpu/launch/device_error.h"
#include "gpu/launch/kernel_images.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kSharedUnasked = 48 * 1024;  // [bytes] a kernel may use without opting in

// A launch extent in the driver's 32 bits.
unsigned narrow(std::int64_t n) {
  return static_cast<unsigned>(n);
}

int attribute(const cuda::Driver& driver, int which, cuda::DeviceHandle device) {
  int value = 0;
  driver.check(driver.device_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

// The architecture whose code the GPU runs. sm_90a code runs only on 9.0, and sm_100a code only on 10.0.
std::string architecture_of(int major, int minor) {
  if (major == 9 && minor == 0) return "sm_90a";
  if (major == 10 && minor == 0) return "sm_100a";
  return fmt::format("sm_{}{}", major, minor);
}

DeviceInfo describe(const cuda::Driver& driver, cuda::DeviceHandle device) {
  DeviceInfo info;
  info.kind = "cuda";
  char name[256] = {};
  driver.check(driver.device_name(name, sizeof name - 1, device), "cuDeviceGetName");
  info.name = name;
  info.architecture = architecture_of(attribute(driver, cuda::kAttributeMajor, device),
                                      attribute(driver, cuda::kAttributeMinor, device));
  int version = 0;
  driver.check(driver.driver_version(&version), "cuDriverGetVersion");
  info.driver = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  info.multiprocessors = attribute(driver, cuda::kAttributeMultiprocessors, device);
  std::size_t bytes = 0;
  driver.check(driver.device_memory(&bytes, device), "cuDeviceTotalMem");
  info.memory_bytes = static_cast<std::int64_t>(bytes);
  return info;
}

int count_devices(const cuda::Driver& driver) {
  driver.check(driver.init(0), "cuInit");
  int count = 0;
  driver.check(driver.device_count(&count), "cuDeviceGetCount");
  return count;
}

}  // namespace

struct CudaGpu::Handles {
  explicit Handles(const cuda::Driver& d) : driver(d) {}
  const cuda::Driver& driver;
  cuda::DeviceHandle device = 0;
  cuda::Context context = nullptr;
  cuda::Event begin = nullptr, end = nullptr;
  int most_shared = 0;                                                      // [bytes] of a block
  std::map<std::string, cuda::Module> modules;                              // by kernel
  std::map<std::pair<std::string, std::string>, cuda::Function> functions;  // by kernel and entry
};

CudaGpu::CudaGpu(CudaGpuOptions options) : handles_(std::make_unique<Handles>(cuda::driver(options.library))) {
  const cuda::Driver& driver = handles_->driver;
  const int count = count_devices(driver);
  if (options.ordinal < 0 || options.ordinal >= count)
    throw DeviceError(count == 0 ? std::string("the driver finds no GPU on this machine")
                                 : fmt::format("no GPU {} on this machine: 0 to {}", options.ordinal, count - 1));
  driver.check(driver.device_get(&handles_->device, options.ordinal), "cuDeviceGet");
  info_ = describe(driver, handles_->device);
  if (info_.architecture != "sm_90a" && info_.architecture != "sm_100a")
    throw DeviceError(
        fmt::format("{} is {}: these kernels are compiled for sm_90a and sm_100a, and code of an "
                    "architecture with an a runs on no other; use --device virtual",
                    info_.name, info_.architecture));
  handles_->most_shared = attribute(driver, cuda::kAttributeSharedOptIn, handles_->device);
  driver.check(driver.context_retain(&handles_->context, handles_->device), "cuDevicePrimaryCtxRetain");
  driver.check(driver.context_set(handles_->context), "cuCtxSetCurrent");
  driver.check(driver.event_create(&handles_->begin, 0), "cuEventCreate");
  driver.check(driver.event_create(&handles_->end, 0), "cuEventCreate");
}

CudaGpu::~CudaGpu() {
  const cuda::Driver& driver = handles_->driver;  // with a context that a kernel has destroyed, all of these fail
  for (const auto& [kernel, module] : handles_->modules) driver.module_unload(module);
  if (handles_->begin != nullptr) driver.event_destroy(handles_->begin);
  if (handles_->end != nullptr) driver.event_destroy(handles_->end);
  if (handles_->context != nullptr) driver.context_release(handles_->device);
}

std::uint64_t CudaGpu::allocate(std::int64_t bytes, std::string_view name) {
  cuda::Address address = 0;
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  handles_->driver.check(handles_->driver.allocate(&address, count),
                         fmt::format("cuMemAlloc of {} bytes for '{}'", count, name));
  return address;
}

void CudaGpu::release(std::uint64_t address) noexcept {
  handles_->driver.release(address);  // fails if the context was destroyed: its memory is already released
}

void CudaGpu::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  handles_->driver.check(handles_->driver.copy_to_device(address, bytes.data(), bytes.size()),
                         fmt::format("cuMemcpyHtoD of {} bytes", bytes.size()));
}

void CudaGpu::read(std::uint64_t address, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  handles_->driver.check(handles_->driver.copy_to_host(bytes.data(), address, bytes.size()),
                         fmt::format("cuMemcpyDtoH of {} bytes", bytes.size()));
}

TensorMapSlot CudaGpu::encode(const TensorMap& map) {
  check_tensor_map(map, info_.architecture == "sm_100a" ? TmaTarget::sm_100 : TmaTarget::sm_90)
      .throw_if_broken("a kernel's argument");
  TensorMapSlot slot;
  handles_->driver.check(handles_->driver.encode_tiled(
                             slot.bytes, static_cast<int>(map.data_type), static_cast<std::uint32_t>(map.rank),
                             reinterpret_cast<void*>(map.base), map.dims.data(), map.strides.data(), map.box.data(),
                             map.element_strides.data(), static_cast<int>(map.interleave),
                             static_cast<int>(map.swizzle), static_cast<int>(map.l2), static_cast<int>(map.fill)),
                         "cuTensorMapEncodeTiled");
  return slot;
}

namespace {

// The driver compiles the text, which ends with a zero byte.
cuda::Module compiled(const cuda::Driver& driver, const char* text, const std::string& what) {
  cuda::Module module = nullptr;
  std::string log(8192, '\0');
  int names[] = {cuda::kJitErrorLog, cuda::kJitErrorLogBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  const cuda::Status status = driver.module_load(&module, text, 2, names, values);
  driver.check(status, fmt::format("cuModuleLoadDataEx of {}: {}", what, log.c_str()));
  return module;
}

}  // namespace

void CudaGpu::use_ptx(const std::string& kernel, const std::string& text) {
  const cuda::Driver& driver = handles_->driver;
  cuda::Module module = compiled(driver, text.c_str(), fmt::format("kernel {} (driver {})", kernel, info_.driver));
  cuda::Module& kept = handles_->modules[kernel];
  if (kept != nullptr) {
    driver.module_unload(kept);
    std::erase_if(handles_->functions, [&](const auto& one) { return one.first.first == kernel; });
  }
  kept = module;
}

// Loads the machine code if the program contains it and the driver accepts it, otherwise PTX.
void* CudaGpu::module_of(const std::string& kernel) {
  const cuda::Driver& driver = handles_->driver;
  const auto found = handles_->modules.find(kernel);
  if (found != handles_->modules.end()) return found->second;
  cuda::Module module = nullptr;
  const KernelImage* code = machine_image(kernel, info_.architecture);
  if (code == nullptr || driver.module_load(&module, code->bytes.data(), 0, nullptr, nullptr) != 0) {
    const KernelImage& image = kernel_image(kernel, info_.architecture);
    module = compiled(driver, image.bytes.data(),
                      fmt::format("kernel {} ({}, driver {})", kernel, image.architecture, info_.driver));
  }
  handles_->modules.emplace(kernel, module);
  return module;
}

void* CudaGpu::function_of(const KernelLaunch& launch) {
  const std::pair key(launch.kernel, launch.entry);
  if (const auto found = handles_->functions.find(key); found != handles_->functions.end()) return found->second;
  const cuda::Driver& driver = handles_->driver;
  auto* module = static_cast<cuda::Module>(module_of(launch.kernel));
  cuda::Function function = nullptr;
  driver.check(driver.module_function(&function, module, launch.entry.c_str()),
               fmt::format("cuModuleGetFunction of '{}' in kernel {}", launch.entry, launch.kernel));
  handles_->functions.emplace(key, function);
  return function;
}

void CudaGpu::enqueue(const KernelLaunch& launch, std::span<const std::byte> params) {
  auto* function = static_cast<cuda::Function>(function_of(launch));
  if (launch.dynamic_shared > kSharedUnasked)
    handles_->driver.check(
        handles_->driver.function_set(function, cuda::kFunctionDynamicShared, static_cast<int>(launch.dynamic_shared)),
        fmt::format("cuFuncSetAttribute of '{}': {} bytes of shared memory, and this GPU has {}", launch.entry,
                    launch.dynamic_shared, handles_->most_shared));
  void* values[] = {const_cast<std::byte*>(params.data())};
  const auto& [gx, gy, gz] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  handles_->driver.check(handles_->driver.launch(function, narrow(gx), narrow(gy), narrow(gz), narrow(bx), narrow(by),
                                                 narrow(bz), narrow(launch.dynamic_shared), nullptr, values, nullptr),
                         fmt::format("cuLaunchKernel of {}: grid {},{},{} block {},{},{} shared {} bytes", launch.entry,
                                     gx, gy, gz, bx, by, bz, launch.dynamic_shared));
}

Outcome CudaGpu::launch(const KernelLaunch& launch, std::span<const std::byte> params) {
  enqueue(launch, params);
  Outcome outcome;
  const cuda::Status status = handles_->driver.synchronize();
  if (status != 0)
    outcome.faults.push_back(
        fmt::format("kernel {}: cuCtxSynchronize: {}", launch.entry, handles_->driver.words(status)));
  return outcome;
}

void CudaGpu::copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes) {
  handles_->driver.check(handles_->driver.copy_on_device(to, from, static_cast<std::size_t>(bytes), nullptr),
                         fmt::format("cuMemcpyDtoD of {} bytes", bytes));
}

float CudaGpu::elapsed_ms(const std::function<void()>& work) {
  const cuda::Driver& driver = handles_->driver;
  driver.check(driver.event_record(handles_->begin, nullptr), "cuEventRecord");
  work();
  driver.check(driver.event_record(handles_->end, nullptr), "cuEventRecord");
  driver.check(driver.event_synchronize(handles_->end), "cuEventSynchronize");
  float ms = 0;
  driver.check(driver.event_elapsed(&ms, handles_->begin, handles_->end), "cuEventElapsedTime");
  return ms;
}

}  // namespace kvscope::gpu

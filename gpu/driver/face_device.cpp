// libcudart: the device, its limits and properties, errors, versions, functions of the driver.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "gpu/driver/cuda_types.h"
#include "gpu/driver/face.h"
#include "gpu/driver/tensor_maps.h"
#include "gpu/virtual/machine/device_limits.h"
#include "gpu/virtual/machine/limits.h"

namespace kvscope::driver {
namespace {

constexpr int kMultiprocessorCount = static_cast<int>(ptx::kMultiprocessors);
constexpr int kClock = 1'000'000;  // [kHz] nominal: the virtual GPU has no clock

const char* device_name(int target) {
  return target == 90    ? "kvscope virtual GPU (sm_90a)"
         : target == 100 ? "kvscope virtual GPU (sm_100a)"
                         : "kvscope virtual GPU (sm_120a)";
}

template <class Properties>
void fill(Properties& p, Runtime& r) {
  const int target = r.engine().options().target;
  std::memset(&p, 0, sizeof p);
  std::strncpy(p.name, device_name(target), sizeof p.name - 1);
  p.global_memory[0] = static_cast<std::size_t>(r.engine().options().memory);
  p.shared_per_block[0] = 49152;
  p.registers_per_block[0] = p.registers_per_multiprocessor[0] = 65536;
  p.warp_size[0] = 32;
  p.pitch[0] = 0x7fffffff;
  p.threads_per_block[0] = 1024;
  constexpr int kBlock[] = {1024, 1024, 64}, kGrid[] = {0x7fffffff, 65535, 65535};
  std::copy_n(kBlock, 3, p.block_limits);
  std::copy_n(kGrid, 3, p.grid_limits);
  p.constant_memory[0] = 65536;
  p.major[0] = target / 10;
  p.minor[0] = target % 10;
  p.texture_alignment[0] = 512;
  p.texture_pitch_alignment[0] = 32;
  p.multiprocessors[0] = kMultiprocessorCount;
  p.maps_host_memory[0] = p.unified_addressing[0] = p.managed_memory[0] = p.cooperative_launch[0] = 1;
  p.concurrent_kernels[0] = p.stream_priorities[0] = p.host_register[0] = p.memory_pools[0] = 1;
  p.cluster_launch[0] = 1;
  p.async_engines[0] = 1;
  p.memory_bus_width[0] = 5120;
  p.l2_bytes[0] = 50 << 20;
  p.threads_per_multiprocessor[0] = static_cast<int>(ptx::threads_of_multiprocessor(target));
  p.shared_per_multiprocessor[0] = static_cast<std::size_t>(ptx::shared_of_multiprocessor(target));
  p.shared_opt_in[0] = static_cast<std::size_t>(ptx::most_shared(target));
  p.blocks_per_multiprocessor[0] = static_cast<int>(ptx::blocks_of_multiprocessor(target));
  p.reserved_shared[0] = static_cast<std::size_t>(ptx::kReservedShared);
  p.global_l1[0] = p.local_l1[0] = 1;
}

// By the numbers of cudaDeviceAttr; 0 for those that the virtual GPU does not have, as for an unsupported feature.
int attribute_value(int attribute, Runtime& r) {
  const int target = r.engine().options().target;
  static const std::map<int, int> kValues{{1, 1024},       {2, 1024},  {3, 1024},        {4, 64},
                                          {5, 0x7fffffff}, {6, 65535}, {7, 65535},       {8, 49152},
                                          {9, 65536},      {10, 32},   {11, 0x7fffffff}, {12, 65536},
                                          {13, kClock},    {14, 512},  {15, 1},          {16, kMultiprocessorCount},
                                          {19, 1},         {31, 1},    {36, kClock},     {37, 5120},
                                          {38, 50 << 20},  {40, 1},    {41, 1},          {51, 32},
                                          {78, 1},         {79, 1},    {80, 1},          {82, 65536},
                                          {83, 1},         {95, 1},    {99, 1},          {115, 1},
                                          {120, 1}};
  switch (attribute) {
    case 39:
      return static_cast<int>(ptx::threads_of_multiprocessor(target));
    case 75:
      return target / 10;
    case 76:
      return target % 10;
    case 81:
      return static_cast<int>(ptx::shared_of_multiprocessor(target));
    case 97:
      return static_cast<int>(ptx::most_shared(target));
    case 106:
      return static_cast<int>(ptx::blocks_of_multiprocessor(target));
    case 111:
      return static_cast<int>(ptx::kReservedShared);
    default:
      break;
  }
  const auto found = kValues.find(attribute);
  return found == kValues.end() ? 0 : found->second;
}

Status check_device(int device) {
  return device == 0 ? kSuccess : kInvalidDevice;
}

}  // namespace

int& runtime_version() {
  static int version = 13000;
  return version;
}

Status& last_status() {
  thread_local Status status = kSuccess;
  return status;
}

// --- errors ---

KVSCOPE_CUDA int cudaGetLastError() {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  const Status status = r.sticky != kSuccess ? r.sticky : last_status();
  last_status() = kSuccess;
  return status;
}
KVSCOPE_CUDA int cudaPeekAtLastError() {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  return r.sticky != kSuccess ? r.sticky : last_status();
}
KVSCOPE_CUDA const char* cudaGetErrorName(int status) {
  return status_name(status);
}
KVSCOPE_CUDA const char* cudaGetErrorString(int status) {
  return status_text(status);
}

// --- the device ---

KVSCOPE_CUDA int cudaGetDeviceCount(int* count) {
  return enter_always("cudaGetDeviceCount", KVSCOPE_CALLER, {count}, [&](Runtime&) { return *count = 1, kSuccess; });
}
KVSCOPE_CUDA int cudaGetDevice(int* device) {
  return enter_always("cudaGetDevice", KVSCOPE_CALLER, {device}, [&](Runtime&) { return *device = 0, kSuccess; });
}
KVSCOPE_CUDA int cudaSetDevice(int device) {
  return enter("cudaSetDevice", KVSCOPE_CALLER, [&](Runtime&) { return check_device(device); });
}
KVSCOPE_CUDA int cudaInitDevice(int device, unsigned, unsigned) {
  return enter("cudaInitDevice", KVSCOPE_CALLER, [&](Runtime&) { return check_device(device); });
}
KVSCOPE_CUDA int cudaChooseDevice(int* device, const void*) {
  return enter("cudaChooseDevice", KVSCOPE_CALLER, {device}, [&](Runtime&) { return *device = 0, kSuccess; });
}
KVSCOPE_CUDA int cudaSetValidDevices(int* /*devices*/, int) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaSetDeviceFlags(unsigned) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaGetDeviceFlags(unsigned* flags) {
  return enter_always("cudaGetDeviceFlags", KVSCOPE_CALLER, {flags}, [&](Runtime&) { return *flags = 0, kSuccess; });
}
KVSCOPE_CUDA int cudaDeviceSynchronize() {
  return enter("cudaDeviceSynchronize", KVSCOPE_CALLER, [](Runtime& r) { return r.synchronize_device(); });
}
KVSCOPE_CUDA int cudaThreadSynchronize() {
  return enter("cudaThreadSynchronize", KVSCOPE_CALLER, [](Runtime& r) { return r.synchronize_device(); });
}
KVSCOPE_CUDA int cudaDeviceReset() {
  return enter_always("cudaDeviceReset", KVSCOPE_CALLER, [](Runtime& r) { return r.reset(), kSuccess; });
}
KVSCOPE_CUDA int cudaThreadExit() {
  return enter_always("cudaThreadExit", KVSCOPE_CALLER, [](Runtime& r) { return r.reset(), kSuccess; });
}
KVSCOPE_CUDA int cudaGetDeviceProperties(DeviceProperties13* out, int device) {
  return enter_always("cudaGetDeviceProperties", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    if (device == 0) fill(*out, r);
    return check_device(device);
  });
}
KVSCOPE_CUDA int cudaGetDeviceProperties_v2(DeviceProperties12* out, int device) {  // the name in 12.x
  return enter_always("cudaGetDeviceProperties", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    if (device == 0) {
      fill(*out, r);
      out->clock_rate[0] = out->memory_clock_rate[0] = kClock;
      out->device_overlap[0] = 1;
    }
    return check_device(device);
  });
}
KVSCOPE_CUDA int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return enter_always("cudaDeviceGetAttribute", KVSCOPE_CALLER, {value}, [&](Runtime& r) {
    if (attribute < 1) return kInvalidValue;
    *value = attribute_value(attribute, r);
    return check_device(device);
  });
}
KVSCOPE_CUDA int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return enter_always("cudaDeviceGetPCIBusId", KVSCOPE_CALLER, {text}, [&](Runtime&) {
    constexpr std::string_view kBus = "0000:00:00.0";
    if (length <= static_cast<int>(kBus.size())) return kInvalidValue;
    std::memcpy(text, kBus.data(), kBus.size());
    text[kBus.size()] = '\0';
    return check_device(device);
  });
}
KVSCOPE_CUDA int cudaDeviceGetByPCIBusId(int* device, const char*) {
  return enter_always("cudaDeviceGetByPCIBusId", KVSCOPE_CALLER, {device},
                      [&](Runtime&) { return *device = 0, kSuccess; });
}
KVSCOPE_CUDA int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}
KVSCOPE_CUDA int cudaDeviceGetCacheConfig(int* config) {
  return enter_always("cudaDeviceGetCacheConfig", KVSCOPE_CALLER, {config},
                      [&](Runtime&) { return *config = 0, kSuccess; });
}
KVSCOPE_CUDA int cudaDeviceSetCacheConfig(int) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaDeviceGetSharedMemConfig(int* config) {
  return enter_always("cudaDeviceGetSharedMemConfig", KVSCOPE_CALLER, {config},
                      [&](Runtime&) { return *config = 1, kSuccess; });
}
KVSCOPE_CUDA int cudaDeviceSetSharedMemConfig(int) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaCtxResetPersistingL2Cache() {
  return kSuccess;
}

// There is one device, which cannot access another.
KVSCOPE_CUDA int cudaDeviceCanAccessPeer(int* can, int, int) {
  return enter_always("cudaDeviceCanAccessPeer", KVSCOPE_CALLER, {can}, [&](Runtime&) { return *can = 0, kSuccess; });
}
KVSCOPE_CUDA int cudaDeviceEnablePeerAccess(int, unsigned) {
  return enter("cudaDeviceEnablePeerAccess", KVSCOPE_CALLER, [](Runtime&) { return kPeerUnsupported; });
}
KVSCOPE_CUDA int cudaDeviceDisablePeerAccess(int) {
  return enter("cudaDeviceDisablePeerAccess", KVSCOPE_CALLER, [](Runtime&) { return kPeerUnsupported; });
}

KVSCOPE_CUDA int cudaDeviceSetLimit(int limit, std::size_t value) {
  return enter("cudaDeviceSetLimit", KVSCOPE_CALLER, [&](Runtime& r) {
    if (limit < 0 || limit > 6) return kUnsupportedLimit;
    if (limit == 2) r.engine().set_heap(static_cast<std::int64_t>(value));
    return kSuccess;  // stack, printf buffer: the launch has its own limits (limits.h)
  });
}
KVSCOPE_CUDA int cudaDeviceGetLimit(std::size_t* value, int limit) {
  return enter("cudaDeviceGetLimit", KVSCOPE_CALLER, {value}, [&](Runtime& r) {
    if (limit < 0 || limit > 6) return kUnsupportedLimit;
    const ptx::LaunchLimits& limits = r.engine().options().limits;
    *value = limit == 0   ? static_cast<std::size_t>(ptx::kMostLocal)
             : limit == 1 ? static_cast<std::size_t>(limits.printed_bytes)
             : limit == 2 ? static_cast<std::size_t>(limits.heap_bytes)
                          : 0;
    return kSuccess;
  });
}

// --- versions, profiler ---

KVSCOPE_CUDA int cudaRuntimeGetVersion(int* version) {
  return enter_always("cudaRuntimeGetVersion", KVSCOPE_CALLER, {version},
                      [&](Runtime&) { return *version = runtime_version(), kSuccess; });
}
KVSCOPE_CUDA int cudaDriverGetVersion(int* version) {
  return enter_always("cudaDriverGetVersion", KVSCOPE_CALLER, {version},
                      [&](Runtime&) { return *version = runtime_version(), kSuccess; });
}
KVSCOPE_CUDA int cudaProfilerStart() {
  return kSuccess;
}
KVSCOPE_CUDA int cudaProfilerStop() {
  return kSuccess;
}

// --- functions of the driver ---

namespace {
Status entry_point(Runtime& r, const char* symbol, void** function, int* found) {
  if (symbol == nullptr) return kInvalidValue;
  *function = driver_function(symbol);
  if (found != nullptr) *found = *function == nullptr ? 1 : 0;
  if (*function != nullptr) return kSuccess;
  r.report_call("UNSUPPORTED", symbol, 0, "the virtual GPU has no such function of the driver");
  return found != nullptr ? kSuccess : kSymbolNotFound;
}
}  // namespace

KVSCOPE_CUDA int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* found) {
  return enter("cudaGetDriverEntryPoint", KVSCOPE_CALLER, {function},
               [&](Runtime& r) { return entry_point(r, symbol, function, found); });
}
KVSCOPE_CUDA int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                                  int* found) {
  return enter("cudaGetDriverEntryPointByVersion", KVSCOPE_CALLER, {function},
               [&](Runtime& r) { return entry_point(r, symbol, function, found); });
}
KVSCOPE_CUDA_ALIAS(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint)
KVSCOPE_CUDA_ALIAS(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion)

}  // namespace kvscope::driver

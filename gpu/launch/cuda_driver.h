// The CUDA driver API, loaded at run time: no part of CUDA is needed to build this file, and on a machine without a
// driver the error message says so. Types and numbers are those of the driver API's cuda.h; only the ones in use are
// declared. A test compares them with the real header where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvscope::gpu::cuda {

using Status = int;  // CUresult; 0 is success
using DeviceHandle = int;
using Address = unsigned long long;
struct ContextObject;
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct EventObject;
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;
using Event = EventObject*;

inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeSharedOptIn = 97;  // [bytes] maximum that a block may opt in to
inline constexpr int kFunctionDynamicShared = 8;  // [bytes] maximum that a kernel may be launched with
inline constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;

// One row per function: its name here, its name in the library, result and parameters.
#define KVSCOPE_CUDA_FUNCTIONS(X)                                                                                  \
  X(init, "cuInit", (unsigned flags))                                                                              \
  X(driver_version, "cuDriverGetVersion", (int* version))                                                          \
  X(device_count, "cuDeviceGetCount", (int* count))                                                                \
  X(device_get, "cuDeviceGet", (DeviceHandle * device, int ordinal))                                               \
  X(device_name, "cuDeviceGetName", (char* name, int length, DeviceHandle device))                                 \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, DeviceHandle device))                    \
  X(device_memory, "cuDeviceTotalMem_v2", (std::size_t * bytes, DeviceHandle device))                              \
  X(context_retain, "cuDevicePrimaryCtxRetain", (Context * context, DeviceHandle device))                          \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (DeviceHandle device))                                        \
  X(context_set, "cuCtxSetCurrent", (Context context))                                                             \
  X(synchronize, "cuCtxSynchronize", ())                                                                           \
  X(module_load, "cuModuleLoadDataEx",                                                                             \
    (Module * module, const void* image, unsigned options, int* names, void** values))                             \
  X(module_unload, "cuModuleUnload", (Module module))                                                              \
  X(module_function, "cuModuleGetFunction", (Function * function, Module module, const char* name))                \
  X(function_set, "cuFuncSetAttribute", (Function function, int attribute, int value))                             \
  X(allocate, "cuMemAlloc_v2", (Address * address, std::size_t bytes))                                             \
  X(release, "cuMemFree_v2", (Address address))                                                                    \
  X(copy_to_device, "cuMemcpyHtoD_v2", (Address to, const void* from, std::size_t bytes))                          \
  X(copy_to_host, "cuMemcpyDtoH_v2", (void* to, Address from, std::size_t bytes))                                  \
  X(copy_on_device, "cuMemcpyDtoDAsync_v2", (Address to, Address from, std::size_t bytes, Stream stream))          \
  X(launch, "cuLaunchKernel",                                                                                      \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,     \
     unsigned block_z, unsigned shared_bytes, Stream stream, void** params, void** extra))                         \
  X(event_create, "cuEventCreate", (Event * event, unsigned flags))                                                \
  X(event_record, "cuEventRecord", (Event event, Stream stream))                                                   \
  X(event_synchronize, "cuEventSynchronize", (Event event))                                                        \
  X(event_elapsed, "cuEventElapsedTime", (float* milliseconds, Event begin, Event end))                            \
  X(event_destroy, "cuEventDestroy_v2", (Event event))                                                             \
  X(error_name, "cuGetErrorName", (Status status, const char** name))                                              \
  X(error_text, "cuGetErrorString", (Status status, const char** text))                                            \
  X(encode_tiled, "cuTensorMapEncodeTiled",                                                                        \
    (void* map, int data_type, std::uint32_t rank, void* base, const std::uint64_t* dims,                          \
     const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* element_strides, int interleave, \
     int swizzle, int l2_promotion, int fill))

struct Driver {
#define KVSCOPE_CUDA_POINTER(name, symbol, parameters) Status(*name) parameters = nullptr;
  KVSCOPE_CUDA_FUNCTIONS(KVSCOPE_CUDA_POINTER)
#undef KVSCOPE_CUDA_POINTER

  // Throws DeviceError with the call and the driver's error name and text unless `status` is success:
  //   "cuMemAlloc of 137438953472 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
  void check(Status status, const std::string& call) const;
  [[nodiscard]] std::string words(Status status) const;  // "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
};

// Throws DeviceError if the library cannot be loaded (with the loader's message) or lacks a function (the driver is too
// old). Each `library` is loaded once and stays loaded.
[[nodiscard]] const Driver& driver(const std::string& library = "libcuda.so.1");

}  // namespace kvscope::gpu::cuda

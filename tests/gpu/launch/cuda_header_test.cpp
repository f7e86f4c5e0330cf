// Compares the declarations of cuda_driver.h with the toolkit's header: compiled only where a toolkit is installed.
#include <cuda.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "core/tma/tensor_map.h"
#include "gpu/kernels/common/tensor_map_slot.h"
#include "gpu/launch/cuda_driver.h"

namespace kvscope::gpu::cuda_header_test {
namespace {

// Handles and enumerations have different names here; sizes and the number of parameters must be equal.
template <class T>
using Plain = std::conditional_t<std::is_pointer_v<T>, void*, std::conditional_t<std::is_enum_v<T>, int, T>>;
template <class F>
struct Signature;
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using type = void (*)(Plain<R>, Plain<P>...);
};
template <class Ours, class Theirs>
constexpr bool same_call = std::is_same_v<typename Signature<Ours>::type, typename Signature<Theirs>::type>;

// Integers of equal width count as equal.
static_assert(sizeof(CUdeviceptr) == sizeof(cuda::Address) && sizeof(CUdevice) == sizeof(cuda::DeviceHandle));
static_assert(same_call<decltype(cuda::Driver::init), decltype(&cuInit)>);
static_assert(same_call<decltype(cuda::Driver::driver_version), decltype(&cuDriverGetVersion)>);
static_assert(same_call<decltype(cuda::Driver::device_count), decltype(&cuDeviceGetCount)>);
static_assert(same_call<decltype(cuda::Driver::device_get), decltype(&cuDeviceGet)>);
static_assert(same_call<decltype(cuda::Driver::device_name), decltype(&cuDeviceGetName)>);
static_assert(same_call<decltype(cuda::Driver::device_attribute), decltype(&cuDeviceGetAttribute)>);
static_assert(same_call<decltype(cuda::Driver::device_memory), decltype(&cuDeviceTotalMem)>);
static_assert(same_call<decltype(cuda::Driver::context_retain), decltype(&cuDevicePrimaryCtxRetain)>);
static_assert(same_call<decltype(cuda::Driver::context_release), decltype(&cuDevicePrimaryCtxRelease)>);
static_assert(same_call<decltype(cuda::Driver::context_set), decltype(&cuCtxSetCurrent)>);
static_assert(same_call<decltype(cuda::Driver::synchronize), decltype(&cuCtxSynchronize)>);
static_assert(same_call<decltype(cuda::Driver::module_load), decltype(&cuModuleLoadDataEx)>);
static_assert(same_call<decltype(cuda::Driver::module_unload), decltype(&cuModuleUnload)>);
static_assert(same_call<decltype(cuda::Driver::module_function), decltype(&cuModuleGetFunction)>);
static_assert(same_call<decltype(cuda::Driver::function_set), decltype(&cuFuncSetAttribute)>);
static_assert(same_call<decltype(cuda::Driver::allocate), decltype(&cuMemAlloc)>);
static_assert(same_call<decltype(cuda::Driver::release), decltype(&cuMemFree)>);
static_assert(same_call<decltype(cuda::Driver::copy_to_device), decltype(&cuMemcpyHtoD)>);
static_assert(same_call<decltype(cuda::Driver::copy_to_host), decltype(&cuMemcpyDtoH)>);
static_assert(same_call<decltype(cuda::Driver::copy_on_device), decltype(&cuMemcpyDtoDAsync)>);
static_assert(same_call<decltype(cuda::Driver::launch), decltype(&cuLaunchKernel)>);
static_assert(same_call<decltype(cuda::Driver::event_create), decltype(&cuEventCreate)>);
static_assert(same_call<decltype(cuda::Driver::event_record), decltype(&cuEventRecord)>);
static_assert(same_call<decltype(cuda::Driver::event_synchronize), decltype(&cuEventSynchronize)>);
static_assert(same_call<decltype(cuda::Driver::event_destroy), decltype(&cuEventDestroy)>);
static_assert(same_call<decltype(cuda::Driver::error_name), decltype(&cuGetErrorName)>);
static_assert(same_call<decltype(cuda::Driver::error_text), decltype(&cuGetErrorString)>);
static_assert(same_call<decltype(cuda::Driver::encode_tiled), decltype(&cuTensorMapEncodeTiled)>);

TEST(CudaHeader, NumbersAreTheToolkits) {
  EXPECT_EQ(cuda::kAttributeMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(cuda::kAttributeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(cuda::kAttributeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(cuda::kAttributeSharedOptIn, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(cuda::kFunctionDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(cuda::kJitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(cuda::kJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_EQ(CUDA_SUCCESS, 0);
}

TEST(CudaHeader, TheModelsMapHasTheEncodersEnumerations) {
  EXPECT_EQ(static_cast<int>(TmaDataType::bf16), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(static_cast<int>(TmaDataType::u8), CU_TENSOR_MAP_DATA_TYPE_UINT8);
  EXPECT_EQ(static_cast<int>(TmaDataType::f16), CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_EQ(static_cast<int>(TmaDataType::f32), CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  EXPECT_EQ(static_cast<int>(TmaDataType::tf32_ftz), CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
  EXPECT_EQ(static_cast<int>(TmaSwizzle::b128), CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(static_cast<int>(TmaSwizzle::b64), CU_TENSOR_MAP_SWIZZLE_64B);
  EXPECT_EQ(static_cast<int>(TmaInterleave::b32), CU_TENSOR_MAP_INTERLEAVE_32B);
  EXPECT_EQ(static_cast<int>(L2Promotion::none), CU_TENSOR_MAP_L2_PROMOTION_NONE);
  EXPECT_EQ(static_cast<int>(OobFill::none), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  EXPECT_EQ(sizeof(TensorMapSlot), sizeof(CUtensorMap));
  EXPECT_EQ(alignof(CUtensorMap) <= alignof(TensorMapSlot), true);
}

}  // namespace
}  // namespace kvscope::gpu::cuda_header_test

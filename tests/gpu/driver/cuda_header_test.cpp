// The structures of gpu/driver/cuda_types.h against the toolkit's header.
#include <driver_types.h>
#include <gtest/gtest.h>

#include "gpu/driver/cuda_types.h"

namespace kvscope::driver_tests::cuda_header_test {

#if CUDART_VERSION >= 13000 || !defined(CUDART_VERSION)
using Properties = driver::DeviceProperties13;
#else
using Properties = driver::DeviceProperties12;
#endif

TEST(CudaTypes, HaveTheLayoutOfTheToolkit) {
  EXPECT_EQ(sizeof(Properties), sizeof(cudaDeviceProp));
  EXPECT_EQ(offsetof(Properties, major), offsetof(cudaDeviceProp, major));
  EXPECT_EQ(offsetof(Properties, multiprocessors), offsetof(cudaDeviceProp, multiProcessorCount));
  EXPECT_EQ(offsetof(Properties, surface_alignment), offsetof(cudaDeviceProp, surfaceAlignment));
  EXPECT_EQ(offsetof(Properties, shared_opt_in), offsetof(cudaDeviceProp, sharedMemPerBlockOptin));
  EXPECT_EQ(offsetof(Properties, cluster_launch), offsetof(cudaDeviceProp, clusterLaunch));
  EXPECT_EQ(sizeof(driver::FunctionAttributes), sizeof(cudaFuncAttributes));
  EXPECT_EQ(offsetof(driver::FunctionAttributes, most_dynamic_shared),
            offsetof(cudaFuncAttributes, maxDynamicSharedSizeBytes));
  EXPECT_EQ(sizeof(driver::PointerAttributes), sizeof(cudaPointerAttributes));
  EXPECT_EQ(offsetof(driver::PointerAttributes, host_pointer), offsetof(cudaPointerAttributes, hostPointer));
  EXPECT_EQ(sizeof(driver::Copy3D), sizeof(cudaMemcpy3DParms));
  EXPECT_EQ(offsetof(driver::Copy3D, extent), offsetof(cudaMemcpy3DParms, extent));
  EXPECT_EQ(sizeof(driver::LaunchAttribute), sizeof(cudaLaunchAttribute));
  EXPECT_EQ(offsetof(driver::LaunchAttribute, value), offsetof(cudaLaunchAttribute, val));
  EXPECT_EQ(sizeof(driver::LaunchConfiguration), sizeof(cudaLaunchConfig_t));
  EXPECT_EQ(sizeof(driver::KernelNodeParams), sizeof(cudaKernelNodeParams));
  EXPECT_EQ(sizeof(driver::MemsetNodeParams), sizeof(cudaMemsetParams));
}

}  // namespace kvscope::driver_tests::cuda_header_test

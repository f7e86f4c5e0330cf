// Limits of the device: properties, attributes and occupancy agree for each target, and with the model of shared memory.
#include "gpu/virtual/machine/device_limits.h"

#include <array>
#include <cstdint>

#include "core/smem/shared_limits.h"
#include "gpu/driver/cuda_types.h"
#include "tests/gpu/driver/cuda_runtime_fixture.h"

extern "C" {
int cudaGetDeviceProperties(kvscope::driver::DeviceProperties13* out, int device);
int cudaFuncSetAttribute(const void* function, int attribute, int value);
int cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                   const kvscope::driver::LaunchConfiguration* config);
int cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function, int blocks, int block);
}

namespace kvscope::driver_tests::device_limits_test {

struct Target {
  int number;
  GpuArch arch;
};

class DeviceLimits : public CudaRuntime {
 protected:
  static int attribute(int number) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, number, 0), 0);
    return value;
  }
  static int blocks(int threads, std::size_t dynamic) {
    int out = -1;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out, &scale_function, threads, dynamic), 0);
    return out;
  }
};

TEST_F(DeviceLimits, AgreeForEachTarget) {
  for (const Target target : {Target{90, GpuArch::sm_90}, Target{100, GpuArch::sm_100}, Target{120, GpuArch::sm_120}}) {
    SCOPED_TRACE(target.number);
    driver::RuntimeOptions options;
    options.engine.target = target.number;
    start(std::move(options));
    driver::DeviceProperties13 p;
    ASSERT_EQ(cudaGetDeviceProperties(&p, 0), 0);
    EXPECT_EQ(p.multiprocessors[0], attribute(16));
    EXPECT_EQ(p.threads_per_multiprocessor[0], attribute(39));
    EXPECT_EQ(static_cast<int>(p.shared_per_multiprocessor[0]), attribute(81));
    EXPECT_EQ(static_cast<int>(p.shared_opt_in[0]), attribute(97));
    EXPECT_EQ(p.blocks_per_multiprocessor[0], attribute(106));
    EXPECT_EQ(static_cast<int>(p.reserved_shared[0]), attribute(111));
    EXPECT_EQ(p.major[0] * 10 + p.minor[0], target.number);

    const SharedLimits& shared = shared_limits(target.arch);
    EXPECT_EQ(attribute(81), shared.per_sm);
    EXPECT_EQ(attribute(97), shared.opt_in);
    EXPECT_EQ(attribute(111), shared.reserved);
    for (const std::int64_t bytes : {0, 1, 30'000, 49'152, 50'177, 101'376}) {
      const std::int64_t other = std::min<std::int64_t>(attribute(39) / 64, attribute(106));
      EXPECT_EQ(blocks(64, static_cast<std::size_t>(bytes)), std::min(blocks_per_sm(target.arch, bytes), other))
          << bytes;
    }
    EXPECT_EQ(blocks(32, 0), attribute(106));
    EXPECT_EQ(blocks(512, 0), attribute(39) / 512);
  }
  EXPECT_EQ(attribute(39), 1536);  // sm_120
  EXPECT_EQ(attribute(106), 24);
}

// Added to the 1024 bytes of the system, the second size is 0 bytes of shared memory: a division by zero.
TEST_F(DeviceLimits, SizesBeyondTheDeviceHaveNoOccupancy) {
  EXPECT_EQ(blocks(64, 232'449), 0);
  EXPECT_EQ(blocks(64, std::size_t{0} - 1024), 0);
  EXPECT_EQ(blocks(64, ~std::size_t{0}), 0);
  EXPECT_EQ(blocks(1025, 0), 0);
  EXPECT_EQ(blocks(INT32_MAX, 0), 0);
}

TEST_F(DeviceLimits, AClusterOfMoreBlocksThanAllIsRejected) {
  driver::LaunchAttribute cluster{};
  cluster.id = 4;
  driver::LaunchConfiguration config{.grid = {1, 1, 1},
                                     .block = {64, 1, 1},
                                     .dynamic_shared = 0,
                                     .stream = nullptr,
                                     .attributes = &cluster,
                                     .attribute_count = 1};
  int clusters = -1;
  cluster.value.dim = {2, 2, 1};
  ASSERT_EQ(cudaOccupancyMaxActiveClusters(&clusters, &scale_function, &config), 0);
  EXPECT_EQ(clusters, 132 * 32 / 4);
  cluster.value.dim = {1U << 31, 1U << 31, 4};  // 2^64
  EXPECT_EQ(cudaOccupancyMaxActiveClusters(&clusters, &scale_function, &config), 1);
  cluster.value.dim = {1, 1, 1};
  config.block = {65536, 65537, 1};  // 2^32 + 65536
  ASSERT_EQ(cudaOccupancyMaxActiveClusters(&clusters, &scale_function, &config), 0);
  EXPECT_EQ(clusters, 0);
}

}  // namespace kvscope::driver_tests::device_limits_test

// A GPU of this machine as a Device. It runs the kernels' machine code, or their PTX, which the driver compiles when a
// kernel is first launched. The driver's own encoder makes tensor maps. No CUDA library is linked; the constructor
// loads the driver.
//
//   CudaGpu device;                    DeviceError: no driver, no GPU, or one that cannot run sm_90a code
//   const float ms = device.elapsed_ms([&] { device.enqueue(launch, bytes_of(params)); });
//
// A fault inside a kernel destroys the driver's context: the outcome contains the fault, and every later call fails. To
// continue, make the next launch in another process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "gpu/launch/device.h"

namespace kvscope::gpu {

struct CudaGpuOptions {
  int ordinal = 0;  // which GPU of the machine
  std::string library = "libcuda.so.1";
};

class CudaGpu final : public Device {
 public:
  explicit CudaGpu(CudaGpuOptions options = {});
  CudaGpu(const CudaGpu&) = delete;
  CudaGpu& operator=(const CudaGpu&) = delete;
  ~CudaGpu() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, std::string_view name) override;
  void release(std::uint64_t address) noexcept override;
  void write(std::uint64_t address, std::span<const std::byte> bytes) override;
  void read(std::uint64_t address, std::span<std::byte> bytes) override;
  [[nodiscard]] TensorMapSlot encode(const TensorMap& map) override;
  void use_ptx(const std::string& kernel, const std::string& text) override;
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override;

  // As launch, without waiting for the end: faults are reported by the next call that waits.
  void enqueue(const KernelLaunch& launch, std::span<const std::byte> params);
  void copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes);  // on the device, enqueued
  // The time between two events around the work that `work` enqueues [ms].
  [[nodiscard]] float elapsed_ms(const std::function<void()>& work);

 private:
  [[nodiscard]] void* module_of(const std::string& kernel);
  [[nodiscard]] void* function_of(const KernelLaunch& launch);

  struct Handles;
  std::unique_ptr<Handles> handles_;
  DeviceInfo info_;
};

}  // namespace kvscope::gpu

// A GPU of this machine as a Device: it is given the kernels' machine code, or their PTX, which the driver compiles when
// a kernel is first launched; tensor maps are made by the driver's own encoder. No library of CUDA is linked; the driver is looked for in the constructor.
//
//   CudaGpu device;                    DeviceError: no driver, no GPU, or one that cannot run sm_90a code
//   const float ms = device.elapsed_ms([&] { device.enqueue(launch, bytes_of(params)); });
//
// A fault inside a kernel destroys the driver's context: the outcome names it, and every later call fails. Whoever
// wants to go on makes the next launch in another process.
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
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override;

  // The same without waiting for its end: faults come with whatever waits next.
  void enqueue(const KernelLaunch& launch, std::span<const std::byte> params);
  void copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes);  // on the device, enqueued
  // Between two events around what `work` enqueues [ms].
  [[nodiscard]] float elapsed_ms(const std::function<void()>& work);

 private:
  [[nodiscard]] void* module_of(const std::string& kernel);
  [[nodiscard]] void* function_of(const KernelLaunch& launch);

  struct Handles;
  std::unique_ptr<Handles> handles_;
  DeviceInfo info_;
};

}  // namespace kvscope::gpu

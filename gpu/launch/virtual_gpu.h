// The virtual GPU as a Device: the kernels' kept PTX on gpu/virtual, with every checker watching and every launch counted.
//
//   VirtualGpu device;                                       copies as late as may be
//   VirtualGpu other({.policy = ptx::Policy::seeded, .seed = 3});   at random points, warps in random order
//
// What checkers report at severity warning or error is a fault of the launch; notes are not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "gpu/launch/device.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
class Device;
class InitChecker;
struct LoadedModule;
}  // namespace kvscope::ptx

namespace kvscope::gpu {

struct VirtualGpuOptions {
  std::string architecture = "sm_90a";  // or "sm_100a"
  ptx::Policy policy = ptx::Policy::late;
  std::uint64_t seed = 0;  // seeded: not 0
  bool checks = true;
  bool counters = true;
  std::int64_t most_instructions = 200'000'000;  // warp instructions of a launch
};

class VirtualGpu final : public Device {
 public:
  // DeviceError: an architecture that is neither.
  explicit VirtualGpu(VirtualGpuOptions options = {});
  ~VirtualGpu() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, std::string_view name) override;
  void release(std::uint64_t address) noexcept override;
  void write(std::uint64_t address, std::span<const std::byte> bytes) override;
  void read(std::uint64_t address, std::span<std::byte> bytes) override;
  [[nodiscard]] TensorMapSlot encode(const TensorMap& map) override;
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override;

  // PTX that is not among the kept images, under the name of a kernel: what KernelLaunch::kernel then means.
  void use_ptx(const std::string& kernel, std::string text);

 private:
  const ptx::LoadedModule& module_of(const std::string& kernel);

  VirtualGpuOptions options_;
  DeviceInfo info_;
  std::unique_ptr<ptx::Device> device_;
  std::unique_ptr<ptx::InitChecker> written_;                // global bytes: what one launch writes, the next may read
  std::map<std::string, const ptx::LoadedModule*> modules_;  // by kernel
};

}  // namespace kvscope::gpu

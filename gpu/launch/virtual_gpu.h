// The virtual GPU as a Device: runs the kernels' PTX on gpu/virtual with all checkers attached, and counts the costs.
//
//   VirtualGpu device;                                              copies are performed as late as possible
//   VirtualGpu other({.policy = ptx::Policy::seeded, .seed = 3});   at random points, warps in random order
//
// A report of severity warning or error is a fault of the launch; notes are not.
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
  std::uint64_t seed = 0;                // for policy seeded: not 0
  ptx::SumMode sum = ptx::SumMode::seq;  // how matrix instructions add
  bool checks = true;
  bool counters = true;
  std::int64_t most_instructions = 200'000'000;  // warp instructions per launch
};

class VirtualGpu final : public Device {
 public:
  // Throws DeviceError for any other architecture.
  explicit VirtualGpu(VirtualGpuOptions options = {});
  ~VirtualGpu() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, std::string_view name) override;
  void release(std::uint64_t address) noexcept override;
  void write(std::uint64_t address, std::span<const std::byte> bytes) override;
  void read(std::uint64_t address, std::span<std::byte> bytes) override;
  [[nodiscard]] TensorMapSlot encode(const TensorMap& map) override;
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override;

  void use_ptx(const std::string& kernel, const std::string& text) override;

 private:
  const ptx::LoadedModule& module_of(const std::string& kernel);

  VirtualGpuOptions options_;
  DeviceInfo info_;
  std::unique_ptr<ptx::Device> device_;
  // Global bytes: written by one launch, readable by the next.
  std::unique_ptr<ptx::InitChecker> written_;
  std::map<std::string, const ptx::LoadedModule*> modules_;  // by kernel
};

}  // namespace kvscope::gpu

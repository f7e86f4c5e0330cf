// A Device that passes every call on to another one, for tests that change or record some of the calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/launch/device.h"

namespace kvscope::gpu::test {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(Device& to) : to_(to) {}
  [[nodiscard]] const DeviceInfo& info() const override { return to_.info(); }
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, std::string_view name) override {
    return to_.allocate(bytes, name);
  }
  void release(std::uint64_t address) noexcept override { to_.release(address); }
  void write(std::uint64_t address, std::span<const std::byte> bytes) override { to_.write(address, bytes); }
  void read(std::uint64_t address, std::span<std::byte> bytes) override { to_.read(address, bytes); }
  [[nodiscard]] TensorMapSlot encode(const TensorMap& map) override { return to_.encode(map); }
  void use_ptx(const std::string& kernel, const std::string& text) override { to_.use_ptx(kernel, text); }
  Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) override {
    return to_.launch(launch, params);
  }

 private:
  Device& to_;
};

}  // namespace kvscope::gpu::test

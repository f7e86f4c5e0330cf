#include "gpu/launch/device.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gpu/launch/device_error.h"
#include "gpu/launch/kernel_images.h"

namespace kvscope::gpu {

Costs& Costs::operator+=(const Costs& other) {
  instructions += other.instructions;
  wavefronts += other.wavefronts;
  ideal_wavefronts += other.ideal_wavefronts;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  tma_bytes += other.tma_bytes;
  return *this;
}

DeviceArray::DeviceArray(Device& device, std::uint64_t address, std::int64_t bytes)
    : device_(&device), address_(address), bytes_(bytes) {}

DeviceArray::DeviceArray(DeviceArray&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceArray& DeviceArray::operator=(DeviceArray&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceArray::~DeviceArray() {
  if (device_ != nullptr) device_->release(address_);
}

std::vector<std::byte> DeviceArray::download() const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_));
  if (device_ != nullptr) device_->read(address_, bytes);
  return bytes;
}

void DeviceArray::write(std::span<const std::byte> bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > bytes_)
    throw DeviceError(fmt::format("{} bytes do not fit into an array of {} bytes", bytes.size(), bytes_));
  if (device_ != nullptr) device_->write(address_, bytes);
}

DeviceArray Device::upload(std::string_view name, std::span<const std::byte> bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  DeviceArray array(*this, allocate(count, name), count);
  array.write(bytes);
  return array;
}

DeviceArray Device::filled(std::string_view name, std::int64_t bytes, std::byte value) {
  return upload(name, std::vector<std::byte>(static_cast<std::size_t>(bytes), value));
}

const KernelImage& kernel_image(std::string_view kernel, std::string_view architecture) {
  std::string kernels, architectures;
  for (const KernelImage& image : kernel_images()) {
    if (image.kernel == kernel && image.architecture == architecture) return image;
    if (image.kernel == kernel) architectures += fmt::format(" {}", image.architecture);
    if (!kernels.ends_with(fmt::format(" {}", image.kernel))) kernels += fmt::format(" {}", image.kernel);
  }
  if (!architectures.empty())
    throw DeviceError(fmt::format("kernel '{}' is not compiled for {}, only for{}: compile it with gpu/build_ptx.py",
                                  kernel, architecture, architectures));
  throw DeviceError(fmt::format("no kernel '{}': there are{}", kernel, kernels.empty() ? " none" : kernels));
}

const KernelImage* machine_image(std::string_view kernel, std::string_view architecture) {
  for (const KernelImage& image : machine_images())
    if (image.kernel == kernel && image.architecture == architecture) return &image;
  return nullptr;
}

}  // namespace kvscope::gpu

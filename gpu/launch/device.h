// A GPU as seen by the host code of a kernel. There are two implementations: VirtualGpu runs the kernels' PTX on the
// CPU with all checkers attached, CudaGpu runs them on hardware through the CUDA driver. Host code is the same for
// both.
//
//   std::unique_ptr<Device> device = make_virtual_gpu();
//   DeviceArray x = device->upload("x", std::as_bytes(std::span(values)));
//   GatherRowsParams params{.rows = x.as<std::uint32_t>(), ...};
//   Outcome outcome = device->launch({.kernel = "gather_rows", .entry = "gather_rows_bf16", .grid = {8, 1, 1},
//                                     .block = {128, 1, 1}}, bytes_of(params));
//
// A kernel has one parameter: its params.h struct, by value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tma/tensor_map.h"
#include "gpu/kernels/common/tensor_map_slot.h"

namespace kvscope::gpu {

struct DeviceInfo {
  std::string kind;          // "virtual" or "cuda"
  std::string name;          // "virtual GPU", "NVIDIA H200"
  std::string architecture;  // of the code it runs: "sm_90a"
  std::string driver;        // its version; empty for the virtual GPU
  int multiprocessors = 1;
  std::int64_t memory_bytes = 0;
};

struct KernelLaunch {
  std::string kernel;  // folder of gpu/kernels: selects the image
  std::string entry;   // the kernel in that image
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::int64_t dynamic_shared = 0;  // [bytes]
};

// The cost of a launch, counted by the virtual GPU. The sums add up over launches.
struct Costs {
  std::int64_t instructions = 0;      // warp instructions
  std::int64_t wavefronts = 0;        // of shared memory
  std::int64_t ideal_wavefronts = 0;  // without bank conflicts
  std::int64_t sectors = 0;           // of 32 bytes of global memory, by accesses and by copies
  std::int64_t ideal_sectors = 0;
  std::int64_t tma_bytes = 0;  // delivered by bulk and tensor copies
  Costs& operator+=(const Costs& other);
  friend bool operator==(const Costs&, const Costs&) = default;
};

struct Outcome {
  std::vector<std::string> faults;  // reports of checkers, or the driver's call and message; empty: no fault
  std::optional<Costs> costs;       // of the virtual GPU
};

class Device;

// Memory of a device, released by the destructor. Movable, not copyable. A default-constructed one is empty.
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(Device& device, std::uint64_t address, std::int64_t bytes);
  DeviceArray(DeviceArray&& other) noexcept;
  DeviceArray& operator=(DeviceArray&& other) noexcept;
  ~DeviceArray();

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // The device address as a pointer, for a params.h struct. The host must not dereference it.
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(address_);
  }
  [[nodiscard]] std::vector<std::byte> download() const;
  template <class T>
  [[nodiscard]] std::vector<T> download_as() const {
    const std::vector<std::byte> bytes = download();
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  void write(std::span<const std::byte> bytes);  // from the first byte

 private:
  Device* device_ = nullptr;
  std::uint64_t address_ = 0;
  std::int64_t bytes_ = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // At least 256-byte aligned, contents undefined (the virtual GPU reports reads of bytes that were not written).
  // `name` appears in reports. Throws DeviceError if memory is exhausted.
  [[nodiscard]] virtual std::uint64_t allocate(std::int64_t bytes, std::string_view name) = 0;
  virtual void release(std::uint64_t address) noexcept = 0;
  virtual void write(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void read(std::uint64_t address, std::span<std::byte> bytes) = 0;

  // Encodes the model's map for this device's copy engine; on hardware, the driver's encoder does this. Throws
  // GeometryError (a rule of core/tma/tensor_map_rules.h) or DeviceError (the driver rejects it).
  [[nodiscard]] virtual TensorMapSlot encode(const TensorMap& map) = 0;

  // Uses this PTX instead of a kept image; `kernel` is then its name in KernelLaunch::kernel. Throws InputError (the
  // virtual GPU) or DeviceError (the driver) with the errors of the text.
  virtual void use_ptx(const std::string& kernel, const std::string& text) = 0;

  // Runs the kernel to its end. Faults of the kernel are in the outcome. Throws DeviceError if the launch cannot be
  // made: no such kernel, a shape out of range, an image of another architecture.
  virtual Outcome launch(const KernelLaunch& launch, std::span<const std::byte> params) = 0;

  [[nodiscard]] DeviceArray upload(std::string_view name, std::span<const std::byte> bytes);
  template <class T>
  [[nodiscard]] DeviceArray upload_values(std::string_view name, const std::vector<T>& values) {
    return upload(name, std::as_bytes(std::span(values)));
  }
  [[nodiscard]] DeviceArray filled(std::string_view name, std::int64_t bytes, std::byte value);
};

template <class Params>
[[nodiscard]] std::span<const std::byte> bytes_of(const Params& params) {
  static_assert(std::is_trivially_copyable_v<Params>);
  return std::as_bytes(std::span(&params, 1));
}

}  // namespace kvscope::gpu

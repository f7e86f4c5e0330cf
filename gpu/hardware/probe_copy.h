// One launch of probe_copy (gpu/kernels/probes): loads into a window of 0xCD, the contents of the window afterwards, a
// store. Also the model's result for the same loads at the same address modulo 1024, which is all that a swizzle
// depends on.
//
//   ProbeTensor x(device, 20 * 128, source_byte);     at least 128 KiB, nonzero guard bytes on both sides
//   TensorMap map = map_2d(TmaDataType::bf16, x.base(), {64, 20}, 128, {64, 8}, TmaSwizzle::b128);
//   CopySeen seen = copy_window(whom, {.load_map = map, .loads = {{0, 17, 0}}, .window_bytes = 1024});
//   window_text(seen, model_window(seen, ask, x))     "643bdab782933fa5, as the model"
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tma/tensor_map.h"
#include "gpu/hardware/probe.h"
#include "gpu/kernels/probes/params.h"

namespace kvscope::gpu {

// Byte p of a source: (31 p + 17 (p >> 7) + 5 (p >> 15) + 5) mod 256. At 0, 1, 2, 127, 128: 5, 36, 67, 102, 150.
[[nodiscard]] std::byte source_byte(std::uint64_t p);

// A tensor's bytes on the device, surrounded by guard bytes that reveal wrong reads and writes.
class ProbeTensor {
 public:
  static constexpr std::int64_t kGuard = 4096;  // [bytes] before the tensor, and at least that many after it
  // [bytes] of the allocation: smaller ones trigger a known driver fault.
  static constexpr std::int64_t kLeast = 1 << 17;
  static constexpr std::byte kGuardByte{0xA5};

  ProbeTensor(Device& device, std::int64_t bytes, const std::function<std::byte(std::uint64_t)>& byte);
  [[nodiscard]] std::uint64_t base() const { return array_.address() + kGuard; }
  [[nodiscard]] std::uint64_t address() const { return array_.address(); }  // includes the guards, as below
  [[nodiscard]] std::span<std::byte> host() { return host_; }
  [[nodiscard]] std::vector<std::byte> download() const { return array_.download(); }

 private:
  std::vector<std::byte> host_;
  DeviceArray array_;
};

[[nodiscard]] TensorMap map_2d(TmaDataType type, std::uint64_t base, std::array<std::uint64_t, 2> dims,
                               std::uint64_t stride, std::array<std::uint32_t, 2> box, TmaSwizzle swizzle,
                               std::uint32_t row_step = 1);

struct CopyAsk {
  TensorMap load_map{};
  std::vector<ProbeBox> loads{};
  std::int64_t window_bytes = 0;   // a multiple of 16
  std::vector<std::byte> image{};  // initial contents of the window; empty: 0xCD
  std::optional<TensorMap> store_map{};
  ProbeBox store{};
};

struct CopySeen {
  Outcome outcome;
  std::vector<std::byte> window;  // empty if the launch stopped
  std::uint32_t address = 0;      // of the window in shared memory
};

// `slot` replaces the encoded load_map: a map that the driver encoded and our rules would reject.
[[nodiscard]] CopySeen copy_window(const ProbeDevice& whom, const CopyAsk& ask,
                                   const std::optional<TensorMapSlot>& slot = std::nullopt);

[[nodiscard]] std::vector<std::byte> model_window(const CopySeen& seen, const CopyAsk& ask, ProbeTensor& tensor);

// The checksum of the window, and whether it equals the model's.
[[nodiscard]] std::string window_text(const CopySeen& seen, std::span<const std::byte> model);
// The first bytes that differ, with both values; empty if none differs.
[[nodiscard]] std::vector<std::string> differences(std::span<const std::byte> is, std::span<const std::byte> model);

// Loads with `ask` and compares the window with a published checksum.
[[nodiscard]] Answer gold_window(ProbeDevice& whom, ProbeTensor& tensor, const CopyAsk& ask, std::uint64_t checksum);

}  // namespace kvscope::gpu

#include "gpu/hardware/probe_copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/fnv.h"
#include "core/smem/shared_image.h"
#include "core/tma/box_copy.h"
#include "core/tma/global_memory.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kPatternRepeats = 1024;  // [bytes] the longest period of a swizzle

std::int64_t delivered_bytes(const TensorMap& map) {
  const std::int64_t rows = (map.box[1] + map.element_strides[1] - 1) / map.element_strides[1];
  return map.box[0] * rows * bits(map.data_type) / 8;
}

}  // namespace

std::byte source_byte(std::uint64_t p) {
  return static_cast<std::byte>((31 * p + 17 * (p >> 7) + 5 * (p >> 15) + 5) & 0xff);
}

ProbeTensor::ProbeTensor(Device& device, std::int64_t bytes, const std::function<std::byte(std::uint64_t)>& byte)
    : host_(static_cast<std::size_t>(std::max(kLeast, bytes + 2 * kGuard)), kGuardByte) {
  for (std::int64_t p = 0; p < bytes; ++p)
    host_[static_cast<std::size_t>(kGuard + p)] = byte(static_cast<std::uint64_t>(p));
  array_ = device.upload("probe tensor", host_);
}

TensorMap map_2d(TmaDataType type, std::uint64_t base, std::array<std::uint64_t, 2> dims, std::uint64_t stride,
                 std::array<std::uint32_t, 2> box, TmaSwizzle swizzle, std::uint32_t row_step) {
  TensorMap map{.data_type = type, .rank = 2, .base = base};
  map.dims = {dims[0], dims[1]};
  map.strides = {stride};
  map.box = {box[0], box[1]};
  map.element_strides[1] = row_step;
  map.swizzle = swizzle;
  return map;
}

CopySeen copy_window(const ProbeDevice& whom, const CopyAsk& ask, const std::optional<TensorMapSlot>& slot) {
  Device& device = whom.device;
  const DeviceArray window = device.filled("window", ask.window_bytes, std::byte{0});
  const DeviceArray numbers = device.filled("seen", 16, std::byte{0});
  DeviceArray image;
  ProbeCopyParams params{.load_map = {},
                         .store_map = {},
                         .loads = {},
                         .store = ask.store,
                         .load_count = static_cast<std::int32_t>(ask.loads.size()),
                         .store_count = ask.store_map ? 1 : 0,
                         .expected_bytes = 0,
                         .window_bytes = static_cast<std::int32_t>(ask.window_bytes),
                         .image = nullptr,
                         .window = window.as<unsigned char>(),
                         .seen = numbers.as<std::uint32_t>()};
  if (!ask.loads.empty()) {
    params.load_map = slot ? *slot : device.encode(ask.load_map);
    std::copy(ask.loads.begin(), ask.loads.end(), params.loads);
    params.expected_bytes =
        static_cast<std::uint32_t>(delivered_bytes(ask.load_map) * static_cast<std::int64_t>(ask.loads.size()));
  }
  if (ask.store_map) params.store_map = device.encode(*ask.store_map);
  if (!ask.image.empty()) {
    image = device.upload("image", ask.image);
    params.image = image.as<const unsigned char>();
  }
  CopySeen seen;
  seen.outcome = device.launch({.kernel = "probes",
                                .entry = "probe_copy",
                                .block = {kProbeThreads, 1, 1},
                                .dynamic_shared = ask.window_bytes + kProbeBarrierBytes},
                               bytes_of(params));
  if (!seen.outcome.faults.empty()) return seen;
  seen.window = window.download();
  seen.address = numbers.download_as<std::uint32_t>().front();
  return seen;
}

std::vector<std::byte> model_window(const CopySeen& seen, const CopyAsk& ask, ProbeTensor& tensor) {
  GlobalMemory memory;
  memory.add("probe tensor", tensor.address(), tensor.host());
  const std::int64_t begin = seen.address % kPatternRepeats;
  SharedImage image(begin + ask.window_bytes, std::byte{kProbePoison});
  for (std::size_t i = 0; i < ask.loads.size(); ++i) {
    const ProbeBox& load = ask.loads[i];
    load_box(ask.load_map, {load.column, load.row}, memory, image, begin + load.at,
             CopyIdx{static_cast<std::int64_t>(i)});
  }
  const auto bytes = image.bytes().subspan(static_cast<std::size_t>(begin));
  return {bytes.begin(), bytes.end()};
}

std::string window_text(const CopySeen& seen, std::span<const std::byte> model) {
  const bool same = std::equal(seen.window.begin(), seen.window.end(), model.begin(), model.end());
  return fmt::format("{:016x}, {} the model", fnv1a(seen.window), same ? "as" : "unlike");
}

std::vector<std::string> differences(std::span<const std::byte> is, std::span<const std::byte> model) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> lines;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < std::min(is.size(), model.size()); ++i) {
    if (is[i] == model[i]) continue;
    if (++differ <= kShown)
      lines.push_back(
          fmt::format("byte {}: {:02x}, the model {:02x}", i, static_cast<int>(is[i]), static_cast<int>(model[i])));
  }
  if (differ > 0) lines.push_back(fmt::format("{} of {} bytes differ", differ, is.size()));
  return lines;
}

Answer gold_window(ProbeDevice& whom, ProbeTensor& tensor, const CopyAsk& ask, std::uint64_t checksum) {
  const CopySeen seen = copy_window(whom, ask);
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), fmt::format("{:016x}, as the model", checksum),
                  first_fault(seen.outcome));
  const std::vector<std::byte> model = model_window(seen, ask, tensor);
  std::vector<std::string> details = differences(seen.window, model);
  details.push_back(fmt::format("window of {} bytes at shared 0x{:x}", seen.window.size(), seen.address));
  // Published checksums are for windows at a multiple of 1024; for other addresses the expected value is the model's.
  const std::uint64_t expected = seen.address % kPatternRepeats == 0 ? checksum : fnv1a(model);
  return answer(window_text(seen, model), fmt::format("{:016x}, as the model", expected), std::move(details));
}

}  // namespace kvscope::gpu

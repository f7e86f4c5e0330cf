#include "gpu/launch/device_report.h"

#include <fmt/format.h>

namespace kvscope::gpu {

std::string device_line(const DeviceInfo& device) {
  if (device.kind == "virtual") return fmt::format("virtual GPU, {}", device.architecture);
  return fmt::format("{}, {}, {} SMs, driver {}", device.name, device.architecture, device.multiprocessors,
                     device.driver);
}

json::Value to_json(const DeviceInfo& device) {
  json::Value value;
  value.set("kind", device.kind);
  value.set("name", device.name);
  value.set("architecture", device.architecture);
  value.set("driver", device.driver);
  value.set("multiprocessors", device.multiprocessors);
  value.set("memory_bytes", device.memory_bytes);
  return value;
}

json::Value to_json(const Costs& costs) {
  json::Value value;
  value.set("instructions", costs.instructions);
  value.set("wavefronts", costs.wavefronts);
  value.set("ideal_wavefronts", costs.ideal_wavefronts);
  value.set("sectors", costs.sectors);
  value.set("ideal_sectors", costs.ideal_sectors);
  value.set("tma_bytes", costs.tma_bytes);
  return value;
}

}  // namespace kvscope::gpu

// A device and the costs of a launch, in the form that reports print and store.
#pragma once

#include <string>

#include "core/base/json.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

[[nodiscard]] std::string device_line(const DeviceInfo& device);  // "NVIDIA H200, sm_90a, 132 SMs, driver CUDA 13.0"
[[nodiscard]] json::Value to_json(const DeviceInfo& device);      // {"kind": "cuda", "name": "NVIDIA H200", ...}
[[nodiscard]] json::Value to_json(const Costs& costs);            // {"instructions": 96, "wavefronts": 32, ...}

}  // namespace kvscope::gpu

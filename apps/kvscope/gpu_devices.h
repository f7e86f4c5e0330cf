// The devices that --device names: virtual or cuda.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/launch/cuda_gpu.h"
#include "gpu/launch/device.h"

namespace kvscope::apps {

inline const std::vector<std::string> kDeviceNames{"virtual", "cuda"};

// The first GPU of this machine. Throws InputError with the driver's message if no GPU can run these kernels.
[[nodiscard]] std::unique_ptr<gpu::CudaGpu> hardware();
// The device of that name.
[[nodiscard]] std::unique_ptr<gpu::Device> device_of(const std::string& name);

}  // namespace kvscope::apps

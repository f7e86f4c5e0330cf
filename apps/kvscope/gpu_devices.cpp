#include "apps/kvscope/gpu_devices.h"

#include "core/base/errors.h"
#include "gpu/launch/device_error.h"
#include "gpu/launch/virtual_gpu.h"

namespace kvscope::apps {

std::unique_ptr<gpu::CudaGpu> hardware() {
  try {
    return std::make_unique<gpu::CudaGpu>();
  } catch (const gpu::DeviceError& error) {
    throw InputError("command line", "--device cuda", error.what());
  }
}

std::unique_ptr<gpu::Device> device_of(const std::string& name) {
  if (name == "cuda") return hardware();
  return std::make_unique<gpu::VirtualGpu>();
}

}  // namespace kvscope::apps

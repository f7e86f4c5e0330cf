// The kernels' PTX, compiled ahead and kept with the program: gpu/ptx/KERNEL.ARCHITECTURE.ptx.
#pragma once

#include <string_view>
#include <vector>

namespace kvscope::gpu {

struct KernelImage {
  std::string_view kernel;        // folder of gpu/kernels
  std::string_view architecture;  // "sm_90a"
  std::string_view ptx;           // ends in a zero byte that is not counted
};

[[nodiscard]] const std::vector<KernelImage>& kernel_images();
// DeviceError naming the architectures there are, or the kernels there are.
[[nodiscard]] const KernelImage& kernel_image(std::string_view kernel, std::string_view architecture);

}  // namespace kvscope::gpu

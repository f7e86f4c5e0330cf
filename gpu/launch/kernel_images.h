// The kernels as part of the program: their PTX from gpu/ptx, and machine code if nvcc was available when the program
// was built.
#pragma once

#include <string_view>
#include <vector>

namespace kvscope::gpu {

struct KernelImage {
  std::string_view kernel;        // folder of gpu/kernels
  std::string_view architecture;  // "sm_90a"
  std::string_view bytes;         // for PTX: the text, followed by a zero byte that is not counted
};

[[nodiscard]] const std::vector<KernelImage>& kernel_images();   // PTX
[[nodiscard]] const std::vector<KernelImage>& machine_images();  // may be empty
// The PTX. Throws DeviceError with the available architectures, or the available kernels.
[[nodiscard]] const KernelImage& kernel_image(std::string_view kernel, std::string_view architecture);
// Null if there is none.
[[nodiscard]] const KernelImage* machine_image(std::string_view kernel, std::string_view architecture);

}  // namespace kvscope::gpu

// The kernels as part of the program: their PTX, kept in gpu/ptx, and machine code where there was nvcc when the program
// was built.
#pragma once

#include <string_view>
#include <vector>

namespace kvscope::gpu {

struct KernelImage {
  std::string_view kernel;        // folder of gpu/kernels
  std::string_view architecture;  // "sm_90a"
  std::string_view bytes;         // of PTX: the text; a zero byte that is not counted ends it
};

[[nodiscard]] const std::vector<KernelImage>& kernel_images();   // PTX
[[nodiscard]] const std::vector<KernelImage>& machine_images();  // may be empty
// PTX. DeviceError naming the architectures there are, or the kernels there are.
[[nodiscard]] const KernelImage& kernel_image(std::string_view kernel, std::string_view architecture);
// Null where there is none.
[[nodiscard]] const KernelImage* machine_image(std::string_view kernel, std::string_view architecture);

}  // namespace kvscope::gpu

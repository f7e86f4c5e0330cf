// Runs a kernel of this project on the virtual GPU: four numbers, each plus 1. The second launch writes past the end of
// the output, and the checkers report it.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "gpu/kernels/paged_decode/params.h"
#include "gpu/launch/virtual_gpu.h"
#include "gpu/offload/attention_on.h"
#include "gpu/virtual/debug/controlled_run.h"

namespace {

constexpr const char* kAddOne = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .align 8 .b8 p[16])
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  ld.param.u64 %rd2, [p+8];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.s32 %r3, %r2, 1;
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";

struct Params {
  const std::uint32_t* in;
  std::uint32_t* out;
};

}  // namespace

int main() {
  using namespace kvscope::gpu;
  VirtualGpu device;
  device.use_ptx("add_one", kAddOne);
  const DeviceArray in = device.upload_values("in", std::vector<std::uint32_t>{10, 11, 12, 13, 14});
  const DeviceArray out = device.filled("out", 16, std::byte{0});
  const Params params{in.as<const std::uint32_t>(), out.as<std::uint32_t>()};
  const auto launch = [&](std::int64_t threads) {
    return device.launch({.kernel = "add_one", .entry = "add_one", .grid = {1, 1, 1}, .block = {threads, 1, 1}},
                         bytes_of(params));
  };
  if (!launch(4).faults.empty()) return 1;
  std::printf("%s:", device.info().name.c_str());
  for (const std::uint32_t value : out.download_as<std::uint32_t>()) std::printf(" %u", value);
  std::printf("\npast the end: %zu fault\n", launch(5).faults.size());
  return 0;
}

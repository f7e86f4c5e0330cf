#include "tests/gpu/virtual/machine/one_kernel.h"

#include <utility>

#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test {

Ran run(const OneKernel& kernel) {
  const std::string text = ".version 9.0\n.target " + kernel.target + R"(
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 64 .b8 map[128])
)" + kernel.limits + R"({
  .reg .b16 %rs<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .b128 %rq<4>; .reg .f32 %f<64>; .reg .f64 %fd<32>; .reg .pred %p<8>;
  .shared .align 1024 .b8 s[4096];
  ld.param.u64 %rd0, [p0];
  ld.param.u64 %rd1, [p1];
  mov.u32 %r0, %tid.x;
)" + kernel.body + "\n  ret;\n}\n";
  const int target = kernel.target.find("100") != std::string::npos ? 100 : 90;
  Device device(ProgramOptions{.target = target});
  const LoadedModule& module = device.load(parse_module(text, "one.ptx"));
  const std::uint64_t out = device.memory().allocate(static_cast<std::int64_t>(kernel.out_bytes), "out");
  const std::uint64_t in = device.memory().allocate(static_cast<std::int64_t>(kernel.in.size()), "in");
  device.memory().write(in, kernel.in);
  LaunchConfig config;
  config.kernel = "k";
  config.grid = {kernel.grid, 1, 1};
  config.block = {kernel.threads, 1, 1};
  config.cluster = kernel.cluster;
  config.options = kernel.options;
  std::vector<std::byte> third = kernel.third;
  third.resize(128);
  config.params = pack_params(module, "k", {out, in, third});
  Ran ran;
  ran.result = device.launch(module, config, kernel.monitor);
  ran.out = device.memory().read(out, static_cast<std::int64_t>(kernel.out_bytes));
  ran.in = device.memory().read(in, static_cast<std::int64_t>(kernel.in.size()));
  for (const Report& r : ran.result.reports) ran.messages.push_back(std::string(name(r.kind)) + " " + r.message);
  return ran;
}

std::vector<std::byte> counted(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

std::uint64_t fnv(const std::byte* bytes, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ std::to_integer<std::uint64_t>(bytes[i])) * 0x100000001b3U;
  return hash;
}

}  // namespace kvscope::ptx::test

#include "tests/gpu/virtual/debug/kernel_text.h"

#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test {

std::string steps_ptx() {
  return R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry steps(.param .u64 out, .param .u32 rounds) {
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 words[256];
  .loc 1 1 1
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %r2;
  .loc 1 2 1
LOOP:
  mad.lo.s32 %r3, %r3, 3, %r2;
  and.b32 %r4, %r3, 1;
  setp.eq.s32 %p1, %r4, 0;
  @%p1 bra EVEN;
  shr.u32 %r3, %r3, 1;
EVEN:
  sub.s32 %r1, %r1, 1;
  setp.ne.s32 %p2, %r1, 0;
  @%p2 bra LOOP;
  .loc 1 3 1
  mov.u32 %r5, words;
  shl.b32 %r6, %r2, 2;
  add.s32 %r7, %r5, %r6;
  st.shared.u32 [%r7], %r3;
  .loc 1 4 1
  bar.sync 0;
  .loc 1 5 1
  xor.b32 %r8, %r6, 128;
  add.s32 %r8, %r5, %r8;
  ld.shared.u32 %r9, [%r8];
  .loc 1 6 1
  cvt.u64.u32 %rd2, %r6;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r9;
  ret;
}
.file 1 "steps.cu"
)";
}

std::unique_ptr<StepsLaunch> steps_launch(int rounds, Policy policy, std::uint64_t seed, const std::string& text) {
  auto out = std::make_unique<StepsLaunch>();
  // Registers keep their values, as in a debugger.
  out->device = Device({.registers_by_liveness = false});
  out->module = &out->device.load(parse_module(text, "steps.ptx"));
  out->out = out->device.memory().allocate(256, "out");
  out->config.kernel = "steps";
  out->config.grid = {3, 1, 1};
  out->config.block = {64, 1, 1};
  out->config.params = pack_params(*out->module, "steps", {out->out, static_cast<std::uint64_t>(rounds)});
  out->config.options.policy = policy;
  out->config.options.seed = seed;
  return out;
}

}  // namespace kvscope::ptx::test

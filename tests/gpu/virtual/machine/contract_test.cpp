// Products and sums fused as the assembler does: rounded once, equal to the host's fmaf; and only if the option is set.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test::contract_test {
namespace {

constexpr std::size_t kThreads = 1024;

// [thread][a, b, c]: the product and c are of similar magnitude, so the product's last bits affect the sum.
std::vector<float> noise(float scale) {
  std::vector<float> out(3 * kThreads);
  std::uint64_t state = 7;
  for (std::size_t i = 0; i < out.size(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const float one = static_cast<float>(static_cast<std::int32_t>(state >> 33)) * 0x1p-30f - 1.0f;
    out[i] = one * scale * (i % 3 == 2 ? scale : 1.0f);
  }
  return out;
}

// `body` computes %f4 from %f1, %f2, %f3.
std::vector<float> run(const std::string& body, const std::vector<float>& in, const ProgramOptions& options) {
  const std::string text = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1) {
  .reg .f32 %f<16>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [p0];
  ld.param.u64 %rd2, [p1];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd2, %r1, 12, %rd2;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  ld.global.f32 %f1, [%rd2];
  ld.global.f32 %f2, [%rd2+4];
  ld.global.f32 %f3, [%rd2+8];
)" + body + R"(
  st.global.f32 [%rd1], %f4;
  ret;
})";
  Device device(options);
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  const std::uint64_t out = device.memory().allocate(4 * kThreads, "out"),
                      from = device.memory().allocate(12 * kThreads, "in");
  device.memory().write(from, std::as_bytes(std::span(in)));
  LaunchConfig config;
  config.kernel = "k";
  config.block = {kThreads, 1, 1};
  config.params = pack_params(module, "k", {out, from});
  EXPECT_TRUE(device.launch(module, config).clean());
  const std::vector<std::byte> bytes = device.memory().read(out, 4 * kThreads);
  std::vector<float> values(kThreads);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

struct Form {
  const char* body;
  float (*fused)(float, float, float);
  float (*apart)(float, float, float);
  float scale = 1;
};
// NaNs do not occur. volatile prevents the host compiler from fusing.
float times(float a, float b) {
  const volatile float product = a * b;
  return product;
}
const std::array<Form, 5> kForms{{
    {"mul.f32 %f5, %f1, %f2; add.f32 %f4, %f5, %f3;", [](float a, float b, float c) { return std::fmaf(a, b, c); },
     [](float a, float b, float c) { return times(a, b) + c; }},
    {"mul.f32 %f5, %f1, %f2; add.f32 %f4, %f3, %f5;", [](float a, float b, float c) { return std::fmaf(a, b, c); },
     [](float a, float b, float c) { return times(a, b) + c; }},
    {"mul.f32 %f5, %f1, %f2; sub.f32 %f4, %f5, %f3;", [](float a, float b, float c) { return std::fmaf(a, b, -c); },
     [](float a, float b, float c) { return times(a, b) - c; }},
    {"mul.f32 %f5, %f1, %f2; sub.f32 %f4, %f3, %f5;", [](float a, float b, float c) { return std::fmaf(-a, b, c); },
     [](float a, float b, float c) { return c - times(a, b); }},
    {"mul.ftz.f32 %f5, %f1, %f2; add.ftz.f32 %f4, %f5, %f3;",
     [](float a, float b, float c) { return flushed(std::fmaf(flushed(a), flushed(b), flushed(c))); },
     [](float a, float b, float c) { return flushed(flushed(times(flushed(a), flushed(b))) + flushed(c)); }, 0x1p-62f},
}};

TEST(Contract, OneRoundingWithItAndTwoWithout) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.body);
    const std::vector<float> in = noise(form.scale);
    for (const Simd simd : {Simd::baseline, best_simd()}) {
      for (const bool by_liveness : {true, false}) {
        const std::vector<float> fused =
            run(form.body, in, {.simd = simd, .registers_by_liveness = by_liveness, .contract = true});
        const std::vector<float> apart = run(form.body, in, {.simd = simd, .registers_by_liveness = by_liveness});
        int different = 0;
        for (std::size_t i = 0; i < kThreads; ++i) {
          const float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
          ASSERT_EQ(std::bit_cast<std::uint32_t>(fused[i]), std::bit_cast<std::uint32_t>(form.fused(a, b, c))) << i;
          ASSERT_EQ(std::bit_cast<std::uint32_t>(apart[i]), std::bit_cast<std::uint32_t>(form.apart(a, b, c))) << i;
          different += fused[i] != apart[i] ? 1 : 0;
        }
        EXPECT_GT(different, 100);
      }
    }
  }
}

// An exact zero rounded to nearest is +0, whichever operand is negated.
TEST(Contract, ASumThatIsExactlyZeroHasThePlusSign) {
  const std::vector<float> in(3 * kThreads, 1.0f);
  for (const char* body :
       {"mul.f32 %f5, %f1, %f2; sub.f32 %f4, %f5, %f3;", "mul.f32 %f5, %f1, %f2; sub.f32 %f4, %f3, %f5;"})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(run(body, in, {.contract = true})[0]), 0U);
}

// The factors must stay in their registers until the sum, although the text does not use them in between.
TEST(Contract, TheFactorsKeepTheirRowsUntilTheSum) {
  const std::vector<float> in = noise(1);
  const std::string body =
      "mul.f32 %f5, %f1, %f2; cvt.rn.f32.u32 %f6, %r1; add.f32 %f7, %f6, %f3; mov.f32 %f8, %f7; "
      "add.f32 %f4, %f5, %f3; st.global.f32 [%rd2], %f8;";
  EXPECT_EQ(run(body, in, {.contract = true}), run(kForms[0].body, in, {.contract = true}));
}

// If a factor changes before the sum, or the sum is reached without the product, they are not fused.
TEST(Contract, AChangeInBetweenPreventsFusing) {
  const std::vector<float> in = noise(1);
  const std::vector<float> apart = run(kForms[0].body, in, {});
  for (const char* body : {"mul.f32 %f5, %f1, %f2; mov.f32 %f1, 0f00000000; add.f32 %f4, %f5, %f3;",
                           "mul.f32 %f5, %f1, %f2; L: add.f32 %f4, %f5, %f3; setp.eq.u32 %p1, %r1, 2000; @%p1 bra L;",
                           "setp.lt.u32 %p1, %r1, 5000; @%p1 mul.f32 %f5, %f1, %f2; add.f32 %f4, %f5, %f3;"}) {
    SCOPED_TRACE(body);
    EXPECT_EQ(run(body, in, {.contract = true}), apart);
  }
}

TEST(Contract, OfTwoProductsInOneSumOneIsFused) {
  const std::vector<float> in = noise(1);
  const std::vector<float> got =
      run("mul.f32 %f5, %f1, %f2; mul.f32 %f6, %f2, %f3; add.f32 %f4, %f5, %f6;", in, {.contract = true});
  for (std::size_t i = 0; i < kThreads; ++i) {
    ASSERT_EQ(got[i], std::fmaf(in[3 * i], in[3 * i + 1], times(in[3 * i + 1], in[3 * i + 2]))) << i;
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::contract_test

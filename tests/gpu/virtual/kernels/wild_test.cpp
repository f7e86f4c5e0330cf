// wild.cu: mistakes of the kinds that were found in published kernels. Each is reported under every schedule, with the
// places of docs/15_virtual_gpu.md, and the kernel with its fix is clean and right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::wild_test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kNumbers = 1024;

std::vector<float> numbers() {
  std::vector<float> out(kNumbers);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i * 7 % 13) / 4;
  return out;
}

struct WildBug {
  const char* name;
  std::vector<const char*> report;  // in one report
  // The launch, and where its output is.
  std::function<Run(Gpu&, bool wrong, std::uint64_t& out)> launch;
  std::vector<float> expected;
};
void PrintTo(const WildBug& bug, std::ostream* out) {
  *out << bug.name;
}

ParamValue flag(bool wrong) {
  return value(static_cast<std::int32_t>(wrong ? 1 : 0));
}

std::vector<WildBug> bugs() {
  const std::vector<float> in = numbers();
  const auto sums_of = [&in](std::size_t rows, std::size_t columns, float factor) {
    std::vector<float> out(columns);
    for (std::size_t i = 0; i < rows * columns; ++i) out[i % columns] += factor * in[i];
    return out;
  };
  std::vector<float> products(64), twice(in.begin(), in.begin() + 100);
  for (std::size_t i = 0; i < 64; ++i) products[i] = in[i] * in[i];
  for (float& x : twice) x *= 2;
  return {
      {"w1_softmax_reuses_shared",
       {"RACE write-after-read  shared", "of_warp", "wild.cu:29", "wild.cu:32"},
       [](Gpu& gpu, bool wrong, std::uint64_t& out) {
         out = gpu.zeros("out", 4 * 128);
         return Run{.kernel = "w1_softmax_reuses_shared",
                    .block = {128, 1, 1},
                    .values = {out, gpu.upload("in", numbers()), flag(wrong)}};
       },
       {}},
      {"w2_zeroes_accumulators",
       {"RACE", "(sums + ", "wild.cu:44", "wild.cu:47"},
       [](Gpu& gpu, bool wrong, std::uint64_t& out) {
         out = gpu.zeros("sums", 4 * 64);
         return Run{.kernel = "w2_zeroes_accumulators",
                    .grid = {5, 1, 1},
                    .block = {64, 1, 1},
                    .values = {out, gpu.upload("in", numbers()), flag(wrong)}};
       },
       sums_of(4, 64, 1)},
      {"w3_layernorm_backward",
       {"OUT_OF_BOUNDS", "shared", "wild.cu:58"},
       [](Gpu& gpu, bool wrong, std::uint64_t& out) {
         out = gpu.zeros("weight_gradient", 4 * 64);
         const std::int64_t threads = 32, pairs = wrong ? threads / 64 : (threads + 63) / 64;
         return Run{.kernel = "w3_layernorm_backward",
                    .block = {threads, 1, 1},
                    .values = {out, gpu.upload("gradient", numbers()), gpu.upload("normalized", numbers())},
                    .dynamic_shared = pairs * 64 * 4};
       },
       products},
      {"w4_bound_is_greater",
       {"OUT_OF_BOUNDS", "in + 400", "size 400", "wild.cu:72"},
       [](Gpu& gpu, bool wrong, std::uint64_t& out) {
         out = gpu.zeros("out", 4 * 100);
         std::vector<float> hundred = numbers();
         hundred.resize(100);
         return Run{.kernel = "w4_bound_is_greater",
                    .grid = {2, 1, 1},
                    .block = {64, 1, 1},
                    .values = {out, gpu.upload("in", hundred), value(std::uint32_t{100}), flag(wrong)}};
       },
       twice},
      {"w5_last_cta_without_fence",
       {"RACE read-after-write  global", "(parts + ", "wild.cu:80", "wild.cu:90"},
       [](Gpu& gpu, bool wrong, std::uint64_t& out) {
         out = gpu.zeros("out", 4 * 64);
         return Run{.kernel = "w5_last_cta_without_fence",
                    .grid = {4, 1, 1},
                    .block = {64, 1, 1},
                    .values = {out, gpu.zeros("parts", 4 * 256), gpu.zeros("done", 4), gpu.upload("in", numbers()),
                               flag(wrong)}};
       },
       sums_of(4, 64, 2)},
      {"w6_exits_with_copies_in_flight",
       {"EXIT_IN_FLIGHT", "wild.cu:102"},
       [](Gpu& gpu, bool wrong, std::uint64_t& out) {
         out = gpu.zeros("out", 4 * 64);
         return Run{.kernel = "w6_exits_with_copies_in_flight",
                    .block = {64, 1, 1},
                    .values = {out, gpu.upload("in", numbers()), flag(wrong)}};
       },
       std::vector<float>(twice.begin(), twice.begin() + 64)},
  };
}

class FoundInTheWild : public ::testing::TestWithParam<WildBug> {};

TEST_P(FoundInTheWild, IsReportedUnderEverySchedule) {
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("wild.ptx", schedule);
    std::uint64_t out = 0;
    const test::Run run = GetParam().launch(gpu, true, out);
    Checks checks({.global_race = true});
    const LaunchResult result = gpu.run(run, checks.monitor());
    bool found = false;
    for (const Report& report : result.reports) {
      const std::string text = to_text(report);
      bool all = true;
      for (const char* word : GetParam().report) all = all && text.find(word) != std::string::npos;
      found = found || all;
    }
    EXPECT_TRUE(found) << reports_text(result);
  }
}

TEST_P(FoundInTheWild, IsCleanAndRightWithItsFix) {
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("wild.ptx", schedule);
    std::uint64_t out = 0;
    const test::Run run = GetParam().launch(gpu, false, out);
    gpu.run_clean(run);
    const std::vector<float>& expected = GetParam().expected;
    if (expected.empty()) {  // a softmax: the sum is 1
      const std::vector<float> got = gpu.download<float>(out, 128);
      EXPECT_NEAR(std::accumulate(got.begin(), got.end(), 0.0F), 1, 1e-5);
    } else {
      EXPECT_EQ(gpu.download<float>(out, expected.size()), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, FoundInTheWild, ::testing::ValuesIn(bugs()),
                         [](const auto& which) { return std::string(which.param.name); });

}  // namespace
}  // namespace kvscope::ptx::test::wild_test

// Benchmarks without a clock: workloads move the bytes of their formulas, a report has every row and ratio, and a
// kernel that does not run is reported. No test here checks a run time.
#include "gpu/bench/bench.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "gpu/bench/workload.h"
#include "tests/gpu/launch/fake_driver.h"

namespace kvscope::gpu::bench_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void behave(const test::FakeBehavior& behavior) {
  void* library = dlopen(KVSCOPE_FAKE_DRIVER, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  reinterpret_cast<test::SetFakeBehavior>(dlsym(library, test::kSetFakeBehavior))(&behavior);
}
CudaGpuOptions stand_in(const test::FakeBehavior& behavior = {}) {
  behave(behavior);
  return {.library = KVSCOPE_FAKE_DRIVER};
}

std::vector<std::string> names(const BenchReport& report) {
  std::vector<std::string> all;
  for (const BenchRow& row : report.rows) all.push_back(row.name);
  return all;
}

const BenchReport& counts() {
  static const BenchReport report = [] {
    VirtualGpu device;
    return count_benchmarks(device);
  }();
  return report;
}

// Bytes moved by a small shape on the virtual GPU, by accesses and by copies.
std::int64_t moved(const BenchRow& row) {
  return row.costs->sectors * 32;
}

TEST(Workloads, RunCleanAndEachRowIsCounted) {
  ASSERT_EQ(counts().rows.size(), workload_rows().size());
  for (const BenchRow& row : counts().rows) {
    EXPECT_THAT(row.faults, IsEmpty()) << row.name;
    EXPECT_EQ(row.verdict(), "counted") << row.name;
    EXPECT_GT(row.costs->instructions, 0) << row.name;
    EXPECT_FALSE(row.ratio || row.time) << row.name << ": there is no time on the virtual GPU";
  }
}

// Would catch a formula without one side, slot or factor of two: the error would exceed the bytes of tables and
// lengths.
TEST(Workloads, WriterAndFinderMoveTheBytesOfTheirFormula) {
  for (const char* name : {"append_tokens_bf16", "append_tokens_quantize", "gather_rows_bf16"}) {
    const BenchRow& row = *counts().row(name);
    EXPECT_GE(moved(row), row.bytes) << name;
    EXPECT_LT(moved(row), row.bytes * 11 / 10) << name;
  }
  // 96 tokens of 2 heads of 128, K and V: read as bf16, written as bf16, or as e4m3 with an f32 a head.
  EXPECT_EQ(counts().row("append_tokens_bf16")->bytes, 96 * 2 * 2 * 128 * (2 + 2));
  EXPECT_EQ(counts().row("append_tokens_quantize")->bytes, 96 * 2 * 2 * (128 * (2 + 1) + 4));
  EXPECT_EQ(counts().row("gather_rows_bf16")->bytes, 96 * (2 * 128 * (2 + 2) + 4));
}

TEST(Workloads, DecodeReadsTheCacheOnce) {
  // 2 sequences of 128 tokens, 2 heads of 128, K and V
  EXPECT_EQ(counts().row("paged_decode_bf16_page16")->costs->tma_bytes, 2 * 128 * 2 * 128 * 2 * 2);
  EXPECT_EQ(counts().row("paged_decode_e4m3_page16")->costs->tma_bytes, 2 * 128 * 2 * 128 * 2);
  EXPECT_EQ(counts().row("paged_decode_bf16_page1")->costs->tma_bytes, 0);  // by cp.async
  for (const char* name : {"paged_decode_bf16_page16", "paged_decode_bf16_page1", "paged_decode_e4m3_page16"}) {
    EXPECT_GE(moved(*counts().row(name)), counts().row(name)->bytes) << name;
    EXPECT_LT(moved(*counts().row(name)), counts().row(name)->bytes * 14 / 10) << name;  // partial outputs, tables
  }
  // 128 tokens of 1152 and of 656 bytes, 16 heads' queries and outputs,
  EXPECT_EQ(counts().row("mla_decode_bf16")->bytes, 128 * 1152 + 16 * (576 + 512) * 2);
  EXPECT_EQ(counts().row("mla_decode_fp8")->bytes, 128 * 656 + 16 * (576 + 512) * 2);
  for (const char* name : {"mla_decode_bf16", "mla_decode_fp8"})
    EXPECT_GE(moved(*counts().row(name)), counts().row(name)->bytes) << name;
}

TEST(Workloads, FlopsAreThoseOfTheShape) {
  EXPECT_DOUBLE_EQ(counts().row("bf16_product")->flops, 2.0 * 256 * 256 * 128);
  EXPECT_EQ(counts().row("bf16_product")->costs->tma_bytes, 2 * 1 * 2 * (128 + 256) * 64 * 2);  // tiles x steps
  EXPECT_DOUBLE_EQ(counts().row("paged_prefill_bf16")->flops, 4.0 * 128 * 2 * (160 * 161 / 2));
}

TEST(Workloads, TargetsStandBehindTheirMeasure) {
  std::map<std::string, bool> seen{{"copy", true}, {"", true}};
  for (const WorkloadRow& row : workload_rows()) {
    EXPECT_TRUE(seen.contains(row.against)) << row.name;
    EXPECT_FALSE(seen.contains(row.name)) << row.name;
    seen[row.name] = true;
  }
}

// --- with times: those of the fake driver, in which each launch and each copy takes one millisecond
// --------------------

TEST(Benchmarks, TheReportHasEveryRowWithItsRatio) {
  CudaGpu device(stand_in());
  std::int64_t shown = 0;
  const BenchReport report =
      run_benchmarks(device, {.repetitions = 1, .small = true, .progress = [&](auto, auto) { ++shown; }});
  std::vector<std::string> all{"copy"};
  for (const WorkloadRow& row : workload_rows()) all.push_back(row.name);
  EXPECT_EQ(names(report), all);
  EXPECT_EQ(shown, static_cast<std::int64_t>(all.size()));

  const BenchRow &copy = *report.row("copy"), &append = *report.row("append_tokens_bf16"),
                 &decode = *report.row("paged_decode_bf16_page16");
  EXPECT_EQ(copy.bytes, 2 << 16);
  EXPECT_DOUBLE_EQ(copy.time->median_ms, 1);
  EXPECT_DOUBLE_EQ(copy.rate, 131072 / 1e-3);
  EXPECT_DOUBLE_EQ(append.time->median_ms, 1);
  EXPECT_DOUBLE_EQ(*append.ratio, static_cast<double>(append.bytes) / 131072);
  EXPECT_DOUBLE_EQ(decode.time->median_ms, 2);  // the splits, and their combination
  EXPECT_DOUBLE_EQ(*report.row("paged_decode_e4m3_page16")->ratio, 1);
  EXPECT_EQ(report.row("paged_decode_e4m3_page16")->verdict(), "missed");  // 1.4 times as fast
  EXPECT_FALSE(report.passed());
  const BenchRow &product = *report.row("bf16_product"), &prefill = *report.row("paged_prefill_bf16");
  EXPECT_DOUBLE_EQ(*prefill.ratio, prefill.flops / product.flops);

  for (const std::string& text : {text_report(report), json::dump(json_report(report)), markdown_report(report)})
    for (const std::string& name : all) EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text_report(report), HasSubstr("Imitation H200, sm_90a, 132 multiprocessors, driver CUDA 13.0"));
  EXPECT_THAT(text_report(report), HasSubstr("1.00x as fast as paged_decode_bf16_page16"));
}

TEST(Benchmarks, AKernelBringsWhatItIsMeasuredAgainst) {
  CudaGpu device(stand_in());
  const auto of = [&](const char* kernel) {
    return names(run_benchmarks(device, {.kernel = kernel, .repetitions = 1, .small = true}));
  };
  EXPECT_THAT(of("gather_rows"), ElementsAre("copy", "gather_rows_bf16"));
  EXPECT_THAT(of("copy"), ElementsAre("copy"));
  EXPECT_THAT(of("paged_prefill"), ElementsAre("copy", "bf16_product", "paged_prefill_bf16"));
  try {
    (void)of("lds_stage");
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("kernel 'lds_stage' has no benchmark"), HasSubstr("paged_prefill")));
  }
  EXPECT_THROW((void)run_benchmarks(device, {.caches = 2}), InputError);
  VirtualGpu counted;
  EXPECT_THROW((void)count_benchmarks(counted, {.kernel = "copy"}), InputError);
}

TEST(Benchmarks, AKernelThatDoesNotRunIsARowThatFailed) {
  CudaGpu device(stand_in());
  behave({.synchronize = 700});
  const BenchReport report = run_benchmarks(device, {.kernel = "gather_rows", .repetitions = 1, .small = true});
  behave({});
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.row("gather_rows_bf16")->verdict(), "failed");
  EXPECT_FALSE(report.row("gather_rows_bf16")->time);
  EXPECT_THAT(text_report(report), AllOf(HasSubstr("FAILED"), HasSubstr("cuCtxSynchronize")));
  EXPECT_THAT(markdown_report(report), HasSubstr("failed: kernel gather_rows_bf16_bf16: cuCtxSynchronize"));
}

TEST(Benchmarks, WithoutMemoryThereIsNoMeasureAndNothingIsMeasured) {
  CudaGpu device(stand_in());
  behave({.allocate = 2});
  const BenchReport report = run_benchmarks(device, {.small = true});
  behave({});
  EXPECT_THAT(names(report), ElementsAre("copy"));
  EXPECT_THAT(report.rows[0].faults, Each(HasSubstr("out of memory")));
  EXPECT_FALSE(report.passed());
}

TEST(Verdicts, ARatioAtItsTargetIsMetAndBelowIsMissed) {
  BenchRow row;
  row.against = "copy";
  row.target = 0.6;
  row.ratio = 0.6;
  EXPECT_EQ(row.verdict(), "met");
  row.ratio = 0.5999;
  EXPECT_EQ(row.verdict(), "missed");
  EXPECT_FALSE(row.passed());
  row.target.reset();
  EXPECT_EQ(row.verdict(), "no target");
  EXPECT_TRUE(row.passed());
  row.against.clear();
  EXPECT_EQ(row.verdict(), "measure");
  row.faults = {"no"};
  EXPECT_EQ(row.verdict(), "failed");
}

TEST(Reports, OfTheVirtualGpuSayThatThereAreNoTimes) {
  EXPECT_THAT(text_report(counts()),
              AllOf(HasSubstr("it has no clock"), HasSubstr("sectors"), HasSubstr("moved/data")));
  EXPECT_THAT(markdown_report(counts()), HasSubstr("it has no clock"));
  EXPECT_THAT(json::dump(json_report(counts())), AllOf(HasSubstr("\"counted\""), HasSubstr("\"tma_bytes\"")));
}

}  // namespace
}  // namespace kvscope::gpu::bench_test

// K14 and K15: functions, stacks, printf, assert and trap.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/machine/diagnosis/report.h"
#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::calls_test {
namespace {

std::vector<std::int32_t> picks() {
  std::vector<std::int32_t> values(64);
  for (std::size_t i = 0; i < 64; ++i) values[i] = static_cast<std::int32_t>(i * i * 5 % 83);
  return values;
}

// Runs `kernel` with (out, picks) or (out), 64 threads.
std::vector<std::int32_t> ints_of(const Schedule& schedule, const char* kernel, bool with_picks) {
  Gpu gpu("calls.ptx", schedule);
  const std::uint64_t out = gpu.zeros("out", 256);
  Run run{.kernel = kernel, .block = {64, 1, 1}, .values = {out}};
  if (with_picks) run.values.emplace_back(gpu.upload("picks", picks()));
  gpu.run_clean(run);
  return gpu.download<std::int32_t>(out, 64);
}

TEST(K14, LocalArraysAreEachThreadsOwn) {
  std::vector<std::int32_t> expected;
  for (const std::int32_t pick : picks()) {
    std::array<std::int32_t, 24> fibonacci{0, 1};
    for (std::size_t i = 2; i < 24; ++i) fibonacci.at(i) = fibonacci.at(i - 1) + fibonacci.at(i - 2);
    fibonacci.at(static_cast<std::size_t>(pick % 24)) += 1000;
    std::int32_t sum = 0;
    for (std::int32_t i = 0; i < 24; ++i) sum += fibonacci.at(static_cast<std::size_t>(i * pick % 24));
    expected.push_back(sum);
  }
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(ints_of(schedule, "local_array", true), expected);
  }
}

std::int32_t collatz_like(std::int32_t n, std::int32_t depth) {
  if (depth == 0) return n;
  return collatz_like(n % 2 == 0 ? n / 2 : 3 * n + 1, depth - 1) + depth * (n & 3);
}

// Lanes return from 21 different depths: with one call stack per warp, all would get the first lane's result.
TEST(K14, LanesOfAWarpRecurToDifferentDepths) {
  std::vector<std::int32_t> expected;
  for (std::int32_t t = 0; t < 64; ++t) expected.push_back(collatz_like(t + 1, t % 21));
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(ints_of(schedule, "recursion", false), expected);
  }
}

TEST(K14, LanesCallDifferentFunctionsOfATable) {
  std::vector<std::int32_t> expected;
  for (std::int32_t t = 0; const std::int32_t pick : picks()) {
    const std::int32_t x = t++ + 5;
    expected.push_back(pick % 3 == 0 ? 2 * x : pick % 3 == 1 ? x * x : -x);
  }
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(ints_of(schedule, "function_table", true), expected);
  }
}

TEST(K14, AllocaGivesEachLaneAsMuchAsItAsksFor) {
  std::vector<std::int32_t> expected;
  for (std::int32_t t = 0; t < 64; ++t) {
    const std::int32_t count = 1 + t % 7;
    std::int32_t sum = 0;
    for (std::int32_t i = 0; i < count; ++i) sum += (t * 100 + count - 1 - i) * (i + 1);
    expected.push_back(sum);
  }
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(ints_of(schedule, "stack_memory", false), expected);
  }
}

struct Pair {
  std::int32_t key;
  float weight;
  std::array<std::int16_t, 5> tags;
  double sum;
};
Pair combined(const Pair& a, const Pair& b) {
  Pair c{};
  c.key = a.key * 10 + b.key;
  c.weight = a.weight + b.weight;
  for (std::size_t i = 0; i < 5; ++i) c.tags.at(i) = static_cast<std::int16_t>(a.tags.at(i) - b.tags.at(4 - i));
  c.sum = a.sum * b.sum + static_cast<double>(c.tags.at(static_cast<std::size_t>(a.key % 5)));
  return c;
}

TEST(K14, StructsPassByValueBothWays) {
  std::vector<double> expected;
  for (std::int16_t t = 0; t < 64; ++t) {
    const Pair a{t, 0.5F, {1, 2, 3, 4, t}, 1.5}, b{7, 2.0F, {9, 8, 7, 6, 5}, 2.0 + t};
    const Pair c = combined(combined(a, b), a);
    expected.push_back(c.sum + c.key + static_cast<double>(c.weight));
  }
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("calls.ptx", schedule);
    const std::uint64_t out = gpu.zeros("out", 512);
    gpu.run_clean({.kernel = "struct_by_value", .block = {64, 1, 1}, .values = {out}});
    EXPECT_EQ(gpu.download<double>(out, 64), expected);
  }
}

TEST(K15, PrintsLaneByLaneAsTheHostWould) {
  Gpu gpu("host_calls.ptx");
  const std::uint64_t x = gpu.upload("x", std::vector<float>{1.5F, -0.25F});
  EXPECT_EQ(gpu.run_clean({.kernel = "say", .values = {x}}).printed,
            "thread 0 of the first has 1.500000\n"
            "thread 1 of the second has -0.250000\n"
            "40% k beef -5000000000  2.35|7   |\n");
}

TEST(K15, AFailedAssertionNamesItsLine) {
  Gpu gpu("host_calls.ptx");
  const std::uint64_t x = gpu.upload("x", std::vector<std::int32_t>{1, 2, 2, 1, 5});
  const LaunchResult result = gpu.run_checked({.kernel = "check_sorted", .block = {5, 1, 1}, .values = {x}});
  ASSERT_EQ(result.reports.size(), 1U) << reports_text(result);
  EXPECT_EQ(result.reports[0].kind, ReportKind::assert_);
  EXPECT_NE(to_text(result.reports[0]).find("x[t - 1] <= x[t]"), std::string::npos) << reports_text(result);
  EXPECT_NE(to_text(result.reports[0]).find("host_calls.cu:18"), std::string::npos) << reports_text(result);
  EXPECT_EQ(result.status, LaunchStatus::failed);
}

TEST(K15, ATrapNamesItsPlace) {
  Gpu gpu("host_calls.ptx");
  const std::uint64_t x = gpu.upload("x", std::vector<std::int32_t>{1, 2, -2, 1});
  const LaunchResult result = gpu.run_checked({.kernel = "stop_at_negative", .block = {4, 1, 1}, .values = {x}});
  ASSERT_EQ(result.reports.size(), 1U) << reports_text(result);
  EXPECT_EQ(result.reports[0].kind, ReportKind::trap);
  EXPECT_NE(to_text(result.reports[0]).find("host_calls.cu:22"), std::string::npos) << reports_text(result);
}

}  // namespace
}  // namespace kvscope::ptx::test::calls_test

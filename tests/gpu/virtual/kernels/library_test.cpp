// K20 and K22: the compiled form of the C++ library's barrier and of atomics.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::library_test {
namespace {

// The copy is issued before its bytes are announced: tx is negative while arrivals are pending.
TEST(K20, TheLibrarysBarrierAndCopyAgreeOnThePhase) {
  std::vector<std::int32_t> in(512), expected(512);
  for (std::size_t i = 0; i < 512; ++i) in[i] = static_cast<std::int32_t>(i * 77 % 1013);
  for (std::size_t i = 0; i < 512; ++i) expected[i] = in[i] + in[i / 256 * 256 + 255 - i % 256];
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("library_barrier.ptx", schedule);
    const std::uint64_t from = gpu.upload("in", in), out = gpu.zeros("out", 2048);
    gpu.run_clean({.kernel = "library_copy", .block = {96, 1, 1}, .values = {out, from}});
    EXPECT_EQ(gpu.download<std::int32_t>(out, 512), expected);
  }
}

class K22 : public ::testing::Test {
 protected:
  // Runs under every schedule and dialect.
  template <class Body>
  static void everywhere(const Body& body) {
    for (const Dialect& dialect : kDialects)
      for (const Schedule& schedule : kSchedules) {
        SCOPED_TRACE(std::string(schedule.name) + ' ' + dialect.suffix);
        Gpu gpu(std::string("atomics") + dialect.suffix, schedule, dialect.target);
        body(gpu);
      }
  }
};

// Integers that are exact in fp32 and bf16: every order of the sums is exact.
TEST_F(K22, AddsFourFloatsAtOnce) {
  constexpr std::size_t kCount = 300;
  std::vector<float> in(4 * kCount), expected(12);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<float>(i % 23) - 9;
    expected[i / 4 % 3 * 4 + i % 4] += in[i];
  }
  everywhere([&](Gpu& gpu) {
    const std::uint64_t from = gpu.upload("in", in), sums = gpu.zeros("sums", 48);
    gpu.run_clean(
        {.kernel = "add_float4", .grid = {3, 1, 1}, .block = {128, 1, 1}, .values = {sums, from, value(kCount)}});
    EXPECT_EQ(gpu.download<float>(sums, 12), expected);
  });
}

TEST_F(K22, AddsPairsOfBf16) {
  constexpr std::size_t kCount = 200;
  std::vector<std::uint16_t> in(2 * kCount), expected(10);
  std::array<float, 10> sums{};
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto v = static_cast<float>(i % 5) - (i % 2 == 0 ? 1.0F : 3.0F);
    in[i] = bf16(v);
    sums.at(i / 2 % 5 * 2 + i % 2) += v;
  }
  for (std::size_t i = 0; i < 10; ++i) expected[i] = bf16(sums.at(i));
  everywhere([&](Gpu& gpu) {
    const std::uint64_t from = gpu.upload("in", in), to = gpu.zeros("sums", 20);
    gpu.run_clean(
        {.kernel = "add_bf16x2", .grid = {2, 1, 1}, .block = {128, 1, 1}, .values = {to, from, value(kCount)}});
    EXPECT_EQ(gpu.download<std::uint16_t>(to, 10), expected);
  });
}

// Two adjacent elements in one word: a compare and swap of the whole word would lose one update.
TEST_F(K22, ComparesAndSwapsSixteenBits) {
  constexpr std::size_t kCount = 200;
  std::vector<std::uint16_t> in(kCount), expected(2);
  for (std::size_t i = 0; i < kCount; ++i) {
    in[i] = static_cast<std::uint16_t>(i * 40503);
    expected[i % 2] = std::max(expected[i % 2], in[i]);
  }
  everywhere([&](Gpu& gpu) {
    const std::uint64_t from = gpu.upload("in", in), most = gpu.zeros("most", 4);
    gpu.run_clean(
        {.kernel = "max_u16", .grid = {2, 1, 1}, .block = {128, 1, 1}, .values = {most, from, value(kCount)}});
    EXPECT_EQ(gpu.download<std::uint16_t>(most, 2), expected);
  });
}

// The values taken and left are those stored: no halves of two values are mixed.
TEST_F(K22, ExchangesHundredAndTwentyEightBits) {
  using Value = std::array<std::uint64_t, 2>;
  everywhere([](Gpu& gpu) {
    const std::uint64_t slot = gpu.zeros("slot", 16), taken = gpu.zeros("taken", 64 * 16);
    gpu.run_clean({.kernel = "exchange_128", .block = {64, 1, 1}, .values = {slot, taken}});
    std::vector<Value> seen = gpu.download<Value>(taken, 64), put;
    seen.push_back(gpu.download<Value>(slot, 1)[0]);
    put.push_back({0, 0});
    for (std::uint64_t i = 0; i < 64; ++i) put.push_back({i + 1, ~i});
    std::sort(seen.begin(), seen.end());
    std::sort(put.begin(), put.end());
    EXPECT_EQ(seen, put);
  });
}

TEST_F(K22, CountersWrapAndBitsToggle) {
  constexpr std::uint32_t kThreads = 100;
  std::uint32_t up = 0, down = 4, bits = 0;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    up = up >= 9 ? 0 : up + 1;
    down = down == 0 || down > 6 ? 6 : down - 1;
    bits ^= 1U << (t % 32);
  }
  everywhere([&](Gpu& gpu) {
    const std::uint64_t out = gpu.upload("out", std::vector<std::uint32_t>{0, 0, 0, 0xfffffff0U});
    gpu.run_clean({.kernel = "wrapping_counters", .block = {kThreads, 1, 1}, .values = {out}});
    EXPECT_EQ(gpu.download<std::uint32_t>(out, 4), (std::vector<std::uint32_t>{up, down, bits, 59}));
  });
}

}  // namespace
}  // namespace kvscope::ptx::test::library_test

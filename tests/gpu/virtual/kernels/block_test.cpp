// K04, K05 and K06, and K23 for them (see README.md): the threads of a CTA work on one array.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::block_test {
namespace {

// The counter wraps to zero with the last CTA, so a second launch begins in the same state.
TEST(K04, AddsAnArrayAtomicallyAndByTheLastBlockTwice) {
  std::vector<std::int32_t> in(3001);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int32_t>(i * 37 % 1001) - 400;
  const std::int32_t sum = std::accumulate(in.begin(), in.end(), 0);

  for (const Dialect& dialect : kDialects)
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + ' ' + dialect.suffix);
      Gpu gpu(std::string("reduce") + dialect.suffix, schedule, dialect.target);
      const std::uint64_t from = gpu.upload("in", in), total = gpu.zeros("total", 4), last = gpu.zeros("last", 4),
                          parts = gpu.zeros("parts", 5 * 4);
      for (int launch = 1; launch <= 2; ++launch) {
        gpu.run_clean({.kernel = "reduce",
                       .grid = {5, 1, 1},
                       .block = {256, 1, 1},
                       .values = {total, last, parts, from, value(3001)}});
        EXPECT_EQ(gpu.download<std::int32_t>(total, 1)[0], launch * sum);
        EXPECT_EQ(gpu.download<std::int32_t>(last, 1)[0], sum);
      }
    }
}

// Detects a tile that is read before it is complete, and a pitch shared by two rows.
TEST(K05, TransposesATileInSharedMemory) {
  std::vector<float> in(1024), turned(1024);
  for (std::size_t i = 0; i < 1024; ++i) in[i] = static_cast<float>(i) + 0.25F;
  for (std::size_t row = 0; row < 32; ++row)
    for (std::size_t column = 0; column < 32; ++column) turned[column * 32 + row] = in[row * 32 + column];
  for (const char* kernel : {"transpose_pitch_32", "transpose_pitch_33"})
    for (const Dialect& dialect : kDialects)
      for (const Schedule& schedule : kSchedules) {
        SCOPED_TRACE(std::string(kernel) + ' ' + schedule.name + ' ' + dialect.suffix);
        Gpu gpu(std::string("transpose") + dialect.suffix, schedule, dialect.target);
        const std::uint64_t from = gpu.upload("in", in), to = gpu.zeros("out", 4096);
        gpu.run_clean({.kernel = kernel, .block = {256, 1, 1}, .values = {to, from}});
        EXPECT_EQ(gpu.download<float>(to, 1024), turned);
      }
}

// 1001 words: a copy of 8 bytes of which only 4 exist, and 11 threads whose copies have no source.
TEST(K06, RingOfAsynchronousCopiesFillsTheTailWithZeros) {
  constexpr std::size_t kCount = 1001, kPadded = 1024;
  std::vector<std::uint32_t> in(kCount), expected(kPadded, 0);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = in[i] = static_cast<std::uint32_t>(i * 2654435761U);
  for (const Dialect& dialect : kDialects)
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + ' ' + dialect.suffix);
      Gpu gpu(std::string("ring") + dialect.suffix, schedule, dialect.target);
      const std::uint64_t from = gpu.upload("in", in);
      const std::uint64_t to = gpu.upload("out", std::vector<std::uint32_t>(kPadded, 0xdeadbeef));
      gpu.run_clean({.kernel = "ring_copy", .block = {64, 1, 1}, .values = {to, from, value(kCount)}});
      EXPECT_EQ(gpu.download<std::uint32_t>(to, kPadded), expected);
    }
}

}  // namespace
}  // namespace kvscope::ptx::test::block_test

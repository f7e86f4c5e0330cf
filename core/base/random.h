// A counter-based random generator: the n-th number of a stream is a function of (seed, stream, n), so it depends
// neither on the machine nor on the order of the calls. Philox4x32-10 (Salmon et al., SC 2011). The distributions are
// kvscope's, because those of the C++ standard library differ between implementations.
#pragma once

#include <array>
#include <cstdint>

namespace kvscope {

// One block of Philox4x32-10. Example (Random123 known-answer file): counter and key all zero ->
// {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

class CounterRng {
 public:
  constexpr CounterRng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  [[nodiscard]] std::uint64_t bits(std::uint64_t n) const;  // 64 random bits
  [[nodiscard]] double uniform(std::uint64_t n) const;      // [0, 1), 53 bits
  // [low, high], high - low < 2^63. Unbiased to within 2^-64 * range (multiply-shift).
  [[nodiscard]] std::int64_t integer(std::uint64_t n, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] double exponential(std::uint64_t n, double mean) const;
  // Mean 0, deviation 1: the sum of four 16-bit uniforms, which is exact, times sqrt(3) / 2^16;
  // |x| < 3.47, kurtosis 2.7.
  [[nodiscard]] double bell(std::uint64_t n) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace kvscope

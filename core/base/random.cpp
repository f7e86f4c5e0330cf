#include "core/base/random.h"

#include "core/base/errors.h"
#include "core/base/portable_math.h"

namespace kvscope {
namespace {

__extension__ using u128 = unsigned __int128;

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xd2511f53;
  constexpr std::uint64_t kMultiplier1 = 0xcd9e8d57;
  constexpr std::uint32_t kWeyl0 = 0x9e3779b9;
  constexpr std::uint32_t kWeyl1 = 0xbb67ae85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

std::uint64_t CounterRng::bits(std::uint64_t n) const {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto block = philox4x32({low(n), high(n), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  return static_cast<std::uint64_t>(block[1]) << 32 | block[0];
}

double CounterRng::uniform(std::uint64_t n) const {
  return static_cast<double>(bits(n) >> 11) * 0x1p-53;
}

std::int64_t CounterRng::integer(std::uint64_t n, std::int64_t low, std::int64_t high) const {
  KVSCOPE_ASSERT(low <= high);
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  KVSCOPE_ASSERT(span < std::uint64_t{1} << 63);
  const auto offset = static_cast<std::uint64_t>((static_cast<u128>(bits(n)) * (span + 1)) >> 64);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

// 1 - u is in (0, 1], so the logarithm is finite; subtracting it from 0 gives +0 and not -0 for u = 0.
double CounterRng::exponential(std::uint64_t n, double mean) const {
  return mean * (0 - portable_log(1 - uniform(n)));
}

double CounterRng::bell(std::uint64_t n) const {
  const std::uint64_t word = bits(n);
  const auto sum = static_cast<double>((word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48));
  constexpr double kScale = 0x1.bb67ae8584caap+0 / 65536;  // sqrt(3) / 2^16: one uniform's variance is 2^32 / 12
  return (sum - 2 * 65535.0) * kScale;
}

}  // namespace kvscope

#include "gpu/bench/bench_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/random.h"
#include "gpu/kernels/mla_decode/config.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kPattern = std::int64_t{1} << 16;  // [bytes]

// Makes a number from a random one: sign and fraction are random, the exponent is such that 2^-2 <= |number| < 2^1.
std::uint32_t number_bits(DType dtype, std::uint32_t random) {
  const std::uint32_t exponent = random % 3;
  const std::uint32_t sign = random >> 2 & 1, fraction = random >> 3;
  switch (dtype) {
    case DType::bf16:
      return sign << 15 | (125 + exponent) << 7 | (fraction & 0x7f);
    case DType::f16:
      return sign << 15 | (13 + exponent) << 10 | (fraction & 0x3ff);
    case DType::e4m3:
      return sign << 7 | (5 + exponent) << 3 | (fraction & 7);
    default:
      return sign << 31 | (125 + exponent) << 23 | (fraction & 0x7fffff);
  }
}

void repeat(std::vector<std::byte>& bytes, std::int64_t pattern) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  for (std::int64_t at = pattern; at < size; at += pattern)
    std::memcpy(bytes.data() + at, bytes.data(), static_cast<std::size_t>(std::min(pattern, size - at)));
}

}  // namespace

std::vector<std::byte> bench_noise(DType dtype, std::int64_t bytes, std::uint64_t seed) {
  const CounterRng rng(seed, 0x62656e6368U);
  const std::int64_t element = size_of(dtype), pattern = std::min(bytes, kPattern);
  std::vector<std::byte> made(static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i + element <= pattern; i += element) {
    const auto random = static_cast<std::uint32_t>(rng.integer(static_cast<std::uint64_t>(i), 0, 0x7fffffff));
    const std::uint32_t bits = number_bits(dtype, random);
    std::memcpy(made.data() + i, &bits, static_cast<std::size_t>(element));  // little endian, as on the GPU
  }
  repeat(made, pattern);
  return made;
}

std::vector<std::byte> bench_fp8_tokens(std::int64_t tokens, std::uint64_t seed) {
  const std::int64_t rows = std::min<std::int64_t>(tokens, 64);
  std::vector<std::byte> made(static_cast<std::size_t>(tokens * mla::kFp8Row));
  const std::vector<std::byte> content = bench_noise(DType::e4m3, rows * 512, seed);
  const std::vector<std::byte> rope = bench_noise(DType::bf16, rows * 128, seed + 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::byte* to = made.data() + row * mla::kFp8Row;
    std::memcpy(to, content.data() + row * 512, 512);
    for (int g = 0; g < 4; ++g) {
      const float scale = 1.0F / static_cast<float>(1 << g);
      std::memcpy(to + 512 + 4 * g, &scale, 4);
    }
    std::memcpy(to + 528, rope.data() + row * 128, 128);
  }
  repeat(made, rows * mla::kFp8Row);
  return made;
}

BenchCache make_bench_cache(Device& device, const BenchCacheShape& shape, std::uint64_t seed) {
  const std::int64_t P = shape.page_size, H = shape.kv_heads, D = shape.head_size;
  const std::int64_t pages = (shape.tokens + P - 1) / P, blocks = shape.batch * pages + 1;
  std::vector<std::uint32_t> table(static_cast<std::size_t>(shape.batch * pages));
  std::iota(table.begin(), table.end(), 0U);
  const CounterRng cards(seed, 0x7461626cU);
  for (std::size_t i = table.size() - 1; i > 0; --i)
    std::swap(table[i], table[static_cast<std::size_t>(cards.integer(i, 0, static_cast<std::int64_t>(i)))]);

  BenchCache cache;
  const std::int64_t rows = blocks * shape.slots * P, bytes = rows * H * D * size_of(shape.dtype);
  cache.pool = device.upload("pool", !shape.filled       ? std::vector<std::byte>(static_cast<std::size_t>(bytes))
                                     : D == mla::kFp8Row ? bench_fp8_tokens(rows, seed)
                                                         : bench_noise(shape.dtype, bytes, seed));
  if (shape.scaled) cache.scales = device.upload("scales", bench_noise(DType::f32, rows * H * 4, seed + 2));
  cache.table = device.upload_values("table", table);
  cache.lengths = device.upload_values("lengths", std::vector<std::uint32_t>(static_cast<std::size_t>(shape.batch),
                                                                             static_cast<std::uint32_t>(shape.tokens)));
  for (PagedCache* view : {&cache.k, &cache.v}) {
    const std::int64_t slot = view == &cache.v ? shape.slots - 1 : 0;
    view->data = cache.pool.as<std::byte>() + slot * P * H * D * size_of(shape.dtype);
    view->table = cache.table.as<const std::uint32_t>();
    view->block_stride = shape.slots * P * H * D;
    view->token_stride = H * D;
    view->table_stride = static_cast<std::int32_t>(pages);
    view->blocks = static_cast<std::int32_t>(blocks);
    view->page_size = static_cast<std::int32_t>(P);
    view->heads = static_cast<std::int32_t>(H);
    view->head_size = static_cast<std::int32_t>(D);
    if (shape.scaled) {
      view->scales = cache.scales.as<float>() + slot * P * H;
      view->scale_block_stride = shape.slots * P * H;
      view->granularity = static_cast<std::int32_t>(D);
    }
  }
  return cache;
}

}  // namespace kvscope::gpu

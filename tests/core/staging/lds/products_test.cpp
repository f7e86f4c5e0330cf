// The operands of the matrix instructions: sums over lane groups and fragment elements, with Q and P arranged as in the
// kernels, equal the matrix products. Values are raw bits read as integers, so that sums are exact.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/staging/lds/kv_buffer.h"
#include "core/staging/lds/register_map.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::products_test {
namespace {

using test::Block;
using test::named;
using test::register_bits;

std::uint32_t k_or_v(std::int64_t key, std::int64_t, std::int64_t depth) {
  return static_cast<std::uint32_t>((key * 7 + depth * 13 + key * depth) % 251);
}
std::int64_t q_or_p(std::int64_t query, std::int64_t index) {
  return (query * 11 + index * 5 + query * index) % 97;
}

// Depth of element e of lane group g, as in Q's loader for each shape.
std::int64_t q_depth(const KVBufferParams& p, std::int64_t k, std::int64_t g, std::int64_t e) {
  if (p.dtype == DType::bf16 && p.mma_shape.K == 8) return 16 * (k / 2) + 8 * g + 4 * (k % 2) + e;
  if (p.dtype == DType::bf16) return p.mma_shape.K * k + 8 * g + e;
  return p.mma_shape.M == 32 ? 32 * (e / 16) + 16 * g + e % 16 : 64 * (e / 16) + 16 * g + e % 16;
}

TEST(Products, OfQAndKFragmentsAreThePlainOnes) {
  for (const char* id : {"A K", "A8 K", "B K", "C K", "F K", "G K", "H K", "I K"}) {
    SCOPED_TRACE(id);
    KVBufferParams p = named(id);
    if (p.mma_shape.K == 8) p.k_group = 2;
    const test::TokenCache tokens = test::cache_for(p, k_or_v);
    Block block(p, tokens, p.BN);
    block.load(1);
    (void)block.registers(1);
    const KVBufferConstants& c = block.config().constants();
    const std::int64_t M = c.MMA_M;
    for (const std::int64_t w : {std::int64_t{0}, c.waves - 1}) {
      KVBuffer& wave = block.wave(static_cast<std::size_t>(w));
      for (std::int64_t i = 0; i < c.num_mmas; ++i) {
        for (std::int64_t m = 0; m < M; m += 5) {
          const std::int64_t n = (m * 3 + 1) % M, key = w % (c.BN / c.WN) * c.WN + i * M + m;
          std::int64_t sum = 0, plain = 0;
          for (std::int64_t b = 0; b < c.num_k_tiles; ++b) {
            for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
              const std::int64_t row = register_row(c, StripIdx{b}, k, i);
              for (std::int64_t g = 0; g < 64 / M; ++g) {
                for (std::int64_t e = 0; e < c.input_frag_size; ++e) {
                  const std::int64_t depth = b * c.BK + q_depth(p, k, g, e);
                  const std::int64_t q = depth < c.depth ? q_or_p(n, depth) : 0;  // Q is zero where K's pack is
                  sum += register_bits(wave, g * M + m, row, e) * q;
                }
              }
            }
          }
          for (std::int64_t d = 0; d < c.depth; ++d) plain += k_or_v(key, 0, d) * q_or_p(n, d);
          ASSERT_EQ(sum, plain) << "wave " << w << ", key " << key;
        }
      }
    }
  }
}

// Rows of the 32-row accumulator: the row of Q K^T in register p of key tile t of a lane of group g.
std::int64_t accumulator_row(std::int64_t t, std::int64_t g, std::int64_t p) {
  return 32 * t + 8 * (p / 4) + 4 * g + p % 4;
}

// Key of element e of lane group g: with 32 rows, in the accumulator's order; with 16, in the order of P's reads from
// LDS.
std::int64_t p_key(const KVBufferParams& p, std::int64_t b, std::int64_t k, std::int64_t g, std::int64_t e) {
  if (p.mma_shape.M == 32) {
    const std::int64_t frag = p.mma_shape.K / 2;  // 64 lanes of 32 rows
    const std::int64_t flat = p.dtype == DType::bf16 ? k * frag + e : e;
    const std::int64_t tiles = p.BK / 32;  // accumulator tiles joined in a strip
    return accumulator_row(b * tiles + flat / 16, g, flat % 16);
  }
  if (p.dtype == DType::bf16) return b * p.BK + 32 * k + 16 * (e / 4) + 4 * g + e % 4;
  return 32 * g + e;
}

TEST(Products, OfPAndVFragmentsAreThePlainOnesWithPAsTheAccumulatorLeavesIt) {
  for (const char* id : {"B V", "A8 V", "C V", "D V", "F-Vd", "G-Vd"}) {
    SCOPED_TRACE(id);
    KVBufferParams p = named(id);
    if (p.mma_shape.K == 8) {
      p.k_group = 2;
      p.WN = p.BN;
    }
    const test::TokenCache tokens = test::cache_for(p, k_or_v);
    Block block(p, tokens, p.BN);
    block.load(0);
    KVBuffer& wave = block.wave(1);
    wave.load_from_shared(StageIdx{0});
    const KVBufferConstants& c = block.config().constants();
    const std::int64_t M = c.MMA_M;
    for (std::int64_t i = 0; i < c.num_mmas; ++i) {
      for (std::int64_t m = 0; m < M; m += 3) {
        const std::int64_t n = (m * 5 + 2) % M, depth = i * M + m;
        std::int64_t sum = 0, plain = 0;
        for (std::int64_t b = 0; b < c.num_k_tiles; ++b) {
          for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
            const std::int64_t row = register_row(c, StripIdx{b}, k, i);
            for (std::int64_t g = 0; g < 64 / M; ++g) {
              for (std::int64_t e = 0; e < c.input_frag_size; ++e) {
                sum += register_bits(wave, g * M + m, row, e) * q_or_p(n, p_key(p, b, k, g, e));
              }
            }
          }
        }
        for (std::int64_t key = 0; key < c.BN; ++key) plain += k_or_v(key, 0, depth) * q_or_p(n, key);
        ASSERT_EQ(sum, plain) << "depth " << depth;
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::products_test

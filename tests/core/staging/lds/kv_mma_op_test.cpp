// The product of kv_mma_op over steps and strips equals the matrix product. The other operand's fragments and the
// places of the sums follow the instruction's published tables, written out here.
#include "core/staging/lds/kv_mma_op.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/convert.h"
#include "core/staging/lds/kv_buffer.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::kv_mma_op_test {
namespace {

using test::Block;
using test::message_of;
using test::named;

// -7 .. 7: exact in every type, and so is every sum of a few hundred products.
double kv_value(std::int64_t key, std::int64_t depth) {
  return static_cast<double>((key * 7 + depth * 3 + key * depth / 8) % 15 - 7);
}
double other_value(std::int64_t query, std::int64_t index) {
  return static_cast<double>((query * 5 + index * 11 + query * index) % 13 - 6);
}

std::uint32_t bits_of(DType dtype, double value) {
  std::uint32_t bits = 0;
  store_from_double(dtype, value, reinterpret_cast<std::byte*>(&bits), Overflow::saturate);
  return bits;
}

// Key (V) or depth (K) of element e of lane group g at step k of strip b.
std::int64_t index_of(const KVBufferParams& p, std::int64_t b, std::int64_t k, std::int64_t g, std::int64_t e) {
  const std::int64_t K = p.mma_shape.K;
  if (p.transpose) {
    if (K == 8) return b * p.BK + 16 * (k / 2) + 8 * g + 4 * (k % 2) + e;
    if (p.dtype == DType::bf16) return b * p.BK + K * k + 8 * g + e;
    return b * p.BK + K / 2 * (e / 16) + 16 * g + e % 16;
  }
  if (K == 8) return b * p.BK + 8 * k + 4 * g + e;
  if (p.dtype == DType::bf16) return b * p.BK + K * k + (p.mma_shape.M == 32 ? 8 : 16) * (e / 4) + 4 * g + e % 4;
  return p.mma_shape.M == 32 ? b * p.BK + 8 * (e / 4) + 4 * g + e % 4 : 32 * g + e;
}

class Case {
 public:
  explicit Case(const std::string& id) : p(named(id)) {
    if (p.mma_shape.K == 8) p.k_group = 2;
    if (!p.transpose) p.WN = p.BN;
    const DType dtype = p.dtype;
    tokens = std::make_unique<test::TokenCache>(test::cache_for(
        p, [dtype](std::int64_t t, std::int64_t, std::int64_t d) { return bits_of(dtype, kv_value(t, d)); }));
    block = std::make_unique<Block>(p, *tokens, p.BN);
    block->load(0);
  }

  // [strip * steps + k, lane, query tile, element]; zero past the head, where K's last strip is half a strip.
  std::vector<std::byte> other(std::int64_t query_tiles) {
    const KVBufferConstants& c = block->config().constants();
    std::vector<std::byte> bytes;
    for (std::int64_t b = 0; b < c.num_k_tiles; ++b) {
      for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
        for (std::int64_t lane = 0; lane < 64; ++lane) {
          for (std::int64_t n = 0; n < query_tiles; ++n) {
            for (std::int64_t e = 0; e < c.input_frag_size; ++e) {
              const std::int64_t index = index_of(p, b, k, lane / p.mma_shape.M, e);
              const double value =
                  p.transpose && index >= p.depth ? 0 : other_value(n * p.mma_shape.M + lane % p.mma_shape.M, index);
              const std::uint32_t bits = bits_of(p.dtype, value);
              const auto* first = reinterpret_cast<const std::byte*>(&bits);
              bytes.insert(bytes.end(), first, first + size_of(p.dtype));
            }
          }
        }
      }
    }
    return bytes;
  }

  KVBufferParams p;
  std::unique_ptr<test::TokenCache> tokens;
  std::unique_ptr<Block> block;
};

// Register p of lane l of a sum: column l % M, row 4 G (p / 4) + 4 (l / M) + p % 4 with G = 64 / M.
TEST(KVMmaOp, MultipliesEveryStripIntoThePlainProduct) {
  for (const char* id : {"A K", "A8 K", "B K", "C K", "F K", "G K", "H K", "B V", "A8 V", "C V", "F-Vd", "G-Vd"}) {
    SCOPED_TRACE(id);
    Case of(id);
    const KVBufferParams& p = of.p;
    const std::int64_t M = p.mma_shape.M, tiles = 2, steps = p.BK / p.mma_shape.K;
    const std::int64_t strips = ((p.transpose ? p.depth : p.WN) + p.BK - 1) / p.BK,
                       across = (p.transpose ? p.WN : p.depth) / M;
    const std::int64_t wave = p.num_threads / 64 - 1;
    KVBuffer& buffer = of.block->wave(static_cast<std::size_t>(wave));
    buffer.load_from_shared(StageIdx{0});
    std::vector<std::byte> bytes = of.other(tiles);
    const AnyView<4> other(bytes.data(), p.dtype, {strips * steps, 64, tiles, M * p.mma_shape.K / 64});
    std::vector<double> sums(static_cast<std::size_t>(tiles * across * M * M), 1000);
    ASSERT_EQ(buffer.kv_mma_op().sum_count(tiles), std::ssize(sums));
    buffer.kv_mma_op().mma(other, sums);

    const std::int64_t first_key = p.transpose ? wave % (p.BN / p.WN) * p.WN : 0;
    std::size_t at = 0;
    for (std::int64_t n = 0; n < tiles; ++n) {
      for (std::int64_t m = 0; m < across; ++m) {
        for (std::int64_t lane = 0; lane < 64; ++lane) {
          for (std::int64_t r = 0; r < M * M / 64; ++r, ++at) {
            const std::int64_t query = n * M + lane % M;
            const std::int64_t row = m * M + 256 / M * (r / 4) + 4 * (lane / M) + r % 4;
            double plain = 1000;
            for (std::int64_t x = 0; x < (p.transpose ? p.depth : p.BN); ++x) {
              plain += (p.transpose ? kv_value(first_key + row, x) : kv_value(x, row)) * other_value(query, x);
            }
            ASSERT_EQ(sums[at], plain) << "query " << query << ", row " << row;
          }
        }
      }
    }
  }
}

// A register tile of two of four strips: load, multiply, next, as with reg_chunk_depth.
TEST(KVMmaOp, MultipliesStripByStripThroughACappedRegisterTile) {
  Case of("A K");
  std::vector<std::byte> bytes = of.other(1);
  const AnyView<4> other(bytes.data(), DType::bf16, {8, 64, 1, 8});
  KVBuffer& whole = of.block->wave(0);
  whole.load_from_shared(StageIdx{0});
  std::vector<double> expected(32 * 32);
  whole.kv_mma_op().mma(other, expected);

  KVBufferParams capped = of.p;
  capped.reg_chunk_depth = 64;
  const auto wave = of.block->over(capped, *of.tokens, WaveIdx{0});
  EXPECT_EQ(std::ssize(wave->register_bytes()), 64 * 4 * 8 * 2);
  std::vector<double> sums(32 * 32);
  EXPECT_EQ(message_of<UnsupportedError>([&] { wave->kv_mma_op().mma(other, sums); }),
            "kv_mma_op: registers hold 2 strips, a tile has 4: multiply strip by strip");
  for (std::int64_t b = 0; b < 4; ++b) {
    wave->load_from_shared(StripIdx{b}, StageIdx{0});
    for (std::int64_t k = 0; k < 2; ++k) {
      wave->kv_mma_op().mma(k, StripIdx{b}, {bytes.data() + (b * 2 + k) * 64 * 8 * 2, DType::bf16, {64, 1, 8}}, sums);
    }
  }
  EXPECT_EQ(sums, expected);
}

TEST(KVMmaOp, RejectsOperandsOfAnotherSizeOrType) {
  Case of("A K");
  KVMmaOp& op = of.block->wave(0).kv_mma_op();
  std::vector<std::byte> bytes(16 * 64 * 8 * 2);
  std::vector<double> sums(32 * 32);
  const auto one = [&](DType dtype, std::int64_t frag, std::int64_t k, std::int64_t b) {
    op.mma(k, StripIdx{b}, {bytes.data(), dtype, {64, 1, frag}}, sums);
  };
  EXPECT_EQ(message_of<GeometryError>([&] { one(DType::f16, 8, 0, 0); }),
            "kv_mma_op: the other operand is f16 [64, 1, 8], not bf16 [64, query tiles, 8]");
  EXPECT_EQ(message_of<GeometryError>([&] { one(DType::bf16, 4, 0, 0); }),
            "kv_mma_op: the other operand is bf16 [64, 1, 4], not bf16 [64, query tiles, 8]");
  EXPECT_EQ(message_of<IndexError>([&] { one(DType::bf16, 8, 2, 0); }),
            "MMA_K step 2 is outside [0, 2): num_k_mmas2 of a strip");
  EXPECT_EQ(message_of<IndexError>([&] { one(DType::bf16, 8, 0, 4); }),
            "strip 4 is outside [0, 4): num_k_tiles of the buffer");
  EXPECT_EQ(message_of<GeometryError>([&] {
              op.mma({bytes.data(), DType::bf16, {7, 64, 1, 8}}, sums);
            }),
            "kv_mma_op: the other operand has 7 steps: give 4 strips x 2 steps = 8");
  sums.pop_back();
  EXPECT_EQ(message_of<GeometryError>([&] { one(DType::bf16, 8, 0, 0); }),
            "kv_mma_op: 1023 sums for 1 query tiles: give 1024");
  // 32x32x32 obeys the rules of KVBuffer, but there is no such 16-bit instruction.
  KVBufferParams odd = of.p;
  odd.mma_shape.K = 32;
  const KVBufferConfig config(odd);
  KVMmaOp none(config);
  std::vector<double> enough(32 * 32);
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              none.mma(0, StripIdx{0}, {bytes.data(), DType::bf16, {64, 1, 16}}, enough);
            }),
            "kv_mma_op: 32x32x32 over elements of 2 B is not a matrix instruction of the model: use one of those that "
            "kvscope fragment lists");
}

}  // namespace
}  // namespace kvscope::kv_mma_op_test

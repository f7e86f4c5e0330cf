// The same rows staged through every kind of MHA operand: LDS bytes and registers are compared bit for bit with
// formulas written here, which use neither the layout nor the swizzle nor the register map.
#include "core/staging/lds/kv_operand.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/staging/lds/kv_buffer.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::kv_operand_test {
namespace {

using test::message_of;
using test::named;

constexpr std::int64_t kHeads = 2, kDepth = 128;
const std::vector<std::int64_t> kLengths{37, 150, 64};  // the tile of sequence 1 that begins at token 128 ends after 22

// Depends on sequence, token, head and column; never 0, so that a zero row is detected.
std::uint32_t value_of(std::int64_t seq, std::int64_t token, std::int64_t head, std::int64_t column,
                       std::int64_t bytes) {
  const auto mixed = static_cast<std::uint32_t>(seq * 10007 + token * 263 + head * 131 + column * 7 + column / 16);
  return bytes == 1 ? mixed % 255 + 1 : mixed % 65535 + 1;
}

// All sequences in one kind of memory. Bytes that belong to no token are 0x5A.
class Rows {
 public:
  Rows(std::string kind, DType dtype) : kind_(std::move(kind)), dtype_(dtype), bytes_(size_of(dtype)) {
    const std::int64_t sequences = std::ssize(kLengths);
    std::int64_t slots = 0;
    if (kind_ == "paged") {
      slots = 7 * kPage;
      table_ = {5, 7, 7, 2, 0, 4, 1, 7, 7};  // [sequence, page]; 7: never assigned
    } else if (kind_ == "ragged") {
      offsets_ = {0};
      for (const std::int64_t length : kLengths) {
        offsets_.push_back(offsets_.back() + static_cast<std::uint32_t>(length));
      }
      slots = offsets_.back();
    } else {
      slots = sequences * kCapacity;
      table_ = {0, 1, 2};
    }
    lengths_.assign(static_cast<std::size_t>(sequences), 0);
    pool_.assign(static_cast<std::size_t>(slots * kHeads * kDepth * bytes_), std::byte{0x5A});
    for (std::int64_t s = 0; s < sequences; ++s) {
      for (std::int64_t t = 0; t < kLengths[static_cast<std::size_t>(s)]; ++t) {
        for (std::int64_t h = 0; h < kHeads; ++h) {
          for (std::int64_t d = 0; d < kDepth; ++d) {
            const std::uint32_t value = value_of(s, t, h, d, bytes_);
            std::memcpy(&pool_[static_cast<std::size_t>(((slot(s, t) * kHeads + h) * kDepth + d) * bytes_)], &value,
                        static_cast<std::size_t>(bytes_));
          }
        }
      }
    }
  }

  [[nodiscard]] KVOperand operand() {
    const std::int64_t sequences = std::ssize(kLengths);
    if (kind_ == "paged") {
      return KVCacheMHAOperand(PagedKVCache({.dtype = dtype_, .kv_params = {kHeads, kDepth, false}, .page_size = kPage},
                                            {.blocks = {pool_.data(), dtype_, {7, kPage, kHeads, kDepth}},
                                             .cache_lengths = {lengths_.data(), {sequences}},
                                             .lookup_table = {table_.data(), {sequences, 3}}}));
    }
    if (kind_ == "continuous") {
      return KVCacheMHAOperand(ContinuousBatchingKVCache(
          {kHeads, kDepth, false}, {.blocks = {pool_.data(), dtype_, {sequences, kCapacity, kHeads, kDepth}},
                                    .cache_lengths = {lengths_.data(), {sequences}},
                                    .lookup_table = {table_.data(), {sequences}}}));
    }
    if (kind_ == "tensor") {
      return LayoutTensorMHAOperand({pool_.data(), dtype_, {sequences, kCapacity, kHeads, kDepth}});
    }
    return RaggedMHAOperand({pool_.data(), dtype_, {offsets_.back(), kHeads, kDepth}},
                            {offsets_.data(), {std::ssize(offsets_)}});
  }

 private:
  static constexpr std::int64_t kPage = 64, kCapacity = 152;

  [[nodiscard]] std::int64_t slot(std::int64_t s, std::int64_t t) const {
    if (kind_ == "paged") return table_[static_cast<std::size_t>(s * 3 + t / kPage)] * kPage + t % kPage;
    if (kind_ == "ragged") return offsets_[static_cast<std::size_t>(s)] + t;
    return s * kCapacity + t;
  }

  std::string kind_;
  DType dtype_;
  std::int64_t bytes_;
  std::vector<std::byte> pool_;
  std::vector<std::uint32_t> table_, lengths_, offsets_;
};

constexpr const char* kKinds[] = {"paged", "continuous", "tensor", "ragged"};

struct Dump {
  std::vector<std::byte> lds, registers;  // [2 stages]; [wave, lane, row, element]
};

// Stage 1 of a region filled with 0xEE, then every wave's registers.
Dump staged(const KVBufferParams& p, const KVOperand& operand, std::int64_t seq, std::int64_t head,
            std::int64_t first) {
  const KVBufferConfig config(p);
  const std::int64_t count = p.num_threads / 64;
  SharedImage image(2 * p.BN * p.depth * size_of(p.dtype), std::byte{0xEE});
  PendingCopies pending(image, count);
  std::vector<std::unique_ptr<KVBuffer>> waves;
  for (std::int64_t w = 0; w < count; ++w) {
    waves.push_back(std::make_unique<KVBuffer>(config, operand, SeqIdx{seq}, HeadIdx{head}, LdsRegion{&pending, 0},
                                               TokIdx{kLengths[static_cast<std::size_t>(seq)]}, WaveIdx{w}));
    waves.back()->kv_cache_iter().set_tile_start_row(TokIdx{first});
    waves.back()->load_from_dram<1>();
  }
  for (std::int64_t w = 0; w < count; ++w) pending.wait(WaveIdx{w}, 0);
  Dump dump;
  dump.lds.assign(image.bytes().begin(), image.bytes().end());
  for (const auto& wave : waves) {
    wave->load_from_shared(StageIdx{1});
    dump.registers.insert(dump.registers.end(), wave->register_bytes().begin(), wave->register_bytes().end());
  }
  return dump;
}

// Rows past the sequence's last token are zero.
std::uint32_t expected_value(std::int64_t seq, std::int64_t head, std::int64_t token, std::int64_t depth,
                             std::int64_t bytes) {
  return token < kLengths[static_cast<std::size_t>(seq)] ? value_of(seq, token, head, depth, bytes) : 0;
}

// Stage 1 by blocks of BN x BK; K's vector v goes to v ^ (v / 16) % 8, which is (3,0,4).
std::vector<std::byte> expected_lds(const KVBufferParams& p, std::int64_t seq, std::int64_t head, std::int64_t first) {
  const std::int64_t bytes = size_of(p.dtype), vector = 16 / bytes;
  std::vector<std::byte> lds(static_cast<std::size_t>(2 * p.BN * kDepth * bytes), std::byte{0xEE});
  for (std::int64_t key = 0; key < p.BN; ++key) {
    for (std::int64_t d = 0; d < kDepth; ++d) {
      const std::int64_t x = ((kDepth / p.BK + d / p.BK) * p.BN + key) * p.BK + d % p.BK;
      std::int64_t v = x / vector;
      if (p.swizzle) v ^= v / 16 % 8;
      const std::uint32_t value = expected_value(seq, head, first + key, d, bytes);
      std::memcpy(&lds[static_cast<std::size_t>((v * vector + x % vector) * bytes)], &value,
                  static_cast<std::size_t>(bytes));
    }
  }
  return lds;
}

// 32x32x16 (16 bits) and 32x32x64 (8 bits), by the tables of the matrix instruction.
std::vector<std::byte> expected_registers(const KVBufferParams& p, std::int64_t seq, std::int64_t head,
                                          std::int64_t first) {
  const std::int64_t bytes = size_of(p.dtype), frag = bytes == 2 ? 8 : 32, steps = p.BK * 32 / (64 * frag);
  const std::int64_t strips = (p.transpose ? kDepth : p.BN) / p.BK, across = (p.transpose ? p.WN : kDepth) / 32;
  std::vector<std::byte> registers;
  for (std::int64_t wave = 0; wave < p.num_threads / 64; ++wave) {
    for (std::int64_t lane = 0; lane < 64; ++lane) {
      for (std::int64_t b = 0; b < strips; ++b) {
        for (std::int64_t k = 0; k < steps; ++k) {
          for (std::int64_t i = 0; i < across; ++i) {
            for (std::int64_t e = 0; e < frag; ++e) {
              const std::int64_t half = lane / 32, in = lane % 32;
              std::int64_t key = 0, depth = 0;
              if (p.transpose) {
                key = wave % (p.BN / p.WN) * p.WN + 32 * i + in;
                depth = bytes == 2 ? 32 * b + 16 * k + 8 * half + e : 64 * b + 32 * (e / 16) + 16 * half + e % 16;
              } else {
                key = p.BK * b + 16 * k + 8 * (e / 4) + 4 * half + e % 4;
                depth = 32 * i + in;
              }
              const std::uint32_t value = expected_value(seq, head, first + key, depth, bytes);
              for (std::int64_t n = 0; n < bytes; ++n) {
                registers.push_back(static_cast<std::byte>(value >> (8 * n) & 0xFFU));
              }
            }
          }
        }
      }
    }
  }
  return registers;
}

// A stride or a table of another kind of memory would give other rows; the row after a ragged sequence's last token is
// the first of the next sequence and must not be copied.
TEST(KVBufferOperands, StageTheSameBytesAndRegistersFromEveryKindOfMemory) {
  for (const char* id : {"A K", "B V", "C K", "C V"}) {
    KVBufferParams p = named(id);
    p.kv_num_heads = kHeads;
    for (const char* kind : kKinds) {
      Rows rows(kind, p.dtype);
      for (const auto& [seq, head, first] :
           {std::array<std::int64_t, 3>{0, 0, 0}, {1, 1, 0}, {1, 0, 64}, {1, 1, 128}, {2, 1, 0}, {0, 1, 64}}) {
        SCOPED_TRACE(std::string(id) + ", " + kind + ", sequence " + std::to_string(seq) + ", token " +
                     std::to_string(first));
        const Dump dump = staged(p, rows.operand(), seq, head, first);
        ASSERT_EQ(dump.lds, expected_lds(p, seq, head, first));
        ASSERT_EQ(dump.registers, expected_registers(p, seq, head, first));
      }
    }
  }
}

TEST(KVBufferOperands, TakeACacheAsItsOperand) {
  Rows rows("paged", DType::bf16);
  const std::vector<std::uint32_t> table{0}, lengths{0};
  std::vector<std::byte> pool(64 * 128 * 2);
  const ContinuousBatchingKVCache cache({1, 128, false}, {.blocks = {pool.data(), DType::bf16, {1, 64, 1, 128}},
                                                          .cache_lengths = {lengths.data(), {1}},
                                                          .lookup_table = {table.data(), {1}}});
  const KVOperand operand = cache;
  EXPECT_EQ(operand.num_heads(), 1);
  EXPECT_EQ(operand.head_size(), 128);
  EXPECT_EQ(operand.tile(64, 64, SeqIdx{0}, TokIdx{0}, HeadIdx{0}, DimIdx{3}), pool.data() + 6);
  static_assert(!std::is_constructible_v<KVOperand, KVCacheScalesMHAOperand<PagedKVCache>>);
}

// The worked number of the header: row 82 of the ragged tensor, head 1.
TEST(KVBufferOperands, FindARaggedRowBehindTheOffsetsOfItsSequence) {
  std::vector<std::byte> pool(150 * 2 * 128 * 2);
  const std::vector<std::uint32_t> offsets{0, 50, 150};
  const KVOperand operand = RaggedMHAOperand({pool.data(), DType::bf16, {150, 2, 128}}, {offsets.data(), {3}});
  EXPECT_EQ(operand.tile(64, 64, SeqIdx{1}, TokIdx{32}, HeadIdx{1}, DimIdx{0}), pool.data() + 21120 * 2);
  EXPECT_EQ(message_of<IndexError>([&] { (void)operand.tile(64, 64, SeqIdx{0}, TokIdx{0}, HeadIdx{1}, DimIdx{0}); }),
            "RaggedMHAOperand: token 63 is outside [0, 50): rows of the sequence");
}

// The caller sets `end`: one past the sequence would stage the next sequence's first row.
TEST(KVBufferOperands, RejectAnEndPastTheSequenceWithoutPages) {
  KVBufferParams p = named("A K");
  p.kv_num_heads = kHeads;
  const KVBufferConfig config(p);
  SharedImage image(config.constants().region_bytes);
  PendingCopies pending(image, 4);
  const auto load = [&](const char* kind, std::int64_t end) {
    Rows rows(kind, p.dtype);
    KVBuffer buffer(config, rows.operand(), SeqIdx{0}, HeadIdx{0}, {&pending, 0}, TokIdx{end}, WaveIdx{0});
    buffer.load_from_dram<0>();
  };
  load("ragged", 37);
  EXPECT_EQ(message_of<IndexError>([&] { load("ragged", 38); }),
            "RaggedMHAOperand: token 37 is outside [0, 37): rows of the sequence");
  load("tensor", 64);  // S is 152 for each sequence
}

TEST(KVBufferOperands, RejectTensorsWhoseRowsAreNotPacked) {
  std::vector<std::byte> pool(2 * 64 * 3 * 128 * 2);
  const KVCacheWalk walk{.tile_size = 64, .kv_num_heads = 2, .depth = 128};
  // Two heads of three: a row is 384 elements from the next.
  const LayoutTensorMHAOperand part({pool.data(), DType::bf16, {2, 64, 2, 128}, {64 * 384, 384, 128, 1}});
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)KVCacheIterator(part, walk, TokIdx{64}, SeqIdx{0}, HeadIdx{0}); }),
      "KVCacheIterator rejected: k_cache: rows are 384 elements apart and columns 1, not the packed 256 and 1 that "
      "the copy assumes: copy the tensor into row-major order");
  const std::vector<std::uint32_t> offsets{0, 64};
  const RaggedMHAOperand ragged({pool.data(), DType::bf16, {64, 2, 64}, {256, 128, 2}}, {offsets.data(), {2}});
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)KVCacheIterator(ragged, walk, TokIdx{64}, SeqIdx{0}, HeadIdx{0}); }),
      "KVCacheIterator rejected, 3 faults:\n"
      "  cache_depth: 128 is not the head size of the tensor: use 64\n"
      "  depth: columns [0, 128) are not inside a head of 64\n"
      "  k_cache: rows are 256 elements apart and columns 2, not the packed 128 and 1 that the copy assumes: copy "
      "the tensor into row-major order");
  // A gap between sequences is legal, because a tile belongs to one sequence.
  const LayoutTensorMHAOperand apart({pool.data(), DType::bf16, {2, 64, 2, 128}, {64 * 384, 256, 128, 1}});
  EXPECT_EQ(KVCacheIterator(apart, walk, TokIdx{64}, SeqIdx{1}, HeadIdx{1}).tile().data,
            pool.data() + (64 * 384 + 128) * 2);
}

}  // namespace
}  // namespace kvscope::kv_operand_test

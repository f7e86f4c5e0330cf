// The addresses of a wgmma operand: worked examples of descriptors, element by element from 16-byte chunks, and every
// chunk of a grid of descriptors compared with the model (core/fragment), which shares no code with the machine.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "core/fragment/wgmma_descriptor.h"
#include "gpu/virtual/machine/matrix/matrix_operand.h"

namespace kvscope::ptx::wgmma_chunks_test {
namespace {

// The byte of bf16 element (mn, k), from the chunk that contains it.
std::uint64_t byte_of(std::uint64_t descriptor, bool mn_major, int mn, int k) {
  for (const WgmmaChunk& c : wgmma_chunks(descriptor, mn_major, 16, 0, 128, 16)) {
    const int along = mn_major ? mn - c.mn : k - c.k, across = mn_major ? k - c.k : mn - c.mn;
    if (across == 0 && along >= 0 && along < 8) return c.offset + 2 * static_cast<std::uint64_t>(along);
  }
  return ~std::uint64_t{0};
}

TEST(WgmmaChunks, ContainTheWorkedPoints) {
  EXPECT_EQ(byte_of(0x4000004000010040, false, 9, 5), 2202u);
  EXPECT_EQ(byte_of(0x4000004000010040, false, 63, 15), 9198u);
  EXPECT_EQ(byte_of(0x4000004000010042, false, 9, 5), 2234u);
  EXPECT_EQ(byte_of(0x4000004002000040, true, 70, 9), 10396u);
  EXPECT_EQ(byte_of(0x4000004002000040, true, 5, 15), 3066u);
  EXPECT_EQ(byte_of(0x4000004002000040, true, 64, 0), 9216u);
  EXPECT_EQ(byte_of(0x8000002000010040, false, 9, 5), 1610u);
  EXPECT_EQ(byte_of(0x8000002000010040, false, 13, 15), 1918u);
  EXPECT_EQ(byte_of(0xc000001000010040, false, 9, 5), 1322u);
  EXPECT_EQ(byte_of(0xc000001000010040, false, 15, 15), 1518u);
  EXPECT_EQ(byte_of(0x0000001000080040, false, 9, 5), 1306u);
  EXPECT_EQ(byte_of(0x0000001000080040, false, 15, 15), 1534u);
  EXPECT_EQ(byte_of(0x0000000800400040, true, 9, 5), 1234u);
  EXPECT_EQ(byte_of(0x0000000800400040, true, 15, 15), 2302u);
}

// All modes, both majors, all element sizes, starts inside a swizzled row and out of phase with the pattern, both
// operands' sizes. A 1-bit operand is treated as bytes of eight elements.
TEST(WgmmaChunks, AreWhereTheModelReadsTheOperand) {
  std::size_t descriptors = 0;
  for (int mode = 0; mode < 4; ++mode) {
    for (const std::int64_t start : {1024, 1056, 1152, 65536 + 16}) {
      for (const std::int64_t leading : {16, 128, 4096, 7 * 16}) {
        for (const std::int64_t stride : {128, 1024, 5 * 16}) {
          const WgmmaDescriptor d{start, leading, stride, 0, static_cast<SwizzleMode>(mode)};
          const std::uint64_t bits = encode(d);
          for (const int element_bits : {1, 8, 16, 32}) {
            const int ks = 256 / element_bits, per_chunk = 128 / element_bits;
            const int element_bytes = element_bits == 1 ? 1 : element_bits / 8;
            for (const bool mn_major : {false, true}) {
              if (mn_major && element_bits != 16) continue;
              const int mn_from = 16, mns = 48;
              std::size_t n = 0;
              const std::vector<WgmmaChunk> chunks = wgmma_chunks(bits, mn_major, element_bits, mn_from, mns, ks);
              for (int line = mn_major ? 0 : mn_from; line < (mn_major ? ks : mn_from + mns); ++line) {
                for (int i = mn_major ? mn_from : 0; i < (mn_major ? mn_from + mns : ks); i += per_chunk, ++n) {
                  const int mn = mn_major ? i : line, k = mn_major ? line : i;
                  const int model_k = element_bits == 1 ? k / 8 : k;
                  ASSERT_LT(n, chunks.size());
                  ASSERT_EQ(chunks[n].mn, mn);
                  ASSERT_EQ(chunks[n].k, k);
                  ASSERT_EQ(static_cast<std::int64_t>(chunks[n].offset),
                            wgmma_address(d, mn_major ? WgmmaMajor::mn : WgmmaMajor::k, element_bytes, mn, model_k))
                      << to_text(d) << ", " << element_bits << " bits, (" << mn << ", " << k << ")";
                }
              }
              ASSERT_EQ(n, chunks.size());
              ++descriptors;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(descriptors, 4U * 4 * 4 * 3 * 5);
}

template <class Read>
std::string said_by(const Read& read) {
  try {
    static_cast<void>(read());
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

// Every reserved bit, the base offset, and MN-major elements of other sizes: rejected with the model's message.
TEST(WgmmaChunks, AreRejectedWithTheMessagesOfTheModel) {
  const WgmmaDescriptor legal{1024, 16, 1024, 0, SwizzleMode::b128};
  const auto both = [](std::uint64_t bits, bool mn_major, int element_bits) {
    const std::string machine = said_by([&] { return wgmma_chunks(bits, mn_major, element_bits, 0, 8, 16); });
    EXPECT_EQ(machine, said_by([&] {
                return wgmma_address(decode_wgmma(bits), mn_major ? WgmmaMajor::mn : WgmmaMajor::k, element_bits / 8, 0,
                                     0);
              }));
    return machine;
  };
  int rejected = 0;
  for (int bit = 0; bit < 64; ++bit)
    rejected += both(encode(legal) ^ std::uint64_t{1} << bit, false, 16).empty() ? 0 : 1;
  EXPECT_EQ(rejected, 2 + 2 + 2 + 1 + 3 + 10);
  for (int mode = 0; mode < 4; ++mode) {
    for (int phase = 1; phase < 8; ++phase) {
      EXPECT_FALSE(both(encode({1024, 16, 1024, phase, static_cast<SwizzleMode>(mode)}), false, 16).empty());
    }
  }
  EXPECT_FALSE(both(encode(legal), true, 8).empty());
  EXPECT_FALSE(both(encode(legal), true, 32).empty());
}

}  // namespace
}  // namespace kvscope::ptx::wgmma_chunks_test

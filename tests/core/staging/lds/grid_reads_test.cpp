// Laws of reads, for each configuration that the rules accept: each element of a wave's tile is read once, into the
// register of the closed form; tiles in several slices or blocks are read completely.
//
// A read depends on the number of its wave but not on the number of threads, so each law runs once for each distinct
// read of the accepted configurations, with all its waves. Stage 1 is stage 0 moved by the size of a stage, address by
// address; grid_test.cpp tests the same for the layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/staging/lds/kv_buffer.h"
#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/lds_to_registers.h"
#include "core/staging/lds/register_map.h"
#include "core/staging/lds/transposing_read.h"
#include "tests/core/staging/lds/grid.h"
#include "tests/core/staging/lds/support.h"
#include "tests/property.h"
#include "tests/whole_grid.h"

namespace kvscope::grid_reads_test {
namespace {

using test::for_whole_grid;
using test::require;

// (key, column) of a tile in one number, so that tiles can be compared quickly.
constexpr std::int32_t kZero = -1, kUnwritten = -2;
std::int32_t place(std::int64_t key, std::int64_t depth) {
  return static_cast<std::int32_t>(key * 1024 + depth);
}

std::string swizzle_of(const KVBufferParams& p) {
  return p.swizzle ? p.swizzle->text() : "none";
}
auto layout_of(const KVBufferParams& p) {
  return std::tuple(p.dtype, *p.bk_smem, p.full_kv ? *p.smem_depth : *p.bk_smem, p.BN, swizzle_of(p));
}
auto text_of = [](const KVBufferParams& p) { return test::to_text(p); };

// The element at each place of stage 0: the layout's inverse, computed once for all reads of one layout.
class Image {
 public:
  const std::vector<std::int32_t>& of(const KVBufferConfig& config) {
    const auto key = layout_of(config.params());
    if (!places_.empty() && key == key_) return places_;
    key_ = key;
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(config);
    places_.resize(static_cast<std::size_t>(c.smem_stage_size));
    for (std::size_t x = 0; x < places_.size(); ++x) {
      const LdsPlace at = layout.place_of(static_cast<std::int64_t>(x) * c.element_bytes);
      places_[x] = place(at.key.value, at.depth.value);
    }
    return places_;
  }

 private:
  decltype(layout_of(KVBufferParams{})) key_;
  std::vector<std::int32_t> places_;
};

// The source lane and byte of each result byte, found by passing the numbers of the bytes through the exchange. [lane,
// byte] -> 8 * lane + byte
std::array<std::array<int, 8>, 64> exchange_of(LdsReadKind kind, Tr8Order order) {
  std::array<std::array<int, 8>, 64> from{};
  for (int digit = 0; digit < 2; ++digit) {
    LanePieces pieces;
    for (std::size_t lane = 0; lane < 64; ++lane) {
      for (std::size_t b = 0; b < 8; ++b) pieces[lane][b] = static_cast<std::byte>((8 * lane + b) >> (8 * digit));
    }
    pieces = kind == LdsReadKind::tr16 ? tr16_read(pieces) : tr8_read(pieces, order);
    for (std::size_t lane = 0; lane < 64; ++lane) {
      for (std::size_t b = 0; b < 8; ++b) from[lane][b] |= std::to_integer<int>(pieces[lane][b]) << (8 * digit);
    }
  }
  return from;
}

// The contents of a wave's registers after the reads, [lane][row, element], without the formulas of register_map.h.
class Registers {
 public:
  explicit Registers(const KVBufferConfig& config)
      : config_(config),
        slots_(static_cast<std::size_t>(config.constants().mma_rows * config.constants().mma_cols)),
        held_(64 * slots_, kUnwritten) {}

  // `first_column` of the tile is column 0 of the image.
  void take(const std::vector<LdsReadInstruction>& reads, const std::vector<std::int32_t>& image,
            std::int64_t first_column = 0) {
    const KVBufferConstants& c = config_.constants();
    const std::int64_t size = c.element_bytes;
    for (const LdsReadInstruction& read : reads) {
      const bool plain = read.kind == LdsReadKind::plain;
      const auto from = plain ? decltype(exchange_of(read.kind, Tr8Order::natural)){}
                              : exchange_of(read.kind, config_.params().tr8_order);
      for (std::size_t lane = 0; lane < 64; ++lane) {
        std::int64_t at = 0;
        for (const RegisterTarget& target : read.targets) {
          for (std::int64_t e = 0; e < target.count; ++e, at += size) {
            std::int32_t value = kZero;
            if (!read.zero) {
              const int source = plain ? 0 : from[lane][static_cast<std::size_t>(at)];
              require(plain || size == 1 || from[lane][static_cast<std::size_t>(at + 1)] == source + 1,
                      "an element is torn apart");
              const std::int64_t byte =
                  plain ? read.addresses[lane] + at : read.addresses[static_cast<std::size_t>(source / 8)] + source % 8;
              require(byte >= 0 && byte % size == 0 && byte / size < std::ssize(image), "an address leaves the stage");
              value = image[static_cast<std::size_t>(byte / size)] + static_cast<std::int32_t>(first_column);
            }
            std::int32_t& slot =
                held_.at(lane * slots_ + static_cast<std::size_t>(target.row * c.mma_cols + target.element + e));
            require(slot == kUnwritten, "a register is written twice");
            slot = value;
          }
        }
        require(at == read.width, "a lane holds another number of bytes than it read");
      }
    }
  }
  [[nodiscard]] std::int32_t held(std::size_t lane, std::int64_t slot) const {
    return held_[lane * slots_ + static_cast<std::size_t>(slot)];
  }

 private:
  const KVBufferConfig& config_;
  std::size_t slots_;
  std::vector<std::int32_t> held_;
};

// Which elements of [keys, columns] have been seen.
class Seen {
 public:
  Seen(std::int64_t keys, std::int64_t columns) : columns_(columns), taken_(static_cast<std::size_t>(keys * columns)) {}
  void insert(std::int32_t at) {
    char& mine = taken_.at(static_cast<std::size_t>(at / 1024 * columns_ + at % 1024));
    require(mine == 0, "an element is read twice");
    mine = 1;
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::int64_t columns_;
  std::vector<char> taken_;
  std::int64_t count_ = 0;
};

// Every register against the closed form; the elements go into `seen`.
void compare(const KVBufferConfig& config, WaveIdx wave, const Registers& registers, Seen& seen) {
  const KVBufferConstants& c = config.constants();
  for (std::int64_t b = 0; b < c.num_k_tiles; ++b) {
    for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
      for (std::int64_t i = 0; i < c.num_mmas; ++i) {
        const std::int64_t row = (b * c.num_k_mmas2 + k) * c.num_mmas + i;
        for (int lane = 0; lane < 64; ++lane) {
          for (std::int64_t e = 0; e < c.input_frag_size; ++e) {
            const std::int32_t held = registers.held(static_cast<std::size_t>(lane), row * c.mma_cols + e);
            require(held != kUnwritten, "a register is not written");
            const auto said = register_element(config, wave, {StripIdx{b}, k, i, lane, e});
            require(held == (said ? place(said->key.value, said->depth.value) : kZero),
                    "the closed form says another element");
            if (said) seen.insert(held);
          }
        }
      }
    }
  }
}

std::vector<KVBufferParams> reads_of(bool full_kv) {
  auto kinds = test::one_of_each([](const KVBufferParams& p) {
    return std::tuple(layout_of(p), p.mma_shape.M, p.mma_shape.K, p.transpose, p.BK, p.WN, p.depth, p.full_kv);
  });
  std::erase_if(kinds, [&](const KVBufferParams& p) { return p.full_kv != full_kv; });
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return layout_of(a) < layout_of(b); });
  return kinds;
}

std::vector<Tr8Order> orders_of(const KVBufferParams& p) {
  if (p.transpose || p.dtype != DType::e4m3) return {Tr8Order::natural};
  return {Tr8Order::natural, Tr8Order::interleaved};
}

// Each wave's tile is read once, into the registers of the closed form; the tiles of the waves together are the whole
// tile, and waves with the same tile use the same addresses.
TEST(EveryConfiguration, ReadsEveryElementOnceAndWhereTheClosedFormSays) {
  const auto reads = reads_of(true);
  EXPECT_EQ(reads.size(), 10553U);
  Image image;
  for_whole_grid(
      "reads", reads, 41,
      [&](KVBufferParams p) {
        for (const Tr8Order order : orders_of(p)) {
          p.tr8_order = order;
          const KVBufferConfig config(p);
          const KVBufferConstants& c = config.constants();
          const std::int64_t tiles = p.transpose ? c.BN / c.WN : 1;
          std::vector<std::vector<LdsReadInstruction>> of_tile;
          Seen seen(p.transpose ? c.BN : c.WN, c.depth);
          for (std::int64_t w = 0; w < c.waves; ++w) {
            auto mine = all_reads(config, WaveIdx{w}, StageIdx{0});
            if (w >= tiles) {
              const auto& twin = of_tile[static_cast<std::size_t>(w % tiles)];
              for (std::size_t n = 0; n < mine.size(); ++n) {
                require(mine[n].addresses == twin[n].addresses && mine[n].targets == twin[n].targets,
                        "two waves of one tile differ");
              }
              continue;
            }
            Registers registers(config);
            registers.take(mine, image.of(config));
            const std::int64_t before = seen.count();
            compare(config, WaveIdx{w}, registers, seen);
            require(seen.count() - before == c.WN * c.depth, "an element of the wave's tile is missing");
            const auto next = all_reads(config, WaveIdx{w}, StageIdx{1});
            require(next.size() == mine.size(), "another number of reads in stage 1");
            for (std::size_t n = 0; n < mine.size(); ++n) {
              for (std::size_t lane = 0; lane < 64; ++lane) {
                const std::int64_t moved = mine[n].zero ? 0 : c.stage_bytes;
                require(next[n].addresses[lane] == mine[n].addresses[lane] + moved, "stage 1 is read elsewhere");
              }
            }
            of_tile.push_back(std::move(mine));
          }
        }
      },
      text_of);
}

// A stage of one block at a time: after the last one the registers are those of the whole head.
TEST(EveryConfiguration, OfOneBlockStagesReadsEveryElementOnceToo) {
  const auto reads = reads_of(false);
  EXPECT_EQ(reads.size(), 8698U);
  Image image;
  for_whole_grid(
      "reads of blocks", reads, 41,
      [&](KVBufferParams p) {
        for (const Tr8Order order : orders_of(p)) {
          p.tr8_order = order;
          const KVBufferConfig config(p);
          const KVBufferConstants& c = config.constants();
          const std::int64_t tiles = p.transpose ? c.BN / c.WN : 1;
          Seen seen(p.transpose ? c.BN : c.WN, c.depth);
          for (std::int64_t w = 0; w < std::min(tiles, c.waves); ++w) {
            Registers registers(config);
            for (std::int64_t b = 0; b < c.depth_blocks; ++b) {
              registers.take(block_reads(config, WaveIdx{w}, StageIdx{0}, b), image.of(config), b * c.BK);
            }
            compare(config, WaveIdx{w}, registers, seen);
          }
          require(seen.count() == std::min(tiles, c.waves) * c.WN * c.depth, "an element is missing");
        }
      },
      text_of);
}

// Slices of V, one per wave, over the image of the whole: their columns partition it, swizzled or not.
TEST(EveryConfiguration, OfPerWaveVPartitionsItsColumns) {
  std::vector<std::pair<KVBufferParams, KVBufferParams>> slices;  // of V, V
  for (const KVBufferParams& whole : reads_of(true)) {
    if (whole.transpose || whole.WN != whole.BN || *whole.smem_depth != test::whole(whole.depth, *whole.bk_smem)) {
      continue;
    }
    for (const std::int64_t count : {2, 3, 4, 6, 8}) {  // BN / WN of K
      KVBufferParams slice = whole;
      slice.depth_slices = count;
      slice.depth = whole.depth / count;
      slice.cache_depth = whole.depth;
      slice.smem_depth = std::max(slice.depth, *slice.bk_smem);
      if (whole.depth % count == 0 && check(slice).refusals.empty()) slices.emplace_back(slice, whole);
    }
  }
  EXPECT_EQ(slices.size(), 1926U);
  Image image;
  for_whole_grid(
      "slices of V", slices, 41,
      [&](std::pair<KVBufferParams, KVBufferParams> point) {
        auto& [slice, whole] = point;
        for (const Tr8Order order : orders_of(slice)) {
          slice.tr8_order = order;
          const KVBufferConfig config(slice);
          const auto& places = image.of(KVBufferConfig(whole));
          Seen seen(slice.BN, whole.depth);
          for (std::int64_t w = 0; w < slice.depth_slices; ++w) {
            Registers registers(config);
            registers.take(all_reads(config, WaveIdx{w}, StageIdx{0}), places);
            const std::int64_t before = seen.count();
            compare(config, WaveIdx{w}, registers, seen);  // the closed form's columns are w's
            require(seen.count() - before == slice.BN * slice.depth, "an element of the slice is missing");
          }
          require(seen.count() == slice.BN * whole.depth, "an element of V is in no slice");
        }
      },
      [](const auto& point) { return test::to_text(point.first); });
}

// Random configurations through KVBuffer: loading block by block gives the same register bytes as a stage that holds
// the whole head.
TEST(SomeConfigurations, OfOneBlockStagesArriveAtTheWholeHeadsRegisters) {
  EXPECT_TRUE(prop::check([] {
    KVBufferParams p;
    KVBufferParams whole;
    do {
      p = test::drawn();
      whole = p;
      whole.full_kv = true;
    } while (p.full_kv || !check(whole).refusals.empty());
    RC_LOG(test::to_text(p));
    p.kv_num_heads = whole.kv_num_heads = 2;
    const std::int64_t end = prop::uniform<std::int64_t>(1, p.BN + 1);
    const test::TokenCache tokens = test::cache_for(p, [](std::int64_t t, std::int64_t h, std::int64_t d) {
      return static_cast<std::uint32_t>(t * 577 + h * 5003 + d * 3);
    });
    test::Block blocks(p, tokens, end, 1), full(whole, tokens, end, 1);
    full.load(1);
    const std::vector<std::byte> expected = full.registers(1);
    for (std::int64_t b = 0; b < blocks.config().constants().depth_blocks; ++b) {
      blocks.load_block(b % 2, b);
      for (std::size_t w = 0; w < blocks.waves(); ++w) blocks.wave(w).load_block_from_shared(StageIdx{b % 2}, b);
    }
    std::size_t at = 0;
    for (std::size_t w = 0; w < blocks.waves(); ++w) {
      const auto registers = blocks.wave(w).register_bytes();
      RC_ASSERT(std::equal(registers.begin(), registers.end(), expected.begin() + static_cast<std::ptrdiff_t>(at)));
      at += registers.size();
    }
    RC_ASSERT(blocks.pending().races().empty());
  }));
}

}  // namespace
}  // namespace kvscope::grid_reads_test

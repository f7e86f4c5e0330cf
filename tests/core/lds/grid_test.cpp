// Laws that hold for every configuration the rules accept, over drawn ones: copies are complete, addresses are a bijection,
// reads bring each element once, and what the transposing reads deliver is what the closed form says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/lds/dram_to_lds.h"
#include "core/lds/kv_buffer.h"
#include "core/lds/lds_layout.h"
#include "core/lds/lds_to_registers.h"
#include "core/lds/register_map.h"
#include "core/lds/transposing_read.h"
#include "tests/core/lds/grid.h"
#include "tests/core/lds/support.h"
#include "tests/property.h"

namespace kvscope {
namespace {

using test::accepted_params;

using Place = std::pair<std::int64_t, std::int64_t>;  // key, depth

// Properties 1 and 6.
TEST(EveryConfiguration, CopiesATileOnceAndZeroesItsTail) {
  EXPECT_TRUE(prop::check([] {
    const KVBufferParams p = accepted_params();
    RC_LOG(test::to_text(p));
    const KVBufferConfig config(p);
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(config);
    const StageIdx stage{prop::uniform<std::int64_t>(0, 2)};
    const std::int64_t valid = prop::uniform<std::int64_t>(0, c.BN + 1);
    const DramTile tile{.valid_rows = valid, .row_stride = p.kv_num_heads * c.cache_depth, .depth = c.depth};
    std::vector<int> written(static_cast<std::size_t>(c.region_bytes / 16));
    std::set<Place> brought;
    std::int64_t zeros = 0;
    for (std::int64_t w = 0; w < c.waves; ++w) {
      const auto copies = copy_instructions(config, WaveIdx{w}, stage, tile);
      RC_ASSERT(static_cast<std::int64_t>(copies.size()) == copies_per_load(config, WaveIdx{w}));
      for (const CopyInstruction& copy : copies) {
        for (std::size_t lane = 0; lane < 64; ++lane) {
          const CopyVector& v = copy.lanes[lane];
          RC_ASSERT(v.lds_byte == copy.lanes[0].lds_byte + 16 * static_cast<std::int64_t>(lane));
          ++written.at(static_cast<std::size_t>(v.lds_byte / 16));
          RC_ASSERT(brought.emplace(v.key.value, v.depth.value).second);
          RC_ASSERT(v.lds_byte == layout.byte(stage, v.key, v.depth));
          RC_ASSERT(v.dram_byte == (v.key.value * p.kv_num_heads * c.depth + v.depth.value) * c.element_bytes);
          zeros += v.zero ? 1 : 0;
          if (v.depth.value < c.depth) RC_ASSERT(v.zero == (v.key.value >= valid));
        }
      }
    }
    for (std::size_t vector = 0; vector < written.size(); ++vector) {
      const bool inside = static_cast<std::int64_t>(vector) / (c.stage_bytes / 16) == stage.value;
      RC_ASSERT(written[vector] == (inside ? 1 : 0));
    }
    RC_ASSERT(static_cast<std::int64_t>(brought.size()) == c.BN * c.smem_cols / c.simd_width);
    RC_ASSERT(brought.rbegin()->first == c.BN - 1);
    if (c.smem_cols <= c.depth) RC_ASSERT(zeros == (c.BN - valid) * c.smem_cols / c.simd_width);
  }));
}

// Property 2.
TEST(EveryConfiguration, PutsEveryElementOfTheRegionInAPlaceOfItsOwn) {
  EXPECT_TRUE(prop::check([] {
    const KVBufferParams p = accepted_params();
    RC_LOG(test::to_text(p));
    const KVBufferConfig config(p);
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(config);
    std::vector<bool> taken(static_cast<std::size_t>(c.region_bytes / c.element_bytes));
    for (std::int64_t s = 0; s < c.num_smem_stages; ++s) {
      for (std::int64_t key = 0; key < c.BN; ++key) {
        for (std::int64_t d = 0; d < c.smem_cols; d += 3) {  // 3 does not divide a vector: every place inside one
          const LdsPlace place{StageIdx{s}, KeyIdx{key}, DimIdx{d}};
          const std::int64_t at = layout.physical(place.stage, place.key, place.depth);
          RC_ASSERT(!taken.at(static_cast<std::size_t>(at)));
          taken[static_cast<std::size_t>(at)] = true;
          RC_ASSERT(layout.place_of(at * c.element_bytes) == place);
        }
      }
    }
  }));
}

// The kernels take the XOR inside a sub-tile: 32 rows where it is written, M where it is read. Both are the layout's.
TEST(EveryConfiguration, SwizzlesInsideASubTileAsInsideTheRegion) {
  EXPECT_TRUE(prop::check([] {
    const KVBufferParams p = accepted_params();
    RC_LOG(test::to_text(p));
    const KVBufferConfig config(p);
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(config);
    const std::int64_t vectors = c.row_bytes() / 16;
    for (std::int64_t key = 0; key < c.BN; ++key) {
      for (std::int64_t d = 0; d < c.smem_cols; d += c.simd_width) {
        for (const std::int64_t rows : {std::int64_t{32}, c.MMA_M}) {
          const std::int64_t base = (c.BN * (d / c.bk_smem) + key / rows * rows) * vectors;
          const std::int64_t inside = key % rows * vectors + d % c.bk_smem / c.simd_width;
          const std::int64_t swizzled = p.swizzle ? (*p.swizzle)(inside) : inside;
          RC_ASSERT(layout.byte(StageIdx{0}, KeyIdx{key}, DimIdx{d}) == (base + swizzled) * 16);
        }
      }
    }
  }));
}

// RC_ASSERT makes texts of what it checks: too slow for every byte of a tile.
void require(bool holds, const char* what) {
  if (!holds) RC_FAIL(what);
}

// Which byte of LDS each byte of the lanes' results comes from: the addresses themselves are sent through the exchange, 8
// bits at a time. [lane, byte]
std::vector<std::vector<std::int64_t>> sources_of(const LdsReadInstruction& read, Tr8Order order) {
  std::vector<std::vector<std::int64_t>> sources(64, std::vector<std::int64_t>(static_cast<std::size_t>(read.width)));
  if (read.kind == LdsReadKind::plain) {
    for (std::size_t lane = 0; lane < 64; ++lane) {
      std::iota(sources[lane].begin(), sources[lane].end(), read.addresses[lane]);
    }
    return sources;
  }
  for (int digit = 0; digit < 3; ++digit) {
    LanePieces pieces;
    for (std::size_t lane = 0; lane < 64; ++lane) {
      for (std::size_t b = 0; b < 8; ++b) {
        pieces[lane][b] = static_cast<std::byte>((read.addresses[lane] + static_cast<std::int64_t>(b)) >> (8 * digit));
      }
    }
    pieces = read.kind == LdsReadKind::tr16 ? tr16_read(pieces) : tr8_read(pieces, order);
    for (std::size_t lane = 0; lane < 64; ++lane) {
      for (std::size_t b = 0; b < 8; ++b) {
        sources[lane][b] |= static_cast<std::int64_t>(pieces[lane][b]) << (8 * digit);
      }
    }
  }
  return sources;
}

// Everything a wave's registers hold after the reads, [lane][row, element]; no formula of the registers is used.
// (-1, -1): zero; (-2, -2): never written.
std::vector<std::vector<Place>> read_out(const KVBufferConfig& config, const std::vector<LdsReadInstruction>& reads,
                                         const LdsLayout& image_layout) {
  const KVBufferConstants& c = config.constants();
  std::vector<std::vector<Place>> held(64,
                                       std::vector<Place>(static_cast<std::size_t>(c.mma_rows * c.mma_cols), {-2, -2}));
  const auto size = static_cast<std::size_t>(c.element_bytes);
  for (const LdsReadInstruction& read : reads) {
    const auto sources = sources_of(read, config.params().tr8_order);
    for (std::size_t lane = 0; lane < 64; ++lane) {
      std::size_t at = 0;
      for (const RegisterTarget& target : read.targets) {
        for (std::int64_t e = 0; e < target.count; ++e, at += size) {
          Place place{-1, -1};
          if (!read.zero) {
            const LdsPlace found = image_layout.place_of(sources[lane][at]);
            place = {found.key.value, found.depth.value};
            require(size == 1 || sources[lane][at + 1] == sources[lane][at] + 1, "an element is torn apart");
          }
          Place& slot = held[lane].at(static_cast<std::size_t>(target.row * c.mma_cols + target.element + e));
          require(slot == Place(-2, -2), "a register is written twice");
          slot = place;
        }
      }
    }
  }
  return held;
}

// Which elements of [BN, columns] have been seen.
class Seen {
 public:
  Seen(std::int64_t keys, std::int64_t columns)
      : columns_(columns), taken_(static_cast<std::size_t>(keys * columns), false) {}
  // False: it was seen before.
  bool insert(Place place) {
    const auto at = static_cast<std::size_t>(place.first * columns_ + place.second);
    if (taken_.at(at)) return false;
    taken_[at] = true;
    ++count_;
    return true;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::int64_t columns_;
  std::vector<bool> taken_;
  std::int64_t count_ = 0;
};

// Properties 3, 4 and 5, for buffers whose stages hold the whole head.
TEST(EveryConfiguration, ReadsEveryElementOnceAndWhereTheClosedFormSays) {
  EXPECT_TRUE(prop::check([] {
    KVBufferParams p = accepted_params();
    while (!p.full_kv) p = accepted_params();
    if (!p.transpose && p.dtype == DType::e4m3) p.tr8_order = prop::one_of(Tr8Order::natural, Tr8Order::interleaved);
    RC_LOG(test::to_text(p));
    const KVBufferConfig config(p);
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(config);
    const WaveIdx wave{prop::uniform<std::int64_t>(0, c.waves)};
    const StageIdx stage{prop::uniform<std::int64_t>(0, 2)};
    const auto reads = all_reads(config, wave, stage);
    const std::int64_t first_key = p.transpose ? wave.value % (c.BN / c.WN) * c.WN : 0;
    Seen seen(c.BN, c.depth);
    const auto registers = read_out(config, reads, layout);
    for (int lane = 0; lane < 64; ++lane) {
      const auto& held = registers[static_cast<std::size_t>(lane)];
      for (std::int64_t b = 0; b < c.num_k_tiles; ++b) {
        for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
          for (std::int64_t i = 0; i < c.num_mmas; ++i) {
            for (std::int64_t e = 0; e < c.input_frag_size; ++e) {
              const std::int64_t row = (b * c.num_k_mmas2 + k) * c.num_mmas + i;
              const Place place = held.at(static_cast<std::size_t>(row * c.mma_cols + e));
              require(place.first != -2, "a register is not written");
              const auto said = register_element(config, wave, {StripIdx{b}, k, i, lane, e});
              require(said.has_value() == (place.first >= 0), "zero registers differ");
              if (!said) continue;
              require(*said == TileElement{KeyIdx{place.first}, DimIdx{place.second}},
                      "the closed form says another element");
              require(place.first >= first_key && place.first < first_key + c.WN && place.second < c.depth,
                      "outside the wave tile");
              require(seen.insert(place), "an element is read twice");
            }
          }
        }
      }
    }
    RC_ASSERT(seen.count() == c.WN * c.depth);
    // Waves that share a wave tile share everything.
    const WaveIdx twin{(wave.value + c.BN / c.WN) % c.waves};
    if (p.transpose && twin.value % (c.BN / c.WN) == wave.value % (c.BN / c.WN)) {
      const auto other = all_reads(config, twin, stage);
      for (std::size_t n = 0; n < reads.size(); ++n) RC_ASSERT(other[n].addresses == reads[n].addresses);
    }
  }));
}

// The second half of property 4: the slices of all waves partition the whole V, swizzled or not.
TEST(EveryConfiguration, OfPerWaveVPartitionsItsColumns) {
  EXPECT_TRUE(prop::check([] {
    KVBufferParams whole;
    KVBufferParams slice;
    do {
      whole = test::draw_params();
      whole.transpose = false;
      whole.full_kv = true;
      whole.WN = whole.BN;
      whole.smem_depth.reset();
      slice = whole;
      slice.depth_slices = prop::one_of<std::int64_t>(2, 4);
      slice.depth = whole.depth / slice.depth_slices;
      slice.cache_depth = whole.depth;
      slice.smem_depth = std::max(slice.depth, slice.bk_smem.value_or(slice.BK));
    } while (whole.depth % slice.depth_slices != 0 || !check(whole).refusals.empty() || !check(slice).refusals.empty());
    RC_LOG(test::to_text(slice));
    const KVBufferConfig whole_config(whole), config(slice);
    const KVBufferConstants& c = config.constants();
    const LdsLayout layout(whole_config);
    Seen seen(c.BN, whole.depth);
    for (std::int64_t w = 0; w < slice.depth_slices; ++w) {
      const auto reads = all_reads(config, WaveIdx{w}, StageIdx{0});
      const auto registers = read_out(config, reads, layout);
      for (int lane = 0; lane < 64; ++lane) {
        const auto& held = registers[static_cast<std::size_t>(lane)];
        for (const Place& place : held) {
          require(place.second / c.depth == w, "outside the slice");
          require(seen.insert(place), "an element is read twice");
        }
        const auto said = register_element(config, WaveIdx{w}, {StripIdx{0}, 0, 0, lane, 1});
        const Place first = held.at(1);
        RC_ASSERT(*said == (TileElement{KeyIdx{first.first}, DimIdx{first.second}}));
      }
    }
    RC_ASSERT(seen.count() == c.BN * whole.depth);
  }));
}

// A stage of one block, walked: the registers are those of a stage that holds the whole head.
TEST(EveryConfiguration, OfOneBlockStagesArrivesAtTheWholeHeadsRegisters) {
  EXPECT_TRUE(prop::check([] {
    KVBufferParams p;
    KVBufferParams whole;
    do {
      p = test::draw_params();
      p.full_kv = false;
      p.smem_depth.reset();
      whole = p;
      whole.full_kv = true;
      const std::int64_t width = p.bk_smem.value_or(p.BK);
      whole.smem_depth = (p.depth + width - 1) / width * width;
    } while (!check(p).refusals.empty() || !check(whole).refusals.empty());
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
}  // namespace kvscope

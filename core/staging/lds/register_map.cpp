#include "core/staging/lds/register_map.h"

#include "core/base/errors.h"
#include "core/staging/lds/transposing_read.h"

namespace kvscope {

namespace {

std::optional<TileElement> k_element(const KVBufferConfig& config, WaveIdx wave, const RegisterSlot& slot) {
  const KVBufferConstants& c = config.constants();
  const std::int64_t kb = wave.value % (c.BN / c.WN) * c.WN;
  const std::int64_t row = slot.lane % c.MMA_M, group = slot.lane / c.MMA_M;
  const KeyIdx key{kb + slot.i * c.MMA_M + row};
  if (config.params().k_group == 2) {
    const std::int64_t pair = slot.k / 2, half = slot.k % 2;
    return TileElement{key, DimIdx{slot.strip.value * c.BK + 16 * pair + 8 * group + 4 * half + slot.e}};
  }
  const std::int64_t packs = c.input_frag_size / c.simd_width;
  const std::int64_t pack = slot.e / c.simd_width;
  const std::int64_t depth = slot.strip.value * c.BK + slot.k * c.MMA_K + pack * (c.MMA_K / packs) +
                             group * c.simd_width + slot.e % c.simd_width;
  if (depth >= c.depth) return std::nullopt;
  return TileElement{key, DimIdx{depth}};
}

std::int64_t v_key(const KVBufferConfig& config, const RegisterSlot& slot) {
  const KVBufferConstants& c = config.constants();
  const std::int64_t group = slot.lane / c.MMA_M, e = slot.e;
  const std::int64_t strip = slot.strip.value * c.BK;
  if (c.element_bytes == 1) return c.MMA_M == 32 ? strip + 8 * (e / 4) + 4 * group + e % 4 : 32 * group + e;
  const std::int64_t step = strip + c.MMA_K * slot.k;
  if (c.MMA_M == 16) return step + 16 * (e / 4) + 4 * group + e % 4;
  return step + 8 * (e / 4) + 4 * group + e % 4;  // of 32x32x8, e / 4 is 0
}

}  // namespace

std::int64_t register_row(const KVBufferConstants& c, StripIdx strip, std::int64_t k, std::int64_t i) {
  return strip.value % c.register_strips * c.num_mmas * c.num_k_mmas2 + k * c.num_mmas + i;
}

std::optional<TileElement> register_element(const KVBufferConfig& config, WaveIdx wave, const RegisterSlot& slot) {
  const KVBufferConstants& c = config.constants();
  check_index("wave", wave.value, c.waves, "num_threads / 64 of the buffer");
  check_index("strip", slot.strip.value, c.num_k_tiles, "num_k_tiles of the buffer");
  check_index("MMA_K step", slot.k, c.num_k_mmas2, "num_k_mmas2 of a strip");
  check_index("MMA", slot.i, c.num_mmas, "num_mmas of the buffer");
  check_index("lane", slot.lane, kWaveLanes, "lanes of a wave");
  check_index("fragment element", slot.e, c.input_frag_size, "input_frag_size of a lane");
  if (config.params().transpose) return k_element(config, wave, slot);
  const std::int64_t c0 = wave.value % config.params().depth_slices * c.depth;
  // Of each 16 columns a tr8 read gives its lanes one each, in one of two orders.
  const int in_group = slot.lane % 16;
  const int column = c.element_bytes == 1 ? tr8_column(in_group, config.params().tr8_order) : in_group;
  const std::int64_t depth = c0 + c.MMA_M * slot.i + slot.lane % c.MMA_M / 16 * 16 + column;
  return TileElement{KeyIdx{v_key(config, slot)}, DimIdx{depth}};
}

}  // namespace kvscope

#include "core/staging/lds/lds_to_registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/lds_swizzle.h"
#include "core/staging/lds/register_map.h"

namespace kvscope {

namespace {

// The place of a strip: as in the config, or alone in its stage (full_kv false).
struct Source {
  const KVBufferConfig& config;
  WaveIdx wave;
  StageIdx stage;
  std::int64_t first_column = 0;  // of the tile: column 0 of the stage

  [[nodiscard]] const KVBufferConstants& c() const { return config.constants(); }
};

// --- K ---------------------------------------------------------------------------------------------------------------

LdsReadInstruction k_read(const Source& from, StripIdx strip, std::int64_t step, std::int64_t i, std::int64_t pack) {
  const KVBufferConstants& c = from.c();
  const std::int64_t packs = c.input_frag_size > c.simd_width ? 2 : 1;
  const bool pairs = from.config.params().k_group == 2;
  const std::int64_t step_depth = pairs ? 2 * c.MMA_K : c.MMA_K;
  const std::int64_t first = strip.value * c.BK + step * step_depth + pack * (c.MMA_K / packs);

  LdsReadInstruction read{.kind = LdsReadKind::plain,
                          .width = kLdsVectorBytes,
                          .strip = strip,
                          .k = pairs ? 2 * step : step,
                          .i = i,
                          .part = pack,
                          .zero = first >= c.depth,  // the second pack of a strip that is cut in half
                          .addresses = {},
                          .targets = {}};
  if (pairs) {
    read.targets = {{register_row(c, strip, 2 * step, i), 0, 4}, {register_row(c, strip, 2 * step + 1, i), 0, 4}};
  } else {
    read.targets = {{register_row(c, strip, step, i), pack * c.simd_width, c.simd_width}};
  }
  if (read.zero) return read;

  const LdsLayout layout(from.config);
  const std::int64_t kb = from.wave.value % (c.BN / c.WN) * c.WN;
  for (std::int64_t lane = 0; lane < kWaveLanes; ++lane) {
    const KeyIdx key{kb + i * c.MMA_M + lane % c.MMA_M};
    const DimIdx depth{first + lane / c.MMA_M * c.simd_width - from.first_column};
    read.addresses[static_cast<std::size_t>(lane)] = layout.byte(from.stage, key, depth);
  }
  return read;
}

void add_k_strip(const Source& from, StripIdx strip, std::vector<LdsReadInstruction>& reads) {
  const KVBufferConstants& c = from.c();
  const std::int64_t packs = c.input_frag_size > c.simd_width ? 2 : 1;
  for (std::int64_t step = 0; step < c.num_k_mmas2 / from.config.params().k_group; ++step) {
    for (std::int64_t i = 0; i < c.num_mmas; ++i) {
      for (std::int64_t pack = 0; pack < packs; ++pack) reads.push_back(k_read(from, strip, step, i, pack));
    }
  }
}

// --- V ---------------------------------------------------------------------------------------------------------------

// The address of 8 bytes, from their place in the stage before the swizzle. A wave's slice begins at its first column,
// and the reader's XOR is computed relative to that.
std::int64_t v_address(const Source& from, std::int64_t element) {
  const KVBufferConstants& c = from.c();
  const std::int64_t base =
      from.stage.value * c.stage_bytes + LdsLayout(from.config).slice_offset(from.wave) * c.element_bytes;
  return base + swizzled_byte(from.config.params().swizzle, element * c.element_bytes);
}

// One half of a 16-bit fragment; of 32x32x8 `step` counts pairs of MMA steps, 16 keys.
LdsReadInstruction v16_read(const Source& from, StripIdx strip, std::int64_t step, std::int64_t i, std::int64_t half) {
  const KVBufferConstants& c = from.c();
  const bool pairs = from.config.params().k_group == 2;
  LdsReadInstruction read{
      .kind = LdsReadKind::tr16,
      .width = 8,
      .strip = strip,
      .k = pairs ? 2 * step + half : step,
      .i = i,
      .part = half,
      .zero = false,
      .addresses = {},
      .targets = {{register_row(c, strip, pairs ? 2 * step + half : step, i), pairs ? 0 : 4 * half, 4}}};
  const std::int64_t column_of_stage = i - from.first_column / c.MMA_M;
  const std::int64_t sub_tile = LdsLayout(from.config).v_sub_tile(strip, pairs ? 2 * step : step, column_of_stage);
  for (std::int64_t l = 0; l < kWaveLanes; ++l) {
    const bool wide = c.MMA_M == 32;
    const std::int64_t row = (wide ? 8 * half + 4 * (l / 32) : 16 * half + 4 * (l / 16)) + l % 16 / 4;
    const std::int64_t column = (wide ? 16 * (l / 16 % 2) : 0) + 4 * (l % 4);
    read.addresses[static_cast<std::size_t>(l)] = v_address(from, sub_tile + row * c.bk_smem + column);
  }
  return read;
}

// One quarter of an 8-bit fragment.
LdsReadInstruction v8_read(const Source& from, StripIdx strip, std::int64_t i, std::int64_t q) {
  const KVBufferConstants& c = from.c();
  LdsReadInstruction read{.kind = LdsReadKind::tr8,
                          .width = 8,
                          .strip = strip,
                          .k = 0,
                          .i = i,
                          .part = q,
                          .zero = false,
                          .addresses = {},
                          .targets = {{register_row(c, strip, 0, i), 8 * q, 8}}};
  for (std::int64_t l = 0; l < kWaveLanes; ++l) {
    const std::int64_t p = l % 16 / 2, o = l % 2;
    const bool wide = c.MMA_M == 32;
    const std::int64_t key =
        wide ? 64 * strip.value + 16 * q + p % 4 + 8 * (p / 4) + 4 * (l / 32) : 32 * (l / 16) + 8 * q + p;
    const std::int64_t column = (wide ? 32 * i + 16 * (l / 16 % 2) : 16 * i) + 8 * o - from.first_column;
    const std::int64_t element = (column / c.bk_smem * c.BN + key) * c.bk_smem + column % c.bk_smem;
    read.addresses[static_cast<std::size_t>(l)] = v_address(from, element);
  }
  return read;
}

// MMA columns [first_i, last_i) of one strip.
void add_v_strip(const Source& from, StripIdx strip, std::int64_t first_i, std::int64_t last_i,
                 std::vector<LdsReadInstruction>& reads) {
  const KVBufferConstants& c = from.c();
  if (c.element_bytes == 1) {
    for (std::int64_t i = first_i; i < last_i; ++i) {
      for (std::int64_t q = 0; q < 4; ++q) reads.push_back(v8_read(from, strip, i, q));
    }
    return;
  }
  for (std::int64_t step = 0; step < c.num_k_mmas2 / from.config.params().k_group; ++step) {
    for (std::int64_t i = first_i; i < last_i; ++i) {
      for (std::int64_t half = 0; half < 2; ++half) reads.push_back(v16_read(from, strip, step, i, half));
    }
  }
}

// --- checks ----------------------------------------------------------------------------------------------------------

void check_place(const KVBufferConfig& config, WaveIdx wave, StageIdx stage) {
  const KVBufferConstants& c = config.constants();
  check_index("wave", wave.value, c.waves, "num_threads / 64 of the buffer");
  check_index("LDS stage", stage.value, c.num_smem_stages, "num_smem_stages of the buffer");
  if (config.params().depth_slices > 1 && stage.value != 0) {
    throw GeometryError(
        fmt::format("KVBuffer (V) of one wave: stage {} is not V's stage {}, because a slice counts its "
                    "own blocks: read stage 0",
                    stage.value, stage.value));
  }
}

}  // namespace

std::vector<LdsReadInstruction> strip_reads(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                            StripIdx strip) {
  const KVBufferConstants& c = config.constants();
  check_place(config, wave, stage);
  check_index("strip", strip.value, c.num_k_tiles, "num_k_tiles of the buffer");
  const bool K = config.params().transpose;
  if (!config.params().full_kv && (K ? strip.value > 0 : c.depth_blocks > 1)) {
    throw GeometryError(
        fmt::format("KVBuffer ({}) without full_kv: strip {} is not in a stage, which holds one block of "
                    "{}: use load_block and load_block_from_shared",
                    K ? "K" : "V", strip.value, c.depth_blocks));
  }
  std::vector<LdsReadInstruction> reads;
  const Source from{config, wave, stage};
  if (K) {
    add_k_strip(from, strip, reads);
  } else {
    add_v_strip(from, strip, 0, c.num_mmas, reads);
  }
  return reads;
}

std::vector<LdsReadInstruction> all_reads(const KVBufferConfig& config, WaveIdx wave, StageIdx stage) {
  std::vector<LdsReadInstruction> reads;
  for (std::int64_t strip = 0; strip < config.constants().num_k_tiles; ++strip) {
    for (LdsReadInstruction& read : strip_reads(config, wave, stage, StripIdx{strip})) reads.push_back(std::move(read));
  }
  return reads;
}

std::vector<LdsReadInstruction> block_reads(const KVBufferConfig& config, WaveIdx wave, StageIdx stage,
                                            std::int64_t block) {
  const KVBufferConstants& c = config.constants();
  check_place(config, wave, stage);
  if (config.params().full_kv) {
    throw GeometryError("read of one block: with full_kv a stage holds them all: use load_from_shared");
  }
  check_index("block of the depth", block, c.depth_blocks, "ceil(depth / BK) blocks");
  const Source from{config, wave, stage, block * c.BK};
  std::vector<LdsReadInstruction> reads;
  if (config.params().transpose) {
    add_k_strip(from, StripIdx{block}, reads);
    return reads;
  }
  const std::int64_t per_block = c.BK / c.MMA_M;
  for (std::int64_t strip = 0; strip < c.num_k_tiles; ++strip) {
    add_v_strip(from, StripIdx{strip}, block * per_block, std::min((block + 1) * per_block, c.num_mmas), reads);
  }
  return reads;
}

}  // namespace kvscope

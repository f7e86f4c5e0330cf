#include "core/staging/lds/kv_buffer_config.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/checked.h"
#include "core/staging/lds/lds_index.h"

namespace kvscope {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 20;  // of any size: products of three stay within 64 bits

// The faults of one buffer, each under its rule.
class Rules {
 public:
  void require(KVBufferRule rule, bool holds, std::string_view where, std::string message) {
    if (!holds) broken_.push_back({rule, {std::string(where), std::move(message)}});
  }
  [[nodiscard]] std::vector<BrokenBufferRule> take() { return std::move(broken_); }

 private:
  std::vector<BrokenBufferRule> broken_;
};

bool is_fp8(const KVBufferParams& p) {
  return bits(p.dtype) == 8;
}

// The sizes that formulas divide by.
std::vector<BrokenBufferRule> check_sizes(const KVBufferParams& p) {
  Rules rules;
  const bool known =
      p.dtype == DType::bf16 || p.dtype == DType::f16 || p.dtype == DType::e4m3 || p.dtype == DType::e5m2;
  rules.require(KVBufferRule::element_type, known, "dtype",
                fmt::format("{} is not staged: use bf16, f16, e4m3 or e5m2", name(p.dtype)));
  const std::array<std::pair<const char*, std::int64_t>, 17> positive{{
      {"mma_shape M", p.mma_shape.M},
      {"mma_shape N", p.mma_shape.N},
      {"mma_shape K", p.mma_shape.K},
      {"BN", p.BN},
      {"WN", p.WN},
      {"BK", p.BK},
      {"num_threads", p.num_threads},
      {"depth", p.depth},
      {"kv_num_heads", p.kv_num_heads},
      {"cache_depth", p.cache_depth.value_or(1)},
      {"reg_chunk_depth", p.reg_chunk_depth.value_or(1)},
      {"smem_depth", p.smem_depth.value_or(1)},
      {"reg_chunk_keys", p.reg_chunk_keys.value_or(1)},
      {"bk_smem", p.bk_smem.value_or(1)},
      {"num_smem_stages", p.num_smem_stages},
      {"depth_slices", p.depth_slices},
      {"k_group", p.k_group},
  }};
  for (const auto& [where, value] : positive) {
    rules.require(KVBufferRule::sizes, value >= 1 && value <= kLargest, where,
                  fmt::format("{} is outside [1, {}]", value, kLargest));
  }
  rules.require(KVBufferRule::sizes, p.head_dim_offset >= 0 && p.head_dim_offset <= kLargest, "head_dim_offset",
                fmt::format("{} is outside [0, {}]", p.head_dim_offset, kLargest));
  rules.require(KVBufferRule::whole_waves, p.num_threads < 1 || p.num_threads >= kWaveLanes, "num_threads",
                fmt::format("{} are less than a wave: use 64", p.num_threads));
  return rules.take();
}

void check_mma(Rules& rules, const KVBufferParams& p, const KVBufferConstants& c) {
  const MmaShape& mma = p.mma_shape;
  rules.require(KVBufferRule::mma_shape, mma.M == mma.N && (mma.M == 16 || mma.M == 32), "mma_shape",
                fmt::format("{} is not a square of 16 or 32: use {}", to_text(mma),
                            is_fp8(p) ? "32x32x64 or 16x16x128" : "32x32x16 or 16x16x32"));
  const bool pairs = mma == MmaShape{32, 32, 8} && !is_fp8(p);
  rules.require(KVBufferRule::k_group, p.k_group == (pairs ? 2 : 1), "k_group",
                fmt::format("{} for {} {}: use {}", p.k_group, name(p.dtype), to_text(mma), pairs ? 2 : 1));
  if (p.transpose) {
    const std::int64_t frag = c.input_frag_size, SW = c.simd_width;
    const bool one_read_for_two = pairs && p.k_group == 2;
    rules.require(KVBufferRule::fragment, frag == SW || frag == 2 * SW || one_read_for_two, "mma_shape",
                  fmt::format("{} takes {} elements a lane, which are not one or two vectors of {}: use {}",
                              to_text(mma), frag, SW, is_fp8(p) ? "32x32x64 or 16x16x128" : "32x32x16 or 16x16x32"));
    return;
  }
  const bool known = is_fp8(p) ? mma == MmaShape{32, 32, 64} || mma == MmaShape{16, 16, 128}
                               : mma == MmaShape{32, 32, 16} || mma == MmaShape{16, 16, 32} || pairs;
  rules.require(KVBufferRule::mma_shape, known, "mma_shape",
                fmt::format("{} has no transposing reader for {}: use {}", to_text(mma), name(p.dtype),
                            is_fp8(p) ? "32x32x64 or 16x16x128" : "32x32x16, 16x16x32 or 32x32x8"));
}

void check_tiles(Rules& rules, const KVBufferParams& p, const KVBufferConstants& c) {
  const auto multiple = [&](KVBufferRule rule, const char* where, std::int64_t value, std::int64_t of,
                            std::string_view what) {
    rules.require(rule, value % of == 0, where,
                  fmt::format("{} is not a multiple of {}, {}: use {}", value, of, what, round_up(value, of)));
  };
  multiple(KVBufferRule::tile_rows, "BN", c.BN, c.warp_tile_rows, "the keys of a copied sub-tile");
  multiple(KVBufferRule::whole_waves, "num_threads", p.num_threads, kWaveLanes, "the lanes of a wave");
  multiple(KVBufferRule::stage_blocks, "smem_depth", c.smem_depth, c.bk_smem, "the columns of a block (bk_smem)");
  rules.require(KVBufferRule::stage_holds_depth, !p.full_kv || c.smem_depth >= c.depth, "smem_depth",
                fmt::format("{} columns of a stage do not hold depth {}: use {}", c.smem_depth, c.depth,
                            round_up(c.depth, c.bk_smem)));
  const std::int64_t row = c.row_bytes();
  rules.require(KVBufferRule::copy_width, row == 64 || row == 128, "bk_smem",
                fmt::format("{} x {} = {} B are not 64 or 128, where a lane copies 16 bytes: use {} or {}", c.bk_smem,
                            name(p.dtype), row, 64 / c.element_bytes, 128 / c.element_bytes));
  if (p.transpose) {
    rules.require(KVBufferRule::wave_tiles, c.BN % c.WN == 0, "WN",
                  fmt::format("{} keys of a wave do not divide the tile's {}: use a divisor", c.WN, c.BN));
    multiple(KVBufferRule::wave_tiles, "WN", c.WN, c.MMA_M, "the rows of an MMA");
    const bool half_strip = c.input_frag_size == 2 * c.simd_width && c.BK == c.MMA_K && c.depth % c.BK == c.BK / 2;
    rules.require(KVBufferRule::whole_strips, c.depth % c.BK == 0 || half_strip, "depth",
                  fmt::format("{} is not whole strips of {} columns: use {}", c.depth, c.BK, round_up(c.depth, c.BK)));
  } else {
    multiple(KVBufferRule::wave_tiles, "WN", c.WN, c.BK, "the keys of a strip (BK)");
    rules.require(KVBufferRule::wave_tiles, c.WN <= c.BN, "WN",
                  fmt::format("{} keys of a wave pass the tile's {}: use {}", c.WN, c.BN, c.BN));
    multiple(KVBufferRule::wave_tiles, "depth", c.depth, c.MMA_M, "the columns of an MMA");
  }
  multiple(KVBufferRule::whole_mma_steps, "BK", c.BK, c.MMA_K, "the depth of an MMA");
  const bool two_blocks = is_fp8(p) && p.mma_shape == MmaShape{16, 16, 128} && c.BK == 128 && c.bk_smem == 64;
  rules.require(
      KVBufferRule::block_width, c.bk_smem == c.BK || two_blocks, "bk_smem",
      fmt::format("{} under BK {}: use {} (half of it only for 8 bits, 16x16x128, BK 128)", c.bk_smem, c.BK, c.BK));
  if (p.transpose || !is_fp8(p)) return;
  rules.require(KVBufferRule::v_fp8_strip, p.mma_shape != MmaShape{32, 32, 64} || c.BK == 64, "BK",
                fmt::format("{}: 8-bit V of 32x32x64 is read in strips of 64 keys: use 64", c.BK));
  rules.require(
      KVBufferRule::v_fp8_single, p.mma_shape != MmaShape{16, 16, 128} || (c.WN == 128 && c.BN == 128 && c.BK == 128),
      "BN",
      fmt::format("WN {}, BN {}, BK {}: 8-bit V of 16x16x128 has one strip: use 128 for all three", c.WN, c.BN, c.BK));
}

void check_swizzle(Rules& rules, const KVBufferParams& p, const KVBufferConstants& c) {
  if (!p.swizzle) return;
  const Swizzle& s = *p.swizzle;
  const std::int64_t reader = c.MMA_M * c.row_bytes() / kLdsVectorBytes;
  const std::int64_t writer = c.warp_tile_rows * c.row_bytes() / kLdsVectorBytes;
  rules.require(KVBufferRule::swizzle_closure, s.shift() > 0 && s.size() <= reader && s.size() <= writer, "swizzle",
                fmt::format("{} repeats after {} vectors, and a reader's {} rows of {} B are {}: use a shorter one, "
                            "with a positive shift",
                            s.text(), s.size(), c.MMA_M, c.row_bytes(), reader));
  rules.require(KVBufferRule::swizzle_reach, s.bits() + s.base() <= 6, "swizzle",
                fmt::format("{} changes bit {} of the vector index, and one copy instruction has 64 vectors, bits 0 to "
                            "5: use bits + base of 6 or less",
                            s.text(), s.bits() + s.base() - 1));
}

void check_waves(Rules& rules, const KVBufferParams& p, const KVBufferConstants& c) {
  if (p.depth_slices > 1) {
    rules.require(KVBufferRule::wave_slices, !p.transpose && p.full_kv, "depth_slices",
                  fmt::format("{}: only V with full_kv is read in slices: use 1", p.depth_slices));
    rules.require(KVBufferRule::wave_slices, p.depth_slices <= c.waves, "depth_slices",
                  fmt::format("{} slices for {} waves: no wave would read the rest: use {} threads", p.depth_slices,
                              c.waves, p.depth_slices * kWaveLanes));
    const bool whole_blocks = c.depth % c.bk_smem == 0;
    rules.require(KVBufferRule::wave_slices, whole_blocks || c.bk_smem % c.depth == 0, "depth",
                  fmt::format("a slice of {} columns neither divides a block of {} nor is whole blocks: use {}",
                              c.depth, c.bk_smem, round_up(c.depth, c.bk_smem)));
    rules.require(
        KVBufferRule::wave_slices, whole_blocks || !p.swizzle, "depth",
        fmt::format("a swizzled slice of {} columns begins inside a block of {}, where the XOR gives wrong addresses: "
                    "use whole blocks",
                    c.depth, c.bk_smem));
    return;  // it never copies
  }
  const std::int64_t row_groups = c.BN / c.warp_tile_rows;
  if (!p.full_kv) {
    rules.require(KVBufferRule::unguarded_blocks, row_groups % c.waves == 0, "num_threads",
                  fmt::format("{} waves share {} row groups unevenly, and without full_kv the rest would be zeroed in "
                              "another stage: use {} keys or fewer waves",
                              c.waves, row_groups, round_up(row_groups, c.waves) * c.warp_tile_rows));
    rules.require(KVBufferRule::blocks_of_strips, c.bk_smem == c.BK, "bk_smem",
                  fmt::format("{}: without full_kv a stage holds one block, which must be a whole strip: use {}",
                              c.bk_smem, c.BK));
    return;
  }
  const bool special = c.smem_depth == 64 && c.BN <= 64 && c.smem_depth / c.bk_smem >= 2;
  rules.require(KVBufferRule::special_copy, !special || c.waves == row_groups * 2, "num_threads",
                fmt::format("{} waves: smem_depth 64 with BN {} is copied by one wave a sub-tile: use {} threads",
                            c.waves, c.BN, row_groups * 2 * kWaveLanes));
}

void check_cache(Rules& rules, const KVBufferParams& p, const KVBufferConstants& c) {
  rules.require(KVBufferRule::cache_columns, p.head_dim_offset + c.depth <= c.cache_depth, "cache_depth",
                fmt::format("columns [{}, {}) are not inside a head of {}: use {} or more", p.head_dim_offset,
                            p.head_dim_offset + c.depth, c.cache_depth, p.head_dim_offset + c.depth));
  const std::int64_t row = p.kv_num_heads * c.cache_depth * c.element_bytes;
  rules.require(KVBufferRule::cache_alignment, row % kLdsVectorBytes == 0, "cache_depth",
                fmt::format("{} heads of {} are rows of {} B, not whole vectors of 16: pad the heads", p.kv_num_heads,
                            c.cache_depth, row));
  const std::int64_t first = p.head_dim_offset * c.element_bytes;
  rules.require(KVBufferRule::cache_alignment, first % kLdsVectorBytes == 0, "head_dim_offset",
                fmt::format("column {} is byte {}, not on a whole vector of 16: use {}", p.head_dim_offset, first,
                            round_up(p.head_dim_offset, c.simd_width)));
}

std::vector<Fault> faults_of(const std::vector<BrokenBufferRule>& broken) {
  std::vector<Fault> faults;
  for (const BrokenBufferRule& rule : broken) faults.push_back(rule.fault);
  return faults;
}

std::string object_of(const KVBufferParams& p) {
  return fmt::format("KVBuffer ({})", p.transpose ? "K" : "V");
}

KVBufferConstants formulas(const KVBufferParams& p) {
  KVBufferConstants c;
  c.BN = p.BN, c.WN = p.WN, c.BK = p.BK, c.depth = p.depth;
  c.cache_depth = p.cache_depth.value_or(p.depth);
  c.smem_depth = p.smem_depth.value_or(p.depth);
  c.bk_smem = p.bk_smem.value_or(p.BK);
  c.reg_chunk_depth = p.reg_chunk_depth.value_or(p.depth);
  c.reg_chunk_keys = p.reg_chunk_keys.value_or(p.WN);
  c.num_smem_stages = p.num_smem_stages;
  c.element_bytes = size_of(p.dtype);
  c.waves = p.num_threads / kWaveLanes;

  c.MMA_M = p.mma_shape.M, c.MMA_N = p.mma_shape.N, c.MMA_K = p.mma_shape.K;
  c.num_mmas = ceil_div(p.transpose ? c.WN : c.depth, c.MMA_N);
  c.num_k_mmas2 = ceil_div(c.BK, c.MMA_K);
  c.num_k_tiles = ceil_div(p.transpose ? c.depth : c.WN, c.BK);
  c.input_frag_size = c.MMA_K * c.MMA_N / kWaveLanes;
  c.simd_width = kLdsVectorBytes / c.element_bytes;
  c.num_repeats = c.smem_depth / c.bk_smem;
  c.smem_cols = p.full_kv ? c.smem_depth : c.bk_smem;
  c.smem_stage_size = c.BN * c.smem_cols;
  c.wtile_dim0 = c.WN, c.wtile_dim1 = c.BK;
  // The source lacks parentheses in these two formulas: as written there, only V's rows would count MMAs, and only
  // full_kv's sub-tiles row groups.
  c.register_strips = ceil_div(p.transpose ? c.reg_chunk_depth : c.reg_chunk_keys, c.BK);
  c.mma_rows = c.num_mmas * c.num_k_mmas2 * c.register_strips;
  c.mma_cols = c.input_frag_size;

  c.blocks_per_stage = p.full_kv ? c.num_repeats : 1;
  c.sub_tiles = c.BN / c.warp_tile_rows * c.blocks_per_stage;
  c.tiles_per_wave = ceil_div(c.sub_tiles, c.waves);
  const bool even = c.sub_tiles % c.waves == 0;
  c.vm_instrs_per_load = p.vm_rule == VmCountRule::newer && !even ? 0 : 2 * c.tiles_per_wave;
  c.copy_rows = c.row_bytes() / 4 <= 16 ? 16 : 8;
  c.copies_per_sub_tile = c.warp_tile_rows / c.copy_rows;
  c.depth_blocks = ceil_div(c.depth, c.BK);
  c.stage_bytes = c.smem_stage_size * c.element_bytes;
  c.region_bytes = c.stage_bytes * c.num_smem_stages;
  return c;
}

}  // namespace

std::string to_text(const MmaShape& shape) {
  return fmt::format("{}x{}x{}", shape.M, shape.N, shape.K);
}

KVBufferConstants constants_of(const KVBufferParams& params) {
  if (const auto broken = check_sizes(params); !broken.empty()) {
    throw GeometryError(object_of(params), faults_of(broken));
  }
  return formulas(params);
}

std::string_view name(KVBufferRule rule) {
  static constexpr std::array<std::string_view, 25> kNames{"element type",      "sizes",
                                                           "MMA shape",         "k group",
                                                           "tile rows",         "stage blocks",
                                                           "stage holds depth", "copy width",
                                                           "whole waves",       "wave tiles",
                                                           "whole MMA steps",   "block width",
                                                           "whole strips",      "fragment",
                                                           "swizzle closure",   "swizzle reach",
                                                           "wave slices",       "unguarded blocks",
                                                           "blocks of strips",  "special copy",
                                                           "8-bit V strip",     "8-bit V of one strip",
                                                           "cache columns",     "cache alignment",
                                                           "V covers the tile"};
  const auto at = static_cast<std::size_t>(rule);
  return at < kNames.size() ? kNames[at] : "invalid rule";
}

KVBufferReport check(const KVBufferParams& params) {
  KVBufferReport report{.refusals = check_sizes(params), .diagnostics = {}};
  if (!report.refusals.empty()) return report;
  const KVBufferConstants c = formulas(params);
  Rules rules;
  check_mma(rules, params, c);
  check_tiles(rules, params, c);
  check_swizzle(rules, params, c);
  check_waves(rules, params, c);
  check_cache(rules, params, c);
  report.refusals = rules.take();
  rules.require(KVBufferRule::v_covers_tile, params.transpose || c.WN >= c.BN, "WN",
                fmt::format("{}: registers hold keys 0 to {} of the tile's {}, and P V needs all: use {}", c.WN,
                            c.WN - 1, c.BN, c.BN));
  report.diagnostics = rules.take();
  return report;
}

KVBufferConfig::KVBufferConfig(const KVBufferParams& params) : params_(params) {
  KVBufferReport report = check(params);
  if (!report.refusals.empty()) throw GeometryError(object_of(params), faults_of(report.refusals));
  constants_ = formulas(params);
  diagnostics_ = std::move(report.diagnostics);
}

}  // namespace kvscope

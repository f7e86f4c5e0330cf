// Cases of lds_stage: both stages byte for byte, registers and copies as in core/staging/lds, operands of mma.sync as
// in core/fragment. Published checksums test the same results independently of the model.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fnv.h"
#include "core/fragment/fp8_v.h"
#include "core/fragment/ldmatrix.h"
#include "core/staging/lds/kv_buffer.h"
#include "gpu/kernels/lds_stage/config.h"
#include "gpu/kernels/lds_stage/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"
#include "gpu/verify/lds_stage_configs.h"

namespace kvscope::gpu {
namespace {

// --- the model -------------------------------------------------------------------------------------------------------

struct Staged {
  std::vector<std::byte> image, registers, fragments;
  std::vector<CopyRecord> trace;
};

struct Job {
  LdsConfig config;
  CacheShape shape;
  Slot slot = Slot::key;
  std::int64_t layer = 0, head = 0, first_column = 0, tiles = 1;
};

std::int64_t steps_of_tile(const KVBufferConstants& c, const KVBufferParams& p) {
  return p.full_kv ? 1 : c.depth_blocks;
}

// The raw bytes of a tile's elements; zeros past the sequence's end.
class TileBytes {
 public:
  TileBytes(const Job& job, const PagedKVCache& cache, std::int64_t sequence)
      : job_(job), cache_(cache), sequence_(sequence), zeros_(8) {}
  [[nodiscard]] const std::byte* at(std::int64_t token, std::int64_t column) const {
    if (token >= job_.shape.length(sequence_)) return zeros_.data();
    return cache_.block_paged_ptr(1, SeqIdx{sequence_}, TokIdx{token}, HeadIdx{job_.head},
                                  DimIdx{job_.first_column + column});
  }

 private:
  const Job& job_;
  const PagedKVCache& cache_;
  std::int64_t sequence_;
  std::vector<std::byte> zeros_;
};

// Operands of mma.sync: pieces of the tile, keys outermost, each distributed over 32 lanes of 16 bytes by its map.
void append_fragments(const KVBufferParams& p, const TileBytes& bytes, std::int64_t first_token,
                      std::int64_t first_column, std::int64_t columns, std::vector<std::byte>& out) {
  const auto size = static_cast<std::size_t>(size_of(p.dtype));
  const bool fp8_v = !p.transpose && size == 1;
  const FragmentMap map =
      fp8_v ? fp8_v_map()
            : ldmatrix_map(p.transpose ? LdmatrixUse::k_as_b : LdmatrixUse::v_as_b, static_cast<int>(size));
  for (std::int64_t key = 0; key < p.BN; key += map.info().rows)
    for (std::int64_t column = 0; column < columns; column += map.info().columns)
      for (int lane = 0; lane < 32; ++lane)
        for (int element = 0; element < map.info().elements; ++element) {
          const TilePlace place = map.tile_of({lane, element});
          const std::byte* from = bytes.at(first_token + key + place.row, first_column + column + place.column);
          out.insert(out.end(), from, from + size);
        }
}

void append_trace(const KVBufferConfig& config, const Job& job, std::int64_t valid, std::int64_t stage,
                  std::int64_t block, std::vector<CopyRecord>& out) {
  const DramTile dram{
      .valid_rows = valid, .row_stride = job.shape.kv_heads * job.shape.head_size, .depth = config.params().depth};
  const auto per_thread = static_cast<std::size_t>(copies_per_load(config, WaveIdx{0}));
  const std::size_t first = out.size();
  out.resize(first + per_thread * kStageThreads);
  for (std::int64_t wave = 0; wave < config.constants().waves; ++wave) {
    const auto list = config.params().full_kv
                          ? copy_instructions(config, WaveIdx{wave}, StageIdx{stage}, dram)
                          : copy_block_instructions(config, WaveIdx{wave}, StageIdx{stage}, block, dram);
    for (std::size_t n = 0; n < list.size(); ++n)
      for (std::size_t lane = 0; lane < 64; ++lane) {
        const CopyVector& copy = list[n].lanes[lane];
        out[first + n * kStageThreads + static_cast<std::size_t>(wave) * 64 + lane] = {
            static_cast<std::int32_t>(copy.lds_byte), static_cast<std::int32_t>(copy.dram_byte), copy.zero ? 0 : 1,
            static_cast<std::int32_t>(n)};
      }
  }
}

KVBufferParams over_cache(KVBufferParams p, const Job& job) {
  p.kv_num_heads = job.shape.kv_heads;
  p.cache_depth = job.shape.head_size;
  p.head_dim_offset = job.first_column;
  return p;
}

Staged stage_sequence(const Job& job, const PagedKVCache& cache, std::int64_t sequence) {
  const KVBufferConfig config(over_cache(job.config.params, job));
  const KVBufferConstants& c = config.constants();
  const std::int64_t end = job.shape.length(sequence);
  SharedImage image(c.region_bytes, std::byte{kStagePoison});
  PendingCopies pending(image, c.waves);
  const auto buffer = [&](const KVBufferConfig& of, std::int64_t wave) {
    return std::make_unique<KVBuffer>(of, cache, SeqIdx{sequence}, HeadIdx{job.head}, LdsRegion{&pending, 0},
                                      TokIdx{end}, WaveIdx{wave});
  };
  std::vector<std::unique_ptr<KVBuffer>> waves;
  for (std::int64_t wave = 0; wave < c.waves; ++wave) waves.push_back(buffer(config, wave));

  Staged staged;
  const TileBytes bytes(job, cache, sequence);
  const std::int64_t steps = steps_of_tile(c, config.params());
  for (std::int64_t step = 0; step < job.tiles * steps; ++step) {
    const std::int64_t tile = step / steps, block = step % steps;
    const StageIdx stage{step % kStages};
    for (const auto& wave : waves) {
      if (config.params().full_kv)
        wave->load_from_dram(stage);
      else
        wave->load_block(stage, block);
    }
    for (std::int64_t wave = 0; wave < c.waves; ++wave) pending.wait(WaveIdx{wave}, 0);
    for (std::int64_t wave = 0; wave < c.waves; ++wave) {
      KVBuffer& own = *waves[static_cast<std::size_t>(wave)];
      const auto keep = [&](const KVBuffer& of) {
        staged.registers.insert(staged.registers.end(), of.register_bytes().begin(), of.register_bytes().end());
      };
      if (job.config.per_wave) {
        const auto sliced = buffer(KVBufferConfig(over_cache(*job.config.per_wave, job)), wave);
        sliced->load_from_shared(stage);
        keep(*sliced);
      } else if (config.params().full_kv) {
        own.load_from_shared(stage);
        keep(own);
      } else {
        own.load_block_from_shared(stage, block);
        if (block + 1 == steps) keep(own);
      }
    }
    append_fragments(config.params(), bytes, tile * c.BN, block * c.BK, c.smem_cols, staged.fragments);
    append_trace(config, job, std::clamp<std::int64_t>(end - tile * c.BN, 0, c.BN), stage.value, block, staged.trace);
  }
  staged.image.assign(image.bytes().begin(), image.bytes().end());
  return staged;
}

// --- the kernel ------------------------------------------------------------------------------------------------------

struct Wanted {
  bool image = true, registers = true, fragments = true, trace = true;
};

struct Got {
  DeviceArray image, registers, fragments, trace;
};

// `bytes`: the size of each output; outputs that are not requested are empty.
Outcome launch(Device& device, const Job& job, const UploadedCache& there, std::int64_t region_bytes,
               const Staged& sizes, const Wanted& wanted, Got& got) {
  const auto room = [&](const char* name, bool is_wanted, std::size_t bytes) {
    return is_wanted ? device.filled(name, static_cast<std::int64_t>(bytes), std::byte{0}) : DeviceArray();
  };
  got.image = room("image", wanted.image, sizes.image.size());
  got.registers = room("registers", wanted.registers, sizes.registers.size());
  got.fragments = room("fragments", wanted.fragments, sizes.fragments.size());
  got.trace = room("trace", wanted.trace, sizes.trace.size() * sizeof(CopyRecord));
  const std::optional<Swizzle>& swizzle = job.config.params.swizzle;
  const LdsStageParams params{.cache = there.layer(job.layer, job.slot),
                              .lengths = there.lengths.as<const std::uint32_t>(),
                              .head = static_cast<std::int32_t>(job.head),
                              .first_column = static_cast<std::int32_t>(job.first_column),
                              .tiles = static_cast<std::int32_t>(job.tiles),
                              .swizzle_bits = swizzle ? swizzle->bits() : 0,
                              .swizzle_base = swizzle ? swizzle->base() : 0,
                              .swizzle_shift = swizzle ? swizzle->shift() : 0,
                              .image = got.image.as<unsigned char>(),
                              .registers = got.registers.as<unsigned char>(),
                              .fragments = got.fragments.as<void>(),
                              .trace = got.trace.as<CopyRecord>()};
  return device.launch({.kernel = "lds_stage",
                        .entry = fmt::format("lds_stage_{}", job.config.id),
                        .grid = {static_cast<std::int64_t>(job.shape.lengths.size()), 1, 1},
                        .block = {kStageThreads, 1, 1},
                        .dynamic_shared = region_bytes},
                       bytes_of(params));
}

void append(Staged& all, const Staged& more) {
  all.image.insert(all.image.end(), more.image.begin(), more.image.end());
  all.registers.insert(all.registers.end(), more.registers.begin(), more.registers.end());
  all.fragments.insert(all.fragments.end(), more.fragments.begin(), more.fragments.end());
  all.trace.insert(all.trace.end(), more.trace.begin(), more.trace.end());
}

PagedKVCache layer_of(const PagedKVCacheCollection& collection, const Job& job) {
  return job.slot == Slot::key ? collection.get_key_cache(LayerIdx{job.layer})
                               : collection.get_value_cache(LayerIdx{job.layer});
}

// Compares all outputs of a launch with the model.
void run_job(const Job& job, Device& device, Verdict& verdict) {
  CacheFixture fixture(job.shape);
  const UploadedCache there = fixture.upload(device);
  const PagedKVCacheCollection collection = fixture.collection();
  const PagedKVCache cache = layer_of(collection, job);
  const KVBufferConfig config(over_cache(job.config.params, job));
  const KVBufferConstants& c = config.constants();
  Staged golden;
  for (std::int64_t sequence = 0; sequence < fixture.sequences(); ++sequence)
    append(golden, stage_sequence(job, cache, sequence));

  Got got;
  if (!verdict.take(launch(device, job, there, c.region_bytes, golden, {}, got))) return;

  const std::int64_t element = c.element_bytes, sequences = fixture.sequences();
  const LdsLayout layout(config);
  const auto hold = [&](std::span<const std::byte> expected, const DeviceArray& array, std::int64_t bytes,
                        const std::function<std::string(std::int64_t)>& place) {
    if (const auto fault = first_difference(expected, array.download(), bytes, place)) verdict.faults.push_back(*fault);
  };
  hold(golden.image, got.image, element, [&](std::int64_t i) {
    const std::int64_t byte = i * element % c.region_bytes;
    const LdsPlace at = layout.place_of(byte);
    return fmt::format("image of sequence {}, byte {}: stage {}, key {}, depth {}", i * element / c.region_bytes, byte,
                       at.stage.value, at.key.value, at.depth.value);
  });
  const KVBufferConstants& r = job.config.per_wave ? constants_of(*job.config.per_wave) : c;
  hold(golden.registers, got.registers, element, [&](std::int64_t i) {
    const std::int64_t row = i / r.mma_cols, lane = row / r.mma_rows, wave = lane / 64, tile = wave / c.waves;
    return fmt::format("registers of sequence {}, tile {}: wave {}, lane {}, row {}, element {}", tile / job.tiles,
                       tile % job.tiles, wave % c.waves, lane % 64, row % r.mma_rows, i % r.mma_cols);
  });
  hold(golden.fragments, got.fragments, element, [&](std::int64_t i) {
    const std::int64_t per_lane = 16 / element, piece = i / per_lane / 32;
    const std::int64_t of_sequence = static_cast<std::int64_t>(golden.fragments.size()) / sequences / 512;
    return fmt::format("fragments of sequence {}: piece {}, lane {}, element {}", piece / of_sequence,
                       piece % of_sequence, i / per_lane % 32, i % per_lane);
  });
  hold(std::as_bytes(std::span(golden.trace)), got.trace, 4, [&](std::int64_t i) {
    const char* const fields[] = {"LDS byte", "DRAM byte", "valid", "order"};
    return fmt::format("trace: thread {}, copy {} of all: {}", i / 4 % kStageThreads, i / 4 / kStageThreads,
                       fields[i % 4]);
  });
}

// --- cases -----------------------------------------------------------------------------------------------------------

// A cache for a configuration: pages of one or two tiles, heads wider than the tile by `margin` columns.
Job job_of(const LdsConfig& config, std::vector<std::int64_t> lengths, std::int64_t tiles, std::int64_t pages_of_tiles,
           std::int64_t margin) {
  Job job{.config = config, .shape = {}, .slot = config.params.transpose ? Slot::key : Slot::value, .tiles = tiles};
  job.shape.dtype = config.params.dtype;
  job.shape.page_size = config.params.BN * pages_of_tiles;
  job.shape.layers = 2;
  job.shape.kv_heads = 2;
  job.shape.head_size = config.params.depth + margin;
  job.shape.lengths = std::move(lengths);
  job.layer = 1;
  job.head = 1;
  job.first_column = margin / 2;
  job.shape.sentinels = true;  // a tile without rows must not use its table entry
  return job;
}

// Tiles with none, one, and all of their rows valid, and around each edge of a copy; then `tiles` through two stages.
Verdict run_config(const LdsConfig& config, std::int64_t tiles, Device& device) {
  const std::int64_t BN = config.params.BN;
  const bool large = BN * config.params.depth > 32768;  // E, H: a few sequences are enough
  Verdict verdict;
  std::vector<std::int64_t> tails;
  for (const std::int64_t valid : {0, 1, 31, 32, 33, 50, 63, 64, 127, 128})
    if (valid <= BN && (!large || valid == 50 || valid == 127)) tails.push_back(valid);
  run_job(job_of(config, tails, 1, 1, 32), device, verdict);
  if (config.per_wave) return verdict;  // the model of the per-wave buffer reads stage 0 only
  std::vector<std::int64_t> lengths{BN + 1};
  if (!large) lengths.push_back(tiles * BN);
  run_job(job_of(config, lengths, tiles, 2, 0), device, verdict);
  return verdict;
}

Verdict run_published(const std::string& id, Device& device) {
  Verdict verdict;
  for (const PublishedSums& published : kPublished) {
    if (id != published.id) continue;
    const LdsConfig& config = lds_config_of(id);
    Job job = job_of(config, {published.valid}, 1, 1, 0);
    job.shape.layers = 1;
    job.shape.kv_heads = 1;
    job.layer = job.head = 0;
    CacheFixture fixture(job.shape);
    const PagedKVCacheCollection collection = fixture.collection();
    const PagedKVCache cache = layer_of(collection, job);
    for (std::int64_t key = 0; key < published.valid; ++key)
      for (std::int64_t column = 0; column < config.params.depth; ++column) {
        const std::uint32_t bits = published.pattern(key, column);
        std::memcpy(cache.block_paged_ptr(1, SeqIdx{0}, TokIdx{key}, HeadIdx{0}, DimIdx{column}), &bits,
                    static_cast<std::size_t>(size_of(config.params.dtype)));
      }
    const UploadedCache there = fixture.upload(device);
    const KVBufferConstants c = constants_of(config.params);
    const KVBufferConstants r = config.per_wave ? constants_of(*config.per_wave) : c;
    Staged sizes;
    sizes.image.resize(static_cast<std::size_t>(c.region_bytes));
    sizes.registers.resize(static_cast<std::size_t>(kStageThreads * r.mma_rows * r.mma_cols * c.element_bytes));
    Got got;
    if (!verdict.take(launch(device, job, there, c.region_bytes, sizes, {.fragments = false, .trace = false}, got)))
      continue;
    const auto hold = [&](const char* what, std::uint64_t expected, const DeviceArray& array) {
      const std::uint64_t is = fnv1a(array.download());
      if (expected != 0 && is != expected)
        verdict.faults.push_back(fmt::format("{} of {} with {} keys: checksum {:016x}, published {:016x}", what, id,
                                             published.valid, is, expected));
    };
    hold("image", published.image, got.image);
    hold("registers", published.registers, got.registers);
  }
  return verdict;
}

// Only ldmatrix: `degree` rows of each of its four phases share a bank; no other access has a conflict. A K: two stages
// of 16 KiB, the tile 16 KiB, 32 reads of 512 B:
//   wavefronts of 128 B   256 fill the stages, 128 copy the tile, 32 * 4 * degree read it
//   sectors of 32 B       512 are copied, 512 written; in every step 8 warps read the length and the table
Budget ldmatrix_budget(const LdsConfig& config, std::int64_t degree) {
  const KVBufferConstants c = constants_of(config.params);
  const std::int64_t tile = c.BN * c.depth * c.element_bytes, steps = config.params.full_kv ? 1 : c.depth_blocks;
  return {.wavefronts = c.region_bytes / 128 + tile / 128 + tile / 512 * 4 * degree,
          .sectors = 2 * (tile / 32) + 2 * 8 * steps,
          .tma_bytes = {}};
}

Verdict run_ldmatrix(const LdsConfig& config, std::int64_t degree, Device& device) {
  const Job job = job_of(config, {config.params.BN}, 1, 1, 0);
  CacheFixture fixture(job.shape);
  const UploadedCache there = fixture.upload(device);
  const KVBufferConstants c = constants_of(config.params);
  Staged sizes;
  sizes.fragments.resize(static_cast<std::size_t>(c.BN * c.depth * c.element_bytes));
  const std::int64_t reads = static_cast<std::int64_t>(sizes.fragments.size()) / 512;
  Got got;
  Verdict verdict;
  const Outcome outcome =
      launch(device, job, there, c.region_bytes, sizes, {.image = false, .registers = false, .trace = false}, got);
  if (!verdict.take(outcome) || !outcome.costs) return verdict;
  const std::int64_t beyond = outcome.costs->wavefronts - outcome.costs->ideal_wavefronts;
  if (beyond != reads * 4 * (degree - 1))
    verdict.faults.push_back(
        fmt::format("{} wavefronts more than without conflicts, expected {}: {} reads of {} phases", beyond,
                    reads * 4 * (degree - 1), reads, 4));
  return verdict;
}

}  // namespace

std::vector<Case> lds_stage_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, std::string what, std::function<Verdict(Device&)> run,
                       const Budget& budget = {}) {
    const bool demo = name == "a_k_published";
    cases.push_back({.kernel = "lds_stage",
                     .name = std::move(name),
                     .what = std::move(what),
                     .demo = demo,
                     .budget = budget,
                     .run = std::move(run)});
  };
  const auto add_ldmatrix = [&](const LdsConfig& config, std::string name, std::int64_t degree) {
    add(
        std::move(name),
        degree == 1 ? "no two rows of ldmatrix meet in a bank"
                    : fmt::format("{} rows of ldmatrix meet in a bank", degree),
        [config, degree](Device& device) { return run_ldmatrix(config, degree, device); },
        ldmatrix_budget(config, degree));
  };
  for (const LdsConfig& config : lds_configs()) {
    add(config.id + "_amd", "tails, pages, heads, layers; the second tile does not change the first",
        [config](Device& device) { return run_config(config, 2, device); });
    add_ldmatrix(config, config.id + "_amd_ldmatrix", config.amd_degree);
    if (std::any_of(std::begin(kPublished), std::end(kPublished), [&](const auto& p) { return config.id == p.id; }))
      add(config.id + "_published", "published checksums of images and registers",
          [id = config.id](Device& device) { return run_published(id, device); });
    if (config.per_wave) continue;  // a slice is not a whole period of a swizzle
    const LdsConfig nv = with_nv_swizzle(config);
    add(config.id + "_nv", "the swizzle of ldmatrix, TMA and wgmma; the third tile reuses the first one's stage",
        [nv](Device& device) { return run_config(nv, 3, device); });
    add_ldmatrix(nv, config.id + "_nv_ldmatrix", 1);
  }
  return cases;
}

}  // namespace kvscope::gpu

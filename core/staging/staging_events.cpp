#include "core/staging/staging_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/smem/banks.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/detail/batch_row.h"
#include "core/staging/focus.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/lds/lds_to_registers.h"
#include "core/staging/lds/register_map.h"
#include "core/staging/staged_tile.h"
#include "core/staging/tma/tma_staging.h"
#include "core/tma/box_plan.h"
#include "core/tma/gather4.h"

namespace kvscope {
namespace {

constexpr std::int64_t kRegisterBytes = 4;
constexpr std::int64_t kRegistersOfPiece = 4;  // one ldmatrix.x4
constexpr int kWarpLanes = 32;

bool is_wanted(const Scenario& scenario, const trace::Recorder& recorder) {
  return scenario.focus.staging != StagingDetail::none && recorder.wants(trace::TileOpened::kDetail);
}

[[noreturn]] void reject(const Scenario& scenario, const char* where, std::string message) {
  throw InputError("scenario '" + scenario.name + "'", where, std::move(message));
}

// focus.sequence, or the sequence with the most tokens, the first one of several.
SeqIdx focus_row(const Scenario& scenario, const CacheState& state) {
  if (state.batch.empty()) {
    reject(scenario, "$.focus.step",
           fmt::format("step {} computes no sequence, so there is no tile: choose another step, or requests that fit "
                       "into the pool",
                       state.step.value));
  }
  if (scenario.focus.sequence >= 0) {
    if (const auto row = batch_row_of(state, SeqIdx{scenario.focus.sequence})) return *row;
    reject(scenario, "$.focus.sequence",
           fmt::format("{} is not in the batch of step {}, which holds {}: choose one of these, or -1 for the longest",
                       scenario.focus.sequence, state.step.value, batch_text(state)));
  }
  SeqIdx longest{0};
  for (SeqIdx row{1}; row.value < static_cast<std::int64_t>(state.batch.size()); ++row) {
    if (tokens_of(state, row) > tokens_of(state, longest)) longest = row;
  }
  return longest;
}

// Lanes `phase` serves, as two masks of 32.
trace::BankPhase phase_event(std::size_t phase, const std::vector<int>& lanes) {
  trace::BankPhase e;
  e.phase = static_cast<std::int64_t>(phase);
  for (const int lane : lanes) (lane < 32 ? e.lanes_low : e.lanes_high) |= std::int64_t{1} << lane % 32;
  return e;
}

trace::ReadInstruction instruction_of(LdmatrixUse use) {
  return ldmatrix_shape(use).trans ? trace::ReadInstruction::ldmatrix_trans : trace::ReadInstruction::ldmatrix;
}
trace::ReadInstruction instruction_of(LdsReadKind kind) {
  switch (kind) {
    case LdsReadKind::plain:
      return trace::ReadInstruction::ds_read_b128;
    case LdsReadKind::tr16:
      return trace::ReadInstruction::ds_read_tr_b16;
    case LdsReadKind::tr8:
      return trace::ReadInstruction::ds_read_tr_b8;
  }
  return trace::ReadInstruction::none;
}

// An element of a register: where it begins in it, and where it is in the tile.
struct RegisterElement {
  std::int64_t bit = 0, row = 0, column = 0;
};

class StagingRecorder {
 public:
  StagingRecorder(const Scenario& scenario, const CacheState& state, bool lanes, trace::Recorder& recorder)
      : scenario_(scenario), state_(state), recorder_(recorder), lanes_(lanes) {}

  void record(KOrV kv) {
    const StagedTile for_tma = tile(kv, tile_tokens(scenario_, StagingPath::tma, kv));
    const StagedTile for_lds = tile(kv, tile_tokens(scenario_, StagingPath::lds, kv));
    taken([&] { record(StagingPath::tma, for_tma, DimIdx{0}); });
    taken([&] { record(StagingPath::lds, for_lds, DimIdx{0}); });
  }

  // Throws before anything is recorded when the path cannot take the tile.
  void record(StagingPath path, const StagedTile& tile, DimIdx first_column, TmaBoxes boxes = TmaBoxes::pages) {
    const AddressedCache cache(scenario_, state_, tile.kv, tile.layer);
    if (path == StagingPath::tma) {
      record_tma(cache, TmaStaging(scenario_, cache.cache(), tile, first_column, boxes), tile);
    } else {
      record_lds(cache, LdsStaging(lds_params(scenario_, tile.kv), cache.cache(), tile), tile);
    }
  }

 private:
  // Records nothing when the path does not support the tile; explain reports the reason.
  template <class Make>
  static void taken(const Make& make) {
    try {
      make();
    } catch (const GeometryError&) {
    } catch (const OverflowError&) {
    } catch (const UnsupportedError&) {
    }
  }

  [[nodiscard]] StagedTile tile(KOrV kv, std::int64_t BN) const { return focus_tile(scenario_, state_, kv, BN); }

  void open(const StagedTile& tile, bool tma, std::int64_t rows, std::int64_t columns, std::int64_t bytes) {
    trace::TileOpened e;
    e.step = state_.step;
    e.seq = state_.batch[static_cast<std::size_t>(tile.batch_row.value)];
    e.layer = tile.layer;
    e.head = tile.head;
    e.value = tile.kv == KOrV::v;
    e.tma = tma;
    e.first_token = tile.first_token;
    e.rows = rows;
    e.tokens = std::min(rows, tile.tokens - tile.first_token.value);
    e.columns = columns;
    e.bytes = bytes;
    recorder_.record(e);
    reads_ = 0;
  }

  // The pool's geometry, and the pages of the tile's tokens. `element_bytes` and `first_column` are those of the tile,
  // which may read the rows as wider elements than the cache stores.
  void memory(const AddressedCache& cache, const StagedTile& tile, std::int64_t rows, std::int64_t first_column,
              std::int64_t element_bytes) {
    if (!lanes_) return;
    const ModelGeometry& model = scenario_.model;
    const bool paged = cache.paged() != nullptr;
    const std::int64_t slots = paged ? scenario_.cache.page_size : scenario_.cache.max_tokens;
    trace::TileMemory e;
    e.kinds = model.is_mla ? 1 : 2;
    e.layers = model.layers;
    e.page_size = slots;
    e.heads = model.kv_heads;
    const std::int64_t of_cache = element_bytes / size_of(scenario_.cache.dtype);  // elements of one of the tile's
    e.head_size = model.head_size / of_cache;
    e.element_bytes = element_bytes;
    e.stride = std::visit([](const auto& of) { return of.stride(); }, cache.cache());
    e.first_column = first_column;
    recorder_.record(e);
    const std::int64_t end = std::min(tile.first_token.value + rows, tile.tokens);
    for (std::int64_t page = tile.first_token.value / slots; page * slots < end; ++page) {
      const TokIdx first{page * slots};
      const std::int64_t row = cache.row_idx(tile.batch_row, first).value;
      recorder_.record(trace::TilePage{PageIdx{page}, BlockIdx{row / e.stride}, row,
                                       cache.byte(tile.batch_row, first, tile.head, DimIdx{first_column * of_cache})});
    }
  }

  void fragments(const trace::TileFragments& e, const BankProfile* profile) {
    if (!lanes_) return;
    recorder_.record(e);
    if (profile == nullptr) return;
    for (std::size_t phase = 0; phase < profile->phases.size(); ++phase) {
      recorder_.record(phase_event(phase, profile->phases[phase]));
    }
  }

  // One event for each run of neighbors. `elements` are of one register, lowest bits first.
  void filled(trace::RegisterFilled e, std::span<const RegisterElement> elements) {
    for (std::size_t first = 0; first < elements.size();) {
      const RegisterElement& from = elements[first];
      std::size_t end = first + 1;
      const auto follows = [&](std::size_t n, bool down) {
        const auto steps = static_cast<std::int64_t>(n - first);
        return elements[n].row == from.row + (down ? steps : 0) &&
               elements[n].column == from.column + (down ? 0 : steps);
      };
      e.down = end < elements.size() && follows(end, true);
      while (end < elements.size() && follows(end, e.down)) ++end;
      e.bit = from.bit;
      e.row = from.row;
      e.column = from.column;
      e.elements = static_cast<std::int64_t>(end - first);
      recorder_.record(e);
      first = end;
    }
  }

  void read(std::int64_t wave, std::int64_t first_register, std::int64_t registers, const BankReport& banks,
            std::span<const std::int64_t> addresses) {
    recorder_.record(trace::FragmentRead{reads_, wave, first_register, registers, banks.cycles(), banks.extra()});
    if (lanes_) {
      for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
        recorder_.record(trace::LaneRead{reads_, static_cast<std::int64_t>(lane), addresses[lane]});
      }
    }
    ++reads_;
  }

  // --- TMA ---

  void record_tma(const AddressedCache& cache, const TmaStaging& staging, const StagedTile& tile) {
    const KvCopy& copy = staging.copy();
    open(tile, true, staging.rows(), staging.columns(), staging.shared_bytes());
    // The map of rope values begins behind the row's content.
    const std::int64_t content = copy.kind == TmaKind::rope ? scenario_.model.value_size / copy.element_bytes : 0;
    memory(cache, tile, staging.rows(), content + copy.depth_offset, copy.element_bytes);
    tma_geometry(staging);
    recorder_.record(trace::BarrierExpects{0, copy.expected_bytes});
    for (std::size_t n = 0; n < copy.issues.size(); ++n) record_box(staging, static_cast<std::int64_t>(n));
    recorder_.record(trace::BarrierCompleted{0});
    if (!staging.no_fragments().empty()) return;
    for (const TmaRead& one : staging.reads()) {
      read(one.warp, one.first_register, kRegistersOfPiece, bank_report(one), one.addresses);
      if (lanes_) tma_registers(staging, one);
    }
  }

  void tma_geometry(const TmaStaging& staging) {
    if (!lanes_) return;
    const KvCopy& copy = staging.copy();
    const TensorMap& map = staging.map();
    const auto last = static_cast<std::size_t>(map.rank - 1);
    const auto number = [](auto of_map) { return static_cast<std::int64_t>(of_map); };
    recorder_.record(trace::TileMap{number(map.dims[0]), map.rank > 2 ? number(map.dims[1]) : 1, number(map.dims[last]),
                                    number(map.box[0]), map.rank > 2 ? number(map.box[1]) : 1, number(map.box[last])});
    const int bits = static_cast<int>(copy.swizzle);
    recorder_.record(trace::TileShared{copy.chunk_stride, copy.gran * copy.element_bytes, bits, bits > 0 ? 4 : 0,
                                       bits > 0 ? 3 : 0, kNvidiaBanks, 1});
    trace::TileFragments e;
    e.lanes = kWarpLanes;
    if (!staging.no_fragments().empty()) {
      e.unread = copy.element_bytes > 2 ? trace::Unread::element_bits : trace::Unread::whole_pieces;
      return fragments(e, nullptr);
    }
    e.instruction = instruction_of(staging.use());
    e.mma_m = 16;
    e.mma_n = 8;
    e.mma_k = 32 / copy.element_bytes;
    e.width = kLdsVectorBytes;
    e.warps = staging.warps();
    e.registers = staging.registers();
    e.steps = staging.steps();
    const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, kLdsVectorBytes, 4);
    fragments(e, &profile);
  }

  void tma_registers(const TmaStaging& staging, const TmaRead& one) {
    std::vector<RegisterElement> elements;
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      for (std::int64_t index = one.first_register; index < one.first_register + kRegistersOfPiece; ++index) {
        elements.clear();
        const auto bits = 8 * staging.copy().element_bytes;
        for (const TilePlace& at : staging.elements_at(lane, index, one.step, one.warp)) {
          elements.push_back({std::ssize(elements) * bits, at.row, at.column});
        }
        trace::RegisterFilled e;
        e.read = reads_ - 1;
        e.step = one.step;
        e.lane = lane;
        e.index = index;
        filled(e, elements);
      }
    }
  }

  void record_box(const TmaStaging& staging, std::int64_t n) {
    const KvCopy& copy = staging.copy();
    const KvIssue& issue = copy.issues[static_cast<std::size_t>(n)];
    const std::int64_t shared = issue.smem * copy.element_bytes;
    const std::vector<BoxChunk> chunks = copy.kind == TmaKind::gather4 ? gather4_chunks(staging.map(), issue.at, shared)
                                                                       : box_chunks(staging.map(), issue.at, shared);
    trace::BoxCopied e;
    e.copy = n;
    e.sub_tile = issue.page;
    e.column = issue.chunk * copy.gran;
    e.row = issue.row;
    e.shared = shared;
    e.bytes = issue.bytes;
    for (const BoxChunk& chunk : chunks) e.filled += kLdsVectorBytes - chunk.data_bytes;
    recorder_.record(e);
    if (!lanes_) return;
    for (const BoxChunk& chunk : chunks) {
      recorder_.record(trace::ChunkLanded{n, issue.page * copy.issue_rows + chunk.row, e.column + chunk.column,
                                          chunk.filled() ? -1 : AddressedCache::byte_of(chunk.global), chunk.shared});
    }
  }

  // --- LDS ---

  void record_lds(const AddressedCache& cache, const LdsStaging& staging, const StagedTile& tile) {
    const KVBufferConfig& config = staging.config();
    const KVBufferConstants& c = config.constants();
    const bool full_kv = config.params().full_kv;
    open(tile, false, c.BN, full_kv ? c.smem_cols : c.depth, full_kv ? c.stage_bytes : c.region_bytes);
    memory(cache, tile, c.BN, config.params().head_dim_offset, size_of(scenario_.cache.dtype));
    lds_geometry(staging);
    const DramTile dram{staging.valid_rows(), config.params().kv_num_heads * c.cache_depth, c.depth};
    std::int64_t copies = 0;
    for (std::int64_t block = 0; block < staging.blocks(); ++block) {
      const StageIdx stage = staging.stage_of(block);
      for (WaveIdx wave{0}; wave.value < c.waves; ++wave) {
        for (const CopyInstruction& instruction : staging.copies(wave, block, dram)) {
          record_instruction(staging, instruction, stage, copies++);
        }
      }
      for (WaveIdx wave{0}; wave.value < c.waves; ++wave) {
        recorder_.record(trace::WaveWaited{wave.value, copies_per_load(config, wave), 0});
      }
      for (WaveIdx wave{0}; wave.value < c.waves; ++wave) {
        record_reads(staging, full_kv ? all_reads(config, wave, stage) : block_reads(config, wave, stage, block), wave);
      }
    }
  }

  void record_instruction(const LdsStaging& staging, const CopyInstruction& instruction, StageIdx stage,
                          std::int64_t copy) {
    trace::LdsCopied e;
    e.stage = stage.value;
    e.copy = copy;
    e.wave = instruction.wave.value;
    e.shared = instruction.lanes[0].lds_byte;
    for (const CopyVector& vector : instruction.lanes) e.zero_lanes += vector.zero ? 1 : 0;
    recorder_.record(e);
    if (!lanes_) return;
    for (const CopyVector& vector : instruction.lanes) {
      recorder_.record(trace::ChunkLanded{
          copy, vector.key.value, vector.depth.value,
          vector.zero ? -1 : AddressedCache::byte_of(staging.origin()) + vector.dram_byte, vector.lds_byte});
    }
  }

  void lds_geometry(const LdsStaging& staging) {
    if (!lanes_) return;
    const KVBufferConfig& config = staging.config();
    const KVBufferConstants& c = config.constants();
    trace::TileShared shared{c.BN, c.row_bytes(), 0, 0, 0, kGfx950Banks, c.num_smem_stages};
    if (const auto& swizzle = config.params().swizzle) {
      constexpr int kBitsOfVector = 4;  // the swizzle counts vectors of 16 bytes
      shared.swizzle_bits = swizzle->bits();
      shared.swizzle_base = swizzle->base() + kBitsOfVector;
      shared.swizzle_shift = swizzle->shift();
    }
    recorder_.record(shared);
    const LdsReadKind kind = config.params().transpose ? LdsReadKind::plain
                             : c.element_bytes == 1    ? LdsReadKind::tr8
                                                       : LdsReadKind::tr16;
    trace::TileFragments e;
    e.instruction = instruction_of(kind);
    e.mma_m = c.MMA_M;
    e.mma_n = c.MMA_N;
    e.mma_k = c.MMA_K;
    e.width = kind == LdsReadKind::plain ? 16 : 8;
    e.lanes = kWaveLanes;
    e.warps = c.waves;
    e.registers = staging.registers();
    e.steps = staging.steps();
    const BankProfile profile = bank_profile(SharedTarget::gfx950, SharedOp::read, static_cast<int>(e.width));
    fragments(e, &profile);
  }

  // What arrives with one read, lane by lane and register by register.
  void lds_registers(const KVBufferConfig& config, const LdsReadInstruction& one, WaveIdx wave) {
    const KVBufferConstants& c = config.constants();
    const std::int64_t of_register = kRegisterBytes / c.element_bytes;
    std::vector<RegisterElement> elements;
    for (int lane = 0; lane < kWaveLanes; ++lane) {
      for (std::size_t n = 0; n < one.targets.size(); ++n) {
        const RegisterTarget& target = one.targets[n];
        const std::int64_t k = one.k + static_cast<std::int64_t>(n);
        KVSCOPE_ASSERT(register_row(c, one.strip, k, one.i) == target.row);
        for (std::int64_t first = target.element; first < target.element + target.count; first += of_register) {
          elements.clear();
          for (std::int64_t e = first; e < first + of_register; ++e) {
            const auto at = register_element(config, wave, {one.strip, k, one.i, lane, e});
            if (!at) break;  // columns that the head does not have
            elements.push_back({(e - first) * 8 * c.element_bytes, at->key.value, at->depth.value});
          }
          trace::RegisterFilled e;
          e.read = reads_ - 1;
          e.step = one.strip.value / c.register_strips;
          e.lane = lane;
          e.index = (target.row * c.input_frag_size + first) * c.element_bytes / kRegisterBytes;
          filled(e, elements);
        }
      }
    }
  }

  void record_reads(const LdsStaging& staging, const std::vector<LdsReadInstruction>& reads, WaveIdx wave) {
    const KVBufferConfig& config = staging.config();
    const KVBufferConstants& c = config.constants();
    for (const LdsReadInstruction& one : reads) {
      if (one.zero) continue;
      const RegisterTarget& target = one.targets.front();
      const std::int64_t first = (target.row * c.input_frag_size + target.element) * c.element_bytes / kRegisterBytes;
      const BankProfile profile = bank_profile(SharedTarget::gfx950, SharedOp::read, static_cast<int>(one.width));
      const BankReport banks =
          bank_report(profile, {static_cast<int>(one.width), {one.addresses.begin(), one.addresses.end()}});
      read(wave.value, first, one.width / kRegisterBytes, banks, one.addresses);
      if (lanes_) lds_registers(config, one, wave);
    }
  }

  const Scenario& scenario_;
  const CacheState& state_;
  trace::Recorder& recorder_;
  bool lanes_;
  std::int64_t reads_ = 0;  // of the tile
};

}  // namespace

StagedTile focus_tile(const Scenario& scenario, const CacheState& state, KOrV kv, std::int64_t BN) {
  const SeqIdx row = focus_row(scenario, state);
  const std::int64_t tokens = tokens_of(state, row), first = scenario.focus.tile * BN;
  if (first >= tokens) {
    reject(scenario, "$.focus.tile",
           fmt::format("{} is outside [0, {}): sequence {} has {} tokens at step {}, {} a tile", scenario.focus.tile,
                       ceil_div(tokens, BN), state.batch[static_cast<std::size_t>(row.value)].value, tokens,
                       state.step.value, BN));
  }
  return {row, LayerIdx{scenario.focus.layer}, HeadIdx{scenario.focus.head}, kv, TokIdx{first}, tokens};
}

std::int64_t tile_tokens(const Scenario& scenario, StagingPath path, KOrV kv) {
  return path == StagingPath::tma ? scenario.tile.BN : lds_params(scenario, kv).BN;
}

void record_tile(const Scenario& scenario, const CacheState& state, const TileQuestion& question,
                 trace::Recorder& recorder, TmaBoxes boxes) {
  const SeqIdx row = require_batch_row(state, question.seq);
  const std::int64_t BN = tile_tokens(scenario, question.path, question.kv), tokens = tokens_of(state, row);
  check_index("layer", question.layer.value, scenario.model.layers, "layers of the model");
  check_index("head", question.head.value, scenario.model.kv_heads, "KV heads of the model");
  check_index(fmt::format("sequence {}: tile", question.seq.value), question.tile, ceil_div(tokens, BN),
              fmt::format("it has {} tokens at step {}, {} a tile", tokens, state.step.value, BN));
  if (scenario.model.is_mla && question.kv == KOrV::v) {
    throw UnsupportedError("an MLA cache has no V: its values are the first columns of K, so stage K");
  }
  const StagedTile tile{row, question.layer, question.head, question.kv, TokIdx{question.tile * BN}, tokens};
  const DimIdx first = question.path == StagingPath::tma ? tma_depth_offset(scenario, question.dim) : DimIdx{0};
  StagingRecorder(scenario, state, true, recorder).record(question.path, tile, first, boxes);
}

void record_staging(const Scenario& scenario, const CacheState& state, trace::Recorder& recorder) {
  if (!is_wanted(scenario, recorder)) return;
  StagingRecorder staging(scenario, state, scenario.focus.staging == StagingDetail::lanes, recorder);
  staging.record(KOrV::k);
  if (!scenario.model.is_mla) staging.record(KOrV::v);
}

void record_staging(const Scenario& scenario, std::span<const Request> requests, const RunReport& report,
                    trace::Recorder& recorder) {
  if (!is_wanted(scenario, recorder) || report.steps == 0) return;
  record_staging(scenario, state_at(scenario, requests, focus_step(scenario, report)).cache, recorder);
}

}  // namespace kvscope

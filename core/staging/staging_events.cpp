#include "core/staging/staging_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

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
#include "core/staging/staged_tile.h"
#include "core/staging/tma/tma_staging.h"
#include "core/tma/box_plan.h"

namespace kvscope {
namespace {

constexpr std::int64_t kRegisterBytes = 4;
constexpr std::int64_t kRegistersOfPiece = 4;  // one ldmatrix.x4

bool is_wanted(const Scenario& scenario, const trace::Recorder& recorder) {
  return scenario.focus.staging != StagingDetail::none && recorder.wants(trace::TileOpened::kDetail);
}

[[noreturn]] void reject(const Scenario& scenario, const char* where, std::string message) {
  throw InputError("scenario '" + scenario.name + "'", where, std::move(message));
}

// focus.sequence, or the sequence with the most tokens, the first one of several.
SeqIdx focus_row(const Scenario& scenario, const CacheState& state) {
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

class StagingRecorder {
 public:
  StagingRecorder(const Scenario& scenario, const CacheState& state, trace::Recorder& recorder)
      : scenario_(scenario),
        state_(state),
        recorder_(recorder),
        lanes_(scenario.focus.staging == StagingDetail::lanes) {}

  void record(KOrV kv) {
    const AddressedCache cache(scenario_, state_, kv, LayerIdx{scenario_.focus.layer});
    if (const auto staging =
            taken([&] { return TmaStaging(scenario_, cache.cache(), tile(kv, scenario_.tile.BN), DimIdx{0}); }))
      record_tma(*staging, tile(kv, scenario_.tile.BN));
    const KVBufferParams params = lds_params(scenario_, kv);
    if (const auto staging = taken([&] { return LdsStaging(params, cache.cache(), tile(kv, params.BN)); }))
      record_lds(*staging, tile(kv, params.BN));
  }

 private:
  // Records nothing when the path does not support the tile; explain reports the reason.
  template <class Make>
  static auto taken(const Make& make) -> std::optional<decltype(make())> {
    try {
      return make();
    } catch (const GeometryError&) {
    } catch (const OverflowError&) {
    } catch (const UnsupportedError&) {
    }
    return std::nullopt;
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

  void record_tma(const TmaStaging& staging, const StagedTile& tile) {
    const KvCopy& copy = staging.copy();
    open(tile, true, staging.rows(), staging.columns(), staging.shared_bytes());
    recorder_.record(trace::BarrierExpects{0, copy.expected_bytes});
    for (std::size_t n = 0; n < copy.issues.size(); ++n) record_box(staging, static_cast<std::int64_t>(n));
    recorder_.record(trace::BarrierCompleted{0});
    if (!staging.no_fragments().empty()) return;
    for (const TmaRead& one : staging.reads()) {
      read(one.warp, one.first_register, kRegistersOfPiece, bank_report(one), one.addresses);
    }
  }

  void record_box(const TmaStaging& staging, std::int64_t n) {
    const KvCopy& copy = staging.copy();
    const KvIssue& issue = copy.issues[static_cast<std::size_t>(n)];
    const std::int64_t shared = issue.smem * copy.element_bytes;
    const std::vector<BoxChunk> chunks = box_chunks(staging.map(), issue.at, shared);
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

  void record_lds(const LdsStaging& staging, const StagedTile& tile) {
    const KVBufferConfig& config = staging.config();
    const KVBufferConstants& c = config.constants();
    const bool full_kv = config.params().full_kv;
    open(tile, false, c.BN, full_kv ? c.smem_cols : c.depth, full_kv ? c.stage_bytes : c.region_bytes);
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
        record_reads(config, full_kv ? all_reads(config, wave, stage) : block_reads(config, wave, stage, block), wave);
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

  void record_reads(const KVBufferConfig& config, const std::vector<LdsReadInstruction>& reads, WaveIdx wave) {
    const KVBufferConstants& c = config.constants();
    for (const LdsReadInstruction& one : reads) {
      if (one.zero) continue;
      const RegisterTarget& target = one.targets.front();
      const std::int64_t first = (target.row * c.input_frag_size + target.element) * c.element_bytes / kRegisterBytes;
      const BankProfile profile = bank_profile(SharedTarget::gfx950, SharedOp::read, static_cast<int>(one.width));
      const BankReport banks =
          bank_report(profile, {static_cast<int>(one.width), {one.addresses.begin(), one.addresses.end()}});
      read(wave.value, first, one.width / kRegisterBytes, banks, one.addresses);
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

void record_staging(const Scenario& scenario, const CacheState& state, trace::Recorder& recorder) {
  if (!is_wanted(scenario, recorder)) return;
  StagingRecorder staging(scenario, state, recorder);
  staging.record(KOrV::k);
  if (!scenario.model.is_mla) staging.record(KOrV::v);
}

void record_staging(const Scenario& scenario, std::span<const Request> requests, const RunReport& report,
                    trace::Recorder& recorder) {
  if (!is_wanted(scenario, recorder) || report.steps == 0) return;
  record_staging(scenario, state_at(scenario, requests, focus_step(scenario, report)).cache, recorder);
}

}  // namespace kvscope

// All events, one struct each: what happened, to which object, as plain numbers. The viewer, `trace show`, the trace
// file and the diff read only these structs, so information that is not in them cannot be shown.
//
// An event's `fields()` names its numbers once: the columns of the trace file, the text form and the diff use it.
// To add an event: one struct here, or in tile_events.h and tile_geometry_events.h for a tile; one line in `Event`.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>

#include "core/base/index.h"
#include "core/trace/event_field.h"
#include "core/trace/tile_events.h"
#include "core/trace/tile_geometry_events.h"

namespace kvscope::trace {

// --- the clock of the engine -----------------------------------------------------------------------------------------

struct StepBegan {
  static constexpr std::string_view kName = "step_began";
  static constexpr Detail kDetail = Detail::steps;
  StepIdx step;
  std::int64_t time_us = 0;  // [us] since the start of the run, under the scenario's cost model
  static constexpr auto fields() {
    return std::tuple{Field{"step", &StepBegan::step}, Field{"time_us", &StepBegan::time_us}};
  }
};

// The state at the end of a step. Every curve of a run report is a column of this event.
struct StepEnded {
  static constexpr std::string_view kName = "step_ended";
  static constexpr Detail kDetail = Detail::steps;
  StepIdx step;
  std::int64_t time_us = 0;         // [us]
  std::int64_t waiting = 0;         // requests
  std::int64_t running = 0;         // requests
  std::int64_t used_blocks = 0;     // held by at least one sequence
  std::int64_t cached_blocks = 0;   // held by no sequence, content kept for reuse
  std::int64_t free_blocks = 0;     // neither used nor cached
  std::int64_t slots_filled = 0;    // tokens stored in used blocks, a shared block counted once
  std::int64_t prefill_tokens = 0;  // computed in this step
  std::int64_t decode_tokens = 0;   // computed in this step
  std::int64_t hit_tokens = 0;      // found in the prefix cache at admission, in this step
  std::int64_t query_tokens = 0;    // looked up in the prefix cache at admission, in this step
  std::int64_t preemptions = 0;     // in this step
  std::int64_t finished = 0;        // requests, in this step
  static constexpr auto fields() {
    using E = StepEnded;
    return std::tuple{Field{"step", &E::step},
                      Field{"time_us", &E::time_us},
                      Field{"waiting", &E::waiting},
                      Field{"running", &E::running},
                      Field{"used_blocks", &E::used_blocks},
                      Field{"cached_blocks", &E::cached_blocks},
                      Field{"free_blocks", &E::free_blocks},
                      Field{"slots_filled", &E::slots_filled},
                      Field{"prefill_tokens", &E::prefill_tokens},
                      Field{"decode_tokens", &E::decode_tokens},
                      Field{"hit_tokens", &E::hit_tokens},
                      Field{"query_tokens", &E::query_tokens},
                      Field{"preemptions", &E::preemptions},
                      Field{"finished", &E::finished}};
  }
};

// --- the life of a request -------------------------------------------------------------------------------------------

struct RequestArrived {
  static constexpr std::string_view kName = "request_arrived";
  static constexpr Detail kDetail = Detail::steps;
  SeqIdx seq;
  std::int64_t prompt_tokens = 0;
  std::int64_t generate_tokens = 0;
  static constexpr auto fields() {
    using E = RequestArrived;
    return std::tuple{Field{"seq", &E::seq}, Field{"prompt_tokens", &E::prompt_tokens},
                      Field{"generate_tokens", &E::generate_tokens}};
  }
};

struct RequestAdmitted {
  static constexpr std::string_view kName = "request_admitted";
  static constexpr Detail kDetail = Detail::steps;
  SeqIdx seq;
  std::int64_t hit_tokens = 0;  // already in the cache
  static constexpr auto fields() {
    using E = RequestAdmitted;
    return std::tuple{Field{"seq", &E::seq}, Field{"hit_tokens", &E::hit_tokens}};
  }
};

// Its blocks are released; when admitted again, it is computed from its first missing token.
struct RequestPreempted {
  static constexpr std::string_view kName = "request_preempted";
  static constexpr Detail kDetail = Detail::steps;
  SeqIdx seq;
  std::int64_t tokens_lost = 0;
  static constexpr auto fields() {
    using E = RequestPreempted;
    return std::tuple{Field{"seq", &E::seq}, Field{"tokens_lost", &E::tokens_lost}};
  }
};

struct RequestFinished {
  static constexpr std::string_view kName = "request_finished";
  static constexpr Detail kDetail = Detail::steps;
  SeqIdx seq;
  std::int64_t tokens = 0;  // prompt and generated
  static constexpr auto fields() {
    using E = RequestFinished;
    return std::tuple{Field{"seq", &E::seq}, Field{"tokens", &E::tokens}};
  }
};

// A request that can never run (longer than the whole pool or the maximum sequence length), rejected at arrival.
struct RequestRefused {
  static constexpr std::string_view kName = "request_refused";
  static constexpr Detail kDetail = Detail::steps;
  SeqIdx seq;
  std::int64_t tokens = 0;  // the request would need
  std::int64_t limit = 0;   // tokens
  static constexpr auto fields() {
    using E = RequestRefused;
    return std::tuple{Field{"seq", &E::seq}, Field{"tokens", &E::tokens}, Field{"limit", &E::limit}};
  }
};

// --- blocks ----------------------------------------------------------------------------------------------------------

// A free block becomes page `page` of `seq`; its reference count is now 1.
struct BlockAllocated {
  static constexpr std::string_view kName = "block_allocated";
  static constexpr Detail kDetail = Detail::full;
  BlockIdx block;
  SeqIdx seq;
  PageIdx page;
  static constexpr auto fields() {
    using E = BlockAllocated;
    return std::tuple{Field{"block", &E::block}, Field{"seq", &E::seq}, Field{"page", &E::page}};
  }
};

// A block that already holds the right content becomes page `page` of one more sequence.
struct BlockShared {
  static constexpr std::string_view kName = "block_shared";
  static constexpr Detail kDetail = Detail::full;
  BlockIdx block;
  SeqIdx seq;
  PageIdx page;
  std::int64_t ref_count = 0;  // after
  static constexpr auto fields() {
    using E = BlockShared;
    return std::tuple{Field{"block", &E::block}, Field{"seq", &E::seq}, Field{"page", &E::page},
                      Field{"ref_count", &E::ref_count}};
  }
};

// Copy-on-write: before `seq` writes into a block that other sequences also read, it gets a separate copy.
struct BlockCopied {
  static constexpr std::string_view kName = "block_copied";
  static constexpr Detail kDetail = Detail::full;
  BlockIdx from;
  BlockIdx to;
  SeqIdx seq;
  PageIdx page;
  std::int64_t tokens = 0;  // copied
  static constexpr auto fields() {
    using E = BlockCopied;
    return std::tuple{Field{"from", &E::from}, Field{"to", &E::to}, Field{"seq", &E::seq}, Field{"page", &E::page},
                      Field{"tokens", &E::tokens}};
  }
};

// A sequence releases a block. At ref_count 0 the block becomes free, or cached when its content can be found again.
struct BlockReleased {
  static constexpr std::string_view kName = "block_released";
  static constexpr Detail kDetail = Detail::full;
  BlockIdx block;
  SeqIdx seq;
  PageIdx page;
  std::int64_t ref_count = 0;  // after
  bool cached = false;
  static constexpr auto fields() {
    using E = BlockReleased;
    return std::tuple{Field{"block", &E::block}, Field{"seq", &E::seq}, Field{"page", &E::page},
                      Field{"ref_count", &E::ref_count}, Field{"cached", &E::cached}};
  }
};

// The least recently used cached block loses its content so that its slot can be used again.
struct BlockEvicted {
  static constexpr std::string_view kName = "block_evicted";
  static constexpr Detail kDetail = Detail::full;
  BlockIdx block;
  static constexpr auto fields() { return std::tuple{Field{"block", &BlockEvicted::block}}; }
};

// --- tokens ----------------------------------------------------------------------------------------------------------

// Tokens [first_token, first_token + tokens) of `seq` were computed and stored; they never cross a page.
struct TokensWritten {
  static constexpr std::string_view kName = "tokens_written";
  static constexpr Detail kDetail = Detail::full;
  SeqIdx seq;
  TokIdx first_token;
  std::int64_t tokens = 0;
  BlockIdx block;
  std::int64_t slot = 0;  // of the first token, in the block
  bool decode = false;    // false: prefill
  static constexpr auto fields() {
    using E = TokensWritten;
    return std::tuple{Field{"seq", &E::seq},       Field{"first_token", &E::first_token},
                      Field{"tokens", &E::tokens}, Field{"block", &E::block},
                      Field{"slot", &E::slot},     Field{"decode", &E::decode}};
  }
};

using Event = std::variant<StepBegan, StepEnded, RequestArrived, RequestAdmitted, RequestPreempted, RequestFinished,
                           RequestRefused, BlockAllocated, BlockShared, BlockCopied, BlockReleased, BlockEvicted,
                           TokensWritten, TileOpened, BarrierExpects, BoxCopied, BarrierCompleted, LdsCopied,
                           WaveWaited, FragmentRead, ChunkLanded, LaneRead, TileMemory, TilePage, TileMap, TileShared,
                           TileFragments, BankPhase, RegisterFilled, OperandRead, OperandChunk>;

}  // namespace kvscope::trace

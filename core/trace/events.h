// All events, one struct each: what happened, to which object, as plain numbers. The viewer, `trace show`, the trace
// file and the diff read only these structs, so information that is not in them cannot be shown.
//
// An event's `fields()` names its numbers once: the columns of the trace file, the text form and the diff use it.
// To add an event: one struct here, one line in `Event`.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>

#include "core/base/index.h"

namespace kvscope::trace {

// How much is recorded. `steps` keeps the start and end of engine steps and the events of requests;
// `full` adds what happened to every block and token.
enum class Detail : std::uint8_t { off, steps, full };

template <class Event, class Member>
struct Field {
  std::string_view name;
  Member Event::*member;
};
template <class Event, class Member>
Field(const char*, Member Event::*) -> Field<Event, Member>;

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

// --- one tile through shared memory into registers -------------------------------------------------------------------

// The accesses of a kernel to one tile of the cache as it is after the focus step. Recorded after the last step, in the
// detail of focus.staging. A tile is opened, filled by copies, waited for and read; events up to the next tile_opened
// belong to it.

struct TileOpened {
  static constexpr std::string_view kName = "tile_opened";
  static constexpr Detail kDetail = Detail::full;
  StepIdx step;  // the cache is that after this step
  SeqIdx seq;
  LayerIdx layer;
  HeadIdx head;              // of K and V
  bool value = false;        // false: K
  bool tma = false;          // false: through LDS, by waves
  TokIdx first_token;        // of row 0
  std::int64_t rows = 0;     // of the tile
  std::int64_t tokens = 0;   // rows that hold a token
  std::int64_t columns = 0;  // elements of a row
  std::int64_t bytes = 0;    // of shared memory
  static constexpr auto fields() {
    using E = TileOpened;
    return std::tuple{Field{"step", &E::step},
                      Field{"seq", &E::seq},
                      Field{"layer", &E::layer},
                      Field{"head", &E::head},
                      Field{"value", &E::value},
                      Field{"tma", &E::tma},
                      Field{"first_token", &E::first_token},
                      Field{"rows", &E::rows},
                      Field{"tokens", &E::tokens},
                      Field{"columns", &E::columns},
                      Field{"bytes", &E::bytes}};
  }
};

// A thread announces to the arrival barrier how many bytes the copies of this phase will bring, and arrives.
struct BarrierExpects {
  static constexpr std::string_view kName = "barrier_expects";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t phase = 0;
  std::int64_t bytes = 0;
  static constexpr auto fields() {
    using E = BarrierExpects;
    return std::tuple{Field{"phase", &E::phase}, Field{"bytes", &E::bytes}};
  }
};

// One TMA instruction copied one box; out-of-bounds elements were filled with zeros.
struct BoxCopied {
  static constexpr std::string_view kName = "box_copied";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t copy = 0;      // its number in the tile, in issue order
  std::int64_t sub_tile = 0;  // which of the tile's pages, from 0
  std::int64_t column = 0;    // first element of a row that it copies
  std::int64_t row = 0;       // coordinate of its first row in the map
  std::int64_t shared = 0;    // [bytes] offset of its first byte
  std::int64_t bytes = 0;     // credited to the barrier, fill included
  std::int64_t filled = 0;    // [bytes] of these that were out of bounds
  static constexpr auto fields() {
    using E = BoxCopied;
    return std::tuple{Field{"copy", &E::copy},    Field{"sub_tile", &E::sub_tile}, Field{"column", &E::column},
                      Field{"row", &E::row},      Field{"shared", &E::shared},     Field{"bytes", &E::bytes},
                      Field{"filled", &E::filled}};
  }
};

// All bytes of the phase have landed and all threads have arrived: waiting threads may read.
struct BarrierCompleted {
  static constexpr std::string_view kName = "barrier_completed";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t phase = 0;
  static constexpr auto fields() { return std::tuple{Field{"phase", &BarrierCompleted::phase}}; }
};

// One copy instruction of one wave: 16 bytes per lane from DRAM to LDS. Rows past the end of the tile become zeros.
struct LdsCopied {
  static constexpr std::string_view kName = "lds_copied";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t copy = 0;  // its number in the tile, wave by wave
  std::int64_t wave = 0;
  std::int64_t stage = 0;
  std::int64_t shared = 0;      // [bytes] destination of lane 0; that of lane l is 16 * l further
  std::int64_t zero_lanes = 0;  // lanes that wrote zeros
  static constexpr auto fields() {
    using E = LdsCopied;
    return std::tuple{Field{"copy", &E::copy}, Field{"wave", &E::wave}, Field{"stage", &E::stage},
                      Field{"shared", &E::shared}, Field{"zero_lanes", &E::zero_lanes}};
  }
};

// A wave waits until at most `allowed` of its copies are in flight (s_waitcnt vmcnt).
struct WaveWaited {
  static constexpr std::string_view kName = "wave_waited";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t wave = 0;
  std::int64_t outstanding = 0;  // before
  std::int64_t allowed = 0;
  static constexpr auto fields() {
    using E = WaveWaited;
    return std::tuple{Field{"wave", &E::wave}, Field{"outstanding", &E::outstanding}, Field{"allowed", &E::allowed}};
  }
};

// One load instruction of one wave or warp: from shared memory into registers of all its lanes.
struct FragmentRead {
  static constexpr std::string_view kName = "fragment_read";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t read = 0;  // its number in the tile
  std::int64_t wave = 0;
  std::int64_t first_register = 0;  // 32-bit, of every lane
  std::int64_t registers = 0;
  std::int64_t cycles = 0;     // wavefronts
  std::int64_t conflicts = 0;  // of these, wavefronts due to bank conflicts
  static constexpr auto fields() {
    using E = FragmentRead;
    return std::tuple{
        Field{"read", &E::read},           Field{"wave", &E::wave},     Field{"first_register", &E::first_register},
        Field{"registers", &E::registers}, Field{"cycles", &E::cycles}, Field{"conflicts", &E::conflicts}};
  }
};

// focus.staging = lanes: source and destination of 16 bytes of a copy.
struct ChunkLanded {
  static constexpr std::string_view kName = "chunk_landed";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t copy = 0;
  std::int64_t row = 0;     // of the tile
  std::int64_t column = 0;  // first element
  std::int64_t pool = 0;    // [bytes] from the start of the pool, as explain counts; -1: filled with zeros
  std::int64_t shared = 0;  // [bytes]
  static constexpr auto fields() {
    using E = ChunkLanded;
    return std::tuple{Field{"copy", &E::copy}, Field{"row", &E::row}, Field{"column", &E::column},
                      Field{"pool", &E::pool}, Field{"shared", &E::shared}};
  }
};

// focus.staging = lanes: the address that one lane requested from shared memory. The instruction may give the data to
// other lanes of the wave.
struct LaneRead {
  static constexpr std::string_view kName = "lane_read";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t read = 0;
  std::int64_t lane = 0;
  std::int64_t shared = 0;  // [bytes]
  static constexpr auto fields() {
    using E = LaneRead;
    return std::tuple{Field{"read", &E::read}, Field{"lane", &E::lane}, Field{"shared", &E::shared}};
  }
};

// --- the geometry of a tile: focus.staging = lanes, right after tile_opened ------------------------------------------

// How the pool that the tile comes from is laid out: [block, K or V, layer, slot, head, column].
struct TileMemory {
  static constexpr std::string_view kName = "tile_memory";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t kinds = 0;          // 2: K and V; 1: the one tensor of an MLA cache
  std::int64_t layers = 0;         // of the pool
  std::int64_t page_size = 0;      // [tokens] of a block
  std::int64_t heads = 0;          // of K and V
  std::int64_t head_size = 0;      // [elements]
  std::int64_t element_bytes = 0;  // 1, 2 or 4
  std::int64_t stride = 0;         // [rows] from a block to the next, in the 4-D view of one layer's K or V
  std::int64_t first_column = 0;   // of the head: column 0 of the tile
  static constexpr auto fields() {
    using E = TileMemory;
    return std::tuple{Field{"kinds", &E::kinds},         Field{"layers", &E::layers},
                      Field{"page_size", &E::page_size}, Field{"heads", &E::heads},
                      Field{"head_size", &E::head_size}, Field{"element_bytes", &E::element_bytes},
                      Field{"stride", &E::stride},       Field{"first_column", &E::first_column}};
  }
};

// A page that the tile's tokens are in, in order.
struct TilePage {
  static constexpr std::string_view kName = "tile_page";
  static constexpr Detail kDetail = Detail::full;
  PageIdx page;  // of the sequence
  BlockIdx block;
  std::int64_t row = 0;   // of the view: its slot 0
  std::int64_t pool = 0;  // [bytes] from the start of the pool: column 0 of the tile in slot 0
  static constexpr auto fields() {
    using E = TilePage;
    return std::tuple{Field{"page", &E::page}, Field{"block", &E::block}, Field{"row", &E::row},
                      Field{"pool", &E::pool}};
  }
};

// TMA only: the tensor map, and the box that one instruction copies.
struct TileMap {
  static constexpr std::string_view kName = "tile_map";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t columns = 0;  // [elements] of the map
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t box_columns = 0;  // [elements]
  std::int64_t box_heads = 0;
  std::int64_t box_rows = 0;
  static constexpr auto fields() {
    using E = TileMap;
    return std::tuple{Field{"columns", &E::columns},     Field{"heads", &E::heads},
                      Field{"rows", &E::rows},           Field{"box_columns", &E::box_columns},
                      Field{"box_heads", &E::box_heads}, Field{"box_rows", &E::box_rows}};
  }
};

// The tile in shared memory: bands of columns one after the other, each of `rows` rows of `row_bytes` bytes. The
// swizzle acts on byte offsets: Swizzle(bits, base, shift) of core/layout/swizzle.h; bits 0: none.
// Example: 64 x 128 bf16 with the 128-byte swizzle: 2 bands of 64 rows of 128 B, (3,4,3).
struct TileShared {
  static constexpr std::string_view kName = "tile_shared";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t rows = 0;       // of a band
  std::int64_t row_bytes = 0;  // of a band
  std::int64_t swizzle_bits = 0;
  std::int64_t swizzle_base = 0;
  std::int64_t swizzle_shift = 0;
  std::int64_t banks = 0;   // of 4 bytes
  std::int64_t stages = 0;  // of the buffer; TMA: 1
  static constexpr auto fields() {
    using E = TileShared;
    return std::tuple{Field{"rows", &E::rows},
                      Field{"row_bytes", &E::row_bytes},
                      Field{"swizzle_bits", &E::swizzle_bits},
                      Field{"swizzle_base", &E::swizzle_base},
                      Field{"swizzle_shift", &E::swizzle_shift},
                      Field{"banks", &E::banks},
                      Field{"stages", &E::stages}};
  }
};

// What reads shared memory into registers. none: `Unread` gives the reason. A trace may hold other numbers.
enum class ReadInstruction : std::int64_t {
  none,
  ldmatrix,        // ldmatrix.x4
  ldmatrix_trans,  // ldmatrix.x4.trans
  ds_read_b128,
  ds_read_tr_b16,  // ds_read_b64_tr_b16
  ds_read_tr_b8,   // ds_read_b64_tr_b8
};
enum class Unread : std::int64_t {
  read,          // it is read
  element_bits,  // the matrix instruction takes elements of 8 and 16 bits only
  whole_pieces,  // the tile is no whole number of the pieces that one instruction reads
};

// The registers that the tile goes to, and the matrix instruction that they feed.
struct TileFragments {
  static constexpr std::string_view kName = "tile_fragments";
  static constexpr Detail kDetail = Detail::full;
  ReadInstruction instruction = ReadInstruction::none;
  Unread unread = Unread::read;
  std::int64_t mma_m = 0, mma_n = 0, mma_k = 0;
  std::int64_t width = 0;      // [bytes] that a lane asks for in one read
  std::int64_t lanes = 0;      // of a warp or wave
  std::int64_t warps = 0;      // that read; TMA: 1 stands for every warp, more share a k-step
  std::int64_t registers = 0;  // 32-bit, of one lane, in one k-step
  std::int64_t steps = 0;      // k-steps; 1: the whole tile at once
  static constexpr auto fields() {
    using E = TileFragments;
    return std::tuple{Field{"instruction", &E::instruction},
                      Field{"unread", &E::unread},
                      Field{"mma_m", &E::mma_m},
                      Field{"mma_n", &E::mma_n},
                      Field{"mma_k", &E::mma_k},
                      Field{"width", &E::width},
                      Field{"lanes", &E::lanes},
                      Field{"warps", &E::warps},
                      Field{"registers", &E::registers},
                      Field{"steps", &E::steps}};
  }
};

// Lanes whose requests one read serves together: a bank gives one 32-bit word a cycle to all of them.
struct BankPhase {
  static constexpr std::string_view kName = "bank_phase";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t phase = 0;       // in the order of service
  std::int64_t lanes_low = 0;   // bit l: lane l
  std::int64_t lanes_high = 0;  // bit l: lane 32 + l
  static constexpr auto fields() {
    using E = BankPhase;
    return std::tuple{Field{"phase", &E::phase}, Field{"lanes_low", &E::lanes_low},
                      Field{"lanes_high", &E::lanes_high}};
  }
};

// focus.staging = lanes, after the lane_read events of the read: elements of the tile that it put into one register of
// one lane. Registers of 16-bit elements hold two, of 8-bit elements four; where these are not neighbours in the tile,
// a register has several of these events.
struct RegisterFilled {
  static constexpr std::string_view kName = "register_filled";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t read = 0;
  std::int64_t step = 0;  // k-step
  std::int64_t lane = 0;
  std::int64_t index = 0;     // 32-bit register
  std::int64_t bit = 0;       // of the register, where the first element begins
  std::int64_t row = 0;       // of the tile: the first element
  std::int64_t column = 0;    // of the tile
  std::int64_t elements = 0;  // one behind the other from `bit` on
  bool down = false;          // false: they are neighbours in a row of the tile, true: in a column
  static constexpr auto fields() {
    using E = RegisterFilled;
    return std::tuple{Field{"read", &E::read},     Field{"step", &E::step},         Field{"lane", &E::lane},
                      Field{"index", &E::index},   Field{"bit", &E::bit},           Field{"row", &E::row},
                      Field{"column", &E::column}, Field{"elements", &E::elements}, Field{"down", &E::down}};
  }
};

using Event = std::variant<StepBegan, StepEnded, RequestArrived, RequestAdmitted, RequestPreempted, RequestFinished,
                           RequestRefused, BlockAllocated, BlockShared, BlockCopied, BlockReleased, BlockEvicted,
                           TokensWritten, TileOpened, BarrierExpects, BoxCopied, BarrierCompleted, LdsCopied,
                           WaveWaited, FragmentRead, ChunkLanded, LaneRead, TileMemory, TilePage, TileMap, TileShared,
                           TileFragments, BankPhase, RegisterFilled>;

// Converts every number of an event to or from 64 bits, in the order of fields(); used by files and diffs.
template <class Number>
[[nodiscard]] constexpr std::int64_t to_i64(Number x) {
  if constexpr (requires { x.value; }) {
    return static_cast<std::int64_t>(x.value);
  } else {
    return static_cast<std::int64_t>(x);
  }
}
template <class Number>
constexpr void from_i64(Number& x, std::int64_t bits) {
  if constexpr (requires { x.value; }) {
    x = Number(static_cast<typename Number::rep>(bits));
  } else {
    x = static_cast<Number>(bits);
  }
}

}  // namespace kvscope::trace

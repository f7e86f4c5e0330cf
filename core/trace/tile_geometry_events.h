// Events that describe the shapes of a tile: the pool, the tensor map, shared memory, registers, and the operand that a
// matrix instruction reads by itself. events.h has the list of all kinds.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "core/base/index.h"
#include "core/trace/event_field.h"

namespace kvscope::trace {

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
// swizzle acts on byte offsets: Swizzle(bits, base, shift) of core/layout/swizzle.h; bits 0: none, -1: unknown, with
// rows that are lines of all banks.
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
  ld_shared,       // ld.shared, `width` bytes a lane
  wgmma,           // operand_read: no register takes it
  several,         // reads of different kinds: their lanes have no common groups
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
  std::int64_t warps = 0;      // that read; TMA: 1 means all warps, more share a k-step
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
// one lane. Registers of 16-bit elements hold two, of 8-bit elements four; where these are not neighbors in the tile,
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
  bool down = false;          // false: they are neighbors in a row of the tile, true: in a column
  static constexpr auto fields() {
    using E = RegisterFilled;
    return std::tuple{Field{"read", &E::read},     Field{"step", &E::step},         Field{"lane", &E::lane},
                      Field{"index", &E::index},   Field{"bit", &E::bit},           Field{"row", &E::row},
                      Field{"column", &E::column}, Field{"elements", &E::elements}, Field{"down", &E::down}};
  }
};

// A matrix instruction that reads an operand from shared memory by itself (wgmma), through a descriptor. It counts as
// a read: it has a number among the fragment_read events, and takes no register of the tile.
// Example: 64 keys x 16 dims of bf16 in 128-byte rows: start 0, leading 16, stride 1024, span 128, lines 64, depth 16.
struct OperandRead {
  static constexpr std::string_view kName = "operand_read";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t read = 0;
  std::int64_t wave = 0;     // the first warp of the warpgroup
  std::int64_t operand = 0;  // 0: A, 1: B
  std::int64_t start = 0;    // [bytes] from the tile's byte 0
  std::int64_t leading = 0;  // [bytes] between core matrices along one direction; see docs/14_fragments.md
  std::int64_t stride = 0;   // [bytes] along the other
  std::int64_t span = 0;     // [bytes] of the swizzle: 0, 32, 64 or 128
  bool mn_major = false;     // false: elements of one k-row are neighbors (K-major)
  std::int64_t lines = 0;    // rows of A or columns of B
  std::int64_t depth = 0;    // elements along k
  static constexpr auto fields() {
    using E = OperandRead;
    return std::tuple{Field{"read", &E::read},   Field{"wave", &E::wave},         Field{"operand", &E::operand},
                      Field{"start", &E::start}, Field{"leading", &E::leading},   Field{"stride", &E::stride},
                      Field{"span", &E::span},   Field{"mn_major", &E::mn_major}, Field{"lines", &E::lines},
                      Field{"depth", &E::depth}};
  }
};

// With lanes, after the operand_read: where 16 bytes of the operand are. Eight of these, side by side across the
// contiguous direction, are a core matrix.
struct OperandChunk {
  static constexpr std::string_view kName = "operand_chunk";
  static constexpr Detail kDetail = Detail::full;
  std::int64_t read = 0;
  std::int64_t line = 0;    // row of A or column of B of the first element
  std::int64_t k = 0;       // of the first element
  std::int64_t shared = 0;  // [bytes] with the swizzle
  static constexpr auto fields() {
    using E = OperandChunk;
    return std::tuple{Field{"read", &E::read}, Field{"line", &E::line}, Field{"k", &E::k}, Field{"shared", &E::shared}};
  }
};

}  // namespace kvscope::trace

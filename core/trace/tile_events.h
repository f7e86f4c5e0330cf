// Events of one tile on its way through shared memory into registers: copies, waits and reads. events.h has the list of
// all kinds, tile_geometry_events.h the shapes that these numbers belong to.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "core/base/index.h"
#include "core/trace/event_field.h"

namespace kvscope::trace {

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

}  // namespace kvscope::trace

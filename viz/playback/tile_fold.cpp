#include "viz/playback/tile_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "core/trace/event_text.h"

namespace kvscope::viz {
namespace {

[[noreturn]] void reject_tile(std::int64_t event, const std::string& why) {
  throw InputError("trace", fmt::format("tile, event {}", event), why);
}

constexpr std::int64_t kMostLanes = 128;      // of a warpgroup
constexpr std::int64_t kMostReadBytes = 256;  // of one lane, in one read
constexpr std::int64_t kMostTileBytes = kMostTileElements * kTileChunkBytes;
constexpr std::int64_t kMostTilePages = std::int64_t{1} << 31;  // of a sequence

// A byte of shared memory, from the start of the tile.
bool is_shared(std::int64_t byte) {
  return byte >= 0 && byte <= kMostTileBytes;
}

// Lists of item numbers by key, one behind the other: list k is [first[k], first[k + 1]).
template <class KeysOf>
void fill_lists(std::int64_t keys, std::int64_t items, const KeysOf& keys_of, std::vector<std::int32_t>& first,
                std::vector<std::int32_t>& lists) {
  first.assign(static_cast<std::size_t>(keys) + 1, 0);
  for (std::int64_t item = 0; item < items; ++item) {
    keys_of(item, [&](std::int64_t key) { ++first[static_cast<std::size_t>(key) + 1]; });
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  lists.resize(static_cast<std::size_t>(first.back()));
  std::vector<std::int32_t> next(first.begin(), first.end() - 1);
  for (std::int64_t item = 0; item < items; ++item) {
    keys_of(item, [&](std::int64_t key) {
      lists[static_cast<std::size_t>(next[static_cast<std::size_t>(key)]++)] = static_cast<std::int32_t>(item);
    });
  }
}

}  // namespace

// Reads the events once, then builds the tables that answer which chunk and which register an element is in.
class TileFolder {
 public:
  Tile fold(std::span<const trace::Event> events) {
    if (events.empty() || !std::holds_alternative<trace::TileOpened>(events.front())) {
      reject_tile(0, "a tile begins with tile_opened");
    }
    for (const trace::Event& event : events) {
      check_numbers(event);
      std::visit(*this, event);
      ++at_;
    }
    static std::atomic<std::uint64_t> folds = 0;
    tile_.serial = ++folds;
    tile_.events = at_;
    close_action();
    measure();
    index_chunks();
    index_fills();
    place_operands();
    return std::move(tile_);
  }

  // Events of the cache are not the tile's.
  template <class E>
  void operator()(const E&) {
    reject_tile(at_, fmt::format("{} is not an event of a tile", E::kName));
  }

  void operator()(const trace::TileOpened& e) {
    if (at_ != 0) reject_tile(at_, "tile_opened begins another tile");
    if (e.rows < 0 || e.columns < 0 || e.bytes < 0 || e.rows > kMostTileElements || e.columns > kMostTileElements ||
        e.rows * e.columns > kMostTileElements || e.bytes > kMostTileElements * 8) {
      reject_tile(at_, fmt::format("{} x {} elements and {} bytes cannot be shown: at most {} elements", e.rows,
                                   e.columns, e.bytes, kMostTileElements));
    }
    if (e.seq.value < 0 || e.layer.value < 0 || e.head.value < 0 || e.first_token.value < 0) {
      reject_tile(at_, fmt::format("sequence {}, layer {}, head {}, token {}: an index is below 0", e.seq.value,
                                   e.layer.value, e.head.value, e.first_token.value));
    }
    if (e.tokens < 0 || e.tokens > kMostTileElements) {
      reject_tile(at_, fmt::format("{} tokens are outside [0, {}]", e.tokens, kMostTileElements));
    }
    tile_.opened = e;
    begin(TileAction::Kind::open, 0);
  }
  void operator()(const trace::TileMemory& e) {
    if (e.page_size < 1 || e.page_size > kMostTileElements || e.element_bytes < 1 ||
        e.element_bytes > kTileChunkBytes) {
      reject_tile(at_,
                  fmt::format("pages of {} tokens of {} bytes an element do not exist", e.page_size, e.element_bytes));
    }
    tile_.memory = e;
  }
  void operator()(const trace::TilePage& e) {
    if (e.page.value < 0 || e.page.value > kMostTilePages) {
      reject_tile(at_, fmt::format("page {} is outside [0, {}]", e.page.value, kMostTilePages));
    }
    tile_.pages.push_back(e);
  }
  void operator()(const trace::TileMap& e) {
    for (const std::int64_t side : {e.box_columns, e.box_heads, e.box_rows}) {
      if (side >= 0 && side <= kMostTileElements) continue;
      reject_tile(at_, fmt::format("a box of {} x {} x {} cannot be shown: a side is outside [0, {}]", e.box_columns,
                                   e.box_heads, e.box_rows, kMostTileElements));
    }
    tile_.map = e;
  }
  void operator()(const trace::TileShared& e) {
    if (e.swizzle_bits < -1 || e.swizzle_base < 0 || e.swizzle_shift < e.swizzle_bits || e.swizzle_bits > 16 ||
        e.swizzle_base > 16 || e.swizzle_shift > 16) {
      reject_tile(at_,
                  fmt::format("swizzle ({},{},{}) does not exist", e.swizzle_bits, e.swizzle_base, e.swizzle_shift));
    }
    if (e.row_bytes < 1 || e.row_bytes > kMostTileBytes || e.rows < 1 || e.rows > kMostTileElements || e.banks < 1 ||
        e.banks > 1024) {
      reject_tile(at_, fmt::format("{} rows of {} bytes over {} banks do not exist", e.rows, e.row_bytes, e.banks));
    }
    tile_.shared = e;
  }
  void operator()(const trace::TileFragments& e) {
    if (e.width < 0 || e.width > kMostReadBytes || e.lanes < 0 || e.lanes > kMostLanes) {
      reject_tile(at_, fmt::format("{} lanes that ask for {} bytes do not exist: at most {} lanes and {} bytes",
                                   e.lanes, e.width, kMostLanes, kMostReadBytes));
    }
    tile_.fragments = e;
  }
  void operator()(const trace::BankPhase& e) { tile_.phases.push_back(e); }

  void operator()(const trace::BarrierExpects& e) {
    require_path(true, trace::BarrierExpects::kName);
    if (e.bytes < 0 || e.bytes > kMostTileBytes) {
      reject_tile(at_, fmt::format("{} expected bytes are outside [0, {}]", e.bytes, kMostTileBytes));
    }
    begin(TileAction::Kind::expect, std::ssize(tile_.expects));
    tile_.expects.push_back(e);
    tile_.expect_events.push_back(at_);
  }
  void operator()(const trace::BarrierCompleted&) {
    require_path(true, trace::BarrierCompleted::kName);
    begin(TileAction::Kind::complete, std::ssize(tile_.complete_events));
    tile_.complete_events.push_back(at_);
  }
  void operator()(const trace::WaveWaited& e) {
    require_path(false, trace::WaveWaited::kName);
    begin(TileAction::Kind::wait, std::ssize(tile_.waits));
    tile_.waits.push_back({wave(e.wave), e.outstanding, e.allowed, at_});
  }
  void operator()(const trace::BoxCopied& e) {
    require_path(true, trace::BoxCopied::kName);
    for (const std::int64_t number : {e.sub_tile, e.bytes, e.filled}) {
      if (number >= 0 && number <= kMostTileBytes) continue;
      reject_tile(at_,
                  fmt::format("sub-tile {} of {} bytes, {} of them zeros, cannot be shown: a number is outside [0, {}]",
                              e.sub_tile, e.bytes, e.filled, kMostTileBytes));
    }
    TileCopy copy;
    copy.number = e.copy;
    copy.sub_tile = e.sub_tile;
    copy.column = e.column;
    copy.row = e.row;
    copy.shared = e.shared;
    copy.bytes = e.bytes;
    copy.filled = e.filled;
    add(copy);
  }
  void operator()(const trace::LdsCopied& e) {
    require_path(false, trace::LdsCopied::kName);
    TileCopy copy;
    copy.number = e.copy;
    copy.wave = wave(e.wave);
    copy.stage = e.stage;
    copy.shared = e.shared;
    const std::int64_t lanes = tile_.fragments && tile_.fragments->lanes > 0 ? tile_.fragments->lanes : 64;
    copy.bytes = lanes * kTileChunkBytes;
    copy.filled = e.zero_lanes * kTileChunkBytes;
    add(copy);
  }
  void operator()(const trace::ChunkLanded& e) {
    if (tile_.copies.empty() || tile_.copies.back().number != e.copy) {
      reject_tile(at_, fmt::format("chunk_landed of copy {} is not behind that copy", e.copy));
    }
    const bool named = e.row >= 0 && e.column >= 0;
    if (!is_shared(e.shared) || (named && e.row >= tile_.rows())) {
      reject_tile(at_, fmt::format("row {}, shared byte {} are outside the tile", e.row, e.shared));
    }
    ++tile_.copies.back().chunks;
    tile_.chunks.push_back({std::ssize(tile_.copies) - 1, e.row, e.column, e.pool, e.shared, at_});
  }
  void operator()(const trace::FragmentRead& e) {
    begin(TileAction::Kind::read, std::ssize(tile_.reads));
    TileRead read;
    read.number = e.read;
    read.wave = wave(e.wave);
    read.first_register = e.first_register;
    read.registers = e.registers;
    read.cycles = e.cycles;
    read.conflicts = e.conflicts;
    read.event = at_;
    read.first_lane = std::ssize(tile_.lane_reads);
    read.first_fill = std::ssize(tile_.fills);
    tile_.reads.push_back(read);
  }
  void operator()(const trace::LaneRead& e) {
    TileRead& read = read_of(e.read, "lane_read");
    if (!is_shared(e.shared)) reject_tile(at_, fmt::format("shared byte {} is outside the tile", e.shared));
    ++read.lanes;
    tile_.lane_reads.push_back({std::ssize(tile_.reads) - 1, lane(e.lane), e.shared, at_});
  }
  void operator()(const trace::OperandRead& e) {
    if (e.lines < 1 || e.lines > 256 || e.depth < 1 || e.depth > 256 || e.operand < 0 || e.operand > 1) {
      reject_tile(at_, fmt::format("operand {} of {} lines x {} elements does not exist", e.operand, e.lines, e.depth));
    }
    begin(TileAction::Kind::read, std::ssize(tile_.reads));
    TileRead read;
    read.number = e.read;
    read.wave = wave(e.wave);
    read.event = at_;
    read.first_lane = std::ssize(tile_.lane_reads);
    read.first_fill = std::ssize(tile_.fills);
    read.operand = std::ssize(tile_.operands);
    tile_.operands.push_back({e, std::ssize(tile_.reads), std::ssize(tile_.operand_chunks), 0});
    tile_.reads.push_back(read);
  }
  void operator()(const trace::OperandChunk& e) {
    const TileRead& read = read_of(e.read, "operand_chunk");
    if (read.operand < 0) reject_tile(at_, fmt::format("operand_chunk of read {}, which has no operand", e.read));
    if (e.line < 0 || e.k < 0 || !is_shared(e.shared)) {
      reject_tile(at_, fmt::format("line {}, k {}, shared byte {} do not exist", e.line, e.k, e.shared));
    }
    ++tile_.operands.back().chunks;
    tile_.operand_chunks.push_back({e.line, e.k, e.shared, at_});
  }
  void operator()(const trace::RegisterFilled& e) {
    TileRead& read = read_of(e.read, "register_filled");
    const std::int64_t down = e.down ? e.elements - 1 : 0, along = e.down ? 0 : e.elements - 1;
    if (e.row < 0 || e.column < 0 || e.elements < 1 || e.elements > 32 || e.row + down >= tile_.rows() ||
        e.column + along >= tile_.columns()) {
      reject_tile(at_, fmt::format("{} elements from row {}, column {} on are outside the tile of {} x {}", e.elements,
                                   e.row, e.column, tile_.rows(), tile_.columns()));
    }
    if (e.step < 0 || e.index < 0 || e.bit < 0 || e.bit > 31) {
      reject_tile(at_, fmt::format("bit {} of register {} in k-step {} does not exist", e.bit, e.index, e.step));
    }
    const std::int64_t end_row = e.row + down + 1, end_column = e.column + along + 1;
    if (read.fills == 0) {
      read.row = e.row, read.rows = end_row - e.row, read.column = e.column, read.columns = end_column - e.column;
      read.step = e.step;
    } else {
      const std::int64_t last_row = std::max(read.row + read.rows, end_row);
      const std::int64_t last_column = std::max(read.column + read.columns, end_column);
      read.row = std::min(read.row, e.row), read.column = std::min(read.column, e.column);
      read.rows = last_row - read.row, read.columns = last_column - read.column;
    }
    ++read.fills;
    tile_.fills.push_back({std::ssize(tile_.reads) - 1,
                           {read.wave, lane(e.lane), e.index, e.step},
                           e.bit,
                           e.row,
                           e.column,
                           e.elements,
                           e.down,
                           at_});
  }

 private:
  void check_numbers(const trace::Event& event) const {
    std::array<std::int64_t, trace::kMaxFields> numbers{};
    const std::size_t fields = trace::field_values(event, numbers);
    for (std::size_t field = 0; field < fields; ++field) {
      if (numbers[field] >= -kMostTileNumber && numbers[field] <= kMostTileNumber) continue;
      reject_tile(at_, fmt::format("{} {} cannot be shown: it is outside [-2^48, 2^48]",
                                   trace::field_names(event.index())[field], numbers[field]));
    }
  }
  void require_path(bool tma, std::string_view event) const {
    if (tile_.tma() == tma) return;
    reject_tile(at_, fmt::format("{} is not an event of a tile {}", event, tma ? "by waves" : "by TMA"));
  }
  void begin(TileAction::Kind kind, std::int64_t index) {
    close_action();
    tile_.actions.push_back({kind, index, at_, at_});
  }
  void close_action() {
    if (!tile_.actions.empty()) tile_.actions.back().end = at_;
  }
  void add(TileCopy copy) {
    begin(TileAction::Kind::copy, std::ssize(tile_.copies));
    copy.event = at_;
    copy.first_chunk = std::ssize(tile_.chunks);
    tile_.copies.push_back(copy);
  }
  std::int64_t wave(std::int64_t number) {
    if (number < 0 || number >= 1024) reject_tile(at_, fmt::format("wave {} is outside [0, 1024)", number));
    tile_.waves_ = std::max(tile_.waves_, number + 1);
    return number;
  }
  std::int64_t lane(std::int64_t number) const {
    if (number < 0 || number >= kMostLanes) {
      reject_tile(at_, fmt::format("lane {} is outside [0, {})", number, kMostLanes));
    }
    return number;
  }
  TileRead& read_of(std::int64_t number, const char* what) {
    if (tile_.reads.empty() || tile_.reads.back().number != number) {
      reject_tile(at_, fmt::format("{} of read {} is not behind that read", what, number));
    }
    return tile_.reads.back();
  }

  // The size of an element: the geometry has it; without one, columns of adjacent chunks differ by 16 bytes.
  void measure() {
    std::int64_t apart = 0;
    for (const TileChunk& chunk : tile_.chunks) apart = std::gcd(apart, std::max<std::int64_t>(chunk.column, 0));
    if (tile_.memory) {
      tile_.element_bytes_ = tile_.memory->element_bytes;
    } else if (apart > 0 && apart <= kTileChunkBytes) {
      tile_.element_bytes_ = kTileChunkBytes / apart;
    }
    if (tile_.element_bytes_ > 0) tile_.chunk_columns_ = kTileChunkBytes / tile_.element_bytes_;
  }

  void index_chunks() {
    std::int64_t end = 0;
    for (const TileChunk& chunk : tile_.chunks) end = std::max(end, chunk.shared + kTileChunkBytes);
    tile_.chunk_shared_.assign(static_cast<std::size_t>((end + kTileChunkBytes - 1) / kTileChunkBytes), -1);
    const std::int64_t width = tile_.chunk_columns_;
    const std::int64_t across = width > 0 ? (tile_.columns() + width - 1) / width : 0;
    tile_.chunk_grid_.assign(static_cast<std::size_t>(tile_.rows() * across), -1);
    for (std::int64_t n = 0; n < std::ssize(tile_.chunks); ++n) {
      const TileChunk& chunk = tile_.chunks[static_cast<std::size_t>(n)];
      tile_.chunk_shared_[static_cast<std::size_t>(chunk.shared / kTileChunkBytes)] = static_cast<std::int32_t>(n);
      if (width == 0 || !tile_.inside({chunk.row, chunk.column})) continue;
      tile_.chunk_grid_[static_cast<std::size_t>(chunk.row * across + chunk.column / width)] =
          static_cast<std::int32_t>(n);
    }
  }

  void index_fills() {
    const std::int64_t fills = std::ssize(tile_.fills), columns = tile_.columns();
    if (fills == 0) return;
    fill_lists(
        tile_.rows() * columns, fills,
        [&](std::int64_t n, const auto& visit) {
          const TileFill& fill = tile_.fills[static_cast<std::size_t>(n)];
          for (std::int64_t e = 0; e < fill.elements; ++e) {
            visit((fill.row + (fill.down ? e : 0)) * columns + fill.column + (fill.down ? 0 : e));
          }
        },
        tile_.fill_first_, tile_.fill_of_);
    for (const TileFill& fill : tile_.fills) tile_.registers_.push_back(fill.reg);
    std::ranges::sort(tile_.registers_);
    tile_.registers_.erase(std::unique(tile_.registers_.begin(), tile_.registers_.end()), tile_.registers_.end());
    fill_lists(
        std::ssize(tile_.registers_), fills,
        [&](std::int64_t n, const auto& visit) {
          const TileRegister& reg = tile_.fills[static_cast<std::size_t>(n)].reg;
          visit(std::ranges::lower_bound(tile_.registers_, reg) - tile_.registers_.begin());
        },
        tile_.register_first_, tile_.register_fill_);
  }

  // Which part of the tile each operand is, by the chunks at its places.
  void place_operands() {
    for (const TileOperand& operand : tile_.operands) {
      TileRead& read = tile_.reads[static_cast<std::size_t>(operand.read)];
      for (std::int64_t n = operand.first_chunk; n < operand.first_chunk + operand.chunks; ++n) {
        const auto at = tile_.chunk_at(tile_.operand_chunks[static_cast<std::size_t>(n)].shared);
        if (!at || tile_.chunk_columns_ == 0) continue;
        const TileChunk& chunk = tile_.chunks[static_cast<std::size_t>(*at)];
        if (chunk.row < 0 || chunk.column < 0) continue;
        const bool first = read.rows == 0;
        const std::int64_t end_row = first ? 0 : read.row + read.rows,
                           end_column = first ? 0 : read.column + read.columns;
        read.row = first ? chunk.row : std::min(read.row, chunk.row);
        read.column = first ? chunk.column : std::min(read.column, chunk.column);
        read.rows = std::max(end_row, chunk.row + 1) - read.row;
        read.columns = std::max(end_column, chunk.column + tile_.chunk_columns_) - read.column;
      }
    }
  }

  Tile tile_;
  std::int64_t at_ = 0;  // event
};

Tile fold_tile(std::span<const trace::Event> events) {
  return TileFolder().fold(events);
}

std::vector<TileSpan> tiles_in(std::span<const trace::Event> events) {
  static const std::size_t kFirst = trace::Event(trace::TileOpened{}).index();
  std::vector<TileSpan> tiles;
  for (std::size_t n = 0; n < events.size(); ++n) {
    const auto at = static_cast<std::int64_t>(n);
    if (events[n].index() == kFirst) {
      tiles.push_back({at, at + 1});
    } else if (events[n].index() > kFirst && !tiles.empty() && tiles.back().end == at) {
      ++tiles.back().end;
    }
  }
  return tiles;
}

}  // namespace kvscope::viz

#include "viz/playback/tile_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "viz/playback/tile_selection.h"

namespace kvscope::viz {
namespace {

constexpr std::int64_t kBytesOfWord = 4;

bool has_banks(const Tile& tile, std::int64_t read) {
  return tile.shared && tile.fragments && !tile.phases.empty() && tile.reads[static_cast<std::size_t>(read)].lanes > 0;
}

std::string number_of(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// Whether a lane asks for the byte.
bool takes(const Tile& tile, const TileLaneRead& lane, std::int64_t byte) {
  return byte >= lane.shared && byte < lane.shared + tile.fragments->width;
}

bool serves_lane(const trace::BankPhase& group, std::int64_t lane) {
  return (((lane < 32 ? group.lanes_low : group.lanes_high) >> lane % 32) & 1) != 0;
}

// Of the read, the group with a lane that reads the byte; nothing if there is none.
std::optional<std::int64_t> group_of(const Tile& tile, std::int64_t read, std::int64_t byte) {
  const TileRead& of = tile.reads[static_cast<std::size_t>(read)];
  for (std::size_t group = 0; group < tile.phases.size(); ++group) {
    for (std::int64_t n = of.first_lane; n < of.first_lane + of.lanes; ++n) {
      const TileLaneRead& lane = tile.lane_reads[static_cast<std::size_t>(n)];
      if (serves_lane(tile.phases[group], lane.lane) && takes(tile, lane, byte))
        return static_cast<std::int64_t>(group);
    }
  }
  return std::nullopt;
}

// Whether a picture of this kind can show the read.
using Usable = bool (*)(const Tile& tile, std::int64_t read);

bool has_fills(const Tile& tile, std::int64_t read) {
  return tile.reads[static_cast<std::size_t>(read)].fills > 0;
}

// The rule of every panel: a read that is under way; else, of those that fill what is lit, the last that has begun or
// the first; else the last that has begun; else the first.
std::optional<std::int64_t> read_to_show(const Tile& tile, const TileState& now, const LitTile& lit, Usable usable) {
  const std::int64_t begun = std::max<std::int64_t>(now.reads - 1, 0);
  const bool there = begun < std::ssize(tile.reads);
  if (there && arrival_of_read(tile, now, begun) == Arrival::moving && usable(tile, begun)) return begun;
  std::vector<bool> reads = lit_reads(tile, lit);
  if (lit.registers.empty() && lit.element) {
    for (const std::int32_t fill : tile.fills_of(*lit.element)) {
      reads[static_cast<std::size_t>(tile.fills[static_cast<std::size_t>(fill)].read)] = true;
    }
  }
  if (there && reads[static_cast<std::size_t>(begun)] && usable(tile, begun)) return begun;
  for (std::int64_t n = 0; n < std::ssize(tile.reads); ++n) {
    if (reads[static_cast<std::size_t>(n)] && usable(tile, n)) return n;
  }
  if (there && usable(tile, begun)) return begun;
  for (std::int64_t n = 0; n < std::ssize(tile.reads); ++n) {
    if (usable(tile, n)) return n;
  }
  return std::nullopt;
}

// The element whose group of lanes is shown: the one that is meant, if the read takes it, else the first of its fills
// that is lit.
std::optional<TileElement> lit_in_read(const Tile& tile, std::int64_t read, const LitTile& lit) {
  if (lit.element) {
    for (const std::int32_t fill : tile.fills_of(*lit.element)) {
      if (tile.fills[static_cast<std::size_t>(fill)].read == read) return lit.element;
    }
  }
  const TileRead& of = tile.reads[static_cast<std::size_t>(read)];
  for (std::int64_t n = of.first_fill; n < of.first_fill + of.fills; ++n) {
    const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
    if (std::ranges::binary_search(lit.registers, fill.reg)) return TileElement{fill.row, fill.column};
  }
  return std::nullopt;
}

// Chunks (row, number in the row) that the group's words are in.
std::set<std::pair<std::int64_t, std::int64_t>> chunks_of(const Tile& tile, const BankPhaseUse& group) {
  std::set<std::pair<std::int64_t, std::int64_t>> all;
  for (const BankWord& word : group.words) {
    const auto chunk = tile.chunk_at(word.byte);
    if (!chunk || tile.chunk_columns() == 0) continue;
    const TileChunk& of = tile.chunks[static_cast<std::size_t>(*chunk)];
    all.insert({of.row, of.column / tile.chunk_columns()});
  }
  return all;
}

}  // namespace

std::vector<bool> lit_reads(const Tile& tile, const LitTile& lit) {
  std::vector<bool> reads(tile.reads.size());
  if (lit.registers.empty()) return reads;
  for (std::size_t n = 0; n < reads.size(); ++n) {
    const TileRead& read = tile.reads[n];
    const auto fills =
        std::span(tile.fills).subspan(static_cast<std::size_t>(read.first_fill), static_cast<std::size_t>(read.fills));
    reads[n] = std::ranges::any_of(
        fills, [&](const TileFill& fill) { return std::ranges::binary_search(lit.registers, fill.reg); });
  }
  return reads;
}

std::optional<std::int64_t> read_of_grid(const Tile& tile, const TileState& now, const LitTile& lit) {
  return read_to_show(tile, now, lit, has_fills);
}

std::optional<ShownRead> shown_read(const Tile& tile, const TileState& now, const LitTile& lit) {
  const auto read = read_to_show(tile, now, lit, has_banks);
  if (!read) return std::nullopt;
  if (*read == now.reads - 1 && arrival_of_read(tile, now, *read) == Arrival::moving) {
    const TileRead& of = tile.reads[static_cast<std::size_t>(*read)];
    const std::int64_t begun = std::max<std::int64_t>(now.lane_reads - 1, of.first_lane);
    const std::int64_t lane = tile.lane_reads[static_cast<std::size_t>(begun)].lane;
    for (std::size_t group = 0; group < tile.phases.size(); ++group) {
      if (serves_lane(tile.phases[group], lane)) return ShownRead{*read, static_cast<std::int64_t>(group)};
    }
    return ShownRead{*read, 0};
  }
  const auto element = lit_in_read(tile, *read, lit);
  return ShownRead{*read, element ? group_of(tile, *read, tile.shared_byte(*element)).value_or(0) : 0};
}

std::string ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t n = 0; n < numbers.size();) {
    std::size_t end = n + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += text.empty() ? "" : ", ";
    text += end - n == 1 ? fmt::format("{}", numbers[n]) : fmt::format("{}–{}", numbers[n], numbers[end - 1]);
    n = end;
  }
  return text;
}

std::vector<std::int64_t> lanes_of(const BankPhaseUse& group) {
  std::set<std::int64_t> all;
  for (const BankWord& word : group.words) all.insert(word.lanes.begin(), word.lanes.end());
  return {all.begin(), all.end()};
}

std::string taken_in_words(const Tile& tile, const ShownRead& shown) {
  const BankUse use = bank_use(tile, shown.read, true);
  std::string name = read_name(tile);
  // The part of the name that every width shares: a group of lanes takes one of the four matrices of ldmatrix.x4.
  if (name.starts_with("ldmatrix")) name = "ldmatrix";
  if (shown.group >= std::ssize(use.phases)) return name;
  const auto chunks = chunks_of(tile, use.phases[static_cast<std::size_t>(shown.group)]);
  std::set<std::int64_t> rows, columns;
  for (const auto& [row, column] : chunks) {
    rows.insert(row);
    columns.insert(column);
  }
  if (chunks.empty()) return name + " takes bytes that no copy of this tile brings";
  const std::string what = columns.size() == 1 ? fmt::format("chunk c{}", *columns.begin())
                           : *columns.rbegin() - *columns.begin() + 1 == std::ssize(columns)
                               ? fmt::format("chunks c{}–c{}", *columns.begin(), *columns.rbegin())
                               : number_of(std::ssize(columns), "chunk");
  const auto words = std::ssize(use.phases[static_cast<std::size_t>(shown.group)].words);
  const char* const part = chunks.size() != rows.size() * columns.size()                 ? "some of "
                           : words < std::ssize(chunks) * kTileChunkBytes / kBytesOfWord ? "parts of "
                                                                                         : "";
  return fmt::format("{} takes {}{} of {}", name, part, what, number_of(std::ssize(rows), "row"));
}

std::string banks_in_words(const Tile& tile, const BankPhaseUse& group) {
  std::vector<std::int64_t> used, most;
  for (std::size_t bank = 0; bank < group.of_bank.size(); ++bank) {
    if (group.of_bank[bank] > 0) used.push_back(static_cast<std::int64_t>(bank));
    if (group.of_bank[bank] == group.wavefronts) most.push_back(static_cast<std::int64_t>(bank));
  }
  if (used.empty()) return "no bank";
  const std::string wavefronts = number_of(group.wavefronts, "wavefront");
  // By number where that is short.
  const auto named = [&](const std::vector<std::int64_t>& banks) {
    const std::string text = ranges(banks);
    return std::ranges::count(text, ',') < 2 ? "banks " + text
                                             : fmt::format("{} of {} banks", banks.size(), tile.shared->banks);
  };
  if (group.wavefronts == 1) {
    std::set<std::int64_t> groups;
    constexpr std::int64_t kBanksOfChunk = kTileChunkBytes / kBytesOfWord;
    for (const std::int64_t bank : used) groups.insert(bank / kBanksOfChunk);
    const bool whole = std::ssize(groups) * kBanksOfChunk == std::ssize(used);
    return fmt::format("{}, {}",
                       whole ? number_of(std::ssize(groups), "bank group") : number_of(std::ssize(used), "bank"),
                       wavefronts);
  }
  if (most == used && std::ssize(used) < tile.shared->banks) {
    return fmt::format("{}, all in {}", wavefronts, named(used));
  }
  return fmt::format("{}, {} words in each of {}", wavefronts, group.wavefronts, named(most));
}

// Chunk n of a band is stored at n XOR (n >> shift mod 2^bits). Where a row has at least 2^bits chunks, the XOR stays
// in the row, and n >> shift is a function of the row alone.
std::string swizzle_formula(const Tile& tile) {
  if (!tile.shared) return {};
  const trace::TileShared& of = *tile.shared;
  if (of.swizzle_bits < 0) return "lines of all banks; the trace does not contain the rows";
  if (of.swizzle_bits == 0) return "no swizzle: chunk c at c";
  constexpr std::int64_t kBitsOfChunk = 4;
  if (of.swizzle_base != kBitsOfChunk) {
    return fmt::format("swizzle ({},{},{}) of byte offsets", of.swizzle_bits, of.swizzle_base, of.swizzle_shift);
  }
  const std::int64_t period = std::int64_t{1} << of.swizzle_bits, apart = std::int64_t{1} << of.swizzle_shift;
  const std::int64_t of_row = of.row_bytes / kTileChunkBytes;
  if (of_row * kTileChunkBytes == of.row_bytes && of_row >= period && apart % of_row == 0) {
    const std::int64_t rows = apart / of_row;
    return rows == 1 ? fmt::format("chunk c at c XOR (row mod {})", period)
                     : fmt::format("chunk c at c XOR (row / {} mod {})", rows, period);
  }
  return fmt::format("16-byte place n at n XOR (n / {} mod {})", apart, period);
}

// --- too early -------------------------------------------------------------------------------------------------------

std::vector<std::int64_t> uncovered_copies(const Tile& tile, std::int64_t event) {
  if (tile.tma()) return {};
  std::vector<std::vector<std::int64_t>> queues(static_cast<std::size_t>(tile.waves()));
  std::size_t wait = 0;
  const auto wait_until = [&](std::int64_t when) {
    for (; wait < tile.waits.size() && tile.waits[wait].event < when; ++wait) {
      auto& queue = queues[static_cast<std::size_t>(tile.waits[wait].wave)];
      const auto allowed = std::clamp<std::int64_t>(tile.waits[wait].allowed, 0, std::ssize(queue));
      queue.erase(queue.begin(), queue.end() - allowed);
    }
  };
  for (std::size_t n = 0; n < tile.copies.size() && tile.copies[n].event < event; ++n) {
    wait_until(tile.copies[n].event);
    queues[static_cast<std::size_t>(tile.copies[n].wave)].push_back(static_cast<std::int64_t>(n));
  }
  wait_until(event);
  std::vector<std::int64_t> all;
  for (const auto& queue : queues) all.insert(all.end(), queue.begin(), queue.end());
  std::ranges::sort(all);
  return all;
}

std::optional<EarlyRead> next_early_read(const Tile& tile, std::int64_t event) {
  if (tile.tma()) return std::nullopt;
  const auto before = [](const auto& items, std::int64_t when) {
    return std::ranges::partition_point(items, [&](const auto& item) { return item.event < when; }) - items.begin();
  };
  std::vector<char> uncovered(tile.copies.size(), 0);
  std::vector<std::int64_t> copy_at;  // [shared / 16] the last copy that is issued for these bytes; -1: none
  std::int64_t copies = -1, waits = -1;
  for (std::size_t r = 0; r < tile.reads.size(); ++r) {
    const TileRead& read = tile.reads[r];
    if (read.event < event) continue;
    // Neither changes between two reads in a row.
    if (const auto now = before(tile.copies, read.event); now != copies || before(tile.waits, read.event) != waits) {
      copies = now;
      waits = before(tile.waits, read.event);
      std::ranges::fill(uncovered, 0);
      for (const std::int64_t copy : uncovered_copies(tile, read.event)) uncovered[static_cast<std::size_t>(copy)] = 1;
      copy_at.clear();
      for (const TileChunk& chunk : tile.chunks) {
        if (chunk.copy >= copies) break;
        const auto slot = static_cast<std::size_t>(chunk.shared / kTileChunkBytes);
        if (slot >= copy_at.size()) copy_at.resize(slot + 1, -1);
        copy_at[slot] = chunk.copy;
      }
    }
    for (std::int64_t n = read.first_lane; n < read.first_lane + read.lanes; ++n) {
      const std::int64_t byte = tile.lane_reads[static_cast<std::size_t>(n)].shared;
      const auto slot = static_cast<std::size_t>(byte / kTileChunkBytes);
      const std::int64_t copy = slot < copy_at.size() ? copy_at[slot] : -1;
      if (copy >= 0 && uncovered[static_cast<std::size_t>(copy)] != 0)
        return EarlyRead{static_cast<std::int64_t>(r), copy};
      const auto later = tile.chunk_at(byte);
      if (copy < 0 && later)
        return EarlyRead{static_cast<std::int64_t>(r), tile.chunks[static_cast<std::size_t>(*later)].copy};
    }
  }
  return std::nullopt;
}

}  // namespace kvscope::viz

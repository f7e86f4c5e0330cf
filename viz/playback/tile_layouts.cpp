#include "viz/playback/tile_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/layout/swizzle.h"

namespace kvscope::viz {
namespace {

constexpr std::int64_t kLayoutWord = 4;  // [bytes]
constexpr int kLayoutChunkBits = 4;      // a swizzle moves 16 bytes as one piece
constexpr std::int64_t kNvidiaBanksOfTma = 32;

std::int64_t swizzled(const TileLayout& layout, std::int64_t offset) {
  return layout.bits > 0 ? Swizzle(layout.bits, layout.base, layout.shift)(offset) : offset;
}

// As the scenario's field has it: a mode of TMA on NVIDIA, a swizzle of 16-byte vectors on AMD.
std::string swizzle_name(const Tile& tile, int bits, int base, int shift) {
  if (bits == 0) return "none";
  if (tile.shared->banks == kNvidiaBanksOfTma && base == 4 && shift == 3) return fmt::format("{}B", 16 << bits);
  return swizzle_text(tile, bits, base, shift);
}

bool lane_in(const trace::BankPhase& phase, std::int64_t lane) {
  return (((lane < 32 ? phase.lanes_low : phase.lanes_high) >> lane % 32) & 1) != 0;
}

}  // namespace

std::string swizzle_text(const Tile& tile, std::int64_t bits, std::int64_t base, std::int64_t shift) {
  const bool vectors = tile.shared && tile.shared->banks != kNvidiaBanksOfTma && base >= kLayoutChunkBits;
  return fmt::format("({},{},{})", bits, vectors ? base - kLayoutChunkBits : base, shift);
}

std::vector<TileLayout> tile_layouts(const Tile& tile) {
  if (!tile.swizzle_known() || !tile.fragments || tile.phases.empty() || tile.lane_reads.empty()) return {};
  const trace::TileShared& of = *tile.shared;
  const bool own_bands = tile.element_bytes() > 0 && of.rows > 0;
  const std::int64_t row = own_bands ? tile.columns() * tile.element_bytes() : 0;
  const TileLayout stored{swizzle_name(tile, static_cast<int>(of.swizzle_bits), static_cast<int>(of.swizzle_base),
                                       static_cast<int>(of.swizzle_shift)),
                          of.row_bytes,
                          0,
                          static_cast<int>(of.swizzle_bits),
                          static_cast<int>(of.swizzle_base),
                          static_cast<int>(of.swizzle_shift),
                          true};
  std::vector<TileLayout> all;
  const auto add = [&](TileLayout layout) {
    const bool is_stored = layout.bits == stored.bits && layout.padding == 0 &&
                           (layout.bits == 0 || (layout.base == stored.base && layout.shift == stored.shift));
    if (is_stored) layout = stored;
    all.push_back(std::move(layout));
  };
  add({"none", of.row_bytes, 0, 0, 0, 0, false});
  if (of.banks == kNvidiaBanksOfTma) {
    for (const int bits : {1, 2, 3}) {
      const std::int64_t width = std::int64_t{16} << bits;  // of a row of a box with this swizzle
      if (row > 0 && row % width == 0) add({swizzle_name(tile, bits, 4, 3), width, 0, bits, 4, 3, false});
    }
  } else {
    for (const auto& [bits, shift] : {std::pair{3, 3}, std::pair{3, 4}}) {
      add({swizzle_name(tile, bits, kLayoutChunkBits, shift), of.row_bytes, 0, bits, kLayoutChunkBits, shift, false});
    }
  }
  if (std::ranges::none_of(all, &TileLayout::stored)) all.push_back(stored);
  for (const std::int64_t padding : {16, 32}) {
    all.push_back({fmt::format("+{} B", padding), of.row_bytes, padding, 0, 0, 0, false});
    if (of.banks == kNvidiaBanksOfTma) break;  // one chunk is always enough for rows of whole lines
  }
  return all;
}

std::int64_t placed(const Tile& tile, const TileLayout& layout, std::int64_t byte) {
  if (layout.stored) return byte;
  const trace::TileShared& of = *tile.shared;
  const std::int64_t plain = tile.unswizzled(byte), band = of.rows * of.row_bytes;
  const std::int64_t row = plain % band / of.row_bytes;
  const std::int64_t along = plain / band * of.row_bytes + plain % of.row_bytes;  // in the tile's row
  const std::int64_t pitch = layout.row_bytes + layout.padding;
  const std::int64_t offset = along / layout.row_bytes * of.rows * pitch + row * pitch + along % layout.row_bytes;
  return swizzled(layout, offset);
}

BankUse bank_use(const Tile& tile, std::int64_t read, const TileLayout& layout) {
  return bank_use(tile, read, [&](std::int64_t byte) { return placed(tile, layout, byte); });
}

LayoutCost layout_cost(const Tile& tile, const TileLayout& layout) {
  LayoutCost cost;
  const auto banks = static_cast<std::size_t>(tile.shared->banks);
  std::vector<std::int64_t> words;
  std::vector<std::int64_t> of_bank(banks);
  for (const TileRead& read : tile.reads) {
    for (const trace::BankPhase& phase : tile.phases) {
      words.clear();
      for (std::int64_t n = read.first_lane; n < read.first_lane + read.lanes; ++n) {
        const TileLaneRead& lane = tile.lane_reads[static_cast<std::size_t>(n)];
        if (!lane_in(phase, lane.lane)) continue;
        // Chunks stay together: one place is enough for each 16 bytes.
        for (std::int64_t at = 0; at < tile.fragments->width;) {
          const std::int64_t byte = lane.shared + at;
          const std::int64_t in = byte % kTileChunkBytes,
                             count = std::min(kTileChunkBytes - in, tile.fragments->width - at);
          const std::int64_t place = placed(tile, layout, byte - in) + in;
          for (std::int64_t word = place / kLayoutWord; word * kLayoutWord < place + count; ++word)
            words.push_back(word);
          at += count;
        }
      }
      if (words.empty()) continue;
      std::ranges::sort(words);
      words.erase(std::unique(words.begin(), words.end()), words.end());
      std::ranges::fill(of_bank, 0);
      std::int64_t most = 0;
      for (const std::int64_t word : words) most = std::max(most, ++of_bank[static_cast<std::size_t>(word) % banks]);
      cost.wavefronts += most;
      ++cost.ideal;
    }
  }
  return cost;
}

std::optional<std::size_t> compared_layout(const std::vector<TileLayout>& layouts,
                                           const std::vector<LayoutCost>& costs) {
  const auto stored = std::ranges::find(layouts, true, &TileLayout::stored);
  if (stored == layouts.end() || layouts.size() < 2) return std::nullopt;
  if (stored->bits > 0) return 0;
  const auto best = std::ranges::min_element(costs, {}, &LayoutCost::wavefronts);
  const auto own = static_cast<std::size_t>(stored - layouts.begin());
  if (best->wavefronts >= costs[own].wavefronts) return std::nullopt;
  return static_cast<std::size_t>(best - costs.begin());
}

std::string layout_in_words(const TileLayout& layout) {
  if (layout.padding > 0) return fmt::format("with rows padded by {} B", layout.padding);
  return layout.bits == 0 ? "without the swizzle" : fmt::format("with the {} swizzle", layout.name);
}

}  // namespace kvscope::viz

#include "viz/playback/tile_banks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace kvscope::viz {
namespace {

constexpr std::int64_t kWordBytes = 4;

bool serves(const trace::BankPhase& phase, std::int64_t lane) {
  const std::int64_t mask = lane < 32 ? phase.lanes_low : phase.lanes_high;
  return ((mask >> lane % 32) & 1) != 0;
}

}  // namespace

BankUse bank_use(const Tile& tile, std::int64_t read, bool swizzled) {
  return bank_use(tile, read, [&](std::int64_t byte) { return swizzled ? byte : tile.unswizzled(byte); });
}

BankUse bank_use(const Tile& tile, std::int64_t read, const std::function<std::int64_t(std::int64_t)>& place_of) {
  BankUse use;
  const TileRead& of = tile.reads[static_cast<std::size_t>(read)];
  if (!tile.shared || !tile.fragments || tile.phases.empty() || of.lanes == 0) return use;
  for (const trace::BankPhase& phase : tile.phases) {
    std::map<std::pair<std::int64_t, std::int64_t>, BankWord> words;
    for (std::int64_t n = of.first_lane; n < of.first_lane + of.lanes; ++n) {
      const TileLaneRead& lane = tile.lane_reads[static_cast<std::size_t>(n)];
      if (!serves(phase, lane.lane)) continue;
      for (std::int64_t byte = lane.shared; byte < lane.shared + tile.fragments->width; byte += kWordBytes) {
        const std::int64_t place = place_of(byte);
        const std::int64_t bank = place / kWordBytes % tile.shared->banks;
        BankWord& word = words[{bank, place}];
        word.bank = bank;
        word.byte = byte;
        word.lanes.push_back(lane.lane);
      }
    }
    BankPhaseUse one;
    one.of_bank.assign(static_cast<std::size_t>(tile.shared->banks), 0);
    for (auto& [key, word] : words) {
      one.wavefronts = std::max(one.wavefronts, ++one.of_bank[static_cast<std::size_t>(word.bank)]);
      one.words.push_back(std::move(word));
    }
    use.wavefronts += one.wavefronts;
    use.conflicts += std::max<std::int64_t>(one.wavefronts - 1, 0);
    use.phases.push_back(std::move(one));
  }
  return use;
}

}  // namespace kvscope::viz

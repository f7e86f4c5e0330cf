#include "viz/playback/meant.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/scenario/notes.h"

namespace kvscope::viz {

std::optional<TokenMeant> token_meant(const Selection& selection, const Lit& lit, const Facts& facts) {
  if (selection.none() || selection.kind == Selection::Kind::step || selection.of_tile()) return std::nullopt;
  if (lit.token) return TokenMeant{*lit.seq, *lit.token};
  if (lit.page && lit.seq) return TokenMeant{*lit.seq, TokIdx{lit.page->value * facts.page_size}};
  if (!lit.places.empty()) {
    return TokenMeant{lit.places[0].seq, TokIdx{lit.places[0].page.value * facts.page_size}};
  }
  return std::nullopt;
}

std::optional<SeqIdx> sequence_meant(const Selection& selection, const Lit& lit) {
  if (selection.kind == Selection::Kind::error_cell || selection.kind == Selection::Kind::sequence) {
    return selection.seq;
  }
  if (lit.seq) return lit.seq;
  if (!lit.places.empty()) return lit.places.front().seq;
  return std::nullopt;
}

SeqIdx longest_running(const State& state) {
  SeqIdx longest{0};
  std::int64_t tokens = -1;
  for (const SeqIdx seq : state.live) {
    const SequenceState& of = state.sequences[seq.value];
    if (of.phase == Phase::running && of.tokens > tokens) longest = seq, tokens = of.tokens;
  }
  return longest;
}

// A link whose tile cannot be read is reported where the notes are shown.
TilePath path_meant(const Facts& facts) {
  for (const NotePart& part : parse_notes(facts.description)) {
    if (!part.link || part.link->tile.empty()) continue;
    try {
      return parse_tile_request(part.link->tile).path;
    } catch (const InputError&) {
    }
  }
  return facts.scenario && facts.scenario->lds != LdsGeometry{} ? TilePath::lds : TilePath::tma;
}

std::optional<std::size_t> recorded_meant(const std::vector<RecordedTile>& tiles, const Facts& facts) {
  if (tiles.empty()) return std::nullopt;
  if (path_meant(facts) != TilePath::lds) return 0;
  const auto found = std::ranges::find_if(tiles, [](const RecordedTile& tile) { return !tile.opened.tma; });
  return found == tiles.end() ? 0 : static_cast<std::size_t>(found - tiles.begin());
}

}  // namespace kvscope::viz

#include "viz/playback/recorded_tiles.h"

#include <algorithm>
#include <variant>

#include "viz/playback/event_tape.h"
#include "viz/playback/tile_fold.h"

namespace kvscope::viz {

std::vector<RecordedTile> recorded_tiles(const Run& run) {
  static const std::size_t kOpened = trace::Event(trace::TileOpened{}).index();
  const EventTape& tape = run.tape();
  std::vector<RecordedTile> tiles;
  for (std::int64_t frame = 0; frame < tape.frames(); ++frame) {
    if ((tape.kinds_in(frame) >> kOpened & 1) == 0) continue;
    const std::int64_t first = frame * EventTape::kFrame, end = std::min(first + EventTape::kFrame, tape.size());
    EventTape::Reader reader(tape, first);
    for (std::int64_t at = first; at < end; ++at) {
      const trace::Event event = reader.next();
      if (const auto* opened = std::get_if<trace::TileOpened>(&event)) {
        tiles.push_back({Position{at}, Position{tape.size()}, *opened});
      }
    }
  }
  // A tile ends at the first event that is no tile's: of the cache, or the next tile_opened.
  for (std::size_t n = 0; n < tiles.size(); ++n) {
    const std::int64_t limit = n + 1 < tiles.size() ? tiles[n + 1].first.value : tape.size();
    std::int64_t at = tiles[n].first.value + 1;
    EventTape::Reader reader(tape, at);
    while (at < limit && reader.next().index() > kOpened) ++at;
    tiles[n].end = Position{at};
  }
  return tiles;
}

Tile load_tile(const Run& run, const RecordedTile& recorded) {
  return fold_tile(run.tape().read(recorded.first.value, recorded.end.value));
}

TileRequest request_of(const Tile& tile) {
  const trace::TileOpened& of = tile.opened;
  TileRequest request;
  request.seq = of.seq;
  request.token = of.first_token;
  request.kv = of.value ? KOrV::v : KOrV::k;
  request.layer = of.layer;
  request.head = of.head;
  request.dim = DimIdx{tile.memory ? tile.memory->first_column : 0};
  request.step = of.step;
  request.path = !of.tma ? TilePath::lds : tile.gathers() ? TilePath::gather4 : TilePath::tma;
  return request;
}

}  // namespace kvscope::viz

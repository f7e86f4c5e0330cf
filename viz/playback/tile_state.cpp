#include "viz/playback/tile_state.h"

#include <algorithm>
#include <iterator>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

// How many of the items happened before `event`: items are in the order of their events.
template <class Item>
std::int64_t before(const std::vector<Item>& items, std::int64_t event) {
  return std::ranges::partition_point(items, [&](const Item& item) { return item.event < event; }) - items.begin();
}

std::int64_t before(const std::vector<std::int64_t>& events, std::int64_t event) {
  return std::ranges::lower_bound(events, event) - events.begin();
}

}  // namespace

std::int64_t event_of_landed(const Tile& tile) {
  for (const TileAction& action : tile.actions) {
    if (action.kind == TileAction::Kind::read) return action.first;
  }
  return tile.events;
}

TileState tile_state(const Tile& tile, std::int64_t event) {
  check_index("event of the tile", event, tile.events + 1, "from its start to its end");
  TileState now;
  now.event = event;
  now.action = std::ranges::partition_point(tile.actions, [&](const TileAction& a) { return a.end <= event; }) -
               tile.actions.begin();
  now.issued = before(tile.copies, event);
  now.landed = before(tile.chunks, event);
  now.waits = before(tile.waits, event);
  now.reads = before(tile.reads, event);
  now.lane_reads = before(tile.lane_reads, event);
  now.fills = before(tile.fills, event);
  now.operand_chunks = before(tile.operand_chunks, event);
  const std::int64_t told = before(tile.expect_events, event);
  for (std::int64_t n = 0; n < told; ++n) now.expected += tile.expects[static_cast<std::size_t>(n)].bytes;
  now.outstanding.assign(static_cast<std::size_t>(tile.waves()), 0);
  std::int64_t waited = 0;
  const auto wait_until = [&](std::int64_t when) {
    for (; waited < now.waits && tile.waits[static_cast<std::size_t>(waited)].event < when; ++waited) {
      const TileWait& wait = tile.waits[static_cast<std::size_t>(waited)];
      auto& left = now.outstanding[static_cast<std::size_t>(wait.wave)];
      left = std::min(left, wait.allowed);
    }
  };
  for (std::int64_t n = 0; n < now.issued; ++n) {
    const TileCopy& copy = tile.copies[static_cast<std::size_t>(n)];
    wait_until(copy.event);
    if (!tile.tma()) ++now.outstanding[static_cast<std::size_t>(copy.wave)];
    now.arrived += copy.chunks == 0
                       ? copy.bytes
                       : std::clamp(now.landed - copy.first_chunk, std::int64_t{0}, copy.chunks) * kTileChunkBytes;
  }
  wait_until(event);
  now.complete = tile.tma() ? !tile.complete_events.empty() && tile.complete_events.back() < event
                            : now.issued == std::ssize(tile.copies) && now.waits == std::ssize(tile.waits);
  return now;
}

Arrival arrival_of_copy(const Tile& tile, const TileState& now, std::int64_t copy) {
  if (copy >= now.issued) return Arrival::outlined;
  const TileCopy& of = tile.copies[static_cast<std::size_t>(copy)];
  return now.landed >= of.first_chunk + of.chunks ? Arrival::there : Arrival::moving;
}

Arrival arrival_of_chunk(const Tile& tile, const TileState& now, std::int64_t chunk) {
  if (chunk < now.landed) return Arrival::there;
  return tile.chunks[static_cast<std::size_t>(chunk)].copy < now.issued ? Arrival::moving : Arrival::outlined;
}

Arrival arrival_of_read(const Tile& tile, const TileState& now, std::int64_t read) {
  if (read >= now.reads) return Arrival::outlined;
  const TileRead& of = tile.reads[static_cast<std::size_t>(read)];
  if (of.operand >= 0) {
    const TileOperand& operand = tile.operands[static_cast<std::size_t>(of.operand)];
    return now.operand_chunks >= operand.first_chunk + operand.chunks ? Arrival::there : Arrival::moving;
  }
  return now.fills >= of.first_fill + of.fills && now.lane_reads >= of.first_lane + of.lanes ? Arrival::there
                                                                                             : Arrival::moving;
}

Arrival arrival_of_fill(const Tile& tile, const TileState& now, std::int64_t fill) {
  if (fill < now.fills) return Arrival::there;
  return tile.fills[static_cast<std::size_t>(fill)].read < now.reads ? Arrival::moving : Arrival::outlined;
}

}  // namespace kvscope::viz

#include "viz/playback/motion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include "viz/playback/tile_banks.h"

namespace kvscope::viz {
namespace {

constexpr double kBlockFlight = 0.5;  // share of a motion that one block takes, of many; alone it takes all of it
constexpr std::array kOrder{BlockMove::Kind::released, BlockMove::Kind::preempted, BlockMove::Kind::evicted,
                            BlockMove::Kind::copied,   BlockMove::Kind::found,     BlockMove::Kind::shared,
                            BlockMove::Kind::taken};

// The n-th of `count` objects, each of which takes `share` of the motion.
MotionSpan span_of(std::size_t n, std::size_t count, double share) {
  const double start = count > 1 ? (1 - share) * static_cast<double>(n) / static_cast<double>(count - 1) : 0;
  return {start, start + share};
}

// Evenly spaced, the first and the last among them.
template <class Item>
void thin(std::vector<Item>& items, std::size_t most) {
  if (items.size() <= most) return;
  std::vector<Item> kept;
  for (std::size_t n = 0; n < most; ++n) kept.push_back(items[most > 1 ? n * (items.size() - 1) / (most - 1) : 0]);
  items = std::move(kept);
}

// How a page came to a block that it did not have. A block with content keeps its page and its tokens when a prefix hit
// finds it; a block that was given back or evicted and taken again has a page without hits.
BlockMove::Kind arrival(const State& before, const State& after, SeqIdx seq, std::int64_t page, std::int32_t block) {
  const BlockState &was = before.blocks[block], &is = after.blocks[block];
  const auto owner = static_cast<std::int32_t>(seq.value);
  const bool hit = was.page == page && was.filled > 0 && page * was.filled < after.sequences[seq.value].hit_tokens;
  const bool held = was.ref_count > 0 && was.owner != owner;
  if (is.ref_count > 1 && (held || is.owner != owner)) return BlockMove::Kind::shared;
  if (held && hit) return BlockMove::Kind::shared;  // its holder has released it since
  return was.cached && hit ? BlockMove::Kind::found : BlockMove::Kind::taken;
}

void add_moves_of(const State& before, const State& after, SeqIdx seq, std::vector<BlockMove>& moves) {
  static const PageTable kNone;
  const PageTable& was = seq.value < before.sequences.size() ? before.sequences[seq.value].pages : kNone;
  const PageTable& is = seq.value < after.sequences.size() ? after.sequences[seq.value].pages : kNone;
  if (was.shares(is)) return;
  using Kind = BlockMove::Kind;
  for (std::int64_t page = 0; page < std::max(was.size(), is.size()); ++page) {
    const std::int32_t from = was[page], to = is[page];
    if (from == to) continue;
    BlockMove move{Kind::copied, seq, PageIdx{page}, BlockIdx{to}, BlockIdx{from}, {}};
    if (to < 0) {
      move.kind = after.sequences[seq.value].phase == Phase::preempted ? Kind::preempted : Kind::released;
      move.block = BlockIdx{from};
    } else if (from < 0) {
      move.kind = arrival(before, after, seq, page, to);
      move.from = move.block;
      const BlockState& content = before.blocks[to];
      if (move.kind == Kind::taken && content.cached && content.owner >= 0) {
        moves.push_back({Kind::evicted, SeqIdx{content.owner}, PageIdx{content.page}, move.block, move.block, {}});
      }
    }
    moves.push_back(move);
  }
}

// When the events between two states happen. Those before the first flight, such as the issue of a box or the requests
// of a read's lanes, come first: they take the time of the wavefronts, or none.
struct Tempo {
  std::int64_t first = 0, flights = 0, end = 0;  // events: of all, of the first flight, behind the last
  double start = 0;                              // of t, when the first flight begins

  Tempo(const Tile& tile, const TileState& before, const TileState& after)
      : first(before.event), flights(after.event), end(after.event) {
    if (after.landed > before.landed) flights = tile.chunks[static_cast<std::size_t>(before.landed)].event;
    if (after.fills > before.fills) {
      flights = std::min(flights, tile.fills[static_cast<std::size_t>(before.fills)].event);
      start = kWavefronts;
    }
  }
  // The time when the flight of an event ends.
  [[nodiscard]] double landing(std::int64_t event) const {
    const double share = static_cast<double>(event + 1 - flights) / static_cast<double>(end - flights);
    return start + (1 - start) * (kFlight + (1 - kFlight) * share);
  }
};

}  // namespace

double local(const MotionSpan& span, double t) {
  const double u = std::clamp((t - span.start) / (span.end - span.start), 0.0, 1.0);
  return u * u * (3 - 2 * u);
}

std::vector<BlockMove> moves_between(const State& before, const State& after, std::size_t most) {
  std::set<SeqIdx> sequences(before.live.begin(), before.live.end());
  sequences.insert(after.live.begin(), after.live.end());
  std::vector<BlockMove> all;
  for (const SeqIdx seq : sequences) add_moves_of(before, after, seq, all);
  std::vector<BlockMove> moves;
  for (const BlockMove::Kind kind : kOrder) {
    std::vector<BlockMove> of_kind;
    std::ranges::copy_if(all, std::back_inserter(of_kind), [&](const BlockMove& move) { return move.kind == kind; });
    // Each kind has its share of the places, and at least one.
    thin(of_kind, std::max<std::size_t>(all.empty() ? 1 : most * of_kind.size() / all.size(), 1));
    moves.insert(moves.end(), of_kind.begin(), of_kind.end());
  }
  const double share = kBlockFlight + (1 - kBlockFlight) / static_cast<double>(std::max<std::size_t>(moves.size(), 1));
  for (std::size_t n = 0; n < moves.size(); ++n) moves[n].when = span_of(n, moves.size(), share);
  return moves;
}

std::vector<TileFlight> flights_between(const Tile& tile, const TileState& before, const TileState& after,
                                        std::size_t most) {
  std::vector<TileFlight> flights;
  const Tempo tempo(tile, before, after);
  const auto add = [&](bool fill, std::int64_t index, std::int64_t event) {
    const double end = tempo.landing(event);
    flights.push_back({fill, index, {end - (1 - tempo.start) * kFlight, end}});
  };
  for (std::int64_t n = before.landed; n < after.landed; ++n) {
    add(false, n, tile.chunks[static_cast<std::size_t>(n)].event);
  }
  for (std::int64_t n = before.fills; n < after.fills; ++n) {
    add(true, n, tile.fills[static_cast<std::size_t>(n)].event);
  }
  std::ranges::stable_sort(flights, {}, [](const TileFlight& flight) { return flight.when.end; });
  thin(flights, most);
  return flights;
}

std::vector<BankLight> lights_between(const Tile& tile, const TileState& before, const TileState& after) {
  std::vector<BankLight> lights;
  for (std::int64_t read = before.reads; read < after.reads; ++read) {
    for (const BankPhaseUse& phase : bank_use(tile, read, true).phases) {
      const std::size_t first = lights.size();
      lights.resize(first + static_cast<std::size_t>(phase.wavefronts));
      std::int64_t bank = -1;
      std::size_t wavefront = 0;
      // Words are in the order of their banks; a bank delivers one of them in each wavefront.
      for (const BankWord& word : phase.words) {
        wavefront = word.bank == bank ? wavefront + 1 : 0;
        bank = word.bank;
        if (const auto chunk = tile.chunk_at(word.byte)) lights[first + wavefront].chunks.push_back(*chunk);
      }
    }
  }
  for (std::size_t n = 0; n < lights.size(); ++n) {
    std::vector<std::int64_t>& chunks = lights[n].chunks;
    std::ranges::sort(chunks);
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
    const auto share = kWavefronts / static_cast<double>(lights.size());
    lights[n].when = {share * static_cast<double>(n), share * static_cast<double>(n + 1)};
  }
  return lights;
}

std::int64_t event_at(const Tile& tile, const TileState& before, const TileState& after, double t) {
  if (t <= 0 || after.event <= before.event) return before.event;
  if (t >= 1) return after.event;
  const Tempo tempo(tile, before, after);
  if (t < tempo.start) {
    const auto early = static_cast<double>(tempo.flights - tempo.first);
    return tempo.first + static_cast<std::int64_t>(std::ceil(t / tempo.start * early));
  }
  const double done = std::clamp(((t - tempo.start) / (1 - tempo.start) - kFlight) / (1 - kFlight), 0.0, 1.0);
  const auto flights = static_cast<double>(tempo.end - tempo.flights);
  return tempo.flights + static_cast<std::int64_t>(std::floor(done * flights + 1e-9));
}

std::optional<FlowBetween> flow_between(const AttentionFlow& flow, std::int64_t before, std::int64_t after, double t) {
  if (!(t > 0 && t < 1) || std::abs(after - before) != 1) return std::nullopt;
  FlowBetween now;
  now.tile = std::min(before, after);
  const auto number = static_cast<std::size_t>(now.tile);
  const FlowTile& tile = flow.tiles[number];
  const bool first = number == 0;
  now.t = before < after ? t : 1 - t;
  now.rescaled = local({0, kFlowRescale}, now.t);
  now.added = local({kFlowRescale, 1}, now.t);
  now.largest = first ? tile.largest : tile.largest_before + (tile.largest - tile.largest_before) * now.rescaled;
  now.rescale = first ? 0 : 1 + (tile.rescale - 1) * now.rescaled;
  now.tile_sum = tile.tile_sum * now.added;
  now.sum = (first ? 0 : flow.tiles[number - 1].sum * now.rescale) + now.tile_sum;
  // While l and o are multiplied by the same factor, o / l stays as it is.
  now.o = output_after(flow, number);
  if (now.added <= 0 || now.sum <= 0) return now;
  for (std::size_t dim = 0; dim < now.o.size(); ++dim) {
    const double scaled = first ? 0 : flow.tiles[number - 1].o[dim] * tile.rescale;
    now.o[dim] = (scaled + (tile.o[dim] - scaled) * now.added) / now.sum;
  }
  if (number + 1 < flow.tiles.size()) return now;
  // The result also has what comes after all tiles: a sink, and rounding.
  for (std::size_t dim = 0; dim < now.o.size(); ++dim) {
    now.o[dim] += (flow.o[dim] - tile.o[dim] / tile.sum) * now.added;
  }
  return now;
}

}  // namespace kvscope::viz

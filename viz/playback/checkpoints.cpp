#include "viz/playback/checkpoints.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvscope::viz {
namespace {

// Memory of `state` that is not shared with `before`. [bytes]
std::int64_t bytes_apart(const State& state, const State& before) {
  using Blocks = decltype(state.blocks);
  using Sequences = decltype(state.sequences);
  std::int64_t bytes = Blocks::kChunkBytes * state.blocks.chunks_apart(before.blocks);
  state.sequences.for_each_chunk_apart(before.sequences, [&](std::int64_t first, auto chunk) {
    bytes += Sequences::kChunkBytes;
    for (const SequenceState& seq : chunk) {
      if (!seq.pages.shares(before.sequences[first].pages)) bytes += seq.pages.size() * 4;
      ++first;
    }
  });
  // The lists of chunks and the list of live sequences are never shared.
  constexpr std::int64_t kPointer = 16;
  return bytes + kPointer * (state.blocks.chunks() + state.sequences.chunks()) +
         static_cast<std::int64_t>(state.live.size() * sizeof(SeqIdx));
}

}  // namespace

Checkpoints::Checkpoints(const State& first, std::int64_t distance, std::int64_t bytes)
    : distance_(distance), bytes_(bytes) {
  all_.push_back({Position{0}, first});
}

const Checkpoint& Checkpoints::before(Position position) const {
  const auto after =
      std::upper_bound(all_.begin(), all_.end(), position,
                       [](Position at, const Checkpoint& checkpoint) { return at < checkpoint.position; });
  return *std::prev(after);
}

void Checkpoints::keep(Position position, const State& state) {
  held_ += bytes_apart(state, all_.back().state);
  all_.push_back({position, state});
  while (held_ > bytes_ && size() > 1) thin_out();
}

void Checkpoints::thin_out() {
  distance_ *= 2;
  held_ = 0;
  std::vector<Checkpoint> kept;
  for (std::size_t i = 0; i < all_.size(); i += 2) {
    if (!kept.empty()) held_ += bytes_apart(all_[i].state, kept.back().state);
    kept.push_back(std::move(all_[i]));
  }
  all_ = std::move(kept);
}

}  // namespace kvscope::viz

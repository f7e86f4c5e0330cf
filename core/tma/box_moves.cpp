#include "core/tma/box_moves.h"

#include <algorithm>

namespace kvscope {

namespace {

constexpr std::size_t kHalf = 8;  // [bytes] of a chunk

void swap_halves(BoxBytes& bytes) {
  std::swap_ranges(bytes.begin(), bytes.begin() + kHalf, bytes.begin() + kHalf);
}

}  // namespace

std::vector<BoxMove> moves_of(const std::vector<BoxChunk>& chunks, const BoxBytes& fill, const GlobalMemory& memory) {
  std::vector<BoxMove> moves;
  moves.reserve(chunks.size());
  for (const BoxChunk& chunk : chunks) {
    BoxMove move{chunk.shared, fill};
    if (!chunk.filled()) {
      const auto data = memory.read(chunk.global, chunk.data_bytes);
      std::copy(data.begin(), data.end(), move.bytes.begin());
    }
    if (chunk.halves_swapped) swap_halves(move.bytes);
    moves.push_back(move);
  }
  return moves;
}

void carry_out(const std::vector<BoxMove>& moves, SharedImage& image, CopyIdx copy) {
  for (const BoxMove& move : moves) image.write(move.shared, move.bytes, copy);
}

std::int64_t filled_bytes(const std::vector<BoxChunk>& chunks) {
  std::int64_t filled = 0;
  for (const BoxChunk& chunk : chunks) filled += 16 - chunk.data_bytes;
  return filled;
}

}  // namespace kvscope

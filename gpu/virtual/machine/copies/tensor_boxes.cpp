#include "gpu/virtual/machine/copies/detail/tensor_boxes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {

BoxPieces pieces_of(const PendingOp& p) {
  const auto offset = static_cast<std::int64_t>(offset_of(p.shared));
  BoxPieces pieces;
  if (!p.gather) {
    pieces.all[pieces.count++] = {p.at, offset};
    return pieces;
  }
  const std::int64_t pitch = box_size(p.map).pitch;
  for (std::int64_t shared = offset; pieces.count < kGatherRows; shared += pitch) {
    pieces.all[pieces.count] = {Coordinates{2, {p.at.at[0], p.at.at[1 + pieces.count]}}, shared};
    ++pieces.count;
  }
  return pieces;
}

std::vector<PendingOp> rows_of(const PendingOp& whole) {
  const BoxSize size = box_size(whole.map);
  std::vector<PendingOp> rows;
  for (const BoxPiece& piece : pieces_of(whole)) {
    PendingOp one = whole;
    one.gather = false;
    one.bytes = size.inner;
    if (one.op.mbarrier != 0) one.op.bytes = size.inner;
    for (std::size_t d = 1; d < one.map.box.size(); ++d) one.map.box[d] = std::min(one.map.box[d], 1U);
    for (std::int64_t row = 0; row < size.rows; ++row) {
      one.at = piece.at;
      std::int64_t rest = row;
      for (std::size_t d = 1; d < size.counts.size(); rest /= size.counts[d], ++d) {
        const std::int64_t at = piece.at.at[d] + rest % size.counts[d] * std::int64_t{whole.map.every[d]};
        if (at > std::numeric_limits<std::int32_t>::max()) return {whole};
        one.at.at[d] = static_cast<std::int32_t>(at);
      }
      one.shared = whole.shared + static_cast<std::uint64_t>(piece.shared + row * size.pitch) - offset_of(whole.shared);
      rows.push_back(one);
    }
  }
  return rows;
}

void each_loaded_run(const PendingOp& copy, const std::function<void(std::uint64_t, std::uint64_t, int)>& run) {
  constexpr std::int64_t kTogether = 8;
  for (const BoxPiece& piece : pieces_of(copy)) {
    const TensorBox box = tensor_box(copy.map, piece.at, piece.shared);
    box.each_row([&](const BoxRow& row) {
      if (!row.inside) return;
      const auto change = static_cast<std::int64_t>(box.swizzle.change(static_cast<std::uint64_t>(row.shared)));
      for (std::int64_t c = box.begin & -kTogether; c < box.end; c += kTogether) {
        const std::int64_t from = std::max(c, box.begin), to = std::min(c + kTogether, box.end);
        const std::int64_t place = ((row.shared + c) ^ change) + from - c;
        run(row.global + static_cast<std::uint64_t>(from - box.begin), static_cast<std::uint64_t>(place),
            static_cast<int>(to - from));
      }
    });
  }
}

std::vector<CopyChunk> chunks_of(const PendingOp& p) {
  std::vector<CopyChunk> all;
  std::int64_t rows = 0;
  for (const BoxPiece& piece : pieces_of(p)) {
    const TensorBox box = tensor_box(p.map, piece.at, piece.shared);
    box.each_row([&](const BoxRow& row) {
      static_cast<void>(each_chunk(box, row, p.map.element_bytes(), [&](const CopyChunk& chunk) {
        all.push_back(chunk);
        all.back().row += rows;
        return true;
      }));
    });
    rows += box.size.rows;
  }
  return all;
}

}  // namespace kvscope::ptx

#include "gpu/virtual/machine/copies/tensor_boxes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {

BoxSwitches switches_of(const Launch& launch) {
  BoxSwitches s;
  s.target = launch.program->module->target >= 100 ? TmaTarget::sm_100 : TmaTarget::sm_90;
  return s;
}

std::vector<BoxPiece> pieces_of(const PendingOp& p, const BoxSwitches& switches) {
  const auto offset = static_cast<std::int64_t>(offset_of(p.shared));
  if (!p.gather) return {{p.at, offset}};
  const std::int64_t pitch = box_shape(p.map, switches).pitch;
  std::vector<BoxPiece> pieces;
  for (int i = 0; i < kGatherRows; ++i) {
    pieces.push_back({TmaCoord{p.at.at[0], p.at.at[static_cast<std::size_t>(1 + i)]}, offset + i * pitch});
  }
  return pieces;
}

std::vector<PendingOp> rows_of(const PendingOp& whole, const BoxSwitches& switches) {
  std::vector<PendingOp> rows;
  for (const BoxPiece& piece : pieces_of(whole, switches)) {
    const BoxShape shape = box_shape(whole.map, switches);
    PendingOp one = whole;
    one.gather = false;
    one.bytes = shape.inner;
    if (one.op.mbarrier != 0) one.op.bytes = shape.inner;
    for (std::size_t d = 1; d < one.map.box.size(); ++d) one.map.box[d] = std::min(one.map.box[d], 1U);
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      one.at = piece.at;
      std::int64_t rest = row;
      for (std::size_t d = 1; d < shape.extents.size(); rest /= shape.extents[d], ++d) {
        const std::int64_t at = piece.at.at[d] + rest % shape.extents[d] * std::int64_t{whole.map.element_strides[d]};
        if (at > std::numeric_limits<std::int32_t>::max()) return {whole};
        one.at.at[d] = static_cast<std::int32_t>(at);
      }
      one.shared =
          whole.shared + static_cast<std::uint64_t>(piece.shared + row * shape.pitch) - offset_of(whole.shared);
      rows.push_back(one);
    }
  }
  return rows;
}

std::vector<BoxChunk> chunks_of(const Launch& launch, const PendingOp& p) {
  const BoxSwitches switches = switches_of(launch);
  std::vector<BoxChunk> all;
  std::int64_t row = 0;
  for (const BoxPiece& piece : pieces_of(p, switches)) {
    for (BoxChunk chunk : box_chunks(p.map, piece.at, piece.shared, switches)) {
      chunk.row += row;
      all.push_back(chunk);
    }
    row += box_shape(p.map, switches).rows;
  }
  return all;
}

}  // namespace kvscope::ptx

#include "core/tma/gather4.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/tma/box_moves.h"
#include "core/tma/box_plan.h"
#include "core/tma/box_rows.h"

namespace kvscope {

namespace {

// The ordinary coordinates of one of the four rows.
TmaCoord row_start(const TmaCoord& at, std::size_t i) {
  return {at.at[0], at.at[1 + i]};
}

// Faults of the map and the coordinates, including the column; the destination is not checked.
void require_gather(const TensorMap& map, const TmaCoord& at, const BoxSwitches& switches) {
  require_box_copyable(map, BoxDirection::load, switches);
  std::vector<Fault> faults;
  if (map.rank != 2) faults.push_back({"rank", fmt::format("{}: a gather takes rows of a map of rank 2", map.rank)});
  if (map.rank >= 2 && map.box[1] != 1) {
    faults.push_back({"box[1]", fmt::format("{}: a gather's box is one row, {{w, 1}}", map.box[1])});
  }
  if (at.rank != 5) {
    faults.push_back({"coordinates", fmt::format("{}: a gather takes 5, the column and four rows", at.rank)});
  }
  if (!faults.empty()) throw GeometryError("gather4", std::move(faults));
}

// Copies four rows as four boxes of one row (box_rows.h), all or none. Returns the filled bytes; empty: use chunks.
std::optional<std::int64_t> gather_rows(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory,
                                        SharedImage& image, std::int64_t dst, CopyIdx copy,
                                        const BoxSwitches& switches) {
  const std::int64_t pitch = box_shape(map, switches).pitch;
  std::array<std::optional<BoxRows>, 4> rows;
  std::array<std::span<const std::byte>, 4> sources;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = box_rows(map, row_start(at, i), dst + static_cast<std::int64_t>(i) * pitch, switches);
    const auto source = rows[i] ? rows[i]->source(memory) : std::nullopt;
    if (!source) return std::nullopt;
    sources[i] = *source;
  }
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    load_rows(*rows[i], sources[i], box_fill(map, switches), image, copy);
    filled += rows[i]->filled_bytes();
  }
  return filled;
}

}  // namespace

std::vector<BoxChunk> gather4_chunks(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                     const BoxSwitches& switches) {
  require_gather(map, at, switches);
  const std::int64_t pitch = box_shape(map, switches).pitch;
  std::vector<BoxChunk> chunks;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto row = static_cast<std::int64_t>(i);
    for (BoxChunk chunk : box_chunks(map, row_start(at, i), dst + row * pitch, switches)) {
      chunk.row = row;
      chunks.push_back(chunk);
    }
  }
  return chunks;
}

BoxLoad gather4(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory, SharedImage& image,
                std::int64_t dst, CopyIdx copy, const BoxSwitches& switches) {
  if (switches.target < TmaTarget::sm_100) {
    throw UnsupportedError(
        fmt::format("gather4 is not an instruction of {}: use four loads (gather4_by_loads)", name(switches.target)));
  }
  require_gather(map, at, switches);
  TensorMap four_rows = map;  // for the size of the window
  four_rows.box[1] = 4;
  require_box_start(four_rows, row_start(at, 0), dst, image.size(), BoxDirection::load, switches);

  const BoxShape shape = box_shape(four_rows, switches);
  if (const auto filled = gather_rows(map, at, memory, image, dst, copy, switches)) {
    return {copy, dst, shape.window_bytes, shape.tx_bytes, *filled};
  }
  const std::vector<BoxChunk> chunks = gather4_chunks(map, at, dst, switches);
  carry_out(moves_of(chunks, box_fill(map, switches), memory), image, copy);
  return {copy, dst, shape.window_bytes, shape.tx_bytes, filled_bytes(chunks)};
}

std::array<BoxLoad, 4> gather4_by_loads(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory,
                                        SharedImage& image, std::int64_t dst, CopyIdx first,
                                        const BoxSwitches& switches) {
  require_gather(map, at, switches);
  const std::int64_t pitch = box_shape(map, switches).pitch;
  const auto row_dst = [&](std::size_t i) { return dst + static_cast<std::int64_t>(i) * pitch; };
  for (std::size_t i = 0; i < 4; ++i) {
    require_box_start(map, row_start(at, i), row_dst(i), image.size(), BoxDirection::load, switches);
    const auto chunks = box_chunks(map, row_start(at, i), row_dst(i), switches);
    static_cast<void>(moves_of(chunks, box_fill(map, switches), memory));  // throws before any row is written
  }
  std::array<BoxLoad, 4> loads;
  for (std::size_t i = 0; i < 4; ++i) {
    loads[i] =
        load_box(map, row_start(at, i), memory, image, row_dst(i), first + static_cast<std::int64_t>(i), switches);
  }
  return loads;
}

}  // namespace kvscope

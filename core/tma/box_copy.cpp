#include "core/tma/box_copy.h"

#include <algorithm>
#include <vector>

#include "core/base/checked.h"
#include "core/tma/box_moves.h"
#include "core/tma/box_rows.h"

namespace kvscope {

namespace {

// Chunk by chunk, for boxes that box_rows.h does not support.
BoxStore store_chunks(const std::vector<BoxChunk>& chunks, GlobalMemory& memory, const SharedImage& image,
                      bool whole_chunks) {
  const auto bytes_to_write = [&](const BoxChunk& chunk) -> std::int64_t {
    return chunk.filled() ? 0 : whole_chunks ? 16 : chunk.data_bytes;
  };
  for (const BoxChunk& chunk : chunks) {  // checks all addresses before the first write
    if (!chunk.filled()) static_cast<void>(memory.read(chunk.global, bytes_to_write(chunk)));
  }

  BoxStore result;
  for (const BoxChunk& chunk : chunks) {
    const std::int64_t count = bytes_to_write(chunk);
    if (count == 0) continue;
    const auto source = image.read(chunk.shared, count);
    std::copy(source.begin(), source.end(), memory.at(chunk.global, count).begin());
    result.global_bytes += count;
    result.overrun_bytes += count - chunk.data_bytes;
    result.poison_bytes += image.unwritten(chunk.shared, count);
  }
  return result;
}

}  // namespace

std::array<std::byte, 16> box_fill(const TensorMap& map, const BoxSwitches& switches) {
  BoxBytes fill{};
  if (map.fill == OobFill::none) return fill;
  std::uint64_t pattern = 0x7FF7'7FF7'7FF7'7FF7;  // of one element, in its low bits
  if (switches.nan == BoxSwitches::Nan::quiet) {
    switch (map.data_type) {
      case TmaDataType::f16:
        pattern = 0x7E00;
        break;
      case TmaDataType::bf16:
        pattern = 0x7FC0;
        break;
      case TmaDataType::f64:
        pattern = 0x7FF8'0000'0000'0000;
        break;
      default:
        pattern = 0x7FC0'0000;
        break;
    }
  }
  const auto size = static_cast<std::size_t>(size_of(map.data_type));
  for (std::size_t i = 0; i < fill.size(); ++i) fill[i] = static_cast<std::byte>(pattern >> (8 * (i % size)) & 0xFF);
  return fill;
}

BoxLoad load_box(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory, SharedImage& image,
                 std::int64_t dst, CopyIdx copy, const BoxSwitches& switches) {
  require_box_copyable(map, BoxDirection::load, switches);
  require_box_start(map, at, dst, image.size(), BoxDirection::load, switches);
  if (const auto rows = box_rows(map, at, dst, switches)) {
    if (const auto source = rows->source(memory)) {
      load_rows(*rows, *source, box_fill(map, switches), image, copy);
      return {copy, dst, rows->shape.window_bytes, rows->shape.tx_bytes, rows->filled_bytes()};
    }
  }
  const std::vector<BoxChunk> chunks = box_chunks(map, at, dst, switches);
  carry_out(moves_of(chunks, box_fill(map, switches), memory), image, copy);
  const BoxShape shape = box_shape(map, switches);
  return {copy, dst, shape.window_bytes, shape.tx_bytes, filled_bytes(chunks)};
}

void prefetch_box(const TensorMap& map, const TmaCoord& at, const BoxSwitches& switches) {
  require_box_copyable(map, BoxDirection::load, switches);
  require_box_start(map, at, 0, box_shape(map, switches).window_bytes, BoxDirection::load, switches);
}

BoxStore store_box(const TensorMap& map, const TmaCoord& at, GlobalMemory& memory, const SharedImage& image,
                   std::int64_t src, const BoxSwitches& switches) {
  require_box_copyable(map, BoxDirection::store, switches);
  require_box_start(map, at, src, image.size(), BoxDirection::store, switches);
  const bool whole_chunks = switches.store_edge == BoxSwitches::StoreEdge::chunk;
  if (const auto rows = box_rows(map, at, src, switches)) {
    const std::int64_t row_bytes = whole_chunks ? round_up(rows->data, 16) : rows->data, over = row_bytes - rows->data;
    if (rows->data == 0) return {};
    if (const auto target = memory.at_if(rows->base, rows->hull_bytes + over)) {
      const std::int64_t poison = store_rows(*rows, image, row_bytes, *target);
      return {rows->rows_inside() * row_bytes, rows->rows_inside() * over, poison};
    }
  }
  const std::vector<BoxChunk> chunks = box_chunks(map, at, src, switches);
  return store_chunks(chunks, memory, image, whole_chunks);
}

}  // namespace kvscope

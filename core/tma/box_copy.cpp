#include "core/tma/box_copy.h"

#include <algorithm>
#include <vector>

#include "core/tma/box_moves.h"

namespace kvscope {

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
  const std::vector<BoxChunk> chunks = box_chunks(map, at, src, switches);
  const auto bytes_to_write = [&](const BoxChunk& chunk) -> std::int64_t {
    return chunk.filled() ? 0 : whole_chunks ? 16 : chunk.data_bytes;
  };
  for (const BoxChunk& chunk : chunks) {  // all of it exists, before any of it changes
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
    for (std::int64_t i = 0; i < count; ++i) {
      result.poison_bytes += image.writer(chunk.shared + i) == SharedImage::kNobody ? 1 : 0;
    }
  }
  return result;
}

}  // namespace kvscope

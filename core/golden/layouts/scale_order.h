// The order of the block scales of a page and head: a matrix of P slots with G scales each.
//
//   linear       scale g of slot s is at place s * G + g
//   interleaved  the scales of 4 slots side by side, as FlashInfer's NVFP4 cache has them for TensorRT-LLM's kernels:
//                (s / 4 * G + g) * 4 + s % 4; P is a multiple of 4
//   tiled        tiles of 128 slots and 4 scales, as cuBLAS documents them for block-scaled matrix instructions (MXFP8,
//                NVFP4): (s / 128 * (G / 4) + g / 4) * 512 + s % 32 * 16 + s % 128 / 32 * 4 + g % 4; P is a multiple of
//                128, and G of 4
//
// Examples: G = 2, interleaved: scale 1 of slot 2 is at place 6. G = 8, tiled: scale 5 of slot 33 is at place 533.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvscope::golden {

enum class ScaleOrder : std::uint8_t { linear, interleaved, tiled };

inline constexpr std::array<std::string_view, 3> kScaleOrderNames{"linear", "interleaved", "tiled"};

[[nodiscard]] constexpr std::string_view name(ScaleOrder order) {
  return kScaleOrderNames[static_cast<std::size_t>(order)];
}
[[nodiscard]] constexpr std::optional<ScaleOrder> scale_order_from_name(std::string_view text) {
  for (std::size_t i = 0; i < kScaleOrderNames.size(); ++i) {
    if (kScaleOrderNames[i] == text) return static_cast<ScaleOrder>(i);
  }
  return std::nullopt;
}

// What the numbers of slots and of scales are multiples of.
[[nodiscard]] constexpr std::int64_t slots_of_run(ScaleOrder order) {
  return order == ScaleOrder::tiled ? 128 : order == ScaleOrder::interleaved ? 4 : 1;
}
[[nodiscard]] constexpr std::int64_t scales_of_run(ScaleOrder order) {
  return order == ScaleOrder::tiled ? 4 : 1;
}

[[nodiscard]] constexpr std::int64_t scale_place(ScaleOrder order, std::int64_t slot, std::int64_t scale,
                                                 std::int64_t scales) {
  switch (order) {
    case ScaleOrder::interleaved:
      return (slot / 4 * scales + scale) * 4 + slot % 4;
    case ScaleOrder::tiled:
      return (slot / 128 * (scales / 4) + scale / 4) * 512 + slot % 32 * 16 + slot % 128 / 32 * 4 + scale % 4;
    case ScaleOrder::linear:
      break;
  }
  return slot * scales + scale;
}

}  // namespace kvscope::golden

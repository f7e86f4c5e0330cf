#include "gpu/virtual/machine/copies/tensor_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kSharedAlign = 128;  // [bytes] of every shared address of a tensor copy

std::string_view word_of(CopyDirection direction) {
  return direction == CopyDirection::load ? "load" : "store";
}

// The positions of one dimension that are in both box and tensor: `first` to `last`; none if last < first.
struct Positions {
  std::int64_t first = 0, last = -1;
};
Positions positions_inside(std::int64_t start, std::int64_t count, std::int64_t every, std::uint64_t dim) {
  const std::int64_t first = start >= 0 ? start : floor_mod(start, every);
  const std::int64_t limit = std::min(start + (count - 1) * every, static_cast<std::int64_t>(dim) - 1);
  if (limit < first) return {};
  return {first, limit - (limit - first) % every};
}

// An address computed in steps, and whether it has exceeded 2^64.
struct SummedAddress {
  std::uint64_t value = 0;
  bool past = false;
  void add(std::int64_t positions, std::uint64_t bytes) {
    std::uint64_t distance = 0;
    past = __builtin_mul_overflow(static_cast<std::uint64_t>(positions), bytes, &distance) || past;
    past = __builtin_add_overflow(value, distance, &value) || past;
  }
};

}  // namespace

BoxSize box_size(const CopyMap& map) {
  BoxSize size;
  for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) {
    size.counts[i] = (static_cast<std::int64_t>(map.box[i]) - 1) / map.every[i] + 1;
    size.rows *= size.counts[i];
  }
  size.counts[0] = map.box[0];
  size.inner = size.counts[0] * map.element_bytes();
  const SwizzleBits& swizzle = map.swizzle_mode().bits;
  size.pitch = swizzle.active() ? swizzle.span : size.inner;
  return size;
}

std::string map_fault(const CopyMap& map, CopyDirection direction, int target) {
  const auto unsupported = [&](const std::string& what) {
    return fmt::format("{} of a box: {}", word_of(direction), what);
  };
  const ElementFormat& element = map.element();
  const MapSwizzle& swizzle = map.swizzle_mode();
  if (map.interleave != 0) {
    return unsupported(fmt::format(
        "where the bytes of a map with {}B interleave land is not modeled: use no interleave", 16 * map.interleave));
  }
  if (!element.copied) {
    return unsupported(
        fmt::format("{} is converted on its way, and only byte copies are modeled: use u8", element.name));
  }
  if (direction == CopyDirection::store && swizzle.bits.halves != 0) {
    return unsupported(fmt::format("{} is for loads only: store with the ATOM_32B swizzle", swizzle.name));
  }
  if (target < 100 && swizzle.needs_sm_100) {
    return format_faults(
        fmt::format("tensor map of the box to {}", word_of(direction)),
        {{"swizzle (target)", fmt::format("{} needs sm_100: use the 128B swizzle on sm_90", swizzle.name)}});
  }
  return {};
}

std::string start_fault(const CopyMap& map, const Coordinates& at, std::int64_t shared, std::int64_t window,
                        std::int64_t shared_bytes, CopyDirection direction) {
  std::vector<Fault> faults;
  if (at.count != map.rank) {
    faults.push_back({"coordinates",
                      fmt::format("{} for a map of rank {}: give one a dimension, fastest first", at.count, map.rank)});
  } else {
    const std::int64_t column = at.at[0], size = map.element_bytes(), whole = kCopyChunk / size;
    if (const std::int64_t past = floor_mod(column, whole); past != 0) {
      faults.push_back({"coordinate 0",
                        fmt::format("{} x {} = {} B is not a multiple of 16 B (error 715 on Hopper): start at {} or {}",
                                    column, map.element().name, column * size, column - past, column - past + whole)});
    }
    for (int i = 0; direction == CopyDirection::store && i < at.count; ++i) {
      const std::int32_t value = at.at[static_cast<std::size_t>(i)];
      if (value >= 0) continue;
      faults.push_back(
          {fmt::format("coordinate {}", i),
           fmt::format("{} is below 0, where a store must not start (error 715 on Hopper): clip the tile first",
                       value)});
    }
  }
  if (shared < 0 || shared % kSharedAlign != 0) {
    faults.push_back({"shared address", fmt::format("{} is not a multiple of 128 B (error 716): use {}", shared,
                                                    std::max<std::int64_t>(0, round_up(shared, kSharedAlign)))});
  }
  if (shared >= 0 && shared + window > shared_bytes) {
    faults.push_back({"shared address", fmt::format("the window of {} bytes at {} leaves the {} bytes of shared memory",
                                                    window, shared, shared_bytes)});
  }
  return faults.empty() ? std::string() : format_faults(fmt::format("{} of a box", word_of(direction)), faults);
}

TensorBox tensor_box(const CopyMap& map, const Coordinates& at, std::int64_t shared) {
  TensorBox box;
  box.size = box_size(map);
  box.swizzle = map.swizzle_mode().bits;
  box.shared = shared;

  SummedAddress low{map.base}, high{map.base};
  bool any = true;
  std::uint64_t origin = map.base;
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    TensorBox::Axis& axis = box.axes[i];
    axis.first = at.at[i];
    axis.every = i == 0 ? 1 : map.every[i];
    axis.dim = map.dims[i];
    axis.bytes = map.strides[i] * static_cast<std::uint64_t>(axis.every);
    const Positions inside = positions_inside(axis.first, box.size.counts[i], axis.every, axis.dim);
    if (inside.last < inside.first) {
      any = false;
      continue;
    }
    low.add(inside.first, map.strides[i]);
    if (i == 0) {
      const auto size = static_cast<std::int64_t>(map.strides[0]);
      box.begin = (inside.first - axis.first) * size;
      box.end = (inside.last + 1 - axis.first) * size;
      origin += static_cast<std::uint64_t>(inside.first) * map.strides[0];
      // The address of the last chunk, not of its last element: memory is accessed in whole chunks.
      const std::int64_t last_chunk = (box.end - 1) / kCopyChunk * kCopyChunk / size + axis.first;
      high.add(last_chunk, map.strides[0]);
      box.hull += box.end - box.begin;
    } else {
      high.add(inside.last, map.strides[i]);
      origin += static_cast<std::uint64_t>(axis.first) * map.strides[i];
      box.hull += (inside.last - inside.first) * static_cast<std::int64_t>(map.strides[i]);
    }
  }
  if (!any) {
    box.begin = box.end = box.hull = 0;
    return box;
  }
  if (high.past) {
    throw IllegalAddress(
        "illegal address (error 700): an element inside the map lies past 2^64: check the map's base and strides",
        map.base, static_cast<std::int64_t>(map.strides[0]));
  }
  box.lowest = low.value;
  box.origin = origin;
  return box;
}

}  // namespace kvscope::ptx

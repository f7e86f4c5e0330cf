#include "viz/playback/tile_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/grouped.h"

namespace kvscope::viz {
namespace {

constexpr std::int64_t kBytesShown = 16;

std::string faults_of_axis(const TileSource& source, std::optional<std::int64_t> axis) {
  std::string text;
  for (const TileFault& fault : source.faults) {
    if (fault.axis != axis) continue;
    text += fmt::format(". {}{}{}", fault.place, fault.place.empty() ? "" : ": ", fault.message);
  }
  return text;
}

std::string engines_in_words(const TileSource& source) {
  if (source.engines.empty()) return {};
  std::string takes, not_taken;
  for (const TileEngine& engine : source.engines) {
    if (engine.takes) takes += fmt::format("{}{}", takes.empty() ? "" : "; ", engine.kernel);
    if (!engine.takes) {
      not_taken += fmt::format("{}{} ({})", not_taken.empty() ? "" : "; ", engine.kernel, engine.why_not);
    }
  }
  std::string text = takes.empty() ? ". No published kernel would load this cache by TMA"
                                   : ". Kernels that would load this cache by TMA: " + takes;
  if (!not_taken.empty()) text += ". Kernels that would not: " + not_taken;
  return text;
}

}  // namespace

bool TileSource::broken(std::int64_t axis) const {
  return std::ranges::any_of(faults, [&](const TileFault& fault) { return fault.axis == axis; });
}

std::string path_in_words(TilePath path) {
  switch (path) {
    case TilePath::tma:
      return "by TMA";
    case TilePath::lds:
      return "through LDS";
    case TilePath::gather4:
      return "by gather4";
    case TilePath::rope:
      return "rope values by TMA";
  }
  return {};
}

std::string axis_in_words(const TileSource& source, std::int64_t axis) {
  const std::int64_t axes = source.map ? std::ssize(source.map->axes) : 0;
  if (axis < 0 || axis > axes) return "No such axis of the tensor map";
  if (axis == axes) {
    const bool legal = source.faults.empty();
    return fmt::format("The tensor map, {}{}{}{}", source.map ? source.map->swizzle : "not made",
                       legal ? ": it breaks no rule" : "", faults_of_axis(source, std::nullopt),
                       engines_in_words(source));
  }
  const TileMapAxis& of = source.map->axes[static_cast<std::size_t>(axis)];
  return fmt::format("Axis {} of the tensor map, {}: {} of them, {} B apart, a box takes {}{}", axis, of.name,
                     grouped(of.extent), grouped(of.stride), grouped(of.box), faults_of_axis(source, axis));
}

std::string offer_in_words(const TileSource& source, TilePath path) {
  const auto offer = std::ranges::find(source.offers, path, &TileOffer::path);
  if (offer == source.offers.end()) return "No such path of the tile";
  if (!offer->why_not.empty()) {
    return fmt::format("The tile cannot be staged {}: {}", path_in_words(path), offer->why_not);
  }
  const std::string copies =
      offer->copies > 0 ? fmt::format(": {} instruction{}", offer->copies, offer->copies == 1 ? "" : "s") : "";
  return fmt::format("Stage the tile {}{}", path_in_words(path), copies);
}

std::string scale_in_words(const TileScales& scales, std::int64_t row, std::int64_t granule) {
  if (row < 0 || row >= std::ssize(scales.place) || granule < scales.first || granule >= scales.first + scales.count) {
    return "No such scale of the tile";
  }
  const auto at = static_cast<std::size_t>(row);
  return fmt::format("Scale {} of row {}: elements {} to {} of the head, {}, byte {} of the scales' pool, row {}",
                     granule, row, granule * scales.granularity, (granule + 1) * scales.granularity - 1, scales.dtype,
                     scales.place[at] + (granule - scales.first) * scales.bytes, scales.row[at]);
}

std::string bytes_in_words(const TileRowBytes& bytes, std::int64_t row, std::int64_t first) {
  if (row < 0 || row >= std::ssize(bytes.place) || first < 0 || first >= bytes.bytes())
    return "No such bytes of the tile";
  const std::int64_t end = std::min(first + kBytesShown, bytes.bytes());
  std::string values;
  for (const TileRowPart& part : bytes.parts) {
    const std::int64_t from = std::max(first, part.first), to = std::min(end, part.first + part.bytes);
    if (from >= to) continue;
    values += fmt::format("{}{} values {} to {} in {}", values.empty() ? "" : ", ", part.name,
                          (from - part.first) / part.value_bytes, (to - 1 - part.first) / part.value_bytes, part.dtype);
  }
  return fmt::format("Bytes {} to {} of row {}: {}, byte {} of the pool", first, end - 1, row, values,
                     bytes.place[static_cast<std::size_t>(row)] + first);
}

}  // namespace kvscope::viz

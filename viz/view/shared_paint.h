// What the panel of shared memory shows at one moment: the chunks as they are stored, beside them as another layout
// would store them, and the wavefronts of one read under both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/geometry/shared_layout.h"
#include "viz/playback/tile_layouts.h"
#include "viz/playback/tile_reads.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

// [px] at font scale 1
inline constexpr double kSharedAxis = 8.5, kSharedWords = 11, kSharedVerdictText = 12, kLowestChunkLabel = 8,
                        kSharedChipText = 11;

// The layouts of the tile that is shown, and the wavefronts of its reads under each. A cache: the reads of a tile take
// up to a million words.
struct SharedLayouts {
  std::uint64_t serial = 0;
  std::vector<TileLayout> layouts;
  std::vector<LayoutCost> costs;
  const SharedLayouts& of(const Tile& tile);
};

// "128B: 64": a layout and the wavefronts of all reads.
[[nodiscard]] QString chip_text(const TileLayout& layout, const LayoutCost& cost);

// Chunks by 16-byte slot, -1 for none.
struct SharedImage {
  std::vector<std::int32_t> stored;  // as it is
  std::vector<std::int32_t> other;   // under the other layout
  std::int64_t line_bytes = 128;

  [[nodiscard]] std::int64_t per_line() const { return line_bytes / kTileChunkBytes; }
  [[nodiscard]] std::int64_t lines() const;
  [[nodiscard]] std::int32_t chunk(const SharedLayout::Place& place) const;
  // The tokens of a line as stored: "64", or "64–67" where a line holds several rows.
  [[nodiscard]] QString label(std::int64_t line, const Tile& tile) const;
};

struct SharedNow {
  SharedImage image;
  SharedLayout at;
  const SharedLayouts* all = nullptr;
  std::optional<TileLayout> other;  // none: nothing to compare
  std::optional<std::size_t> other_index;
  [[nodiscard]] QString other_name() const;  // "without the swizzle"
};
[[nodiscard]] SharedNow shared_now(const SharedLayouts& all, const QRectF& body, const Scene& scene);

void paint_shared_read(QPainter& painter, const SharedNow& now, const ShownRead& shown, const Scene& scene);

}  // namespace kvscope::viz

// The two halves of the copies panel: boxes that TMA copies, and copies of waves through LDS. All of these are called
// with a tile of their path.
#pragma once

#include <span>
#include <vector>

#include "viz/view/panel.h"

namespace kvscope::viz {

// copies_tma.cpp
[[nodiscard]] QString tma_subtitle(const Scene& scene);
[[nodiscard]] QString tma_summary(const Scene& scene);
void paint_tma(QPainter& painter, const QRectF& body, const Scene& scene);
[[nodiscard]] std::vector<PanelCell> tma_cells(const QRectF& body, const Scene& scene);
[[nodiscard]] TilePlaces tma_chunk_places(std::span<const std::int64_t> chunks, const QRectF& body, const Scene& scene);

// copies_lds.cpp
[[nodiscard]] QString lds_subtitle(const Scene& scene);
[[nodiscard]] QString lds_summary(const Scene& scene);
void paint_lds(QPainter& painter, const QRectF& body, const Scene& scene);
[[nodiscard]] std::vector<PanelCell> lds_cells(const QRectF& body, const Scene& scene);
[[nodiscard]] TilePlaces lds_chunk_places(std::span<const std::int64_t> chunks, const QRectF& body, const Scene& scene);

}  // namespace kvscope::viz

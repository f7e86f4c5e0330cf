// The two halves of the copies panel: boxes that TMA copies, and copies of waves through LDS. All of these are called
// with a tile of their path.
#pragma once

#include <span>
#include <vector>

#include "viz/geometry/map_layout.h"
#include "viz/view/panel.h"

namespace kvscope::viz {

// copies_map.cpp: the tensor map, axis by axis; `rules` also notes what is wrong with each. Without a tile likewise.
[[nodiscard]] MapLayout map_of(const TileMapPlan& map, const TileSource& source, bool rules, const QRectF& body,
                               const Scene& scene);
void paint_map_axes(QPainter& painter, const MapLayout& at, const TileSource& source, bool rules, const Scene& scene);
// What is lit, as marks on the axes.
void paint_map_marks(QPainter& painter, const MapLayout& at, const Tile& tile, const Lit& lit, const QColor& color);
void add_map_cells(const MapLayout& at, std::vector<PanelCell>& cells);

// copies_instead.cpp: without a tile, what is wrong with it, and the other paths as buttons
void paint_copies_instead(QPainter& painter, const QRectF& body, const Scene& scene);
[[nodiscard]] std::vector<PanelCell> copies_instead_cells(const QRectF& body, const Scene& scene);
// Buttons of the paths that can take the tile, from left to right or below one another.
[[nodiscard]] std::vector<PanelCell> offer_cells(const TileSource& source, const QRectF& rect, const Scene& scene);
void paint_offers(QPainter& painter, const std::vector<PanelCell>& offers, const Scene& scene);

// copies_tma.cpp
[[nodiscard]] QString tma_subtitle(const Scene& scene);
[[nodiscard]] QString tma_summary(const Scene& scene);
void paint_tma(QPainter& painter, const QRectF& body, const Scene& scene);
void paint_tma_overlay(QPainter& painter, const QRectF& body, const Scene& scene);
[[nodiscard]] std::vector<PanelCell> tma_cells(const QRectF& body, const Scene& scene);
[[nodiscard]] TilePlaces tma_chunk_places(std::span<const std::int64_t> chunks, const QRectF& body, const Scene& scene);

// copies_lds.cpp
[[nodiscard]] QString lds_subtitle(const Scene& scene);
[[nodiscard]] QString lds_summary(const Scene& scene);
void paint_lds(QPainter& painter, const QRectF& body, const Scene& scene);
[[nodiscard]] std::vector<PanelCell> lds_cells(const QRectF& body, const Scene& scene);
[[nodiscard]] TilePlaces lds_chunk_places(std::span<const std::int64_t> chunks, const QRectF& body, const Scene& scene);

}  // namespace kvscope::viz

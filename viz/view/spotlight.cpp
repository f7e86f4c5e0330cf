#include "viz/view/spotlight.h"

#include <vector>

#include <QtGui/QPainterPath>

namespace kvscope::viz {
namespace {

constexpr double kDimmed = 0.55;         // opacity of the surface's color over everything else
constexpr double kAroundObject = 4;      // [px] of the light around an object
constexpr double kLightCorner = 6;       // [px]
constexpr std::size_t kMostLights = 64;  // of an object with many places

// The object itself, and each of its places in the lookup table.
std::vector<Lit> places_of(const Lit& lit) {
  std::vector<Lit> all{lit};
  for (const TablePlace& place : lit.places) {
    if (all.size() == kMostLights) break;
    Lit one;
    one.seq = place.seq;
    one.page = place.page;
    one.places = {place};
    all.push_back(one);
  }
  for (const BlockIdx block : lit.blocks) {
    if (all.size() >= 2 * kMostLights) break;
    Lit one;
    one.block = block;
    one.blocks = {block};
    all.push_back(one);
  }
  return all;
}

}  // namespace

void paint_spotlight(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene) {
  if (scene.pinned.none()) return;
  const std::vector<Place> places = board(scene.view, size, scene.font_scale);
  QPainterPath lights, bodies;
  lights.setFillRule(Qt::WindingFill);
  for (const Place& place : places) {
    const Panel* const panel = panels[static_cast<std::size_t>(place.panel)].get();
    if (panel == nullptr || !has_card(place.panel)) continue;
    bodies.addRect(place.body.united(place.footer.isEmpty() ? place.body : place.footer));
    for (const Lit& lit : places_of(scene.pinned_lit)) {
      const std::optional<QRectF> rect = panel->anchor(lit, place.body, scene);
      if (!rect) continue;
      const QRectF light = rect->adjusted(-kAroundObject, -kAroundObject, kAroundObject, kAroundObject);
      lights.addRoundedRect(light, kLightCorner, kLightCorner);
    }
  }
  if (lights.isEmpty()) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.fillPath(bodies.subtracted(lights), with_alpha(scene.theme->surface, kDimmed));
  painter.restore();
}

}  // namespace kvscope::viz

// The picture of the registers panel: the registers of one read cell by cell, a sentence, and all reads as pieces of
// the tile. The read that is shown follows the selection, so all of it is repainted when the pointer moves.
#pragma once

#include <optional>

#include <QtGui/QPainter>

#include "viz/geometry/registers_layout.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

// All functions need a scene with a tile.
struct RegistersNow {
  RegistersLayout layout;
  LitTile lit;  // that chose the read
};
// Nothing: no read fills registers.
[[nodiscard]] std::optional<RegistersNow> registers_now(const QRectF& body, const Scene& scene);

void paint_registers(QPainter& painter, const RegistersNow& at, const Scene& scene);
// What outlined, filled and faded registers mean; smaller where there is no room.
void paint_registers_legend(QPainter& painter, const QRectF& footer, const Scene& scene);

}  // namespace kvscope::viz

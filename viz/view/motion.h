// The pictures between two still pictures of one view: blocks slide between the pool and the pages of sequences, chunks
// fly from the pool through their copy into shared memory, a read takes its wavefronts one by one and fills registers,
// a tile of the flow is added to m, l and o.
//
//   Motion motion(panels, size, scale, still_of(before), still_of(after));
//   motion.paint_base(painter, 0.5);                                        the surface and the cards
//   paint_board_overlay(painter, size, panels, motion.scene_at(0.5));       selection and links, as on a still picture
//   motion.paint_movers(painter, 0.5);                                      what is on its way
//
// At 0 and 1 the pixels are those of the two stills.     // held by tests/viz/view/motion_test.cpp
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QtCore/QSizeF>
#include <QtGui/QImage>
#include <QtGui/QPainter>

#include "viz/playback/motion.h"
#include "viz/playback/tile_state.h"
#include "viz/view/panel.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

inline constexpr std::size_t kMostMoves = 400, kMostFlights = 600;  // objects that move at the same time

// What a scene refers to by pointers and a still keeps alive.
struct KeptScene {
  std::shared_ptr<const Tile> tile;
  std::shared_ptr<const AttentionFlow> flow;
  std::shared_ptr<const AttentionErrors> errors;
};

// A scene with everything that it refers to, so that it stays as it is while the document moves on.
class Still {
 public:
  // Copies the cursor (the state's blocks are shared until one of the copies changes) and keeps the rest.
  Still(const Scene& scene, KeptScene kept);
  Still(const Still& other) : Still(other.scene_, other.kept_) {}
  Still& operator=(const Still&) = delete;
  [[nodiscard]] const Scene& scene() const { return scene_; }
  [[nodiscard]] const KeptScene& kept() const { return kept_; }

 private:
  Cursor cursor_;
  KeptScene kept_;
  TileState tile_now_;
  std::optional<State> staged_, compared_;
  Scene scene_;
};

class Motion {
 public:
  // `panels` is kept by reference. `scale`: device pixels per logical pixel. Precondition (caller): both stills are of
  // one run and have the same view, viewports, theme and font scale.
  Motion(const Panels& panels, QSizeF size, double scale, const Still& before, const Still& after);
  Motion(const Motion&) = delete;
  Motion& operator=(const Motion&) = delete;
  ~Motion();

  // Nothing moves: the second picture can be shown at once.
  [[nodiscard]] bool empty() const;
  // All pixels except the overlay and the moving objects.
  void paint_base(QPainter& painter, double t) const;
  void paint_movers(QPainter& painter, double t) const;
  // The scene of the overlay at t: of the tile view with the tile's state at t, of the attention view with the flow's.
  // It refers to the motion until the next call.
  [[nodiscard]] Scene scene_at(double t) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::viz

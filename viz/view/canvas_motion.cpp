// Motion of the canvas: after a step it shows the pictures between the two stills, by the clock or by hand.
#include <algorithm>
#include <cmath>
#include <utility>

#include "viz/view/canvas.h"
#include "viz/view/motion.h"

namespace kvscope::viz {
namespace {

constexpr double kStepMs = 360;                        // of a step that is not part of playing
constexpr double kShareOfPlaying = 0.9;                // of the time that playing gives to a step
constexpr double kShortestMs = 60, kLongestMs = 2000;  // shorter motions are left out: the eye sees a jump anyway
constexpr int kFrameMs = 16;

// One step of the run, or one action of the tile, apart.
bool are_neighbors(const Scene& a, const Scene& b) {
  if (a.view == View::tile) {
    return a.tile != nullptr && a.tile == b.tile && a.tile_now->event != b.tile_now->event &&
           std::abs(a.tile_now->action - b.tile_now->action) <= 1;
  }
  return a.cursor->position() != b.cursor->position() && std::abs(a.cursor->row() - b.cursor->row()) <= 1;
}

bool comes_before(const Scene& a, const Scene& b) {
  return a.view == View::tile ? a.tile_now->event < b.tile_now->event : a.cursor->position() < b.cursor->position();
}

}  // namespace

struct Canvas::Moving {
  std::unique_ptr<Motion> motion;
  bool forward = true;
  double t = 0;
  double ms = kStepMs;
};

Canvas::~Canvas() = default;

void Canvas::setMotion(bool on) {
  if (on == motion_on_) return;
  motion_on_ = on;
  end_motion();
  keep_still();
}

void Canvas::keep_still() {
  const bool wanted = motion_on_ && document_ != nullptr;
  still_ = wanted ? std::make_shared<const Still>(sceneNow(), document_->shared_tile()) : nullptr;
}

std::optional<double> Canvas::motionTime() const {
  return moving_ ? std::optional(moving_->t) : std::nullopt;
}

void Canvas::holdMotion() {
  if (!moving_) return;
  motion_timer_.stop();
}

// The document is at the end of the motion that the last step led to. Moving by hand past the other end takes the step
// back.
void Canvas::nudgeMotion(double by) {
  if (document_ == nullptr || !motion_on_) return;
  const bool tile = view_ == View::tile;
  const auto step = [&](bool forward) {
    if (tile) {
      forward ? document_->tile_step() : document_->tile_step_back();
    } else {
      forward ? document_->step() : document_->step_back();
    }
  };
  if (!moving_) {
    step(by > 0);
    if (!moving_) return;  // nothing moves in this step, or there is none
    holdMotion();
    moving_->t = by > 0 ? 0 : 1;
  }
  holdMotion();
  moving_->t = std::clamp(moving_->t + by, 0.0, 1.0);
  if (moving_->t > 0 && moving_->t < 1) return update();
  const bool at_other_end = (moving_->t >= 1) != moving_->forward;
  end_motion();
  if (!at_other_end) return;
  const bool on = std::exchange(motion_on_, false);  // without a motion
  step(by > 0);
  motion_on_ = on;
  keep_still();
}

void Canvas::begin_motion() {
  const std::shared_ptr<const Still> from = std::exchange(still_, nullptr);
  end_motion();
  // The attention view has no motion: a still would keep pointers to a flow that the next answer replaces.
  if (!motion_on_ || document_ == nullptr || view_ == View::attention) return;
  keep_still();
  const bool scrubbing = press_ && press_->moved;
  if (!from || scrubbing || !isVisible()) return;
  // The picture may have been zoomed, or changed its size or colors, since the last step.
  Scene then = from->scene();
  const Scene& now = still_->scene();
  then.view = now.view;
  then.viewport = now.viewport;
  then.theme = now.theme;
  then.font_scale = now.font_scale;
  if (&then.run() != &now.run() || !are_neighbors(then, now)) return;
  auto moving = std::make_shared<Moving>();
  if (document_->playing() || document_->tile_playing()) {
    moving->ms = std::min(kShareOfPlaying * 1000 / document_->speed(), kLongestMs);
    if (moving->ms < kShortestMs) return;
  }
  moving->forward = comes_before(then, now);
  moving->t = moving->forward ? 0 : 1;
  const Still before(then, from->tile());
  moving->motion = std::make_unique<Motion>(panels_, size(), devicePixelRatio(), moving->forward ? before : *still_,
                                            moving->forward ? *still_ : before);
  if (moving->motion->empty()) return;
  moving_ = std::move(moving);
  motion_clock_.start();
  motion_timer_.start(kFrameMs);
}

void Canvas::end_motion() {
  motion_timer_.stop();
  if (!moving_) return;
  moving_.reset();
  update();
}

void Canvas::advance_motion() {
  if (!moving_) return motion_timer_.stop();
  const double done = static_cast<double>(motion_clock_.elapsed()) / moving_->ms;
  if (done >= 1) return end_motion();
  moving_->t = moving_->forward ? done : 1 - done;
  update();
}

bool Canvas::paint_motion(QPainter& painter, Scene& scene) const {
  if (!moving_) return false;
  moving_->motion->paint_base(painter, moving_->t);
  if (scene.tile != nullptr) {
    moving_now_ = *moving_->motion->scene_at(moving_->t).tile_now;
    scene.tile_now = &moving_now_;
  }
  return true;
}

void Canvas::paint_movers(QPainter& painter) const {
  if (moving_) moving_->motion->paint_movers(painter, moving_->t);
}

}  // namespace kvscope::viz

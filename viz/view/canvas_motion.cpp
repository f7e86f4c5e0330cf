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
  if (a.cursor->position() == b.cursor->position()) {
    return a.view == View::attention && a.flow != nullptr && a.flow == b.flow &&
           std::abs(a.flow_tiles - b.flow_tiles) == 1;
  }
  return std::abs(a.cursor->row() - b.cursor->row()) <= 1;
}

bool comes_before(const Scene& a, const Scene& b) {
  if (a.view == View::tile) return a.tile_now->event < b.tile_now->event;
  return a.cursor->position() == b.cursor->position() ? a.flow_tiles < b.flow_tiles
                                                      : a.cursor->position() < b.cursor->position();
}

}  // namespace

struct Canvas::Moving {
  std::unique_ptr<Motion> motion;
  bool forward = true;
  double t = 0;
  double ms = kStepMs;
  bool of_flow = false;  // a tile of the attention's flow moves, not a step
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
  if (!wanted) return still_.reset();
  const AttentionModel& attention = document_->attention();
  KeptScene kept{document_->shared_tile(), nullptr, nullptr};
  if (view_ == View::attention) kept.flow = attention.shared_flow(), kept.errors = attention.shared_errors();
  still_ = std::make_shared<const Still>(sceneNow(), std::move(kept));
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
    if (view_ == View::attention) {
      forward ? document_->attention().step() : document_->attention().step_back();
    } else if (tile) {
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

// An answer about the step that is still moving does not end its motion. When the document has moved to another step,
// position_changed() follows.
void Canvas::attention_changed() {
  const AttentionModel& attention = document_->attention();
  const Scene* const last = still_ ? &still_->scene() : nullptr;
  const bool stepped = last != nullptr && last->cursor->position() != document_->cursor().position();
  const bool answered = last != nullptr && (last->flow != attention.flow() || last->errors != attention.errors());
  if (answered && moving_ && moving_->of_flow) end_motion();
  if (!stepped) answered ? keep_still() : begin_motion();
  repaint_base();
  point_again();
}

void Canvas::begin_motion() {
  const std::shared_ptr<const Still> from = std::exchange(still_, nullptr);
  end_motion();
  if (!motion_on_ || document_ == nullptr) return;
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
  if (document_->playing() || document_->tile_playing() || document_->attention().playing()) {
    moving->ms = std::min(kShareOfPlaying * 1000 / document_->speed(), kLongestMs);
    if (moving->ms < kShortestMs) return;
  }
  moving->forward = comes_before(then, now);
  moving->of_flow = now.view == View::attention && then.cursor->position() == now.cursor->position();
  moving->t = moving->forward ? 0 : 1;
  const Still before(then, from->kept());
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
  if (view_ == View::attention) {
    const Scene now = moving_->motion->scene_at(moving_->t);
    scene.flow = now.flow;
    scene.flow_tiles = now.flow_tiles;
    scene.flow_between = now.flow_between;
  }
  return true;
}

void Canvas::paint_movers(QPainter& painter) const {
  if (moving_) moving_->motion->paint_movers(painter, moving_->t);
}

}  // namespace kvscope::viz

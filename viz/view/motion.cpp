#include "viz/view/motion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "viz/geometry/link_path.h"
#include "viz/view/cell_paint.h"
#include "viz/view/device_pixels.h"
#include "viz/view/paint_board.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz {
namespace {

constexpr double kMoverDigits = 11, kLeastMover = 4;  // [px] at font scale 1; [px] of a mover's sides
constexpr double kHalo = 2;                           // [px] around a mover, in the surface's color
constexpr double kLightShare = 0.55;                  // opacity of a wavefront's light

// The panels of the attention view whose cards depend on the tiles of the flow that have been added.
constexpr std::array kOfFlow{PanelId::attention_flow, PanelId::attention_output};

// The panels of the tile view whose cards depend on the event; the registers are part of the overlay.
constexpr std::array kChanging{PanelId::header,    PanelId::copies,      PanelId::shared,
                               PanelId::registers, PanelId::tile_events, PanelId::chain};

QRectF between(const QRectF& from, const QRectF& to, double u) {
  const auto mix = [&](double a, double b) { return a + (b - a) * u; };
  return {mix(from.left(), to.left()), mix(from.top(), to.top()), mix(from.width(), to.width()),
          mix(from.height(), to.height())};
}

// On the curve that links the two rectangles, so that movers take the way that a selection shows.
QRectF on_curve(const QRectF& from, const QRectF& to, const QRectF& board, double u) {
  QRectF rect = between(from, to, u);
  const LinkPath curve = link_path(from, to, board);
  const LinkPath middle{from.center(), curve.control1, curve.control2, to.center()};
  rect.moveCenter(point_at(middle, u));
  return rect;
}

QRectF at_least(const QRectF& rect, double side) {
  const double wide = std::max(rect.width(), side), high = std::max(rect.height(), side);
  return {rect.center().x() - wide / 2, rect.center().y() - high / 2, wide, high};
}

// A mover of a run: its look, and its rectangles at both ends; one of them is missing where the view does not
// show it.
struct BlockWay {
  BlockMove move;
  std::optional<QRectF> from, to;
  std::optional<QRectF> pool;  // of the block, whose still picture changes with the move
  std::optional<QRectF> page;  // arrivals: where the page appears
  Look look = kFreeLook;
  double filled = 1;
};

// A chunk or register of the tile, with the places on its way in order: at least one.
struct TileWay {
  TileFlight flight;
  std::int64_t row = -1;
  std::vector<QRectF> stops;
};

QRectF along(const TileWay& way, double u) {
  if (way.stops.size() == 1) return way.stops.front();
  const auto legs = static_cast<double>(way.stops.size() - 1);
  const auto leg = std::min<std::size_t>(static_cast<std::size_t>(u * legs), way.stops.size() - 2);
  return between(way.stops[leg], way.stops[leg + 1], u * legs - static_cast<double>(leg));
}

}  // namespace

Still::Still(const Scene& scene, KeptScene kept) : cursor_(*scene.cursor), kept_(std::move(kept)), scene_(scene) {
  if (scene.tile_now != nullptr) tile_now_ = *scene.tile_now;
  scene_.cursor = &cursor_;
  scene_.tile = kept_.tile.get();
  scene_.tile_now = kept_.tile ? &tile_now_ : nullptr;
  scene_.flow = kept_.flow.get();
  scene_.errors = kept_.errors.get();
  scene_.flow_between = nullptr;
  if (scene.staged != nullptr) scene_.staged = &staged_.emplace(*scene.staged);
  if (scene.compared != nullptr) scene_.compared = &compared_.emplace(*scene.compared);
}

class Motion::Impl {
 public:
  Impl(const Panels& panels, QSizeF size, double scale, const Still& before, const Still& after)
      : panels_(panels), size_(size), scale_(scale), before_(before), after_(after) {
    const Scene &was = before_.scene(), &is = after_.scene();
    places_ = board(is.view, size, is.font_scale);
    if (is.view == View::attention && was.cursor->position() == is.cursor->position()) {
      adds_tile_ = was.flow != nullptr && was.flow == is.flow && std::abs(was.flow_tiles - is.flow_tiles) == 1;
    } else if (is.view != View::tile) {
      add_blocks(was, is);
    } else if (was.tile != nullptr && was.tile == is.tile) {
      add_tile(was, is);
    }
  }

  [[nodiscard]] bool empty() const { return blocks_.empty() && ways_.empty() && lights_.empty() && !adds_tile_; }
  void paint_base(QPainter& painter, double t);
  void paint_movers(QPainter& painter, double t) const;
  [[nodiscard]] Scene scene_at(double t);

 private:
  struct Light {
    MotionSpan when;
    std::vector<QRectF> cells;
  };

  [[nodiscard]] const Place* place(PanelId id) const {
    const auto found = std::ranges::find(places_, id, &Place::panel);
    return found == places_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Panel& panel(PanelId id) const { return *panels_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::optional<QRectF> page_rect(const Scene& scene, SeqIdx seq, PageIdx page) const;
  [[nodiscard]] std::optional<QRectF> block_rect(const Scene& scene, BlockIdx block) const;
  void add_blocks(const Scene& was, const Scene& is);
  void add_tile(const Scene& was, const Scene& is);

  [[nodiscard]] QImage still(const Scene& scene) const;
  void show(QPainter& painter, QImage& image) const;
  void show_part(QPainter& painter, const QImage& image, const QRectF& rect) const;
  void paint_blocks(QPainter& painter, double t);
  void paint_block(QPainter& painter, const BlockWay& way, double u) const;
  void paint_tile(QPainter& painter, double t);
  void paint_flow(QPainter& painter, double t);
  void repaint(std::span<const PanelId> panels, const Scene& scene);
  void paint_tile_movers(QPainter& painter, double t) const;
  QImage& before_image() {
    if (before_image_.isNull()) before_image_ = still(before_.scene());
    return before_image_;
  }
  QImage& after_image() {
    if (after_image_.isNull()) after_image_ = still(after_.scene());
    return after_image_;
  }

  const Panels& panels_;
  QSizeF size_;
  double scale_;
  Still before_, after_;
  std::vector<Place> places_;
  std::vector<BlockWay> blocks_;
  std::vector<TileWay> ways_;
  std::vector<Light> lights_;
  bool adds_tile_ = false;  // of the flow
  std::optional<FlowBetween> flow_now_;
  QImage before_image_, after_image_;
  TileState between_now_;              // of the tile, at between_
  std::optional<std::int64_t> shown_;  // the event that between_image_ was painted for
  QImage between_image_;
};

// --- what moves ------------------------------------------------------------------------------------------------------

std::optional<QRectF> Motion::Impl::page_rect(const Scene& scene, SeqIdx seq, PageIdx page) const {
  const Place* const at = place(PanelId::sequences);
  if (at == nullptr) return std::nullopt;
  return panel(PanelId::sequences).anchor(resolve(scene.state(), scene.facts(), of_page(seq, page)), at->body, scene);
}

std::optional<QRectF> Motion::Impl::block_rect(const Scene& scene, BlockIdx block) const {
  const Place* const at = place(PanelId::pool);
  if (at == nullptr) return std::nullopt;
  Lit lit;
  lit.block = block;
  return panel(PanelId::pool).anchor(lit, at->body, scene);
}

void Motion::Impl::add_blocks(const Scene& was, const Scene& is) {
  using Kind = BlockMove::Kind;
  if (is.facts().detail != trace::Detail::full) return;
  for (const BlockMove& move : moves_between(was.state(), is.state(), kMostMoves)) {
    BlockWay way{move, {}, {}, block_rect(is, move.block), {}, kFreeLook, 1};
    const bool leaves = move.kind == Kind::released || move.kind == Kind::preempted;
    const BlockState& content = (leaves || move.kind == Kind::evicted ? was : is).state().blocks[move.block.value];
    way.look = block_look(content);
    if (const std::int64_t slots = is.facts().page_size; slots > 0) {
      way.filled = static_cast<double>(content.filled) / static_cast<double>(slots);
    }
    if (leaves) {
      way.from = page_rect(was, move.seq, move.page);
      way.to = way.pool;
    } else if (move.kind == Kind::evicted) {
      way.from = way.to = way.pool;
    } else {
      way.from = move.kind == Kind::copied ? block_rect(is, move.from) : way.pool;
      way.page = page_rect(is, move.seq, move.page);
      way.to = move.kind == Kind::copied ? way.pool : way.page;
    }
    if (way.from || way.to) blocks_.push_back(std::move(way));
  }
}

void Motion::Impl::add_tile(const Scene& was, const Scene& is) {
  const Tile& tile = *is.tile;
  const TileState &before = *was.tile_now, &after = *is.tile_now;
  const std::vector<TileFlight> flights = flights_between(tile, before, after, kMostFlights);
  std::vector<std::int64_t> chunks, fills;
  for (const TileFlight& flight : flights) (flight.fill ? fills : chunks).push_back(flight.index);
  // The stops of all flights, panel by panel from left to right.
  std::vector<TilePlaces> of_chunks, of_fills;
  for (const PanelId id : {PanelId::memory, PanelId::copies, PanelId::shared, PanelId::registers}) {
    const Place* const at = place(id);
    if (at == nullptr) continue;
    of_chunks.push_back(panel(id).chunk_places(chunks, at->body, is));
    of_fills.push_back(panel(id).fill_places(fills, at->body, is));
  }
  std::size_t chunk = 0, fill = 0;
  for (const TileFlight& flight : flights) {
    TileWay way{flight, -1, {}};
    const std::size_t n = flight.fill ? fill++ : chunk++;
    for (const TilePlaces& places : flight.fill ? of_fills : of_chunks) {
      if (places[n]) way.stops.push_back(*places[n]);
    }
    const auto index = static_cast<std::size_t>(flight.index);
    way.row = flight.fill ? tile.fills[index].row : tile.chunks[index].row;
    if (!way.stops.empty()) ways_.push_back(std::move(way));
  }
  const Place* const shared = place(PanelId::shared);
  if (shared == nullptr) return;
  for (const BankLight& light : lights_between(tile, before, after)) {
    Light cells{light.when, {}};
    for (const auto& rect : panel(PanelId::shared).chunk_places(light.chunks, shared->body, is)) {
      if (rect) cells.cells.push_back(*rect);
    }
    if (!cells.cells.empty()) lights_.push_back(std::move(cells));
  }
}

// --- painting --------------------------------------------------------------------------------------------------------

QImage Motion::Impl::still(const Scene& scene) const {
  QImage image((size_ * scale_).toSize(), QImage::Format_RGB32);
  if (image.isNull()) throw std::bad_alloc();
  image.setDevicePixelRatio(scale_);
  image.fill(scene.theme->surface);
  QPainter painter(&image);
  paint_board_base(painter, size_, panels_, scene);
  return image;
}

void Motion::Impl::show(QPainter& painter, QImage& image) const {
  draw_pixels(painter, painter.deviceTransform().map(QPointF(0, 0)).toPoint(), image);
}

// A part of a still picture, on whole pixels.
void Motion::Impl::show_part(QPainter& painter, const QImage& image, const QRectF& rect) const {
  const QRectF whole = rect.toAlignedRect().intersected(QRectF(QPointF(), size_).toRect());
  painter.drawImage(whole, image, QRectF(whole.topLeft() * scale_, whole.size() * scale_));
}

Scene Motion::Impl::scene_at(double t) {
  if (t <= 0) return before_.scene();
  Scene scene = after_.scene();
  if (t >= 1 || empty()) return scene;
  if (adds_tile_) {
    flow_now_ = flow_between(*scene.flow, before_.scene().flow_tiles, scene.flow_tiles, t);
    scene.flow_tiles = flow_now_->tile + 1;
    scene.flow_between = &*flow_now_;
    return scene;
  }
  if (scene.view != View::tile) return scene;
  between_now_ = tile_state(*scene.tile, event_at(*scene.tile, *before_.scene().tile_now, *scene.tile_now, t));
  scene.tile_now = &between_now_;
  return scene;
}

void Motion::Impl::paint_base(QPainter& painter, double t) {
  if (t <= 0) return show(painter, before_image());
  if (t >= 1 || empty()) return show(painter, after_image());
  painter.save();
  adds_tile_                          ? paint_flow(painter, t)
  : after_.scene().view == View::tile ? paint_tile(painter, t)
                                      : paint_blocks(painter, t);
  painter.restore();
}

// The second picture, in which places that nothing has reached yet are still as they were.
void Motion::Impl::paint_blocks(QPainter& painter, double t) {
  using Kind = BlockMove::Kind;
  const Theme& theme = *after_.scene().theme;
  show(painter, after_image());
  for (const BlockWay& way : blocks_) {
    const double u = local(way.move.when, t);
    const Kind kind = way.move.kind;
    const bool leaves = kind == Kind::released || kind == Kind::preempted || kind == Kind::copied;
    if (way.pool && (leaves ? u < 1 : u <= 0)) show_part(painter, before_image(), *way.pool);
    if (way.pool && kind == Kind::evicted && u > 0 && u < 1) {
      painter.setOpacity(1 - u);
      show_part(painter, before_image(), *way.pool);
      painter.setOpacity(1);
    }
    if (way.page && u < 1) {
      painter.setRenderHint(QPainter::Antialiasing, false);
      painter.fillRect(*way.page, theme.card);
      painter.setRenderHint(QPainter::Antialiasing, true);
      paint_outline(painter, way.page->adjusted(0.5, 0.5, -0.5, -0.5), QPen(theme.cell_line, 1, Qt::DashLine));
    }
  }
}

void Motion::Impl::paint_movers(QPainter& painter, double t) const {
  using Kind = BlockMove::Kind;
  if (t <= 0 || t >= 1) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  for (const BlockWay& way : blocks_) {
    const double u = local(way.move.when, t);
    const bool starts_at_page = way.move.kind == Kind::released || way.move.kind == Kind::preempted;
    if (way.move.kind != Kind::evicted && u < 1 && (u > 0 || starts_at_page)) paint_block(painter, way, u);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  paint_tile_movers(painter, t);
  painter.restore();
}

void Motion::Impl::paint_block(QPainter& painter, const BlockWay& way, double u) const {
  const Scene& scene = after_.scene();
  const Theme& theme = *scene.theme;
  QRectF rect;
  if (way.from && way.to) {
    rect = on_curve(*way.from, *way.to, QRectF(QPointF(), size_), u);
  } else {  // the other end is in no panel of this view: it appears or disappears in its place
    const QRectF& at = way.to ? *way.to : *way.from;
    const double share = way.to ? u : 1 - u;
    rect = between(QRectF(at.center(), QSizeF()), at, share);
  }
  rect = at_least(rect, kLeastMover);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.card);
  painter.drawRoundedRect(rect.adjusted(-kHalo, -kHalo, kHalo, kHalo), corner(rect) + kHalo, corner(rect) + kHalo);
  paint_cell(painter, rect, way.look, way.filled, theme);
  const bool preempted = way.move.kind == BlockMove::Kind::preempted;
  paint_outline(painter, rect.adjusted(0.5, 0.5, -0.5, -0.5), QPen(preempted ? theme.warning : theme.text, 1));
  const QFont font = mono_font(scene.px(kMoverDigits));
  const QString number = QString::number(way.move.block.value);
  if (text_width(font, number) + 6 > rect.width() || scene.px(kMoverDigits) + 4 > rect.height()) return;
  const double wide = text_width(font, number) + 4, high = scene.px(kMoverDigits) + 2;
  painter.setPen(Qt::NoPen);
  painter.setBrush(with_alpha(theme.card, 0.72));
  painter.drawRect(QRectF(rect.center().x() - wide / 2, rect.center().y() - high / 2, wide, high));
  draw_text_in(painter, font, theme.text, rect, Qt::AlignHCenter, number);
}

// Paints cards of between_image_ anew, which at first is the first picture.
void Motion::Impl::repaint(std::span<const PanelId> panels, const Scene& scene) {
  if (between_image_.isNull()) between_image_ = before_image();
  QPainter to(&between_image_);
  for (const PanelId id : panels) {
    const Place* const at = place(id);
    if (at == nullptr) continue;
    to.fillRect(at->card, scene.theme->surface);
    paint_place(to, *at, panels_, scene);
  }
}

void Motion::Impl::paint_flow(QPainter& painter, double t) {
  repaint(kOfFlow, scene_at(t));
  show(painter, between_image_);
}

// The first picture, with the cards that the event changes.
void Motion::Impl::paint_tile(QPainter& painter, double t) {
  const Scene scene = scene_at(t);
  if (shown_ != scene.tile_now->event || between_image_.isNull()) {
    repaint(kChanging, scene);
    shown_ = scene.tile_now->event;
  }
  show(painter, between_image_);
}

void Motion::Impl::paint_tile_movers(QPainter& painter, double t) const {
  const Theme& theme = *after_.scene().theme;
  for (const Light& light : lights_) {
    if (t < light.when.start || t >= light.when.end) continue;
    for (const QRectF& cell : light.cells) {
      painter.fillRect(cell, with_alpha(theme.accent, kLightShare));
      painter.setPen(QPen(theme.text, 1.5));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(cell.adjusted(0.5, 0.5, -0.5, -0.5));
    }
  }
  for (const TileWay& way : ways_) {
    const double u = local(way.flight.when, t);
    if (u <= 0 || u >= 1) continue;
    const QRectF rect = at_least(along(way, u), kLeastMover);
    painter.fillRect(rect.adjusted(-1, -1, 1, 1), theme.card);
    paint_tile_cell(painter, rect, theme, *after_.scene().tile, way.row, Arrival::there);
  }
}

Motion::Motion(const Panels& panels, QSizeF size, double scale, const Still& before, const Still& after)
    : impl_(std::make_unique<Impl>(panels, size, scale, before, after)) {}
Motion::~Motion() = default;

bool Motion::empty() const {
  return impl_->empty();
}
void Motion::paint_base(QPainter& painter, double t) const {
  impl_->paint_base(painter, t);
}
void Motion::paint_movers(QPainter& painter, double t) const {
  impl_->paint_movers(painter, t);
}
Scene Motion::scene_at(double t) const {
  return impl_->scene_at(t);
}

}  // namespace kvscope::viz

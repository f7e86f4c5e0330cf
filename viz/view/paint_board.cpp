#include "viz/view/paint_board.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <QtGui/QFontMetricsF>
#include <QtGui/QPaintEngine>
#include <QtGui/QPainterPath>
#include <QtGui/QRegion>

#include "viz/geometry/link_route.h"
#include "viz/view/board_links.h"
#include "viz/view/scroll_marks.h"
#include "viz/view/spotlight.h"
#include "viz/view/text.h"
#include "viz/view/theme.h"

namespace kvscope::viz {
namespace {

constexpr double kCorner = 8;                    // [px] radius of a card
constexpr double kRim = 2;                       // [px] of a card covered by its border and its antialiasing
constexpr double kTitle = 15, kSubtitle = 12.5;  // [px] at font scale 1
constexpr double kBesideTitle = 10;              // [px] at font scale 1
constexpr double kFewestWords = 70;              // [px] at font scale 1: minimum width of a subtitle
constexpr double kAroundText = 2;                // [px] distance of a curve from a title
constexpr double kOutline = 3;                   // [px] that outlines of cells may exceed the body
constexpr double kLink = 2, kHoverLink = 1.25, kGlow = 7, kDot = 3.5, kHoverDot = 2.5;  // [px]
constexpr double kBehindText = 0.28;  // opacity of a curve behind a line of text

const Panel* panel_of(const Panels& panels, PanelId id) {
  return panels[static_cast<std::size_t>(id)].get();
}

template <class Paint>
void clipped(QPainter& painter, const QRectF& to, Paint&& paint) {
  painter.save();
  painter.setClipRect(to, Qt::IntersectClip);
  paint();
  painter.restore();
}

// --- cards -----------------------------------------------------------------------------------------------------------

bool paints_pixels(const QPainter& painter) {
  return painter.paintEngine()->type() == QPaintEngine::Raster;
}

// Whether whole logical pixels are whole device pixels.
bool is_sharp(const QTransform& device) {
  const auto whole = [](double x) { return x == std::floor(x); };
  return device.type() <= QTransform::TxScale && device.m11() > 0 && device.m22() > 0 && whole(device.m11()) &&
         whole(device.m22()) && whole(device.dx()) && whole(device.dy());
}

// Fills the surface behind the cards and their round corners, except where a card covers it.
void paint_surface(QPainter& painter, QSizeF size, std::span<const Place> places, const Theme& theme) {
  const QRectF all(QPointF(0, 0), size);
  if (!paints_pixels(painter)) return painter.fillRect(all, theme.surface);
  QRegion seen(all.toAlignedRect());
  const double in = kCorner + 1;
  for (const Place& place : places) {
    if (has_card(place.panel)) seen -= place.card.adjusted(in, in, -in, -in).toRect();
  }
  for (const QRect& part : seen) painter.fillRect(part, theme.surface);
}

void paint_card(QPainter& painter, const Place& place, const Theme& theme) {
  const QRectF& card = place.card;
  painter.save();
  painter.setPen(QPen(theme.card_border, 1));
  painter.setBrush(theme.card);
  painter.setRenderHint(QPainter::Antialiasing, true);
  const auto paint = [&] { painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), kCorner, kCorner); };
  if (!paints_pixels(painter)) {
    paint();
    return painter.restore();
  }
  // Filling half a million pixels with antialiasing takes ten times as long as without: only the rim has antialiasing,
  // and only the corners if the card is on whole pixels.
  const bool sharp = is_sharp(painter.deviceTransform()) && card == QRectF(card.toRect());
  const double around = 1, width = card.width() + 2 * around, side = kRim + 2 * around;
  const double corner = kCorner + 1;  // the middle of the border is half a pixel inside
  const QRectF between = card.adjusted(0, corner, 0, -corner);
  std::vector<QRectF> smoothed{{card.left() - around, card.top() - around, width, corner + around},
                               {card.left() - around, between.bottom(), width, corner + around}};
  painter.setRenderHint(QPainter::Antialiasing, false);
  if (sharp) {
    painter.fillRect(QRectF(between.left(), between.top(), 1, between.height()), theme.card_border);
    painter.fillRect(QRectF(between.right() - 1, between.top(), 1, between.height()), theme.card_border);
    painter.fillRect(between.adjusted(1, 0, -1, 0), theme.card);
  } else {
    painter.fillRect(between.adjusted(kRim, -1, -kRim, 1), theme.card);
    smoothed.emplace_back(card.left() - around, between.top(), side, between.height());
    smoothed.emplace_back(card.right() - kRim - around, between.top(), side, between.height());
  }
  painter.setRenderHint(QPainter::Antialiasing, true);
  for (const QRectF& part : smoothed) clipped(painter, part, paint);
  painter.restore();
}

// The texts of a card's title line and their positions.
struct TitleLine {
  QFont title_font, subtitle_font;
  QString title, subtitle;        // subtitle: empty if there is no room for it
  QPointF title_at, subtitle_at;  // baselines
  QRectF text;                    // of both texts
};

TitleLine title_line(const Place& place, const Panel& panel, const Scene& scene) {
  TitleLine line{ui_font(scene.px(kTitle), QFont::DemiBold), ui_font(scene.px(kSubtitle)), {}, {}, {}, {}, {}};
  const double cap = cap_height(line.title_font);
  const double below_title = place.title.height() > scene.px(kTitleHeight + 1) ? scene.px(kSubtitleHeight) : 0;
  const double baseline = std::round(place.title.center().y() - below_title / 2 + cap / 2);
  line.title = elided(line.title_font, panel.title(), place.title.width());
  line.title_at = QPointF(place.title.left(), baseline);
  double right = place.title.left() + text_width(line.title_font, line.title);
  line.subtitle_at = QPointF(right + scene.px(kBesideTitle), baseline);
  const double title_right = right;
  if (below_title > 0) line.subtitle_at = QPointF(place.title.left(), std::round(baseline + below_title));
  const double room = place.title.right() - line.subtitle_at.x();
  if (room >= scene.px(kFewestWords)) {
    line.subtitle = whole_parts(line.subtitle_font, panel.subtitle(scene), room);
    right = std::max(title_right, line.subtitle_at.x() + text_width(line.subtitle_font, line.subtitle));
  }
  const double above = cap + kAroundText, below = QFontMetricsF(line.title_font).descent() + kAroundText;
  line.text = QRectF(QPointF(place.title.left() - kAroundText, baseline - above),
                     QPointF(right + kAroundText, baseline + below_title + below));
  return line;
}

void paint_title(QPainter& painter, const Place& place, const Panel& panel, const Scene& scene) {
  const TitleLine line = title_line(place, panel, scene);
  painter.save();
  draw_text(painter, line.title_font, scene.theme->text, line.title_at, line.title);
  draw_text(painter, line.subtitle_font, scene.theme->text_quiet, line.subtitle_at, line.subtitle);
  painter.restore();
}

// Lines of text that the curves of `lit` pass behind: titles, legends, and the name of the row that a curve ends at.
std::vector<QRectF> texts(const std::vector<Place>& places, const Panels& panels, const Scene& scene, const Lit& lit) {
  std::vector<QRectF> texts;
  for (const Place& place : places) {
    const Panel* const panel = panel_of(panels, place.panel);
    if (panel == nullptr || !has_card(place.panel)) continue;
    texts.push_back(title_line(place, *panel, scene).text);
    if (!place.footer.isEmpty()) texts.push_back(place.footer);
    if (place.panel != PanelId::table || !lit.seq) continue;
    Lit first;
    first.seq = lit.seq;
    first.page = PageIdx{0};
    const std::optional<QRectF> cell = panel->anchor(first, place.body, scene);
    if (!cell) continue;
    const double name = cell->left() - kAroundText - place.body.left();
    texts.emplace_back(place.body.left(), cell->top(), name, cell->height());
  }
  return texts;
}

QRectF with_outline(const QRectF& body) {
  return body.adjusted(-kOutline, -kOutline, kOutline, kOutline);
}

// --- links -----------------------------------------------------------------------------------------------------------

void paint_link(QPainter& painter, const Link& link, std::span<const QRectF> texts, bool pinned, const Theme& theme) {
  const QColor color = pinned ? theme.accent : theme.hover;
  const double width = pinned ? kLink : kHoverLink;
  painter.setBrush(Qt::NoBrush);
  for (const LinkPath& part : link.parts) {
    for (const LinkPiece& piece : pieces(part, texts)) {
      QPainterPath path(piece.path.start);
      path.cubicTo(piece.path.control1, piece.path.control2, piece.path.end);
      const auto stroke = [&](const QColor& with, double wide) {
        painter.setPen(QPen(with, wide, Qt::SolidLine, Qt::FlatCap));
        painter.drawPath(path);
      };
      if (piece.over_text) {
        stroke(with_alpha(color, kBehindText), width);
        continue;
      }
      if (pinned) stroke(with_alpha(color, 0.16), kGlow);
      // A line in the card's color under the curve separates it from the cells that it crosses.
      stroke(with_alpha(theme.card, 0.55), width + 1.5);
      stroke(color, width);
    }
  }
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  const double dot = pinned ? kDot : kHoverDot;
  painter.drawEllipse(link.start(), dot, dot);
  painter.drawEllipse(link.end(), dot, dot);
}

}  // namespace

void paint_place(QPainter& painter, const Place& place, const Panels& panels, const Scene& scene) {
  const Panel* const panel = panel_of(panels, place.panel);
  if (panel == nullptr) return;
  if (has_card(place.panel)) {
    paint_card(painter, place, *scene.theme);
    paint_title(painter, place, *panel, scene);
  }
  clipped(painter, with_outline(place.body), [&] { panel->paint_base(painter, place.body, scene); });
  if (!place.footer.isEmpty()) {
    clipped(painter, place.footer, [&] { panel->paint_footer(painter, place.footer, scene); });
  }
  if (has_card(place.panel) && !panel->paints_scroll_bar()) paint_scroll_marks(painter, place, *panel, scene);
}

void paint_board_base(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene) {
  const std::vector<Place> places = board(scene.view, size, scene.font_scale);
  paint_surface(painter, size, places, *scene.theme);
  for (const Place& place : places) paint_place(painter, place, panels, scene);
}

void paint_board_overlay(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene) {
  const std::vector<Place> places = board(scene.view, size, scene.font_scale);
  if (scene.spotlight) paint_spotlight(painter, size, panels, scene);
  for (const Place& place : places) {
    const Panel* const panel = panel_of(panels, place.panel);
    if (panel == nullptr) continue;
    clipped(painter, with_outline(place.body), [&] { panel->paint_overlay(painter, place.body, scene); });
  }
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  const auto paint = [&](const Lit& lit, bool pinned) {
    const std::vector<Link> links = board_links(size, panels, scene, lit);
    if (links.empty()) return;
    const std::vector<QRectF> passed = texts(places, panels, scene, lit);
    for (const Link& link : links) paint_link(painter, link, passed, pinned, *scene.theme);
  };
  if (scene.hovered != scene.pinned) paint(scene.hovered_lit, false);
  paint(scene.pinned_lit, true);
  painter.restore();
}

void paint_board(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene) {
  paint_board_base(painter, size, panels, scene);
  paint_board_overlay(painter, size, panels, scene);
}

QImage board_image(QSizeF size, double scale, const Panels& panels, const Scene& scene) {
  QImage image((size * scale).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(scene.theme->surface);
  QPainter painter(&image);
  paint_board(painter, size, panels, scene);
  return image;
}

}  // namespace kvscope::viz

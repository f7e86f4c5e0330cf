#include "viz/view/paint_board.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <QtGui/QFontMetricsF>
#include <QtGui/QPainterPath>

#include "viz/geometry/link_path.h"

namespace kvscope::viz {
namespace {

constexpr double kCorner = 8;                    // [px] radius of a card
constexpr double kTitle = 15, kSubtitle = 12.5;  // [px] at font scale 1
constexpr double kBesideTitle = 10;              // [px] at font scale 1
constexpr double kFewestWords = 70;              // [px] at font scale 1: a subtitle narrower than that says nothing
constexpr double kOutline = 3;                   // [px] that outlines of cells at a body's edge may stand out
constexpr double kBesideNumber = 0.88;           // of a table cell's width: right of the number in its middle
constexpr std::size_t kMostLinks = 8;            // places of one block that are joined
constexpr double kLink = 2, kHoverLink = 1.25, kGlow = 7, kDot = 3.5, kHoverDot = 2.5;  // [px]

const Panel* panel_of(const Panels& panels, PanelId id) {
  return panels[static_cast<std::size_t>(id)].get();
}

// --- cards -----------------------------------------------------------------------------------------------------------

void paint_card(QPainter& painter, const Place& place, const Theme& theme) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(QPen(theme.card_border, 1));
  painter.setBrush(theme.card);
  painter.drawRoundedRect(place.card.adjusted(0.5, 0.5, -0.5, -0.5), kCorner, kCorner);
  painter.restore();
}

void paint_title(QPainter& painter, const Place& place, const Panel& panel, const Scene& scene) {
  const QFont title = ui_font(scene.px(kTitle), QFont::DemiBold), subtitle = ui_font(scene.px(kSubtitle));
  const QFontMetricsF title_metrics(title), subtitle_metrics(subtitle);
  const double baseline = std::round(place.title.center().y() + title_metrics.capHeight() / 2);
  const QString shown = title_metrics.elidedText(panel.title(), Qt::ElideRight, place.title.width());
  painter.save();
  painter.setFont(title);
  painter.setPen(scene.theme->text);
  painter.drawText(QPointF(place.title.left(), baseline), shown);
  const double left = place.title.left() + title_metrics.horizontalAdvance(shown) + scene.px(kBesideTitle);
  const double room = place.title.right() - left;
  if (room >= scene.px(kFewestWords)) {
    painter.setFont(subtitle);
    painter.setPen(scene.theme->text_quiet);
    painter.drawText(QPointF(left, baseline), subtitle_metrics.elidedText(panel.subtitle(scene), Qt::ElideRight, room));
  }
  painter.restore();
}

template <class Paint>
void clipped(QPainter& painter, const QRectF& to, Paint&& paint) {
  painter.save();
  painter.setClipRect(to, Qt::IntersectClip);
  paint();
  painter.restore();
}

QRectF with_outline(const QRectF& body) {
  return body.adjusted(-kOutline, -kOutline, kOutline, kOutline);
}

// --- links -----------------------------------------------------------------------------------------------------------

// Where an object stands in each panel of the board that shows it.
struct Anchors {
  std::optional<QRectF> sequences, pool, table;
};

Anchors anchors(const std::vector<Place>& places, const Panels& panels, const Scene& scene, const Lit& lit) {
  Anchors found;
  for (const Place& place : places) {
    const Panel* const panel = panel_of(panels, place.panel);
    if (panel == nullptr) continue;
    if (place.panel == PanelId::sequences) found.sequences = panel->anchor(lit, place.body, scene);
    if (place.panel == PanelId::pool) found.pool = panel->anchor(lit, place.body, scene);
    if (place.panel == PanelId::table) found.table = panel->anchor(lit, place.body, scene);
  }
  return found;
}

// One object for each curve that starts: a page, or a token of one. A whole sequence has too many pages to be joined.
std::vector<Lit> ends_of(const Lit& lit) {
  if (lit.page) return {lit};
  if (lit.seq || !lit.block) return {};
  std::vector<Lit> ends;
  for (const TablePlace& place : lit.places) {
    if (ends.size() == kMostLinks) break;
    Lit one;
    one.seq = place.seq;
    one.page = place.page;
    one.block = lit.block;
    one.blocks = {*lit.block};
    one.places = {place};
    ends.push_back(one);
  }
  return ends;
}

// From the tokens to their block and to the entry of the lookup table that says so; without the tokens, from the block
// to the entry. A block of several is joined to its pages alone: its entries are outlined, and twice as many curves
// would hide more than they show.
std::vector<LinkPath> links(const std::vector<Place>& places, const Panels& panels, const Scene& scene, const Lit& lit,
                            const QRectF& board) {
  std::vector<LinkPath> paths;
  const std::vector<Lit> ends = ends_of(lit);
  for (const Lit& end : ends) {
    const Anchors at = anchors(places, panels, scene, end);
    if (at.sequences && at.pool) paths.push_back(link_path(*at.sequences, *at.pool, board));
    if (ends.size() == 1 && at.sequences && at.table) {
      paths.push_back(link_path(*at.sequences, *at.table, board, kBesideNumber));
    }
    if (!at.sequences && at.pool && at.table) paths.push_back(link_path(*at.pool, *at.table, board));
  }
  return paths;
}

void paint_link(QPainter& painter, const LinkPath& link, bool pinned, const Theme& theme) {
  QPainterPath path(link.start);
  path.cubicTo(link.control1, link.control2, link.end);
  const QColor colour = pinned ? theme.accent : theme.hover;
  painter.setBrush(Qt::NoBrush);
  if (pinned) {
    QColor glow = colour;
    glow.setAlphaF(0.16F);
    painter.setPen(QPen(glow, kGlow, Qt::SolidLine, Qt::RoundCap));
    painter.drawPath(path);
  }
  // A line of the card's colour under it keeps the curve apart from the cells it crosses.
  QColor apart = theme.card;
  apart.setAlphaF(0.55F);
  const double width = pinned ? kLink : kHoverLink;
  painter.setPen(QPen(apart, width + 1.5, Qt::SolidLine, Qt::RoundCap));
  painter.drawPath(path);
  painter.setPen(QPen(colour, width, Qt::SolidLine, Qt::RoundCap));
  painter.drawPath(path);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  const double dot = pinned ? kDot : kHoverDot;
  painter.drawEllipse(link.start, dot, dot);
  painter.drawEllipse(link.end, dot, dot);
}

}  // namespace

void paint_board_base(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene) {
  painter.fillRect(QRectF(QPointF(0, 0), size), scene.theme->surface);
  for (const Place& place : board(scene.view, size, scene.font_scale)) {
    const Panel* const panel = panel_of(panels, place.panel);
    if (panel == nullptr) continue;
    if (place.panel != PanelId::header) {
      paint_card(painter, place, *scene.theme);
      paint_title(painter, place, *panel, scene);
    }
    clipped(painter, with_outline(place.body), [&] { panel->paint_base(painter, place.body, scene); });
    if (!place.footer.isEmpty()) {
      clipped(painter, place.footer, [&] { panel->paint_footer(painter, place.footer, scene); });
    }
  }
}

void paint_board_overlay(QPainter& painter, QSizeF size, const Panels& panels, const Scene& scene) {
  const std::vector<Place> places = board(scene.view, size, scene.font_scale);
  for (const Place& place : places) {
    const Panel* const panel = panel_of(panels, place.panel);
    if (panel == nullptr) continue;
    clipped(painter, with_outline(place.body), [&] { panel->paint_overlay(painter, place.body, scene); });
  }
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  const QRectF whole(QPointF(0, 0), size.expandedTo(kSmallestBoard));
  const auto paint = [&](const Lit& lit, bool pinned) {
    for (const LinkPath& link : links(places, panels, scene, lit, whole)) {
      paint_link(painter, link, pinned, *scene.theme);
    }
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

// Why no tile is shown: the tensor map with the rules that it breaks, other faults of the path, and the paths that can
// take the tile as buttons.
#include <algorithm>

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>

#include "viz/view/copies_paint.h"
#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

constexpr double kHeadline = 13, kReason = 12, kButtonText = 12, kButton = 22, kInsteadGap = 8;  // [px] at font scale 1
constexpr int kWrappedText = static_cast<int>(Qt::AlignLeft | Qt::AlignTop) | Qt::TextWordWrap;

QString instead_tr(const char* text) {
  return QCoreApplication::translate("CopiesInstead", text);
}

QString button_text(const TileOffer& offer) {
  const QString copies = offer.copies > 0 ? QStringLiteral(": %1").arg(offer.copies) : QString();
  switch (offer.path) {
    case TilePath::tma:
      return instead_tr("by TMA") + copies;
    case TilePath::lds:
      return instead_tr("through LDS") + copies;
    case TilePath::gather4:
      return instead_tr("by gather4") + copies;
    case TilePath::rope:
      return instead_tr("rope values") + copies;
  }
  return {};
}

QString headline_of(const TileSource& source) {
  return source.path == TilePath::lds ? instead_tr("✗ The waves cannot copy this tile through LDS")
                                      : instead_tr("✗ TMA cannot copy this tile");
}

// Faults that the map's axes do not show, then why other paths cannot take the tile.
QString reasons_of(const TileSource& source) {
  QStringList lines;
  for (const TileFault& fault : source.faults) {
    if (source.map) break;
    lines.push_back(fault.place.empty() ? QString::fromStdString(fault.message)
                                        : QStringLiteral("%1: %2").arg(QString::fromStdString(fault.place),
                                                                       QString::fromStdString(fault.message)));
  }
  for (const TileOffer& offer : source.offers) {
    if (offer.why_not.empty()) continue;
    lines.push_back(instead_tr("Not %1 either: %2")
                        .arg(QString::fromStdString(path_in_words(offer.path)), QString::fromStdString(offer.why_not)));
  }
  return lines.join(QLatin1Char('\n'));
}

// Which published kernels would load the cache by TMA, one line each.
QString engines_of(const TileSource& source) {
  QStringList lines;
  for (const TileEngine& engine : source.engines) {
    const QString kernel = QString::fromStdString(engine.kernel);
    lines.push_back(engine.takes ? QStringLiteral("✓ %1").arg(kernel)
                                 : QStringLiteral("✗ %1 (%2)").arg(kernel, QString::fromStdString(engine.why_not)));
  }
  if (!lines.isEmpty()) lines.push_front(instead_tr("Kernels that load such a cache by TMA:"));
  return lines.join(QLatin1Char('\n'));
}

struct Instead {
  QRectF headline, map, reasons, engines, offers_title, offers;
  MapLayout axes;
};

Instead instead_layout(const QRectF& body, const Scene& scene) {
  const TileSource& source = *scene.tile_source;
  Instead at;
  const double gap = scene.px(kInsteadGap);
  const auto height_of = [&](const QFont& font, const QString& text) {
    if (text.isEmpty()) return 0.0;
    return QFontMetricsF(font).boundingRect(QRectF(0, 0, body.width(), 1e6), kWrappedText, text).height() + 2;
  };
  double top = body.top();
  const auto take = [&](double height) {
    const QRectF rect(body.left(), top, body.width(), height);
    top += height > 0 ? height + gap : 0;
    return rect;
  };
  at.headline = take(height_of(ui_font(scene.px(kHeadline), QFont::DemiBold), headline_of(source)));
  // The buttons come before the reasons: a long reason must not push them out of the panel.
  if (std::ranges::any_of(source.offers, [](const TileOffer& offer) { return offer.why_not.empty(); })) {
    at.offers_title = take(scene.px(kReason + 3));
    top -= gap;
    at.offers = take(scene.px(kButton));
    const std::vector<PanelCell> buttons = offer_cells(source, at.offers, scene);
    if (!buttons.empty()) {
      top = buttons.back().rect.bottom() + gap;
      at.offers.setBottom(buttons.back().rect.bottom());
    }
  }
  if (source.map) {
    at.axes = map_of(*source.map, source, true, QRectF(body.left(), top, body.width(), body.bottom() - top), scene);
    at.map = take(at.axes.bottom - top);
  }
  at.reasons = take(height_of(ui_font(scene.px(kReason)), reasons_of(source)));
  // Only as a whole: half a list of kernels would be read as all of them. The description of the map has it too.
  const double engines = height_of(ui_font(scene.px(kReason)), engines_of(source));
  if (source.path != TilePath::lds && top + engines <= body.bottom()) at.engines = take(engines);
  return at;
}

}  // namespace

std::vector<PanelCell> offer_cells(const TileSource& source, const QRectF& rect, const Scene& scene) {
  const QFont font = ui_font(scene.px(kButtonText));
  std::vector<PanelCell> cells;
  double x = rect.left(), y = rect.top();
  const double high = std::min(scene.px(kButton), rect.height());
  for (const TileOffer& offer : source.offers) {
    if (!offer.why_not.empty()) continue;
    const double wide = std::min(text_width(font, button_text(offer)) + scene.px(16), rect.width());
    if (x > rect.left() && x + wide > rect.right()) x = rect.left(), y += high + scene.px(4);
    cells.push_back({QRectF(x, y, wide, high), of_tile_path(offer.path), button_text(offer)});
    x += wide + scene.px(6);
  }
  return cells;
}

void paint_offers(QPainter& painter, const std::vector<PanelCell>& offers, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const QFont font = ui_font(scene.px(kButtonText));
  for (const PanelCell& offer : offers) {
    painter.fillRect(offer.rect, theme.cell_free);
    painter.setPen(QPen(theme.free_line, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(offer.rect.adjusted(0.5, 0.5, -0.5, -0.5));
    draw_text_in(painter, font, theme.ink_on(theme.cell_free), offer.rect, Qt::AlignHCenter,
                 elided(font, offer.name, offer.rect.width() - 4));
  }
}

void paint_copies_instead(QPainter& painter, const QRectF& body, const Scene& scene) {
  const Theme& theme = *scene.theme;
  painter.save();
  painter.setClipRect(body.adjusted(-3, -3, 3, 3), Qt::IntersectClip);
  const auto write = [&](const QRectF& rect, const QFont& font, const QColor& color, const QString& text) {
    painter.setFont(font);
    painter.setPen(color);
    painter.drawText(rect, kWrappedText, text);
  };
  if (scene.tile_source == nullptr || !scene.tile_source->path) {
    write(body, ui_font(scene.px(kHeadline)), theme.text_quiet, scene.tile_instead);
    painter.restore();
    return;
  }
  const TileSource& source = *scene.tile_source;
  const Instead at = instead_layout(body, scene);
  write(at.headline, ui_font(scene.px(kHeadline), QFont::DemiBold), theme.warning, headline_of(source));
  if (!at.offers_title.isEmpty()) {
    write(at.offers_title, ui_font(scene.px(kReason)), theme.text, instead_tr("Stage it another way:"));
    paint_offers(painter, offer_cells(source, at.offers, scene), scene);
  }
  if (source.map) paint_map_axes(painter, at.axes, source, true, scene);
  write(at.reasons, ui_font(scene.px(kReason)), theme.text_quiet, reasons_of(source));
  if (!at.engines.isEmpty()) write(at.engines, ui_font(scene.px(kReason)), theme.text_quiet, engines_of(source));
  painter.restore();
}

std::vector<PanelCell> copies_instead_cells(const QRectF& body, const Scene& scene) {
  if (scene.tile_source == nullptr || !scene.tile_source->path) return {};
  const Instead at = instead_layout(body, scene);
  std::vector<PanelCell> cells;
  if (!at.offers.isEmpty()) cells = offer_cells(*scene.tile_source, at.offers, scene);
  if (scene.tile_source->map) add_map_cells(at.axes, cells);
  for (PanelCell& cell : cells) cell.rect = cell.rect.intersected(body);
  cells.erase(std::remove_if(cells.begin(), cells.end(), [](const PanelCell& cell) { return cell.rect.isEmpty(); }),
              cells.end());
  return cells;
}

}  // namespace kvscope::viz

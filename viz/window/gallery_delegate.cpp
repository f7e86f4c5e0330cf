#include "viz/window/gallery_delegate.h"

#include <algorithm>

#include <QtGui/QFontMetrics>
#include <QtGui/QPainter>
#include <QtWidgets/QAbstractItemView>

#include "viz/model/gallery_model.h"

namespace kvscope::viz {
namespace {

constexpr int kPad = 14, kBetween = 10, kLead = 4;      // [px] in a card, from card to card, from name to description
constexpr double kNameSize = 14.5, kWordsSize = 12.5;   // [px] at font scale 1
constexpr double kCorner = 8;                           // [px]
constexpr int kMostLines = 3, kLinesBesidePicture = 6;  // of the description; tool tip and notes have its full text
constexpr QSize kPicture{208, 130};                     // [px] at font scale 1
constexpr int kFewestWords = 220;                       // [px] beside a picture; in a narrower list it is left out
constexpr int kWrap = Qt::TextWordWrap | Qt::AlignLeft | Qt::AlignTop;

}  // namespace

// As many whole sentences as fit, at least one.
QString GalleryDelegate::beginning(const QString& text, int width, int lines) const {
  const QFontMetrics metrics(ui_font(kWordsSize * font_scale_));
  const int most = lines * metrics.lineSpacing();
  const auto fits = [&](const QString& part) {
    return metrics.boundingRect(QRect(0, 0, width, 1 << 20), kWrap, part).height() <= most;
  };
  if (fits(text)) return text;
  const QString dots = QStringLiteral(" ...");
  qsizetype best = -1;
  for (qsizetype at = text.indexOf(QLatin1String(". ")); at >= 0; at = text.indexOf(QLatin1String(". "), at + 1)) {
    if (!fits(text.left(at + 1) + dots)) break;
    best = at + 1;
  }
  return best > 0 ? text.left(best) + dots : text;
}

// An empty frame while the picture is awaited: the card does not move when it arrives.
void GalleryDelegate::paint_picture(QPainter& painter, const QRect& rect, const QImage& picture) const {
  if (picture.isNull()) {
    painter.fillRect(rect, theme_->surface);
  } else {
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    painter.drawImage(rect, picture);
  }
  painter.setPen(QPen(theme_->card_border, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5));
}

GalleryDelegate::GalleryDelegate(QAbstractItemView* view) : QStyledItemDelegate(view), view_(view) {}

void GalleryDelegate::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  font_scale_ = font_scale;
}

GalleryDelegate::Places GalleryDelegate::places(int width, const QModelIndex& index) const {
  Places p;
  const QSize picture = (QSizeF(kPicture) * font_scale_).toSize();
  const bool has_picture = index.data(GalleryModel::kPictureRole).isValid() &&
                           width - picture.width() - 3 * kPad >= qRound(kFewestWords * font_scale_);
  if (has_picture) p.picture = QRect(QPoint(kPad, kPad), picture);
  const int left = has_picture ? p.picture.right() + 1 + kPad : kPad;
  const int inner = std::max(1, width - left - kPad);
  const auto height = [&](const QFont& font, const QString& text) {
    return QFontMetrics(font).boundingRect(QRect(0, 0, inner, 1 << 20), kWrap, text).height();
  };
  p.name =
      QRect(left, kPad - 2, inner, height(ui_font(kNameSize * font_scale_, QFont::DemiBold), index.data().toString()));
  p.text = beginning(index.data(GalleryModel::kDescriptionRole).toString(), inner,
                     has_picture ? kLinesBesidePicture : kMostLines);
  p.words = QRect(left, p.name.bottom() + 1 + kLead, inner, height(ui_font(kWordsSize * font_scale_), p.text));
  p.card = QRect(0, 0, width, std::max(p.words.bottom(), p.picture.bottom()) + kPad);
  return p;
}

QSize GalleryDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const {
  const int width = view_->viewport()->width();
  return {width, places(width, index).card.height() + kBetween};
}

void GalleryDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const Places p = places(option.rect.width(), index);
  const bool hot = option.state.testFlag(QStyle::State_MouseOver);
  const bool focused = option.state.testFlag(QStyle::State_Selected) && view_->hasFocus();
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->translate(option.rect.topLeft());
  painter->setPen(QPen(focused ? theme_->accent : hot ? theme_->text_quiet : theme_->card_border, focused ? 2 : 1));
  painter->setBrush(theme_->card);
  painter->drawRoundedRect(QRectF(p.card).adjusted(1, 1, -1, -1), kCorner, kCorner);
  if (!p.picture.isEmpty()) paint_picture(*painter, p.picture, index.data(GalleryModel::kPictureRole).value<QImage>());
  painter->setPen(theme_->text);
  painter->setFont(ui_font(kNameSize * font_scale_, QFont::DemiBold));
  painter->drawText(p.name, kWrap, index.data().toString());
  painter->setPen(theme_->text_quiet);
  painter->setFont(ui_font(kWordsSize * font_scale_));
  painter->drawText(p.words, kWrap, p.text);
  painter->restore();
}

}  // namespace kvscope::viz

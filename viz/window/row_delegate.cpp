#include "viz/window/row_delegate.h"

#include <QtGui/QPainter>

#include "viz/view/cell_paint.h"

namespace kvscope::viz {
namespace {

constexpr double kRowSize = 12;    // [px] of the digits at font scale 1
constexpr double kPatch = 12;      // [px] of a sequence's patch
constexpr double kRowHeight = 22;  // [px]

}  // namespace

RowDelegate::RowDelegate(Roles roles, QObject* parent) : QStyledItemDelegate(parent), roles_(roles) {}

void RowDelegate::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  font_scale_ = font_scale;
}

bool RowDelegate::has_patch(const QModelIndex& index) const {
  return roles_.owner >= 0 && index.column() == roles_.owner_column;
}

void RowDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  const bool last = roles_.last >= 0 && index.data(roles_.last).toBool();
  option->font = mono_font(kRowSize * font_scale_, last ? QFont::Bold : QFont::Normal);
  if (roles_.happened >= 0 && !index.data(roles_.happened).toBool())
    option->palette.setColor(QPalette::Text, theme_->text_quiet);
  if (last) option->palette.setColor(QPalette::Text, theme_->accent);
  if (!has_patch(index)) return;
  option->features |= QStyleOptionViewItem::HasDecoration;  // reserves the room of an icon for the patch of paint()
  option->decorationSize = QSize(qRound(1.6 * kPatch * font_scale_), qRound(kPatch * font_scale_));
}

void RowDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyledItemDelegate::paint(painter, option, index);
  if (!has_patch(index)) return;
  const double side = kPatch * font_scale_;
  const QRectF patch(option.rect.left() + side / 2, option.rect.center().y() - side / 2 + 0.5, side, side);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  paint_cell(*painter, patch, owner_look(index.data(roles_.owner).toLongLong()), 1, *theme_);
  painter->restore();
}

QSize RowDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  return {QStyledItemDelegate::sizeHint(option, index).width() + 12, qRound(kRowHeight * font_scale_)};
}

}  // namespace kvscope::viz

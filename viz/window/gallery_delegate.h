// A scenario of the gallery as a card: its picture, its name, and the beginning of its description.
#pragma once

#include <QtWidgets/QStyledItemDelegate>

#include "viz/view/theme.h"

class QAbstractItemView;

namespace kvscope::viz {

class GalleryDelegate final : public QStyledItemDelegate {
  Q_OBJECT
 public:
  explicit GalleryDelegate(QAbstractItemView* view);
  void set_theme(const Theme& theme, double font_scale);

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  void paint_picture(QPainter& painter, const QRect& rect, const QImage& picture) const;
  struct Places {
    QRect card, picture, name, words;  // picture: empty if the scenario has none
    QString text;                      // in `words`
  };
  // Positions for a list of that width, with the card's top left corner at the origin.
  [[nodiscard]] Places places(int width, const QModelIndex& index) const;
  [[nodiscard]] QString beginning(const QString& text, int width, int lines) const;

  QAbstractItemView* view_;
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;
};

}  // namespace kvscope::viz

// The look of rows of the docks' tables: digits in the mono font, remaining events in the quiet color, the last past
// event bold, a sequence with a patch of its color and pattern.
#pragma once

#include <QtWidgets/QStyledItemDelegate>

#include "viz/view/theme.h"

namespace kvscope::viz {

class RowDelegate final : public QStyledItemDelegate {
  Q_OBJECT
 public:
  // Roles of the model: `happened` and `last` give a bool, `owner` the number of a sequence. -1: no such role.
  struct Roles {
    int happened = -1, last = -1, owner = -1;
    int owner_column = 0;
  };
  explicit RowDelegate(Roles roles, QObject* parent = nullptr);
  void set_theme(const Theme& theme, double font_scale);

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;

 private:
  [[nodiscard]] bool has_patch(const QModelIndex& index) const;
  Roles roles_;
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;
};

}  // namespace kvscope::viz

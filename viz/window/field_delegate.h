// The look and the editors of a scenario's fields: a list of words where only these are legal, else a line of text.
// Defaults have the quiet color; a field with a fault has a warning sign and the warning color.
#pragma once

#include <QtWidgets/QStyledItemDelegate>

#include "viz/view/theme.h"

namespace kvscope::viz {

class FieldDelegate final : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void set_theme(const Theme& theme, double font_scale);

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void setEditorData(QWidget* editor, const QModelIndex& index) const override;
  void setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const override;
  [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;

 private:
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;
};

}  // namespace kvscope::viz

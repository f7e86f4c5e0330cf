#include "viz/window/field_delegate.h"

#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>

#include "viz/model/scenario_model.h"
#include "viz/window/icons.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

constexpr double kValueSize = 12, kFieldHeight = 24;  // [px] at font scale 1

}  // namespace

void FieldDelegate::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  font_scale_ = font_scale;
}

void FieldDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  const bool value = index.column() == ScenarioModel::kValue;
  option->font = value ? mono_font(kValueSize * font_scale_) : ui_font(kBodySize * font_scale_);
  if (value && !index.data(ScenarioModel::kGivenRole).toBool()) {
    option->palette.setColor(QPalette::Text, theme_->text_quiet);
  }
  if (!index.data(ScenarioModel::kFaultInsideRole).toBool()) return;
  option->palette.setColor(QPalette::Text, theme_->warning);
  if (value) return;
  option->features |= QStyleOptionViewItem::HasDecoration;
  option->icon = icon(Icon::warning, *theme_);
  const int side = qRound(kBodySize * font_scale_);
  option->decorationSize = QSize(side, side);
}

QSize FieldDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  return {QStyledItemDelegate::sizeHint(option, index).width(), qRound(kFieldHeight * font_scale_)};
}

QWidget* FieldDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem& /*option*/,
                                     const QModelIndex& index) const {
  const QStringList words = index.data(ScenarioModel::kWordsRole).toStringList();
  QWidget* editor = nullptr;
  if (words.isEmpty()) {
    auto* line = new QLineEdit(parent);
    line->setFrame(false);
    editor = line;
  } else {
    auto* box = new QComboBox(parent);
    box->addItems(words);
    // A choice is a change at once, without a second key.
    connect(box, &QComboBox::activated, this, [this, box] {
      auto* self = const_cast<FieldDelegate*>(this);
      Q_EMIT self->commitData(box);
      Q_EMIT self->closeEditor(box);
    });
    editor = box;
  }
  editor->setFont(mono_font(kValueSize * font_scale_));
  editor->setAccessibleName(index.siblingAtColumn(ScenarioModel::kField).data().toString());
  editor->setToolTip(index.data(Qt::ToolTipRole).toString());
  return editor;
}

void FieldDelegate::setEditorData(QWidget* editor, const QModelIndex& index) const {
  const QString value = index.data(Qt::EditRole).toString();
  if (auto* line = qobject_cast<QLineEdit*>(editor)) {
    if (line->text() != value && !line->isModified()) line->setText(value);
  } else if (auto* box = qobject_cast<QComboBox*>(editor)) {
    box->setCurrentIndex(box->findText(value));
  }
}

void FieldDelegate::setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const {
  if (const auto* line = qobject_cast<const QLineEdit*>(editor)) {
    model->setData(index, line->text());
  } else if (const auto* box = qobject_cast<const QComboBox*>(editor)) {
    if (box->currentIndex() >= 0) model->setData(index, box->currentText());
  }
}

}  // namespace kvscope::viz

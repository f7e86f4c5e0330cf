#include "viz/window/command_palette.h"

#include <algorithm>
#include <optional>

#include <QtCore/QTimer>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

namespace kvscope::viz {
namespace {

constexpr int kPaletteWidth = 720, kPaletteHeight = 420;  // [px] at most the window's
constexpr int kActionRole = Qt::UserRole;

// 0: the word begins the name, 1: it begins a word of it, 2: it is in it, 3: in the menu or the description.
std::optional<int> rank_of(const ActionEntry& of, const QString& word) {
  const QString name = plain_text_of(of);
  if (name.startsWith(word, Qt::CaseInsensitive)) return 0;
  if (name.contains(QLatin1Char(' ') + word, Qt::CaseInsensitive)) return 1;
  if (name.contains(word, Qt::CaseInsensitive)) return 2;
  const QString rest = group_title(of.group).remove(QLatin1Char('&')) + QLatin1Char(' ') + tip_of(of);
  return rest.contains(word, Qt::CaseInsensitive) ? std::optional(3) : std::nullopt;
}

}  // namespace

std::vector<Do> actions_meant(const QString& text) {
  const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  std::vector<std::pair<int, Do>> found;
  for (const ActionEntry& of : action_table()) {
    int sum = 0;
    const bool meant = std::ranges::all_of(words, [&](const QString& word) {
      const std::optional<int> rank = rank_of(of, word);
      sum += rank.value_or(0);
      return rank.has_value();
    });
    if (meant) found.emplace_back(sum, of.id);
  }
  std::ranges::stable_sort(found, {}, &std::pair<int, Do>::first);
  std::vector<Do> meant;
  for (const auto& [rank, id] : found) meant.push_back(id);
  return meant;
}

CommandPalette::CommandPalette(const Actions& actions, QWidget* parent)
    : QDialog(parent), actions_(actions), field_(new QLineEdit), list_(new QTreeWidget) {
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("All actions by name"));
  setAccessibleName(windowTitle());
  field_->setPlaceholderText(tr("A part of a name: step back, theme, export"));
  field_->setAccessibleName(tr("Name of an action"));
  field_->setClearButtonEnabled(true);
  list_->setProperty("card", true);
  list_->setAccessibleName(tr("Actions that match"));
  list_->setColumnCount(4);
  list_->setHeaderLabels({tr("Action"), tr("Menu"), tr("Keys"), tr("What it does")});
  list_->setRootIsDecorated(false);
  list_->setUniformRowHeights(true);
  list_->setSelectionMode(QAbstractItemView::SingleSelection);
  list_->setFocusPolicy(Qt::ClickFocus);  // the arrow keys of the field move its selection
  field_->installEventFilter(this);
  connect(field_, &QLineEdit::textChanged, this, &CommandPalette::fill);
  connect(list_, &QTreeWidget::itemActivated, this, &CommandPalette::choose);
  connect(list_, &QTreeWidget::itemClicked, this, &CommandPalette::choose);
  auto* column = new QVBoxLayout(this);
  column->addWidget(field_);
  column->addWidget(list_);
  resize(QSize(kPaletteWidth, kPaletteHeight).boundedTo(parent->size()));
  fill();
  for (int n = 0; n < 3; ++n) list_->resizeColumnToContents(n);
  field_->setFocus();
}

void CommandPalette::fill() {
  list_->clear();
  for (const Do id : actions_meant(field_->text())) {
    if (!actions_[id]->isEnabled() || id == Do::commands) continue;
    const ActionEntry& of = entry(id);
    QStringList keys;
    for (const QKeySequence& key : keys_of(of)) keys.push_back(key.toString(QKeySequence::NativeText));
    const bool checked = actions_[id]->isCheckable() && actions_[id]->isChecked();
    const QString name = checked ? tr("%1 (on)").arg(plain_text_of(of)) : plain_text_of(of);
    auto* item = new QTreeWidgetItem(
        list_, {name, group_title(of.group).remove(QLatin1Char('&')), keys.join(QStringLiteral("   ")), tip_of(of)});
    item->setData(0, kActionRole, static_cast<int>(id));
    item->setToolTip(3, tip_of(of));
  }
  if (list_->topLevelItemCount() > 0) list_->setCurrentItem(list_->topLevelItem(0));
  field_->setAccessibleDescription(tr("%n action(s) match", nullptr, list_->topLevelItemCount()));
}

// The palette is closed first: an action may ask for the focus or open a bar.
void CommandPalette::choose() {
  const QTreeWidgetItem* const item = list_->currentItem();
  if (item == nullptr) return;
  QAction* const action = actions_[static_cast<Do>(item->data(0, kActionRole).toInt())];
  close();
  QTimer::singleShot(0, action, &QAction::trigger);
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  const bool is_override = event->type() == QEvent::ShortcutOverride;
  if (watched != field_ || (event->type() != QEvent::KeyPress && !is_override)) {
    return QDialog::eventFilter(watched, event);
  }
  const int key = static_cast<QKeyEvent*>(event)->key();
  if (is_override) {  // the window has an action with this key
    if (key != Qt::Key_Escape) return false;
    event->accept();
    return true;
  }
  switch (key) {
    case Qt::Key_Escape:
      close();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      choose();
      return true;
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
      QApplication::sendEvent(list_, event);
      return true;
    default:
      return QDialog::eventFilter(watched, event);
  }
}

}  // namespace kvscope::viz

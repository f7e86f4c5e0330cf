#include "viz/window/breakpoints_panel.h"

#include <algorithm>
#include <array>

#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/icons.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

// Frequent breakpoints: in words for the menu, and as text for the parser.
struct Ready {
  const char* words;
  const char* text;
};
constexpr std::array<Ready, 6> kReady{{
    {QT_TRANSLATE_NOOP("kvscope::viz::BreakpointsPanel", "block allocated"), "block_allocated"},
    {QT_TRANSLATE_NOOP("kvscope::viz::BreakpointsPanel", "block evicted"), "block_evicted"},
    {QT_TRANSLATE_NOOP("kvscope::viz::BreakpointsPanel", "block copied on write"), "block_copied"},
    {QT_TRANSLATE_NOOP("kvscope::viz::BreakpointsPanel", "request preempted"), "request_preempted"},
    {QT_TRANSLATE_NOOP("kvscope::viz::BreakpointsPanel", "request rejected"), "request_refused"},
    {QT_TRANSLATE_NOOP("kvscope::viz::BreakpointsPanel", "free blocks below 4"), "step_ended free_blocks<4"},
}};

QToolButton* make_button(const QString& name) {
  auto* button = new QToolButton;
  button->setAccessibleName(name);
  button->setToolTip(name);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

}  // namespace

BreakpointsPanel::BreakpointsPanel(QWidget* parent) : QWidget(parent) {
  build();
  connect(field_, &QLineEdit::returnPressed, this, [this] { add(field_->text()); });
  connect(field_, &QLineEdit::textEdited, this, [this] { say({}); });
  connect(add_, &QToolButton::clicked, this, [this] { add(field_->text()); });
  connect(remove_, &QToolButton::clicked, this, &BreakpointsPanel::remove);
  connect(&model_, &BreakpointModel::rejected, this, &BreakpointsPanel::say);
  connect(&model_, &QAbstractItemModel::modelReset, this, &BreakpointsPanel::update_buttons);
  connect(&model_, &QAbstractItemModel::dataChanged, this, [this] { say({}); });
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, &BreakpointsPanel::update_buttons);
  update_buttons();
}

void BreakpointsPanel::build() {
  setAccessibleName(tr("Breakpoints"));
  field_ = new QLineEdit;
  field_->setPlaceholderText(tr("block_allocated block=7"));
  field_->setAccessibleName(tr("New breakpoint"));
  field_->setToolTip(tr("A kind of event, then conditions on its numbers: step_ended free_blocks<4 running>=2"));
  field_->setClearButtonEnabled(true);
  add_ = make_button(tr("Add the breakpoint"));
  ready_ = make_button(tr("Examples of breakpoints"));
  ready_->setText(tr("Examples"));
  ready_->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(ready_);
  for (const Ready& r : kReady) {
    QAction* action = menu->addAction(tr(r.words));
    action->setToolTip(QString::fromLatin1(r.text));
    connect(action, &QAction::triggered, this, [this, &r] { add(QString::fromLatin1(r.text)); });
  }
  ready_->setMenu(menu);
  remove_ = make_button(tr("Remove the breakpoint"));

  fault_ = new QLabel;
  fault_->setProperty("fault", true);
  fault_->setWordWrap(true);
  fault_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  fault_->setAccessibleName(tr("Fault of the breakpoint"));
  fault_->hide();
  list_ = new QListView;
  list_->setProperty("card", true);
  list_->setAccessibleName(tr("List of breakpoints"));
  list_->setModel(&model_);
  list_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  list_->installEventFilter(this);
  hint_ = new QLabel(tr("Playing and F5 stop after an event that matches one of these."));
  hint_->setProperty("quiet", true);
  hint_->setWordWrap(true);

  auto* row = new QHBoxLayout;
  row->setSpacing(4);
  row->addWidget(field_, 1);
  for (QToolButton* button : {add_, ready_, remove_}) row->addWidget(button);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addLayout(row);
  column->addWidget(fault_);
  column->addWidget(list_, 1);
  column->addWidget(hint_);
}

void BreakpointsPanel::set_document(Document* document) {
  model_.set_document(document);
  for (QWidget* widget : std::initializer_list<QWidget*>{field_, add_, ready_}) widget->setEnabled(document != nullptr);
  say({});
  update_buttons();
}

void BreakpointsPanel::set_theme(const Theme& theme, double font_scale) {
  add_->setIcon(icon(Icon::add, theme));
  remove_->setIcon(icon(Icon::remove, theme));
  for (QWidget* mono : std::initializer_list<QWidget*>{field_, list_}) mono->setFont(mono_font(12 * font_scale));
}

void BreakpointsPanel::write() {
  field_->setFocus(Qt::ShortcutFocusReason);
  field_->selectAll();
}

void BreakpointsPanel::add(const QString& text) {
  say({});
  if (!model_.add(text)) return;
  field_->clear();
  list_->setCurrentIndex(model_.index(model_.rowCount() - 1));
}

void BreakpointsPanel::remove() {
  const int row = list_->currentIndex().row();
  if (row < 0 || !model_.removeRow(row)) return;
  list_->setCurrentIndex(model_.index(std::min(row, model_.rowCount() - 1)));
}

void BreakpointsPanel::say(const QStringList& faults) {
  fault_->setText(faults.join(QLatin1Char('\n')));
  fault_->setAccessibleName(faults.isEmpty() ? tr("Fault of the breakpoint")
                                             : QString());  // a name would hide the text
  fault_->setVisible(!faults.isEmpty());
}

void BreakpointsPanel::update_buttons() {
  remove_->setEnabled(list_->currentIndex().isValid());
  hint_->setVisible(model_.rowCount() == 0);
}

bool BreakpointsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == list_ && event->type() == QEvent::KeyPress &&
      static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete) {
    remove();
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace kvscope::viz

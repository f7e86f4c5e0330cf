#include "viz/window/events_panel.h"

#include <QtCore/QEvent>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/dock_table.h"
#include "viz/window/row_delegate.h"

namespace kvscope::viz {
namespace {

constexpr int kRow = 22;  // [px] at font scale 1

}  // namespace

EventsPanel::EventsPanel(QWidget* parent)
    : QWidget(parent),
      delegate_(new RowDelegate({EventModel::kHappenedRole, EventModel::kLastRole, -1, 0}, this)),
      table_(make_dock_table(tr("Events of this step"))) {
  setAccessibleName(tr("Events"));
  table_->setModel(&model_);
  table_->setItemDelegate(delegate_);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->viewport()->installEventFilter(this);
  const auto go = [this](const QModelIndex& index) {
    if (document_) document_->seek(model_.after(index.row()));
  };
  connect(table_, &QTableView::clicked, this, go);
  connect(table_, &QTableView::activated, this, go);
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& index) {
    if (document_) document_->hover(model_.object(index.row()));
  });
  connect(&model_, &QAbstractItemModel::modelReset, this, &EventsPanel::show_last);
  connect(&model_, &QAbstractItemModel::dataChanged, this, &EventsPanel::show_last);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addWidget(table_);
}

void EventsPanel::set_document(Document* document) {
  document_ = document;
  model_.set_document(document);
}

void EventsPanel::set_theme(const Theme& theme, double font_scale) {
  delegate_->set_theme(theme, font_scale);
  table_->verticalHeader()->setDefaultSectionSize(qRound(kRow * font_scale));
  table_->viewport()->update();
}

void EventsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  model_.set_watched(true);
  show_last();
}

void EventsPanel::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  model_.set_watched(false);
}

bool EventsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Leave && document_) document_->hover({});
  return QWidget::eventFilter(watched, event);
}

void EventsPanel::show_last() {
  const int row = std::max(0, model_.last_row());
  if (row < model_.rowCount()) table_->scrollTo(model_.index(row, 0), QAbstractItemView::EnsureVisible);
}

}  // namespace kvscope::viz

#include "viz/window/sequences_panel.h"

#include <QtCore/QEvent>
#include <QtCore/QItemSelectionModel>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QTableView>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/dock_table.h"
#include "viz/window/row_delegate.h"

namespace kvscope::viz {
namespace {

constexpr int kSequenceRow = 22;  // [px] at font scale 1

}  // namespace

SequencesPanel::SequencesPanel(QWidget* parent)
    : QWidget(parent),
      delegate_(new RowDelegate({-1, -1, SequenceModel::kOwnerRole, SequenceModel::kSequence}, this)),
      table_(make_dock_table(tr("Live sequences"))) {
  setAccessibleName(tr("Sequences"));
  sorted_.setSourceModel(&model_);
  sorted_.setSortRole(SequenceModel::kSortRole);
  table_->setModel(&sorted_);
  table_->setItemDelegate(delegate_);
  table_->setSortingEnabled(true);
  table_->sortByColumn(SequenceModel::kSequence, Qt::AscendingOrder);
  table_->viewport()->installEventFilter(this);
  const auto pin = [this](const QModelIndex& index) {
    if (document_) document_->pin(of_sequence(sequence(index)));
  };
  connect(table_, &QTableView::clicked, this, pin);
  connect(table_, &QTableView::activated, this, pin);
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& index) {
    if (document_) document_->hover(of_sequence(sequence(index)));
  });
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addWidget(table_);
}

SeqIdx SequencesPanel::sequence(const QModelIndex& sorted) const {
  return model_.sequence(sorted_.mapToSource(sorted).row());
}

void SequencesPanel::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  model_.set_document(document);
  if (document_) connect(document_, &Document::pinned_changed, this, &SequencesPanel::select_pinned);
}

void SequencesPanel::set_theme(const Theme& theme, double font_scale) {
  delegate_->set_theme(theme, font_scale);
  table_->verticalHeader()->setDefaultSectionSize(qRound(kSequenceRow * font_scale));
  table_->viewport()->update();
}

void SequencesPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  model_.set_watched(true);
  select_pinned();
}

void SequencesPanel::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  model_.set_watched(false);
}

bool SequencesPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Leave && document_) document_->hover({});
  return QWidget::eventFilter(watched, event);
}

void SequencesPanel::select_pinned() {
  const int row = document_ && document_->pinned_lit().seq ? model_.row_of(*document_->pinned_lit().seq) : -1;
  if (row < 0) {
    table_->clearSelection();
    return;
  }
  const QModelIndex index = sorted_.mapFromSource(model_.index(row, 0));
  table_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

}  // namespace kvscope::viz

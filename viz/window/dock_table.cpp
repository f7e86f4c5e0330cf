#include "viz/window/dock_table.h"

#include <QtCore/QString>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QTableView>

namespace kvscope::viz {
namespace {

constexpr int kMeasuredRows = 64;  // rows measured for a column's width; a step may have a hundred thousand rows

}  // namespace

QTableView* make_dock_table(const QString& accessible_name) {
  auto* table = new QTableView;
  table->setProperty("card", true);
  table->setAccessibleName(accessible_name);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setShowGrid(false);
  table->setWordWrap(false);
  table->setTabKeyNavigation(false);  // Tab leaves the table
  table->setMouseTracking(true);
  table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table->verticalHeader()->hide();
  table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  table->horizontalHeader()->setHighlightSections(false);
  table->horizontalHeader()->setResizeContentsPrecision(kMeasuredRows);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  return table;
}

}  // namespace kvscope::viz

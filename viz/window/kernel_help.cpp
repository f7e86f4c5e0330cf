#include "viz/window/kernel_help.h"

#include <QtGui/QAction>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

namespace kvscope::viz {
namespace {

constexpr QSize kHelpSize{720, 520};  // [px]

}  // namespace

KernelHelp::KernelHelp(QWidget* window) : QDialog(window) {
  setWindowTitle(tr("Keys and actions"));
  auto* table = new QTreeWidget;
  table->setAccessibleName(tr("Keys and actions"));
  table->setHeaderLabels({tr("Action"), tr("Keys"), tr("What it does")});
  table->setRootIsDecorated(false);
  for (const QAction* action : window->findChildren<QAction*>()) {
    if (action->shortcuts().isEmpty() || action->statusTip().isEmpty()) continue;
    QString text = action->text();
    text.remove(QLatin1Char('&'));
    table->addTopLevelItem(new QTreeWidgetItem(
        {text, QKeySequence::listToString(action->shortcuts(), QKeySequence::NativeText), action->statusTip()}));
  }
  table->addTopLevelItem(new QTreeWidgetItem({tr("Breakpoint"), tr("Click on a line number"), tr("Set or remove it")}));
  table->addTopLevelItem(new QTreeWidgetItem(
      {tr("Another warp"), tr("Click in Warps"), tr("Show its registers and its CTA's shared memory")}));
  table->addTopLevelItem(new QTreeWidgetItem(
      {tr("Last writer"), tr("Double click on a word, or Enter"), tr("Go to the step before the write")}));
  table->addTopLevelItem(new QTreeWidgetItem({tr("Next write"), tr("Shift and double click on a word, or Shift+Enter"),
                                              tr("Go to the step after the word's next write")}));
  for (int column = 0; column < 2; ++column) table->resizeColumnToContents(column);
  auto* all = new QVBoxLayout(this);
  all->addWidget(table);
  resize(kHelpSize);
}

}  // namespace kvscope::viz

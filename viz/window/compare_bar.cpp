#include "viz/window/compare_bar.h"

#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>

#include "viz/playback/run_difference.h"
#include "viz/view/time_text.h"
#include "viz/window/flow_row.h"

namespace kvscope::viz {

CompareBar::CompareBar(const Actions& actions, QWidget* parent)
    : QWidget(parent), name_(new QLabel), differences_(new QLabel), numbers_(new QLabel) {
  setAccessibleName(tr("The compared run"));
  auto* row = new FlowRow(this);
  row->setContentsMargins(8, 4, 8, 4);
  name_->setAccessibleName(tr("Compared run"));
  row->addWidget(name_);
  for (QLabel* words : {differences_, numbers_}) {  // apart: a large text has a line for each
    words->setAccessibleName(tr("Differences"));
    row->addWidget(words);
  }
  const auto add = [&](const QString& text, Do id) {
    auto* const button = new QPushButton(text);
    QAction* const action = actions[id];
    button->setAccessibleName(plain_text_of(entry(id)));
    button->setToolTip(action->toolTip());
    connect(button, &QPushButton::clicked, action, &QAction::trigger);
    row->addWidget(button);
  };
  add(tr("Previous"), Do::previous_difference);
  add(tr("Next difference"), Do::next_difference);
  add(tr("Hide"), Do::beside);
  hide();
}

void CompareBar::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  if (!document_) return;
  connect(document_, &Document::position_changed, this, &CompareBar::show_differences);
  connect(document_, &Document::compared_changed, this, &CompareBar::show_differences);
  show_differences();
}

void CompareBar::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  show_differences();
}

void CompareBar::set_name(const QString& name, const QString& path) {
  name_->setText(tr("Compared with %1").arg(name));
  name_->setToolTip(path);
}

void CompareBar::show_differences() {
  if (!isVisible() || !document_ || !document_->beside()) return;  // counting takes milliseconds in a large pool
  const auto say = [this](const QString& words, const QString& numbers) {
    differences_->setText(words);
    numbers_->setText(numbers);
    numbers_->setVisible(!numbers.isEmpty());
  };
  const Facts &ours = document_->run().facts(), &theirs = document_->compared()->run().facts();
  if (!document_->marks_differences()) {
    return say(tr("Blocks are not compared:"),
               ours.page_size != theirs.page_size
                   ? tr("pages of %1 and of %2 tokens").arg(number_text(ours.page_size), number_text(theirs.page_size))
                   : tr("a trace has steps only"));
  }
  const StateDifference differ = difference(document_->cursor().state(), document_->compared()->state());
  if (differ == StateDifference{}) return say(tr("Both caches store the same at this step"), {});
  say(tr("Different at this step:"),
      tr("%1 blocks, %2 sequences").arg(number_text(differ.blocks), number_text(differ.sequences)));
}

}  // namespace kvscope::viz

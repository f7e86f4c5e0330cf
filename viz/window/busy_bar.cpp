#include "viz/window/busy_bar.h"

#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QPushButton>

namespace kvscope::viz {
namespace {

constexpr int kThousandths = 1000;  // range of the bar: the number of events may exceed an int
constexpr int kBarWidth = 220;      // [px]

}  // namespace

BusyBar::BusyBar(QWidget* parent)
    : QFrame(parent), words_(new QLabel), bar_(new QProgressBar), cancel_(new QPushButton(tr("Cancel"))) {
  setProperty("bar", QStringLiteral("true"));
  setAccessibleName(tr("Work in progress"));
  bar_->setAccessibleName(tr("Progress"));
  bar_->setTextVisible(false);
  bar_->setFixedWidth(kBarWidth);
  cancel_->setAccessibleName(tr("Cancel"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(words_, 1);
  row->addWidget(bar_);
  row->addWidget(cancel_);
  patience_.setSingleShot(true);
  patience_.setInterval(kPatience);
  connect(&patience_, &QTimer::timeout, this, &QWidget::show);
  connect(cancel_, &QPushButton::clicked, this, &BusyBar::cancelled);
  hide();
}

void BusyBar::start(const QString& title) {
  title_ = title;
  words_->setText(title);
  bar_->setRange(0, 0);
  patience_.start();
}

void BusyBar::progress(qint64 done, qint64 all, const QString& what) {
  words_->setText(QStringLiteral("%1: %2").arg(title_, what));
  bar_->setRange(0, all > 0 ? kThousandths : 0);
  if (all > 0) bar_->setValue(static_cast<int>(static_cast<double>(done) / static_cast<double>(all) * kThousandths));
}

void BusyBar::stop() {
  patience_.stop();
  hide();
}

QString BusyBar::words() const {
  return words_->text();
}

}  // namespace kvscope::viz

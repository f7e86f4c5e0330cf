#include "viz/window/flow_row.h"

#include <algorithm>
#include <utility>

#include <QtCore/QEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>

namespace kvscope::viz {
namespace {

constexpr int kBetweenItems = 12, kBetweenLines = 4;  // [px]

}  // namespace

FlowRow::FlowRow(QWidget* parent) : QLayout(parent) {
  setContentsMargins(0, 0, 0, 0);
}

FlowRow::~FlowRow() {
  for (QLayoutItem* item : items_) delete item;
}

void FlowRow::add_named(const QString& name, QWidget& field) {
  auto* both = new QWidget;
  auto* row = new QHBoxLayout(both);
  row->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(name);
  label->setBuddy(&field);
  field.setAccessibleName(name.chopped(name.endsWith(QLatin1Char(':')) ? 1 : 0));
  row->addWidget(label);
  row->addWidget(&field);
  addWidget(both);
}

void FlowRow::addItem(QLayoutItem* item) {
  items_.push_back(item);
  invalidate();
}

int FlowRow::count() const {
  return static_cast<int>(items_.size());
}

QLayoutItem* FlowRow::itemAt(int index) const {
  return index >= 0 && index < count() ? items_[static_cast<std::size_t>(index)] : nullptr;
}

QLayoutItem* FlowRow::takeAt(int index) {
  QLayoutItem* const item = itemAt(index);
  if (item != nullptr) items_.erase(items_.begin() + index);
  return item;
}

int FlowRow::heightForWidth(int width) const {
  return lay_out(QRect(0, 0, width, 0), false);
}

std::vector<QLayoutItem*> FlowRow::shown() const {
  std::vector<QLayoutItem*> shown;
  std::ranges::copy_if(items_, std::back_inserter(shown), [](const QLayoutItem* item) { return !item->isEmpty(); });
  return shown;
}

QSize FlowRow::sizeHint() const {
  int width = 0, height = 0;
  for (const QLayoutItem* item : shown()) {
    width += (width > 0 ? kBetweenItems : 0) + item->sizeHint().width();
    height = std::max(height, item->sizeHint().height());
  }
  const QMargins around = contentsMargins();
  return {width + around.left() + around.right(), height + around.top() + around.bottom()};
}

QSize FlowRow::minimumSize() const {
  QSize least;
  for (const QLayoutItem* item : shown()) least = least.expandedTo(item->minimumSize());
  return least.grownBy(contentsMargins());
}

void FlowRow::setGeometry(const QRect& rect) {
  QLayout::setGeometry(rect);
  lay_out(rect, true);
}

int FlowRow::lay_out(const QRect& area, bool place) const {
  const QMargins around = contentsMargins();
  const QRect inner = area.marginsRemoved(around);
  const std::vector<QLayoutItem*> all = shown();
  int top = inner.top();
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    int width = 0, height = 0;
    for (; end < all.size(); ++end) {
      const QSize size = all[end]->sizeHint();
      const int wider = width + (end > first ? kBetweenItems : 0) + size.width();
      if (end > first && wider > inner.width()) break;
      width = wider;
      height = std::max(height, size.height());
    }
    // What is left of the line is in front of the first item that belongs at the right.
    int x = inner.left(), left_over = std::max(0, inner.width() - width);
    for (std::size_t n = first; place && n < end; ++n) {
      if ((all[n]->alignment() & Qt::AlignRight) != 0) x += std::exchange(left_over, 0);
      const QSize size = all[n]->sizeHint().boundedTo(QSize(inner.width(), height));
      all[n]->setGeometry(QRect(x, top + (height - size.height()) / 2, size.width(), size.height()));
      x += size.width() + kBetweenItems;
    }
    top += height + (end < all.size() ? kBetweenLines : 0);
  }
  return top - area.top() + around.bottom();
}

FlowLines::FlowLines(QWidget* parent) : QWidget(parent), row_(*new FlowRow(this)) {
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
}

bool FlowLines::event(QEvent* event) {
  const bool done = QWidget::event(event);
  if (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest) {
    setFixedHeight(row_.heightForWidth(width()));
  }
  return done;
}

}  // namespace kvscope::viz

#include "viz/model/event_model.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/trace/event_text.h"
#include "viz/playback/happened.h"

namespace kvscope::viz {

void EventModel::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  row_ = -1;
  if (document_) {
    connect(document_, &Document::position_changed, this, &EventModel::refresh);
    connect(document_, &QObject::destroyed, this, [this] { set_document(nullptr); });
  }
  refresh();
}

void EventModel::set_watched(bool watched) {
  watched_ = watched;
  refresh();
}

void EventModel::refresh() {
  if (!watched_ && document_) return;
  const std::int64_t row = document_ ? document_->cursor().row() : -1;
  const int before = last_;
  if (row != row_ || !document_) {
    beginResetModel();
    row_ = row;
    events_.reset();
    first_ = 0;
    if (document_) {
      try {
        first_ = document_->run().span(row).first_event;
        events_ = document_->run().events_of_row(row);
      } catch (const std::exception&) {
        events_.reset();
      }
    }
    last_ = document_ ? static_cast<int>(document_->cursor().position().value - first_) - 1 : -1;
    endResetModel();
    return;
  }
  last_ = static_cast<int>(document_->cursor().position().value - first_) - 1;
  if (last_ == before || rowCount() == 0) return;
  const int from = std::max(0, std::min(last_, before)), to = std::min(rowCount() - 1, std::max(last_, before));
  Q_EMIT dataChanged(index(from, 0), index(to, kColumns - 1));
}

Selection EventModel::object(int row) const {
  return object_of((*events_)[static_cast<std::size_t>(row)]);
}

int EventModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !events_ ? 0 : static_cast<int>(events_->size());
}

int EventModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(kColumns);
}

QVariant EventModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  if (role == kHappenedRole) return index.row() <= last_;
  if (role == kLastRole) return index.row() == last_;
  const trace::Event& event = (*events_)[static_cast<std::size_t>(index.row())];
  const QString line = QString::fromStdString(trace::to_text(event));
  const QString number = QString::number(first_ + index.row());
  if (role == kTextRole) return line;
  if (role == Qt::AccessibleTextRole) {
    const QString when = index.row() == last_  ? tr("happened last")
                         : index.row() < last_ ? tr("happened")
                                               : tr("still to come");
    return tr("event %1, %2: %3").arg(number, when, line);
  }
  if (role == Qt::TextAlignmentRole && index.column() == kNumber) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  if (role == Qt::ToolTipRole) return line;
  const qsizetype blank = line.indexOf(QLatin1Char(' '));
  switch (index.column()) {
    case kNumber:
      return number;
    case kKind:
      return line.left(blank);
    default:
      return line.mid(blank + 1);
  }
}

QVariant EventModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  const std::array<QString, kColumns> names{tr("Event"), tr("Kind"), tr("Numbers")};
  if (role == Qt::DisplayRole) return names[static_cast<std::size_t>(section)];
  if (role == Qt::TextAlignmentRole)
    return QVariant((section == kNumber ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  return {};
}

}  // namespace kvscope::viz

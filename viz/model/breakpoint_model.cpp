#include "viz/model/breakpoint_model.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

// Whether they are equal, ignoring `enabled`.
bool same_condition(const Breakpoint& a, const Breakpoint& b) {
  return a.kind == b.kind && a.conditions == b.conditions;
}

// Without the "off" of a disabled breakpoint: the check box beside it shows that.
QString condition_text(Breakpoint breakpoint) {
  breakpoint.enabled = true;
  return QString::fromStdString(to_text(breakpoint));
}

}  // namespace

void BreakpointModel::set_document(Document* document) {
  if (document_) document_->disconnect(this);
  document_ = document;
  if (document_) {
    connect(document_, &Document::breakpoints_changed, this, &BreakpointModel::refresh);
    connect(document_, &QObject::destroyed, this, [this] { set_document(nullptr); });
  }
  refresh();
}

void BreakpointModel::refresh() {
  const std::vector<Breakpoint> now = document_ ? document_->breakpoints() : std::vector<Breakpoint>{};
  if (now.size() == rows_.size()) {
    rows_ = now;
    if (!rows_.empty()) Q_EMIT dataChanged(index(0), index(rowCount() - 1));
    return;
  }
  beginResetModel();
  rows_ = now;
  endResetModel();
}

std::optional<Breakpoint> BreakpointModel::parsed(const QString& text) {
  try {
    return parse_breakpoint(text.toStdString());
  } catch (const std::exception& error) {
    QStringList faults;
    for (const std::string& line : fault_lines(error)) faults.push_back(QString::fromStdString(line));
    Q_EMIT rejected(faults);
    return std::nullopt;
  }
}

bool BreakpointModel::add(const QString& text) {
  if (!document_) {
    Q_EMIT rejected({tr("no file is open")});
    return false;
  }
  const std::optional<Breakpoint> added = parsed(text);
  if (!added) return false;
  std::vector<Breakpoint> next = rows_;
  const auto there =
      std::find_if(next.begin(), next.end(), [&](const Breakpoint& b) { return same_condition(b, *added); });
  if (there != next.end()) {
    there->enabled = true;
  } else {
    next.push_back(*added);
  }
  document_->set_breakpoints(std::move(next));
  return true;
}

int BreakpointModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant BreakpointModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Breakpoint& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == Qt::CheckStateRole) return static_cast<int>(row.enabled ? Qt::Checked : Qt::Unchecked);
  const QString text = condition_text(row);
  if (role == Qt::DisplayRole || role == Qt::EditRole || role == Qt::ToolTipRole) return text;
  if (role == Qt::AccessibleTextRole)
    return tr("breakpoint %1: %2, %3")
        .arg(QString::number(index.row() + 1), text, row.enabled ? tr("enabled") : tr("disabled"));
  return {};
}

Qt::ItemFlags BreakpointModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable | Qt::ItemIsUserCheckable |
         Qt::ItemNeverHasChildren;
}

bool BreakpointModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!document_ || !checkIndex(index, CheckIndexOption::IndexIsValid)) return false;
  std::vector<Breakpoint> next = rows_;
  Breakpoint& row = next[static_cast<std::size_t>(index.row())];
  if (role == Qt::CheckStateRole) {
    row.enabled = value.toInt() == Qt::Checked;
  } else if (role == Qt::EditRole) {
    std::optional<Breakpoint> edited = parsed(value.toString());
    if (!edited) return false;
    edited->enabled = row.enabled;
    row = std::move(*edited);
  } else {
    return false;
  }
  document_->set_breakpoints(std::move(next));
  return true;
}

bool BreakpointModel::removeRows(int row, int count, const QModelIndex& parent) {
  if (!document_ || parent.isValid() || row < 0 || count < 1 || row + count > rowCount()) return false;
  std::vector<Breakpoint> next = rows_;
  next.erase(next.begin() + row, next.begin() + row + count);
  document_->set_breakpoints(std::move(next));
  return true;
}

}  // namespace kvscope::viz

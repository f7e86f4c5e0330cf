#include "viz/model/gallery_model.h"

#include <utility>

namespace kvscope::viz {

GalleryModel::GalleryModel(std::vector<GalleryEntry> entries, QObject* parent)
    : QAbstractListModel(parent), entries_(std::move(entries)) {}

QString GalleryModel::path(int row) const {
  return QString::fromStdString(entries_[static_cast<std::size_t>(row)].path);
}

int GalleryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}

QVariant GalleryModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const GalleryEntry& entry = entries_[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
      return QString::fromStdString(entry.name);
    case kDescriptionRole:
    case Qt::ToolTipRole:
      return QString::fromStdString(entry.description);
    case kPathRole:
      return QString::fromStdString(entry.path);
    case Qt::AccessibleTextRole:
      return QString::fromStdString(entry.name + ". " + entry.description);
    default:
      return {};
  }
}

}  // namespace kvscope::viz

#include "viz/model/gallery_model.h"

#include <utility>

namespace kvscope::viz {

GalleryModel::GalleryModel(Gallery gallery, QObject* parent)
    : QAbstractListModel(parent), gallery_(std::move(gallery)), pictures_(gallery_.entries.size(), false) {}

void GalleryModel::set_picture(int row, const QVariant& picture) {
  pictures_[static_cast<std::size_t>(row)] = picture;
  Q_EMIT dataChanged(index(row), index(row), {kPictureRole});
}

QString GalleryModel::path(int row) const {
  return QString::fromStdString(gallery_.entries[static_cast<std::size_t>(row)].path);
}

int GalleryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(gallery_.entries.size());
}

QVariant GalleryModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const GalleryEntry& entry = gallery_.entries[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
      return QString::fromStdString(entry.name);
    case kDescriptionRole:
    case Qt::ToolTipRole:
      return QString::fromStdString(entry.description);
    case kPathRole:
      return QString::fromStdString(entry.path);
    case kPictureRole:
      return pictures_[static_cast<std::size_t>(index.row())];
    case Qt::AccessibleTextRole:
      return QString::fromStdString(entry.name + ". " + entry.description);
    default:
      return {};
  }
}

}  // namespace kvscope::viz

// The scenarios included with the program, as a list: a name, a paragraph that describes what the run shows, and a
// picture of it as soon as one is painted.
#pragma once

#include <string>
#include <vector>

#include <QtCore/QAbstractListModel>
#include <QtCore/QString>
#include <QtCore/QVariant>

namespace kvscope::viz {

// A scenario of the gallery.
struct GalleryEntry {
  std::string path;
  std::string name;
  std::string description;  // without links
};

struct Gallery {
  std::vector<GalleryEntry> entries;
  std::string why_empty;  // without entries: which folder was searched, and what to do
};

class GalleryModel final : public QAbstractListModel {
  Q_OBJECT
 public:
  static constexpr int kDescriptionRole = Qt::UserRole;
  static constexpr int kPathRole = Qt::UserRole + 1;
  // A QImage; false while the picture is awaited; an invalid QVariant for a scenario without a picture.
  static constexpr int kPictureRole = Qt::UserRole + 2;

  explicit GalleryModel(Gallery gallery, QObject* parent = nullptr);

  [[nodiscard]] const std::vector<GalleryEntry>& entries() const { return gallery_.entries; }
  [[nodiscard]] QString why_empty() const { return QString::fromStdString(gallery_.why_empty); }
  [[nodiscard]] QString path(int row) const;
  void set_picture(int row, const QVariant& picture);  // invalid: the scenario has none

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

 private:
  Gallery gallery_;
  std::vector<QVariant> pictures_;
};

}  // namespace kvscope::viz

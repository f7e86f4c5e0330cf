// The scenarios included with the program, as a list: a name, and a paragraph that describes what the run shows.
#pragma once

#include <string>
#include <vector>

#include <QtCore/QAbstractListModel>
#include <QtCore/QString>

namespace kvscope::viz {

// A scenario of the gallery.
struct GalleryEntry {
  std::string path;
  std::string name;
  std::string description;
};

class GalleryModel final : public QAbstractListModel {
  Q_OBJECT
 public:
  static constexpr int kDescriptionRole = Qt::UserRole;
  static constexpr int kPathRole = Qt::UserRole + 1;

  explicit GalleryModel(std::vector<GalleryEntry> entries, QObject* parent = nullptr);

  [[nodiscard]] QString path(int row) const;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

 private:
  std::vector<GalleryEntry> entries_;
};

}  // namespace kvscope::viz

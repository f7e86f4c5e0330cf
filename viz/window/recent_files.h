// The most recently opened files, newest first, without duplicates. Stored in the settings file of the window. Missing
// files stay in the list, disabled, because they may be on a drive that is not connected.
#pragma once

#include <QtCore/QObject>
#include <QtCore/QStringList>

class QMenu;

namespace kvscope::viz {

class RecentFiles final : public QObject {
  Q_OBJECT
 public:
  static constexpr int kMost = 10;

  explicit RecentFiles(const QString& settings_file, QObject* parent = nullptr);

  [[nodiscard]] const QStringList& paths() const { return paths_; }  // absolute
  void add(const QString& path);
  void clear();

  // Fills the menu: one action per file, and "Clear the list". To be called when the menu is about to be shown.
  void fill(QMenu& menu);

 Q_SIGNALS:
  void changed();
  void chosen(const QString& path);

 private:
  void keep();
  QString settings_file_;
  QStringList paths_;
};

}  // namespace kvscope::viz

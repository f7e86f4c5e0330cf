// The tabs of docks that share a place: if their words do not fit side by side, all are smaller, so that none is cut.
// Their text is at least as large as at font scale 1; words that do not fit even then end in dots.
//
// Example: at font scale 2 (26 px) four tabs need 540 px. In a dock of 430 px their text is of 19 px.
#pragma once

#include <QtCore/QObject>

class QMainWindow;
class QTabBar;

namespace kvscope::viz {

class DockTabs final : public QObject {
  Q_OBJECT
 public:
  explicit DockTabs(QMainWindow& window);
  void fit();  // call when docks were moved, shown or hidden, or when the text size changed

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fit(QTabBar& bar) const;

  QMainWindow& window_;
};

}  // namespace kvscope::viz

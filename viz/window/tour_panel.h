// The tour: the current task with its keys, a remark on the last try, and the tasks before it.
#pragma once

#include <QtWidgets/QWidget>

#include "viz/model/tour.h"
#include "viz/view/theme.h"

class QTextBrowser;
class QUrl;

namespace kvscope::viz {

[[nodiscard]] QString title_of(TourTask task);

class TourPanel final : public QWidget {
  Q_OBJECT
 public:
  // Precondition (caller): the tour outlives the panel.
  explicit TourPanel(const Tour& tour, QWidget* parent = nullptr);
  void set_away(bool away);  // whether another file than the tour's is open
  void set_theme(const Theme& theme, double font_scale);
  [[nodiscard]] QString text() const;

 Q_SIGNALS:
  void started();
  void skipped();
  void ended();
  void returned();  // the tour's scenario is to be opened again

 private:
  void show_page();
  void follow(const QUrl& link);
  [[nodiscard]] QString current() const;
  [[nodiscard]] QString tasks_before() const;

  const Tour& tour_;
  bool away_ = false;
  const Theme* theme_ = &theme(ThemeKind::dark);
  QTextBrowser* browser_;
};

}  // namespace kvscope::viz

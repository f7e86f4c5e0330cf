// A lab of the course: its goal and its handout, and the results of a check with the picture of each failing case.
#pragma once

#include <optional>

#include <QtWidgets/QWidget>

#include "viz/model/labs.h"
#include "viz/view/theme.h"

class QTextBrowser;
class QUrl;

namespace kvscope::viz {

class LabPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit LabPanel(QWidget* parent = nullptr);
  void show_lab(const LabEntry& lab);
  void show_result(const LabResult& result);
  void clear();
  void set_theme(const Theme& theme, double font_scale);
  [[nodiscard]] QString text() const;

 Q_SIGNALS:
  void followed(const kvscope::NotePart& place, const QString& scenario);

 protected:
  void resizeEvent(QResizeEvent* event) override;  // pictures are as wide as the panel

 private:
  void show_page();
  void follow(const QUrl& link);
  [[nodiscard]] QString head() const;
  [[nodiscard]] QString test(std::size_t index);

  const Theme* theme_ = &theme(ThemeKind::dark);
  QTextBrowser* browser_;
  std::optional<LabEntry> lab_;
  std::optional<LabResult> result_;
};

}  // namespace kvscope::viz

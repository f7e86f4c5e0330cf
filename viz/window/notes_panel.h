// The scenario's name, description and sizes. A step number in the description is a link to that step.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"
#include "viz/view/theme.h"

class QTextBrowser;

namespace kvscope::viz {

// Adds <a href="step:3"> around each number after the word "step" or "steps", as in "Step 3: ..., steps 0 and 1", and
// escapes everything else for HTML. Only English words are recognized, because scenarios are written in English.
[[nodiscard]] QString with_step_links(const QString& text);

class NotesPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit NotesPanel(QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_theme(const Theme& theme, double font_scale);
  [[nodiscard]] QString text() const;

 private:
  void show_notes();
  [[nodiscard]] QString sizes(const Facts& facts) const;

  QPointer<Document> document_;
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;
  QTextBrowser* browser_;
};

}  // namespace kvscope::viz

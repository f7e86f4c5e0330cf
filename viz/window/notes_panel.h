// What a scenario says about itself: its name, its paragraph of what to look at, its sizes. A step that the paragraph
// names is a link to it.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"
#include "viz/view/theme.h"

class QTextBrowser;

namespace kvscope::viz {

// "Step 3: ..., steps 0 and 1" with <a href="step:3"> around each number that follows such a word; everything else
// escaped for HTML. English words: that is what scenarios are written in.
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

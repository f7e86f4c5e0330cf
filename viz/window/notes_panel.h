// The scenario's name, description and sizes. The description's links (core/scenario/notes.h) set what the window
// shows; a step number in the rest of the text is a link to that step.
#pragma once

#include <vector>

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "core/scenario/notes.h"
#include "viz/model/document.h"
#include "viz/view/theme.h"

class QTextBrowser;
class QUrl;

namespace kvscope::viz {

// Adds <a href="step:3"> around each number after the word "step" or "steps", as in "Step 3: ..., steps 0 and 1", and
// escapes everything else for HTML. Only English words are recognized, because scenarios are written in English.
[[nodiscard]] QString with_step_links(const QString& text);

// The whole description: <a href="note:2"> around the words of its part 2 if that is a link, step links in the others.
[[nodiscard]] QString notes_html(const std::vector<NotePart>& parts);

class NotesPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit NotesPanel(QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_theme(const Theme& theme, double font_scale);
  [[nodiscard]] QString text() const;

 Q_SIGNALS:
  void followed(const kvscope::NotePart& link);

 private:
  void show_notes();
  void follow(const QUrl& link);
  [[nodiscard]] QString sizes(const Facts& facts) const;

  QPointer<Document> document_;
  const Theme* theme_ = &theme(ThemeKind::dark);
  QTextBrowser* browser_;
  std::vector<NotePart> parts_;  // of the description that is shown
};

}  // namespace kvscope::viz

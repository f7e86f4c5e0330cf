// The find field. It parses the text with find.h, moves to the result, and shows the result or the fault below it.
#pragma once

#include <memory>

#include <QtCore/QPointer>
#include <QtWidgets/QFrame>

#include "viz/model/document.h"
#include "viz/view/theme.h"
#include "viz/window/asker.h"

class QLabel;
class QLineEdit;
class QToolButton;

namespace kvscope::viz {

class FindBar final : public QFrame {
  Q_OBJECT
 public:
  explicit FindBar(Asker& asker, QWidget* parent = nullptr);
  void set_document(Document* document, std::shared_ptr<const Facts> facts);
  void set_theme(const Theme& theme, double font_scale);
  void open();  // shows the bar and sets the focus to the field
  [[nodiscard]] QString fault() const;

 Q_SIGNALS:
  void closed();
  // The element of a byte was found; the why panel explains it.
  void located(const kvscope::trace::Question& place);

 private:
  void go();
  void say(const QStringList& lines, bool fault);
  void locate(qint64 offset);

  Asker& asker_;
  QPointer<Document> document_;
  std::shared_ptr<const Facts> facts_;
  QLineEdit* field_;
  QLabel* words_;
  QToolButton* close_;
};

}  // namespace kvscope::viz

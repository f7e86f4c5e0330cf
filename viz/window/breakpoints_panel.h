// Breakpoints: written as text or taken from a few ready ones, switched on and off, edited in place, removed. A text
// that is none is said so under the field, in the parser's words.
#pragma once

#include <QtCore/QString>
#include <QtWidgets/QWidget>

#include "viz/model/breakpoint_model.h"
#include "viz/view/theme.h"

class QLabel;
class QLineEdit;
class QListView;
class QToolButton;

namespace kvscope::viz {

class BreakpointsPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit BreakpointsPanel(QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_theme(const Theme& theme, double font_scale);
  void write();  // the focus goes to the field

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;  // Delete on the list

 private:
  void build();
  void add(const QString& text);
  void remove();
  void say(const QStringList& faults);  // none: quiet
  void update_buttons();

  BreakpointModel model_;
  QLineEdit* field_ = nullptr;
  QToolButton *add_ = nullptr, *ready_ = nullptr, *remove_ = nullptr;
  QLabel *fault_ = nullptr, *hint_ = nullptr;
  QListView* list_ = nullptr;
};

}  // namespace kvscope::viz

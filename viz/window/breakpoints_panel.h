// Breakpoints: typed as text or chosen from examples, enabled and disabled, edited in place, removed. For an invalid
// text the parser's message is shown under the field.
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
  void write();  // sets the focus to the field

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;  // Delete on the list

 private:
  void build();
  void add(const QString& text);
  void remove();
  void say(const QStringList& faults);  // an empty list hides the label
  void update_buttons();

  BreakpointModel model_;
  QLineEdit* field_ = nullptr;
  QToolButton *add_ = nullptr, *ready_ = nullptr, *remove_ = nullptr;
  QLabel *fault_ = nullptr, *hint_ = nullptr;
  QListView* list_ = nullptr;
};

}  // namespace kvscope::viz

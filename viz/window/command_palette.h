// All actions by name: type a part of a name, choose with the arrow keys, Enter carries it out. Each line has the
// action's name, its menu, its keys, and its effect.
//
//   +--------------------------------------------+
//   | step ba|                                   |
//   +--------------------------------------------+
//   | Step back            Run     ,  Ctrl+Left  |
//   | A part of a step back  Run          Alt+,  |
//   +--------------------------------------------+
#pragma once

#include <vector>

#include <QtCore/QString>
#include <QtWidgets/QDialog>

#include "viz/window/actions.h"

class QLineEdit;
class QTreeWidget;

namespace kvscope::viz {

// The actions that the text means, the best first: each of its words begins a word of the name, or is a part of the
// name, the menu or the description. No text: all, in the order of the table.
// Example: "st ba": Step back, Run back to breakpoint, ...
[[nodiscard]] std::vector<Do> actions_meant(const QString& text);

class CommandPalette final : public QDialog {
  Q_OBJECT
 public:
  // Shows the actions that are enabled now. It deletes itself when it is closed.
  CommandPalette(const Actions& actions, QWidget* parent);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void choose();

  const Actions& actions_;
  QLineEdit* field_;
  QTreeWidget* list_;
};

}  // namespace kvscope::viz

// The movements of the kernel window: id, text, keys, tip, icon; and the dialog that lists them.
#pragma once

#include <span>

#include <QtWidgets/QDialog>

#include "viz/playback/kernel_run.h"
#include "viz/window/icons.h"

namespace kvscope::viz {

struct KernelMoveEntry {
  KernelMove move;
  const char* text;  // of the menu, with its mnemonic; to be translated
  const char* keys;  // portable text, several separated by blanks
  const char* tip;   // a sentence; to be translated
  Icon icon = Icon::none;
};
[[nodiscard]] std::span<const KernelMoveEntry> kernel_moves();

// Not modal: the keys of every action of the window that it belongs to.
class KernelHelp final : public QDialog {
  Q_OBJECT
 public:
  explicit KernelHelp(QWidget* window);
};

}  // namespace kvscope::viz

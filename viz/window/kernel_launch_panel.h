// The launch of a kernel as a form: which kernel, its extents, a field for each parameter, further options; below them
// the command that debugs the same launch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <QtCore/QString>
#include <QtWidgets/QWidget>

#include "viz/playback/kernel_run.h"
#include "viz/view/theme.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;

namespace kvscope::viz {

class KernelLaunchPanel final : public QWidget {
  Q_OBJECT
 public:
  // The command of a launch; an exception is shown in its place.
  using Command = std::function<std::string(const KernelLaunch&)>;
  explicit KernelLaunchPanel(Command command, QWidget* parent = nullptr);

  // Empty fields of `launch` get what the kernel requires. A kernel that the file does not have stays in launch(), as a
  // fault, until another is chosen.
  void set_file(const KernelFile& file, const KernelLaunch& launch);
  // What the fields say. InputError: a quote of the last field that does not end.
  [[nodiscard]] KernelLaunch launch() const;
  void set_theme(const Theme& theme, double font_scale);

 Q_SIGNALS:
  void start_wanted();

 private:
  void show_parameters(const std::vector<std::string>& values);
  void show_command();
  [[nodiscard]] const KernelEntry* entry() const;

  Command command_;
  KernelFile file_;
  std::string unknown_;  // the kernel that was asked for, if the file does not have it
  QComboBox* kernel_;
  QLineEdit *grid_, *block_, *cluster_, *shared_, *others_;
  QWidget* parameters_;
  QFormLayout* rows_;
  std::vector<QLineEdit*> values_;
  QPushButton *start_, *copy_;
  QPlainTextEdit* shown_command_;
};

}  // namespace kvscope::viz

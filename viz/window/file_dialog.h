// What every file dialog of the window has in common.
#pragma once

#include <QtCore/QString>
#include <QtWidgets/QFileDialog>

namespace kvscope::viz {

[[nodiscard]] QString file_name(const QString& path);      // without its folder
[[nodiscard]] QString absolute_path(const QString& path);  // without "." and "..": equal for equal files

// A dialog that is not modal and deletes itself: the chosen file is reported by a signal. It opens in the folder of
// `beside`.
[[nodiscard]] QFileDialog* make_file_dialog(QWidget* parent, const QString& title, const QString& beside);

}  // namespace kvscope::viz

#include "viz/window/file_dialog.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>

namespace kvscope::viz {

QString file_name(const QString& path) {
  return QFileInfo(path).fileName();
}

QString absolute_path(const QString& path) {
  return QDir::cleanPath(QFileInfo(path).absoluteFilePath());
}

QFileDialog* make_file_dialog(QWidget* parent, const QString& title, const QString& beside) {
  auto* dialog = new QFileDialog(parent, title, QFileInfo(beside).path());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAccessibleName(title);
  return dialog;
}

}  // namespace kvscope::viz

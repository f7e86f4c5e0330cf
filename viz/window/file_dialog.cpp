#include "viz/window/file_dialog.h"

#include <QtCore/QFileInfo>

namespace kvscope::viz {

QString file_name(const QString& path) {
  return QFileInfo(path).fileName();
}

QFileDialog* make_file_dialog(QWidget* parent, const QString& title, const QString& beside) {
  auto* dialog = new QFileDialog(parent, title, QFileInfo(beside).path());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAccessibleName(title);
  return dialog;
}

}  // namespace kvscope::viz

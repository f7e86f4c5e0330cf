#include "viz/window/recent_files.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtCore/QSettings>
#include <QtWidgets/QMenu>

#include "viz/window/file_dialog.h"

namespace kvscope::viz {
namespace {

const QString kKey = QStringLiteral("recent/files");

}  // namespace

RecentFiles::RecentFiles(const QString& settings_file, QObject* parent)
    : QObject(parent), settings_file_(settings_file) {
  const QSettings settings(settings_file_, QSettings::IniFormat);
  paths_ = settings.value(kKey).toStringList().mid(0, kMost);
}

void RecentFiles::add(const QString& path) {
  const QString absolute = absolute_path(path);
  paths_.removeAll(absolute);
  paths_.prepend(absolute);
  while (paths_.size() > kMost) paths_.removeLast();
  keep();
}

void RecentFiles::clear() {
  paths_.clear();
  keep();
}

void RecentFiles::keep() {
  QSettings settings(settings_file_, QSettings::IniFormat);
  settings.setValue(kKey, paths_);
  settings.sync();
  Q_EMIT changed();
}

void RecentFiles::fill(QMenu& menu) {
  menu.clear();
  menu.setToolTipsVisible(true);
  int number = 0;
  for (const QString& path : paths_) {
    const QFileInfo file(path);
    // "&1 name": the digit is the mnemonic; an ampersand in a name is escaped.
    ++number;
    QString name = file.fileName();
    name.replace(QLatin1Char('&'), QStringLiteral("&&"));
    const QString digit = number < 10 ? QStringLiteral("&%1").arg(number) : QStringLiteral("1&0");
    QAction* action = menu.addAction(QStringLiteral("%1  %2").arg(digit, name));
    action->setToolTip(file.exists() ? QDir::toNativeSeparators(path)
                                     : tr("%1 does not exist").arg(QDir::toNativeSeparators(path)));
    action->setEnabled(file.exists());
    connect(action, &QAction::triggered, this, [this, path] { Q_EMIT chosen(path); });
  }
  menu.addSeparator();
  QAction* all = menu.addAction(tr("&Clear the list"));
  all->setEnabled(!paths_.isEmpty());
  connect(all, &QAction::triggered, this, &RecentFiles::clear);
}

}  // namespace kvscope::viz

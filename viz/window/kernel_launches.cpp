#include "viz/window/kernel_launches.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtCore/QSettings>
#include <QtCore/QStringList>

#include "viz/window/file_dialog.h"

namespace kvscope::viz {
namespace {

QStringList words(const std::vector<std::string>& texts) {
  QStringList out;
  for (const std::string& text : texts) out.push_back(QString::fromStdString(text));
  return out;
}

std::vector<std::string> texts(const QStringList& words) {
  std::vector<std::string> out;
  for (const QString& word : words) out.push_back(word.toStdString());
  return out;
}

std::vector<KernelLaunch> read(const QString& file) {
  std::vector<KernelLaunch> out;
  if (file.isEmpty()) return out;
  QSettings settings(file, QSettings::IniFormat);
  const int count = settings.beginReadArray(QStringLiteral("launch"));
  for (int i = 0; i < std::min(count, KernelLaunches::kMost); ++i) {
    settings.setArrayIndex(i);
    const auto text = [&](const char* key) {
      return settings.value(QString::fromLatin1(key)).toString().toStdString();
    };
    out.push_back({.path = text("path"),
                   .entry = text("entry"),
                   .grid = text("grid"),
                   .block = text("block"),
                   .cluster = text("cluster"),
                   .shared = text("shared"),
                   .arguments = texts(settings.value(QStringLiteral("arguments")).toStringList()),
                   .others = texts(settings.value(QStringLiteral("others")).toStringList())});
  }
  return out;
}

}  // namespace

KernelLaunches::KernelLaunches(const QString& folder)
    : file_(folder.isEmpty() ? QString() : QDir(folder).filePath(QStringLiteral("kernels.ini"))) {}

std::optional<KernelLaunch> KernelLaunches::find(const QString& path) const {
  for (KernelLaunch& launch : read(file_)) {
    if (launch.path != absolute_path(path).toStdString()) continue;
    launch.path = path.toStdString();
    return std::move(launch);
  }
  return std::nullopt;
}

void KernelLaunches::keep(const KernelLaunch& launch) {
  if (file_.isEmpty()) return;
  std::vector<KernelLaunch> all = read(file_);
  KernelLaunch newest = launch;
  newest.path = absolute_path(QString::fromStdString(launch.path)).toStdString();
  std::erase_if(all, [&](const KernelLaunch& other) { return other.path == newest.path; });
  all.insert(all.begin(), newest);
  if (std::ssize(all) > kMost) all.resize(kMost);
  QDir().mkpath(QFileInfo(file_).absolutePath());
  QSettings settings(file_, QSettings::IniFormat);
  settings.clear();
  settings.beginWriteArray(QStringLiteral("launch"), static_cast<int>(all.size()));
  for (int i = 0; i < std::ssize(all); ++i) {
    settings.setArrayIndex(i);
    const KernelLaunch& kept = all[static_cast<std::size_t>(i)];
    const auto set = [&](const char* key, const std::string& text) {
      settings.setValue(QString::fromLatin1(key), QString::fromStdString(text));
    };
    set("path", kept.path);
    set("entry", kept.entry);
    set("grid", kept.grid);
    set("block", kept.block);
    set("cluster", kept.cluster);
    set("shared", kept.shared);
    settings.setValue(QStringLiteral("arguments"), words(kept.arguments));
    settings.setValue(QStringLiteral("others"), words(kept.others));
  }
  settings.endArray();
}

}  // namespace kvscope::viz

#include "apps/kvscope-viewer/gallery_picture.h"

#include <exception>

#include <QtCore/QCryptographicHash>
#include <QtCore/QDateTime>
#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QProcess>

#include "core/base/errors.h"
#include "core/base/pending_folder.h"
#include "core/scenario/notes.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "viz/window/export.h"

namespace kvscope::apps {
namespace {

constexpr int kPictureAskEvery = 50;          // [ms] between two calls of keep_going
constexpr qsizetype kMostPicturesKept = 256;  // files of the cache; beyond that, it is emptied
const QSize kPainted = kGalleryPicture * 3;   // [px] scaled down, so that lines and text become thin

std::int64_t tokens_of(const Scenario& scenario, const std::filesystem::path& folder) {
  std::int64_t tokens = 0;
  for (const Request& request : make_requests(scenario, folder)) {
    tokens += request.prompt_tokens + request.generate_tokens * request.samples;
  }
  return tokens;
}

QString theme_option(viz::ThemeKind theme) {
  return theme == viz::ThemeKind::light ? QStringLiteral("light") : QStringLiteral("dark");
}

// The file's name in the cache. Another build of the program may paint another picture.
QString cached_name(const QFileInfo& program, const QString& scenario, viz::ThemeKind theme) {
  QCryptographicHash hash(QCryptographicHash::Sha256);
  QFile file(scenario);
  if (file.open(QIODevice::ReadOnly)) hash.addData(&file);
  hash.addData(QStringLiteral("|%1|%2|%3")
                   .arg(program.size())
                   .arg(program.lastModified().toMSecsSinceEpoch())
                   .arg(theme_option(theme))
                   .toUtf8());
  return QString::fromLatin1(hash.result().toHex()) + QStringLiteral(".png");
}

// False if the child failed or was stopped.
bool run_painter(const QString& program, const QStringList& options, const std::function<bool()>& keep_going) {
  QProcess child;
  child.setStandardOutputFile(QProcess::nullDevice());
  child.setStandardErrorFile(QProcess::nullDevice());
  child.start(program, options);
  if (!child.waitForStarted()) return false;
  while (!child.waitForFinished(kPictureAskEvery)) {
    if (child.state() == QProcess::NotRunning) break;
    if (keep_going && !keep_going()) {
      child.kill();
      child.waitForFinished(-1);
      return false;
    }
  }
  return child.exitStatus() == QProcess::NormalExit && child.exitCode() == 0;
}

// A picture that cannot be kept is painted again the next time.
void keep_picture(const QImage& picture, const QDir& cache, const QString& name) {
  if (cache.entryList(QDir::Files).size() >= kMostPicturesKept) {
    for (const QString& old : cache.entryList(QDir::Files)) QFile::remove(cache.filePath(old));
  }
  try {
    viz::write_png(cache.filePath(name), picture, 1);
  } catch (const InputError&) {
  }
}

}  // namespace

QStringList gallery_picture_options(const std::string& scenario) {
  for (const NotePart& part : parse_notes(load_scenario(scenario).description)) {
    if (!part.link) continue;
    QStringList options;
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) options << QString::fromLatin1(option) << QString::fromStdString(value);
    };
    add("--step", part.link->step ? std::to_string(*part.link->step) : std::string());
    add("--view", part.link->view);
    add("--select", part.link->select);
    add("--tile", part.link->tile);
    add("--tile-event", part.link->event ? std::to_string(*part.link->event) : std::string());
    return options;
  }
  return {};
}

QImage gallery_picture(const std::filesystem::path& program, const std::filesystem::path& cache,
                       const std::string& scenario, viz::ThemeKind theme, const std::function<bool()>& keep_going) {
  const QString program_file = QString::fromStdString(program.string());
  const QDir folder(QString::fromStdString(cache.string()));
  const QString name = cached_name(QFileInfo(program_file), QString::fromStdString(scenario), theme);
  QImage picture(folder.filePath(name));
  if (!picture.isNull()) return picture;
  QStringList options;
  try {
    const std::filesystem::path path(scenario);
    if (tokens_of(load_scenario(path), path.parent_path()) > kMostPictureTokens) return {};
    options = gallery_picture_options(scenario);
  } catch (const std::exception&) {
    return {};  // the card has the fault as its text
  }
  const TemporaryFolder work;
  const QString out = QString::fromStdString((work / "picture.png").string());
  const QStringList painted{
      QStringLiteral("--render"),   out,
      QStringLiteral("--scenario"), QString::fromStdString(scenario),
      QStringLiteral("--size"),     QStringLiteral("%1x%2").arg(kPainted.width()).arg(kPainted.height()),
      QStringLiteral("--theme"),    theme_option(theme)};
  if (!run_painter(program_file, painted + options, keep_going)) return {};
  picture = QImage(out).scaled(kGalleryPicture, Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
  if (!picture.isNull() && folder.mkpath(QStringLiteral("."))) keep_picture(picture, folder, name);
  return picture;
}

}  // namespace kvscope::apps

#include "apps/kvscope-viewer/child_simulation.h"

#include <fmt/format.h>

#include <cctype>
#include <csignal>
#include <cstring>
#include <vector>

#include <QtCore/QByteArray>
#include <QtCore/QCoreApplication>
#include <QtCore/QProcess>
#include <QtCore/QString>

#include "core/base/errors.h"
#include "core/base/pending_folder.h"

namespace kvscope::apps {
namespace {

constexpr int kAskEvery = 50;  // [ms] between two calls of `progress`

struct ChildWords {
  Q_DECLARE_TR_FUNCTIONS(Simulation)
};

[[noreturn]] void fail(const std::string& scenario, const QString& message) {
  throw InputError(scenario, "", message.toStdString());
}

// The child's progress: its last complete line "progress <done> <all>".
class ProgressLines {
 public:
  void add(const QByteArray& bytes) {
    rest_ += bytes;
    const qsizetype end = rest_.lastIndexOf('\n');
    if (end < 0) return;
    const QList<QByteArray> words = rest_.left(end).split('\n').back().split(' ');
    rest_.remove(0, end + 1);
    if (words.size() != 3 || words[0] != "progress") return;
    done = words[1].toLongLong();
    all = words[2].toLongLong();
  }
  std::int64_t done = 0, all = 0;

 private:
  QByteArray rest_;
};

std::vector<std::string> lines_of(const QByteArray& text) {
  std::vector<std::string> lines;
  for (const QByteArray& line : text.split('\n')) {
    if (!line.trimmed().isEmpty()) lines.push_back(line.trimmed().toStdString());
  }
  return lines;
}

// "signal 11 (segmentation fault)"
QString signal_text(int signal) {
  QString words = QString::fromLocal8Bit(::strsignal(signal));
  if (!words.isEmpty()) words[0] = words[0].toLower();
  return ChildWords::tr("signal %1 (%2)").arg(signal).arg(words);
}

// The child's last lines, if any, then how it ended.
[[noreturn]] void fail_crashed(const std::string& scenario, int signal, const std::vector<std::string>& said) {
  const QString how = said.empty()
                          ? signal_text(signal)
                          : QStringLiteral("%1, %2").arg(signal_text(signal), QString::fromStdString(said.back()));
  fail(scenario,
       signal == SIGKILL
           ? ChildWords::tr(
                 "the simulation ended with %1: nothing that was open is lost; if memory ran out, ask for fewer "
                 "requests or blocks")
                 .arg(how)
           : ChildWords::tr("the simulation ended with %1: nothing that was open is lost; this is a fault of kvscope, "
                            "please report it with the scenario")
                 .arg(how));
}

// The child's lines are complete faults already: "kvscope-viewer: file: where: what".
[[noreturn]] void fail_with_words(const std::string& scenario, int code, const std::vector<std::string>& said) {
  constexpr std::string_view kPrefix = "kvscope-viewer: ";
  if (said.empty()) fail(scenario, ChildWords::tr("the simulation ended without a word, exit code %1").arg(code));
  std::vector<Fault> faults;
  for (const std::string& line : said) {
    faults.push_back({"", line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line});
  }
  throw InputError("", std::move(faults));
}

// Waits until the child has ended. Throws Cancelled if `progress` ended it.
void wait_for(QProcess& child, const viz::OpenProgress& progress) {
  ProgressLines told;
  while (child.state() != QProcess::NotRunning) {
    child.waitForReadyRead(kAskEvery);
    told.add(child.readAllStandardOutput());
    if (progress && !progress(told.done, told.all)) {
      child.kill();
      child.waitForFinished(-1);
      throw viz::Cancelled();
    }
  }
}

}  // namespace

std::unique_ptr<viz::EventSource> simulate_in_child(const std::string& program, const std::string& scenario,
                                                    const viz::OpenProgress& progress,
                                                    const std::optional<std::string>& text) {
  const TemporaryFolder folder;
  const QString trace = QString::fromStdString((folder / "run.kvt").string());
  QProcess child;
  QStringList words{QStringLiteral("--simulate"), QString::fromStdString(scenario), QStringLiteral("--trace"), trace};
  if (text) words.push_back(QStringLiteral("--changed"));
  child.start(QString::fromStdString(program), words);
  if (!child.waitForStarted())
    fail(scenario, ChildWords::tr("the simulation does not start: %1").arg(child.errorString()));
  if (text) child.write(QByteArray::fromStdString(*text));
  child.closeWriteChannel();
  wait_for(child, progress);
  const std::vector<std::string> said = lines_of(child.readAllStandardError());
  if (child.exitStatus() == QProcess::CrashExit) fail_crashed(scenario, child.exitCode(), said);
  if (child.exitCode() != 0) fail_with_words(scenario, child.exitCode(), said);
  // Open the file, then unlink it with its folder: its disk space is freed when the reader closes it, however this
  // program ends.
  return viz::open_trace(trace.toStdString());
}

}  // namespace kvscope::apps

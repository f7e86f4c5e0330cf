#include "apps/kvscope-viewer/child_simulation.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <vector>

#include <QtCore/QByteArray>
#include <QtCore/QCoreApplication>
#include <QtCore/QProcess>
#include <QtCore/QStringList>
#include <QtCore/QTemporaryDir>

#include "core/base/errors.h"

namespace kvscope::apps {
namespace {

constexpr int kAskEvery = 50;  // [ms] whether to go on

std::string translated(const char* text) {
  return QCoreApplication::translate("Simulation", text).toStdString();
}

// A trace whose folder goes with it.
class TemporaryTrace final : public viz::EventSource {
 public:
  TemporaryTrace(std::unique_ptr<QTemporaryDir> folder, std::unique_ptr<viz::EventSource> trace)
      : folder_(std::move(folder)), trace_(std::move(trace)) {}
  [[nodiscard]] const trace::Meta& meta() const override { return trace_->meta(); }
  [[nodiscard]] trace::Detail detail() const override { return trace_->detail(); }
  [[nodiscard]] std::int64_t events() const override { return trace_->events(); }
  [[nodiscard]] std::int64_t rows() const override { return trace_->rows(); }
  [[nodiscard]] trace::StepSpan span(std::int64_t row) const override { return trace_->span(row); }
  [[nodiscard]] std::vector<trace::Event> events_of_row(std::int64_t row) override {
    return trace_->events_of_row(row);
  }
  [[nodiscard]] std::shared_ptr<const viz::EventTape> tape() const override { return trace_->tape(); }

 private:
  std::unique_ptr<QTemporaryDir> folder_;
  std::unique_ptr<viz::EventSource> trace_;  // closed before its folder is removed
};

// What the child has said of how far it is: the last of its whole lines "progress <done> <all>".
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
std::string signal_text(int signal) {
  std::string words = ::strsignal(signal);
  if (!words.empty()) words[0] = static_cast<char>(std::tolower(words[0]));
  return fmt::format("signal {} ({})", signal, words);
}

// What it said last, if anything, then what this means for whoever waits.
[[noreturn]] void fail_crashed(const std::string& scenario, int signal, const std::vector<std::string>& said) {
  const bool killed = signal == SIGKILL;
  throw InputError(scenario, "",
                   fmt::format("{} {}{}: {} {}", translated("the simulation ended with"), signal_text(signal),
                               said.empty() ? "" : ", " + said.back(), translated("nothing that was open is lost;"),
                               killed ? translated("if memory ran out, ask for fewer requests or blocks")
                                      : translated("this is a fault of kvscope, please report it with the scenario")));
}

// The child's lines are whole faults already: "kvscope-viewer: file: where: what".
[[noreturn]] void fail_with_words(const std::string& scenario, int code, const std::vector<std::string>& said) {
  constexpr std::string_view kPrefix = "kvscope-viewer: ";
  std::vector<Fault> faults;
  for (const std::string& line : said)
    faults.push_back({"", line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line});
  if (!faults.empty()) throw InputError("", std::move(faults));
  throw InputError(scenario, "",
                   fmt::format("{} {}", translated("the simulation ended without a word, exit code"), code));
}

}  // namespace

std::unique_ptr<viz::EventSource> simulate_in_child(const std::string& program, const std::string& scenario,
                                                    const viz::OpenProgress& progress) {
  auto folder = std::make_unique<QTemporaryDir>();
  if (!folder->isValid()) {
    throw InputError(
        scenario, "",
        fmt::format("{}: {}", translated("no room for the run's trace"), folder->errorString().toStdString()));
  }
  const QString trace = folder->filePath(QStringLiteral("run.kvt"));
  QProcess child;
  child.start(QString::fromStdString(program),
              {QStringLiteral("--simulate"), QString::fromStdString(scenario), QStringLiteral("--trace"), trace});
  if (!child.waitForStarted()) {
    throw InputError(
        scenario, "",
        fmt::format("{}: {}", translated("the simulation does not start"), child.errorString().toStdString()));
  }
  child.closeWriteChannel();
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
  const std::vector<std::string> said = lines_of(child.readAllStandardError());
  if (child.exitStatus() == QProcess::CrashExit) fail_crashed(scenario, child.exitCode(), said);
  if (child.exitCode() != 0) fail_with_words(scenario, child.exitCode(), said);
  return std::make_unique<TemporaryTrace>(std::move(folder), viz::open_trace(trace.toStdString()));
}

}  // namespace kvscope::apps

#include "viz/window/video_writer.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <system_error>
#include <utility>

#include <QtCore/QStandardPaths>
#include <QtCore/QStringList>

#include "core/base/errors.h"
#include "viz/playback/run.h"

namespace kvscope::viz {
namespace {

constexpr int kAskEveryMs = 100;   // between two calls of keep_going
constexpr int kKilledMs = 10'000;  // until a program that was killed has ended

// Quality: crf is the encoder's own scale; at these values text of 11 px has no visible blocks around it.
QStringList codec_words(PictureFormat format) {
  if (format == PictureFormat::mp4) {
    return QStringLiteral("-c:v libx264 -preset medium -crf 18 -movflags +faststart -f mp4").split(QLatin1Char(' '));
  }
  return QStringLiteral("-c:v libvpx-vp9 -crf 24 -b:v 0 -deadline good -cpu-used 4 -row-mt 1 -f webm")
      .split(QLatin1Char(' '));
}

// Players need 4:2:0 and thus even sides: an odd side is one pixel larger, in black. Without the bitexact flags the
// file would contain the encoder's version.
QStringList words(PictureFormat format, const std::filesystem::path& file, QSize size, double rate) {
  QStringList all =
      QStringLiteral("-hide_banner -loglevel error -nostdin -y -f rawvideo -pixel_format rgb0").split(QLatin1Char(' '));
  all << QStringLiteral("-video_size") << QStringLiteral("%1x%2").arg(size.width()).arg(size.height());
  all << QStringLiteral("-framerate") << QString::number(rate, 'g', 12);
  all << QStringLiteral("-i") << QStringLiteral("pipe:0");
  all << QStringLiteral("-vf")
      << QStringLiteral("pad=ceil(iw/2)*2:ceil(ih/2)*2,scale=out_color_matrix=bt709:out_range=tv,format=yuv420p");
  all += QStringLiteral(
             "-colorspace bt709 -color_primaries bt709 -color_trc bt709 -color_range tv -fflags +bitexact "
             "-flags:v +bitexact")
             .split(QLatin1Char(' '));
  all += codec_words(format);
  all << QStringLiteral("file:") + QString::fromStdString(file.string());  // a name with a colon is no protocol
  return all;
}

}  // namespace

QString find_ffmpeg() {
  return QStandardPaths::findExecutable(QStringLiteral("ffmpeg"));
}

std::string missing_ffmpeg() {
  return "a video is written by the program 'ffmpeg', which is not in PATH: install it (Debian: apt-get install "
         "--no-install-recommends ffmpeg), or write a .gif";
}

VideoWriter::VideoWriter(PictureFormat format, const std::filesystem::path& file, std::string shown, QSize size,
                         double frames_per_second, double rate, std::function<bool()> keep_going,
                         const VideoPatience& patience)
    : file_(file),
      shown_(std::move(shown)),
      frames_per_second_(frames_per_second),
      rate_(rate),
      keep_going_(std::move(keep_going)),
      patience_(patience) {
  const QString program = find_ffmpeg();
  if (program.isEmpty()) throw InputError(shown_, "", missing_ffmpeg());
  process_.setStandardOutputFile(QProcess::nullDevice());
  // A separate process group, which is ended as a whole: `ffmpeg` may be a script that starts the encoder. The system
  // kills ffmpeg when this thread ends, which uses the writer until ffmpeg has ended.
  process_.setChildProcessModifier([parent = ::getpid()] {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the viewer ended before the death signal was set
  });
  process_.start(program, words(format, file, size, rate));
  if (!process_.waitForStarted(patience_.start)) {
    throw InputError(shown_, "",
                     fmt::format("{} does not start: {}", program.toStdString(), process_.errorString().toStdString()));
  }
  group_.emplace(static_cast<pid_t>(process_.processId()));
}

VideoWriter::~VideoWriter() {
  end();
}

void VideoWriter::end() {
  if (!group_) return;
  if (process_.state() != QProcess::NotRunning) {
    group_->signal(SIGTERM);
    process_.waitForFinished(patience_.terminate);
  }
  group_->signal(SIGKILL);  // also what it has left behind
  if (process_.state() != QProcess::NotRunning) process_.waitForFinished(kKilledMs);
  group_.reset();
}

// wait(ms) is one of QProcess's waitFor... functions. Returns its result; false also after `patience`, with the error
// QProcess::Timedout.
template <class Wait>
bool VideoWriter::wait(Wait&& wait, int patience) {
  for (int waited = 0; waited < patience; waited += kAskEveryMs) {
    if (wait(std::min(kAskEveryMs, patience - waited))) return true;
    if (process_.state() == QProcess::NotRunning || process_.error() != QProcess::Timedout) return false;
    if (keep_going_ && !keep_going_()) throw Cancelled();
  }
  return false;
}

// How ffmpeg has ended, if it has written no message.
std::string VideoWriter::ending() const {
  if (process_.exitStatus() != QProcess::NormalExit) return "a signal ended it";
  if (process_.exitCode() != 0) return fmt::format("it ended with exit code {}", process_.exitCode());
  return "it ended without an error, and the video is not complete";
}

// Ffmpeg has ended, or has closed its end of the pipe and is about to end.
void VideoWriter::fail() {
  if (process_.state() != QProcess::NotRunning &&
      !wait([&](int ms) { return process_.waitForFinished(ms); }, patience_.end) &&
      process_.state() != QProcess::NotRunning) {
    give_up("it closed its input and did not end", patience_.end);
  }
  const QString said = QString::fromLocal8Bit(process_.readAllStandardError()).trimmed();
  throw InputError(shown_, "",
                   fmt::format("ffmpeg could not write the video: {}", said.isEmpty() ? ending() : said.toStdString()));
}

void VideoWriter::give_up(const char* what, int ms) {
  end();
  const QString said = QString::fromLocal8Bit(process_.readAllStandardError()).trimmed();
  throw InputError(
      shown_, "",
      fmt::format("ffmpeg could not write the video: {} within {} s{}{}: write a shorter or smaller one, or "
                  "a .gif",
                  what, ms / 1000.0, said.isEmpty() ? "" : "; its last words: ", said.toStdString()));
}

// Returns when ffmpeg has taken the bytes, so that at most one frame waits in memory.
void VideoWriter::write(const QByteArray& bytes) {
  if (process_.write(bytes) != bytes.size()) fail();
  while (process_.bytesToWrite() > 0) {
    if (wait([&](int ms) { return process_.waitForBytesWritten(ms); }, patience_.write)) continue;
    if (process_.error() != QProcess::Timedout) fail();
    give_up("it took no more of a frame", patience_.write);
  }
}

void VideoWriter::add(const QImage& frame, std::optional<double> seconds) {
  until_ += seconds.value_or(1 / frames_per_second_);
  const QImage image = frame.convertToFormat(QImage::Format_RGBX8888);
  const auto line = static_cast<qsizetype>(image.width()) * 4;
  QByteArray bytes;
  bytes.reserve(line * image.height());
  for (int y = 0; y < image.height(); ++y) {
    bytes.append(reinterpret_cast<const char*>(image.constScanLine(y)), line);
  }
  const auto wanted = std::max(pictures_ + 1, static_cast<std::int64_t>(std::llround(until_ * rate_)));
  for (; pictures_ < wanted; ++pictures_) write(bytes);
}

void VideoWriter::finish() {
  process_.closeWriteChannel();
  if (process_.state() != QProcess::NotRunning &&
      !wait([&](int ms) { return process_.waitForFinished(ms); }, patience_.encode)) {
    give_up("it did not end after the last frame", patience_.encode);
  }
  if (process_.exitStatus() != QProcess::NormalExit || process_.exitCode() != 0) fail();
  std::error_code error;
  if (const auto bytes = std::filesystem::file_size(file_, error); error || bytes == 0) fail();
  group_.reset();
}

}  // namespace kvscope::viz

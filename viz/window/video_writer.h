// Writes a video, VP9 in WebM or H.264 in MP4, with the program `ffmpeg`, which gets the frames through a pipe.
//
//   QImage --RGBX--> | pipe | --> ffmpeg: BT.709 4:2:0, even width and height --> file
//
// A program instead of ffmpeg's libraries, for three reasons. The libraries' development packages are 70 packages more
// to install before a build, and the viewer would load 60 shared libraries at its start for a menu entry that few use.
// A program is found when the video is written, so that installing it needs no new build. And an encoder that crashes
// ends in a message, not in the end of the viewer. The pipe costs little: a frame of 1600x1000 is 6.4 MB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <QtCore/QProcess>
#include <QtCore/QSize>
#include <QtCore/QString>

#include "core/base/child_group.h"
#include "viz/window/film_writer.h"

namespace kvscope::viz {

// The path of the program; empty: there is none in PATH.
[[nodiscard]] QString find_ffmpeg();
// "no program 'ffmpeg' in PATH, ...: install ...": the next step included.
[[nodiscard]] std::string missing_ffmpeg();

// How long ffmpeg may take. After that, the video is given up. [ms]
struct VideoPatience {
  int start = 10'000;
  int write = 60'000;     // for more bytes of a frame
  int encode = 600'000;   // to end after the last frame
  int end = 10'000;       // to end after it closed its input
  int terminate = 2'000;  // to end after it was asked to; then it is killed
};

class VideoWriter final : public FilmWriter {
 public:
  // `rate`: of the video. [pictures/s] Precondition (caller): the format is a video's, and used by one thread.
  // `keep_going` is called while ffmpeg works; if it returns false, add() and finish() throw Cancelled. Throws
  // InputError: ffmpeg is missing or does not start.
  VideoWriter(PictureFormat format, const std::filesystem::path& file, std::string shown, QSize size,
              double frames_per_second, double rate, std::function<bool()> keep_going = {},
              const VideoPatience& patience = {});
  // Ends ffmpeg if it is still running, and the programs that it has started: within patience.terminate, then by force.
  ~VideoWriter() override;

  // A frame is repeated as long as it is shown, at least once.
  void add(const QImage& frame, std::optional<double> seconds) override;
  void finish() override;

 private:
  void write(const QByteArray& bytes);
  template <class Wait>
  [[nodiscard]] bool wait(Wait&& wait, int patience);
  [[nodiscard]] std::string ending() const;
  void end();
  [[noreturn]] void fail();
  [[noreturn]] void give_up(const char* what, int ms);

  std::filesystem::path file_;
  std::string shown_;
  QProcess process_;
  std::optional<ChildGroup> group_;  // of ffmpeg, until it has finished
  double frames_per_second_, rate_;
  std::function<bool()> keep_going_;
  VideoPatience patience_;
  double until_ = 0;           // [s] shown so far
  std::int64_t pictures_ = 0;  // written so far
};

}  // namespace kvscope::viz

// The file of an animation, written frame by frame: a GIF (gif_writer.h) or a video (video_writer.h). An animation
// shows stills, each for the same time; with motion, a part of that time shows what moves on the way to it.
//
//   still        still        still              4 stills a second: 0.25 s each
//   |-----------|-----------|-----------|
//   |-----------|.:.:.:|----|.:.:.:|----|        with motion: kMotionShare of it moves
//
// A GIF shows at most 50 pictures a second, and viewers slow down long before that: it has kGifMotion pictures a second
// while something moves. A video has one rate from the beginning to the end, a multiple of that of the stills.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <QtCore/QSize>
#include <QtGui/QImage>

#include "viz/window/export.h"

namespace kvscope::viz {

inline constexpr double kGifMotion = 50.0 / 3;  // [pictures/s]
inline constexpr double kVideoMotion = 30;      // [pictures/s] at least, while something moves
inline constexpr double kVideoStill = 10;       // [pictures/s] at least, of a video without motion

struct FilmTiming {
  double rate = 0;           // [pictures/s] of a video; a GIF has no rate
  std::int64_t between = 0;  // pictures between two stills
  double part = 0;           // [s] that each of them is shown
  double rest = 0;           // [s] that a still is shown after the motion that leads to it
};
// Example: a video with motion of 4 stills/s has 32 pictures/s, of which 8 belong to a still: 4 between and 4 of rest.
[[nodiscard]] FilmTiming film_timing(PictureFormat format, double frames_per_second, bool motion);

class FilmWriter {
 public:
  FilmWriter() = default;
  FilmWriter(const FilmWriter&) = delete;
  FilmWriter& operator=(const FilmWriter&) = delete;
  virtual ~FilmWriter() = default;  // the file is complete only after finish()

  // Precondition (caller): the frame has the writer's size; its alpha channel is ignored. Throws InputError: the file
  // cannot be written, for example because the disk is full. `seconds`: how long it is shown, instead of
  // 1 / frames_per_second; at least 1/50.
  virtual void add(const QImage& frame, std::optional<double> seconds) = 0;
  virtual void finish() = 0;  // call once
};

// Creates `file`, or overwrites it. Messages name `shown`. Throws InputError if it cannot be written. `keep_going`: of
// a video, as VideoWriter calls it.
[[nodiscard]] std::unique_ptr<FilmWriter> make_film_writer(PictureFormat format, const std::filesystem::path& file,
                                                           const std::string& shown, QSize size,
                                                           double frames_per_second, const FilmTiming& timing,
                                                           std::function<bool()> keep_going = {});

}  // namespace kvscope::viz

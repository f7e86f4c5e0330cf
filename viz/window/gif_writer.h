// Writes an animated GIF frame by frame (Qt reads GIF but does not write it). Only gif_writer.cpp includes giflib.
//
// A frame is written as the rectangle in which it differs from the previous one. In it, unchanged pixels are
// transparent, which compresses well, and the others have a separate palette (palette.h). So a frame whose changed
// pixels have at most 255 colors is exact, and exact pixels stay exact.
//
// Delays are whole hundredths of a second, as the format requires. They are distributed so that the animation has the
// requested speed on average: 30 frames per second give delays of 3, 4, 3, 3, 4, 3, ... hundredths. It loops forever.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <QtCore/QSize>
#include <QtGui/QImage>

#include "viz/window/film_writer.h"

namespace kvscope::viz {

// The delay of frame `n` at that speed. [1/100 s] Example: 30 frames/s: 3, 4, 3. Precondition: 0.1 <= fps <= 50.
[[nodiscard]] int frame_delay(std::int64_t n, double frames_per_second);

class GifWriter final : public FilmWriter {
 public:
  // Creates `file`, or overwrites it. Messages name `shown`. Throws InputError if it cannot be written.
  GifWriter(const std::filesystem::path& file, std::string shown, QSize size, double frames_per_second);
  GifWriter(const GifWriter&) = delete;
  GifWriter& operator=(const GifWriter&) = delete;
  ~GifWriter() override;

  void add(const QImage& frame, std::optional<double> seconds = std::nullopt) override;
  void finish() override;

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace kvscope::viz

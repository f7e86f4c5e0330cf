// An animated GIF, frame by frame: what Qt can read but not write. The only file that sees giflib.
//
// A frame is written as the rectangle in which it differs from the one before; in it, pixels that did not change are
// transparent, which compresses to almost nothing, and the rest has a palette of its own (palette.h). So a frame that
// changes no more than 255 colours is exact, and what was exact stays.
//
// Delays are whole hundredths of a second, as the format has them, spread so that the film as a whole has its speed:
// 30 frames a second are delays of 3, 4, 3, 3, 4, 3, ... hundredths. It loops for ever.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <QtCore/QSize>
#include <QtGui/QImage>

namespace kvscope::viz {

// The delay of frame `n` at that speed. [1/100 s] Example: 30 frames/s: 3, 4, 3. Precondition: 0.1 <= fps <= 50.
[[nodiscard]] int frame_delay(std::int64_t n, double frames_per_second);

class GifWriter {
 public:
  // Opens `file`, which is new. Messages name `shown`. Throws InputError when it cannot be written.
  GifWriter(const std::filesystem::path& file, std::string shown, QSize size, double frames_per_second);
  GifWriter(const GifWriter&) = delete;
  GifWriter& operator=(const GifWriter&) = delete;
  ~GifWriter();  // closes; the file is only whole after finish()

  // Every frame has the writer's size; transparency counts as none. Throws InputError: the disk is full.
  void add(const QImage& frame);
  void finish();  // call once

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace kvscope::viz

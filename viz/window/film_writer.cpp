#include "viz/window/film_writer.h"

#include <cmath>
#include <utility>

#include "viz/window/gif_writer.h"
#include "viz/window/video_writer.h"

namespace kvscope::viz {

FilmTiming film_timing(PictureFormat format, double frames_per_second, bool motion) {
  const double frame = 1 / frames_per_second, moving = kMotionShare * frame;
  FilmTiming timing;
  if (format == PictureFormat::gif) {
    timing.between = motion ? static_cast<std::int64_t>(std::floor(moving * kGifMotion)) : 0;
    timing.part = timing.between > 0 ? moving / static_cast<double>(timing.between) : 0;
    timing.rest = frame - moving;
    return timing;
  }
  // The small share below a whole number is an error of rounding: 30 / 0.1 is 300, not 301.
  const double of_still = std::max(1.0, std::ceil((motion ? kVideoMotion : kVideoStill) * frame - 1e-9));
  timing.rate = of_still * frames_per_second;
  timing.between = motion ? static_cast<std::int64_t>(std::floor(kMotionShare * of_still)) : 0;
  timing.part = 1 / timing.rate;
  timing.rest = frame - static_cast<double>(timing.between) * timing.part;
  return timing;
}

std::unique_ptr<FilmWriter> make_film_writer(PictureFormat format, const std::filesystem::path& file,
                                             const std::string& shown, QSize size, double frames_per_second,
                                             const FilmTiming& timing, std::function<bool()> keep_going) {
  if (format == PictureFormat::gif) return std::make_unique<GifWriter>(file, shown, size, frames_per_second);
  return std::make_unique<VideoWriter>(format, file, shown, size, frames_per_second, timing.rate,
                                       std::move(keep_going));
}

}  // namespace kvscope::viz

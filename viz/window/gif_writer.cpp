#include "viz/window/gif_writer.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

#include <QtCore/QRect>

#include "core/base/errors.h"
#include "viz/window/palette.h"

namespace kvscope::viz {
namespace {

constexpr std::size_t kMostColors = 256;

const QRgb* row_of(const QImage& image, int y) {
  return reinterpret_cast<const QRgb*>(image.constScanLine(y));
}

// The smallest rectangle that contains all differences. For equal pictures it is the pixel at (0, 0), because a frame
// must have at least one pixel.
QRect changed_rectangle(const QImage& before, const QImage& now) {
  const auto bytes = static_cast<std::size_t>(now.width()) * sizeof(QRgb);
  int left = now.width(), right = -1, top = now.height(), bottom = -1;
  for (int y = 0; y < now.height(); ++y) {
    const QRgb *a = row_of(before, y), *b = row_of(now, y);
    if (std::memcmp(a, b, bytes) == 0) continue;
    top = std::min(top, y);
    bottom = y;
    const int first = static_cast<int>(std::mismatch(a, a + now.width(), b).first - a);
    int last = now.width() - 1;
    while (a[last] == b[last]) --last;
    left = std::min(left, first);
    right = std::max(right, last);
  }
  return bottom < 0 ? QRect(0, 0, 1, 1) : QRect(QPoint(left, top), QPoint(right, bottom));
}

// Calls visit(x, y, color) for each pixel of `area` that changed; for all pixels if `before` is null.
template <class Visit>
void for_each_changed(const QImage& before, const QImage& now, const QRect& area, Visit&& visit) {
  for (int y = area.top(); y <= area.bottom(); ++y) {
    const QRgb* old_row = before.isNull() ? nullptr : row_of(before, y);
    const QRgb* row = row_of(now, y);
    for (int x = area.left(); x <= area.right(); ++x) {
      if (old_row == nullptr || old_row[x] != row[x]) visit(x, y, row[x]);
    }
  }
}

using Counts = std::unordered_map<QRgb, std::int64_t>;

Counts count_changed(const QImage& before, const QImage& now, const QRect& area) {
  Counts counts;
  QRgb run_color = 0;
  std::int64_t run = 0;
  for_each_changed(before, now, area, [&](int, int, QRgb color) {
    if (run > 0 && color != run_color) {
      counts[run_color] += run;
      run = 0;
    }
    run_color = color;
    ++run;
  });
  if (run > 0) counts[run_color] += run;
  return counts;
}

// What giflib makes; null: memory ran out.
auto* allocated(auto* made) {
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

}  // namespace

int frame_delay(std::int64_t n, double frames_per_second) {
  const auto ends = [&](std::int64_t frame) {
    return std::llround(static_cast<double>(frame) * 100 / frames_per_second);
  };
  return static_cast<int>(ends(n + 1) - ends(n));
}

class GifWriter::File {
 public:
  File(const std::filesystem::path& path, std::string shown, QSize size, double frames_per_second)
      : shown_(std::move(shown)), size_(size), frames_per_second_(frames_per_second) {
    file_.reset(std::fopen(path.c_str(), "wbe"));
    if (!file_) fail();
    int error = 0;
    gif_.reset(allocated(EGifOpen(file_.get(), write_bytes, &error)));
    EGifSetGifVersion(gif_.get(), true);
    check(EGifPutScreenDesc(gif_.get(), size.width(), size.height(), 8, 0, nullptr));
    loop_for_ever();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void add(const QImage& frame, std::optional<double> seconds) {
    const QImage now = frame.convertToFormat(QImage::Format_RGB32);
    KVSCOPE_ASSERT(now.size() == size_);
    const QRect area = before_.isNull() ? QRect(QPoint(0, 0), size_) : changed_rectangle(before_, now);
    const Counts counts = count_changed(before_, now, area);
    std::int64_t changed = 0;
    std::vector<ColorCount> colors;
    for (const auto& [color, pixels] : counts) {
      colors.push_back({color, pixels});
      changed += pixels;
    }
    const bool see_through = changed < std::int64_t{area.width()} * area.height();
    std::vector<QRgb> palette = palette_of(std::move(colors), kMostColors - (see_through ? 1 : 0));
    const std::optional<int> transparent = see_through ? std::optional(static_cast<int>(palette.size())) : std::nullopt;

    put_control(transparent,
                seconds ? static_cast<int>(std::lround(100 * *seconds)) : frame_delay(frames_, frames_per_second_));
    put_area(area, palette, palette.size() + (see_through ? 1 : 0));
    put_pixels(now, area, palette, counts, transparent.value_or(0));
    before_ = now;
    ++frames_;
  }

  void finish() {
    int error = 0;
    check(EGifCloseFile(gif_.release(), &error));
    if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) fail();
    if (std::fclose(file_.release()) != 0) fail();
  }

 private:
  static int write_bytes(GifFileType* gif, const GifByteType* bytes, int count) {
    return static_cast<int>(
        std::fwrite(bytes, 1, static_cast<std::size_t>(count), static_cast<std::FILE*>(gif->UserData)));
  }
  [[noreturn]] void fail() const { throw InputError(shown_, "", "cannot be written: " + system_message(errno)); }
  void check(int code) const {
    if (code != GIF_OK) fail();
  }

  // Netscape's application extension: id 1, 0 repetitions, which means an endless loop.
  void loop_for_ever() {
    const std::array<GifByteType, 3> rounds{1, 0, 0};
    check(EGifPutExtensionLeader(gif_.get(), APPLICATION_EXT_FUNC_CODE));
    check(EGifPutExtensionBlock(gif_.get(), 11, "NETSCAPE2.0"));
    check(EGifPutExtensionBlock(gif_.get(), static_cast<int>(rounds.size()), rounds.data()));
    check(EGifPutExtensionTrailer(gif_.get()));
  }

  void put_control(std::optional<int> transparent, int hundredths) {
    const GraphicsControlBlock control{DISPOSE_DO_NOT, false, hundredths, transparent.value_or(NO_TRANSPARENT_COLOR)};
    std::array<GifByteType, 4> bytes{};
    EGifGCBToExtension(&control, bytes.data());
    check(EGifPutExtension(gif_.get(), GRAPHICS_EXT_FUNC_CODE, static_cast<int>(bytes.size()), bytes.data()));
  }

  void put_area(const QRect& area, const std::vector<QRgb>& palette, std::size_t colors) {
    std::array<GifColorType, kMostColors> table{};
    std::ranges::transform(palette, table.begin(), [](QRgb c) {
      return GifColorType{static_cast<GifByteType>(qRed(c)), static_cast<GifByteType>(qGreen(c)),
                          static_cast<GifByteType>(qBlue(c))};
    });
    const auto size = static_cast<int>(std::bit_ceil(std::max<std::size_t>(colors, 2)));
    const std::unique_ptr<ColorMapObject, void (*)(ColorMapObject*)> map(
        allocated(GifMakeMapObject(size, table.data())), GifFreeMapObject);
    check(EGifPutImageDesc(gif_.get(), area.left(), area.top(), area.width(), area.height(), false, map.get()));
  }

  void put_pixels(const QImage& now, const QRect& area, const std::vector<QRgb>& palette, const Counts& counts,
                  int transparent) {
    std::unordered_map<QRgb, GifPixelType> index;
    index.reserve(counts.size());
    for (const auto& [color, pixels] : counts) {
      index.emplace(color, static_cast<GifPixelType>(nearest_color(palette, color)));
    }
    const auto width = static_cast<std::size_t>(area.width());
    std::vector<GifPixelType> pixels(width * static_cast<std::size_t>(area.height()),
                                     static_cast<GifPixelType>(transparent));
    QRgb last_color = 0;
    GifPixelType last_index = 0;  // adjacent pixels are often equal: one lookup per run
    for_each_changed(before_, now, area, [&](int x, int y, QRgb color) {
      if (color != last_color) {
        last_color = color;
        last_index = index.at(color);
      }
      pixels[static_cast<std::size_t>(y - area.top()) * width + static_cast<std::size_t>(x - area.left())] = last_index;
    });
    for (std::size_t first = 0; first < pixels.size(); first += width) {
      check(EGifPutLine(gif_.get(), pixels.data() + first, area.width()));
    }
  }

  std::string shown_;
  QSize size_;
  double frames_per_second_;
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
    void operator()(GifFileType* gif) const {
      int error = 0;
      EGifCloseFile(gif, &error);
    }
  };
  std::unique_ptr<std::FILE, Closer> file_;
  std::unique_ptr<GifFileType, Closer> gif_;  // writes into file_, so it must be closed first
  QImage before_;
  std::int64_t frames_ = 0;
};

GifWriter::GifWriter(const std::filesystem::path& file, std::string shown, QSize size, double frames_per_second)
    : file_(std::make_unique<File>(file, std::move(shown), size, frames_per_second)) {}
GifWriter::~GifWriter() = default;

void GifWriter::add(const QImage& frame, std::optional<double> seconds) {
  file_->add(frame, seconds);
}
void GifWriter::finish() {
  file_->finish();
}

}  // namespace kvscope::viz

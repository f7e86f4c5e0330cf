#include "viz/window/export.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include <QtCore/QBuffer>
#include <QtCore/QFileInfo>
#include <QtCore/QMarginsF>
#include <QtGui/QImageWriter>
#include <QtGui/QPageSize>
#include <QtGui/QPainter>
#include <QtGui/QPdfWriter>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "viz/playback/cursor.h"
#include "viz/playback/tile_selection.h"
#include "viz/view/motion.h"
#include "viz/view/paint_board.h"
#include "viz/window/gif_writer.h"
#include "viz/window/svg_device.h"

namespace kvscope::viz {
namespace {

constexpr std::array<const char*, 4> kEndings{"png", "svg", "pdf", "gif"};

// --- checks ---

QSizeF scaled(const Picture& picture) {
  return QSizeF(size_of(picture)) * picture.scale;
}

void check_size(const Picture& picture, std::vector<Fault>& faults) {
  const QSizeF size = scaled(picture);
  for (const auto& [what, pixels] : {std::pair{"width", size.width()}, std::pair{"height", size.height()}}) {
    if (pixels >= kSmallestPicture && pixels <= kLargestPicture) continue;
    faults.push_back({"", fmt::format("a {} of {} px is outside [{}, {}]: choose another size or scale", what,
                                      std::llround(pixels), kSmallestPicture, kLargestPicture)});
  }
}

// What an animation shows, one still picture after the other: rows of the run, or events of the tile.
std::vector<std::int64_t> stills_of(const Run& run, const Picture& picture) {
  std::vector<std::int64_t> stills;
  if (picture.last_tile_event) {
    stills.push_back(picture.tile_event.value_or(0));
    for (const TileAction& action : picture.tile->actions) {
      if (action.end > stills.back() && action.end <= *picture.last_tile_event) stills.push_back(action.end);
    }
    if (stills.back() < *picture.last_tile_event) stills.push_back(*picture.last_tile_event);
    return stills;
  }
  const std::int64_t first = run.row_at(picture.position);
  for (std::int64_t row = first; row <= picture.last_row.value_or(first); ++row) stills.push_back(row);
  return stills;
}

// Pictures of the way between two stills.
std::int64_t between_frames(const Picture& picture) {
  if (!picture.motion) return 0;
  const double seconds = kMotionShare / picture.frames_per_second;
  return static_cast<std::int64_t>(std::floor(seconds * kMotionFrames));
}

void check_rows(const Run& run, const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  if (!picture.last_row) return;
  const std::int64_t first = run.row_at(picture.position), last = *picture.last_row;
  check_index("row", last, run.facts().rows);
  if (last < first) {
    faults.push_back({"", fmt::format("the last step, {}, comes before the first, {}: give the first one first",
                                      run.span(last).step.value, run.span(first).step.value)});
  } else if (format != PictureFormat::gif) {
    faults.push_back({"", fmt::format("steps {} to {} are {} pictures, and a .{} file holds one: write a .gif",
                                      run.span(first).step.value, run.span(last).step.value, last - first + 1,
                                      kEndings[static_cast<std::size_t>(format)])});
  }
}

void check_tile_events(const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  if (!picture.last_tile_event) return;
  const std::int64_t first = picture.tile_event.value_or(0), last = *picture.last_tile_event;
  if (!picture.tile) {
    faults.push_back({"", "there is no tile whose events could be animated: name one"});
  } else if (last < first || last > picture.tile->events) {
    faults.push_back(
        {"", fmt::format("the last event of the tile, {}, is outside [{}, {}]", last, first, picture.tile->events)});
  } else if (format != PictureFormat::gif) {
    faults.push_back({"", fmt::format("events {} to {} of the tile are several pictures, and a .{} file holds one: "
                                      "write a .gif",
                                      first, last, kEndings[static_cast<std::size_t>(format)])});
  }
}

void check_frames(const Run& run, const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
  const std::size_t before = faults.size();
  check_rows(run, picture, format, faults);
  check_tile_events(picture, format, faults);
  if (!(picture.frames_per_second >= kSlowestFrames && picture.frames_per_second <= kFastestFrames)) {
    faults.push_back({"", fmt::format("{} frames per second is outside [{}, {}]", picture.frames_per_second,
                                      kSlowestFrames, kFastestFrames)});
  }
  if (picture.between && (format == PictureFormat::svg || format == PictureFormat::pdf)) {
    faults.push_back({"", fmt::format("a picture between two steps consists of pixels, and a .{} file of shapes: write "
                                      "a .png",
                                      kEndings[static_cast<std::size_t>(format)])});
  }
  if (faults.size() > before) return;
  const auto stills = std::ssize(stills_of(run, picture));
  const std::int64_t frames = stills + (stills - 1) * between_frames(picture);
  if (frames > kMostFrames) {
    faults.push_back({"", fmt::format("{} frames are more than {}: choose fewer steps", frames, kMostFrames)});
  }
}

PictureFormat check(const QString& path, const Run& run, const Picture& picture) {
  const std::optional<PictureFormat> format = picture_format(path);
  std::vector<Fault> faults;
  if (!format) faults.push_back({"", "the extension is not that of a picture format: use .png, .svg, .pdf or .gif"});
  check_size(picture, faults);
  check_frames(run, picture, format.value_or(PictureFormat::gif), faults);
  if (picture.view == View::attention && picture.last_row && *picture.last_row > run.row_at(picture.position)) {
    faults.push_back({"",
                      "the attention view shows one step, and these are several: write a .png of one step, or "
                      "choose another view"});
  }
  if (!faults.empty()) throw InputError(path.toStdString(), std::move(faults));
  return *format;
}

// --- single pictures ---

// All frames of an animation use the same panels and thus their caches.
class Painting {
 public:
  Painting(const std::shared_ptr<const Run>& run, const Picture& picture)
      : picture_(picture), cursor_(run), staged_(run), panels_(make_panels()) {
    cursor_.seek(picture.position);
    scene_.cursor = &cursor_;
    scene_.theme = &theme(picture.theme);
    scene_.view = picture.view;
    scene_.font_scale = picture.font_scale;
    scene_.viewport = picture.viewport;
    scene_.pinned = picture.selection;
    scene_.tile = picture.tile.get();
    scene_.tile_instead = picture.tile_instead;
    scene_.tile_layout = picture.tile_layout;
    scene_.flow = picture.flow.get();
    if (picture.flow) scene_.flow_tiles = picture.flow_tiles.value_or(std::ssize(picture.flow->tiles));
    scene_.flow_instead = picture.flow_instead;
    scene_.errors = picture.errors.get();
    scene_.errors_instead = picture.errors_instead;
    if (picture.tile) {
      tile_now_ = tile_state(*picture.tile, picture.tile_event.value_or(event_of_landed(*picture.tile)));
      scene_.tile_now = &tile_now_;
    }
    stage();
    relight();
  }

  // A row of the run, or an event of the tile when the animation is one of the tile.
  void go_to(std::int64_t still) {
    if (picture_.last_tile_event) {
      tile_now_ = tile_state(*picture_.tile, still);
    } else {
      cursor_.seek_row(still);
    }
    stage();
    relight();
  }
  // The row before this one, or the beginning of the tile's action that leads here.
  void go_back() {
    if (picture_.view == View::tile && picture_.tile) {
      std::int64_t event = 0;
      for (const TileAction& action : picture_.tile->actions) {
        if (action.first < tile_now_.event) event = action.first;
      }
      tile_now_ = tile_state(*picture_.tile, event);
    } else {
      cursor_.seek_row(std::max<std::int64_t>(cursor_.row() - 1, 0));
    }
    stage();
    relight();
  }

  [[nodiscard]] QImage image() const {
    QImage image = board_image(size_of(picture_), picture_.scale, panels_, scene_);
    if (image.isNull()) throw std::bad_alloc();
    return image;
  }
  [[nodiscard]] Still still() const { return Still(scene_, picture_.tile); }
  [[nodiscard]] std::unique_ptr<Motion> motion(const Still& before, const Still& after) const {
    return std::make_unique<Motion>(panels_, size_of(picture_), picture_.scale, before, after);
  }
  [[nodiscard]] QImage image(const Motion& motion, double t) const {
    QImage image(scaled(picture_).toSize(), QImage::Format_RGB32);
    if (image.isNull()) throw std::bad_alloc();
    image.setDevicePixelRatio(picture_.scale);
    QPainter painter(&image);
    motion.paint_base(painter, t);
    paint_board_overlay(painter, size_of(picture_), panels_, motion.scene_at(t));
    motion.paint_movers(painter, t);
    return image;
  }
  void paint(QPaintDevice& device, double scale) const {
    QPainter painter(&device);
    painter.scale(scale, scale);
    paint_board(painter, size_of(picture_), panels_, scene_);
  }
  // "First light, step 6"
  [[nodiscard]] QString title() const {
    const Facts& facts = cursor_.run().facts();
    return QStringLiteral("%1, step %2").arg(QString::fromStdString(facts.name)).arg(cursor_.state().step.value);
  }

 private:
  // As Document::restage().
  void stage() {
    if (scene_.view != View::tile) return;
    const Run& run = cursor_.run();
    staged_.seek(
        run.written_of_row(scene_.tile != nullptr ? run.row_of_step(scene_.tile->opened.step) : cursor_.row()));
    scene_.staged = &staged_.state();
  }
  void relight() { scene_.pinned_lit = resolve(scene_.state(), cursor_.run().facts(), scene_.tile, scene_.pinned); }

  const Picture& picture_;
  Cursor cursor_, staged_;
  Panels panels_;
  TileState tile_now_;
  Scene scene_;
};

std::string_view view_of(const QByteArray& bytes) {
  return {bytes.constData(), static_cast<std::size_t>(bytes.size())};
}

// Sets a fixed resolution: otherwise the bytes would depend on the screen, from which Qt takes an image's resolution.
QByteArray png_of(QImage image, double scale) {
  constexpr double kDotsPerMeter = 96 / 0.0254;
  image.setDotsPerMeterX(static_cast<int>(std::lround(kDotsPerMeter * scale)));
  image.setDotsPerMeterY(image.dotsPerMeterX());
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QImageWriter writer(&buffer, "png");
  if (!writer.write(image)) throw std::bad_alloc();
  return bytes;
}

// Overwrites the creation date with blanks, so that equal pictures have equal bytes. The length does not change, so all
// offsets in the file stay valid.
void blank_creation_date(QByteArray& pdf) {
  constexpr std::string_view kKey = "/CreationDate (";
  const qsizetype at = pdf.indexOf(kKey.data());
  const qsizetype end = at < 0 ? -1 : pdf.indexOf(')', at);
  if (end < 0) return;
  for (qsizetype i = at; i <= end; ++i) pdf[i] = ' ';
}

// One page on which a logical pixel is one point (1/72 inch), so that whole pixels are whole points.
QByteArray pdf_of(const Painting& painting, const Picture& picture) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setTitle(painting.title());
    writer.setCreator(QStringLiteral("kvscope"));
    writer.setResolution(72);
    writer.setPageSize(QPageSize(scaled(picture), QPageSize::Point, QString(), QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    painting.paint(writer, picture.scale);
  }
  blank_creation_date(bytes);
  return bytes;
}

std::string svg_of(const Painting& painting, const Picture& picture) {
  SvgDevice device(size_of(picture), picture.scale, painting.title());
  painting.paint(device, 1);
  return device.bytes();
}

void write_film(const std::filesystem::path& path, const Run& run, Painting& painting, const Picture& picture,
                const FrameProgress& progress) {
  PendingFile pending(path);
  const std::vector<std::int64_t> stills = stills_of(run, picture);
  const std::int64_t between = between_frames(picture);
  const std::int64_t frames = std::ssize(stills) + (std::ssize(stills) - 1) * between;
  const double frame = 1 / picture.frames_per_second, moving = kMotionShare * frame;
  std::int64_t done = 0;
  bool moved = false;  // the pictures of a motion have led here
  const auto count = [&] {
    if (progress && !progress(++done, frames)) throw Cancelled();
  };
  painting.go_to(stills.front());
  QImage image = painting.image();
  GifWriter writer(pending.temporary(), path.string(), image.size(), picture.frames_per_second);
  for (std::size_t n = 0;; image = painting.image()) {
    between > 0 ? writer.add(image, moved ? frame - moving : frame) : writer.add(image);
    count();
    if (++n == stills.size()) break;
    const Still before = painting.still();
    painting.go_to(stills[n]);
    const auto motion = between > 0 ? painting.motion(before, painting.still()) : nullptr;
    moved = motion && !motion->empty();
    if (!moved) done += between;  // the same picture all the time
    for (std::int64_t part = 1; moved && part <= between; ++part) {
      const double t = static_cast<double>(part) / static_cast<double>(between + 1);
      writer.add(painting.image(*motion, t), moving / static_cast<double>(between));
      count();
    }
  }
  writer.finish();
  pending.commit();
}

// The only picture of a file of pixels.
QImage picture_image(Painting& painting, const Picture& picture) {
  if (!picture.between) return painting.image();
  const Still after = painting.still();
  painting.go_back();
  const auto motion = painting.motion(painting.still(), after);
  return painting.image(*motion, *picture.between);
}

}  // namespace

QSize size_of(const Picture& picture) {
  if (picture.font_scale <= 1) return picture.size;
  const QSizeF whole = whole_size(picture.view, picture.size, picture.font_scale);
  return {picture.size.width(), std::max(picture.size.height(), static_cast<int>(std::ceil(whole.height())))};
}

std::optional<PictureFormat> picture_format(const QString& path) {
  const std::string ending = QFileInfo(path).suffix().toLower().toStdString();
  for (std::size_t format = 0; format < kEndings.size(); ++format) {
    if (ending == kEndings[format]) return static_cast<PictureFormat>(format);
  }
  return std::nullopt;
}

void write_picture(const QString& path, const std::shared_ptr<const Run>& run, const Picture& picture,
                   const FrameProgress& progress) {
  const PictureFormat format = check(path, *run, picture);
  const std::filesystem::path file(path.toStdString());
  Painting painting(run, picture);
  switch (format) {
    case PictureFormat::png:
      write_file_atomically(file, view_of(png_of(picture_image(painting, picture), picture.scale)));
      break;
    case PictureFormat::svg:
      write_file_atomically(file, svg_of(painting, picture));
      break;
    case PictureFormat::pdf:
      write_file_atomically(file, view_of(pdf_of(painting, picture)));
      break;
    case PictureFormat::gif:
      write_film(file, *run, painting, picture, progress);
      return;
  }
  if (progress) progress(1, 1);
}

}  // namespace kvscope::viz

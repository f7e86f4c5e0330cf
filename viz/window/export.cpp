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
#include "viz/view/paint_board.h"
#include "viz/window/gif_writer.h"
#include "viz/window/svg_device.h"

namespace kvscope::viz {
namespace {

constexpr std::array<const char*, 4> kEndings{"png", "svg", "pdf", "gif"};

// --- checks ---

QSizeF scaled(const Picture& picture) {
  return QSizeF(picture.size) * picture.scale;
}

void check_size(const Picture& picture, std::vector<Fault>& faults) {
  const QSizeF size = scaled(picture);
  for (const auto& [what, pixels] : {std::pair{"width", size.width()}, std::pair{"height", size.height()}}) {
    if (pixels >= kSmallestPicture && pixels <= kLargestPicture) continue;
    faults.push_back({"", fmt::format("a {} of {} px is outside [{}, {}]: choose another size or scale", what,
                                      std::llround(pixels), kSmallestPicture, kLargestPicture)});
  }
}

void check_frames(const Run& run, const Picture& picture, PictureFormat format, std::vector<Fault>& faults) {
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
  } else if (last - first + 1 > kMostFrames) {
    faults.push_back(
        {"", fmt::format("{} frames are more than {}: choose fewer steps", last - first + 1, kMostFrames)});
  }
  if (!(picture.frames_per_second >= kSlowestFrames && picture.frames_per_second <= kFastestFrames)) {
    faults.push_back({"", fmt::format("{} frames per second is outside [{}, {}]", picture.frames_per_second,
                                      kSlowestFrames, kFastestFrames)});
  }
}

PictureFormat check(const QString& path, const Run& run, const Picture& picture) {
  const std::optional<PictureFormat> format = picture_format(path);
  std::vector<Fault> faults;
  if (!format) faults.push_back({"", "the extension is not that of a picture format: use .png, .svg, .pdf or .gif"});
  check_size(picture, faults);
  check_frames(run, picture, format.value_or(PictureFormat::gif), faults);
  if (!faults.empty()) throw InputError(path.toStdString(), std::move(faults));
  return *format;
}

// --- single pictures ---

// All frames of an animation use the same panels and thus their caches.
class Painting {
 public:
  Painting(const std::shared_ptr<const Run>& run, const Picture& picture)
      : picture_(picture), cursor_(run), panels_(make_panels()) {
    cursor_.seek(picture.position);
    scene_.cursor = &cursor_;
    scene_.theme = &theme(picture.theme);
    scene_.view = picture.view;
    scene_.font_scale = picture.font_scale;
    scene_.viewport = picture.viewport;
    scene_.pinned = picture.selection;
    scene_.tile = picture.tile.get();
    scene_.tile_instead = picture.tile_instead;
    if (picture.tile) {
      tile_now_ = tile_state(*picture.tile, picture.tile_event.value_or(event_of_landed(*picture.tile)));
      scene_.tile_now = &tile_now_;
    }
    relight();
  }

  [[nodiscard]] std::int64_t row() const { return cursor_.row(); }
  void go_to_row(std::int64_t row) {
    cursor_.seek_row(row);
    relight();
  }

  [[nodiscard]] QImage image() const {
    QImage image = board_image(picture_.size, picture_.scale, panels_, scene_);
    if (image.isNull()) throw std::bad_alloc();
    return image;
  }
  void paint(QPaintDevice& device, double scale) const {
    QPainter painter(&device);
    painter.scale(scale, scale);
    paint_board(painter, picture_.size, panels_, scene_);
  }
  // "First light, step 6"
  [[nodiscard]] QString title() const {
    const Facts& facts = cursor_.run().facts();
    return QStringLiteral("%1, step %2").arg(QString::fromStdString(facts.name)).arg(cursor_.state().step.value);
  }

 private:
  void relight() { scene_.pinned_lit = resolve(cursor_.state(), cursor_.run().facts(), scene_.tile, scene_.pinned); }

  const Picture& picture_;
  Cursor cursor_;
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
  SvgDevice device(picture.size, picture.scale, painting.title());
  painting.paint(device, 1);
  return device.bytes();
}

void write_film(const std::filesystem::path& path, Painting& painting, const Picture& picture,
                const FrameProgress& progress) {
  PendingFile pending(path);
  const std::int64_t first = painting.row(), last = picture.last_row.value_or(first), frames = last - first + 1;
  QImage image = painting.image();
  GifWriter writer(pending.temporary(), path.string(), image.size(), picture.frames_per_second);
  for (std::int64_t row = first;; image = painting.image()) {
    writer.add(image);
    if (progress && !progress(row - first + 1, frames)) throw Cancelled();
    if (row == last) break;
    painting.go_to_row(++row);
  }
  writer.finish();
  pending.commit();
}

}  // namespace

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
      write_file_atomically(file, view_of(png_of(painting.image(), picture.scale)));
      break;
    case PictureFormat::svg:
      write_file_atomically(file, svg_of(painting, picture));
      break;
    case PictureFormat::pdf:
      write_file_atomically(file, view_of(pdf_of(painting, picture)));
      break;
    case PictureFormat::gif:
      write_film(file, painting, picture, progress);
      return;
  }
  if (progress) progress(1, 1);
}

}  // namespace kvscope::viz

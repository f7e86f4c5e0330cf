#include "viz/window/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include <QtCore/QBuffer>
#include <QtCore/QMarginsF>
#include <QtGui/QImageWriter>
#include <QtGui/QPageSize>
#include <QtGui/QPainter>
#include <QtGui/QPdfWriter>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "viz/playback/cursor.h"
#include "viz/playback/run_difference.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/motion.h"
#include "viz/view/paint_board.h"
#include "viz/window/export_check.h"
#include "viz/window/film_writer.h"
#include "viz/window/svg_device.h"
#include "viz/window/tikz_device.h"

namespace kvscope::viz {
namespace {

constexpr int kMostTimesHigher = 2;  // than the view's cards need, for larger text

// [px] of a run; a picture has one, or two side by side.
int board_width(const Picture& picture) {
  return picture.beside ? (picture.size.width() - kBetweenRuns) / 2 : picture.size.width();
}

// --- single pictures ---

using Motions = std::vector<std::unique_ptr<Motion>>;  // of the run, and of the one beside it

// All frames of an animation use the same panels and thus their caches.
class Painting {
 public:
  Painting(const std::shared_ptr<const Run>& run, const Picture& picture)
      : picture_(picture),
        cursor_(run),
        staged_(run),
        panels_(make_panels()),
        board_(board_width(picture), size_of(picture).height()) {
    cursor_.seek(picture.position);
    scene_.in_window = beside_.in_window = false;
    scene_.cursor = &cursor_;
    scene_.theme = &theme(picture.theme);
    scene_.view = picture.view;
    scene_.font_scale = picture.font_scale;
    scene_.viewport = picture.viewport;
    scene_.pinned = picture.selection;
    scene_.tile = picture.tile.get();
    scene_.tile_instead = picture.tile_instead;
    if (!picture.tile) scene_.tile_source = &picture_.tile_source;
    scene_.tile_layout = picture.tile_layout;
    if (picture.tile) {
      tile_now_ = tile_state(*picture.tile, picture.tile_event.value_or(event_of_landed(*picture.tile)));
      scene_.tile_now = &tile_now_;
    }
    scene_.compared_run = picture.compared;
    if (picture.beside) {
      beside_cursor_.emplace(picture.compared);
      beside_panels_ = make_panels();
      beside_.cursor = &*beside_cursor_;
      beside_.of_compared = true;
      beside_.compared_run = run;
      beside_.theme = scene_.theme;
      beside_.view = scene_.view;
      beside_.font_scale = scene_.font_scale;
      beside_.viewport = picture.beside_viewport;
      beside_.pinned = scene_.pinned;
      if (are_comparable(run->facts(), picture.compared->facts())) {
        scene_.compared = &beside_cursor_->state();
        beside_.compared = &cursor_.state();
      }
    }
    attention_ = {picture.flow, picture.flow_instead, picture.errors, picture.errors_instead};
    attend();
    if (picture.flow && picture.flow_tiles) scene_.flow_tiles = *picture.flow_tiles;
    stage();
    relight();
  }

  // A row of the run; or an event of the tile, or a tile of the flow, when the animation is one of these.
  void go_to(std::int64_t still) {
    if (picture_.last_tile_event) {
      tile_now_ = tile_state(*picture_.tile, still);
    } else if (picture_.last_flow_tile) {
      scene_.flow_tiles = still;
    } else {
      cursor_.seek_row(still);
      if (picture_.view == View::attention && picture_.attention_of) {
        attention_ = picture_.attention_of(cursor_.state());
        attend();
      }
    }
    stage();
    relight();
  }
  // The row before this one, or the beginning of the tile's action that leads here, or the flow's tile before.
  void go_back() {
    if (picture_.view == View::attention && picture_.flow) {
      scene_.flow_tiles = std::max<std::int64_t>(scene_.flow_tiles - 1, 0);
    } else if (picture_.view == View::tile && picture_.tile) {
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
    QImage image = surface();
    QPainter painter(&image);
    paint_runs(painter);
    return image;
  }
  // Of each run.
  [[nodiscard]] std::vector<Still> stills() const {
    std::vector<Still> stills;
    stills.emplace_back(scene_, KeptScene{picture_.tile, attention_.flow, attention_.errors});
    if (picture_.beside) stills.emplace_back(beside_, KeptScene{});
    return stills;
  }
  [[nodiscard]] Motions motions(const std::vector<Still>& before, const std::vector<Still>& after) const {
    Motions motions;
    for (std::size_t run = 0; run < before.size(); ++run) {
      motions.push_back(
          std::make_unique<Motion>(panels_of(run), QSizeF(board_), picture_.scale, before[run], after[run]));
    }
    return motions;
  }
  [[nodiscard]] QImage image(const Motions& motions, double t) const {
    QImage image = surface();
    QPainter painter(&image);
    for (std::size_t run = 0; run < motions.size(); ++run) {
      motions[run]->paint_base(painter, t);
      paint_board_overlay(painter, board_, panels_of(run), motions[run]->scene_at(t));
      motions[run]->paint_movers(painter, t);
      painter.translate(board_.width() + kBetweenRuns, 0);
    }
    return image;
  }
  // The panels that have more rows than they show, on a board of this size.
  [[nodiscard]] std::vector<PanelId> cut_off(QSizeF size, double font_scale) const {
    Scene scene = scene_;
    scene.font_scale = font_scale;
    std::vector<PanelId> cut;
    for (const Place& place : board(scene.view, size, font_scale)) {
      const Panel& panel = *panels_[static_cast<std::size_t>(place.panel)];
      if (panel.scrolled({0, kPastContent}, place.body, scene).offset.y() > 0) cut.push_back(place.panel);
    }
    return cut;
  }
  void paint(QPaintDevice& device, double scale) const {
    QPainter painter(&device);
    painter.scale(scale, scale);
    paint_runs(painter);
  }
  // "First light, step 6"
  [[nodiscard]] QString title() const {
    const Facts& facts = cursor_.run().facts();
    return QStringLiteral("%1, step %2").arg(QString::fromStdString(facts.name)).arg(cursor_.state().step.value);
  }

 private:
  [[nodiscard]] const Panels& panels_of(std::size_t run) const { return run == 0 ? panels_ : beside_panels_; }
  [[nodiscard]] QImage surface() const {
    QImage image(scaled_size(picture_).toSize(), QImage::Format_RGB32);
    if (image.isNull()) throw std::bad_alloc();
    image.setDevicePixelRatio(picture_.scale);
    image.fill(scene_.theme->surface);
    return image;
  }
  void paint_runs(QPainter& painter) const {
    if (!picture_.beside) return paint_board(painter, board_, panels_, scene_);
    painter.fillRect(QRectF(QPointF(0, 0), size_of(picture_)), scene_.theme->surface);
    paint_board(painter, board_, panels_, scene_);
    painter.save();
    painter.translate(board_.width() + kBetweenRuns, 0);
    paint_board(painter, board_, beside_panels_, beside_);
    painter.restore();
  }
  // The whole flow of the step.
  void attend() {
    scene_.flow = attention_.flow.get();
    scene_.flow_tiles = attention_.flow ? std::ssize(attention_.flow->tiles) : 0;
    scene_.flow_instead = attention_.flow_instead;
    scene_.errors = attention_.errors.get();
    scene_.errors_instead = attention_.errors_instead;
  }
  // As Document::restage().
  void stage() {
    if (scene_.view != View::tile) return;
    const Run& run = cursor_.run();
    staged_.seek(
        run.written_of_row(scene_.tile != nullptr ? run.row_of_step(scene_.tile->opened.step) : cursor_.row()));
    scene_.staged = &staged_.state();
  }
  void relight() {
    scene_.pinned_lit = resolve(scene_.state(), cursor_.run().facts(), scene_.tile, scene_.pinned);
    if (!beside_cursor_) return;
    beside_cursor_->seek(counterpart(cursor_, beside_cursor_->run()));
    beside_.pinned_lit = resolve(beside_.state(), beside_.facts(), nullptr, beside_.pinned);
  }

  const Picture& picture_;
  AttentionOfStep attention_;
  Cursor cursor_, staged_;
  std::optional<Cursor> beside_cursor_;
  Panels panels_, beside_panels_;
  QSize board_;  // of each run
  TileState tile_now_;
  Scene scene_, beside_;
};

std::string_view view_of(const QByteArray& bytes) {
  return {bytes.constData(), static_cast<std::size_t>(bytes.size())};
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
    writer.setPageSize(QPageSize(scaled_size(picture), QPageSize::Point, QString(), QPageSize::ExactMatch));
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

std::string tikz_of(const Painting& painting, const Picture& picture, const QString& path) {
  TikzDevice device(size_of(picture), picture.scale, painting.title());
  painting.paint(device, 1);
  if (device.shapes() > kMostTikzShapes) {
    throw InputError(path.toStdString(),
                     {{"", fmt::format("the picture has {} shapes, more than the {} that fit into the memory of LaTeX: "
                                       "choose another view or a smaller size, or write a .pdf",
                                       device.shapes(), kMostTikzShapes)}});
  }
  return device.bytes();
}

void write_film(PictureFormat format, const std::filesystem::path& path, const Run& run, Painting& painting,
                const Picture& picture, const FrameProgress& progress) {
  PendingFile pending(path);
  const std::vector<std::int64_t> stills = stills_of(run, picture);
  const FilmTiming timing = film_timing(format, picture.frames_per_second, picture.motion);
  const std::int64_t frames = std::ssize(stills) + (std::ssize(stills) - 1) * timing.between;
  std::int64_t done = 0;
  bool moved = false;  // the pictures of a motion have led here
  const auto count = [&] {
    if (progress && !progress(++done, frames)) throw Cancelled();
  };
  painting.go_to(stills.front());
  QImage image = painting.image();
  const auto writer =
      make_film_writer(format, pending.temporary(), path.string(), image.size(), picture.frames_per_second, timing,
                       [&] { return !progress || progress(done, frames); });
  for (std::size_t n = 0;; image = painting.image()) {
    writer->add(image, moved ? std::optional(timing.rest) : std::nullopt);
    count();
    if (++n == stills.size()) break;
    const std::vector<Still> before = painting.stills();
    painting.go_to(stills[n]);
    const Motions motions = timing.between > 0 ? painting.motions(before, painting.stills()) : Motions();
    moved = !std::ranges::all_of(motions, [](const auto& motion) { return motion->empty(); });
    if (!moved) done += timing.between;  // the same picture all the time
    for (std::int64_t part = 1; moved && part <= timing.between; ++part) {
      const double t = static_cast<double>(part) / static_cast<double>(timing.between + 1);
      writer->add(painting.image(motions, t), timing.part);
      count();
    }
  }
  writer->finish();
  pending.commit();
}

// The only picture of a file of pixels.
QImage picture_image(Painting& painting, const Picture& picture) {
  if (!picture.between) return painting.image();
  const std::vector<Still> after = painting.stills();
  painting.go_back();
  return painting.image(painting.motions(painting.stills(), after), *picture.between);
}

}  // namespace

QSize size_of(const Picture& picture) {
  if (picture.font_scale <= 1) return picture.size;
  const QSizeF board(board_width(picture), picture.size.height());
  const QSizeF whole = whole_size(picture.view, board, picture.font_scale);
  return {picture.size.width(), std::max(picture.size.height(), static_cast<int>(std::ceil(whole.height())))};
}

int height_for_text(const std::shared_ptr<const Run>& run, const Picture& picture) {
  const int asked = picture.size.height();
  if (picture.font_scale <= 1) return asked;
  const Painting painting(run, picture);
  const double width = board_width(picture);
  const std::vector<PanelId> usual = painting.cut_off({width, static_cast<double>(asked)}, 1);
  const auto is_enough = [&](int height) {
    return std::ranges::all_of(painting.cut_off({width, static_cast<double>(height)}, picture.font_scale),
                               [&](PanelId cut) { return std::ranges::find(usual, cut) != usual.end(); });
  };
  const int least = size_of(picture).height(), most = std::min(kMostTimesHigher * least, kLargestPicture);
  for (int height = least; height <= most; height += asked / 10 + 1) {
    if (is_enough(height)) return height;
  }
  return asked;
}

void write_png(const QString& path, QImage image, double scale) {
  // A fixed resolution: otherwise the bytes would depend on the screen, from which Qt takes an image's resolution.
  constexpr double kDotsPerMeter = 96 / 0.0254;
  image.setDotsPerMeterX(static_cast<int>(std::lround(kDotsPerMeter * scale)));
  image.setDotsPerMeterY(image.dotsPerMeterX());
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QImageWriter writer(&buffer, "png");
  if (!writer.write(image)) throw std::bad_alloc();
  write_file_atomically(std::filesystem::path(path.toStdString()), view_of(bytes));
}

void write_picture(const QString& path, const std::shared_ptr<const Run>& run, const Picture& picture,
                   const FrameProgress& progress) {
  const PictureFormat format = check_picture(path, *run, picture);
  const std::filesystem::path file(path.toStdString());
  Painting painting(run, picture);
  switch (format) {
    case PictureFormat::png:
      write_png(path, picture_image(painting, picture), picture.scale);
      break;
    case PictureFormat::svg:
      write_file_atomically(file, svg_of(painting, picture));
      break;
    case PictureFormat::pdf:
      write_file_atomically(file, view_of(pdf_of(painting, picture)));
      break;
    case PictureFormat::tikz:
      write_file_atomically(file, tikz_of(painting, picture, path));
      break;
    default:
      write_film(format, file, *run, painting, picture, progress);
      return;
  }
  if (progress) progress(1, 1);
}

}  // namespace kvscope::viz

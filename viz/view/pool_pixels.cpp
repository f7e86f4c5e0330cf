#include "viz/view/pool_pixels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <QtGui/QImage>

#include "viz/view/cell_paint.h"
#include "viz/view/cell_sheet.h"

namespace kvscope::viz {
namespace {

bool is_alike(const Scene& scene, std::int64_t block) {
  return scene.compared != nullptr && !scene.differs(BlockIdx{block});
}

QRgb* line_of(QImage& image, std::int64_t y) {
  return reinterpret_cast<QRgb*>(image.scanLine(static_cast<int>(y)));
}

constexpr double kNullPageSide = 5;  // [px]

// One image pixel per block, scaled without smoothing, so that the edges of blocks stay sharp.
void paint_stretched(QPainter& painter, const PoolLayout& layout, const Scene& scene) {
  const Theme& theme = *scene.theme;
  const CellRange seen = layout.grid.visible();
  const std::array colors{small_looks(theme, false), small_looks(theme, true)};
  QImage image(static_cast<int>(seen.columns()), static_cast<int>(seen.rows()), QImage::Format_RGB32);
  // The last row may be only partly filled with blocks.
  std::fill_n(line_of(image, seen.rows() - 1), seen.columns(), theme.card.rgb());
  const auto pixel = [&](std::int64_t block) {
    const CellPlace place = layout.place(block);
    return line_of(image, place.row - seen.first_row) + (place.column - seen.first_column);
  };
  for_each_visible_run(scene.state().blocks, layout, [&](std::int64_t first, std::span<const BlockState> run) {
    QRgb* to = pixel(first);
    for (const BlockState& block : run) *to++ = colors[is_alike(scene, first++)][block_look(block)];
  });
  const CellPlace null_page = layout.place(layout.blocks);
  if (null_page.row < seen.end_row && null_page.column >= seen.first_column && null_page.column < seen.end_column &&
      null_page.row >= seen.first_row) {
    *pixel(layout.blocks) = colors[0][kNullPageLook];
  }
  const QRectF target = layout.grid.whole_rect({seen.first_column, seen.first_row})
                            .united(layout.grid.whole_rect({seen.end_column - 1, seen.end_row - 1}));
  painter.save();
  painter.setClipRect(layout.grid.area, Qt::IntersectClip);
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.drawImage(target, image);
  painter.restore();
}

// Prefetch distance in blocks: a million blocks are 20 MB.
constexpr std::ptrdiff_t kAhead = 100;

// Sums of the colors of the blocks that share one pixel, and their number.
struct alignas(16) Sum {
  std::uint32_t red = 0, green = 0, blue = 0, blocks = 0;
};

// Division by multiplication with the reciprocal: a division per channel and pixel would take most of the time.
class Mean {
 public:
  explicit Mean(QRgb none) : none_(none) {
    for (std::uint32_t n = 1; n < kMost; ++n) reciprocal_[n] = (kOne + n - 1) / n;
  }
  // Exact, rounded down: sums below 2^16 times a reciprocal rounded up by less than 2^-24.
  [[nodiscard]] QRgb operator()(const Sum& sum) const {
    if (sum.blocks == 0) return none_;
    if (sum.blocks >= kMost) return of(sum.red / sum.blocks, sum.green / sum.blocks, sum.blue / sum.blocks);
    const std::uint64_t times = reciprocal_[sum.blocks];
    return of(sum.red * times / kOne, sum.green * times / kOne, sum.blue * times / kOne);
  }

 private:
  static constexpr std::uint32_t kMost = 256;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 24;
  static QRgb of(std::uint64_t red, std::uint64_t green, std::uint64_t blue) {
    return qRgb(static_cast<int>(red), static_cast<int>(green), static_cast<int>(blue));
  }
  QRgb none_;
  std::array<std::uint64_t, kMost> reciprocal_{};
};

// Several blocks per pixel: rows of blocks are summed until the next row of pixels begins.
void paint_averaged(QPainter& painter, const PoolLayout& layout, const Scene& scene, double scale) {
  const Theme& theme = *scene.theme;
  const CellGrid& grid = layout.grid;
  const auto width = static_cast<int>(std::lround(grid.area.width() * scale));
  const auto height = static_cast<int>(std::lround(grid.area.height() * scale));
  const std::vector<std::int32_t> x_of = pixels_of_cells(grid.pitch.width(), grid.offset.x(), scale, 0, grid.columns);
  const std::vector<std::int32_t> y_of = pixels_of_cells(grid.pitch.height(), grid.offset.y(), scale, 0, grid.rows);
  std::array<std::array<Sum, kLooks>, 2> colors{};
  for (const bool dimmed : {false, true}) {
    std::ranges::transform(small_looks(theme, dimmed), colors[dimmed].begin(), [](QRgb rgb) {
      return Sum{static_cast<std::uint32_t>(qRed(rgb)), static_cast<std::uint32_t>(qGreen(rgb)),
                 static_cast<std::uint32_t>(qBlue(rgb)), 1};
    });
  }
  // Reuses memory: new memory costs a page fault every four kilobytes.
  std::vector<QRgb> pixels = std::exchange(Prepared::of_this_thread().pixels, {});
  pixels.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), theme.card.rgb());
  QImage image(reinterpret_cast<uchar*>(pixels.data()), width, height, width * 4, QImage::Format_RGB32);
  const Mean mean(theme.card.rgb());
  std::vector<Sum> sums(static_cast<std::size_t>(width));
  std::int32_t y = -1;
  const auto finish_line = [&] {
    if (y < 0 || y >= height) return;
    QRgb* const line = line_of(image, y);
    for (std::size_t x = 0; x < sums.size(); ++x) line[x] = mean(sums[x]);
    std::fill(sums.begin(), sums.end(), Sum{});
  };
  for_each_visible_run(scene.state().blocks, layout, [&](std::int64_t first, std::span<const BlockState> run) {
    const CellPlace place = layout.place(first);
    const std::int32_t next = y_of[static_cast<std::size_t>(place.row)];
    if (next != y) {
      finish_line();
      y = next;
    }
    const std::int32_t* x = x_of.data() + place.column;
    for (const BlockState& block : run) {
      __builtin_prefetch(&block + kAhead);
      Sum& sum = sums[static_cast<std::size_t>(std::clamp(*x++, 0, width - 1))];
      const Sum& color = colors[is_alike(scene, first++)][block_look(block)];
      sum.red += color.red;
      sum.green += color.green;
      sum.blue += color.blue;
      sum.blocks += color.blocks;
    }
  });
  finish_line();
  painter.drawImage(grid.area, image);
  Prepared::of_this_thread().pixels = std::move(pixels);
}

// The null page is one block of very many, and is not visible if blocks share pixels. It is drawn as a square of a few
// px, over the empty places after it if there are any.
void paint_null_page(QPainter& painter, const PoolLayout& layout, const Theme& theme) {
  const QRectF cell = layout.rect(layout.blocks);
  const QRectF& area = layout.grid.area;
  if (!cell.intersects(area)) return;
  const double side = std::min({std::max(kNullPageSide, cell.width()), area.width(), area.height()});
  const auto inside = [side](double at, double from, double to) {
    return std::clamp(std::floor(at), from, std::max(from, to - side));
  };
  const QRectF square(inside(cell.left(), area.left(), area.right()), inside(cell.top(), area.top(), area.bottom()),
                      side, side);
  painter.fillRect(square, theme.ink_on(theme.null_page));
  if (side > 2) painter.fillRect(square.adjusted(1, 1, -1, -1), theme.null_page);
}

}  // namespace

void paint_pool_pixels(QPainter& painter, const PoolLayout& layout, const Scene& scene) {
  // Device pixels per pixel of the painter, clamped because a vector surface has no device pixels.
  const double scale = std::clamp(painter.deviceTransform().m11(), 1.0, 4.0);
  if (layout.grid.shorter_pitch() * scale < 1) {
    paint_averaged(painter, layout, scene, scale);
  } else {
    paint_stretched(painter, layout, scene);
  }
  paint_null_page(painter, layout, *scene.theme);
}

void paint_pool_pixel_marks(QPainter& painter, const PoolLayout& layout, std::span<const BlockIdx> filled,
                            const Theme& theme) {
  QVector<QRectF> dots;
  for (const BlockIdx block : filled) {
    const QPointF center = layout.rect(block.value).center();
    if (layout.grid.area.contains(center)) dots.append({center - QPointF(1, 1), QSizeF(2, 2)});
  }
  painter.save();
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.accent);
  painter.drawRects(dots);
  painter.restore();
}

}  // namespace kvscope::viz

#include "viz/view/sequences_cells.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <QtGui/QFontMetricsF>
#include <QtGui/QImage>

#include "viz/view/cell_paint.h"
#include "viz/view/cell_painter.h"
#include "viz/view/sequences_content.h"

namespace kvscope::viz {
namespace {

// At detail pixels as many rows as this are mixed into one line; of more that share it, evenly chosen ones.
constexpr std::int64_t kMostMixed = 6;

double number_px(const Scene& scene) {
  return std::max(9.0 * scene.font_scale, 6.0);
}

// visit(row, page, look, tokens in it) for what shows of each row's pages.
template <class Visit>
void for_each_page(const SequencesLayout& layout, const Scene& scene, Visit&& visit) {
  const IndexRange rows = layout.visible_rows(), pages = layout.visible_pages();
  for (std::int64_t r = rows.first; r < std::min(rows.last, std::ssize(scene.state().live)); ++r) {
    const SequenceRow row = sequence_row(scene, r);
    for (std::int64_t page = pages.first; page < std::min(pages.last, row.pages); ++page) {
      visit(r, page, page_look(scene.state(), row.seq, page), page_tokens(row, page, layout.extent.page_size));
    }
  }
}

// --- cells -----------------------------------------------------------------------------------------------------------

// Slots of a page that show in the strip.
IndexRange visible_slots(const SequencesLayout& layout, std::int64_t page) {
  const double first = layout.x_of(page * layout.extent.page_size);
  const auto slot = [&](double x) { return static_cast<std::int64_t>(std::floor((x - first) / layout.cell)); };
  return {std::clamp<std::int64_t>(slot(layout.strip.left()), 0, layout.extent.page_size),
          std::clamp<std::int64_t>(slot(layout.strip.right()) + 1, 0, layout.extent.page_size)};
}

// From the cell's bottom to its top, in its middle. By the painter itself: what copies glyphs cannot turn them.
void write_upwards(QPainter& painter, const QRectF& cell, std::int64_t number, const QFontMetricsF& metrics) {
  const QString text = QString::number(number);
  painter.save();
  painter.translate(cell.center());
  painter.rotate(-90);
  painter.drawText(QPointF(-metrics.horizontalAdvance(text) / 2, metrics.capHeight() / 2), text);
  painter.restore();
}

void paint_boxes(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  const double radius = std::min(4.0, layout.box_height / 5);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setBrush(Qt::NoBrush);
  for_each_page(layout, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t) {
    painter.setPen(QPen(look_fill(*scene.theme, look), 1.25));
    painter.drawRoundedRect(layout.page_box(row, page).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
  });
  painter.restore();
}

void paint_cells(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  const std::int64_t page_size = layout.extent.page_size;
  const QFont font = mono_font(number_px(scene));
  const QFontMetricsF metrics(font);
  const bool across = layout.detail == SequencesDetail::numbers && layout.writing == Writing::across;
  {
    CellPainter cells(painter, layout.strip, *scene.theme);
    cells.set_cell_size(layout.token_cell(0, 0).size());
    cells.set_font(font);
    for_each_page(layout, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
      const IndexRange slots = visible_slots(layout, page);
      const QColor ink = look_ink(*scene.theme, look);
      for (std::int64_t slot = slots.first; slot < slots.last; ++slot) {
        const std::int64_t token = page * page_size + slot;
        const QRectF cell = layout.token_cell(row, token);
        cells.cell(cell.topLeft(), slot < tokens ? look : kFreeLook);
        if (!across || slot >= tokens) continue;
        const std::string text = std::to_string(token);
        cells.label({cell.center().x() - label_width(font, text) / 2, cell.center().y() + metrics.capHeight() / 2},
                    text, ink);
      }
    });
  }
  paint_boxes(painter, layout, scene);
  if (layout.detail != SequencesDetail::numbers || across) return;
  painter.save();
  painter.setFont(font);
  for_each_page(layout, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
    const IndexRange slots = visible_slots(layout, page);
    painter.setPen(look_ink(*scene.theme, look));
    for (std::int64_t slot = slots.first; slot < std::min(slots.last, tokens); ++slot) {
      const std::int64_t token = page * page_size + slot;
      write_upwards(painter, layout.token_cell(row, token), token, metrics);
    }
  });
  painter.restore();
}

// --- bars ------------------------------------------------------------------------------------------------------------

void paint_pages(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  const auto page_size = static_cast<double>(layout.extent.page_size);
  CellPainter cells(painter, layout.strip, *scene.theme);
  cells.set_cell_size(layout.page_box(0, 0).size());
  for_each_page(layout, scene, [&](std::int64_t row, std::int64_t page, Look look, std::int64_t tokens) {
    cells.cell(layout.page_box(row, page).topLeft(), look, static_cast<double>(tokens) / page_size);
  });
}

// --- lines and pixels ------------------------------------------------------------------------------------------------

// The look of each column of px of a row's tokens, from the strip's left; shorter than the strip where the row is.
void looks_of_columns(std::vector<Look>& looks, const SequencesLayout& layout, const Scene& scene,
                      const SequenceRow& row) {
  looks.clear();
  if (row.pages == 0) return;
  const double end = row.tokens > 0 ? layout.x_of(row.tokens - 1) + layout.cell - layout.strip.left() : 0;
  const auto columns = static_cast<std::int64_t>(std::ceil(std::min(end, layout.strip.width())));
  for (std::int64_t column = 0; column < columns; ++column) {
    const auto page =
        static_cast<std::int64_t>((static_cast<double>(column) + 0.5 + layout.offset.x()) / layout.page_pitch);
    looks.push_back(page_look(scene.state(), row.seq, std::min(page, row.pages - 1)));
  }
}

void paint_lines(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  painter.fillRect(layout.strip, scene.theme->card);
  std::vector<Look> looks;
  const IndexRange rows = layout.visible_rows();
  for (std::int64_t r = rows.first; r < std::min(rows.last, std::ssize(scene.state().live)); ++r) {
    looks_of_columns(looks, layout, scene, sequence_row(scene, r));
    const QRectF box = layout.page_box(r, 0);
    for (std::size_t begin = 0; begin < looks.size();) {
      std::size_t end = begin;
      while (end < looks.size() && looks[end] == looks[begin]) ++end;
      painter.fillRect(QRectF(layout.strip.left() + static_cast<double>(begin), box.top(),
                              static_cast<double>(end - begin), box.height()),
                       look_fill(*scene.theme, looks[begin]));
      begin = end;
    }
  }
}

// A colour as a sum, so that rows that share a line of pixels are mixed.
struct Mixed {
  int red = 0, green = 0, blue = 0;
  void add(QRgb colour) {
    red += qRed(colour);
    green += qGreen(colour);
    blue += qBlue(colour);
  }
};

void paint_pixels(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  QImage image(static_cast<int>(std::ceil(layout.strip.width())), static_cast<int>(std::ceil(layout.strip.height())),
               QImage::Format_RGB32);
  image.fill(scene.theme->card);
  const QRgb nothing = scene.theme->card.rgb();
  std::vector<Look> looks;
  std::vector<Mixed> mixed(static_cast<std::size_t>(image.width()));
  for (int y = 0; y < image.height(); ++y) {
    IndexRange rows = layout.rows_of_line(y);
    rows.last = std::min(rows.last, std::ssize(scene.state().live));
    const std::int64_t chosen = std::min(rows.size(), kMostMixed);
    if (chosen <= 0) continue;
    std::ranges::fill(mixed, Mixed{});
    for (std::int64_t i = 0; i < chosen; ++i) {
      looks_of_columns(looks, layout, scene, sequence_row(scene, rows.first + i * rows.size() / chosen));
      for (std::size_t x = 0; x < mixed.size(); ++x) {
        mixed[x].add(x < looks.size() ? look_fill(*scene.theme, looks[x]).rgb() : nothing);
      }
    }
    auto* const line = reinterpret_cast<QRgb*>(image.scanLine(y));
    const auto all = static_cast<int>(chosen);
    for (std::size_t x = 0; x < mixed.size(); ++x) {
      line[x] = qRgb(mixed[x].red / all, mixed[x].green / all, mixed[x].blue / all);
    }
  }
  painter.drawImage(layout.strip.topLeft(), image);
}

}  // namespace

void paint_tokens(QPainter& painter, const SequencesLayout& layout, const Scene& scene) {
  switch (layout.detail) {
    case SequencesDetail::numbers:
    case SequencesDetail::cells:
      return paint_cells(painter, layout, scene);
    case SequencesDetail::pages:
      return paint_pages(painter, layout, scene);
    case SequencesDetail::lines:
      return paint_lines(painter, layout, scene);
    case SequencesDetail::pixels:
      return paint_pixels(painter, layout, scene);
  }
}

}  // namespace kvscope::viz

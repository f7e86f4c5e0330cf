// The sequence that the tile is of: its tokens by page, those of the tile in the color of their row.
#include <algorithm>

#include <QtCore/QCoreApplication>

#include "viz/geometry/board.h"
#include "viz/geometry/tile_sequence_layout.h"
#include "viz/playback/tile_state.h"
#include "viz/view/cell_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr double kTokenNumber = 10, kPageName = 11.5;  // [px] at font scale 1
constexpr double kClear = 4;                           // [px] between a link and words

class TileSequencePanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(TileSequencePanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::tile_sequence; }
  [[nodiscard]] QString title() const override { return tr("Sequence"); }
  // Links of tokens run down from the cells past the pages' names and the footer, where these leave room.
  [[nodiscard]] std::optional<Lane> leaving_lane(const QRectF& cell, const QRectF& body,
                                                 const Scene& scene) const override;
  [[nodiscard]] std::optional<Lane> column_lane(double x, const QRectF& body, const Scene& scene) const override;

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override {
    return QString::fromStdString(viz::title(*scene.tile, scene.facts())) +
           tr(" · after step %1").arg(scene.tile->opened.step.value);
  }
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;

 private:
  static std::int64_t tokens_of(const Scene& scene);
  static SequenceStrip layout(const QRectF& body, const Scene& scene);
  // The name under a page; empty where it has no room.
  static QString page_name(const SequenceStrip& at, std::int64_t page, const QFont& font);
  static void paint_token(QPainter& painter, const QRectF& rect, std::int64_t token, const Scene& scene);
  static void paint_number(QPainter& painter, const QRectF& rect, std::int64_t token, const Scene& scene);
};

// As many as the tile shows, where the cursor has moved away from its step.
std::int64_t TileSequencePanel::tokens_of(const Scene& scene) {
  const trace::TileOpened& of = scene.tile->opened;
  const std::int64_t seq = of.seq.value;
  const std::int64_t now = seq < scene.state().sequences.size() ? scene.state().sequences[seq].tokens : 0;
  return std::max(now, of.first_token.value + of.tokens);
}

SequenceStrip TileSequencePanel::layout(const QRectF& body, const Scene& scene) {
  const Tile& tile = *scene.tile;
  SequenceStripSize size;
  size.tokens = tokens_of(scene);
  size.page_size = std::max<std::int64_t>(tile.memory ? tile.memory->page_size : scene.facts().page_size, 1);
  size.first = tile.opened.first_token.value;
  size.rows = tile.rows();
  return tile_sequence_layout(size, body, scene.font_scale);
}

QString TileSequencePanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  return tr("Sequence %1 has %2 tokens; the tile has %3 rows, %4 of them hold a token.")
      .arg(tile.opened.seq.value)
      .arg(number_text(tokens_of(scene)))
      .arg(tile.rows())
      .arg(tile.opened.tokens);
}

// --- painting --------------------------------------------------------------------------------------------------------

void TileSequencePanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const SequenceStrip at = layout(body, scene);
  const QFont mono = mono_font(scene.px(kTokenNumber)), words = ui_font(scene.px(kPageName));
  // Every n-th token has its number, n of 1, 2, 4, ...: as close as they are legible.
  const double widest = text_width(mono, QString::number(at.size.tokens)) + 4;
  std::int64_t numbered = 1;
  while (static_cast<double>(numbered) * at.cell < widest && numbered < at.size.page_size) numbered *= 2;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (std::int64_t page = at.first_page; page < at.end_page; ++page) {
    for (std::int64_t slot = 0; slot < at.size.page_size; ++slot) {
      const std::int64_t token = page * at.size.page_size + slot;
      paint_token(painter, *at.token_rect(token), token, scene);
    }
    // Numbers over the cells: they may be wider than these.
    for (std::int64_t slot = 0; slot < at.size.page_size; slot += numbered) {
      const std::int64_t token = page * at.size.page_size + slot;
      if (token < tokens_of(scene)) paint_number(painter, *at.token_rect(token), token, scene);
    }
    const QRectF rect = at.page_rect(page);
    painter.setPen(QPen(scene.theme->cell_line, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(-1.5, -1.5, 0.5, 0.5));
    if (const QString name = page_name(at, page, words); !name.isEmpty()) {
      draw_text(painter, words, scene.theme->text_quiet, {rect.left(), rect.bottom() + at.label_height - 3}, name);
    }
  }
  const auto left_out = [&](const QRectF& rect, std::int64_t pages) {
    if (rect.isEmpty()) return;
    draw_text_in(painter, words, scene.theme->text_quiet, rect, Qt::AlignLeft,
                 elided(words, pages == 1 ? tr("1 page") : tr("%1 pages").arg(number_text(pages)), rect.width()));
  };
  left_out(at.before, at.first_page);
  left_out(at.after, at.pages - at.end_page);
  painter.setRenderHint(QPainter::Antialiasing, true);
  if (at.size.rows > 0) {  // none: a kernel's tile whose tokens the trace does not contain
    painter.setPen(QPen(scene.theme->text, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(at.tile_rect().adjusted(-3, -3, 3, 3), 4, 4);
  }
  painter.restore();
}

QString TileSequencePanel::page_name(const SequenceStrip& at, std::int64_t page, const QFont& font) {
  const QString name = tr("page %1").arg(page);
  return at.label_height > 0 && text_width(font, name) <= at.page_rect(page).width() ? name : QString();
}

void TileSequencePanel::paint_token(QPainter& painter, const QRectF& rect, std::int64_t token, const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (const auto row = tile.row_of(tile.opened.seq, TokIdx{token})) {
    paint_tile_cell(painter, rect, *scene.theme, tile, *row, Arrival::there);
  } else {
    painter.fillRect(rect, token < tokens_of(scene) ? scene.theme->cell_line : scene.theme->card);
  }
}

void TileSequencePanel::paint_number(QPainter& painter, const QRectF& rect, std::int64_t token, const Scene& scene) {
  const Tile& tile = *scene.tile;
  const auto row = tile.row_of(tile.opened.seq, TokIdx{token});
  const QFont mono = mono_font(scene.px(kTokenNumber));
  const QString number = QString::number(token);
  const double wide = text_width(mono, number) + 2;
  const Theme& theme = *scene.theme;
  draw_text_in(painter, mono,
               row ? tile_ink(theme, tile, *row, Arrival::there) : readable(theme, theme.text_quiet, theme.cell_line),
               QRectF(rect.left() + 1, rect.top(), std::max(rect.width(), wide), rect.height()),
               wide > rect.width() ? Qt::AlignLeft : Qt::AlignHCenter, number);
}

// --- links -----------------------------------------------------------------------------------------------------------

std::optional<Lane> TileSequencePanel::leaving_lane(const QRectF& cell, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return std::nullopt;
  return Lane{layout(body, scene).lane, cell.center().x(), body.right() + kPadding / 2};
}

// The first place from `x` to the right that is beside the footer and the names of pages.
std::optional<Lane> TileSequencePanel::column_lane(double x, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return std::nullopt;
  const SequenceStrip at = layout(body, scene);
  const QFont names = ui_font(scene.px(kPageName));
  const auto past = [&x](double left, double width) {
    if (width > 0 && x > left - kClear && x < left + width + kClear) x = left + width + kClear;
  };
  past(body.left(), std::min(footer_width(scene), body.width()));
  for (std::int64_t page = at.first_page; page < at.end_page; ++page) {
    past(at.page_rect(page).left(), text_width(names, page_name(at, page, names)));
  }
  return Lane{x > body.right() ? body.right() + kPadding / 2 : x, at.lane, body.bottom()};
}

// --- what is where ---------------------------------------------------------------------------------------------------

std::vector<PanelCell> TileSequencePanel::tile_cells(const QRectF& body, const Scene& scene) const {
  const SequenceStrip at = layout(body, scene);
  std::vector<PanelCell> cells;
  const std::int64_t end = std::min(at.end_page * at.size.page_size, tokens_of(scene));
  for (std::int64_t token = at.first_page * at.size.page_size; token < end; ++token) {
    cells.push_back({at.token_rect(token)->intersected(body), of_token(scene.tile->opened.seq, TokIdx{token}), {}});
  }
  return cells;
}

}  // namespace

std::unique_ptr<Panel> make_tile_sequence_panel() {
  return std::make_unique<TileSequencePanel>();
}

}  // namespace kvscope::viz

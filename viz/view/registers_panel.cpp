// The registers of one warp or wave: which lane holds which elements of the tile. The grid shows the registers of one
// read, the pieces below it all reads. Which read that is follows the selection, so everything is painted as overlay.
#include <algorithm>
#include <set>

#include <QtCore/QCoreApplication>
#include <QtGui/QTextOption>

#include "viz/view/operand_paint.h"
#include "viz/view/registers_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

constexpr double kNoRegistersText = 12.5;  // [px] at font scale 1

class RegistersPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(RegistersPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::registers; }
  [[nodiscard]] QString title() const override { return tr("Registers"); }
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] TilePlaces fill_places(std::span<const std::int64_t> fills, const QRectF& body,
                                       const Scene& scene) const override;
  // Left of the numbers of the lines: a link to the cell would cross those of its line.
  [[nodiscard]] std::optional<QRectF> link_anchor(const Lit& lit, const QRectF& body,
                                                  const Scene& scene) const override {
    const std::optional<QRectF> cell = anchor(lit, body, scene);
    if (!cell) return std::nullopt;
    return QRectF(QPointF(body.left(), cell->top()), cell->bottomRight());
  }
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport revealing(const Selection&, const QRectF&, const Scene&) const override { return {}; }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_tile_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;
};

Selection first_register(const Tile& tile, std::int64_t read) {
  const TileRead& of = tile.reads[static_cast<std::size_t>(read)];
  return of_tile_register(tile.fills[static_cast<std::size_t>(of.first_fill)].reg);
}

Selection first_of_wave(const Tile& tile, std::int64_t wave) {
  const auto first =
      std::ranges::find_if(tile.reads, [&](const TileRead& read) { return read.wave == wave && read.fills > 0; });
  return first != tile.reads.end() ? first_register(tile, first - tile.reads.begin()) : Selection{};
}

QString RegistersPanel::tile_subtitle(const Scene& scene) const {
  const QString matrix = QString::fromStdString(matrix_name(*scene.tile));
  const QString read = QString::fromStdString(read_name(*scene.tile));
  if (matrix.isEmpty() || read.isEmpty()) return matrix + read;
  return tr("%1, read by %2").arg(matrix, read);
}

QString RegistersPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const std::string none = no_registers(tile);
  if (shows_operands(tile)) {
    return tr("No register holds the tile: wgmma reads it through descriptors, %1 of %2 operands so far.")
        .arg(scene.tile_now->reads)
        .arg(tile.operands.size());
  }
  if (!none.empty()) return tr("No register holds the tile: %1.").arg(QString::fromStdString(none));
  if (tile.fills.empty()) return tr("The trace was recorded without lanes: it does not contain registers.");
  QString text = tr("%1 of %2 reads are done").arg(scene.tile_now->reads).arg(tile.reads.size());
  if (tile.waves() > 1) {
    const auto read = read_of_grid(tile, *scene.tile_now, scene.pinned_lit.tile);
    if (read) {
      text += tr("; wave %1 of %2 is shown").arg(tile.reads[static_cast<std::size_t>(*read)].wave).arg(tile.waves());
    }
  }
  return text;
}

void RegistersPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!scene.tile->fills.empty() || (shows_operands(*scene.tile) && operand_now(body, scene))) return;
  painter.setFont(ui_font(scene.px(kNoRegistersText)));
  painter.setPen(scene.theme->text_quiet);
  QTextOption option(Qt::AlignLeft | Qt::AlignTop);
  option.setWrapMode(QTextOption::WordWrap);
  painter.drawText(body, tile_summary(scene), option);
}

void RegistersPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return;
  if (shows_operands(*scene.tile)) {
    if (const auto operand = operand_now(body, scene)) paint_operand(painter, *operand, scene);
    return;
  }
  const auto at = registers_now(body, scene);
  if (at) paint_registers(painter, *at, scene);
}

void RegistersPanel::paint_tile_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  paint_registers_legend(painter, footer, scene);
}

// --- what is where ---------------------------------------------------------------------------------------------------

std::vector<PanelCell> RegistersPanel::tile_cells(const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  if (shows_operands(tile)) {
    const auto operand = operand_now(body, scene);
    return operand ? operand_cells(*operand, body, scene) : std::vector<PanelCell>{};
  }
  const auto at = registers_now(body, scene);
  if (!at) return {};
  std::vector<PanelCell> cells;
  const auto add = [&](const QRectF& rect, const Selection& object) {
    const QRectF seen = rect.intersected(body);
    if (!seen.isEmpty()) cells.push_back({seen, object, {}});
  };
  for (const RegisterWave& of : at->layout.waves) {
    if (of.wave == at->layout.wave) continue;
    const auto first =
        std::ranges::find_if(tile.reads, [&](const TileRead& read) { return read.wave == of.wave && read.fills > 0; });
    if (first != tile.reads.end()) add(of.rect, first_register(tile, first - tile.reads.begin()));
  }
  const TileRead& read = tile.reads[static_cast<std::size_t>(at->layout.read)];
  const auto of_grid = std::ssize(cells);
  // A register that has several cells is listed with its first one.
  std::set<TileRegister> listed;
  for (std::int64_t n = read.first_fill; n < read.first_fill + read.fills; ++n) {
    const auto rect = at->layout.cell(tile, n);
    const TileRegister& reg = tile.fills[static_cast<std::size_t>(n)].reg;
    if (rect && listed.insert(reg).second) add(*rect, of_tile_register(reg));
  }
  std::ranges::stable_sort(cells.begin() + of_grid, cells.end(), {},
                           [](const PanelCell& cell) { return std::pair(cell.rect.top(), cell.rect.left()); });
  for (const RegisterPiece& piece : at->layout.pieces) {
    if (piece.read != at->layout.read) add(piece.rect, first_register(tile, piece.read));
  }
  return cells;
}

Selection RegistersPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return {};
  const Tile& tile = *scene.tile;
  if (shows_operands(tile)) {
    const auto operand = operand_now(body, scene);
    return operand ? operand_hit(*operand, at, scene) : Selection{};
  }
  const auto now = registers_now(body, scene);
  if (!now) return {};
  if (const auto fill = now->layout.fill_at(tile, at)) {
    return of_tile_register(tile.fills[static_cast<std::size_t>(*fill)].reg);
  }
  if (const auto read = now->layout.piece_at(at)) return first_register(tile, *read);
  const auto wave = now->layout.wave_at(at);
  return wave ? first_of_wave(tile, *wave) : Selection{};
}

TilePlaces RegistersPanel::fill_places(std::span<const std::int64_t> fills, const QRectF& body,
                                       const Scene& scene) const {
  const auto at = registers_now(body, scene);
  TilePlaces places(fills.size());
  for (std::size_t n = 0; at && n < fills.size(); ++n) {
    const bool shown = scene.tile->fills[static_cast<std::size_t>(fills[n])].read == at->layout.read;
    if (shown) places[n] = at->layout.cell(*scene.tile, fills[n]);
  }
  return places;
}

std::optional<QRectF> RegistersPanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return std::nullopt;
  if (shows_operands(*scene.tile)) {
    const auto operand = operand_now(body, scene);
    return operand ? operand_anchor(*operand, lit.tile, scene) : std::nullopt;
  }
  if (lit.tile.registers.empty()) return std::nullopt;
  const Tile& tile = *scene.tile;
  const auto at = registers_now(body, scene);
  if (!at) return std::nullopt;
  const TileRead& read = tile.reads[static_cast<std::size_t>(at->layout.read)];
  for (std::int64_t n = read.first_fill; n < read.first_fill + read.fills; ++n) {
    if (!std::ranges::binary_search(lit.tile.registers, tile.fills[static_cast<std::size_t>(n)].reg)) continue;
    const auto rect = at->layout.cell(tile, n);
    if (rect) return rect;
  }
  const std::vector<bool> reads = lit_reads(tile, lit.tile);
  for (const RegisterPiece& piece : at->layout.pieces) {
    if (reads[static_cast<std::size_t>(piece.read)]) return piece.rect;
  }
  const auto wave = std::ranges::find(at->layout.waves, lit.tile.registers.front().wave, &RegisterWave::wave);
  return wave != at->layout.waves.end() ? std::optional(wave->rect) : std::nullopt;
}

Viewport RegistersPanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  Viewport viewport = scene.viewport_of(id());
  if (scene.tile == nullptr) return viewport;
  const auto at = registers_now(body, scene);
  if (!at || at->layout.line_step() <= 0 || at->layout.lines_shown() == at->layout.lines) return {};
  // In lines, whole ones or parts of one; never further than the lines there are.
  const double lines = by.y() / at->layout.line_step();
  const auto room = static_cast<double>(at->layout.lines - at->layout.lines_shown());
  viewport.offset.setY(std::clamp(viewport.offset.y() + lines, -room, room));
  return viewport;
}

}  // namespace

std::unique_ptr<Panel> make_registers_panel() {
  return std::make_unique<RegistersPanel>();
}

}  // namespace kvscope::viz

// The sequences: the tokens of every live request in their pages, with the changes of the current step.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/geometry/sequences_layout.h"
#include "viz/view/cell_overlay.h"
#include "viz/view/panel.h"
#include "viz/view/sequences_content.h"
#include "viz/view/sequences_paint.h"
#include "viz/view/sharing.h"

namespace kvscope::viz {
namespace {

constexpr double kBodyOutside = 2;  // [px] that outlines may exceed the body

class SequencesPanel final : public Panel {
  Q_DECLARE_TR_FUNCTIONS(SequencesPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::sequences; }
  [[nodiscard]] QString title() const override { return tr("Sequences"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override { return sequences_summary(scene); }
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<PanelTip> tip(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<Lane> column_lane(double x, const QRectF& body, const Scene& scene) const override {
    return Standing(body, scene).layout.lane(x);
  }
  [[nodiscard]] std::optional<Lane> leaving_lane(const QRectF& cell, const QRectF& body,
                                                 const Scene& scene) const override {
    return Standing(body, scene).layout.lane_below(cell);
  }
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  // The current layout. It takes a few microseconds, so it is not cached.
  struct Standing {
    SequenceRows rows;
    SequencesExtent extent;
    SequencesLayout layout;
    Standing(const QRectF& body, const Scene& scene)
        : rows(sequence_rows(scene.state())),
          extent(sequences_extent(scene.facts(), scene.state(), rows)),
          layout(sequences_layout(body, extent, scene.viewport_of(PanelId::sequences), scene.font_scale)) {}
  };
  static QString name_of(const Scene& scene, const SequenceRow& row);

  mutable bool densely_ = false;  // of the body painted last: the footer under it has no other way to get its layout
};

QString SequencesPanel::subtitle(const Scene& scene) const {
  if (scene.facts().detail != trace::Detail::full) return tr("live requests; their tokens are not in this trace");
  // In bands there are no pages and no hatches.
  if (sequence_rows(scene.state()).count() > kMostRows) return tr("tokens of all live requests");
  return scene.facts().cache == CacheKind::continuous ? tr("tokens of each live request in the slots reserved for it")
         : can_share(scene.facts()) ? tr("tokens of each live request, grouped by page · shared blocks hatched")
                                    : tr("tokens of each live request, grouped by page");
}

// --- painting --------------------------------------------------------------------------------------------------------

void SequencesPanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  densely_ = false;
  if (scene.state().live.empty()) {
    return paint_message(painter, body, sequences_summary(scene), *scene.theme, scene.font_scale);
  }
  const Standing now(body, scene);
  densely_ = now.layout.detail == SequencesDetail::density;
  painter.save();
  painter.setClipRect(body.adjusted(-kBodyOutside, -kBodyOutside, kBodyOutside, kBodyOutside), Qt::IntersectClip);
  paint_sequences(painter, now.layout, now.rows, scene);
  painter.restore();
}

void SequencesPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.state().live.empty()) return;
  const Standing now(body, scene);
  paint_sequences_lit(painter, now.layout, now.rows, scene, scene.pinned_lit, LitHow::pinned);
  if (scene.hovered != scene.pinned) {
    paint_sequences_lit(painter, now.layout, now.rows, scene, scene.hovered_lit, LitHow::hovered);
  }
}

void SequencesPanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  paint_sequences_footer(painter, footer, scene, summary(scene), densely_);
}

// --- pointing --------------------------------------------------------------------------------------------------------

Selection SequencesPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  const SequencesLayout& places = now.layout;
  const std::optional<SequencesSpot> spot = places.at(at);
  if (!spot || spot->row >= now.rows.count() || places.band > 1) return {};  // a band is several objects: tip()
  const SequenceRow row = sequence_row(scene, now.rows.seq(spot->row));
  if (spot->label || spot->page >= row.pages) return of_sequence(row.seq);
  const std::int64_t token = spot->page * places.extent.page_size + spot->slot;
  const bool cells = places.detail == SequencesDetail::numbers || places.detail == SequencesDetail::cells;
  return cells && token < row.tokens ? of_token(row.seq, TokIdx{token}) : of_page(row.seq, PageIdx{spot->page});
}

std::optional<PanelTip> SequencesPanel::tip(QPointF at, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  const std::optional<SequencesSpot> spot = now.layout.at(at);
  if (now.layout.band <= 1 || !spot || spot->row >= now.rows.count()) return std::nullopt;
  const std::int64_t number = spot->row / now.layout.band;
  IndexRange band = now.layout.rows_of_band(number);
  band.last = std::min(band.last, now.rows.count());
  const std::int64_t token = spot->label ? 0 : spot->page * now.layout.extent.page_size + spot->slot;
  const QRectF rect = now.layout.band_rect(number);
  return PanelTip{band_words(scene, now.rows, band, token), {at.x() - 2, rect.top(), 4, rect.height()}};
}

std::optional<QRectF> SequencesPanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  const SequencesLayout& at = now.layout;
  const std::optional<QRectF> rect = lit_rect(at, now.rows, scene, lit);
  if (!rect || !rect->intersects(at.strip)) return std::nullopt;
  return rect->intersected(at.strip);
}

// Left and right move from token to token, up and down from row to row at the same token or at the row's last one.
Selection SequencesPanel::moved(const Selection& from, Move move, const QRectF&, const Scene& scene) const {
  const std::int64_t page_size = std::max<std::int64_t>(scene.facts().page_size, 1);
  const SequenceRows rows = sequence_rows(scene.state());
  if (rows.count() == 0) return {};
  const auto token_of = [&](std::int64_t r, std::int64_t token) {
    const SequenceRow row = sequence_row(scene, rows.seq(r));
    if (row.tokens == 0 || row.pages == 0) return of_sequence(row.seq);
    return of_token(row.seq, TokIdx{std::clamp<std::int64_t>(token, 0, row.tokens - 1)});
  };
  const Lit lit = resolve(scene.state(), scene.facts(), from);
  const SeqIdx seq = lit.seq ? *lit.seq : lit.places.empty() ? from.seq : lit.places.front().seq;
  const std::optional<std::int64_t> row = rows.row_of(seq);
  if (!row) return token_of(0, 0);
  // From a page, its first token. From a sequence, the place before token 0, so that the next move right is token 0.
  const std::int64_t token = lit.token                             ? lit.token->value
                             : lit.page                            ? lit.page->value * page_size
                             : lit.places.empty()                  ? -1
                             : from.kind == Selection::Kind::block ? lit.places.front().page.value * page_size
                                                                   : -1;
  switch (move) {
    case Move::left:
      return token_of(*row, token - 1);
    case Move::right:
      return token_of(*row, token + 1);
    case Move::up:
      return token_of(std::max<std::int64_t>(*row - 1, 0), token);
    case Move::down:
      return token_of(std::min<std::int64_t>(*row + 1, rows.count() - 1), token);
    case Move::first:
      return token_of(*row, 0);
    case Move::last:
      return token_of(*row, sequence_row(scene, rows.seq(*row)).tokens - 1);
  }
  return {};
}

Viewport SequencesPanel::zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const {
  return zoomed_sequences(body, Standing(body, scene).extent, scene.viewport_of(PanelId::sequences), scene.font_scale,
                          factor, at);
}

Viewport SequencesPanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  const SequencesLayout& at = now.layout;
  if (!at.scrolls()) return {};
  return {at.zoom, clamp_offset(at.offset + by, at.content, at.strip.size())};
}

Viewport SequencesPanel::revealing(const Selection& object, const QRectF& body, const Scene& scene) const {
  const Standing now(body, scene);
  const SequencesLayout& at = now.layout;
  if (!at.scrolls()) return scene.viewport_of(PanelId::sequences);
  const std::optional<QRectF> rect = lit_rect(at, now.rows, scene, resolve(scene.state(), scene.facts(), object));
  if (!rect) return scene.viewport_of(PanelId::sequences);
  const QRectF target = rect->translated(at.offset - at.strip.topLeft());
  const QPointF offset = offset_to_show(at.offset, target, at.strip.size(), at.box_top);
  return {at.zoom, clamp_offset(offset, at.content, at.strip.size())};
}

// --- for a screen reader ---------------------------------------------------------------------------------------------

QString SequencesPanel::name_of(const Scene& scene, const SequenceRow& row) {
  const QString words = phase_words(scene, row);
  const QString tokens = tr("%1 of %2 tokens").arg(row.tokens).arg(row.wanted);
  return words.isEmpty() ? tr("sequence %1, running, %2").arg(row.seq.value).arg(tokens)
                         : tr("sequence %1, %2, %3").arg(row.seq.value).arg(words, tokens);
}

std::vector<PanelCell> SequencesPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> cells;
  const Standing now(body, scene);
  const SequencesLayout& at = now.layout;
  if (now.rows.count() == 0 || at.band > 1) return cells;
  const IndexRange rows = at.visible_rows(), pages = at.visible_pages();
  const auto add = [&](const QRectF& rect, const Selection& object, const QString& name) {
    const QRectF shown = rect.intersected(at.gutter.united(at.strip));
    if (cells.size() < limit && !shown.isEmpty()) cells.push_back({shown, object, name});
  };
  const bool tokens = at.detail == SequencesDetail::numbers || at.detail == SequencesDetail::cells;
  for (std::int64_t r = rows.first; r < std::min(rows.last, now.rows.count()); ++r) {
    const SequenceRow row = sequence_row(scene, now.rows.seq(r));
    add(at.label_rect(r), of_sequence(row.seq), name_of(scene, row));
    if (at.detail == SequencesDetail::lines || at.detail == SequencesDetail::density) continue;
    for (std::int64_t page = pages.first; page < std::min(pages.last, row.pages); ++page) {
      const std::int64_t filled = page_tokens(row, page, at.extent.page_size);
      const std::int32_t block = scene.state().sequences[row.seq.value].pages[page];
      if (!tokens) {
        const QString name = tr("sequence %1 page %2, block %3, %4 of %5 tokens")
                                 .arg(row.seq.value)
                                 .arg(page)
                                 .arg(block)
                                 .arg(filled)
                                 .arg(at.extent.page_size);
        add(at.page_box(r, page), of_page(row.seq, PageIdx{page}),
            scene.differs(row.seq, PageIdx{page}) ? tr("%1; differs in the other run").arg(name) : name);
        continue;
      }
      for (std::int64_t slot = 0; slot < filled; ++slot) {
        const std::int64_t token = page * at.extent.page_size + slot;
        const QString words = token < row.behind
                                  ? tr("sequence %1 token %2, page %3, slot %4 of block %5, no longer read")
                                  : tr("sequence %1 token %2, page %3, slot %4 of block %5");
        add(at.token_cell(r, token), of_token(row.seq, TokIdx{token}),
            words.arg(row.seq.value).arg(token).arg(page).arg(slot).arg(block));
      }
    }
  }
  return cells;
}

}  // namespace

std::unique_ptr<Panel> make_sequences_panel() {
  return std::make_unique<SequencesPanel>();
}

}  // namespace kvscope::viz

// A candidate's errors against the golden: the worst of each head of each sequence above, every element of one head of
// one sequence below, and in words the verdict, the worst element and the cause. Without a candidate, the errors of the
// tiled flow in f32.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>

#include "viz/geometry/attention_layout.h"
#include "viz/view/attention_paint.h"
#include "viz/view/text.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// The lower map: one head of one sequence.
struct Detail {
  std::int64_t sequence = 0, head = 0;
  std::int64_t first_row = 0, end_row = 0;
};

// The head of the flow that is shown; without one, the head of the worst element.
Detail detail_of(const Scene& scene) {
  const AttentionErrors& errors = *scene.errors;
  Detail detail;
  const std::int64_t shown = scene.flow != nullptr ? sequence_index(errors, scene.flow->request.seq) : -1;
  if (shown >= 0 && scene.flow->request.head.value < errors.heads) {
    detail.sequence = shown;
    detail.head = scene.flow->request.head.value;
  } else {
    detail.sequence = sequence_index(errors, errors.rows[static_cast<std::size_t>(errors.worst_row)].seq);
    detail.head = errors.worst_head;
  }
  detail.first_row = errors.first_row[static_cast<std::size_t>(detail.sequence)];
  detail.end_row = errors.first_row[static_cast<std::size_t>(detail.sequence) + 1];
  return detail;
}

class AttentionErrorsPanel final : public AttentionPanel {
  Q_DECLARE_TR_FUNCTIONS(AttentionErrorsPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::attention_errors; }
  [[nodiscard]] QString title() const override { return tr("Error against the golden"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit&, const QRectF&, const Scene&) const override {
    return std::nullopt;
  }
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  struct Shown {
    Detail detail;
    ErrorsLayout layout;
  };
  static bool has_errors(const Scene& scene) { return scene.errors != nullptr && !scene.errors->empty(); }
  static bool has_cause_page(const AttentionErrors& errors) { return errors.cause_page.value >= 0; }
  static Shown shown(const QRectF& body, const Scene& scene);
  // The value that a drawn cell shows, and where the largest of its values is.
  struct Value {
    double ratio = 0;
    std::int64_t row = 0, column = 0;
  };
  static Value head_value(const Scene& scene, const HeatGrid& grid, HeatCell cell);
  static Value element_value(const Scene& scene, const Detail& detail, const HeatGrid& grid, HeatCell cell);
  static Selection head_object(const Scene& scene, const HeatGrid& grid, HeatCell cell);
  static Selection element_object(const Scene& scene, const Detail& detail, const HeatGrid& grid, HeatCell cell);
  static std::optional<QRectF> rect_of(const Scene& scene, const Shown& at, const Selection& object);
  static void paint_labels(QPainter& painter, const HeatGrid& grid, const QRectF& name_line, const QRectF& number_line,
                           const Scene& scene, const QString& name, const auto& row_name, double label_width);
  static QString verdict(const AttentionErrors& errors);
};

AttentionErrorsPanel::Shown AttentionErrorsPanel::shown(const QRectF& body, const Scene& scene) {
  const AttentionErrors& errors = *scene.errors;
  Shown at{detail_of(scene), {}};
  const ErrorsSize size{std::ssize(errors.sequences), errors.heads, at.detail.end_row - at.detail.first_row,
                        errors.dims};
  const int lines = errors.passed ? 3 : 7;
  at.layout = errors_layout(size, lines, body, scene.font_scale);
  return at;
}

// --- words -----------------------------------------------------------------------------------------------------------

QString AttentionErrorsPanel::subtitle(const Scene& scene) const {
  if (!has_errors(scene)) return {};
  return tr("%1 · %2").arg(QString::fromStdString(scene.errors->candidate_name),
                           QString::fromStdString(scene.errors->policy));
}

QString AttentionErrorsPanel::verdict(const AttentionErrors& errors) {
  const QString all = number_text(std::ssize(errors.ratio));
  QString text = errors.failing == 0 ? tr("Within the bound: all %1 elements of o.").arg(all)
                                     : tr("Fails: %1 of %2 elements of o.").arg(number_text(errors.failing), all);
  text += QLatin1Char('\n') + tr("Worst: %1.").arg(QString::fromStdString(worst_text(errors)));
  if (!errors.passed && !errors.cause.empty()) {
    text += QLatin1Char('\n') + (errors.certain ? tr("Diagnosis: %1.") : tr("Diagnosis, probably: %1."))
                                    .arg(QString::fromStdString(errors.cause));
    if (!errors.look_at.empty())
      text += QLatin1Char(' ') + tr("Look at: %1.").arg(QString::fromStdString(errors.look_at));
  } else if (!errors.passed && !errors.no_cause.empty()) {
    text += QLatin1Char('\n') + QString::fromStdString(errors.no_cause);
  }
  // What fails comes first: in a small panel the end of the text is cut.
  QStringList criteria, passed;
  for (const AttentionErrors::Criterion& criterion : errors.criteria) {
    const QString name = QString::fromStdString(criterion.name);
    criterion.passed ? passed.push_back(name)
                     : criteria.push_back(tr("FAIL %1: %2").arg(name, QString::fromStdString(criterion.detail)));
  }
  if (!passed.empty()) criteria.push_back(tr("pass %1").arg(passed.join(QStringLiteral(", "))));
  text += QLatin1Char('\n') + criteria.join(QStringLiteral(" · "));
  return text;
}

QString AttentionErrorsPanel::summary(const Scene& scene) const {
  return has_errors(scene) ? verdict(*scene.errors) : scene.errors_instead;
}

// --- values ----------------------------------------------------------------------------------------------------------

AttentionErrorsPanel::Value AttentionErrorsPanel::head_value(const Scene& scene, const HeatGrid& grid, HeatCell cell) {
  const AttentionErrors& errors = *scene.errors;
  Value found{-1, 0, 0};
  for (std::int64_t s = cell.row * grid.row_bin; s < std::min(grid.rows, (cell.row + 1) * grid.row_bin); ++s) {
    for (std::int64_t head = cell.column * grid.column_bin;
         head < std::min(grid.columns, (cell.column + 1) * grid.column_bin); ++head) {
      const double ratio = errors.head_worst[static_cast<std::size_t>(s * errors.heads + head)];
      if (ratio > found.ratio) found = {ratio, s, head};
    }
  }
  return found;
}

AttentionErrorsPanel::Value AttentionErrorsPanel::element_value(const Scene& scene, const Detail& detail,
                                                                const HeatGrid& grid, HeatCell cell) {
  const AttentionErrors& errors = *scene.errors;
  Value found{-1, 0, 0};
  for (std::int64_t query = cell.row * grid.row_bin; query < std::min(grid.rows, (cell.row + 1) * grid.row_bin);
       ++query) {
    for (std::int64_t dim = cell.column * grid.column_bin;
         dim < std::min(grid.columns, (cell.column + 1) * grid.column_bin); ++dim) {
      const double ratio = errors.at(detail.first_row + query, detail.head, dim);
      if (ratio > found.ratio) found = {ratio, query, dim};
    }
  }
  return found;
}

Selection AttentionErrorsPanel::head_object(const Scene& scene, const HeatGrid& grid, HeatCell cell) {
  const AttentionErrors& errors = *scene.errors;
  const Value value = head_value(scene, grid, cell);
  return of_error_cell(errors.sequences[static_cast<std::size_t>(value.row)], HeadIdx{value.column}, TokIdx{-1},
                       DimIdx{-1}, page_behind(errors, worst_row_of(errors, value.row, value.column)));
}

Selection AttentionErrorsPanel::element_object(const Scene& scene, const Detail& detail, const HeatGrid& grid,
                                               HeatCell cell) {
  const AttentionErrors& errors = *scene.errors;
  const Value value = element_value(scene, detail, grid, cell);
  const std::int64_t row = detail.first_row + value.row;
  const ErrorRow& of = errors.rows[static_cast<std::size_t>(row)];
  return of_error_cell(of.seq, HeadIdx{detail.head}, TokIdx{of.position}, DimIdx{value.column},
                       page_behind(errors, row));
}

// Where an error is drawn; an element also lights the head that it belongs to when the lower map shows another one.
std::optional<QRectF> AttentionErrorsPanel::rect_of(const Scene& scene, const Shown& at, const Selection& object) {
  const AttentionErrors& errors = *scene.errors;
  if (object.kind != Selection::Kind::error_cell) return std::nullopt;
  const std::int64_t sequence = sequence_index(errors, object.seq);
  if (sequence < 0 || object.head.value >= errors.heads) return std::nullopt;
  const bool shown = sequence == at.detail.sequence && object.head.value == at.detail.head && object.dim.value >= 0;
  if (shown && !at.layout.element_map.area.isEmpty()) {
    for (std::int64_t row = at.detail.first_row; row < at.detail.end_row; ++row) {
      if (errors.rows[static_cast<std::size_t>(row)].position != object.token.value) continue;
      return at.layout.element_map.rect(at.layout.element_map.of(row - at.detail.first_row, object.dim.value));
    }
  }
  if (at.layout.head_map.area.isEmpty()) return std::nullopt;
  return at.layout.head_map.rect(at.layout.head_map.of(sequence, object.head.value));
}

// --- painting --------------------------------------------------------------------------------------------------------

void AttentionErrorsPanel::paint_labels(QPainter& painter, const HeatGrid& grid, const QRectF& name_line,
                                        const QRectF& number_line, const Scene& scene, const QString& name,
                                        const auto& row_name, double label_width) {
  if (grid.area.isEmpty()) return;
  const QFont words = ui_font(scene.px(kAttentionText)), digits = mono_font(scene.px(kAttentionNumber - 2));
  draw_text_in(painter, words, scene.theme->text_quiet, name_line, Qt::AlignLeft,
               elided(words, name, name_line.width()));
  const double pitch = grid.cell.width() / static_cast<double>(grid.column_bin);
  const std::int64_t step = std::max(label_step(digits, grid.columns - 1, pitch), grid.column_bin);
  for (std::int64_t column = 0; column < grid.columns && number_line.height() > 0; column += step) {
    const double x = grid.rect(grid.of(0, column)).left();
    const QString number = QString::number(column);
    const double wide = std::max(grid.cell.width(), text_width(digits, number));
    if (x + wide > number_line.right() + 1) continue;
    draw_text_in(painter, digits, scene.theme->text_quiet, QRectF(x, number_line.top(), wide, number_line.height()),
                 grid.cell.width() >= wide ? Qt::AlignHCenter : Qt::AlignLeft, number);
  }
  double free_from = grid.area.top() - 1;
  for (std::int64_t row = 0; row < grid.drawn_rows(); ++row) {
    const QRectF rect = grid.rect({row, 0});
    const double height = std::max(rect.height(), scene.px(13));
    if (rect.top() < free_from) continue;
    free_from = rect.top() + height;
    draw_text_in(
        painter, digits, scene.theme->text_quiet,
        QRectF(name_line.left(), rect.top(), label_width - 6, rect.height() >= height ? rect.height() : height),
        Qt::AlignLeft, elided(digits, row_name(row * grid.row_bin), label_width - 6));
  }
}

void AttentionErrorsPanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!has_errors(scene)) {
    return paint_attention_words(painter, body, scene.errors_instead, scene.theme->text_quiet, scene);
  }
  const AttentionErrors& errors = *scene.errors;
  const Shown at = shown(body, scene);
  const HeatGrid &heads = at.layout.head_map, &elements = at.layout.element_map;
  painter.save();
  paint_labels(
      painter, heads, at.layout.head_name, at.layout.head_numbers, scene,
      heads.binned() ? tr("heads, several to a cell: the worst is shown") : tr("sequence by head"),
      [&](std::int64_t s) { return tr("seq %1").arg(errors.sequences[static_cast<std::size_t>(s)].value); },
      at.layout.label_width);
  for (std::int64_t row = 0; row < heads.drawn_rows() && !heads.area.isEmpty(); ++row) {
    for (std::int64_t column = 0; column < heads.drawn_columns(); ++column) {
      const HeatCell cell{row, column};
      paint_error_cell(painter, heads.rect(cell), head_value(scene, heads, cell).ratio, scene);
    }
  }
  const SeqIdx seq = errors.sequences[static_cast<std::size_t>(at.detail.sequence)];
  QString name = tr("sequence %1, head %2: query by dim").arg(seq.value).arg(at.detail.head);
  if (elements.binned()) {
    name += tr(", %1 values to a cell").arg(elements.row_bin * elements.column_bin);
  }
  paint_labels(
      painter, elements, at.layout.element_name, at.layout.element_numbers, scene, name,
      [&](std::int64_t query) {
        const ErrorRow& of = errors.rows[static_cast<std::size_t>(at.detail.first_row + query)];
        return of.position >= 0 ? tr("tok %1").arg(of.position) : tr("q %1").arg(of.query);
      },
      at.layout.label_width);
  for (std::int64_t row = 0; row < elements.drawn_rows() && !elements.area.isEmpty(); ++row) {
    for (std::int64_t column = 0; column < elements.drawn_columns(); ++column) {
      const HeatCell cell{row, column};
      paint_error_cell(painter, elements.rect(cell), element_value(scene, at.detail, elements, cell).ratio, scene);
    }
  }
  // The head that the lower map shows.
  if (!heads.area.isEmpty()) {
    const QRectF rect = heads.rect(heads.of(at.detail.sequence, at.detail.head));
    painter.setPen(QPen(scene.theme->text, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(0.5, 0.5, -1.5, -1.5));
  }
  painter.restore();
  paint_attention_words(painter, at.layout.words, verdict(errors),
                        errors.passed ? scene.theme->text_accent : scene.theme->text, scene);
}

void AttentionErrorsPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (!has_errors(scene)) return;
  const Shown at = shown(body, scene);
  const auto paint = [&](const Selection& object, const Lit& lit, bool pinned) {
    if (const auto rect = rect_of(scene, at, object)) return paint_attention_outline(painter, *rect, scene, pinned);
    if (object.kind == Selection::Kind::error_cell || at.layout.head_map.area.isEmpty()) return;
    // Any other object of one sequence lights the sequence's row.
    const std::optional<SeqIdx> seq = object.kind == Selection::Kind::flow_tile ? std::optional(object.seq) : lit.seq;
    const std::int64_t sequence = seq ? sequence_index(*scene.errors, *seq) : -1;
    if (sequence < 0) return;
    const HeatGrid& map = at.layout.head_map;
    const QRectF row = map.rect(map.of(sequence, 0)).united(map.rect(map.of(sequence, map.columns - 1)));
    paint_attention_outline(painter, row, scene, pinned);
  };
  paint(scene.pinned, scene.pinned_lit, true);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered, scene.hovered_lit, false);
}

void AttentionErrorsPanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  if (!has_errors(scene)) return;
  const double side = scene.px(14);
  double x = footer.left();
  const QFont font = ui_font(scene.px(12));
  painter.save();
  for (const auto& [ratio, text] : {std::pair{0.03, tr("within the bound")}, {30.0, tr("exceeds it: hatched")}}) {
    const QRectF cell(x, footer.center().y() - side / 2, side, side);
    const double wide = text_width(font, text);
    if (cell.right() + 6 + wide > footer.right()) break;
    paint_error_cell(painter, cell, ratio, scene);
    draw_text_in(painter, font, scene.theme->text_quiet, QRectF(cell.right() + 6, footer.top(), wide, footer.height()),
                 Qt::AlignLeft, text);
    x = cell.right() + 6 + wide + scene.px(16);
  }
  painter.restore();
  if (x < footer.right()) {
    const QRectF rest(x, footer.top(), footer.right() - x, footer.height());
    draw_text_in(
        painter, font, scene.theme->text_quiet, rest, Qt::AlignLeft,
        first_that_fits(font,
                        {tr("number or size: error / bound · a click shows the head's flow and the page behind it"),
                         tr("number or size: error / bound"), tr("error / bound")},
                        rest.width()));
  }
}

// --- what is where ---------------------------------------------------------------------------------------------------

Selection AttentionErrorsPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (!has_errors(scene)) return {};
  const Shown now = shown(body, scene);
  if (const auto cell = now.layout.head_map.at(at)) return head_object(scene, now.layout.head_map, *cell);
  if (const auto cell = now.layout.element_map.at(at)) {
    return element_object(scene, now.detail, now.layout.element_map, *cell);
  }
  const AttentionErrors& errors = *scene.errors;
  if (has_cause_page(errors) && !errors.passed && now.layout.words.contains(at)) {
    return of_page(errors.cause_seq, errors.cause_page);
  }
  return {};
}

Selection AttentionErrorsPanel::moved(const Selection& from, Move move, const QRectF& body, const Scene& scene) const {
  if (!has_errors(scene)) return from;
  const Shown at = shown(body, scene);
  const HeatGrid &heads = at.layout.head_map, &elements = at.layout.element_map;
  if (heads.area.isEmpty()) return from;
  const auto in_heads = [&](HeatCell cell) { return head_object(scene, heads, cell); };
  const auto in_elements = [&](HeatCell cell) { return element_object(scene, at.detail, elements, cell); };
  const bool has_elements = !elements.area.isEmpty();
  if (move == Move::first) return in_heads({0, 0});
  if (move == Move::last) {
    return has_elements ? in_elements({elements.drawn_rows() - 1, elements.drawn_columns() - 1})
                        : in_heads({heads.drawn_rows() - 1, heads.drawn_columns() - 1});
  }
  const auto rect = rect_of(scene, at, from);
  if (!rect) return in_heads(heads.of(at.detail.sequence, at.detail.head));
  const bool below = has_elements && elements.at(rect->center()).has_value();
  const HeatGrid& grid = below ? elements : heads;
  HeatCell cell = *grid.at(rect->center());
  if (move == Move::left || move == Move::right) {
    cell.column = std::clamp<std::int64_t>(cell.column + (move == Move::right ? 1 : -1), 0, grid.drawn_columns() - 1);
  } else {
    cell.row += move == Move::down ? 1 : -1;
  }
  // Down from the last row of heads lies the lower map, and back.
  if (!below && cell.row >= heads.drawn_rows() && has_elements) {
    return in_elements({0, std::min(cell.column, elements.drawn_columns() - 1)});
  }
  if (below && cell.row < 0)
    return in_heads({heads.drawn_rows() - 1, std::min(cell.column, heads.drawn_columns() - 1)});
  cell.row = std::clamp<std::int64_t>(cell.row, 0, grid.drawn_rows() - 1);
  return below ? in_elements(cell) : in_heads(cell);
}

std::vector<PanelCell> AttentionErrorsPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> found;
  if (!has_errors(scene)) return found;
  const Shown at = shown(body, scene);
  const auto add = [&](const HeatGrid& grid, const auto& object_of) {
    if (grid.area.isEmpty()) return;
    for (std::int64_t row = 0; row < grid.drawn_rows(); ++row) {
      for (std::int64_t column = 0; column < grid.drawn_columns() && found.size() < limit; ++column) {
        const Selection object = object_of(HeatCell{row, column});
        found.push_back({grid.rect({row, column}).intersected(body), object,
                         QString::fromStdString(describe_attention(object, scene.flow, scene.errors))});
      }
    }
  };
  add(at.layout.head_map, [&](HeatCell cell) { return head_object(scene, at.layout.head_map, cell); });
  add(at.layout.element_map,
      [&](HeatCell cell) { return element_object(scene, at.detail, at.layout.element_map, cell); });
  const AttentionErrors& errors = *scene.errors;
  if (has_cause_page(errors) && !errors.passed && found.size() < limit) {
    found.push_back({at.layout.words.intersected(body), of_page(errors.cause_seq, errors.cause_page),
                     QString::fromStdString(errors.cause)});
  }
  return found;
}

}  // namespace

std::unique_ptr<Panel> make_attention_errors_panel() {
  return std::make_unique<AttentionErrorsPanel>();
}

}  // namespace kvscope::viz

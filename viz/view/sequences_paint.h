// Painting of the rows of the sequences panel at every level of detail (cells with numbers, cells, page bars, lines,
// bands), with the texts above and beside them, the axis under them, and the highlighted objects.
#pragma once

#include <optional>

#include <QtGui/QPainter>

#include "viz/geometry/sequences_layout.h"
#include "viz/view/cell_overlay.h"
#include "viz/view/scene.h"
#include "viz/view/sequences_content.h"

namespace kvscope::viz {

void paint_sequences(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene);
void paint_sequences_lit(QPainter& painter, const SequencesLayout& layout, const SequenceRows& rows, const Scene& scene,
                         const Lit& lit, LitHow how);
// The line under the rows: the legend, and the panel's summary if there is room for it.
// `densely`: the rows are drawn in bands.
void paint_sequences_footer(QPainter& painter, const QRectF& footer, const Scene& scene, const QString& summary,
                            bool densely);

// The rectangle of a highlighted object, visible or not: its token, else its page, else its whole row.
[[nodiscard]] std::optional<QRectF> lit_rect(const SequencesLayout& layout, const SequenceRows& rows,
                                             const Scene& scene, const Lit& lit);

}  // namespace kvscope::viz

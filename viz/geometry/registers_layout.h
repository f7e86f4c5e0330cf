// The layout of the registers panel: the registers that one read fills, cell by cell, and below them all reads of one
// wave as pieces of the tile.
//
//   wave  [0] [1] [2] [3]           only with several waves
//         24  26  28  30            dims of the tile (the head's own numbers), or tokens where the read is turned
//     64 |L0 |L1 |L2 |L3 |
//     65 |L4 |L5 |L6 |L7 |          a cell: the elements that are neighbors in one register of one lane
//     words of the selection
//     r0-3  | r4-7  | r8-11 |       pieces: rows of the tile down, columns across
//     r16-19| r20-23| ...   |
//
// A read that transposes fills registers with neighbors of a column. Its grid is turned: columns of the tile down, rows
// across, as the matrix instruction receives them.
//
// Example: ldmatrix.x4 of bf16 K: 16 lines (tokens) of 8 cells (2 dims each); 128 cells, 4 registers of 32 lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_reads.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

// [px] along one axis.
struct RegisterSpan {
  double begin = 0, end = 0;
  friend bool operator==(const RegisterSpan&, const RegisterSpan&) = default;
};

struct RegisterPiece {
  std::int64_t read = 0;  // index into Tile::reads
  QRectF rect;
};

struct RegisterWave {
  std::int64_t wave = 0;
  QRectF rect;
};

struct RegistersLayout {
  std::int64_t read = 0;                   // that the grid shows
  std::int64_t wave = 0;                   // of that read
  bool turned = false;                     // lines are columns of the tile
  std::int64_t lines = 0, first_line = 0;  // of the read, and the first that is shown
  std::int64_t per_cell = 1;               // elements across
  std::vector<RegisterSpan> shown;         // y of each line from first_line on
  std::vector<RegisterSpan> units;         // x of each cell of a line
  std::vector<RegisterWave> waves;         // empty with one wave
  std::vector<RegisterPiece> pieces;       // in order of their reads; empty where there is no room
  // Empty where there is no room.
  QRectF wave_name;  // left of the waves
  QRectF axis;       // numbers above the grid
  QRectF names;      // numbers left of the grid
  QRectF grid;
  QRectF more;     // below the grid, where lines are not shown
  QRectF words;    // two lines of text, three in a narrow panel
  QRectF caption;  // above the pieces

  [[nodiscard]] std::int64_t lines_shown() const { return static_cast<std::int64_t>(shown.size()); }
  // [px] from the top of one line to the next; 0 without lines
  [[nodiscard]] double line_step() const { return shown.size() > 1 ? shown[1].begin - shown[0].begin : 0; }
  // The tile's row or column that a shown line stands for.
  [[nodiscard]] std::int64_t line(const Tile& tile, std::int64_t n) const;
  // The tile's column or row that a cell begins with.
  [[nodiscard]] std::int64_t across(const Tile& tile, std::int64_t unit) const;
  // Where an element of the read is drawn: a part of its cell; nothing when it is in another read or scrolled away.
  [[nodiscard]] std::optional<QRectF> element(const Tile& tile, TileElement element) const;
  // Where a fill of the read is drawn; nothing for lines that are not shown.
  [[nodiscard]] std::optional<QRectF> cell(const Tile& tile, std::int64_t fill) const;
  // Index into Tile::fills.
  [[nodiscard]] std::optional<std::int64_t> fill_at(const Tile& tile, QPointF at) const;
  [[nodiscard]] std::optional<std::int64_t> piece_at(QPointF at) const;  // index into Tile::reads
  [[nodiscard]] std::optional<std::int64_t> wave_at(QPointF at) const;
};

// `focus`: the grid is scrolled to this element. `scrolled` [lines] from there on, cut to the lines of the read.
// Precondition: the read has fills.
[[nodiscard]] RegistersLayout registers_layout(const Tile& tile, std::int64_t read, std::optional<TileElement> focus,
                                               double scrolled, const QRectF& body, double font_scale);

// A later read of the wave, in another k-step, has begun to fill the same registers.
[[nodiscard]] bool overwritten(const Tile& tile, const TileState& now, std::int64_t read);

}  // namespace kvscope::viz

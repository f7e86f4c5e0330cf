// The rows of the pool that a tile is copied from: one group of rows for each page, in the order of the sequence, with
// a gap between two pages that shows the jump from block to block. A line above them is the sequence's row of the
// lookup table.
//
//   table   | 7 | 2 | 9 | 13 |
//   block 9    ================ row 0 of the tile
//   rows ..    ================
//   +256 rows  :                       jump
//   block 13   ================
//
// Example: pages of 16, a tile of 32 rows, body 260 x 460 at font scale 1: 2 groups of 16 rows, 10 px a row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

namespace kvscope::viz {

// What a page has of the tile: rows [first, first + rows) of the tile.
struct MemoryPart {
  std::int64_t first = 0, rows = 0;
};

// What is drawn beside the rows and below them. [px]
struct MemoryExtras {
  double scales = 0;  // width of the rows' scales
  double bytes = 0;   // height of the bytes of one row
};

struct MemoryGroup {
  QRectF label;   // [px] left of the rows: block and rows in words
  QRectF rows;    // [px] all of them
  QRectF scales;  // [px] right of the rows; empty without scales
  QRectF jump;    // [px] the gap below the group, as wide as both; empty below the last
};

struct MemoryLayout {
  QRectF table;    // [px] the line above; empty where there is no room
  QRectF heading;  // [px] above the scales; empty without scales
  QRectF bytes;    // [px] below all groups; empty without them, or where there is no room
  std::vector<MemoryPart> parts;
  std::vector<MemoryGroup> groups;  // one for each part
  double pitch = 1;                 // [px] from row to row
  double gap = 0;                   // [px] of it between two rows

  [[nodiscard]] std::optional<QRectF> row_rect(std::int64_t row) const;    // nothing: in no part
  [[nodiscard]] std::optional<QRectF> scale_rect(std::int64_t row) const;  // beside it: all scales of the row
  [[nodiscard]] std::optional<std::int64_t> row_at(QPointF point) const;
};

[[nodiscard]] MemoryLayout memory_layout(std::vector<MemoryPart> parts, const QRectF& body, double font_scale,
                                         const MemoryExtras& extras = {});

// The bytes of one row of the pool, kBytesOfLine to a line, below a title.
inline constexpr std::int64_t kBytesOfLine = 64;
struct RowBytesLayout {
  QRectF title;               // [px]
  QRectF grid;                // [px] all lines
  double offset = 0;          // [px] width of the byte offsets left of the grid
  double byte = 0, line = 0;  // [px] of one byte, from line to line
  // `count` bytes from `first` on, which are in one line.
  [[nodiscard]] QRectF rect(std::int64_t first, std::int64_t count) const;
};
[[nodiscard]] RowBytesLayout row_bytes_layout(std::int64_t bytes, const QRectF& area, double font_scale);
// The height that it takes. [px] Example: 640 bytes at font scale 1: 10 lines of 8 px and a title of 18: 98.
[[nodiscard]] double row_bytes_height(std::int64_t bytes, double font_scale);

}  // namespace kvscope::viz

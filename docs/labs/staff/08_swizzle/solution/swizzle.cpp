#include "swizzle.h"

// The chunk's bits are XORed with as many bits of the 128-byte line's number.
static std::int64_t swizzled(const Tile& tile, std::int64_t offset) {
  const std::int64_t byte = offset * tile.element_bytes;
  const std::int64_t line = byte / 128;
  const std::int64_t chunks = tile.mode_bytes / 16;
  return (byte ^ (line % chunks) * 16) / tile.element_bytes;
}

std::int64_t offset(const Tile& tile, std::int64_t row, std::int64_t col) {
  return swizzled(tile, row * tile.columns + col);
}

void place(const Tile& tile, std::int64_t offset, std::int64_t* row, std::int64_t* col) {
  const std::int64_t plain = swizzled(tile, offset);  // the XOR changes no bit of the line: it is its own inverse
  *row = plain / tile.columns;
  *col = plain % tile.columns;
}

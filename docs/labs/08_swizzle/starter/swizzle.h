// Lab 08: the two functions of swizzle.cpp that you write.
#pragma once

#include <cstdint>

// A tile in shared memory, which consists of lines of 128 bytes. One row is as long as the swizzle mode: columns * element_bytes == mode_bytes.
// The tile begins at a multiple of 1024 bytes.
struct Tile {
  std::int64_t rows;
  std::int64_t columns;        // [elements]
  std::int64_t element_bytes;  // 1, 2 or 4
  std::int64_t mode_bytes;     // 128, 64 or 32: the TMA mode
};

// The place of an element, in elements from the tile's first one: its byte divided by element_bytes. The tables of the
// handout and of `kvscope swizzle table` are in bytes.
std::int64_t offset(const Tile& tile, std::int64_t row, std::int64_t col);

// The inverse: the element at that place.
void place(const Tile& tile, std::int64_t offset, std::int64_t* row, std::int64_t* col);

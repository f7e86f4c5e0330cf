#include "swizzle.h"

std::int64_t offset(const Tile& tile, std::int64_t row, std::int64_t col) {
  // Write this function: line, chunk, XOR, element in the chunk.
  return -1;
}

void place(const Tile& tile, std::int64_t offset, std::int64_t* row, std::int64_t* col) {
  // Write this function.
}

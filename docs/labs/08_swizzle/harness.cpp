// case: 0 or 1, rows, columns, element_bytes, mode_bytes. 0: offset of every element; 1: row and column of every place.
#include <limits>

#include "cases.h"
#include "swizzle.h"

int main() {
  return cases::run([](const cases::Words& words) {
    const Tile tile{words[1], words[2], words[3], words[4]};
    cases::Words result;
    for (std::int64_t i = 0; i < tile.rows * tile.columns; ++i) {
      if (words[0] == 0) {
        result.push_back(offset(tile, i / tile.columns, i % tile.columns));
        continue;
      }
      // A value that no place() computes: the grader reports "nothing".
      std::int64_t row = std::numeric_limits<std::int64_t>::min(), col = row;
      place(tile, i, &row, &col);
      result.push_back(row);
      result.push_back(col);
    }
    return result;
  });
}

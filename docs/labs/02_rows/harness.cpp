// case: columns, page_size, layers, k_or_v, sequence, base, tile, then the table. tile == 0 asks for row_idx(base).
// result: the row, or the rows of the tile. The 8 rows after the last one must stay as they were.
#include <algorithm>

#include "cases.h"
#include "rows.h"

constexpr std::size_t kAround = 16384;

int main() {
  return cases::run([](const cases::Words& words) {
    // Entries around the table, so that a read outside of it gives a block that no sequence owns.
    std::vector<std::uint32_t> table(words.size() - 7 + 2 * kAround, 999999);
    std::copy(words.begin() + 7, words.end(), table.begin() + kAround);
    const PagedCache cache{table.data() + kAround, words[0], words[1], words[2], words[3]};
    const std::int64_t sequence = words[4], base = words[5], tile = words[6];
    if (tile == 0) return cases::Words{row_idx(cache, sequence, base)};
    const std::int64_t parts = tile > cache.page_size ? tile / cache.page_size : 1;
    // Room for a row of each token, so that a populate that writes one does not end the program.
    std::vector<std::uint32_t> rows(static_cast<std::size_t>(tile + 8), 0xeeeeeeee);
    populate(cache, sequence, base, tile, rows.data());
    return cases::Words(rows.begin(), rows.begin() + parts + 8);
  });
}

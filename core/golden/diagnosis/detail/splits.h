// The common ways in which kernels cut the keys of a row into splits, for hypotheses that depend on where a split ends.
//
// Example: 100 keys in pages of 16, 3 splits of whole pages: 7 pages, 3 of them in a split, which has 48 keys. The last
// split has the other 4.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {

struct Splits {
  std::string how;          // "3 splits of whole pages"
  std::int64_t number = 0;  // of splits, some of which may have no keys; 0: splits have a fixed size
  std::int64_t unit = 1;    // [keys] that a split of a fixed number does not cut: 1, those of a page or of a tile
  std::function<std::int64_t(std::int64_t keys)> of_keys;

  // [keys] of a split of a row that sees `keys`; at least 1.
  [[nodiscard]] std::int64_t size(std::int64_t keys) const { return std::max<std::int64_t>(1, of_keys(keys)); }
};

// Of a problem whose longest sequence has `longest` keys.
[[nodiscard]] std::vector<Splits> common_splits(const attention::Problem& problem, std::int64_t longest);

// hypotheses_splits.cpp: where splits begin and end, and splits that are lost.
void add_splits(Trials& trials, const std::vector<Splits>& splits);

}  // namespace kvscope::golden

// Blocks for the pages of a case, as a pager assigns them: no block holds two pages.
#pragma once

#include <cstdint>
#include <set>

namespace kvscope::labs {

// Example: std::set<std::int64_t> used; draw_block(used, [&] { return pick(1, 63); }) is a block that is not in `used`,
// and adds it. Precondition (caller): `draw` returns a block that is not in `used` sooner or later.
template <class Draw>
[[nodiscard]] std::int64_t draw_block(std::set<std::int64_t>& used, Draw&& draw) {
  std::int64_t block = draw();
  while (!used.insert(block).second) block = draw();
  return block;
}

}  // namespace kvscope::labs

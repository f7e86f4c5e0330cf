// Rows of an output on which a test of many elements fails (compare.h): a group of rows, or a direction of a page.
#pragma once

#include <cstdint>

namespace kvscope::golden {

struct FailingGroup {
  std::int64_t sequence = -1, head = -1;  // -1: all
  // For a test of pages, whose rows are those of the sequence's last query: the page whose keys are missing or counted
  // twice, and the page whose keys are in their place; -1: none.
  std::int64_t page = -1, from_page = -1;

  friend bool operator==(const FailingGroup&, const FailingGroup&) = default;
};

}  // namespace kvscope::golden

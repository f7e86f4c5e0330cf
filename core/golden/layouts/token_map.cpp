#include "core/golden/layouts/detail/token_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/checked.h"

namespace kvscope::golden {

std::int64_t TokenMap::tokens() const {
  std::int64_t tokens = 0;
  for (const auto& row : slots) tokens += static_cast<std::int64_t>(row.size());
  return tokens;
}

TokenMap tokens_of(LayoutReader& r, const std::vector<std::int64_t>& queries) {
  constexpr std::size_t kMostFaults = 8;
  const LayoutReader::Pages& pages = r.pages;
  TokenMap map{r.blocks, r.page_size, {}};
  const std::int64_t page = pages.by_token ? 1 : r.page_size;
  const std::int64_t places = pages.by_token ? r.blocks * r.page_size : r.blocks;
  std::size_t bad = 0;
  for (std::size_t b = 0; b < pages.first.size(); ++b) {
    const std::int64_t keys = pages.lengths[b] + (pages.lengths_without_new ? queries[b] : 0);
    map.slots.emplace_back();
    if (ceil_div(keys, page) > pages.columns[b]) {
      r.fault(fmt::format("{}[{}]", pages.lengths_name, b),
              fmt::format("sequence {} has {} keys, which are {} pages of {} tokens, but {} has {} columns", b, keys,
                          ceil_div(keys, page), page, pages.table_name, pages.columns[b]));
      continue;
    }
    for (std::int64_t t = 0; t < keys; ++t) {
      const std::int64_t entry = pages.entries[static_cast<std::size_t>(pages.first[b] + t / page)];
      if (entry < 0 || entry >= places) {
        if (t % page == 0 && ++bad <= kMostFaults) {
          r.fault(pages.table_name,
                  fmt::format("is {} for page {} of sequence {}, outside the {} blocks", entry, t / page, b, places));
        }
        map.slots.back().push_back(0);
        continue;
      }
      map.slots.back().push_back(entry * page + t % page);
    }
  }
  if (bad > kMostFaults) {
    r.fault(pages.table_name, fmt::format("and {} more entries outside the blocks", bad - kMostFaults));
  }
  return map;
}

bool fills_pages(const TokenMap& map, std::int64_t page) {
  if (map.blocks * map.page_size % page != 0) return false;
  for (const auto& row : map.slots) {
    for (std::size_t t = 0; t < row.size(); ++t) {
      const std::size_t first = t - t % static_cast<std::size_t>(page);
      if (row[first] % page != 0 || row[t] != row[first] + static_cast<std::int64_t>(t - first)) return false;
    }
  }
  return true;
}

TokenMap packed(const TokenMap& from, std::int64_t page) {
  TokenMap map{0, page, {}};
  for (const auto& row : from.slots) {
    map.slots.emplace_back(row.size());
    std::iota(map.slots.back().begin(), map.slots.back().end(), map.blocks * page);
    map.blocks += ceil_div(static_cast<std::int64_t>(row.size()), page);
  }
  map.blocks = std::max<std::int64_t>(map.blocks, 1);
  return map;
}

TokenMap in_rows(const TokenMap& from, std::int64_t positions) {
  TokenMap map{static_cast<std::int64_t>(from.slots.size()), positions, {}};
  for (const auto& row : from.slots) {
    map.slots.emplace_back(row.size());
    std::iota(map.slots.back().begin(), map.slots.back().end(),
              static_cast<std::int64_t>(map.slots.size() - 1) * positions);
  }
  return map;
}

}  // namespace kvscope::golden

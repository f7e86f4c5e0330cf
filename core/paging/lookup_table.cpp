#include "core/paging/lookup_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"

namespace kvscope {

Lut build_lookup_table(std::span<const LutRow> rows, const LutLimits& limits,
                       std::optional<std::int64_t> max_cache_length) {
  KVSCOPE_ASSERT(limits.page_size > 0 && limits.blocks >= 0);
  std::vector<Fault> faults;
  const auto batch = static_cast<std::int64_t>(rows.size());
  if (batch > limits.max_batch) {
    faults.push_back({"batch", fmt::format("{} rows, but the table was made for at most {}: raise max_batch", batch,
                                           limits.max_batch)});
  }

  std::int64_t longest = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const LutRow& row = rows[b];
    const std::string where = fmt::format("row {}", b);
    longest = std::max(longest, row.tokens);
    if (row.tokens < 0) faults.push_back({where, fmt::format("{} tokens; a length is 0 or more", row.tokens)});
    if (row.dummy || row.tokens < 0) continue;
    const std::int64_t needed = ceil_div(row.tokens, limits.page_size);
    const auto owned = static_cast<std::int64_t>(row.blocks.size());
    if (owned < needed) {
      faults.push_back({where, fmt::format("{} tokens need {} pages of {}, but it has {}: allocate before the step",
                                           row.tokens, needed, limits.page_size, owned)});
    }
    for (std::int64_t p = 0; p < std::min(needed, owned); ++p) {
      const std::uint32_t block = row.blocks[static_cast<std::size_t>(p)];
      if (block >= limits.blocks) {
        faults.push_back({where, fmt::format("page {} is in block {}, outside [0, {})", p, block, limits.blocks)});
      }
    }
  }

  if (max_cache_length) {
    if (*max_cache_length < 1) {
      faults.push_back({"max_cache_length", fmt::format("{}; at least 1", *max_cache_length)});
    } else if (*max_cache_length < longest) {
      faults.push_back(
          {"max_cache_length", fmt::format("{} is less than the longest row, {} tokens: leave it out or raise it",
                                           *max_cache_length, longest)});
    }
    longest = std::max(longest, *max_cache_length);
  }
  const std::int64_t pages = ceil_div(longest, limits.page_size);
  if (pages > limits.blocks) {
    faults.push_back(
        {"columns", fmt::format("{} tokens are {} pages, but the pool has {} blocks", longest, pages, limits.blocks)});
  }
  if (!faults.empty()) throw GeometryError("lookup table", std::move(faults));

  Lut table;
  table.columns = padded_lut_cols(pages);
  const auto null_page = narrow<std::uint32_t>(limits.blocks, "null page");
  table.entries.assign(static_cast<std::size_t>(checked_mul(batch, table.columns, "lookup table")), null_page);
  for (std::size_t b = 0; b < rows.size(); ++b) {
    if (rows[b].dummy) continue;
    const auto used = static_cast<std::size_t>(ceil_div(rows[b].tokens, limits.page_size));
    std::copy_n(rows[b].blocks.begin(), used, table.entries.begin() + static_cast<std::ptrdiff_t>(b) * table.columns);
  }
  return table;
}

}  // namespace kvscope

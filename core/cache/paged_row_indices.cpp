#include "core/cache/paged_row_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/checked.h"

namespace kvscope {

PopulatePlan populate_plan(std::int64_t BN, std::int64_t page_size, std::optional<std::int64_t> base_alignment) {
  PopulatePlan plan;
  plan.eff_page = kv_sub_tile_rows(BN, page_size);
  plan.num_pages = BN == plan.eff_page ? 1 : kv_num_sub_tiles(BN, page_size);
  if (plan.num_pages > PagedRowIndices::kCapacity) {
    throw GeometryError(
        fmt::format("PagedRowIndices: BN {} over pages of {} is {} sub-tiles, and {} fit: use smaller "
                    "tiles or larger pages",
                    BN, page_size, plan.num_pages, PagedRowIndices::kCapacity));
  }
  if (base_alignment && *base_alignment < 1) {
    throw GeometryError(
        fmt::format("populate: base_alignment {} is not positive: give the number of tokens that "
                    "divides every base, 1 for no guarantee",
                    *base_alignment));
  }
  if (plan.num_pages == 1) {
    plan.base_alignment = base_alignment.value_or(1);
    plan.whole_pages = base_alignment && page_size > 0 && *base_alignment % page_size == 0;
    plan.chunk = plan.reads = 1;
    return plan;
  }
  plan.base_alignment = base_alignment.value_or(BN);
  const std::int64_t promised_pages = plan.base_alignment / page_size;
  plan.chunk = std::min({largest_pow2_divisor(plan.num_pages), largest_pow2_divisor(promised_pages), std::int64_t{8}});
  plan.reads = plan.chunk == 0 ? 0 : plan.num_pages / plan.chunk;
  return plan;
}

PagedRowIndices PagedRowIndices::sub_rows(std::int64_t sub_BN, std::int64_t offset) const {
  const std::int64_t sub_eff = kv_sub_tile_rows(sub_BN, page_size_);
  std::vector<Fault> faults;
  if (BN_ % sub_BN != 0) {
    faults.push_back({"", fmt::format("{} rows do not divide the tile's {}: use a divisor of {}", sub_BN, BN_, BN_)});
  }
  if (offset < 0 || offset > BN_ - sub_BN) {
    faults.push_back({"", fmt::format("rows {} to {} are outside the tile's [0, {}): begin in [0, {}]", offset,
                                      offset + sub_BN, BN_, std::max<std::int64_t>(BN_ - sub_BN, 0))});
  } else if (num_pages_ > 1 && offset % eff_page_ + sub_eff > eff_page_) {
    faults.push_back({"", fmt::format("rows {} to {} cross the end of a page of {}: begin at a multiple of {}", offset,
                                      offset + sub_eff, eff_page_, sub_eff)});
  }
  if (!faults.empty()) throw GeometryError("PagedRowIndices.sub_rows", std::move(faults));

  PagedRowIndices sub(PopulateTile{.BN = sub_BN}, page_size_);
  std::int64_t first = offset;
  for (std::uint32_t& row : sub.rows()) {
    row = get_row(first).value;
    first += sub_eff;
  }
  return sub;
}

}  // namespace kvscope

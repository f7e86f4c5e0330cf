// The physical rows of one V tile: for each sub-tile (a part inside one page), the row of its first token.
//
//   tile of BN = 64 tokens over pages of 16          table row  5 9 2 7 | 1 0 3 8 | ...
//   base token 64 = page 4                                                ^ ^ ^ ^
//   rows[4] = {1*64, 0*64, 3*64, 8*64}                                     64 rows a block
//
// The list always covers the whole range of BN tokens, also when two CTAs share the tile: K's halves and V's sub-tiles
// read the same list.
// One read of the table returns `chunk` entries, so its rows are padded and the base must be aligned.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/base/errors.h"
#include "core/base/index.h"
#include "core/tma/tile_sizes.h"

namespace kvscope {

// The parameters of `populate`, which are in square brackets in the Mojo kernels.
struct PopulateTile {
  std::int64_t BN = 0;  // [tokens] of the V tile
  // Alignment guarantee of the caller (the mask): every base is a multiple of it. Without one, the older contract
  // applies: the base is a multiple of BN when the tile spans pages, and arbitrary inside one page otherwise.
  std::optional<std::int64_t> base_alignment{};
  bool pair_cta = false;  // a tag without effect: two CTAs work on the tile
  bool is_leader = true;
};

// The number of table entries that populate reads, and how many at a time.
//
//   num_pages == 1   BN <= page_size    one entry; `whole_pages`: the guarantee makes the in-page offset 0
//   num_pages  > 1   in-page offset 0   chunk = min(lp2(num_pages), lp2(base_alignment / page_size), 8)
//
// lp2(x): the largest power of two that divides x. chunk == 0: the guarantee is less than a page; populate then throws.
// Example: BN 192, page 16, guarantee 64 -> 12 pages in 3 reads of 4.
struct PopulatePlan {
  std::int64_t eff_page = 0;   // [rows] of a sub-tile
  std::int64_t num_pages = 0;  // sub-tiles
  std::int64_t chunk = 0;      // entries of one read
  std::int64_t reads = 0;
  std::int64_t base_alignment = 0;  // the alignment guarantee in effect; 1 when there is none
  bool whole_pages = false;         // num_pages == 1: base is a multiple of the page
};

// GeometryError when BN is not whole pages, or is more than PagedRowIndices::kCapacity sub-tiles,
// or the alignment guarantee is < 1.
[[nodiscard]] PopulatePlan populate_plan(std::int64_t BN, std::int64_t page_size,
                                         std::optional<std::int64_t> base_alignment);

class PagedRowIndices {
 public:
  // Maximum number of sub-tiles, stored in the object without heap allocation: BN 256 over pages of 1.
  static constexpr std::int64_t kCapacity = 256;

  // Entries are uninitialized until populated. `plan` comes from populate_plan(tile.BN, page_size, ...).
  PagedRowIndices(const PopulateTile& tile, std::int64_t page_size, const PopulatePlan& plan)
      : BN_(tile.BN),
        page_size_(page_size),
        eff_page_(plan.eff_page),
        num_pages_(plan.num_pages),
        pair_cta_(tile.pair_cta),
        is_leader_(tile.is_leader) {}

  // GeometryError as populate_plan.
  PagedRowIndices(const PopulateTile& tile, std::int64_t page_size)
      : PagedRowIndices(tile, page_size, populate_plan(tile.BN, page_size, std::nullopt)) {}

  [[nodiscard]] std::int64_t BN() const { return BN_; }
  [[nodiscard]] std::int64_t page_size() const { return page_size_; }  // 0: no pages
  [[nodiscard]] std::int64_t eff_page() const { return eff_page_; }    // [rows] of a sub-tile
  [[nodiscard]] std::int64_t num_pages() const { return num_pages_; }  // sub-tiles
  [[nodiscard]] bool pair_cta() const { return pair_cta_; }
  [[nodiscard]] bool is_leader() const { return is_leader_; }
  [[nodiscard]] int cta_group() const { return pair_cta_ ? 2 : 1; }

  [[nodiscard]] std::span<const std::uint32_t> rows() const {  // [num_pages]
    return {rows_.data(), static_cast<std::size_t>(num_pages_)};
  }
  [[nodiscard]] std::span<std::uint32_t> rows() { return {rows_.data(), static_cast<std::size_t>(num_pages_)}; }

  // Row of the token at `offset` in the tile. IndexError outside [0, BN). With more than one sub-tile the base is on a
  // page boundary, so a sub-tile and a page are the same run of tokens.
  // Example: rows {64,0,192,512}, page 16: get_row(20) == 4, get_row(63) == 527.
  [[nodiscard]] RowIdx get_row(std::int64_t offset) const {
    check_index("PagedRowIndices: row", offset, BN_, "a tile has BN rows");
    const auto page = static_cast<std::size_t>(offset / eff_page_);
    return RowIdx{rows_[page] + static_cast<std::uint32_t>(offset % eff_page_)};
  }

  // The list of a smaller tile that begins `offset` rows into this one. GeometryError unless sub_BN divides BN, the
  // smaller tile is inside this one, and each of its sub-tiles is in one page. Example: rows {64,0,192,512}:
  // sub_rows(32, 16) is {0,192}.
  [[nodiscard]] PagedRowIndices sub_rows(std::int64_t sub_BN, std::int64_t offset) const;
  template <std::int64_t SubBN>
  [[nodiscard]] PagedRowIndices sub_rows(std::int64_t offset) const {
    return sub_rows(SubBN, offset);
  }

 private:
  std::int64_t BN_;
  std::int64_t page_size_;
  std::int64_t eff_page_;
  std::int64_t num_pages_;
  bool pair_cta_;
  bool is_leader_;
  std::array<std::uint32_t, kCapacity> rows_;  // not initialized: filling 1 KiB would cost more than a populate
};
static_assert(std::is_trivially_copyable_v<PagedRowIndices> && std::is_trivially_destructible_v<PagedRowIndices>);

// Implementation for caches without a table: row_idx of each sub-tile's first token. Needs no alignment.
template <class Rows>
[[nodiscard]] PagedRowIndices populate_by_row_idx(const Rows& source, const PopulateTile& tile, std::int64_t page_size,
                                                  SeqIdx seq, TokIdx base) {
  PagedRowIndices result(tile, page_size);
  std::int64_t token = 0;
  for (std::uint32_t& row : result.rows()) {
    row = source.row_idx(seq, base + token).value;
    token += result.eff_page();
  }
  return result;
}

}  // namespace kvscope

#include "core/staging/tma/kv_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/tma/tile_sizes.h"

namespace kvscope {

namespace {

// The parameters that differ between K, a peer's K and a sub-tile of V.
struct Part {
  KOrV operand;
  HeadIdx head;
  DimIdx depth_offset;
  std::int64_t tile_rows, first_page, extra_row, chunk_stride, default_valid;
  bool needs_partial;
  std::optional<std::int64_t> valid_pages;
  bool none_is_legal;  // no valid page at all
  bool oob_fill_pages;
};

bool is_folded(TmaKind kind) {
  return kind == TmaKind::fold_outer || kind == TmaKind::fold_inner;
}

// Rows and chunks of columns of one box of the tile.
std::int64_t box_rows(const TmaTile& tile) {
  switch (tile.kind) {
    case TmaKind::fold_outer:
      return tile.box[2];
    case TmaKind::fold_inner:
      return tile.box[1] * tile.box[3];
    default:
      return tile.box[0];
  }
}
std::int64_t rows_of_map(const TmaTile& tile) {
  switch (tile.kind) {
    case TmaKind::fold_outer:
      return tile.dims[2];
    case TmaKind::fold_inner:
      return tile.dims[1];  // groups of 8, the unit of the coordinate
    default:
      return tile.dims[0];
  }
}

// The faults of one copy, gathered.
class Faults {
 public:
  void require(bool holds, std::string_view where, std::string message) {
    if (!holds) faults_.push_back({std::string(where), std::move(message)});
  }
  void throw_if_any(KOrV operand) {
    if (!faults_.empty()) {
      throw GeometryError(fmt::format("TMA copy of {}", operand == KOrV::k ? "K" : "V"), std::move(faults_));
    }
  }

 private:
  std::vector<Fault> faults_;
};

void require_fold(Faults& faults, const TmaTile& tile, const KvCopy& copy) {
  const auto folds = tile.kind == TmaKind::fold_outer ? tile.box[1] : tile.box[2];
  faults.require(
      folds == copy.chunks, "fold",
      fmt::format("{} chunks in one box, but the tile has {}: fold all of them or none", folds, copy.chunks));
  if (tile.kind == TmaKind::fold_outer) {
    faults.require(
        copy.pages == 1, "fold",
        fmt::format("{} pages in the tile: chunks outside the rows leave no room for a second page: fold inside "
                    "8-row groups (row_major)",
                    copy.pages));
    faults.require(copy.issue_rows == copy.chunk_stride, "fold",
                   fmt::format("{} rows of a box, but {} from chunk to chunk: they must be the same", copy.issue_rows,
                               copy.chunk_stride));
  } else {
    faults.require(copy.issue_rows % 8 == 0, "fold",
                   fmt::format("{} rows of a box are not whole groups of 8: use {}", copy.issue_rows,
                               round_up(copy.issue_rows, 8)));
  }
}

// One box: its destination and its coordinates.
KvIssue issue_of(const TmaTile& tile, const KvCopy& copy, const Part& part, std::int64_t page, std::int64_t chunk,
                 std::int64_t row) {
  KvIssue issue;
  issue.page = page;
  issue.chunk = chunk;
  issue.filled = page >= copy.valid_pages;
  issue.row = issue.filled ? kKvFillRow : row;
  issue.bytes = tile.box_bytes();
  switch (tile.kind) {
    case TmaKind::fold_inner:
      issue.smem = page * copy.chunks * copy.issue_rows * copy.gran;
      break;
    case TmaKind::fold_outer:
      issue.smem = page * copy.issue_rows * copy.gran;
      break;
    default:
      issue.smem = (chunk * copy.chunk_stride + page * copy.issue_rows) * copy.gran;
      break;
  }
  const DimIdx depth = part.depth_offset + chunk * copy.gran;
  // Rows of a folded map come in groups of 8: 2^30 is then the group.
  const bool groups = tile.kind == TmaKind::fold_inner;
  issue.at = tile_coords(tile, groups && issue.filled ? 8 * kKvFillRow : issue.row, part.head, depth);
  return issue;
}

KvCopy copy_of(const TmaTile& tile, const PagedRowIndices& rows, const Part& part) {
  if (tile.kind != TmaKind::plain && tile.kind != TmaKind::rope && !is_folded(tile.kind)) {
    throw UnsupportedError(fmt::format("TMA copy of {}: a {} tile: use a plain or a folded one (create_tma_tile)",
                                       part.operand == KOrV::k ? "K" : "V", name(tile.kind)));
  }
  check_index("head", part.head.value, tile.heads);
  KvCopy copy;
  copy.operand = part.operand;
  copy.kind = tile.kind;
  copy.swizzle = tile.swizzle;
  copy.element_bytes = size_of(tile.dtype);
  copy.tile_rows = part.tile_rows;
  copy.issue_rows = kv_sub_tile_rows(part.tile_rows, rows.page_size());
  copy.pages = part.tile_rows / copy.issue_rows;
  copy.gran = tile.box.fastest();
  copy.chunks = ceil_div(tile.columns, copy.gran);
  copy.chunk_stride = part.chunk_stride;
  copy.depth_offset = part.depth_offset.value;
  copy.cta_group = rows.cta_group();
  copy.valid_pages = part.needs_partial ? part.valid_pages.value_or(part.default_valid) : copy.pages;

  Faults faults;
  faults.require(
      part.tile_rows % copy.issue_rows == 0, "BN",
      fmt::format("{} rows are not whole pages of {}: rows past the last whole page would not be copied: use a "
                  "page that divides them",
                  part.tile_rows, copy.issue_rows));
  faults.require(copy.chunk_stride >= part.tile_rows, "smem_BN",
                 fmt::format("{} rows from chunk to chunk are less than the tile's {}: chunks would overlap",
                             copy.chunk_stride, part.tile_rows));
  faults.require(box_rows(tile) == copy.issue_rows, "box",
                 fmt::format("{} rows in the tile's box, but one issue brings {}: make the tile with BN {}",
                             box_rows(tile), copy.issue_rows, copy.issue_rows));
  faults.require(
      part.depth_offset.value >= 0 && part.depth_offset.value % copy.gran == 0, "depth_offset",
      fmt::format("{} is not a multiple of {}, the columns of one chunk: use {}", part.depth_offset.value, copy.gran,
                  std::max<std::int64_t>(0, floor_div(part.depth_offset.value, copy.gran) * copy.gran)));
  faults.require(copy.valid_pages >= (part.none_is_legal ? 0 : 1) && copy.valid_pages <= copy.pages, "valid_pages",
                 fmt::format("{} is outside {} to {}", copy.valid_pages, part.none_is_legal ? 0 : 1, copy.pages));
  faults.require(
      !part.oob_fill_pages || rows_of_map(tile) <= kKvFillRow, "oob_fill_pages",
      fmt::format("{} rows in the map: row 2^30, where fill is fetched from, is one of them: use fewer blocks",
                  rows_of_map(tile)));
  if (is_folded(tile.kind)) require_fold(faults, tile, copy);
  faults.throw_if_any(part.operand);

  const std::int64_t pages_issued = part.needs_partial && !part.oob_fill_pages ? copy.valid_pages : copy.pages;
  for (std::int64_t page = 0; page < pages_issued; ++page) {
    const std::int64_t first = part.first_page + page;
    const std::int64_t row =
        page < copy.valid_pages ? rows.rows()[static_cast<std::size_t>(first)] + part.extra_row : kKvFillRow;
    for (std::int64_t chunk = 0; chunk < (is_folded(tile.kind) ? 1 : copy.chunks); ++chunk) {
      copy.issues.push_back(issue_of(tile, copy, part, page, chunk, row));
      copy.expected_bytes += copy.issues.back().bytes;
    }
  }
  return copy;
}

// The issue of page `page`, if it was copied.
std::int64_t issue_number(const KvCopy& copy, std::int64_t page, std::int64_t chunk) {
  const std::int64_t number = is_folded(copy.kind) ? page : page * copy.chunks + chunk;
  return number < static_cast<std::int64_t>(copy.issues.size()) ? number : -1;
}

}  // namespace

std::int64_t KvCopy::smem_elements() const {
  return kind == TmaKind::fold_inner || kind == TmaKind::matrix ? tile_rows * chunks * gran
                                                                : ((chunks - 1) * chunk_stride + tile_rows) * gran;
}

KvCopy tma_copy_k(const TmaTile& tile, const PagedRowIndices& rows, const KCopyOptions& options) {
  const bool peer = rows.pair_cta() && !rows.is_leader();
  const bool pages_shared = rows.pair_cta() && rows.num_pages() >= 2;
  Faults faults;
  faults.require(!pages_shared || rows.num_pages() % 2 == 0, "BN",
                 fmt::format("{} pages cannot be shared by two CTAs: use an even number", rows.num_pages()));
  faults.require(!rows.pair_cta() || rows.BN() % 2 == 0, "BN",
                 fmt::format("{} rows cannot be shared by two CTAs: use an even number", rows.BN()));
  faults.throw_if_any(KOrV::k);
  return copy_of(tile, rows,
                 {.operand = KOrV::k,
                  .head = options.head,
                  .depth_offset = options.depth_offset,
                  .tile_rows = rows.pair_cta() ? rows.BN() / 2 : rows.BN(),
                  .first_page = peer && pages_shared ? rows.num_pages() / 2 : 0,
                  .extra_row = peer && !pages_shared ? rows.BN() / 2 : 0,
                  .chunk_stride = options.smem_BN.value_or(rows.BN()),
                  .default_valid = std::max<std::int64_t>(1, rows.num_pages() / (rows.pair_cta() ? 2 : 1)),
                  .needs_partial = options.needs_partial,
                  .valid_pages = options.valid_pages,
                  .none_is_legal = peer,
                  .oob_fill_pages = false});
}

KvCopy tma_copy_v(const TmaTile& tile, const PagedRowIndices& rows, const VCopyOptions& options) {
  const std::int64_t parts = options.num_v_sub_tiles;
  Faults faults;
  faults.require(parts >= 1, "num_v_sub_tiles", fmt::format("{} is not positive: give 1 or more", parts));
  faults.throw_if_any(KOrV::v);
  check_index("v_idx", options.v_idx, parts, "one of num_v_sub_tiles");
  const std::int64_t pages = rows.num_pages();
  faults.require(rows.BN() % parts == 0, "num_v_sub_tiles",
                 fmt::format("{} do not divide {} rows: use a divisor", parts, rows.BN()));
  faults.require(
      pages == 1 || pages % parts == 0, "num_v_sub_tiles",
      fmt::format("{} do not divide {} pages: a sub-tile would end inside a page and read the rows behind it: "
                  "use a divisor",
                  parts, pages));
  faults.throw_if_any(KOrV::v);
  const std::int64_t tile_rows = rows.BN() / parts;
  const bool whole_pages = pages >= parts;
  return copy_of(
      tile, rows,
      {.operand = KOrV::v,
       .head = options.head,
       .depth_offset = options.depth_offset,
       .tile_rows = tile_rows,
       .first_page = whole_pages ? options.v_idx * (tile_rows / kv_sub_tile_rows(tile_rows, rows.page_size())) : 0,
       .extra_row = whole_pages ? 0 : options.v_idx * tile_rows,
       .chunk_stride = tile_rows,
       .default_valid = std::max<std::int64_t>(1, pages / parts),
       .needs_partial = options.needs_partial,
       .valid_pages = options.valid_pages,
       .none_is_legal = true,
       .oob_fill_pages = options.oob_fill_pages});
}

KvCopy tma_copy_gather4(const TmaTile& tile, KOrV operand, const std::vector<std::int32_t>& rows, HeadIdx head,
                        std::int64_t head_size, DimIdx depth_offset, bool oob_fill_rows) {
  Faults faults;
  faults.require(tile.kind == TmaKind::gather4, "tile",
                 fmt::format("a {} tile: use create_gather4_tma_tile", name(tile.kind)));
  faults.throw_if_any(operand);
  KvCopy copy;
  copy.operand = operand;
  copy.kind = tile.kind;
  copy.swizzle = tile.swizzle;
  copy.element_bytes = size_of(tile.dtype);
  copy.tile_rows = copy.chunk_stride = tile.tile_shape[0];
  copy.issue_rows = kGatheredRows;
  copy.pages = copy.tile_rows / kGatheredRows;
  copy.gran = tile.box.fastest();
  copy.chunks = ceil_div(tile.columns, copy.gran);
  copy.depth_offset = depth_offset.value;
  faults.require(!rows.empty() && std::ssize(rows) <= copy.tile_rows, "rows",
                 fmt::format("{} rows are outside 1 to {}, the rows of the tile", rows.size(), copy.tile_rows));
  faults.require(
      depth_offset.value >= 0 && depth_offset.value + copy.chunks * copy.gran <= head_size, "depth",
      fmt::format("columns {} to {} do not fit a head of {}: the map has no heads, so the next head's columns "
                  "would be copied: use a narrower swizzle or tile",
                  depth_offset.value, depth_offset.value + copy.chunks * copy.gran - 1, head_size));
  faults.throw_if_any(operand);
  copy.valid_pages = ceil_div(static_cast<std::int64_t>(rows.size()), kGatheredRows);
  for (std::int64_t page = 0; page < (oob_fill_rows ? copy.pages : copy.valid_pages); ++page) {
    std::array<std::int32_t, kGatheredRows> four{};
    for (std::int64_t i = 0; i < kGatheredRows; ++i) {
      const std::int64_t row = page * kGatheredRows + i;
      four[static_cast<std::size_t>(i)] = row < std::ssize(rows) ? rows[static_cast<std::size_t>(row)] : -1;
    }
    for (std::int64_t chunk = 0; chunk < copy.chunks; ++chunk) {
      const auto column =
          narrow<std::int32_t>(head.value * head_size + depth_offset.value + chunk * copy.gran, "column");
      copy.issues.push_back({.smem = (chunk * copy.chunk_stride + page * kGatheredRows) * copy.gran,
                             .at = {column, four[0], four[1], four[2], four[3]},
                             .bytes = kGatheredRows * tile.box_bytes(),
                             .page = page,
                             .chunk = chunk,
                             .row = four[0],
                             .filled = page >= copy.valid_pages});
      copy.expected_bytes += copy.issues.back().bytes;
    }
  }
  return copy;
}

KvCopy tma_copy_matrix(const TmaTile& tile, KOrV operand, RowIdx row, HeadIdx head, DimIdx depth_offset) {
  Faults faults;
  faults.require(
      tile.kind == TmaKind::matrix, "tile",
      fmt::format("a {} tile: use create_tma_tile(tile_m, tile_n, ..) of a continuous cache", name(tile.kind)));
  faults.require(depth_offset.value >= 0, "depth_offset",
                 fmt::format("{} is below 0: use a column of the head", depth_offset.value));
  faults.throw_if_any(operand);
  check_index("head", head.value, tile.heads);
  KvCopy copy;
  copy.operand = operand;
  copy.kind = tile.kind;
  copy.swizzle = tile.swizzle;
  copy.element_bytes = size_of(tile.dtype);
  copy.tile_rows = tile.tile_shape[0];
  copy.issue_rows = tile.box[0];
  copy.pages = copy.valid_pages = copy.tile_rows / copy.issue_rows;
  copy.gran = tile.box[1];
  copy.chunks = tile.columns / copy.gran;
  copy.chunk_stride = copy.issue_rows;
  copy.depth_offset = depth_offset.value;
  for (const MatrixBox& box : matrix_boxes(tile)) {
    const std::int64_t first = row.value + box.row_offset;
    copy.issues.push_back({.smem = box.smem_offset,
                           .at = tile_coords(tile, first, head, depth_offset + box.column_offset),
                           .bytes = tile.box_bytes(),
                           .page = box.row_offset / copy.issue_rows,
                           .chunk = box.column_offset / copy.gran,
                           .row = first});
    copy.expected_bytes += tile.box_bytes();
  }
  return copy;
}

std::int64_t kv_smem_offset(const KvCopy& copy, std::int64_t row, std::int64_t depth) {
  check_index("row of the tile", row, copy.tile_rows);
  check_index("column of the tile", depth, copy.chunks * copy.gran);
  const std::int64_t chunk = depth / copy.gran, column = depth % copy.gran;
  if (copy.kind == TmaKind::matrix)
    return ((row / copy.issue_rows * copy.chunks + chunk) * copy.issue_rows + row % copy.issue_rows) * copy.gran +
           column;
  if (copy.kind != TmaKind::fold_inner) return (chunk * copy.chunk_stride + row) * copy.gran + column;
  const std::int64_t page = row / copy.issue_rows, r = row % copy.issue_rows;
  return ((page * copy.issue_rows + r / 8 * 8) * copy.chunks + chunk * 8 + r % 8) * copy.gran + column;
}

std::optional<KvElement> kv_element_at(const KvCopy& copy, std::int64_t smem) {
  if (smem < 0 || smem >= copy.smem_elements()) return std::nullopt;
  KvElement element;
  const std::int64_t line = smem / copy.gran;  // of gran columns
  std::int64_t chunk = 0;
  if (copy.kind == TmaKind::fold_inner || copy.kind == TmaKind::matrix) {
    const std::int64_t group_rows = copy.kind == TmaKind::matrix ? copy.issue_rows : 8;
    const std::int64_t group = line / (group_rows * copy.chunks);
    chunk = line / group_rows % copy.chunks;
    element.row = group * group_rows + line % group_rows;
  } else {
    chunk = line / copy.chunk_stride;
    element.row = line % copy.chunk_stride;
    if (element.row >= copy.tile_rows) return std::nullopt;
  }
  element.depth = chunk * copy.gran + smem % copy.gran;
  element.page = element.row / copy.issue_rows;
  element.issue = issue_number(copy, element.page, chunk);
  if (element.issue < 0) {
    element.matrix_row = -1;
    return element;
  }
  const KvIssue& issue = copy.issues[static_cast<std::size_t>(element.issue)];
  const std::int64_t row = element.row % copy.issue_rows;
  element.matrix_row = copy.kind == TmaKind::gather4 ? issue.at.at[static_cast<std::size_t>(1 + row)] : issue.row + row;
  return element;
}

}  // namespace kvscope

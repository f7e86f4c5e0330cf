#include "core/staging/tma/tma_staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/fragment/fp8_v.h"
#include "core/staging/lane_registers.h"
#include "core/staging/tma/kv_arrival.h"
#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"

namespace kvscope {
namespace {

constexpr std::int64_t kDst = 0;  // a multiple of every swizzle's period

std::int64_t valid_pages(const StagedTile& tile, std::int64_t BN, std::int64_t issue_rows) {
  const std::int64_t tokens = std::clamp<std::int64_t>(tile.tokens - tile.first_token.value, 0, BN);
  return ceil_div(tokens, issue_rows);
}

std::string name_of(const StagedTile& tile) {
  return fmt::format("{}, layer {}", tile.kv == KOrV::k ? "K" : "V", tile.layer.value);
}

}  // namespace

std::int64_t tma_columns(const Scenario& scenario) {
  const auto whole = [&](std::int64_t columns) {
    return padded_depth(scenario.cache.dtype, scenario.tile.swizzle, columns);
  };
  return std::min(whole(scenario.tile.BK), whole(scenario.model.head_size));
}

DimIdx tma_depth_offset(const Scenario& scenario, DimIdx dim) {
  return DimIdx{dim.value - dim.value % tma_columns(scenario)};
}

TmaStaging::TmaStaging(const Scenario& scenario, const StepCache& cache, const StagedTile& tile, DimIdx depth_offset,
                       TmaBoxes boxes) {
  if (boxes == TmaBoxes::gather4) {
    gather_rows(scenario, cache, tile, depth_offset);
  } else {
    copy_pages(scenario, cache, tile, boxes == TmaBoxes::rope ? DimIdx{0} : depth_offset, boxes);
  }
  require_destinations();
  choose_piece(tile.kv);
}

void TmaStaging::copy_pages(const Scenario& scenario, const StepCache& cache, const StagedTile& tile,
                            DimIdx depth_offset, TmaBoxes boxes) {
  const TileGeometry& geometry = scenario.tile;
  const std::int64_t page = std::holds_alternative<PagedKVCache>(cache) ? scenario.cache.page_size : 0;
  PopulateTile populate{.BN = geometry.BN};
  if (geometry.base_alignment > 0) populate.base_alignment = geometry.base_alignment;
  TileOptions options;
  options.mode = geometry.swizzle;
  options.BN = kv_sub_tile_rows(geometry.BN, page);
  options.BK = tma_columns(scenario);
  const RopeOptions rope{.mode = options.mode, .BN = options.BN, .padded_depth = scenario.model.value_size};
  const auto rows_and_tile = std::visit(
      [&](const auto& c) {
        return std::pair{c.populate(populate, tile.batch_row, tile.first_token),
                         boxes == TmaBoxes::rope ? c.create_rope_tma_tile(rope) : c.create_tma_tile(options)};
      },
      cache);
  const std::int64_t pages = valid_pages(tile, geometry.BN, options.BN);
  if (tile.kv == KOrV::k) {
    copy_ = tma_copy_k(rows_and_tile.second, rows_and_tile.first,
                       {.head = tile.head, .depth_offset = depth_offset, .needs_partial = true, .valid_pages = pages});
  } else {
    copy_ = tma_copy_v(rows_and_tile.second, rows_and_tile.first,
                       {.head = tile.head,
                        .depth_offset = depth_offset,
                        .needs_partial = true,
                        .valid_pages = pages,
                        .oob_fill_pages = true});
  }
  map_ = tensor_map_of(name_of(tile), rows_and_tile.second);
}

void TmaStaging::gather_rows(const Scenario& scenario, const StepCache& cache, const StagedTile& tile,
                             DimIdx depth_offset) {
  const ModelGeometry& model = scenario.model;
  const std::int64_t BN = scenario.tile.BN;
  const TmaTile map = std::visit(
      [&](const auto& c) {
        return c.create_gather4_tma_tile({.tile_height = BN,
                                          .tile_width = tma_columns(scenario),
                                          .tile_stride = model.kv_heads * model.head_size,
                                          .mode = scenario.tile.swizzle});
      },
      cache);
  std::vector<std::int32_t> rows;
  const std::int64_t end = std::min(tile.first_token.value + BN, tile.tokens);
  for (TokIdx token = tile.first_token; token.value < end; ++token) {
    const RowIdx row = std::visit([&](const auto& c) { return c.row_idx(tile.batch_row, token); }, cache);
    rows.push_back(narrow<std::int32_t>(row.value, "TMA coordinate"));
  }
  copy_ = tma_copy_gather4(map, tile.kv, rows, tile.head, model.head_size, depth_offset, tile.kv == KOrV::v);
  map_ = tensor_map_of(name_of(tile), map, TmaTarget::sm_100);
}

// Every box is a separate copy, whose destination must have the instruction's alignment.
void TmaStaging::require_destinations() const {
  constexpr std::int64_t kAlignment = 128;  // [bytes]
  for (const KvIssue& issue : copy_.issues) {
    const std::int64_t at = issue.smem * copy_.element_bytes;
    if (at % kAlignment == 0) continue;
    throw GeometryError(
        fmt::format("a box of {} rows of {} B would begin at shared byte {}, which is not a multiple of {} B: "
                    "choose a wider swizzle or larger pages",
                    copy_.issue_rows, copy_.gran * copy_.element_bytes, at, kAlignment));
  }
}

void TmaStaging::choose_piece(KOrV kv) {
  const int bytes = static_cast<int>(copy_.element_bytes);
  if (bytes > 2) {
    no_fragments_ =
        fmt::format("mma.sync reads elements of 8 and 16 bits, and these have {}: a kernel converts them", 8 * bytes);
    return;
  }
  if (kv == KOrV::k) {
    use_ = LdmatrixUse::k_as_b;
  } else {
    use_ = bytes == 2 ? LdmatrixUse::v_as_b : LdmatrixUse::v_fp8;
  }
  FragmentMap piece = use_ == LdmatrixUse::v_fp8 ? fp8_v_map() : ldmatrix_map(use_, bytes);
  const FragmentInfo& info = piece.info();
  if (rows() % info.rows != 0 || columns() % info.columns != 0) {
    no_fragments_ = fmt::format("ldmatrix.x4 reads pieces of {} keys x {} elements, and the tile is {} x {}", info.rows,
                                info.columns, rows(), columns());
    return;
  }
  piece_ = std::move(piece);
}

std::int64_t TmaStaging::shared_address(std::int64_t row, std::int64_t column) const {
  return kv_shared_address(copy_, kDst, row, column);
}

std::optional<KvElement> TmaStaging::element_at(std::int64_t shared_address) const {
  check_index("shared address", shared_address, shared_bytes(), "bytes of the staged tile");
  return kv_element_at_address(copy_, kDst, shared_address);
}

std::int64_t TmaStaging::down() const {
  return rows() / piece_->info().rows;
}
std::int64_t TmaStaging::along() const {
  return columns() / piece_->info().columns;
}
std::int64_t TmaStaging::of_piece() const {
  return piece_->info().elements / piece_->info().elements_per_register;
}
std::int64_t TmaStaging::pieces() const {
  return down() * along();
}
bool TmaStaging::whole() const {
  return pieces() * of_piece() <= kLaneRegisters;
}

// K is contracted over its columns, V over its rows.
std::int64_t TmaStaging::steps() const {
  if (whole()) return 1;
  return copy_.operand == KOrV::k ? along() : down();
}
std::int64_t TmaStaging::across() const {
  return copy_.operand == KOrV::k ? down() : along();
}
std::int64_t TmaStaging::warps() const {
  return whole() ? 1 : ceil_div(across(), kLaneRegisters / of_piece());
}
std::int64_t TmaStaging::of_warp() const {
  return ceil_div(across(), warps());
}
std::int64_t TmaStaging::registers() const {
  return (whole() ? pieces() : of_warp()) * of_piece();
}

TmaStaging::Register TmaStaging::register_of(std::int64_t row, std::int64_t column) const {
  check_index("row", row, rows(), "rows of the tile");
  check_index("column", column, columns(), "columns of the tile");
  const FragmentInfo& info = piece_->info();
  const TmaRead from = read(row / info.rows * along() + column / info.columns);
  const FragmentPlace place =
      piece_->fragment_of({static_cast<int>(row % info.rows), static_cast<int>(column % info.columns)});
  return {place.lane, from.first_register + piece_->register_of(place.element),
          place.element % info.elements_per_register * (32 / info.elements_per_register), from.step, from.warp};
}

std::vector<TilePlace> TmaStaging::elements_at(int lane, std::int64_t index, std::int64_t step,
                                               std::int64_t warp) const {
  const FragmentInfo& info = piece_->info();
  check_index("lane", lane, info.lanes, "lanes of a warp");
  check_index("register", index, registers(),
              whole() ? "32-bit registers of the whole tile" : "32-bit registers of a k-step");
  check_index("k-step", step, steps(), "k-steps of the tile");
  std::int64_t piece = index / of_piece();
  if (!whole()) {
    if (warps() > 1) check_index("warp", warp, warps(), "warps that share the pieces of a k-step");
    const std::int64_t first = warps() > 1 ? warp * of_warp() : 0;
    check_index("register", index, (across() - first) * of_piece(), "32-bit registers that this warp loads");
    const std::int64_t a = first + piece;
    piece = copy_.operand == KOrV::k ? a * along() + step : step * along() + a;
  }
  const auto row = static_cast<int>(piece / along() * info.rows);
  const auto column = static_cast<int>(piece % along() * info.columns);
  std::vector<TilePlace> elements;
  for (int e = 0; e < info.elements_per_register; ++e) {
    const int element = static_cast<int>(index % of_piece()) * info.elements_per_register + e;
    const TilePlace place = piece_->tile_of({lane, element});
    elements.push_back({row + place.row, column + place.column});
  }
  return elements;
}

TmaRead TmaStaging::read(std::int64_t piece) const {
  check_index("piece", piece, pieces(), "reads of the tile");
  const FragmentInfo& info = piece_->info();
  TmaRead read;
  read.piece = piece;
  read.row = piece / along() * info.rows;
  read.column = piece % along() * info.columns;
  read.first_register = piece * of_piece();
  if (!whole()) {
    const bool is_k = copy_.operand == KOrV::k;
    const std::int64_t a = is_k ? piece / along() : piece % along();
    read.step = is_k ? piece % along() : piece / along();
    read.warp = a / of_warp();
    read.first_register = a % of_warp() * of_piece();
  }
  for (int lane = 0; lane < info.lanes; ++lane) {
    const TilePlace at = ldmatrix_row(use_, static_cast<int>(copy_.element_bytes), lane);
    read.addresses.push_back(shared_address(read.row + at.row, read.column + at.column));
  }
  return read;
}

std::vector<TmaRead> TmaStaging::reads() const {
  std::vector<TmaRead> reads;
  for (std::int64_t piece = 0; piece < pieces(); ++piece) reads.push_back(read(piece));
  std::ranges::stable_sort(reads, {}, &TmaRead::step);
  return reads;
}

BankReport bank_report(const TmaRead& read) {
  static const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 4);
  return bank_report(profile, {16, {read.addresses.begin(), read.addresses.end()}});
}

}  // namespace kvscope

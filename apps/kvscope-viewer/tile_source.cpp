#include "apps/kvscope-viewer/tile_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/cache/mha_operands.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_staging.h"
#include "core/staging/staging_events.h"
#include "core/staging/tma/eligibility.h"
#include "core/staging/tma/tma_staging.h"
#include "core/tma/tensor_map_rules.h"
#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"

namespace kvscope::apps {
namespace {

using viz::TilePath;

TmaBoxes boxes_of(TilePath path) {
  return path == TilePath::gather4 ? TmaBoxes::gather4 : path == TilePath::rope ? TmaBoxes::rope : TmaBoxes::pages;
}

// The axis that a fault's place names; the rules of a tile are about its columns or its rows.
std::optional<std::int64_t> axis_of(std::string_view where, std::int64_t axes) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kFields = {
      {{"elementStrides[", 0}, {"strides[", 1}, {"dims[", 0}, {"box[", 0}}};
  for (const auto& [field, first] : kFields) {
    if (where.starts_with(field) && where.size() > field.size()) return first + (where[field.size()] - '0');
  }
  for (const char* columns : {"BK", "tile_width", "tile_stride", "padded_depth", "depth", "depth_offset"}) {
    if (where == columns) return 0;
  }
  if (where == "heads") return axes > 2 ? 1 : 0;
  for (const char* rows : {"BN", "box", "tile_height", "page_size", "smem_BN", "rows", "valid_pages"}) {
    if (where == rows) return axes - 1;
  }
  return std::nullopt;
}

std::string place_of(std::string_view where) {
  for (const auto& [field, words] : std::initializer_list<std::pair<std::string_view, const char*>>{
           {"elementStrides[", "element stride"}, {"strides[", "stride"}, {"dims[", "extent"}, {"box[", "box"}}) {
    if (where.starts_with(field)) return words;
  }
  return where == "base" ? "base address" : std::string(where);
}

bool is_map_rule(const Fault& fault) {
  return fault.where.ends_with(')') && fault.where.find(" (V") != std::string::npos;
}

class SourceFinder {
 public:
  SourceFinder(const Scenario& scenario, const CacheState& state, const viz::TileRequest& request)
      : scenario_(scenario),
        state_(state),
        request_(request),
        cache_(scenario, state, request.kv, request.layer),
        tile_(tile_of(request.path)) {}

  viz::TileSource find() {
    source_.path = request_.path;
    source_.dtype = std::string(name(request_.path == TilePath::rope ? DType::bf16 : scenario_.cache.dtype));
    std::vector<Fault> faults = faults_on(request_.path);
    if (request_.path != TilePath::lds) plan_map(!faults.empty());
    for (const Fault& fault : faults) {
      if (source_.map && is_map_rule(fault) && broken_) continue;  // plan_map() has it, with its axis
      const std::int64_t axes = source_.map ? std::ssize(source_.map->axes) : 0;
      source_.faults.push_back(
          {axes > 0 ? axis_of(fault.where, axes) : std::nullopt, place_of(fault.where), fault.message});
    }
    offers();
    for (const EngineVerdict& verdict : tma_eligibility(scenario_)) {
      const auto broken = std::ranges::find(verdict.rules, false, &EngineRule::holds);
      source_.engines.push_back(
          {fmt::format("{}, {}", verdict.engine, verdict.kernel), verdict.takes_tma(),
           broken == verdict.rules.end() ? std::string() : fmt::format("{}: {}", broken->condition, broken->numbers)});
    }
    scales();
    row_bytes();
    return std::move(source_);
  }

 private:
  [[nodiscard]] StagedTile tile_of(TilePath path) const {
    const auto found = std::ranges::find(state_.batch, request_.seq);
    if (found == state_.batch.end()) {
      throw IndexError(fmt::format("sequence {} is not in the batch of step {}: choose one that the step computes",
                                   request_.seq.value, state_.step.value));
    }
    const SeqIdx row{found - state_.batch.begin()};
    const StagingPath staging = path == TilePath::lds ? StagingPath::lds : StagingPath::tma;
    const std::int64_t BN = tile_tokens(scenario_, staging, request_.kv);
    return {row, request_.layer, request_.head, request_.kv, tile_start(request_.token, BN), tokens_of(state_, row)};
  }

  [[nodiscard]] TmaStaging staging_on(TilePath path) const {
    return {scenario_, cache_.cache(), tile_of(path), tma_depth_offset(scenario_, request_.dim), boxes_of(path)};
  }

  // Why the path cannot take the tile; empty: it can.
  [[nodiscard]] std::vector<Fault> faults_on(TilePath path, std::int64_t* copies = nullptr) const {
    if (scenario_.model.is_mla && request_.kv == KOrV::v) {
      return {{"", "an MLA cache has no V: its values are the first columns of K, so stage K"}};
    }
    try {
      if (path == TilePath::lds) {
        (void)LdsStaging(lds_params(scenario_, request_.kv), cache_.cache(), tile_of(path));
      } else {
        const TmaStaging staging = staging_on(path);
        if (copies != nullptr) *copies = std::ssize(staging.copy().issues);
      }
    } catch (const GeometryError& error) {
      return error.faults();
    } catch (const UnsupportedError& error) {
      return {{"", error.what()}};
    } catch (const OverflowError& error) {
      return {{"", error.what()}};
    }
    return {};
  }

  // The map of the tile. One that create_tma_tile() rejects is written down as that function would make it.
  void plan_map(bool rejected) {
    TensorMap map;
    std::int64_t first_column = 0;
    if (!rejected) {
      const TmaStaging staging = staging_on(request_.path);
      map = staging.map();
      first_column = staging.copy().issues.empty() ? 0 : staging.copy().issues.front().at.at[0];
    } else if (request_.path == TilePath::tma) {
      const auto unchecked = rejected_map();
      if (!unchecked) return;
      map = *unchecked;
      first_column = tma_depth_offset(scenario_, request_.dim).value;
    } else {
      return;
    }
    viz::TileMapPlan plan;
    plan.swizzle = std::string(name(scenario_.tile.swizzle));
    plan.first_column = first_column;
    const std::int64_t element = bits(map.data_type) / 8;
    for (std::int64_t axis = 0; axis < map.rank; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      plan.axes.push_back({axis == 0             ? "columns"
                           : axis + 1 < map.rank ? "heads"
                                                 : "rows",
                           static_cast<std::int64_t>(map.dims[i]),
                           axis == 0 ? element : static_cast<std::int64_t>(map.strides[i - 1]),
                           static_cast<std::int64_t>(map.box[i])});
    }
    source_.map = std::move(plan);
    const TmaTarget target = request_.path == TilePath::gather4 ? TmaTarget::sm_100 : TmaTarget::sm_90;
    for (const BrokenMapRule& rule : check_tensor_map(map, target).broken) {
      broken_ = true;
      source_.faults.push_back({axis_of(rule.where, map.rank), place_of(rule.where), rule.message});
    }
  }

  // Nothing: no map can carry the type, or its numbers do not fit one.
  [[nodiscard]] std::optional<TensorMap> rejected_map() const {
    const ModelGeometry& model = scenario_.model;
    const std::int64_t page = cache_.paged() != nullptr ? scenario_.cache.page_size : 0;
    TmaTile tile;
    tile.dtype = scenario_.cache.dtype;
    tile.swizzle = scenario_.tile.swizzle;
    tile.dims = {cache_.num_kv_rows(), model.kv_heads, model.head_size};
    tile.strides = {model.kv_heads * model.head_size, model.head_size, 1};
    tile.box = {kv_sub_tile_rows(scenario_.tile.BN, page), 1, swizzle_granularity(tile.dtype, tile.swizzle)};
    // Layers and K and V begin at different bytes of the pool.
    const std::byte* const origin = std::visit([](const auto& of) { return of.blocks().data; }, cache_.cache());
    try {
      return unchecked_tensor_map_of("K or V", tile, reinterpret_cast<std::uintptr_t>(origin));
    } catch (const GeometryError&) {
      return std::nullopt;
    } catch (const OverflowError&) {
      return std::nullopt;
    }
  }

  // The other paths, in the order of TilePath. gather4 is one where it takes fewer instructions than boxes of pages, or
  // where these cannot take the tile; rope values are one where the rows have them.
  void offers() {
    std::int64_t boxes = 0;
    const bool by_pages = faults_on(TilePath::tma, &boxes).empty();
    for (const TilePath path : {TilePath::tma, TilePath::lds, TilePath::gather4, TilePath::rope}) {
      if (path == request_.path) continue;
      viz::TileOffer offer;
      offer.path = path;
      const std::vector<Fault> faults = faults_on(path, &offer.copies);
      if (path == TilePath::gather4 && (!faults.empty() || (by_pages && offer.copies >= boxes))) continue;
      if (path == TilePath::rope && !faults.empty()) continue;
      if (!faults.empty()) {
        const Fault& first = faults.front();
        offer.why_not = first.where.empty() ? first.message : first.where + ": " + first.message;
      }
      source_.offers.push_back(std::move(offer));
    }
  }

  // Rows of the tile that hold a token.
  [[nodiscard]] std::int64_t rows_with_token() const {
    const StagingPath staging = request_.path == TilePath::lds ? StagingPath::lds : StagingPath::tma;
    return std::min(tile_tokens(scenario_, staging, request_.kv), tile_.tokens - tile_.first_token.value);
  }
  // Columns [first, end) of the head that the tile has.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> columns() const {
    const std::int64_t head = scenario_.model.head_size;
    if (request_.path == TilePath::lds) {
      const KVBufferParams params = lds_params(scenario_, request_.kv);
      return {params.head_dim_offset, std::min(params.head_dim_offset + params.depth, head)};
    }
    const std::int64_t first = tma_depth_offset(scenario_, request_.dim).value;
    return {first, std::min(first + tma_columns(scenario_), head)};
  }

  void scales() {
    const PagedKVCache* const cache = cache_.paged();
    if (cache == nullptr || !cache->quantization_enabled() || request_.path == TilePath::rope) return;
    const KVCacheScalesMHAOperand<PagedKVCache> operand(*cache);
    const auto [first, end] = columns();
    viz::TileScales scales;
    scales.dtype = std::string(name(*operand.dtype()));
    scales.bytes = size_of(*operand.dtype());
    scales.granularity = operand.quantization_granularity();
    scales.first = first / scales.granularity;
    scales.count = (end - 1) / scales.granularity - scales.first + 1;
    for (std::int64_t row = 0; row < rows_with_token(); ++row) {
      const TokIdx token = tile_.first_token + row;
      scales.row.push_back(operand.row_idx(tile_.batch_row, token).value);
      scales.place.push_back(
          AddressedCache::byte_of(operand.block_paged_ptr<1>(tile_.batch_row, token, tile_.head, DimIdx{first})));
    }
    source_.scales = std::move(scales);
  }

  // The content of an MLA row, which is V too, and its rope values: bf16 where create_rope_tma_tile() takes the rows.
  void row_bytes() {
    const ModelGeometry& model = scenario_.model;
    if (!model.is_mla || model.value_size >= model.head_size) return;
    const std::int64_t element = size_of(scenario_.cache.dtype);
    const std::int64_t content = model.value_size * element, rest = model.head_size * element - content;
    const std::string dtype(name(scenario_.cache.dtype));
    const bool aware = takes_rope();
    source_.row.parts = {{"content", dtype, 0, content, element},
                         {"rope", aware ? "bf16" : dtype, content, rest, aware ? 2 : element}};
    for (std::int64_t row = 0; row < rows_with_token(); ++row) {
      source_.row.place.push_back(cache_.byte(tile_.batch_row, tile_.first_token + row, tile_.head, DimIdx{0}));
    }
  }

  [[nodiscard]] bool takes_rope() const {
    const PagedKVCache* const cache = cache_.paged();
    if (cache == nullptr || size_of(scenario_.cache.dtype) != 1) return false;
    try {
      (void)cache->create_rope_tma_tile(
          {.mode = SwizzleMode::b128, .BN = 8, .padded_depth = scenario_.model.value_size});
    } catch (const GeometryError&) {
      return false;
    }
    return true;
  }

  const Scenario& scenario_;
  const CacheState& state_;
  const viz::TileRequest& request_;
  AddressedCache cache_;
  StagedTile tile_;
  viz::TileSource source_;
  bool broken_ = false;  // a rule of the map
};

}  // namespace

StagedRequest staged_request(const Scenario& scenario, const viz::TileRequest& request) {
  StagedRequest staged;
  TileQuestion& question = staged.question;
  question.path = request.path == TilePath::lds ? StagingPath::lds : StagingPath::tma;
  question.seq = request.seq;
  question.layer = request.layer;
  question.head = request.head;
  question.kv = request.kv;
  question.tile = request.token.value / tile_tokens(scenario, question.path, request.kv);
  question.dim = request.dim;
  check_index("dim", request.dim.value, scenario.model.head_size, "elements of a head");
  staged.boxes = boxes_of(request.path);
  return staged;
}

viz::TileSource tile_source(const Scenario& scenario, const CacheState& state, const viz::TileRequest& request) {
  check_index("layer", request.layer.value, scenario.model.layers, "layers of the model");
  check_index("head", request.head.value, scenario.model.kv_heads, "KV heads of the model");
  if (scenario.model.is_mla && request.kv == KOrV::v) return {};  // there is no such tile on any path
  return SourceFinder(scenario, state, request).find();
}

}  // namespace kvscope::apps

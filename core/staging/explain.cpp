#include "core/staging/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/base/errors.h"
#include "core/cache/layer_view.h"
#include "core/scenario/pool_extents.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/detail/batch_row.h"
#include "core/staging/detail/explain_staging.h"
#include "core/staging/focus.h"

namespace kvscope {
using trace::Explanation;
using trace::Link;
using trace::Question;

namespace {

// The place in the step's batch that the question names.
struct Place {
  SeqIdx row;           // of the batch
  std::uint32_t block;  // from the lookup table
  std::int64_t page_size;
};

std::string list(const Shape<6>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

class Explainer {
 public:
  Explainer(const Scenario& scenario, const Question& question, const CacheState& state)
      : scenario_(scenario), question_(question), state_(state), cache_(scenario, state, question.kv, question.layer) {}

  Explanation run() {
    links_.clear();
    const Place place = find_place();
    const std::int64_t element = explain_element(place);
    explain_row(place, element);
    explain_tile(place);
    if (scenario_.cache.quantization) explain_scale(place);
    return {subject(), std::move(links_)};
  }

 private:
  [[nodiscard]] std::string subject() const {
    return fmt::format("{} of sequence {}, token {}, layer {}, KV head {}, dim {}, at step {} of scenario '{}'",
                       kv_name(), question_.seq.value, question_.token.value, question_.layer.value,
                       question_.head.value, question_.dim.value, state_.step.value, scenario_.name);
  }
  [[nodiscard]] const char* kv_name() const { return question_.kv == KOrV::k ? "K" : "V"; }
  [[nodiscard]] std::int64_t kv_index() const { return question_.kv == KOrV::k ? 0 : 1; }

  void add(std::string name, std::string formula, std::string numbers, std::string result, std::string remark = {}) {
    links_.push_back({std::move(name), std::move(formula), std::move(numbers), std::move(result), std::move(remark)});
  }

  // --- request -> batch row -> page -> block ---

  Place find_place() {
    const SeqIdx row = require_batch_row(state_, question_.seq);
    const auto b = static_cast<std::size_t>(row.value);
    const std::int64_t cached = state_.cache_lengths[b], fresh = state_.new_tokens[b];
    check_index(fmt::format("sequence {}: token", question_.seq.value), question_.token.value, cached + fresh,
                fmt::format("step {} has {} cached and {} new tokens of it", state_.step.value, cached, fresh));
    add("batch row", "index of the sequence among the step's requests",
        fmt::format("sequence {} in ({})", question_.seq.value, batch_text(state_)), std::to_string(row.value),
        question_.token.value < cached ? fmt::format("token {} was cached before this step", question_.token.value)
                                       : fmt::format("token {} is computed in this step: cache_length {} + {}",
                                                     question_.token.value, cached, question_.token.value - cached));
    return scenario_.cache.kind == CacheKind::paged ? paged_place(row) : continuous_place(row);
  }

  Place paged_place(SeqIdx row) {
    const std::int64_t page_size = state_.page_size;
    const std::int64_t token = question_.token.value;
    const std::int64_t page = token / page_size;
    add("page", "token / page_size", fmt::format("{} / {}", token, page_size), std::to_string(page));
    add("slot", "token % page_size", fmt::format("{} % {}", token, page_size), std::to_string(token % page_size),
        "the place of the token in its page");
    explain_table_row(row);
    const auto entry = static_cast<std::size_t>(row.value * state_.table_columns + page);
    const std::uint32_t block = state_.lookup_table[entry];
    add("block", "lookup_table[batch row][page]", fmt::format("lookup_table[{}][{}]", row.value, page),
        std::to_string(block), sharers(block, page));
    return {row, block, page_size};
  }

  // The whole table row including its end: pages of the sequence, then the null page to the last column.
  void explain_table_row(SeqIdx row) {
    constexpr std::int64_t kShown = 10;
    const auto b = static_cast<std::size_t>(row.value);
    const std::int64_t pages = ceil_div(std::int64_t{state_.cache_lengths[b]} + state_.new_tokens[b], state_.page_size);
    const std::uint32_t* entries = state_.lookup_table.data() + row.value * state_.table_columns;
    const std::int64_t shown = std::min(kShown, pages);
    add("table row", "blocks of the sequence's pages, then the null page",
        fmt::format("{}{}, then {} x {}", fmt::join(entries, entries + shown, " "), shown < pages ? " ..." : "",
                    state_.table_columns - pages, state_.blocks),
        fmt::format("{} columns", state_.table_columns),
        "a multiple of 8 with at least 15 to spare, so that kernels may read up to 16 entries at once");
  }

  // The other sequences of the batch that have the block as the same page.
  [[nodiscard]] std::string sharers(std::uint32_t block, std::int64_t page) const {
    std::vector<std::int64_t> others;
    for (std::size_t b = 0; b < state_.batch.size(); ++b) {
      const std::int64_t tokens = std::int64_t{state_.cache_lengths[b]} + state_.new_tokens[b];
      if (page * state_.page_size >= tokens || state_.batch[b] == question_.seq) continue;
      if (state_.lookup_table[b * static_cast<std::size_t>(state_.table_columns) + static_cast<std::size_t>(page)] ==
          block) {
        others.push_back(state_.batch[b].value);
      }
    }
    if (others.empty()) return "no other sequence of the batch holds it";
    return fmt::format("shared with sequence{} {}: equal prefixes, one copy", others.size() > 1 ? "s" : "",
                       fmt::join(others, ", "));
  }

  Place continuous_place(SeqIdx row) {
    const std::uint32_t block = state_.lookup_table[static_cast<std::size_t>(row.value * state_.table_columns)];
    add("block", "lookup_table[batch row]", fmt::format("lookup_table[{}]", row.value), std::to_string(block),
        "one block holds the whole sequence");
    return {row, block, scenario_.cache.max_tokens};
  }

  // --- block -> element -> byte ---

  [[nodiscard]] Shape<6> pool(std::int64_t last) const { return pool_extents(scenario_, scenario_.model.layers, last); }

  std::int64_t explain_element(const Place& place) {
    const Shape<6> extents = pool(scenario_.model.head_size);
    const Shape<6> strides = row_major<6>(extents);
    const std::int64_t slot = question_.token.value % place.page_size;
    add("pool", "[block, k_or_v, layer, page_row, head, head_dim]", list(extents),
        fmt::format("strides {}", list(strides)),
        scenario_.cache.kind == CacheKind::paged ? fmt::format("{} blocks and the null page", scenario_.cache.blocks)
                                                 : "");
    const Shape<6> index{place.block, kv_index(),           question_.layer.value,
                         slot,        question_.head.value, question_.dim.value};
    const std::int64_t element = checked_offset(index, extents, strides);
    add("element", "block*s0 + k_or_v*s1 + layer*s2 + slot*s3 + head*s4 + dim*s5",
        fmt::format("{}*{} + {}*{} + {}*{} + {}*{} + {}*{} + {}*{}", index[0], strides[0], index[1], strides[1],
                    index[2], strides[2], index[3], strides[3], index[4], strides[4], index[5], strides[5]),
        std::to_string(element),
        fmt::format("the {}, layer {} view begins at element {}", kv_name(), question_.layer.value,
                    layer_view_offset(extents, question_.kv, question_.layer)));
    const std::int64_t size = size_of(scenario_.cache.dtype);
    add("byte", "element * bytes of an element",
        fmt::format("{} * {} ({})", element, size, name(scenario_.cache.dtype)),
        fmt::format("{} (0x{:x})", checked_mul(element, size), element * size), "from the pool's base");
    return element;
  }

  // --- row: the same place, computed by the cache type that kernels use ---

  void explain_row(const Place& place, std::int64_t element) {
    const ModelGeometry& model = scenario_.model;
    const Shape<6> strides = row_major<6>(pool(model.head_size));
    const std::int64_t per_block = strides[0] / strides[3];
    const std::int64_t slot = question_.token.value % place.page_size;
    add("rows per block", "s0 / (heads * head_dim)",
        fmt::format("{} / ({} * {})", strides[0], model.kv_heads, model.head_size), std::to_string(per_block),
        fmt::format("{} x {} layers x {} tokens: the view of one layer's {} uses {} of these rows",
                    model.is_mla ? "1 (K)" : "2 (K and V)", model.layers, place.page_size,
                    question_.kv == KOrV::k ? "K" : "V", place.page_size));
    KVSCOPE_ASSERT(cache_.byte(place.row, question_.token, question_.head, question_.dim) ==
                   element * size_of(scenario_.cache.dtype));
    add("row", "block * rows_per_block + slot", fmt::format("{} * {} + {}", place.block, per_block, slot),
        fmt::format("{} of {}", cache_.row_idx(place.row, question_.token).value, cache_.num_kv_rows()),
        fmt::format("row_idx({}, {}); column {} = head * head_dim + dim", place.row.value, question_.token.value,
                    question_.head.value * model.head_size + question_.dim.value));
  }

  // --- tile: values that a kernel computes once for BN tokens ---

  void explain_tile(const Place& place) {
    const std::int64_t BN = scenario_.tile.BN, token = question_.token.value;
    add("tile", "token / BN, token % BN", fmt::format("{} / {}, {} % {}", token, BN, token, BN),
        fmt::format("tile {}, row {} of it", token / BN, token % BN));
    if (const PagedKVCache* const cache = cache_.paged()) {
      explain_populate(place, *cache);
      explain_sparse_index(place, *cache);
    }
    const StagedTile tile{place.row,    question_.layer, question_.head,
                          question_.kv, TokIdx{0},       tokens_of(state_, place.row)};
    append(explain_tma(scenario_, cache_, tile, question_.token, question_.dim));
    append(explain_lds(scenario_, cache_, tile, question_.token, question_.dim));
  }

  void append(std::vector<Link> links) {
    links_.insert(links_.end(), std::make_move_iterator(links.begin()), std::make_move_iterator(links.end()));
  }

  // Sparse attention encodes a token in 32 signed bits: a pool may be too large for that although its row numbers fit.
  void explain_sparse_index(const Place& place, const PagedKVCache& cache) {
    const std::int64_t slot = question_.token.value % cache.page_size();
    const std::int64_t encoded = place.block * cache.page_size() + slot;
    const std::string numbers = fmt::format("{} * {} + {}", place.block, cache.page_size(), slot);
    const RowIdx row = cache.row_idx(place.row, question_.token);
    constexpr std::int64_t kEnd = std::int64_t{1} << 31;
    if (encoded >= kEnd || row.value >= kEnd) {
      add("sparse index", "block * page_size + slot", numbers, std::to_string(encoded),
          fmt::format("{} does not fit in 32 signed bits: sparse attention cannot name this token",
                      encoded >= kEnd ? "it" : fmt::format("its row {}", row.value)));
      return;
    }
    add("sparse index", "block * page_size + slot", numbers, std::to_string(encoded),
        fmt::format("get_tma_row({}) = {}, the row again", encoded,
                    cache.get_tma_row(static_cast<std::int32_t>(encoded))));
  }

  void explain_populate(const Place& place, const PagedKVCache& cache) {
    const char* formula = "rows[i] = lookup_table[batch row][first page + i] * rows_per_block";
    const std::int64_t offset = question_.token.value % scenario_.tile.BN;
    PopulateTile tile{.BN = scenario_.tile.BN};
    if (scenario_.tile.base_alignment > 0) tile.base_alignment = scenario_.tile.base_alignment;
    try {
      const PagedRowIndices rows = cache.populate(tile, place.row, question_.token - offset);
      constexpr std::size_t kShown = 8;
      const std::size_t shown = std::min(kShown, rows.rows().size());
      add("populate", formula,
          fmt::format("{{{}{}}}", fmt::join(rows.rows().first(shown), ", "), shown < rows.rows().size() ? ", ..." : ""),
          fmt::format("rows[{} / {}] + {} % {} = {}", offset, rows.eff_page(), offset, rows.eff_page(),
                      rows.get_row(offset).value),
          fmt::format("{} page{} per tile; the same row as above", rows.num_pages(), rows.num_pages() > 1 ? "s" : ""));
    } catch (const GeometryError& error) {
      add("populate", formula, "", "rejected", error.what());
    }
  }

  // --- scale ---

  void explain_scale(const Place& place) {
    const PagedKVCache& cache = *cache_.paged();
    const std::int64_t granule = question_.dim.value / cache.quantization_granularity();
    add("granule", "dim / granularity", fmt::format("{} / {}", question_.dim.value, cache.quantization_granularity()),
        fmt::format("{} of {}", granule, cache.head_dim_granularity()),
        fmt::format("the scale of dims {} to {}", granule * cache.quantization_granularity(),
                    std::min((granule + 1) * cache.quantization_granularity(), scenario_.model.head_size) - 1));
    const std::int64_t byte = AddressedCache::byte_of(
        cache.scales_block_paged_ptr(place.row, question_.token, question_.head, question_.dim));
    add("scale", "the same path through the scales' pool", list(pool(cache.head_dim_granularity())),
        fmt::format("scale {}, byte {} ({})", byte / size_of(*cache.scale_dtype()), byte, name(*cache.scale_dtype())));
  }

  const Scenario& scenario_;
  const Question& question_;
  const CacheState& state_;
  AddressedCache cache_;
  std::vector<Link> links_;
};

void check_question(const Scenario& scenario, std::span<const Request> requests, const Question& question) {
  check_index("sequence", question.seq.value, static_cast<std::int64_t>(requests.size()),
              "sequences are numbered by arrival");
  check_index("layer", question.layer.value, scenario.model.layers, "layers of the scenario's model");
  check_index("KV head", question.head.value, scenario.model.kv_heads,
              fmt::format("each serves {} query heads", scenario.model.query_heads / scenario.model.kv_heads));
  check_index("dim", question.dim.value, scenario.model.head_size, "elements of a head");
  const Request& request = requests[static_cast<std::size_t>(question.seq.value)];
  check_index(fmt::format("sequence {}: token", question.seq.value), question.token.value,
              request.prompt_tokens + request.generate_tokens,
              fmt::format("it has {} prompt and {} generated tokens", request.prompt_tokens, request.generate_tokens));
  if (question.kv == KOrV::v && scenario.model.is_mla) {
    throw UnsupportedError("an MLA cache stores K only, and V is the first elements of K: use --kv k");
  }
}

StepIdx step_of(const Scenario& scenario, std::span<const Request> requests, const Question& question) {
  if (question.step.value >= 0) return question.step;
  const std::optional<StepIdx> last = last_step_of(scenario, requests, question.seq, question.token);
  if (!last) {
    throw IndexError(
        fmt::format("sequence {}: token {} is never stored: the last token that is generated has no successor "
                    "that would read it, and a rejected request stores none",
                    question.seq.value, question.token.value));
  }
  return *last;
}

}  // namespace

Explanation explain(const Scenario& scenario, std::span<const Request> requests, const Question& question) {
  check_question(scenario, requests, question);
  const FocusState focus = state_at(scenario, requests, step_of(scenario, requests, question));
  return Explainer(scenario, question, focus.cache).run();
}

Explanation explain(const Scenario& scenario, std::span<const Request> requests, const Question& question,
                    const CacheState& state) {
  check_question(scenario, requests, question);
  return Explainer(scenario, question, state).run();
}

}  // namespace kvscope

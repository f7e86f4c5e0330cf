#include "core/golden/diagnosis/hypotheses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <set>
#include <utility>

#include "core/attention/mask.h"
#include "core/base/checked.h"

namespace kvscope::golden {
namespace {

using attention::KeyRange;
using attention::PagedRows;
using attention::Problem;
using Change = std::function<void(Recipe&, const RowEvaluator&)>;

class Trials {
 public:
  explicit Trials(const DiagnosisInput& from) : input(from), problem(from.problem) {}

  void add(std::string name, std::string cause, std::string look_at, Change change) {
    all.push_back({std::move(name), std::move(cause), std::move(look_at), -1,
                   [change = std::move(change)](const RowEvaluator& row) {
                     Recipe recipe = row.correct();
                     change(recipe, row);
                     return row.evaluate(recipe);
                   }});
  }

  // The same attention under other options: the keys are looked up again for the changed mask and length.
  void add_visible(std::string name, std::string cause, std::string look_at,
                   std::function<KeyRange(const RowEvaluator&, std::int64_t keys)> visible) {
    add(std::move(name), std::move(cause), std::move(look_at),
        [visible = std::move(visible)](Recipe& recipe, const RowEvaluator& row) {
          const KeyRange range = visible(row, row.problem().keys(row.sequence()));
          recipe.keys = keys_of(row.problem(), row.sequence(), range.first, std::max(range.first, range.last));
        });
  }

  const DiagnosisInput& input;
  const Problem& problem;
  std::vector<Trial> all;
};

std::int64_t queries_of(const RowEvaluator& row) {
  return row.problem().first_query(row.sequence() + 1) - row.problem().first_query(row.sequence());
}

KeyRange visible_with(const attention::Options& options, const RowEvaluator& row, std::int64_t keys) {
  return attention::visible_keys(options, row.query_in_sequence(), queries_of(row), keys);
}

// --- conventions -----------------------------------------------------------------------------------------------------

void add_conventions(Trials& trials) {
  const attention::Options& options = trials.problem.options;
  const double scale = options.scale;
  const std::string where = "the factor of q . k before the softmax";
  const auto scaled = [&](const std::string& name, const std::string& cause, double factor) {
    if (factor == scale) return;
    trials.add(name, cause, where, [factor](Recipe& r, const RowEvaluator&) { r.scale = factor; });
  };
  scaled("scale_missing", fmt::format("the scores are not multiplied by the scale {:.6g}", scale), 1.0);
  scaled("scale_twice", fmt::format("the scale {:.6g} is applied twice (for example 1/d for 1/sqrt(d))", scale),
         scale * scale);
  scaled("scale_base_two", "exp2 is used without the factor log2(e)", scale * std::numbers::ln2);
  scaled("scale_base_two", "the factor log2(e) of exp2 is applied twice, or exp is used with it",
         scale * std::numbers::log2e);
  std::set<std::int64_t> sizes{
      16, 32, 64, 80, 96, 128, 192, 256, 512, 576, trials.problem.k.head_size, trials.problem.v.head_size};
  for (const std::int64_t size : sizes) {
    const double other = 1.0 / std::sqrt(static_cast<double>(size));
    if (std::fabs(other - scale) < 1e-12) continue;
    scaled("scale_of_other_head_size",
           fmt::format("the scores are scaled by 1/sqrt({}) = {:.6g} instead of {:.6g}", size, other, scale), other);
  }
  if (options.soft_cap) {
    trials.add("soft_cap_missing", fmt::format("the soft cap {} is not applied", *options.soft_cap),
               "cap * tanh(score / cap), after the scale and before the mask",
               [](Recipe& r, const RowEvaluator&) { r.soft_cap.reset(); });
    trials.add("soft_cap_before_scale", "the soft cap is applied to q . k before the scale",
               "the order of scale and soft cap: the scale comes first",
               [](Recipe& r, const RowEvaluator&) { r.cap_before_scale = true; });
  } else {
    for (const double cap : {20.0, 30.0, 50.0}) {
      trials.add("soft_cap_added", fmt::format("a soft cap of {} is applied, but the golden has none", cap),
                 "the kernel's soft cap parameter", [cap](Recipe& r, const RowEvaluator&) { r.soft_cap = cap; });
    }
  }
  if (!options.alibi_slopes.empty()) {
    trials.add("alibi_missing", "the ALiBi bias is not added", "slope * (key position - query position)",
               [](Recipe& r, const RowEvaluator&) { r.slope = 0; });
    trials.add("alibi_sign", "the ALiBi bias is subtracted instead of added", "the sign of the slope",
               [](Recipe& r, const RowEvaluator&) { r.slope = -r.slope; });
    trials.add("alibi_origin", "the ALiBi bias counts from key 0 instead of the query's position",
               "the origin of the bias: it changes lse only",
               [](Recipe& r, const RowEvaluator&) { r.slope_origin = 0; });
    trials.add("alibi_of_kv_head", "the ALiBi slope of the KV head is used instead of the query head's",
               "the index into the slopes", [](Recipe& r, const RowEvaluator& row) {
                 r.slope = row.problem().options.alibi_slopes[static_cast<std::size_t>(r.k_head)];
               });
  }
  if (!options.sinks.empty()) {
    trials.add("sink_missing", "the attention sink is left out of the denominator", "the sink logit of each head",
               [](Recipe& r, const RowEvaluator&) { r.sink.reset(); });
    trials.add("sink_of_kv_head", "the sink of the KV head is used instead of the query head's",
               "the index into the sinks", [](Recipe& r, const RowEvaluator& row) {
                 r.sink = row.problem().options.sinks[static_cast<std::size_t>(r.k_head)];
               });
    trials.add("sink_scaled", "the sink logit is multiplied by the scale", "the sink joins the softmax unscaled",
               [](Recipe& r, const RowEvaluator&) { r.sink = *r.sink * r.scale; });
  }
  for (const double base : {10000.0, 500000.0, 1000000.0}) {
    for (const bool interleaved : {false, true}) {
      for (const auto& [query, key] : {std::pair{true, true}, {true, false}, {false, true}}) {
        const char* of = query && key ? "q and K" : query ? "q" : "K";
        trials.add("rotary_twice",
                   fmt::format("the rotary embedding (base {}, {} pairs) is applied again to {}", base,
                               interleaved ? "interleaved" : "half", of),
                   "the cache holds K after the embedding: do not rotate it again",
                   [=](Recipe& r, const RowEvaluator&) {
                     r.rotary = Rotary{base, interleaved, query, key};
                   });
      }
    }
  }
}

void add_lse(Trials& trials) {
  const bool two = trials.problem.options.lse_base == attention::LseBase::two;
  trials.add("lse_base", fmt::format("lse is in base {} instead of base {}", two ? "e" : "2", two ? "2" : "e"),
             "the unit of lse (kvscope golden --lse-base)",
             [](Recipe& r, const RowEvaluator&) { r.stored_lse = StoredLse::other_base; });
  trials.add("lse_without_maximum", "lse is log(sum) without the maximum", "lse = maximum + log(sum)",
             [](Recipe& r, const RowEvaluator&) { r.stored_lse = StoredLse::sum_only; });
  trials.add("lse_is_maximum", "lse holds the maximum score only", "lse = maximum + log(sum)",
             [](Recipe& r, const RowEvaluator&) { r.stored_lse = StoredLse::maximum_only; });
}

// --- mask and length -------------------------------------------------------------------------------------------------

void add_masks(Trials& trials) {
  const attention::Options options = trials.problem.options;
  const std::string mask = "the mask's limits";
  const auto with = [&](const std::string& name, const std::string& cause, const attention::Options& other) {
    trials.add_visible(name, cause, mask,
                       [other](const RowEvaluator& row, std::int64_t keys) { return visible_with(other, row, keys); });
  };
  attention::Options other = options;
  if (options.mask == MaskKind::causal || options.mask == MaskKind::sliding_window) {
    const bool bottom = options.alignment == CausalAlignment::bottom_right;
    other.alignment = bottom ? CausalAlignment::top_left : CausalAlignment::bottom_right;
    with("causal_alignment",
         bottom ? "the causal mask starts at the top left instead of the bottom right"
                : "the causal mask starts at the bottom right instead of the top left",
         other);
  }
  if (options.mask == MaskKind::sliding_window) {
    for (const auto& [left, right] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}}) {
      other = options;
      if (left != 0 && options.window_left < 0) continue;
      if (right != 0 && options.window_right < 0) continue;
      other.window_left += left;
      other.window_right += right;
      if (options.window_left >= 0 && other.window_left < 0) continue;
      if (options.window_right >= 0 && other.window_right < 0) continue;
      with("window_off_by_one",
           fmt::format("the window is ({}, {}) instead of ({}, {})", other.window_left, other.window_right,
                       options.window_left, options.window_right),
           other);
    }
    other = options;
    other.window_left = -1;
    with("window_missing", "the window's left limit is ignored", other);
  }
  if (options.mask != MaskKind::none) {
    other = options;
    other.mask = MaskKind::none;
    with("mask_missing", "no mask: a query sees keys after its own position, and outside its window", other);
  } else {
    other = options;
    other.mask = MaskKind::causal;
    with("causal_added", "a causal mask is applied, but the golden has none", other);
  }
  const auto shifted = [&](const std::string& name, const std::string& cause, std::int64_t by) {
    trials.add_visible(name, cause, "the comparison of key and query position (< or <=)",
                       [options, by](const RowEvaluator& row, std::int64_t keys) {
                         KeyRange range = visible_with(options, row, keys);
                         range.last = std::clamp(range.last + by, range.first, std::max(range.first, keys));
                         return range;
                       });
  };
  if (options.mask != MaskKind::none) {
    shifted("own_token_masked", "each query misses its last visible key (the mask is < instead of <=)", -1);
    shifted("next_token_seen", "each query sees one key after its own position", 1);
  }
}

void add_lengths(Trials& trials) {
  const attention::Options options = trials.problem.options;
  const std::int64_t page = trials.problem.k.page_size;
  const auto length = [&](const std::string& name, const std::string& cause,
                          std::function<std::int64_t(std::int64_t keys, std::int64_t queries)> changed) {
    trials.add_visible(name, cause, "the length passed to the kernel (with or without this step's tokens), and its use",
                       [options, changed = std::move(changed)](const RowEvaluator& row, std::int64_t keys) {
                         const std::int64_t other = std::max<std::int64_t>(0, changed(keys, queries_of(row)));
                         return visible_with(options, row, other);
                       });
  };
  // The queries keep their positions when only the end of the keys moves.
  const auto end = [&](const std::string& name, const std::string& cause, const std::string& look_at,
                       std::function<std::int64_t(std::int64_t keys)> changed) {
    trials.add_visible(name, cause, look_at,
                       [options, changed = std::move(changed)](const RowEvaluator& row, std::int64_t keys) {
                         KeyRange range = visible_with(options, row, keys);
                         const std::int64_t last = changed(keys);
                         if (range.last == keys || last < range.last) range.last = last;
                         range.last = std::max(range.first, range.last);
                         return range;
                       });
  };
  length("length_without_new", "the sequence length leaves out this step's new tokens",
         [](std::int64_t keys, std::int64_t queries) { return keys - queries; });
  length("length_with_new_twice", "the sequence length counts this step's new tokens twice",
         [](std::int64_t keys, std::int64_t queries) { return keys + queries; });
  end("last_token_missing", "the last key of each sequence is left out", "the loop's end over keys",
      [](std::int64_t keys) { return keys - 1; });
  end("one_token_too_many", "one slot after the last key is read", "the loop's end over keys",
      [](std::int64_t keys) { return keys + 1; });
  end("last_page_unmasked", fmt::format("all {} slots of the last page are read, also those without a token", page),
      "the mask of the last page", [page](std::int64_t keys) { return ceil_div(keys, page) * page; });
  end("last_page_missing", "the partly filled last page is left out", "the number of pages: it rounds up",
      [page](std::int64_t keys) { return keys / page * page; });
  for (const std::int64_t tile : {16, 32, 64, 128, 256}) {
    if (tile == page) continue;
    end("last_tile_missing", fmt::format("the partly filled last tile of {} keys is left out", tile),
        "the number of tiles: it rounds up", [tile](std::int64_t keys) { return keys / tile * tile; });
  }
  trials.add_visible("first_page_missing", "the first page is left out", "the first page of the loop",
                     [options, page](const RowEvaluator& row, std::int64_t keys) {
                       KeyRange range = visible_with(options, row, keys);
                       range.first = std::min(range.last, std::max(range.first, page));
                       return range;
                     });
}

// --- heads and queries -----------------------------------------------------------------------------------------------

void add_heads(Trials& trials) {
  const std::int64_t heads = trials.problem.k.heads;
  const std::int64_t query_heads = trials.problem.query_heads;
  const auto map = [&](const std::string& cause, std::function<std::int64_t(std::int64_t)> of) {
    bool differs = false;
    for (std::int64_t h = 0; h < query_heads; ++h) differs = differs || of(h) != h / (query_heads / heads);
    if (!differs) return;
    trials.add("kv_head_map", cause, "the KV head of query head h: h / (query heads / KV heads)",
               [of = std::move(of)](Recipe& r, const RowEvaluator& row) { r.k_head = r.v_head = of(row.head()); });
  };
  map("query head h uses KV head h % KV heads instead of h / group", [heads](std::int64_t h) { return h % heads; });
  map("every query head uses KV head 0", [](std::int64_t) { return std::int64_t{0}; });
  map("KV heads are used in reverse order",
      [heads, query_heads](std::int64_t h) { return heads - 1 - h / (query_heads / heads); });
  map("each query head uses the next KV head",
      [heads, query_heads](std::int64_t h) { return (h / (query_heads / heads) + 1) % heads; });
  map("query head h uses KV head min(h, KV heads - 1)", [heads](std::int64_t h) { return std::min(h, heads - 1); });
  if (heads > 1) {
    trials.add("v_head_map", "V is read from KV head 0 for every query head", "the head offset of V",
               [](Recipe& r, const RowEvaluator&) { r.v_head = 0; });
    trials.add("k_head_map", "K is read from KV head 0 for every query head", "the head offset of K",
               [](Recipe& r, const RowEvaluator&) { r.k_head = 0; });
  }
  if (query_heads > 1) {
    trials.add("query_head_zero", "every output head uses query head 0", "the head offset of q",
               [](Recipe& r, const RowEvaluator&) { r.query_head = 0; });
  }
  const std::int64_t rows = trials.problem.total_queries();
  if (rows > 1) {
    for (const std::int64_t by : {1, -1}) {
      trials.add("query_row_shifted",
                 fmt::format("each output row uses the query row {} it", by > 0 ? "after" : "before"),
                 "the row index of q, query_offsets", [by, rows](Recipe& r, const RowEvaluator&) {
                   r.query_row = std::clamp<std::int64_t>(r.query_row + by, 0, rows - 1);
                 });
    }
    trials.add("query_row_of_sequence", "the first query of each sequence is used for all its rows",
               "the row index of q, query_offsets",
               [](Recipe& r, const RowEvaluator& row) { r.query_row = row.problem().first_query(row.sequence()); });
    if (query_heads > 1) {
      trials.add("query_axes", "q is read as [heads, rows, dim] instead of [rows, heads, dim]", "the strides of q",
                 [rows, query_heads](Recipe& r, const RowEvaluator& row) {
                   const std::int64_t flat = row.head() * rows + row.query();
                   r.query_row = flat / query_heads;
                   r.query_head = flat % query_heads;
                 });
    }
  }
}

// --- the cache's layout and types ------------------------------------------------------------------------------------

void add_layout(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const PagedRows& v = trials.problem.v;
  const std::string strides = "the strides of the cache";
  if (k.data != v.data) {
    if (k.head_size == v.head_size) {
      trials.add("k_and_v_exchanged", "K is read where V is stored and V where K is stored",
                 "the K/V axis or the two pointers", [](Recipe& r, const RowEvaluator&) { std::swap(r.k, r.v); });
      trials.add("v_is_k", "V is read where K is stored", "the K/V offset of V",
                 [](Recipe& r, const RowEvaluator& row) { r.v = row.correct().k; });
      trials.add("k_is_v", "K is read where V is stored", "the K/V offset of K",
                 [](Recipe& r, const RowEvaluator& row) { r.k = row.correct().v; });
    }
  }
  const auto axes = [&](const std::string& of, bool in_k, bool in_v) {
    trials.add("head_and_slot_axes", fmt::format("{} is read with head and slot axes exchanged (NHD as HND)", of),
               strides, [=](Recipe& r, const RowEvaluator&) {
                 for (PagedRows* rows : {in_k ? &r.k : nullptr, in_v ? &r.v : nullptr}) {
                   if (rows == nullptr) continue;
                   const std::int64_t inner = std::min(rows->token_stride, rows->head_stride);
                   const bool heads_inside = rows->head_stride == inner;
                   if (heads_inside) {  // [P, H, D] read as [H, P, D]
                     rows->token_stride = inner;
                     rows->head_stride = rows->page_size * inner;
                   } else {
                     rows->head_stride = inner;
                     rows->token_stride = rows->heads * inner;
                   }
                 }
               });
  };
  if (k.heads > 1 && k.page_size > 1) {
    axes("the cache", true, true);
    axes("K", true, false);
    axes("V", false, true);
  }
  for (const DimOrder order : {DimOrder::halves_exchanged, DimOrder::interleaved, DimOrder::deinterleaved}) {
    const char* text = order == DimOrder::halves_exchanged ? "with the halves of each head exchanged"
                       : order == DimOrder::interleaved    ? "with even elements first, then odd ones"
                                                           : "with its two halves interleaved";
    if (k.head_size % 2 == 0) {
      trials.add("k_dims_order", fmt::format("K is read {}", text), "the order of the elements of a K row",
                 [order](Recipe& r, const RowEvaluator&) { r.k_dims = order; });
    }
    if (v.head_size % 2 == 0) {
      trials.add("v_dims_order", fmt::format("V is read, or o is stored, {}", text),
                 "the order of the elements of a V row and of o",
                 [order](Recipe& r, const RowEvaluator&) { r.v_dims = order; });
    }
  }
  std::set<std::int64_t> block_strides;
  const std::int64_t packed = k.page_size * k.heads * k.head_size;
  for (const std::int64_t stride : {packed, 2 * packed, k.block_stride / 2, k.block_stride * 2}) {
    if (stride > 0 && stride != k.block_stride) block_strides.insert(stride);
  }
  if (trials.input.layers > 1) block_strides.insert(k.block_stride / trials.input.layers);
  for (const std::int64_t stride : block_strides) {
    trials.add("block_stride",
               fmt::format("blocks are taken to be {} elements apart instead of {}", stride, k.block_stride),
               "the block stride: it includes the K/V and layer axes",
               [stride](Recipe& r, const RowEvaluator&) { r.k.block_stride = r.v.block_stride = stride; });
  }
  for (std::int64_t layer = 0; layer < trials.input.layers; ++layer) {
    const std::int64_t by = layer - trials.input.layer;
    if (by == 0) continue;
    const std::int64_t bytes = by * trials.input.layer_stride * size_of(k.dtype);
    trials.add("layer", fmt::format("layer {} is read instead of layer {}", layer, trials.input.layer),
               "the layer offset", [bytes](Recipe& r, const RowEvaluator&) {
                 r.k.data += bytes;
                 r.v.data += bytes;
               });
  }
  for (const std::int64_t size : {1, 8, 16, 32, 64, 128, 256}) {
    if (size == k.page_size) continue;
    trials.add("page_size", fmt::format("the page size is taken to be {} instead of {}", size, k.page_size),
               "the page size in token / page_size and token % page_size", [size](Recipe& r, const RowEvaluator& row) {
                 const PagedRows& rows = row.problem().k;
                 for (KeyRead& key : r.keys) {
                   const std::int64_t page = key.position / size;
                   const std::int64_t column = std::min(page, rows.table_stride - 1);
                   key.block = rows.table[row.sequence() * rows.table_stride + column];
                   if (page >= rows.table_stride) key.block = -1;
                   key.slot = key.position % size;
                 }
               });
  }
  const auto narrow = [&](DType other) {
    trials.add("fp8_format", fmt::format("the cache is decoded as {} instead of {}", name(other), name(k.dtype)),
               "the fp8 format of the cache",
               [other](Recipe& r, const RowEvaluator&) { r.k.dtype = r.v.dtype = other; });
  };
  if (k.dtype == DType::e4m3) narrow(DType::e5m2);
  if (k.dtype == DType::e5m2) narrow(DType::e4m3);
  if (k.dtype == DType::bf16) narrow(DType::f16);
  if (k.dtype == DType::f16) narrow(DType::bf16);
  if (k.dtype == DType::e4m3) {
    // fnuz: the bias is 8 instead of 7, so every value is half as large.
    trials.add("fp8_fnuz", "the cache is decoded as e4m3fnuz, whose values are half of e4m3's", "the fp8 format",
               [](Recipe& r, const RowEvaluator&) {
                 r.scale *= 0.5;
                 r.v_factor = 0.5;
               });
  }
}

void add_scales(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const PagedRows& v = trials.problem.v;
  const auto without = [&](const std::string& name, const std::string& cause, bool in_k, bool in_v) {
    if ((in_k && k.scales == nullptr) || (in_v && v.scales == nullptr)) return;
    trials.add(name, cause, "the product of stored element and scale", [=](Recipe& r, const RowEvaluator&) {
      if (in_k) r.k.scales = nullptr;
      if (in_v) r.v.scales = nullptr;
    });
  };
  without("k_scales_missing", "the scales of K are not applied", true, false);
  without("v_scales_missing", "the scales of V are not applied", false, true);
  without("scales_missing", "the scales of K and V are not applied", true, true);
  if (k.scales == nullptr || v.scales == nullptr) return;
  const auto strides = [&](const std::string& cause, std::function<void(PagedRows&)> change) {
    trials.add("scale_granularity", cause, "the index of a scale: block, slot, head, group of elements",
               [change = std::move(change)](Recipe& r, const RowEvaluator&) {
                 change(r.k);
                 change(r.v);
               });
  };
  strides("the first scale of each token is used for its whole head",
          [](PagedRows& rows) { rows.granularity = rows.head_size; });
  if (k.scale_head_stride != 0)
    strides("the scales of head 0 are used for every head", [](PagedRows& rows) { rows.scale_head_stride = 0; });
  if (k.scale_token_stride != 0)
    strides("the scales of a block's first token are used for all its tokens",
            [](PagedRows& rows) { rows.scale_token_stride = 0; });
  if (k.scale_block_stride != 0)
    strides("the scales of block 0 are used for every block", [](PagedRows& rows) { rows.scale_block_stride = 0; });
  trials.add("k_and_v_scales_exchanged", "the scales of K and V are exchanged", "the pointers of the scales",
             [](Recipe& r, const RowEvaluator&) { std::swap(r.k.scales, r.v.scales); });
}

// --- the lookup table ------------------------------------------------------------------------------------------------

void add_table(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const std::int64_t columns = k.table_stride;
  const std::int64_t batch = trials.problem.batch;
  const std::string where = "the index into the lookup table";
  const auto entry = [&](const std::string& name, const std::string& cause,
                         std::function<std::int64_t(std::int64_t sequence, std::int64_t page)> flat) {
    trials.add(name, cause, where, [flat = std::move(flat), columns, batch](Recipe& r, const RowEvaluator& row) {
      const PagedRows& rows = row.problem().k;
      for (KeyRead& key : r.keys) {
        const std::int64_t at = flat(row.sequence(), key.position / rows.page_size);
        key.block = at >= 0 && at < columns * batch ? std::int64_t{rows.table[at]} : -1;
      }
    });
  };
  if (batch > 1) {
    for (std::int64_t other = 0; other < std::min<std::int64_t>(batch, 16); ++other) {
      entry("table_row", fmt::format("every sequence uses row {} of the lookup table", other),
            [=](std::int64_t, std::int64_t page) { return other * columns + page; });
    }
    for (const std::int64_t by : {1, -1}) {
      entry("table_row",
            fmt::format("each sequence uses the lookup table row of sequence {} it", by > 0 ? "after" : "before"),
            [=](std::int64_t sequence, std::int64_t page) {
              const std::int64_t other = sequence + by;
              return other < 0 || other >= batch ? -1 : other * columns + page;
            });
    }
    for (std::int64_t stride = 1; stride <= 2 * columns; ++stride) {
      if (stride == columns) continue;
      entry("table_stride",
            fmt::format("rows of the lookup table are taken to be {} entries apart instead of {}", stride, columns),
            [=](std::int64_t sequence, std::int64_t page) { return sequence * stride + page; });
    }
    entry("table_axes", "the lookup table is read as [page, sequence]",
          [=](std::int64_t sequence, std::int64_t page) { return page * batch + sequence; });
  }
  for (const std::int64_t by : {1, -1}) {
    entry("table_column", fmt::format("page p uses table column p {} 1", by > 0 ? "+" : "-"),
          [=](std::int64_t sequence, std::int64_t page) {
            return std::clamp<std::int64_t>(page + by, 0, columns - 1) + sequence * columns;
          });
  }
  entry("table_column", "every page uses table column 0",
        [=](std::int64_t sequence, std::int64_t) { return sequence * columns; });
  for (const std::int64_t by : {1, -1}) {
    trials.add("block_off_by_one", fmt::format("every block number is {} too {}", 1, by > 0 ? "large" : "small"),
               "the block number taken from the table", [by](Recipe& r, const RowEvaluator&) {
                 for (KeyRead& key : r.keys) key.block += by;
               });
  }
  trials.add("pages_contiguous", "the lookup table is ignored: page p is read from block p", where,
             [](Recipe& r, const RowEvaluator& row) {
               for (KeyRead& key : r.keys) key.block = key.position / row.problem().k.page_size;
             });
  trials.add("pages_reversed", "the pages of each sequence are read in reverse order", where,
             [](Recipe& r, const RowEvaluator& row) {
               const PagedRows& rows = row.problem().k;
               const std::int64_t pages = ceil_div(row.problem().keys(row.sequence()), rows.page_size);
               for (KeyRead& key : r.keys) {
                 key.block = rows.table[row.sequence() * rows.table_stride + pages - 1 - key.position / rows.page_size];
               }
             });
}

// --- combination of tiles and splits ---------------------------------------------------------------------------------

void add_combination(Trials& trials) {
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < trials.problem.batch; ++b) longest = std::max(longest, trials.problem.keys(b));
  for (const std::int64_t tile : {8, 16, 32, 64, 128, 256, 512}) {
    if (tile >= longest) continue;
    trials.add("no_rescaling",
               fmt::format("the running output is not rescaled when the maximum rises (tiles of {} keys)", tile),
               "the factor exp(old maximum - new maximum) on output and sum", [tile](Recipe& r, const RowEvaluator&) {
                 r.combine = Combine::without_rescaling;
                 r.split = tile;
               });
  }
  const auto merged = [&](const std::string& name, const std::string& cause, Combine combine) {
    const auto split = [&](const std::string& how, std::function<std::int64_t(std::int64_t)> size) {
      trials.add(name, fmt::format("{} ({})", cause, how), "the merge of the splits' partial results",
                 [combine, size = std::move(size)](Recipe& r, const RowEvaluator&) {
                   r.combine = combine;
                   r.split = std::max<std::int64_t>(1, size(static_cast<std::int64_t>(r.keys.size())));
                 });
    };
    for (const std::int64_t splits : {2, 3, 4, 5, 6, 8, 16}) {
      if (splits > longest) continue;
      split(fmt::format("{} splits", splits), [splits](std::int64_t keys) { return ceil_div(keys, splits); });
      const std::int64_t page = trials.problem.k.page_size;
      if (page > 1) {
        split(fmt::format("{} splits of whole pages", splits),
              [splits, page](std::int64_t keys) { return ceil_div(ceil_div(keys, page), splits) * page; });
      }
    }
    for (const std::int64_t size : {16, 32, 64, 128, 256, 512, 1024}) {
      if (size < longest) split(fmt::format("splits of {} keys", size), [size](std::int64_t) { return size; });
    }
  };
  merged("merge_by_mean", "the outputs of the splits are averaged instead of weighted by their sums", Combine::mean);
  merged("merge_base",
         trials.problem.options.lse_base == attention::LseBase::two
             ? "the splits are merged with e^lse although lse is in base 2"
             : "the splits are merged with 2^lse although lse is natural",
         Combine::other_base);
  for (const std::int64_t splits : {1, 2, 3, 4, 7}) {
    trials.add("empty_split",
               fmt::format("{} without keys join the merge with lse 0",
                           splits == 1 ? "one split" : fmt::format("{} splits", splits)),
               "lse of a split without keys: -infinity",
               [splits](Recipe& r, const RowEvaluator&) { r.extra_denominator = static_cast<double>(splits); });
  }
  trials.add("not_normalized", "o is not divided by the sum of the probabilities", "the last division",
             [](Recipe& r, const RowEvaluator&) { r.normalized = false; });
}

// --- output axes -----------------------------------------------------------------------------------------------------

// Row of a golden tensor read through another order of its axes.
class GoldenRows {
 public:
  explicit GoldenRows(const Bundle& golden)
      : o(values<double>(golden.tensors.at("o"))),
        a1(values<double>(golden.tensors.at("a1"))),
        a2(values<double>(golden.tensors.at("a2"))),
        smax(values<double>(golden.tensors.at("smax"))),
        lse(golden.tensors.contains("lse") ? values<double>(golden.tensors.at("lse")) : std::span<const double>()) {}

  // Element i of the row comes from flat element `from(i)` of the golden's o.
  RowValue gather(std::int64_t dims, const std::function<std::int64_t(std::int64_t)>& from, double row_lse) const {
    RowValue row;
    for (std::int64_t d = 0; d < dims; ++d) {
      const auto i = static_cast<std::size_t>(from(d));
      row.o.push_back(o[i]);
      row.a1.push_back(a1[i]);
      row.a2.push_back(a2[i]);
      row.smax = std::max(row.smax, smax[i / static_cast<std::size_t>(dims)]);
    }
    row.lse = row_lse;
    return row;
  }

  std::span<const double> o, a1, a2, smax, lse;
};

void add_output(Trials& trials) {
  const std::int64_t rows = trials.problem.total_queries();
  const std::int64_t heads = trials.problem.query_heads;
  const std::int64_t dims = trials.problem.v.head_size;
  const auto source = std::make_shared<GoldenRows>(trials.input.golden);
  const auto add = [&](const std::string& cause,
                       std::function<std::int64_t(std::int64_t row, std::int64_t head, std::int64_t dim)> from) {
    trials.all.push_back({"output_axes", cause, "the order of the axes of o: [query, query head, dim]", -1,
                          [=](const RowEvaluator& row) {
                            const auto flat = static_cast<std::size_t>(row.query() * heads + row.head());
                            const double lse = source->lse.empty() ? 0 : source->lse[flat];
                            return source->gather(
                                dims, [&](std::int64_t d) { return from(row.query(), row.head(), d); }, lse);
                          }});
  };
  if (heads > 1) {
    add("o is stored as [query, dim, head]", [=](std::int64_t row, std::int64_t head, std::int64_t dim) {
      const std::int64_t flat = head * dims + dim;
      return (row * heads + flat % heads) * dims + flat / heads;
    });
  }
  if (heads > 1 && rows > 1) {
    add("o is stored as [head, query, dim]", [=](std::int64_t row, std::int64_t head, std::int64_t dim) {
      const std::int64_t flat = row * heads + head;
      return (flat % rows * heads + flat / rows) * dims + dim;
    });
    const std::int64_t batch = trials.problem.batch;
    if (batch > 1 && rows > batch && rows % batch == 0) {
      const std::int64_t queries = rows / batch;
      add("o is stored as [batch, head, query, dim]", [=](std::int64_t row, std::int64_t head, std::int64_t dim) {
        const std::int64_t flat = row * heads + head;  // of [batch, head, query]
        const std::int64_t b = flat / (heads * queries);
        const std::int64_t in_batch = flat % (heads * queries);
        return ((b * queries + in_batch % queries) * heads + in_batch / queries) * dims + dim;
      });
    }
  }
}

}  // namespace

std::vector<Trial> hypotheses(const DiagnosisInput& input) {
  Trials trials(input);
  add_conventions(trials);
  add_lse(trials);
  add_lengths(trials);
  add_masks(trials);
  add_heads(trials);
  add_layout(trials);
  add_scales(trials);
  add_table(trials);
  add_combination(trials);
  add_output(trials);
  return std::move(trials.all);
}

}  // namespace kvscope::golden

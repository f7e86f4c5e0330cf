// Hypotheses about the cache: heads, layout, number formats, scales.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

using attention::PagedRows;

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
    if (query_heads > heads) {
      trials.add("v_head_map", "V is read from KV head h % KV heads instead of h / group, K correctly",
                 "the head offset of V",
                 [heads](Recipe& r, const RowEvaluator& row) { r.v_head = row.head() % heads; });
      trials.add("k_head_map", "K is read from KV head h % KV heads instead of h / group, V correctly",
                 "the head offset of K",
                 [heads](Recipe& r, const RowEvaluator& row) { r.k_head = row.head() % heads; });
    }
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

// MLA: V is the first part of a row of K, and the rest is the rope part.
void add_latent(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const PagedRows& v = trials.problem.v;
  const std::int64_t rope = k.head_size - v.head_size;
  if (k.data != v.data || rope <= 0) return;
  const std::string where = "the offsets of latent and rope part in a row of the cache, and in q";
  trials.add("v_behind_rope",
             fmt::format("V is the last {} elements of a row instead of the first {}", v.head_size, v.head_size), where,
             [rope](Recipe& r, const RowEvaluator&) { r.v.data += rope * size_of(r.v.dtype); });
  trials.add("rope_part_missing", fmt::format("the scores lack the {} elements of the rope part", rope), where,
             [latent = v.head_size](Recipe& r, const RowEvaluator&) { r.k_used = latent; });
  trials.add("rope_part_first", "the rope part is taken to come before the latent part in one of q and K", where,
             [latent = v.head_size](Recipe& r, const RowEvaluator&) { r.k_rotation = latent; });
  trials.add("rope_part_first", "the rope part is taken to come after the latent part in one of q and K", where,
             [rope](Recipe& r, const RowEvaluator&) { r.k_rotation = rope; });
}

// --- the cache's layout and types ------------------------------------------------------------------------------------

// `rows` reads the elements of `from` and keeps its scales.
void take_elements(PagedRows& rows, const PagedRows& from) {
  rows.data = from.data;
  rows.dtype = from.dtype;
  rows.block_stride = from.block_stride;
  rows.token_stride = from.token_stride;
  rows.head_stride = from.head_stride;
}

// `rows` keeps its elements and takes the scales of `from`: of one side they may be a tensor, of the other a product of
// two, with another type and other strides.
void take_scales(PagedRows& rows, const PagedRows& from) {
  rows.scales = from.scales;
  rows.scale_dtype = from.scale_dtype;
  rows.granularity = from.granularity;
  rows.scale_block_stride = from.scale_block_stride;
  rows.scale_token_stride = from.scale_token_stride;
  rows.scale_head_stride = from.scale_head_stride;
  rows.scales_table = from.scales_table;
  rows.scales_table_stride = from.scales_table_stride;
  rows.scale_blocks = from.scale_blocks;
}

// Elements from K to V. Of two tensors it is where they happen to be allocated.
std::int64_t elements_to_v(const PagedRows& k, const PagedRows& v) {
  return (reinterpret_cast<std::intptr_t>(v.data) - reinterpret_cast<std::intptr_t>(k.data)) / size_of(k.dtype);
}

// Whether K and V, `distance` elements apart, are parts of one tensor: [blocks, 2, ...], [2, blocks, ...], or a pool.
bool is_one_tensor(const Trials& trials, std::int64_t distance) {
  const PagedRows& k = trials.problem.k;
  return distance > 0 &&
         (2 * distance == k.block_stride || distance == k.blocks * k.block_stride || !trials.input.pool.empty());
}

// V is read at another distance from K, with the strides of K.
void add_v_offsets(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const PagedRows& v = trials.problem.v;
  if (k.data == v.data || k.head_size != v.head_size || k.dtype != v.dtype) return;
  const std::int64_t size = size_of(k.dtype), packed = k.page_size * k.heads * k.head_size;
  const std::int64_t correct = elements_to_v(k, v);
  std::vector<std::int64_t> tried{0, correct};
  const auto add = [&](std::int64_t distance, const std::string& cause) {
    if (std::ranges::find(tried, distance) != tried.end()) return;
    tried.push_back(distance);
    const std::int64_t last = is_one_tensor(trials, correct) ? k.blocks : k.blocks - 1 - distance / k.block_stride;
    const auto trial = [&](const char* more, bool scales_of_k) {
      trials.add("v_offset", cause + more, "the offset of V from K: the stride of the K/V axis",
                 [distance, size, scales_of_k, last](Recipe& r, const RowEvaluator& row) {
                   if (scales_of_k) {
                     r.v = row.correct().k;
                   } else {
                     take_elements(r.v, row.correct().k);
                   }
                   r.v.data += distance * size;
                   for (KeyRead& key : r.keys) {
                     if (key.block > last) key.block = -1;  // past the tensor of K, also where V follows it in memory
                   }
                 });
    };
    trial("", false);
    if (v.scales != nullptr && v.scales != k.scales) trial(", with the scales of K", true);
  };
  add(k.block_stride, "V is read where K of the next block is stored");
  // Other strides of the K/V axis of one tensor: without the layers, or of a tensor with another order of axes.
  if (!is_one_tensor(trials, correct)) return;
  for (const std::int64_t distance :
       {packed, k.block_stride / 2, k.blocks * k.block_stride, k.blocks * packed, k.token_stride, k.head_stride}) {
    add(distance, fmt::format("V is read {} elements after K instead of {}", distance, correct));
  }
}

// Two strides of the cache's tensor exchanged, as a kernel does whose strides are passed in the wrong order.
void add_exchanged_strides(Trials& trials) {
  const PagedRows& k = trials.problem.k;
  const PagedRows& v = trials.problem.v;
  const std::int64_t size = size_of(k.dtype);
  // The K/V axis of one tensor, in front of the blocks or behind them.
  const std::int64_t distance = elements_to_v(k, v);
  const bool one_tensor = is_one_tensor(trials, distance);
  const bool alike = k.block_stride == v.block_stride && k.token_stride == v.token_stride &&
                     k.head_stride == v.head_stride && k.dtype == v.dtype;
  if (!alike) return;
  enum Axis : std::uint8_t { block, side, slot, head };
  constexpr const char* kNames[] = {"block", "K/V", "slot", "head"};
  const auto add = [&](Axis a, Axis b, const std::string& of, bool in_k, bool in_v) {
    std::array<std::int64_t, 4> strides{k.block_stride, distance, k.token_stride, k.head_stride};
    if (strides[a] == strides[b]) return;
    std::swap(strides[a], strides[b]);
    trials.add(
        "strides_exchanged",
        fmt::format("the strides of the {} axis and of the {} axis of {} are exchanged", kNames[a], kNames[b], of),
        "the order in which the strides of the cache are passed and used", [=](Recipe& r, const RowEvaluator&) {
          for (PagedRows* rows : {in_k ? &r.k : nullptr, in_v ? &r.v : nullptr}) {
            if (rows == nullptr) continue;
            rows->block_stride = strides[block];
            rows->token_stride = strides[slot];
            rows->head_stride = strides[head];
          }
          if (in_k && in_v) r.v.data += (strides[side] - distance) * size;
        });
  };
  const auto of_each = [&](Axis a, Axis b) {
    add(a, b, "the cache", true, true);
    if (k.data == v.data) return;  // MLA: V is a part of K's rows
    add(a, b, "K", true, false);
    add(a, b, "V", false, true);
  };
  if (one_tensor && k.blocks > 2) add(block, side, "the cache", true, true);  // 2 blocks: read as the other order
  if (one_tensor && k.page_size > 1) add(side, slot, "the cache", true, true);
  if (k.page_size > 1) of_each(block, slot);
  if (k.heads > 1) of_each(block, head);
  // With as many heads as slots, an exchange is the other order of these axes (head_and_slot_axes).
  if (k.heads > 1 && k.page_size > 1 && k.heads != k.page_size) of_each(slot, head);
}

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
      if (k.scales != nullptr && v.scales != nullptr) {
        // The elements alone: each side keeps its scales.
        trials.add("k_and_v_exchanged", "K is read where V is stored and V where K is stored, with their own scales",
                   "the K/V axis or the two pointers", [](Recipe& r, const RowEvaluator& row) {
                     take_elements(r.k, row.correct().v);
                     take_elements(r.v, row.correct().k);
                   });
        trials.add("v_is_k", "V is read where K is stored, with the scales of V", "the K/V offset of V",
                   [](Recipe& r, const RowEvaluator& row) { take_elements(r.v, row.correct().k); });
        trials.add("k_is_v", "K is read where V is stored, with the scales of K", "the K/V offset of K",
                   [](Recipe& r, const RowEvaluator& row) { take_elements(r.k, row.correct().v); });
      }
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
  if (k.page_size > 1) {
    for (const auto& [of, in_k, in_v] :
         {std::tuple{"the cache", true, true}, std::tuple{"K", true, false}, std::tuple{"V", false, true}}) {
      if (k.data == v.data && in_k != in_v) continue;  // MLA: one copy brings both
      trials.add("block_as_row",
                 fmt::format("{} is read from row `block` of the pool instead of row block * {}", of, k.page_size),
                 "the coordinate of the copy, or the offset: a block has page_size rows",
                 [in_k = in_k, in_v = in_v](Recipe& r, const RowEvaluator&) {
                   if (in_k) r.k.block_stride = r.k.token_stride;
                   if (in_v) r.v.block_stride = r.v.token_stride;
                 });
    }
  }
  // One tensor of K and V, packed: engines have both orders of its first two axes.
  const std::int64_t side = packed * size_of(k.dtype);  // [bytes] of a block of K
  const auto first_axes = [&](const char* as, const char* is, std::int64_t block_stride, std::int64_t v_from_k) {
    trials.add("kv_axis", fmt::format("the cache is read as [{}, ...] instead of [{}, ...]", as, is),
               "the strides of the K/V axis and of the block axis",
               [block_stride, v_from_k](Recipe& r, const RowEvaluator&) {
                 r.k.block_stride = r.v.block_stride = block_stride;
                 r.v.data = r.k.data + v_from_k;
               });
  };
  if (k.blocks > 1 && k.head_size == v.head_size) {
    if (k.block_stride == 2 * packed && v.data == k.data + side)
      first_axes("2, blocks", "blocks, 2", packed, k.blocks * side);
    if (k.block_stride == packed && v.data == k.data + k.blocks * side)
      first_axes("blocks, 2", "2, blocks", 2 * packed, side);
  }
  add_v_offsets(trials);
  add_exchanged_strides(trials);
  for (std::int64_t layer = 0; layer < trials.input.layers; ++layer) {
    const std::int64_t by = layer - trials.input.layer;
    if (by == 0) continue;
    const std::int64_t bytes = by * trials.input.layer_stride * size_of(k.dtype);
    const std::int64_t scale_bytes = by * trials.input.scale_layer_stride * size_of(k.scale_dtype);
    const auto add = [&](const char* more, std::int64_t of_scales) {
      trials.add("layer", fmt::format("layer {} is read instead of layer {}{}", layer, trials.input.layer, more),
                 "the layer offset", [bytes, of_scales](Recipe& r, const RowEvaluator&) {
                   for (PagedRows* rows : {&r.k, &r.v}) {
                     rows->data += bytes;
                     if (rows->scales != nullptr) rows->scales += of_scales;
                   }
                 });
    };
    add("", scale_bytes);
    if (scale_bytes != 0) add(", with the scales of the correct layer", 0);
  }
  for (const std::int64_t size : {1, 8, 16, 32, 64, 128, 256}) {
    if (size == k.page_size) continue;
    trials.add("page_size", fmt::format("the page size is taken to be {} instead of {}", size, k.page_size),
               "the page size in token / page_size and token % page_size", [size](Recipe& r, const RowEvaluator& row) {
                 const PagedRows& rows = row.problem().k;
                 for (KeyRead& key : r.keys) {
                   const std::int64_t page = key.position / size;
                   const std::int64_t entry = row.sequence() * rows.table_stride + page;
                   key.block = entry < row.problem().batch * rows.table_stride ? std::int64_t{rows.table[entry]} : -1;
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
  if (k.dtype == DType::e4m3 || k.dtype == DType::e5m2) {
    trials.add("fp8_fnuz",
               fmt::format("the cache is decoded as {0}fnuz: values are half of {0}'s, and -0 is NaN", name(k.dtype)),
               "the fp8 format of the cache", [](Recipe& r, const RowEvaluator&) { r.fnuz = true; });
  }
}

// The scales of another KV head, as of an index that is not the KV head's.
void add_scale_heads(Trials& trials) {
  const std::int64_t heads = trials.problem.k.heads, query_heads = trials.problem.query_heads;
  if (heads < 2) return;
  const auto add = [&](const std::string& index, const std::function<std::int64_t(const RowEvaluator&)>& of) {
    for (const auto& [sides, in_k, in_v] :
         {std::tuple{"", true, true}, std::tuple{" of K", true, false}, std::tuple{" of V", false, true}}) {
      trials.add("scale_of_other_head", fmt::format("the scales{} are those of KV head {}", sides, index),
                 "the index of a scale: the KV head",
                 [=, in_k = in_k, in_v = in_v](Recipe& r, const RowEvaluator& row) {
                   const std::int64_t by = of(row) - row.correct().k_head;
                   for (PagedRows* rows : {in_k ? &r.k : nullptr, in_v ? &r.v : nullptr}) {
                     if (rows != nullptr) rows->scales += by * rows->scale_head_stride * size_of(rows->scale_dtype);
                   }
                 });
    }
  };
  if (query_heads > heads) {
    add("h % KV heads instead of h / group", [heads](const RowEvaluator& row) { return row.head() % heads; });
  }
  if (trials.problem.batch > 1) {
    add("b % KV heads for sequence b, for all heads",
        [heads](const RowEvaluator& row) { return row.sequence() % heads; });
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
  if (k.scale_head_stride != 0) {
    strides("the scales of head 0 are used for every head", [](PagedRows& rows) { rows.scale_head_stride = 0; });
    add_scale_heads(trials);
  }
  if (k.scale_token_stride != 0)
    strides("the scales of a block's first token are used for all its tokens",
            [](PagedRows& rows) { rows.scale_token_stride = 0; });
  if (k.scale_block_stride != 0)
    strides("the scales of block 0 are used for every block", [](PagedRows& rows) { rows.scale_block_stride = 0; });
  for (const std::int64_t vector : {8, 16}) {
    if (k.granularity >= k.head_size || k.granularity % vector == 0) continue;
    trials.add("scale_granularity", fmt::format("{} elements are multiplied by the scale of the first of them", vector),
               "the index of a scale: block, slot, head, group of elements",
               [vector](Recipe& r, const RowEvaluator&) { r.scale_vector = vector; });
  }
  if (k.data == v.data) return;
  // The scales of a head of the one side are those of a head of the other, or one scale is that of a whole head.
  const bool fit = k.head_size == v.head_size || (k.granularity >= v.head_size && v.granularity >= k.head_size);
  if (!fit) return;
  const std::string pointers = "the pointers of the scales";
  trials.add("k_and_v_scales_exchanged", "the scales of K and V are exchanged", pointers,
             [](Recipe& r, const RowEvaluator& row) {
               take_scales(r.k, row.correct().v);
               take_scales(r.v, row.correct().k);
             });
  trials.add("v_scales_of_k", "V is multiplied by the scales of K", pointers,
             [](Recipe& r, const RowEvaluator& row) { take_scales(r.v, row.correct().k); });
  trials.add("k_scales_of_v", "K is multiplied by the scales of V", pointers,
             [](Recipe& r, const RowEvaluator& row) { take_scales(r.k, row.correct().v); });
}

}  // namespace

void add_cache(Trials& trials) {
  add_heads(trials);
  add_latent(trials);
  add_layout(trials);
  add_scales(trials);
}

}  // namespace kvscope::golden

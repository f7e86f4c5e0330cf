// A user's tensors, with the names and shapes of their engine, read as one attention problem. Tensors are copied only
// where strides cannot express the layout; they stay in the bundle, which must outlive the problem.
//
// B sequences, N blocks, P tokens per page, H KV heads, Hq query heads, D head size, L layers, T query rows.
//
// A layout is a description (layout_description.h): a named one, or the user's own. `kvscope layout show NAME` prints
// the description of a named layout. Lengths count the keys of the new tokens, except in layout max: keys = length +
// queries there. FlashInfer: keys = (pages - 1) * P + last page, 0 without pages: pages 3, 1, 2, 2 with 13, 8, 9, 6 at
// P = 16 -> 45, 8, 25, 22.
//
// Queries: q [T, Hq, D] with query_offsets [B + 1] (or cu_seqlens_q, qo_indptr, query_start_loc); without offsets
// T = B, one query per sequence; or q [B, queries, Hq, D]; MLA: or q_nope and q_pe, its two parts. Optional for all:
// alibi_slopes [Hq], sinks [Hq], sm_scale [], k_scale, v_scale or kv_scale (detail/layout_scales.h), k_block_scale and
// v_block_scale with the axes of the cache and groups of elements for the last one. Index tensors are i32, u32, i64 or
// u64.
//
// Tensors have synonyms, such as softmax_scale for sm_scale (detail/known_tensors.h). A tensor that the layout does not
// use is a fault, so that a scale under an unknown name is not silently ignored; list tensors to skip in
// LayoutOptions::ignore. The output tensors of a golden bundle (golden_bundle.h) need not be listed.
//
// Never read: table entries past a sequence's pages or of pages that its mask hides, and values of slots that no
// sequence owns. A negative or too large entry is a fault only where it would be read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <xtensor/xtensor.hpp>

#include "core/attention/problem.h"
#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/cache_type.h"
#include "core/golden/layouts/layout_description.h"
#include "core/golden/layouts/query_masks.h"
#include "core/golden/layouts/scale_order.h"

namespace kvscope::golden {

struct LayoutOptions {
  std::string layout;  // a name, unless `description` is set
  std::shared_ptr<const LayoutDescription> description;
  std::int64_t layer = 0;                   // layouts with an axis for layers
  std::optional<CacheType> cache_type;      // of bit patterns in u8 or u16 caches; empty: the tensor's type
  std::optional<DType> query_dtype;         // the same for q
  std::optional<std::int64_t> granularity;  // block scales: elements that share one; default D / G
  ScaleOrder k_scale_order = ScaleOrder::linear, v_scale_order = ScaleOrder::linear;  // of block scales
  std::optional<std::int64_t> head_size;  // layouts with one axis for heads and elements; default: of q
  // MLA: elements of a row that are V; ckv/kpe: the latent; rows of 576: 512. Or V's head size after K's (dim+vdim).
  std::optional<std::int64_t> value_size;
  std::optional<double> scale;      // default: the tensor sm_scale, or 1 / sqrt(D) except for MLA, which has no default
  std::vector<std::string> ignore;  // tensors to skip
  attention::Options attention;     // mask, cap, lse base, ...; its scale, slopes and sinks are set here
};

// The tensor that holds every layer of K and V, for a reader that takes another layer as a wrong kernel does. Empty
// unless there are several layers, and K and V of one of them are read from the tensor in place.
struct PoolOfLayers {
  std::span<const std::byte> bytes;
  std::int64_t layers = 1, layer = 0, layer_stride = 0;  // [elements]; layer: that of the problem
  std::int64_t scale_layer_stride = 0;                   // [scales] of the block scales of K and of V; 0: not by layer
};

// The problem and its storage. It may be moved; the bundle must stay where it is.
struct PreparedProblem {
  attention::Problem problem;
  std::string layout;
  std::vector<std::string> warnings;  // legal here, a known cause of errors in kernels
  std::vector<std::string> notes;     // features that a single engine may not support

  xt::xtensor<std::uint32_t, 2> table;  // [batch, columns]; kUnknownBlock for entries that are not read
  // [batch, columns] with every given entry, also those never read. Empty: `table` has them all.
  xt::xtensor<std::uint32_t, 2> own_given_table;
  std::vector<std::int64_t> query_offsets;       // [batch + 1]
  std::vector<std::int64_t> key_lengths;         // [batch]
  std::vector<double> alibi_slopes, sinks;       // [query_heads] or empty
  std::vector<std::int64_t> bias_columns;        // [batch] of a mask tensor with biases: the element of key 0
  std::vector<std::int64_t> bias_rows;           // [batch] its query strides
  std::vector<std::int64_t> bias_origins;        // [batch] keys before them have no bias; or empty
  std::vector<std::uint8_t> bias_flags;          // a mask of floats that are 0 or 1 and not added to the scores
  std::vector<std::string> scales;               // "K: k_scale f32 [2], per KV head"
  xt::xtensor<std::uint32_t, 2> sequence_table;  // [batch, columns] the row's number: for scales per sequence
  std::vector<double> k_scales, v_scales;        // block scales of packed rows, or both kinds of scales: their products
  std::vector<std::byte> k_copy, v_copy;         // for layouts that the strides of PagedRows cannot express
  PoolOfLayers pool;
  TensorBytes q_copy;               // for queries in two tensors or with heads first
  std::string mask_tensor;          // the file's name of the mask tensor; empty: none
  std::optional<QueryMasks> masks;  // the tensor that states the keys of each query, if one does

  PreparedProblem() = default;
  PreparedProblem(const PreparedProblem&) = delete;
  PreparedProblem& operator=(const PreparedProblem&) = delete;
  PreparedProblem(PreparedProblem&&) = default;
  PreparedProblem& operator=(PreparedProblem&&) = default;
  ~PreparedProblem() = default;

  [[nodiscard]] const xt::xtensor<std::uint32_t, 2>& given_table() const {
    return own_given_table.size() == 0 ? table : own_given_table;
  }
  // The problem with the given table, for a reader that goes past a sequence's pages as a wrong kernel does. Lives as
  // long as this object.
  [[nodiscard]] attention::Problem with_given_table() const;
};

[[nodiscard]] const std::vector<std::string>& layout_names();

// The description that the options select. InputError for an unknown name.
[[nodiscard]] const LayoutDescription& layout_of(const LayoutOptions& options);

// Whether the bundle has a tensor of block scales of K, or of V.
[[nodiscard]] bool has_block_scales(const Bundle& bundle, const LayoutOptions& options, bool of_v);

// InputError naming `source` with every fault found: tensors missing, unused or given twice, shapes that do not fit
// each other, entries that would be read and are outside the pool, lengths that need more pages than the table has.
[[nodiscard]] PreparedProblem prepare_problem(const Bundle& bundle, const LayoutOptions& options,
                                              std::string_view source);

}  // namespace kvscope::golden

// One small batch in every layout: the same keys and values, scattered as each engine scatters them. Everything that no
// sequence owns is NaN, and every table entry that nothing may read is nonsense.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden {

struct SmallBatch {
  // Extents that do not divide one another where they need not: a swapped pair of axes must show.
  static constexpr std::int64_t kPage = 4, kBlocks = 13, kHeads = 2, kDims = 6, kQueryHeads = 4, kColumns = 6,
                                kLayers = 3, kLayer = 1, kLatent = 4;
  // Layouts that hold this batch. The others hold one sequence, packed rows, or MLA rows under other names than mla.
  static constexpr const char* kLayouts[] = {
      "max",    "nhd",        "hnd",  "flashinfer", "flashinfer_hnd", "vllm_legacy",
      "sglang", "mla",        "vllm", "vllm_hnd",   "vllm_diffkv",    "flashinfer_trtllm",
      "trtllm", "sglang_req", "hf",   "dense",      "varlen",         "mlc"};
  std::vector<std::int64_t> lengths{1, 3, 4, 5, 17};  // keys, new ones included: 1, page - 1, page, page + 1, several
  std::vector<std::int64_t> queries{1, 1, 2, 1, 3};
  std::vector<std::vector<std::int64_t>> table{{7}, {2}, {11}, {5, 0}, {3, 12, 1, 9, 4}};

  [[nodiscard]] static float value(int kv, std::int64_t seq, std::int64_t token, std::int64_t head, std::int64_t dim) {
    const auto n = ((seq * 100 + token) * kHeads + head) * kDims + dim;
    return static_cast<float>(CounterRng(5, static_cast<std::uint64_t>(kv)).bell(static_cast<std::uint64_t>(n)));
  }

  // Calls put(kv, block, slot, head, dim, value) for each owned element.
  void each(const auto& put) const {
    for (int kv = 0; kv < 2; ++kv) {
      for (std::size_t b = 0; b < lengths.size(); ++b) {
        for (std::int64_t t = 0; t < lengths[b]; ++t) {
          for (std::int64_t h = 0; h < kHeads; ++h) {
            for (std::int64_t d = 0; d < kDims; ++d) {
              put(kv, table[b][static_cast<std::size_t>(t / kPage)], t % kPage, h, d,
                  value(kv, static_cast<std::int64_t>(b), t, h, d));
            }
          }
        }
      }
    }
  }

  [[nodiscard]] static Tensor poisoned(std::vector<std::int64_t> shape) {
    Tensor tensor = make_tensor(DType::f32, std::move(shape));
    for (float& x : values<float>(tensor)) x = std::numeric_limits<float>::quiet_NaN();
    return tensor;
  }

  [[nodiscard]] static std::size_t at(std::initializer_list<std::pair<std::int64_t, std::int64_t>> index_extent) {
    std::int64_t offset = 0;
    for (const auto& [index, extent] : index_extent) offset = offset * extent + index;
    return static_cast<std::size_t>(offset);
  }

  template <class T>
  [[nodiscard]] static Tensor ints(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& numbers) {
    std::vector<T> narrow;
    for (const std::int64_t n : numbers) narrow.push_back(static_cast<T>(n));
    return tensor_of<T>(std::move(shape), std::span<const T>(narrow));
  }

  [[nodiscard]] Tensor table_tensor(std::int64_t nonsense) const {
    std::vector<std::int64_t> entries;
    for (const auto& row : table) {
      for (std::size_t c = 0; c < kColumns; ++c) entries.push_back(c < row.size() ? row[c] : nonsense);
    }
    return ints<std::int32_t>({5, kColumns}, entries);
  }

  void add_queries(Bundle& bundle) const {
    Tensor q = make_tensor(DType::f32, {8, kQueryHeads, kDims});
    std::uint64_t n = 0;
    for (float& x : values<float>(q)) x = static_cast<float>(CounterRng(5, 9).bell(n++));
    bundle.tensors["q"] = std::move(q);
    bundle.tensors["query_offsets"] = ints<std::int32_t>({6}, {0, 1, 2, 4, 5, 8});
  }

  [[nodiscard]] Bundle in(const std::string& layout) const {
    Bundle bundle;
    add_queries(bundle);
    auto& t = bundle.tensors;
    const std::vector<std::int64_t> page_starts = [&] {
      std::vector<std::int64_t> starts{0};
      for (const auto& row : table) starts.push_back(starts.back() + static_cast<std::int64_t>(row.size()));
      return starts;
    }();
    if (layout == "max") {
      Tensor blocks = poisoned({kBlocks, 2, kLayers, kPage, kHeads, kDims});
      each([&](int kv, auto n, auto p, auto h, auto d, float x) {
        values<float>(blocks)[at({{n, kBlocks}, {kv, 2}, {kLayer, kLayers}, {p, kPage}, {h, kHeads}, {d, kDims}})] = x;
      });
      t["blocks"] = std::move(blocks);
      t["lookup_table"] = reinterpret_as(table_tensor(-1), DType::u32);
      std::vector<std::int64_t> cached;
      for (std::size_t b = 0; b < lengths.size(); ++b) cached.push_back(lengths[b] - queries[b]);
      t["cache_lengths"] = ints<std::uint32_t>({5}, cached);
    } else if (layout == "nhd" || layout == "hnd") {
      for (int kv = 0; kv < 2; ++kv) {
        Tensor cache =
            layout == "nhd" ? poisoned({kBlocks, kPage, kHeads, kDims}) : poisoned({kBlocks, kHeads, kPage, kDims});
        each([&](int which, auto n, auto p, auto h, auto d, float x) {
          if (which != kv) return;
          values<float>(cache)[layout == "nhd" ? at({{n, kBlocks}, {p, kPage}, {h, kHeads}, {d, kDims}})
                                               : at({{n, kBlocks}, {h, kHeads}, {p, kPage}, {d, kDims}})] = x;
        });
        t[kv == 0 ? "k_cache" : "v_cache"] = std::move(cache);
      }
      t["block_table"] = table_tensor(layout == "nhd" ? -1 : 1 << 30);
      t["cache_seqlens"] = ints<std::int32_t>({5}, lengths);
    } else if (layout == "flashinfer" || layout == "flashinfer_hnd") {
      const bool nhd = layout == "flashinfer";
      Tensor cache = nhd ? poisoned({kBlocks, 2, kPage, kHeads, kDims}) : poisoned({kBlocks, 2, kHeads, kPage, kDims});
      each([&](int kv, auto n, auto p, auto h, auto d, float x) {
        values<float>(cache)[nhd ? at({{n, kBlocks}, {kv, 2}, {p, kPage}, {h, kHeads}, {d, kDims}})
                                 : at({{n, kBlocks}, {kv, 2}, {h, kHeads}, {p, kPage}, {d, kDims}})] = x;
      });
      t["kv_cache"] = std::move(cache);
      std::vector<std::int64_t> indices, last;
      for (std::size_t b = 0; b < table.size(); ++b) {
        indices.insert(indices.end(), table[b].begin(), table[b].end());
        last.push_back((lengths[b] - 1) % kPage + 1);
      }
      t["kv_indptr"] = ints<std::int32_t>({6}, page_starts);
      t["kv_indices"] = ints<std::int32_t>({static_cast<std::int64_t>(indices.size())}, indices);
      t["kv_last_page_len"] = ints<std::int32_t>({5}, last);
    } else if (layout == "vllm_legacy") {
      constexpr std::int64_t x = 2;  // elements kept together; 6 dims make 3 groups
      Tensor k = poisoned({kBlocks, kHeads, kDims / x, kPage, x});
      Tensor v = poisoned({kBlocks, kHeads, kDims, kPage});
      each([&](int kv, auto n, auto p, auto h, auto d, float value) {
        if (kv == 0) {
          values<float>(k)[at({{n, kBlocks}, {h, kHeads}, {d / x, kDims / x}, {p, kPage}, {d % x, x}})] = value;
        } else {
          values<float>(v)[at({{n, kBlocks}, {h, kHeads}, {d, kDims}, {p, kPage}})] = value;
        }
      });
      t["key_cache"] = std::move(k);
      t["value_cache"] = std::move(v);
      t["block_tables"] = table_tensor(-1);
      t["seq_lens"] = ints<std::int32_t>({5}, lengths);
    } else if (layout == "mla") {  // the first KV head's keys; V is the first kLatent elements of each
      Tensor cache = poisoned({kBlocks, kPage, kDims});
      each([&](int kv, auto n, auto p, auto h, auto d, float x) {
        if (kv == 0 && h == 0) values<float>(cache)[at({{n, kBlocks}, {p, kPage}, {d, kDims}})] = x;
      });
      t["kv_cache"] = std::move(cache);
      t["block_table"] = table_tensor(-1);
      t["cache_seqlens"] = ints<std::int32_t>({5}, lengths);
    } else if (layout == "vllm" || layout == "vllm_hnd" || layout == "flashinfer_trtllm" || layout == "mlc") {
      const bool nhd = layout == "vllm", first = layout == "vllm_hnd";  // [2, N, ...]; the others [N, 2, ...]
      Tensor cache = poisoned(first ? std::vector<std::int64_t>{2, kBlocks, kHeads, kPage, kDims}
                              : nhd ? std::vector<std::int64_t>{kBlocks, 2, kPage, kHeads, kDims}
                                    : std::vector<std::int64_t>{kBlocks, 2, kHeads, kPage, kDims});
      each([&](int kv, auto n, auto p, auto h, auto d, float x) {
        values<float>(cache)[first ? at({{kv, 2}, {n, kBlocks}, {h, kHeads}, {p, kPage}, {d, kDims}})
                             : nhd ? at({{n, kBlocks}, {kv, 2}, {p, kPage}, {h, kHeads}, {d, kDims}})
                                   : at({{n, kBlocks}, {kv, 2}, {h, kHeads}, {p, kPage}, {d, kDims}})] = x;
      });
      t[layout == "mlc" ? "pages" : "kv_cache"] = std::move(cache);
      if (layout == "mlc") {
        std::vector<std::int64_t> indices, last;
        for (std::size_t b = 0; b < table.size(); ++b) {
          indices.insert(indices.end(), table[b].begin(), table[b].end());
          last.push_back((lengths[b] - 1) % kPage + 1);
        }
        t["page_indptr"] = ints<std::int32_t>({6}, page_starts);
        t["page_values"] = ints<std::int32_t>({static_cast<std::int64_t>(indices.size())}, indices);
        t["length_info"] = ints<std::int32_t>({5}, last);
      } else {
        t[layout == "flashinfer_trtllm" ? "block_tables" : "block_table"] = table_tensor(-1);
        t["seq_lens"] = ints<std::int32_t>({5}, lengths);
      }
    } else if (layout == "vllm_diffkv") {
      Tensor cache = poisoned({kBlocks, kPage, kHeads, 2 * kDims});
      each([&](int kv, auto n, auto p, auto h, auto d, float x) {
        values<float>(cache)[at({{n, kBlocks}, {p, kPage}, {h, kHeads}, {kv * kDims + d, 2 * kDims}})] = x;
      });
      t["kv_cache"] = std::move(cache);
      t["block_table"] = table_tensor(-1);
      t["seq_lens"] = ints<std::int32_t>({5}, lengths);
    } else if (layout == "trtllm") {
      Tensor pool = poisoned({2 * kBlocks, kHeads, kPage, kDims});
      each([&](int kv, auto n, auto p, auto h, auto d, float x) {
        values<float>(pool)[at({{2 * n + kv, 2 * kBlocks}, {h, kHeads}, {p, kPage}, {d, kDims}})] = x;
      });
      t["kv_pool"] = std::move(pool);
      std::vector<std::int64_t> offsets;
      for (const auto& row : table) {
        for (int kv = 0; kv < 2; ++kv) {
          for (std::size_t c = 0; c < kColumns; ++c) offsets.push_back(c < row.size() ? 2 * row[c] + kv : 1 << 30);
        }
      }
      t["kv_cache_block_offsets"] = ints<std::int32_t>({5, 2, kColumns}, offsets);
      t["sequence_length"] = ints<std::int32_t>({5}, lengths);
    } else if (layout == "hf" || layout == "dense" || layout == "varlen") {
      // Without a table: hf pads on the left, dense on the right; varlen has no padding.
      constexpr std::int64_t kPositions = 19;
      std::vector<std::int64_t> starts{0}, mask;
      for (const std::int64_t length : lengths) starts.push_back(starts.back() + length);
      for (int kv = 0; kv < 2; ++kv) {
        Tensor cache = layout == "hf"      ? poisoned({5, kHeads, kPositions, kDims})
                       : layout == "dense" ? poisoned({5, kPositions, kHeads, kDims})
                                           : poisoned({starts.back(), kHeads, kDims});
        for (std::int64_t b = 0; b < 5; ++b) {
          const auto seq = static_cast<std::size_t>(b);
          for (std::int64_t i = 0; i < lengths[seq]; ++i) {
            for (std::int64_t h = 0; h < kHeads; ++h) {
              for (std::int64_t d = 0; d < kDims; ++d) {
                const std::int64_t padded = kPositions - lengths[seq] + i;
                const std::size_t index = layout == "hf" ? at({{b, 5}, {h, kHeads}, {padded, kPositions}, {d, kDims}})
                                          : layout == "dense"
                                              ? at({{b, 5}, {i, kPositions}, {h, kHeads}, {d, kDims}})
                                              : at({{starts[seq] + i, starts.back()}, {h, kHeads}, {d, kDims}});
                values<float>(cache)[index] = value(kv, b, i, h, d);
              }
            }
          }
        }
        const bool is_k = kv == 0;
        t[layout == "hf"      ? (is_k ? "key_cache" : "value_cache")
          : layout == "dense" ? (is_k ? "k_cache" : "v_cache")
                              : (is_k ? "k" : "v")] = std::move(cache);
      }
      if (layout == "hf") {
        for (const std::int64_t length : lengths) {
          for (std::int64_t i = 0; i < kPositions; ++i) mask.push_back(i >= kPositions - length ? 1 : 0);
        }
        t["attention_mask"] = ints<std::int64_t>({5, kPositions}, mask);
      } else if (layout == "dense") {
        t["cache_seqlens"] = ints<std::int32_t>({5}, lengths);
      } else {
        t["cu_seqlens_k"] = ints<std::int32_t>({6}, starts);
      }
    } else {  // sglang, sglang_req
      for (int kv = 0; kv < 2; ++kv) {
        Tensor buffer = poisoned({kBlocks * kPage, kHeads, kDims});
        each([&](int which, auto n, auto p, auto h, auto d, float x) {
          if (which == kv) values<float>(buffer)[at({{n * kPage + p, kBlocks * kPage}, {h, kHeads}, {d, kDims}})] = x;
        });
        t[kv == 0 ? "k_buffer" : "v_buffer"] = std::move(buffer);
      }
      std::vector<std::int64_t> indptr{0}, indices;
      for (std::size_t b = 0; b < table.size(); ++b) {
        for (std::int64_t i = 0; i < lengths[b]; ++i) {
          indices.push_back(table[b][static_cast<std::size_t>(i / kPage)] * kPage + i % kPage);
        }
        indptr.push_back(static_cast<std::int64_t>(indices.size()));
      }
      if (layout == "sglang_req") {  // requests 1 to 5 of 7, in reverse
        constexpr std::int64_t kMostTokens = 20;
        std::vector<std::int64_t> rows(static_cast<std::size_t>(7 * kMostTokens), 1 << 30);
        for (std::size_t b = 0; b < table.size(); ++b) {
          const auto first = static_cast<std::size_t>(indptr[b]), row = (5 - b) * kMostTokens;
          for (std::size_t i = 0; i < static_cast<std::size_t>(lengths[b]); ++i) rows[row + i] = indices[first + i];
        }
        t["req_to_token"] = ints<std::int32_t>({7, kMostTokens}, rows);
        t["req_pool_indices"] = ints<std::int64_t>({5}, {5, 4, 3, 2, 1});
        t["seq_lens"] = ints<std::int64_t>({5}, lengths);
        return bundle;
      }
      t["kv_indptr"] = ints<std::int32_t>({6}, indptr);
      t["kv_indices"] = ints<std::int64_t>({static_cast<std::int64_t>(indices.size())}, indices);
    }
    return bundle;
  }

  [[nodiscard]] static LayoutOptions options(const std::string& layout) {
    LayoutOptions options;
    options.layout = layout;
    options.layer = layout == "max" ? kLayer : 0;
    if (layout == "vllm_diffkv") options.value_size = kDims;
    return options;
  }
};

// Numbers as a tensor with one axis, and 0, 1, 2, ... as floats.
template <class T = std::int32_t>
Tensor list(const std::vector<std::int64_t>& numbers) {
  return SmallBatch::ints<T>({static_cast<std::int64_t>(numbers.size())}, numbers);
}
inline Tensor rising(std::vector<std::int64_t> shape) {
  Tensor tensor = make_tensor(DType::f32, std::move(shape));
  for (float n = 0; float& x : values<float>(tensor)) x = n++;
  return tensor;
}

// A tensor of the small batch in a layout.
struct NamedTensor {
  const char* layout;
  const char* name;
  const char* shape;  // that the layout needs
  bool may_be_missing = false;
};

}  // namespace kvscope::golden

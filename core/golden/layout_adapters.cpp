#include "core/golden/detail/layout_adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xtensor.hpp>

#include "core/attention/kv_operand.h"
#include "core/base/checked.h"

namespace kvscope::golden {
namespace {

using Walk = LayoutReader::Walk;
using Extents = std::vector<std::int64_t>;

// Elements of one entry of axis `axis`: the product of the extents after it.
std::int64_t stride_of(const Extents& shape, std::size_t axis) {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  return stride;
}

const std::byte* element(const Tensor& tensor, std::int64_t index) {
  return tensor.bytes.data() + index * size_of(tensor.dtype);
}

// Calls `function` with an integer as wide as an element: rearranging elements needs only their width.
void with_word_of(DType dtype, const auto& function) {
  switch (size_of(dtype)) {
    case 1:
      return function(std::uint8_t{});
    case 2:
      return function(std::uint16_t{});
    case 4:
      return function(std::uint32_t{});
    default:
      return function(std::uint64_t{});
  }
}

// The elements of a tensor as words of that width.
template <class Word, std::size_t Rank>
auto words_of(const Tensor& tensor) {
  std::array<std::size_t, Rank> shape{};
  std::ranges::copy(tensor.shape, shape.begin());
  return xt::adapt(reinterpret_cast<const Word*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(Word),
                   xt::no_ownership(), shape);
}

void same_shape(LayoutReader& r, const char* a, const Tensor& x, const char* b, const Tensor& y) {
  if (x.shape != y.shape || x.dtype != y.dtype) {
    r.fault(r.given(b),
            fmt::format("is {}, but {} is {}: the two must be alike", describe(y), r.given(a), describe(x)));
  }
}

// The leading elements of an MLA row that are V. No default fits all models: a golden output with the whole row as V
// would be wrong, but plausible.
std::int64_t latent_value_size(LayoutReader& r, std::int64_t row) {
  constexpr std::int64_t kDeepSeekRow = 576;  // 512 latent + 64 rope
  constexpr std::int64_t kDeepSeekLatent = 512;
  if (!r.options().value_size && row != kDeepSeekRow) {
    r.fault("--value-size",
            fmt::format("is missing: an MLA row of {} elements is K, and its first elements are V: pass their number, "
                        "from 1 to {}",
                        row, row));
  }
  return r.options().value_size.value_or(row == kDeepSeekRow ? kDeepSeekLatent : 0);
}

// blocks [N, kv, L, P, H, D]
void read_max(LayoutReader& r, PreparedProblem& prepared, KeysAndValues& kv) {
  const Tensor* blocks = r.cache("blocks", 6, "[N, 2 (MLA: 1), L, P, H, D]");
  if (blocks != nullptr) {
    const Extents& s = blocks->shape;
    r.blocks = s[0];
    r.layers = s[2];
    r.page_size = s[3];
    r.heads = s[4];
    r.head_size = s[5];
    r.axes = "N2LPH";
    r.values_in_keys = s[1] == 1;
    r.value_size = s[1] == 1 ? latent_value_size(r, s[5]) : s[5];
    if (s[1] != 1 && s[1] != 2)
      r.fault("blocks", fmt::format("has shape {}: axis 1 is 2 (K and V) or 1 (MLA)", shape_text(s)));
    if (r.options().layer < 0 || r.options().layer >= s[2]) {
      r.fault("blocks", fmt::format("has {} layers; layer {} is outside [0, {})", s[2], r.options().layer, s[2]));
    } else {
      const LayerIdx layer{r.options().layer};
      const auto walk = [&](KOrV k_or_v) {
        const attention::PagedRows rows =
            attention::rows_of_pool(blocks->bytes.data(), blocks->dtype, shape_of<6>(*blocks), k_or_v, layer);
        return Walk{rows.data, rows.block_stride, rows.token_stride, rows.head_stride};
      };
      kv.k = walk(KOrV::k);
      kv.v = walk(s[1] == 2 ? KOrV::v : KOrV::k);
    }
  }
  if (blocks != nullptr && r.has("scales")) {
    const Tensor* scales = r.tensor("scales", 6, "[N, kv, L, P, H, scales a head]");
    if (scales != nullptr) {
      const Extents& s = scales->shape;
      const std::int64_t granularity = r.options().granularity.value_or(s[5] > 0 ? ceil_div(r.head_size, s[5]) : 0);
      if (!std::equal(s.begin(), s.end() - 1, blocks->shape.begin()) || granularity < 1 ||
          ceil_div(r.head_size, granularity) != s[5]) {
        r.fault("scales", fmt::format("has shape {}, but blocks {} at granularity {} need {}", shape_text(s),
                                      shape_text(blocks->shape), granularity,
                                      granularity < 1
                                          ? "a granularity of at least 1"
                                          : fmt::format("[{}, {}]",
                                                        fmt::join(blocks->shape.begin(), blocks->shape.end() - 1, ", "),
                                                        ceil_div(r.head_size, granularity))));
      } else if (!is_float(scales->dtype)) {
        r.fault("scales", fmt::format("is {}; scales are floats", name(scales->dtype)));
      } else if (r.ok()) {
        const LayerIdx layer{r.options().layer};
        const auto set = [&](attention::PagedRows& rows, KOrV k_or_v) {
          attention::set_scales(rows, scales->bytes.data(), scales->dtype, shape_of<6>(*scales), k_or_v, layer,
                                granularity);
        };
        set(prepared.problem.k, KOrV::k);
        set(prepared.problem.v, s[1] == 2 ? KOrV::v : KOrV::k);
      }
    }
  }
  r.read_table("lookup_table", "cache_lengths", true);
}

// k_cache, v_cache: [N, P, H, D], or [N, H, P, D] when `heads_first`.
void read_two_caches(LayoutReader& r, KeysAndValues& kv, bool heads_first) {
  const char* words = heads_first ? "[N, H, P, D]" : "[N, P, H, D]";
  const Tensor* k = r.cache("k_cache", 4, words);
  const Tensor* v = r.cache("v_cache", 4, words);
  if (k == nullptr || v == nullptr) return;
  same_shape(r, "k_cache", *k, "v_cache", *v);
  const Extents& s = k->shape;
  r.axes = heads_first ? "NHP" : "NPH";
  const std::size_t token_axis = heads_first ? 2 : 1;
  const std::size_t head_axis = heads_first ? 1 : 2;
  r.blocks = s[0];
  r.page_size = s[token_axis];
  r.heads = s[head_axis];
  r.head_size = s[3];
  r.value_size = s[3];
  kv.k = {k->bytes.data(), stride_of(s, 0), stride_of(s, token_axis), stride_of(s, head_axis)};
  kv.v = kv.k;
  kv.v.data = v->bytes.data();
}

void read_nhd(LayoutReader& r, PreparedProblem&, KeysAndValues& kv) {
  read_two_caches(r, kv, false);
  r.scales_by_sequence = true;
  if (r.page_size % 256 != 0) {
    r.notes.push_back(
        fmt::format("page size {}: FlashAttention 2 takes pages of multiples of 256 tokens only", r.page_size));
  }
  r.read_table("block_table", "cache_seqlens", false);
}

void read_hnd(LayoutReader& r, PreparedProblem&, KeysAndValues& kv) {
  read_two_caches(r, kv, true);
  r.scales_by_sequence = true;
  r.read_table("block_table", "cache_seqlens", false);
}

// kv_cache [N, 2, P, H, D] or [N, 2, H, P, D]
void read_flashinfer(LayoutReader& r, KeysAndValues& kv, bool heads_first) {
  if (!r.has("kv_cache") && r.has("k_cache")) {
    read_two_caches(r, kv, heads_first);
  } else if (const Tensor* cache = r.cache("kv_cache", 5, heads_first ? "[N, 2, H, P, D]" : "[N, 2, P, H, D]")) {
    const Extents& s = cache->shape;
    const std::size_t token_axis = heads_first ? 3 : 2;
    const std::size_t head_axis = heads_first ? 2 : 3;
    if (s[1] != 2) {
      r.fault(r.given("kv_cache"), fmt::format("has shape {}: axis 1 is 2, K and V", shape_text(s)));
    } else {
      r.axes = heads_first ? "N2HP" : "N2PH";
      r.blocks = s[0];
      r.page_size = s[token_axis];
      r.heads = s[head_axis];
      r.head_size = s[4];
      r.value_size = s[4];
      kv.k = {cache->bytes.data(), stride_of(s, 0), stride_of(s, token_axis), stride_of(s, head_axis)};
      kv.v = kv.k;
      kv.v.data = element(*cache, stride_of(s, 1));
    }
  }
  if (r.page_size > 0) r.read_indptr_pages();
}

void read_flashinfer_nhd(LayoutReader& r, PreparedProblem&, KeysAndValues& kv) {
  read_flashinfer(r, kv, false);
}
void read_flashinfer_hnd(LayoutReader& r, PreparedProblem&, KeysAndValues& kv) {
  read_flashinfer(r, kv, true);
}

// key_cache [N, H, D/x, P, x] and value_cache [N, H, D, P]: a token's elements are not contiguous in either, so both
// are copied to [N, P, H, D].
void read_vllm_legacy(LayoutReader& r, PreparedProblem& prepared, KeysAndValues& kv) {
  const Tensor* k = r.cache("key_cache", 5, "[N, H, D/x, P, x]");
  const Tensor* v = r.cache("value_cache", 4, "[N, H, D, P]");
  if (k != nullptr && v != nullptr) {
    const Extents& s = k->shape;
    r.blocks = s[0];
    r.heads = s[1];
    r.page_size = s[3];
    r.head_size = s[2] * s[4];
    r.value_size = r.head_size;
    r.axes = "NHP";
    const std::int64_t size = size_of(k->dtype);
    if (s[4] != 16 / size) {
      r.warnings.push_back(fmt::format("{} has x = {}; vLLM's is 16 bytes, {} elements of {}", r.given("key_cache"),
                                       s[4], 16 / size, name(r.cache_dtype)));
    }
    const Extents want{r.blocks, r.heads, r.head_size, r.page_size};
    if (v->shape != want || v->dtype != k->dtype) {
      r.fault(r.given("value_cache"), fmt::format("is {}, but {} {} needs {} {}", describe(*v), r.given("key_cache"),
                                                  describe(*k), name(k->dtype), shape_text(want)));
    } else {
      prepared.k_copy.resize(k->bytes.size());
      prepared.v_copy.resize(v->bytes.size());
      with_word_of(k->dtype, [&]<class Word>(Word) {
        const auto made = [&](std::vector<std::byte>& copy, auto... extents) {
          return xt::adapt(reinterpret_cast<Word*>(copy.data()), copy.size() / sizeof(Word), xt::no_ownership(),
                           std::array{static_cast<std::size_t>(extents)...});
        };
        auto k_made = made(prepared.k_copy, s[0], s[3], s[1], s[2], s[4]);   // [N, P, H, D/x, x]
        auto v_made = made(prepared.v_copy, s[0], s[3], s[1], r.head_size);  // [N, P, H, D]
        k_made = xt::transpose(words_of<Word, 5>(*k), {0, 3, 1, 2, 4});
        v_made = xt::transpose(words_of<Word, 4>(*v), {0, 3, 1, 2});
      });
      const std::int64_t token = r.heads * r.head_size;
      kv.k = {prepared.k_copy.data(), r.page_size * token, token, r.head_size};
      kv.v = {prepared.v_copy.data(), r.page_size * token, token, r.head_size};
    }
  }
  r.read_table("block_tables", "seq_lens", false);
}

// k_buffer, v_buffer [slots, H, D]: pages of one token.
void read_sglang(LayoutReader& r, PreparedProblem&, KeysAndValues& kv) {
  const Tensor* k = r.cache("k_buffer", 3, "[slots, H, D]");
  const Tensor* v = r.cache("v_buffer", 3, "[slots, H, D]");
  if (k != nullptr && v != nullptr) {
    same_shape(r, "k_buffer", *k, "v_buffer", *v);
    const Extents& s = k->shape;
    r.blocks = s[0];
    r.page_size = 1;
    r.axes = "NH";
    r.heads = s[1];
    r.head_size = s[2];
    r.value_size = s[2];
    kv.k = {k->bytes.data(), stride_of(s, 0), stride_of(s, 0), stride_of(s, 1)};
    kv.v = kv.k;
    kv.v.data = v->bytes.data();
  }
  r.read_indptr_tokens();
}

void read_mla(LayoutReader& r, PreparedProblem& prepared, KeysAndValues& kv) {
  r.heads = 1;
  r.axes = "NPH";
  r.values_in_keys = true;
  if (const Tensor* rows = r.find("kv_cache")) {
    const bool with_head = rows->shape.size() == 4;
    if (const Tensor* cache = r.cache("kv_cache", with_head ? 4 : 3, "[N, P, D] or [N, P, 1, D]")) {
      const Extents& s = cache->shape;
      r.blocks = s[0];
      r.page_size = s[1];
      r.head_size = s.back();
      if (with_head && s[2] != 1)
        r.fault(r.given("kv_cache"), fmt::format("has shape {}: MLA has one kv head", shape_text(s)));
      r.value_size = latent_value_size(r, r.head_size);
      kv.k = {cache->bytes.data(), stride_of(s, 0), r.head_size, r.head_size};
      kv.v = kv.k;
    }
  } else {
    const Tensor* ckv = r.cache("ckv", 3, "[N, P, latent] (or kv_cache [N, P, D])");
    const Tensor* kpe = r.cache("kpe", 3, "[N, P, rope]");
    if (ckv != nullptr && kpe != nullptr) {
      if (!std::equal(ckv->shape.begin(), ckv->shape.end() - 1, kpe->shape.begin()) || ckv->dtype != kpe->dtype) {
        r.fault(r.given("kpe"), fmt::format("is {}, but {} is {}: blocks, pages and type must be alike", describe(*kpe),
                                            r.given("ckv"), describe(*ckv)));
      } else {
        r.blocks = ckv->shape[0];
        r.page_size = ckv->shape[1];
        r.value_size = ckv->shape[2];
        r.head_size = ckv->shape[2] + kpe->shape[2];
        prepared.k_copy.resize(ckv->bytes.size() + kpe->bytes.size());
        with_word_of(ckv->dtype, [&]<class Word>(Word) {
          const auto latent = words_of<Word, 3>(*ckv), rope = words_of<Word, 3>(*kpe);
          const xt::xtensor<Word, 3> joined = xt::concatenate(xt::xtuple(latent, rope), 2);
          std::memcpy(prepared.k_copy.data(), joined.data(), prepared.k_copy.size());
        });
        kv.k = {prepared.k_copy.data(), r.page_size * r.head_size, r.head_size, r.head_size};
        kv.v = kv.k;
      }
    }
  }
  r.read_table("block_table", "cache_seqlens", false);
}

constexpr std::array<LayoutAdapter, 8> kAdapters{{{"max", read_max},
                                                  {"nhd", read_nhd},
                                                  {"hnd", read_hnd},
                                                  {"flashinfer", read_flashinfer_nhd},
                                                  {"flashinfer_hnd", read_flashinfer_hnd},
                                                  {"vllm_legacy", read_vllm_legacy},
                                                  {"sglang", read_sglang},
                                                  {"mla", read_mla}}};

}  // namespace

std::span<const LayoutAdapter> layout_adapters() {
  return kAdapters;
}

}  // namespace kvscope::golden

#include "core/golden/layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/attention/problem_checks.h"
#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/layout_reader.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kInt32Reach = std::int64_t{1} << 31;  // [elements] what a kernel's 32-bit offset can address
constexpr std::size_t kMaxEntryFaults = 8;

using Walk = LayoutReader::Walk;
using Shape = std::vector<std::int64_t>;

// Elements of one entry of axis `axis`: the product of the extents behind it.
std::int64_t stride_of(const Shape& shape, std::size_t axis) {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  return stride;
}

const std::byte* element(const Tensor& tensor, std::int64_t index) {
  return tensor.bytes.data() + index * size_of(tensor.dtype);
}

// --- adapters: each says where K and V stand, and which index tensors speak of them ----------------------------------

struct KeysAndValues {
  Walk k, v;
};

void same_shape(LayoutReader& r, const char* a, const Tensor& x, const char* b, const Tensor& y) {
  if (x.shape != y.shape || x.dtype != y.dtype) {
    r.fault(b, fmt::format("is {}, but {} is {}: the two must be alike", describe(y), a, describe(x)));
  }
}

// blocks [N, kv, L, P, H, D]
void read_max(LayoutReader& r, PreparedProblem& prepared, KeysAndValues& kv) {
  const Tensor* blocks = r.cache("blocks", 6, "[N, 2 (MLA: 1), L, P, H, D]");
  if (blocks != nullptr) {
    const Shape& s = blocks->shape;
    r.blocks = s[0];
    r.page_size = s[3];
    r.heads = s[4];
    r.head_size = s[5];
    r.value_size = s[1] == 1 ? r.options().value_size.value_or(s[5]) : s[5];
    if (s[1] != 1 && s[1] != 2)
      r.fault("blocks", fmt::format("has shape {}: axis 1 is 2 (K and V) or 1 (MLA)", shape_text(s)));
    if (r.options().layer < 0 || r.options().layer >= s[2]) {
      r.fault("blocks", fmt::format("has {} layers; layer {} is outside [0, {})", s[2], r.options().layer, s[2]));
    } else {
      const std::int64_t layer = r.options().layer * stride_of(s, 2);
      kv.k = {element(*blocks, layer), stride_of(s, 0), stride_of(s, 3), stride_of(s, 4)};
      kv.v = kv.k;
      if (s[1] == 2) kv.v.data = element(*blocks, stride_of(s, 1) + layer);
    }
  }
  if (blocks != nullptr && r.has("scales")) {
    const Tensor* scales = r.tensor("scales", 6, "[N, kv, L, P, H, scales a head]");
    if (scales != nullptr) {
      const Shape& s = scales->shape;
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
        const std::int64_t layer = r.options().layer * stride_of(s, 2);
        for (attention::PagedRows* rows : {&prepared.problem.k, &prepared.problem.v}) {
          rows->scales = element(*scales, layer + (rows == &prepared.problem.v && s[1] == 2 ? stride_of(s, 1) : 0));
          rows->scale_dtype = scales->dtype;
          rows->granularity = granularity;
          rows->scale_block_stride = stride_of(s, 0);
          rows->scale_token_stride = stride_of(s, 3);
          rows->scale_head_stride = stride_of(s, 4);
        }
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
  const Shape& s = k->shape;
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
  if (r.page_size % 256 != 0) {
    r.notes.push_back(
        fmt::format("page size {}: FlashAttention 2 takes pages of multiples of 256 tokens only", r.page_size));
  }
  r.read_table("block_table", "cache_seqlens", false);
}

void read_hnd(LayoutReader& r, PreparedProblem&, KeysAndValues& kv) {
  read_two_caches(r, kv, true);
  r.read_table("block_table", "cache_seqlens", false);
}

// kv_cache [N, 2, P, H, D] or [N, 2, H, P, D]
void read_flashinfer(LayoutReader& r, KeysAndValues& kv, bool heads_first) {
  if (!r.has("kv_cache") && r.has("k_cache")) {
    read_two_caches(r, kv, heads_first);
  } else if (const Tensor* cache = r.cache("kv_cache", 5, heads_first ? "[N, 2, H, P, D]" : "[N, 2, P, H, D]")) {
    const Shape& s = cache->shape;
    const std::size_t token_axis = heads_first ? 3 : 2;
    const std::size_t head_axis = heads_first ? 2 : 3;
    if (s[1] != 2) {
      r.fault("kv_cache", fmt::format("has shape {}: axis 1 is 2, K and V", shape_text(s)));
    } else {
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

// key_cache [N, H, D/x, P, x] and value_cache [N, H, D, P]: neither has a token's elements together, so both are
// copied to [N, P, H, D].
void read_vllm_legacy(LayoutReader& r, PreparedProblem& prepared, KeysAndValues& kv) {
  const Tensor* k = r.cache("key_cache", 5, "[N, H, D/x, P, x]");
  const Tensor* v = r.cache("value_cache", 4, "[N, H, D, P]");
  if (k != nullptr && v != nullptr) {
    const Shape& s = k->shape;
    r.blocks = s[0];
    r.heads = s[1];
    r.page_size = s[3];
    r.head_size = s[2] * s[4];
    r.value_size = r.head_size;
    const auto size = static_cast<std::size_t>(size_of(k->dtype));
    if (s[4] != 16 / static_cast<std::int64_t>(size)) {
      r.warnings.push_back(fmt::format("key_cache has x = {}; vLLM's is 16 bytes, {} elements of {}", s[4], 16 / size,
                                       name(r.cache_dtype)));
    }
    const Shape want{r.blocks, r.heads, r.head_size, r.page_size};
    if (v->shape != want || v->dtype != k->dtype) {
      r.fault("value_cache", fmt::format("is {}, but key_cache {} needs {} {}", describe(*v), describe(*k),
                                         name(k->dtype), shape_text(want)));
    } else {
      prepared.k_copy.resize(k->bytes.size());
      prepared.v_copy.resize(v->bytes.size());
      std::size_t to = 0;
      for (std::int64_t n = 0; n < r.blocks; ++n) {
        for (std::int64_t p = 0; p < r.page_size; ++p) {
          for (std::int64_t h = 0; h < r.heads; ++h) {
            for (std::int64_t d = 0; d < r.head_size; ++d, to += size) {
              const std::int64_t row = n * r.heads + h;
              const std::int64_t from_k = ((row * s[2] + d / s[4]) * r.page_size + p) * s[4] + d % s[4];
              const std::int64_t from_v = (row * r.head_size + d) * r.page_size + p;
              std::memcpy(prepared.k_copy.data() + to, element(*k, from_k), size);
              std::memcpy(prepared.v_copy.data() + to, element(*v, from_v), size);
            }
          }
        }
      }
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
    const Shape& s = k->shape;
    r.blocks = s[0];
    r.page_size = 1;
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
  constexpr std::int64_t kDeepSeekRow = 576;  // 512 latent + 64 rope
  constexpr std::int64_t kDeepSeekLatent = 512;
  r.heads = 1;
  if (r.has("kv_cache")) {
    const bool with_head = r.bundle().tensors.at("kv_cache").shape.size() == 4;
    if (const Tensor* cache = r.cache("kv_cache", with_head ? 4 : 3, "[N, P, D] or [N, P, 1, D]")) {
      const Shape& s = cache->shape;
      r.blocks = s[0];
      r.page_size = s[1];
      r.head_size = s.back();
      if (with_head && s[2] != 1) r.fault("kv_cache", fmt::format("has shape {}: MLA has one kv head", shape_text(s)));
      r.value_size = r.options().value_size.value_or(r.head_size == kDeepSeekRow ? kDeepSeekLatent : 0);
      if (r.value_size == 0) {
        r.fault("--value-size", fmt::format("is missing: of a row's {} elements, how many are V?", r.head_size));
      }
      kv.k = {cache->bytes.data(), stride_of(s, 0), r.head_size, r.head_size};
      kv.v = kv.k;
    }
  } else {
    const Tensor* ckv = r.cache("ckv", 3, "[N, P, latent] (or kv_cache [N, P, D])");
    const Tensor* kpe = r.cache("kpe", 3, "[N, P, rope]");
    if (ckv != nullptr && kpe != nullptr) {
      if (!std::equal(ckv->shape.begin(), ckv->shape.end() - 1, kpe->shape.begin()) || ckv->dtype != kpe->dtype) {
        r.fault("kpe", fmt::format("is {}, but ckv is {}: blocks, pages and type must be alike", describe(*kpe),
                                   describe(*ckv)));
      } else {
        r.blocks = ckv->shape[0];
        r.page_size = ckv->shape[1];
        r.value_size = ckv->shape[2];
        r.head_size = ckv->shape[2] + kpe->shape[2];
        const auto latent = static_cast<std::size_t>(ckv->shape[2] * size_of(ckv->dtype));
        const auto rope = static_cast<std::size_t>(kpe->shape[2] * size_of(kpe->dtype));
        const auto tokens = static_cast<std::size_t>(r.blocks * r.page_size);
        prepared.k_copy.resize(tokens * (latent + rope));
        for (std::size_t t = 0; t < tokens; ++t) {
          std::memcpy(prepared.k_copy.data() + t * (latent + rope), ckv->bytes.data() + t * latent, latent);
          std::memcpy(prepared.k_copy.data() + t * (latent + rope) + latent, kpe->bytes.data() + t * rope, rope);
        }
        kv.k = {prepared.k_copy.data(), r.page_size * r.head_size, r.head_size, r.head_size};
        kv.v = kv.k;
      }
    }
  }
  r.read_table("block_table", "cache_seqlens", false);
}

struct Layout {
  std::string_view name;
  void (*read)(LayoutReader&, PreparedProblem&, KeysAndValues&);
};
constexpr std::array<Layout, 8> kLayouts{{{"max", read_max},
                                          {"nhd", read_nhd},
                                          {"hnd", read_hnd},
                                          {"flashinfer", read_flashinfer_nhd},
                                          {"flashinfer_hnd", read_flashinfer_hnd},
                                          {"vllm_legacy", read_vllm_legacy},
                                          {"sglang", read_sglang},
                                          {"mla", read_mla}}};

// --- what all layouts share ------------------------------------------------------------------------------------------

void read_queries(LayoutReader& r, PreparedProblem& prepared) {
  attention::Problem& problem = prepared.problem;
  const auto batch = static_cast<std::int64_t>(r.pages.first.size());
  problem.batch = batch;
  const bool batch_known = r.ok() || batch > 0;  // else what is wrong with the index tensors has been said
  if (!r.has("q")) {
    r.fault("q", "is missing; it is [T, Hq, D] with query_offsets [B + 1], or [B, queries, Hq, D]");
    return;
  }
  const Tensor& q = r.bundle().tensors.at("q");
  problem.q_dtype = r.options().query_dtype.value_or(q.dtype);
  if (bits(problem.q_dtype) != bits(q.dtype) || !is_float(problem.q_dtype)) {
    r.fault("q", fmt::format("is {}: say which floats its bit patterns are, by the ending of its name (_bf16, _f16)",
                             name(q.dtype)));
  }
  std::string offsets_name;
  for (const char* known : {"query_offsets", "cu_seqlens_q", "qo_indptr"}) {
    if (r.has(known) && offsets_name.empty()) offsets_name = known;
  }
  std::int64_t rows = 0;
  if (q.shape.size() == 4) {
    rows = q.shape[0] * q.shape[1];
    if (q.shape[0] != batch) {
      r.fault("q", fmt::format("has shape {}, but there are {} sequences", shape_text(q.shape), batch));
      return;
    }
    for (std::int64_t b = 0; b <= batch; ++b) prepared.query_offsets.push_back(b * q.shape[1]);
  } else if (q.shape.size() == 3) {
    rows = q.shape[0];
    if (!offsets_name.empty()) {
      const std::size_t before = r.faults.size();
      prepared.query_offsets = r.integers(offsets_name, 1, "[B + 1]");
      if (r.faults.size() > before) return;
    } else if (rows == batch) {
      for (std::int64_t b = 0; b <= batch; ++b) prepared.query_offsets.push_back(b);
    } else {
      if (batch_known)
        r.fault("q", fmt::format("has {} rows for {} sequences: add query_offsets [B + 1]", rows, batch));
      return;
    }
  } else {
    r.fault("q", fmt::format("has shape {}; it is [T, Hq, D] or [B, queries, Hq, D]", shape_text(q.shape)));
    return;
  }
  const std::vector<std::int64_t>& offsets = prepared.query_offsets;
  if (batch_known && (offsets.size() != static_cast<std::size_t>(batch) + 1 || offsets.front() != 0 ||
                      offsets.back() != rows || !std::is_sorted(offsets.begin(), offsets.end()))) {
    r.fault(offsets_name.empty() ? "q" : offsets_name,
            fmt::format("must be {} entries, rising from 0 to the {} rows of q", batch + 1, rows));
  }
  problem.query_heads = q.shape[q.shape.size() - 2];
  problem.q = q.bytes.data();
  if (q.shape.back() != r.head_size && r.head_size > 0) {
    r.fault("q",
            fmt::format("has shape {}, but a head of the cache has {} elements", shape_text(q.shape), r.head_size));
  }
  if (r.heads > 0 && (problem.query_heads == 0 || problem.query_heads % r.heads != 0)) {
    r.fault("q", fmt::format("has {} heads, not a multiple of the {} kv heads", problem.query_heads, r.heads));
  }
  for (auto& [tensor_name, to] : {std::pair<const char*, std::vector<double>&>{"alibi_slopes", prepared.alibi_slopes},
                                  {"sinks", prepared.sinks}}) {
    if (!r.has(tensor_name)) continue;
    const Tensor* tensor = r.tensor(tensor_name, 1, "[Hq]");
    if (tensor == nullptr) continue;
    if (tensor->shape[0] != problem.query_heads) {
      r.fault(tensor_name, fmt::format("has {} entries for {} query heads", tensor->shape[0], problem.query_heads));
    } else {
      to.resize(static_cast<std::size_t>(tensor->shape[0]));
      to_doubles(tensor->dtype, tensor->bytes.data(), to);
    }
  }
}

// What a person may have typed wrong, under the name they typed it: masks must make sense before tables are looked at.
void check_options(LayoutReader& r) {
  const attention::Options& o = r.options().attention;
  if (o.mask == MaskKind::sliding_window) {
    for (const auto& [option, keys] : {std::pair{"--window-left", o.window_left}, {"--window-right", o.window_right}}) {
      if (keys < -1) r.fault(option, fmt::format("{} keys: give at least 0, or -1 for no limit", keys));
    }
  }
  if (o.mask == MaskKind::chunked && o.chunk < 1) {
    r.fault("--chunk", fmt::format("{} positions: a chunk holds at least 1", o.chunk));
  }
  if (o.soft_cap && !(*o.soft_cap > 0 && std::isfinite(*o.soft_cap))) {
    r.fault("--soft-cap", fmt::format("{} is no finite number above 0: leave it out for no cap", *o.soft_cap));
  }
  if (r.options().scale && !std::isfinite(*r.options().scale)) {
    r.fault("--scale", fmt::format("{} is no finite number", *r.options().scale));
  }
  if (r.options().layout != "max" && r.options().layer != 0) {
    r.fault("--layer", fmt::format("{}: layout {} holds one layer", r.options().layer, r.options().layout));
  }
}

void set_options(LayoutReader& r, PreparedProblem& prepared) {
  attention::Options& options = prepared.problem.options;
  options = r.options().attention;
  if (!prepared.alibi_slopes.empty()) options.alibi_slopes = prepared.alibi_slopes;
  if (!prepared.sinks.empty()) options.sinks = prepared.sinks;
  const bool is_mla = r.value_size != r.head_size || r.options().layout == "mla";
  if (r.options().scale) {
    options.scale = *r.options().scale;
  } else if (is_mla) {
    r.fault("--scale", "is missing: engines scale MLA by 1/sqrt(576) or by 1/sqrt(192), say which");
  } else if (r.head_size > 0) {
    options.scale = 1.0 / std::sqrt(static_cast<double>(r.head_size));
  }
  if (r.head_size > 0 && r.value_size != 0 && (r.value_size < 1 || r.value_size > r.head_size)) {
    r.fault("--value-size", fmt::format("{} is outside [1, {}], a head's elements", r.value_size, r.head_size));
  }
}

// Lengths into keys, and the table's entries where they are read.
void build_table(LayoutReader& r, PreparedProblem& prepared) {
  attention::Problem& problem = prepared.problem;
  const LayoutReader::Pages& pages = r.pages;
  std::int64_t columns = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = prepared.query_offsets[at + 1] - prepared.query_offsets[at];
    const std::int64_t keys = pages.lengths[at] + (pages.lengths_without_new ? queries : 0);
    prepared.key_lengths.push_back(keys);
    const std::int64_t needed = ceil_div(keys, r.page_size);
    if (needed > pages.columns[at]) {
      r.fault(
          fmt::format("{}[{}]", pages.lengths_name, b),
          fmt::format("sequence {} has {} keys{}, which are {} pages of {} tokens, but {} has {} columns", b, keys,
                      pages.lengths_without_new ? fmt::format(" ({} cached, {} new)", pages.lengths[at], queries) : "",
                      needed, r.page_size, pages.table_name, pages.columns[at]));
    } else {
      columns = std::max(columns, needed);
    }
  }
  if (!r.ok()) return;
  problem.query_offsets = prepared.query_offsets;
  problem.key_lengths = prepared.key_lengths;
  prepared.table.assign(static_cast<std::size_t>(problem.batch * columns), kUnknownBlock);
  std::size_t bad = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const attention::KeyRange keys = attention::needed_keys(problem, b);
    if (keys.empty()) continue;
    for (std::int64_t page = keys.first / r.page_size; page <= (keys.last - 1) / r.page_size; ++page) {
      const std::int64_t entry =
          pages.entries[static_cast<std::size_t>(pages.first[static_cast<std::size_t>(b)] + page)];
      if (entry >= 0 && entry < r.blocks) {
        prepared.table[static_cast<std::size_t>(b * columns + page)] = static_cast<std::uint32_t>(entry);
      } else if (bad++ < kMaxEntryFaults) {
        const bool flat = pages.table_name == "kv_indices";
        r.fault(flat ? fmt::format("kv_indices[{}]", pages.first[static_cast<std::size_t>(b)] + page)
                     : fmt::format("{}[{}, {}]", pages.table_name, b, page),
                fmt::format("is {}, outside the {} blocks; sequence {} has {} keys and reads its page {}", entry,
                            r.blocks, b, prepared.key_lengths[static_cast<std::size_t>(b)], page));
      }
    }
  }
  if (bad > kMaxEntryFaults)
    r.fault(pages.table_name, fmt::format("and {} more entries outside the blocks", bad - kMaxEntryFaults));
  for (attention::PagedRows* rows : {&problem.k, &problem.v}) {
    rows->table = prepared.table.data();
    rows->table_stride = columns;
  }
}

void warn_of_known_failures(LayoutReader& r, const KeysAndValues& kv) {
  if (kv.k.block > 0 && r.blocks > kInt32Reach / kv.k.block) {
    r.warnings.push_back(
        fmt::format("block {} starts past element 2^31: a kernel that multiplies block and stride in 32 bits "
                    "reads another block from there on",
                    ceil_div(kInt32Reach, kv.k.block)));
  }
  if (bits(r.cache_dtype) == 8 && !r.has("scales")) {
    r.warnings.push_back(
        fmt::format("the cache is {} without scales: elements are taken as they are", name(r.cache_dtype)));
  }
}

}  // namespace

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Layout& layout : kLayouts) all.emplace_back(layout.name);
    return all;
  }();
  return names;
}

PreparedProblem prepare_problem(const Bundle& bundle, const LayoutOptions& options, std::string_view source) {
  const auto* layout =
      std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& l) { return l.name == options.layout; });
  if (layout == kLayouts.end()) {
    throw InputError("command line", "--layout",
                     fmt::format("'{}' is no layout; layouts are {}", options.layout, fmt::join(layout_names(), ", ")));
  }
  PreparedProblem prepared;
  prepared.layout = options.layout;
  LayoutReader reader(bundle, options);
  KeysAndValues kv;
  layout->read(reader, prepared, kv);
  read_queries(reader, prepared);
  check_options(reader);
  set_options(reader, prepared);
  if (reader.ok()) {
    reader.set_rows(prepared.problem.k, kv.k, reader.cache_dtype);
    reader.set_rows(prepared.problem.v, kv.v, reader.cache_dtype);
    prepared.problem.v.head_size = reader.value_size;
    build_table(reader, prepared);
  }
  if (!reader.ok()) throw InputError(source, std::move(reader.faults));
  warn_of_known_failures(reader, kv);
  prepared.warnings = std::move(reader.warnings);
  prepared.notes = std::move(reader.notes);
  return prepared;
}

}  // namespace kvscope::golden

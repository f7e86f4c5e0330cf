#include "core/golden/layouts/detail/known_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/golden/layouts/detail/cache_view.h"

namespace kvscope::golden {
namespace {

struct CommonTensor {
  std::string_view name, synonyms, shape;
};

constexpr std::string_view kScaleShape =
    "[] per tensor, [H] per KV head, [N, P] per token, [N] per block, with [H] per KV head too";

constexpr auto kCommonTensors = std::to_array<CommonTensor>({
    {"q", "query", "[T, Hq, D] or [B, queries, Hq, D]"},
    {"query_offsets", "cu_seqlens_q qo_indptr query_start_loc cum_seq_lens_q", "[B + 1]"},
    {"k_scale", "k_scales k_descale key_scale key_scales k_cache_scale k_scale_cache", kScaleShape},
    {"v_scale", "v_scales v_descale value_scale value_scales v_cache_scale v_scale_cache", kScaleShape},
    {"kv_scale", "kv_scales kv_descale kv_cache_scale", "as k_scale, or with an axis of 2 for K and V"},
    {"sm_scale", "scale softmax_scale", "[]"},
    {"sinks", "sink attn_sink attn_sinks attention_sinks s_aux", "[Hq]"},
    {"alibi_slopes", "alibi", "[Hq]"},
    {"q_lens", "seqused_q query_lens q_seq_lens", "[B]"},
    {"custom_mask", "", "[sum of queries * keys]"},
    {"packed_custom_mask", "custom_mask_buf", "bytes of 8 bits"},
    {"mask_indptr", "mask_indptr_buf", "[B + 1]"},
    {"tree_mask", "tree_attn_mask tree_attn_bias qq_bias spec_decoding_packed_mask",
     "[S, S], [B, S, S], or a list of all keys, of all queries, or of bits"},
    {"attn_mask", "attention_bias attn_bias", "[Sq, Sk], [B, Sq, Sk] or [B, Hq, Sq, Sk]; 1 for a shared axis"},
});

// Forms of a layout may have a tensor in common, with the same names.
void add_known(std::vector<KnownTensor>& known, std::string name, const std::vector<std::string>& synonyms,
               const std::string& shape) {
  const auto found = std::ranges::find(known, name, &KnownTensor::name);
  if (found == known.end()) {
    known.push_back({std::move(name), fmt::format("{}", fmt::join(synonyms, " ")), shape});
  } else if (found->shape.find(shape) == std::string::npos) {
    found->shape += " or " + shape;
  }
}

}  // namespace

std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> all;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    all.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return all;
}

std::vector<KnownTensor> known_tensors_of(const LayoutDescription& layout) {
  std::vector<KnownTensor> known;
  for (const CacheForm& form : layout.forms) {
    for (const CacheTensor& tensor : form.tensors) add_known(known, tensor.name, tensor.also, tensor.shape_words());
  }
  for (const std::string& role : table_roles(layout.table.form)) {
    if (!layout.table.has(role)) continue;
    std::vector<std::string> names = layout.table.tensors.at(role);
    const std::string first = names.front();
    names.erase(names.begin());
    add_known(known, first, names, "");
  }
  for (const CommonTensor& tensor : kCommonTensors) {
    known.push_back({std::string(tensor.name), std::string(tensor.synonyms), std::string(tensor.shape)});
  }
  if (layout.needs_value_size()) {
    known.push_back({"q_nope", "", "[T, Hq, latent]"});
    known.push_back({"q_pe", "q_rope", "[T, Hq, rope]"});
  }
  for (const CacheForm& form : layout.forms) {
    for (const CacheTensor& tensor : with_block_scales(form).tensors) {
      if (tensor.holds_scales()) add_known(known, tensor.name, tensor.also, tensor.shape_words());
    }
  }
  return known;
}

}  // namespace kvscope::golden

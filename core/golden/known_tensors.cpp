#include "core/golden/detail/known_tensors.h"

#include <algorithm>
#include <array>

namespace kvscope::golden {
namespace {

constexpr std::string_view kScaleShape =
    "[] per tensor, [H] per KV head, [N, P] per token, [N] per block, with [H] per KV head too";

constexpr auto kKnownTensors = std::to_array<KnownTensor>({
    // Keys and values.
    {"max", "blocks", "", "[N, 2 (MLA: 1), L, P, H, D]"},
    {"max", "scales", "", "[N, kv, L, P, H, scales a head]"},
    {"nhd hnd flashinfer flashinfer_hnd", "k_cache", "key_cache", "[N, P, H, D], hnd [N, H, P, D]"},
    {"nhd hnd flashinfer flashinfer_hnd", "v_cache", "value_cache", "[N, P, H, D], hnd [N, H, P, D]"},
    {"flashinfer flashinfer_hnd", "kv_cache", "paged_kv_cache", "[N, 2, P, H, D], hnd [N, 2, H, P, D]"},
    {"vllm_legacy", "key_cache", "k_cache", "[N, H, D/x, P, x]"},
    {"vllm_legacy", "value_cache", "v_cache", "[N, H, D, P]"},
    {"sglang", "k_buffer", "", "[slots, H, D]"},
    {"sglang", "v_buffer", "", "[slots, H, D]"},
    {"mla", "kv_cache", "k_cache", "[N, P, D] or [N, P, 1, D]"},
    {"mla", "ckv", "ckv_cache", "[N, P, latent]"},
    {"mla", "kpe", "kpe_cache", "[N, P, rope]"},
    // The location of the pages, and the number of keys of each sequence.
    {"max", "lookup_table", "", "[B, columns]"},
    {"max", "cache_lengths", "", "[B]"},
    {"nhd hnd mla", "block_table", "block_tables page_table", "[B, columns]"},
    {"nhd hnd mla", "cache_seqlens", "seq_lens seqused_k context_lens", "[B]"},
    {"vllm_legacy", "block_tables", "block_table", "[B, columns]"},
    {"vllm_legacy", "seq_lens", "context_lens cache_seqlens", "[B]"},
    {"flashinfer flashinfer_hnd sglang", "kv_indptr", "paged_kv_indptr", "[B + 1]"},
    {"flashinfer flashinfer_hnd sglang", "kv_indices", "paged_kv_indices", "[pages], sglang [tokens]"},
    {"flashinfer flashinfer_hnd", "kv_last_page_len", "paged_kv_last_page_len", "[B]"},
    // Tensors of all layouts.
    {"", "q", "query", "[T, Hq, D] or [B, queries, Hq, D]"},
    {"", "query_offsets", "cu_seqlens_q qo_indptr", "[B + 1]"},
    {"", "k_scale", "k_scales k_descale key_scale key_scales k_cache_scale k_scale_cache", kScaleShape},
    {"", "v_scale", "v_scales v_descale value_scale value_scales v_cache_scale v_scale_cache", kScaleShape},
    {"", "kv_scale", "kv_scales kv_descale kv_cache_scale", "as k_scale, or with an axis of 2 for K and V"},
    {"", "sm_scale", "scale softmax_scale", "[]"},
    {"", "sinks", "sink attn_sink attn_sinks attention_sinks s_aux", "[Hq]"},
    {"", "alibi_slopes", "alibi", "[Hq]"},
});

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

std::span<const KnownTensor> known_tensors() {
  return kKnownTensors;
}

std::vector<KnownTensor> known_tensors_of(std::string_view layout) {
  std::vector<KnownTensor> known;
  for (const KnownTensor& tensor : kKnownTensors) {
    if (tensor.layouts.empty() || std::ranges::count(words(tensor.layouts), layout) > 0) known.push_back(tensor);
  }
  return known;
}

}  // namespace kvscope::golden

#include "gpu/verify/case.h"

namespace kvscope::gpu {

bool Verdict::take(const Outcome& outcome) {
  faults.insert(faults.end(), outcome.faults.begin(), outcome.faults.end());
  if (outcome.costs) costs += *outcome.costs;
  return outcome.faults.empty();
}

const std::vector<Kernel>& all_kernels() {
  static const std::vector<Kernel> kernels = {
      {"append_tokens", "new tokens of K and V into their pages, quantized if the cache is", append_tokens_cases()},
      {"gather_rows", "rows of the cache by token or by encoded sparse index, as they are or with their scales",
       gather_rows_cases()},
      {"populate_rows", "the rows of a whole tile from the lookup table, 1, 2, 4 or 8 entries per load",
       populate_rows_cases()},
      {"tma_tile_load", "a tile of K or V into swizzled shared memory by tensor copies", tma_tile_load_cases()},
      {"gather4_tile_load", "individually selected rows into a tile, four per instruction", gather4_tile_load_cases()},
      {"lds_stage", "a double buffer filled by cp.async and read into fragments", lds_stage_cases()},
      {"paged_decode", "attention of one new token per sequence, split over its keys", paged_decode_cases()},
      {"paged_prefill", "attention of many new tokens: causal, windowed, capped", paged_prefill_cases()},
      {"mla_decode", "decode over one latent row for all heads, bf16, e4m3 or 656-byte fp8, dense or sparse",
       mla_decode_cases()},
      {"continuous_decode", "decode over a cache of one block per sequence", continuous_decode_cases()},
  };
  return kernels;
}

}  // namespace kvscope::gpu

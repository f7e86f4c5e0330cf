// Cases of continuous_decode: one block per sequence, as long as the longest sequence.
#include "gpu/verify/decode_case.h"

namespace kvscope::gpu {

std::vector<Case> continuous_decode_cases() {
  std::vector<DecodeCase> list;
  // TMA: one box of 64 slots of 128 bytes per sequence, of K and of V, in full although blocks end at 17.
  list.push_back(
      {.name = "bf16_demo",
       .what = "blocks of 17 tokens: the box extends past them, into zeros",
       .shape =
           {.dtype = DType::bf16, .page_size = 17, .layers = 1, .kv_heads = 1, .head_size = 64, .lengths = {5, 17}},
       .group = 2,
       .demo = true,
       .budget = {.tma_bytes = 32768}});
  // TMA: 1 + 1 + 1 + 2 + 2 boxes of 64 slots of 256 bytes, of K and of V, of two heads.
  list.push_back({.name = "bf16_s100_gqa4",
                  .what = "a sequence that fills its block, one that is empty; the second of two layers",
                  .shape = {.dtype = DType::bf16, .page_size = 100, .lengths = {0, 1, 63, 64, 65, 100}},
                  .group = 4,
                  .layer = 1,
                  .budget = {.tma_bytes = 458752}});
  list.push_back(
      {.name = "bf16_s70_sharp",
       .what = "scores in the hundreds, of both signs: without subtracting the maximum, weights are infinite or all 0",
       .shape = {.dtype = DType::bf16, .page_size = 70, .layers = 1, .head_size = 64, .lengths = {1, 70}},
       .group = 3,
       .splits = 2,
       .sharpness = 100});
  list.push_back({.name = "f16_s333_mqa20",
                  .what = "several runs of a block, and more query heads than a CTA has",
                  .shape = {.dtype = DType::f16,
                            .page_size = 333,
                            .layers = 1,
                            .kv_heads = 1,
                            .head_size = 64,
                            .lengths = {333, 130},
                            .sentinels = true},
                  .group = 20,
                  .out = DType::f16,
                  .splits = 3});
  list.push_back({.name = "bf16_s500_ring",
                  .what = "more tiles than stages, from one block",
                  .shape = {.dtype = DType::bf16, .page_size = 500, .layers = 1, .kv_heads = 1, .lengths = {499}},
                  .group = 5});
  list.push_back({.name = "e4m3_s90_unscaled",
                  .what = "one byte per element",
                  .shape = {.dtype = DType::e4m3, .page_size = 90, .lengths = {90, 17, 64}},
                  .group = 8});
  list.push_back({.name = "bf16_padded_rows",
                  .what = "cp.async from one block",
                  .shape = {.dtype = DType::bf16, .page_size = 70, .layers = 1, .lengths = {70, 65, 1}},
                  .group = 4,
                  .splits = 2,
                  .padding = 2});
  list.push_back({.name = "bf16_padded_rows_of_16",
                  .what = "strides that are multiples of only 16 bytes",
                  .shape = {.dtype = DType::bf16, .page_size = 70, .layers = 1, .lengths = {70, 65, 1}},
                  .group = 4,
                  .splits = 2,
                  .padding = 8});
  list.push_back({.name = "f32_s40",
                  .what = "the path without a ring",
                  .shape = {.dtype = DType::f32, .page_size = 40, .lengths = {0, 1, 39, 40}},
                  .group = 4,
                  .layer = 1,
                  .out = DType::f32,
                  .splits = 2});
  list.push_back({.name = "bf16_s75_d112_cap_window",
                  .what = "any head size from one block: the window moves the first slot",
                  .shape = {.dtype = DType::bf16, .page_size = 75, .head_size = 112, .lengths = {75, 31, 30, 3}},
                  .group = 3,
                  .layer = 1,
                  .soft_cap = 5,
                  .window = 30});
  list.push_back({.name = "e4m3_s50_granule32",
                  .what = "several scales per head from one block",
                  .shape = {.dtype = DType::e4m3, .page_size = 50, .layers = 1, .lengths = {50, 9}, .granularity = 32},
                  .group = 4});
  return decode_cases("continuous_decode", std::move(list));
}

}  // namespace kvscope::gpu

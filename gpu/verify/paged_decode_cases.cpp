// Cases of paged_decode. Together they cover every page size with every method of copying it, every type with both head
// sizes, groups on both sides of 8 and 16, and lengths on both sides of a page, a tile, a run and 16 keys. The entries
// for any head size are covered with each type, each number of lanes per key, and the features that only they support.
#include "gpu/verify/decode_case.h"

namespace kvscope::gpu {

std::vector<Case> paged_decode_cases() {
  std::vector<DecodeCase> list;

  // TMA: 1 + 2 boxes of 16 slots of 128 bytes, of K and of V.
  list.push_back(
      {.name = "bf16_page16_demo",
       .what = "one page and one token of the next: the last key of sequence 1 is alone in its page",
       .shape =
           {.dtype = DType::bf16, .page_size = 16, .layers = 1, .kv_heads = 1, .head_size = 64, .lengths = {5, 17}},
       .group = 2,
       .demo = true,
       .budget = {.tma_bytes = 12288}});
  // TMA: 1 + 1 + 1 + 2 + 7 boxes of 16 slots of 256 bytes, of K and of V, of two heads: 196608.
  // Wavefronts: each of the 24 boxes is one warp's 16 keys, 16 ldmatrix of 4: 1536. The end of each of ten CTAs: 32
  // stores of maxima and sums, 32 loads of maxima, 128 stores and 96 loads of the merge: 288. Sectors: the boxes 6144;
  // queries 4 warps * 16 loads * 4 rows of ten CTAs 2560; partial outputs 4 rows of 16, written and read, 1280; outputs
  // 48 rows of 8, 384; their logarithms 42 + 96 + 48; lengths 60; table 12.
  list.push_back({.name = "bf16_page16_gqa4",
                  .what = "lengths 0, 1, P-1, P, P+1 and several pages; the second of two layers",
                  .shape = {.dtype = DType::bf16, .page_size = 16, .lengths = {0, 1, 15, 16, 17, 100}},
                  .group = 4,
                  .layer = 1,
                  .budget = {.wavefronts = 4416, .sectors = 10626, .tma_bytes = 196608}});
  // TMA: 38 boxes of 16 slots, of K and of V.
  list.push_back(
      {.name = "bf16_page16_ring",
       .what = "ten tiles through a ring of three stages: detects a phase mistaken for the next one",
       .shape = {.dtype = DType::bf16, .page_size = 16, .layers = 1, .kv_heads = 1, .lengths = {601}, .seed = 2},
       .group = 8,
       .budget = {.tma_bytes = 311296}});
  list.push_back(
      {.name = "bf16_page16_planned",
       .what = "runs as planned for 132 multiprocessors: shorter sequences end before the last run",
       .shape = {.dtype = DType::bf16, .page_size = 16, .layers = 1, .kv_heads = 2, .lengths = {300, 64, 65, 0, 1}},
       .group = 3,
       .splits = 0});
  list.push_back(
      {.name = "bf16_page16_sharp",
       .what = "scores in the hundreds, of both signs: without subtracting the maximum, weights are infinite or all 0",
       .shape = {.dtype = DType::bf16, .page_size = 16, .layers = 1, .lengths = {1, 2, 60, 150}},
       .group = 4,
       .splits = 3,
       .sharpness = 100});
  list.push_back({.name = "f16_page64_mqa8",
                  .what = "pages as long as a tile, one KV head, table entries past the pool after the last page",
                  .shape = {.dtype = DType::f16,
                            .page_size = 64,
                            .kv_heads = 1,
                            .head_size = 64,
                            .lengths = {63, 64, 65, 129},
                            .sentinels = true},
                  .group = 8,
                  .out = DType::f16,
                  .splits = 2});
  list.push_back({.name = "bf16_page16_mqa40",
                  .what = "40 query heads of one KV head: CTAs of 16, 16 and 8 heads",
                  .shape = {.dtype = DType::bf16, .page_size = 16, .layers = 1, .kv_heads = 1, .lengths = {33, 70}},
                  .group = 40,
                  .splits = 2});
  // Sectors: K and V of 335 keys, two heads, 8 each: 10720; queries 4 * 16 * 3 of 14 CTAs 2688; partial outputs,
  // written and read, 1344; outputs 336; lengths 168; logarithms 266; table 90, with eight entries per sector although
  // a page is one token.
  list.push_back(
      {.name = "bf16_page1_gqa3",
       .what =
           "pages of one token, so adjacent keys are in different blocks; by cp.async; sentinels after the last page",
       .shape = {.dtype = DType::bf16, .page_size = 1, .lengths = {0, 1, 2, 63, 64, 65, 140}, .sentinels = true},
       .group = 3,
       .layer = 1,
       .splits = 2,
       .budget = {.sectors = 15700}});
  list.push_back(
      {.name = "bf16_page4_ring",
       .what = "six tiles by cp.async through a ring of three stages",
       .shape = {.dtype = DType::bf16, .page_size = 4, .layers = 1, .kv_heads = 1, .lengths = {330}, .seed = 3},
       .group = 2});
  list.push_back({.name = "f16_page24_gqa12",
                  .what = "pages that are not a multiple of 16: a tile ends inside one; 9 to 16 query heads",
                  .shape = {.dtype = DType::f16, .page_size = 24, .layers = 1, .lengths = {23, 24, 25, 71, 72, 73}},
                  .group = 12,
                  .out = DType::f16});
  list.push_back({.name = "bf16_page128_f32_out",
                  .what = "two tiles per page, one run per tile, output in f32",
                  .shape = {.dtype = DType::bf16, .page_size = 128, .lengths = {127, 128, 129, 300}},
                  .group = 4,
                  .out = DType::f32,
                  .splits = 5});
  list.push_back({.name = "f16_page256_mha",
                  .what = "one query head per KV head, the middle one of three layers",
                  .shape = {.dtype = DType::f16, .page_size = 256, .layers = 3, .lengths = {255, 256, 257, 1}},
                  .group = 1,
                  .layer = 1,
                  .out = DType::f16,
                  .splits = 2});
  list.push_back(
      {.name = "bf16_page48_d64",
       .what = "pages of three boxes: box 3 of the first tile is page 1's first",
       .shape = {.dtype = DType::bf16, .page_size = 48, .layers = 1, .head_size = 64, .lengths = {47, 48, 49, 130}},
       .group = 5});
  // TMA: half of bf16_page16_gqa4.
  // Sectors: the boxes 3072; queries, partial outputs, outputs, logarithms, lengths and table as there, 4482; scales,
  // of four tokens per sector, 39 of K and of V, of two heads, 156; 16 more of the table to look up the scales.
  list.push_back(
      {.name = "e4m3_page16_gqa4",
       .what = "a scale per token and head, of K and of V; poisoned scales past the end",
       .shape = {.dtype = DType::e4m3, .page_size = 16, .lengths = {0, 1, 15, 16, 17, 100}, .granularity = 128},
       .group = 4,
       .layer = 1,
       .budget = {.sectors = 7726, .tma_bytes = 98304}});
  list.push_back({.name = "e4m3_page1_d64",
                  .what = "cp.async of 64-byte rows, with scales",
                  .shape = {.dtype = DType::e4m3,
                            .page_size = 1,
                            .layers = 1,
                            .head_size = 64,
                            .lengths = {1, 33, 64, 130},
                            .granularity = 64},
                  .group = 8,
                  .splits = 2});
  list.push_back({.name = "e4m3_page64_unscaled",
                  .what = "boxes of 64-byte rows with their own swizzle mode; no scales; 16 query heads",
                  .shape = {.dtype = DType::e4m3, .page_size = 64, .head_size = 64, .lengths = {63, 64, 65, 200}},
                  .group = 16,
                  .out = DType::f32});
  list.push_back(
      {.name = "e4m3_page32_ring",
       .what = "scales through a ring that is used more than once",
       .shape =
           {.dtype = DType::e4m3, .page_size = 32, .layers = 1, .kv_heads = 1, .lengths = {500}, .granularity = 128},
       .group = 6});
  list.push_back({.name = "f32_page16_gqa4",
                  .what = "the bound of f32, which rounded products exceed",
                  .shape = {.dtype = DType::f32, .page_size = 16, .lengths = {0, 1, 15, 16, 17, 60}},
                  .group = 4,
                  .layer = 1,
                  .out = DType::f32,
                  .splits = 2});
  list.push_back(
      {.name = "f32_page1_mqa10",
       .what = "ten query heads are two CTAs of 8",
       .shape = {.dtype = DType::f32, .page_size = 1, .layers = 1, .kv_heads = 1, .head_size = 64, .lengths = {5, 40}},
       .group = 10,
       .out = DType::f32});
  list.push_back({.name = "f32_page16_hole",
                  .what = "an unassigned page, by plain loads",
                  .shape = {.dtype = DType::f32, .page_size = 16, .layers = 1, .lengths = {20, 50}},
                  .group = 2,
                  .out = DType::f32,
                  .hole_sequence = 1,
                  .hole_page = 1});
  list.push_back({.name = "bf16_padded_rows",
                  .what = "rows aligned to only 4 bytes: neither the copy engine nor 16-byte copies support them",
                  .shape = {.dtype = DType::bf16, .page_size = 16, .lengths = {15, 33, 66}},
                  .group = 4,
                  .layer = 1,
                  .padding = 2});
  list.push_back({.name = "bf16_page16_hole",
                  .what = "an unassigned page inside the sequence is zeros: a box outside the map",
                  .shape = {.dtype = DType::bf16, .page_size = 16, .layers = 1, .lengths = {40, 50}},
                  .group = 4,
                  .hole_sequence = 1,
                  .hole_page = 1});
  list.push_back({.name = "bf16_page8_hole",
                  .what = "the same by cp.async, without a read",
                  .shape = {.dtype = DType::bf16, .page_size = 8, .layers = 1, .lengths = {40, 50}},
                  .group = 4,
                  .hole_sequence = 0,
                  .hole_page = 2});
  list.push_back({.name = "e4m3_page8_hole",
                  .what = "scales of an unassigned page",
                  .shape = {.dtype = DType::e4m3, .page_size = 8, .layers = 1, .lengths = {40, 50}, .granularity = 128},
                  .group = 4,
                  .hole_sequence = 1,
                  .hole_page = 2});
  list.push_back({.name = "bf16_page16_d32",
                  .what = "four lanes per key, eight keys per warp: lanes past the last key contribute nothing",
                  .shape = {.dtype = DType::bf16, .page_size = 16, .head_size = 32, .lengths = {0, 1, 7, 8, 9, 33}},
                  .group = 3,
                  .layer = 1,
                  .splits = 2});
  list.push_back({.name = "f16_page12_d80_cap_window",
                  .what = "lanes without dims; a window that begins inside a page, on a page and before the first key",
                  .shape = {.dtype = DType::f16, .page_size = 12, .head_size = 80, .lengths = {5, 20, 21, 44, 130}},
                  .group = 9,
                  .out = DType::f16,
                  .splits = 2,
                  .soft_cap = 2,
                  .window = 20});
  list.push_back({.name = "bf16_page3_d256_cap_window",
                  .what = "the largest head; runs of 64 keys that begin with the window, not with the sequence",
                  .shape = {.dtype = DType::bf16, .page_size = 3, .layers = 1, .head_size = 256, .lengths = {10, 200}},
                  .group = 2,
                  .splits = 3,
                  .soft_cap = 50,
                  .window = 150});
  list.push_back({.name = "f32_page5_d144_cap",
                  .what = "a soft cap in the bound of f32: an approximate tanh misses it",
                  .shape = {.dtype = DType::f32, .page_size = 5, .layers = 1, .head_size = 144, .lengths = {37, 6}},
                  .group = 2,
                  .out = DType::f32,
                  .soft_cap = 3});
  list.push_back({.name = "bf16_page16_alibi_sinks",
                  .what = "a slope and a sink of each query head, in several runs and in a sequence without a key",
                  .shape = {.dtype = DType::bf16, .page_size = 16, .head_size = 48, .lengths = {0, 1, 150}},
                  .group = 3,
                  .splits = 3,
                  .alibi_sinks = true});
  list.push_back({.name = "e4m3_page16_granule64",
                  .what = "two different scales per head, of K and of V",
                  .shape = {.dtype = DType::e4m3, .page_size = 16, .lengths = {17, 60}, .granularity = 64},
                  .group = 4,
                  .layer = 1,
                  .splits = 2});
  list.push_back(
      {.name = "e4m3_page7_d96_granule20",
       .what = "granules that cut a lane's eight elements, the last one short",
       .shape = {.dtype = DType::e4m3, .page_size = 7, .head_size = 96, .lengths = {8, 40}, .granularity = 20},
       .group = 2,
       .layer = 1});
  list.push_back(
      {.name = "e4m3_page2_d224_hole",
       .what = "an unassigned page also has no scales",
       .shape =
           {.dtype = DType::e4m3, .page_size = 2, .layers = 1, .head_size = 224, .lengths = {9}, .granularity = 32},
       .group = 1,
       .hole_sequence = 0,
       .hole_page = 1});
  return decode_cases("paged_decode", std::move(list));
}

}  // namespace kvscope::gpu

// Where a token and its scales are, in every form of table, and sizes that a layout cannot have.
#include "core/golden/layouts/layout_places.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/core/golden/support.h"

namespace kvscope::golden::layout_places_test {
namespace {

using testing::ElementsAre;

TokenPlace place(const std::string& layout, const PlaceRequest& request) {
  return place_of_token(*find_layout(layout), request);
}

std::string rejection(const std::string& layout, const PlaceRequest& request) {
  return message_of([&] { static_cast<void>(place(layout, request)); });
}

std::string index_error(const std::string& layout, const PlaceRequest& request) {
  try {
    static_cast<void>(place(layout, request));
  } catch (const IndexError& error) {
    return error.what();
  }
  return "(no IndexError)";
}

// Token 5 with pages of 4 on blocks 5, 0, 2 is slot 1 of block 0.
TEST(LayoutPlaces, AreNamedAsTheTableCountsThem) {
  PlaceRequest request;
  request.page_size = 8;
  request.token = 13;
  request.sequence = 2;
  EXPECT_EQ(place("nhd", request).at, "block 0, slot 5");
  EXPECT_EQ(place("flashinfer", request).at, "block 0, slot 5");
  EXPECT_EQ(place("trtllm", request).at, "block 0, slot 5");
  EXPECT_EQ(place("sglang", request).at, "slot 5");
  request.token = 3;
  EXPECT_EQ(place("sglang", request).at, "slot 43");  // block 5
  EXPECT_EQ(place("sglang_req", request).at, "slot 43");
  EXPECT_EQ(place("varlen", request).at, "token 3");
  EXPECT_EQ(place("lmcache", request).at, "token 3");
  EXPECT_EQ(place("dense", request).at, "sequence 2, position 3");
  EXPECT_EQ(place("hf", request).at, "sequence 2, position 3");
  EXPECT_EQ(place("flashmla_sparse", request).at, "slot 43: block 5, slot 3 of it");
}

// The bytes of one element, from the axes of the layout: row-major, 2 bytes each.
TEST(LayoutPlaces, OfAnElementFollowTheAxes) {
  PlaceRequest request;  // 6 blocks of 4 tokens, 2 heads of 8 bf16
  const auto first_v = [&](const char* layout) {
    for (const PlaceRun& run : place(layout, request).runs) {
      if (run.k_or_v == 'v' && run.head == 1) return fmt::format("{} {}+{}", run.tensor, run.byte, run.bytes);
    }
    return std::string("none");
  };
  EXPECT_EQ(first_v("nhd"), fmt::format("v_cache {}+16", ((0 * 4 + 1) * 2 + 1) * 16));
  EXPECT_EQ(first_v("hnd"), fmt::format("v_cache {}+16", ((0 * 2 + 1) * 4 + 1) * 16));
  EXPECT_EQ(first_v("flashinfer"), fmt::format("kv_cache {}+16", (((0 * 2 + 1) * 4 + 1) * 2 + 1) * 16));
  EXPECT_EQ(first_v("trtllm"), fmt::format("kv_pool {}+16", (((0 * 2 + 1) * 2 + 1) * 4 + 1) * 16));
  EXPECT_EQ(first_v("vllm_diffkv"), fmt::format("kv_cache {}+16", (((0 * 4 + 1) * 2 + 1) * 2 + 1) * 16));
  EXPECT_EQ(first_v("sglang"), fmt::format("v_buffer {}+16", ((0 * 4 + 1) * 2 + 1) * 16));
  request.value_size = 6;
  EXPECT_EQ(first_v("mla_indptr"), "none");  // V is in K's rows
}

TEST(LayoutPlaces, OfSizesThatALayoutCannotHaveAreFaults) {
  PlaceRequest request;
  request.token = 3;
  request.value_size = 6;
  EXPECT_EQ(rejection("hnd", request),
            "command line rejected: --value-size: 6 differs from the head size 8, which layout 'hnd' does not support");
  EXPECT_EQ(rejection("dense", request), "(no InputError)");
  EXPECT_EQ(rejection("vllm_diffkv", request), "(no InputError)");
  EXPECT_EQ(rejection("mla_indptr", request), "(no InputError)");  // 6 of latent, 2 of rope
  request.value_size = 8;
  EXPECT_EQ(rejection("mla_indptr", request), "command line rejected: --value-size: 8 leaves no rope of a row of 8");
  request.head_size = 12;
  request.value_size = 12;
  EXPECT_EQ(
      rejection("vllm_legacy", request),
      "command line rejected: --head-size: 12 is not a multiple of the 8 elements of a run of layout 'vllm_legacy'");
  request.head_size = request.value_size = 32;
  request.dtype = DType::e2m1;
  EXPECT_EQ(rejection("vllm_legacy", request),
            "command line rejected: --dtype: e2m1: layout 'vllm_legacy' has runs of whole bytes");
}

TEST(LayoutPlaces, OutsideTheCacheAreIndexErrors) {
  PlaceRequest request;
  request.token = 12;
  EXPECT_EQ(
      index_error("nhd", request),
      "--token 12 is outside [0, 12): the pages hold no more: give --table more blocks, or set a larger --page-size");
  request.token = 5;
  request.table = {5, 6, 2};
  EXPECT_EQ(index_error("nhd", request), "block 6 is outside [0, 6)");
  EXPECT_EQ(index_error("sglang", request), "block 6 is outside [0, 6)");
  EXPECT_EQ(index_error("flashmla_sparse", request), "block 6 is outside [0, 6)");
  request.sequence = 6;
  EXPECT_EQ(index_error("dense", request), "sequence 6 is outside [0, 6): pass --blocks, the sequences of the cache");
  request.sequence = 0;
  EXPECT_EQ(index_error("dense", request), "token 5 is outside [0, 4): pass --page-size, the positions of a sequence");
}

TEST(LayoutPlaces, OfLayersAreThoseOfTheLayer) {
  PlaceRequest request;
  request.layers = 3;
  request.layer = 2;
  const PlaceRun third = place("max", request).runs.front();
  request.layer = 0;
  EXPECT_EQ(third.byte - place("max", request).runs.front().byte, 2 * 4 * 2 * 16);  // two layers of 4 slots of 2 heads
}

TEST(ScalePlaces, OfGroupsAndUnitsExcludeEachOther) {
  PlaceRequest request;
  request.token = 3;
  request.group = 4;
  request.scales = "token";
  EXPECT_EQ(rejection("nhd", request),
            "command line rejected: --scales: shows k_scale and v_scale, and --group block scales: give one of them");
  request.group = 0;
  EXPECT_EQ(rejection("nhd", request), "(no InputError)");
  for (const char* unit : {"block", "block-head"}) {
    request.scales = unit;
    EXPECT_EQ(
        rejection("sglang", request),
        fmt::format("command line rejected: --scales: {}: layout 'sglang' has no blocks of several tokens", unit));
    EXPECT_EQ(rejection("dense", request), "(no InputError)");
  }
}

TEST(ScalePlaces, OfGroupsDivideTheHead) {
  PlaceRequest request;
  request.group = 3;
  request.dtype = DType::e4m3;
  EXPECT_EQ(rejection("nhd", request), "command line rejected: --group: 3 does not divide the 8 elements of a head");
  request.value_size = 6;
  EXPECT_EQ(rejection("dense", request), "command line rejected: --group: 3 does not divide the 8 elements of a head");
  request.group = 4;
  EXPECT_EQ(rejection("dense", request), "command line rejected: --group: 4 does not divide the 6 elements of a head");
  request.value_size = 7;
  request.group = 3;
  EXPECT_EQ(rejection("dense", request),
            "command line rejected, 2 faults:\n"
            "  --group: 3 does not divide the 8 elements of a head\n"
            "  --group: 3 does not divide the 7 elements of a head");
  request.value_size = 8;
  request.group = 4;
  EXPECT_EQ(rejection("flashmla_fp8", request),
            "command line rejected: --group: layout 'flashmla_fp8' has no tensor of block scales");
}

TEST(ScalePlaces, OfAnOrderFitThePageAndTheScales) {
  PlaceRequest request;
  request.dtype = DType::e4m3;
  request.group = 4;
  request.page_size = 6;
  request.k_order = ScaleOrder::interleaved;
  request.v_order = ScaleOrder::tiled;
  EXPECT_EQ(rejection("nhd", request),
            "command line rejected, 3 faults:\n"
            "  --k-scales: interleaved: 4 slots share a run, which does not divide the page size 6\n"
            "  --v-scales: tiled: 128 slots share a run, which does not divide the page size 6\n"
            "  --v-scales: tiled: 2 scales of a slot are not a multiple of 4");
  // V of an MLA cache has the scales of K: its own order is not judged.
  EXPECT_EQ(rejection("mla_indptr", request), rejection("mla_indptr", [&] {
              PlaceRequest linear = request;
              linear.v_order = ScaleOrder::linear;
              return linear;
            }()));
  request.page_size = 8;
  request.v_order = ScaleOrder::linear;
  EXPECT_EQ(rejection("nhd", request), "(no InputError)");
}

// nhd, groups of 4, scales of e4m3: [6, 4, 2, 2]; elements 4 to 7 of head 1 have the scale at byte 7.
TEST(ScalePlaces, FollowTheExampleOfTheHeader) {
  PlaceRequest request;
  request.group = 4;
  request.dtype = DType::e4m3;
  request.scale_dtype = DType::e4m3;
  std::vector<std::string> scales;
  for (const PlaceRun& run : place("nhd", request).runs) {
    if (run.scales && run.k_or_v == 'k') {
      scales.push_back(fmt::format("{} head {} from {}: {}+{}", run.tensor, run.head, run.first, run.byte, run.bytes));
    }
  }
  EXPECT_THAT(scales, ElementsAre("k_block_scale head 0 from 0: 4+2", "k_block_scale head 1 from 0: 6+2"));
}

// A packed row of 2 e4m3 with a scale each: groups of one element are scales too.
TEST(ScalePlaces, OfPackedRowsAreScalesWhateverTheirGroups) {
  for (const auto& [each, scales] : {std::pair{1, 2}, {2, 1}}) {
    const LayoutDescription rows = parse_layout(
        json::parse(fmt::format(R"({{"forms": [{{"values": "leading", "tensors": [{{"name": "rows", "holds": "k",
            "axes": "[block, slot, row]", "row": {{"bytes": 6, "fields": [{{"elements": 2, "dtype": "e4m3", "at": 0,
              "scales": {{"dtype": "f16", "at": 2, "each": {}}}}}]}}}}]}}],
            "table": {{"form": "blocks", "tensors": {{"table": ["t"], "lengths": ["n"]}}}}}})",
                                each),
                    "rows.json"),
        "rows", "rows.json");
    PlaceRequest request;
    request.heads = 1;
    request.head_size = 2;
    request.value_size = 1;
    request.token = 0;
    const TokenPlace place = place_of_token(rows, request);
    ASSERT_EQ(place.runs.size(), 2U);
    EXPECT_FALSE(place.runs[0].scales);
    EXPECT_TRUE(place.runs[1].scales);
    EXPECT_EQ(place.runs[1].count, scales);
    EXPECT_EQ(place.runs[1].bytes, 2 * scales);
  }
}

// One scale of each unit: its byte is its index times the 4 bytes of f32.
TEST(ScalePlaces, OfUnitsFollowTheAxesOfTheCache) {
  PlaceRequest request;  // block 0, slot 1; head 1 of 2
  const auto of = [&](const char* layout, const char* unit) {
    request.scales = unit;
    for (const PlaceRun& run : place(layout, request).runs) {
      if (run.scales && run.k_or_v == 'k' && run.head == 1) return run.byte / 4;
    }
    return std::int64_t{-1};
  };
  request.table = {5, 2, 0};  // block 2, slot 1
  EXPECT_EQ(of("nhd", "tensor"), 0);
  EXPECT_EQ(of("nhd", "head"), 1);
  EXPECT_EQ(of("nhd", "block"), 2);
  EXPECT_EQ(of("nhd", "token"), 2 * 4 + 1);
  EXPECT_EQ(of("nhd", "block-head"), 2 * 2 + 1);
  EXPECT_EQ(of("nhd", "token-head"), (2 * 4 + 1) * 2 + 1);
  EXPECT_EQ(of("hnd", "token-head"), (2 * 2 + 1) * 4 + 1);
  EXPECT_EQ(scale_units().size(), 6U);
}

}  // namespace
}  // namespace kvscope::golden::layout_places_test

// The cache tensors of an input: which form of the layout they have, and the faults of their shapes, types and block
// scales.
#include "core/golden/layouts/detail/cache_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/layouts/layout_detect.h"
#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::cache_reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string rejection(const Bundle& bundle, const LayoutOptions& options) {
  return message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); });
}

std::string with(const std::string& layout, const std::string& name, std::vector<std::int64_t> shape,
                 DType dtype = DType::f32) {
  Bundle bundle = SmallBatch().in(layout);
  bundle.tensors[name] = make_tensor(dtype, std::move(shape));
  return rejection(bundle, SmallBatch::options(layout));
}

TEST(CacheReader, AxesOfAFixedLengthAreNamed) {
  EXPECT_THAT(with("max", "blocks", {13, 3, 3, 4, 2, 6}),
              HasSubstr("blocks: has shape [13, 3, 3, 4, 2, 6]: axis 1 is 2 (K and V) or 1 (MLA)"));
  EXPECT_THAT(with("flashinfer", "kv_cache", {13, 3, 4, 2, 6}),
              HasSubstr("kv_cache: has shape [13, 3, 4, 2, 6]: axis 1 is 2, K and V"));
  EXPECT_THAT(
      with("trtllm", "kv_pool", {25, 2, 4, 6}),
      HasSubstr("kv_pool: has shape [25, 2, 4, 6]: axis 0 has an entry for K and one for V of each block, an even "
                "number"));
  Bundle bundle = SmallBatch().in("mla");
  bundle.tensors["kv_cache"] = make_tensor(DType::u8, {13, 4, 2, 656});
  EXPECT_THAT(rejection(bundle, SmallBatch::options("flashmla_fp8")),
              HasSubstr("kv_cache: has shape [13, 4, 2, 656]: axis 2 is 1"));
  bundle.tensors["kv_cache"] = make_tensor(DType::u8, {13, 4, 1, 655});
  EXPECT_THAT(rejection(bundle, SmallBatch::options("flashmla_fp8")),
              HasSubstr("kv_cache: has shape [13, 4, 1, 655]: axis 3 holds the 656 bytes of a packed row"));
  bundle.tensors["kv_cache"] = make_tensor(DType::bf16, {13, 4, 1, 656});
  EXPECT_THAT(rejection(bundle, SmallBatch::options("flashmla_fp8")),
              HasSubstr("kv_cache: is bf16; packed rows are bytes: a tensor of e4m3, e5m2, u8 or i8"));
  bundle.tensors["kv_cache"] = make_tensor(DType::u8, {13, 0, 1, 656});
  EXPECT_THAT(rejection(bundle, SmallBatch::options("flashmla_fp8")),
              HasSubstr("kv_cache: has shape [13, 0, 1, 656]: every extent must be at least 1"));
}

TEST(CacheReader, OneAxisOfKAndVNeedsTheSizeOfV) {
  LayoutOptions options = SmallBatch::options("vllm_diffkv");
  const Bundle bundle = SmallBatch().in("vllm_diffkv");
  for (const std::int64_t size : {0, 12, 13}) {
    options.value_size = size;
    EXPECT_THAT(
        rejection(bundle, options),
        HasSubstr("kv_cache: has shape [13, 4, 2, 12]: axis 3 is K's elements, then V's: pass --value-size, from 1 to "
                  "11"))
        << size;
  }
}

// The elements of K are those of q; without q, nothing tells them.
TEST(CacheReader, OneAxisOfKAndVIsDividedByTheQueries) {
  LayoutOptions options = SmallBatch::options("vllm_diffkv");
  Bundle bundle = SmallBatch().in("vllm_diffkv");
  options.value_size.reset();
  EXPECT_EQ(prepare_problem(bundle, options, "x").problem.v.head_size, 6);
  bundle.tensors["q"] = make_tensor(DType::f32, {8, 4, 8});
  const PreparedProblem wide = prepare_problem(bundle, options, "x");
  EXPECT_EQ(wide.problem.k.head_size, 8);
  EXPECT_EQ(wide.problem.v.head_size, 4);
  bundle.tensors["q"] = make_tensor(DType::f32, {8, 4, 12});
  EXPECT_THAT(rejection(bundle, options),
              HasSubstr("axis 3 is K's elements, then V's: pass --value-size, from 1 to 11"));
  bundle.tensors.erase("q");
  EXPECT_THAT(rejection(bundle, options),
              HasSubstr("axis 3 is K's elements, then V's: pass --value-size, from 1 to 11"));
}

TEST(CacheReader, OneAxisOfHeadsAndElementsNeedsTheHeadSize) {
  Bundle bundle;
  bundle.tensors["kv_chunk"] = make_tensor(DType::f32, {2, 1, 7, 12});
  LayoutOptions options = SmallBatch::options("lmcache");
  EXPECT_THAT(rejection(bundle, options),
              HasSubstr("kv_chunk: has one axis for heads and elements: pass --head-size, the elements of a head"));
  options.head_size = 5;
  EXPECT_THAT(rejection(bundle, options),
              HasSubstr("kv_chunk: has shape [2, 1, 7, 12]: axis 3 is not a multiple of the head size 5"));
  options.head_size.reset();
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 3, 4});
  EXPECT_EQ(prepare_problem(bundle, options, "x").problem.k.heads, 3);
  bundle.tensors["q"] = make_tensor(DType::f32, {});
  EXPECT_THAT(rejection(bundle, options), HasSubstr("kv_chunk: has one axis for heads and elements: pass --head-size"));
}

TEST(CacheReader, KAndVAreAlikeAsFarAsTheLayoutNeeds) {
  // hnd: in everything.
  EXPECT_THAT(with("hnd", "v_cache", {13, 2, 4, 8}),
              HasSubstr("v_cache: is f32 [13, 2, 4, 8], but k_cache is f32 [13, 2, 4, 6]: the two must be alike"));
  EXPECT_THAT(with("hnd", "v_cache", {13, 2, 4, 6}, DType::f16),
              HasSubstr("v_cache: is f16 [13, 2, 4, 6], but k_cache is f32 [13, 2, 4, 6]: the two must be alike"));
  // nhd, dense: all axes but the last.
  EXPECT_EQ(with("nhd", "v_cache", {13, 4, 2, 8}), "(no InputError)");
  EXPECT_EQ(with("dense", "v_cache", {5, 19, 2, 8}), "(no InputError)");
  EXPECT_EQ(with("dense", "v_cache", {5, 19, 2, 8}, DType::f16), "(no InputError)");
  EXPECT_THAT(
      with("dense", "v_cache", {5, 18, 2, 6}),
      HasSubstr(
          "v_cache: is f32 [5, 18, 2, 6], but k_cache is f32 [5, 19, 2, 6]: all axes but the last must be alike"));
  // vllm_legacy: V has other axes than K.
  EXPECT_THAT(
      with("vllm_legacy", "value_cache", {13, 2, 5, 4}),
      HasSubstr("value_cache: is f32 [13, 2, 5, 4], but key_cache f32 [13, 2, 3, 4, 2] needs f32 [13, 2, 6, 4]"));
  // Parts of an MLA row.
  Bundle parts;
  parts.tensors["ckv"] = make_tensor(DType::f32, {3, 2, 4});
  parts.tensors["kpe"] = make_tensor(DType::f32, {3, 3, 2});
  EXPECT_THAT(rejection(parts, SmallBatch::options("mla")),
              HasSubstr("kpe: is f32 [3, 3, 2], but ckv is f32 [3, 2, 4]: blocks, pages and type must be alike"));
  parts.tensors["kpe"] = make_tensor(DType::f16, {3, 2, 2});
  EXPECT_THAT(rejection(parts, SmallBatch::options("mla")),
              HasSubstr("kpe: is f16 [3, 2, 2], but ckv is f32 [3, 2, 4]: blocks, pages and type must be alike"));
}

// Flat storage of strides [8, 4, 1] and sizes [2, 2, 4] reaches element 15.
TEST(CacheReader, FlatStorageHoldsTheLastElementThatItsStridesReach) {
  LayoutOptions options;
  options.description = std::make_shared<const LayoutDescription>(parse_layout(
      json::parse(
          R"({"forms": [{"values": "leading", "tensors": [{"name": "k", "holds": "k", "axes": "[seq, position, dim]",
        "strides": [8, 4, 1], "sizes": [2, 2, 4], "offset": 3}]}], "table": {"form": "dense"}})",
          "flat.json"),
      "flat", "flat.json"));
  options.layout = "flat";
  options.scale = 0.5;
  options.value_size = 2;
  Bundle bundle;
  bundle.tensors["q"] = make_tensor(DType::f32, {2, 1, 4});
  for (const std::int64_t elements : {18, 19}) {
    bundle.tensors["k"] = make_tensor(DType::f32, {elements});
    EXPECT_EQ(rejection(bundle, options),
              elements == 19
                  ? "(no InputError)"
                  : "mine.npz rejected: k: has 18 elements, but the strides and sizes of layout 'flat' reach 19");
  }
}

// Two elements of e2m1 in a byte: sizes and strides count elements, the tensor's shape counts bytes.
TEST(CacheReader, FlatStorageOfTwoElementsInAByteHasWholeBytes) {
  const auto of = [](const std::string& strides, const std::string& sizes, int offset, std::int64_t bytes) {
    LayoutOptions options;
    options.description = std::make_shared<const LayoutDescription>(parse_layout(
        json::parse(fmt::format(R"({{"forms": [{{"values": "leading", "tensors": [{{"name": "k", "holds": "k",
            "axes": "[seq, position, dim]", "strides": [{}], "sizes": [{}], "offset": {}}}]}}],
            "table": {{"form": "dense"}}}})",
                                strides, sizes, offset),
                    "flat.json"),
        "flat", "flat.json"));
    options.layout = "flat";
    options.scale = 0.5;
    options.value_size = 2;
    options.cache_type = CacheType{DType::e2m1};
    Bundle bundle;
    bundle.tensors["k"] = make_tensor(DType::u8, {bytes});
    bundle.tensors["q"] = make_tensor(DType::f32, {2, 1, 4});
    return rejection(bundle, options);
  };
  EXPECT_EQ(of("8, 4, 1", "2, 2, 4", 2, 9), "(no InputError)");
  EXPECT_EQ(of("8, 4, 1", "2, 2, 4", 2, 8),
            "mine.npz rejected: k: has 16 elements, but the strides and sizes of layout 'flat' reach 18");
  const auto odd = [](const std::string& what, int value) {
    return fmt::format(
        "k: has {} of layout 'flat' {}, an odd number of e2m1 elements, of which a byte holds two: pad it "
        "to {}",
        what, value, value + 1);
  };
  EXPECT_THAT(of("10, 5, 1", "2, 2, 5", 0, 10), HasSubstr(odd("a stride of axis 'position'", 5)));
  EXPECT_THAT(of("12, 6, 1", "2, 2, 5", 0, 12), HasSubstr(odd("a size of axis 'dim'", 5)));
  EXPECT_THAT(of("8, 4, 1", "2, 2, 4", 3, 12), HasSubstr(odd("the offset", 3)));
  EXPECT_EQ(of("17, 4, 1", "1, 2, 4", 0, 4).find("odd number"), std::string::npos);  // an axis of one: never added
}

// Two blocks of two K and V: [N, 2, ...] and [2, N, ...] are the same shape.
TEST(CacheReader, AShapeOfTwoFormsIsAFault) {
  EXPECT_THAT(
      with("vllm", "kv_cache", {2, 2, 4, 2, 6}),
      HasSubstr("kv_cache: has shape [2, 2, 4, 2, 6], which is [N, 2, P, H, D] or [2, N, P, H, D]: pass one of them as "
                "--axes \"kv=[block, kv, slot, head, dim]\""));
}

TEST(CacheReader, TypesOfBitPatternsFitTheirBits) {
  Bundle bundle = SmallBatch().in("nhd");
  LayoutOptions options = SmallBatch::options("nhd");
  options.cache_type = CacheType{DType::bf16};
  EXPECT_THAT(
      rejection(bundle, options),
      HasSubstr("k_cache: is f32: --cache-dtype bf16 is for bit patterns that are stored as u8, i8 or u16; remove it"));
  bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(DType::u8, {13, 4, 2, 6});
  EXPECT_THAT(rejection(bundle, options), HasSubstr("k_cache: is u8, which holds no bf16 bit patterns"));
  options.cache_type = CacheType{DType::e4m3};
  EXPECT_EQ(rejection(bundle, options), "(no InputError)");
  bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(DType::u16, {13, 4, 2, 3});
  options.cache_type = CacheType{DType::e2m1};  // two elements in a byte, not four in 16 bits
  EXPECT_THAT(rejection(bundle, options), HasSubstr("k_cache: is u16, which holds no e2m1 bit patterns"));
  bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(DType::u8, {13, 4, 2, 3});
  EXPECT_EQ(prepare_problem(bundle, options, "x").problem.k.head_size, 6);
}

// A row of f32 in runs of 2, where vLLM's runs are of 16 bytes: 4.
TEST(CacheReader, LimitsOfAnEngineAreNotes) {
  const PreparedProblem legacy =
      prepare_problem(SmallBatch().in("vllm_legacy"), SmallBatch::options("vllm_legacy"), "x");
  EXPECT_THAT(legacy.warnings, testing::Contains("key_cache has x = 2; vLLM's is 16 bytes, 4 elements of f32"));
}

// --- block scales -----------------------------------------------------------------------------------------------------

class BlockScales : public testing::Test {
 protected:
  Bundle bundle_;
  LayoutOptions options_ = SmallBatch::options("nhd");

  void SetUp() override {
    bundle_.tensors["k_cache"] = bundle_.tensors["v_cache"] = make_tensor(DType::e4m3, {3, 4, 2, 8});
    bundle_.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 2}, {2, 0});
    bundle_.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {6});
    bundle_.tensors["q"] = make_tensor(DType::f32, {1, 2, 8});
  }
  [[nodiscard]] std::string with_scales(std::vector<std::int64_t> shape, DType dtype = DType::f32) {
    bundle_.tensors["k_block_scale"] = make_tensor(dtype, std::move(shape));
    return rejection(bundle_, options_);
  }
};

TEST_F(BlockScales, HaveTheAxesOfTheCacheAndGroups) {
  EXPECT_EQ(with_scales({3, 4, 2, 4}), "(no InputError)");
  EXPECT_EQ(with_scales({3, 4, 2, 8}), "(no InputError)");  // one for each element
  EXPECT_EQ(with_scales({3, 4, 2, 2, 1}),
            "mine.npz rejected: k_block_scale: has shape [3, 4, 2, 2, 1], but layout 'nhd' needs [N, P, H, G]");
  EXPECT_EQ(with_scales({3, 4, 1, 4}),
            "mine.npz rejected: k_block_scale: has shape [3, 4, 1, 4], but k_cache [3, 4, 2, 8] at granularity 2 need "
            "[3, 4, 2, 4]");
  EXPECT_EQ(
      with_scales({3, 4, 2, 0}),
      "mine.npz rejected: k_block_scale: has shape [3, 4, 2, 0], but k_cache [3, 4, 2, 8] at granularity 0 need a "
      "granularity of at least 1");
  EXPECT_EQ(with_scales({3, 4, 2, 4}, DType::i32), "mine.npz rejected: k_block_scale: is i32; scales are floats");
  options_.granularity = 4;
  EXPECT_EQ(with_scales({3, 4, 2, 4}),
            "mine.npz rejected: k_block_scale: has shape [3, 4, 2, 4], but k_cache [3, 4, 2, 8] at granularity 4 need "
            "[3, 4, 2, 2]");
  options_.granularity = -1;
  EXPECT_THAT(with_scales({3, 4, 2, 4}), HasSubstr("at granularity -1 need a granularity of at least 1"));
}

TEST_F(BlockScales, InAnOrderFitThePageAndTheScales) {
  options_.k_scale_order = ScaleOrder::interleaved;
  options_.v_scale_order = ScaleOrder::tiled;
  EXPECT_EQ(rejection(bundle_, options_),
            "mine.npz rejected, 2 faults:\n"
            "  --k-scales: interleaved: the input has no block scales of K\n"
            "  --v-scales: tiled: the input has no block scales of V");
  bundle_.tensors["v_block_scale"] = make_tensor(DType::f32, {3, 4, 2, 2});
  bundle_.tensors["k_block_scale"] = make_tensor(DType::f32, {3, 4, 2, 2});
  EXPECT_EQ(rejection(bundle_, options_),
            "mine.npz rejected, 2 faults:\n"
            "  --v-scales: tiled: 128 slots share a run, which does not divide the page size 4\n"
            "  --v-scales: tiled: 4 scales of a slot share a run, which does not divide the 2 scales of a head");
  options_.v_scale_order = ScaleOrder::interleaved;
  EXPECT_EQ(rejection(bundle_, options_), "(no InputError)");
}

// Each order is one to one over its run of slots, and keeps runs apart.
TEST(ScaleOrders, ReachEachPlaceOnce) {
  for (const ScaleOrder order : {ScaleOrder::linear, ScaleOrder::interleaved, ScaleOrder::tiled}) {
    EXPECT_EQ(scale_order_from_name(name(order)), order);
    const std::int64_t slots = 2 * slots_of_run(order), scales = 2 * scales_of_run(order);
    std::vector<bool> seen(static_cast<std::size_t>(slots * scales));
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      for (std::int64_t scale = 0; scale < scales; ++scale) {
        const std::int64_t place = scale_place(order, slot, scale, scales);
        ASSERT_TRUE(place >= 0 && place < slots * scales) << name(order);
        ASSERT_FALSE(seen[static_cast<std::size_t>(place)]) << name(order) << ' ' << slot << ' ' << scale;
        seen[static_cast<std::size_t>(place)] = true;
      }
    }
  }
  EXPECT_EQ(scale_order_from_name("swizzled"), std::nullopt);
  EXPECT_EQ(scale_place(ScaleOrder::linear, 5, 1, 2), 11);
  EXPECT_EQ(scale_place(ScaleOrder::interleaved, 5, 1, 2), 4 * 2 + 4 + 1);
  EXPECT_EQ(scale_place(ScaleOrder::tiled, 33, 2, 4), 16 + 4 + 2);  // slot 33 is row 1 of the second 32 rows
}

// The scales of a cache with a fault have no further fault: sizes are unknown.
TEST_F(BlockScales, OfACacheWithAFaultHaveNone) {
  bundle_.tensors["k_scale"] = make_tensor(DType::f32, {7});
  bundle_.tensors["v_cache"] = make_tensor(DType::e4m3, {3, 4, 2});
  EXPECT_EQ(rejection(bundle_, options_),
            "mine.npz rejected: v_cache: has shape [3, 4, 2], but layout 'nhd' needs [N, P, H, D]");
  bundle_.tensors["k_scale"] = Tensor{DType::e2m1, {2}, {}};
  bundle_.tensors["v_cache"] = bundle_.tensors["k_cache"];
  EXPECT_EQ(rejection(bundle_, options_), "mine.npz rejected: k_scale: is e2m1; scales are floats of at least 8 bits");
}

TEST(CacheScalesOfLayers, NeedALayerOfTheCache) {
  Bundle bundle = SmallBatch().in("max");
  bundle.tensors["k_scale"] = make_tensor(DType::f32, {13});
  LayoutOptions options = SmallBatch::options("max");
  for (const std::int64_t layer : {-1, 3}) {
    options.layer = layer;
    EXPECT_EQ(rejection(bundle, options),
              fmt::format("mine.npz rejected: --layer: is {}, but blocks has layers 0 to 2: pass one of them", layer));
  }
}

// --- which layouts an input fits --------------------------------------------------------------------------------------

TEST(DetectLayouts, FindsEachLayoutOfTheSmallBatchFirstOrWithoutFaults) {
  for (const char* layout : SmallBatch::kLayouts) {
    LayoutOptions options = SmallBatch::options(layout);
    options.scale = 0.5;
    if (std::string(layout) == "mla") options.value_size = 4;
    const std::vector<LayoutFit> fits = detect_layouts(SmallBatch().in(layout), options, nullptr, "x");
    EXPECT_EQ(fits.size(), named_layouts().size());
    for (const LayoutFit& fit : fits) {
      if (fit.layout != layout) continue;
      EXPECT_THAT(fit.faults, testing::IsEmpty()) << layout;
      EXPECT_THAT(fit.sizes, HasSubstr("of 6 f32")) << layout;
    }
  }
}

// One head is no "heads"; a candidate without its output cannot be compared, and says why.
TEST(DetectLayouts, WordsOfSizesAndOfCandidates) {
  Bundle bundle;
  bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(DType::f32, {3, 4, 1, 8});
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 2}, {2, 0});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {6});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 2, 8});
  Bundle candidate;
  candidate.tensors["y"] = make_tensor(DType::f32, {3});
  const std::vector<LayoutFit> fits = detect_layouts(bundle, SmallBatch::options("nhd"), &candidate, "x");
  const auto nhd = std::ranges::find(fits, "nhd", &LayoutFit::layout);
  ASSERT_NE(nhd, fits.end());
  EXPECT_EQ(nhd->sizes, "3 blocks of 4 tokens, 1 KV head of 8 f32");
  EXPECT_EQ(nhd->passed, false);
  EXPECT_TRUE(std::isinf(nhd->worst_ratio));
  EXPECT_FALSE(nhd->note.empty());
  candidate.tensors.clear();
  candidate.tensors["o"] = make_tensor(DType::f32, {1, 2, 8});
  const std::vector<LayoutFit> again = detect_layouts(bundle, SmallBatch::options("nhd"), &candidate, "x");
  EXPECT_EQ(std::ranges::find(again, "nhd", &LayoutFit::layout)->passed, true);  // V is 0, and so is the output
}

}  // namespace
}  // namespace kvscope::golden::cache_reader_test

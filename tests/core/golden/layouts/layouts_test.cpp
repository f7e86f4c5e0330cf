#include "core/golden/layouts/layouts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <limits>
#include <memory>
#include <span>

#include "core/attention/reference.h"
#include "core/golden/golden_bundle.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::layouts_test {
namespace {

using testing::ElementsAre;

attention::Result result_in(const std::string& layout) {
  const Bundle bundle = SmallBatch().in(layout);
  return attention::reference(prepare_problem(bundle, SmallBatch::options(layout), "case").problem);
}

// The dense result, from the batch's values by definition: no page, no table, no stride.
attention::Result dense_answer() {
  const SmallBatch batch;
  Bundle bundle;
  batch.add_queries(bundle);
  const std::int64_t longest = 17;
  for (int kv = 0; kv < 2; ++kv) {
    Tensor cache = SmallBatch::poisoned({5, longest, SmallBatch::kHeads, SmallBatch::kDims});
    for (std::int64_t b = 0; b < 5; ++b) {
      for (std::int64_t t = 0; t < batch.lengths[static_cast<std::size_t>(b)]; ++t) {
        for (std::int64_t h = 0; h < SmallBatch::kHeads; ++h) {
          for (std::int64_t d = 0; d < SmallBatch::kDims; ++d) {
            values<float>(
                cache)[SmallBatch::at({{b, 5}, {t, longest}, {h, SmallBatch::kHeads}, {d, SmallBatch::kDims}})] =
                SmallBatch::value(kv, b, t, h, d);
          }
        }
      }
    }
    bundle.tensors[kv == 0 ? "k_cache" : "v_cache"] = std::move(cache);
  }
  bundle.tensors["block_table"] = SmallBatch::ints<std::int64_t>({5, 1}, {0, 1, 2, 3, 4});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int64_t>({5}, batch.lengths);
  return attention::reference(prepare_problem(bundle, SmallBatch::options("nhd"), "dense").problem);
}

class EveryLayout : public testing::TestWithParam<const char*> {};

// Bit for bit: page order, padding and strides must not change the result. A single NaN read makes the row NaN.
TEST_P(EveryLayout, GivesTheBitsOfTheDenseAnswerAndReadsNothingUnowned) {
  const attention::Result paged = result_in(GetParam());
  const attention::Result dense = dense_answer();
  EXPECT_EQ(paged.o, dense.o);
  EXPECT_EQ(paged.lse, dense.lse);
  EXPECT_FALSE(std::isnan(paged.o(7, 3, 5)));
}

TEST_P(EveryLayout, MissingTensorsAreNamedTogether) {
  const std::string message =
      message_of([] { static_cast<void>(prepare_problem({}, SmallBatch::options(GetParam()), "mine.npz")); });
  EXPECT_EQ(message.substr(0, 18), "mine.npz rejected,");
  const bool heads_first = std::string(GetParam()) == "hf";
  EXPECT_NE(message.find(heads_first
                             ? "  q: is missing; it is [B, Hq, queries, D], or [T, Hq, D] with query_offsets [B + 1]"
                             : "  q: is missing; it is [T, Hq, D] with query_offsets [B + 1], or [B, queries, Hq, D]"),
            std::string::npos)
      << message;
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryLayout,
                         testing::Values("max", "nhd", "hnd", "flashinfer", "flashinfer_hnd", "vllm_legacy", "sglang",
                                         "vllm", "vllm_hnd", "vllm_diffkv", "flashinfer_trtllm", "trtllm", "sglang_req",
                                         "hf", "dense", "varlen", "mlc"),
                         [](const auto& param) { return std::string(param.param); });

std::string rejection(const Bundle& bundle, const LayoutOptions& options) {
  return message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); });
}

// Lengths 45, 8, 25, 22 are FlashInfer's example; a sequence without pages has no key, whatever its last page length.
TEST(Layouts, FlashInferLengthsComeFromPagesAndLastPage) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {8, 2, 16, 1, 4});
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 1, 4});
  bundle.tensors["kv_indptr"] = SmallBatch::ints<std::int32_t>({6}, {0, 3, 4, 6, 8, 8});
  bundle.tensors["kv_indices"] = SmallBatch::ints<std::int32_t>({8}, {0, 1, 2, 3, 4, 5, 6, 7});
  bundle.tensors["kv_last_page_len"] = SmallBatch::ints<std::int32_t>({5}, {13, 8, 9, 6, 0});
  EXPECT_THAT(prepare_problem(bundle, SmallBatch::options("flashinfer"), "x").key_lengths,
              ElementsAre(45, 8, 25, 22, 0));

  // All tokens appended at once: every key has a query, 100 rows of q in runs that begin at 0, 45, 53 and 78. A fifth
  // request without pages has no rows either.
  Bundle append = bundle;
  append.tensors["q"] = make_tensor(DType::f32, {100, 1, 4});
  append.tensors["qo_indptr"] = SmallBatch::ints<std::int32_t>({6}, {0, 45, 53, 78, 100, 100});
  const PreparedProblem five = prepare_problem(append, SmallBatch::options("flashinfer"), "x");
  EXPECT_THAT(five.query_offsets, ElementsAre(0, 45, 53, 78, 100, 100));
  append.tensors["qo_indptr"] = SmallBatch::ints<std::int32_t>({5}, {0, 45, 53, 78, 100});
  append.tensors["kv_indptr"] = SmallBatch::ints<std::int32_t>({5}, {0, 3, 4, 6, 8});
  append.tensors["kv_last_page_len"] = SmallBatch::ints<std::int32_t>({4}, {13, 8, 9, 6});
  const PreparedProblem four = prepare_problem(append, SmallBatch::options("flashinfer"), "x");
  EXPECT_THAT(four.query_offsets, ElementsAre(0, 45, 53, 78, 100));
  EXPECT_THAT(four.key_lengths, ElementsAre(45, 8, 25, 22));

  bundle.tensors["kv_last_page_len"] = SmallBatch::ints<std::int32_t>({5}, {17, 8, 0, 6, 0});
  EXPECT_EQ(rejection(bundle, SmallBatch::options("flashinfer")),
            "mine.npz rejected, 2 faults:\n"
            "  kv_last_page_len[0]: is 17, but a last page holds 1 to 16 tokens: a kernel would read past the page\n"
            "  kv_last_page_len[2]: is 0, but a last page holds 1 to 16 tokens: a kernel would read past the page");
}

// MAX counts the tokens cached before the step, the others include the new ones: confusing them loses or adds
// tokens.
TEST(Layouts, MaxLengthsLeaveOutTheNewTokensAndTheOthersDoNot) {
  const SmallBatch batch;
  const Bundle max = batch.in("max");
  const Bundle nhd = batch.in("nhd");
  EXPECT_EQ(prepare_problem(max, SmallBatch::options("max"), "x").key_lengths, batch.lengths);
  EXPECT_EQ(prepare_problem(nhd, SmallBatch::options("nhd"), "x").key_lengths, batch.lengths);
  EXPECT_THAT(values<std::uint32_t>(max.tensors.at("cache_lengths")), ElementsAre(0, 2, 2, 4, 14));
}

TEST(Layouts, EntriesThatWouldBeReadMustBeBlocks) {
  SmallBatch wrong;
  wrong.table[3] = {5, 13};
  wrong.table[4] = {3, -1, 1, 9, 4};
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["block_table"] = wrong.table_tensor(-1);
  EXPECT_EQ(rejection(bundle, SmallBatch::options("nhd")),
            "mine.npz rejected, 2 faults:\n"
            "  block_table[3, 1]: is 13, outside the 13 blocks; sequence 3 has 5 keys and reads its page 1\n"
            "  block_table[4, 1]: is -1, outside the 13 blocks; sequence 4 has 17 keys and reads its page 1");
}

TEST(Layouts, LengthsThatNeedMoreColumnsThanTheTableHasAreFaults) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({5}, {1, 3, 4, 25, -2});
  EXPECT_EQ(rejection(bundle, SmallBatch::options("nhd")),
            "mine.npz rejected: cache_seqlens[4]: is -2, not a length in [0, 2^40]");
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({5}, {1, 3, 4, 25, 17});
  EXPECT_EQ(rejection(bundle, SmallBatch::options("nhd")),
            "mine.npz rejected: cache_seqlens[3]: sequence 3 has 25 keys, which are 7 pages of 4 tokens, but "
            "block_table has 6 "
            "columns");
}

// A window hides the first pages: their entries may have any value, because an engine may have freed them.
TEST(Layouts, EntriesOfPagesThatTheMaskHidesAreNotRead) {
  SmallBatch batch;
  batch.table[4][0] = -7;
  const Bundle poisoned = [&] {
    Bundle b = SmallBatch().in("nhd");
    b.tensors["block_table"] = batch.table_tensor(-1);
    return b;
  }();
  EXPECT_EQ(rejection(poisoned, SmallBatch::options("nhd")),
            "mine.npz rejected: block_table[4, 0]: is -7, outside the 13 blocks; sequence 4 has 17 keys and reads its "
            "page 0");
  LayoutOptions windowed = SmallBatch::options("nhd");
  windowed.attention.mask = MaskKind::sliding_window;
  windowed.attention.window_left = 3;
  EXPECT_EQ(prepare_problem(poisoned, windowed, "x").table[static_cast<std::size_t>(4 * 5)], kUnknownBlock);
}

TEST(Layouts, ShapesThatDoNotFitAreAllNamed) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["v_cache"] = make_tensor(DType::f32, {13, 4, 3, 6});
  bundle.tensors["q"] = make_tensor(DType::f32, {7, 3, 5});
  bundle.tensors["block_table"] = make_tensor(DType::f32, {5, 6});
  EXPECT_EQ(rejection(bundle, SmallBatch::options("nhd")),
            "mine.npz rejected, 5 faults:\n"
            "  v_cache: is f32 [13, 4, 3, 6], but k_cache is f32 [13, 4, 2, 6]: all axes but the last must be alike\n"
            "  block_table: is f32; an index tensor is i32, u32, i64 or u64\n"
            "  query_offsets: must be 6 entries, rising from 0 to the 7 rows of q\n"
            "  q: has shape [7, 3, 5], but a head of the cache has 6 elements\n"
            "  q: has 3 heads, not a multiple of the 2 kv heads");
}

TEST(Layouts, BitPatternsNeedATypeAndScalesTheirShape) {
  Bundle bundle = SmallBatch().in("max");
  bundle.tensors["blocks"] = make_tensor(DType::u8, {13, 2, 3, 4, 2, 6});
  EXPECT_EQ(
      rejection(bundle, SmallBatch::options("max")),
      "mine.npz rejected: blocks: is u8: which floats are its bit patterns? Pass --cache-dtype e4m3, or end its name "
      "in _e4m3 or _e5m2");
  LayoutOptions options = SmallBatch::options("max");
  options.cache_type = CacheType{DType::e4m3};
  EXPECT_THAT(prepare_problem(bundle, options, "x").warnings,
              ElementsAre("the cache is e4m3 without scales: elements are taken as they are"));
  bundle.tensors["scales"] = make_tensor(DType::f32, {13, 2, 3, 4, 2, 4});
  options.granularity = 3;
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: scales: has shape [13, 2, 3, 4, 2, 4], but blocks [13, 2, 3, 4, 2, 6] at granularity 3 "
            "need [13, "
            "2, 3, 4, 2, 2]");
  options.layer = 3;
  bundle.tensors.erase("scales");
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: --layer: is 3, but blocks has layers 0 to 2: pass one of them");
}

// blocks [4, 2, 3, 2, 2, 4] holding their own flat index: layer 1, K, block 1, token 0, head 1, dim 2 is element 118.
TEST(Layouts, MaxStridesReachEveryElementOfTheSixAxes) {
  Bundle bundle;
  bundle.tensors["blocks"] = make_tensor(DType::f32, {4, 2, 3, 2, 2, 4});
  float n = 0;
  for (float& x : values<float>(bundle.tensors["blocks"])) x = n++;
  bundle.tensors["lookup_table"] = SmallBatch::ints<std::uint32_t>({1, 1}, {1});
  bundle.tensors["cache_lengths"] = SmallBatch::ints<std::uint32_t>({1}, {0});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 2, 4});
  const PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("max"), "x");
  const attention::PagedRows& k = prepared.problem.k;
  const auto* data = reinterpret_cast<const float*>(k.data);
  const float element = data[1 * k.block_stride + 0 * k.token_stride + 1 * k.head_stride + 2];
  EXPECT_EQ(element, 118);
  EXPECT_NE(element, 22);  // with a block stride that omits layers and K/V: 1 * 2 * 2 * 4 + 4 + 2
  EXPECT_EQ(reinterpret_cast<const float*>(prepared.problem.v.data) - data, 3 * 2 * 2 * 4);
}

TEST(Layouts, MlaNeedsItsScaleAndTakesTheLatentAsV) {
  Bundle bundle;
  bundle.tensors["ckv"] = make_tensor(DType::f32, {3, 2, 4});
  bundle.tensors["kpe"] = make_tensor(DType::f32, {3, 2, 2});
  for (float n = 0; float& x : values<float>(bundle.tensors["ckv"])) x = n++;
  for (float n = 100; float& x : values<float>(bundle.tensors["kpe"])) x = n++;
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {2});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {2});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 3, 6});
  LayoutOptions options = SmallBatch::options("mla");
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: --scale: is missing: engines scale MLA by 1/sqrt(576) or by 1/sqrt(192): pass the "
            "scale of your kernel");
  options.scale = 0.5;
  const PreparedProblem prepared = prepare_problem(bundle, options, "x");
  EXPECT_EQ(prepared.problem.v.head_size, 4);
  const auto* row = reinterpret_cast<const float*>(prepared.problem.k.data) + 5 * 6;  // block 2, slot 1
  EXPECT_THAT(std::vector<float>(row, row + 6), ElementsAre(20, 21, 22, 23, 110, 111));
  const attention::Result result = attention::reference(prepared.problem);
  EXPECT_EQ(result.o(0, 0, 3), (19.0 + 23.0) / 2);
}

TEST(Layouts, KnownSilentFailuresOfKernelsAreWarnedOf) {
  Bundle bundle = SmallBatch().in("flashinfer");
  bundle.tensors["kv_indices"] = SmallBatch::ints<std::int64_t>({10}, {7, 2, 11, 5, 0, 3, 12, 1, 9, 4});
  EXPECT_THAT(
      prepare_problem(bundle, SmallBatch::options("flashinfer"), "x").warnings,
      ElementsAre("kv_indices is i64: FlashInfer's kernels read 32-bit indices, and wrong ones where these are given"));
  const Bundle nhd = SmallBatch().in("nhd");
  EXPECT_THAT(prepare_problem(nhd, SmallBatch::options("nhd"), "x").notes,
              ElementsAre("page size 4: FlashAttention 2 takes pages of multiples of 256 tokens only"));
}

// 2^31 elements of memory that is never read; with a block less, none starts past the last element of 32 bits.
TEST(Layouts, ACacheOf2To31ElementsIsWarnedOf) {
  constexpr std::int64_t kBlock = 16 * 2 * 64, kBlocks = (std::int64_t{1} << 31) / kBlock;  // [elements], [blocks]
  const auto size = static_cast<std::size_t>(kBlock * (kBlocks + 1));
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::shared_ptr<const void> owner(memory, [](const void* at) { ::munmap(const_cast<void*>(at), size); });
  Bundle bundle;
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {2});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {7});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 2, 64});
  bundle.tensors["k_scale"] = bundle.tensors["v_scale"] = make_tensor(DType::f32, {});
  const auto warnings = [&](std::int64_t blocks) {
    const std::span bytes(static_cast<const std::byte*>(memory), static_cast<std::size_t>(kBlock * blocks));
    bundle.tensors["k_cache"] = {DType::e4m3, {blocks, 16, 2, 64}, TensorBytes::borrow(bytes, owner)};
    bundle.tensors["v_cache"] = bundle.tensors["k_cache"];
    return prepare_problem(bundle, SmallBatch::options("nhd"), "x").warnings;
  };
  EXPECT_THAT(warnings(kBlocks), testing::IsEmpty());
  EXPECT_THAT(warnings(kBlocks + 1),
              ElementsAre("block 1048576 starts past element 2^31: a kernel that multiplies block "
                          "and stride in 32 bits reads another block from there on"));
}

// Blocks that share their elements, such as those of a prefix that is stored once.
TEST(Layouts, BlocksMayShareTheirElements) {
  LayoutOptions options;
  options.description = std::make_shared<const LayoutDescription>(
      parse_layout(json::parse(R"({"forms": [{"values": "leading", "tensors": [{"name": "k", "holds": "k",
          "axes": "[block, slot, dim]", "strides": [0, 4, 1], "sizes": [3, 2, 4]}]}],
          "table": {"form": "blocks", "tensors": {"table": ["t"], "lengths": ["n"]}}})",
                               "shared.json"),
                   "shared", "shared.json"));
  options.layout = "shared";
  options.scale = 0.5;
  options.value_size = 2;
  Bundle bundle;
  bundle.tensors["k"] = rising({8});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 1, 4});
  bundle.tensors["t"] = SmallBatch::ints<std::int32_t>({1, 2}, {2, 0});
  bundle.tensors["n"] = SmallBatch::ints<std::int32_t>({1}, {4});
  const PreparedProblem prepared = prepare_problem(bundle, options, "x");
  EXPECT_EQ(prepared.problem.k.block_stride, 0);
  EXPECT_THAT(prepared.warnings, testing::IsEmpty());
  const attention::Result result = attention::reference(prepared.problem);  // q is 0: the mean of slots 0 and 1
  EXPECT_EQ(result.o(0, 0, 1), (1.0 + 5.0) / 2);
}

// A scale for each slot or block has no place for a table of tokens.
TEST(Layouts, ATableOfTokensHasNoScalesOfItsPlaces) {
  LayoutOptions options;
  options.description = std::make_shared<const LayoutDescription>(parse_layout(
      json::parse(R"({"forms": [{"tensors": [{"name": "kv", "holds": "kv", "axes": "[block, kv, slot, head, dim]"}]}],
          "table": {"form": "tokens", "tensors": {"indptr": ["p"], "indices": ["i"]}}})",
                  "mine.json"),
      "mine", "mine.json"));
  options.layout = "mine";
  Bundle bundle;
  bundle.tensors["kv"] = rising({3, 2, 4, 2, 6});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 2, 6});
  bundle.tensors["p"] = list({0, 3});
  bundle.tensors["i"] = list({9, 1, 4});
  for (const char* name : {"k_scale", "v_scale"}) {
    Bundle scaled = bundle;
    scaled.tensors[name] = rising({2});
    EXPECT_EQ(rejection(scaled, options), "(no InputError)") << name;  // per head
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3, 4}, {3}}) {
      scaled.tensors[name] = rising(shape);
      EXPECT_EQ(rejection(scaled, options),
                "mine.npz rejected: i: has an entry for each token: scales per token or block need a table of pages")
          << name;
    }
  }
}

TEST(Layouts, BlockScalesAreFoundUnderAllTheirNames) {
  for (const char* name : {"k_block_scale", "k_sf", "v_block_scales", "v_cache_sf", "kv_cache_sf"}) {
    Bundle bundle;
    bundle.tensors[name] = make_tensor(DType::f32, {1});
    const std::string_view side = name;
    const LayoutOptions options = SmallBatch::options(side.starts_with("kv") ? "flashinfer" : "nhd");
    EXPECT_EQ(has_block_scales(bundle, options, false), side.starts_with("k")) << name;
    EXPECT_EQ(has_block_scales(bundle, options, true), !side.starts_with("k_")) << name;
  }
}

TEST(Layouts, ABatchOfNoSequencesIsEmpty) {
  Bundle bundle;
  bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(DType::f32, {3, 4, 2, 6});
  bundle.tensors["block_table"] = make_tensor(DType::i32, {0, 3});
  bundle.tensors["cache_seqlens"] = make_tensor(DType::i32, {0});
  bundle.tensors["q"] = make_tensor(DType::f32, {0, 4, 6});
  const PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("nhd"), "x");
  EXPECT_EQ(prepared.problem.batch, 0);
  EXPECT_EQ(attention::reference(prepared.problem).o.shape(0), 0U);
}

// Unchecked, these would reach the table's arithmetic: division by a chunk of 0, and reads past the end of empty
// offsets.
TEST(Layouts, OptionsThatMakeNoMaskAreFaultsUnderTheNameTheyWereTypedBy) {
  const Bundle bundle = SmallBatch().in("nhd");
  LayoutOptions options = SmallBatch::options("nhd");
  options.layer = -1;
  options.scale = std::numeric_limits<double>::quiet_NaN();
  options.attention.soft_cap = 0.0;
  options.attention.mask = MaskKind::chunked;
  options.attention.chunk = 0;
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected, 4 faults:\n"
            "  --layer: is -1, but layout 'nhd' holds one layer: leave the option out\n"
            "  --chunk: 0 positions: a chunk holds at least 1\n"
            "  --soft-cap: 0 is not a finite number above 0: leave it out for no cap\n"
            "  --scale: nan is not a finite number");
  options = SmallBatch::options("nhd");
  options.attention.soft_cap = std::numeric_limits<double>::infinity();
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: --soft-cap: inf is not a finite number above 0: leave it out for no cap");
  options = SmallBatch::options("nhd");
  options.attention.mask = MaskKind::sliding_window;
  options.attention.window_left = -2;
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: --window-left: -2 keys: give at least 0, or -1 for no limit");
}

TEST(Layouts, QueryOffsetsWithoutEntriesAreAFaultLikeAnyWrongNumberOfThem) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["query_offsets"] = SmallBatch::ints<std::int64_t>({0}, {});
  EXPECT_EQ(rejection(bundle, SmallBatch::options("nhd")),
            "mine.npz rejected: query_offsets: must be 6 entries, rising from 0 to the 8 rows of q");
}

TEST(Layouts, AnMlaCacheOfUnknownWidthAsksForTheSizeOfVOnce) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {3, 2, 6});
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {2});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {2});
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 3, 6});
  LayoutOptions options = SmallBatch::options("mla");
  options.scale = 0.5;
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: --value-size: is missing: an MLA row of 6 elements is K, and its first elements are V: "
            "pass their number, from 1 to 6");
  for (const std::int64_t size : {-3, 0, 7}) {
    options.value_size = size;
    EXPECT_EQ(rejection(bundle, options),
              fmt::format("mine.npz rejected: --value-size: {} is outside [1, 6], a head's elements", size));
  }
  options.value_size = 6;
  EXPECT_EQ(prepare_problem(bundle, options, "x").problem.v.head_size, 6);
}

TEST(Layouts, UnknownLayoutNamesTheKnownOnes) {
  EXPECT_EQ(rejection({}, SmallBatch::options("torch")),
            "command line rejected: --layout: 'torch' is not a layout; layouts are max, nhd, hnd, flashinfer, "
            "flashinfer_hnd, vllm_legacy, sglang, mla, vllm, vllm_hnd, vllm_diffkv, flashinfer_trtllm, trtllm, "
            "flashmla_fp8, mla_indptr, sglang_mla, sglang_req, hf, dense, varlen, mlc, lmcache, lmcache_2td, "
            "lmcache_t2d, lmcache_mla, flashmla_sparse");
}

TEST(Layouts, QueriesWithoutOffsetsAreOneASequenceOrAnAxisOfTheirOwn) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors.erase("query_offsets");
  EXPECT_EQ(rejection(bundle, SmallBatch::options("nhd")),
            "mine.npz rejected: q: has 8 rows for 5 sequences: add query_offsets [B + 1]");
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 4, 6});
  EXPECT_THAT(prepare_problem(bundle, SmallBatch::options("nhd"), "x").query_offsets, ElementsAre(0, 1, 2, 3, 4, 5));
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 2, 4, 6});
  EXPECT_THAT(prepare_problem(bundle, SmallBatch::options("nhd"), "x").query_offsets, ElementsAre(0, 2, 4, 6, 8, 10));
}

}  // namespace
}  // namespace kvscope::golden::layouts_test

// Conversions of caches: what a layout cannot hold, with the reason; tensors that are moved with the cache, and those that
// are copied. tests/apps/layout_pairs_test.py converts between all layouts.
#include "core/golden/layouts/layout_convert.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::layout_convert_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ConvertOptions between(const std::string& from, const std::string& to) {
  ConvertOptions options;
  options.from = SmallBatch::options(from);
  options.layer = from == "max" ? std::optional(SmallBatch::kLayer) : std::nullopt;
  options.to = find_layout(to);
  return options;
}

std::string rejection(const Bundle& bundle, const ConvertOptions& options) {
  return message_of([&] { static_cast<void>(convert_cache(bundle, options, "mine.npz")); });
}

// The whole cache, then back: every value of the problem keeps its bits, in every layout of the small batch.
class ThereAndBack : public testing::TestWithParam<const char*> {};

TEST_P(ThereAndBack, KeepsTheAnswerOfEachLayoutThatHoldsKAndV) {
  const std::string layout = GetParam();
  const Bundle nhd = SmallBatch().in("nhd");
  const Conversion there = convert_cache(nhd, between("nhd", layout), "x");
  ConvertOptions back = between(layout, "nhd");
  back.from.layer = 0;
  back.layer.reset();
  const Conversion again = convert_cache(there.bundle, back, "x");
  EXPECT_EQ(there.sequences, 5);
  EXPECT_EQ(again.tokens, 30);
  const auto answer = [](const Bundle& bundle) {
    return attention::reference(prepare_problem(bundle, SmallBatch::options("nhd"), "x").problem).o;
  };
  EXPECT_EQ(answer(again.bundle), answer(nhd));
}

// Without mla, which has V in K, and vllm_legacy, whose runs of 16 bytes do not divide 6 elements.
INSTANTIATE_TEST_SUITE_P(Layouts, ThereAndBack,
                         testing::Values("max", "nhd", "hnd", "flashinfer", "flashinfer_hnd", "sglang", "vllm",
                                         "vllm_hnd", "vllm_diffkv", "flashinfer_trtllm", "trtllm", "sglang_req", "hf",
                                         "dense", "varlen", "mlc"),
                         [](const auto& param) { return std::string(param.param); });

// --- the new tokens, which lengths of layout max leave out ------------------------------------------------------------

TEST(ConvertQueries, AreCountedInEveryFormOfQ) {
  Bundle bundle = SmallBatch().in("max");
  bundle.tensors.erase("query_offsets");
  const auto lengths = [&] {
    const Conversion made = convert_cache(bundle, between("max", "nhd"), "x");
    const auto values_of = values<std::uint32_t>(made.bundle.tensors.at("cache_seqlens"));
    return std::vector<std::int64_t>(values_of.begin(), values_of.end());
  };
  bundle.tensors["cache_lengths"] = list<std::uint32_t>({0, 2, 2, 4, 14});
  bundle.tensors["q"] = make_tensor(DType::f32, {8, 4, 6});
  bundle.tensors["query_offsets"] = list({0, 1, 2, 4, 5, 8});
  EXPECT_THAT(lengths(), ElementsAre(1, 3, 4, 5, 17));
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 4, 6});  // one for each
  EXPECT_THAT(lengths(), ElementsAre(1, 3, 3, 5, 15));
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 2, 4, 6});
  EXPECT_THAT(lengths(), ElementsAre(2, 4, 4, 6, 16));
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 3, 4, 6});
  bundle.tensors["q_lens"] = list({1, 1, 2, 1, 3});  // of a padded q
  EXPECT_THAT(lengths(), ElementsAre(1, 3, 4, 5, 17));
  bundle.tensors.erase("q_lens");
  bundle.tensors.erase("q");
  EXPECT_THAT(lengths(), ElementsAre(0, 2, 2, 4, 14));
}

TEST(ConvertQueries, OfAnMlaModelAreCountedByTheirFirstPart) {
  Bundle bundle;
  bundle.tensors["blocks"] = make_tensor(DType::f32, {3, 1, 1, 4, 1, 6});
  bundle.tensors["lookup_table"] = SmallBatch::ints<std::uint32_t>({2, 1}, {2, 0});
  bundle.tensors["cache_lengths"] = list<std::uint32_t>({2, 1});
  bundle.tensors["q_nope"] = make_tensor(DType::f32, {2, 2, 3, 4});
  bundle.tensors["q_pe"] = make_tensor(DType::f32, {2, 2, 3, 2});
  ConvertOptions options = between("max", "mla");
  options.from.layer = 0;
  options.layer.reset();
  options.from.value_size = 4;
  const Conversion made = convert_cache(bundle, options, "x");
  EXPECT_THAT(values<std::uint32_t>(made.bundle.tensors.at("cache_seqlens")), ElementsAre(4, 3));
}

TEST(ConvertQueries, ThatDoNotFitTheSequencesAreFaults) {
  const auto with = [](const std::string& name, Tensor tensor) {
    Bundle bundle = SmallBatch().in("max");
    bundle.tensors[name] = std::move(tensor);
    return rejection(bundle, between("max", "nhd"));
  };
  const std::string offsets = "mine.npz rejected: query_offsets: must be 6 entries, rising from 0";
  EXPECT_EQ(with("query_offsets", list({0, 1, 2, 4, 8})), offsets);
  EXPECT_EQ(with("query_offsets", list({})), offsets);
  EXPECT_EQ(with("query_offsets", list({0, 1, 2, 1, 5, 8})), offsets);
  EXPECT_EQ(with("query_offsets", list({1, 1, 2, 4, 5, 8})), offsets);
  EXPECT_EQ(with("query_offsets", list<std::int64_t>({0, 1, 2, 4, 5, std::int64_t{1} << 41})), offsets);
  EXPECT_EQ(with("query_offsets", make_tensor(DType::f32, {6})),
            "mine.npz rejected: query_offsets: is f32; an index tensor is i32, u32, i64 or u64");
  const std::string lens = "mine.npz rejected: q_lens: must be 5 entries in [0, 2^40]";
  EXPECT_EQ(with("q_lens", list({1, 1, 2, 1})), lens);
  EXPECT_EQ(with("q_lens", list({1, 1, 2, -1, 3})), lens);
  EXPECT_EQ(with("q_lens", list<std::int64_t>({1, 1, 2, std::int64_t{1} << 41, 3})), lens);
  EXPECT_EQ(with("q_lens", make_tensor(DType::f32, {5})),
            "mine.npz rejected: q_lens: is f32; an index tensor is i32, u32, i64 or u64");
}

// A layout that counts cached tokens cannot hold fewer keys than queries.
TEST(ConvertQueries, StayBelowTheKeysOfALayoutThatCountsCachedTokens) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["query_offsets"] = list({0, 1, 2, 4, 10, 13});
  bundle.tensors["q"] = make_tensor(DType::f32, {13, 4, 6});
  EXPECT_EQ(rejection(bundle, between("nhd", "max")),
            "mine.npz rejected: --to: layout 'max' counts cached tokens; sequence 3 has 5 keys and 6 queries");
}

// --- the tokens ------------------------------------------------------------------------------------------------------

TEST(ConvertTokens, OutsideThePoolAreFaultsOfTheirPages) {
  Bundle bundle = SmallBatch().in("nhd");
  SmallBatch wrong;
  wrong.table[3] = {13, 0};
  wrong.table[4] = {3, -1, 1, 9, 4};
  bundle.tensors["block_table"] = wrong.table_tensor(-1);
  EXPECT_EQ(rejection(bundle, between("nhd", "hnd")),
            "mine.npz rejected, 2 faults:\n"
            "  block_table: is 13 for page 0 of sequence 3, outside the 13 blocks\n"
            "  block_table: is -1 for page 1 of sequence 4, outside the 13 blocks");
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({5, 6}, std::vector<std::int64_t>(30, 99));
  const std::string text = rejection(bundle, between("nhd", "hnd"));
  EXPECT_THAT(text, testing::StartsWith("mine.npz rejected, 9 faults:\n"));
  EXPECT_THAT(text, HasSubstr("\n  block_table: and 2 more entries outside the blocks"));  // of 10 pages
  bundle.tensors["block_table"] = SmallBatch().table_tensor(-1);
  bundle.tensors["cache_seqlens"] = list({1, 3, 4, 5, 25});
  EXPECT_EQ(
      rejection(bundle, between("nhd", "hnd")),
      "mine.npz rejected: cache_seqlens[4]: sequence 4 has 25 keys, which are 7 pages of 4 tokens, but block_table has "
      "6 columns");
  bundle.tensors.erase("block_table");
  EXPECT_EQ(rejection(bundle, between("nhd", "hnd")),
            "mine.npz rejected: block_table: is missing; layout 'nhd' needs block_table [B, columns]");
}

TEST(ConvertTokens, PagesHoldAtLeastOneToken) {
  const Bundle bundle = SmallBatch().in("nhd");
  ConvertOptions options = between("nhd", "hnd");
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-4}}) {
    options.page_size = size;
    EXPECT_EQ(rejection(bundle, options),
              fmt::format("mine.npz rejected: --page-size: {} tokens: a page holds at least 1", size));
  }
  options.page_size = (std::int64_t{1} << 31) + 1;
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: --page-size: 2147483649 tokens: a page holds at most 2147483648");
}

// A pool of 13 blocks of 4 slots is no pool of pages of 8, whatever the tokens: their blocks would not fill it.
TEST(ConvertTokens, ArePackedIfThePoolIsNoMultipleOfThePage) {
  Bundle bundle = SmallBatch().in("sglang");
  ConvertOptions options = between("sglang", "nhd");
  options.page_size = 8;
  const Conversion made = convert_cache(bundle, options, "x");
  EXPECT_FALSE(made.kept_pool);
  EXPECT_EQ(made.page_size, 8);
  EXPECT_THAT(made.bundle.tensors.at("k_cache").shape, ElementsAre(7, 8, 2, 6));  // 1 + 1 + 1 + 1 + 3 blocks
  options.page_size = 4;
  EXPECT_TRUE(convert_cache(bundle, options, "x").kept_pool);
}

// A sequence without keys has no pages, and no last page.
TEST(ConvertTokens, OfAnEmptySequenceAreNoPages) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["cache_seqlens"] = list({0, 3, 4, 5, 17});
  const Conversion made = convert_cache(bundle, between("nhd", "flashinfer"), "x");
  EXPECT_THAT(values<std::int32_t>(made.bundle.tensors.at("kv_indptr")), ElementsAre(0, 0, 1, 2, 4, 9));
  EXPECT_THAT(values<std::int32_t>(made.bundle.tensors.at("kv_last_page_len")), ElementsAre(0, 3, 4, 1, 1));
}

// The manifest's hints of an earlier conversion are used only if they are positive integers.
TEST(ConvertTokens, TakeThePageSizeOfTheManifest) {
  Bundle bundle = SmallBatch().in("varlen");
  const auto page_size = [&](json::Value value) {
    bundle.manifest.set("page_size", std::move(value));
    return convert_cache(bundle, between("varlen", "nhd"), "x").page_size;
  };
  EXPECT_EQ(page_size(8), 8);
  EXPECT_EQ(page_size(0), 16);
  EXPECT_EQ(page_size("8"), 16);
}

TEST(ConvertTokens, OfSeveralSequencesAreNoChunk) {
  EXPECT_EQ(rejection(SmallBatch().in("nhd"), between("nhd", "lmcache")),
            "mine.npz rejected: --to: layout 'lmcache' holds one sequence, the input has 5");
  const std::string sparse = "layout 'flashmla_sparse' lists the keys of queries, not the tokens of sequences";
  EXPECT_EQ(rejection(SmallBatch().in("nhd"), between("nhd", "flashmla_sparse")), "mine.npz rejected: --to: " + sparse);
}

// --- forms that cannot hold the cache --------------------------------------------------------------------------------

Bundle one_sequence(DType k_type, std::int64_t k_size, DType v_type, std::int64_t v_size, std::int64_t heads = 1) {
  Bundle bundle;
  bundle.tensors["k"] = make_tensor(k_type, {4, heads, k_size});
  bundle.tensors["v"] = make_tensor(v_type, {4, heads, v_size});
  for (std::byte& b : bundle.tensors["v"].bytes) b = std::byte{1};
  bundle.tensors["cu_seqlens_k"] = list({0, 4});
  return bundle;
}

TEST(ConvertForms, WithoutPagesTakeNoPageSize) {
  const Bundle bundle = SmallBatch().in("nhd");
  for (const char* layout : {"varlen", "sglang", "flashinfer"}) {
    ConvertOptions options = between("nhd", layout);
    options.page_size = 1;
    EXPECT_NO_THROW((void)convert_cache(bundle, options, "x")) << layout;
    options.page_size = 5;
    if (std::string(layout) == "flashinfer") {
      EXPECT_EQ(convert_cache(bundle, options, "x").page_size, 5);
    } else {
      EXPECT_EQ(
          rejection(bundle, options),
          fmt::format("mine.npz rejected: --page-size: 5 tokens, but layout '{}' has no pages: leave the option out",
                      layout));
    }
  }
}

TEST(ConvertForms, NameTheFirstPropertyThatTheLayoutCannotHold) {
  const auto reason = [](const Bundle& bundle, const std::string& to) {
    ConvertOptions options = between("varlen", to);
    if (!to.starts_with("lmcache")) options.page_size = 2;
    return rejection(bundle, options);
  };
  const auto to = [](const std::string& layout, const std::string& why) {
    return fmt::format("mine.npz rejected: --to: layout '{}' {}", layout, why);
  };
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f32, 6), "hnd"),
            to("hnd", "needs K and V of one head size and type; K has 8 elements of f32, V 6 of f32"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f16, 8), "hnd"),
            to("hnd", "needs K and V of one head size and type; K has 8 elements of f32, V 8 of f16"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f16, 8), "flashinfer"),
            to("flashinfer",
               "holds K and V in one tensor, which needs one head size and type; K has 8 elements of f32, V 8 "
               "of f16"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f16, 6), "vllm_diffkv"),
            to("vllm_diffkv", "holds K and V in one tensor, which needs one type"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f32, 8), "mla"),
            to("mla", "stores V as the first elements of K, the input stores V apart"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f16, 8), "mla"),
            to("mla", "stores V as the first elements of K, the input stores V apart"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 6, DType::f32, 8), "mla"),
            to("mla", "stores V as the first elements of K, the input stores V apart"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 6, DType::f32, 6), "vllm_legacy"),
            to("vllm_legacy", "keeps runs of 4 elements, which do not divide 6"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f32, 8), "flashmla_fp8"),
            to("flashmla_fp8", "has packed rows, the input has rows of one type"));
  EXPECT_EQ(reason(one_sequence(DType::f32, 8, DType::f32, 8, 2), "lmcache_mla"),
            to("lmcache_mla", "has no axis for the 2 heads"));
}

// V of equal bits is no V in front of K while a scale applies to one of them.
TEST(ConvertForms, ValuesLeadKeysBitForBitAndUnscaled) {
  Bundle bundle = one_sequence(DType::f32, 8, DType::f32, 6);
  const Tensor k = bundle.tensors["k"] = rising({4, 1, 8});
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t d = 0; d < 6; ++d) {
      values<float>(bundle.tensors["v"])[static_cast<std::size_t>(t * 6 + d)] = static_cast<float>(t * 8 + d);
    }
  }
  const Conversion made = convert_cache(bundle, between("varlen", "mla"), "x");
  EXPECT_THAT(made.bundle.tensors, testing::Contains(testing::Key("kv_cache")));
  const std::string apart =
      "mine.npz rejected: --to: layout 'mla' stores V as the first elements of K, the input stores V apart";
  for (const char* name : {"k_scale", "v_scale"}) {
    Bundle scaled = bundle;
    scaled.tensors[name] = tensor_of<float>({}, std::vector<float>{2});
    EXPECT_EQ(rejection(scaled, between("varlen", "mla")), apart) << name;
  }
  values<float>(bundle.tensors["v"])[23] = -1;
  EXPECT_EQ(rejection(bundle, between("varlen", "mla")), apart);
}

// Rows that are V as a whole have no part besides it.
TEST(ConvertForms, PartsOfARowNeedBoth) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {3, 4, 6});
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {2});
  bundle.tensors["cache_seqlens"] = list({3});
  ConvertOptions options = between("mla", "mla_indptr");
  options.from.value_size = 6;
  LayoutDescription parts = *find_layout("mla_indptr");
  parts.forms.resize(1);
  options.to = &parts;
  EXPECT_EQ(
      rejection(bundle, options),
      "mine.npz rejected: --to: layout 'mla_indptr' splits a row into the 6 elements of V and the rest, of which there "
      "are none");
  options.from.value_size = 4;
  const Conversion made = convert_cache(bundle, options, "x");
  EXPECT_THAT(made.bundle.tensors.at("ckv_cache").shape, ElementsAre(3, 4, 4));
  EXPECT_THAT(made.bundle.tensors.at("kpe_cache").shape, ElementsAre(3, 4, 2));
}

// Flat storage has the sizes of its description, though its pool may have more blocks than the cache.
class FlatStorage : public testing::Test {
 protected:
  [[nodiscard]] static LayoutDescription flat(const std::string& axes, const std::string& strides,
                                              const std::string& sizes, const std::string& table) {
    const std::string text = fmt::format(
        R"({{"forms": [{{"values": "leading", "tensors": [{{"name": "k", "holds": "k", "axes": "{}", "strides": [{}],
            "sizes": [{}]}}]}}], "table": {}}})",
        axes, strides, sizes, table);
    return parse_layout(json::parse(text, "flat.json"), "flat", "flat.json");
  }
  static constexpr const char* kBlocks =
      R"({"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["cache_seqlens"]}})";
  static constexpr const char* kTokens = R"({"form": "tokens", "tensors": {"indptr": ["p"], "indices": ["i"]}})";
  static constexpr const char* kRows = R"({"form": "dense", "tensors": {"lengths": ["n"]}})";
  static constexpr const char* kChunk = R"({"form": "chunk"})";

  [[nodiscard]] static Bundle mla() {
    Bundle bundle;
    bundle.tensors["kv_cache"] = rising({3, 4, 6});
    bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {2});
    bundle.tensors["cache_seqlens"] = list({3});
    return bundle;
  }
  [[nodiscard]] static std::string reason(const LayoutDescription& to) {
    ConvertOptions options = between("mla", "mla");
    options.from.value_size = 4;
    options.to = &to;
    return rejection(mla(), options);
  }
};

TEST_F(FlatStorage, HasTheSizesOfTheCache) {
  EXPECT_EQ(reason(flat("[block, slot, dim]", "24, 6, 1", "3, 4, 6", kBlocks)), "(no InputError)");
  EXPECT_EQ(reason(flat("[block, slot, dim]", "24, 6, 1", "9, 4, 6", kBlocks)), "(no InputError)");  // a larger pool
  EXPECT_EQ(
      reason(flat("[block, slot, dim]", "24, 6, 1", "2, 4, 6", kBlocks)),
      "mine.npz rejected: --to: layout 'flat' describes flat storage of sizes [2, 4, 6], the cache has [3, 4, 6]");
  EXPECT_EQ(reason(flat("[token, dim]", "6, 1", "20, 6", kTokens)), "(no InputError)");
  EXPECT_EQ(reason(flat("[token, dim]", "6, 1", "20, 5", kTokens)),
            "mine.npz rejected: --to: layout 'flat' describes flat storage of sizes [20, 5], the cache has [20, 6]");
  // Sequences and the tokens of a chunk are no pool: they are all there.
  EXPECT_EQ(reason(flat("[seq, position, dim]", "18, 6, 1", "1, 3, 6", kRows)), "(no InputError)");
  EXPECT_EQ(
      reason(flat("[seq, position, dim]", "18, 6, 1", "2, 3, 6", kRows)),
      "mine.npz rejected: --to: layout 'flat' describes flat storage of sizes [2, 3, 6], the cache has [1, 3, 6]");
  EXPECT_EQ(reason(flat("[token, dim]", "6, 1", "4, 6", kChunk)),
            "mine.npz rejected: --to: layout 'flat' describes flat storage of sizes [4, 6], the cache has [3, 6]");
}

TEST_F(FlatStorage, ReachesEachElementOnce) {
  for (const char* strides : {"24, 5, 1", "23, 6, 1", "24, 6, 0", "0, 6, 1"}) {
    EXPECT_EQ(reason(flat("[block, slot, dim]", strides, "3, 4, 6", kBlocks)),
              "mine.npz rejected: --to: layout 'flat' describes flat storage in which elements of k overlap")
        << strides;
  }
  EXPECT_EQ(reason(flat("[block, slot, dim, 1]", "24, 6, 1, 0", "3, 4, 6, 1", kBlocks)), "(no InputError)");
}

// --- tensors besides the cache ---------------------------------------------------------------------------------------

TEST(ConvertRest, IsCopiedOrNamed) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["mine"] = rising({3});
  ConvertOptions options = between("nhd", "sglang");
  EXPECT_THAT(values<float>(convert_cache(bundle, options, "x").bundle.tensors.at("mine")), ElementsAre(0, 1, 2));
  bundle.tensors["kv_indptr"] = list({7});
  EXPECT_EQ(
      rejection(bundle, options),
      "mine.npz rejected: kv_indptr: is also a tensor of layout 'sglang': pass --ignore kv_indptr to leave it out");
  options.from.ignore = {"kv_indptr", "mine"};
  const Conversion made = convert_cache(bundle, options, "x");
  EXPECT_FALSE(made.bundle.tensors.contains("mine"));
  EXPECT_THAT(values<std::int32_t>(made.bundle.tensors.at("kv_indptr")), ElementsAre(0, 1, 4, 8, 13, 30));
}

// The input has the lengths twice: one of them is not read, and would be wrong in the result.
TEST(ConvertRest, UnreadTensorsOfTheCacheAreFaults) {
  Bundle bundle = SmallBatch().in("hf");
  bundle.tensors["seq_lens"] = list({1, 3, 4, 5, 17});
  EXPECT_EQ(rejection(bundle, between("hf", "nhd")),
            "mine.npz rejected: attention_mask: is not used: the input gives the same in other tensors. Pass --ignore "
            "attention_mask to leave it out");
}

TEST(ConvertScales, BySequenceNeedALayoutThatHasThem) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["k_descale"] = rising({5, 2});
  EXPECT_EQ(rejection(bundle, between("nhd", "max")),
            "mine.npz rejected: k_descale: has scales by sequence, which layout 'max' does not have");
  EXPECT_THAT(values<float>(convert_cache(bundle, between("nhd", "hnd"), "x").bundle.tensors.at("k_descale")),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// Scales of blocks become scales of slots if the pages change: the tokens of a block are then in several pages.
TEST(ConvertScales, OfBlocksFollowTheTokens) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["k_scale"] = rising({13});
  for (float& x : values<float>(bundle.tensors["k_scale"])) x += 1;
  ConvertOptions options = between("nhd", "nhd");
  options.page_size = 3;
  const Conversion made = convert_cache(bundle, options, "x");
  const Tensor& moved = made.bundle.tensors.at("k_scale");
  EXPECT_THAT(moved.shape, ElementsAre(12, 3, 1));  // 1 + 1 + 2 + 2 + 6 blocks; all heads share a scale
  const auto answer = [](const Bundle& b) {
    return attention::reference(prepare_problem(b, SmallBatch::options("nhd"), "x").problem).o;
  };
  EXPECT_EQ(answer(made.bundle), answer(bundle));
}

// A row of 16 e4m3: a scale for each of the first 8 elements, then one for each 4. Counted in groups of 4, the scales
// of the second field are numbers 2 and 3, which in the first field are the scales of elements 2 and 3.
TEST(ConvertScales, OfPackedRowsKeepTheirFields) {
  const LayoutDescription rows =
      parse_layout(json::parse(R"({"forms": [{"values": "leading", "tensors": [{"name": "rows", "holds": "k",
        "axes": "[block, slot, row]", "row": {"bytes": 36, "fields": [
          {"elements": 8, "dtype": "e4m3", "at": 0, "scales": {"dtype": "f16", "at": 16, "each": 1}},
          {"elements": 8, "dtype": "e4m3", "at": 8, "scales": {"dtype": "f16", "at": 32, "each": 4}}]}}]}],
        "table": {"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["cache_seqlens"]}}})",
                               "rows.json"),
                   "rows", "rows.json");
  ConvertOptions options;
  options.from.layout = "rows";
  options.from.description = std::make_shared<const LayoutDescription>(rows);
  options.from.value_size = 4;
  options.to = &rows;
  options.page_size = 3;
  Bundle bundle;
  Tensor& given = bundle.tensors["rows"] = make_tensor(DType::u8, {2, 4, 36});
  for (std::size_t i = 0; i < given.bytes.size(); ++i) given.bytes[i] = static_cast<std::byte>(i * 7 % 251);
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 2}, {1, 0});
  bundle.tensors["cache_seqlens"] = list({5});
  const Conversion made = convert_cache(bundle, options, "x");
  const Tensor& moved = made.bundle.tensors.at("rows");
  const std::span<const std::int32_t> table = values<std::int32_t>(made.bundle.tensors.at("block_table"));
  ASSERT_THAT(table, testing::SizeIs(2));
  for (std::int64_t token = 0; token < 5; ++token) {
    const std::int64_t from = (token < 4 ? 4 + token : token - 4) * 36;
    const std::int64_t to = (table[static_cast<std::size_t>(token / 3)] * 3 + token % 3) * 36;
    EXPECT_TRUE(std::equal(moved.bytes.data() + to, moved.bytes.data() + to + 36, given.bytes.data() + from))
        << "token " << token;
  }
}

// --- masks -----------------------------------------------------------------------------------------------------------

// The table of nhd holds 24 tokens, so a mask may have 24 columns. Those of varlen are the 17 keys of the longest.
TEST(ConvertMasks, ColumnsBecomeThoseOfTheKeys) {
  const auto converted = [](std::vector<std::int64_t> shape, const char* to = "varlen") {
    Bundle bundle = SmallBatch().in("nhd");
    Tensor mask = make_tensor(DType::u8, std::move(shape));
    for (std::size_t i = 0; i < mask.bytes.size(); ++i) mask.bytes[i] = static_cast<std::byte>(i % 2);
    bundle.tensors["attn_mask"] = std::move(mask);
    return convert_cache(bundle, between("nhd", to), "x").bundle.tensors.at("attn_mask").shape;
  };
  EXPECT_THAT(converted({3, 24}), ElementsAre(3, 17));
  EXPECT_THAT(converted({5, 3, 24}), ElementsAre(5, 3, 17));
  EXPECT_THAT(converted({5, 4, 3, 24}), ElementsAre(5, 4, 3, 17));
  EXPECT_THAT(converted({3, 17}), ElementsAre(3, 17));  // of keys already
  EXPECT_THAT(converted({3, 1}), ElementsAre(3, 1));    // shared by all keys
  EXPECT_THAT(converted({24}), ElementsAre(24));        // a fault wherever it is read
  EXPECT_THAT(converted({4, 3, 24}), ElementsAre(4, 3, 24));
  EXPECT_THAT(converted({1, 1, 1, 1, 24}), ElementsAre(1, 1, 1, 1, 24));
}

TEST(ConvertQ, TurnsItsAxesForALayoutWithHeadsFirst) {
  Bundle bundle = SmallBatch().in("dense");
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q"] = rising({5, 3, 4, 6});
  const Conversion made = convert_cache(bundle, between("dense", "hf"), "x");
  EXPECT_THAT(made.bundle.tensors.at("q").shape, ElementsAre(5, 4, 3, 6));
  const Conversion back = convert_cache(made.bundle, between("hf", "dense"), "x");
  EXPECT_THAT(back.bundle.tensors.at("q").shape, ElementsAre(5, 3, 4, 6));
  EXPECT_TRUE(std::ranges::equal(values<float>(back.bundle.tensors.at("q")), values<float>(bundle.tensors.at("q"))));
}

}  // namespace
}  // namespace kvscope::golden::layout_convert_test

// Faults of the index tensors of every form of table: each is reported once, with its value, the allowed range and what
// to do.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/golden/lint/lint.h"
#include "tests/core/golden/layouts/layout_cases.h"
#include "tests/core/golden/lint/lint_cases.h"

namespace kvscope::golden::lint_tables_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Each finding in one line: "range block_table[0, 2] is 9 for ...; allowed: [0, 6); the kernel would ...".
std::vector<std::string> reported(Bundle bundle, const LintOptions& options) {
  std::vector<std::string> found;
  for (const LintFinding& f : lint(std::move(bundle), options).findings) {
    found.push_back(fmt::format("{} {} {}{}{}{}", f.rule, f.object, f.problem,
                                f.range.empty() ? "" : "; allowed: ", f.range, f.next.empty() ? "" : "; " + f.next));
  }
  return found;
}

// The index tensors of each layout of the small batch, with the shapes that layout_description.h states.
constexpr NamedTensor kIndexTensors[] = {{"max", "lookup_table", "[B, columns]"},
                                         {"max", "cache_lengths", "[B]"},
                                         {"nhd", "block_table", "[B, columns]"},
                                         {"nhd", "cache_seqlens", "[B]"},
                                         {"hnd", "block_table", "[B, columns]"},
                                         {"flashinfer", "kv_indptr", "[B + 1]"},
                                         {"flashinfer", "kv_indices", "[pages]"},
                                         {"flashinfer", "kv_last_page_len", "[B]"},
                                         {"mlc", "page_indptr", "[B + 1]"},
                                         {"mlc", "page_values", "[pages]"},
                                         {"mlc", "length_info", "[B]"},
                                         {"sglang", "kv_indptr", "[B + 1]"},
                                         {"sglang", "kv_indices", "[tokens]"},
                                         {"sglang_req", "req_to_token", "[requests, columns]"},
                                         {"sglang_req", "req_pool_indices", "[B]"},
                                         {"sglang_req", "seq_lens", "[B]"},
                                         {"trtllm", "kv_cache_block_offsets", "[B, 2, columns] or [1, B, 2, columns]"},
                                         {"trtllm", "sequence_length", "[B]"},
                                         {"dense", "cache_seqlens", "[B]", true},
                                         {"varlen", "cu_seqlens_k", "[B + 1]"}};

class IndexTensors : public testing::TestWithParam<NamedTensor> {};

TEST_P(IndexTensors, AMissingOneIsTheOnlyFinding) {
  const auto [layout, name, shape, may_be_missing] = GetParam();
  Bundle bundle = SmallBatch().in(layout);
  bundle.tensors.erase(name);
  if (may_be_missing) {
    EXPECT_THAT(reported(std::move(bundle), lint_options_for(layout)), IsEmpty());
  } else {
    EXPECT_THAT(reported(std::move(bundle), lint_options_for(layout)),
                ElementsAre(fmt::format("missing {} is missing; allowed: {}; save it with the cache", name, shape)));
  }
}

TEST_P(IndexTensors, FloatsAreTheOnlyFinding) {
  const auto [layout, name, shape, may_be_missing] = GetParam();
  Bundle bundle = SmallBatch().in(layout);
  bundle.tensors[name] = make_tensor(DType::f32, bundle.tensors.at(name).shape);
  EXPECT_THAT(reported(std::move(bundle), lint_options_for(layout)),
              ElementsAre(fmt::format(
                  "type {} is f32; allowed: i32, u32, i64 or u64; save the integers that the kernel reads", name)));
}

TEST_P(IndexTensors, OneOfAnotherRankIsTheOnlyFinding) {
  const auto [layout, name, shape, may_be_missing] = GetParam();
  Bundle bundle = SmallBatch().in(layout);
  Tensor& tensor = bundle.tensors.at(name);
  tensor.shape.insert(tensor.shape.end(), 2, 1);  // two more axes: one more may be another form
  const std::string text = shape_text(tensor.shape);
  EXPECT_THAT(reported(std::move(bundle), lint_options_for(layout)),
              ElementsAre(fmt::format("shape {} has shape {}; allowed: {}; save it in the shape that the kernel reads",
                                      name, text, shape)));
}

TEST_P(IndexTensors, EveryIntegerTypeIsRead) {
  const char* const layout = GetParam().layout;
  const char* const name = GetParam().name;
  const Bundle bundle = SmallBatch().in(layout);
  const Tensor& tensor = bundle.tensors.at(name);
  std::vector<std::int64_t> numbers;
  if (tensor.dtype == DType::i64) {
    numbers.assign(values<std::int64_t>(tensor).begin(), values<std::int64_t>(tensor).end());
  } else {  // u32 as i32: the padding of layout max is -1
    const Tensor as_i32 = reinterpret_as(Tensor(tensor), DType::i32);
    numbers.assign(values<std::int32_t>(as_i32).begin(), values<std::int32_t>(as_i32).end());
  }
  const auto check = [&](Tensor other) {
    const DType dtype = other.dtype;
    Bundle changed = bundle;
    changed.tensors[name] = std::move(other);
    const std::vector<std::string> found = reported(std::move(changed), lint_options_for(layout));
    const EngineLimit limit = find_layout(layout)->index_bits;
    if (limit.value == 32 && bits(dtype) == 64) {
      EXPECT_THAT(found,
                  ElementsAre(fmt::format("type {} is {}; allowed: i32; {}'s kernels read 32-bit indices: convert it",
                                          name, kvscope::name(dtype), limit.engine)));
    } else {
      EXPECT_THAT(found, IsEmpty()) << kvscope::name(dtype);
    }
  };
  check(SmallBatch::ints<std::int32_t>(tensor.shape, numbers));
  check(SmallBatch::ints<std::uint32_t>(tensor.shape, numbers));
  check(SmallBatch::ints<std::int64_t>(tensor.shape, numbers));
  check(SmallBatch::ints<std::uint64_t>(tensor.shape, numbers));
}

INSTANTIATE_TEST_SUITE_P(Layouts, IndexTensors, testing::ValuesIn(kIndexTensors),
                         [](const auto& param) { return fmt::format("{}_{}", param.param.layout, param.param.name); });

// A u64 past 2^63 is no negative number, and no small one.
TEST(LintTables, HugeUnsignedNumbersStayHuge) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["cache_seqlens"] = list<std::uint64_t>({1, 3, 4, 5, -1});
  EXPECT_THAT(
      reported(std::move(bundle), lint_options_for("nhd")),
      ElementsAre("length cache_seqlens[4] is 9223372036854775807; allowed: [0, 2^40]; a length counts tokens"));
}

TEST(LintTables, RowsAndLengthsOfDifferentBatchesAreNamed) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["cache_seqlens"] = list({1, 3, 4, 5});
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q"] = make_tensor(DType::f32, {4, 4, 6});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("nhd")),
              ElementsAre("shape block_table has 5 rows; allowed: 4, the entries of cache_seqlens; table and lengths "
                          "belong to different batches"));
}

TEST(LintTables, LengthsPastTheTableNameTheirPages) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["cache_seqlens"] = list({1, 3, -4, 5, 25});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("nhd")),
              ElementsAre("length cache_seqlens[2] is -4; allowed: [0, 2^40]; a length counts tokens",
                          "length cache_seqlens[4] is 25: 25 keys are 7 pages of 4 tokens; allowed: at most 6 pages, "
                          "the columns of block_table; the kernel would take further pages from the next row",
                          "range block_table[4, 5] is -1 for page 5 of sequence 4; allowed: [0, 13); the kernel would "
                          "read outside the pool"));
}

// --- how many tokens are new ----------------------------------------------------------------------------------------

TEST(LintQueries, TheirNumberFitsTheBatch) {
  const auto with = [](const std::string& name, Tensor tensor, std::vector<std::int64_t> q_shape) {
    Bundle bundle = SmallBatch().in("nhd");
    bundle.tensors.erase("query_offsets");
    if (!name.empty()) bundle.tensors[name] = std::move(tensor);
    bundle.tensors["q"] = make_tensor(DType::f32, std::move(q_shape));
    return reported(std::move(bundle), lint_options_for("nhd"));
  };
  EXPECT_THAT(with("q_lens", list({1, 1, 2, 1, 3}), {5, 3, 4, 6}), IsEmpty());
  EXPECT_THAT(with("q_lens", list({1, 1, 2, 1}), {5, 3, 4, 6}),
              ElementsAre("shape q_lens has 4 entries; allowed: 5; one number of queries per sequence"));
  EXPECT_THAT(
      with("q_lens", make_tensor(DType::f32, {5}), {5, 3, 4, 6}),
      ElementsAre("type q_lens is f32; allowed: i32, u32, i64 or u64; save the integers that the kernel reads"));
  EXPECT_THAT(
      with("query_offsets", make_tensor(DType::f16, {6}), {8, 4, 6}),
      ElementsAre("type query_offsets is f16; allowed: i32, u32, i64 or u64; save the integers that the kernel reads"));
  EXPECT_THAT(with("query_offsets", list({0, 1, 2, 4, 8}), {8, 4, 6}),
              ElementsAre("shape query_offsets has 5 entries; allowed: 6; one offset per sequence, and the end"));
  EXPECT_THAT(
      with("query_offsets", list({}), {8, 4, 6}),
      ElementsAre("indptr query_offsets is empty; allowed: [B + 1] entries; write a 0 and one end per sequence"));
  EXPECT_THAT(with("query_offsets", list({0, 1, 2, 4, 5, 7}), {8, 4, 6}),
              ElementsAre("indptr query_offsets[5] is 7, but q has 8 rows; allowed: 8; the last rows belong to no "
                          "sequence"));
  EXPECT_THAT(
      with("query_offsets", list({0, 1, 2, 4, 5, 9}), {8, 4, 6}),
      ElementsAre("indptr query_offsets[5] is 9; allowed: [0, 8], the rows of q; the kernel would read past the "
                  "end"));
  EXPECT_THAT(with("", {}, {4, 2, 4, 6}),
              ElementsAre("shape q has 4 sequences; allowed: 5; q and the table belong to different batches"));
  EXPECT_THAT(with("", {}, {8, 4, 6}),
              ElementsAre("shape q has 8 rows for 5 sequences; allowed: 5, or offsets; add query_offsets [B + 1]"));
  EXPECT_THAT(with("", {}, {5, 4, 6}), IsEmpty());
}

// A padded q has 3 rows of each sequence. What a kernel would read past them is a fault, whatever the table says.
TEST(LintQueries, LengthsStayWithinQ) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 3, 4, 6});
  bundle.tensors["q_lens"] = list({0, 1, -1, 4, 3});
  const auto lines = [&](const std::string& allowed) {
    return ElementsAre(
        fmt::format("length q_lens[2] is -1; allowed: {}; a length counts tokens", allowed),
        fmt::format("length q_lens[3] is 4; allowed: {}; the kernel would read past the sequence", allowed));
  };
  EXPECT_THAT(reported(bundle, lint_options_for("nhd")), lines("[0, 3], the queries of a sequence in q"));
  bundle.tensors["q"] = make_tensor(DType::f32, {3, 4, 6});
  EXPECT_THAT(reported(bundle, lint_options_for("nhd")), lines("[0, 3], the rows of q"));
  bundle.tensors.erase("q");
  bundle.tensors["q_lens"] = list<std::int64_t>({0, 1, 0, (std::int64_t{1} << 40) + 1, std::int64_t{1} << 40});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("nhd")),
              ElementsAre("length q_lens[3] is 1099511627777; allowed: [0, 1099511627776], of any q; the kernel would "
                          "read past the sequence"));
}

// While the number of sequences is not known, no form of q and its offsets has a fault of its own, except those that do
// not depend on it.
TEST(LintQueries, AreNotBlamedForAFaultOfTheTable) {
  const auto with = [](const std::string& name, Tensor tensor, std::vector<std::int64_t> q_shape) {
    Bundle bundle = SmallBatch().in("nhd");
    bundle.tensors.erase("cache_seqlens");
    bundle.tensors.erase("query_offsets");
    if (!name.empty()) bundle.tensors[name] = std::move(tensor);
    bundle.tensors["q"] = make_tensor(DType::f32, std::move(q_shape));
    const LintReport report = lint(bundle, lint_options_for("nhd"));
    EXPECT_THAT(report.not_checked, testing::Not(testing::Contains("write: the file has no q or query_offsets")));
    return reported(std::move(bundle), lint_options_for("nhd"));
  };
  const std::string missing = "missing cache_seqlens is missing; allowed: [B]; save it with the cache";
  EXPECT_THAT(with("q_lens", list({1, 1, 2}), {5, 3, 4, 6}), ElementsAre(missing));
  EXPECT_THAT(with("query_offsets", list({0, 3, 8}), {8, 4, 6}), ElementsAre(missing));
  EXPECT_THAT(with("", {}, {4, 2, 4, 6}), ElementsAre(missing));
  EXPECT_THAT(with("", {}, {8, 4, 6}), ElementsAre(missing));
  EXPECT_THAT(with("query_offsets", list({0, 4, 3, 7}), {8, 4, 6}),
              ElementsAre(missing,
                          "indptr query_offsets[2] is 3 after 4; allowed: at least 4; offsets are running sums, and a "
                          "sequence cannot have a negative size",
                          "indptr query_offsets[3] is 7, but q has 8 rows; allowed: 8; the last rows belong to no "
                          "sequence"));
}

TEST(LintQueries, OffsetsAreCheckedWithoutQ) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors.erase("q");
  EXPECT_THAT(reported(bundle, lint_options_for("nhd")), IsEmpty());
  bundle.tensors["query_offsets"] = list({-1, 1, 2, 4, 5, 8});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("nhd")),
              ElementsAre("indptr query_offsets[0] is -1; allowed: 0; the first sequence starts at the first entry"));
}

// hf has heads before queries: [5, 4, 3, 6] are 3 queries of each sequence.
TEST(LintQueries, OfALayoutWithHeadsFirstAreTheThirdAxis) {
  Bundle bundle = SmallBatch().in("hf");
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q"] = make_tensor(DType::f32, {5, 4, 3, 6});
  bundle.tensors["attn_mask"] = make_tensor(DType::u8, {3, 19});
  for (std::byte& b : bundle.tensors["attn_mask"].bytes) b = std::byte{1};
  const auto faults = [](Bundle changed) {
    std::vector<std::string> found;
    for (const LintFinding& f : lint(std::move(changed), lint_options_for("hf")).findings) {
      if (f.severity == LintSeverity::fault)
        found.push_back(fmt::format("{} {}; allowed: {}", f.object, f.problem, f.range));
    }
    return found;
  };
  EXPECT_THAT(faults(bundle), IsEmpty());
  bundle.tensors["attn_mask"].shape = {19, 3};
  EXPECT_THAT(faults(std::move(bundle)),
              ElementsAre("attn_mask has 19 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 0",
                          "attn_mask has 3 columns; allowed: 1, shared by all keys, or 17, the keys of sequence 4, or "
                          "19, the tokens that the table or the cache holds for it"));
}

// --- lists of entries -----------------------------------------------------------------------------------------------

TEST(LintLists, LastPagesAndLengthsHaveOneEntryForEachSequence) {
  Bundle bundle = SmallBatch().in("flashinfer");
  bundle.tensors["kv_last_page_len"] = list({1, 3, 4, 1});
  EXPECT_THAT(
      reported(bundle, lint_options_for("flashinfer")),
      ElementsAre("shape kv_last_page_len has 4 entries; allowed: 5, the sequences of kv_indptr; one length per "
                  "sequence"));
  bundle.tensors["kv_last_page_len"] = list({1, 3, 4, 1, 1});
  bundle.tensors["kv_indptr"] = list({});
  bundle.tensors.erase("q");
  bundle.tensors.erase("query_offsets");
  EXPECT_THAT(reported(bundle, lint_options_for("flashinfer")),
              ElementsAre("indptr kv_indptr is empty; allowed: [B + 1] entries; write a 0 and one end per sequence"));
}

// kv_lens of FlashInfer's MLA wrapper: the keys of a sequence lie in its last page.
TEST(LintLists, LengthsEndInTheLastPage) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {13, 4, 6});
  bundle.tensors["q"] = make_tensor(DType::f32, {3, 2, 6});
  bundle.tensors["kv_indptr"] = list({0, 1, 3, 3});
  bundle.tensors["kv_indices"] = list({7, 2, 5});
  bundle.tensors["kv_lens"] = list({4, 5, 0});
  EXPECT_THAT(reported(bundle, lint_options_for("mla_indptr")), IsEmpty());
  bundle.tensors["kv_lens"] = list({5, 4, 0});
  EXPECT_THAT(reported(bundle, lint_options_for("mla_indptr")),
              ElementsAre("last-page kv_lens[0] is 5; allowed: [1, 4]; the kernel would read past the page",
                          "last-page kv_lens[1] is 4; allowed: [5, 8]; a page without tokens must not be in the list "
                          "of pages"));
}

// MLC's length_info [3, B] of a sliding window: the last page's tokens, the first slot of the window, the sinks.
TEST(LintLists, WindowsStartBetweenTheSinksAndTheEnd) {
  Bundle bundle = SmallBatch().in("mlc");
  const auto with = [&](const std::vector<std::int64_t>& windows, const std::vector<std::int64_t>& sinks) {
    std::vector<std::int64_t> info{1, 3, 4, 1, 1};
    info.insert(info.end(), windows.begin(), windows.end());
    info.insert(info.end(), sinks.begin(), sinks.end());
    Bundle changed = bundle;
    changed.tensors["length_info"] = SmallBatch::ints<std::int32_t>({3, 5}, info);
    return reported(std::move(changed), lint_options_for("mlc"));
  };
  EXPECT_THAT(with({0, 1, 0, 2, 17}, {0, 1, 0, 2, 4}), IsEmpty());
  EXPECT_THAT(
      with({0, 1, 0, 2, 18}, {0, 2, -1, 2, 4}),
      ElementsAre("length length_info[1, 1] is 1; allowed: [2, 3], from the sinks to the slots of the pages; the "
                  "window starts at that slot",
                  "length length_info[2, 2] is -1; allowed: at least 0; it counts the attention sinks",
                  "length length_info[1, 4] is 18; allowed: [4, 17], from the sinks to the slots of the pages; "
                  "the window starts at that slot"));
  bundle.tensors["length_info"] = SmallBatch::ints<std::int32_t>({2, 5}, std::vector<std::int64_t>(10, 1));
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("mlc")),
              ElementsAre("shape length_info has shape [2, 5]; allowed: [3, 5]; one length per sequence"));
}

// Without the cache, its page size is not known: only what no size needs is judged.
TEST(LintLists, WithoutTheCacheOffsetsAreStillChecked) {
  Bundle bundle = SmallBatch().in("flashinfer");
  bundle.tensors.erase("kv_cache");
  bundle.tensors["kv_last_page_len"] = list({1, 3, 0, 1, 99});
  bundle.tensors["kv_indptr"] = list({0, 1, 2, 3, 5, 11});
  const LintReport report = lint(bundle, lint_options_for("flashinfer"));
  EXPECT_THAT(report.not_checked, ElementsAre("entries: the sizes of the cache are not known"));
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("flashinfer")),
              ElementsAre("missing cache tensors are missing; save the cache with the index tensors, or pass its shape "
                          "with --cache-shape",
                          "indptr kv_indptr[5] is 11; allowed: [0, 10], the entries of kv_indices; the kernel would "
                          "read past the end",
                          "last-page kv_last_page_len[2] is 0; allowed: at least 1; a page without tokens must not be "
                          "in the list of pages"));
}

// --- requests, offsets of K and V, and caches without a table -------------------------------------------------------

TEST(LintRequests, NameRowsOfTheTable) {
  Bundle bundle = SmallBatch().in("sglang_req");
  bundle.tensors["req_pool_indices"] = list({5, 4, 7, 4, -1});
  EXPECT_THAT(
      reported(bundle, lint_options_for("sglang_req")),
      ElementsAre("range req_pool_indices[2] is 7; allowed: [0, 7), the rows of req_to_token; the kernel would "
                  "take a row outside the table",
                  "range req_pool_indices[4] is -1; allowed: [0, 7), the rows of req_to_token; the kernel would "
                  "take a row outside the table",
                  testing::StartsWith("range req_to_token[4, 3] is 1073741824 for token 3 of sequence 3"),
                  testing::StartsWith("range req_to_token[4, 4] is 1073741824 for token 4 of sequence 3"),
                  "duplicate req_pool_indices[3] is 4, which sequence 1 also has; two sequences of a batch are "
                  "different requests",
                  testing::StartsWith("write req_to_token[4, 2] is ")));
  bundle.tensors["req_pool_indices"] = list({5, 4, 3, 2, 1});
  bundle.tensors["seq_lens"] = list({1, 3, 4, 5});
  EXPECT_THAT(reported(bundle, lint_options_for("sglang_req")),
              ElementsAre("shape seq_lens has 4 entries; allowed: 5, the entries of req_pool_indices; one length per "
                          "request"));
  bundle.tensors["seq_lens"] = list({1, 3, 4, -5, 21});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("sglang_req")),
              ElementsAre("length seq_lens[3] is -5; allowed: [0, 20], the columns of req_to_token; a length counts "
                          "tokens",
                          "length seq_lens[4] is 21; allowed: [0, 20], the columns of req_to_token; the kernel would "
                          "read past the sequence"));
}

TEST(LintOffsets, HaveOnePoolWithEntriesForKAndForV) {
  Bundle bundle = SmallBatch().in("trtllm");
  Tensor& table = bundle.tensors.at("kv_cache_block_offsets");
  table.shape = {1, 5, 2, 6};
  EXPECT_THAT(reported(bundle, lint_options_for("trtllm")), IsEmpty());
  table.shape = {5, 6, 2};
  const std::string needed =
      "; allowed: [B, 2, columns] or [1, B, 2, columns]; one pool, and an entry for K and one for V";
  EXPECT_THAT(reported(bundle, lint_options_for("trtllm")),
              ElementsAre("shape kv_cache_block_offsets has shape [5, 6, 2]" + needed));
  table.shape = {5, 1, 2, 6};
  EXPECT_THAT(reported(bundle, lint_options_for("trtllm")),
              ElementsAre("shape kv_cache_block_offsets has shape [5, 1, 2, 6]" + needed));
  table.shape = {5, 2, 6};
  const auto entries = values<std::int32_t>(table);
  entries[6] = 26;  // sequence 0 for V: an entry past the pool
  entries[12] = 5;  // sequence 1 for K: odd
  entries[30] = 8;  // sequence 2 for V: of another block
  EXPECT_THAT(
      reported(std::move(bundle), lint_options_for("trtllm")),
      ElementsAre("range kv_cache_block_offsets[0, :, 0] is 26 for V for page 0 of sequence 0; allowed: [0, 26); "
                  "an entry that counts from 1, or the number of a null block",
                  "pair kv_cache_block_offsets[1, :, 0] is 5 for K and 5 for V, page 0 of sequence 1; allowed: "
                  "an even entry for K, and the next one for V; a block number that was not doubled, or V's "
                  "entry in K's row",
                  "pair kv_cache_block_offsets[2, :, 0] is 22 for K and 8 for V, page 0 of sequence 2; allowed: "
                  "an even entry for K, and the next one for V; the kernel would read V of another block"));
}

// The number one past a null block is entry 2N + 1 for V.
TEST(LintOffsets, TheNumberOfANullBlockIsNamedForKAndForV) {
  Bundle bundle = SmallBatch().in("trtllm");
  const auto entries = values<std::int32_t>(bundle.tensors.at("kv_cache_block_offsets"));
  entries[0] = 26;
  entries[6] = 27;
  const std::string next = "; allowed: [0, 26); an entry that counts from 1, or the number of a null block";
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("trtllm")),
              ElementsAre("range kv_cache_block_offsets[0, :, 0] is 26 for K for page 0 of sequence 0" + next,
                          "range kv_cache_block_offsets[0, :, 0] is 27 for V for page 0 of sequence 0" + next));
}

// Blocks are shared by entry / 2: sequences 1 and 3 share page 0 of different prefixes in no case, but page 1 of them.
TEST(LintOffsets, SharedBlocksAreComparedByBlock) {
  SmallBatch batch;
  batch.lengths = {1, 6, 4, 6, 17};
  batch.table = {{7}, {2, 6}, {11}, {5, 6}, {3, 12, 1, 9, 4}};
  EXPECT_THAT(
      reported(batch.in("trtllm"), lint_options_for("trtllm")),
      ElementsAre("sharing kv_cache_block_offsets[3, :, 1] is 6, which sequence 1 has too, but their pages 0 are "
                  "5 and 2; keys depend on all tokens before them, so a block can be shared only behind a "
                  "common prefix",
                  testing::StartsWith("write kv_cache_block_offsets[1, :, 1] is 6"),
                  testing::StartsWith("write kv_cache_block_offsets[3, :, 1] is 6")));
}

// Behind an entry outside the pool, contents cannot be compared: whichever sequence has it, and on whichever side.
TEST(LintSharing, BehindAnEntryOutsideThePoolIsAFault) {
  for (const std::int64_t outside : {-1, 13, 99}) {
    for (const bool first : {false, true}) {
      SmallBatch batch;
      batch.lengths = {1, 8, 4, 8, 17};
      batch.table = {{7}, {first ? outside : 2, 6}, {11}, {first ? 2 : outside, 6}, {3, 12, 1, 9, 4}};
      Bundle bundle = SmallBatch().in("nhd");
      bundle.tensors["block_table"] = batch.table_tensor(-1);
      bundle.tensors["cache_seqlens"] = list(batch.lengths);
      EXPECT_THAT(
          reported(std::move(bundle), lint_options_for("nhd")),
          ElementsAre(testing::StartsWith(fmt::format("range block_table[{}, 0] is {} for page 0 of sequence {}; "
                                                      "allowed: [0, 13)",
                                                      first ? 1 : 3, outside, first ? 1 : 3)),
                      testing::StartsWith(fmt::format(
                          "sharing block_table[3, 1] is 6, which sequence 1 has too, but their pages 0 are {} "
                          "and {}",
                          first ? 2 : outside, first ? outside : 2)),
                      testing::StartsWith("write block_table[1, 1]"), testing::StartsWith("write block_table[3, 1]")))
          << outside;
    }
  }
}

// A token pool shares slots, not blocks: slots of equal contents may stand for one another.
TEST(LintSharing, OfSlotsComparesTheirContents) {
  Bundle bundle;
  for (const char* name : {"k_buffer", "v_buffer"}) {
    bundle.tensors[name] = make_tensor(DType::f32, {6, 1, 2});
    for (std::size_t i = 0; i < 12; ++i) values<float>(bundle.tensors[name])[i] = i < 8 ? 1 : 2;  // slots 4, 5 differ
  }
  bundle.tensors["q"] = make_tensor(DType::f32, {2, 1, 2});
  bundle.tensors["kv_indptr"] = list({0, 3, 6});
  bundle.tensors["kv_indices"] = list({0, 2, 5, 1, 2, 4});
  EXPECT_THAT(reported(bundle, lint_options_for("sglang")), IsEmpty());
  values<float>(bundle.tensors["v_buffer"])[2] = 7;  // V of slot 1
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("sglang")),
              ElementsAre("sharing kv_indices[4] is 2, which sequence 0 has too, but their tokens 0 are 1 and 0; keys "
                          "depend on all tokens before them, so a block can be shared only behind a common prefix"));
}

TEST(LintDense, LengthsAndPaddingStayWithinASequence) {
  Bundle bundle = SmallBatch().in("dense");  // 5 sequences of 19 positions
  bundle.tensors["cache_leftpad"] = list({0, 16, 20, -1, 2});
  EXPECT_THAT(reported(bundle, lint_options_for("dense")),
              ElementsAre("padding cache_leftpad[2] is 20; allowed: [0, 19], the positions of a sequence; the first "
                          "token would be outside the sequence",
                          "padding cache_leftpad[3] is -1; allowed: [0, 19], the positions of a sequence; the first "
                          "token would be outside the sequence"));
  bundle.tensors["cache_leftpad"] = list({0, 17, 0, 0, 2});
  bundle.tensors["cache_seqlens"] = list({20, 3, 4, -1, 17});
  EXPECT_THAT(
      reported(bundle, lint_options_for("dense")),
      ElementsAre("length cache_seqlens[0] is 20; allowed: [0, 19], the positions; the kernel would read past "
                  "the sequence",
                  "length cache_seqlens[1] is 3; allowed: [0, 2], the positions after 17 of padding; the kernel "
                  "would read past the sequence",
                  "length cache_seqlens[3] is -1; allowed: [0, 19], the positions; a length counts tokens"));
  bundle.tensors["cache_leftpad"] = list({0, 0, 0, 0});
  bundle.tensors["cache_seqlens"] = list({1, 3, 4, 5, 17, 1});
  EXPECT_THAT(reported(bundle, lint_options_for("dense")),
              ElementsAre("shape cache_leftpad has 4 entries; allowed: 5, the sequences of the cache; one entry per "
                          "sequence",
                          "shape cache_seqlens has 6 entries; allowed: 5, the sequences of the cache; one entry per "
                          "sequence"));
}

TEST(LintDense, AttentionMasksHaveOneRunOfTokens) {
  Bundle bundle = SmallBatch().in("hf");
  Tensor& mask = bundle.tensors.at("attention_mask");
  for (std::int64_t& x : values<std::int64_t>(mask).subspan(0, 19)) x = 0;  // no token: no position is the first
  values<std::int64_t>(mask)[19 + 17] = 0;                                  // 16, 17, 18 are the tokens of sequence 1
  const std::vector<std::string> found = reported(bundle, lint_options_for("hf"));
  EXPECT_THAT(found,
              ElementsAre("padding attention_mask[1, 17] is 0 between tokens: position 18 is a token again; allowed: "
                          "padding before or after the tokens; kernels that take lengths instead of a mask cannot skip "
                          "it"));
  mask = make_tensor(DType::f32, {5, 18});
  EXPECT_THAT(reported(bundle, lint_options_for("hf")),
              ElementsAre("shape attention_mask is f32 [5, 18]; allowed: [5, 19]; an entry for each position of each "
                          "sequence of the cache"));
  bundle.tensors.erase("key_cache");
  bundle.tensors.erase("value_cache");
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("hf")),
              ElementsAre(testing::StartsWith("missing cache tensors are missing")));
}

TEST(LintRagged, LengthsFitTheOffsets) {
  Bundle bundle = SmallBatch().in("varlen");  // 30 tokens
  bundle.tensors["seqused_k"] = list({1, 3, 5, -2, 17});
  EXPECT_THAT(reported(bundle, lint_options_for("varlen")),
              ElementsAre("length seqused_k[2] is 5; allowed: [0, 4], the tokens of the sequence in cu_seqlens_k; the "
                          "kernel would read past the sequence",
                          "length seqused_k[3] is -2; allowed: [0, 5], the tokens of the sequence in cu_seqlens_k; a "
                          "length counts tokens"));
  bundle.tensors["seqused_k"] = list({1, 3, 4});
  bundle.tensors["cu_seqlens_k"] = list({0, 1, 4, 8, 13, 31});
  EXPECT_THAT(reported(bundle, lint_options_for("varlen")),
              ElementsAre("shape seqused_k has 3 entries; allowed: 5, the sequences of cu_seqlens_k; one length per "
                          "sequence",
                          "indptr cu_seqlens_k[5] is 31; allowed: [0, 30], the tokens of the cache; the kernel would "
                          "read past the end"));
  bundle.tensors.erase("seqused_k");
  bundle.tensors["cu_seqlens_k"] = list({});
  bundle.tensors.erase("q");
  bundle.tensors.erase("query_offsets");
  EXPECT_THAT(
      reported(std::move(bundle), lint_options_for("varlen")),
      ElementsAre("indptr cu_seqlens_k is empty; allowed: [B + 1] entries; write a 0 and one end per sequence"));
}

// Without the cache, its tokens and sequences are not counted.
TEST(LintRagged, WithoutTheCacheOffsetsAreStillChecked) {
  const std::string missing =
      "missing cache tensors are missing; save the cache with the index tensors, or pass its shape with --cache-shape";
  Bundle ragged = SmallBatch().in("varlen");
  ragged.tensors.erase("k");
  ragged.tensors.erase("v");
  ragged.tensors["seqused_k"] = list({1, 3});
  ragged.tensors["cu_seqlens_k"] = list({0, 1, 4, 8, 13, 99});
  EXPECT_THAT(reported(ragged, lint_options_for("varlen")),
              ElementsAre(missing,
                          "shape seqused_k has 2 entries; allowed: 5, the sequences of cu_seqlens_k; one length "
                          "per sequence"));
  ragged.tensors["cu_seqlens_k"] = list({});
  EXPECT_THAT(
      reported(std::move(ragged), lint_options_for("varlen")),
      ElementsAre(missing,
                  "indptr cu_seqlens_k is empty; allowed: [B + 1] entries; write a 0 and one end per sequence"));
  Bundle dense = SmallBatch().in("dense");
  dense.tensors.erase("k_cache");
  dense.tensors.erase("v_cache");
  dense.tensors["cache_leftpad"] = list({0, 1});
  EXPECT_THAT(reported(std::move(dense), lint_options_for("dense")), ElementsAre(missing));
}

TEST(LintSparse, RowsAndLengthsFitTheQueries) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {6, 2, 1, 8});
  bundle.tensors["q"] = make_tensor(DType::f32, {2, 4, 8});
  bundle.tensors["indices"] = SmallBatch::ints<std::int32_t>({2, 3}, {0, 11, -1, 5, 5, 12});
  const std::string outside =
      "range indices[1, 2] is 12 for token 2 of query 1; allowed: [0, 12), or -1 for none; an entry that counts from "
      "1, "
      "or the number of a null block";
  const std::string twice =
      "duplicate indices[1, 1] is 5, which query 1 also has at token 0; the keys of one of the two were overwritten, "
      "or "
      "count twice";
  EXPECT_THAT(reported(bundle, lint_options_for("flashmla_sparse")), ElementsAre(outside, twice));
  bundle.tensors["topk_length"] = list({4, 2});
  EXPECT_THAT(reported(bundle, lint_options_for("flashmla_sparse")),
              ElementsAre("length topk_length[0] is 4; allowed: [0, 3], the columns of indices; the kernel would read "
                          "past the sequence",
                          twice));
  bundle.tensors["topk_length"] = list({3});
  bundle.tensors["q"] = make_tensor(DType::f32, {3, 1, 4, 8});
  EXPECT_THAT(reported(bundle, lint_options_for("flashmla_sparse")),
              ElementsAre("shape indices has 2 rows; allowed: 3, the queries of q; one row per query",
                          "shape topk_length has 1 entries; allowed: 2, the rows of indices; one length per query",
                          outside, twice));
  bundle.tensors.erase("topk_length");
  bundle.tensors.erase("q");
  bundle.tensors["indices"].shape = {2, 1, 3};
  EXPECT_THAT(reported(bundle, lint_options_for("flashmla_sparse")), ElementsAre(outside, twice));
  Bundle without = bundle;
  without.tensors.erase("indices");
  EXPECT_THAT(reported(std::move(without), lint_options_for("flashmla_sparse")),
              ElementsAre("missing indices is missing; allowed: [T, k] or [B, queries, k]; save it with the cache"));
  bundle.tensors["indices"] = make_tensor(DType::f32, {2, 3});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("flashmla_sparse")),
              ElementsAre(testing::StartsWith("type indices is f32")));
}

TEST(LintChunk, HasNoTableAndNoFinding) {
  Bundle bundle;
  bundle.tensors["kv_chunk"] = make_tensor(DType::f32, {2, 3, 7, 12});
  LintOptions options = lint_options_for("lmcache");
  options.layout.layer = 1;
  options.vector_read = 4;
  const LintReport report = lint(bundle, options);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.sequences, 1);
  EXPECT_EQ(report.pages, 7);
  EXPECT_THAT(report.not_checked, ElementsAre("vector: the layout has no table", "tma: pass --tma"));
  EXPECT_THAT(reported({}, options), ElementsAre(testing::StartsWith("missing cache tensors are missing")));
}

// --- the cache ------------------------------------------------------------------------------------------------------

TEST(LintCacheTensors, OfAnotherShapeAreFaultsOfTheLayout) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["v_cache"] = make_tensor(DType::f32, {13, 4, 2});
  EXPECT_THAT(reported(bundle, lint_options_for("nhd")),
              ElementsAre("shape v_cache has shape [13, 4, 2], but layout 'nhd' needs [N, P, H, D]"));
  LintOptions options = lint_options_for("nhd");
  options.layout.ignore = {"k_cache", "v_cache"};
  EXPECT_THAT(reported(std::move(bundle), options),
              ElementsAre("missing cache tensors are missing; save the cache with the index tensors, or pass its shape "
                          "with --cache-shape"));
}

TEST(LintCacheTensors, AnIgnoredIndexTensorIsMissing) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["block_tables"] = bundle.tensors["block_table"];
  LintOptions options = lint_options_for("nhd");
  options.layout.ignore = {"block_table", "block_tables"};
  EXPECT_THAT(reported(bundle, options),
              ElementsAre("missing block_table is missing; allowed: [B, columns]; save it with the cache"));
  options.layout.ignore = {"block_table"};
  EXPECT_THAT(reported(std::move(bundle), options), IsEmpty());
}

std::string shape_rejection(const std::string& layout, std::vector<std::int64_t> shape) {
  LintOptions options = lint_options_for(layout);
  options.cache_shape = std::move(shape);
  return message_of([&] { static_cast<void>(lint({}, options)); });
}

TEST(LintCacheShape, IsOfAFormOfTheLayout) {
  const auto rejected = [](const std::string& shape, const std::string& layout, const std::string& needed) {
    return fmt::format(
        "command line rejected: --cache-shape: {} has no form of layout '{}', with every extent from 1 and blocks of "
        "at "
        "most 1 GiB: give the shape of {}",
        shape, layout, needed);
  };
  const std::string nhd = "k_cache [N, P, H, D], v_cache [N, P, H, D]";
  EXPECT_EQ(shape_rejection("nhd", {6, 4, 8}), rejected("[6, 4, 8]", "nhd", nhd));
  EXPECT_EQ(shape_rejection("nhd", {6, 4, 0, 8}), rejected("[6, 4, 0, 8]", "nhd", nhd));
  EXPECT_EQ(shape_rejection("nhd", {6, -4, 1, 8}), rejected("[6, -4, 1, 8]", "nhd", nhd));
  // A block of 2 GiB, one whose bytes do not fit 64 bits, and more blocks than 32 bits count.
  EXPECT_EQ(shape_rejection("nhd", {6, 1024, 1024, 1024}), rejected("[6, 1024, 1024, 1024]", "nhd", nhd));
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(shape_rejection("nhd", {6, huge, huge, 1}),
            rejected(fmt::format("[6, {}, {}, 1]", huge, huge), "nhd", nhd));
  EXPECT_EQ(shape_rejection("nhd", {huge, 1, 1, 1}), rejected(fmt::format("[{}, 1, 1, 1]", huge), "nhd", nhd));
  EXPECT_EQ(
      shape_rejection("vllm_hnd", {6, 3, 2, 4, 8}),
      rejected("[6, 3, 2, 4, 8]", "vllm_hnd",
               "kv_cache [N, 2, H, P, D], kv_cache [2, N, H, P, D], key_cache [N, H, P, D], value_cache [N, H, P, D]"));
  const std::string rows = "kv_cache [N, P, 1, row], kv_cache [N, P, row]";
  EXPECT_EQ(shape_rejection("flashmla_fp8", {6, 4, 1, 655}), rejected("[6, 4, 1, 655]", "flashmla_fp8", rows));
  EXPECT_EQ(shape_rejection("flashmla_fp8", {6, 4, 2, 656}), rejected("[6, 4, 2, 656]", "flashmla_fp8", rows));
  EXPECT_EQ(shape_rejection("trtllm", {5, 1, 4, 8}), rejected("[5, 1, 4, 8]", "trtllm", "kv_pool [2*N, H, P, D]"));
  // K and V have axes of their own: no one shape is that of both.
  EXPECT_EQ(shape_rejection("vllm_legacy", {6, 2, 3, 4, 2}),
            rejected("[6, 2, 3, 4, 2]", "vllm_legacy", "key_cache [N, H, D/x, P, x], value_cache [N, H, D, P]"));
}

// The number of blocks is the extent of the axis that counts them, wherever it is.
TEST(LintCacheShape, GivesTheBlocksOfEveryPlace) {
  const auto blocks = [](const std::string& layout, std::vector<std::int64_t> shape) {
    LintOptions options = lint_options_for(layout);
    options.cache_shape = std::move(shape);
    options.layout.head_size = 8;
    return lint({}, options).blocks;
  };
  EXPECT_EQ(blocks("nhd", {6, 4, 2, 8}), 6);
  EXPECT_EQ(blocks("vllm_hnd", {7, 2, 3, 4, 8}), 7);
  EXPECT_EQ(blocks("vllm_hnd", {2, 7, 3, 4, 8}), 7);     // [kv, block, ...]
  EXPECT_EQ(blocks("trtllm", {10, 2, 4, 8}), 5);         // two entries of a block
  EXPECT_EQ(blocks("sglang", {24, 2, 8}), 24);           // slots
  EXPECT_EQ(blocks("dense", {5, 19, 2, 8}), 5);          // sequences
  EXPECT_EQ(blocks("flashmla_fp8", {9, 4, 1, 656}), 9);  // packed rows, of bytes whatever the type
  EXPECT_EQ(blocks("lmcache", {2, 3, 7, 16}), 7);
}

// Elements of 4 bits are saved in pairs: the last axis counts bytes.
TEST(LintCacheShape, OfElementsOf4BitsCountsBytes) {
  LintOptions options = lint_options_for("nhd");
  options.cache_shape = {6, 4, 2, 16};
  options.cache_type = DType::e2m1;
  Bundle bundle;
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 2}, {5, 6});
  bundle.tensors["cache_seqlens"] = list({8});
  EXPECT_THAT(
      reported(std::move(bundle), options),
      ElementsAre("range block_table[0, 1] is 6 for page 1 of sequence 0; allowed: [0, 6); an entry that counts "
                  "from 1, or the number of a null block"));
}

// An MLA row without --value-size is V as a whole, and one axis for K and V has half of it for each.
TEST(LintCacheTensors, ValueSizesAreNotNeeded) {
  Bundle mla = SmallBatch().in("mla");
  LintOptions options = lint_options_for("mla");
  EXPECT_THAT(reported(std::move(mla), options), IsEmpty());
  Bundle joined = SmallBatch().in("vllm_diffkv");
  options = lint_options_for("vllm_diffkv");
  options.layout.value_size.reset();
  EXPECT_THAT(reported(std::move(joined), options), IsEmpty());
  Bundle parts;
  parts.tensors["ckv_cache"] = make_tensor(DType::f32, {13, 4, 5});
  parts.tensors["kpe_cache"] = make_tensor(DType::f32, {13, 4, 2});
  parts.tensors["kv_indptr"] = list({0, 1});
  parts.tensors["kv_indices"] = list({7});
  parts.tensors["kv_len_arr"] = list({3});
  EXPECT_THAT(reported(std::move(parts), lint_options_for("mla_indptr")), IsEmpty());
  Bundle flat;
  flat.tensors["kv_cache"] = make_tensor(DType::f32, {13});
  flat.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {7});
  flat.tensors["cache_seqlens"] = list({3});
  EXPECT_THAT(reported(std::move(flat), lint_options_for("mla")),
              ElementsAre(testing::StartsWith("shape kv_cache has shape [13], but layout 'mla' needs ")));
}

// One axis for heads and elements: the head size is that of q, or one head has all of them.
TEST(LintCacheTensors, HeadsOfOneAxisComeFromQ) {
  Bundle bundle;
  bundle.tensors["kv_chunk"] = make_tensor(DType::f32, {2, 1, 7, 12});
  EXPECT_THAT(reported(bundle, lint_options_for("lmcache")), IsEmpty());
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 3, 4});
  EXPECT_THAT(reported(bundle, lint_options_for("lmcache")), IsEmpty());
  bundle.tensors["q"] = make_tensor(DType::f32, {1, 3, 5});
  EXPECT_THAT(reported(bundle, lint_options_for("lmcache")),
              ElementsAre("shape kv_chunk has shape [2, 1, 7, 12]: axis 3 is not a multiple of the head size 5"));
  bundle.tensors["q"] = make_tensor(DType::f32, {});
  EXPECT_THAT(reported(std::move(bundle), lint_options_for("lmcache")), IsEmpty());
}

// --- reads of several entries, and tensor maps ----------------------------------------------------------------------

TEST(LintVector, ListsAreAlignedAndEndWithinTheTensor) {
  LintOptions options = lint_options_for("flashinfer");
  options.vector_read = 4;
  Bundle bundle = SmallBatch().in("flashinfer");  // sequences of 1, 1, 1, 2 and 5 pages: 10 entries
  EXPECT_THAT(
      reported(bundle, options),
      ElementsAre("vector kv_indices[9] is the last entry of sequence 4: reads of 4 entries go on to entry 7; "
                  "allowed: 5 entries are left in the tensor; pad the tensor: the read leaves its memory",
                  "vector kv_indices[1] is the first entry of sequence 1, at index 1; allowed: a multiple of 4; "
                  "a load of several entries must be aligned"));
  bundle.tensors["kv_indptr"] = list({0, 4, 8});
  bundle.tensors["kv_indices"] = list({7, 2, 11, 5, 0, 3, 12, 1});
  bundle.tensors["kv_last_page_len"] = list({4, 4});
  bundle.tensors.erase("query_offsets");
  bundle.tensors["q"] = make_tensor(DType::f32, {2, 4, 6});
  EXPECT_THAT(reported(std::move(bundle), options), IsEmpty());
}

TEST(LintVector, OneRowNeedsNoAlignmentAndSequencesWithoutPagesAreNotRead) {
  LintOptions options = lint_options_for("nhd");
  options.vector_read = 4;
  SmallBatch batch;
  Bundle bundle = batch.in("nhd");
  bundle.tensors["cache_seqlens"] = list({0, 3, 4, 5, 16});
  bundle.tensors["query_offsets"] = list({0, 0, 2, 4, 5, 8});
  EXPECT_THAT(reported(std::move(bundle), options),
              ElementsAre("vector block_table has 6 columns; allowed: a multiple of 4; rows start unaligned: pad to 8 "
                          "columns"));
  Bundle one;
  one.tensors["k_cache"] = one.tensors["v_cache"] = make_tensor(DType::f32, {13, 4, 1, 4});
  one.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 6}, {7, 2, 11, 5, 0, 3});
  one.tensors["cache_seqlens"] = list({16});
  EXPECT_THAT(reported(one, options), IsEmpty());
  one.tensors["cache_seqlens"] = list({17});
  EXPECT_THAT(
      reported(std::move(one), options),
      ElementsAre("vector block_table[0, 4] is the last entry of sequence 0: reads of 4 entries go on to entry 7; "
                  "allowed: 6 entries are left in the tensor; pad the tensor: the read leaves its memory"));
}

// Rows of 16 bytes of every type: a legal map. Elements of a type without a tensor map type are not judged.
TEST(LintTma, EveryTypeOfElementHasAMap) {
  for (const auto& [dtype, dims] : {std::pair{DType::f64, 2},
                                    {DType::f32, 4},
                                    {DType::f16, 8},
                                    {DType::bf16, 8},
                                    {DType::e4m3, 16},
                                    {DType::e5m2, 16}}) {
    for (const std::int64_t less : {0, 1}) {
      Bundle bundle;
      bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(dtype, {13, 4, 2, dims - less});
      bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {7});
      bundle.tensors["cache_seqlens"] = list({4});
      LintOptions options = lint_options_for("nhd");
      options.tma = true;
      const std::vector<std::string> found = reported(std::move(bundle), options);
      if (less == 0) {
        EXPECT_THAT(found, IsEmpty()) << name(dtype);
      } else {
        EXPECT_THAT(found, testing::Contains(testing::HasSubstr("not a multiple of 16"))) << name(dtype);
      }
    }
  }
}

TEST(LintTma, BoxesPastAPageAndMapsOfTheirOwnForVAreNamed) {
  Bundle bundle;
  bundle.tensors["k_cache"] = make_tensor(DType::f32, {13, 4, 2, 4});
  bundle.tensors["v_cache"] = make_tensor(DType::f32, {13, 4, 2, 4});
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {7});
  bundle.tensors["cache_seqlens"] = list({4});
  LintOptions options = lint_options_for("nhd");
  options.tma = true;
  options.box = {8, 4};
  EXPECT_THAT(reported(bundle, options),
              ElementsAre("tma tensor map of K, box has 8 rows, but a page has 4; allowed: divisors of 4; a box that "
                          "crosses the end of a page copies rows of no or of another token"));
  // [N, P, H, K and V in one axis]: V starts 3 elements behind K, 12 bytes.
  Bundle joined = SmallBatch().in("vllm_diffkv");
  options = lint_options_for("vllm_diffkv");
  options.layout.value_size = 9;
  options.tma = true;
  const std::vector<std::string> found = reported(std::move(joined), options);
  EXPECT_THAT(found, testing::Contains(testing::StartsWith("tma tensor map of V [block, slot, head, dim], ")));
  Bundle legacy = SmallBatch().in("vllm_legacy");
  options = lint_options_for("vllm_legacy");
  options.tma = true;
  EXPECT_THAT(lint(std::move(legacy), options).not_checked,
              testing::Contains("tma: the layout has no row of a token's elements"));
}

// dense may have V of another head size: its rows are a tensor map of their own.
TEST(LintTma, VOfAnotherHeadSizeHasItsOwnMap) {
  Bundle bundle = SmallBatch().in("dense");
  bundle.tensors["k_cache"] = make_tensor(DType::f32, {5, 19, 2, 8});
  bundle.tensors["v_cache"] = make_tensor(DType::f32, {5, 19, 2, 6});
  bundle.tensors.erase("q");
  LintOptions options = lint_options_for("dense");
  options.tma = true;
  const std::vector<std::string> found = reported(std::move(bundle), options);
  EXPECT_THAT(found, testing::Each(testing::StartsWith("tma tensor map of V ")));
  EXPECT_THAT(found, testing::Contains(testing::HasSubstr("24")));  // the bytes of a row of V
  EXPECT_THAT(found, testing::Not(IsEmpty()));
}

TEST(LintOptions, ABoxHasRowsAndElements) {
  LintOptions options = lint_options_for("nhd");
  for (const auto& [rows, elements] : {std::pair{0, 4}, {4, 0}, {-1, -1}}) {
    options.box = {rows, elements};
    EXPECT_EQ(
        message_of([&] { static_cast<void>(lint({}, options)); }),
        fmt::format("command line rejected: --box: {} rows, {} elements: give at least 1 of each", rows, elements));
  }
}

// A finding without a range has a colon before what to do; a report without findings says what was not checked.
TEST(LintText, JoinsProblemRangeAndNextStep) {
  LintReport report;
  report.layout = "nhd";
  report.sequences = 1;
  report.findings = {{LintSeverity::fault, "range", "a[0]", "is 9", "[0, 6)", "look at a", 9},
                     {LintSeverity::fault, "range", "a[1]", "is 8", "[0, 6)", "", 8},
                     {LintSeverity::warning, "tma", "b", "is odd", "", "make it even", {}},
                     {LintSeverity::warning, "tma", "c", "is odd too", "", "", {}}};
  EXPECT_EQ(text_report(report, "x.npz"),
            "lint       x.npz: layout nhd, 1 sequence, 0 pages of 0 tokens in 0 blocks\n"
            "FAULT    range      a[0] is 9; allowed: [0, 6); look at a\n"
            "FAULT    range      a[1] is 8; allowed: [0, 6)\n"
            "warning  tma        b is odd: make it even\n"
            "warning  tma        c is odd too\n"
            "2 faults, 2 warnings\n");
  EXPECT_EQ(json::dump(*json_report(report, "x.npz").find("passed")), "false");
}

}  // namespace
}  // namespace kvscope::golden::lint_tables_test

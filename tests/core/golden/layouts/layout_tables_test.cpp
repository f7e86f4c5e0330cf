// The tensors of every layout, each missing, of another type and of another rank in turn, and the faults in the contents of
// every form of table: one fault for one mistake, with the value, the allowed range and the tensor that it belongs to.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::layout_tables_test {
namespace {

using testing::ElementsAre;

std::string rejection(const Bundle& bundle, const std::string& layout) {
  return message_of([&] { static_cast<void>(prepare_problem(bundle, SmallBatch::options(layout), "mine.npz")); });
}

// With the shapes that layout_description.h and the files of the layouts state.
constexpr NamedTensor kCaches[] = {{"max", "blocks", "[N, 2, L, P, H, D] or [N, 1, L, P, H, D]"},
                                   {"nhd", "k_cache", "[N, P, H, D]"},
                                   {"nhd", "v_cache", "[N, P, H, D]"},
                                   {"hnd", "k_cache", "[N, H, P, D]"},
                                   {"hnd", "v_cache", "[N, H, P, D]"},
                                   {"vllm_legacy", "key_cache", "[N, H, D/x, P, x]"},
                                   {"vllm_legacy", "value_cache", "[N, H, D, P]"},
                                   {"trtllm", "kv_pool", "[2*N, H, P, D]"},
                                   {"vllm_diffkv", "kv_cache", "[N, P, H, D+Dv]"},
                                   {"mlc", "pages", "[N, 2, H, P, D]"},
                                   {"varlen", "k", "[slots, H, D]"},
                                   {"varlen", "v", "[slots, H, D]"},
                                   {"dense", "k_cache", "[B, S, H, D]"},
                                   {"dense", "v_cache", "[B, S, H, D]"}};
constexpr NamedTensor kIndices[] = {{"max", "lookup_table", "[B, columns]"},
                                    {"max", "cache_lengths", "[B]"},
                                    {"nhd", "block_table", "[B, columns]"},
                                    {"nhd", "cache_seqlens", "[B]"},
                                    {"flashinfer", "kv_indptr", "[B + 1]"},
                                    {"flashinfer", "kv_indices", "[pages]"},
                                    {"flashinfer", "kv_last_page_len", "[B]"},
                                    {"mlc", "page_indptr", "[B + 1]"},
                                    {"mlc", "page_values", "[pages]"},
                                    {"mlc", "length_info", "[B]"},
                                    {"sglang", "kv_indptr", "[B + 1]"},
                                    {"sglang", "kv_indices", "[tokens]"},
                                    {"sglang_req", "req_to_token", "[requests, tokens]"},
                                    {"sglang_req", "req_pool_indices", "[B]"},
                                    {"sglang_req", "seq_lens", "[B]"},
                                    {"trtllm", "kv_cache_block_offsets", "[B, 2, columns] or [1, B, 2, columns]"},
                                    {"trtllm", "sequence_length", "[B]"},
                                    {"dense", "cache_seqlens", "[B]", true},
                                    {"varlen", "cu_seqlens_k", "[B + 1]"}};

std::string test_name(const testing::TestParamInfo<NamedTensor>& param) {
  return fmt::format("{}_{}", param.param.layout, param.param.name);
}

class AnyTensor : public testing::TestWithParam<NamedTensor> {
 protected:
  [[nodiscard]] static Bundle without() {
    Bundle bundle = SmallBatch().in(GetParam().layout);
    bundle.tensors.erase(GetParam().name);
    return bundle;
  }
  [[nodiscard]] static std::string is_missing() {
    return fmt::format("mine.npz rejected: {1}: is missing; layout '{0}' needs {1} {2}", GetParam().layout,
                       GetParam().name, GetParam().shape);
  }
  [[nodiscard]] static std::string has_shape(const std::vector<std::int64_t>& shape) {
    return fmt::format("mine.npz rejected: {1}: has shape {3}, but layout '{0}' needs {2}", GetParam().layout,
                       GetParam().name, GetParam().shape, shape_text(shape));
  }
  [[nodiscard]] static Bundle of_another_rank(std::vector<std::int64_t>& shape) {
    Bundle bundle = SmallBatch().in(GetParam().layout);
    Tensor& tensor = bundle.tensors.at(GetParam().name);
    tensor.shape.insert(tensor.shape.end(), 2, 1);  // two more axes: one more may be another form
    shape = tensor.shape;
    return bundle;
  }
};

class Caches : public AnyTensor {};
class Indices : public AnyTensor {};

TEST_P(Caches, AMissingOneIsTheOnlyFault) {
  EXPECT_EQ(rejection(without(), GetParam().layout), is_missing());
}

TEST_P(Caches, OneOfAnotherRankIsTheOnlyFault) {
  std::vector<std::int64_t> shape;
  const Bundle bundle = of_another_rank(shape);
  EXPECT_EQ(rejection(bundle, GetParam().layout), has_shape(shape));
}

TEST_P(Caches, IntegersAreTheOnlyFault) {
  Bundle bundle = SmallBatch().in(GetParam().layout);
  for (auto& [name, tensor] : bundle.tensors) {  // both of K and V: they must be alike
    if (tensor.dtype == DType::f32 && name != "q") tensor = reinterpret_as(std::move(tensor), DType::i32);
  }
  const std::string text = rejection(bundle, GetParam().layout);
  EXPECT_THAT(text, testing::HasSubstr(fmt::format(
                        "{}: is i32: allowed are floats, and their bit patterns in u8 or u16", GetParam().name)));
}

TEST_P(Caches, AnAxisOfLength0IsAFault) {
  Bundle bundle = SmallBatch().in(GetParam().layout);
  Tensor& tensor = bundle.tensors.at(GetParam().name);
  tensor = make_tensor(DType::f32, std::vector<std::int64_t>(tensor.shape.size(), 0));
  EXPECT_THAT(rejection(bundle, GetParam().layout),
              testing::HasSubstr(fmt::format("{}: has shape {}: every extent must be at least 1", GetParam().name,
                                             shape_text(tensor.shape))));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Caches, testing::ValuesIn(kCaches), test_name);

TEST_P(Indices, AMissingOneIsTheOnlyFault) {
  EXPECT_EQ(rejection(without(), GetParam().layout), GetParam().may_be_missing ? "(no InputError)" : is_missing());
}

TEST_P(Indices, OneOfAnotherRankIsTheOnlyFault) {
  std::vector<std::int64_t> shape;
  const Bundle bundle = of_another_rank(shape);
  EXPECT_EQ(rejection(bundle, GetParam().layout), has_shape(shape));
}

TEST_P(Indices, FloatsAreTheOnlyFault) {
  Bundle bundle = SmallBatch().in(GetParam().layout);
  Tensor& tensor = bundle.tensors.at(GetParam().name);
  tensor = make_tensor(DType::f16, tensor.shape);
  EXPECT_EQ(rejection(bundle, GetParam().layout),
            fmt::format("mine.npz rejected: {}: is f16; an index tensor is i32, u32, i64 or u64", GetParam().name));
}

TEST_P(Indices, EveryIntegerTypeGivesTheSameAnswer) {
  const Bundle bundle = SmallBatch().in(GetParam().layout);
  const PreparedProblem expected = prepare_problem(bundle, SmallBatch::options(GetParam().layout), "mine.npz");
  const Tensor& tensor = bundle.tensors.at(GetParam().name);
  std::vector<std::int64_t> numbers;
  if (tensor.dtype == DType::i64) {
    numbers.assign(values<std::int64_t>(tensor).begin(), values<std::int64_t>(tensor).end());
  } else {  // u32 as i32: the padding of layout max is -1
    const Tensor as_i32 = reinterpret_as(Tensor(tensor), DType::i32);
    numbers.assign(values<std::int32_t>(as_i32).begin(), values<std::int32_t>(as_i32).end());
  }
  for (Tensor other :
       {SmallBatch::ints<std::int32_t>(tensor.shape, numbers), SmallBatch::ints<std::uint32_t>(tensor.shape, numbers),
        SmallBatch::ints<std::int64_t>(tensor.shape, numbers),
        SmallBatch::ints<std::uint64_t>(tensor.shape, numbers)}) {
    const DType dtype = other.dtype;
    Bundle changed = bundle;
    changed.tensors[GetParam().name] = std::move(other);
    const PreparedProblem made = prepare_problem(changed, SmallBatch::options(GetParam().layout), "mine.npz");
    EXPECT_EQ(made.key_lengths, expected.key_lengths) << name(dtype);
    EXPECT_EQ(made.query_offsets, expected.query_offsets) << name(dtype);
    EXPECT_EQ(made.table, expected.table) << name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Indices, testing::ValuesIn(kIndices), test_name);

// --- offsets, in every form that has them ---------------------------------------------------------------------------

struct Offsets {
  const char* layout;
  const char* name;
  const char* counted;  // what the offsets count
  std::int64_t entries;
};

class OffsetTensors : public testing::TestWithParam<Offsets> {
 protected:
  [[nodiscard]] static std::string with(const std::vector<std::int64_t>& offsets) {
    Bundle bundle = SmallBatch().in(GetParam().layout);
    bundle.tensors[GetParam().name] = list<std::int64_t>(offsets);
    return rejection(bundle, GetParam().layout);
  }
};

TEST_P(OffsetTensors, RiseFrom0ToTheNumberOfEntries) {
  const auto [layout, name, counted, entries] = GetParam();
  const std::string start = fmt::format("mine.npz rejected: {}", name);
  EXPECT_EQ(with({}), start + ": is empty; layout needs [B + 1] entries, the first 0");
  EXPECT_EQ(with({1, 2, 3, 4, 5, 6}), start + "[0]: is 1; the first sequence starts at 0");
  EXPECT_EQ(with({-1, 2, 3, 4, 5, 6}), start + "[0]: is -1; the first sequence starts at 0");
  EXPECT_EQ(with({0, 2, 1, 4, 5, 6}), start + "[2]: is 1 after 2; it must not fall");
  EXPECT_EQ(with({0, 1, 2, 3, 4, entries + 1}),
            start + fmt::format(": ends at {}, but {} has {} entries", entries + 1, counted, entries));
}

INSTANTIATE_TEST_SUITE_P(Layouts, OffsetTensors,
                         testing::Values(Offsets{"flashinfer", "kv_indptr", "kv_indices", 10},
                                         Offsets{"mlc", "page_indptr", "page_values", 10},
                                         Offsets{"sglang", "kv_indptr", "kv_indices", 30},
                                         Offsets{"varlen", "cu_seqlens_k", "the cache", 30}),
                         [](const auto& param) { return std::string(param.param.layout); });

// --- contents of each form ------------------------------------------------------------------------------------------

TEST(LayoutTables, OfBlocksHaveARowForEachLength) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["cache_seqlens"] = list({1, 3, 4, 5});
  EXPECT_EQ(rejection(bundle, "nhd"), "mine.npz rejected: block_table: has 5 rows, but cache_seqlens has 4 entries");
  bundle.tensors["cache_seqlens"] = list<std::int64_t>({1, 3, 4, (std::int64_t{1} << 40) + 1, -1});
  EXPECT_EQ(rejection(bundle, "nhd"),
            "mine.npz rejected, 2 faults:\n"
            "  cache_seqlens[3]: is 1099511627777, not a length in [0, 2^40]\n"
            "  cache_seqlens[4]: is -1, not a length in [0, 2^40]");
}

TEST(LayoutTables, OfPagesHaveOneLastPageForEachSequence) {
  Bundle bundle = SmallBatch().in("flashinfer");
  bundle.tensors["kv_last_page_len"] = list({1, 3, 4, 1});
  EXPECT_EQ(rejection(bundle, "flashinfer"),
            "mine.npz rejected: kv_last_page_len: has 4 entries, but kv_indptr has 6: one less is needed");
}

// FlashInfer's MLA wrapper has lengths instead of last pages.
TEST(LayoutTables, OfPagesWithLengthsCheckThem) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {13, 4, 6});
  bundle.tensors["q"] = make_tensor(DType::f32, {3, 2, 6});
  bundle.tensors["kv_indptr"] = list({0, 1, 3, 3});
  bundle.tensors["kv_indices"] = list({7, 2, 5});
  bundle.tensors["kv_lens"] = list({4, 5, 0});
  LayoutOptions options = SmallBatch::options("mla_indptr");
  options.scale = 0.5;
  options.value_size = 4;
  EXPECT_THAT(prepare_problem(bundle, options, "x").key_lengths, ElementsAre(4, 5, 0));
  bundle.tensors["kv_lens"] = list({4, -5, 0});
  EXPECT_EQ(message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); }),
            "mine.npz rejected: kv_lens[1]: is -5, not a length in [0, 2^40]");
}

// MLC's length_info [3, 5]: tokens of the last page, first slot of the window, sinks. Sequence 4 has 17 slots on blocks
// 3, 12, 1, 9, 4: with 2 sinks and a window from slot 6 it sees slots 0, 1, 6, 7, ..., 16.
class Windows : public testing::Test {
 protected:
  [[nodiscard]] static Bundle with(const std::vector<std::int64_t>& last, const std::vector<std::int64_t>& window,
                                   const std::vector<std::int64_t>& sinks) {
    std::vector<std::int64_t> info = last;
    info.insert(info.end(), window.begin(), window.end());
    info.insert(info.end(), sinks.begin(), sinks.end());
    Bundle bundle = SmallBatch().in("mlc");
    bundle.tensors["length_info"] = SmallBatch::ints<std::int32_t>({3, 5}, info);
    return bundle;
  }
};

TEST_F(Windows, LeaveOutTheSlotsBetweenTheSinksAndTheirStart) {
  const Bundle bundle = with({1, 3, 4, 1, 1}, {0, 1, 0, 3, 6}, {0, 1, 0, 3, 2});
  const PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("mlc"), "x");
  EXPECT_THAT(prepared.key_lengths, ElementsAre(1, 3, 4, 5, 13));
  const auto stride = prepared.table.size() / 5;
  const std::vector<std::uint32_t> slots(prepared.table.begin() + static_cast<std::ptrdiff_t>(4 * stride),
                                         prepared.table.begin() + static_cast<std::ptrdiff_t>(4 * stride + 13));
  EXPECT_THAT(slots, ElementsAre(12, 13, 50, 51, 4, 5, 6, 7, 36, 37, 38, 39, 16));
}

TEST_F(Windows, LieWithinTheSlotsOfTheSequence) {
  const std::vector<std::int64_t> last{1, 3, 4, 1, 1}, none{0, 0, 0, 0, 0};
  EXPECT_EQ(
      rejection(with(last, {0, 4, 0, 0, 0}, none), "mlc"),
      "mine.npz rejected: length_info[:, 1]: has a window from slot 4 after 0 sinks, outside [sinks, 3], the slots of "
      "the sequence");
  EXPECT_EQ(
      rejection(with(last, {0, 1, 0, 0, 0}, {0, 2, 0, 0, 0}), "mlc"),
      "mine.npz rejected: length_info[:, 1]: has a window from slot 1 after 2 sinks, outside [sinks, 3], the slots of "
      "the sequence");
  EXPECT_EQ(
      rejection(with(last, none, {0, 0, 0, 0, -1}), "mlc"),
      "mine.npz rejected: length_info[:, 4]: has a window from slot 0 after -1 sinks, outside [sinks, 17], the slots "
      "of the sequence");
  for (const std::int64_t wrong : {0, 5}) {
    EXPECT_EQ(
        rejection(with({1, 3, wrong, 1, 1}, none, none), "mlc"),
        fmt::format("mine.npz rejected: length_info[:, 2]: is {}, but a last page holds 1 to 4 tokens: a kernel would "
                    "read past the page",
                    wrong));
  }
}

TEST_F(Windows, HaveThreeRowsOfOneColumnForEachSequence) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{2, 5}, {3, 4}}) {
    Bundle bundle = SmallBatch().in("mlc");
    bundle.tensors["length_info"] = make_tensor(DType::i32, shape);
    EXPECT_EQ(
        rejection(bundle, "mlc"),
        fmt::format("mine.npz rejected: length_info: has shape {}; a sliding window needs [3, 5]: the last page's "
                    "tokens, the first slot of the window, and the sinks",
                    shape_text(shape)));
  }
}

// A sequence without pages has no slots; a block outside the pool is named where the sequence reads it.
TEST_F(Windows, OfNoPagesAndOfUnknownBlocks) {
  Bundle bundle = with({9, 3, 4, 1, 1}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0});
  bundle.tensors["page_indptr"] = list({0, 0, 1, 2, 4, 9});
  bundle.tensors["page_values"] = list({2, 11, 5, 0, 3, 12, 1, 9, 4});
  EXPECT_THAT(prepare_problem(bundle, SmallBatch::options("mlc"), "x").key_lengths, ElementsAre(0, 3, 4, 5, 17));
  bundle.tensors["page_indptr"] = list({0, 0, 1, 2, 4, 10});
  EXPECT_EQ(rejection(bundle, "mlc"), "mine.npz rejected: page_indptr: ends at 10, but page_values has 9 entries");
  for (const std::int64_t outside : {-1, 13}) {
    bundle.tensors["page_indptr"] = list({0, 0, 1, 2, 4, 9});
    bundle.tensors["page_values"] = list({2, outside, 5, 0, 3, 12, 1, 9, 4});
    EXPECT_EQ(
        rejection(bundle, "mlc"),
        fmt::format("mine.npz rejected: page_values[1]: is {}, outside the 13 blocks; sequence 2 has 4 keys and reads "
                    "its page 0",
                    outside));
  }
}

// Entries of a list have one index, those of rows two.
TEST(LayoutTables, EntriesOutsideThePoolAreNamedByTheirPlace) {
  const auto with = [](const std::string& layout, const std::string& name, std::size_t at, std::int32_t entry) {
    Bundle bundle = SmallBatch().in(layout);
    values<std::int32_t>(bundle.tensors.at(name))[at] = entry;
    return rejection(bundle, layout);
  };
  const std::string end = ": is 13, outside the 13 blocks; sequence 4 has 17 keys and reads its page 1";
  EXPECT_EQ(with("nhd", "block_table", 25, 13), "mine.npz rejected: block_table[4, 1]" + end);
  EXPECT_EQ(with("flashinfer", "kv_indices", 6, 13), "mine.npz rejected: kv_indices[6]" + end);
  EXPECT_EQ(with("mlc", "page_values", 6, 13), "mine.npz rejected: page_values[6]" + end);
  EXPECT_EQ(with("sglang_req", "req_to_token", 5 * 20, 52),
            "mine.npz rejected: req_to_token[0, 0]: is 52, outside the 52 blocks; sequence 0 has 1 keys and reads its "
            "page 0");
  Bundle many = SmallBatch().in("nhd");
  for (std::int32_t& entry : values<std::int32_t>(many.tensors.at("block_table"))) entry = -1;
  EXPECT_THAT(rejection(many, "nhd"), testing::HasSubstr("\n  block_table: and 2 more entries outside the blocks"));
}

TEST(LayoutTables, OfRequestsNameTheirRows) {
  Bundle bundle = SmallBatch().in("sglang_req");
  bundle.tensors["req_pool_indices"] = list({5, 4, 7, 2, -1});
  EXPECT_THAT(rejection(bundle, "sglang_req"),
              testing::StartsWith("mine.npz rejected, 2 faults:\n"
                                  "  req_pool_indices[2]: is 7, outside the 7 rows of req_to_token\n"
                                  "  req_pool_indices[4]: is -1, outside the 7 rows of req_to_token"));
  bundle.tensors["req_pool_indices"] = list({5, 4, 3, 2});
  EXPECT_EQ(rejection(bundle, "sglang_req"), "mine.npz rejected: req_pool_indices: has 4 entries, but seq_lens has 5");
}

TEST(LayoutTables, OfOffsetsHaveOnePoolAndPairs) {
  Bundle bundle = SmallBatch().in("trtllm");
  Tensor& table = bundle.tensors.at("kv_cache_block_offsets");
  const PreparedProblem expected = prepare_problem(bundle, SmallBatch::options("trtllm"), "x");
  table.shape = {1, 5, 2, 6};
  EXPECT_EQ(prepare_problem(bundle, SmallBatch::options("trtllm"), "x").table, expected.table);
  table.shape = {5, 1, 2, 6};
  EXPECT_EQ(rejection(bundle, "trtllm"),
            "mine.npz rejected: kv_cache_block_offsets: has shape [5, 1, 2, 6]: axis 0 is 1, one pool");
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{6, 2, 5}, {5, 3, 4}, {1, 6, 2, 5}}) {
    table.shape = shape;
    EXPECT_EQ(
        rejection(bundle, "trtllm"),
        fmt::format("mine.npz rejected: kv_cache_block_offsets: has shape {}; sequence_length has 5 entries, which "
                    "need [5, 2, columns]",
                    shape_text(shape)));
  }
  table.shape = {5, 2, 6};
  const auto entries = values<std::int32_t>(table);
  entries[12] = 5;   // sequence 1 for K: odd
  entries[24] = -2;  // sequence 2 for K
  entries[30] = 8;   // and for V
  EXPECT_EQ(
      rejection(bundle, "trtllm"),
      "mine.npz rejected, 2 faults:\n"
      "  kv_cache_block_offsets[1, :, 0]: is 5 for K and 5 for V; K of a block is at an even entry, V at the next one\n"
      "  kv_cache_block_offsets[2, :, 0]: is -2 for K and 8 for V; K of a block is at an even entry, V at the next "
      "one");
}

TEST(LayoutTables, OfPaddedCachesHaveOneNumberForEachSequence) {
  Bundle bundle = SmallBatch().in("dense");
  bundle.tensors["cache_seqlens"] = list({1, 3, 4, 5});
  EXPECT_EQ(rejection(bundle, "dense"),
            "mine.npz rejected: cache_seqlens: has 4 entries, but the cache holds 5 sequences");
  bundle.tensors["cache_seqlens"] = list({1, 3, 4, 5, 17});
  bundle.tensors["cache_leftpad"] = list({0, 0, 0, 0, 0, 0});
  EXPECT_EQ(rejection(bundle, "dense"),
            "mine.npz rejected: cache_leftpad: has 6 entries, but the cache holds 5 sequences");
  for (const std::int64_t outside : {-1, 20}) {
    bundle.tensors["cache_leftpad"] = list({0, 1, outside, 0, 2});
    EXPECT_EQ(rejection(bundle, "dense"),
              fmt::format("mine.npz rejected: cache_leftpad[2]: is {}, outside [0, 19], the positions of a sequence",
                          outside));
  }
  bundle.tensors["cache_leftpad"] = list({0, 1, 15, 0, 2});
  const PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("dense"), "x");
  EXPECT_THAT(prepared.key_lengths, ElementsAre(1, 3, 4, 5, 17));
  const auto stride = prepared.table.size() / 5;
  EXPECT_EQ(prepared.table[2 * stride], 2 * 19 + 15);  // the slot of the first token of sequence 2
}

// An attention mask states the padding and the lengths of each sequence.
TEST(LayoutTables, OfAttentionMasksHaveOneRunOfOnes) {
  Bundle bundle = SmallBatch().in("hf");
  Tensor& mask = bundle.tensors.at("attention_mask");
  const Tensor right = mask;
  values<std::int64_t>(mask)[19 + 17] = 0;  // 16, 17, 18 are the tokens of sequence 1
  EXPECT_EQ(
      rejection(bundle, "hf"),
      "mine.npz rejected: attention_mask[1]: has a 0 between its ones; only padding before or after the tokens is "
      "supported");
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{5, 18}, {4, 19}}) {
    mask = make_tensor(DType::f32, shape);
    EXPECT_EQ(
        rejection(bundle, "hf"),
        fmt::format("mine.npz rejected: attention_mask: has shape {}, but the cache holds 5 sequences of 19 positions",
                    shape_text(shape)));
  }
  mask = make_tensor(DType::f32, {5, 1, 3, 19});
  EXPECT_EQ(
      rejection(bundle, "hf"),
      "mine.npz rejected: attention_mask: has shape [5, 1, 3, 19], a mask of queries and keys: save it as attn_mask");
  mask = make_tensor(DType::f32, {95});
  EXPECT_EQ(rejection(bundle, "hf"), "mine.npz rejected: attention_mask: has shape [95], but layout 'hf' needs [B, S]");
  mask = right;
  for (std::int64_t& x : values<std::int64_t>(mask).subspan(0, 19)) x = 0;  // a sequence without tokens
  EXPECT_THAT(prepare_problem(bundle, SmallBatch::options("hf"), "x").key_lengths, ElementsAre(0, 3, 4, 5, 17));
}

// A mask and left padding together would count the padding twice: the mask is read, and the other tensor is a fault.
TEST(LayoutTables, OfAttentionMasksNeedNoPaddingBesides) {
  LayoutDescription both = *find_layout("hf");
  both.name = "both";
  both.table.tensors["left_padding"] = {"left_padding"};
  Bundle bundle = SmallBatch().in("hf");
  bundle.tensors["left_padding"] = list({18, 16, 15, 14, 2});
  LayoutOptions options = SmallBatch::options("hf");
  options.description = std::make_shared<const LayoutDescription>(both);
  EXPECT_EQ(message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); }),
            "mine.npz rejected: left_padding: is not used: the input gives the same in other tensors. Pass --ignore "
            "left_padding to leave it out");
  options.ignore = {"left_padding"};
  EXPECT_THAT(prepare_problem(bundle, options, "x").key_lengths, ElementsAre(1, 3, 4, 5, 17));
}

TEST(LayoutTables, OfRaggedTokensHaveLengthsWithinTheOffsets) {
  Bundle bundle = SmallBatch().in("varlen");
  bundle.tensors["seqused_k"] = list({1, 3, 4, 5});
  EXPECT_EQ(rejection(bundle, "varlen"),
            "mine.npz rejected: seqused_k: has 4 entries, but cu_seqlens_k has 6: one less is needed");
  bundle.tensors["seqused_k"] = list({1, 2, 4, 5, 16});
  EXPECT_THAT(prepare_problem(bundle, SmallBatch::options("varlen"), "x").key_lengths, ElementsAre(1, 2, 4, 5, 16));
  bundle.tensors["seqused_k"] = list({1, 2, 4, 5, -16});
  EXPECT_EQ(rejection(bundle, "varlen"), "mine.npz rejected: seqused_k[4]: is -16, not a length in [0, 2^40]");
}

TEST(LayoutTables, OfSparseIndicesHaveLengthsWithinTheirColumns) {
  Bundle bundle;
  bundle.tensors["kv_cache"] = make_tensor(DType::f32, {6, 2, 1, 8});
  bundle.tensors["q"] = make_tensor(DType::f32, {2, 4, 8});
  bundle.tensors["indices"] = SmallBatch::ints<std::int32_t>({2, 3}, {0, 11, -1, 5, 4, 1});
  LayoutOptions options = SmallBatch::options("flashmla_sparse");
  options.scale = 0.5;
  options.value_size = 4;
  const auto with = [&](Tensor lengths) {
    bundle.tensors["topk_length"] = std::move(lengths);
    return message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); });
  };
  EXPECT_THAT(prepare_problem(bundle, options, "x").key_lengths, ElementsAre(2, 3));
  const std::string wrong = "mine.npz rejected: topk_length: must be 2 entries in [0, 3]";
  EXPECT_EQ(with(list({3})), wrong);
  EXPECT_EQ(with(list({3, 4})), wrong);
  EXPECT_EQ(with(list({-1, 2})), wrong);
  EXPECT_EQ(with(list({1, 2})), "(no InputError)");
  EXPECT_THAT(prepare_problem(bundle, options, "x").key_lengths, ElementsAre(1, 2));
}

}  // namespace
}  // namespace kvscope::golden::layout_tables_test

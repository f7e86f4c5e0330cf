// The search of reduce: pairs of sequences that fail only together, long lists, every way in which a kernel can end, and the
// inputs that cannot be reduced.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/golden/reduce/reduce.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::reduce_search_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `batch` sequences of one key each, on the block of their number, whose K is that number.
Bundle numbered(std::int64_t batch, std::int64_t queries = 1) {
  Bundle bundle;
  bundle.tensors["k_cache"] = make_tensor(DType::f32, {batch, 1, 1, 2});
  bundle.tensors["v_cache"] = make_tensor(DType::f32, {batch, 1, 1, 2});
  std::vector<std::int64_t> blocks, ones, offsets{0};
  for (std::int64_t b = 0; b < batch; ++b) {
    values<float>(bundle.tensors["k_cache"])[static_cast<std::size_t>(2 * b)] = static_cast<float>(b);
    blocks.push_back(b);
    ones.push_back(1);
    offsets.push_back((b + 1) * queries);
  }
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({batch, 1}, blocks);
  bundle.tensors["cache_seqlens"] = list(ones);
  bundle.tensors["query_offsets"] = list(offsets);
  bundle.tensors["q"] = make_tensor(DType::f32, {batch * queries, 1, 2});
  return bundle;
}

std::set<int> numbers_in(const Bundle& inputs) {
  std::set<int> numbers;
  const auto table = values<std::int32_t>(inputs.tensors.at("block_table"));
  const Tensor& k = inputs.tensors.at("k_cache");
  for (const std::int32_t block : table) {
    numbers.insert(static_cast<int>(values<float>(k)[static_cast<std::size_t>(block * k.shape[3])]));
  }
  return numbers;
}

ReduceResult reduced(const Bundle& tensors, const std::function<KernelRun(const Bundle&)>& run,
                     LayoutOptions options = SmallBatch::options("nhd"), std::int64_t max_runs = 2000) {
  ReduceInput input{tensors, std::move(options), "case", nullptr, "output", {}, {}, max_runs};
  input.run = run;
  return reduce(input, "test");
}

KernelRun exits(bool fails, int code = 3) {
  KernelRun run;
  run.end = fails ? KernelRun::End::exit_code : KernelRun::End::wrote;
  run.code = fails ? code : 0;
  run.words = "exit code 3";
  return run;
}

// The kernel needs all of `guilty` at once: halves fail only if they hold all of them, complements of parts too.
class Together : public testing::TestWithParam<std::pair<std::int64_t, std::set<int>>> {};

TEST_P(Together, SequencesAreFound) {
  const auto& [batch, guilty] = GetParam();
  std::int64_t runs = 0;
  const ReduceResult result = reduced(numbered(batch), [&, guilty = guilty](const Bundle& inputs) {
    ++runs;
    const std::set<int> here = numbers_in(inputs);
    return exits(std::ranges::includes(here, guilty));
  });
  std::set<int> left;
  for (const SequenceSlice& sequence : result.slice.sequences) left.insert(static_cast<int>(sequence.index));
  EXPECT_EQ(left, guilty);
  EXPECT_EQ(result.runs, runs);
  EXPECT_EQ(result.failure, "exit code 3");
  EXPECT_EQ(result.to.blocks, static_cast<std::int64_t>(guilty.size()));
}

INSTANTIATE_TEST_SUITE_P(Search, Together,
                         testing::Values(std::pair{40L, std::set<int>{31}}, std::pair{40L, std::set<int>{3, 37}},
                                         std::pair{40L, std::set<int>{19, 20}}, std::pair{9L, std::set<int>{0, 4, 8}},
                                         std::pair{33L, std::set<int>{1, 9, 17, 25, 32}},
                                         std::pair{2L, std::set<int>{0, 1}}, std::pair{1L, std::set<int>{0}}));

// Queries of a slice are consecutive: of 40, those from 11 to 13 are found by shortening at both ends. The only key is seen by
// the last query, which is left out.
TEST(ReduceQueries, LongRunsAreShortenedAtBothEnds) {
  Bundle tensors = numbered(1, 40);
  for (std::size_t i = 0; i < 40; ++i) values<float>(tensors.tensors["q"])[2 * i] = static_cast<float>(i);
  const ReduceResult result = reduced(tensors, [](const Bundle& inputs) {
    const Tensor& q = inputs.tensors.at("q");
    std::set<int> here;
    for (std::int64_t i = 0; i < q.shape[0]; ++i) {
      here.insert(static_cast<int>(values<float>(q)[static_cast<std::size_t>(i * q.shape[2])]));
    }
    return exits(here.contains(11) && here.contains(13));
  });
  EXPECT_EQ(result.slice.sequences[0].first_query, 11);
  EXPECT_EQ(result.slice.sequences[0].end_query, 14);
  EXPECT_EQ(reduction_text(result.from, result.to), "40 queries -> 3, 1 key -> 0, head size 2 -> 1");
}

// Every way to end is a failure of its own; another one in a smaller case is not the failure.
TEST(ReduceEnds, OfEveryKindAreKept) {
  const std::vector<std::pair<KernelRun::End, std::string>> ends{{KernelRun::End::exit_code, "exit code 3"},
                                                                 {KernelRun::End::signal, "signal 11"},
                                                                 {KernelRun::End::time_limit, "took too long"},
                                                                 {KernelRun::End::unusable, "unusable output: no o"}};
  for (const auto& [end, failure] : ends) {
    const auto other = end == KernelRun::End::signal ? KernelRun::End::time_limit : KernelRun::End::signal;
    const ReduceResult result = reduced(numbered(8), [&, end = end, failure = failure](const Bundle& inputs) {
      KernelRun run;
      run.end = numbers_in(inputs).contains(5) ? end : other;
      run.words = end == KernelRun::End::unusable ? "no o" : failure;
      return run;
    });
    EXPECT_EQ(result.failure, failure);
    ASSERT_EQ(result.slice.sequences.size(), 1U);
    EXPECT_EQ(result.slice.sequences[0].index, 5);
    EXPECT_GT(result.rejected, 0);
    EXPECT_FALSE(result.bundle.tensors.contains("o"));
  }
}

// Exit code 4 is not exit code 3.
TEST(ReduceEnds, AnotherExitCodeIsAnotherFailure) {
  const ReduceResult result =
      reduced(numbered(8), [](const Bundle& inputs) { return exits(true, numbers_in(inputs).contains(5) ? 3 : 4); });
  ASSERT_EQ(result.slice.sequences.size(), 1U);
  EXPECT_EQ(result.slice.sequences[0].index, 5);
}

// An output without o is unusable, however few sequences are left.
TEST(ReduceEnds, AnOutputOfTheWrongShapeIsUnusable) {
  const ReduceResult result = reduced(numbered(4), [](const Bundle&) {
    KernelRun run;
    run.candidate.tensors["o"] = make_tensor(DType::f32, {7, 3});
    return run;
  });
  EXPECT_THAT(result.failure, testing::StartsWith("unusable output: candidate rejected"));
  EXPECT_EQ(result.to.sequences, 1);
}

TEST(ReduceInputs, WithoutAFailureAreRejected) {
  const Bundle tensors = numbered(3);
  const Bundle right = [&] {
    Bundle bundle;
    bundle.tensors["o"] = make_tensor(DType::f32, {3, 1, 2});  // V is 0
    return bundle;
  }();
  ReduceInput input{tensors, SmallBatch::options("nhd"), "case.npz", nullptr, "output", {}, {}, 100};
  const auto rejection = [&] { return message_of([&] { static_cast<void>(reduce(input, "test")); }); };
  EXPECT_EQ(rejection(),
            "command line rejected: CANDIDATE: is required without --command: it is the output that is cut");
  input.candidate = &right;
  EXPECT_EQ(rejection(), "output rejected: passes: there is no failure to reduce");
  input.run = [&](const Bundle&) {
    KernelRun run;
    run.candidate = right;
    return run;
  };
  input.candidate = nullptr;
  EXPECT_EQ(
      rejection(),
      "case.npz rejected: the command's output for all inputs passes: there is no failure to reduce. Check that the "
      "command runs the failing kernel");
}

TEST(ReduceInputs, OfACandidateThatCannotBeComparedAreRejected) {
  const Bundle tensors = numbered(3);
  Bundle candidate;
  candidate.tensors["lse"] = make_tensor(DType::f32, {3, 1});
  ReduceInput input{tensors, SmallBatch::options("nhd"), "case.npz", &candidate, "output", {}, {}, 100};
  EXPECT_THAT(message_of([&] { static_cast<void>(reduce(input, "test")); }),
              testing::StartsWith("output rejected: cannot be compared: "));
}

// The rows and heads of an output, in the shape of the whole or as one list.
TEST(ReduceOutputs, AreCutByRowsAndHeads) {
  const Bundle tensors = SmallBatch().in("nhd");
  const Slicer slicer(tensors, SmallBatch::options("nhd"), "case");
  ProblemSlice slice = slicer.whole();
  slice.sequences = {slice.sequences[2]};  // rows 2 and 3
  slice.kv_heads = {1};
  slice.group_heads = {0};  // query head 2
  Tensor lse = make_tensor(DType::f32, {8, 4});
  for (float n = 0; float& x : values<float>(lse)) x = n++;
  EXPECT_THAT(values<float>(slicer.cut_output(lse, slice)), ElementsAre(10, 14));
  Tensor o = make_tensor(DType::f32, {8 * 4 * 2});
  for (float n = 0; float& x : values<float>(o)) x = n++;
  EXPECT_THAT(values<float>(slicer.cut_output(o, slice)), ElementsAre(20, 21, 28, 29));
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{7, 4}, {33}, {std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
    const Tensor wrong{DType::f32, shape, {}};
    try {
      static_cast<void>(slicer.cut_output(wrong, slice));
      ADD_FAILURE() << shape_text(shape);
    } catch (const GeometryError& error) {
      EXPECT_EQ(std::string(error.what()),
                fmt::format("an output f32 {} has no rows of 8 queries and 4 heads", shape_text(shape)));
    }
  }
}

// --- notes ------------------------------------------------------------------------------------------------------------

std::vector<std::string> notes(const MaskKind mask, std::int64_t window_right, const std::vector<double>& slopes = {}) {
  Bundle tensors = numbered(3, 2);
  Bundle candidate;
  candidate.tensors["o"] = make_tensor(DType::f32, {6, 1, 2});
  values<float>(candidate.tensors["o"])[5] = 1;
  LayoutOptions options = SmallBatch::options("nhd");
  options.attention.mask = mask;
  options.attention.window_left = 3;
  options.attention.window_right = window_right;
  if (!slopes.empty()) tensors.tensors["alibi_slopes"] = tensor_of<float>({1}, std::vector<float>{0.5F});
  ReduceInput input{tensors, options, "case.npz", &candidate, "output", {}, {}, 100};
  return reduce(input, "test").notes;
}

TEST(ReduceNotes, SayWhatIsKept) {
  const std::string queries = "queries are kept: with this mask or shape of q, the others' rows would change";
  const std::string keys =
      "keys, dims and blocks are kept: only a run of the kernel shows whether it still fails without them; pass "
      "--command";
  EXPECT_THAT(notes(MaskKind::causal, 0), ElementsAre(keys));
  EXPECT_THAT(notes(MaskKind::none, 0), ElementsAre(keys));
  EXPECT_THAT(notes(MaskKind::none, 0, {0.5}), ElementsAre(queries, keys));  // distances count from the last query
  EXPECT_THAT(notes(MaskKind::sliding_window, 0), ElementsAre(keys));
  EXPECT_THAT(notes(MaskKind::sliding_window, 1), ElementsAre(queries, keys));  // sees keys after its own
}

TEST(ReduceNotes, OfAnMlaCacheKeepTheHeadSize) {
  Bundle tensors;
  tensors.tensors["kv_cache"] = make_tensor(DType::f32, {2, 1, 6});
  tensors.tensors["block_table"] = SmallBatch::ints<std::int32_t>({2, 1}, {0, 1});
  tensors.tensors["cache_seqlens"] = list({1, 1});
  tensors.tensors["q"] = make_tensor(DType::f32, {2, 1, 6});
  LayoutOptions options = SmallBatch::options("mla");
  options.scale = 0.5;
  options.value_size = 4;
  const ReduceResult result = reduced(
      tensors, [](const Bundle&) { return exits(true); }, options);
  EXPECT_THAT(
      result.notes,
      ElementsAre(
          "the head size is kept: the rows of an MLA cache, and heads with uneven scales, are not cut",
          "every run failed in this way, however small its inputs: check that the command works on this machine "
          "at all"));
  EXPECT_EQ(result.to.head_size, 6);
}

// Flat storage has its strides in the layout: sequences that are part of it cannot be left out.
TEST(ReduceInputs, OfFlatStorageWithFixedSequencesAreRejected) {
  for (const auto& [axes, table] : {std::pair<std::string, std::string>{
                                        "[seq, position, dim]", R"({"form": "dense", "tensors": {"lengths": ["n"]}})"},
                                    {"[token, head, dim]", R"({"form": "ragged", "tensors": {"indptr": ["p"]}})"},
                                    {"[token, head, dim]", R"({"form": "chunk"})"}}) {
    const std::string text = fmt::format(
        R"({{"forms": [{{"values": "leading", "tensors": [{{"name": "k", "holds": "k", "axes": "{}", "strides": [8, 4, 1],
            "sizes": [2, 2, 4]}}]}}], "table": {}}})",
        axes, table);
    LayoutOptions options;
    options.description =
        std::make_shared<const LayoutDescription>(parse_layout(json::parse(text, "flat.json"), "flat", "flat.json"));
    options.layout = "flat";
    options.scale = 0.5;
    options.value_size = 2;
    Bundle tensors;
    tensors.tensors["k"] = make_tensor(DType::f32, {16});
    if (table.find("ragged") != std::string::npos) tensors.tensors["p"] = list({0, 1, 2});
    const std::int64_t batch = table.find("chunk") != std::string::npos ? 1 : 2;
    tensors.tensors["q"] = make_tensor(DType::f32, {batch, 2, 4});
    EXPECT_EQ(
        message_of([&] { static_cast<void>(Slicer(tensors, options, "mine.npz")); }),
        "mine.npz rejected: k: cannot be cut: layout 'flat' describes flat storage with fixed strides, whose sequences "
        "are part of it; save the tensor with its axes")
        << table;
  }
}

// With few runs left, the scale of a kernel is not tried, and fewer dims are.
TEST(ReduceLimits, StopBeforeTheScaleIsTried) {
  Bundle tensors = numbered(1);
  const auto wrong = [](const Bundle& inputs) {
    KernelRun run;
    Tensor o = make_tensor(DType::f32, inputs.tensors.at("q").shape);
    for (float& x : values<float>(o)) x = 1;
    run.candidate.tensors["o"] = std::move(o);
    return run;
  };
  for (const std::int64_t most : {1, 2, 3, 50}) {
    std::int64_t runs = 0;
    const ReduceResult result = reduced(
        tensors,
        [&](const Bundle& inputs) {
          ++runs;
          return wrong(inputs);
        },
        SmallBatch::options("nhd"), most);
    EXPECT_LE(runs, most);
    EXPECT_EQ(result.runs, runs);
    EXPECT_THAT(result.failure, HasSubstr("wrong output: o: bound"));
  }
}

// A kernel that crashes for fewer dims shows no scale: the dims are kept.
TEST(ReduceLimits, ACrashForFewerDimsKeepsThem) {
  const Bundle tensors = numbered(1);
  const ReduceResult result = reduced(tensors, [](const Bundle& inputs) {
    KernelRun run;
    Tensor o = make_tensor(DType::f32, inputs.tensors.at("q").shape);
    for (float& x : values<float>(o)) x = 1;
    run.end = o.shape[2] < 2 ? KernelRun::End::signal : KernelRun::End::wrote;
    run.candidate.tensors["o"] = std::move(o);
    return run;
  });
  EXPECT_EQ(result.to.head_size, 2);
}

}  // namespace
}  // namespace kvscope::golden::reduce_search_test

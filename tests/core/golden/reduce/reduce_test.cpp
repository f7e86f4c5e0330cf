#include "core/golden/reduce/reduce.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/attention/reference.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::reduce_test {
namespace {

using testing::HasSubstr;

// A kernel in f32 whose output is right, except where `wrong` says so for a sequence's keys and a query head.
class FakeKernel {
 public:
  explicit FakeKernel(std::string layout) : options_(SmallBatch::options(layout)), tensors_(SmallBatch().in(layout)) {
    options_.scale = 0.4;  // stated: fewer dims do not change it
  }

  std::function<bool(std::int64_t keys, std::int64_t dims)> wrong = [](auto, auto) { return false; };
  std::function<KernelRun::End(std::int64_t keys)> ends = [](auto) { return KernelRun::End::wrote; };

  KernelRun operator()(const Bundle& inputs) {
    ++runs;
    LayoutOptions options = options_;
    if (inputs.tensors.contains("blocks") && inputs.tensors.at("blocks").shape[2] == 1) options.layer = 0;
    if (options.value_size) options.value_size = inputs.tensors.at("kv_cache").shape.back() / 2;  // vllm_diffkv
    const PreparedProblem prepared = prepare_problem(inputs, options, "kernel");
    const attention::Result result = attention::reference(prepared.problem);
    KernelRun run;
    std::vector<float> o(result.o.begin(), result.o.end());
    std::vector<std::int64_t> shape(result.o.shape().begin(), result.o.shape().end());
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < prepared.problem.batch; ++b) {
      longest = std::max(longest, prepared.problem.keys(b));
      if (!wrong(prepared.problem.keys(b), prepared.problem.k.head_size)) continue;
      const auto row = static_cast<std::size_t>(shape[1] * shape[2]);
      for (auto i = static_cast<std::size_t>(prepared.problem.first_query(b)) * row;
           i < static_cast<std::size_t>(prepared.problem.first_query(b + 1)) * row; ++i) {
        o[i] += 1;
      }
    }
    run.end = ends(longest);
    run.code = run.end == KernelRun::End::exit_code ? 3 : 0;
    run.candidate.tensors["o"] = tensor_of<float>(shape, o);
    return run;
  }

  ReduceResult reduced(std::int64_t max_runs = 200) {
    ReduceInput input{tensors_, options_, "case", nullptr, "output", {}, {}, max_runs};
    input.run = [this](const Bundle& inputs) { return (*this)(inputs); };
    return reduce(input, "test");
  }

  const Bundle& tensors() const { return tensors_; }
  const LayoutOptions& options() const { return options_; }
  std::int64_t runs = 0;

 private:
  LayoutOptions options_;
  Bundle tensors_;
};

class ReduceLayouts : public testing::TestWithParam<const char*> {};

TEST_P(ReduceLayouts, FindsTheFewestSequencesHeadsKeysAndDims) {
  FakeKernel kernel(GetParam());
  kernel.wrong = [](std::int64_t keys, std::int64_t dims) { return keys >= 7 && dims >= 4; };
  const ReduceResult result = kernel.reduced();
  EXPECT_EQ(result.to.sequences, 1);
  EXPECT_EQ(result.to.queries, 1);
  EXPECT_EQ(result.to.kv_heads, 1);
  EXPECT_EQ(result.to.query_heads, 1);
  EXPECT_EQ(result.to.keys, 7);
  EXPECT_EQ(result.to.head_size, 4);
  const std::string layout = GetParam();
  const bool by_token = layout == "sglang" || layout == "sglang_req" || layout == "varlen";
  EXPECT_LE(result.to.blocks, by_token                              ? 7
                              : layout == "hf" || layout == "dense" ? 1
                              // [2, 2, ...] would be read as K and V first too.
                              : layout == "vllm" || layout == "vllm_hnd" ? 3
                                                                         : 2);
  EXPECT_FALSE(result.stopped);
  EXPECT_THAT(result.failure, HasSubstr("wrong output: o: bound: 4 of 4 elements exceed the bound"));
  EXPECT_EQ(result.runs, kernel.runs);
  // The bundle is the whole report: its golden needs no option, and the output fails against it.
  EXPECT_TRUE(holds_only_inputs(result.bundle));
  const PreparedProblem prepared = prepare_problem(result.bundle, layout_options_of(result.bundle, "report"), "report");
  EXPECT_EQ(prepared.problem.options.scale, 0.4);
  EXPECT_EQ(prepared.problem.keys(0), 7);
  EXPECT_TRUE(result.bundle.tensors.contains("o"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ReduceLayouts,
                         testing::Values("max", "nhd", "hnd", "flashinfer", "flashinfer_hnd", "vllm_legacy", "sglang",
                                         "vllm", "vllm_hnd", "vllm_diffkv", "flashinfer_trtllm", "trtllm", "sglang_req",
                                         "hf", "dense", "varlen", "mlc"),
                         [](const auto& param) { return std::string(param.param); });

TEST(Reduce, TwoRunsGiveTheSameCase) {
  FakeKernel a("nhd"), b("nhd");
  a.wrong = b.wrong = [](std::int64_t keys, std::int64_t) { return keys >= 5; };
  const ReduceResult first = a.reduced(), second = b.reduced();
  EXPECT_EQ(first.slice, second.slice);
  EXPECT_EQ(first.bundle.tensors, second.bundle.tensors);
  EXPECT_EQ(first.runs, second.runs);
}

// A kernel that exits for short sequences is not the failure that is looked for.
TEST(Reduce, ACaseThatEndsInAnotherWayIsRejected) {
  FakeKernel kernel("nhd");
  kernel.wrong = [](std::int64_t keys, std::int64_t) { return keys > 0; };
  kernel.ends = [](std::int64_t longest) { return longest < 9 ? KernelRun::End::exit_code : KernelRun::End::wrote; };
  const ReduceResult result = kernel.reduced();
  EXPECT_EQ(result.to.keys, 9);
  EXPECT_GT(result.rejected, 0);
}

TEST(Reduce, ACrashIsReducedToTheSmallestCrash) {
  FakeKernel kernel("flashinfer");
  kernel.ends = [](std::int64_t longest) { return longest >= 6 ? KernelRun::End::exit_code : KernelRun::End::wrote; };
  const ReduceResult result = kernel.reduced();
  EXPECT_EQ(result.to.keys, 6);
  EXPECT_EQ(result.to.head_size, 1);
  EXPECT_FALSE(result.bundle.tensors.contains("o"));
}

TEST(Reduce, StopsAtTheMostRuns) {
  FakeKernel kernel("nhd");
  kernel.wrong = [](std::int64_t keys, std::int64_t) { return keys >= 7; };
  const ReduceResult result = kernel.reduced(6);
  EXPECT_EQ(kernel.runs, 6);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.to.sequences, 1);
}

TEST(Reduce, ACorrectKernelHasNothingToReduce) {
  FakeKernel kernel("nhd");
  EXPECT_THAT(message_of([&] { static_cast<void>(kernel.reduced()); }), HasSubstr("there is no failure to reduce"));
}

// The kernel computes 1 / sqrt(dims) itself: fewer dims alone must not look like its failure.
TEST(Reduce, AKernelWithItsOwnScaleDoesNotFailBecauseOfFewerDims) {
  const Bundle tensors = SmallBatch().in("nhd");
  const LayoutOptions options = SmallBatch::options("nhd");
  const auto run_at = [&](bool own_scale, const Bundle& inputs) {
    LayoutOptions layout = options;
    if (!own_scale) layout.scale = 1 / std::sqrt(static_cast<double>(SmallBatch::kDims));
    const PreparedProblem prepared = prepare_problem(inputs, layout, "kernel");
    const attention::Result result = attention::reference(prepared.problem);
    std::vector<float> o(result.o.begin(), result.o.end());
    if (prepared.problem.k.head_size == SmallBatch::kDims) o[0] += 1;
    KernelRun run;
    run.candidate.tensors["o"] = tensor_of<float>({result.o.shape().begin(), result.o.shape().end()}, o);
    return run;
  };
  for (const bool own_scale : {true, false}) {
    ReduceInput input{tensors, options, "case", nullptr, "output", {}, {}, 200};
    input.run = [&](const Bundle& inputs) { return run_at(own_scale, inputs); };
    EXPECT_EQ(reduce(input, "test").to.head_size, SmallBatch::kDims) << own_scale;
  }
}

// Its correct rows show which scale it uses, so that the report states the kernel's scale and the fault alone is left.
TEST(Reduce, TheScaleOfFewerDimsIsTheKernels) {
  const Bundle tensors = SmallBatch().in("nhd");
  const LayoutOptions options = SmallBatch::options("nhd");
  const double fixed = 1 / std::sqrt(static_cast<double>(SmallBatch::kDims));
  for (const bool own_scale : {true, false}) {
    ReduceInput input{tensors, options, "case", nullptr, "output", {}, {}, 200};
    input.run = [&](const Bundle& inputs) {
      LayoutOptions layout = options;
      if (!own_scale) layout.scale = fixed;
      const PreparedProblem prepared = prepare_problem(inputs, layout, "kernel");
      const attention::Result result = attention::reference(prepared.problem);
      std::vector<float> o(result.o.begin(), result.o.end());
      const std::int64_t row = static_cast<std::int64_t>(result.o.shape(1) * result.o.shape(2));
      for (std::int64_t b = 0; b < prepared.problem.batch; ++b) {
        if (prepared.problem.keys(b) >= 7) o[static_cast<std::size_t>(prepared.problem.first_query(b) * row)] += 1;
      }
      KernelRun run;
      run.candidate.tensors["o"] = tensor_of<float>({result.o.shape().begin(), result.o.shape().end()}, o);
      return run;
    };
    const ReduceResult result = reduce(input, "test");
    EXPECT_EQ(result.to.head_size, 1);
    EXPECT_EQ(result.to.keys, 7);
    EXPECT_EQ(layout_options_of(result.bundle, "report").scale, own_scale ? 1 : fixed);
  }
}

TEST(Reduce, WithoutAKernelTheCandidateIsCut) {
  FakeKernel kernel("nhd");
  kernel.wrong = [](std::int64_t keys, std::int64_t) { return keys == 17; };
  const Bundle candidate = kernel(kernel.tensors()).candidate;
  ReduceInput input{kernel.tensors(), kernel.options(), "case", &candidate, "output", {}, {}, 200};
  const ReduceResult result = reduce(input, "test");
  EXPECT_EQ(result.to.sequences, 1);
  EXPECT_EQ(result.to.queries, 1);
  EXPECT_EQ(result.to.query_heads, 1);
  EXPECT_EQ(result.to.head_size, SmallBatch::kDims);
  EXPECT_EQ(result.to.blocks, SmallBatch::kBlocks);
  EXPECT_EQ(result.slice.sequences.front().index, 4);
}

TEST(Reduce, TheTextNamesWhatChanged) {
  const ProblemSizes from{2, 2, 13, 2, 4, 8, 6};
  EXPECT_EQ(reduction_text(from, {1, 2, 5, 2, 1, 8, 6}), "2 sequences -> 1, 13 keys -> 5, 4 query heads -> 1");
  EXPECT_EQ(reduction_text(from, from), "nothing could be left out");
}

}  // namespace
}  // namespace kvscope::golden::reduce_test

// What a diagnosis takes from the tensors beside the problem: the other layers, and the entries of the next sequence in one
// list. Each candidate is the reference of a problem with the fault, whatever the names of the tensors.
#include "core/golden/diagnosis/diagnose_inputs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/golden/golden_bundle.h"
#include "tests/core/golden/diagnosis/candidate_of.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::diagnose_inputs_test {
namespace {

using attention::Problem;
using testing::StartsWith;

// Of a candidate that computes `faulty` where the golden computes `prepared`.
Diagnosis diagnosis_of(const LayoutOptions& options, const PreparedProblem& prepared, const Problem& faulty) {
  const Bundle golden =
      golden_bundle(prepared.problem, attention::reference(prepared.problem), {"kvscope", prepared.layout, {}});
  return diagnose_inputs({options, prepared}, golden, candidate_of(attention::reference(faulty)), {}, {});
}

// Small floats from a counter: no two elements that a fault could exchange are alike.
Tensor random_tensor(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  const std::int64_t size = size_of(dtype);
  for (std::int64_t n = 0; n * size < static_cast<std::int64_t>(tensor.bytes.size()); ++n) {
    store_from_double(dtype, CounterRng(seed, 3).bell(static_cast<std::uint64_t>(n)), tensor.bytes.data() + n * size,
                      Overflow::saturate);
  }
  return tensor;
}

LayoutOptions options_of(const std::string& name, const std::string& text) {
  LayoutOptions options;
  options.layout = name;
  options.description =
      std::make_shared<const LayoutDescription>(parse_layout(json::parse(text, name + ".json"), name, name + ".json"));
  return options;
}

// --- layers -----------------------------------------------------------------------------------------------------------

constexpr std::int64_t kBlocks = 5, kLayers = 3, kPage = 4, kHeads = 2, kDims = 8;
const std::string kTable = R"("table": {"form": "blocks", "tensors": {"table": ["t"], "lengths": ["n"]}})";

// A sequence of 11 tokens on blocks 4, 1 and 3, and its query of 4 heads.
Bundle bundle_of(const std::string& table, const std::string& lengths) {
  Bundle bundle;
  bundle.tensors["q"] = random_tensor(DType::f32, {1, 4, kDims}, 1);
  bundle.tensors[table] = SmallBatch::ints<std::int32_t>({1, 3}, {4, 1, 3});
  bundle.tensors[lengths] = SmallBatch::ints<std::int32_t>({1}, {11});
  return bundle;
}

// The cause of a candidate that reads layer 2.
std::string cause_of_layer_2(LayoutOptions options, const Bundle& bundle) {
  options.layer = 2;
  const PreparedProblem other = prepare_problem(bundle, options, "x");
  options.layer = 1;
  const PreparedProblem prepared = prepare_problem(bundle, options, "x");
  const Diagnosis diagnosis = diagnosis_of(options, prepared, other.problem);
  return diagnosis.explanations.empty() ? "none" : diagnosis.explanations.front().cause;
}

// Layers belong to the axes of the layout, not to layout max and its names: a user's layout may have this name too.
TEST(DiagnoseInputs, AnotherLayerIsNamedInEveryLayoutThatReadsItInPlace) {
  const std::string layer_2 = "layer 2 is read instead of layer 1";
  struct Case {
    const char *name, *axes;
    std::vector<std::int64_t> shape;
  };
  for (const Case& c :
       {Case{"max", "[block, kv, layer, slot, head, dim]", {kBlocks, 2, kLayers, kPage, kHeads, kDims}},
        Case{"mine", "[block, kv, layer, slot, head, dim]", {kBlocks, 2, kLayers, kPage, kHeads, kDims}},
        Case{"mine", "[layer, block, kv, slot, head, dim]", {kLayers, kBlocks, 2, kPage, kHeads, kDims}},
        Case{"mine", "[kv, block, slot, layer, head, dim]", {2, kBlocks, kPage, kLayers, kHeads, kDims}}}) {
    Bundle bundle = bundle_of("t", "n");
    bundle.tensors["blocks"] = random_tensor(DType::f32, c.shape, 2);
    EXPECT_EQ(
        cause_of_layer_2(
            options_of(
                c.name,
                fmt::format(R"({{"forms": [{{"tensors": [{{"name": "blocks", "holds": "kv", "axes": "{}"}}]}}], {}}})",
                            c.axes, kTable)),
            bundle),
        layer_2)
        << c.name << ' ' << c.axes;
  }
  // A chunk of LMCache has a token in each row of all heads, and no table.
  Bundle chunk;
  chunk.tensors["q"] = random_tensor(DType::f32, {1, 4, kDims}, 1);
  chunk.tensors["kv_chunk"] = random_tensor(DType::f32, {2, kLayers, 11, kHeads * kDims}, 2);
  LayoutOptions options;
  options.layout = "lmcache";
  EXPECT_EQ(cause_of_layer_2(options, chunk), layer_2);
}

// The layers of K's tensor and of V's are not one pool; a layout named max may have a cache of one layer and four axes.
TEST(DiagnoseInputs, LayersOfSeveralTensorsAndOfNoneAreNotLookedFor) {
  Bundle bundle = bundle_of("t", "n");
  bundle.tensors["k"] = random_tensor(DType::f32, {kBlocks, kLayers, kPage, kHeads, kDims}, 2);
  bundle.tensors["v"] = random_tensor(DType::f32, {kBlocks, kLayers, kPage, kHeads, kDims}, 3);
  LayoutOptions options = options_of(
      "mine", R"({"forms": [{"tensors": [{"name": "k", "holds": "k", "axes": "[block, layer, slot, head, dim]"},
        {"name": "v", "holds": "v", "axes": "[block, layer, slot, head, dim]"}]}], )" +
                  kTable + "}");
  EXPECT_EQ(cause_of_layer_2(options, bundle), "none");
  // No hypothesis about layers is tried, as with a cache that has one.
  const auto hypotheses = [&](std::int64_t layer) {
    options.layer = layer;
    const PreparedProblem prepared = prepare_problem(bundle, options, "x");
    Problem scaled = prepared.problem;
    scaled.options.scale = 7;
    return diagnosis_of(options, prepared, scaled).hypotheses;
  };
  EXPECT_EQ(hypotheses(0), hypotheses(2));

  bundle = bundle_of("t", "n");
  bundle.tensors["blocks"] = random_tensor(DType::f32, {kBlocks, kPage, kHeads, kDims}, 2);
  options = options_of("max", R"({"forms": [{"values": "leading", "tensors": [
      {"name": "blocks", "holds": "k", "axes": "[block, slot, head, dim]"}]}], )" +
                                  kTable + "}");
  options.scale = 0.5;
  options.value_size = 4;
  const PreparedProblem prepared = prepare_problem(bundle, options, "x");
  EXPECT_TRUE(prepared.pool.bytes.empty());
  Problem unscaled = prepared.problem;
  unscaled.options.scale = 1;
  const Diagnosis diagnosis = diagnosis_of(options, prepared, unscaled);
  ASSERT_FALSE(diagnosis.explanations.empty());
  EXPECT_THAT(diagnosis.explanations.front().name, StartsWith("scale"));
}

// A pool of layout max with block scales by layer.
Bundle layered_block_scales() {
  Bundle bundle = bundle_of("lookup_table", "cache_lengths");
  bundle.tensors["lookup_table"] = reinterpret_as(bundle.tensors["lookup_table"], DType::u32);
  bundle.tensors["cache_lengths"] = SmallBatch::ints<std::uint32_t>({1}, {10});  // and the new one
  bundle.tensors["blocks"] = random_tensor(DType::e4m3, {kBlocks, 2, kLayers, kPage, kHeads, kDims}, 2);
  bundle.tensors["scales"] = random_tensor(DType::f32, {kBlocks, 2, kLayers, kPage, kHeads, 2}, 3);
  return bundle;
}

// Block scales by layer are read with the elements of their layer, or apart from them. A scale for all of V makes the
// scales of V a product, which has no other layers.
TEST(DiagnoseInputs, BlockScalesOfAnotherLayerAreReadWithItOrNot) {
  Bundle bundle = layered_block_scales();
  LayoutOptions options;
  options.layout = "max";
  EXPECT_EQ(cause_of_layer_2(options, bundle), "layer 2 is read instead of layer 1");

  const auto with_own_scales = [&] {
    options.layer = 2;
    const PreparedProblem other = prepare_problem(bundle, options, "x");
    options.layer = 1;
    const PreparedProblem prepared = prepare_problem(bundle, options, "x");
    Problem faulty = prepared.problem;
    faulty.k.data = other.problem.k.data;
    faulty.v.data = other.problem.v.data;
    const Diagnosis diagnosis = diagnosis_of(options, prepared, faulty);
    return diagnosis.explanations.empty() ? "none" : diagnosis.explanations.front().cause;
  };
  EXPECT_EQ(with_own_scales(), "layer 2 is read instead of layer 1, with the scales of the correct layer");
  bundle.tensors["v_scale"] = random_tensor(DType::f32, {1}, 4);
  EXPECT_EQ(with_own_scales(), "layer 2 is read instead of layer 1");
}

// One side's scales are the tensor, f32 with its strides, the other's the product with a scale for all of V, f64.
TEST(DiagnoseInputs, ScalesOfTheOtherSideAreReadWithTheirTypeAndStrides) {
  Bundle bundle = layered_block_scales();
  bundle.tensors["v_scale"] = random_tensor(DType::f32, {1}, 4);
  LayoutOptions options;
  options.layout = "max";
  options.layer = 1;
  const PreparedProblem prepared = prepare_problem(bundle, options, "x");
  Problem faulty = prepared.problem;
  ASSERT_NE(faulty.k.scale_dtype, faulty.v.scale_dtype);
  faulty.v = prepared.problem.k;  // K and V have the same strides in one tensor
  faulty.v.data = prepared.problem.v.data;
  const Diagnosis diagnosis = diagnosis_of(options, prepared, faulty);
  ASSERT_FALSE(diagnosis.explanations.empty());
  EXPECT_EQ(diagnosis.explanations.front().cause, "V is multiplied by the scales of K");
}

// --- one list of entries ----------------------------------------------------------------------------------------------

// Sequences of 3 pages, none, 1 page and 2 pages. A kernel that is one column too far takes the first page of the next
// sequence for the last of its own. The last sequence reads past the list, where the values are unknown. The list has
// other names in each layout.
TEST(DiagnoseInputs, APageTooFarInAListIsTheNextSequences) {
  const std::vector<std::int64_t> indices{7, 2, 11, 5, 0, 3}, indptr{0, 3, 3, 4, 6}, lengths{11, 0, 3, 7};
  struct Case {
    const char *layout, *cache, *indptr, *indices, *lengths;
  };
  for (const Case& c : {Case{"flashinfer_hnd", "kv_cache", "kv_indptr", "kv_indices", ""},
                        Case{"flashinfer_hnd", "kv_cache", "paged_kv_indptr", "paged_kv_indices", ""},
                        Case{"mlc", "pages", "page_indptr", "page_values", ""}, Case{"mine", "kv", "p", "i", "n"}}) {
    LayoutOptions options;
    options.layout = c.layout;
    if (c.layout == std::string("mine")) {
      options = options_of("mine", R"({"forms": [{"tensors": [{"name": "kv", "holds": "kv",
          "axes": "[block, kv, head, slot, dim]"}]}], "table": {"form": "indptr",
          "tensors": {"indptr": ["p"], "indices": ["i"], "lengths": ["n"]}}})");
    }
    Bundle bundle;
    bundle.tensors[c.cache] = random_tensor(DType::f32, {12, 2, kHeads, kPage, kDims}, 2);
    bundle.tensors["q"] = random_tensor(DType::f32, {4, 4, kDims}, 1);
    bundle.tensors[c.indptr] = list(indptr);
    bundle.tensors[c.indices] = list(indices);
    const std::string last = c.layout == std::string("mlc") ? "length_info" : "kv_last_page_len";
    bundle.tensors[c.lengths[0] != 0 ? c.lengths : last] = c.lengths[0] != 0 ? list(lengths) : list({3, 0, 3, 3});
    const PreparedProblem prepared = prepare_problem(bundle, options, "x");
    Problem faulty = prepared.problem;
    std::array<std::uint32_t, 12> table{2, 11, 5, 99, 99, 99, 0, 99, 99, 3, 3, 99};  // 3 columns each
    faulty.k.table = faulty.v.table = table.data();
    faulty.k.table_stride = faulty.v.table_stride = 3;
    const Diagnosis diagnosis = diagnosis_of(options, prepared, faulty);
    ASSERT_FALSE(diagnosis.explanations.empty()) << c.layout << ' ' << c.indices;
    EXPECT_EQ(diagnosis.explanations.front().cause, "page p uses table column p + 1") << c.layout << ' ' << c.indices;
    EXPECT_EQ(diagnosis.explanations.front().failing_explained, 8);  // heads of sequences 0 and 2
    EXPECT_EQ(diagnosis.explanations.front().failing_outside, 4);
  }
}

}  // namespace
}  // namespace kvscope::golden::diagnose_inputs_test

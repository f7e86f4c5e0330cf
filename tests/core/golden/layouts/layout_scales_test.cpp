#include "core/golden/layouts/detail/layout_scales.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/convert.h"
#include "core/golden/layouts/detail/known_tensors.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::layout_scales_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Batch = SmallBatch;

const std::vector<std::string> kLayouts{"max",         "nhd",    "hnd", "flashinfer", "flashinfer_hnd",
                                        "vllm_legacy", "sglang", "mla"};
const std::vector<std::string> kGranularities{"", "H", "NP", "N", "NPH", "NH"};

// Axes of each layout's cache without D, from the table of layouts.h: N block, 2 K or V, L layer, P slot, H head.
std::string cache_axes(const std::string& layout) {
  static const std::map<std::string, std::string> kAxes{
      {"max", "N2LPH"},           {"nhd", "NPH"},         {"hnd", "NHP"}, {"flashinfer", "N2PH"}, {"sglang", "SH"},
      {"flashinfer_hnd", "N2HP"}, {"vllm_legacy", "NHP"}, {"mla", "NP"}};
  return kAxes.at(layout);
}

LayoutOptions options_for(const std::string& layout) {
  LayoutOptions options = Batch::options(layout);
  if (layout == "mla") {
    options.scale = 0.375;
    options.value_size = Batch::kLatent;
  }
  return options;
}

using Place = std::map<char, std::int64_t>;  // index of each axis; S is block * P + slot

// The scale at a place: a number that depends only on the axes in `granularity`. Powers of two, which all types
// represent, times 1.5 where the type has a mantissa.
double scale_at(const Place& place, const std::string& granularity, bool mantissa, int salt) {
  std::uint64_t n = static_cast<std::uint64_t>(salt);
  for (const char axis : granularity) n = n * 57 + static_cast<std::uint64_t>(place.at(axis)) + 1;
  const std::uint64_t bits = CounterRng(11, n).bits(0);
  return std::ldexp(mantissa && bits % 2 == 1 ? 1.5 : 1.0, static_cast<int>(bits / 2 % 4) - 2);
}

std::int64_t extent_of(char axis, const std::string& layout) {
  static const Place kExtents{{'N', Batch::kBlocks},
                              {'P', Batch::kPage},
                              {'L', Batch::kLayers},
                              {'2', 2},
                              {'S', Batch::kBlocks * Batch::kPage},
                              {'1', 1},
                              {'B', 5}};
  if (axis == 'H') return layout == "mla" ? 1 : Batch::kHeads;
  return kExtents.at(axis);
}

// A tensor with the axes `axes`, filled place by place.
Tensor scale_tensor(const std::string& layout, const std::string& axes, const std::string& granularity, DType dtype,
                    int salt) {
  std::vector<std::int64_t> shape;
  for (const char axis : axes) shape.push_back(extent_of(axis, layout));
  Tensor tensor = make_tensor(dtype, shape);
  const auto count = static_cast<std::int64_t>(tensor.bytes.size()) / size_of(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    Place place{{'N', 0}, {'P', 0}, {'H', 0}, {'L', 0}, {'2', 0}, {'B', 0}};
    std::int64_t rest = i;
    for (std::size_t axis = axes.size(); axis-- > 0; rest /= shape[axis]) place[axes[axis]] = rest % shape[axis];
    if (place.contains('S')) {
      place['N'] = place['S'] / Batch::kPage;
      place['P'] = place['S'] % Batch::kPage;
    }
    const double scale = scale_at(place, granularity, dtype != DType::e8m0, salt);
    convert(DType::f64, reinterpret_cast<const std::byte*>(&scale), dtype, tensor.bytes.data() + i * size_of(dtype), 1,
            Overflow::non_saturating);
  }
  return tensor;
}

// Attention by its definition: loops over queries, heads, keys and dims, over the batch's values by sequence and token.
// `scale(kv, sequence, place)` multiplies each element; granule(kv, block, slot, head, dim) does too.
struct Answer {
  std::vector<double> o, lse;
};
Answer brute_force(const std::string& layout, const auto& scale) {
  const Batch batch;
  const bool mla = layout == "mla";
  const std::int64_t value_size = mla ? Batch::kLatent : Batch::kDims;
  const double factor = mla ? 0.375 : 1 / std::sqrt(static_cast<double>(Batch::kDims));
  Bundle bundle;
  batch.add_queries(bundle);
  const auto q = values<float>(std::as_const(bundle.tensors.at("q")));
  Answer answer;
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < 5; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const auto element = [&](int kv, std::int64_t t, std::int64_t h, std::int64_t d) {
      const Place place{{'N', batch.table[at][static_cast<std::size_t>(t / Batch::kPage)]},
                        {'P', t % Batch::kPage},
                        {'H', h},
                        {'L', Batch::kLayer},
                        {'2', kv},
                        {'B', b}};
      return Batch::value(mla ? 0 : kv, b, t, h, d) * scale(kv, place, d);
    };
    for (std::int64_t i = 0; i < batch.queries[at]; ++i, ++row) {
      for (std::int64_t hq = 0; hq < Batch::kQueryHeads; ++hq) {
        const std::int64_t h = mla ? 0 : hq / (Batch::kQueryHeads / Batch::kHeads);
        const std::int64_t keys = batch.lengths[at] - batch.queries[at] + i + 1;
        std::vector<double> weight;
        double sum = 0;
        for (std::int64_t t = 0; t < keys; ++t) {
          double score = 0;
          for (std::int64_t d = 0; d < Batch::kDims; ++d) {
            score += q[Batch::at({{row, 8}, {hq, Batch::kQueryHeads}, {d, Batch::kDims}})] * element(0, t, h, d);
          }
          weight.push_back(std::exp(factor * score));
          sum += weight.back();
        }
        for (std::int64_t d = 0; d < value_size; ++d) {
          double o = 0;
          for (std::int64_t t = 0; t < keys; ++t) o += weight[static_cast<std::size_t>(t)] * element(1, t, h, d);
          answer.o.push_back(o / sum);
        }
        answer.lse.push_back(std::log(sum));
      }
    }
  }
  return answer;
}

testing::AssertionResult is(const Bundle& bundle, const std::string& layout, const Answer& answer) {
  const PreparedProblem prepared = prepare_problem(bundle, options_for(layout), "case");
  const attention::Result result = attention::reference(prepared.problem);
  const attention::PartialState tiled = attention::tiled(prepared.problem, {});
  if (result.o.size() != answer.o.size()) return testing::AssertionFailure() << result.o.size() << " elements";
  for (std::size_t i = 0; i < answer.o.size(); ++i) {
    const double o = result.o.data()[i], other = tiled.o.data()[i];
    if (!(std::abs(o - answer.o[i]) < 1e-11))
      return testing::AssertionFailure() << "o " << o << ", not " << answer.o[i];
    if (!(std::abs(other - o) < 1e-4 * (1 + std::abs(o)))) {
      return testing::AssertionFailure() << "tiled o " << other << ", not " << o;
    }
  }
  for (std::size_t i = 0; i < answer.lse.size(); ++i) {
    const double lse = result.lse.data()[i];
    if (!(std::abs(lse - answer.lse[i]) < 1e-11)) {
      return testing::AssertionFailure() << "lse " << lse << ", not " << answer.lse[i];
    }
  }
  return testing::AssertionSuccess();
}

attention::Result golden(const Bundle& bundle, const std::string& layout) {
  return attention::reference(prepare_problem(bundle, options_for(layout), "case").problem);
}

std::string rejection(const Bundle& bundle, const LayoutOptions& options) {
  return message_of([&] { static_cast<void>(prepare_problem(bundle, options, "mine.npz")); });
}

Tensor scalar(float x) {
  return tensor_of<float>({}, std::vector<float>{x});
}

std::string only(const std::string& axes, const std::string& granularity, bool whole) {
  std::string kept;
  for (const char axis : axes) {
    const bool in =
        granularity.find(axis) != std::string::npos || (axis == 'S' && granularity.find('N') != std::string::npos);
    if (in) kept += axis;
    if (!in && whole) kept += '1';
  }
  return kept;
}

class Scales : public testing::TestWithParam<std::string> {};

// Two bundles that differ only in their scales must give different goldens.
TEST_P(Scales, OtherScalesGiveAnotherGolden) {
  Bundle one = Batch().in(GetParam()), two = one;
  one.tensors["k_scale"] = scalar(0.5F);
  two.tensors["k_scale"] = scalar(2);
  EXPECT_NE(golden(one, GetParam()).lse, golden(two, GetParam()).lse);
  one.tensors["k_scale"] = two.tensors["k_scale"];
  EXPECT_EQ(golden(one, GetParam()).lse, golden(two, GetParam()).lse);
  one.tensors["v_scale"] = scalar(0.25F);
  EXPECT_NE(golden(one, GetParam()).o, golden(two, GetParam()).o);
}

// Every granularity in each of its shapes, for K and V with separate scales.
TEST_P(Scales, EveryGranularityMultipliesTheElementsItCovers) {
  const std::string layout = GetParam();
  const bool layers = layout == "max";
  std::string axes = cache_axes(layout);
  std::erase(axes, '2');
  for (const std::string& granularity : kGranularities) {
    if (layout == "sglang" && (granularity == "N" || granularity == "NH")) continue;  // pages of one token
    for (const std::string& layer : layers ? std::vector<std::string>{"", "L"} : std::vector<std::string>{""}) {
      const std::string covers = layer + granularity;
      std::vector<std::string> shapes{only(axes, covers, false), only(axes, covers, true)};
      if (granularity.starts_with("NP")) shapes.push_back(layer + "S" + granularity.substr(2));
      for (const std::string& shape : shapes) {
        for (const char* behind : {"", "1"}) {
          Bundle bundle = Batch().in(layout);
          bundle.tensors["k_scale"] = scale_tensor(layout, shape + behind, covers, DType::f32, 1);
          bundle.tensors["v_scale"] = scale_tensor(layout, shape + behind, covers, DType::f32, 2);
          EXPECT_TRUE(is(bundle, layout,
                         brute_force(layout, [&](int kv, const Place& place,
                                                 std::int64_t) { return scale_at(place, covers, true, kv + 1); })))
              << covers << " as " << shape << behind;
        }
      }
    }
  }
}

// One tensor for K and V, with common or separate scales; its shape has every axis, because H is also 2.
TEST_P(Scales, OneTensorCoversKAndVAlikeOrApart) {
  const std::string layout = GetParam();
  std::string axes = cache_axes(layout);
  if (axes.find('2') == std::string::npos) axes.insert(0, "2");
  if (layout == "mla") axes += 'H';
  for (const std::string& granularity : kGranularities) {
    if (layout == "sglang" && (granularity == "N" || granularity == "NH")) continue;
    for (const std::string& covers : {granularity, "2" + granularity}) {
      Bundle bundle = Batch().in(layout);
      bundle.tensors["kv_scale"] = scale_tensor(layout, only(axes, covers, true) + "1", covers, DType::f32, 3);
      EXPECT_TRUE(is(
          bundle, layout,
          brute_force(layout, [&](int, const Place& place, std::int64_t) { return scale_at(place, covers, true, 3); })))
          << covers;
    }
  }
}

TEST_P(Scales, EveryFloatTypeIsRead) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::e4m3, DType::e5m2, DType::e8m0}) {
    Bundle bundle = Batch().in(GetParam());
    bundle.tensors["k_scale"] = scale_tensor(GetParam(), "S", "NP", dtype, 4);
    EXPECT_TRUE(is(bundle, GetParam(),
                   brute_force(GetParam(),
                               [&](int kv, const Place& place, std::int64_t) {
                                 const bool both = GetParam() == "mla";  // V is part of K's rows
                                 return kv == 0 || both ? scale_at(place, "NP", dtype != DType::e8m0, 4) : 1.0;
                               })))
        << name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Scales, testing::ValuesIn(kLayouts), [](const auto& param) { return param.param; });

// FlashAttention 3's descale factors [B, H]; under another name the shape is not one of those of a cache.
TEST(LayoutScales, DescaleFactorsOfSequencesFollowTheSequence) {
  for (const std::string layout : {"nhd", "hnd"}) {
    Bundle bundle = Batch().in(layout);
    bundle.tensors["k_descale"] = scale_tensor(layout, "BH", "BH", DType::f32, 1);
    bundle.tensors["v_descale"] = scale_tensor(layout, "BH", "BH", DType::f32, 2);
    EXPECT_TRUE(is(bundle, layout, brute_force(layout, [&](int kv, const Place& place, std::int64_t) {
                     return scale_at(place, "BH", true, kv + 1);
                   })));
    Bundle other = Batch().in(layout);
    other.tensors["k_scale"] = bundle.tensors.at("k_descale");
    EXPECT_THAT(rejection(other, options_for(layout)),
                HasSubstr("k_scale: has shape [5, 2]; scales of this cache are [] per tensor, [2] per KV head"));
  }
}

// Granule scales of layout max times the scales of the pool, in double.
TEST(LayoutScales, GranulesAndScalesMultiply) {
  Bundle bundle = Batch().in("max");
  Tensor granules = make_tensor(DType::f32, {Batch::kBlocks, 2, Batch::kLayers, Batch::kPage, Batch::kHeads, 2});
  const auto granule_at = [](int kv, const Place& p, std::int64_t granule) {
    return Batch::at({{p.at('N'), Batch::kBlocks},
                      {kv, 2},
                      {p.at('L'), Batch::kLayers},
                      {p.at('P'), Batch::kPage},
                      {p.at('H'), Batch::kHeads},
                      {granule, 2}});
  };
  for (std::uint64_t n = 0; float& x : values<float>(granules))
    x = static_cast<float>(1 + CounterRng(3, 3).uniform(n++));
  bundle.tensors["scales"] = granules;
  for (const std::string covers : {"", "H", "LNH", "LNPH"}) {
    bundle.tensors["k_scale"] = scale_tensor("max", only("NLPH", covers, true) + "1", covers, DType::f32, 1);
    bundle.tensors["v_scale"] = scale_tensor("max", only("NLPH", covers, true) + "1", covers, DType::f32, 2);
    EXPECT_TRUE(is(bundle, "max",
                   brute_force("max",
                               [&](int kv, const Place& place, std::int64_t d) {
                                 return scale_at(place, covers, true, kv + 1) *
                                        static_cast<double>(
                                            values<float>(std::as_const(granules))[granule_at(kv, place, d / 3)]);
                               })))
        << covers;
  }
}

TEST(LayoutScales, AShapeOfTwoReadingsIsAFaultThatNamesBothAndWholeShapesTellThemApart) {
  Bundle bundle = Batch().in("nhd");
  bundle.tensors["kv_scale"] = scale_tensor("nhd", "H", "H", DType::f32, 1);
  EXPECT_EQ(rejection(bundle, options_for("nhd")),
            "mine.npz rejected: kv_scale: has shape [2], which is read as K and V apart, per tensor or as per KV head: "
            "give it every axis of the cache, [2, 1, 1, 1, 1] or [1, 1, 1, 2, 1]");
  bundle.tensors["kv_scale"].shape = {1, 1, 1, 2, 1};
  const attention::Result heads = golden(bundle, "nhd");
  bundle.tensors["kv_scale"].shape = {2, 1, 1, 1, 1};
  EXPECT_NE(heads.o, golden(bundle, "nhd").o);

  // As many KV heads as blocks.
  Bundle square;
  square.tensors["k_cache"] = make_tensor(DType::f32, {2, 3, 2, 4});
  square.tensors["v_cache"] = make_tensor(DType::f32, {2, 3, 2, 4});
  square.tensors["block_table"] = Batch::ints<std::int32_t>({1, 1}, {1});
  square.tensors["cache_seqlens"] = Batch::ints<std::int32_t>({1}, {2});
  square.tensors["q"] = make_tensor(DType::f32, {1, 2, 4});
  square.tensors["k_scale"] = make_tensor(DType::f32, {2});
  EXPECT_EQ(rejection(square, options_for("nhd")),
            "mine.npz rejected: k_scale: has shape [2], which is read as per KV head or as per block: give it every "
            "axis of the cache, [1, 1, 2, 1] or [2, 1, 1, 1]");
  square.tensors["k_scale"].shape = {2, 1, 1, 1};
  EXPECT_THAT(prepare_problem(square, options_for("nhd"), "x").scales,
              ElementsAre("K: k_scale f32 [2, 1, 1, 1], per block"));
}

TEST(LayoutScales, FaultsOfScalesAreAllNamed) {
  Bundle bundle = Batch().in("nhd");
  bundle.tensors["k_scale"] = make_tensor(DType::f32, {7});
  bundle.tensors["v_scale"] = make_tensor(DType::i32, {2});
  bundle.tensors["sm_scale"] = make_tensor(DType::f32, {2});
  bundle.tensors["alibi"] = make_tensor(DType::f32, {3});
  bundle.tensors["k_scal"] = scalar(1);
  LayoutOptions options = options_for("nhd");
  options.ignore = {"v_sale"};
  EXPECT_EQ(
      rejection(bundle, options),
      "mine.npz rejected, 6 faults:\n"
      "  alibi: has 3 entries for 4 query heads\n"
      "  sm_scale: is f32 [2]; the factor of the scores is one float\n"
      "  k_scale: has shape [7]; scales of this cache are [] per tensor, [2] per KV head, [13, 4] per token, "
      "[13] per block, [13, 4, 2] per token and KV head, [13, 2] per block and KV head\n"
      "  v_scale: is i32; scales are floats of at least 8 bits\n"
      "  k_scal: is not a tensor of layout 'nhd': did you mean \"k_scale\"? Pass --ignore k_scal to leave it out\n"
      "  --ignore: 'v_sale' is not a tensor of the input: did you mean \"v_scale\"?");
}

// If a tensor is given under two names, or for K and for both, one of them would be ignored.
TEST(LayoutScales, ATensorGivenTwiceIsAFault) {
  Bundle bundle = Batch().in("nhd");
  bundle.tensors["k_scale"] = scalar(1);
  bundle.tensors["k_descale"] = scalar(2);
  EXPECT_EQ(
      rejection(bundle, options_for("nhd")),
      "mine.npz rejected: k_descale: is given together with k_scale, which is the same input: keep one of them, or "
      "pass --ignore k_descale");
  bundle.tensors.erase("k_descale");
  bundle.tensors["kv_scale"] = scalar(2);
  EXPECT_EQ(rejection(bundle, options_for("nhd")),
            "mine.npz rejected: k_scale: is given, and kv_scale too: keep one of them, or pass --ignore k_scale");
  LayoutOptions options = options_for("nhd");
  options.ignore = {"k_scale"};
  EXPECT_THAT(prepare_problem(bundle, options, "x").scales,
              ElementsAre("K: kv_scale f32 [], per tensor", "V: kv_scale f32 [], per tensor"));
}

// ckv and kpe are not read together with kv_cache.
TEST(LayoutScales, AKnownTensorThatIsNotUsedIsAFaultToo) {
  Bundle bundle = Batch().in("mla");
  bundle.tensors["kpe"] = make_tensor(DType::f32, {13, 4, 2});
  EXPECT_EQ(rejection(bundle, options_for("mla")),
            "mine.npz rejected: kpe: is not used: the input gives the same in other tensors. Pass --ignore kpe to "
            "leave it out");
  bundle = Batch().in("sglang");
  bundle.tensors["frobnicate"] = scalar(1);
  EXPECT_EQ(
      rejection(bundle, options_for("sglang")),
      "mine.npz rejected: frobnicate: is not a tensor of layout 'sglang': choose one of k_buffer, v_buffer, "
      "kv_indptr, kv_indices, q, query_offsets, k_scale, v_scale, kv_scale, sm_scale, sinks, alibi_slopes, "
      "q_lens, custom_mask, packed_custom_mask, mask_indptr, tree_mask, attn_mask, k_block_scale, v_block_scale. Pass "
      "--ignore frobnicate to leave it out");
  LayoutOptions options = options_for("sglang");
  options.ignore = {"frobnicate"};
  EXPECT_EQ(attention::reference(prepare_problem(bundle, options, "x").problem).o,
            golden(Batch().in("sglang"), "sglang").o);
}

TEST(LayoutScales, TheFactorOfTheScoresIsReadFromItsTensor) {
  LayoutOptions options = options_for("nhd");
  options.scale = 0.75;
  Bundle bundle = Batch().in("nhd");
  const attention::Result wanted = attention::reference(prepare_problem(bundle, options, "x").problem);
  bundle.tensors["sm_scale"] = scalar(0.75F);
  EXPECT_EQ(golden(bundle, "nhd").lse, wanted.lse);
  EXPECT_EQ(attention::reference(prepare_problem(bundle, options, "x").problem).lse, wanted.lse);
  options.scale = 0.5;
  EXPECT_EQ(rejection(bundle, options),
            "mine.npz rejected: sm_scale: is 0.75, but --scale is 0.5: leave --scale out, or pass --ignore sm_scale");
  bundle.tensors["sm_scale"] = scalar(std::numeric_limits<float>::infinity());
  EXPECT_EQ(rejection(bundle, options_for("nhd")),
            "mine.npz rejected: sm_scale: is inf; the factor of the scores is a finite number");
}

// Every synonym of every tensor of every layout gives the golden of the canonical name.
TEST(LayoutScales, EverySynonymIsRead) {
  for (const std::string& layout : kLayouts) {
    Bundle canonical = Batch().in(layout);
    canonical.tensors["sm_scale"] = scalar(0.375F);
    canonical.tensors["k_scale"] = scalar(0.5F);
    canonical.tensors["v_scale"] = scalar(0.75F);
    canonical.tensors["sinks"] = tensor_of<float>({4}, std::vector<float>{0.5F, 1, -1, 2});
    canonical.tensors["alibi_slopes"] = tensor_of<float>({4}, std::vector<float>{0.5F, 0.25F, 0.125F, 1});
    if (layout == "mla") {  // in two tensors, too
      Bundle split = canonical;
      split.tensors.erase("kv_cache");
      split.tensors["ckv"] = make_tensor(DType::f32, {13, 4, 4});
      split.tensors["kpe"] = make_tensor(DType::f32, {13, 4, 2});
      for (const auto& [from, to] : {std::pair{"ckv", "ckv_cache"}, {"kpe", "kpe_cache"}}) {
        Bundle renamed = split;
        auto node = renamed.tensors.extract(from);
        node.key() = to;
        renamed.tensors.insert(std::move(node));
        LayoutOptions options = options_for(layout);
        EXPECT_EQ(rejection(renamed, options), "(no InputError)") << to;
      }
    }
    const attention::Result wanted = golden(canonical, layout);
    std::size_t tried = 0;
    for (const KnownTensor& known : known_tensors_of(*find_layout(layout))) {
      const std::string name(known.name);
      if (!canonical.tensors.contains(name)) continue;
      for (const std::string_view synonym : words(known.synonyms)) {
        Bundle renamed = canonical;
        auto node = renamed.tensors.extract(name);
        node.key() = std::string(synonym);
        renamed.tensors.insert(std::move(node));
        const attention::Result found = golden(renamed, layout);
        EXPECT_EQ(found.o, wanted.o) << layout << ": " << synonym;
        EXPECT_EQ(found.lse, wanted.lse) << layout << ": " << synonym;
        ++tried;
      }
    }
    EXPECT_GE(tried, 21u) << layout;
  }
}

// 13 elements of V beside 6 of K: the scale of the first 6 is that of the others too. Powers of two are exact, so that the
// golden is that of a cache whose elements are multiplied already.
TEST(LayoutScales, OneScaleCoversAVLongerThanK) {
  constexpr std::int64_t kLong = 13, kHeads = 2, kRow = kHeads * kLong;
  Bundle bundle = Batch().in("nhd");
  bundle.tensors["v_cache"] = make_tensor(DType::f32, {Batch::kBlocks, Batch::kPage, kHeads, kLong});
  std::uint64_t n = 0;
  for (float& x : values<float>(bundle.tensors["v_cache"])) x = static_cast<float>(CounterRng(5, 0).bell(n++));
  std::vector<float> by_token(static_cast<std::size_t>(Batch::kBlocks * Batch::kPage));
  for (std::size_t i = 0; i < by_token.size(); ++i) by_token[i] = std::ldexp(1.0F, static_cast<int>(i % 5) - 2);
  const std::vector<std::tuple<Tensor, std::function<float(std::int64_t)>>> scales{
      {tensor_of<float>({}, std::array{4.0F}), [](std::int64_t) { return 4.0F; }},
      {tensor_of<float>({1, 1, kHeads, 1}, std::array{0.5F, 8.0F}),
       [](std::int64_t i) { return i / kLong % kHeads == 0 ? 0.5F : 8.0F; }},
      {tensor_of<float>({Batch::kBlocks, Batch::kPage}, std::span<const float>(by_token)),
       [&](std::int64_t i) { return by_token[static_cast<std::size_t>(i / kRow)]; }}};
  for (const auto& [tensor, scale] : scales) {
    Bundle with_scale = bundle, multiplied = bundle;
    with_scale.tensors["v_scale"] = tensor;
    std::int64_t i = 0;
    for (float& x : values<float>(multiplied.tensors["v_cache"])) x *= scale(i++);
    const attention::Result want = golden(multiplied, "nhd");
    EXPECT_EQ(golden(with_scale, "nhd").o, want.o) << describe(tensor);
    EXPECT_GT(std::abs(want.o(7, 3, kLong - 1)), 0) << "V of 13 elements";
  }
}

// A golden can be read as input: its output tensors are not inputs and need no --ignore.
TEST(LayoutScales, TheAnswersOfAGoldenAreNotInputs) {
  Bundle bundle = Batch().in("max");
  bundle.tensors["o"] = scalar(1);
  EXPECT_THAT(rejection(bundle, options_for("max")), HasSubstr("o: is not a tensor of layout 'max'"));
  bundle.manifest.set("conventions", json::Value());
  EXPECT_EQ(rejection(bundle, options_for("max")), "(no InputError)");
}

}  // namespace
}  // namespace kvscope::golden::layout_scales_test

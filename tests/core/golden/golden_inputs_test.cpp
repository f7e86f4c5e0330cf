// What a manifest states of its tensors: every member is read. A member of another type or value is a fault, because a
// default in its place would compute another attention. GoldenInputs.GiveTheSameProblemAgain (diagnosis_test.cpp) reads
// what kvscope writes.
#include "core/golden/golden_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/golden/golden_bundle.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden {
namespace {

Bundle with_manifest(std::string_view text) {
  return {{}, json::parse(text, "test")};
}

LayoutOptions stated(std::string_view text) {
  return stated_options(with_manifest(text), "g.npz");
}

TEST(StatedOptions, AreThoseOfTheManifest) {
  const LayoutOptions options = stated(R"({"layout": "nhd",
      "inputs": {"layer": 2, "cache_dtype": "e4m3", "cache_fnuz": true, "query_dtype": "bf16", "k_scales": "tiled",
                 "v_scales": "linear", "head_size": 24, "granularity": 8, "value_size": 12, "ignore": ["a", "b"]},
      "conventions": {"mask": "chunked", "alignment": "top_left", "window_left": 3, "window_right": -1, "chunk": 5,
                      "scale": 0.25, "soft_cap": 30, "lse_base": "two", "empty_row": "+inf"}})");
  EXPECT_EQ(options.layer, 2);
  ASSERT_TRUE(options.cache_type);
  EXPECT_EQ(name(*options.cache_type), "e4m3fnuz");
  EXPECT_EQ(options.query_dtype, DType::bf16);
  EXPECT_EQ(options.k_scale_order, ScaleOrder::tiled);
  EXPECT_EQ(options.v_scale_order, ScaleOrder::linear);
  EXPECT_EQ(options.head_size, 24);
  EXPECT_EQ(options.granularity, 8);
  EXPECT_EQ(options.value_size, 12);
  EXPECT_EQ(options.ignore, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.scale, 0.25);
  EXPECT_EQ(options.attention.mask, MaskKind::chunked);
  EXPECT_EQ(options.attention.alignment, CausalAlignment::top_left);
  EXPECT_EQ(options.attention.window_left, 3);
  EXPECT_EQ(options.attention.window_right, -1);
  EXPECT_EQ(options.attention.chunk, 5);
  EXPECT_EQ(options.attention.soft_cap, 30.0);
  EXPECT_EQ(options.attention.lse_base, attention::LseBase::two);
  EXPECT_EQ(options.attention.empty_row, attention::EmptyRow::plus_infinity);
}

TEST(StatedOptions, AreTheDefaultsWhereTheManifestStatesNothing) {
  const LayoutOptions defaults;
  for (
      const char* text :
      {R"({"layout": "nhd"})", R"({"layout": "nhd", "inputs": {}, "conventions": {}})",
       R"({"layout": "nhd", "inputs": null, "conventions": null})",
       R"({"layout": "nhd", "inputs": {"head_size": null, "cache_fnuz": false}, "conventions": {"soft_cap": null}})"}) {
    SCOPED_TRACE(text);
    const LayoutOptions options = stated(text);
    EXPECT_EQ(options.layer, 0);
    EXPECT_FALSE(options.cache_type || options.query_dtype || options.head_size || options.granularity ||
                 options.value_size || options.scale);
    EXPECT_EQ(options.k_scale_order, ScaleOrder::linear);
    EXPECT_EQ(options.v_scale_order, ScaleOrder::linear);
    EXPECT_EQ(conventions(options.attention), conventions(defaults.attention));
  }
}

TEST(StatedOptions, OfAnOlderGoldenHaveInterleavedScalesOfV) {
  for (const auto& [text, order] : {std::pair{"true", ScaleOrder::interleaved}, {"false", ScaleOrder::linear}}) {
    const LayoutOptions options =
        stated(std::string(R"({"layout": "hnd", "inputs": {"v_scales_interleaved": )") + text + "}}");
    EXPECT_EQ(options.v_scale_order, order);
    EXPECT_EQ(options.k_scale_order, ScaleOrder::linear);
  }
}

TEST(StatedOptions, RejectMembersOfAnotherTypeOrValue) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("inputs": 5)", "'inputs': is 5, not an object"},
      {R"("inputs": {"layer": "1"})", "'inputs.layer': is \"1\", not an integer"},
      {R"("inputs": {"layer": 1.5})", "'inputs.layer': is 1.5, not an integer"},
      {R"("inputs": {"head_size": 0})", "'inputs.head_size': is 0, not an integer of at least 1"},
      {R"("inputs": {"granularity": -4})", "'inputs.granularity': is -4, not an integer of at least 1"},
      {R"("inputs": {"value_size": [16]})", "'inputs.value_size': is [16], not an integer of at least 1"},
      {R"("inputs": {"cache_dtype": "float12"})",
       "'inputs.cache_dtype': is \"float12\", not an element type such as bf16 or e4m3"},
      {R"("inputs": {"query_dtype": 16})", "'inputs.query_dtype': is 16, not an element type such as bf16 or e4m3"},
      {R"("inputs": {"cache_fnuz": 1})", "'inputs.cache_fnuz': is 1, not true or false"},
      {R"("inputs": {"v_scales_interleaved": "yes"})", "'inputs.v_scales_interleaved': is \"yes\", not true or false"},
      {R"("inputs": {"k_scales": "tiles"})", "'inputs.k_scales': is \"tiles\", not one of linear, interleaved, tiled"},
      {R"("inputs": {"v_scales": 2})", "'inputs.v_scales': is 2, not one of linear, interleaved, tiled"},
      {R"("inputs": {"ignore": "q"})", "'inputs.ignore': is \"q\", not a list of names"},
      {R"("inputs": {"ignore": ["q", 1]})", "'inputs.ignore': is [\"q\",1], not a list of names"},
      {R"("conventions": "none")", "'conventions': is \"none\", not an object"},
      {R"("conventions": {"mask": "sliding"})",
       "'conventions.mask': is \"sliding\", not one of none, causal, sliding_window, chunked"},
      {R"("conventions": {"mask": true})",
       "'conventions.mask': is true, not one of none, causal, sliding_window, chunked"},
      {R"("conventions": {"alignment": "top-left"})",
       "'conventions.alignment': is \"top-left\", not one of bottom_right, top_left"},
      {R"("conventions": {"window_left": 2.5})", "'conventions.window_left': is 2.5, not an integer"},
      {R"("conventions": {"scale": "0.125"})", "'conventions.scale': is \"0.125\", not a number"},
      {R"("conventions": {"soft_cap": true})", "'conventions.soft_cap': is true, not a number"},
      {R"("conventions": {"lse_base": "2"})", "'conventions.lse_base': is \"2\", not one of natural, two"},
      {R"("conventions": {"empty_row": "inf"})", "'conventions.empty_row': is \"inf\", not one of -inf, +inf"},
      {R"("conventions": {"alibi": 1})", "'conventions.alibi': is 1, not true or false"},
      {R"("conventions": {"sinks": "no"})", "'conventions.sinks': is \"no\", not true or false"},
      {R"("inputs": {"file": 5})", "'inputs.file': is 5, not a text"},
      {R"("holds": "golden")", "'holds': is \"golden\", not one of inputs, output"},
      // Members that nothing reads: a mistyped name would leave the default in force.
      {R"("conventions": {"softcap": 30})",
       "'conventions.softcap': is 30, which is not read: one of alibi, alignment, bias, chunk, empty_row, lse_base, "
       "mask, "
       "scale, sinks, soft_cap, window_left, window_right"},
      {R"("inputs": {"head_dim": 64})",
       "'inputs.head_dim': is 64, which is not read: one of cache_dtype, cache_fnuz, file, granularity, head_size, "
       "ignore, k_scales, layer, layout, query_dtype, v_scales, v_scales_interleaved, value_size"},
  };
  for (const auto& [member, message] : cases) {
    SCOPED_TRACE(member);
    const std::string manifest = fmt::format(R"({{"layout": "nhd", {}}})", member);
    EXPECT_EQ(message_of([&] { static_cast<void>(stated(manifest)); }),
              fmt::format("g.npz rejected: manifest {}", message));
  }
}

TEST(StatedOptions, ReportAllFaultsOfAManifestTogether) {
  try {
    static_cast<void>(stated(R"({"layout": "mine", "inputs": {"layer": "1"}, "conventions": {"mask": "sliding"}})"));
    FAIL();
  } catch (const InputError& error) {
    ASSERT_EQ(error.faults().size(), 3u);
    EXPECT_EQ(error.faults()[0].where, "manifest 'inputs.layer'");
    EXPECT_EQ(error.faults()[1].where, "manifest 'conventions.mask'");
    EXPECT_EQ(error.faults()[2].where, "manifest 'layout'");
    EXPECT_EQ(error.faults()[2].message,
              "is 'mine', which is no named layout and which the manifest does not describe: pass the file that "
              "describes it as the layout");
  }
}

// It read as missing, so that the message was about an option, or the layout of the command line was taken.
TEST(StatedOptions, ALayoutThatIsNoTextIsAFault) {
  const Bundle bundle = with_manifest(R"({"layout": 5})");
  EXPECT_TRUE(states_layout(bundle));
  EXPECT_FALSE(states_layout(with_manifest(R"({"layout": null})")));
  for (const auto read : {+[](const Bundle& b) { static_cast<void>(stated_options(b, "g.npz")); },
                          +[](const Bundle& b) { static_cast<void>(stated_layout(b, "g.npz")); }}) {
    EXPECT_EQ(message_of([&] { read(bundle); }), "g.npz rejected: manifest 'layout': is 5, not a text");
  }
  EXPECT_EQ(message_of([&] { static_cast<void>(inputs_file(with_manifest(R"({"inputs": {"file": [1]}})"), "g.npz")); }),
            "g.npz rejected: manifest 'inputs.file': is [1], not a text");
}

// A scenario's golden holds its inputs, and their sizes are members of the manifest itself.
TEST(StatedOptions, OfAScenarioHaveTheSizesOfTheManifest) {
  Bundle bundle = with_manifest(R"({"layout": "max", "granularity": 32, "value_size": 48, "scale_dtype": "f32"})");
  bundle.tensors["blocks"] = make_tensor(DType::e4m3, {1});
  EXPECT_FALSE(holds_inputs(bundle));  // no q
  EXPECT_FALSE(stated_options(bundle, "g.npz").granularity);
  bundle.tensors["q"] = make_tensor(DType::bf16, {1});
  EXPECT_TRUE(holds_inputs(bundle));
  EXPECT_EQ(stated_options(bundle, "g.npz").granularity, 32);
  EXPECT_EQ(stated_options(bundle, "g.npz").value_size, 48);
  bundle.manifest.set("granularity", 0);
  EXPECT_EQ(message_of([&] { static_cast<void>(stated_options(bundle, "g.npz")); }),
            "g.npz rejected: manifest 'granularity': is 0, not an integer of at least 1");
}

// Expected values of a golden must not pass for a kernel's output in a bundle of inputs.
TEST(InputsBundle, HoldsNoExpectedValues) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["workspace"] = make_tensor(DType::u8, {3});
  LayoutOptions options = SmallBatch::options("nhd");
  options.ignore = {"workspace"};
  const PreparedProblem prepared = prepare_problem(bundle, options, "inputs");
  const Bundle golden = golden_bundle(prepared.problem, attention::reference(prepared.problem), {"kvscope", "nhd", {}});
  bundle.tensors["o"] = golden.tensors.at("o");
  EXPECT_TRUE(inputs_bundle(bundle, prepared, options, "test").tensors.contains("o"));  // a kernel's
  bundle.manifest = golden.manifest;
  bundle.tensors["lse"] = golden.tensors.at("lse");
  const Bundle inputs = inputs_bundle(bundle, prepared, options, "test");
  EXPECT_FALSE(inputs.tensors.contains("o"));
  EXPECT_FALSE(inputs.tensors.contains("lse"));
  EXPECT_FALSE(inputs.tensors.contains("workspace"));
  EXPECT_TRUE(inputs.tensors.contains("k_cache"));
  EXPECT_TRUE(inputs.tensors.contains("query_offsets"));  // an input too
  EXPECT_TRUE(holds_only_inputs(inputs));
  EXPECT_EQ(stated_options(inputs, "inputs").ignore, std::vector<std::string>());
}

}  // namespace
}  // namespace kvscope::golden

// Descriptions of layouts: the named files, their text form, and the addresses that follow from them.
#include "core/golden/layouts/layout_description.h"

#include <gmock/gmock.h>

#include <set>

#include "core/golden/layouts/detail/cache_view.h"
#include "core/golden/layouts/detail/known_tensors.h"
#include "core/golden/layouts/layout_convert.h"
#include "core/golden/layouts/layout_places.h"
#include "core/golden/layouts/layouts.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::layout_description_test {
namespace {

using testing::ElementsAre;

// A name of two tensors would make one of them unreadable, or a fault for a correct file.
TEST(NamedLayouts, EachNameIsOfOneTensor) {
  for (const LayoutDescription& layout : named_layouts()) {
    std::set<std::string> seen;
    for (const KnownTensor& known : known_tensors_of(layout)) {
      EXPECT_TRUE(seen.insert(known.name).second) << layout.name << ": " << known.name;
      for (const std::string_view synonym : words(known.synonyms)) {
        EXPECT_TRUE(seen.insert(std::string(synonym)).second) << layout.name << ": " << synonym;
      }
    }
  }
}

TEST(NamedLayouts, AreWrittenAndReadAgain) {
  for (const LayoutDescription& layout : named_layouts()) {
    const json::Value written = to_json(layout);
    const LayoutDescription again =
        parse_layout(json::parse(json::dump(written), layout.name), layout.name, layout.name);
    EXPECT_EQ(to_json(again), written) << layout.name;
    EXPECT_FALSE(layout.about.empty()) << layout.name;
  }
}

TEST(NamedLayouts, HoldEveryLayoutOfTheSmallBatch) {
  for (const char* name : SmallBatch::kLayouts) EXPECT_NE(find_layout(name), nullptr) << name;
  EXPECT_EQ(find_layout("torch"), nullptr);
}

TEST(LayoutDescription, AxesAreNamedAndSuggested) {
  EXPECT_THAT(parse_axes(" [ block,kv , dim/x,x ] ", "s", "w"), ElementsAre("block", "kv", "dim/x", "x"));
  EXPECT_EQ(message_of([] { static_cast<void>(parse_axes("[blok, head]", "s", "w")); }),
            "s rejected: w: 'blok' is not an axis: did you mean \"block\"?");
  EXPECT_EQ(message_of([] { static_cast<void>(parse_axes("[num_blocks, quark, kv_heads, x, gluon]", "s", "w")); }),
            "s rejected, 3 faults:\n"
            "  w: 'num_blocks' is not an axis: did you mean \"block\"?\n"
            "  w: 'kv_heads' is not an axis: did you mean \"head\"?\n"
            "  w: 'quark' and 'gluon' are not axes: choose of block, slot, token, seq, position, head, dim, dim/x, x, "
            "latent, "
            "rope, kv, layer, 1, group, row, head*dim, block*kv, dim+vdim, query");
  EXPECT_EQ(message_of([] { static_cast<void>(parse_axes("block", "s", "w")); }),
            "s rejected: w: 'block' is not a list of axes such as [block, slot, head, dim]");
}

TEST(LayoutDescription, ACacheNeedsAPlaceAndElementsOfEachToken) {
  EXPECT_EQ(message_of([] { static_cast<void>(layout_of_axes({"kv=[block, slot, head, dim]"})); }),
            "command line rejected: --axes 'kv=[block, slot, head, dim]': a tensor that holds kv needs an axis for K "
            "and V: kv, block*kv "
            "or dim+vdim");
  EXPECT_EQ(message_of([] {
              static_cast<void>(layout_of_axes({"k=[slot, head]", "v=[block, head, dim]"}));
            }),
            "command line rejected, 2 faults:\n"
            "  --axes 'k=[slot, head]': exactly one of the axes block, token, seq and block*kv is needed\n"
            "  --axes 'k=[slot, head]': exactly one axis of a head's elements is needed: dim, dim/x with x, latent, "
            "rope, row, head*dim, dim+vdim or, for scales, group");
}

// vllm_legacy, [13, 2, 3, 4, 2] of f32: element d is at (d / 2) * 256 + (d % 2) * 32 bits.
TEST(CacheView, RunsOfElementsFollowTheirStrides) {
  const CacheForm& form = find_layout("vllm_legacy")->forms.front();
  const CacheSizes sizes{13, 4, 2, 6, 6, 1, 2};
  EXPECT_THAT(shape_for(form.tensors[0], sizes, DType::f32), ElementsAre(13, 2, 3, 4, 2));
  const CacheView view = view_of(form, sizes, 0, {DType::f32, DType::f32}, {true, true});
  for (std::int64_t d = 0; d < 6; ++d) {
    EXPECT_EQ(view.k.elements[0].walk.at(0, 0, 0, d), d / 2 * 256 + d % 2 * 32);
    EXPECT_EQ(view.v.elements[0].walk.at(0, 0, 0, d), d * 4 * 32);
  }
}

// nhd: K of head 1 of token 5 is at byte ((0 * 4 + 1) * 2 + 1) * 16 = 48.
TEST(LayoutPlaces, GiveTheByteOfEachHead) {
  const TokenPlace place = place_of_token(*find_layout("nhd"), {});
  ASSERT_EQ(place.runs.size(), 4U);
  EXPECT_EQ(place.at, "block 0, slot 1");
  EXPECT_EQ(place.runs[1].byte, 48);
  EXPECT_EQ(place.runs[1].bytes, 16);
  EXPECT_EQ(place.strides[0].head, 16);
  EXPECT_EQ(place.strides[0].slot, 32);
  PlaceRequest past;
  past.token = 12;
  EXPECT_THROW(static_cast<void>(place_of_token(*find_layout("nhd"), past)), IndexError);
}

// A table [[5, 0]] with pages of 4 and 6 tokens: slots 20, 21, 22, 23, 0, 1 of the pool.
TEST(LayoutConvert, ATokenPoolHasTheSlotsOfThePages) {
  Bundle bundle;
  bundle.tensors["k_cache"] = make_tensor(DType::f32, {6, 4, 1, 2});
  for (float n = 0; float& x : values<float>(bundle.tensors["k_cache"])) x = n++;
  bundle.tensors["v_cache"] = bundle.tensors["k_cache"];
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 2}, {5, 0});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {6});
  ConvertOptions options;
  options.from.layout = "nhd";
  options.to = find_layout("sglang");
  const Conversion made = convert_cache(bundle, options, "x");
  EXPECT_TRUE(made.kept_pool);
  EXPECT_THAT(values<std::int32_t>(made.bundle.tensors.at("kv_indices")), ElementsAre(20, 21, 22, 23, 0, 1));
  EXPECT_EQ(values<float>(made.bundle.tensors.at("k_buffer"))[42], 42);  // block 5, slot 1, element 0
  options.page_size = 3;
  options.to = find_layout("hnd");
  const Conversion packed = convert_cache(bundle, options, "x");
  EXPECT_FALSE(packed.kept_pool);
  EXPECT_THAT(values<std::int32_t>(packed.bundle.tensors.at("block_table")), ElementsAre(0, 1));
  EXPECT_EQ(values<float>(packed.bundle.tensors.at("k_cache"))[8], 0);  // token 4 is block 0, slot 0 of the input
}

}  // namespace
}  // namespace kvscope::golden::layout_description_test

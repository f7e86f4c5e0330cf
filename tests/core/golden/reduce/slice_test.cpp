#include "core/golden/reduce/slice.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/attention/reference.h"
#include "tests/core/golden/layouts/layout_cases.h"
#include "tests/core/golden/reduce/slice_cases.h"
#include "tests/property.h"

namespace kvscope::golden::slice_test {
namespace {

using testing::ElementsAre;

class SliceLayouts : public testing::TestWithParam<const char*> {};

// Rows of the slice have the bits of the same rows of the whole: a wrong axis, block or offset would change them. All
// that no sequence owns is NaN.
TEST_P(SliceLayouts, RowsAndHeadsOfASliceKeepTheirBits) {
  LayoutOptions options = SmallBatch::options(GetParam());
  if (options.layout == "mla") {
    options.value_size = SmallBatch::kLatent;
    options.scale = 0.4;
  }
  const Bundle tensors = SmallBatch().in(GetParam());
  const Slicer slicer(tensors, options, "case");
  const attention::Result whole = attention::reference(slicer.problem().problem);
  EXPECT_TRUE(prop::check("rows and heads of a slice keep their bits", [&] {
    ProblemSlice slice = slicer.whole();
    slice.sequences = any_part(slice.sequences);
    slice.kv_heads = any_part(slice.kv_heads);
    slice.group_heads = any_part(slice.group_heads);
    slice.only_used_blocks = prop::in_range(0, 2) == 0;
    slice.only_used_columns = prop::in_range(0, 2) == 0;
    slice.only_layer = prop::in_range(0, 2) == 0;
    for (SequenceSlice& sequence : slice.sequences) {
      sequence.first_query = prop::in_range<std::int64_t>(0, sequence.end_query);
      sequence.end_query = prop::in_range<std::int64_t>(sequence.first_query + 1, sequence.end_query + 1);
      sequence.keys = slicer.keys_of(sequence);
    }
    const Bundle cut = slicer.cut(slice);
    const PreparedProblem prepared = prepare_problem(cut, slicer.options(slice), "slice");
    const attention::Result part = attention::reference(prepared.problem);
    const std::int64_t rows = compare_bits(slicer, slice, whole, part);
    RC_ASSERT(rows == prepared.problem.total_queries());
    const ProblemSizes sizes = slicer.sizes(slice);
    // Left padding gives each position a table entry: the blocks of that problem are positions.
    if (options.layout != "hf") RC_ASSERT(sizes.blocks == prepared.problem.k.blocks);
    RC_ASSERT(sizes.queries == rows);
    RC_ASSERT(sizes.query_heads == prepared.problem.query_heads);
  }));
}

INSTANTIATE_TEST_SUITE_P(Layouts, SliceLayouts, testing::ValuesIn(SmallBatch::kLayouts),
                         [](const auto& param) { return std::string(param.param); });

// Keys [4, 15) of sequence 4 (17 keys in blocks 3, 12, 1, 9, 4), 2 of 6 dims.
TEST(Slice, KeysAndDimsAreCutAtBothEnds) {
  const Bundle tensors = SmallBatch().in("nhd");
  const Slicer slicer(tensors, SmallBatch::options("nhd"), "case");
  ProblemSlice slice = slicer.whole();
  slice.sequences = {{4, 1, 15, 0, 3}};
  slice.kv_heads = {1};
  slice.group_heads = {0};
  slice.dims = 2;
  slice.only_used_blocks = slice.only_used_columns = true;
  const Bundle cut = slicer.cut(slice);
  EXPECT_THAT(cut.tensors.at("k_cache").shape, ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(cut.tensors.at("q").shape, ElementsAre(3, 1, 2));
  EXPECT_THAT(values<std::int32_t>(cut.tensors.at("block_table")), ElementsAre(2, 0, 1));  // 12, 1, 9
  EXPECT_THAT(values<std::int32_t>(cut.tensors.at("cache_seqlens")), ElementsAre(11));
  EXPECT_THAT(values<std::int32_t>(cut.tensors.at("query_offsets")), ElementsAre(0, 3));
  EXPECT_EQ(values<float>(cut.tensors.at("k_cache"))[2 * 4 * 2 + 1], SmallBatch::value(0, 4, 4, 1, 1));
  EXPECT_EQ(sizes_text(slicer.sizes(slice)),
            "1 sequence, 3 queries, 11 keys, 1 KV head, 1 query head, head size 2, 3 blocks");
}

TEST(Slice, ScalesAreCutWithTheirAxes) {
  Bundle tensors = SmallBatch().in("hnd");
  const auto scale = [&](std::vector<std::int64_t> shape) {
    Tensor tensor = make_tensor(DType::f32, std::move(shape));
    float n = 0.5;
    for (float& x : values<float>(tensor)) x = n += 0.25F;
    return tensor;
  };
  tensors.tensors["k_scale"] = scale({SmallBatch::kBlocks, SmallBatch::kHeads, SmallBatch::kPage});
  tensors.tensors["v_scale"] = scale({SmallBatch::kHeads});
  const Slicer slicer(tensors, SmallBatch::options("hnd"), "case");
  ProblemSlice slice = slicer.whole();
  slice.sequences = {slice.sequences[3]};  // blocks 5 and 0
  slice.kv_heads = {1};
  slice.only_used_blocks = slice.only_used_columns = true;
  const Bundle cut = slicer.cut(slice);
  EXPECT_THAT(cut.tensors.at("k_scale").shape, ElementsAre(2, 1, 4));
  EXPECT_EQ(values<float>(cut.tensors.at("k_scale"))[4], values<float>(tensors.tensors.at("k_scale"))[(5 * 2 + 1) * 4]);
  EXPECT_THAT(values<float>(cut.tensors.at("v_scale")), ElementsAre(1.0F));
}

}  // namespace
}  // namespace kvscope::golden::slice_test

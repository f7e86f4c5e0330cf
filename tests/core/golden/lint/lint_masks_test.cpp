// Masks beside tables with faults, and counts of findings that a mask has in many rows. tests/apps/lint_masks_test.py has
// each kind of wrong mask.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/golden/lint/lint.h"
#include "tests/core/golden/layouts/layout_cases.h"
#include "tests/core/golden/lint/lint_cases.h"

namespace kvscope::golden::lint_masks_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

Tensor ones(std::vector<std::int64_t> shape, int byte = 1) {
  Tensor tensor = make_tensor(DType::u8, std::move(shape));
  for (std::byte& b : tensor.bytes) b = static_cast<std::byte>(byte);
  return tensor;
}

std::vector<std::string> found(Bundle bundle, const LintOptions& options) {
  std::vector<std::string> lines;
  for (const LintFinding& f : lint(std::move(bundle), options).findings) {
    lines.push_back(fmt::format("{} {} {}", f.rule, f.object, f.problem));
  }
  return lines;
}

// `batch` sequences of one query and one key each, each on another block.
Bundle decode(std::int64_t batch) {
  Bundle bundle;
  bundle.tensors["k_cache"] = bundle.tensors["v_cache"] = make_tensor(DType::f32, {batch, 1, 1, 4});
  std::vector<std::int64_t> blocks;
  for (std::int64_t b = 0; b < batch; ++b) blocks.push_back(b);
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({batch, 1}, blocks);
  bundle.tensors["cache_seqlens"] =
      SmallBatch::ints<std::int32_t>({batch}, std::vector<std::int64_t>(blocks.size(), 1));
  bundle.tensors["q"] = make_tensor(DType::f32, {batch, 1, 4});
  return bundle;
}

// A mask has at most 64 findings of a rule, and one that counts the others.
TEST(LintMasks, BitsAndColumnsPastTheKeysAreCountedFrom64On) {
  for (const std::int64_t batch : {64, 65, 70}) {
    Bundle bundle = decode(batch);
    bundle.tensors["packed_custom_mask"] = ones({batch}, 0x05);  // bit 0 is the key, bit 2 is past it
    std::vector<std::string> lines = found(std::move(bundle), lint_options_for("nhd"));
    ASSERT_EQ(lines.size(), batch == 64 ? 64U : 65U);
    EXPECT_EQ(lines[63], "mask-past packed_custom_mask[63] bit 2 is 1 behind the 1 queries of 1 keys of sequence 63");
    if (batch > 64) {
      EXPECT_EQ(lines[64], fmt::format("mask-past packed_custom_mask has {} more such rows", batch - 64));
    }
  }
  // The table has room for two keys: a dense mask may have a column for each of them.
  Bundle bundle = decode(70);
  std::vector<std::int64_t> entries;
  for (std::int64_t b = 0; b < 70; ++b) entries.insert(entries.end(), {b, -1});
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({70, 2}, entries);
  bundle.tensors["attn_mask"] = ones({70, 1, 2});
  const LintReport report = lint(std::move(bundle), lint_options_for("nhd"));
  ASSERT_EQ(report.findings.size(), 65U);
  EXPECT_EQ(report.findings[0].problem, "is visible, outside the 1 keys of sequence 0");  // no others
  EXPECT_EQ(report.findings[64].problem, "has 6 more such rows");
  EXPECT_EQ(report.warnings(), 70);
}

// A sequence without keys has no row to see one, and one query's row is not shared.
TEST(LintMasks, SequencesWithoutKeysHaveNoEmptyRow) {
  Bundle bundle = decode(2);
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({2}, {0, 1});
  bundle.tensors["attn_mask"] = ones({2, 1, 1}, 0);
  EXPECT_THAT(
      found(std::move(bundle), lint_options_for("nhd")),
      ElementsAre("mask-row attn_mask[1, 0, 0] starts a row without a visible key: query 0 of sequence 1, which "
                  "has 1 keys"));
}

// One query alone, or a mask that shows nothing, is not taken for an inverted mask.
TEST(LintMasks, AreInvertedOnlyIfTheyShowLaterKeys) {
  Bundle one = decode(1);
  one.tensors["tree_mask"] = ones({1, 1}, 0);
  EXPECT_THAT(found(std::move(one), lint_options_for("nhd")), Not(Contains(testing::StartsWith("mask-sense"))));
  Bundle two = decode(2);
  two.tensors["attn_mask"] = ones({2, 1, 1}, 0);
  EXPECT_THAT(found(std::move(two), lint_options_for("nhd")), Not(Contains(testing::StartsWith("mask-sense"))));
}

// Whatever is wrong with a sequence, its mask is not read: the walk over it would leave the tensor.
TEST(LintMasks, OfSequencesWithFaultsAreNotChecked) {
  const auto not_checked = [](const std::string& name, Tensor tensor) {
    Bundle bundle = SmallBatch().in("nhd");
    bundle.tensors.erase("query_offsets");
    bundle.tensors["q"] = make_tensor(DType::f32, {5, 3, 4, 6});
    bundle.tensors["attn_mask"] = ones({3, 17});
    if (!name.empty()) bundle.tensors[name] = std::move(tensor);
    return lint(std::move(bundle), lint_options_for("nhd")).not_checked;
  };
  const std::string faulty = "attn_mask: the sequences that it is for have faults";
  EXPECT_THAT(not_checked("", {}), Not(Contains(faulty)));
  EXPECT_THAT(not_checked("cache_seqlens", SmallBatch::ints<std::int32_t>({5}, {1, 3, -4, 5, 17})), Contains(faulty));
  EXPECT_THAT(not_checked("cache_seqlens", SmallBatch::ints<std::int32_t>({5}, {1, 3, 4, 5, 25})), Contains(faulty));
  EXPECT_THAT(not_checked("q_lens", SmallBatch::ints<std::int32_t>({5}, {1, 1, 2, -1, 3})), Contains(faulty));
  EXPECT_THAT(not_checked("q_lens", SmallBatch::ints<std::int64_t>({5}, {1, 1, 2, (std::int64_t{1} << 31) + 1, 3})),
              Contains(faulty));
}

TEST(LintMasks, SayWhyTheyAreNotChecked) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["attn_mask"] = ones({3, 17});
  bundle.tensors.erase("k_cache");
  bundle.tensors.erase("v_cache");
  EXPECT_THAT(lint(std::move(bundle), lint_options_for("nhd")).not_checked,
              Contains("attn_mask: the file has no cache tensors"));
  Bundle sparse;
  sparse.tensors["kv_cache"] = make_tensor(DType::f32, {6, 2, 1, 8});
  sparse.tensors["q"] = make_tensor(DType::f32, {2, 4, 8});
  sparse.tensors["indices"] = SmallBatch::ints<std::int32_t>({2, 3}, {0, 11, -1, 5, 4, 1});
  sparse.tensors["attn_mask"] = ones({2, 3});
  LintOptions options = lint_options_for("flashmla_sparse");
  options.causal = true;
  EXPECT_THAT(lint(std::move(sparse), options).not_checked,
              Contains("attn_mask: the table lists the keys of each query"));
  Bundle without = SmallBatch().in("nhd");
  without.tensors["attn_mask"] = ones({3, 17});
  without.tensors.erase("q");
  without.tensors.erase("query_offsets");
  EXPECT_THAT(lint(std::move(without), lint_options_for("nhd")).not_checked,
              Contains("attn_mask: the file has no q or query_offsets"));
}

TEST(LintMasks, OffsetsWithoutAMaskAndSecondMasksAreFaults) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["mask_indptr"] = SmallBatch::ints<std::int32_t>({6}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(found(bundle, lint_options_for("nhd")),
              ElementsAre("missing custom_mask is missing, but mask_indptr is given"));
  bundle.tensors["mask_indptr"] = make_tensor(DType::f32, {6});
  bundle.tensors["custom_mask"] = ones({1});
  bundle.tensors["tree_mask"] = ones({3, 3});
  EXPECT_THAT(found(std::move(bundle), lint_options_for("nhd")),
              ElementsAre("type mask_indptr is f32", "shape tree_mask is given together with custom_mask"));
}

}  // namespace
}  // namespace kvscope::golden::lint_masks_test

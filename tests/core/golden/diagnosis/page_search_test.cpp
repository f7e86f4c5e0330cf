// The search for the block that a page was read from, in a pool of more blocks than are searched: those that a lookup table
// names.
#include "core/golden/diagnosis/page_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/base/random.h"
#include "core/golden/diagnosis/diagnose.h"
#include "core/golden/golden_bundle.h"

namespace kvscope::golden::page_search_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kPage = 2, kDims = 8;

// Two sequences of one query, one head; 13 and 5 keys in pages of 2. Every row of the pool holds numbers.
struct Case {
  std::int64_t blocks;
  std::vector<float> q, k, v;
  std::vector<std::uint32_t> table{40, 7, 4999, 12, 3, 88, 61, 9, 5, 4000, 0, 0, 0, 0};  // [2, 7]
  std::vector<std::int64_t> offsets{0, 1, 2}, lengths{13, 5};
  attention::Problem problem;

  explicit Case(std::int64_t count) : blocks(count) {
    const auto fill = [](std::vector<float>& x, std::int64_t size, std::uint64_t stream) {
      for (std::int64_t n = 0; n < size; ++n)
        x.push_back(static_cast<float>(CounterRng(17, stream).bell(static_cast<std::uint64_t>(n))));
    };
    fill(q, 2 * kDims, 0);
    fill(k, blocks * kPage * kDims, 1);
    fill(v, blocks * kPage * kDims, 2);
    for (std::uint32_t& entry : table) entry %= static_cast<std::uint32_t>(blocks);
    problem.batch = 2;
    problem.query_heads = 1;
    problem.q = reinterpret_cast<const std::byte*>(q.data());
    problem.query_offsets = offsets;
    problem.key_lengths = lengths;
    problem.k = {.data = reinterpret_cast<const std::byte*>(k.data()),
                 .blocks = blocks,
                 .page_size = kPage,
                 .heads = 1,
                 .head_size = kDims,
                 .block_stride = kPage * kDims,
                 .token_stride = kDims,
                 .head_stride = kDims,
                 .table = table.data(),
                 .table_stride = 7};
    problem.v = problem.k;
    problem.v.data = reinterpret_cast<const std::byte*>(v.data());
    problem.options.scale = 0.35;
  }
};

// The diagnosis of a kernel that reads page 3 of sequence 0 from `block`.
Diagnosis read_from(std::int64_t blocks, std::uint32_t block) {
  const Case right(blocks);
  Case wrong(blocks);
  wrong.table[3] = block;
  const Bundle golden = golden_bundle(right.problem, attention::reference(right.problem), {});
  const attention::Result result = attention::reference(wrong.problem);
  Bundle candidate;
  candidate.tensors["o"] = make_tensor(DType::f32, {2, 1, kDims});
  candidate.tensors["lse"] = make_tensor(DType::f32, {2, 1});
  convert(DType::f64, reinterpret_cast<const std::byte*>(result.o.data()), DType::f32,
          candidate.tensors["o"].bytes.data(), 2 * kDims, Overflow::non_saturating);
  convert(DType::f64, reinterpret_cast<const std::byte*>(result.lse.data()), DType::f32,
          candidate.tensors["lse"].bytes.data(), 2, Overflow::non_saturating);
  return diagnose({right.problem, golden, candidate, {}});
}

TEST(PageSearch, OfALargePoolTriesTheBlocksThatATableNames) {
  for (const auto& [block, owner] : std::vector<std::pair<std::uint32_t, std::string>>{
           {4999, "; block 4999 is page 2 of sequence 0"}, {4000, "; block 4000 is page 2 of sequence 1"}}) {
    const Diagnosis d = read_from(5000, block);
    ASSERT_FALSE(d.explanations.empty()) << text_report(d);
    EXPECT_EQ(d.explanations.front().cause,
              "page 3 of sequence 0 was read from block " + std::to_string(block) + ", not 12" + owner);
    EXPECT_EQ(d.explanations.front().page, 3);
  }
  // A block that no table names is not found: none of the hypotheses explains the row.
  const Diagnosis d = read_from(5000, 4500);
  EXPECT_TRUE(d.explanations.empty()) << text_report(d);
  EXPECT_THAT(text_report(d), HasSubstr("none of "));
}

// At the limit every block is searched.
TEST(PageSearch, OfASmallerPoolTriesEveryBlock) {
  const Diagnosis d = read_from(kSearchedBlocks, 4050);
  ASSERT_FALSE(d.explanations.empty()) << text_report(d);
  EXPECT_EQ(d.explanations.front().cause, "page 3 of sequence 0 was read from block 4050, not 12");
  EXPECT_TRUE(d.certain) << text_report(d);
  EXPECT_TRUE(read_from(kSearchedBlocks + 1, 4050).explanations.empty());
}

}  // namespace
}  // namespace kvscope::golden::page_search_test

#include "core/cache/sparse_remap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/core/cache/fixtures.h"
#include "tests/property.h"

namespace kvscope::sparse_remap_test {
namespace {

using test::fix_aq;
using test::fix_m;
using test::message_of;
using test::seq;
using testing::ElementsAre;

// The input of the tests: pages of 16, 8 real blocks, two sequences of 2 and 1 rows.
struct Batch {
  std::vector<std::uint32_t> table{6, 2, 8, 8, 0, 5, 7, 8};
  std::vector<std::uint32_t> offsets{0, 2, 3};
  std::vector<std::int32_t> logical{0, 17, -1, 31, 40, 64, 16, 47, 33};
  [[nodiscard]] SparseRemap remap() const {
    return {.logical = {logical.data(), {3, 3}},
            .offsets = {offsets.data(), {3}},
            .lookup_table = {table.data(), {2, 4}},
            .page_size = 16,
            .invalid = 8};
  }
};

// 40 has a sentinel entry, 64 is past the table; both become -1.
TEST(SparseRemap, EncodesBlockAndSlotOrNothing) {
  const Batch batch;
  std::vector<std::int32_t> out(9, 12345);
  remap_sparse_indices(batch.remap(), out);
  EXPECT_THAT(out, ElementsAre(96, 33, -1, 47, -1, -1, 80, 127, 113));
}

// The same indices with other strides (a transposed list); the output is still dense.
TEST(SparseRemap, ReadsAnyStridesAndWritesDense) {
  const Batch batch;
  const std::vector<std::int32_t> transposed{0, 31, 16, 17, 40, 47, -1, 64, 33};
  SparseRemap remap = batch.remap();
  remap.logical = {transposed.data(), {3, 3}, {1, 3}};
  std::vector<std::int32_t> out(9, 12345);
  remap_sparse_indices(remap, out);
  EXPECT_THAT(out, ElementsAre(96, 33, -1, 47, -1, -1, 80, 127, 113));
}

// With the pool's extent N + 1 as the first invalid id, a sentinel is accepted and encodes the null page; N is correct.
TEST(SparseRemap, LetsTheNullPageThroughWhenTheExtentIsPassed) {
  const Batch batch;
  const LookupTable table = batch.remap().lookup_table;
  EXPECT_EQ(remap_sparse_index(40, seq(0), table, 16, 8), -1);
  EXPECT_EQ(remap_sparse_index(40, seq(0), table, 16, 9), 8 * 16 + 8);
}

// The order of the rules: a negative index is tested first and unchanged, even for a sequence without a row.
TEST(SparseRemap, KeepsNegativeIndicesAndGivesNothingForUnknownSequences) {
  const Batch batch;
  const LookupTable table = batch.remap().lookup_table;
  EXPECT_EQ(remap_sparse_index(-7, seq(0), table, 16, 8), -7);
  EXPECT_EQ(remap_sparse_index(-7, seq(9), table, 16, 8), -7);
  EXPECT_EQ(remap_sparse_index(0, seq(2), table, 16, 8), -1);
  EXPECT_EQ(remap_sparse_index(63, seq(0), table, 16, 8), -1);  // sentinel
  EXPECT_EQ(remap_sparse_index(64, seq(0), table, 16, 8), -1);  // past the columns
  EXPECT_EQ(remap_sparse_index(47, seq(1), table, 16, 8), 127);
}

TEST(SparseRemap, RejectsWhatAKernelWouldGuess) {
  Batch batch;
  std::vector<std::int32_t> out(9);
  batch.offsets = {0, 2, 2};
  EXPECT_EQ(message_of<GeometryError>([&] { remap_sparse_indices(batch.remap(), out); }),
            "sparse remap: row 2 of 3 belongs to no sequence: offsets must run from 0 to 3");
  batch.offsets = {1, 2, 3};
  EXPECT_EQ(message_of<GeometryError>([&] { remap_sparse_indices(batch.remap(), out); }),
            "sparse remap: row 0 of 3 belongs to no sequence: offsets must run from 0 to 3");
  batch.offsets = {0, 3, 2};
  EXPECT_EQ(message_of<GeometryError>([&] { remap_sparse_indices(batch.remap(), out); }),
            "sparse remap: offsets[2] = 2 is less than offsets[1] = 3: offsets never fall");
  out.resize(8);
  EXPECT_EQ(message_of<GeometryError>([&] { remap_sparse_indices(batch.remap(), out); }),
            "sparse remap: 3 rows of 3 indices need an output of 9, not 8");
  const LookupTable table = batch.remap().lookup_table;
  EXPECT_EQ(message_of<GeometryError>([&] { (void)remap_sparse_index(0, seq(0), table, 0, 8); }),
            "sparse remap: a page of 0 tokens: give 1 or more");
  EXPECT_EQ(message_of<IndexError>([&] { (void)remap_sparse_index(0, seq(-1), table, 16, 8); }),
            "sparse remap: sequence -1 is negative: they count from 0");
  const std::vector<std::uint32_t> large{4'000'000'000U};
  EXPECT_THROW((void)remap_sparse_index(0, seq(0), {large.data(), {1, 1}}, 16, std::int64_t{1} << 33), OverflowError);
}

TEST(SparseRemap, DoesNothingWithoutSlots) {
  Batch batch;
  SparseRemap remap = batch.remap();
  remap.logical.extents = {0, 3};
  remap.offsets.extents = {0};  // not read
  EXPECT_NO_THROW(remap_sparse_indices(remap, {}));
}

// A naive loop over random batches: for each slot, search for its sequence and its page.
TEST(SparseRemap, AgreesWithANaiveLoop) {
  const bool ok = prop::check("remap against a naive loop", [] {
    const auto pick = [](int low, int high) { return prop::in_range(low, high); };
    const int B = pick(1, 5), columns = pick(1, 6), page = pick(1, 9), width = pick(1, 6), invalid = pick(1, 12);
    std::vector<std::uint32_t> table, offsets{0};
    for (int i = 0; i < B * columns; ++i) table.push_back(static_cast<std::uint32_t>(pick(0, 14)));
    for (int b = 0; b < B; ++b) offsets.push_back(offsets.back() + static_cast<std::uint32_t>(pick(0, 4)));
    const auto rows = static_cast<int>(offsets.back());
    std::vector<std::int32_t> logical;
    for (int i = 0; i < rows * width; ++i) logical.push_back(pick(-2, page * columns + 3));
    std::vector<std::int32_t> out(logical.size(), 777);
    remap_sparse_indices({.logical = {logical.data(), {rows, width}},
                          .offsets = {offsets.data(), {B + 1}},
                          .lookup_table = {table.data(), {B, columns}},
                          .page_size = page,
                          .invalid = invalid},
                         out);
    for (int i = 0; i < rows * width; ++i) {
      int b = 0;
      for (int s = 0; s < B; ++s) {
        if (static_cast<int>(offsets[static_cast<std::size_t>(s)]) <= i / width &&
            i / width < static_cast<int>(offsets[static_cast<std::size_t>(s) + 1])) {
          b = s;
        }
      }
      const int t = logical[static_cast<std::size_t>(i)];
      int want = t;
      if (t >= 0) {
        want = -1;
        for (int c = 0; c < columns; ++c) {
          const auto block = static_cast<int>(table[static_cast<std::size_t>(b * columns + c)]);
          for (int s = 0; s < page; ++s) {
            if (c * page + s == t && block < invalid) want = block * page + s;
          }
        }
      }
      RC_ASSERT(out[static_cast<std::size_t>(i)] == want);
    }
  });
  EXPECT_TRUE(ok);
}

// Each row separately: a compaction over the whole output would move entries of the second row into the first.
TEST(SparseRemap, MovesARowsEntriesToTheLeftWhenHolesAreCompacted) {
  Batch batch;
  SparseRemap remap = batch.remap();
  remap.holes = SparseHoles::compacted_left;
  std::vector<std::int32_t> out(9, 12345);
  remap_sparse_indices(remap, out);
  EXPECT_THAT(out, ElementsAre(96, 33, -1, 47, -1, -1, 80, 127, 113));
  batch.logical = {-7, 0, 40, 40, -1, 64, 64, 16, -3};
  remap_sparse_indices(remap, out);
  EXPECT_THAT(out, ElementsAre(96, -1, -1, -1, -1, -1, 80, -1, -1));
  remap.holes = SparseHoles::kept;
  remap_sparse_indices(remap, out);
  EXPECT_THAT(out, ElementsAre(-7, 96, -1, -1, -1, -1, -1, 80, -3));
}

// Every row of up to 5 entries over {token of page 0, token of page 1, sentinel, past the table, -1, -7}: the entries
// that are not negative in the kept row, collected one by one, then -1.
TEST(SparseRemap, CompactsEveryShortRowToTheEntriesOfTheKeptOne) {
  constexpr std::int32_t kChoices[] = {1, 17, 40, 99, -1, -7};
  const Batch batch;
  const std::vector<std::uint32_t> one_row{0, 1};
  for (int width = 0; width <= 5; ++width) {
    int rows = 1;
    for (int i = 0; i < width; ++i) rows *= 6;
    for (int number = 0; number < rows; ++number) {
      std::vector<std::int32_t> logical;
      for (int i = 0, rest = number; i < width; ++i, rest /= 6) logical.push_back(kChoices[rest % 6]);
      SparseRemap remap = batch.remap();
      remap.logical = {logical.data(), {1, width}};
      remap.offsets = {one_row.data(), {2}};
      std::vector<std::int32_t> kept(logical.size(), 777), compacted(logical.size(), 777), want;
      remap_sparse_indices(remap, kept);
      remap.holes = SparseHoles::compacted_left;
      remap_sparse_indices(remap, compacted);
      for (const std::int32_t encoded : kept) {
        if (encoded >= 0) want.push_back(encoded);
      }
      while (want.size() < kept.size()) want.push_back(-1);
      ASSERT_EQ(compacted, want) << "width " << width << ", row " << number;
    }
  }
}

// MLA, two layers, pages of 16: 32 rows per block.
TEST(TmaRowOfAnEncodedIndex, KeepsNothingAsItsConsumerDoes) {
  auto f = test::paged_fixture({1, 4, true}, {9, 1, 2, 16, 1, 4}, {0}, test::table_of({{6, 2}}, 24, 8), 24, 1, 1);
  const PagedKVCache k = f.k(0);
  const std::vector<std::int32_t> encoded{96, 33, -1, 47, -1, -1, 80, 127, 113};
  std::vector<std::int32_t> rows;
  for (const std::int32_t e : encoded) rows.push_back(prefill_tma_row(k, e));
  EXPECT_THAT(rows, ElementsAre(192, 65, -1, 79, -1, -1, 160, 239, 225));
  rows.clear();
  for (const std::int32_t e : encoded) rows.push_back(decode_tma_row(k, e));
  EXPECT_THAT(rows, ElementsAre(192, 65, -1, 79, -1, -1, 160, 239, 225));
  // Decode keeps only -1; any other negative number is converted and is out of bounds in both cases.
  EXPECT_EQ(prefill_tma_row(k, -2), -2);
  EXPECT_EQ(decode_tma_row(k, -2), -18);
}

// Worked numbers of get_tma_row.
TEST(TmaRowOfAnEncodedIndex, IsNotMinusOneByArithmetic) {
  EXPECT_EQ(fix_m().k(0).get_tma_row(-1), -9);
  EXPECT_EQ(fix_m(1).k(0).get_tma_row(-1), -1);
  EXPECT_EQ(test::fix_a().k(0).get_tma_row(-1), -21);
}

TEST(DecodeListPosition, StaysInTheListAndReadsOneEntryOfAnEmptyOne) {
  EXPECT_EQ(decode_list_position(0, 0), 0);
  EXPECT_EQ(decode_list_position(7, 0), 0);
  EXPECT_EQ(decode_list_position(7, 1), 0);
  EXPECT_EQ(decode_list_position(2, 3), 2);
  EXPECT_EQ(decode_list_position(7, 3), 2);
}

// Encoded indices end at NB * P = 20, well below the 100 rows of the view: 20 must give 0 and not memory past the pool.
TEST(SparseScale, ReadsTheRowsScaleAndZeroOutside) {
  auto a = fix_aq();
  const PagedKVCache k = a.k(1);
  EXPECT_EQ(sparse_scale(k, 14, 3), 16 + 74 * 4 + 3.0);  // block 3, slot 2
  EXPECT_EQ(sparse_scale(k, 19, 0), 16 + 99 * 4.0);
  EXPECT_EQ(sparse_scale(k, 20, 0), 0.0);
  EXPECT_EQ(sparse_scale(k, 99, 0), 0.0);
  EXPECT_EQ(sparse_scale(k, -1, 0), 0.0);
  EXPECT_EQ(message_of<IndexError>([&] { (void)sparse_scale(k, 0, 4); }),
            "sparse scale: granule 4 is outside [0, 4): scales of a row, all heads together");
  PagedTensors tensors = a.tensors();
  a.pool.resize(2000);
  tensors.blocks.data = test::bytes_of(a.pool);
  tensors.page_stride = 400;
  const PagedKVCache apart = PagedKVCacheCollection(a.params, tensors).get_key_cache(LayerIdx{1});
  EXPECT_EQ(message_of<GeometryError>([&] { (void)sparse_scale(apart, 0, 0); }),
            "sparse scale: scales have 24 rows from block to block and values 25: the row of a value names its scale "
            "only when "
            "both are equal");
}

}  // namespace
}  // namespace kvscope::sparse_remap_test

#include "core/golden/lint/lint.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/core/golden/layouts/layout_cases.h"
#include "tests/core/golden/lint/lint_cases.h"
#include "tests/property.h"

namespace kvscope::golden::lint_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> lines(const LintReport& report) {
  std::vector<std::string> found;
  for (const LintFinding& finding : report.findings) found.push_back(finding.rule + " " + finding.object);
  return found;
}

// --- the property, for layout nhd: a checker that shares nothing with the rules -------------------------------------

struct AnyCase {
  std::int64_t blocks, page_size, columns;
  std::vector<std::int64_t> lengths;
  std::vector<std::vector<std::int64_t>> table;
  std::vector<int> contents;  // [block] equal numbers: equal blocks
};

AnyCase any_case() {
  AnyCase c;
  c.blocks = prop::in_range<std::int64_t>(1, 9);
  c.page_size = prop::in_range<std::int64_t>(1, 4);
  c.columns = prop::in_range<std::int64_t>(1, 5);
  const auto batch = prop::in_range<std::int64_t>(1, 5);
  for (std::int64_t b = 0; b < batch; ++b) {
    const bool odd = prop::in_range(0, 12) == 0;
    c.lengths.push_back(odd ? -1 : prop::in_range<std::int64_t>(0, c.page_size * c.columns + 2));
    std::vector<std::int64_t> row;
    for (std::int64_t p = 0; p < c.columns; ++p) {
      const bool as_before = b > 0 && prop::in_range(0, 2) == 0;
      row.push_back(as_before ? c.table[static_cast<std::size_t>(b - 1)][static_cast<std::size_t>(p)]
                              : prop::in_range<std::int64_t>(-1, c.blocks + 1));
    }
    c.table.push_back(std::move(row));
  }
  for (std::int64_t n = 0; n < c.blocks; ++n) c.contents.push_back(prop::in_range(0, 4));
  return c;
}

Bundle bundle_of(const AnyCase& c) {
  Bundle bundle;
  const auto batch = static_cast<std::int64_t>(c.lengths.size());
  for (const char* name : {"k_cache", "v_cache"}) {
    Tensor cache = make_tensor(DType::f32, {c.blocks, c.page_size, 1, 2});
    for (std::size_t i = 0; i < values<float>(cache).size(); ++i) {
      values<float>(cache)[i] = static_cast<float>(c.contents[i / static_cast<std::size_t>(c.page_size * 2)]);
    }
    bundle.tensors[name] = std::move(cache);
  }
  std::vector<std::int64_t> entries;
  for (const auto& row : c.table) entries.insert(entries.end(), row.begin(), row.end());
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({batch, c.columns}, entries);
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({batch}, c.lengths);
  bundle.tensors["q"] = make_tensor(DType::f32, {batch, 1, 2});
  return bundle;
}

std::set<std::string> by_brute_force(const AnyCase& c) {
  std::set<std::string> found;
  const auto batch = static_cast<int>(c.lengths.size());
  const auto entry = [&](int b, int p) { return c.table[static_cast<std::size_t>(b)][static_cast<std::size_t>(p)]; };
  const auto length = [&](int b) { return c.lengths[static_cast<std::size_t>(b)]; };
  const auto valid = [&](int b, int p) { return entry(b, p) >= 0 && entry(b, p) < c.blocks; };
  const auto pages = [&](int b) {
    std::int64_t n = 0;
    while (n < c.columns && n * c.page_size < length(b)) ++n;
    return static_cast<int>(n);
  };
  for (int b = 0; b < batch; ++b) {
    if (length(b) < 0 || length(b) > c.columns * c.page_size)
      found.insert("length cache_seqlens[" + std::to_string(b) + "]");
    for (int p = 0; p < pages(b); ++p) {
      const std::string at = " block_table[" + std::to_string(b) + ", " + std::to_string(p) + "]";
      if (!valid(b, p)) {
        found.insert("range" + at);
        continue;
      }
      bool again = false;
      for (int earlier = 0; earlier < p; ++earlier) again = again || entry(b, earlier) == entry(b, p);
      if (again) found.insert("duplicate" + at);
      // The first use of the block, by sequence and page.
      int owner = -1, owner_page = -1;
      for (int x = 0; x < batch && owner < 0; ++x) {
        for (int y = 0; y < pages(x) && owner < 0; ++y) {
          if (entry(x, y) == entry(b, p)) {
            owner = x;
            owner_page = y;
          }
        }
      }
      if (owner != b && !again) {
        bool wrong = owner_page != p;
        for (int before = 0; before < p && !wrong; ++before) {
          if (entry(owner, before) == entry(b, before)) continue;
          wrong = !valid(owner, before) || !valid(b, before) ||
                  c.contents[static_cast<std::size_t>(entry(owner, before))] !=
                      c.contents[static_cast<std::size_t>(entry(b, before))];
        }
        if (wrong) found.insert("sharing" + at);
      }
      const std::int64_t newest = length(b) - 1;
      for (int other = 0; other < batch && newest / c.page_size == p; ++other) {
        if (other != b && p < pages(other) && entry(other, p) == entry(b, p) && length(other) > newest) {
          found.insert("write" + at);
        }
      }
    }
  }
  return found;
}

TEST(LintProperty, FindsWhatABruteForceCheckerFinds) {
  EXPECT_TRUE(prop::check("lint of layout nhd finds what a brute-force checker finds", [] {
    const AnyCase c = any_case();
    const std::vector<std::string> found = lines(lint(bundle_of(c), lint_options_for("nhd")));
    const std::set<std::string> once(found.begin(), found.end());
    RC_ASSERT(once == by_brute_force(c));
    RC_ASSERT(once.size() == found.size());  // each fault is reported once
  }));
}

// --- each rule, with the text that it prints ------------------------------------------------------------------------

class LintLayouts : public testing::TestWithParam<const char*> {};

// Poisoned slots, padding of nonsense and unowned blocks are legal.
TEST_P(LintLayouts, ALegalBatchHasNoFinding) {
  const LintReport report = lint(SmallBatch().in(GetParam()), lint_options_for(GetParam()));
  EXPECT_EQ(lines(report), std::vector<std::string>()) << text_report(report, "x");
  EXPECT_EQ(report.sequences, 5);
}

TEST_P(LintLayouts, AnEmptyFileHasEachMissingTensorOnce) {
  const LintReport report = lint({}, lint_options_for(GetParam()));
  EXPECT_THAT(lines(report), Contains("missing cache tensors"));
  const LayoutDescription& layout = *find_layout(GetParam());
  EXPECT_GE(report.faults(), layout.table.form == TableForm::dense    ? 1
                             : layout.table.form == TableForm::ragged ? 2
                                                                      : 3);
}

INSTANTIATE_TEST_SUITE_P(Layouts, LintLayouts, testing::ValuesIn(SmallBatch::kLayouts),
                         [](const auto& param) { return std::string(param.param); });

TEST(Lint, FaultsOfOffsetsAndLastPagesAreReportedTogether) {
  Bundle bundle = SmallBatch().in("flashinfer");
  bundle.tensors["kv_indptr"] = SmallBatch::ints<std::int32_t>({6}, {1, 2, 1, 4, 6, 99});
  bundle.tensors["kv_last_page_len"] = SmallBatch::ints<std::int32_t>({5}, {0, 4, 4, 5, 1});
  const LintReport report = lint(std::move(bundle), lint_options_for("flashinfer"));
  EXPECT_THAT(lines(report), ElementsAre("indptr kv_indptr[0]", "indptr kv_indptr[2]", "indptr kv_indptr[5]",
                                         "last-page kv_last_page_len[0]", "last-page kv_last_page_len[3]",
                                         "write kv_indices[1]"));  // of sequences 0 and 2, by the wrong offsets
  EXPECT_THAT(text_report(report, "x.npz"),
              HasSubstr("FAULT    last-page  kv_last_page_len[3] is 5; allowed: [1, 4]; the kernel would read past the "
                        "page\n"));
  EXPECT_EQ(report.findings[4].value, 5);
}

TEST(Lint, QueryOffsetsMustRiseToTheRowsOfQ) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["query_offsets"] = SmallBatch::ints<std::int32_t>({6}, {0, 1, 2, 1, 5, 7});
  EXPECT_THAT(lines(lint(std::move(bundle), lint_options_for("nhd"))),
              ElementsAre("indptr query_offsets[3]", "indptr query_offsets[5]"));
}

// A window hides the first pages, whose blocks an engine may have given to another sequence.
TEST(Lint, PagesThatTheMaskHidesAreNotJudged) {
  SmallBatch batch;
  batch.table[4][0] = 77;
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["block_table"] = batch.table_tensor(-1);
  LintOptions options = lint_options_for("nhd");
  Bundle same = bundle;
  EXPECT_THAT(lines(lint(std::move(same), options)), ElementsAre("range block_table[4, 0]"));
  options.layout.attention.mask = MaskKind::sliding_window;
  options.layout.attention.window_left = 3;
  EXPECT_THAT(lines(lint(std::move(bundle), options)), ElementsAre());
}

TEST(Lint, VectorReadsPastARowAndPastTheTensorAreWarnings) {
  LintOptions options = lint_options_for("nhd");
  options.vector_read = 4;
  const LintReport report = lint(SmallBatch().in("nhd"), options);  // 6 columns, 1, 1, 1, 2 and 5 pages
  EXPECT_THAT(lines(report), ElementsAre("vector block_table", "vector block_table[4, 4]"));
  EXPECT_EQ(report.faults(), 0);
  EXPECT_EQ(report.warnings(), 2);
  options.vector_read = 2;
  EXPECT_THAT(lines(lint(SmallBatch().in("nhd"), options)), ElementsAre());
}

// 2^31 elements are 16,384 blocks of 2^17: block 16,383 is the last one that 32 bits reach.
TEST(Lint, OffsetsOf32BitsAreJudgedByTheLargestUsedBlock) {
  for (const std::int64_t block : {16383, 16384}) {
    Bundle bundle;
    bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, 1}, {block});
    bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {1});
    LintOptions options = lint_options_for("nhd");
    options.cache_shape = {20000, 128, 8, 128};
    const LintReport report = lint(std::move(bundle), options);
    if (block == 16383) {
      EXPECT_EQ(lines(report), std::vector<std::string>()) << text_report(report, "x");
    } else {
      EXPECT_THAT(lines(report), ElementsAre("overflow block_table[0, 0]", "overflow block_table[0, 0]"));
      EXPECT_EQ(report.findings[0].value, (std::int64_t{16385} << 17) - 1);  // element
      EXPECT_EQ(report.findings[1].value, (std::int64_t{16385} << 18) - 1);  // byte
    }
  }
}

// A row of 6 f32 is 24 bytes: not a multiple of 16.
TEST(Lint, TmaRulesNameTheStrideAndTheBox) {
  LintOptions options = lint_options_for("nhd");
  options.tma = true;
  options.box = {3, 6};
  const LintReport report = lint(SmallBatch().in("nhd"), options);
  EXPECT_EQ(report.faults(), 0);
  const std::string text = text_report(report, "x");
  EXPECT_THAT(text, HasSubstr("24"));
  EXPECT_THAT(text, HasSubstr("V10"));
  EXPECT_THAT(text, HasSubstr("box has 3 rows, but a page has 4; allowed: divisors of 4"));
}

TEST(Lint, SharingWithoutCacheTensorsIsAWarning) {
  Bundle bundle;
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({2, 2}, {3, 5, 4, 5});
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({2}, {7, 8});
  LintOptions options = lint_options_for("nhd");
  options.cache_shape = {6, 4, 1, 8};
  const LintReport report = lint(std::move(bundle), options);
  EXPECT_THAT(lines(report), ElementsAre("sharing block_table[1, 1]"));
  EXPECT_EQ(report.faults(), 0);
}

TEST(Lint, IndexTensorsOfFloatsAndOptionsBelowOneAreRejected) {
  Bundle bundle = SmallBatch().in("nhd");
  bundle.tensors["block_table"] = make_tensor(DType::f32, {5, 6});
  EXPECT_THAT(lines(lint(std::move(bundle), lint_options_for("nhd"))), ElementsAre("type block_table"));
  LintOptions options = lint_options_for("nhd");
  options.vector_read = 0;
  options.box = {0, 1};
  EXPECT_EQ(
      message_of([&] { static_cast<void>(lint({}, options)); }),
      "command line rejected, 2 faults:\n  --vector-read: 0 entries: give at least 1\n  --box: 0 rows, 1 elements: "
      "give at least 1 of each");
}

}  // namespace
}  // namespace kvscope::golden::lint_test

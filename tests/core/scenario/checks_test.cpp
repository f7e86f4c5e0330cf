#include "core/scenario/checks.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/detail/fault_list.h"
#include "tests/core/scenario/support.h"

namespace kvscope::checks_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Fault> after(const std::function<void(Scenario&)>& change) {
  Scenario s = small_scenario();
  change(s);
  return check_scenario(s);
}

TEST(Checks, TheFixtureItselfIsFine) {
  EXPECT_THAT(after([](Scenario&) {}), IsEmpty());
}

TEST(Checks, QueryHeadsMustShareTheKvHeadsEvenly) {
  EXPECT_THAT(after([](Scenario& s) { s.model.query_heads = 7; }),
              ElementsAre(Fault{"$.model.query_heads",
                                "7 query heads cannot share 2 kv heads evenly: choose a multiple of 2"}));
}

TEST(Checks, AnMlaModelHasOneRowAValuePartAndAScaleOfItsOwn) {
  const auto mla = [](Scenario& s) {
    s.model = {"custom", 3, 6, 1, 20, true, 16};
    s.attention.scale = 0.25;
  };
  EXPECT_THAT(after(mla), IsEmpty());
  EXPECT_THAT(after([&](Scenario& s) {
                mla(s);
                s.model.kv_heads = 2;
                s.model.value_size = 21;
                s.attention.scale.reset();
              }),
              ElementsAre(Fault{"$.model.kv_heads",
                                "2 is not 1: all query heads of an MLA model share one latent row; "
                                "choose 1, or \"is_mla\": false"},
                          Fault{"$.model.value_size", "21 is more than the head size 20: choose at most 20"},
                          Fault{"$.attention.scale",
                                "missing: an MLA model has no default, because a row's width is not the query's before "
                                "absorption; for DeepSeek-V3 write 0.07216878364870322 (1/sqrt(192)), or "
                                "0.1352337788608801 with its rope scaling"}));
}

TEST(Checks, OnlyMlaTakesVFromAPartOfTheRow) {
  EXPECT_THAT(after([](Scenario& s) { s.model.value_size = 19; }),
              ElementsAre(Fault{"$.model.value_size",
                                "19 is not the head size 20: only an MLA model takes V from a part "
                                "of the row; choose 20"}));
}

// Columns of a stage, of registers and of the cache are those of the model's heads.
TEST(Checks, TheLdsOptionsStayInsideTheModelsHeads) {
  EXPECT_THAT(after([](Scenario& s) {
                s.lds = {
                    .full_kv = true, .smem_depth = 16, .cache_depth = 20, .head_dim_offset = 4, .reg_chunk_depth = 16};
              }),
              IsEmpty());
  EXPECT_THAT(after([](Scenario& s) {
                s.lds.cache_depth = 24;
                s.lds.head_dim_offset = 4;
                s.lds.smem_depth = 15;
                s.lds.reg_chunk_depth = 17;
              }),
              ElementsAre(Fault{"$.lds.cache_depth",
                                "24 is not the head size 20: rows of the scenario's cache are that wide; choose 20, or "
                                "0"},
                          Fault{"$.lds.smem_depth",
                                "15 columns of a stage do not hold the 16 that are staged: choose at least 16, 0, or "
                                "\"full_kv\": false"},
                          Fault{"$.lds.reg_chunk_depth",
                                "17 columns in registers are more than the 16 that are staged: choose at most 16, or "
                                "0"}));
  EXPECT_THAT(after([](Scenario& s) { s.lds.head_dim_offset = 20; }),
              ElementsAre(Fault{"$.lds.head_dim_offset",
                                "20 is outside [0, 20), the elements of a head: choose a column of it"}));
  EXPECT_THAT(after([](Scenario& s) {
                s.lds.full_kv = false;
                s.lds.smem_depth = 15;
              }),
              IsEmpty());
}

TEST(Checks, ScalesBelongToEightBitsAndToOneHead) {
  EXPECT_THAT(after([](Scenario& s) {
                s.cache.dtype = DType::e5m2;
                s.cache.quantization = Quantization{DType::e8m0, 20};
              }),
              IsEmpty());
  EXPECT_THAT(after([](Scenario& s) {
                s.cache.quantization = Quantization{DType::f32, 21};
              }),
              ElementsAre(Fault{"$.cache.quantization",
                                "a f32 cache takes no scales: choose dtype e4m3 or e5m2, or leave "
                                "quantization out"},
                          Fault{"$.cache.quantization.granularity",
                                "21 is outside [1, 20], the elements of a head: choose 20 for one scale a head"}));
}

TEST(Checks, AContinuousCacheReservesAndSharesNothing) {
  const auto continuous = [](Scenario& s) {
    s.cache.kind = CacheKind::continuous;
    s.cache.max_tokens = 40;
    s.cache.prefix_sharing = false;
  };
  EXPECT_THAT(after(continuous), IsEmpty());
  EXPECT_THAT(after([&](Scenario& s) {
                continuous(s);
                s.cache.max_tokens = 0;
                s.cache.prefix_sharing = true;
                s.cache.dtype = DType::e4m3;
                s.cache.quantization = Quantization{DType::f32, 4};
              }),
              ElementsAre(Fault{"$.cache.max_tokens",
                                "0 is outside [1, 2147483647]: a continuous cache reserves that many tokens for every "
                                "sequence, so choose the longest length expected"},
                          Fault{"$.cache.prefix_sharing", "true needs pages to share: choose kind paged, or false"},
                          Fault{"$.cache.quantization",
                                "a continuous cache has no scales: choose kind paged, or leave quantization out"}));
  EXPECT_THAT(after([&](Scenario& s) {
                continuous(s);
                s.model = {"custom", 3, 6, 1, 20, true, 16};
                s.attention.scale = 1;
              }),
              ElementsAre(Fault{"$.cache.kind",
                                "a continuous cache has slots for K and V, an MLA model has one: choose paged"}));
}

// 2 x 3 layers x 12 tokens = 72 rows per block; 2^32 / 72 = 59,652,323, less one for the null page. One block more must
// fail: a check of bytes, or one that omits the null page, would accept it.
TEST(Checks, RowsMustBeCountableInThirtyTwoBits) {
  EXPECT_THAT(after([](Scenario& s) { s.cache.blocks = 59'652'322; }), IsEmpty());
  EXPECT_THAT(after([](Scenario& s) { s.cache.blocks = 59'652'323; }),
              ElementsAre(Fault{"$.cache.blocks",
                                "59652323 blocks of 72 rows (2 slots x 3 layers x 12 tokens) are more "
                                "rows than a 32-bit row number can name: choose at most 59652322"}));
  EXPECT_THAT(
      after([](Scenario& s) {  // the product of the largest values does not overflow
        s.model.layers = 1024;
        s.cache.kind = CacheKind::continuous;
        s.cache.prefix_sharing = false;
        s.cache.max_tokens = 2'147'483'647;
        s.cache.blocks = 2'147'483'646;
      }),
      ElementsAre(Fault{"$.cache.blocks",
                        "2147483646 blocks of 4398046509056 rows (2 slots x 1024 layers x 2147483647 tokens) are "
                        "more rows than a 32-bit row number can name: choose smaller blocks"}));
}

// MLA has one slot, so twice as many blocks fit.
TEST(Checks, AnMlaBlockHasHalfTheRows) {
  const auto mla = [](std::int64_t blocks) {
    return after([=](Scenario& s) {
      s.model = {"custom", 3, 6, 1, 20, true, 16};
      s.attention.scale = 1;
      s.cache.blocks = blocks;
    });
  };
  EXPECT_THAT(mla(119'304'646), IsEmpty());
  EXPECT_THAT(mla(119'304'647), testing::SizeIs(1));
}

TEST(Checks, RequestsAreRequired) {
  EXPECT_THAT(after([](Scenario& s) { s.requests.list.clear(); }),
              ElementsAre(Fault{"$.requests", "no source of requests: give a list, a generator or a file"}));
}

TEST(Checks, SamplesAreAtLeastOneAndNeedPagesToShare) {
  for (const std::int64_t samples : {1, 2, 64}) {
    EXPECT_THAT(after([&](Scenario& s) { s.requests.list[0].samples = samples; }), IsEmpty());
  }
  for (const std::int64_t samples : {0, 65}) {
    EXPECT_THAT(
        after([&](Scenario& s) { s.requests.list[0].samples = samples; }),
        ElementsAre(Fault{"$.requests.list[0].samples",
                          std::to_string(samples) + " is outside [1, 64]: use several requests for more answers"}));
  }
  const auto continuous = [](Scenario& s) {
    s.cache.kind = CacheKind::continuous;
    s.cache.max_tokens = 64;
    s.cache.prefix_sharing = false;
  };
  EXPECT_THAT(after(continuous), IsEmpty());
  EXPECT_THAT(after([&](Scenario& s) {
                continuous(s);
                s.requests.list[0].samples = 2;
              }),
              ElementsAre(Fault{"$.requests.list[0].samples",
                                "2 samples need pages to share: choose kind paged, or 1 sample"}));
}

TEST(Checks, ARequestsSpansAddUpToItsPrompt) {
  EXPECT_THAT(after([](Scenario& s) { s.requests.list[0].content[1].length = 17; }),
              ElementsAre(Fault{"$.requests.list[0].content",
                                "the spans are 29 tokens long together, the prompt 30: make them equal"}));
  EXPECT_THAT(after([](Scenario& s) { s.requests.list[0].generate_tokens = 2'147'483'618; }),
              ElementsAre(Fault{"$.requests.list[0]",
                                "30 prompt and 2147483618 generated tokens are together outside [1, "
                                "2147483647]: choose a shorter request"}));
  EXPECT_THAT(after([](Scenario& s) { s.requests.list[0].generate_tokens = 2'147'483'617; }), IsEmpty());
}

TEST(Checks, AGeneratorsRangesAreNotEmpty) {
  EXPECT_THAT(after([](Scenario& s) {
                RequestGenerator g;
                g.count = 1;
                g.prompt_min = 65;
                g.generate_mean = 17;
                g.prefix_groups = 3;
                s.requests.generator = g;
              }),
              ElementsAre(Fault{"$.requests.generator.prompt_min", "65 is more than prompt_max, 64: choose at most 64"},
                          Fault{"$.requests.generator.generate_mean",
                                "17 is outside [4, 16], the shortest and the longest: choose a mean between, or 0 for "
                                "uniform lengths"},
                          Fault{"$.requests.generator.prefix_tokens",
                                "0 tokens leave 3 prefix groups nothing to share: choose a length"}));
  EXPECT_THAT(
      after([](Scenario& s) {
        RequestGenerator g;
        g.count = 1;
        g.prefix_tokens = 8;
        g.prompt_max = 2'147'483'647;
        s.requests.generator = g;
      }),
      ElementsAre(
          Fault{"$.requests.generator.prompt_max",
                "2147483647 prompt and 16 generated tokens are together outside [1, 2147483647]: choose "
                "shorter requests"},
          Fault{"$.requests.generator.prefix_groups", "0 groups cannot share 8 prefix tokens: choose at least 1"}));
}

TEST(Checks, ATracesNameTellsItsFormat) {
  EXPECT_THAT(after([](Scenario& s) { s.requests.file = RequestFile{"trace.JSONL", 0, 1}; }), IsEmpty());
  EXPECT_THAT(after([](Scenario& s) {
                s.requests.file = RequestFile{"trace.json", 0, 1};
              }),
              ElementsAre(Fault{
                  "$.requests.file.path",
                  "\"trace.json\" ends in neither .csv nor .jsonl, the endings of the two formats: rename the file"}));
}

TEST(Checks, AWindowGoesWithTheMaskThatUsesIt) {
  EXPECT_THAT(after([](Scenario& s) { s.attention.window = 4; }),
              ElementsAre(Fault{"$.attention.window",
                                "4 has no meaning with mask causal: choose mask sliding_window or "
                                "chunked, or leave the window out"}));
  EXPECT_THAT(after([](Scenario& s) { s.attention.mask = MaskKind::sliding_window; }),
              ElementsAre(Fault{"$.attention.window",
                                "0 keys leave a sliding window empty: choose how many keys a query "
                                "sees, its own included, such as 4096"}));
  EXPECT_THAT(
      after([](Scenario& s) { s.attention.mask = MaskKind::chunked; }),
      ElementsAre(Fault{"$.attention.window", "0 is not a chunk length: choose a number of tokens such as 8192"}));
}

std::vector<Fault> tile(std::int64_t page, std::int64_t rows, std::int64_t align) {
  return after([=](Scenario& s) {
    s.cache.page_size = page;
    s.tile.BN = rows;
    s.tile.base_alignment = align;
  });
}

// Pairs from the table of populate, which must be legal here too. Pages of 48 or 7 tokens are legal.
TEST(Checks, TilesOfWholePagesAndPagesOfWholeTilesAreLegal) {
  EXPECT_THAT(tile(16, 64, 0), IsEmpty());
  EXPECT_THAT(tile(16, 64, 32), IsEmpty());
  EXPECT_THAT(tile(16, 192, 16), IsEmpty());
  EXPECT_THAT(tile(8, 256, 0), IsEmpty());
  EXPECT_THAT(tile(128, 128, 128), IsEmpty());
  EXPECT_THAT(tile(128, 64, 64), IsEmpty());
  EXPECT_THAT(tile(48, 96, 0), IsEmpty());
  EXPECT_THAT(tile(7, 7, 0), IsEmpty());
  EXPECT_THAT(tile(1, 16, 0), IsEmpty());
}

TEST(Checks, ATileThatCannotBeLookedUpIsRejected) {
  EXPECT_THAT(tile(48, 64, 0), ElementsAre(Fault{"$.tile.BN",
                                                 "64 tokens are not a whole number of 48-token pages: choose "
                                                 "48 or 96"}));
  EXPECT_THAT(tile(100, 64, 0),
              ElementsAre(Fault{"$.tile.BN",
                                "64-token tiles do not divide a 100-token page, so some would run over its "
                                "end: choose a divisor of 100 such as 50, or a multiple"}));
  EXPECT_THAT(tile(16, 64, 8), ElementsAre(Fault{"$.tile.base_alignment",
                                                 "8 is not a multiple of the page size 16, and a tile of several pages "
                                                 "must start at a page: choose a multiple of 16, or 0"}));
  EXPECT_THAT(tile(16, 48, 24),
              ElementsAre(Fault{"$.tile.base_alignment",
                                "24 is not a multiple of the page size 16, and a tile of several pages "
                                "must start at a page: choose a multiple of 16, or 0"}));
  EXPECT_THAT(
      tile(16, 64, 48),
      ElementsAre(
          Fault{"$.tile.base_alignment",
                "tiles start every 64 tokens, so not every start is a multiple of 48: choose a divisor of 64, or 0"}));
  EXPECT_THAT(tile(128, 64, 16),
              ElementsAre(Fault{"$.tile.base_alignment",
                                "a 64-token tile that starts at a multiple of 16 can run over the end "
                                "of a 128-token page: choose 0"}));
}

// The rule and the default must agree for each page size; otherwise omitting BN would be a fault.
TEST(Checks, TheDefaultTileFitsEveryPage) {
  EXPECT_EQ(default_tile_rows(16), 64);
  EXPECT_EQ(default_tile_rows(48), 48);
  EXPECT_EQ(default_tile_rows(100), 50);
  EXPECT_EQ(default_tile_rows(1), 16);
  EXPECT_EQ(default_tile_rows(128), 64);
  EXPECT_EQ(default_tile_rows(127), 1);
  Scenario s = small_scenario();
  for (std::int64_t page = 1; page <= 65536; ++page) {
    s.cache.page_size = page;
    s.tile.BN = default_tile_rows(page);
    ASSERT_THAT(check_rules(s, {}), IsEmpty()) << page;
    ASSERT_LE(s.tile.BN, 64) << page;
    ASSERT_LE(s.tile.BN, page * 16) << page;
  }
}

TEST(Checks, TheFocusIsOnALayerThatExists) {
  EXPECT_THAT(after([](Scenario& s) { s.focus.layer = 2; }), IsEmpty());
  EXPECT_THAT(after([](Scenario& s) { s.focus.layer = 3; }),
              ElementsAre(Fault{"$.focus.layer", "3 is outside [0, 3): the model has 3 layers, numbered from 0"}));
  // Heads of the cache; there are three times as many query heads.
  EXPECT_THAT(after([](Scenario& s) { s.focus.head = 1; }), IsEmpty());
  EXPECT_THAT(after([](Scenario& s) { s.focus.head = 2; }),
              ElementsAre(Fault{"$.focus.head", "2 is outside [0, 2): the model has 2 KV heads, numbered from 0"}));
}

// A struct filled by a form and not read from a file: the ranges are checked too, including NaN.
TEST(Checks, RangesOfAStructAreCheckedWithoutAFile) {
  EXPECT_THAT(
      after([](Scenario& s) {
        s.cache.page_size = 0;
        s.scheduler.base_us = std::numeric_limits<double>::quiet_NaN();
        s.attention.soft_cap = 0.0;
        s.requests.list[0].content[0].content = kGeneratedContent;
        s.cache.dtype = DType::i64;
      }),
      ElementsAre(Fault{"$.cache.page_size", "0 is outside [1, 65536]: choose a power of two such as 16"},
                  Fault{"$.cache.dtype", "the value 14 has no name in a scenario: choose one that has"},
                  Fault{"$.requests.list[0].content[0].content",
                        "4611686018427387904 is outside [0, 4611686018427387903]: choose one number for each text"},
                  Fault{"$.scheduler.base_us", "nan is outside [0, 1000000000]: choose a time in microseconds"},
                  Fault{"$.attention.soft_cap",
                        "0 is outside (0, 1000000]: choose a cap such as 50, or leave it "
                        "out"}));
}

// A rule between two numbers is not checked with a number that is out of its own range.
TEST(Checks, ARuleIsSkippedWhereOneOfItsNumbersIsFaulty) {
  const auto where = [](const std::function<void(Scenario&)>& change) {
    std::vector<std::string> places;
    for (const Fault& fault : after(change)) places.push_back(fault.where);
    return places;
  };
  const auto generator = [](Scenario& s) {
    s.requests.list.clear();
    s.requests.generator.emplace().count = 3;
  };
  EXPECT_THAT(where([&](Scenario& s) {
                generator(s);
                s.requests.generator->prompt_min = 0;
                s.requests.generator->prompt_max = -5;
              }),
              ElementsAre("$.requests.generator.prompt_min", "$.requests.generator.prompt_max"));
  EXPECT_THAT(where([&](Scenario& s) {
                generator(s);
                s.requests.generator->prefix_groups = 3;
                s.requests.generator->prefix_tokens = -1;
              }),
              ElementsAre("$.requests.generator.prefix_tokens"));
  EXPECT_THAT(where([](Scenario& s) { s.tile.base_alignment = -7; }), ElementsAre("$.tile.base_alignment"));
  EXPECT_THAT(where([](Scenario& s) {
                s.tile.base_alignment = -7;
                s.tile.BN = 4;
              }),
              ElementsAre("$.tile.base_alignment"));
  EXPECT_THAT(where([](Scenario& s) {
                s.lds.head_dim_offset = -1;
                s.lds.reg_chunk_depth = 1000;
              }),
              testing::Contains("$.lds.head_dim_offset"));
}

// With more faults than are kept, the rules do not run: they rely on every number without a reported fault.
TEST(Checks, ManyFaultsAreCountedAndNoRuleRuns) {
  const std::vector<Fault> faults = after([](Scenario& s) {
    s.requests.list.assign(2 * kScenarioFaults, Request{0, 0, 4, {}});
    s.model.query_heads = 7;  // a rule would report it
  });
  ASSERT_EQ(faults.size(), kScenarioFaults + 1);
  EXPECT_EQ(faults.front().where, "$.requests.list[0].prompt_tokens");
  for (const Fault& fault : faults) EXPECT_NE(fault.where, "$.model.query_heads");
}

TEST(Checks, AMeanIsInsideItsRange) {
  const auto with = [](double mean) {
    return after([&](Scenario& s) {
      s.requests.list.clear();
      s.requests.generator.emplace().count = 3;
      s.requests.generator->prompt_min = 10;
      s.requests.generator->prompt_max = 20;
      s.requests.generator->prompt_mean = mean;
    });
  };
  for (const double mean : {0.0, 10.0, 15.5, 20.0}) EXPECT_THAT(with(mean), IsEmpty());
  for (const auto& [mean, text] : {std::pair{9.5, "9.5"}, std::pair{20.5, "20.5"}}) {
    EXPECT_THAT(with(mean), ElementsAre(Fault{"$.requests.generator.prompt_mean",
                                              std::string(text) +
                                                  " is outside [10, 20], the shortest and the longest: choose a mean "
                                                  "between, or 0 for uniform lengths"}));
  }
}

TEST(Checks, AWindowHasNoMeaningWithoutAMask) {
  EXPECT_THAT(after([](Scenario& s) {
                s.attention.mask = MaskKind::none;
                s.attention.window = 3;
              }),
              ElementsAre(Fault{"$.attention.window",
                                "3 has no meaning with mask none: choose mask sliding_window or chunked, or leave the "
                                "window out"}));
}

// "$.tile.B" is not "$.tile.BN", and a fault inside a group suppresses only the rules about that group.
TEST(Checks, AFaultyNumberCausesNoSecondComplaint) {
  Scenario s = small_scenario();
  s.tile.BN = 25;
  s.focus.layer = 9;
  EXPECT_EQ(check_rules(s, {{"$.tile.BN", ""}, {"$.focus", ""}}), std::vector<Fault>{});
  EXPECT_EQ(check_rules(s, {{"$.tile.B", ""}, {"$.tile.BNX", ""}}).size(), 2u);
  EXPECT_EQ(check_rules(s, {{"$.cache.page_size", ""}}).size(), 1u);
}

}  // namespace
}  // namespace kvscope::checks_test

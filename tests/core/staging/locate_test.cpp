#include "core/staging/locate.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "tests/core/pipeline/fixtures.h"
#include "tests/core/staging/question.h"
#include "tests/whole_grid.h"

namespace kvscope::locate_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::continuous_scenario;
using testing_support::mla_scenario;
using testing_support::quantized_scenario;
using testing_support::small_scenario;
using trace::Question;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

// The number that explain's link "byte" begins with.
std::int64_t explained_byte(const Scenario& scenario, std::span<const Request> requests, const Question& question,
                            const CacheState& state) {
  for (const trace::Link& link : explain(scenario, requests, question, state).links) {
    if (link.name == "byte") return std::stoll(link.result);
  }
  throw std::runtime_error("no link byte");
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const IndexError& error) {
    return error.what();
  }
  return "no IndexError was thrown";
}

// 0, 1, the middle, the last but one and the last of [0, size).
std::set<std::int64_t> edges(std::int64_t size) {
  std::set<std::int64_t> all;
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, size / 2, size - 2, size - 1}) {
    if (i >= 0 && i < size) all.insert(i);
  }
  return all;
}

// Every token of every sequence of one step's batch, with `layers` x `heads` x `dims` of K and V: explain's byte leads
// back to the question. Two sequences that share a block have the same byte for the same token: locate returns the
// lowest, found here from explain's bytes alone. Returns the number of questions.
std::int64_t check_step(const Scenario& scenario, std::span<const Request> requests, const CacheState& state,
                        const std::set<std::int64_t>& layers, const std::set<std::int64_t>& heads,
                        const std::set<std::int64_t>& dims, std::int64_t token_stride) {
  std::map<std::int64_t, std::int64_t> lowest;  // first byte of a token's K, layer 0 -> lowest sequence
  const auto tokens_of = [&](std::size_t row) {
    return std::int64_t{state.cache_lengths[row]} + state.new_tokens[row];
  };
  const auto question_of = [&](std::size_t row, std::int64_t token) {
    Question question;
    question.seq = state.batch[row];
    question.token = TokIdx{token};
    question.step = state.step;
    return question;
  };
  for (std::size_t row = 0; row < state.batch.size(); ++row) {
    for (std::int64_t token = 0; token < tokens_of(row); token += token_stride) {
      const std::int64_t byte = explained_byte(scenario, requests, question_of(row, token), state);
      const auto [at, fresh] = lowest.try_emplace(byte, state.batch[row].value);
      if (!fresh) at->second = std::min(at->second, state.batch[row].value);
    }
  }
  std::int64_t asked = 0;
  for (std::size_t row = 0; row < state.batch.size(); ++row) {
    for (std::int64_t token = 0; token < tokens_of(row); token += token_stride) {
      Question question = question_of(row, token);
      const SeqIdx expected{lowest.at(explained_byte(scenario, requests, question, state))};
      for (const KOrV kv : {KOrV::k, KOrV::v}) {
        if (kv == KOrV::v && scenario.model.is_mla) continue;
        for (const std::int64_t layer : layers) {
          for (const std::int64_t head : heads) {
            for (const std::int64_t dim : dims) {
              question.kv = kv;
              question.layer = LayerIdx{layer};
              question.head = HeadIdx{head};
              question.dim = DimIdx{dim};
              question.seq = state.batch[row];
              // The whole chain for each tenth question; explain's byte must equal this one.
              const AddressedCache cache(scenario, state, kv, question.layer);
              const SeqIdx batch_row{static_cast<std::int64_t>(row)};
              const std::int64_t byte = cache.byte(batch_row, question.token, question.head, question.dim);
              if (asked % 10 == 0) {
                EXPECT_EQ(explained_byte(scenario, requests, question, state), byte);
              }
              question.seq = expected;
              const Question first = locate(scenario, state, byte);
              const Question last = locate(scenario, state, byte + size_of(scenario.cache.dtype) - 1);
              EXPECT_EQ(first, question) << "byte " << byte;
              EXPECT_EQ(last, question) << "last byte of the element at " << byte;
              if (!(first == question) || !(last == question)) return asked;  // stop at the first failure
              ++asked;
            }
          }
        }
      }
    }
  }
  return asked;
}

// The law, for each token of every batch of the small scenarios, over all layers, heads and elements: swapped axes, K
// for V, an omitted null page, an element size of 1 for all types and a page used as a slot each violate it.
TEST(Locate, EveryByteThatExplainNamesLeadsBackToItsQuestionOverWholeSmallGrids) {
  for (const Scenario& scenario : {small_scenario(), quantized_scenario(), mla_scenario(), continuous_scenario()}) {
    SCOPED_TRACE(scenario.name);
    trace::Recorder off;
    PagingEngine engine(scenario, scenario.requests.list, off);
    std::set<std::int64_t> layers, heads, dims;
    for (std::int64_t i = 0; i < scenario.model.layers; ++i) layers.insert(i);
    for (std::int64_t i = 0; i < scenario.model.kv_heads; ++i) heads.insert(i);
    for (std::int64_t i = 0; i < scenario.model.head_size; ++i) dims.insert(i);
    std::int64_t asked = 0;
    while (engine.step()) {
      asked += check_step(scenario, scenario.requests.list, engine.state(), layers, heads, dims, 1);
    }
    EXPECT_GT(asked, 3000);
  }
}

// The same over the scenarios that come with the program, at the edges of every axis: 128 heads of 576 elements, pages
// of 12 tokens, copies of a shared page, a pool of 60 GB, blocks of 512 tokens.
TEST(Locate, EveryGalleryScenarioGoesThereAndBack) {
  const std::int64_t most = test::size_for_sanitizers(2'000, 20'000);
  int scenarios = 0;
  for (const auto& entry : fs::directory_iterator(kGallery)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    const Scenario scenario = load_scenario(entry.path());
    const std::vector<Request> requests = make_requests(scenario, kGallery);
    trace::Recorder off;
    PagingEngine engine(scenario, requests, off);
    std::int64_t asked = 0;
    for (std::int64_t step = 0; step < 40 && asked < most && engine.step(); ++step) {
      const CacheState state = engine.state();
      std::int64_t tokens = 0;
      for (std::size_t row = 0; row < state.batch.size(); ++row) {
        tokens += std::int64_t{state.cache_lengths[row]} + state.new_tokens[row];
      }
      asked += check_step(scenario, requests, state, edges(scenario.model.layers), edges(scenario.model.kv_heads),
                          edges(scenario.model.head_size), 1 + tokens / 60);
    }
    EXPECT_GT(asked, 500);
    ++scenarios;
  }
  EXPECT_GE(scenarios, 9);
}

// Every byte of one small pool: each belongs to a token or gives a reason why not, and the bytes that belong to tokens
// are as many as the batch's tokens have. A filled slot that is not found, or found twice, changes the count.
TEST(Locate, EveryByteOfAWholePoolIsATokensOrSaysWhyNot) {
  const Scenario scenario = small_scenario();
  const CacheState state = state_at(scenario, scenario.requests.list, StepIdx{4}).cache;
  constexpr std::int64_t kTokenBytes = 2 * 3 * 2 * 6 * 4;  // K and V, layers, heads, elements, f32
  constexpr std::int64_t kBlockBytes = 4 * kTokenBytes;
  std::map<std::string, std::int64_t> counts;
  std::set<std::int64_t> filled;  // (block, slot) by the lookup table
  for (std::size_t row = 0; row < state.batch.size(); ++row) {
    for (std::int64_t token = 0; token < std::int64_t{state.cache_lengths[row]} + state.new_tokens[row]; ++token) {
      const auto entry = row * static_cast<std::size_t>(state.table_columns) + static_cast<std::size_t>(token / 4);
      filled.insert(state.lookup_table[entry] * 4 + token % 4);
    }
  }
  for (std::int64_t byte = 0; byte < 20 * kBlockBytes; ++byte) {
    const std::string why = message_of([&] { static_cast<void>(locate(scenario, state, byte)); });
    ++counts[why.starts_with("no IndexError")       ? "token"
             : why.find("null page") != why.npos    ? "null page"
             : why.find("no sequence") != why.npos  ? "no holder"
             : why.find("no token yet") != why.npos ? "empty slot"
                                                    : why];
  }
  EXPECT_EQ(counts["token"], static_cast<std::int64_t>(filled.size()) * kTokenBytes);
  EXPECT_EQ(counts["null page"], kBlockBytes);
  std::set<std::int64_t> blocks;
  for (const std::int64_t place : filled) blocks.insert(place / 4);
  EXPECT_EQ(counts["no holder"], (19 - static_cast<std::int64_t>(blocks.size())) * kBlockBytes);
  EXPECT_EQ(counts["empty slot"], static_cast<std::int64_t>(blocks.size() * 4 - filled.size()) * kTokenBytes);
  EXPECT_EQ(counts.size(), 4u);
}

// Sequences 0 and 1 begin with the same 11 tokens, so pages 0 and 1 are one copy: the lower number is returned for any
// order of the batch. A search that returns the last, or the first row, passes with easier batches.
TEST(Locate, ASharedBlockIsTheLowestSequencesWhateverTheOrderOfTheBatch) {
  CacheState state;
  state.step = StepIdx{7};
  state.page_size = 4;
  state.blocks = 19;
  state.batch = {SeqIdx{5}, SeqIdx{2}, SeqIdx{9}};
  state.cache_lengths = {8, 7, 7};
  state.new_tokens = {1, 1, 1};
  state.table_columns = 3;
  state.lookup_table = {3, 11, 6, 3, 11, 19, 3, 11, 19};
  constexpr std::int64_t kBlockBytes = 4 * 2 * 3 * 2 * 6 * 4;
  const Question found = locate(small_scenario(), state, 11 * kBlockBytes);
  EXPECT_EQ(found.seq, SeqIdx{2});
  EXPECT_EQ(found.token, TokIdx{4});
  EXPECT_EQ(locate(small_scenario(), state, 6 * kBlockBytes).seq, SeqIdx{5});
}

// The example of the header, which is not one of the scenarios here.
TEST(Locate, TheHeadersExampleHolds) {
  Scenario scenario = small_scenario();
  scenario.model = {"example", 2, 4, 2, 8, false, 8};
  scenario.cache.page_size = 16;
  scenario.cache.blocks = 32;
  CacheState state;
  state.batch = {SeqIdx{0}};
  state.cache_lengths = {20};
  state.new_tokens = {1};
  state.table_columns = 2;
  state.lookup_table = {7, 3};
  EXPECT_EQ(locate(scenario, state, 14'468),
            (Question{SeqIdx{0}, TokIdx{18}, LayerIdx{0}, HeadIdx{0}, DimIdx{1}, KOrV::v, StepIdx{0}}));
}

TEST(Locate, WhatIsNotATokenSaysWhatItIsAndWhatToDo) {
  const Scenario scenario = small_scenario();
  const auto at = [&](std::int64_t byte, std::int64_t step) {
    return message_of([&] { static_cast<void>(locate(scenario, scenario.requests.list, byte, StepIdx{step})); });
  };
  EXPECT_EQ(at(-1, 0), "byte -1 is outside [0, 23040): the pool is [20, 2, 3, 4, 2, 6] of f32, 4 B an element");
  EXPECT_EQ(at(23'040, 0), "byte 23040 is outside [0, 23040): the pool is [20, 2, 3, 4, 2, 6] of f32, 4 B an element");
  EXPECT_EQ(at(22'000, 0),
            "byte 22000 is in the null page, block 19: unused table entries point there, and no token does");
  const CacheState state = state_at(scenario, scenario.requests.list, StepIdx{0}).cache;
  ASSERT_EQ(state.batch.size(), 1u);
  ASSERT_EQ(state.new_tokens[0], 9u);  // pages of 4: the third holds one token
  const std::int64_t third = state.lookup_table[2];
  EXPECT_EQ(at(third * 1152 + 1 * 48, 0), "byte " + std::to_string(third * 1152 + 48) + " is in slot 1 of block " +
                                              std::to_string(third) +
                                              ", which holds no token yet: page 2 of sequence 0 ends after 1 of 4 "
                                              "slots at step 0");
  const std::set<std::uint32_t> held(state.lookup_table.begin(), state.lookup_table.begin() + 3);
  std::int64_t unheld = 0;
  while (held.contains(static_cast<std::uint32_t>(unheld))) ++unheld;
  EXPECT_EQ(at(unheld * 1152, 0), "byte " + std::to_string(unheld * 1152) + " is in block " + std::to_string(unheld) +
                                      ", which no sequence of the batch of step 0 holds: choose another step, or a "
                                      "block that is in use");
  EXPECT_EQ(at(0, -1), "step -1 is before the first: nothing is stored yet, go to step 0 or later");
  EXPECT_THAT(at(0, 1000), HasSubstr("step 1000 is outside [0, "));
}

// Any number gives an answer or an IndexError, never an overflow or a division by zero.
RC_GTEST_PROP(Locate, AnyByteIsAnsweredOrRejected, (std::int64_t byte)) {
  const Scenario scenario = continuous_scenario();
  const CacheState state = state_at(scenario, scenario.requests.list, StepIdx{1}).cache;
  try {
    const Question found = locate(scenario, state, byte);
    RC_ASSERT(byte >= 0);
    RC_ASSERT(std::ranges::find(state.batch, found.seq) != state.batch.end());
  } catch (const IndexError&) {
    RC_SUCCEED("rejected");
  }
}

}  // namespace
}  // namespace kvscope::locate_test

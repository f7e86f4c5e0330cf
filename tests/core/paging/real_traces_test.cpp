// Two recorded hours of public traffic through the engine. The expected figures are counted here from
// the text of the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "core/paging/paging_engine.h"

namespace kvscope::real_traces_test {
namespace {

constexpr std::int64_t kHashedTokens = 512;  // of the prompt, for each hash id

std::string data_file(const char* name) {
  return std::string(KVSCOPE_SOURCE_DIR) + "/../shared/data/" + name;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::int64_t number_after(const std::string& line, const std::string& key) {
  return std::strtoll(line.c_str() + line.find(key) + key.size(), nullptr, 10);
}

std::vector<Request> conversation(const std::vector<std::string>& lines) {
  std::vector<Request> requests;
  for (const std::string& line : lines) {
    Request r;
    r.arrival_us = 1000 * number_after(line, "\"timestamp\": ");
    r.prompt_tokens = number_after(line, "\"input_length\": ");
    r.generate_tokens = number_after(line, "\"output_length\": ");
    const char* at = line.c_str() + line.find('[') + 1;
    for (std::int64_t left = r.prompt_tokens; left > 0; left -= kHashedTokens) {
      char* end = nullptr;
      const std::uint64_t id = std::strtoull(at, &end, 10);
      EXPECT_NE(at, end) << line;
      at = end + (*end == ',' ? 1 : 0);
      r.content.push_back({id, std::min(left, kHashedTokens)});
    }
    requests.push_back(std::move(r));
  }
  return requests;
}

// Only the lengths matter here, so a request arrives every 100 ms, in the order of the timestamps.
std::vector<Request> code(const std::vector<std::string>& lines) {
  std::vector<Request> requests;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t first = lines[i].find(','), second = lines[i].find(',', first + 1);
    Request r;
    r.arrival_us = static_cast<std::int64_t>(i) * 100'000;
    r.prompt_tokens = std::atoll(lines[i].c_str() + first + 1);
    r.generate_tokens = std::atoll(lines[i].c_str() + second + 1);
    requests.push_back(r);
  }
  return requests;
}

struct Sums {
  std::int64_t prompt = 0, generated = 0, stored = 0;
};

Sums sums_of(const std::vector<std::string>& lines, bool csv) {
  Sums sums;
  for (std::size_t i = csv ? 1 : 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    std::int64_t prompt = 0, generated = 0;
    if (csv) {
      const std::size_t last = line.rfind(','), middle = line.rfind(',', last - 1);
      prompt = std::stoll(line.substr(middle + 1, last - middle - 1));
      generated = std::stoll(line.substr(last + 1));
    } else {
      prompt = number_after(line, "\"input_length\": ");
      generated = number_after(line, "\"output_length\": ");
    }
    sums.prompt += prompt;
    sums.generated += generated;
    sums.stored += prompt + (generated > 0 ? generated - 1 : 0);
  }
  return sums;
}

RunReport replay(const Scenario& scenario, const std::vector<Request>& requests, std::int64_t check_every) {
  trace::Recorder off;
  PagingEngine engine(scenario, requests, off, {.steps = 100'000'000});
  while (engine.step()) {
    if (engine.report().steps % check_every == 0) {
      EXPECT_THAT(engine.broken_invariants(), testing::IsEmpty()) << "step " << engine.report().steps;
    }
  }
  EXPECT_THAT(engine.broken_invariants(), testing::IsEmpty());
  return engine.report();
}

void expect_balance(const RunReport& r, const Sums& sums, std::size_t requests) {
  EXPECT_EQ(r.requests, static_cast<std::int64_t>(requests));
  EXPECT_EQ(r.finished, r.requests);
  EXPECT_EQ(r.refused, 0);
  EXPECT_EQ(r.prompt_tokens, sums.prompt);
  EXPECT_EQ(r.generated_tokens, sums.generated);
  EXPECT_EQ(r.computed_tokens + r.hit_tokens, sums.stored + r.lost_tokens);
  std::int64_t computed = 0, finished = 0, not_n = 0;
  for (const StepFigures& f : r.curve) {
    computed += f.prefill_tokens + f.decode_tokens;
    finished += f.finished;
    not_n += f.used_blocks + f.cached_blocks + f.free_blocks != r.blocks;
  }
  EXPECT_EQ(not_n, 0) << "steps whose blocks do not add up to N";
  EXPECT_EQ(computed, r.computed_tokens);
  EXPECT_EQ(finished, r.finished);
  EXPECT_EQ(r.curve.back().used_blocks, 0);
}

class RealTraces : public testing::Test {
 protected:
  void load(const char* name) {
    lines_ = lines_of(data_file(name));
    if (lines_.empty()) GTEST_SKIP() << data_file(name) << " is not on this machine";
  }
  std::vector<std::string> lines_;
  Scenario scenario_;
};

TEST_F(RealTraces, ReplaysAnHourOfConversationsAtPage16) {
  load("mooncake_conversation.jsonl");
  if (IsSkipped()) return;
  scenario_.cache.blocks = 200'000;
  const std::vector<Request> requests = conversation(lines_);
  ASSERT_EQ(requests.size(), 12'031u);
  const RunReport r = replay(scenario_, requests, 50'000);
  expect_balance(r, sums_of(lines_, false), lines_.size());
  EXPECT_EQ(r.prompt_tokens, 144'793'823);
  EXPECT_GT(r.prefix_hit_rate(), 0.1);
}

// A pool slightly larger than the longest request: constant preemption and eviction.
TEST_F(RealTraces, ReplaysAnHourOfConversationsInAPoolThatIsAlwaysFull) {
  load("mooncake_conversation.jsonl");
  if (IsSkipped()) return;
  scenario_.cache.blocks = 8'200;
  const RunReport r = replay(scenario_, conversation(lines_), 5'000);
  expect_balance(r, sums_of(lines_, false), lines_.size());
  EXPECT_GT(r.preemptions, 1000);
  EXPECT_EQ(r.peak_used_blocks, 8'200);
}

// One request at a time and a pool without evictions: the hits then depend only on the file. A page is cached if an
// earlier prompt had the same ids up to it and was at least as long; the page of the last token is always computed.
TEST_F(RealTraces, FindsExactlyThePrefixesThatTheFilesHashesPromise) {
  load("mooncake_conversation.jsonl");
  if (IsSkipped()) return;
  constexpr std::int64_t kPage = 64;
  std::map<std::int64_t, std::int64_t> longest;  // id -> tokens of its block in full pages computed so far
  std::int64_t expected = 0;
  for (const std::string& line : lines_) {
    const std::int64_t prompt = number_after(line, "\"input_length\": ");
    const char* at = line.c_str() + line.find('[') + 1;
    // An id identifies its block and all blocks before it, so the id alone identifies the prefix.
    std::int64_t found = 0;
    bool all_there = true;
    for (std::int64_t first = 0; first < prompt; first += kHashedTokens) {
      char* end = nullptr;
      const std::int64_t id = std::strtoll(at, &end, 10);
      at = end + 1;
      const std::int64_t full_pages = std::min(prompt - first, kHashedTokens) / kPage * kPage;
      std::int64_t& known = longest[id];
      if (all_there) found += std::min(known, full_pages);
      all_there = all_there && known == kHashedTokens;
      known = std::max(known, full_pages);
    }
    expected += std::min(found, (prompt - 1) / kPage * kPage);
  }
  scenario_.cache.page_size = kPage;
  scenario_.cache.blocks = 3'000'000;
  scenario_.scheduler.max_batch = 1;
  scenario_.scheduler.max_step_tokens = 1 << 17;
  const RunReport r = replay(scenario_, conversation(lines_), 2'000'000);
  EXPECT_EQ(r.hit_tokens, expected);
  EXPECT_EQ(r.evictions, 0);
}

TEST_F(RealTraces, ReplaysAnHourOfCodeCompletionsAtPage16) {
  load("azure_code.csv");
  if (IsSkipped()) return;
  scenario_.cache.blocks = 20'000;
  const std::vector<Request> requests = code(lines_);
  ASSERT_EQ(requests.size(), 8'819u);
  const RunReport r = replay(scenario_, requests, 5'000);
  expect_balance(r, sums_of(lines_, true), requests.size());
  EXPECT_EQ(r.hit_tokens, r.lost_tokens - r.recomputed_tokens)
      << "no prefixes are shared: a request finds only its own lost pages";
}

}  // namespace
}  // namespace kvscope::real_traces_test

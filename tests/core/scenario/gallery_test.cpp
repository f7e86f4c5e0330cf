// The scenarios that come with the program: all parse, all have a description, and their claims hold.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::gallery_test {
namespace {

namespace fs = std::filesystem;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

TEST(Gallery, EveryScenarioParsesAndSaysWhatToLookAt) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kGallery)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    ++files;
    const Scenario s = load_scenario(entry.path());
    EXPECT_FALSE(s.name.empty());
    EXPECT_GT(s.description.size(), 100u);
    EXPECT_FALSE(make_requests(s, kGallery).empty());
    EXPECT_EQ(parse_scenario(json::dump(to_json(s)), "again"), s);
    EXPECT_EQ(parse_scenario(json::dump(to_short_json(s)), "short"), s);
  }
  EXPECT_GE(files, 24);
}

// A scenario that is missing from the list would never be shown; a listed one without a file would be a broken entry.
TEST(Gallery, TheListNamesEveryScenarioOnce) {
  std::vector<std::string> listed, files;
  std::ifstream list(kGallery / "gallery.txt");
  for (std::string line; std::getline(list, line);) {
    if (!line.starts_with('#')) listed.push_back(line);
  }
  for (const auto& entry : fs::directory_iterator(kGallery)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().stem().string());
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(files));
  EXPECT_EQ(listed.front(), "first_light");
}

TEST(Gallery, FirstLightSharesFourPages) {
  const Scenario s = load_scenario(kGallery / "first_light.json");
  for (const Request& r : s.requests.list) EXPECT_EQ(r.content.at(0), (ContentSpan{1, 4 * s.cache.page_size}));
  EXPECT_GT(s.requests.list[0].prompt_tokens, s.scheduler.max_step_tokens);
}

TEST(Gallery, PreemptionsPromptsFitAndItsAnswersDoNot) {
  const Scenario s = load_scenario(kGallery / "preemption.json");
  std::int64_t prompts = 0, all = 0;
  const auto pages = [&](std::int64_t tokens) { return (tokens + s.cache.page_size - 1) / s.cache.page_size; };
  for (const Request& r : s.requests.list) {
    prompts += pages(r.prompt_tokens);
    all += pages(r.prompt_tokens + r.generate_tokens);
  }
  EXPECT_LE(prompts, s.cache.blocks);
  EXPECT_GT(all, s.cache.blocks);
}

// Five groups of whole pages; some of a group's requests come back after the others.
TEST(Gallery, PrefixSharingsBeginningsAreWholePagesAndDoNotFitBesideWhatRuns) {
  const Scenario s = load_scenario(kGallery / "prefix_sharing.json");
  std::set<std::uint64_t> groups;
  for (const Request& r : s.requests.list) {
    EXPECT_EQ(r.content.at(0).length, 4 * s.cache.page_size);
    groups.insert(r.content.at(0).content);
  }
  EXPECT_EQ(s.requests.list.size(), 16u);
  EXPECT_EQ(groups.size(), 5u);
  const std::int64_t one_request = 5;  // pages: the common prefix, and at least one unshared page
  EXPECT_GT(5 * 4 + one_request, s.cache.blocks);
}

TEST(Gallery, ContinuousAndPagedCompareTheSameRequestsInTheSameMemory) {
  const Scenario paged = load_scenario(kGallery / "page_size_fragmentation.json");
  const Scenario continuous = load_scenario(kGallery / "continuous.json");
  EXPECT_EQ(paged.requests, continuous.requests);
  EXPECT_EQ(paged.seed, continuous.seed);
  EXPECT_EQ(paged.model, continuous.model);
  EXPECT_EQ(paged.cache.blocks * paged.cache.page_size, continuous.cache.blocks * continuous.cache.max_tokens);
}

// The figures in its description, of the Mooncake conversation trace: 12,031 requests in 3,536,999 ms,
// means 12,035 and 343.
TEST(Gallery, RealTrafficLikeHasTheStatisticsItClaims) {
  const std::vector<Request> made = make_requests(load_scenario(kGallery / "real_traffic_like.json"), kGallery);
  ASSERT_EQ(made.size(), 12'031u);
  std::vector<std::int64_t> prompts;
  double prompt = 0, generate = 0, shared = 0;
  for (const Request& r : made) {
    prompts.push_back(r.prompt_tokens);
    prompt += static_cast<double>(r.prompt_tokens);
    generate += static_cast<double>(r.generate_tokens);
    if (!r.content.empty()) shared += static_cast<double>(r.content[0].length);
  }
  EXPECT_NEAR(prompt / 12'031, 12'035, 12'035 * 0.02);
  EXPECT_NEAR(generate / 12'031, 343, 343 * 0.02);
  EXPECT_NEAR(static_cast<double>(made.back().arrival_us) / 1e3, 3'536'999, 3'536'999 * 0.02);
  EXPECT_NEAR(shared / prompt, 1 - 182'790.0 / 288'500.0, 0.04);
  std::ranges::nth_element(prompts, prompts.begin() + 6015);
  EXPECT_NEAR(static_cast<double>(prompts[6015]), 8600, 250);
  EXPECT_NEAR(static_cast<double>(*std::ranges::max_element(prompts)), 126'000, 26'000);
}

// The hour above at a sixteenth: the same gaps, and lengths that are sixteen times as short.
TEST(Gallery, RealTrafficSliceIsTheHourAtASixteenth) {
  const Scenario s = load_scenario(kGallery / "real_traffic_slice.json");
  const std::vector<Request> made = make_requests(s, kGallery);
  ASSERT_EQ(made.size(), 300u);
  std::vector<std::int64_t> prompts;
  double prompt = 0, generate = 0;
  for (const Request& r : made) {
    prompts.push_back(r.prompt_tokens);
    prompt += static_cast<double>(r.prompt_tokens) / 300;
    generate += static_cast<double>(r.generate_tokens) / 300;
  }
  std::ranges::sort(prompts);
  EXPECT_NEAR(prompt * 16, 12'035, 12'035 * 0.01);
  EXPECT_NEAR(generate * 16, 343, 343 * 0.02);
  EXPECT_NEAR(static_cast<double>(made.back().arrival_us) / 1e3, 300 * 294, 300 * 294 * 0.05);
  EXPECT_EQ(std::lround(prompt), 748);
  EXPECT_EQ(std::lround(generate), 21);
  EXPECT_LT(prompts[149], 466);
  EXPECT_GE(prompts[150], 466);
  EXPECT_EQ(prompts.back(), 5174);
  EXPECT_EQ(s.cache.page_size * 16, 512);
  EXPECT_EQ(s.requests.generator->prefix_groups * s.requests.generator->prefix_tokens / s.cache.page_size, 256);
}

}  // namespace
}  // namespace kvscope::gallery_test

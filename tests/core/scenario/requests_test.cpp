#include "core/scenario/requests.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/core/scenario/support.h"
#include "tests/property.h"

namespace kvscope::requests_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// A temporary folder for each test.
class Requests : public testing::Test {
 protected:
  Requests()
      : folder_(fs::temp_directory_path() /
                ("kvscope_requests_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::create_directories(folder_);
  }
  ~Requests() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  fs::path folder_;
};

const char* const kCsv =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00.001,5,1\n2024-01-01 00:00:00,6,2\n";

// arrival, prompt, generate
constexpr const char* kDraws = "0 44 1\n1173 44 11\n12442 49 5\n19408 64 0\n";

RequestGenerator chatty(std::int64_t count) {
  RequestGenerator g;
  g.count = count;
  g.mean_gap_us = 5000;
  g.prompt_min = 30;
  g.prompt_max = 90;
  g.generate_min = 0;
  g.generate_max = 11;
  g.prefix_groups = 3;
  g.prefix_tokens = 40;
  g.prefix_share = 0.75;
  return g;
}

TEST_F(Requests, StandInOrderOfArrivalAndEqualTimesInTheOrderOfTheSources) {
  write("t.csv", kCsv);
  Scenario s;
  s.requests.list = {{2000, 1, 0, {}}, {0, 2, 0, {}}, {2000, 3, 0, {}}};
  s.requests.file = RequestFile{"t.csv", 0, 2.0};
  const std::vector<Request> made = make_requests(s, folder_);
  EXPECT_THAT(made, ElementsAre(Request{0, 2, 0, {}}, Request{0, 6, 2, {}}, Request{2000, 1, 0, {}},
                                Request{2000, 3, 0, {}}, Request{2000, 5, 1, {}}));
}

// A hundred at one time, because an unstable sort may keep the order of a few.
TEST_F(Requests, AHundredAtOneTimeKeepTheirOrder) {
  Scenario s;
  for (std::int64_t i = 0; i < 100; ++i) s.requests.list.push_back({i % 2, i + 1, 0, {}});
  const std::vector<Request> made = make_requests(s, folder_);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(made[i].prompt_tokens, static_cast<std::int64_t>(i < 50 ? 2 * i + 1 : 2 * (i - 50) + 2)) << i;
  }
}

// Samples follow their parent even when another request arrives at the same time, and have the same prompt.
TEST_F(Requests, ARequestOfSeveralSamplesStandsThereSoManyTimes) {
  Scenario s;
  s.requests.list = {{5, 7, 2, {}}, {1, 9, 3, {{4, 9}}, 3}, {1, 8, 1, {}}};
  const std::vector<Request> made = make_requests(s, folder_);
  EXPECT_THAT(made, ElementsAre(Request{1, 9, 3, {{4, 9}}, 1, 0}, Request{1, 9, 3, {{4, 9}}, 1, 1},
                                Request{1, 9, 3, {{4, 9}}, 1, 2}, Request{1, 8, 1, {}}, Request{5, 7, 2, {}}));
  EXPECT_EQ(expand_samples(made), made) << "once is enough";
}

TEST_F(Requests, LimitAndTimeScaleBelongToTheScenariosFile) {
  write("t.csv", kCsv);
  Scenario s;
  s.requests.file = RequestFile{"t.csv", 1, 3.0};
  EXPECT_THAT(make_requests(s, folder_), ElementsAre(Request{0, 5, 1, {}}));
  s.requests.list = {{7, 9, 9, {}}};
  EXPECT_THAT(make_requests(s, folder_, folder_ / "t.csv"), ElementsAre(Request{0, 6, 2, {}}, Request{1000, 5, 1, {}}));
}

TEST_F(Requests, ATimeScaleThatLeavesTheClockIsRejected) {
  write("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1970-01-01 00:00:00,5,1\n1980-01-01 00:00:00,6,2\n");
  Scenario s;
  s.requests.file = RequestFile{"t.csv", 0, 4.0};
  EXPECT_THAT(faults_of([&] { (void)make_requests(s, folder_); }),
              ElementsAre(Fault{"$.requests.file.time_scale",
                                "4 makes a request of 315532800000000 us arrive after "
                                "1000000000000000 us: choose a smaller factor"}));
}

// 31 years and 8 months fit, a day more does not: from a file of the scenario, and from one that replaces its requests.
TEST_F(Requests, ATraceThatLeavesTheClockIsRejectedWithoutATimeScaleToo) {
  const std::string head = "TIMESTAMP,ContextTokens,GeneratedTokens\n1970-01-01 00:00:00,5,1\n";
  Scenario s;
  s.requests.file = RequestFile{"t.csv", 0, 1.0};
  write("t.csv", head + "2001-09-09 01:46:40,6,2\n");
  EXPECT_EQ(make_requests(s, folder_).back().arrival_us, 1'000'000'000'000'000);
  EXPECT_EQ(make_requests(s, folder_, folder_ / "t.csv").back().arrival_us, 1'000'000'000'000'000);
  write("t.csv", head + "2001-09-10 01:46:40,6,2\n");
  const std::string fault = "a request arrives 1000086400000000 us after the start, the maximum is 1000000000000000: ";
  EXPECT_THAT(faults_of([&] { (void)make_requests(s, folder_); }),
              ElementsAre(Fault{"", fault + "correct or remove the row, or set $.requests.file.time_scale below 1"}));
  EXPECT_THAT(faults_of([&] { (void)make_requests(s, folder_, folder_ / "t.csv"); }),
              ElementsAre(Fault{"", fault + "correct or remove the row"}));
  s.requests.file->time_scale = 0.5;
  EXPECT_EQ(make_requests(s, folder_).back().arrival_us, 500'043'200'000'000);
}

// The largest count with the largest gap ends near the limit: some seeds before it, some after it.
TEST_F(Requests, GapsThatLeaveTheClockAreRejected) {
  Scenario s;
  s.requests.generator = RequestGenerator{.count = 1'000'000, .mean_gap_us = 1e9};
  int inside = 0, outside = 0;
  for (s.seed = 0; s.seed < 8; ++s.seed) {
    const std::int64_t last = generate_requests(*s.requests.generator, s.seed).back().arrival_us;
    if (last <= 1'000'000'000'000'000) {
      ++inside;
      EXPECT_EQ(make_requests(s, folder_).back().arrival_us, last);
      continue;
    }
    ++outside;
    EXPECT_THAT(faults_of([&] { (void)make_requests(s, folder_); }),
                ElementsAre(testing::AllOf(testing::Field(&Fault::where, "$.requests.generator.mean_gap_us"),
                                           testing::Field(&Fault::message, testing::EndsWith("choose a smaller gap")))));
  }
  EXPECT_TRUE(inside > 0 && outside > 0) << inside << " and " << outside;
}

TEST_F(Requests, AFileIsToldByItsEndingAndNamedWhenItIsMissing) {
  EXPECT_EQ(trace_format("a/b.csv"), TraceFormat::csv);
  EXPECT_EQ(trace_format("B.JsonL"), TraceFormat::jsonl);
  EXPECT_EQ(trace_format("csv"), std::nullopt);
  EXPECT_EQ(trace_format("a.csv.gz"), std::nullopt);
  EXPECT_THAT(faults_of([&] { (void)load_trace("t.txt"); }),
              ElementsAre(Fault{
                  "", "the name ends in neither .csv nor .jsonl, the endings of the two formats: rename the file"}));
  EXPECT_THAT([&] { (void)load_trace(folder_ / "none.csv"); },
              testing::ThrowsMessage<InputError>(testing::HasSubstr("none.csv")));
}

// --- the generator ---------------------------------------------------------------------------------------------------

// Recorded values of this generator: a change of the draws would change every existing scenario.
TEST(GenerateRequests, DrawsAreTheSameOnEveryMachine) {
  const std::vector<Request> a = generate_requests(chatty(4), 9);
  EXPECT_EQ(a, generate_requests(chatty(4), 9));
  EXPECT_NE(a, generate_requests(chatty(4), 10));
  EXPECT_EQ(a[0].arrival_us, 0);
  std::string text;
  for (const Request& r : a) {
    text += std::to_string(r.arrival_us) + " " + std::to_string(r.prompt_tokens) + " " +
            std::to_string(r.generate_tokens) + "\n";
  }
  EXPECT_EQ(text, kDraws);
}

// Generating more requests must not change the first ones, which is the purpose of a counter-based generator.
TEST(GenerateRequests, ALongerListBeginsWithTheShorterOne) {
  std::vector<Request> longer = generate_requests(chatty(500), 3);
  std::vector<Request> shorter = generate_requests(chatty(200), 3);
  longer.resize(200);
  EXPECT_EQ(longer, shorter);
}

TEST(GenerateRequests, ChangingTheAnswersLeavesThePromptsAlone) {
  RequestGenerator g = chatty(50);
  const std::vector<Request> a = generate_requests(g, 3);
  g.generate_max = 99;
  const std::vector<Request> b = generate_requests(g, 3);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].prompt_tokens, b[i].prompt_tokens);
    EXPECT_EQ(a[i].arrival_us, b[i].arrival_us);
    EXPECT_EQ(a[i].content, b[i].content);
  }
}

TEST(GenerateRequests, StayInTheirRangesAndAddUp) {
  EXPECT_TRUE(prop::check("ranges, spans, order", [] {
    RequestGenerator g;
    g.count = prop::in_range(1, 60);
    g.mean_gap_us = prop::one_of(0.0, 1.0, 1e9);
    g.prompt_min = prop::in_range(1, 100);
    g.prompt_max = g.prompt_min + prop::in_range(0, 100);
    g.generate_min = prop::in_range(0, 10);
    g.generate_max = g.generate_min + prop::in_range(0, 100);
    if (prop::any<bool>()) g.prompt_mean = static_cast<double>(g.prompt_min + g.prompt_max) / 2;
    g.prefix_groups = prop::in_range(0, 4);
    g.prefix_tokens = prop::in_range(1, 150);
    std::int64_t last = 0;
    for (const Request& r : generate_requests(g, prop::any<std::uint64_t>())) {
      RC_ASSERT(r.arrival_us >= last);
      last = r.arrival_us;
      RC_ASSERT(r.prompt_tokens >= g.prompt_min && r.prompt_tokens <= g.prompt_max);
      RC_ASSERT(r.generate_tokens >= g.generate_min && r.generate_tokens <= g.generate_max);
      std::int64_t tokens = 0;
      for (const ContentSpan& span : r.content) {
        RC_ASSERT(span.length > 0);
        RC_ASSERT(span.content >= kGeneratedContent && span.content < kImportedContent);
        tokens += span.length;
      }
      RC_ASSERT(r.content.empty() == (g.prefix_groups == 0));
      RC_ASSERT(r.content.empty() || tokens == r.prompt_tokens);
    }
  }));
}

// 20,000 draws; bounds are four standard errors: a mean off by a half token, or a gap that is uniform, falls outside.
TEST(GenerateRequests, HaveTheStatisticsTheyWereAskedFor) {
  constexpr int kCount = 20'000;
  const std::vector<Request> made = generate_requests(chatty(kCount), 1);
  double prompts = 0, generates = 0, gaps = 0, squares = 0;
  std::map<std::uint64_t, int> groups;
  int alone = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    prompts += static_cast<double>(made[i].prompt_tokens) / kCount;
    generates += static_cast<double>(made[i].generate_tokens) / kCount;
    if (i > 0) {
      const auto gap = static_cast<double>(made[i].arrival_us - made[i - 1].arrival_us);
      gaps += gap / (kCount - 1);
      squares += gap * gap / (kCount - 1);
    }
    if (made[i].content.empty()) {
      ++alone;
    } else {
      ++groups[made[i].content[0].content - kGeneratedContent];
    }
  }
  EXPECT_NEAR(prompts, 60, 0.5);                  // uniform 30..90: deviation 17.6
  EXPECT_NEAR(generates, 5.5, 0.1);               // uniform 0..11: deviation 3.45
  EXPECT_NEAR(gaps, 5000, 142);                   // exponential: deviation = mean
  EXPECT_NEAR(squares / (gaps * gaps), 2, 0.13);  // and second moment = 2 mean^2; a uniform gap has 4/3
  EXPECT_NEAR(alone, kCount * 0.25, 245);
  ASSERT_EQ(groups.size(), 3u);
  for (const auto& [group, members] : groups) EXPECT_NEAR(members, kCount * 0.25, 245) << group;
}

TEST(GenerateRequests, AMeanMakesManyShortAndFewLongOnes) {
  RequestGenerator g;
  g.count = 20'000;
  g.prompt_min = 891;
  g.prompt_max = 126'195;
  g.prompt_mean = 12'035;
  double mean = 0;
  int below = 0;
  for (const Request& r : generate_requests(g, 1)) {
    mean += static_cast<double>(r.prompt_tokens) / 20'000;
    below += r.prompt_tokens < 8615;  // 891 + ln 2 * (12035 - 891): half of an exponential is below its median
  }
  EXPECT_NEAR(mean, 12'035, 315);
  EXPECT_NEAR(below, 10'000, 283);
}

// Unique text after the common prefix: two requests of one group must be equal in the prefix only.
TEST(GenerateRequests, MembersOfAGroupShareTheBeginningOnly) {
  RequestGenerator g = chatty(40);
  g.prefix_groups = 1;
  g.prefix_share = 1;
  g.prompt_min = 39;
  g.prompt_max = 41;
  std::map<std::uint64_t, int> own;
  for (const Request& r : generate_requests(g, 5)) {
    EXPECT_EQ(r.content[0], (ContentSpan{kGeneratedContent, std::min<std::int64_t>(r.prompt_tokens, 40)}));
    ASSERT_EQ(r.content.size(), r.prompt_tokens > 40 ? 2u : 1u);
    if (r.content.size() == 2) {
      EXPECT_EQ(++own[r.content[1].content], 1);
    }
  }
  EXPECT_EQ(own.count(kGeneratedContent), 0u);
}

}  // namespace
}  // namespace kvscope::requests_test

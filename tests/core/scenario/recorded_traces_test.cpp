// The two recorded traces, if they are beside the source tree: every row is read, and every figure equals the published
// one. Source of the figures: the traces' README, and for the sums a separate count with Python's csv and json modules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/scenario/requests.h"

namespace kvscope::recorded_traces_test {
namespace {

namespace fs = std::filesystem;

struct Totals {
  std::int64_t prompt = 0, generate = 0, longest = 0, ids = 0;
  std::set<std::uint64_t> distinct;
};

Totals count(const std::vector<Request>& requests) {
  Totals t;
  for (const Request& r : requests) {
    t.prompt += r.prompt_tokens;
    t.generate += r.generate_tokens;
    t.longest = std::max(t.longest, r.prompt_tokens);
    for (const ContentSpan& span : r.content) {
      ++t.ids;
      t.distinct.insert(span.content);
    }
  }
  return t;
}

const fs::path kData = fs::path(KVSCOPE_SOURCE_DIR) / ".." / "shared" / "data";

TEST(RecordedTraces, AzureCodeIsReadWhole) {
  const fs::path path = kData / "azure_code.csv";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not here; it comes from Azure/AzurePublicDataset";
  const std::vector<Request> requests = load_trace(path);
  ASSERT_EQ(requests.size(), 8'819u);
  const Totals t = count(requests);
  EXPECT_EQ(t.prompt, 18'059'974);  // mean 2,048
  EXPECT_EQ(t.generate, 245'896);   // mean 28
  EXPECT_EQ(t.longest, 7'437);
  EXPECT_EQ(t.ids, 0);
  EXPECT_EQ(requests[0], (Request{0, 4808, 10, {}}));
  EXPECT_EQ(requests[1].arrival_us, 52'000);
  EXPECT_EQ(requests.back(), (Request{3'435'948'056, 549, 173, {}}));  // 18:17:03.97996 to 19:14:19.928016
}

TEST(RecordedTraces, MooncakeConversationIsReadWhole) {
  const fs::path path = kData / "mooncake_conversation.jsonl";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not here; it comes from kvcache-ai/Mooncake";
  const std::vector<Request> requests = load_trace(path);
  ASSERT_EQ(requests.size(), 12'031u);
  const Totals t = count(requests);
  EXPECT_EQ(t.prompt, 144'793'823);  // mean 12,035
  EXPECT_EQ(t.generate, 4'122'048);  // mean 343
  EXPECT_EQ(t.longest, 126'195);
  EXPECT_EQ(t.ids, 288'500);
  EXPECT_EQ(t.distinct.size(), 182'790u);
  EXPECT_EQ(requests.back().arrival_us, 3'536'999'000);
}

}  // namespace
}  // namespace kvscope::recorded_traces_test

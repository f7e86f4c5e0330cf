#include "apps/labs/page_size_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/portable_math.h"
#include "core/layout/table_columns.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/import_csv.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kRequests = 100;
constexpr std::int64_t kEntryBytes = 4;

std::int64_t pages_of(std::int64_t tokens, std::int64_t page_size) {
  return (tokens + page_size - 1) / page_size;
}

// exp(log median + spread * bell), whole and in a range.
std::int64_t bell_length(const CounterRng& random, std::uint64_t at, double median, double spread, std::int64_t low,
                         std::int64_t high) {
  const double length = median * portable_exp(spread * random.bell(at));
  return std::clamp(static_cast<std::int64_t>(length), low, high);
}

std::string time_text(std::int64_t us) {
  const std::int64_t seconds = us / 1'000'000;
  return fmt::format("2024-05-14 10:{:02}:{:02}.{:06}", seconds / 60, seconds % 60, us % 1'000'000);
}

std::string make_traffic(const Seed& seed) {
  const CounterRng sizes = seed.random(0), random = seed.random(1);
  const auto chat_median = static_cast<double>(sizes.integer(0, 40, 160));
  const auto document_median = static_cast<double>(sizes.integer(1, 700, 1400));
  const auto answer_median = static_cast<double>(sizes.integer(2, 15, 45));
  const std::int64_t gap = sizes.integer(3, 40'000, 90'000);  // [us]
  std::string text = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  std::int64_t time = 0;
  for (std::int64_t i = 0; i < kRequests; ++i) {
    const auto at = static_cast<std::uint64_t>(8 * i);
    const bool document = random.integer(at, 1, 10) == 1;
    const std::int64_t prompt = document ? bell_length(random, at + 1, document_median, 0.4, 300, 4000)
                                         : bell_length(random, at + 1, chat_median, 0.8, 5, 600);
    const std::int64_t answer = bell_length(random, at + 2, answer_median, 0.8, 2, 200);
    text += fmt::format("{},{},{}\n", time_text(time), prompt, answer);
    // Bursts: of ten requests seven arrive close together.
    time += 1000 +
            static_cast<std::int64_t>(random.exponential(at + 3, static_cast<double>(i % 10 < 7 ? gap / 3 : 2 * gap)));
  }
  return text;
}

// The ratio w of the two costs that makes kPageSizes[best] the cheapest: waste[best] + w * lookups[best] is the least
// for every w in a range, and its middle is taken. 0 when there is no such range, or a narrow one.
double ratio_of_costs(const PageSizeCurves& curves, std::size_t best) {
  double low = 0, high = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kPageSizes.size(); ++i) {
    if (i == best) continue;
    const double ratio = (curves.waste[i] - curves.waste[best]) / (curves.lookups[best] - curves.lookups[i]);
    if (i < best) low = std::max(low, ratio);
    if (i > best) high = std::min(high, ratio);
  }
  return low * 1.2 < high ? std::sqrt(low * high) : 0;
}

void add_cost(const PageSizeTask& task, PageSizeCurves& curves) {
  for (std::size_t i = 0; i < kPageSizes.size(); ++i) {
    curves.cost[i] = task.cost_of_percent * curves.waste[i] + task.cost_of_lookups * curves.lookups[i] / 1000;
  }
}

double three_digits(double value) {
  return std::stod(fmt::format("{:.2e}", value));
}

}  // namespace

std::int64_t stored_tokens(const Request& request) {
  return request.prompt_tokens + request.generate_tokens - 1;
}

std::int64_t PageSizeCurves::cheapest() const {
  return kPageSizes[static_cast<std::size_t>(std::ranges::min_element(cost) - cost.begin())];
}

std::string page_size_scenario(const PageSizeTask& task, std::int64_t page_size) {
  return fmt::format(R"({{
  "kvscope_scenario": 1,
  "name": "Page size",
  "model": "tiny",
  "cache": {{ "page_size": {}, "blocks": {}, "prefix_sharing": false }},
  "requests": {{ "file": {{ "path": "traffic.csv" }} }},
  "scheduler": {{ "max_batch": {}, "max_step_tokens": 65536, "base_us": 20000, "per_token_us": 0, "per_context_us": 0 }}
}}
)",
                     page_size, task.slots / page_size, task.max_batch);
}

PageSizeCurves page_size_curves(const PageSizeTask& task) {
  PageSizeCurves curves;
  for (std::size_t i = 0; i < kPageSizes.size(); ++i) {
    const std::int64_t size = kPageSizes[i];
    trace::Recorder off;
    const Scenario scenario = parse_scenario(page_size_scenario(task, size), "scenario.json");
    curves.waste[i] = 100 * run_engine(scenario, task.requests, off).report.internal_fragmentation();
    std::int64_t slots = 0, tokens = 0, longest = 0, lookups = 0;
    for (const Request& request : task.requests) {
      tokens += stored_tokens(request);
      slots += pages_of(stored_tokens(request), size) * size;
      longest = std::max(longest, stored_tokens(request));
      for (std::int64_t n = request.prompt_tokens + 1; n <= stored_tokens(request); ++n) lookups += pages_of(n, size);
    }
    curves.waste_at_end[i] = 100 * (1 - static_cast<double>(tokens) / static_cast<double>(slots));
    curves.table_bytes[i] =
        static_cast<double>(task.max_batch * padded_lut_cols(pages_of(longest, size)) * kEntryBytes);
    curves.lookups[i] = static_cast<double>(lookups);
  }
  add_cost(task, curves);
  return curves;
}

PageSizeTask make_page_size_task(const Seed& seed) {
  PageSizeTask task;
  task.traffic = make_traffic(seed);
  task.requests = import_csv(task.traffic, "traffic.csv");
  task.slots = 131072;
  task.max_batch = 64;
  const CounterRng random = seed.random(2);
  task.cost_of_percent = static_cast<double>(random.integer(0, 2, 9));
  const PageSizeCurves curves = page_size_curves(task);
  constexpr std::array<std::size_t, 4> kBest{1, 2, 3, 4};  // pages of 8 to 64 tokens
  const auto first = static_cast<std::size_t>(random.integer(1, 0, kBest.size() - 1));
  for (std::size_t i = 0; i < kBest.size() && task.cost_of_lookups == 0; ++i) {
    const double ratio = ratio_of_costs(curves, kBest[(first + i) % kBest.size()]);
    if (ratio > 0) task.cost_of_lookups = three_digits(task.cost_of_percent * ratio * 1000);
  }
  return task;
}

}  // namespace kvscope::labs

#include "core/paging/detail/paging_checks.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

// Whether the sample follows its parent or the sample before it and differs from it only in its number.
bool is_in_place(std::span<const Request> requests, std::size_t i) {
  if (i == 0 || requests[i].sample_of < 1) return false;
  Request before = requests[i];
  --before.sample_of;
  return before == requests[i - 1];
}

}  // namespace

void check_paging_sizes(const Scenario& scenario, std::span<const Request> requests) {
  std::vector<Fault> faults;
  const auto at_least = [&](const char* where, std::int64_t value, std::int64_t low) {
    if (value < low) faults.push_back({where, fmt::format("{}; at least {}", value, low)});
  };
  at_least("max_batch", scenario.scheduler.max_batch, 1);
  at_least("max_step_tokens", scenario.scheduler.max_step_tokens, 1);
  at_least("blocks", scenario.cache.blocks, 1);
  at_least("max_tokens", scenario.cache.max_tokens, scenario.cache.kind == CacheKind::continuous ? 1 : 0);
  if (scenario.cache.kind == CacheKind::paged) at_least("page_size", scenario.cache.page_size, 1);
  for (const auto& [where, cost] :
       {std::pair{"base_us", scenario.scheduler.base_us}, std::pair{"per_token_us", scenario.scheduler.per_token_us},
        std::pair{"per_context_us", scenario.scheduler.per_context_us}}) {
    if (!(cost >= 0 && cost <= 1e12)) faults.push_back({where, fmt::format("{} is outside [0, 1e12]", cost)});
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& r = requests[i];
    const auto fault = [&](std::string text) { faults.push_back({fmt::format("request {}", i), std::move(text)}); };
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (r.arrival_us < 0) fault(fmt::format("arrives at {} us; at least 0", r.arrival_us));
    if (r.prompt_tokens < 1 || r.prompt_tokens > kMost) {
      fault(fmt::format("{} prompt tokens, outside [1, {}]", r.prompt_tokens, kMost));
    }
    if (r.generate_tokens < 0 || r.generate_tokens > kMost) {
      fault(fmt::format("{} tokens to generate, outside [0, {}]", r.generate_tokens, kMost));
    }
    std::int64_t spans = 0;
    bool negative = false;
    for (const ContentSpan& span : r.content) {
      negative = negative || span.length < 0;
      spans = negative ? spans : checked_add(spans, span.length, "content");
    }
    if (negative) fault("a content span has a negative length");
    if (r.samples != 1) fault(fmt::format("asks for {} samples; expand_samples() makes requests of them", r.samples));
    if (r.sample_of != 0 && !is_in_place(requests, i)) {
      fault(fmt::format("sample {}, but the request before it is neither the parent nor sample {} of the same prompt",
                        r.sample_of, r.sample_of - 1));
    }
    if (r.sample_of != 0 && scenario.cache.kind == CacheKind::continuous) {
      fault("is a sample, and a continuous cache shares nothing");
    }
    if (!negative && !r.content.empty() && spans != r.prompt_tokens) {
      fault(fmt::format("content spans add up to {} tokens, the prompt has {}", spans, r.prompt_tokens));
    }
  }
  if (!faults.empty()) throw GeometryError("paging engine", std::move(faults));
}

}  // namespace kvscope

#include "core/scenario/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/scenario/detail/fields.h"
#include "core/scenario/detail/trace_lines.h"
#include "core/scenario/import_csv.h"
#include "core/scenario/import_jsonl.h"

namespace kvscope {
namespace {

// One random stream per quantity, so that changing the range of one does not change the others.
enum Stream : std::uint64_t { kGaps = 0x7265'7100, kPrompts, kGenerates, kMembers, kGroups };

// Uniform in [low, high], or exponential from low with the mean, clipped at high.
std::int64_t draw_length(const CounterRng& rng, std::uint64_t n, std::int64_t low, std::int64_t high, double mean) {
  if (mean == 0) return rng.integer(n, low, high);
  const double longer = rng.exponential(n, mean - static_cast<double>(low));
  const double most = static_cast<double>(high - low);
  return low + static_cast<std::int64_t>(std::min(longer, most) + 0.5);
}

void slow_down(std::vector<Request>& requests, double factor) {
  for (Request& request : requests) {
    const double scaled = static_cast<double>(request.arrival_us) * factor;
    if (scaled > static_cast<double>(fields::kMaxTime)) {
      throw InputError("scenario", "$.requests.file.time_scale",
                       fmt::format("{} makes a request of {} us arrive after {} us: choose a smaller factor", factor,
                                   request.arrival_us, fields::kMaxTime));
    }
    request.arrival_us = static_cast<std::int64_t>(scaled);
  }
}

// Clocks and their sums stay far below the range of 64 bits. `next` is what to do.
void check_arrivals(const std::vector<Request>& requests, const std::string& source, std::string_view where,
                    std::string_view next) {
  for (const Request& request : requests) {
    if (request.arrival_us <= fields::kMaxTime) continue;
    throw InputError(source, std::string(where),
                     fmt::format("a request arrives {} us after the start, the maximum is {}: {}", request.arrival_us,
                                 fields::kMaxTime, next));
  }
}

void append(std::vector<Request>& all, std::vector<Request> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::optional<TraceFormat> trace_format(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (ending == ".csv") return TraceFormat::csv;
  if (ending == ".jsonl") return TraceFormat::jsonl;
  return std::nullopt;
}

std::vector<Request> load_trace(const std::filesystem::path& path, std::int64_t limit) {
  const auto format = trace_format(path);
  if (!format) {
    throw InputError(path.string(), "",
                     "the name ends in neither .csv nor .jsonl, the endings of the two formats: rename the file");
  }
  const std::string text = read_file(path, kMaxTraceBytes);
  return *format == TraceFormat::csv ? import_csv(text, path.string(), limit)
                                     : import_jsonl(text, path.string(), limit);
}

std::vector<Request> generate_requests(const RequestGenerator& g, std::uint64_t seed) {
  const CounterRng gaps(seed, kGaps), prompts(seed, kPrompts), generates(seed, kGenerates), members(seed, kMembers),
      groups(seed, kGroups);
  std::vector<Request> requests;
  requests.reserve(static_cast<std::size_t>(g.count));
  double clock_us = 0;
  for (std::int64_t i = 0; i < g.count; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    if (i > 0) clock_us += gaps.exponential(n, g.mean_gap_us);
    Request request;
    request.arrival_us = static_cast<std::int64_t>(clock_us);
    request.prompt_tokens = draw_length(prompts, n, g.prompt_min, g.prompt_max, g.prompt_mean);
    request.generate_tokens = draw_length(generates, n, g.generate_min, g.generate_max, g.generate_mean);
    if (g.prefix_groups > 0 && members.uniform(n) < g.prefix_share) {
      const auto group = static_cast<std::uint64_t>(groups.integer(n, 0, g.prefix_groups - 1));
      const std::int64_t shared = std::min(request.prompt_tokens, g.prefix_tokens);
      request.content.push_back({kGeneratedContent + group, shared});
      if (request.prompt_tokens > shared) {
        const std::uint64_t own = kGeneratedContent + static_cast<std::uint64_t>(g.prefix_groups) + n;
        request.content.push_back({own, request.prompt_tokens - shared});
      }
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<Request> expand_samples(std::vector<Request> requests) {
  if (std::ranges::all_of(requests, [](const Request& r) { return r.samples == 1; })) return requests;
  std::vector<Request> all;
  for (Request& request : requests) {
    const std::int64_t samples = std::exchange(request.samples, 1);
    const std::size_t parent = all.size();
    all.push_back(std::move(request));
    for (std::int64_t k = 1; k < samples; ++k) {
      Request sample = all[parent];
      sample.sample_of = k;
      all.push_back(std::move(sample));
    }
  }
  return all;
}

std::vector<Request> make_requests(const Scenario& scenario, const std::filesystem::path& base_dir,
                                   const std::optional<std::filesystem::path>& instead_of_all) {
  std::vector<Request> all;
  if (instead_of_all) {
    all = load_trace(*instead_of_all);
    check_arrivals(all, instead_of_all->string(), "", "correct or remove the row");
  } else {
    all = scenario.requests.list;
    if (const auto& generator = scenario.requests.generator) {
      std::vector<Request> generated = generate_requests(*generator, scenario.seed);
      check_arrivals(generated, "scenario", "$.requests.generator.mean_gap_us", "choose a smaller gap");
      append(all, std::move(generated));
    }
    if (const auto& file = scenario.requests.file) {
      std::vector<Request> recorded = load_trace(base_dir / file->path, file->limit);
      if (file->time_scale != 1.0) slow_down(recorded, file->time_scale);
      check_arrivals(recorded, (base_dir / file->path).string(), "",
                     "correct or remove the row, or set $.requests.file.time_scale below 1");
      append(all, std::move(recorded));
    }
  }
  std::ranges::stable_sort(all, {}, &Request::arrival_us);
  return expand_samples(std::move(all));
}

}  // namespace kvscope

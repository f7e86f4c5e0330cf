#include "core/paging/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/grouped.h"

namespace kvscope {
namespace {

constexpr std::int64_t kSparkColumns = 48;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A figure of a step as a quotient: of blocks, of tokens, or a count divided by one. With a divisor of 0 it is absent.
struct Quotient {
  std::int64_t part = 0;
  std::int64_t whole = 1;
};
using Figure = Quotient (*)(const RunReport&, const StepFigures&);

Quotient utilization_at(const RunReport& r, const StepFigures& f) {
  return {f.used_blocks, r.blocks};
}

Quotient fragmentation_at(const RunReport& r, const StepFigures& f) {
  const std::int64_t slots = f.used_blocks * r.page_size;
  return {slots - f.slots_filled, slots};
}

Quotient hit_rate_at(const RunReport&, const StepFigures& f) {
  return {f.hit_tokens, f.query_tokens};
}

struct Summary {
  double low = 0.0, mean = 0.0, high = 0.0;
};

Summary over_steps(const RunReport& report, Figure figure) {
  Summary s;
  double sum = 0.0;
  std::int64_t points = 0;
  for (const StepFigures& f : report.curve) {
    const Quotient q = figure(report, f);
    if (q.whole == 0) continue;
    const double value = ratio(q.part, q.whole);
    s.low = points == 0 ? value : std::min(s.low, value);
    s.high = points == 0 ? value : std::max(s.high, value);
    sum += value;
    ++points;
  }
  if (points > 0) s.mean = sum / static_cast<double>(points);
  return s;
}

std::string percent(double x) {
  return fmt::format("{:.1f} %", 100.0 * x);
}

struct Curve {
  const char* name;
  const char* share;  // its key in JSON; nullptr: a count, which JSON has under the names of StepFigures
  Figure at;
};

constexpr std::array<NamedFigure, 13> kFigures = {{
    {"time_us", &StepFigures::time_us},
    {"waiting", &StepFigures::waiting},
    {"running", &StepFigures::running},
    {"used_blocks", &StepFigures::used_blocks},
    {"cached_blocks", &StepFigures::cached_blocks},
    {"free_blocks", &StepFigures::free_blocks},
    {"slots_filled", &StepFigures::slots_filled},
    {"prefill_tokens", &StepFigures::prefill_tokens},
    {"decode_tokens", &StepFigures::decode_tokens},
    {"hit_tokens", &StepFigures::hit_tokens},
    {"query_tokens", &StepFigures::query_tokens},
    {"preemptions", &StepFigures::preemptions},
    {"finished", &StepFigures::finished},
}};
static_assert(sizeof(StepFigures) == kFigures.size() * sizeof(std::int64_t), "a figure of a step has no name");

constexpr std::array<Curve, 8> kCurves = {{
    {"utilization", "utilization", utilization_at},
    {"internal fragmentation", "internal_fragmentation", fragmentation_at},
    {"prefix hits", "prefix_hit_rate", hit_rate_at},
    {"running", nullptr, [](const RunReport&, const StepFigures& f) { return Quotient{f.running}; }},
    {"waiting", nullptr, [](const RunReport&, const StepFigures& f) { return Quotient{f.waiting}; }},
    {"prefill tokens", nullptr, [](const RunReport&, const StepFigures& f) { return Quotient{f.prefill_tokens}; }},
    {"decode tokens", nullptr, [](const RunReport&, const StepFigures& f) { return Quotient{f.decode_tokens}; }},
    {"preemptions", nullptr, [](const RunReport&, const StepFigures& f) { return Quotient{f.preemptions}; }},
}};

// Each column covers a range of steps (sum of numerators / sum of divisors); heights are relative to the highest.
std::string sparkline(const RunReport& report, const Curve& curve) {
  static constexpr std::array<const char*, 9> kBars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto steps = static_cast<std::int64_t>(report.curve.size());
  const std::int64_t columns = std::min(kSparkColumns, steps);
  std::vector<double> heights;
  for (std::int64_t c = 0; c < columns; ++c) {
    Quotient sum{0, 0};
    for (std::int64_t i = c * steps / columns; i < (c + 1) * steps / columns; ++i) {
      const Quotient q = curve.at(report, report.curve[static_cast<std::size_t>(i)]);
      sum.part += q.part;
      sum.whole += q.whole;
    }
    heights.push_back(ratio(sum.part, sum.whole));
  }
  const double top = *std::max_element(heights.begin(), heights.end());
  std::string line;
  for (const double height : heights) {
    line += kBars[top > 0.0 ? static_cast<std::size_t>(std::ceil(height / top * 8.0)) : 0];
  }
  return line;
}

std::string curve_line(const RunReport& report, const Curve& curve) {
  const Summary s = over_steps(report, curve.at);
  const auto show = [&](double v) { return curve.share != nullptr ? percent(v) : fmt::format("{:.1f}", v); };
  return fmt::format("  {:<24} {:>9} {:>9} {:>9}  |{}|\n", curve.name, show(s.low), show(s.mean), show(s.high),
                     sparkline(report, curve));
}

}  // namespace

std::span<const NamedFigure> step_figures() {
  return kFigures;
}

double RunReport::utilization() const {
  return over_steps(*this, utilization_at).mean;
}
double RunReport::internal_fragmentation() const {
  return over_steps(*this, fragmentation_at).mean;
}
double RunReport::prefix_hit_rate() const {
  return ratio(hit_tokens, query_tokens);
}

std::string to_text(const RunReport& r) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value, const std::string& note) {
    text += fmt::format("  {:<24}{:>16}{}{}\n", name, value, note.empty() ? "" : "  ", note);
  };
  text += "requests\n";
  line("submitted", grouped(r.requests), "");
  line("finished", grouped(r.finished), "");
  line("rejected", grouped(r.refused), r.refused > 0 ? "longer than the pool or the longest sequence" : "");
  line("preemptions", grouped(r.preemptions), "");
  text += "time\n";
  line("steps", grouped(r.steps), "");
  line("simulated", fmt::format("{:.3f} s", static_cast<double>(r.duration_us) * 1e-6),
       "under the scenario's cost model");
  text += "tokens\n";
  line("prompt", grouped(r.prompt_tokens), "of finished requests");
  line("generated", grouped(r.generated_tokens), "of finished requests");
  line("computed", grouped(r.computed_tokens), "");
  line("found in the cache", grouped(r.hit_tokens),
       fmt::format("{} of {} looked up", percent(r.prefix_hit_rate()), grouped(r.query_tokens)));
  if (r.forked_tokens > 0) line("  by forks", grouped(r.forked_tokens), "prompts shared with further samples");
  line("lost to preemption", grouped(r.lost_tokens), fmt::format("{} computed again", grouped(r.recomputed_tokens)));
  text += fmt::format("blocks of {} tokens\n", r.page_size);
  line("in the pool", grouped(r.blocks), r.paged ? "and the null page" : "");
  line("maximum used", grouped(r.peak_used_blocks), percent(ratio(r.peak_used_blocks, r.blocks)));
  line("evicted", grouped(r.evictions), "");
  line("copied on write", grouped(r.copies), "");
  if (r.curve.empty()) return text;
  text += fmt::format("{:<26} {:>9} {:>9} {:>9}  {}\n", "per step", "minimum", "mean", "maximum",
                      "from the first step to the last; the highest column is the maximum");
  for (const Curve& curve : kCurves) text += curve_line(r, curve);
  return text;
}

json::Value to_json(const RunReport& r, bool with_curve) {
  json::Value v;
  v.set("page_size", r.page_size);
  v.set("blocks", r.blocks);
  v.set("requests", r.requests);
  v.set("finished", r.finished);
  v.set("refused", r.refused);
  v.set("preemptions", r.preemptions);
  v.set("steps", r.steps);
  v.set("duration_us", r.duration_us);
  v.set("prompt_tokens", r.prompt_tokens);
  v.set("generated_tokens", r.generated_tokens);
  v.set("computed_tokens", r.computed_tokens);
  v.set("lost_tokens", r.lost_tokens);
  v.set("recomputed_tokens", r.recomputed_tokens);
  v.set("hit_tokens", r.hit_tokens);
  v.set("query_tokens", r.query_tokens);
  v.set("forked_tokens", r.forked_tokens);
  v.set("evictions", r.evictions);
  v.set("copies", r.copies);
  v.set("peak_used_blocks", r.peak_used_blocks);
  v.set("utilization", r.utilization());
  v.set("internal_fragmentation", r.internal_fragmentation());
  v.set("prefix_hit_rate", r.prefix_hit_rate());
  if (!with_curve) return v;

  // One array per figure, ready for plotting.
  json::Value curves;
  for (const NamedFigure& named : kFigures) {
    json::Array values;
    values.reserve(r.curve.size());
    for (const StepFigures& f : r.curve) values.emplace_back(f.*named.figure);
    curves.set(named.name, std::move(values));
  }
  for (const Curve& curve : kCurves) {
    if (curve.share == nullptr) continue;
    json::Array values;
    values.reserve(r.curve.size());
    for (const StepFigures& f : r.curve) {
      const Quotient q = curve.at(r, f);
      if (q.whole == 0) {
        values.emplace_back(nullptr);
      } else {
        values.emplace_back(ratio(q.part, q.whole));
      }
    }
    curves.set(curve.share, std::move(values));
  }
  v.set("curve", std::move(curves));
  return v;
}

}  // namespace kvscope

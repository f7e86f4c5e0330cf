// Lab 14: the student measures the costs of seven page sizes on generated traffic, and chooses one of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "apps/labs/graders.h"
#include "apps/labs/page_size_task.h"
#include "apps/labs/unknown_names.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/report.h"

namespace kvscope::labs {
namespace {

constexpr std::string_view kPageReport = "report.json";
constexpr std::array<std::string_view, 7> kReportNames{
    "page_sizes", "waste_percent", "waste_at_end_percent", "table_bytes", "lookups", "cost", "page_size"};

PageSizeTask traffic_of(std::string_view student) {
  return make_page_size_task(task_seed(student, "14_page_size"));
}

using CurveValues = std::vector<double>;

// A curve that a typical error gives.
struct CurveMistake {
  std::string message;
  PageSizeCurve curve;
};

struct MeasuredCurve {
  std::string test, member;  // of lab.json and of report.json
  PageSizeCurve right;
  double absolute = 0, relative = 0;  // tolerance: the larger of the two
  std::vector<CurveMistake> mistakes;
  std::string example;  // small enough to work out by hand, without the result
};

bool agrees(const CurveValues& given, const PageSizeCurve& right, double absolute, double relative) {
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (!(std::abs(given[i] - right[i]) <= std::max(absolute, relative * std::abs(right[i])))) return false;
  }
  return true;
}

// f(request, page size) summed over all requests.
PageSizeCurve summed(const PageSizeTask& task, const std::function<double(const Request&, std::int64_t)>& f) {
  PageSizeCurve curve{};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    for (const Request& request : task.requests) curve[i] += f(request, kPageSizes[i]);
  }
  return curve;
}

PageSizeCurve mapped(const PageSizeCurve& curve, const std::function<double(double)>& f) {
  PageSizeCurve result{};
  std::ranges::transform(curve, result.begin(), f);
  return result;
}

double whole_pages(std::int64_t tokens, std::int64_t page_size) {
  return std::ceil(static_cast<double>(tokens) / static_cast<double>(page_size));
}

// Entries of the decode steps over first .. last tokens.
double entries_over(std::int64_t first, std::int64_t last, std::int64_t page_size) {
  double entries = 0;
  for (std::int64_t n = first; n <= last; ++n) entries += whole_pages(n, page_size);
  return entries;
}

// The share of empty slots, where each request has stored(request) tokens.
PageSizeCurve empty_share(const PageSizeTask& task, const std::function<std::int64_t(const Request&)>& stored) {
  const PageSizeCurve tokens =
      summed(task, [&](const Request& r, std::int64_t) { return static_cast<double>(stored(r)); });
  PageSizeCurve slots = summed(task, [&](const Request& r, std::int64_t size) {
    return whole_pages(stored(r), size) * static_cast<double>(size);
  });
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = 100 * (1 - tokens[i] / slots[i]);
  return slots;
}

std::int64_t with_last_token(const Request& request) {
  return request.prompt_tokens + request.generate_tokens;
}

const Request& shortest(const PageSizeTask& task) {
  return *std::ranges::min_element(task.requests, {}, stored_tokens);
}

MeasuredCurve waste_curve(const PageSizeTask& task, const PageSizeCurves& curves) {
  const PageSizeCurve per_request =
      mapped(summed(task,
                    [](const Request& r, std::int64_t size) {
                      return 1 - static_cast<double>(stored_tokens(r)) /
                                     (whole_pages(stored_tokens(r), size) * static_cast<double>(size));
                    }),
             [&](double sum) { return 100 * sum / static_cast<double>(task.requests.size()); });
  return {
      "waste",
      "waste_percent",
      curves.waste,
      0.15,
      0.01,
      {{"these are fractions: write percent", mapped(curves.waste, [](double p) { return p / 100; })},
       {"this is the share of filled slots: waste is the rest", mapped(curves.waste, [](double p) { return 100 - p; })},
       {"this is the waste when requests finish: take the mean of the line 'internal fragmentation' of kvscope run",
        curves.waste_at_end},
       {"this is a mean over requests: kvscope run prints the mean over steps", per_request}},
      "kvscope run scenario.json, the line 'internal fragmentation', the column 'mean'"};
}

MeasuredCurve waste_at_end_curve(const PageSizeTask& task, const PageSizeCurves& curves) {
  PageSizeCurve per_request = summed(task, [](const Request& r, std::int64_t size) {
    return 1 -
           static_cast<double>(stored_tokens(r)) / (whole_pages(stored_tokens(r), size) * static_cast<double>(size));
  });
  for (double& share : per_request) share *= 100 / static_cast<double>(task.requests.size());
  const Request& small = shortest(task);
  return {
      "waste_at_end",
      "waste_at_end_percent",
      curves.waste_at_end,
      0.05,
      0.002,
      {{"these are fractions: write percent", mapped(curves.waste_at_end, [](double p) { return p / 100; })},
       {"the last token that a request generates is never stored", empty_share(task, with_last_token)},
       {"the generated tokens were not counted", empty_share(task, [](const Request& r) { return r.prompt_tokens; })},
       {"this is the mean of each request's share: divide the empty slots of all by the slots of all", per_request},
       {"this is the mean over the steps of a run: count each request once", curves.waste}},
      fmt::format("a request of {} prompt and {} generated tokens: how many slots of 8-token pages are empty?",
                  small.prompt_tokens, small.generate_tokens)};
}

MeasuredCurve table_curve(const PageSizeTask& task, const PageSizeCurves& curves) {
  const double longest =
      static_cast<double>(stored_tokens(*std::ranges::max_element(task.requests, {}, stored_tokens)));
  PageSizeCurve plain{}, eight{};
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double pages = std::ceil(longest / static_cast<double>(kPageSizes[i]));
    plain[i] = static_cast<double>(task.max_batch) * pages * 4;
    eight[i] = static_cast<double>(task.max_batch) * std::ceil(pages / 8) * 8 * 4;
  }
  const double rows = static_cast<double>(task.requests.size()) / static_cast<double>(task.max_batch);
  return {
      "table_bytes",
      "table_bytes",
      curves.table_bytes,
      0.5,
      0,
      {{"these are entries: an entry has 4 bytes", mapped(curves.table_bytes, [](double b) { return b / 4; })},
       {"the padding of the rows is missing: a multiple of 8 entries, and 16 more", plain},
       {"16 entries a row are missing", eight},
       {"the table has a row for each request of a batch, not of the traffic",
        mapped(curves.table_bytes, [&](double b) { return b * rows; })}},
      fmt::format("the longest request stores {:.0f} tokens: how many pages of 64 tokens, how many columns?", longest)};
}

MeasuredCurve lookups_curve(const PageSizeTask& task, const PageSizeCurves& curves) {
  const auto over = [&](std::int64_t skip_first, std::int64_t more_last) {
    return summed(task, [=](const Request& r, std::int64_t size) {
      return entries_over(r.prompt_tokens + 1 - skip_first, stored_tokens(r) + more_last, size);
    });
  };
  const PageSizeCurve down = summed(task, [](const Request& r, std::int64_t size) {
    double entries = 0;
    for (std::int64_t n = r.prompt_tokens + 1; n <= stored_tokens(r); ++n) entries += static_cast<double>(n / size);
    return entries;
  });
  const PageSizeCurve once =
      summed(task, [](const Request& r, std::int64_t size) { return whole_pages(stored_tokens(r), size); });
  const PageSizeCurve last = summed(task, [](const Request& r, std::int64_t size) {
    return whole_pages(stored_tokens(r), size) * static_cast<double>(r.generate_tokens - 1);
  });
  const Request& small = shortest(task);
  return {"lookups",
          "lookups",
          curves.lookups,
          0.5,
          0.001,
          {{"the first token comes from the prefill, which is no decode step", over(1, 0)},
           {"the last token that a request generates is never an input of a decode step", over(0, 1)},
           {"a page that is partly filled has an entry, too: round up", down},
           {"these are the pages at the end: every decode step looks up all pages of its sequence", once},
           {"the sequence grows: an early step needs fewer entries than the last one", last}},
          fmt::format("a request of {} prompt and {} generated tokens: how many tokens does each of its decode steps "
                      "read, and how many pages of 4 tokens are these?",
                      small.prompt_tokens, small.generate_tokens)};
}

MeasuredCurve cost_curve(const PageSizeTask& task, const PageSizeCurves& curves) {
  PageSizeCurve per_lookup{}, swapped{};
  for (std::size_t i = 0; i < kPageSizes.size(); ++i) {
    per_lookup[i] = task.cost_of_percent * curves.waste[i] + task.cost_of_lookups * curves.lookups[i];
    swapped[i] = task.cost_of_lookups * curves.waste[i] + task.cost_of_percent * curves.lookups[i] / 1000;
  }
  return {
      "cost",
      "cost",
      curves.cost,
      0.15 * task.cost_of_percent,  // that of the waste
      0.01,
      {{"the cost of lookups is for 1000 of them", per_lookup}, {"the two costs are exchanged", swapped}},
      fmt::format("{:g} for each percent of waste, {:g} for 1000 lookups", task.cost_of_percent, task.cost_of_lookups)};
}

bool near_curve(const MeasuredCurve& curve, double given, std::size_t i) {
  return std::abs(given - curve.right[i]) <= std::max(curve.absolute, curve.relative * std::abs(curve.right[i]));
}

// The student's curve, and a band around the right one. Its edges are whole quarters of an octave, at least one quarter
// away from the right number: they tell a form, and no number that would earn points.
CasePicture curve_picture(const MeasuredCurve& curve, const CurveValues& given) {
  PictureChart chart{curve.member + " over the page sizes, on a logarithmic scale", {}};
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double quarters = std::floor(4 * std::log2(std::max(curve.right[i], 1e-3)));
    const std::string_view direction = given[i] < curve.right[i] ? "too low" : "too high";
    chart.points.push_back({fmt::format("{}", kPageSizes[i]), given[i], std::exp2((quarters - 1) / 4),
                            std::exp2((quarters + 2) / 4),
                            near_curve(curve, given[i], i) ? "" : std::string(direction)});
  }
  CasePicture picture;
  picture.charts.push_back(std::move(chart));
  return picture;
}

// The member as numbers; empty when it is missing or something else.
std::optional<CurveValues> curve_of(const json::Value& report, std::string_view member) {
  const json::Value* found = report.find(member);
  if (found == nullptr || found->as_array() == nullptr) return std::nullopt;
  CurveValues values;
  for (const json::Value& item : *found->as_array()) {
    if (!item.is_number()) return std::nullopt;
    values.push_back(item.number());
  }
  if (values.size() != kPageSizes.size()) return std::nullopt;
  return values;
}

class PageSizeGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TaskFile> task_files(std::string_view student) const override {
    const PageSizeTask task = traffic_of(student);
    json::Value value;
    value.set("slots", task.slots);
    value.set("max_batch", task.max_batch);
    value.set("cost_of_a_percent_of_waste", task.cost_of_percent);
    value.set("cost_of_1000_lookups", task.cost_of_lookups);
    return {{"traffic.csv", task.traffic},
            {"scenario.json", page_size_scenario(task, 16)},
            {"task.json", json::dump(value) + "\n"}};
  }

  // The student's traffic has one right answer, so nothing depends on the seed of the grading.
  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& /*seed*/) const override {
    json::Value report;
    try {
      report = json::parse(submission.file(kPageReport), kPageReport);
    } catch (const InputError& error) {
      return all_failed(lab(), error.what());
    }
    const PageSizeTask task = traffic_of(submission.student);
    const PageSizeCurves curves = page_size_curves(task);
    std::vector<TestResult> results;
    for (const MeasuredCurve& curve :
         {waste_curve(task, curves), waste_at_end_curve(task, curves), table_curve(task, curves),
          lookups_curve(task, curves), cost_curve(task, curves)}) {
      results.push_back(grade_curve(curve, report));
    }
    results.push_back(grade_choice(curves, report));
    return results;
  }

 private:
  [[nodiscard]] TestResult grade_curve(const MeasuredCurve& curve, const json::Value& report) const {
    const std::optional<CurveValues> given = curve_of(report, curve.member);
    if (!given) {
      return failed(lab(), curve.test,
                    fmt::format("no curve: write {} numbers to '{}', one for each page size{}", kPageSizes.size(),
                                curve.member, unknown_names(report, curve.member, kReportNames)));
    }
    if (agrees(*given, curve.right, curve.absolute, curve.relative)) return passed(lab(), curve.test);
    return with_picture(explain_curve(curve, *given), curve_picture(curve, *given));
  }

  [[nodiscard]] TestResult explain_curve(const MeasuredCurve& curve, const CurveValues& given) const {
    for (const CurveMistake& mistake : curve.mistakes) {
      // Where an error changes next to nothing, it does not explain the curve.
      const bool same =
          agrees({mistake.curve.begin(), mistake.curve.end()}, curve.right, curve.absolute, curve.relative);
      if (!same && agrees(given, mistake.curve, curve.absolute, curve.relative)) {
        return failed(lab(), curve.test, mistake.message, curve.example);
      }
    }
    if (std::ranges::equal(given, CurveValues(curve.right.rbegin(), curve.right.rend()), [&](double a, double b) {
          return std::abs(a - b) <= std::max(curve.absolute, curve.relative * std::abs(b));
        })) {
      return failed(lab(), curve.test, "the curve begins with the largest page size: begin with 4");
    }
    std::size_t wrong = 0, first = kPageSizes.size();
    for (std::size_t i = kPageSizes.size(); i-- > 0;) {
      if (near_curve(curve, given[i], i)) continue;
      ++wrong;
      first = i;
    }
    // The right number is not shown: it would be the answer.
    return failed(
        lab(), curve.test,
        fmt::format("{:g} is too {} for pages of {} tokens; {} of {} numbers are wrong", given[first],
                    given[first] < curve.right[first] ? "low" : "high", kPageSizes[first], wrong, kPageSizes.size()),
        curve.example);
  }

  [[nodiscard]] TestResult grade_choice(const PageSizeCurves& curves, const json::Value& report) const {
    const json::Value* const given = report.find("page_size");
    const std::int64_t* size = given == nullptr ? nullptr : given->as_i64();
    if (size == nullptr) {
      return failed(lab(), "page_size",
                    "no page size: write the cheapest one" + unknown_names(report, "page_size", kReportNames));
    }
    if (*size == curves.cheapest()) return passed(lab(), "page_size");
    const auto* found = std::ranges::find(kPageSizes, *size);
    if (found == kPageSizes.end()) {
      return failed(lab(), "page_size", fmt::format("{} is not one of {}", *size, fmt::join(kPageSizes, ", ")), {}, 3);
    }
    const auto index = static_cast<std::size_t>(found - kPageSizes.begin());
    const std::string_view other = *size < curves.cheapest() ? "larger" : "smaller";
    return failed(lab(), "page_size",
                  fmt::format("pages of {} tokens cost {:.3g}x as much as the cheapest ones: try {} ones", *size,
                              curves.cost[index] / *std::ranges::min_element(curves.cost), other),
                  {}, 3);
  }
};

}  // namespace

std::unique_ptr<Grader> page_size_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<PageSizeGrader>(lab, options);
}

}  // namespace kvscope::labs

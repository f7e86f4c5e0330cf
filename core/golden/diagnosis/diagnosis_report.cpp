// The diagnosis as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/diagnose.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kListed = 3;  // other explanations in the text
// [FailurePattern::worst] The coarsest rounding of a kernel, to e2m1, is by a quarter.
constexpr double kCoarsestRounding = 0.25;
// What a kernel reads before it is written has no pattern that a hypothesis could have.
constexpr const char* kRace = "a race or a missing wait: run the kernel with `kvscope cuda` (docs/15_virtual_gpu.md)";

std::string evidence_text(const Diagnosis& d, const Explanation& e) {
  if (d.of_groups) {
    return fmt::format("{:.2f}x of the change that this fault makes, which is {:.3g} deviations of rounding, {} rows",
                       e.change_share, e.change_deviations, d.failing_rows);
  }
  std::string line = fmt::format("{} of {} failing rows reproduced within {:.2g}x the allowed error",
                                 e.failing_explained, d.failing_rows, e.misfit);
  if (e.failing_outside > 0)
    line += fmt::format("; {} read past the cache, which holds unknown values", e.failing_outside);
  if (d.correct_rows > 0 && e.failing_explained + e.failing_outside == d.failing_rows) {
    line += fmt::format("; {} of {} correct rows too", e.correct_explained, d.correct_rows);
  }
  return line;
}

// Other explanations, one line for each hypothesis: its further parameters (tile sizes, numbers of splits) are counted.
std::string others_text(const Diagnosis& d, const std::string& first_label, std::size_t begin,
                        const std::string& evidence) {
  std::vector<const Explanation*> listed;
  std::map<std::string, std::int64_t> count;
  for (std::size_t i = 0; i < d.explanations.size(); ++i) {
    const Explanation& e = d.explanations[i];
    if (++count[e.name] == 1 && i >= begin) listed.push_back(&e);
  }
  std::string text;
  if (begin > 0 && count[d.explanations.front().name] > 1) {
    text += fmt::format("  or       the same with other parameters: {} more\n", count[d.explanations.front().name] - 1);
  }
  for (std::size_t i = 0; i < std::min(listed.size(), kListed); ++i) {
    const std::string own = evidence.empty() ? "" : evidence_text(d, *listed[i]);
    const std::int64_t more = count[listed[i]->name] - 1;
    text += fmt::format("  {:<8} {}{}{}\n", i == 0 ? first_label : "or", listed[i]->cause,
                        more > 0 ? fmt::format(", or with other parameters ({} more)", more) : "",
                        own == evidence ? "" : " (" + own + ")");
  }
  if (listed.size() > kListed) text += fmt::format("  or       {} more hypotheses (--json)\n", listed.size() - kListed);
  return text;
}

std::string explanations_text(const Diagnosis& d) {
  const Explanation& best = d.explanations.front();
  const std::string evidence = evidence_text(d, best);
  std::string text = fmt::format("diagnosis  {}{}\n", d.certain ? "" : "probably: ", best.cause);
  text += fmt::format("  look at  {}\n  evidence {}\n", best.look_at, evidence);
  text += others_text(d, "or", 1, evidence);
  if (best.correct_explained < d.correct_rows) {
    text += "  but      this fault would also change rows that are correct: it concerns only a part of the output\n";
  }
  return text;
}

// NaN equals every other NaN, so rows without numbers fit each fault that reads one.
std::string without_numbers_text(const Diagnosis& d) {
  std::string text =
      "diagnosis  o of the failing rows holds only NaN or infinities, which many faults cause: no cause is certain\n";
  text +=
      d.pattern.lse_correct
          ? "  look at  rows of V: lse is correct, so q, K, scale, mask and lengths are; is V of a slot that no "
            "sequence "
            "owns read, also with a weight of 0?\n"
          : "  look at  slots that no sequence owns (are they read?), a division by a sum of 0, overflow of exp, rows "
            "that were never written\n";
  text += others_text(d, "fits", 0, "");
  return text;
}

// Zeros are what an output holds before a kernel writes it. Faults that leave no key fit them too.
std::string zeros_text(const Diagnosis& d) {
  std::string text = "diagnosis  o of the failing rows holds only zeros: no cause is certain\n";
  text += fmt::format("  look at  the store of o, the grid and the copy to the host: were these rows written?{}\n",
                      d.pattern.lse_correct
                          ? std::string(" lse is correct")
                          : fmt::format(" If they were, the kernel found no key for them: lengths and number of tiles; "
                                        "or {}",
                                        kRace));
  return text + others_text(d, "fits", 0, "");
}

// Where to look if no hypothesis explains the output: a correct lse clears all that comes before the rows of V.
std::string unexplained_advice(const FailurePattern& pattern) {
  std::vector<std::string> places;
  if (pattern.lse_correct) {
    const bool some_dims = std::ranges::find(pattern.dims, 0) != pattern.dims.end();
    places.emplace_back(some_dims
                            ? "the store of o, its index and other writes there, and V of these dims: lse and the "
                              "other dims are correct, so the weights are"
                            : "the rows of V, their products with the weights and the store of o: lse is correct, "
                              "so q, K, scale, mask and lengths are");
  }
  if (pattern.worst <= kCoarsestRounding) {
    places.emplace_back("rounding that was not stated (kvscope verify --explain)");
  }
  places.emplace_back("two faults: turn off splits, windows and scales one at a time");
  places.emplace_back(kRace);
  return fmt::format("  look at  {}\n", fmt::join(places, "; or "));
}

// The best hypothesis that does not explain the output: excluded by the output, or the nearest one if none explains it.
std::string nearest_text(const Diagnosis& d) {
  const bool many_fit = d.pattern.no_numbers || (d.pattern.only_zeros && !d.certain);
  if (d.nearest.empty() || (many_fit && !d.explanations.empty())) return "";
  const Explanation& next = d.nearest.front();
  const auto line = [&](const std::string& why) {
    return fmt::format("  {:<8} {}: {}\n", d.explanations.empty() ? "nearest" : "excluded", next.cause, why);
  };
  if (d.of_groups) {
    return line(fmt::format("the output has {:.2f}x of its change, {:.3g} deviations", next.change_share,
                            next.change_deviations));
  }
  const bool explains_all = next.failing_explained == d.failing_rows;
  if (explains_all && !d.explanations.empty() && next.correct_explained == d.explanations.front().correct_explained) {
    return line("within the bound of these rows too, but farther from the candidate");
  }
  if (explains_all) {
    return line(fmt::format("reproduces all {} failing rows, but only {} of {} correct rows", d.failing_rows,
                            next.correct_explained, d.correct_rows));
  }
  if (next.failing_explained > 0) {
    return line(fmt::format("reproduces only {} of {} failing rows", next.failing_explained, d.failing_rows));
  }
  if (std::isfinite(next.misfit)) {
    return line(fmt::format("differs from the output by at least {:.3g}x the allowed error", next.misfit));
  }
  return d.explanations.empty() ? "" : "  excluded all other hypotheses, by far\n";
}

json::Value explanations_json(const std::vector<Explanation>& explanations) {
  json::Array array;
  for (const Explanation& e : explanations) {
    json::Value value(json::Object{{"name", e.name},
                                   {"cause", e.cause},
                                   {"look_at", e.look_at},
                                   {"failing_explained", e.failing_explained},
                                   {"correct_explained", e.correct_explained},
                                   {"error_over_allowed", e.misfit}});
    if (e.change_deviations > 0) {
      value.set("change_share", e.change_share);
      value.set("change_deviations", e.change_deviations);
    }
    if (e.failing_outside > 0) value.set("failing_outside", e.failing_outside);
    if (e.sequence >= 0) value.set("sequence", e.sequence);
    if (e.page >= 0) value.set("page", e.page);
    array.push_back(std::move(value));
  }
  return array;
}

json::Value pattern_json(const FailurePattern& pattern) {
  json::Value value;
  value.set("rows", pattern.rows);
  value.set("failing_rows", pattern.failing_rows);
  value.set("only_nan", pattern.only_nan);
  value.set("no_numbers", pattern.no_numbers);
  value.set("only_zeros", pattern.only_zeros);
  value.set("lse_correct", pattern.lse_correct);
  value.set("words", pattern.words);
  for (const auto& [key, counts] :
       {std::pair<const char*, const std::vector<std::int64_t>&>{"sequences", pattern.sequences},
        {"heads", pattern.heads},
        {"dims", pattern.dims},
        {"failing_rows_of_sequence", pattern.failing_of_sequence},
        {"failing_rows_of_head", pattern.failing_of_head}}) {
    json::Array array;
    for (const std::int64_t count : counts) array.emplace_back(count);
    value.set(key, std::move(array));
  }
  json::Array lengths;
  for (const FailurePattern::Lengths& l : pattern.lengths) {
    lengths.emplace_back(
        json::Object{{"first", l.first}, {"last", l.last}, {"rows", l.rows}, {"failing_rows", l.failing_rows}});
  }
  value.set("visible_keys", std::move(lengths));
  if (pattern.page_sequence >= 0) {
    json::Array shares;
    for (const double share : pattern.pages) shares.emplace_back(share);
    value.set("pages", json::Object{{"sequence", pattern.page_sequence}, {"missing_share", std::move(shares)}});
  }
  return value;
}

}  // namespace

std::string text_report(const Diagnosis& d) {
  if (d.candidate_passes) return "diagnosis  the candidate is within its bound: nothing to explain\n";
  std::string text;
  if (d.pattern.no_numbers) {
    text += without_numbers_text(d);
  } else if (d.pattern.only_zeros && !d.certain && !d.of_groups) {
    text += zeros_text(d);
  } else if (d.explanations.empty()) {
    text += fmt::format("diagnosis  none of {} hypotheses explains the failing rows\n", d.hypotheses);
    if (d.pattern.only_nan) text += "  but      each of them also holds NaN or an infinity\n";
    text += unexplained_advice(d.pattern);
  } else {
    text += explanations_text(d);
  }
  text += nearest_text(d);
  text += fmt::format("fails at   {} of {} rows{}: {}\n", d.pattern.failing_rows, d.pattern.rows,
                      d.of_groups ? " together" : "", d.pattern.words);
  return text + map_text(d.pattern);
}

json::Value json_report(const Diagnosis& d) {
  json::Value report;
  report.set("kvscope_diagnosis", 1);
  report.set("candidate_passes", d.candidate_passes);
  report.set("hypotheses", d.hypotheses);
  report.set("failing_rows", d.failing_rows);
  report.set("correct_rows", d.correct_rows);
  report.set("certain", d.certain);
  report.set("of_groups", d.of_groups);
  report.set("explanations", explanations_json(d.explanations));
  report.set("nearest", explanations_json(d.nearest));
  report.set("pattern", pattern_json(d.pattern));
  return report;
}

}  // namespace kvscope::golden

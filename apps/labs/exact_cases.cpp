#include "apps/labs/exact_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace kvscope::labs {

std::string words_text(const Words& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

TestResult stopped_in_case(const Lab& lab, std::string_view test, const HarnessRun& run, const std::string& case_text) {
  std::string text = case_text;
  if (!run.printed.empty()) text += "\nyour program printed: " + run.printed;
  return failed(lab, test, run.failure, text);
}

TestResult judge_exact(const Lab& lab, std::string_view test, std::span<const ExactCase> cases, const HarnessRun& run,
                       std::span<const Hypothesis> hypotheses,
                       const std::function<std::string(const Words&)>& text_of) {
  std::optional<std::size_t> worst;
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (run.results[i] == cases[i].expected) continue;
    if (!worst.has_value() || cases[i].size < cases[*worst].size) worst = i;
  }
  if (!worst.has_value() && run.results.size() == cases.size()) return passed(lab, test);
  if (!worst.has_value()) return stopped_in_case(lab, test, run, cases[run.results.size()].text);

  const std::string text = fmt::format("{}\nexpected {}, your code gave {}", cases[*worst].text,
                                       text_of(cases[*worst].expected), text_of(run.results[*worst]));
  const CasePicture picture = cases[*worst].picture ? cases[*worst].picture(run.results[*worst]) : CasePicture();
  for (const Hypothesis& hypothesis : hypotheses) {
    bool explains = true;
    for (std::size_t i = 0; explains && i < run.results.size(); ++i) explains = hypothesis.result(i) == run.results[i];
    if (explains) return with_picture(failed(lab, test, hypothesis.message, text, hypothesis.hint), picture);
  }
  const auto wrong = std::ranges::count_if(
      run.results, [&, i = std::size_t{0}](const Words& words) mutable { return words != cases[i++].expected; });
  return with_picture(failed(lab, test, fmt::format("{} of {} cases differ", wrong, cases.size()), text), picture);
}

}  // namespace kvscope::labs

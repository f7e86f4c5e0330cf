#include "apps/labs/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/base/errors.h"
#include "core/base/report.h"
#include "core/base/terminal_text.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kGradeVersion = 1;
constexpr double kMostPoints = 1000;  // of a test, as in a manifest
constexpr double kMostHints = 1000;
constexpr std::size_t kMaxText = 2000;    // [bytes] of one message or case in a report
constexpr std::size_t kLongMessage = 60;  // [bytes]; a longer one is printed once

std::string printable(std::string_view text) {
  std::string result = terminal_text(text.substr(0, kMaxText));
  if (text.size() > kMaxText) result += " ...";
  return result;
}

std::string indented(std::string_view text, std::string_view margin) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += fmt::format("{}{}\n", margin, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

// "20", "7.5".
std::string points_text(double points) {
  return fmt::format("{:g}", points);
}

// One cell of a CSV file: quoted where it must be, and never a formula.
std::string csv_cell(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos) text.insert(0, "'");
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string text_member(const json::Value& value, std::string_view key, std::string_view source,
                        std::string_view where = "$") {
  const json::Value* member = value.find(key);
  if (member == nullptr || member->as_string() == nullptr) {
    throw InputError(source, fmt::format("{}.{}", where, key), "must be a text: is this a file of kvscope lab --json?");
  }
  return *member->as_string();
}

double number_member(const json::Value& value, std::string_view key, std::string_view source, std::string_view where) {
  const json::Value* member = value.find(key);
  if (member == nullptr || !member->is_number()) {
    throw InputError(source, fmt::format("{}.{}", where, key),
                     "must be a number: is this a file of kvscope lab --json?");
  }
  return member->number();
}

TestResult result_member(const json::Value& test, std::string_view source, const std::string& where) {
  const auto text = [&](std::string_view key) { return text_member(test, key, source, where); };
  const auto number = [&](std::string_view key, double most, bool whole) {  // 40.0 is whole
    const double value = number_member(test, key, source, where);
    if (value >= 0 && value <= most && (!whole || value == std::floor(value))) return value;
    throw InputError(source, fmt::format("{}.{}", where, key),
                     fmt::format("is {}: must be a {}number from 0 to {}", value, whole ? "whole " : "", most));
  };
  TestResult result;
  result.name = text("name");
  result.points = number("maximum", kMostPoints, true);
  result.earned = number("points", result.points, false);
  result.message = text("message");
  result.case_text = text("case");
  result.hint = static_cast<int>(number("hint", kMostHints, true));
  if (test.find("score") != nullptr) result.score = number_member(test, "score", source, where);
  return result;
}

// Files of earlier versions have no limits.
std::vector<LimitValue> limits_member(const json::Value& value, std::string_view source) {
  std::vector<LimitValue> limits;
  const json::Value* member = value.find("limits");
  if (member == nullptr) return limits;
  const auto fault = [source](const std::string& where) -> InputError {
    return {source, where, "must be whole numbers by option: is this a file of kvscope lab --json?"};
  };
  if (member->as_object() == nullptr) throw fault("$.limits");
  for (const auto& [option, number] : *member->as_object()) {
    if (number.as_i64() == nullptr) throw fault(fmt::format("$.limits.{}", option));
    limits.push_back({option, *number.as_i64()});
  }
  return limits;
}

// "blocks: the stride is of one layer; mla: ..." of the failed tests; a message that repeats is not repeated.
std::string feedback_text(const Grade& grade) {
  std::string text, last;
  for (const TestResult& result : grade.results) {
    if (result.passed()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", result.name);
    if (result.message != last) text += ": " + printable(result.message);
    last = result.message;
  }
  return text;
}

// "event 3: block 17 was evicted" -> "event ...: block ... was evicted"; numbers in a row are one "...". Digits of a
// name ("report_1", "bf16") stay.
std::string without_numbers(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto of_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  std::string result;
  bool name = false;  // the character before is one of a name
  while (!text.empty()) {
    std::size_t end = text.front() == '-' ? 1 : 0;
    while (!name && end < text.size() && (digit(text[end]) || (text[end] == '.' && end > 0 && digit(text[end - 1]))))
      ++end;
    if (end > 0 && text[end - 1] == '.') --end;  // of the sentence
    if (end > 0 && digit(text[end - 1])) {
      if (result.ends_with("..., ")) {
        result.resize(result.size() - 2);
      } else if (result.ends_with("... ")) {
        result.resize(result.size() - 1);
      } else {
        result += "...";
      }
      text.remove_prefix(end);
      continue;
    }
    name = of_name(text.front()) || (name && digit(text.front()));
    result += text.front();
    text.remove_prefix(1);
  }
  return result;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The tests by the number of students that lost points in them, with their most frequent messages. Those that differ in
// numbers alone are one: the numbers are of a student's own task, or of the cases of a seed.
std::string failures_text(const Lab& lab, std::span<const Grade> grades) {
  constexpr std::size_t kMessages = 3;
  struct Message {
    std::string text;  // without its numbers, if they differ between students
    std::size_t count = 0;
  };
  struct Failures {
    std::string name;
    std::size_t count = 0;
    std::vector<Message> messages = {};
  };
  std::vector<Failures> failures;
  for (const LabTest& test : lab.tests) {
    Failures failure{test.name};
    for (const Grade& grade : grades) {
      for (const TestResult& result : grade.results) {
        if (result.name != test.name || result.passed()) continue;
        ++failure.count;
        const std::string key = without_numbers(result.message);
        const auto known = std::ranges::find(failure.messages, key,
                                             [](const Message& message) { return without_numbers(message.text); });
        if (known == failure.messages.end()) {
          failure.messages.push_back({result.message, 1});
        } else {
          ++known->count;
          if (known->text != result.message) known->text = key;
        }
      }
    }
    std::ranges::stable_sort(failure.messages, std::ranges::greater(), &Message::count);
    failures.push_back(std::move(failure));
  }
  std::ranges::stable_sort(failures, std::ranges::greater(), &Failures::count);
  const std::size_t width = widest(failures, &Failures::name);
  std::string text = "tests by failures, with the most frequent messages:\n";
  for (const Failures& failure : failures) {
    text += fmt::format("  {:<{}}  {:>3}\n", failure.name, width, failure.count);
    for (std::size_t i = 0; i < std::min(kMessages, failure.messages.size()); ++i) {
      text += fmt::format("  {:<{}}  {:>7}  {}\n", "", width, failure.messages[i].count,
                          printable(failure.messages[i].text));
    }
  }
  return text;
}

// Limits that are not the defaults; a line for each group of grades if they differ between grades.
std::string limits_text(std::span<const Grade> grades) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // changed limits, students
  for (const Grade& grade : grades) {
    std::string changed = changed_limits(grade.limits);
    auto group = std::ranges::find(groups, changed, &std::pair<std::string, std::vector<std::string>>::first);
    if (group == groups.end()) group = groups.insert(group, {std::move(changed), {}});
    group->second.push_back(printable(grade.student));
  }
  const auto name = [](const std::string& changed) { return changed.empty() ? "the default limits" : changed; };
  if (groups.size() == 1 && groups[0].first.empty()) return {};
  if (groups.size() == 1) return fmt::format("limits: {}\n", printable(groups[0].first));
  std::string text = "the grades have different limits, so compare them with care:\n";
  for (const auto& [changed, students] : groups)
    text += fmt::format("  {}: {}\n", printable(name(changed)), fmt::join(students, ", "));
  return text;
}

std::string students_text(std::span<const Grade> grades) {
  std::vector<const Grade*> order;
  for (const Grade& grade : grades) order.push_back(&grade);
  std::ranges::stable_sort(order, {}, [](const Grade* grade) { return grade->earned(); });
  const std::size_t width = widest(grades, &Grade::student);
  std::string text = "students, and the tests in which they lost points:\n";
  for (const Grade* grade : order) {
    text += fmt::format("  {:<{}}  {:>5}", printable(grade->student), width, points_text(grade->earned()));
    std::vector<std::string_view> lost;
    for (const TestResult& result : grade->results) {
      if (!result.passed()) lost.push_back(result.name);
    }
    if (lost.size() == grade->results.size()) lost = {"every test"};
    if (grade->missing()) lost = {kNoSubmission};
    text += fmt::format("{}{}\n", lost.empty() ? "" : "  ", fmt::join(lost, ", "));
  }
  return text;
}

// Of the test with a leaderboard; empty if the lab has none, or the submission earned no place on it.
std::optional<double> score_of(const Grade& grade) {
  const auto scored = std::ranges::find_if(grade.results, [](const TestResult& r) { return r.score.has_value(); });
  return scored == grade.results.end() ? std::nullopt : scored->score;
}

std::string leaderboard_text(std::span<const Grade> grades) {
  std::vector<std::pair<double, std::string>> places;
  for (const Grade& grade : grades) {
    if (const std::optional<double> score = score_of(grade)) places.emplace_back(*score, printable(grade.student));
  }
  if (places.empty()) return {};
  std::ranges::stable_sort(places, std::ranges::greater(), &std::pair<double, std::string>::first);
  std::string text = "leaderboard, highest score first:\n";
  for (std::size_t i = 0; i < places.size(); ++i) {
    text += fmt::format("  {:>3}  {:>7.1f}  {}\n", i + 1, places[i].first, places[i].second);
  }
  return text;
}

}  // namespace

std::string grade_text(const Lab& lab, const Grade& grade) {
  std::string text = fmt::format("Lab {:02} {}: {} of {} points\n", lab.number, lab.name, points_text(grade.earned()),
                                 points_text(grade.points()));
  const std::size_t width = widest(grade.results, &TestResult::name);
  // Tests that fail in one way are explained once: a compiler's message, or why the work cannot be read.
  const TestResult* explained = nullptr;
  int hint = 0;
  for (const TestResult& result : grade.results) {
    const bool again =
        explained != nullptr && result.message == explained->message && result.case_text == explained->case_text;
    text += fmt::format("  {}  {:<{}}  {:>4} of {:<4}", result.passed() ? "PASS" : "FAIL", result.name, width,
                        points_text(result.earned), points_text(result.points));
    if (!result.message.empty()) text += "  " + printable(again ? "as above" : result.message);
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
    if (!result.case_text.empty() && !again) text += indented(printable(result.case_text), "        ");
    if (!result.case_text.empty() || result.message.size() > kLongMessage) explained = &result;
    if (hint == 0 && !result.passed()) hint = result.hint;
  }
  if (hint != 0) text += fmt::format("Hint for the first failed test: kvscope lab hint {} {}\n", lab.number, hint);
  return text;
}

std::string repeat_text(const Grade& grade) {
  const std::string changed = printable(changed_limits(grade.limits));
  return fmt::format("{}{}{}", grade.seed.text(), changed.empty() ? "" : " ", changed);
}

std::string failure_picture(const Lab& lab, const TestResult& result) {
  const std::string title = fmt::format("Lab {:02} {}: {}, {} of {} points", lab.number, lab.name, result.name,
                                        points_text(result.earned), points_text(result.points));
  std::string text = printable(result.message);
  if (!result.case_text.empty()) text += "\n" + printable(result.case_text);
  return picture_svg(title, text, result.picture);
}

const TestResult* first_failure(const Grade& grade) {
  const auto found = std::ranges::find_if(grade.results, [](const TestResult& result) { return !result.passed(); });
  return found == grade.results.end() ? nullptr : &*found;
}

json::Value grade_json(const Lab& lab, const Grade& grade) {
  json::Value value;
  value.set("kvscope_grade", kGradeVersion);
  value.set("lab", grade.lab_id);
  value.set("student", grade.student);
  value.set("seed", grade.seed.text());
  json::Value limits = json::Object();
  for (const LimitValue& limit : grade.limits) limits.set(limit.option, limit.value);
  value.set("limits", std::move(limits));
  value.set("points", grade.earned());
  value.set("maximum", grade.points());
  json::Array tests;
  for (const TestResult& result : grade.results) {
    json::Value test;
    test.set("name", result.name);
    test.set("points", result.earned);
    test.set("maximum", result.points);
    test.set("message", printable(result.message));
    test.set("case", printable(result.case_text));
    test.set("hint", result.hint);
    if (!result.picture.empty()) test.set("picture", failure_picture(lab, result));
    if (result.score.has_value()) test.set("score", *result.score);
    tests.push_back(std::move(test));
  }
  value.set("tests", std::move(tests));
  return value;
}

Grade read_grade(const json::Value& value, std::string_view source) {
  const json::Value* version = value.find("kvscope_grade");
  if (version == nullptr || version->as_i64() == nullptr || *version->as_i64() != kGradeVersion) {
    throw InputError(source, "$.kvscope_grade",
                     fmt::format("must be {}: is this a file of kvscope lab --json?", kGradeVersion));
  }
  Grade grade;
  grade.student = text_member(value, "student", source);
  grade.lab_id = text_member(value, "lab", source);
  try {
    grade.seed = parse_seed(text_member(value, "seed", source));
  } catch (const InputError& error) {  // of the command line's option
    throw InputError(source, "$.seed", error.faults().front().message);
  }
  grade.limits = limits_member(value, source);
  const json::Value* tests = value.find("tests");
  if (tests == nullptr || tests->as_array() == nullptr) throw InputError(source, "$.tests", "must be a list");
  for (const json::Value& test : *tests->as_array()) {
    grade.results.push_back(result_member(test, source, fmt::format("$.tests[{}]", grade.results.size())));
  }
  return grade;
}

std::string grade_junit(const Grade& grade) {
  JUnitSuite suite{"kvscope lab " + grade.lab_id, {}, {}};
  suite.properties.push_back({"seed", grade.seed.text()});
  if (const std::string changed = changed_limits(grade.limits); !changed.empty()) {
    suite.properties.push_back({"limits", changed});
  }
  for (const TestResult& result : grade.results) {
    suite.cases.push_back(
        {grade.lab_id, result.name, std::nullopt,
         result.passed() ? std::nullopt : std::optional(printable(result.message + "\n" + result.case_text))});
  }
  return to_junit(suite);
}

json::Value gradescope_json(const Lab& lab, const Grade& grade) {
  json::Array tests;
  for (const TestResult& result : grade.results) {
    json::Value test;
    test.set("name", fmt::format("{}: {}", result.name, lab.test(result.name).text));
    test.set("score", result.earned);
    test.set("max_score", result.points);
    test.set("status", result.passed() ? "passed" : "failed");
    std::string output = printable(result.message);
    if (!result.case_text.empty()) output += "\n" + printable(result.case_text);
    test.set("output", output);
    test.set("output_format", "text");
    tests.push_back(std::move(test));
  }
  json::Value value;
  value.set("output",
            fmt::format("Lab {:02}: {}. Seed of this grading: {}", lab.number, lab.title, repeat_text(grade)));
  value.set("output_format", "text");
  value.set("tests", std::move(tests));
  if (const std::optional<double> score = score_of(grade)) {
    json::Value entry;
    entry.set("name", "score");
    entry.set("value", *score);
    value.set("leaderboard", json::Array{std::move(entry)});
  }
  return value;
}

std::string class_csv(const Lab& lab, std::span<const Grade> grades) {
  std::string text = "student,lab,points,maximum";
  for (const LabTest& test : lab.tests) text += "," + csv_cell(test.name);
  const bool scored = std::ranges::any_of(grades, [](const Grade& grade) { return score_of(grade).has_value(); });
  text += scored ? ",leaderboard,feedback\n" : ",feedback\n";
  for (const Grade& grade : grades) {
    text += fmt::format("{},{},{},{}", csv_cell(printable(grade.student)), csv_cell(grade.lab_id),
                        points_text(grade.earned()), points_text(grade.points()));
    for (const TestResult& result : grade.results) text += "," + points_text(result.earned);
    const std::optional<double> score = score_of(grade);
    if (scored) text += "," + (score.has_value() ? fmt::format("{:.1f}", *score) : "");
    text += "," + csv_cell(feedback_text(grade)) + "\n";
  }
  return text;
}

std::string class_text(const Lab& lab, std::span<const Grade> grades) {
  constexpr std::size_t kBins = 10;
  std::vector<Grade> submitted;
  std::ranges::copy_if(grades, std::back_inserter(submitted), [](const Grade& grade) { return !grade.missing(); });
  const std::size_t missing = grades.size() - submitted.size();
  std::string text =
      fmt::format("Lab {:02} {}: {}{}\n", lab.number, lab.name, counted(std::ssize(submitted), "submission"),
                  missing == 0 ? "" : fmt::format(", {} missing", missing));
  if (submitted.empty()) return text + students_text(grades);
  std::vector<double> all;
  std::array<std::size_t, kBins> bins{};
  for (const Grade& grade : submitted) {
    all.push_back(grade.earned());
    const double share = grade.points() > 0 ? grade.earned() / grade.points() : 0;
    ++bins[std::min(kBins - 1, static_cast<std::size_t>(share * kBins))];
  }
  double sum = 0;
  for (const double points : all) sum += points;
  text += fmt::format("mean {:.1f}, median {:.1f} of {} points{}\n", sum / static_cast<double>(all.size()), median(all),
                      lab.points(), missing == 0 ? "" : ", without the missing ones");
  text += limits_text(submitted);
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    text += fmt::format("  {:>3} to {:>3} %  {:>3}{}{}\n", bin * 10, (bin + 1) * 10, bins[bin],
                        bins[bin] == 0 ? "" : "  ", std::string(bins[bin], '#'));
  }
  return text + failures_text(lab, submitted) + leaderboard_text(submitted) + students_text(grades);
}

}  // namespace kvscope::labs

// Lab 07: eight outputs of wrong kernels. The student names the cause, the rows that fail, and a number that proves it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "apps/labs/graders.h"
#include "apps/labs/hunt_picture.h"
#include "apps/labs/unknown_names.h"
#include "core/attention/reference.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/nearest_name.h"
#include "core/base/report.h"
#include "core/golden/bundle/npz_bundle.h"
#include "core/golden/golden_bundle.h"

namespace kvscope::labs {
namespace {

constexpr std::string_view kHuntAnswers = "answers.json", kHuntForm = "answers";
constexpr std::array<std::string_view, kHuntGroups> kReports{"report_1", "report_2", "report_3", "report_4",
                                                             "report_5", "report_6", "report_7", "report_8"};
constexpr std::array<std::string_view, 4> kAnswersOfReport{"cause", "sequences", "heads", "evidence"};
constexpr std::size_t kLongestCause = 60;                       // of an answer; the rest is cut off
constexpr double kCausePart = 6.0 / 12, kPlacePart = 3.0 / 12;  // of a report's points; the rest is the evidence
constexpr std::int64_t kDims = HuntProblem::kDims;

// By HuntFault, without `none`: the order of the enumeration is that of the groups.
constexpr std::array<std::string_view, kHuntGroups * kFaultsPerGroup> kCauses{"table_entry",
                                                                              "table_rows_exchanged",
                                                                              "first_page_repeated",
                                                                              "one_key_too_many",
                                                                              "last_page_unmasked",
                                                                              "new_token_missing",
                                                                              "head_modulo",
                                                                              "head_divided_by_kv_heads",
                                                                              "head_zero",
                                                                              "k_read_as_v",
                                                                              "other_layer",
                                                                              "stride_of_one_layer",
                                                                              "scale_missing",
                                                                              "scale_twice",
                                                                              "maximum_not_added",
                                                                              "lse_base_two",
                                                                              "lse_without_logarithm",
                                                                              "lse_negated",
                                                                              "splits_averaged",
                                                                              "last_split_lost",
                                                                              "last_split_twice",
                                                                              "not_normalized",
                                                                              "divided_by_slots",
                                                                              "divided_twice"};

// The number that proves each cause, as in the handout's list.
constexpr std::array<std::string_view, kHuntGroups * kFaultsPerGroup> kEvidence{
    "that block",
    "the larger of the two sequences",
    "the block that the first sequence reads",
    "the keys read in the first sequence",
    "the keys read in the first sequence",
    "the keys read in the first sequence",
    "the KV head that the last query head of your list read",
    "the KV head that the last query head of your list read",
    "the KV head that the last query head of your list read",
    "the elements by which the address of V is too low",
    "the layer",
    "the block that the sequence with one key reads",
    "the factor of a in the scores: (lse - ln n) / a",
    "the factor of a in the scores: (lse - ln n) / a",
    "the factor of a in the lse: (lse - ln n) / a",
    "lse of the report / golden lse, in the first row",
    "lse of the report / golden lse, in the first row",
    "lse of the report / golden lse, in the first row",
    "the weight of the last split in o of the first sequence",
    "the weight of the last split in o of the first sequence",
    "the weight of the last split in o of the first sequence",
    "o of the report / golden o, in the first row",
    "o of the report / golden o, in the first row",
    "o of the report / golden o, in the first row"};

// What tells the faults of a group apart.
constexpr std::array<std::string_view, kHuntGroups> kQuestions{
    "which pages were read, and from which blocks? o[7] * n in hexadecimal, o[0] * n and o[6] * n",
    "how many keys were read? n * exp(lse of the report - lse of the golden output), in sequences of every length",
    "which KV head did each query head read? o[2], beside the number of the query head",
    "which row did the sequence with one key read? Its o is that row",
    "which score has the sequence with one key? Its lse is that score",
    "how do the two lse compare in the sequence with one key, where ln n is 0, and in the others?",
    "which pages count too much or too little? o[7] * n in hexadecimal, for each sequence with several splits",
    "by which factor do all dims of o differ? Compare sequences of different lengths"};

HuntFault fault_of(std::size_t cause) {
  return static_cast<HuntFault>(cause + 1);
}

// A student's eight reports.
struct HuntTask {
  HuntProblem problem;
  HuntOutput golden;
  std::vector<std::size_t> causes;  // [report] index in kCauses
};

HuntTask make_hunt_task(std::string_view student) {
  const Seed seed = task_seed(student, "07_fault_hunt");
  HuntTask task{make_hunt_problem(seed.random(0)), {}, {}};
  task.golden = run_hunt_kernel(task.problem, HuntFault::none);
  const CounterRng random = seed.random(1);
  std::uint64_t at = 0;
  const auto pick = [&](std::size_t count) {
    return static_cast<std::size_t>(random.integer(at++, 0, static_cast<std::int64_t>(count) - 1));
  };
  for (std::size_t group = 0; group < kHuntGroups; ++group) {
    task.causes.push_back(group * kFaultsPerGroup + pick(kFaultsPerGroup));
  }
  for (std::size_t i = kHuntGroups - 1; i > 0; --i) std::swap(task.causes[i], task.causes[pick(i + 1)]);
  return task;
}

// Files of the task -----------------------------------------------------------------------------------------------

attention::PagedRows tracer_rows(const HuntProblem& problem, std::int64_t kv) {
  const std::int64_t token = problem.kv_heads * kDims, page = problem.page_size * token;
  attention::PagedRows rows;
  rows.data = reinterpret_cast<const std::byte*>(problem.pool.data() + (kv * problem.layers + problem.layer) * page);
  rows.blocks = problem.blocks + 1;
  rows.page_size = problem.page_size;
  rows.heads = problem.kv_heads;
  rows.head_size = kDims;
  rows.block_stride = 2 * problem.layers * page;
  rows.token_stride = token;
  rows.head_stride = kDims;
  rows.table = problem.table.data();
  rows.table_stride = problem.columns;
  return rows;
}

// The golden output is the reference's, not the correct kernel's.
golden::Bundle hunt_golden(const HuntProblem& problem) {
  std::vector<float> q(static_cast<std::size_t>(problem.batch() * problem.query_heads() * kDims));
  for (std::size_t i = 0; i < q.size() / kDims; ++i) {
    q[i * kDims + HuntProblem::kScoreDim] = static_cast<float>(problem.query[i % problem.query.size()]);
  }
  std::vector<std::int64_t> offsets(problem.lengths.size() + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  attention::Problem attention;
  attention.batch = problem.batch();
  attention.query_heads = problem.query_heads();
  attention.q = reinterpret_cast<const std::byte*>(q.data());
  attention.query_offsets = offsets;
  attention.key_lengths = problem.lengths;
  attention.k = tracer_rows(problem, 0);
  attention.v = tracer_rows(problem, 1);
  attention.options.scale = problem.scale;
  return golden::golden_bundle(attention, attention::reference(attention), {"kvscope lab", "", std::nullopt});
}

golden::Bundle hunt_report(const HuntProblem& problem, const HuntOutput& output) {
  golden::Bundle bundle;
  const std::int64_t batch = problem.batch(), heads = problem.query_heads();
  bundle.tensors.emplace("o", golden::tensor_of<float>({batch, heads, kDims}, output.o));
  bundle.tensors.emplace("lse", golden::tensor_of<float>({batch, heads}, output.lse));
  return bundle;
}

// The same numbers to read without a program.
std::string output_text(const HuntProblem& problem, std::span<const float> o, std::span<const float> lse) {
  std::string text = fmt::format("{:>8}  {:>4}  {:>10}", "sequence", "head", "lse");
  for (std::int64_t d = 0; d < kDims; ++d) text += fmt::format("  {:>10}", fmt::format("o[{}]", d));
  for (std::size_t row = 0; row < lse.size(); ++row) {
    const auto heads = static_cast<std::size_t>(problem.query_heads());
    text += fmt::format("\n{:>8}  {:>4}  {:>10.7g}", row / heads, row % heads, lse[row]);
    for (const float value : o.subspan(row * kDims, kDims)) text += fmt::format("  {:>10.8g}", value);
  }
  return text + "\n";
}

template <class Number>
json::Array hunt_numbers(const std::vector<Number>& values) {
  json::Array array;
  for (const Number& value : values) array.emplace_back(value);
  return array;
}

std::string hunt_task_text(const HuntProblem& problem) {
  json::Value value;
  value.set("blocks_without_the_null_page", problem.blocks);
  value.set("layers", problem.layers);
  value.set("page_size", problem.page_size);
  value.set("kv_heads", problem.kv_heads);
  value.set("query_heads", problem.query_heads());
  value.set("layer_of_the_kernel", problem.layer);
  value.set("keys_per_split", problem.tokens_per_split);
  value.set("scale", problem.scale);
  value.set("query_dim_4_of_each_head", hunt_numbers(problem.query));
  value.set("keys_of_each_sequence", hunt_numbers(problem.lengths));
  json::Array table;
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    json::Array row;
    for (std::int64_t page = 0; page < problem.columns; ++page) {
      row.emplace_back(static_cast<std::int64_t>(problem.entry(b, page)));
    }
    table.emplace_back(std::move(row));
  }
  value.set("table", std::move(table));
  return json::dump(value) + "\n";
}

// Right answers ---------------------------------------------------------------------------------------------------

using HuntNumbers = std::vector<std::int64_t>;

struct HuntAnswer {
  std::string cause;
  HuntNumbers sequences, heads;  // rising
  double evidence = 0;
};

bool row_differs(const HuntOutput& golden, const HuntOutput& candidate, std::size_t row) {
  bool found = hunt_differs(golden.lse[row], candidate.lse[row]);
  for (std::size_t d = row * kDims; d < (row + 1) * kDims; ++d)
    found = found || hunt_differs(golden.o[d], candidate.o[d]);
  return found;
}

// The number that the handout asks for beside each cause.
double evidence_of(const HuntProblem& problem, HuntFault fault, const HuntAnswer& place, const HuntOutput& golden,
                   const HuntOutput& candidate) {
  const std::int64_t sequence = place.sequences.front(), heads = problem.query_heads();
  const auto row = static_cast<std::size_t>(sequence * heads + place.heads.front());
  const auto n = static_cast<double>(problem.lengths[static_cast<std::size_t>(sequence)]);
  const double splits = std::ceil(n / static_cast<double>(problem.tokens_per_split));
  const double last = n - (splits - 1) * static_cast<double>(problem.tokens_per_split);
  const auto slots = static_cast<double>(problem.pages(sequence) * problem.page_size);
  const auto dim_of = [&](std::int64_t of_row, std::int64_t dim) {
    return static_cast<double>(candidate.o[static_cast<std::size_t>(of_row * kDims + dim)]);
  };
  const std::int64_t one_key = std::ranges::find(problem.lengths, 1) - problem.lengths.begin();
  switch (fault) {
    case HuntFault::table_entry:
      return static_cast<double>(problem.entry_block);
    case HuntFault::table_rows_exchanged:
      return static_cast<double>(problem.exchanged[1]);
    case HuntFault::first_page_repeated:
      return static_cast<double>(problem.entry(sequence, 0));
    case HuntFault::one_key_too_many:
      return n + 1;
    case HuntFault::last_page_unmasked:
      return slots;
    case HuntFault::new_token_missing:
      return n - 1;
    case HuntFault::head_modulo:
    case HuntFault::head_divided_by_kv_heads:
    case HuntFault::head_zero:
      return dim_of(sequence * heads + place.heads.back(), 2);
    case HuntFault::k_read_as_v:
      return static_cast<double>(problem.layers * problem.page_size * problem.kv_heads * kDims);
    case HuntFault::other_layer:
      return dim_of(one_key * heads, 3);
    case HuntFault::stride_of_one_layer:
      return dim_of(one_key * heads, 0);
    case HuntFault::scale_missing:
      return 1;
    case HuntFault::scale_twice:
      return problem.scale * problem.scale;
    case HuntFault::maximum_not_added:
      return 0;
    case HuntFault::lse_base_two:
    case HuntFault::lse_without_logarithm:
    case HuntFault::lse_negated:
      return static_cast<double>(candidate.lse[row]) / static_cast<double>(golden.lse[row]);
    case HuntFault::splits_averaged:
      return 1 / splits;
    case HuntFault::last_split_lost:
      return 0;
    case HuntFault::last_split_twice:
      return 2 * last / (n + last);
    case HuntFault::not_normalized:
      return n;
    case HuntFault::divided_by_slots:
      return n / slots;
    case HuntFault::divided_twice:
      return 1 / n;
    case HuntFault::none:
      break;
  }
  KVSCOPE_ASSERT(fault != HuntFault::none);
  return 0;
}

HuntAnswer right_answer(const HuntTask& task, std::size_t cause, const HuntOutput& candidate) {
  HuntAnswer answer{std::string(kCauses[cause]), {}, {}, 0};
  const std::int64_t heads = task.problem.query_heads();
  for (std::int64_t row = 0; row < task.problem.batch() * heads; ++row) {
    if (!row_differs(task.golden, candidate, static_cast<std::size_t>(row))) continue;
    answer.sequences.push_back(row / heads);
    answer.heads.push_back(row % heads);
  }
  for (HuntNumbers* list : {&answer.sequences, &answer.heads}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  answer.evidence = evidence_of(task.problem, fault_of(cause), answer, task.golden, candidate);
  return answer;
}

// Grading ---------------------------------------------------------------------------------------------------------

struct GivenAnswer {
  std::string cause;
  std::optional<HuntNumbers> sequences, heads;
  std::optional<double> evidence;
  std::string missing;  // the first answer that is missing or of another type; empty: none
};

// A list of whole numbers in rising order without repetitions; empty for anything else.
std::optional<HuntNumbers> hunt_list(const json::Value& answer, std::string_view name) {
  const json::Value* member = answer.find(name);
  if (member == nullptr || member->as_array() == nullptr) return std::nullopt;
  HuntNumbers list;
  for (const json::Value& item : *member->as_array()) {
    if (item.as_i64() == nullptr) return std::nullopt;
    list.push_back(*item.as_i64());
  }
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

GivenAnswer given_answer(const json::Value& answers, const std::string& report) {
  GivenAnswer given;
  const json::Value* answer = answers.find(report);
  if (answer == nullptr) {
    given.missing = "all four answers are missing" + unknown_names(answers, report, kReports);
    return given;
  }
  if (const json::Value* cause = answer->find("cause"); cause != nullptr && cause->as_string() != nullptr) {
    given.cause = cause->as_string()->substr(0, kLongestCause);
  }
  given.sequences = hunt_list(*answer, "sequences");
  given.heads = hunt_list(*answer, "heads");
  if (const json::Value* evidence = answer->find("evidence"); evidence != nullptr && evidence->is_number()) {
    given.evidence = evidence->number();
  }
  const auto state = [&](std::string_view field, std::string_view type, bool present) {
    if (present || !given.missing.empty()) return;
    const json::Value* const value = answer->find(field);
    const bool none = value == nullptr || value->is_null();
    given.missing = none ? fmt::format("\"{}\" is missing: write {}{}", field, type,
                                       unknown_names(*answer, field, kAnswersOfReport))
                         : fmt::format("\"{}\" is not {}", field, type);
  };
  state("cause", "a name of the handout's list in quotes", !given.cause.empty());
  state("sequences", "a list of whole numbers, such as [0, 2]", given.sequences.has_value());
  state("heads", "a list of whole numbers, such as [0, 2]", given.heads.has_value());
  state("evidence", "a number without quotes", given.evidence.has_value());
  return given;
}

bool near_evidence(double right, double given) {
  return std::abs(right - given) <= std::max(5e-4, 2e-3 * std::abs(right));
}

// What is wrong with a list of rows, for a student who has the right cause. `count`: of the sequences or heads.
std::string list_fault(std::string_view what, const std::optional<HuntNumbers>& given, const HuntNumbers& right,
                       std::int64_t count) {
  if (!given) return fmt::format("the list of {}s is missing", what);
  for (const std::int64_t number : *given) {
    if (number < 0 || number >= count)
      return fmt::format("{} {} does not exist: {}s are counted from 0 to {}", what, number, what, count - 1);
  }
  const auto missing = std::ranges::find_if(right, [&](std::int64_t n) { return !std::ranges::count(*given, n); });
  return fmt::format("{} {}s fail; {}", missing == right.end() ? "fewer" : "other", what,
                     missing == right.end() ? "not every one of your list differs" : "compare o and lse of every row");
}

// The line of a comma before a closing bracket, which JSON does not allow; 0: there is none.
std::int64_t line_of_trailing_comma(std::string_view text) {
  for (std::size_t at = text.find(','); at != std::string_view::npos; at = text.find(',', at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    if (next != std::string_view::npos && (text[next] == '}' || text[next] == ']'))
      return 1 + std::ranges::count(text.substr(0, at), '\n');
  }
  return 0;
}

// The first row that fails, for a student to work out by hand.
std::string hunt_row_text(const HuntTask& task, const HuntAnswer& right, const HuntOutput& candidate,
                          const HuntOutput* named) {
  const std::int64_t sequence = right.sequences.front(), head = right.heads.front();
  const auto row = static_cast<std::size_t>(sequence * task.problem.query_heads() + head);
  const auto line = [&](std::string_view name, const HuntOutput& output) {
    const std::span<const float> o = std::span(output.o).subspan(row * kDims, kDims);
    return fmt::format("{}  lse {:.4g}  o {:.5g}", name, output.lse[row], fmt::join(o, " "));
  };
  return fmt::format(
      "sequence {} of {}, query head {}\n{}\n{}{}", sequence,
      counted(task.problem.lengths[static_cast<std::size_t>(sequence)], "key"), head, line("golden", task.golden),
      line("report", candidate),
      named == nullptr ? "" : "\n" + line("cause ", *named) + "  of a kernel with the cause that you name");
}

class FaultHuntGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TaskFile> task_files(std::string_view student) const override {
    const HuntTask task = make_hunt_task(student);
    const golden::Bundle reference = hunt_golden(task.problem);
    std::vector<TaskFile> files{{"task.json", hunt_task_text(task.problem)},
                                {"golden.npz", golden::npz_bundle_bytes(reference)},
                                {"golden.txt", output_text(task.problem, task.golden.o, task.golden.lse)}};
    for (std::size_t i = 0; i < task.causes.size(); ++i) {
      const HuntOutput output = run_hunt_kernel(task.problem, fault_of(task.causes[i]));
      const std::string name(kReports[i]);
      files.push_back({name + ".npz", golden::npz_bundle_bytes(hunt_report(task.problem, output))});
      files.push_back({name + ".txt", output_text(task.problem, output.o, output.lse)});
    }
    return files;
  }

  // The student's reports have one right answer each, so nothing depends on the seed of the grading.
  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& /*seed*/) const override {
    json::Value answers;
    try {
      answers = json::parse(submission.file(kHuntAnswers), kHuntAnswers);
    } catch (const InputError& error) {
      const std::int64_t comma = line_of_trailing_comma(submission.file(kHuntAnswers));
      std::vector<TestResult> rejected = all_failed(lab(), "not judged: answers.json is not valid JSON");
      rejected.front().message =
          comma == 0 ? error.what()
                     : fmt::format("answers.json, line {}: remove the comma before the closing bracket", comma);
      return rejected;
    }
    const HuntTask task = make_hunt_task(submission.student);
    std::vector<GivenAnswer> given;
    std::vector<TestResult> results;
    for (std::size_t i = 0; i < task.causes.size(); ++i) {
      const std::string name(kReports[i]);
      given.push_back(given_answer(answers, name));
      results.push_back(grade_report(task, task.causes[i], name, given.back()));
    }
    results.insert(results.begin(), grade_form(given));
    return results;
  }

 private:
  [[nodiscard]] TestResult grade_form(const std::vector<GivenAnswer>& given) const {
    std::string all;  // of the reports
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].missing.empty())
        all += fmt::format("{}{}: {}", all.empty() ? "" : "\n", kReports[i], given[i].missing);
    }
    if (!all.empty()) {
      const auto reports = std::ranges::count_if(given, [](const GivenAnswer& one) { return !one.missing.empty(); });
      return failed(lab(), kHuntForm, fmt::format("{} of {} reports lack an answer", reports, given.size()), all);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (given[j].cause == given[i].cause) {
          return failed(lab(), kHuntForm,
                        fmt::format("{} and {} have the same cause, {}: all eight differ", kReports[j], kReports[i],
                                    given[i].cause));
        }
      }
    }
    return passed(lab(), kHuntForm);
  }

  [[nodiscard]] TestResult grade_report(const HuntTask& task, std::size_t cause, const std::string& name,
                                        const GivenAnswer& given) const {
    const HuntOutput candidate = run_hunt_kernel(task.problem, fault_of(cause));
    const HuntAnswer right = right_answer(task, cause, candidate);
    const auto named = std::ranges::find(kCauses, given.cause);
    const bool other_cause = named != kCauses.end() && given.cause != right.cause;
    const HuntOutput output_of_named =
        other_cause ? run_hunt_kernel(task.problem, fault_of(static_cast<std::size_t>(named - kCauses.begin())))
                    : HuntOutput();
    const std::string row = hunt_row_text(task, right, candidate, other_cause ? &output_of_named : nullptr);
    const CasePicture picture =
        hunt_picture(task.problem,
                     {task.golden, candidate, other_cause ? &output_of_named : nullptr, right.sequences.front(),
                      right.heads.front()},
                     given.sequences.value_or(HuntNumbers()), given.heads.value_or(HuntNumbers()));
    const bool same_sequences = given.sequences == right.sequences, same_heads = given.heads == right.heads;
    const bool same_place = same_sequences && same_heads, same_cause = given.cause == right.cause;
    const std::size_t group = cause / kFaultsPerGroup;
    const double place_part = same_place ? kPlacePart : 0;
    const auto lost = [&](std::string message, int hint, double fraction) {
      return with_picture(failed(lab(), name, std::move(message), row, hint, fraction), picture);
    };

    if (given.cause.empty())
      return failed(lab(), name, "no cause: write a name of the handout's list", {}, 1, place_part);
    if (std::ranges::find(kCauses, given.cause) == kCauses.end()) {
      return failed(lab(), name,
                    fmt::format("'{}' is no cause of the list{}", given.cause, suggest_name(given.cause, kCauses)), {},
                    1, place_part);
    }
    if (!same_cause) {
      const bool alike = group == static_cast<std::size_t>(std::ranges::find(kCauses, given.cause) - kCauses.begin()) /
                                      kFaultsPerGroup;
      if (!same_place) return lost("another cause, and other rows fail", 1, 0);
      if (alike) return lost(fmt::format("right place, other cause: {}", kQuestions[group]), 3, place_part);
      return lost("right place, other cause: a kernel with the cause that you name gives other numbers", 2, place_part);
    }
    const bool same_evidence = given.evidence && near_evidence(right.evidence, *given.evidence);
    if (same_place && same_evidence) return passed(lab(), name);
    const double part = kCausePart + place_part + (same_evidence ? 1 - kCausePart - kPlacePart : 0);
    if (!same_place) {
      return lost("right cause, other place: " +
                      (same_sequences ? list_fault("head", given.heads, right.heads, task.problem.query_heads())
                                      : list_fault("sequence", given.sequences, right.sequences, task.problem.batch())),
                  1, part);
    }
    const std::string asked = fmt::format(": it is {}", kEvidence[cause]);
    if (!given.evidence) return lost("right cause and place; the evidence is missing or not a number" + asked, 2, part);
    if (right.evidence != 0 && near_evidence(1 / right.evidence, *given.evidence)) {
      return lost("right cause and place; the evidence is the inverse of the number asked for" + asked, 2, part);
    }
    return lost(fmt::format("right cause and place; the evidence is not {:.5g}{}", *given.evidence, asked), 2, part);
  }
};

}  // namespace

std::unique_ptr<Grader> fault_hunt_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<FaultHuntGrader>(lab, options);
}

}  // namespace kvscope::labs

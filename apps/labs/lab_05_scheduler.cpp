// Lab 05: a scheduling policy. Its decisions are replayed on traces of the seed and must follow the rules of the
// handout; the last test compares their cost with that of kvscope's own engine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "apps/labs/compile.h"
#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "apps/labs/scheduler_picture.h"
#include "apps/labs/scheduler_run.h"

namespace kvscope::labs {
namespace {

using Rule = SchedulerRule;

struct SchedulerTest {
  std::string_view name;
  std::vector<Rule> rules;  // whose faults lose the points, beside those that end a replay
};

bool ends_a_replay(Rule rule) {
  return rule == Rule::decision || rule == Rule::capacity || rule == Rule::finish;
}

std::vector<SchedulerTest> scheduler_tests() {
  return {{"admit", {Rule::order, Rule::need, Rule::starvation}},
          {"capacity", {}},
          {"preempt", {Rule::need}},
          {"watermark", {Rule::watermark}},
          {"starvation", {Rule::starvation}}};
}

constexpr std::size_t kTraces = 14, kSmallTraces = 7, kScoreTraces = 6;
constexpr double kFullScore = 95;  // [percent] of the engine's cost: the score that earns the points

struct TraceShape {
  std::int64_t requests, page_size, blocks, max_batch, prompt, generate, gap;  // maxima; blocks: exactly
};

SchedulerCase make_trace(const TraceShape& shape, const CounterRng& random) {
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  SchedulerCase made{shape.blocks, shape.page_size, shape.max_batch, {}};
  std::int64_t arrival = 0;
  for (std::int64_t r = 0; r < shape.requests; ++r) {
    SchedulerRequest request{arrival, pick(std::max<std::int64_t>(1, shape.prompt / 8), shape.prompt),
                             pick(std::max<std::int64_t>(2, shape.generate / 8), shape.generate)};
    // It fits alone: the last generated token is never stored.
    request.generate = std::min(request.generate, made.blocks * made.page_size - request.prompt + 1);
    made.requests.push_back(request);
    arrival += pick(0, shape.gap);
  }
  return made;
}

// Short requests whose pages become full in the same steps, so that several blocks are missing at once.
SchedulerCase make_lockstep(bool small, const CounterRng& random) {
  const std::int64_t page_size = small ? 4 : 8, count = small ? 5 : 12;
  SchedulerCase made{2 * count, page_size, count, {}};
  for (std::int64_t r = 0; r < count; ++r) {
    const auto at = static_cast<std::uint64_t>(r);
    made.requests.push_back({0, page_size, random.integer(at, 2 * page_size + 1, 3 * page_size)});
  }
  return made;
}

// A long request that needs nearly the whole pool arrives while short ones run and keep arriving.
SchedulerCase make_crowd(bool small, const CounterRng& random) {
  SchedulerCase made =
      make_trace(small ? TraceShape{9, 4, 8, 9, 5, 6, 1} : TraceShape{30, 8, 20, 30, 20, 16, 2}, random);
  SchedulerRequest& large = made.requests[2];
  large.prompt = made.blocks * made.page_size * 7 / 8;
  large.generate = made.page_size;
  made.requests[0].generate = 3 * made.page_size;
  return made;
}

SchedulerCase make_test_trace(const SchedulerTest& test, const CounterRng& random, std::size_t number) {
  const CounterRng own(random.bits(number), number);
  const bool small = number < kSmallTraces;
  // More requests than max_batch, and blocks for all of them. In the other tests max_batch is no limit.
  if (test.name == "admit") {
    return make_trace(small ? TraceShape{6, 4, 64, 2, 10, 6, 2} : TraceShape{20, 8, 2000, 5, 60, 30, 3}, own);
  }
  if (test.name == "starvation" && number % 2 == 1) return make_crowd(small, own);
  if (test.name == "starvation") {  // the oldest request is the largest one too
    SchedulerCase made = make_lockstep(small, own);
    made.requests[0].prompt *= 2;
    return made;
  }
  if (test.name != "watermark" && number % 2 == 1) return make_lockstep(small, own);
  return make_trace(small ? TraceShape{5, 4, 7, 5, 10, 12, 2} : TraceShape{24, 8, 28, 24, 60, 60, 4}, own);
}

SchedulerCase make_score_trace(const CounterRng& random, std::size_t number) {
  return make_trace({60, 8, 64, 60, 60, 80, 3}, CounterRng(random.bits(number), number));
}

class SchedulerGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const Compiled compiled = compile_cpp(*this, submission);
    if (!compiled.ok) return all_failed(lab(), "policy.cpp does not compile", compile_failure(compiled));
    std::vector<TestResult> results;
    const std::vector<SchedulerTest> tests = scheduler_tests();
    for (std::size_t i = 0; i < tests.size(); ++i) {
      std::vector<SchedulerCase> traces;
      for (std::size_t n = 0; n < kTraces; ++n) traces.push_back(make_test_trace(tests[i], seed.random(i), n));
      results.push_back(grade_rules(tests[i], traces, compiled.product));
    }
    const auto broken = std::ranges::find_if_not(results, &TestResult::passed);
    results.push_back(broken == results.end()
                          ? grade_score(seed.random(tests.size()), compiled.product)
                          : failed(lab(), "score", fmt::format("no score while `{}` fails", broken->name), {}, 0));
    return results;
  }

 private:
  struct Runs {
    std::vector<SchedulerRun> runs;  // of the traces that the program answered
    HarnessRun harness;
    bool malformed = false;
  };

  [[nodiscard]] Runs run_traces(const std::vector<SchedulerCase>& traces, const std::string& program) const {
    std::vector<Words> sent;
    for (const SchedulerCase& made : traces) sent.push_back(words_of(made));
    Runs runs{{}, run_cases(options(), program, sent)};
    for (std::size_t i = 0; i < runs.harness.results.size() && !runs.malformed; ++i) {
      const auto decisions = parse_decisions(runs.harness.results[i]);
      runs.malformed = !decisions.has_value();
      if (decisions.has_value()) runs.runs.push_back(replay(traces[i], *decisions));
    }
    return runs;
  }

  // The result of a program that did not answer every trace; empty if it did.
  [[nodiscard]] std::optional<TestResult> unanswered(std::string_view test, const std::vector<SchedulerCase>& traces,
                                                     const Runs& runs) const {
    if (runs.malformed)
      return failed(lab(), test, "the result is no list of decisions: does your code write to the pipe?");
    if (runs.runs.size() == traces.size()) return std::nullopt;
    return stopped_in_case(lab(), test, runs.harness, text_of(traces[runs.runs.size()]));
  }

  // `answer`: the decisions of the run that has this fault, as the program sent them.
  [[nodiscard]] TestResult failed_by(std::string_view test, const SchedulerCase& made, const SchedulerFault& fault,
                                     const Words& answer) const {
    const bool first = ends_a_replay(fault.rule) || fault.rule == Rule::order;
    std::vector<SchedulerStep> timeline;
    static_cast<void>(replay(made, parse_decisions(answer).value(), &timeline));
    return with_picture(failed(lab(), test, fault.message,
                               text_of(made) + (fault.state.empty() ? "" : "\n" + fault.state), first ? 1 : 2),
                        scheduler_picture(made, fault, timeline));
  }

  // The fault of the trace with the fewest requests; among those, the earliest one.
  [[nodiscard]] TestResult grade_rules(const SchedulerTest& test, const std::vector<SchedulerCase>& traces,
                                       const std::string& program) const {
    const Runs runs = run_traces(traces, program);
    const SchedulerFault* shown = nullptr;
    std::size_t of = 0;
    for (std::size_t i = 0; i < runs.runs.size(); ++i) {
      for (const SchedulerFault& fault : runs.runs[i].faults) {
        const bool counts = ends_a_replay(fault.rule) || std::ranges::find(test.rules, fault.rule) != test.rules.end();
        const auto size = [&](std::size_t trace, const SchedulerFault& f) {
          return std::pair(traces[trace].requests.size(), f.step);
        };
        if (!counts || (shown != nullptr && size(of, *shown) <= size(i, fault))) continue;
        shown = &fault;
        of = i;
      }
    }
    if (shown != nullptr) return failed_by(test.name, traces[of], *shown, runs.harness.results[of]);
    if (const auto result = unanswered(test.name, traces, runs)) return *result;
    return passed(lab(), test.name);
  }

  // The score is 100 times the engine's cost by the policy's, over all traces.
  [[nodiscard]] TestResult grade_score(const CounterRng& random, const std::string& program) const {
    std::vector<SchedulerCase> traces;
    for (std::size_t n = 0; n < kScoreTraces; ++n) traces.push_back(make_score_trace(random, n));
    const Runs runs = run_traces(traces, program);
    SchedulerRun own, engine, serial;
    for (std::size_t i = 0; i < runs.runs.size(); ++i) {
      if (!runs.runs[i].faults.empty()) {
        return failed_by("score", traces[i], runs.runs[i].faults.front(), runs.harness.results[i]);
      }
      for (const auto& [sum, run] : {std::pair(&own, runs.runs[i]), std::pair(&engine, engine_run(traces[i]))}) {
        sum->steps += run.steps;
        sum->preemptions += run.preemptions;
        sum->recomputed += run.recomputed;
      }
      serial.steps += traces[i].serial_finish().back() + 1;
    }
    if (const auto result = unanswered("score", traces, runs)) return *result;
    const double score = 100 * engine.cost() / own.cost();
    const auto figures = [](const SchedulerRun& run) {
      return fmt::format("{} steps, {} preemptions, {} tokens computed again", run.steps, run.preemptions,
                         run.recomputed);
    };
    const std::string text =
        fmt::format("score {:.1f}: {}; kvscope's engine, score 100: {}; one request at a time, score {:.1f}: {} steps",
                    score, figures(own), figures(engine), 100 * engine.cost() / serial.cost(), serial.steps);
    TestResult result = score >= kFullScore
                            ? passed(lab(), "score", text)
                            : failed(lab(), "score", fmt::format("{}. {:g} earns the points", text, kFullScore), {}, 3);
    result.score = score;
    return result;
  }
};

}  // namespace

std::unique_ptr<Grader> scheduler_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<SchedulerGrader>(lab, options);
}

}  // namespace kvscope::labs

// Lab 06: online softmax over tiles, and the merge of two parts, within bounds of float32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <functional>
#include <limits>

#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "apps/labs/softmax_case.h"

namespace kvscope::labs {
namespace {

constexpr double kAgrees = 1e-4;  // of a student's result with that of a typical error

// attend() with typical errors, in float32.
struct FlowError {
  std::string message;
  int hint = 1;
  bool no_maximum = false, keep_l = false, keep_o = false, inverted = false, last_lost = false, past_end = false,
       no_division = false, nan_of_masked = false, nan_of_empty = false, first_maximum = false;
  enum class Lse { right, without_m, without_log, of_l } lse = Lse::right;
};

Numbers wrong_attend(const SoftmaxCase& made, const FlowError& error) {
  Numbers o(static_cast<std::size_t>(made.dim), 0.0F);
  float m = kMinusInfinity, l = 0;
  for (std::int64_t first = 0; first < made.keys(); first += made.tile) {
    const std::int64_t last = std::min(first + made.tile, made.keys());
    if (error.last_lost && last == made.keys()) break;
    float next = m;
    for (std::int64_t key = first; key < last; ++key) next = std::max(next, made.score(key));
    if (error.first_maximum && first > 0) next = m;
    if (error.no_maximum) next = 0;
    if (next == kMinusInfinity && !error.nan_of_masked) continue;
    if (error.past_end && last - first < made.tile) l = std::numeric_limits<float>::quiet_NaN();
    const float change = error.no_maximum || (first == 0 && !error.nan_of_masked) ? (m == kMinusInfinity ? 0.0F : 1.0F)
                         : error.inverted                                         ? std::exp(next - m)
                                                                                  : std::exp(m - next);
    const float rescale = l == 0 && !error.nan_of_masked ? 0.0F : change;
    l *= error.keep_l ? 1 : rescale;
    for (float& each : o) each *= error.keep_o ? 1 : rescale;
    for (std::int64_t key = first; key < last; ++key) {
      const float p = std::exp(made.score(key) - next);
      l += p;
      for (std::int64_t d = 0; d < made.dim; ++d) o[static_cast<std::size_t>(d)] += p * made.value(key, d);
    }
    m = next;
  }
  const bool empty = l == 0 && !error.nan_of_empty;
  for (float& each : o) each = empty ? 0 : error.no_division ? each : each / l;
  using Lse = FlowError::Lse;
  o.push_back(empty                           ? kMinusInfinity
              : error.lse == Lse::without_m   ? std::log(l)
              : error.lse == Lse::without_log ? m + l
              : error.lse == Lse::of_l        ? l
                                              : m + std::log(l));
  return o;
}

std::vector<FlowError> flow_errors() {
  using Lse = FlowError::Lse;
  return {
      {.message = "no running maximum: inf at a score of 700", .hint = 1, .no_maximum = true},
      {.message = "the sum is not rescaled when a later tile has a larger maximum", .hint = 2, .keep_l = true},
      {.message = "the output is not rescaled when a later tile has a larger maximum", .hint = 2, .keep_o = true},
      {.message = "neither sum nor output is rescaled when a later tile has a larger maximum",
       .hint = 2,
       .keep_l = true,
       .keep_o = true},
      {.message = "the factor is inverted: old sums shrink by exp(old maximum - new maximum)",
       .hint = 2,
       .inverted = true},
      {.message = "the last tile is ignored", .hint = 2, .last_lost = true},
      {.message = "the last tile has fewer keys than the others: the memory past its last key is read",
       .hint = 2,
       .past_end = true},
      {.message = "the output is not divided by the sum", .hint = 1, .no_division = true},
      {.message = "NaN: a tile without a visible key has the maximum -inf, and exp(-inf - -inf) is NaN",
       .hint = 3,
       .nan_of_masked = true,
       .nan_of_empty = true},
      {.message = "NaN: a row without a visible key has the sum 0; its output is 0 and its lse -inf",
       .hint = 3,
       .nan_of_empty = true},
      {.message = "the maximum of the first tile is kept for all tiles", .hint = 2, .first_maximum = true},
      {.message = "the lse lacks the maximum: it is m + log(l)", .hint = 1, .lse = Lse::without_m},
      {.message = "the lse lacks the logarithm: it is m + log(l)", .hint = 1, .lse = Lse::without_log},
      {.message = "the sum is returned instead of the lse, m + log(l)", .hint = 1, .lse = Lse::of_l},
      {.message = "no running maximum: inf at a score of 700", .hint = 1, .no_maximum = true, .nan_of_empty = true},
  };
}

// merge() with typical errors, in float32.
struct MergeError {
  std::string message;
  std::function<Numbers(const SoftmaxCase&)> result;
};

Numbers merged(const SoftmaxCase& made, float w0, float w1, float divisor, float lse) {
  Numbers o;
  for (std::int64_t d = 0; d < made.dim; ++d) o.push_back((w0 * made.value(0, d) + w1 * made.value(1, d)) / divisor);
  o.push_back(lse);
  return o;
}

std::vector<MergeError> merge_errors() {
  using C = const SoftmaxCase&;
  const auto weight = [](C c, int part) { return std::exp(c.part_lse(part) - std::max(c.lse[0], c.lse[1])); };
  const auto lse_of = [weight](C c) { return std::max(c.lse[0], c.lse[1]) + std::log(weight(c, 0) + weight(c, 1)); };
  return {
      {"no maximum in the merge: exp(lse) is inf from 89 on",
       [](C c) {
         const float w0 = std::exp(c.lse[0]), w1 = std::exp(c.lse[1]);
         return merged(c, w0, w1, w0 + w1, std::log(w0 + w1));
       }},
      {"the merge does not handle empty parts: both lse are -inf, and -inf - -inf is NaN",
       [=](C c) { return merged(c, weight(c, 0), weight(c, 1), weight(c, 0) + weight(c, 1), lse_of(c)); }},
      {"the parts are averaged: the weight of a part is exp(lse)",
       [=](C c) {
         return merged(c, 1, 1, 2, std::max(c.lse[0], c.lse[1]) == kMinusInfinity ? kMinusInfinity : lse_of(c));
       }},
      {"the parts are added without their weights",
       [=](C c) {
         return merged(c, 1, 1, 1, std::max(c.lse[0], c.lse[1]) == kMinusInfinity ? kMinusInfinity : lse_of(c));
       }},
      {"the weighted sum is not divided by the sum of the weights",
       [=](C c) {
         const bool empty = std::max(c.lse[0], c.lse[1]) == kMinusInfinity;
         return empty ? merged(c, 0, 0, 1, kMinusInfinity) : merged(c, weight(c, 0), weight(c, 1), 1, lse_of(c));
       }},
      {"the merged lse is the larger of the two: it is m + log(w_a + w_b)",
       [=](C c) {
         const bool empty = std::max(c.lse[0], c.lse[1]) == kMinusInfinity;
         return empty
                    ? merged(c, 0, 0, 1, kMinusInfinity)
                    : merged(c, weight(c, 0), weight(c, 1), weight(c, 0) + weight(c, 1), std::max(c.lse[0], c.lse[1]));
       }},
      {"the weights are exchanged: the part with the larger lse has the larger weight",
       [=](C c) {
         const bool empty = std::max(c.lse[0], c.lse[1]) == kMinusInfinity;
         return empty ? merged(c, 0, 0, 1, kMinusInfinity)
                      : merged(c, weight(c, 1), weight(c, 0), weight(c, 0) + weight(c, 1), lse_of(c));
       }},
  };
}

bool agrees(double given, double wrong) {
  if (std::isnan(given) || std::isnan(wrong)) return std::isnan(given) && std::isnan(wrong);
  if (std::isinf(given) || std::isinf(wrong)) return given == wrong;
  return std::abs(given - wrong) <= kAgrees * (1 + std::abs(wrong));
}

bool agrees(const Words& given, const Numbers& wrong) {
  return std::ranges::equal(given, wrong,
                            [](std::int64_t word, float number) { return agrees(double_of(word), number); });
}

std::string text_of_case(const SoftmaxCase& made) {
  if (made.is_merge()) return fmt::format("merge: dim {}, lse_a {:g}, lse_b {:g}", made.dim, made.lse[0], made.lse[1]);
  std::string text = fmt::format("attend: {} keys, dim {}, tiles of {} keys, ", made.keys(), made.dim, made.tile);
  if (made.repeats > 1) {
    return text + fmt::format("{} MiB of scores and values; the process has {} MiB of memory", made.bytes() >> 20,
                              kOnePassMemory >> 20);
  }
  text += made.taken ? "each tile overwritten by the next call of next(), scores" : "scores";
  for (std::size_t i = 0; i < std::min<std::size_t>(made.scores.size(), 24); ++i)
    text += fmt::format(" {:.4g}", made.scores[i]);
  return text + (made.scores.size() > 24 ? " ..." : "");
}

std::string softmax_number(double number, int digits = 4) {
  return std::isnan(number) ? "NaN" : fmt::format("{:.{}g}", number, digits);  // the sign of a NaN means nothing
}

constexpr double kNotWritten = 12345;  // what o holds before the call: docs/labs/06_softmax/harness.cpp

constexpr double kTakenValue = 4096;  // the values of a tile that was overwritten, there; those of a row are below 2

// The first number outside its bound; empty when all are inside.
std::string outside(const SoftmaxCase& made, const Words& given) {
  const Allowed allowed = expected_result(made);
  for (std::size_t i = 0; i < allowed.value.size(); ++i) {
    const double number = double_of(given[i]);
    if (number == allowed.value[i] || std::abs(number - allowed.value[i]) <= allowed.error[i]) continue;
    const std::string name = i + 1 == allowed.value.size() ? "lse" : fmt::format("o[{}]", i);
    const std::string gave =
        number == kNotWritten ? "did not write it" : fmt::format("gave {}", softmax_number(number, 8));
    return fmt::format("{}\n{}: expected {:.8g} within {:.2g}, your code {}", text_of_case(made), name,
                       allowed.value[i], allowed.error[i], gave);
  }
  return {};
}

// The running maximum, sum and output of a row tile by tile, as the handout describes them, in double.
PictureGrid tiles_grid(const SoftmaxCase& made) {
  constexpr std::size_t kTilesShown = 12;
  PictureGrid grid{"the row, tile by tile (not yet divided by l)",
                   {},
                   {{"scores", {}},
                    {"maximum of the tile", {}},
                    {"running maximum m", {}},
                    {"exp(old m - m)", {}},
                    {"running sum l", {}},
                    {"o[0] so far", {}}}};
  double m = static_cast<double>(kMinusInfinity), l = 0, o = 0;
  for (std::int64_t first = 0; first < made.keys() && grid.columns.size() < kTilesShown; first += made.tile) {
    const std::int64_t last = std::min(first + made.tile, made.keys());
    double largest = static_cast<double>(kMinusInfinity);
    std::string scores;
    for (std::int64_t key = first; key < last; ++key) {
      const float score = made.score(key);
      largest = std::max(largest, static_cast<double>(score));
      if (key < first + 4) scores += fmt::format("{}{:.4g}", key == first ? "" : " ", score);
      if (key == first + 4) scores += " ...";
    }
    const double next = std::max(m, largest),
                 change = m == static_cast<double>(kMinusInfinity) ? 0 : std::exp(m - next);
    l *= change;
    o *= change;
    for (std::int64_t key = first; key < last && next != static_cast<double>(kMinusInfinity); ++key) {
      const double p = std::exp(static_cast<double>(made.score(key)) - next);
      l += p;
      o += p * static_cast<double>(made.value(key, 0));
    }
    m = next;
    grid.columns.push_back(fmt::format("keys {} to {}", first, last - 1));
    const CellMark moved = change == 1 ? CellMark::plain : CellMark::used;
    grid.rows[0].cells.push_back({scores});
    grid.rows[1].cells.push_back({softmax_number(largest)});
    grid.rows[2].cells.push_back({softmax_number(m), moved});
    grid.rows[3].cells.push_back({softmax_number(change), moved});
    grid.rows[4].cells.push_back({softmax_number(l)});
    grid.rows[5].cells.push_back({softmax_number(o)});
  }
  return grid;
}

PictureGrid merge_grid(const SoftmaxCase& made) {
  const float largest = std::max(made.lse[0], made.lse[1]);
  PictureGrid grid{"the two parts", {"a", "b"}, {{"lse", {}}, {"exp(lse - larger lse)", {}}, {"o[0]", {}}}};
  for (int part = 0; part < 2; ++part) {
    const bool empty = made.part_lse(part) == kMinusInfinity;
    grid.rows[0].cells.push_back({softmax_number(static_cast<double>(made.part_lse(part)))});
    grid.rows[1].cells.push_back(
        {empty ? "0" : softmax_number(std::exp(static_cast<double>(made.part_lse(part) - largest))), CellMark::used});
    grid.rows[2].cells.push_back({softmax_number(static_cast<double>(made.value(part, 0)))});
  }
  return grid;
}

// The first number outside its bound has the expected value beside it.
CasePicture picture_of_case(const SoftmaxCase& made, const Words& given) {
  constexpr std::size_t kNumbersShown = 9;
  const Allowed allowed = expected_result(made);
  PictureGrid result{"the result", {}, {{"your code", {}}}};
  bool marked = false;
  for (std::size_t i = 0; i < allowed.value.size(); ++i) {
    const double number = double_of(given[i]);
    const bool right = number == allowed.value[i] || std::abs(number - allowed.value[i]) <= allowed.error[i];
    const bool last = i + 1 == allowed.value.size();
    if (result.columns.size() + 1 >= kNumbersShown && !last && (right || marked)) continue;
    result.columns.push_back(last ? "lse" : fmt::format("o[{}]", i));
    PictureCell cell{number == kNotWritten ? "not written" : softmax_number(number),
                     right ? CellMark::plain : CellMark::wrong};
    if (!right && !marked) cell.note = fmt::format("expected {:.8g}", allowed.value[i]);
    marked |= !right;
    result.rows[0].cells.push_back(std::move(cell));
  }
  return {{made.is_merge() ? merge_grid(made) : tiles_grid(made), std::move(result)},
          made.is_merge() ? "weights of the parts" : "a larger maximum: the earlier sums shrink"};
}

class SoftmaxGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const Compiled compiled = compile_cpp(*this, submission);
    if (!compiled.ok) return all_failed(lab(), "softmax.cpp does not compile", compile_failure(compiled));
    std::vector<TestResult> results;
    for (std::size_t i = 0; i < kSoftmaxTests.size(); ++i) {
      results.push_back(grade_test(kSoftmaxTests[i], seed.random(i), compiled.product));
    }
    return results;
  }

 private:
  // Of the test one_pass. In a short row, a tile that is read too late has scores and values far above those of the
  // row; the long row does not fit into memory.
  [[nodiscard]] static std::string second_pass(std::span<const SoftmaxCase> cases, const HarnessRun& run) {
    for (std::size_t i = 0; i < run.results.size(); ++i) {
      if (std::ranges::any_of(run.results[i], [](std::int64_t word) { return double_of(word) > kTakenValue / 2; })) {
        return "a tile is read after next() has handed out a later one: keep m, l and o instead";
      }
    }
    const bool no_memory = run.signal == SIGABRT || run.signal == SIGSEGV;  // of bad_alloc, or of a null pointer
    if (run.results.size() + 1 != cases.size() || !no_memory) return {};
    return "all tiles are kept, and the row does not fit into memory: keep m, l and o instead";
  }

  [[nodiscard]] TestResult grade_test(const SoftmaxTest& test, const CounterRng& random,
                                      const std::string& program) const {
    std::vector<SoftmaxCase> cases;
    std::vector<Words> sent;
    for (std::size_t number = 0; number < kSoftmaxCases; ++number) {
      cases.push_back(make_softmax_case(test.scores, random, number));
      sent.push_back(words_of(cases.back()));
    }
    const bool once = test.scores == Scores::once;
    const HarnessRun run =
        once ? run_cases(options(), program, sent, kOnePassMemory) : run_cases(options(), program, sent);
    std::string text;
    CasePicture picture;
    for (std::size_t i = 0; i < run.results.size() && text.empty(); ++i) {
      if (run.results[i].size() != static_cast<std::size_t>(cases[i].dim + 1)) {
        return failed(lab(), test.name, "the result has another size", text_of_case(cases[i]));
      }
      text = outside(cases[i], run.results[i]);
      if (!text.empty()) picture = picture_of_case(cases[i], run.results[i]);
    }
    if (text.empty() && run.results.size() == cases.size()) return passed(lab(), test.name);
    const std::string looked_back = once ? second_pass(cases, run) : "";
    if (text.empty()) {
      TestResult stopped = stopped_in_case(lab(), test.name, run, text_of_case(cases[run.results.size()]));
      if (looked_back.empty()) return stopped;
      return failed(lab(), test.name, looked_back, stopped.case_text + "\n" + run.failure);
    }
    const auto explains = [&](const auto& wrong) {
      for (std::size_t i = 0; i < run.results.size(); ++i) {
        if (!agrees(run.results[i], wrong(cases[i]))) return false;
      }
      return true;
    };
    if (test.scores == Scores::merge) {
      for (const MergeError& error : merge_errors()) {
        if (explains(error.result)) return with_picture(failed(lab(), test.name, error.message, text), picture);
      }
    } else {
      for (const FlowError& error : flow_errors()) {
        if (explains([&](const SoftmaxCase& made) { return wrong_attend(made, error); })) {
          return with_picture(failed(lab(), test.name, error.message, text, error.hint), picture);
        }
      }
    }
    const std::string message = looked_back.empty() ? "a result is outside its bound" : looked_back;
    return with_picture(failed(lab(), test.name, message, text), picture);
  }
};

}  // namespace

std::unique_ptr<Grader> softmax_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<SoftmaxGrader>(lab, options);
}

}  // namespace kvscope::labs

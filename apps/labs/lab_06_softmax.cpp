// Lab 06: online softmax over tiles, and the merge of two parts, within bounds of float32.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "apps/labs/case_stream.h"
#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "core/attention/bounds.h"
#include "core/attention/merge.h"
#include "core/attention/reference.h"

namespace kvscope::labs {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr std::size_t kSoftmaxCases = 12;  // of each test
constexpr double kAgrees = 1e-4;           // of a student's result with that of a typical error

using Numbers = std::vector<float>;

// attend(): scores and values. merge(): two outputs and two lse.
struct SoftmaxCase {
  std::int64_t dim = 1, tile = 1;
  Numbers scores;         // [keys]; empty: a merge
  Numbers values;         // [keys, dim], or [2, dim]
  float lse[2] = {0, 0};  // of the two parts of a merge

  [[nodiscard]] bool is_merge() const { return scores.empty(); }
  [[nodiscard]] std::int64_t keys() const { return static_cast<std::int64_t>(scores.size()); }
  [[nodiscard]] float value(std::int64_t row, std::int64_t d) const {
    return values[static_cast<std::size_t>(row * dim + d)];
  }
};

enum class Scores { small, large, rising, masked, merge };

struct SoftmaxTest {
  std::string_view name;
  Scores scores;
};
constexpr std::array kSoftmaxTests{SoftmaxTest{"small", Scores::small}, SoftmaxTest{"large_scores", Scores::large},
                                   SoftmaxTest{"tiles", Scores::rising}, SoftmaxTest{"masked", Scores::masked},
                                   SoftmaxTest{"merge", Scores::merge}};

SoftmaxCase make_softmax_case(Scores kind, const CounterRng& random, std::size_t number) {
  std::uint64_t at = number * 100000;
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * random.uniform(at++));
  };
  SoftmaxCase made;
  made.dim = number < 4 ? 2 : random.integer(at++, 2, 16);
  if (kind == Scores::merge) {
    made.values.resize(static_cast<std::size_t>(2 * made.dim));
    for (float& value : made.values) value = uniform(0.5, 2.0) * (random.bits(at++) % 2 == 0 ? 1.0F : -1.0F);
    // The first cases: equal weights, a large and a small lse, an empty part, two empty parts, one far below the other.
    const float base = number % 2 == 0 ? uniform(-4, 4) : uniform(150, 700);
    made.lse[0] = number == 2 || number == 3 ? kMinusInfinity : base;
    made.lse[1] = number == 3 || number == 4 ? kMinusInfinity : number == 5 ? base - 200 : base + uniform(1, 6);
    for (int part = 0; part < 2; ++part) {
      for (std::int64_t d = 0; d < made.dim && made.lse[part] == kMinusInfinity; ++d) {
        made.values[static_cast<std::size_t>(part * made.dim + d)] = 0;
      }
    }
    return made;
  }
  made.tile = number < 4 ? 4 : random.integer(at++, 2, 32);
  const std::int64_t tiles = kind == Scores::small ? 1 : random.integer(at++, 3, 6);
  // The last tile is partial in every second case.
  const std::int64_t keys = tiles * made.tile - (number % 2 == 1 ? random.integer(at++, 1, made.tile - 1) : 0);
  // Some rows overflow without any maximum, others only with that of the first tile.
  const float first_tile = number % 4 == 0 ? 200.0F : 0.0F, steep = number % 4 == 2 ? 50.0F : 1.5F;
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto rise = static_cast<double>(key / made.tile);
    made.scores.push_back(kind == Scores::large    ? 700 + uniform(-2, 2)
                          : kind == Scores::rising ? first_tile + static_cast<float>(rise) * steep + uniform(0, 1)
                                                   : uniform(-2, 2));
  }
  if (kind == Scores::masked) {
    // A tile without a visible key at the beginning, one in the middle, single keys, and once the whole row.
    for (std::int64_t key = 0; key < keys; ++key) {
      const bool hidden = number == 3 || (number % 3 == 0 && key < made.tile) ||
                          (key >= made.tile && key < 2 * made.tile) || (key % 5 == 2);
      if (hidden) made.scores[static_cast<std::size_t>(key)] = kMinusInfinity;
    }
    if (number != 3) made.scores.back() = 1;
  }
  for (std::int64_t i = 0; i < keys * made.dim; ++i) {
    made.values.push_back(uniform(0.5, 2.0) * (random.bits(at++) % 2 == 0 ? 1.0F : -1.0F));
  }
  return made;
}

Words words_of(const SoftmaxCase& made) {
  Words words{made.is_merge() ? 1 : 0, made.keys(), made.dim, made.tile};
  for (const float score : made.scores) words.push_back(word_of(score));
  if (made.is_merge()) words.insert(words.end(), {word_of(made.lse[0]), word_of(made.lse[1])});
  for (const float value : made.values) words.push_back(word_of(value));
  return words;
}

struct Allowed {
  std::vector<double> value, error;  // [dim + 1]: o, then lse
};

// The reference over the visible keys, as a problem with one query, one head and keys of one element, and its bounds
// for a kernel in float32.
Allowed expected_attend(const SoftmaxCase& made) {
  Numbers keys, values;
  for (std::int64_t key = 0; key < made.keys(); ++key) {
    if (made.scores[static_cast<std::size_t>(key)] == kMinusInfinity) continue;
    keys.push_back(made.scores[static_cast<std::size_t>(key)]);
    for (std::int64_t d = 0; d < made.dim; ++d) values.push_back(made.value(key, d));
  }
  Allowed allowed{std::vector<double>(static_cast<std::size_t>(made.dim + 1)),
                  std::vector<double>(static_cast<std::size_t>(made.dim + 1))};
  if (keys.empty()) {
    allowed.value.back() = kMinusInfinity;
    return allowed;
  }
  const auto count = static_cast<std::int64_t>(keys.size());
  const float one = 1;
  const std::uint32_t block = 0;
  const std::array<std::int64_t, 2> offsets{0, 1};
  const std::array<std::int64_t, 1> lengths{count};
  attention::Problem problem;
  problem.batch = 1;
  problem.query_heads = 1;
  problem.q = reinterpret_cast<const std::byte*>(&one);
  problem.query_offsets = offsets;
  problem.key_lengths = lengths;
  const auto rows = [&](const Numbers& numbers, std::int64_t size) {
    attention::PagedRows result;
    result.data = reinterpret_cast<const std::byte*>(numbers.data());
    result.blocks = 1;
    result.page_size = count;
    result.heads = 1;
    result.head_size = size;
    result.block_stride = count * size;
    result.token_stride = result.head_stride = size;
    result.table = &block;
    result.table_stride = 1;
    return result;
  };
  problem.k = rows(keys, 1);
  problem.v = rows(values, made.dim);
  problem.options.mask = MaskKind::none;
  const attention::Result golden = attention::reference(problem);
  attention::Rounding rounding = attention::rounding_of(DType::f32);
  rounding.tile_keys = made.tile;
  const attention::RowTerms terms = attention::row_terms(golden, 0, 0, 1);
  for (std::int64_t d = 0; d < made.dim; ++d) {
    const auto i = static_cast<std::size_t>(d);
    allowed.value[i] = golden.o(0, 0, i);
    allowed.error[i] = attention::output_budget(rounding, terms, attention::element_terms(golden, 0, 0, i)).total();
  }
  allowed.value.back() = golden.lse(0, 0);
  allowed.error.back() = attention::lse_budget(rounding, terms).total();
  return allowed;
}

// merge_row in double. In float32 with u = 2^-24: each weight has a relative error of 4 u (exp) and d u (its argument
// -d), sums, products and the quotient one of 6 u. d <= 8 where a weight matters, so 32 u cover them; below, the weight
// itself is under e^-8 of the other one.
Allowed expected_merge(const SoftmaxCase& made) {
  constexpr double kUnit = 0x1p-24;
  std::vector<double> o, other;
  for (std::int64_t d = 0; d < made.dim; ++d) {
    o.push_back(made.value(0, d));
    other.push_back(made.value(1, d));
  }
  double lse = made.lse[0];
  attention::merge_row(o, lse, other, made.lse[1], attention::LseBase::natural);
  Allowed allowed{o, {}};
  allowed.value.push_back(lse);
  const double largest = std::max(made.lse[0], made.lse[1]);
  for (std::int64_t d = 0; d < made.dim; ++d) {
    double sum = 0, weights = 0;
    for (int part = 0; part < 2; ++part) {
      if (made.lse[part] == kMinusInfinity) continue;
      const double weight = std::exp(made.lse[part] - largest);
      sum += weight * std::abs(made.value(part, d));
      weights += weight;
    }
    allowed.error.push_back(weights > 0 ? 32 * kUnit * sum / weights : 0);
  }
  allowed.error.push_back(std::isfinite(lse) ? 8 * kUnit * (1 + std::abs(largest)) : 0);
  return allowed;
}

// attend() with typical errors, in float32.
struct FlowError {
  std::string message;
  int hint = 1;
  bool no_maximum = false, keep_l = false, keep_o = false, inverted = false, whole_tiles = false, no_division = false,
       nan_of_masked = false, nan_of_empty = false, first_maximum = false;
  enum class Lse { right, without_m, without_log, of_l } lse = Lse::right;
};

Numbers wrong_attend(const SoftmaxCase& made, const FlowError& error) {
  Numbers o(static_cast<std::size_t>(made.dim), 0.0F);
  float m = kMinusInfinity, l = 0;
  for (std::int64_t first = 0; first < made.keys(); first += made.tile) {
    const std::int64_t last = std::min(first + made.tile, made.keys());
    if (error.whole_tiles && last - first < made.tile) break;
    float next = m;
    for (std::int64_t key = first; key < last; ++key) next = std::max(next, made.scores[static_cast<std::size_t>(key)]);
    if (error.first_maximum && first > 0) next = m;
    if (error.no_maximum) next = 0;
    if (next == kMinusInfinity && !error.nan_of_masked) continue;
    const float change = error.no_maximum || (first == 0 && !error.nan_of_masked) ? (m == kMinusInfinity ? 0.0F : 1.0F)
                         : error.inverted                                         ? std::exp(next - m)
                                                                                  : std::exp(m - next);
    const float rescale = l == 0 && !error.nan_of_masked ? 0.0F : change;
    l *= error.keep_l ? 1 : rescale;
    for (float& each : o) each *= error.keep_o ? 1 : rescale;
    for (std::int64_t key = first; key < last; ++key) {
      const float p = std::exp(made.scores[static_cast<std::size_t>(key)] - next);
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
      {.message = "the last tile is ignored when it is not full", .hint = 2, .whole_tiles = true},
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
  const auto weight = [](C c, int part) { return std::exp(c.lse[part] - std::max(c.lse[0], c.lse[1])); };
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
  std::string text = fmt::format("attend: {} keys, dim {}, tile {}, scores", made.keys(), made.dim, made.tile);
  for (std::size_t i = 0; i < std::min<std::size_t>(made.scores.size(), 24); ++i)
    text += fmt::format(" {:.4g}", made.scores[i]);
  return text + (made.scores.size() > 24 ? " ..." : "");
}

std::string softmax_number(double number, int digits = 4) {
  return std::isnan(number) ? "NaN" : fmt::format("{:.{}g}", number, digits);  // the sign of a NaN means nothing
}

constexpr double kNotWritten = 12345;  // what o holds before the call: docs/labs/06_softmax/harness.cpp

// The first number outside its bound; empty when all are inside.
std::string outside(const SoftmaxCase& made, const Words& given) {
  const Allowed allowed = made.is_merge() ? expected_merge(made) : expected_attend(made);
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
      const float score = made.scores[static_cast<std::size_t>(key)];
      largest = std::max(largest, static_cast<double>(score));
      if (key < first + 4) scores += fmt::format("{}{:.4g}", key == first ? "" : " ", score);
      if (key == first + 4) scores += " ...";
    }
    const double next = std::max(m, largest),
                 change = m == static_cast<double>(kMinusInfinity) ? 0 : std::exp(m - next);
    l *= change;
    o *= change;
    for (std::int64_t key = first; key < last && next != static_cast<double>(kMinusInfinity); ++key) {
      const double p = std::exp(static_cast<double>(made.scores[static_cast<std::size_t>(key)]) - next);
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
    const bool empty = made.lse[part] == kMinusInfinity;
    grid.rows[0].cells.push_back({softmax_number(static_cast<double>(made.lse[part]))});
    grid.rows[1].cells.push_back(
        {empty ? "0" : softmax_number(std::exp(static_cast<double>(made.lse[part] - largest))), CellMark::used});
    grid.rows[2].cells.push_back({softmax_number(static_cast<double>(made.value(part, 0)))});
  }
  return grid;
}

// The first number outside its bound has the expected value beside it.
CasePicture picture_of_case(const SoftmaxCase& made, const Words& given) {
  constexpr std::size_t kNumbersShown = 9;
  const Allowed allowed = made.is_merge() ? expected_merge(made) : expected_attend(made);
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
  [[nodiscard]] TestResult grade_test(const SoftmaxTest& test, const CounterRng& random,
                                      const std::string& program) const {
    std::vector<SoftmaxCase> cases;
    std::vector<Words> sent;
    for (std::size_t number = 0; number < kSoftmaxCases; ++number) {
      cases.push_back(make_softmax_case(test.scores, random, number));
      sent.push_back(words_of(cases.back()));
    }
    const HarnessRun run = run_cases(options(), program, sent);
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
    if (text.empty()) return stopped_in_case(lab(), test.name, run, text_of_case(cases[run.results.size()]));
    const auto explains = [&](const auto& wrong) {
      for (std::size_t i = 0; i < run.results.size(); ++i) {
        if (!agrees(run.results[i], wrong(cases[i]))) return false;
      }
      return true;
    };
    if (test.scores == Scores::merge) {
      for (const MergeError& error : merge_errors()) {
        if (explains(error.result)) return with_picture(failed(lab(), test.name, error.message, text, 3), picture);
      }
    } else {
      for (const FlowError& error : flow_errors()) {
        if (explains([&](const SoftmaxCase& made) { return wrong_attend(made, error); })) {
          return with_picture(failed(lab(), test.name, error.message, text, error.hint), picture);
        }
      }
    }
    return with_picture(failed(lab(), test.name, "a result is outside its bound", text, 1), picture);
  }
};

}  // namespace

std::unique_ptr<Grader> softmax_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<SoftmaxGrader>(lab, options);
}

}  // namespace kvscope::labs

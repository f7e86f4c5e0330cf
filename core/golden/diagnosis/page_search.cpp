#include "core/golden/diagnosis/page_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <utility>

#include "core/attention/bounds.h"
#include "core/base/interruption.h"

namespace kvscope::golden {
namespace {

constexpr double kNoFit = std::numeric_limits<double>::infinity();

// exp(lse - maximum) * [1, o, a1, a2^2] of some keys; `sum2` is the sum of the squares of their weights.
struct Part {
  double sum = 0, smax = 0, sum2 = 0;
  std::vector<double> o, a1, a2;
  explicit Part(std::size_t dims) : o(dims), a1(dims), a2(dims) {}
};

Part part_of(const RowEvaluator::Terms& terms, std::size_t first, std::size_t last, std::size_t dims, double maximum) {
  interruption_point();
  Part part(dims);
  for (std::size_t i = first; i < last; ++i) {
    const double e = std::exp(terms.scores[i] - maximum);
    part.smax = std::max(part.smax, std::fabs(terms.scores[i]));
    part.sum += e;
    part.sum2 += e * e;
    for (std::size_t d = 0; d < dims; ++d) {
      const double x = e * terms.values[i][d];
      part.o[d] += x;
      part.a1[d] += std::fabs(x);
      part.a2[d] += x * x;
    }
  }
  return part;
}

void add_part(Part& to, const Part& part, double sign) {
  to.sum += sign * part.sum;
  to.sum2 += sign * part.sum2;
  to.smax = std::max(to.smax, part.smax);
  for (std::size_t d = 0; d < to.o.size(); ++d) {
    to.o[d] += sign * part.o[d];
    to.a1[d] += sign * part.a1[d];
    to.a2[d] += sign * part.a2[d];
  }
}

// By how much a prediction is nearer to the candidate than the golden is.
double gain_of(double candidate, double golden, double predicted, double variance) {
  if (!(variance > 0) || !std::isfinite(variance)) return 0;
  return ((candidate - golden) * (candidate - golden) - (candidate - predicted) * (candidate - predicted)) / variance;
}

// rest + in, compared with the candidate; stops at the first dim past the bound.
// `correct`: the terms of the correct row; `loose`: a bound of lse that holds for any weights.
struct Judge {
  const CandidateRow& candidate;
  attention::RowTerms correct;
  double loose = 0;
  const RowNoise& noise;

  Judge(const CandidateRow& row, const attention::RowTerms& terms, const RowNoise& row_noise)
      : candidate(row), correct(terms), noise(row_noise) {
    attention::RowTerms any = terms;
    any.p2 = 1;
    // Other keys have other partial sums: the largest possible ones.
    correct.score_sum = any.score_sum = -1;
    correct.row_sum_so_far = any.row_sum_so_far = 1;
    correct.largest_value = any.largest_value = -1;  // and other values
    for (std::size_t i = 0; i < attention::kClumpTypes; ++i) correct.row_sum_cut[i] = any.row_sum_cut[i] = -1;
    std::fill(std::begin(any.clump), std::end(any.clump), 1.0);
    any.lse = std::isfinite(candidate.lse) ? candidate.lse : 0;
    loose = 2 * attention::lse_budget(candidate.lse_rounding, any).total();
  }
};

// How well a prediction fits: error / allowed, or kNoFit, and how much of the distance it explains, in variances.
struct PageFit {
  double misfit = kNoFit, gain = 0;
};

PageFit fit_of(const Judge& judge, const Part& rest, const Part* in, double extra, double maximum, double to_stored) {
  const CandidateRow& candidate = judge.candidate;
  const double sum = rest.sum + (in != nullptr ? in->sum : 0) + extra;
  if (!(sum > 0)) return {};
  const double lse = (maximum + std::log(sum)) * to_stored;
  if (candidate.has_lse && !(std::fabs(candidate.lse - lse) <= judge.loose)) return {};
  attention::RowTerms terms = judge.correct;
  terms.smax = std::max(rest.smax, in != nullptr ? in->smax : 0.0);
  terms.lse = lse;
  terms.p2 = std::sqrt(std::max(0.0, rest.sum2 + (in != nullptr ? in->sum2 : 0))) / sum;
  double worst = 0, gain = 0;
  const RowNoise& noise = judge.noise;
  if (candidate.has_lse) {
    const double error = candidate.lse - lse;
    worst = std::fabs(error) / attention::lse_budget(candidate.lse_rounding, terms).toward(error).total();
    if (!(worst <= 1)) return {};
  }
  const attention::OutputBudgets budgets(candidate.rounding, terms);
  for (std::size_t d = 0; d < candidate.o.size(); ++d) {
    const double o = (rest.o[d] + (in != nullptr ? in->o[d] : 0)) / sum;
    const double a1 = (rest.a1[d] + (in != nullptr ? in->a1[d] : 0)) / sum;
    const double a2 = std::sqrt(std::max(0.0, rest.a2[d] + (in != nullptr ? in->a2[d] : 0))) / sum;
    const double largest = std::max(a1, 0.0);
    const double ratio = std::fabs(candidate.o[d] - o) / budgets.of({o, largest, a2, largest}).total();
    if (!(ratio <= 1)) return {};
    worst = std::max(worst, ratio);
    gain += gain_of(candidate.o[d], noise.golden[d], o, noise.variance[d]);
  }
  if (candidate.has_lse) gain += gain_of(candidate.lse, noise.lse, lse, noise.lse_variance);
  return {worst, gain};
}

// A row without keys: zeros, and the lse of an empty row.
bool is_empty_row(const CandidateRow& candidate, attention::EmptyRow empty) {
  const bool zeros = std::all_of(candidate.o.begin(), candidate.o.end(), [](double x) { return x == 0; });
  return zeros &&
         (!candidate.has_lse || candidate.lse == (empty == attention::EmptyRow::minus_infinity ? -kNoFit : kNoFit));
}

// What kernels store for a row without keys: o of zeros or of NaN (0 / 0), and lse without a finite value. -1e9 and
// less are initial values of a running maximum.
bool is_without_keys(const CandidateRow& candidate) {
  const bool zeros = std::ranges::all_of(candidate.o, [](double x) { return x == 0; });
  const bool nan = std::ranges::all_of(candidate.o, [](double x) { return std::isnan(x); });
  return (zeros || nan) && (!candidate.has_lse || !std::isfinite(candidate.lse) || candidate.lse <= -1e9);
}

std::vector<std::int64_t> blocks_to_search(const attention::Problem& problem) {
  std::vector<std::int64_t> blocks;
  if (problem.k.blocks <= kSearchedBlocks) {
    for (std::int64_t b = 0; b < problem.k.blocks; ++b) blocks.push_back(b);
    return blocks;
  }
  std::set<std::int64_t> named;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (const KeyRead& key : keys_of(problem, b, 0, problem.keys(b))) {
      if (key.block >= 0 && key.block < problem.k.blocks) named.insert(key.block);
    }
  }
  blocks.assign(named.begin(), named.end());
  if (blocks.size() > static_cast<std::size_t>(kSearchedBlocks))
    blocks.resize(static_cast<std::size_t>(kSearchedBlocks));
  return blocks;
}

struct Found {
  double distance = 0;  // -gain, and 2 ln of the number of such trials: of those that fit alike, the plainest first
  std::int64_t page = 0;
  std::int64_t block = 0;   // or one of the values below
  std::int64_t key = -1;    // a single key instead of a page
  std::int64_t other = -1;  // kExchanged: the page that `page` is exchanged with
};
constexpr std::int64_t kLeftOut = -1, kTwice = -2, kZeros = -3, kExchanged = -4, kElsewhere = -5;

// A page read from its own block, but from another layer or the other side of the K/V axis.
struct Elsewhere {
  std::string name, from, look_at;
  std::function<void(KeyRead&)> change;
};

std::vector<Elsewhere> places_elsewhere(const DiagnosisInput& input) {
  std::vector<Elsewhere> places;
  const attention::Problem& problem = input.problem;
  for (std::int64_t layer = 0; layer < input.layers; ++layer) {
    const std::int64_t by = layer - input.layer;
    if (by == 0) continue;
    const std::int64_t bytes = by * input.layer_stride * size_of(problem.k.dtype);
    const std::int64_t k_scales = by * input.scale_layer_stride * size_of(problem.k.scale_dtype);
    const std::int64_t v_scales = by * input.scale_layer_stride * size_of(problem.v.scale_dtype);
    const std::string from = fmt::format("was read from layer {}, not {}", layer, input.layer);
    const auto add = [&](const std::string& more, std::int64_t k, std::int64_t v) {
      places.push_back({"page_from_other_layer", from + more, "the layer offset of this page, or an old copy of it",
                        [=](KeyRead& key) {
                          key.layer_bytes = bytes;
                          key.k_scale_layer_bytes = k;
                          key.v_scale_layer_bytes = v;
                        }});
    };
    add("", k_scales, v_scales);
    if (k_scales != 0) add(", with the scales of the correct layer", 0, 0);
  }
  if (problem.k.data != problem.v.data && problem.k.head_size == problem.v.head_size) {
    const std::string look_at = "the K/V offset of this page, or an old copy of it";
    places.push_back(
        {"page_v_is_k", "has V read where K is stored", look_at, [](KeyRead& key) { key.v_from_k = true; }});
    places.push_back(
        {"page_k_is_v", "has K read where V is stored", look_at, [](KeyRead& key) { key.k_from_v = true; }});
    places.push_back({"page_k_and_v_exchanged", "has K and V exchanged", look_at,
                      [](KeyRead& key) { key.k_from_v = key.v_from_k = true; }});
  }
  return places;
}

std::function<RowValue(const RowEvaluator&)> prediction(const Found& found, const std::vector<Elsewhere>& places,
                                                        std::int64_t page_size) {
  const std::function<void(KeyRead&)> change =
      found.block == kElsewhere ? places[static_cast<std::size_t>(found.other)].change : nullptr;
  return [=](const RowEvaluator& row) {
    Recipe recipe = row.correct();
    for (KeyRead& key : recipe.keys) {
      const std::int64_t page = key.position / page_size;
      if (found.block == kExchanged && (page == found.page || page == found.other)) {
        const attention::PagedRows& k = row.problem().k;
        key.block = k.table[row.sequence() * k.table_stride + (page == found.page ? found.other : found.page)];
        continue;
      }
      const bool meant = found.key >= 0 ? key.position == found.key : page == found.page;
      if (!meant) continue;
      if (change) change(key);
      if (found.block == kLeftOut) key.weight = 0;
      if (found.block == kTwice) key.weight = 2;
      if (found.block == kZeros) key.zeros = true;
      if (found.block >= 0) {
        key.block = found.block;
        key.k_scale_block = key.v_scale_block = -1;
      }
    }
    return row.evaluate(recipe);
  };
}

Trial trial_of(const Found& found, const std::vector<Elsewhere>& places, const RowEvaluator& row) {
  const attention::PagedRows& k = row.problem().k;
  const std::int64_t sequence = row.sequence();
  Trial trial;
  trial.sequence = sequence;
  trial.page = found.key >= 0 ? found.key / k.page_size : found.page;
  trial.predict = prediction(found, places, k.page_size);
  if (found.key >= 0) {
    trial.name = found.block == kTwice ? "key_twice" : "key_missing";
    trial.cause =
        fmt::format("key {} of sequence {} (page {}, slot {}) is {}", found.key, sequence, found.key / k.page_size,
                    found.key % k.page_size, found.block == kTwice ? "counted twice" : "left out");
    trial.look_at =
        found.block == kTwice ? "the boundary between two splits or tiles" : "the loop over keys, the splits' ends";
    return trial;
  }
  if (found.block == kExchanged) {
    trial.name = "pages_exchanged";
    trial.cause = fmt::format("pages {} and {} of sequence {} are exchanged", found.page, found.other, sequence);
    trial.look_at = fmt::format("lookup table entries [{0}, {1}] and [{0}, {2}] as the kernel reads them", sequence,
                                found.page, found.other);
    return trial;
  }
  const std::int64_t right = k.table[sequence * k.table_stride + found.page];
  if (found.block == kElsewhere) {
    const Elsewhere& place = places[static_cast<std::size_t>(found.other)];
    trial.name = place.name;
    trial.cause = fmt::format("page {} of sequence {} {} (block {})", found.page, sequence, place.from, right);
    trial.look_at = place.look_at;
    return trial;
  }
  if (found.block >= 0) {
    trial.name = "page_from_other_block";
    trial.cause =
        fmt::format("page {} of sequence {} was read from block {}, not {}", found.page, sequence, found.block, right);
    for (std::int64_t b = 0; b < row.problem().batch; ++b) {
      const std::vector<KeyRead> keys = keys_of(row.problem(), b, 0, row.problem().keys(b));
      for (std::size_t i = 0; i < keys.size(); i += static_cast<std::size_t>(k.page_size)) {
        if (keys[i].block == found.block) {
          trial.cause += fmt::format("; block {} is page {} of sequence {}", found.block,
                                     static_cast<std::int64_t>(i) / k.page_size, b);
          b = row.problem().batch;
          break;
        }
      }
    }
    trial.look_at = fmt::format("lookup table entry [{}, {}] as the kernel reads it", sequence, found.page);
  } else {
    trial.name = found.block == kLeftOut ? "page_missing" : found.block == kTwice ? "page_twice" : "page_of_zeros";
    trial.cause = fmt::format("page {} of sequence {} (block {}) is {}", found.page, sequence, right,
                              found.block == kLeftOut ? "left out"
                              : found.block == kTwice ? "counted twice"
                                                      : "read as zeros");
    trial.look_at = found.block == kZeros ? "the copy of this page: it has not landed, or its box is out of bounds"
                                          : "the loop over pages, the splits' ends";
  }
  return trial;
}

// Whether it may be a fault of the loop over keys or pages, which is the same in all sequences: two of them have this
// key or page. The first page has its hypothesis.
bool is_of_loop(const Found& found, const attention::Problem& problem) {
  const std::int64_t page_size = problem.k.page_size;
  const std::int64_t position = found.key >= 0 ? found.key : found.page * page_size;
  std::int64_t sequences = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) sequences += problem.keys(b) > position ? 1 : 0;
  const bool is_first_page = found.key >= 0 ? page_size == 1 && found.key == 0 : found.page == 0;
  return sequences > 1 &&
         ((found.block == kLeftOut && !is_first_page) || found.block == kTwice || found.block == kZeros);
}

// The same fault at this place of every sequence; `trial` is that of one.
Trial in_every_sequence(const Found& found, Trial trial) {
  const std::string what = found.block == kLeftOut ? "left out"
                           : found.block == kTwice ? "counted twice"
                                                   : "read as zeros";
  trial.cause = found.key >= 0 ? fmt::format("key {} of every sequence (page {}) is {}", found.key, trial.page, what)
                               : fmt::format("page {} of every sequence is {}", found.page, what);
  trial.sequence = trial.page = -1;
  trial.one_of_many = true;
  return trial;
}

// Exchanging two pages changes the output only where one of them is partly visible: the first or the last page.
void search_exchanges(const RowEvaluator& row, const RowEvaluator::Terms& all_terms, const Part& all,
                      const auto& consider, double maximum) {
  const Recipe& correct = row.correct();
  const std::int64_t page_size = row.problem().k.page_size;
  const std::size_t dims = static_cast<std::size_t>(row.problem().v.head_size);
  struct Span {
    std::int64_t page;
    std::size_t first, last;
  };
  std::vector<Span> pages;
  for (std::size_t i = 0; i < correct.keys.size(); ++i) {
    const std::int64_t page = correct.keys[i].position / page_size;
    if (pages.empty() || pages.back().page != page) pages.push_back({page, i, i});
    pages.back().last = i + 1;
  }
  if (pages.size() < 2) return;
  std::vector<std::size_t> partial;
  for (const std::size_t p : {pages.size() - 1, std::size_t{0}}) {
    if (static_cast<std::int64_t>(pages[p].last - pages[p].first) < page_size) partial.push_back(p);
  }
  for (const std::size_t p : partial) {
    for (std::size_t other = 0; other < pages.size(); ++other) {
      if (other == p || (partial.size() == 2 && p == partial.back() && other == partial.front())) continue;
      Recipe swapped = correct;
      swapped.keys.clear();
      Part rest = all;
      for (const auto& [here, there] : {std::pair{p, other}, {other, p}}) {
        add_part(rest, part_of(all_terms, pages[here].first, pages[here].last, dims, maximum), -1);
        for (std::size_t i = pages[here].first; i < pages[here].last; ++i) {
          KeyRead key = correct.keys[i];
          key.block = correct.keys[pages[there].first].block;
          swapped.keys.push_back(key);
        }
      }
      const RowEvaluator::Terms terms = row.terms(swapped);
      if (terms.outside) continue;
      const Part in = part_of(terms, 0, terms.scores.size(), dims, maximum);
      consider(rest, &in, 0, Found{0, pages[other].page, kExchanged, -1, pages[p].page});
    }
  }
}

}  // namespace

double misfit(const CandidateRow& candidate, const RowValue& predicted) {
  if (predicted.outside) return kNoFit;
  if (predicted.lost_keys && is_without_keys(candidate)) return 0;
  const auto ratio = [](double have, double want, double allowed) {
    if (std::isnan(have) || std::isnan(want)) return std::isnan(have) && std::isnan(want) ? 0.0 : kNoFit;
    if (std::isinf(have) || std::isinf(want)) return have == want ? 0.0 : kNoFit;
    if (!std::isfinite(allowed)) return have == want ? 0.0 : kNoFit;  // a row without keys: its bound excludes nothing
    return std::fabs(have - want) / allowed;
  };
  double worst = 0;
  const attention::RowTerms terms = predicted.terms;
  const attention::OutputBudgets budgets(candidate.rounding, terms);
  for (std::size_t d = 0; d < std::min(candidate.o.size(), predicted.o.size()); ++d) {
    worst = std::max(worst, ratio(candidate.o[d], predicted.o[d], budgets.of(predicted.element(d)).total()));
  }
  if (candidate.has_lse) {
    const attention::Budget budget =
        attention::lse_budget(candidate.lse_rounding, terms).toward(candidate.lse - predicted.terms.lse);
    worst = std::max(worst, ratio(candidate.lse, predicted.terms.lse, budget.total()));
  }
  if (predicted.o.empty() && !(worst > 1)) return kNoFit;
  return std::isnan(worst) ? kNoFit : worst;
}

std::vector<Trial> page_search(const DiagnosisInput& input, const RowEvaluator& row, const CandidateRow& candidate,
                               const RowNoise& noise, std::size_t limit) {
  const attention::Problem& problem = row.problem();
  const Recipe& correct = row.correct();
  const RowEvaluator::Terms all_terms = row.terms(correct);
  if (all_terms.outside || correct.keys.empty()) return {};
  const std::size_t dims = static_cast<std::size_t>(problem.v.head_size);
  const std::int64_t page_size = problem.k.page_size;
  double maximum = *std::max_element(all_terms.scores.begin(), all_terms.scores.end());
  if (correct.sink) maximum = std::max(maximum, *correct.sink);
  const double to_stored = correct.lse_base == attention::LseBase::two ? std::numbers::log2e : 1.0;
  const Judge judge(candidate, row.evaluate(correct).terms, noise);
  Part all = part_of(all_terms, 0, all_terms.scores.size(), dims, maximum);
  if (correct.sink) all.sum += std::exp(*correct.sink - maximum);
  // The sum over all keys but [first, last). A difference loses all digits when these keys have nearly all the weight.
  const auto without = [&](std::size_t first, std::size_t last, const Part& out) {
    Part rest = all;
    if (out.sum < 0.5 * all.sum) {
      add_part(rest, out, -1);
      return rest;
    }
    rest = part_of(all_terms, 0, first, dims, maximum);
    add_part(rest, part_of(all_terms, last, all_terms.scores.size(), dims, maximum), 1);
    if (correct.sink) rest.sum += std::exp(*correct.sink - maximum);
    return rest;
  };

  const std::vector<Elsewhere> places = places_elsewhere(input);
  std::vector<Found> found;
  const auto consider = [&](const Part& rest, const Part* in, double extra, const Found& what) {
    const PageFit fit = fit_of(judge, rest, in, extra, maximum, to_stored);
    if (fit.misfit <= 1 && fit.gain > 0) {
      found.push_back(what);
      const auto pages = static_cast<double>(correct.keys.size()) / static_cast<double>(page_size);
      const double choices = what.key >= 0              ? static_cast<double>(correct.keys.size())
                             : what.block == kExchanged ? pages * pages
                             : what.block == kElsewhere ? pages * static_cast<double>(places.size())
                             : what.block >= 0          ? pages * static_cast<double>(problem.k.blocks)
                                                        : pages;
      found.back().distance = 2 * std::log(choices) - fit.gain;
    }
  };

  // One key.
  for (std::size_t i = 0; i < correct.keys.size(); ++i) {
    const Part key = part_of(all_terms, i, i + 1, dims, maximum);
    const std::int64_t position = correct.keys[i].position;
    consider(without(i, i + 1, key), nullptr, 0, {0, position / page_size, kLeftOut, position, -1});
    consider(all, &key, 0, {0, position / page_size, kTwice, position, -1});
  }

  std::vector<RowEvaluator::Terms> elsewhere;
  for (const Elsewhere& place : places) {
    Recipe recipe = correct;
    for (KeyRead& key : recipe.keys) place.change(key);
    elsewhere.push_back(row.terms(recipe));
  }

  // One page. A block's terms at page p differ from those at page 0 by the ALiBi bias alone, a factor.
  const std::vector<std::int64_t> blocks = blocks_to_search(problem);
  Recipe block_recipe = correct;
  block_recipe.keys.clear();
  for (const std::int64_t block : blocks) {
    for (std::int64_t slot = 0; slot < page_size; ++slot) {
      KeyRead key;
      key.block = block;
      key.slot = slot;
      key.position = slot;
      block_recipe.keys.push_back(key);
    }
  }
  const bool scales_by_sequence = problem.k.scales_table != nullptr;
  const RowEvaluator::Terms block_terms = scales_by_sequence ? RowEvaluator::Terms{} : row.terms(block_recipe);
  const bool searchable = !scales_by_sequence && !block_terms.outside;
  std::size_t first = 0;
  std::vector<Part> whole;  // of each block, its first `cached_slots` slots
  std::size_t cached_from = 0, cached_to = 0;
  for (std::size_t last = 0; first < correct.keys.size(); first = last) {
    const std::int64_t page = correct.keys[first].position / page_size;
    while (last < correct.keys.size() && correct.keys[last].position / page_size == page) ++last;
    const Part out = part_of(all_terms, first, last, dims, maximum);
    const Part rest = without(first, last, out);
    const std::size_t from = static_cast<std::size_t>(correct.keys[first].slot);
    const std::size_t to = from + (last - first);
    if (last - first == correct.keys.size() && is_empty_row(candidate, correct.empty_row)) {
      found.push_back({0, page, kLeftOut, -1, -1});
    }
    consider(rest, nullptr, 0, {0, page, kLeftOut, -1, -1});
    consider(all, &out, 0, {0, page, kTwice, -1, -1});
    double zeros = 0;
    for (std::size_t i = first; i < last; ++i) {
      zeros +=
          std::exp(correct.slope * (static_cast<double>(correct.keys[i].position) - correct.slope_origin) - maximum);
    }
    consider(rest, nullptr, zeros, {0, page, kZeros, -1, -1});
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (elsewhere[i].outside) continue;
      const Part in = part_of(elsewhere[i], first, last, dims, maximum);
      consider(rest, &in, 0, {0, page, kElsewhere, -1, static_cast<std::int64_t>(i)});
    }
    if (!searchable) continue;
    if (whole.empty() || cached_from != from || cached_to != to || correct.slope != 0) {
      whole.clear();
      const double bias = correct.slope * static_cast<double>(page * page_size);
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        const std::size_t begin = b * static_cast<std::size_t>(page_size);
        whole.push_back(part_of(block_terms, begin + from, begin + to, dims, maximum - bias));
      }
      cached_from = from;
      cached_to = to;
    }
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b] != correct.keys[first].block) consider(rest, &whole[b], 0, {0, page, blocks[b], -1, -1});
    }
  }
  search_exchanges(row, all_terms, all, consider, maximum);
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.distance < b.distance; });
  if (found.size() > limit) found.resize(limit);
  // A page read from the block of another page of its sequence may be half of an exchange, of which this row sees one.
  const std::vector<Found> single = found;
  for (const Found& f : single) {
    if (f.block < 0) continue;
    const std::vector<KeyRead> keys = keys_of(problem, row.sequence(), 0, problem.keys(row.sequence()));
    for (std::size_t i = 0; i < keys.size(); i += static_cast<std::size_t>(page_size)) {
      const std::int64_t page = keys[i].position / page_size;
      if (keys[i].block == f.block && page != f.page) found.push_back({f.distance, f.page, kExchanged, -1, page});
    }
  }
  std::vector<Trial> trials;
  trials.reserve(found.size());
  for (const Found& f : found) {
    trials.push_back(trial_of(f, places, row));
    if (is_of_loop(f, problem)) trials.push_back(in_every_sequence(f, trials.back()));
  }
  return trials;
}

std::vector<Trial> trials_of_page(const DiagnosisInput& input, const RowEvaluator& row, std::int64_t page,
                                  std::int64_t other) {
  const std::vector<Elsewhere> places = places_elsewhere(input);
  std::vector<Found> found{{0, page, kLeftOut, -1, -1}, {0, page, kTwice, -1, -1}, {0, page, kZeros, -1, -1}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    found.push_back({0, page, kElsewhere, -1, static_cast<std::int64_t>(i)});
  }
  if (other >= 0) {
    const attention::PagedRows& k = row.problem().k;
    found.push_back({0, page, std::int64_t{k.table[row.sequence() * k.table_stride + other]}, -1, -1});
    found.push_back({0, page, kExchanged, -1, other});
  }
  std::vector<Trial> trials;
  for (const Found& f : found) trials.push_back(trial_of(f, places, row));
  return trials;
}

}  // namespace kvscope::golden

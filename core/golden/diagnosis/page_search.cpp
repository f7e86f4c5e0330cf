#include "core/golden/diagnosis/page_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <utility>

#include "core/attention/bounds.h"
#include "core/base/interruption.h"
#include "core/golden/diagnosis/detail/page_faults.h"

namespace kvscope::golden {
namespace {

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
  PageFault fault;
  double distance = 0;  // -gain, and 2 ln of the number of such faults: of those that fit alike, the plainest first
};

class PageSearch {
 public:
  PageSearch(const DiagnosisInput& input, const RowEvaluator& row, const CandidateRow& candidate, const RowNoise& noise)
      : row_(row),
        problem_(row.problem()),
        correct_(row.correct()),
        candidate_(candidate),
        places_(places_elsewhere(input)),
        dims_(static_cast<std::size_t>(problem_.v.head_size)),
        keys_(row.terms(correct_)),
        to_stored_(correct_.lse_base == attention::LseBase::two ? std::numbers::log2e : 1.0),
        judge_(candidate, row.evaluate(correct_).terms, noise),
        all_(dims_) {
    if (!has_keys()) return;
    maximum_ = *std::max_element(keys_.scores.begin(), keys_.scores.end());
    if (correct_.sink) maximum_ = std::max(maximum_, *correct_.sink);
    all_ = part(0, keys_.scores.size());
    if (correct_.sink) all_.sum += std::exp(*correct_.sink - maximum_);
    for (std::size_t i = 0; i < correct_.keys.size(); ++i) {
      const std::int64_t page = correct_.keys[i].position / problem_.k.page_size;
      if (pages_.empty() || pages_.back().page != page) pages_.push_back({page, i, i});
      pages_.back().last = i + 1;
    }
  }

  std::vector<Trial> best(std::size_t limit) {
    if (!has_keys()) return {};
    search_keys();
    search_pages();
    search_exchanges();
    std::ranges::stable_sort(found_, std::less{}, &Found::distance);
    if (found_.size() > limit) found_.resize(limit);
    add_half_exchanges();
    std::vector<Trial> trials;
    trials.reserve(found_.size());
    for (const auto& [fault, distance] : found_) {
      trials.push_back(trial_of(fault, places_, row_));
      if (is_of_loop(fault, problem_)) trials.push_back(in_every_sequence(fault, trials.back()));
    }
    return trials;
  }

 private:
  // The visible keys [first, last) of a page, as indices of `correct_.keys`.
  struct Page {
    std::int64_t page = 0;
    std::size_t first = 0, last = 0;
  };

  [[nodiscard]] bool has_keys() const { return !keys_.outside && !correct_.keys.empty(); }
  [[nodiscard]] Part part(std::size_t first, std::size_t last) const {
    return part_of(keys_, first, last, dims_, maximum_);
  }

  // The sum over all keys but [first, last). A difference loses all digits when these keys have nearly all the weight.
  [[nodiscard]] Part without(std::size_t first, std::size_t last, const Part& out) const {
    Part rest = all_;
    if (out.sum < 0.5 * all_.sum) {
      add_part(rest, out, -1);
      return rest;
    }
    rest = part(0, first);
    add_part(rest, part(last, keys_.scores.size()), 1);
    if (correct_.sink) rest.sum += std::exp(*correct_.sink - maximum_);
    return rest;
  }

  // Number of faults of this kind that the search tries.
  [[nodiscard]] double choices(const PageFault& fault) const {
    const auto keys = static_cast<double>(correct_.keys.size());
    const double pages = keys / static_cast<double>(problem_.k.page_size);
    if (fault.key >= 0) return keys;
    switch (fault.mistake) {
      case PageMistake::exchanged:
        return pages * pages;
      case PageMistake::elsewhere:
        return pages * static_cast<double>(places_.size());
      case PageMistake::other_block:
        return pages * static_cast<double>(problem_.k.blocks);
      default:
        return pages;
    }
  }

  // The fault leaves `rest` of the sum, and adds `in`, if it is not nullptr, and `extra` to the sum of weights.
  void consider(const Part& rest, const Part* in, double extra, const PageFault& fault) {
    const PageFit fit = fit_of(judge_, rest, in, extra, maximum_, to_stored_);
    if (fit.misfit <= 1 && fit.gain > 0) found_.push_back({fault, 2 * std::log(choices(fault)) - fit.gain});
  }

  void search_keys() {
    for (std::size_t i = 0; i < correct_.keys.size(); ++i) {
      const Part key = part(i, i + 1);
      const std::int64_t position = correct_.keys[i].position, page = position / problem_.k.page_size;
      consider(without(i, i + 1, key), nullptr, 0, {PageMistake::left_out, page, position});
      consider(all_, &key, 0, {PageMistake::twice, page, position});
    }
  }

  // A block's terms at page p differ from those at page 0 by the ALiBi bias alone, a factor.
  void search_pages() {
    std::vector<RowEvaluator::Terms> elsewhere;
    for (const PlaceElsewhere& place : places_) {
      Recipe recipe = correct_;
      for (KeyRead& key : recipe.keys) place.change(key);
      elsewhere.push_back(row_.terms(recipe));
    }
    const std::vector<std::int64_t> blocks = blocks_to_search(problem_);
    const bool scales_by_sequence = problem_.k.scales_table != nullptr;
    const RowEvaluator::Terms block_terms = scales_by_sequence ? RowEvaluator::Terms{} : terms_of(blocks);
    const bool searchable = !scales_by_sequence && !block_terms.outside;
    std::vector<Part> whole;  // of each block, the slots [cached_from, cached_to)
    std::size_t cached_from = 0, cached_to = 0;
    for (const auto& [page, first, last] : pages_) {
      const Part out = part(first, last);
      const Part rest = without(first, last, out);
      if (last - first == correct_.keys.size() && is_empty_row(candidate_, correct_.empty_row)) {
        found_.push_back({{PageMistake::left_out, page}, 0});
      }
      consider(rest, nullptr, 0, {PageMistake::left_out, page});
      consider(all_, &out, 0, {PageMistake::twice, page});
      consider(rest, nullptr, weight_of_zeros(first, last), {PageMistake::zeros, page});
      for (std::size_t i = 0; i < places_.size(); ++i) {
        if (elsewhere[i].outside) continue;
        const Part in = part_of(elsewhere[i], first, last, dims_, maximum_);
        consider(rest, &in, 0,
                 {.mistake = PageMistake::elsewhere, .page = page, .other = static_cast<std::int64_t>(i)});
      }
      if (!searchable) continue;
      const std::size_t from = static_cast<std::size_t>(correct_.keys[first].slot), to = from + (last - first);
      if (whole.empty() || cached_from != from || cached_to != to || correct_.slope != 0) {
        whole.clear();
        const double bias = correct_.slope * static_cast<double>(page * problem_.k.page_size);
        for (std::size_t b = 0; b < blocks.size(); ++b) {
          const std::size_t begin = b * static_cast<std::size_t>(problem_.k.page_size);
          whole.push_back(part_of(block_terms, begin + from, begin + to, dims_, maximum_ - bias));
        }
        cached_from = from;
        cached_to = to;
      }
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (blocks[b] == correct_.keys[first].block) continue;
        consider(rest, &whole[b], 0, {.mistake = PageMistake::other_block, .page = page, .block = blocks[b]});
      }
    }
  }

  // Terms of all slots of these blocks, as if each were page 0.
  [[nodiscard]] RowEvaluator::Terms terms_of(const std::vector<std::int64_t>& blocks) const {
    Recipe recipe = correct_;
    recipe.keys.clear();
    for (const std::int64_t block : blocks) {
      for (std::int64_t slot = 0; slot < problem_.k.page_size; ++slot) {
        KeyRead key;
        key.block = block;
        key.slot = slot;
        key.position = slot;
        recipe.keys.push_back(key);
      }
    }
    return row_.terms(recipe);
  }

  // Of keys that are read as zeros: their scores are the biases of their positions.
  [[nodiscard]] double weight_of_zeros(std::size_t first, std::size_t last) const {
    double sum = 0;
    for (std::size_t i = first; i < last; ++i) {
      const double distance = static_cast<double>(correct_.keys[i].position) - correct_.slope_origin;
      sum += std::exp(correct_.slope * distance - maximum_);
    }
    return sum;
  }

  // Exchanging two pages changes the output only where one of them is partly visible: the first or the last page.
  void search_exchanges() {
    if (pages_.size() < 2) return;
    std::vector<std::size_t> partial;
    for (const std::size_t p : {pages_.size() - 1, std::size_t{0}}) {
      if (static_cast<std::int64_t>(pages_[p].last - pages_[p].first) < problem_.k.page_size) partial.push_back(p);
    }
    for (const std::size_t p : partial) {
      for (std::size_t other = 0; other < pages_.size(); ++other) {
        if (other == p || (partial.size() == 2 && p == partial.back() && other == partial.front())) continue;
        Recipe swapped = correct_;
        swapped.keys.clear();
        Part rest = all_;
        for (const auto& [here, there] : {std::pair{pages_[p], pages_[other]}, {pages_[other], pages_[p]}}) {
          add_part(rest, part(here.first, here.last), -1);
          for (std::size_t i = here.first; i < here.last; ++i) {
            KeyRead key = correct_.keys[i];
            key.block = correct_.keys[there.first].block;
            swapped.keys.push_back(key);
          }
        }
        const RowEvaluator::Terms terms = row_.terms(swapped);
        if (terms.outside) continue;
        const Part in = part_of(terms, 0, terms.scores.size(), dims_, maximum_);
        consider(rest, &in, 0,
                 {.mistake = PageMistake::exchanged, .page = pages_[other].page, .other = pages_[p].page});
      }
    }
  }

  // A page read from the block of another page of its sequence may be half of an exchange, of which this row sees one.
  void add_half_exchanges() {
    const std::vector<KeyRead> keys = keys_of(problem_, row_.sequence(), 0, problem_.keys(row_.sequence()));
    const std::size_t found = found_.size();
    for (std::size_t n = 0; n < found; ++n) {
      const Found one = found_[n];
      if (one.fault.mistake != PageMistake::other_block) continue;
      for (std::size_t i = 0; i < keys.size(); i += static_cast<std::size_t>(problem_.k.page_size)) {
        const std::int64_t page = keys[i].position / problem_.k.page_size;
        if (keys[i].block != one.fault.block || page == one.fault.page) continue;
        found_.push_back({{.mistake = PageMistake::exchanged, .page = one.fault.page, .other = page}, one.distance});
      }
    }
  }

  const RowEvaluator& row_;
  const attention::Problem& problem_;
  const Recipe& correct_;
  const CandidateRow& candidate_;
  std::vector<PlaceElsewhere> places_;
  std::size_t dims_;
  RowEvaluator::Terms keys_;  // of the correct keys
  double to_stored_;
  Judge judge_;
  Part all_;  // of all correct keys, and the sink
  double maximum_ = 0;
  std::vector<Page> pages_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<Trial> page_search(const DiagnosisInput& input, const RowEvaluator& row, const CandidateRow& candidate,
                               const RowNoise& noise, std::size_t limit) {
  return PageSearch(input, row, candidate, noise).best(limit);
}

}  // namespace kvscope::golden

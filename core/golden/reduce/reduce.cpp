#include "core/golden/reduce/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "core/attention/reference.h"
#include "core/base/checked.h"
#include "core/base/report.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/golden_inputs.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/output_names.h"

namespace kvscope::golden {
namespace {

// How a case ended.
struct Verdict {
  enum class Kind { passes, wrong, exit_code, signal, time_limit, unusable };
  Kind kind = Kind::passes;
  int code = 0;
  std::string words;
  Bundle candidate;
  double scale = 1;  // of the golden that it was compared with

  [[nodiscard]] bool same_failure(const Verdict& other) const { return kind == other.kind && code == other.code; }
};

std::string text_of(const ProblemSlice& slice) {
  std::string text;
  for (const SequenceSlice& s : slice.sequences) {
    text += fmt::format("{}:{}:{}:{}:{} ", s.index, s.first_page, s.keys, s.first_query, s.end_query);
  }
  return text + fmt::format("h{} g{} d{} {}{}{}", fmt::join(slice.kv_heads, ","), fmt::join(slice.group_heads, ","),
                            slice.dims, slice.only_used_blocks, slice.only_used_columns, slice.only_layer);
}

class Reduction {
 public:
  Reduction(const ReduceInput& input, const Slicer& slicer)
      : input_(input), slicer_(slicer), best_(slicer.whole()), whole_(judge(best_)) {
    last_ = whole_;
  }

  [[nodiscard]] const Verdict& whole() const { return whole_; }
  [[nodiscard]] const Verdict& last() const { return last_; }
  [[nodiscard]] const ProblemSlice& best() const { return best_; }
  [[nodiscard]] std::int64_t runs() const { return runs_; }
  [[nodiscard]] std::int64_t rejected() const { return rejected_; }
  [[nodiscard]] bool stopped() const { return stopped_; }

  void run() {
    for (bool smaller = true; smaller && !stopped_;) {
      const ProblemSlice before = best_;
      reduce_sequences();
      if (slicer_.can_cut_queries()) reduce_queries();
      reduce_heads();
      if (input_.run) {
        if (slicer_.can_cut_keys()) reduce_keys();
        reduce_dims();
        reduce_pool();
      }
      smaller = !(best_ == before);
    }
  }

 private:
  Verdict judge(const ProblemSlice& slice) {
    const Bundle inputs = slicer_.cut(slice);
    Verdict verdict;
    ++runs_;
    if (input_.run) {
      KernelRun run = input_.run(inputs);
      verdict.code = run.code;
      verdict.words = std::move(run.words);
      switch (run.end) {
        case KernelRun::End::wrote:
          verdict.candidate = std::move(run.candidate);
          break;
        case KernelRun::End::exit_code:
          verdict.kind = Verdict::Kind::exit_code;
          return verdict;
        case KernelRun::End::signal:
          verdict.kind = Verdict::Kind::signal;
          return verdict;
        case KernelRun::End::time_limit:
          verdict.kind = Verdict::Kind::time_limit;
          return verdict;
        case KernelRun::End::unusable:
          verdict.kind = Verdict::Kind::unusable;
          return verdict;
      }
    } else {
      for (const auto& [name, tensor] : input_.candidate->tensors) {
        if (name == "o" || name == "lse") verdict.candidate.tensors[name] = slicer_.cut_output(tensor, slice);
      }
      verdict.candidate.manifest = input_.candidate->manifest;
    }
    std::vector<double> scales;
    if (own_scale_ != true) scales.push_back(slicer_.options(slice).scale.value_or(1));
    if (own_scale_ != false) scales.push_back(1 / std::sqrt(static_cast<double>(slice.dims)));
    if (slice.dims == slicer_.whole().dims || !slicer_.scale_is_default()) {
      scales = {slicer_.options(slice).scale.value_or(1)};
    }
    Verdict nearest;
    double nearest_error = std::numeric_limits<double>::infinity();
    for (const double scale : scales) {
      const auto [now, error] = compared(inputs, slice, scale, verdict.candidate);
      if (now.kind != Verdict::Kind::wrong) return now;
      if (error < nearest_error || nearest.kind == Verdict::Kind::passes) {
        nearest = now;
        nearest_error = error;
      }
    }
    return nearest;
  }

  // The output against the golden of the inputs at that scale, and its error relative to the golden. A kernel may
  // compute its scale from the head size: while that is not known, a slice of fewer dims fails only if its output is
  // wrong at both scales, and has the scale that its output is nearer to.
  std::pair<Verdict, double> compared(const Bundle& inputs, const ProblemSlice& slice, double scale,
                                      const Bundle& candidate) {
    // Faults of the inputs are faults of the slice, and thrown; those of the candidate are the kernel's.
    LayoutOptions layout = slicer_.options(slice);
    layout.scale = scale;
    const PreparedProblem prepared = prepare_problem(inputs, layout, input_.inputs_name);
    const Bundle golden = golden_bundle(prepared.problem, attention::reference(prepared.problem), {"kvscope", "", {}});
    Verdict verdict;
    verdict.candidate = candidate;
    verdict.scale = scale;
    double error = std::numeric_limits<double>::infinity();
    try {
      static_cast<void>(use_output_names(golden, verdict.candidate, "candidate"));
      CompareOptions options;
      options.rounding = input_.rounding;
      const CompareResult result = compare(golden, verdict.candidate, options);
      if (result.passed) return {verdict, 0};
      verdict.kind = Verdict::Kind::wrong;
      const auto failed = std::ranges::find(result.criteria, false, &Criterion::passed);
      verdict.words = fmt::format("{}: {}", failed->name, failed->detail);
      if (!result.tensors.empty()) error = result.tensors.front().measures.rms_relative;
    } catch (const InputError& fault) {
      verdict.kind = Verdict::Kind::unusable;
      verdict.words = fault.what();
    }
    return {verdict, error};
  }

  // Whether the slice fails as the whole case does; if so it becomes the best one.
  bool fails(const ProblemSlice& slice) {
    if (slice == best_) return true;
    const std::string key = text_of(slice);
    if (tried_.contains(key)) return false;  // a slice that failed is `best_`, or larger than it
    if (runs_ >= input_.max_runs) {
      stopped_ = true;
      return false;
    }
    tried_.insert(key);
    Verdict verdict;
    try {
      verdict = judge(slice);
    } catch (const InputError&) {  // a slice that its tensors cannot hold, or a scale whose shape became ambiguous
      ++rejected_;
      return false;
    }
    if (!verdict.same_failure(whole_)) {
      ++rejected_;
      return false;
    }
    best_ = slice;
    last_ = std::move(verdict);
    return true;
  }

  // Delta debugging of a list: `with` makes a slice of a list. First each item alone, then halves and their
  // complements.
  template <class Item, class With>
  void reduce_list(std::vector<Item> items, const With& with) {
    constexpr std::size_t kMostSingles = 32;
    if (items.size() < 2) return;
    if (items.size() <= kMostSingles) {
      for (const Item& item : items) {
        if (fails(with({item}))) return;
      }
    }
    for (std::size_t parts = 2; items.size() >= 2;) {
      bool smaller = false;
      const std::size_t size = (items.size() + parts - 1) / parts;
      for (std::size_t from = 0; from < items.size() && !smaller; from += size) {
        const std::size_t end = std::min(from + size, items.size());
        std::vector<Item> part(items.begin() + static_cast<std::ptrdiff_t>(from),
                               items.begin() + static_cast<std::ptrdiff_t>(end));
        if (fails(with(part))) {
          items = std::move(part);
          parts = 2;
          smaller = true;
        }
      }
      for (std::size_t from = 0; from < items.size() && !smaller && parts > 2; from += size) {
        const std::size_t end = std::min(from + size, items.size());
        std::vector<Item> rest(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(from));
        rest.insert(rest.end(), items.begin() + static_cast<std::ptrdiff_t>(end), items.end());
        if (!rest.empty() && fails(with(rest))) {
          items = std::move(rest);
          parts = std::max<std::size_t>(parts - 1, 2);
          smaller = true;
        }
      }
      if (smaller) continue;
      if (parts >= items.size()) return;
      parts = std::min(parts * 2, items.size());
    }
  }

  // The smallest number in [least, now] for which a slice still fails, if smaller numbers pass and larger ones fail.
  template <class With>
  void reduce_number(std::int64_t least, std::int64_t now, const With& with) {
    if (least >= now || fails(with(least))) return;
    while (now - least > 1) {
      const std::int64_t middle = least + (now - least) / 2;
      (fails(with(middle)) ? now : least) = middle;
    }
  }

  void reduce_sequences() {
    reduce_list(best_.sequences, [&](const std::vector<SequenceSlice>& kept) {
      ProblemSlice slice = best_;
      slice.sequences = kept;
      return slice;
    });
  }

  void reduce_queries() {
    if (!input_.run && !slicer_.queries_are_exact()) return;
    for (std::size_t i = 0; i < best_.sequences.size(); ++i) {
      const SequenceSlice now = best_.sequences[i];
      std::vector<std::int64_t> queries;
      for (std::int64_t query = now.first_query; query < now.end_query; ++query) queries.push_back(query);
      if (queries.size() < 2) continue;
      const auto with = [&](std::int64_t first, std::int64_t end) {
        ProblemSlice slice = best_;
        SequenceSlice& sequence = slice.sequences[i];
        sequence.first_query = first;
        sequence.end_query = end;
        sequence.keys = std::min(sequence.keys, slicer_.keys_of(sequence));
        if (best_.sequences[i].keys < slicer_.keys_of(now)) sequence.keys = best_.sequences[i].keys;  // cut already
        return slice;
      };
      if (queries.size() <= 32 && std::ranges::any_of(queries, [&](std::int64_t q) { return fails(with(q, q + 1)); })) {
        continue;
      }
      // Queries of a slice are consecutive: shorten at the end, then at the front.
      reduce_number(now.first_query + 1, now.end_query, [&](std::int64_t end) { return with(now.first_query, end); });
      const std::int64_t end = best_.sequences[i].end_query;
      reduce_number(1, end - now.first_query, [&](std::int64_t count) { return with(end - count, end); });
    }
  }

  void reduce_heads() {
    if (slicer_.can_cut_heads()) {
      reduce_list(best_.kv_heads, [&](const std::vector<std::int64_t>& kept) {
        ProblemSlice slice = best_;
        slice.kv_heads = kept;
        return slice;
      });
    }
    reduce_list(best_.group_heads, [&](const std::vector<std::int64_t>& kept) {
      ProblemSlice slice = best_;
      slice.group_heads = kept;
      return slice;
    });
  }

  void reduce_keys() {
    const std::int64_t page_size = slicer_.problem().problem.k.page_size;
    for (std::size_t i = 0; i < best_.sequences.size(); ++i) {
      const auto with = [&](std::int64_t first_page, std::int64_t keys) {
        ProblemSlice slice = best_;
        slice.sequences[i].first_page = first_page;
        slice.sequences[i].keys = keys;
        return slice;
      };
      // At least one key, and one for each query: a length of layout max counts the keys before them.
      const auto least = [&](const SequenceSlice& s) { return std::max<std::int64_t>(s.end_query - s.first_query, 1); };
      const SequenceSlice now = best_.sequences[i];
      reduce_number(now.first_page * page_size + least(now), now.keys,
                    [&](std::int64_t keys) { return with(best_.sequences[i].first_page, keys); });
      const SequenceSlice cut = best_.sequences[i];
      const std::int64_t pages = ceil_div(cut.keys - least(cut) + 1, page_size);  // the first page that may stay last
      reduce_number(1, std::max<std::int64_t>(pages - cut.first_page, 1),
                    [&](std::int64_t kept) { return with(std::max(pages - kept, cut.first_page), cut.keys); });
    }
  }

  // Which scale the kernel uses for fewer dims, by the rows of the whole case that are correct at one of the two.
  void learn_scale() {
    scale_tried_ = true;
    ProblemSlice slice = slicer_.whole();
    for (slice.dims = slicer_.dims_step(); slice.dims * 2 < slicer_.whole().dims;) slice.dims *= 2;
    if (runs_ >= input_.max_runs || slice.dims >= slicer_.whole().dims) return;
    ++runs_;
    const Bundle inputs = slicer_.cut(slice);
    const KernelRun run = input_.run(inputs);
    if (run.end != KernelRun::End::wrote) return;
    std::array<std::int64_t, 2> correct{};
    for (const bool own : {false, true}) {
      LayoutOptions layout = slicer_.options(slice);
      if (own) layout.scale = 1 / std::sqrt(static_cast<double>(slice.dims));
      try {
        const PreparedProblem prepared = prepare_problem(inputs, layout, input_.inputs_name);
        const Bundle golden =
            golden_bundle(prepared.problem, attention::reference(prepared.problem), {"kvscope", "", {}});
        Bundle candidate = run.candidate;
        static_cast<void>(use_output_names(golden, candidate, "candidate"));
        CompareOptions options;
        options.rounding = input_.rounding;
        const ElementErrors errors = element_errors(golden, candidate, options);
        correct[own ? 1 : 0] = std::ranges::count_if(errors.ratio, [](float ratio) { return ratio <= 1; });
      } catch (const InputError&) {
        return;
      }
    }
    if (correct[0] != correct[1]) own_scale_ = correct[1] > correct[0];
  }

  void reduce_dims() {
    const std::int64_t step = slicer_.dims_step();
    if (step == 0) return;
    if (!scale_tried_ && whole_.kind == Verdict::Kind::wrong && slicer_.scale_is_default()) learn_scale();
    for (std::int64_t dims = step; dims < best_.dims; dims *= 2) {
      ProblemSlice slice = best_;
      slice.dims = dims;
      if (fails(slice)) return;
    }
  }

  void reduce_pool() {
    for (bool ProblemSlice::*part :
         {&ProblemSlice::only_layer, &ProblemSlice::only_used_columns, &ProblemSlice::only_used_blocks}) {
      ProblemSlice slice = best_;
      slice.*part = true;
      static_cast<void>(fails(slice));
    }
  }

  const ReduceInput& input_;
  const Slicer& slicer_;
  ProblemSlice best_;
  std::int64_t runs_ = 0, rejected_ = 0;
  bool stopped_ = false;
  std::set<std::string> tried_;
  std::optional<bool> own_scale_;  // the kernel computes 1 / sqrt(dims); empty: not known
  bool scale_tried_ = false;
  Verdict whole_, last_;
};

std::string failure_text(const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::passes:
      return "none";
    case Verdict::Kind::wrong:
      return "wrong output: " + verdict.words;
    case Verdict::Kind::unusable:
      return "unusable output: " + verdict.words;
    default:
      return verdict.words;
  }
}

// InputError unless a given output is a wrong one.
void check_candidate(const Verdict& verdict, const std::string& name) {
  if (verdict.kind == Verdict::Kind::passes) {
    throw InputError(name, "", "passes: there is no failure to reduce");
  }
  if (verdict.kind != Verdict::Kind::wrong) {
    throw InputError(name, "", "cannot be compared: " + verdict.words);
  }
}

}  // namespace

std::string reduction_text(const ProblemSizes& from, const ProblemSizes& to) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t before, std::int64_t after, std::string_view one, std::string_view several = {}) {
    if (before != after) parts.push_back(fmt::format("{} -> {}", counted(before, one, several), after));
  };
  add(from.sequences, to.sequences, "sequence");
  add(from.queries, to.queries, "query", "queries");
  add(from.keys, to.keys, "key");
  add(from.kv_heads, to.kv_heads, "KV head");
  add(from.query_heads, to.query_heads, "query head");
  if (from.head_size != to.head_size) parts.push_back(fmt::format("head size {} -> {}", from.head_size, to.head_size));
  add(from.blocks, to.blocks, "block");
  return parts.empty() ? "nothing could be left out" : fmt::to_string(fmt::join(parts, ", "));
}

ReduceResult reduce(const ReduceInput& input, std::string_view producer) {
  if (!input.run && input.candidate == nullptr) {
    throw InputError("command line", "CANDIDATE", "is required without --command: it is the output that is cut");
  }
  const Slicer slicer(input.inputs, input.options, input.inputs_name);
  if (input.run && input.candidate != nullptr) {
    ReduceInput cut = input;
    cut.run = nullptr;
    check_candidate(Reduction(cut, slicer).whole(), input.candidate_name);
  }
  Reduction reduction(input, slicer);
  if (input.run && reduction.whole().kind == Verdict::Kind::passes) {
    throw InputError(
        input.inputs_name, "",
        "the command's output for all inputs passes: there is no failure to reduce. Check that the command "
        "runs the failing kernel");
  }
  if (!input.run) check_candidate(reduction.whole(), input.candidate_name);
  if (input.run && input.candidate != nullptr && reduction.whole().kind != Verdict::Kind::wrong) {
    throw InputError(
        "command line", "--command",
        fmt::format("ends in another way than CANDIDATE, which is a wrong output: {}. Correct the command, "
                    "or leave CANDIDATE out to reduce this failure",
                    failure_text(reduction.whole())));
  }
  reduction.run();
  ReduceResult result;
  result.slice = reduction.best();
  result.from = slicer.sizes(slicer.whole());
  result.to = slicer.sizes(result.slice);
  result.runs = reduction.runs();
  result.rejected = reduction.rejected();
  result.stopped = reduction.stopped();
  result.failure = failure_text(reduction.last());
  if (!input.run) {
    if (!slicer.can_cut_queries() || !slicer.queries_are_exact()) {
      result.notes.emplace_back("queries are kept: with this mask or shape of q, the others' rows would change");
    }
    result.notes.emplace_back(
        "keys, dims and blocks are kept: only a run of the kernel shows whether it still fails "
        "without them; pass --command");
  } else if (slicer.dims_step() == 0) {
    result.notes.emplace_back(
        "the head size is kept: the rows of an MLA cache, and heads with uneven scales, are not cut");
  }
  if (reduction.last().kind != Verdict::Kind::wrong && result.rejected == 0 && result.runs > 1) {
    result.notes.emplace_back(
        "every run failed in this way, however small its inputs: check that the command works on this machine at all");
  }
  const Bundle inputs = slicer.cut(result.slice);
  LayoutOptions options = slicer.options(result.slice);
  if (reduction.last().kind == Verdict::Kind::wrong) options.scale = reduction.last().scale;
  const PreparedProblem prepared = prepare_problem(inputs, options, input.inputs_name);
  result.bundle = inputs_bundle(inputs, prepared, options, producer);
  for (const char* name : {"o", "lse"}) {
    if (const auto at = reduction.last().candidate.tensors.find(name);
        at != reduction.last().candidate.tensors.end() && reduction.last().kind == Verdict::Kind::wrong) {
      result.bundle.tensors[name] = at->second;
    }
  }
  json::Value reduced;
  reduced.set("from", sizes_text(result.from));
  reduced.set("to", sizes_text(result.to));
  reduced.set("failure", result.failure);
  result.bundle.manifest.set("reduced", std::move(reduced));
  return result;
}

}  // namespace kvscope::golden

// Hypotheses about the combination of tiles and splits: rescaling, merge, normalization.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

// Calls `add` for each common way to cut the keys into splits, with the split's size for a number of keys.
using SplitSize = std::function<std::int64_t(std::int64_t keys)>;
void each_split(const Trials& trials, std::int64_t longest,
                const std::function<void(const std::string& how, SplitSize size)>& add) {
  const std::int64_t page = trials.problem.k.page_size;
  for (const std::int64_t splits : {2, 3, 4, 5, 6, 8, 16}) {
    if (splits > longest) continue;
    add(fmt::format("{} splits", splits), [splits](std::int64_t keys) { return ceil_div(keys, splits); });
    if (page > 1) {
      add(fmt::format("{} splits of whole pages", splits),
          [splits, page](std::int64_t keys) { return ceil_div(ceil_div(keys, page), splits) * page; });
    }
    for (const std::int64_t tile : {64, 32, 128}) {
      if (page == tile || longest <= tile) continue;
      add(fmt::format("{} splits of whole tiles of {} keys", splits, tile),
          [splits, tile](std::int64_t keys) { return ceil_div(ceil_div(keys, tile), splits) * tile; });
    }
  }
  std::set<std::int64_t> sizes{8, 192, 256, 320, 384, 448, 512, 640, 768, 1024, 2048};
  for (std::int64_t number = 1; number <= 8; ++number) {
    sizes.insert(16 * number);
    if (page >= 16) sizes.insert(page * number);
  }
  for (const std::int64_t size : sizes) {
    if (size < longest) add(fmt::format("splits of {} keys", size), [size](std::int64_t) { return size; });
  }
}

// A running maximum that rises without a rescaling of the sums.
void add_rescaling(Trials& trials, std::int64_t longest) {
  struct Forgotten {
    const char* name;
    const char* what;
    Combine combine;
  };
  for (const Forgotten& forgotten :
       {Forgotten{"no_rescaling", "the running output and sum are", Combine::without_rescaling},
        {"output_not_rescaled", "the running output is", Combine::output_without_rescaling},
        {"sum_not_rescaled", "the running sum is", Combine::sum_without_rescaling}}) {
    for (const std::int64_t tile : {1, 4, 8, 16, 32, 64, 128, 256, 512}) {
      for (const std::int64_t parts : {1, 2, 4, 8}) {
        if (tile * parts >= longest || (parts > 1 && (tile > 64 || forgotten.combine == Combine::without_rescaling))) {
          continue;
        }
        const std::string warps = parts == 1 ? "" : fmt::format(", {} warps in turn", parts);
        const auto add = [&](const char* sink, SinkJoins joins) {
          trials.add(forgotten.name,
                     fmt::format("{} not rescaled when the maximum rises (tiles of {} keys{}{})", forgotten.what, tile,
                                 warps, sink),
                     "the factor exp(old maximum - new maximum) on output and sum",
                     [combine = forgotten.combine, tile, parts, joins](Recipe& r, const RowEvaluator&) {
                       r.combine = combine;
                       r.split = tile;
                       r.parts = parts;
                       r.sink_joins = joins;
                     });
        };
        if (trials.problem.options.sinks.empty()) {
          add("", SinkJoins::first_tile);
        } else {
          add(", the sink joins the first tile", SinkJoins::first_tile);
          add(", the sink is the initial maximum", SinkJoins::before);
          add(", the sink joins after the last tile", SinkJoins::after);
        }
      }
    }
  }
}

// Partial results that are added although each has its own maximum.
void add_separate_maxima(Trials& trials, std::int64_t longest) {
  struct Parts {
    std::int64_t tile = 1, count = 1;  // [keys] of a tile; tiles belong to the parts in turn
  };
  const auto add = [&](const std::string& who, const std::string& look_at,
                       const std::function<Parts(std::int64_t)>& cut) {
    const auto trial = [&](const char* what, Combine combine, StoredLse lse) {
      trials.add("maximum_not_shared", fmt::format("{} {}", who, what), look_at,
                 [combine, lse, cut](Recipe& r, const RowEvaluator&) {
                   const Parts parts = cut(static_cast<std::int64_t>(r.keys.size()));
                   r.combine = combine;
                   r.stored_lse = lse;
                   r.split = parts.tile;
                   r.parts = parts.count;
                 });
    };
    const char* const results = "add their results without a common maximum";
    trial(results, Combine::without_common_maximum, StoredLse::correct);
    trial(results, Combine::without_common_maximum, StoredLse::largest_maximum);
    trial("add their outputs without a common maximum, and their sums with one", Combine::output_without_common_maximum,
          StoredLse::correct);
  };
  for (const std::int64_t run : {8, 16, 32, 64, 128}) {
    for (const std::int64_t parts : {2, 4, 8}) {
      if (run * parts >= longest) continue;  // a run for each warp: as splits
      add(fmt::format("{} warps or warpgroups, which take {} keys in turn,", parts, run),
          "the maximum that warps exchange before they add their sums and outputs", [run, parts](std::int64_t) {
            return Parts{run, parts};
          });
    }
  }
  each_split(trials, longest, [&](const std::string& how, const SplitSize& size) {
    add("the splits (" + how + ")", "the factor exp(maximum - largest maximum) of each split in the merge",
        [size](std::int64_t keys) {
          const std::int64_t tile = std::max<std::int64_t>(1, size(keys));
          return Parts{tile, ceil_div(std::max<std::int64_t>(1, keys), tile)};
        });
  });
}

// The lanes of a warp share the keys of a row: each adds the probabilities of its keys, and shuffles then add the sums.
// In the results of mma a lane of four has keys 2c and 2c + 1 of 8, elsewhere lane c has key c of 32.
void add_lane_sums(Trials& trials) {
  if (!trials.problem.options.sinks.empty()) return;  // one lane or each of them adds the sink
  const auto add = [&](const std::string& what, std::int64_t period, std::int64_t run) {
    const std::string lane = run == 1 ? fmt::format("% {}", period) : fmt::format("% {} / {}", period, run);
    for (const StoredLse lse : {StoredLse::correct, StoredLse::first_lane}) {
      trials.add(
          "lane_sums",
          fmt::format("{}: element d of o is divided by the sum of the keys t with t {} = d {}", what, lane, lane),
          "the shuffles that add the sum of a row over the lanes that share it",
          [period, run, lse](Recipe& r, const RowEvaluator&) {
            r.lane_sums = {period, run};
            r.stored_lse = lse;
          });
    }
  };
  add("the sum of the probabilities is not added across the four lanes of a row of mma", 8, 2);
  add("the sum of the probabilities is not added across the lanes of a warp", 32, 1);
  for (const std::int64_t step : {1, 2, 4, 8, 16}) {
    add("the sum of the probabilities is added across half of the lanes, one shuffle is missing", 2 * step, step);
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scores above 88.7 overflow exp in f32, those below -87.3 underflow. The rows between are correct.
void add_overflow(Trials& trials) {
  constexpr double kLargest = 88.72, kSmallest = -87.34;
  for (const double over : {kNaN, kInfinity, -kInfinity}) {
    for (const double under : {-kInfinity, kNaN}) {
      for (const double output : {0.0, kNaN}) {
        trials.all.push_back(
            {"maximum_missing", "exp is taken of the scores without their maximum: rows above 88 overflow f32",
             "the subtraction of the row's maximum before the exponential", -1,
             [over, under, output](const RowEvaluator& row) {
               RowValue value = row.evaluate(row.correct());
               const double maximum = row.largest_score();
               if (value.o.empty() && maximum <= kLargest && maximum >= kSmallest) return value;
               if (maximum > kLargest || maximum < kSmallest) {
                 value.o.assign(static_cast<std::size_t>(row.dims()), maximum > kLargest ? kNaN : output);
                 value.a1 = value.a2 = std::vector<double>(value.o.size(), 0.0);
                 value.terms.lse = maximum > kLargest ? over : under;
               }
               return value;
             }});
      }
    }
  }
}

// Keys that the row with the fewest keys sees, of the rows that see any. 0 where a mask tensor may hide more of them.
std::int64_t fewest_keys(const attention::Problem& problem, std::int64_t longest) {
  if (!problem.options.bias.empty()) return 0;
  std::int64_t fewest = longest;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t queries = problem.first_query(b + 1) - problem.first_query(b);
    for (const std::int64_t query : {std::int64_t{0}, queries - 1}) {  // those between see no fewer than both
      if (query < 0 || query >= queries) continue;
      const attention::KeyRange range = attention::visible_keys(problem.options, query, queries, problem.keys(b));
      if (range.last > range.first) fewest = std::min(fewest, range.last - range.first);
    }
  }
  return fewest;
}

void add_merges(Trials& trials, std::int64_t longest) {
  const auto merged = [&](const std::string& name, const std::string& cause, Combine combine, StoredLse lse) {
    each_split(trials, longest, [&](const std::string& how, SplitSize size) {
      trials.add(name, fmt::format("{} ({})", cause, how), "the merge of the splits' partial results",
                 [combine, lse, size = std::move(size)](Recipe& r, const RowEvaluator&) {
                   r.combine = combine;
                   r.stored_lse = lse;
                   r.split = std::max<std::int64_t>(1, size(static_cast<std::int64_t>(r.keys.size())));
                 });
    });
  };
  // The key `offset` after each boundary between two splits has another weight.
  const auto boundary = [&](const std::string& name, const std::string& cause, std::int64_t offset, double weight) {
    each_split(trials, longest, [&](const std::string& how, SplitSize size) {
      trials.add(name, fmt::format("{} ({})", cause, how), "the first and the last key of a split",
                 [offset, weight, size = std::move(size)](Recipe& r, const RowEvaluator&) {
                   const auto keys = static_cast<std::int64_t>(r.keys.size());
                   const std::int64_t step = std::max<std::int64_t>(1, size(keys));
                   for (std::int64_t first = step; first < keys; first += step) {
                     r.keys[static_cast<std::size_t>(first + offset)].weight = weight;
                   }
                 });
    });
  };
  // The keys of one split have no part in the output, or only those of one have. A sequence that is one split is
  // correct without a merge; with one, it loses all keys.
  const std::int64_t fewest = fewest_keys(trials.problem, longest);
  const auto lost = [&](const std::string& name, const std::string& cause, bool kept, std::int64_t number) {
    each_split(trials, longest, [&](const std::string& how, const SplitSize& size) {
      for (const bool always_merged : {false, true}) {
        if (always_merged && (kept || number > 0 || size(fewest) < fewest)) continue;  // as without a merge
        trials.add(name, fmt::format("{} ({})", cause, how),
                   "how many partial results the merge reads, and whether each was written before",
                   [=](Recipe& r, const RowEvaluator&) {
                     const auto keys = static_cast<std::int64_t>(r.keys.size());
                     if (keys == 0) return;
                     const std::int64_t step = std::max<std::int64_t>(1, size(keys)), last = (keys - 1) / step;
                     if (last == 0 && !always_merged) return;
                     const std::int64_t meant = number < 0 ? last : number;
                     std::int64_t i = 0;
                     std::erase_if(r.keys, [&](const KeyRead&) { return (i++ / step == meant) != kept; });
                   });
      }
    });
  };
  trials.one_of_many = true;
  lost("split_missing", "the first split is left out", false, 0);
  lost("split_missing", "the last split is left out", false, -1);
  lost("split_missing", "the second split is left out", false, 1);
  lost("split_missing", "the third split is left out", false, 2);
  lost("one_split_used", "only the first split is used", true, 0);
  lost("one_split_used", "only the last split is used", true, -1);
  trials.one_of_many = false;
  boundary("split_overlap", "the first key of each split but the first is counted twice", 0, 2);
  boundary("split_overlap", "the last key of each split but the last is counted twice", -1, 2);
  boundary("split_gap", "the last key of each split but the last is left out", -1, 0);
  boundary("split_gap", "the first key of each split but the first is left out", 0, 0);
  merged("merge_by_mean", "the outputs of the splits are averaged instead of weighted by their sums", Combine::mean,
         StoredLse::correct);
  merged("merge_by_mean", "the outputs and the lse of the splits are averaged", Combine::mean,
         StoredLse::mean_of_splits);
  merged("merge_by_mean", "the outputs of the splits are averaged, and lse counts each split as the largest",
         Combine::mean, StoredLse::maximum_and_count);
  merged("lse_maximum_twice", "lse has the largest lse of the splits added twice", Combine::online,
         StoredLse::maximum_twice);
  for (const auto& [what, of_largest, of_sum] :
       {std::tuple{"lse is the largest lse of the splits + log2 of the sum of their weights", 1.0, std::numbers::log2e},
        {"lse is the largest lse of the splits * log2(e) + log of the sum of their weights", std::numbers::log2e,
         1.0}}) {
    each_split(trials, longest,
               [&, what = what, of_largest = of_largest, of_sum = of_sum](const std::string& how, SplitSize size) {
                 trials.add("lse_mixed_bases", fmt::format("{} ({})", what, how),
                            "the merge of the splits' partial results",
                            [of_largest, of_sum, size = std::move(size)](Recipe& r, const RowEvaluator&) {
                              r.stored_lse = StoredLse::mixed_bases;
                              r.lse_maximum = of_largest;
                              r.lse_sum = of_sum;
                              r.split = std::max<std::int64_t>(1, size(static_cast<std::int64_t>(r.keys.size())));
                            });
               });
  }
  merged("merge_base",
         trials.problem.options.lse_base == attention::LseBase::two
             ? "the splits are merged with e^lse although lse is in base 2"
             : "the splits are merged with 2^lse although lse is natural",
         Combine::other_base, StoredLse::correct);
  for (const std::int64_t splits : {1, 2, 3, 4, 7}) {
    trials.add("empty_split",
               fmt::format("{} without keys join the merge with lse 0",
                           splits == 1 ? "one split" : fmt::format("{} splits", splits)),
               "lse of a split without keys: -infinity",
               [splits](Recipe& r, const RowEvaluator&) { r.extra_denominator = static_cast<double>(splits); });
  }
  if (!trials.problem.options.sinks.empty()) {
    for (const std::int64_t times : {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64}) {
      trials.add("sink_counted_often",
                 fmt::format("the sink joins the denominator {} times, for example once per split", times),
                 "where the sink joins: once, in the merge or in the first split",
                 [times](Recipe& r, const RowEvaluator&) { *r.sink += std::log(static_cast<double>(times)); });
    }
  }
  trials.add("not_normalized", "o is not divided by the sum of the probabilities", "the last division",
             [](Recipe& r, const RowEvaluator&) { r.normalized = false; });
}

}  // namespace

void add_combination(Trials& trials) {
  const std::int64_t longest = trials.longest();
  add_rescaling(trials, longest);
  add_separate_maxima(trials, longest);
  add_merges(trials, longest);
  add_lane_sums(trials);
  add_overflow(trials);
}

}  // namespace kvscope::golden

// Hypotheses about the combination of tiles and splits: rescaling, merge, normalization.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/golden/diagnosis/detail/splits.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

struct Warps {
  std::int64_t tile = 1, parts = 1;  // [keys] of a tile; tiles belong to the warps in turn
};

// Whether kernels that cut the keys so have such tiles and warps: whole tiles in splits of a fixed size, otherwise
// those that a split does not cut, or pages.
bool has_tiles(const Splits& cut, const Warps& warps, std::int64_t page) {
  if (warps.parts > 1 && (warps.parts == 2 || (warps.tile != 1 && warps.tile != 16))) return false;
  if (cut.number == 0) return cut.size(0) % warps.tile == 0;
  return cut.unit == warps.tile || (cut.unit == page && (page % warps.tile == 0 || warps.tile % page == 0));
}

// A running maximum that rises without a rescaling of the sums, in one split or in each of several that are merged
// correctly.
void add_rescaling(Trials& trials, std::int64_t longest, const std::vector<Splits>& splits) {
  struct Forgotten {
    const char* name;
    const char* what;
    Combine combine;
  };
  const auto add = [&](const Forgotten& forgotten, Warps warps, const std::string& more, SinkJoins joins,
                       const Splits* cut) {
    const std::string in_turn = warps.parts == 1 ? "" : fmt::format(", {} warps in turn", warps.parts);
    trials.add(forgotten.name,
               fmt::format("{} not rescaled when the maximum rises (tiles of {} keys{}{})", forgotten.what, warps.tile,
                           in_turn, more),
               "the factor exp(old maximum - new maximum) on output and sum",
               [combine = forgotten.combine, warps, joins, size = cut == nullptr ? nullptr : cut->of_keys](
                   Recipe& r, const RowEvaluator&) {
                 r.combine = combine;
                 r.split = warps.tile;
                 r.parts = warps.parts;
                 r.sink_joins = joins;
                 if (size) r.merged_split = size(static_cast<std::int64_t>(r.keys.size()));
               });
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
        const Warps warps{tile, parts};
        if (trials.problem.options.sinks.empty()) {
          add(forgotten, warps, "", SinkJoins::first_tile, nullptr);
        } else {
          add(forgotten, warps, ", the sink joins the first tile", SinkJoins::first_tile, nullptr);
          add(forgotten, warps, ", the sink is the initial maximum", SinkJoins::before, nullptr);
          add(forgotten, warps, ", the sink joins after the last tile", SinkJoins::after, nullptr);
        }
        trials.longer_form = true;
        for (const Splits& cut : splits) {
          if (cut.size(longest) > tile * parts && has_tiles(cut, warps, trials.problem.k.page_size)) {
            add(forgotten, warps, ", in each of " + cut.how, SinkJoins::first_tile, &cut);
          }
        }
        trials.longer_form = false;
      }
    }
  }
}

// Partial results that are added although each has its own maximum.
void add_separate_maxima(Trials& trials, std::int64_t longest, const std::vector<Splits>& splits) {
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
  for (const Splits& cut : splits) {
    add("the splits (" + cut.how + ")", "the factor exp(maximum - largest maximum) of each split in the merge",
        [cut](std::int64_t keys) {
          return Parts{cut.size(keys), ceil_div(std::max<std::int64_t>(1, keys), cut.size(keys))};
        });
  }
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

void add_merges(Trials& trials, const std::vector<Splits>& splits) {
  const auto merged = [&](const std::string& name, const std::string& cause, Combine combine, StoredLse lse) {
    for (const Splits& cut : splits) {
      trials.add(name, fmt::format("{} ({})", cause, cut.how), "the merge of the splits' partial results",
                 [combine, lse, cut](Recipe& r, const RowEvaluator&) {
                   r.combine = combine;
                   r.stored_lse = lse;
                   r.split = cut.size(static_cast<std::int64_t>(r.keys.size()));
                 });
    }
  };
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
    for (const Splits& cut : splits) {
      trials.add("lse_mixed_bases", fmt::format("{} ({})", what, cut.how), "the merge of the splits' partial results",
                 [of_largest = of_largest, of_sum = of_sum, cut](Recipe& r, const RowEvaluator&) {
                   r.stored_lse = StoredLse::mixed_bases;
                   r.lse_maximum = of_largest;
                   r.lse_sum = of_sum;
                   r.split = cut.size(static_cast<std::int64_t>(r.keys.size()));
                 });
    }
  }
  merged("merge_base",
         trials.problem.options.lse_base == attention::LseBase::two
             ? "the splits are merged with e^lse although lse is in base 2"
             : "the splits are merged with 2^lse although lse is natural",
         Combine::other_base, StoredLse::correct);
  for (const std::int64_t empty : {1, 2, 3, 4, 7}) {
    trials.add("empty_split",
               fmt::format("{} without keys join the merge with lse 0",
                           empty == 1 ? "one split" : fmt::format("{} splits", empty)),
               "lse of a split without keys: -infinity",
               [empty](Recipe& r, const RowEvaluator&) { r.extra_denominator = static_cast<double>(empty); });
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
  const std::vector<Splits> splits = common_splits(trials.problem, longest);
  add_rescaling(trials, longest, splits);
  add_separate_maxima(trials, longest, splits);
  add_splits(trials, splits);
  add_merges(trials, splits);
  add_lane_sums(trials);
  add_overflow(trials);
}

}  // namespace kvscope::golden

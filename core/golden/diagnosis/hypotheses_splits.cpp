// Hypotheses about splits of the keys: where they begin and end, and splits whose keys are lost.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/checked.h"
#include "core/golden/diagnosis/detail/splits.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

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

// Splits whose size is rounded down: the last pages, tiles or keys belong to none of them. Of a row with fewer than one
// for each split, a kernel whose splits have at least one loses none, and any other kernel all.
void add_rounded_down(Trials& trials, const std::vector<Splits>& splits, std::int64_t fewest) {
  const auto add = [&](const Splits& cut, const std::string& units, const std::string& all) {
    for (const std::int64_t least : {1, 0}) {
      if (least == 0 && fewest >= cut.number * cut.unit) continue;  // as with 1
      trials.add("split_rounded_down",
                 fmt::format("the keys after {0} * floor({1} / {0}){2} are left out", cut.number, units, all),
                 fmt::format("the number of {} in a split: it must round up", units),
                 [number = cut.number, unit = cut.unit, least](Recipe& r, const RowEvaluator&) {
                   const auto keys = static_cast<std::int64_t>(r.keys.size());
                   const std::int64_t size = std::max(least, ceil_div(keys, unit) / number) * unit;
                   r.keys.resize(static_cast<std::size_t>(std::min(keys, number * size)));
                 });
    }
  };
  const std::int64_t page = trials.problem.k.page_size;
  for (const Splits& cut : splits) {
    if (cut.number > 0 && cut.unit == page && page > 1) add(cut, "pages", " pages");
  }
  for (const Splits& cut : splits) {
    if (cut.number == 0 || (cut.unit == page && page > 1)) continue;  // first: of causes with the same output
    add(cut, cut.unit == 1 ? "keys" : "tiles", cut.unit == 1 ? "" : fmt::format(" tiles of {} keys", cut.unit));
  }
}

}  // namespace

std::vector<Splits> common_splits(const attention::Problem& problem, std::int64_t longest) {
  const std::int64_t page = problem.k.page_size;
  std::vector<Splits> splits;
  const auto numbered = [&](std::int64_t number, const std::string& of, std::int64_t unit) {
    splits.push_back({fmt::format("{} splits{}", number, of), number, unit,
                      [number, unit](std::int64_t keys) { return ceil_div(ceil_div(keys, unit), number) * unit; }});
  };
  for (const std::int64_t number : {2, 3, 4, 5, 6, 8, 16}) {
    if (number > longest) continue;
    numbered(number, "", 1);
    if (page > 1) numbered(number, " of whole pages", page);
    for (const std::int64_t tile : {64, 32, 128}) {
      if (page == tile || longest <= tile) continue;
      numbered(number, fmt::format(" of whole tiles of {} keys", tile), tile);
    }
  }
  std::set<std::int64_t> sizes{8, 192, 256, 320, 384, 448, 512, 640, 768, 1024, 2048};
  for (std::int64_t number = 1; number <= 8; ++number) {
    sizes.insert(16 * number);
    if (page >= 16) sizes.insert(page * number);
  }
  for (const std::int64_t size : sizes) {
    if (size < longest)
      splits.push_back({fmt::format("splits of {} keys", size), 0, 1, [size](std::int64_t) { return size; }});
  }
  return splits;
}

void add_splits(Trials& trials, const std::vector<Splits>& splits) {
  // The key `offset` after each boundary between two splits has another weight.
  const auto boundary = [&](const std::string& name, const std::string& cause, std::int64_t offset, double weight) {
    for (const Splits& cut : splits) {
      trials.add(name, fmt::format("{} ({})", cause, cut.how), "the first and the last key of a split",
                 [offset, weight, cut](Recipe& r, const RowEvaluator&) {
                   const auto keys = static_cast<std::int64_t>(r.keys.size());
                   const std::int64_t step = cut.size(keys);
                   for (std::int64_t first = step; first < keys; first += step) {
                     r.keys[static_cast<std::size_t>(first + offset)].weight = weight;
                   }
                 });
    }
  };
  // The keys of one split have no part in the output, or only those of one have. A sequence that is one split is
  // correct without a merge; with one, it loses all keys.
  const std::int64_t fewest = fewest_keys(trials.problem, trials.longest());
  const auto lost = [&](const std::string& name, const std::string& cause, bool kept, std::int64_t number) {
    for (const Splits& cut : splits) {
      for (const bool always_merged : {false, true}) {
        if (always_merged && (kept || number > 0 || cut.size(fewest) < fewest)) continue;  // as without a merge
        trials.add(name, fmt::format("{} ({})", cause, cut.how),
                   "how many partial results the merge reads, and whether each was written before",
                   [=](Recipe& r, const RowEvaluator&) {
                     const auto keys = static_cast<std::int64_t>(r.keys.size());
                     if (keys == 0) return;
                     const std::int64_t step = cut.size(keys), last = (keys - 1) / step;
                     if (last == 0 && !always_merged) return;
                     const std::int64_t meant = number < 0 ? last : number;
                     std::int64_t i = 0;
                     std::erase_if(r.keys, [&](const KeyRead&) { return (i++ / step == meant) != kept; });
                   });
      }
    }
  };
  trials.one_of_many = true;
  add_rounded_down(trials, splits, fewest);
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
}

}  // namespace kvscope::golden

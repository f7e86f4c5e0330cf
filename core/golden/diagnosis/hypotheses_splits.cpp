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
    if (cut.number == 0 || (cut.unit == page && page > 1)) continue;
    if (cut.unit == 1 && cut.number >= 8) continue;  // as a loop that rounds down to whole tiles of 8 or 16 keys
    add(cut, cut.unit == 1 ? "keys" : "tiles", cut.unit == 1 ? "" : fmt::format(" tiles of {} keys", cut.unit));
  }
}

// Which splits but the last have an end that a faulty kernel moves, in a row with too few keys for all splits.
enum class Ends : std::uint8_t {
  of_keys,    // those that another split with keys follows
  of_number,  // all but the last of their number, at the end of a split that is full
  cut_short,  // the same, at the last page where a split is not full
};

// The ends, in keys from the first one on. Example: 4 splits of whole pages of 16, 100 keys: 2 pages in a split, whose
// ends are at 32, 64 and 96. With 40 keys, a split has one page: the ends are at 16 and 32, and also at 48 if they are
// those of a number.
std::vector<std::int64_t> ends_of(const Splits& cut, std::int64_t keys, std::int64_t unit, Ends kind) {
  const std::int64_t size = cut.size(keys), whole = ceil_div(keys, unit) * unit;
  std::vector<std::int64_t> ends;
  for (std::int64_t end = size; kind == Ends::of_keys ? end < keys : std::ssize(ends) + 1 < cut.number; end += size) {
    if (end - size >= keys) break;  // a split without keys
    ends.push_back(kind == Ends::cut_short ? std::min(end, whole) : end);
  }
  return ends;
}

// The last or the first key or page of splits is lost or counted twice. `unit`: [keys], 1 or those of a page.
void add_boundaries(Trials& trials, const std::vector<Splits>& splits, std::int64_t unit) {
  const char* const what = unit == 1 ? "key" : "page";
  const auto add = [&](const std::string& name, const std::string& cause, bool before, double weight) {
    for (const Splits& cut : splits) {
      const bool whole = unit == 1 || cut.unit == unit || (cut.number == 0 && cut.size(0) % unit == 0);
      if (!whole) continue;  // its splits cut pages
      for (const Ends kind : {Ends::of_keys, Ends::of_number, Ends::cut_short}) {
        if (kind != Ends::of_keys && (cut.number == 0 || cut.unit > unit || !before)) continue;  // no other keys
        if (kind == Ends::cut_short && weight > 0) continue;  // they are the split's own
        trials.add(name, fmt::format("{} ({})", fmt::format(fmt::runtime(cause), what), cut.how),
                   fmt::format("the first and the last {} of a split", what),
                   [cut, unit, kind, before, weight](Recipe& r, const RowEvaluator&) {
                     const auto keys = static_cast<std::int64_t>(r.keys.size());
                     for (const std::int64_t end : ends_of(cut, keys, unit, kind)) {
                       const std::int64_t first = before ? end - unit : end;
                       for (std::int64_t i = first; i < std::min(keys, first + unit); ++i) {
                         r.keys[static_cast<std::size_t>(i)].weight = weight;
                       }
                     }
                   });
      }
    }
  };
  add("split_overlap", "the first {} of each split but the first is counted twice", false, 2);
  add("split_overlap", "the last {} of each split but the last is counted twice", true, 2);
  add("split_gap", "the last {} of each split but the last is left out", true, 0);
  add("split_gap", "the first {} of each split but the first is left out", false, 0);
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
  add_boundaries(trials, splits, 1);
  // Of one sequence, also that of one page (page_search.h).
  trials.one_of_many = true;
  if (trials.problem.k.page_size > 1) add_boundaries(trials, splits, trials.problem.k.page_size);
  trials.one_of_many = false;
}

}  // namespace kvscope::golden

// Hypotheses about the output: combination of tiles and splits, axes of o.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/checked.h"
#include "core/golden/diagnosis/detail/trials.h"
#include "core/golden/golden_terms.h"

namespace kvscope::golden {
namespace {

// --- combination of tiles and splits ---------------------------------------------------------------------------------

void add_combination(Trials& trials) {
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < trials.problem.batch; ++b) longest = std::max(longest, trials.problem.keys(b));
  for (const std::int64_t tile : {1, 4, 8, 16, 32, 64, 128, 256, 512}) {
    if (tile >= longest) continue;
    const auto add = [&](const char* sink, SinkJoins joins) {
      trials.add(
          "no_rescaling",
          fmt::format("the running output is not rescaled when the maximum rises (tiles of {} keys{})", tile, sink),
          "the factor exp(old maximum - new maximum) on output and sum", [tile, joins](Recipe& r, const RowEvaluator&) {
            r.combine = Combine::without_rescaling;
            r.split = tile;
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
  // Calls `add` for each common way to cut the keys into splits, with the split's size for a number of keys.
  const auto each_split = [&](const auto& add) {
    for (const std::int64_t splits : {2, 3, 4, 5, 6, 8, 16}) {
      if (splits > longest) continue;
      add(fmt::format("{} splits", splits), [splits](std::int64_t keys) { return ceil_div(keys, splits); });
      const std::int64_t page = trials.problem.k.page_size;
      if (page > 1) {
        add(fmt::format("{} splits of whole pages", splits),
            [splits, page](std::int64_t keys) { return ceil_div(ceil_div(keys, page), splits) * page; });
      }
    }
    for (const std::int64_t size : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      if (size < longest) add(fmt::format("splits of {} keys", size), [size](std::int64_t) { return size; });
    }
  };
  using SplitSize = std::function<std::int64_t(std::int64_t keys)>;
  const auto merged = [&](const std::string& name, const std::string& cause, Combine combine, StoredLse lse) {
    each_split([&](const std::string& how, SplitSize size) {
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
    each_split([&](const std::string& how, SplitSize size) {
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
  boundary("split_overlap", "the first key of each split but the first is counted twice", 0, 2);
  boundary("split_overlap", "the last key of each split but the last is counted twice", -1, 2);
  boundary("split_gap", "the last key of each split but the last is left out", -1, 0);
  boundary("split_gap", "the first key of each split but the first is left out", 0, 0);
  merged("merge_by_mean", "the outputs of the splits are averaged instead of weighted by their sums", Combine::mean,
         StoredLse::correct);
  merged("merge_by_mean", "the outputs and the lse of the splits are averaged", Combine::mean,
         StoredLse::mean_of_splits);
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
  trials.add("not_normalized", "o is not divided by the sum of the probabilities", "the last division",
             [](Recipe& r, const RowEvaluator&) { r.normalized = false; });
}

// --- output axes -----------------------------------------------------------------------------------------------------

// Row of a golden tensor read through another order of its axes.
class GoldenRows {
 public:
  explicit GoldenRows(const Bundle& golden) : terms(golden) {}

  // Element i of the row comes from flat element `from(i)` of the golden's o.
  RowValue gather(std::int64_t dims, const std::function<std::int64_t(std::int64_t)>& from, std::size_t own_row) const {
    RowValue row;
    row.terms = terms.row(own_row);
    double smax = 0;
    for (std::int64_t d = 0; d < dims; ++d) {
      const auto i = static_cast<std::size_t>(from(d));
      const attention::ElementTerms element = terms.element(i);
      row.o.push_back(element.o);
      row.a1.push_back(element.a1);
      row.a2.push_back(element.a2);
      smax = std::max(smax, terms.row(i / static_cast<std::size_t>(dims)).smax);
    }
    row.terms.smax = smax;
    return row;
  }

  GoldenTerms terms;
};

// A kernel that wrote nothing, or whose output was not copied back. Some compute lse all the same.
void add_nothing(Trials& trials) {
  const std::size_t dims = static_cast<std::size_t>(trials.problem.v.head_size);
  for (const bool lse : {true, false}) {
    trials.all.push_back(
        {"output_zero", lse ? "every element of o is zero, but lse is correct" : "every element of o and lse is zero",
         "the store of o, and the copy of the output to the host", -1, [dims, lse](const RowEvaluator& row) {
           RowValue value = row.evaluate(row.correct());
           value.o.assign(dims, 0);
           value.a1.assign(dims, 0);
           value.a2.assign(dims, 0);
           if (!lse) value.terms.lse = 0;
           return value;
         }});
  }
}

void add_output(Trials& trials) {
  const std::int64_t rows = trials.problem.total_queries();
  const std::int64_t heads = trials.problem.query_heads;
  const std::int64_t dims = trials.problem.v.head_size;
  const auto source = std::make_shared<GoldenRows>(trials.input.golden);
  const auto add = [&](const std::string& cause,
                       std::function<std::int64_t(std::int64_t row, std::int64_t head, std::int64_t dim)> from) {
    trials.all.push_back({"output_axes", cause, "the order of the axes of o: [query, query head, dim]", -1,
                          [=](const RowEvaluator& row) {
                            const auto flat = static_cast<std::size_t>(row.query() * heads + row.head());
                            return source->gather(
                                dims, [&](std::int64_t d) { return from(row.query(), row.head(), d); }, flat);
                          }});
  };
  if (heads > 1) {
    add("o is stored as [query, dim, head]", [=](std::int64_t row, std::int64_t head, std::int64_t dim) {
      const std::int64_t flat = head * dims + dim;
      return (row * heads + flat % heads) * dims + flat / heads;
    });
  }
  if (heads > 1 && rows > 1) {
    add("o is stored as [head, query, dim]", [=](std::int64_t row, std::int64_t head, std::int64_t dim) {
      const std::int64_t flat = row * heads + head;
      return (flat % rows * heads + flat / rows) * dims + dim;
    });
    const std::int64_t batch = trials.problem.batch;
    if (batch > 1 && rows > batch && rows % batch == 0) {
      const std::int64_t queries = rows / batch;
      add("o is stored as [batch, head, query, dim]", [=](std::int64_t row, std::int64_t head, std::int64_t dim) {
        const std::int64_t flat = row * heads + head;  // of [batch, head, query]
        const std::int64_t b = flat / (heads * queries);
        const std::int64_t in_batch = flat % (heads * queries);
        return ((b * queries + in_batch % queries) * heads + in_batch / queries) * dims + dim;
      });
    }
  }
}

}  // namespace

void add_outputs(Trials& trials) {
  add_nothing(trials);
  add_combination(trials);
  add_output(trials);
}

}  // namespace kvscope::golden

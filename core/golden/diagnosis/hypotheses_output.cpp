// Hypotheses about the output: axes of o and of lse, rows that were not written.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/golden/diagnosis/detail/trials.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {
namespace {

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

// lse in the order of FlashAttention, [head, query] or [batch, head, query]: o is correct.
void add_lse_axes(Trials& trials) {
  const std::int64_t rows = trials.problem.total_queries();
  const std::int64_t heads = trials.problem.query_heads;
  const std::int64_t dims = trials.problem.v.head_size;
  if (heads == 1 || rows == 1) return;
  const auto source = std::make_shared<GoldenRows>(trials.input.golden);
  // The lse of row and head is the golden's of the flat index `from(index)`.
  const auto add = [&](const char* axes, std::function<std::int64_t(std::int64_t index)> from) {
    trials.all.push_back(
        {"lse_axes", fmt::format("lse is stored as {}", axes), "the order of the axes of lse: [query, query head]", -1,
         [source, heads, dims, from = std::move(from)](const RowEvaluator& row) {
           const std::int64_t index = row.query() * heads + row.head();
           RowValue value = source->gather(
               dims, [=](std::int64_t d) { return index * dims + d; }, static_cast<std::size_t>(index));
           const attention::RowTerms other = source->terms.row(static_cast<std::size_t>(from(index)));
           value.terms.lse = other.lse;
           value.terms.smax = std::max(value.terms.smax, other.smax);
           return value;
         }});
  };
  add("[head, query]", [=](std::int64_t index) { return index % rows * heads + index / rows; });
  const std::int64_t batch = trials.problem.batch;
  if (batch > 1 && rows > batch && rows % batch == 0) {
    add("[batch, head, query]", [=, queries = rows / batch](std::int64_t index) {
      const std::int64_t in_batch = index % (heads * queries);
      return index - in_batch + in_batch % queries * heads + in_batch / queries;
    });
  }
}

}  // namespace

void add_outputs(Trials& trials) {
  add_nothing(trials);
  add_output(trials);
  add_lse_axes(trials);
}

}  // namespace kvscope::golden

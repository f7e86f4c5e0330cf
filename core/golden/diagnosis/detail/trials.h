// Shared by the files that list hypotheses: the list of trials, and ways to add one as a change of the correct recipe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/mask.h"
#include "core/golden/diagnosis/hypotheses.h"

namespace kvscope::golden {

// Changes the correct recipe of a row into the faulty one.
using Change = std::function<void(Recipe&, const RowEvaluator&)>;

inline std::int64_t queries_of(const RowEvaluator& row) {
  return row.problem().first_query(row.sequence() + 1) - row.problem().first_query(row.sequence());
}

// The keys that the row sees under `options` if its sequence has `keys` keys.
inline attention::KeyRange visible_with(const attention::Options& options, const RowEvaluator& row, std::int64_t keys) {
  return attention::visible_keys(options, row.query_in_sequence(), queries_of(row), keys);
}

// The keys of `range` become those of the recipe, through the lookup table and with their biases.
inline void set_keys(Recipe& recipe, const RowEvaluator& row, const attention::KeyRange& range) {
  recipe.keys = keys_of(row.problem(), row.sequence(), range.first, std::max(range.first, range.last));
  add_biases(row.problem(), row.sequence(), row.query_in_sequence(), row.head(), recipe.keys);
}

class Trials {
 public:
  explicit Trials(const DiagnosisInput& from) : input(from), problem(from.problem) {}

  void add(std::string name, std::string cause, std::string look_at, Change change) {
    all.push_back({std::move(name), std::move(cause), std::move(look_at), -1,
                   [change = std::move(change)](const RowEvaluator& row) {
                     Recipe recipe = row.correct();
                     change(recipe, row);
                     return row.evaluate(recipe);
                   }});
    all.back().one_of_many = one_of_many;
    all.back().longer_form = longer_form;
  }

  // The same attention under other options: the keys are looked up again for the changed mask and length.
  void add_visible(std::string name, std::string cause, std::string look_at,
                   std::function<attention::KeyRange(const RowEvaluator&, std::int64_t keys)> visible) {
    add(std::move(name), std::move(cause), std::move(look_at),
        [visible = std::move(visible)](Recipe& recipe, const RowEvaluator& row) {
          set_keys(recipe, row, visible(row, row.problem().keys(row.sequence())));
        });
  }

  // [keys] of the longest sequence; 0 without sequences.
  [[nodiscard]] std::int64_t longest() const {
    std::int64_t keys = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b) keys = std::max(keys, problem.keys(b));
    return keys;
  }

  const DiagnosisInput& input;
  const attention::Problem& problem;
  std::vector<Trial> all;
  bool one_of_many = false, longer_form = false;  // of the trials that are added from now on
};

// hypotheses_scores.cpp: conventions of the scores, lse, mask and length.
void add_scores(Trials& trials);
// hypotheses_loops.cpp: keys that the loops over pages and tiles leave out in every sequence.
void add_loops(Trials& trials);
// hypotheses_cache.cpp: heads, layout, types and scales of the cache.
void add_cache(Trials& trials);
// hypotheses_table.cpp: the lookup table and the lengths as the kernel reads them.
void add_table(Trials& trials);
// hypotheses_masks.cpp: masks given as tensors, and indices of sparse attention.
void add_query_masks(Trials& trials);
// hypotheses_staging.cpp: tiles of K and V in shared memory and registers.
void add_staging(Trials& trials);
// hypotheses_combination.cpp: combination of tiles and splits.
void add_combination(Trials& trials);
// hypotheses_output.cpp: axes of o, rows that were not written.
void add_outputs(Trials& trials);

}  // namespace kvscope::golden

// Masks that are legal as they are read, and rarely meant so.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/report.h"
#include "core/golden/layouts/detail/mask_walk.h"

namespace kvscope::golden {
namespace {

// The columns [first, last) of a row that have one value, where all others have the other one. Empty: first == last.
struct Run {
  std::int64_t first = 0, last = 0;
  friend bool operator==(const Run&, const Run&) = default;
};

// The run of columns that are visible, or hidden, in a row that starts at number `start`; empty if there are several.
std::optional<Run> only_run(const MaskValues& values, std::int64_t start, std::int64_t columns, bool visible) {
  Run run;
  std::int64_t count = 0;
  for (std::int64_t column = 0; column < columns; ++column) {
    if (values.shows(start + column) != visible) continue;
    if (count++ == 0) run.first = column;
    run.last = column + 1;
  }
  if (run.last - run.first != count) return std::nullopt;
  return run;
}

// Whether the runs move by at most one column from each row to the next, as in causal masks and windows.
bool is_staircase(const std::vector<Run>& runs) {
  const auto step = [](std::int64_t a, std::int64_t b) { return b - a == 0 || b - a == 1; };
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (!step(runs[i - 1].first, runs[i].first) || !step(runs[i - 1].last, runs[i].last)) return false;
  }
  return true;
}

// Whether run b has the keys of sequence b: from the first column on, up to the last column, or in its own positions of
// a padded cache.
bool has_keys_of_sequences(const std::vector<Run>& runs, std::int64_t columns, const MaskBatch& batch) {
  bool at_start = true, at_end = true, in_place = !batch.padding.empty() && columns == batch.capacity;
  for (std::size_t b = 0; b < runs.size(); ++b) {
    if (runs[b].last - runs[b].first != batch.keys[b]) return false;
    if (batch.keys[b] == 0) continue;
    at_start = at_start && runs[b].first == 0;
    at_end = at_end && runs[b].last == columns;
    in_place = in_place && runs[b].first == batch.padding[b];
  }
  return at_start || at_end || in_place;
}

}  // namespace

std::optional<MaskFault> padding_as_rows(const std::string& given, const Tensor& mask, const MaskWalk& walk,
                                         const MaskBatch& batch) {
  const auto sequences = static_cast<std::int64_t>(batch.size());
  if (walk.form != MaskForm::dense || mask.shape.size() != 2 || sequences < 2 || walk.rows != sequences) return {};
  const MaskValues values(mask, walk);
  for (const bool visible : {true, false}) {
    std::vector<Run> runs;
    for (std::int64_t row = 0; row < walk.rows; ++row) {
      const std::optional<Run> run = only_run(values, row * walk.columns, walk.columns, visible);
      if (!run) break;
      runs.push_back(*run);
    }
    if (std::cmp_not_equal(runs.size(), walk.rows) || !has_keys_of_sequences(runs, walk.columns, batch)) continue;
    if (is_staircase(runs)) continue;  // also rows that are all alike
    return MaskFault{
        "mask-axes",
        given,
        fmt::format(
            "has as many rows as there are sequences, and each row {} exactly the keys of its sequence: {} in row "
            "0, {} in row 1",
            visible ? "shows" : "hides", batch.keys[0], batch.keys[1]),
        "",
        fmt::format("two axes are read as [Sq, Sk], a row for each query of all sequences; padding of each sequence is "
                    "[{}, 1, Sk]{}",
                    sequences, visible ? "" : ", visible where a sequence has keys"),
        std::nullopt};
  }
  return {};
}

}  // namespace kvscope::golden

#include "apps/labs/hunt_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/base/report.h"

namespace kvscope::labs {
namespace {

constexpr std::size_t kRowDims = HuntProblem::kDims;

// lse, then o.
std::vector<float> hunt_row(const HuntOutput& output, std::size_t row) {
  std::vector<float> numbers{output.lse[row]};
  const auto first = output.o.begin() + static_cast<std::ptrdiff_t>(row * kRowDims);
  numbers.insert(numbers.end(), first, first + static_cast<std::ptrdiff_t>(kRowDims));
  return numbers;
}

// The cells of `output`; those that differ from `reference` have `mark`.
PictureRow numbers_row(std::string heading, const HuntOutput& output, const HuntOutput& reference, std::size_t row,
                       CellMark mark) {
  PictureRow line{std::move(heading), {}};
  const std::vector<float> numbers = hunt_row(output, row), others = hunt_row(reference, row);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    line.cells.push_back(
        {fmt::format("{:.5g}", numbers[i]), hunt_differs(others[i], numbers[i]) ? mark : CellMark::plain});
  }
  return line;
}

PictureGrid row_grid(const HuntProblem& problem, const HuntRow& at) {
  const auto row = static_cast<std::size_t>(at.sequence * problem.query_heads() + at.head);
  PictureGrid grid{fmt::format("sequence {} of {}, query head {}", at.sequence,
                               counted(problem.lengths[static_cast<std::size_t>(at.sequence)], "key"), at.head),
                   {"lse"},
                   {}};
  for (std::size_t d = 0; d < kRowDims; ++d) grid.columns.push_back(fmt::format("o[{}]", d));
  grid.rows.push_back(numbers_row("golden", at.golden, at.golden, row, CellMark::plain));
  grid.rows.push_back(numbers_row("report", at.report, at.golden, row, CellMark::used));
  if (at.named != nullptr) grid.rows.push_back(numbers_row("your cause", *at.named, at.report, row, CellMark::wrong));
  return grid;
}

// What differs in a row of the answer.
PictureCell map_cell(const HuntRow& at, std::size_t row) {
  const std::vector<float> golden = hunt_row(at.golden, row), report = hunt_row(at.report, row);
  const bool lse = hunt_differs(golden[0], report[0]);
  const bool o = !std::equal(golden.begin() + 1, golden.end(), report.begin() + 1,
                             [](float a, float b) { return !hunt_differs(a, b); });
  if (!lse && !o) return {"equal", CellMark::wrong};
  return {lse && o ? "o and lse" : o ? "o" : "lse", CellMark::used};
}

}  // namespace

CasePicture hunt_picture(const HuntProblem& problem, const HuntRow& row, const std::vector<std::int64_t>& sequences,
                         const std::vector<std::int64_t>& heads) {
  PictureGrid map{"the rows of your answer: what differs from the golden output there", {}, {}};
  const std::int64_t count = problem.query_heads();
  for (std::int64_t head = 0; head < count; ++head) map.columns.push_back(fmt::format("head {}", head));
  for (std::int64_t sequence = 0; sequence < problem.batch(); ++sequence) {
    PictureRow line{fmt::format("sequence {}", sequence), {}};
    for (std::int64_t head = 0; head < count; ++head) {
      const bool answered = std::ranges::count(sequences, sequence) > 0 && std::ranges::count(heads, head) > 0;
      line.cells.push_back(answered ? map_cell(row, static_cast<std::size_t>(sequence * count + head))
                                    : PictureCell{"", CellMark::quiet});
    }
    map.rows.push_back(std::move(line));
  }
  return {
      {row_grid(problem, row), std::move(map)}, "differs from the golden output", "not in your answer", "your answer"};
}

}  // namespace kvscope::labs

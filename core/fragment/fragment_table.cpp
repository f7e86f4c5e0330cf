#include "core/fragment/fragment_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {
namespace {

struct Range {
  int first = 0, end = 0;
};

Range range_of(const char* what, int first, int count, int extent, std::vector<Fault>& faults) {
  const int end = count == -1 ? extent : first + std::min(count, extent);
  if (first < 0 || first >= end || end > extent) {
    faults.push_back({what, fmt::format("[{}, {}) is not a part of [0, {})", first, end, extent)});
  }
  return {first, end};
}

}  // namespace

std::string fragment_table(const FragmentMap& map, TableForm form, const TableWindow& window) {
  const FragmentInfo& info = map.info();
  std::vector<Fault> faults;
  const Range rows = range_of("rows", window.first_row, window.rows, info.rows, faults);
  const Range columns = range_of("columns", window.first_column, window.columns, info.columns, faults);
  if (!faults.empty()) throw GeometryError(fmt::format("table of {}", info.name), std::move(faults));

  // The first line has the names of the columns; every other line begins with the name of its row.
  std::vector<std::vector<std::string>> cells;
  auto& head = cells.emplace_back(1, "");
  for (int column = columns.first; column < columns.end; ++column) {
    head.push_back(fmt::format("{} {}", info.column_name, column));
  }
  for (int row = rows.first; row < rows.end; ++row) {
    auto& line = cells.emplace_back(1, fmt::format("{} {}", info.row_name, row));
    for (int column = columns.first; column < columns.end; ++column) {
      const FragmentPlace at = map.fragment_of({row, column});
      line.push_back(fmt::format("T{}.{}", at.lane, map.register_of(at.element)));
    }
  }
  std::vector<std::size_t> widths(cells[0].size());
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text = form == TableForm::markdown ? fmt::format("**{}**\n\n", info.name) : info.name + "\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string line;
    for (std::size_t k = 0; k < cells[i].size(); ++k) {
      line += form == TableForm::markdown ? fmt::format("| {:<{}} ", cells[i][k], widths[k])
                                          : fmt::format("{}{:<{}}", k == 0 ? "" : "  ", cells[i][k], widths[k]);
    }
    if (form == TableForm::markdown) {
      text += line + "|\n";
      if (i > 0) continue;
      for (const std::size_t width : widths) text += fmt::format("|{:-<{}}", "", width + 2);
      text += "|\n";
    } else {
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text;
}

}  // namespace kvscope

// Reports that the user knows and does not want to see again, by kind, kernel and source line. One a line:
//
//   # the ring's last stage is read twice, on purpose
//   RACE_RW | decode<64> | decode.cuh:134
//   *       | *          | third_party/*
//   note    | *          | *
//
// The first part is a kind, a severity (note, warning, error), or *.
// A pattern matches the whole text; * stands for any characters. The kernel matches by any form of its name
// (kernel_names.h), the source by any access of the report: the innermost place "file:line", or "" without line numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/machine/diagnosis/report.h"

namespace kvscope::ptx {

class Suppressions {
 public:
  // InputError with every malformed line of `text`; `what` names the file.
  void add(std::string_view text, std::string_view what);
  // True: a line matches, and its count grows.
  bool matches(const Report& report);
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  [[nodiscard]] std::int64_t matched() const;                // reports
  [[nodiscard]] std::vector<std::string> unmatched() const;  // "known.txt:3", lines that matched no report

 private:
  struct Line {
    std::string place, kind, kernel, source;
    std::int64_t matched = 0;
  };
  std::vector<Line> lines_;
};

// A line for each report, that matches it and is read by Suppressions::add.
[[nodiscard]] std::string suggested_suppressions(const std::vector<Report>& reports);

}  // namespace kvscope::ptx

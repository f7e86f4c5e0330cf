// Grades as text for a student, and as files for course systems.
#pragma once

#include <span>
#include <string>

#include "apps/labs/grade.h"
#include "core/base/json.h"

namespace kvscope::labs {

// Student-controlled text in it is escaped (terminal_text.h).
//
//   Lab 02 rows: 85 of 100 points
//     PASS  one_block      10 of 10
//     FAIL  strides         0 of 15  right in block 0 only: the stride is of one layer
//           page_size 4, 2 layers, ...
[[nodiscard]] std::string grade_text(const Lab& lab, const Grade& grade);

[[nodiscard]] json::Value grade_json(const Grade& grade);                           // read back by read_grade()
[[nodiscard]] Grade read_grade(const json::Value& value, std::string_view source);  // InputError
[[nodiscard]] std::string grade_junit(const Grade& grade);
// results.json of a Gradescope autograder: "tests" with score, max_score, name, output, status.
[[nodiscard]] json::Value gradescope_json(const Lab& lab, const Grade& grade);

// One line per student: "student,lab,points,maximum,<test>,...". A cell that a spreadsheet would take for a formula
// begins with an apostrophe.
[[nodiscard]] std::string class_csv(const Lab& lab, std::span<const Grade> grades);
// Histogram of points in ten bins, mean and median, and each test by the number of students that lost points in it. If
// the lab has a leaderboard, the scores of the class. Gradescope and CSV files have them too.
[[nodiscard]] std::string class_text(const Lab& lab, std::span<const Grade> grades);

}  // namespace kvscope::labs

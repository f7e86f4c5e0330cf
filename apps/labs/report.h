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

// What repeats the grading with `kvscope lab check --seed`: the seed, and the limits that are not the defaults, as
// "3f...c1 --max-run-time 8".
[[nodiscard]] std::string repeat_text(const Grade& grade);

// The failed test's message, its case and the grader's picture of it, as an SVG file.
[[nodiscard]] std::string failure_picture(const Lab& lab, const TestResult& result);
// The first failed test; null when all tests passed.
[[nodiscard]] const TestResult* first_failure(const Grade& grade);

// Read back by read_grade(), except "picture": the SVG file of a failed test with a picture.
[[nodiscard]] json::Value grade_json(const Lab& lab, const Grade& grade);
[[nodiscard]] Grade read_grade(const json::Value& value, std::string_view source);  // InputError
// With the seed, and the limits that are not the defaults, as properties.
[[nodiscard]] std::string grade_junit(const Grade& grade);
// results.json of a Gradescope autograder: "tests" with score, max_score, name, output, status.
[[nodiscard]] json::Value gradescope_json(const Lab& lab, const Grade& grade);

// One line per student: "student,lab,points,maximum,<test>,...,feedback"; the feedback is each failed test with its
// message. A cell that a spreadsheet would take for a formula begins with an apostrophe.
[[nodiscard]] std::string class_csv(const Lab& lab, std::span<const Grade> grades);
// Histogram of points in ten bins, mean and median; limits that are not the defaults; each test by the number of
// students that lost points in it, with its most frequent messages, "..." in place of numbers that differ; the scores
// of the class, if the lab has a leaderboard; and each student with the failed tests, the fewest points first. Students
// without a submission are in the list of students only.
[[nodiscard]] std::string class_text(const Lab& lab, std::span<const Grade> grades);

}  // namespace kvscope::labs

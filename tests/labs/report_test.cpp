#include "apps/labs/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/errors.h"

namespace kvscope::labs::report_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Lab two_tests() {
  Lab lab;
  lab.number = 2;
  lab.name = "rows";
  lab.title = "Rows";
  lab.tests = {{"first", 60, "The first."}, {"second", 40, "The second."}};
  return lab;
}

Grade half(const Lab& lab, const std::string& student, const std::string& message) {
  return {student,
          lab.id(),
          public_seed(lab.id()),
          {passed(lab, "first"), failed(lab, "second", message, "case 1\ncase 2", 3)}};
}

TEST(GradeText, ShowsPointsMessageCaseAndTheNextHint) {
  const Lab lab = two_tests();
  EXPECT_EQ(grade_text(lab, half(lab, "ada", "wrong")),
            "Lab 02 rows: 60 of 100 points\n"
            "  PASS  first     60 of 60\n"
            "  FAIL  second     0 of 40    wrong\n"
            "        case 1\n"
            "        case 2\n"
            "Hint for the first failed test: kvscope lab hint 2 3\n");
}

// A file that is missing fails every test: the class's output has the reason once for each student.
TEST(GradeText, PrintsALongMessageOnce) {
  const Lab lab = two_tests();
  const std::string why(61, 'x'), brief(60, 'y');
  const Grade grade{"ada", lab.id(), public_seed(lab.id()), all_failed(lab, why)};
  EXPECT_THAT(grade_text(lab, grade), HasSubstr("0 of 60    " + why + "\n  FAIL  second     0 of 40    as above\n"));
  const Grade other{"ada", lab.id(), public_seed(lab.id()), all_failed(lab, brief)};
  EXPECT_THAT(grade_text(lab, other), HasSubstr("0 of 40    " + brief));
}

// The line of a complaint: the seed, and what differs from the defaults of this version.
TEST(RepeatText, HasTheLimitsThatAreNotTheDefaults) {
  const Lab lab = two_tests();
  Grade grade = half(lab, "ada", "wrong");
  EXPECT_EQ(repeat_text(grade), grade.seed.text());
  grade.limits = limit_values({}, LabKind::cuda);
  EXPECT_EQ(repeat_text(grade), grade.seed.text());
  LabLimits limits;
  limits.launch_memory = 7;
  limits.run_seconds = 8;  // of C++ labs only
  grade.limits = limit_values(limits, LabKind::cuda);
  EXPECT_EQ(repeat_text(grade), grade.seed.text() + " --max-memory 7");
}

// A grading is repeated from its report.
TEST(GradeJUnit, HasTheSeedAndTheLimitsThatAreNotTheDefaults) {
  const Lab lab = two_tests();
  Grade grade = half(lab, "ada", "wrong");
  grade.limits = limit_values({}, LabKind::cpp);
  const std::string seed = "    <property name=\"seed\" value=\"" + grade.seed.text() + "\"/>\n";
  EXPECT_THAT(grade_junit(grade), HasSubstr("  <properties>\n" + seed + "  </properties>\n"));
  LabLimits limits;
  limits.run_seconds = 8;
  limits.compile_seconds = 40;
  grade.limits = limit_values(limits, LabKind::cpp);
  EXPECT_THAT(grade_junit(grade),
              HasSubstr(seed + "    <property name=\"limits\" value=\"--max-run-time 8 --max-compile-time 40\"/>\n"
                               "  </properties>\n"));
}

// A file of a later version may have a limit that this one does not know.
TEST(GradeJson, KeepsTheLimits) {
  const Lab lab = two_tests();
  Grade grade = half(lab, "ada", "wrong");
  LabLimits limits;
  limits.run_output_bytes = 2048;
  grade.limits = limit_values(limits, LabKind::cpp);
  grade.limits.push_back({"--max-later", 5});
  const Grade again = read_grade(grade_json(lab, grade), "grade.json");
  EXPECT_EQ(again.limits, grade.limits);
  EXPECT_EQ(changed_limits(again.limits), "--max-run-output 2048 --max-later 5");
  json::Value earlier = grade_json(lab, grade), wrong = earlier;
  std::erase_if(*earlier.as_object(), [](const json::Member& member) { return member.first == "limits"; });
  EXPECT_TRUE(read_grade(earlier, "grade.json").limits.empty());
  for (const json::Value& value : {json::Value("4"), json::Value(json::Object{{"--max-ptx", "4"}})}) {
    wrong.set("limits", value);
    EXPECT_THROW((void)read_grade(wrong, "grade.json"), InputError);
  }
}

TEST(ClassText, TellsIfTheGradesHaveDifferentLimits) {
  const Lab lab = two_tests();
  std::vector<Grade> grades{half(lab, "ada", "wrong"), half(lab, "grace", "wrong"), half(lab, "alan", "wrong")};
  EXPECT_THAT(class_text(lab, grades), Not(HasSubstr("limits")));
  const auto with = [](std::int64_t seconds) {
    LabLimits limits;
    limits.run_seconds = seconds;
    return limit_values(limits, LabKind::cpp);
  };
  for (Grade& grade : grades) grade.limits = with(8);
  EXPECT_THAT(class_text(lab, grades), HasSubstr("\nlimits: --max-run-time 8\n"));
  grades[1].limits = with(2);
  EXPECT_THAT(class_text(lab, grades), HasSubstr("  --max-run-time 8: ada, alan\n  the default limits: grace\n"));
}

// A submission prints an escape sequence; the report must not contain it.
TEST(GradeText, EscapesControlCharacters) {
  const Lab lab = two_tests();
  EXPECT_THAT(grade_text(lab, half(lab, "ada", "\x1b]0;title\x07")), Not(HasSubstr("\x1b")));
}

TEST(GradeJson, IsReadBack) {
  const Lab lab = two_tests();
  const Grade grade = half(lab, "ada", "wrong");
  const Grade again = read_grade(grade_json(lab, grade), "grade.json");
  EXPECT_EQ(again.student, "ada");
  EXPECT_EQ(again.seed, grade.seed);
  EXPECT_EQ(again.earned(), 60);
  EXPECT_EQ(again.points(), 100);
  EXPECT_EQ(again.results[1].message, "wrong");
  EXPECT_THROW((void)read_grade(json::parse("{}", "x.json"), "x.json"), InputError);
}

// Each member of a grade, of another type and outside of its range.
TEST(GradeJson, NamesTheMemberThatIsInvalid) {
  const Lab lab = two_tests();
  const auto fault = [&](bool of_test, const char* key, const json::Value& value) -> std::string {
    json::Value grade = grade_json(lab, half(lab, "ada", "wrong"));
    if (of_test) {
      json::Array tests = *grade.find("tests")->as_array();
      tests[1].set(key, value);
      grade.set("tests", tests);
    } else {
      grade.set(key, value);
    }
    try {
      (void)read_grade(grade, "grade.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto member = [&](const char* key, const json::Value& value) { return fault(false, key, value); };
  const auto test = [&](const char* key, const json::Value& value) { return fault(true, key, value); };
  EXPECT_EQ(test("points", 7), "no error");
  EXPECT_THAT(member("kvscope_grade", 2), HasSubstr("$.kvscope_grade: must be 1"));
  EXPECT_THAT(member("kvscope_grade", "1"), HasSubstr("$.kvscope_grade: must be 1"));
  EXPECT_THAT(member("student", 7), HasSubstr("$.student: must be a text"));
  EXPECT_THAT(member("seed", "12"), HasSubstr("$.seed: '12' is not a seed"));
  EXPECT_THAT(member("seed", std::string(63, '0') + "g"), HasSubstr("$.seed: "));
  EXPECT_THAT(member("seed", std::string(63, '0') + "/"), HasSubstr("$.seed: "));
  EXPECT_THAT(member("seed", std::string(63, '0') + "G"), HasSubstr("$.seed: "));
  EXPECT_EQ(member("seed", std::string(63, '0') + "F"), "no error");
  EXPECT_THAT(member("tests", 7), HasSubstr("$.tests: must be a list"));
  EXPECT_THAT(test("name", 7), HasSubstr("$.tests[1].name: must be a text"));
  EXPECT_THAT(test("points", "7"), HasSubstr("$.tests[1].points: must be a number"));
  EXPECT_THAT(test("points", -1), HasSubstr("$.tests[1].points: is -1: must be a number from 0 to 40"));
  EXPECT_THAT(test("points", 41), HasSubstr("$.tests[1].points: is 41: must be a number from 0 to 40"));
  EXPECT_THAT(test("maximum", 1001), HasSubstr("$.tests[1].maximum: is 1001: must be a whole number from 0 to 1000"));
  EXPECT_THAT(test("maximum", 40.5), HasSubstr("$.tests[1].maximum: is 40.5: must be a whole number from 0 to 1000"));
  EXPECT_THAT(test("hint", 2.5), HasSubstr("$.tests[1].hint: is 2.5: must be a whole number from 0 to 1000"));
  EXPECT_THAT(test("hint", -1), HasSubstr("$.tests[1].hint: is -1: must be a whole number from 0 to 1000"));
  EXPECT_EQ(test("hint", 2.0), "no error");
  EXPECT_EQ(test("points", 7.5), "no error");  // a part of the points of a test
  EXPECT_THAT(test("score", "97"), HasSubstr("$.tests[1].score: must be a number"));
}

TEST(Gradescope, HasOneTestPerTestWithItsScore) {
  const Lab lab = two_tests();
  const json::Value value = gradescope_json(lab, half(lab, "ada", "wrong"));
  const json::Array& tests = *value.find("tests")->as_array();
  ASSERT_EQ(tests.size(), 2U);
  EXPECT_EQ(tests[0].find("score")->number(), 60);
  EXPECT_EQ(tests[1].find("score")->number(), 0);
  EXPECT_EQ(tests[1].find("max_score")->number(), 40);
  EXPECT_EQ(*tests[1].find("status")->as_string(), "failed");
}

// A spreadsheet would run "=cmd()" as a formula.
TEST(ClassCsv, QuotesCellsAndDisarmsFormulas) {
  const Lab lab = two_tests();
  const std::vector<Grade> grades{half(lab, "=cmd()", "wrong"), half(lab, "a,\"b\"", "wrong")};
  EXPECT_EQ(class_csv(lab, grades),
            "student,lab,points,maximum,first,second,feedback\n"
            "'=cmd(),02_rows,60,100,60,0,second: wrong\n"
            "\"a,\"\"b\"\"\",02_rows,60,100,60,0,second: wrong\n");
}

TEST(ClassText, CountsFailuresAndNamesTheMostFrequentMessage) {
  const Lab lab = two_tests();
  const std::vector<Grade> grades{half(lab, "a", "rare"), half(lab, "b", "frequent"), half(lab, "c", "frequent")};
  const std::string text = class_text(lab, grades);
  EXPECT_THAT(text, HasSubstr("Lab 02 rows: 3 submissions\nmean 60.0, median 60.0 of 100 points\n"));
  EXPECT_THAT(text, HasSubstr("   60 to  70 %    3  ###\n"));
  EXPECT_THAT(text, HasSubstr("  second    3\n"
                              "                2  frequent\n"
                              "                1  rare\n"
                              "  first     0\n"));
}

// The numbers are each student's own: "1709 is not right" was a message of one student, and no error of the class showed.
TEST(ClassText, CountsMessagesThatDifferInNumbersAsOne) {
  const Lab lab = two_tests();
  const auto lines = [&](const std::vector<std::string>& messages) {
    std::vector<Grade> grades;
    for (const std::string& message : messages) grades.push_back(half(lab, std::to_string(grades.size()), message));
    const std::string text = class_text(lab, grades);
    const std::size_t begin = text.find('\n', text.find("  second    ")) + 1;
    return text.substr(begin, text.find("  first     0\n") - begin);
  };
  EXPECT_EQ(lines({"1 36 2 is not right", "rare", "22 6 -3 is not right"}),
            "                2  ... is not right\n                1  rare\n");
  EXPECT_EQ(lines({"7 is not right", "7 is not right"}), "                2  7 is not right\n");
  EXPECT_EQ(lines({"sectors 2.25x ideal: (1, 2) of 3.", "sectors 4x ideal: (0, 12) of 3."}),
            "                2  sectors ...x ideal: (...) of ....\n");
  EXPECT_EQ(lines({"no cause of report_1", "no cause of report_2", "the table-3 is bf16", "the table-4 is bf16"}),
            "                2  the table-... is bf16\n                1  no cause of report_1\n"
            "                1  no cause of report_2\n");
}

TEST(ClassText, ListsTheStudentsWithTheFewestPointsFirst) {
  const Lab lab = two_tests();
  Grade all = half(lab, "ada", "");
  all.results[1] = passed(lab, "second");
  const std::vector<Grade> grades{all, half(lab, "grace", "wrong")};
  EXPECT_THAT(class_text(lab, grades), HasSubstr("students, and the tests in which they lost points:\n"
                                                 "  grace     60  second\n"
                                                 "  ada      100\n"));
}

// A student of the roster without a folder was a submission with 0 points, and lowered the mean.
TEST(ClassText, StudentsWithoutASubmissionAreNotCounted) {
  const Lab lab = two_tests();
  const Grade missing{"eve", lab.id(), public_seed(lab.id()), all_failed(lab, "no submission")};
  const std::vector<Grade> grades{half(lab, "ada", "wrong"), missing, half(lab, "grace", "wrong")};
  const std::string text = class_text(lab, grades);
  EXPECT_THAT(text, HasSubstr("Lab 02 rows: 2 submissions, 1 missing\n"
                              "mean 60.0, median 60.0 of 100 points, without the missing ones\n"));
  EXPECT_THAT(text, HasSubstr("    0 to  10 %    0\n"));
  EXPECT_THAT(text, HasSubstr("  second    2\n"));
  EXPECT_THAT(text, HasSubstr("  eve        0  no submission\n"));
  EXPECT_THAT(class_text(lab, std::vector<Grade>{missing}),
              testing::Eq("Lab 02 rows: 0 submissions, 1 missing\n"
                          "students, and the tests in which they lost points:\n"
                          "  eve      0  no submission\n"));
}

TEST(GradeJson, HasThePictureOfAFailedTestThatHasOne) {
  const Lab lab = two_tests();
  Grade grade = half(lab, "ada", "wrong");
  EXPECT_EQ((*grade_json(lab, grade).find("tests")->as_array())[1].find("picture"), nullptr);
  grade.results[1].picture.grids = {{"grid", {}, {{"row", {{"5", CellMark::wrong}}}}}};
  const json::Value value = grade_json(lab, grade);
  EXPECT_THAT(*(*value.find("tests")->as_array())[1].find("picture")->as_string(), HasSubstr("<svg"));
  EXPECT_EQ((*value.find("tests")->as_array())[0].find("picture"), nullptr);
}

TEST(FirstFailure, IsTheFirstTestWithLostPoints) {
  const Lab lab = two_tests();
  Grade grade = half(lab, "ada", "wrong");
  EXPECT_EQ(first_failure(grade), &grade.results[1]);
  grade.results[1] = passed(lab, "second");
  EXPECT_EQ(first_failure(grade), nullptr);
}

// Three students of a lab with a leaderboard; one earned no place on it.
TEST(Leaderboard, IsInEveryReport) {
  const Lab lab = two_tests();
  std::vector<Grade> grades{half(lab, "ada", ""), half(lab, "bob", ""), half(lab, "eve", "")};
  grades[0].results[0].score = 97.25;
  grades[2].results[0].score = 104.5;
  EXPECT_THAT(class_text(lab, grades), HasSubstr("leaderboard, highest score first:\n"
                                                 "    1    104.5  eve\n"
                                                 "    2     97.2  ada\n"));
  EXPECT_THAT(class_csv(lab, grades), HasSubstr("second,leaderboard,feedback\nada,02_rows,60,100,60,0,97.2,"));
  EXPECT_THAT(class_csv(lab, grades), HasSubstr("\nbob,02_rows,60,100,60,0,,"));
  EXPECT_EQ(read_grade(grade_json(lab, grades[0]), "grade.json").results[0].score, 97.25);
  EXPECT_EQ(read_grade(grade_json(lab, grades[1]), "grade.json").results[0].score, std::nullopt);
  EXPECT_EQ((*gradescope_json(lab, grades[0]).find("leaderboard")->as_array())[0].find("value")->number(), 97.25);
  EXPECT_EQ(gradescope_json(lab, grades[1]).find("leaderboard"), nullptr);
  grades.erase(grades.begin(), grades.begin() + 1);
  grades.pop_back();
  EXPECT_THAT(class_text(lab, grades), Not(HasSubstr("leaderboard")));
}

}  // namespace
}  // namespace kvscope::labs::report_test

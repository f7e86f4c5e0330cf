#include "apps/labs/course_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::course_files_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kCourse = fs::path(KVSCOPE_SOURCE_DIR) / "docs" / "labs";

template <class Call>
std::string fault_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Course, FindsALabByNumberNameAndFolder) {
  const Course course = load_course(kCourse);
  for (const char* const word : {"2", "02", "rows", "02_rows"}) EXPECT_EQ(course.lab(word).id(), "02_rows");
  EXPECT_THAT(fault_of([&] { (void)course.lab("99"); }), HasSubstr("'99' is no lab: use one of 01_address, 02_rows"));
}

// 100 points each, so that grades of labs can be added.
TEST(Course, EveryLabHas100Points) {
  for (const Lab& lab : load_course(kCourse).labs) EXPECT_EQ(lab.points(), 100) << lab.id();
}

TEST(Manifest, ReportsAllFaultsAtOnce) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "02_rows");
  write_file_atomically(
      (folder / "02_rows") / "lab.json",
      R"({"number": 200, "name": "rows", "title": "", "kind": "c", "minutes": 1, "reads": [], "files": ["../x"],
                            "tests": [{"name": "a", "points": 1, "text": "t"}, {"name": "a", "points": 0, "text": "t"}]})");
  const std::string fault = fault_of([&] { (void)load_lab(folder / "02_rows"); });
  for (const char* const part :
       {"$.number: must be a whole number in [1, 99]", "$.title: must be a text", "$.kind: 'c' is no kind",
        "$.files: must name", "$.tests[1].points", "the name 'a' occurs twice"}) {
    EXPECT_THAT(fault, HasSubstr(part));
  }
}

// A lab of kind cuda has a file in Triton or the reason why it has none, and no other lab has either.
TEST(Manifest, EveryCudaLabStatesWhetherItTakesTriton) {
  for (const Lab& lab : load_course(kCourse).labs) {
    EXPECT_EQ(lab.kind == LabKind::cuda, lab.triton.empty() != lab.without_triton.empty()) << lab.id();
    EXPECT_EQ(!lab.triton.empty(), fs::exists(lab.folder / "triton")) << lab.id();
  }
  const auto fault = [](const char* kind, const char* members) {
    const TemporaryFolder folder;
    fs::create_directory(folder / "09_gather");
    write_file_atomically((folder / "09_gather") / "lab.json",
                          std::string(R"({"number": 9, "name": "gather", "title": "t", "kind": ")") + kind +
                              R"(", "minutes": 1, "reads": [], "files": ["gather.cu"],)" + members +
                              R"("tests": [{"name": "a", "points": 1, "text": "t"}]})");
    return fault_of([&] { (void)load_lab(folder / "09_gather"); });
  };
  EXPECT_EQ(fault("cuda", R"("triton": "gather.py",)"), "no error");
  EXPECT_EQ(fault("cuda", R"("without_triton": "it has no barriers",)"), "no error");
  EXPECT_THAT(fault("cuda", ""), HasSubstr("$.triton: must name a file, or $.without_triton must have the reason"));
  EXPECT_THAT(fault("cuda", R"("triton": "a.py", "without_triton": "b",)"), HasSubstr("$.triton: must name a file"));
  EXPECT_THAT(fault("cuda", R"("triton": "../a.py",)"), HasSubstr("$.triton: must be a name without a folder"));
  EXPECT_THAT(fault("cpp", R"("triton": "a.py",)"), HasSubstr("$.triton: is for labs of kind cuda"));
}

TEST(StartLab, NeverOverwritesWork) {
  const TemporaryFolder folder;
  const Course course = load_course(kCourse);
  const auto grader = make_grader(course.lab("2"), {SandboxKind::none, kCourse});
  (void)start_lab(*grader, folder / "mine", "ada");
  EXPECT_EQ(student_of(course.lab("2"), folder / "mine"), "ada");
  write_file_atomically((folder / "mine") / "rows.cpp", "work");
  EXPECT_THAT(fault_of([&] { (void)start_lab(*grader, folder / "mine", "ada"); }),
              HasSubstr("rows.cpp: exists already"));
  EXPECT_EQ(read_file((folder / "mine") / "rows.cpp", 100), "work");
  EXPECT_THAT(fault_of([&] { (void)student_of(course.lab("3"), folder / "mine"); }),
              HasSubstr("is '02_rows', but lab 03_table"));
}

TEST(PackCourse, LeavesTheStaffPartOutForStudents) {
  const TemporaryFolder folder;
  const Course course = load_course(kCourse);
  EXPECT_LT(pack_course(course, folder / "students", true), pack_course(course, folder / "staff", false));
  EXPECT_FALSE(fs::exists(folder / "students" / "labs" / "staff"));
  EXPECT_TRUE(fs::exists(folder / "staff" / "labs" / "staff"));
  EXPECT_EQ(load_course(folder / "students").labs.size(), course.labs.size());
  for (const auto& entry : fs::recursive_directory_iterator(folder / "students")) {
    EXPECT_NE(entry.path().filename(), "solution");
  }
}

// A student reads the handout in the packed folder: its pages and figures must be there.
TEST(PackCourse, HasEveryFileThatAHandoutLinksTo) {
  const TemporaryFolder folder;
  (void)pack_course(load_course(kCourse), folder / "students", true);
  std::size_t links = 0;
  for (const Lab& lab : load_course(folder / "students").labs) {
    const std::string text = read_file(lab.folder / "README.md", 1 << 20);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
      const std::string link = text.substr(at + 2, text.find_first_of(")#", at) - at - 2);
      if (link.empty() || link.starts_with("http")) continue;
      EXPECT_TRUE(fs::exists(lab.folder / link)) << lab.id() << ": " << link;
      ++links;
    }
  }
  EXPECT_GT(links, 40U);
}

TEST(ReadSecret, RejectsAShortOne) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "secret", "short\n");
  EXPECT_THAT(fault_of([&] { (void)read_secret(folder / "secret"); }), HasSubstr("has 5 bytes, fewer than 16"));
  write_file_atomically(folder / "secret", "  a secret of 22 bytes \n");
  EXPECT_EQ(read_secret(folder / "secret"), "a secret of 22 bytes");
}

// Two students have different tasks, and one student always the same.
TEST(Task, DependsOnTheStudentAlone) {
  const Course course = load_course(kCourse);
  const auto grader = make_grader(course.lab("1"), {SandboxKind::none, kCourse});
  const auto text = [&](std::string_view student) { return grader->task_files(student).front().text; };
  EXPECT_EQ(text("ada"), text("ada"));
  EXPECT_NE(text("ada"), text("grace"));
}

}  // namespace
}  // namespace kvscope::labs::course_files_test

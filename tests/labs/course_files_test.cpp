#include "apps/labs/course_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::course_files_test {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
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

// A folder that was renamed, with its manifest, or of a later kvscope: a lab that is missing in the list without a word.
TEST(Course, ALabWithoutAGraderIsListedAsSuch) {
  const TemporaryFolder folder;
  const auto add = [&](const std::string& name) {
    json::Value manifest = json::parse(read_file(kCourse / "02_rows" / "lab.json", 1 << 16), "lab.json");
    manifest.set("name", name);
    fs::create_directory(folder / ("02_" + name));
    write_file_atomically((folder / ("02_" + name)) / "lab.json", json::dump(manifest));
  };
  add("row");
  EXPECT_THAT(fault_of([&] { (void)load_course(folder / ""); }),
              HasSubstr("has no lab with a grader in this kvscope, only 02_row: update kvscope, or use --course DIR"));
  add("rows");
  const Course course = load_course(folder / "");
  ASSERT_EQ(course.labs.size(), 1U);
  ASSERT_EQ(course.without_grader.size(), 1U);
  EXPECT_EQ(course.without_grader[0].id(), "02_row");
  EXPECT_EQ(course.lab("2").id(), "02_rows");
  EXPECT_THAT(fault_of([&] { (void)course.lab("row"); }),
              HasSubstr("02_row is a lab without a grader in this kvscope: update kvscope, or correct the name"));
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
       {"$.number: is 200: must be a whole number in [1, 99]", "$.title: must be a text", "$.kind: 'c' is no kind",
        "$.files: must name", "$.tests[1].points", "the name 'a' occurs twice"}) {
    EXPECT_THAT(fault, HasSubstr(part));
  }
}

// One valid manifest, of which each case replaces or adds one member.
class ManifestMember : public testing::Test {
 protected:
  static std::string fault(std::string_view key, const char* value, const char* folder_name = "02_rows") {
    json::Value manifest = json::parse(
        R"({"number": 2, "name": "rows", "title": "t", "kind": "cpp", "minutes": 1, "reads": [], "files": ["rows.cpp"],
            "tests": [{"name": "a", "points": 1, "text": "t"}]})",
        "manifest");
    manifest.set(std::string(key), json::parse(value, "value"));
    const TemporaryFolder folder;
    fs::create_directory(folder / folder_name);
    write_file_atomically((folder / folder_name) / "lab.json", json::dump(manifest));
    return fault_of([&] { (void)load_lab(folder / folder_name); });
  }
};

TEST_F(ManifestMember, OfAnotherTypeOrRangeIsNamed) {
  EXPECT_EQ(fault("number", "2"), "no error");
  EXPECT_THAT(fault("number", R"("2")"), HasSubstr("$.number: must be a whole number in [1, 99]"));
  EXPECT_THAT(fault("number", "0"), HasSubstr("$.number: is 0: must be a whole number in [1, 99]"));
  EXPECT_THAT(fault("title", "7"), HasSubstr("$.title: must be a text that is not empty"));
  EXPECT_THAT(fault("goal", R"("")"), HasSubstr("$.goal: must be a text that is not empty"));
  EXPECT_THAT(fault("reads", R"("a.md")"), HasSubstr("$.reads: must be a list"));
  EXPECT_THAT(fault("tests", "[]"), HasSubstr("$.tests: must not be empty"));
  EXPECT_THAT(fault("tests", "[7]"), HasSubstr("$.tests[0].name: must be a text"));
  EXPECT_THAT(fault("scenario", R"("../mla")"), HasSubstr("$.scenario: must be a file of the gallery"));
}

// A list of ten wrong elements was ten faults.
TEST_F(ManifestMember, AListOfOtherTypesIsOneFault) {
  for (const char* const list : {"[1]", "[1, 2, 3]", R"(["a.md", 2, 3])"}) {
    EXPECT_THAT(fault("reads", list), EndsWith(" rejected: $.reads: must be a list of texts")) << list;
  }
}

TEST_F(ManifestMember, AFileIsANameWithoutAFolder) {
  for (const char* const files : {"[]", R"([""])", R"([".hidden"])", R"(["a/b.cpp"])"}) {
    EXPECT_THAT(fault("files", files), HasSubstr("$.files: must name at least one file, without a folder")) << files;
  }
  const std::string longest = "[\"" + std::string(99, 'a') + "\"]", longer = "[\"" + std::string(100, 'a') + "\"]";
  EXPECT_EQ(fault("files", longest.c_str()), "no error");
  EXPECT_THAT(fault("files", longer.c_str()), HasSubstr("$.files: must name"));
}

TEST_F(ManifestMember, APlaceIsALink) {
  EXPECT_EQ(fault("place", R"("view=pool, step=6")"), "no error");
  EXPECT_THAT(fault("place", R"("the pool")"), HasSubstr("$.place: "));
  EXPECT_THAT(fault("place", R"("view=pool) and [more](view=pool")"),
              HasSubstr("must be written as 'view=pool, step=6, select=token 3:65'"));
}

// "tritn" was a lab without Triton, and "gaol" a handout without a goal.
TEST_F(ManifestMember, UnknownKeysAreFaults) {
  EXPECT_THAT(fault("gaol", R"("g")"), HasSubstr("$.gaol: unknown key: did you mean \"goal\"?"));
  EXPECT_THAT(fault("tests", R"([{"name": "a", "points": 1, "text": "t", "point": 2}])"),
              HasSubstr("$.tests[0].point: unknown key: did you mean \"points\"?"));
}

TEST_F(ManifestMember, AHintIsANumber) {
  const auto with_hint = [&](const std::string& hint) {
    return fault("tests", (R"([{"name": "a", "points": 1, "text": "t", "hint": )" + hint + "}]").c_str());
  };
  for (const char* const hint : {"1", "9"}) EXPECT_EQ(with_hint(hint), "no error") << hint;
  for (const char* const hint : {"0", "10", "2.5", R"("2")", "null"}) {
    EXPECT_THAT(with_hint(hint), HasSubstr("must be a whole number in [1, 9]")) << hint;
  }
}

TEST_F(ManifestMember, TheFolderHasTheNumberAndTheName) {
  EXPECT_THAT(fault("number", "2", "03_rows"),
              HasSubstr("$.name: number and name give '02_rows', but the folder is '03_rows'"));
}

TEST(Course, AFolderThatIsNoneOrHasNoLabIsNamed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  EXPECT_THAT(fault_of([&] { (void)load_course(folder / "nothing"); }),
              HasSubstr("is not a course: No such file or directory; use --course DIR"));
  EXPECT_THAT(fault_of([&] { (void)load_course(folder / "file"); }), HasSubstr("is not a course: Not a directory"));
  fs::create_directories((folder / "course") / "02_rows");
  EXPECT_THAT(fault_of([&] { (void)load_course(folder / "course"); }), HasSubstr("has no folder NN_name/"));
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

// The name is that of the submission's folder, and of the file of a report.
TEST(StudentFault, IsOfNamesThatNoFolderOrReportCanHave) {
  for (const std::string& name :
       {std::string("ada"), std::string("Zoë Müller"), std::string("..ada"), std::string(250, 'a')}) {
    EXPECT_EQ(student_fault(name), "") << name;
  }
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("../ada"),
                                  std::string("a/b"), std::string("a\0b", 3)}) {
    EXPECT_THAT(student_fault(name), HasSubstr("is not a student's name")) << name;
  }
  EXPECT_THAT(student_fault(std::string(251, 'a')), HasSubstr("is a name of 251 bytes, more than 250"));
}

// `lab start --student` with a name of 5,000 bytes wrote a file that `lab check` did not read.
TEST(StartLab, RejectsANameBeforeItWrites) {
  const TemporaryFolder folder;
  const Course course = load_course(kCourse);
  const auto grader = make_grader(course.lab("1"), {SandboxKind::none, kCourse});
  for (const std::string& name : {std::string(5000, 'a'), std::string("a/b")}) {
    EXPECT_THAT(fault_of([&] { (void)start_lab(*grader, folder / "mine", name); }),
                HasSubstr("command line rejected: --student: "));
    EXPECT_FALSE(fs::exists(folder / "mine"));
  }
  (void)start_lab(*grader, folder / "mine", std::string(250, 'a'));
  EXPECT_EQ(student_of(course.lab("1"), folder / "mine"), std::string(250, 'a'));
}

TEST(StartLab, RejectsTritonWhereTheLabHasNone) {
  const TemporaryFolder folder;
  const Course course = load_course(kCourse);
  for (const Lab& lab : course.labs) {
    const auto grader = make_grader(lab, {SandboxKind::none, kCourse});
    const auto start = [&] { (void)start_lab(*grader, folder / lab.id(), "", Language::triton); };
    if (lab.triton.empty()) {
      EXPECT_THAT(fault_of(start), HasSubstr("--language: lab " + lab.id() + " takes no Triton: ")) << lab.id();
    } else {
      start();
      EXPECT_TRUE(fs::exists((folder / lab.id()) / lab.triton));
      EXPECT_FALSE(fs::exists((folder / lab.id()) / lab.files.front()));
    }
  }
}

TEST(StudentOf, RejectsAnInvalidFile) {
  const TemporaryFolder folder;
  const Course course = load_course(kCourse);
  EXPECT_EQ(student_of(course.lab("2"), folder / "nothing"), "");
  fs::create_directory(folder / "mine");
  const auto fault = [&](const char* text) {
    write_file_atomically((folder / "mine") / "kvscope-lab.json", text);
    return fault_of([&] { (void)student_of(course.lab("2"), folder / "mine"); });
  };
  EXPECT_EQ(fault(R"({"kvscope_lab": 1, "lab": "02_rows", "student": ""})"), "no error");
  for (const char* const text :
       {"{}", R"({"kvscope_lab": 1, "lab": "02_rows", "student": 7})", R"({"kvscope_lab": 1, "student": "ada"})",
        R"({"kvscope_lab": 1, "lab": 2, "student": "ada"})"}) {
    EXPECT_THAT(fault(text), HasSubstr("must have the texts 'lab' and 'student'")) << text;
  }
  for (const char* const version : {R"("kvscope_lab": 2,)", R"("kvscope_lab": "1",)", ""}) {
    const std::string text = std::string("{") + version + R"("lab": "02_rows", "student": "ada"})";
    EXPECT_THAT(fault(text.c_str()), HasSubstr("$.kvscope_lab: must be 1, the version that this kvscope reads"))
        << text;
  }
}

// A part of a course would look like a whole one, and a second call would report that the folder exists.
TEST(PackCourse, LeavesNothingAfterAnError) {
  const TemporaryFolder folder;
  Course course = load_course(kCourse);
  course.folder = folder / "course";
  fs::create_directory(course.folder);
  write_file_atomically(course.folder / "a", "");
  write_file_atomically(course.folder / "large", "");
  fs::resize_file(course.folder / "large", (64U << 20) + 1);
  EXPECT_THAT(fault_of([&] { (void)pack_course(course, folder / "out", false); }),
              HasSubstr("large rejected: 67108865 bytes"));
  EXPECT_FALSE(fs::exists(folder / "out"));
  fs::resize_file(course.folder / "large", 1);
  EXPECT_EQ(pack_course(course, folder / "out", false), 2U);
  EXPECT_THAT(fault_of([&] { (void)pack_course(course, folder / "out", false); }), HasSubstr("exists already"));
  EXPECT_THAT(fault_of([&] { (void)pack_course(course, (folder / "course") / "a" / "x", false); }),
              HasSubstr("cannot be created: Not a directory"));
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
  write_file_atomically(folder / "secret", " \n");
  EXPECT_THAT(fault_of([&] { (void)read_secret(folder / "secret"); }), HasSubstr("has 0 bytes, fewer than 16"));
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

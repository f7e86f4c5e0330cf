#include "apps/labs/class_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "apps/labs/course_files.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs::class_folders_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSecret = "a secret of the class folders test";

// A class's folders below a temporary one; labs 01 and 12 are graded without a compiler.
class ClassFolders : public testing::Test {
 protected:
  static const Course& course() {
    static const Course value = load_course(fs::path(KVSCOPE_SOURCE_DIR) / "docs" / "labs");
    return value;
  }
  static std::unique_ptr<Grader> grader(std::string_view lab) {
    return make_grader(course().lab(lab), {SandboxKind::none, course().folder});
  }
  static std::string starter(const char* lab, const char* file) {
    return read_file(course().lab(lab).starter() / file, 1 << 20);
  }
  fs::path write(const fs::path& name, std::string_view text) const {
    const fs::path path = folder_ / "class" / name;
    fs::create_directories(path.parent_path());
    write_file_atomically(path, text);
    return path.parent_path();
  }
  // The message of the first test of a graded folder.
  [[nodiscard]] static std::string message(const Grader& grader, const StudentFolder& folder) {
    return grade_folder(grader, folder, kSecret).results.front().message;
  }

 private:
  TemporaryFolder folder_;
};

template <class Call>
std::string fault_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ClassFolders, AreNamedAsTheirStudents) {
  const fs::path ada = write("Ada Lovelace/schedule.txt", "");
  const fs::path bob = write("bob/schedule.txt", "");
  const auto folders = student_folders({ada.string() + "/", (bob / "..").string() + "/bob/."});
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders[0].student, "Ada Lovelace");
  EXPECT_EQ(folders[1].student, "bob");
}

// The second grade would replace the first one in the folder of --out.
TEST_F(ClassFolders, TwoOfOneStudentAndPathsThatAreNoFoldersAreFaults) {
  const fs::path first = write("group1/ada/schedule.txt", ""), second = write("group2/ada/schedule.txt", "");
  const std::string file = (first / "schedule.txt").string();
  EXPECT_THAT(fault_of([&] {
                (void)student_folders({first.string(), second.string(), file, "nothing_here"});
              }),
              AllOf(HasSubstr("3 faults"), HasSubstr("are both of student 'ada'"), HasSubstr(file + " is not a folder"),
                    HasSubstr("nothing_here does not exist")));
}

// A table of Excel has a byte order mark and Windows line ends.
TEST_F(ClassFolders, ARosterMayComeFromWindows) {
  const fs::path folder = write("roster",
                                "\xef\xbb\xbf"
                                "ada\r\n\r\nZoë Müller \r\nbob");
  EXPECT_THAT(read_roster(folder / "roster", {{"bob", folder}}), ElementsAre("ada", "Zoë Müller", "bob"));
}

TEST_F(ClassFolders, ARosterMustListEverySubmissionOnce) {
  const fs::path folder = write("roster", "ada\nbob\nada\n");
  EXPECT_THAT(fault_of([&] {
                (void)read_roster(folder / "roster", {{"bob", "b"}, {"eve", "class/eve"}});
              }),
              AllOf(HasSubstr("2 faults"), HasSubstr("line 3: 'ada' occurs twice"),
                    HasSubstr("has no line 'eve', but class/eve is a submission")));
}

// The report of "../ada" was written outside of --out.
TEST_F(ClassFolders, ARosterHasNamesOfStudentsOnly) {
  const fs::path folder = write("roster", "ada\n../bob\nx/y\n ..\t\n\tzoe \n");
  EXPECT_THAT(fault_of([&] { (void)read_roster(folder / "roster", {}); }),
              AllOf(HasSubstr("3 faults"), HasSubstr("line 2: '../bob' is not a student's name"),
                    HasSubstr("line 3: 'x/y' is not"), HasSubstr("line 4: '..' is not")));
  write("roster", "\tzoe \n" + std::string(251, 'a'));
  EXPECT_THAT(fault_of([&] { (void)read_roster(folder / "roster", {}); }),
              HasSubstr("line 2: is a name of 251 bytes, more than 250"));
  write("roster", "\tzoe \t\n");
  EXPECT_THAT(read_roster(folder / "roster", {}), ElementsAre("zoe"));
}

TEST_F(ClassFolders, ARosterInUtf16IsNamed) {
  for (const char* const text : {"\xff\xfe"
                                 "a",
                                 "\xfe\xff"
                                 "a"}) {
    const fs::path folder = write("roster", text);
    EXPECT_THAT(fault_of([&] { (void)read_roster(folder / "roster", {}); }),
                HasSubstr("is UTF-16 text: save it as UTF-8"));
  }
}

TEST_F(ClassFolders, TheRootOfAFileSystemIsNoStudent) {
  EXPECT_THAT(fault_of([] { (void)student_folders({"/"}); }), HasSubstr("DIR: /: '' is not a student's name"));
}

// A file that is not one, or that is another student's, is not read as the student's work.
TEST_F(ClassFolders, WhatIsNoRegularFileIsNamed) {
  const auto lab = grader("12");
  const fs::path folder = write("ada/other.txt", "");
  fs::create_directory(folder / "schedule.txt");
  EXPECT_EQ(message(*lab, {"ada", folder}), "schedule.txt: is not a regular file");
  fs::remove(folder / "schedule.txt");
  fs::create_symlink("other.txt", folder / "schedule.txt");
  EXPECT_EQ(message(*lab, {"ada", folder}), "schedule.txt: is a symbolic link: submit the file itself");
  fs::remove(folder / "schedule.txt");
  write("ada/schedule.txt", std::string(kMaxSubmittedFile + 1, ' '));
  EXPECT_EQ(message(*lab, {"ada", folder}), "schedule.txt: has 262145 bytes, more than 262144");
  write("ada/schedule.txt", "\xfe\xff");
  EXPECT_EQ(message(*lab, {"ada", folder}), "schedule.txt: is UTF-16 text: save it as UTF-8");
}

TEST_F(ClassFolders, WorkInAFolderThatIsNoneIsNamed) {
  const Lab& lab = course().lab("12");
  const fs::path folder = write("ada/schedule.txt", "");
  EXPECT_THAT(fault_of([&] { (void)read_submission(lab, folder / "nothing", ""); }),
              HasSubstr("does not exist: 'kvscope lab start 12 DIR' creates a folder for your work"));
  EXPECT_THAT(fault_of([&] { (void)read_submission(lab, folder / "schedule.txt", ""); }),
              HasSubstr("is not a folder: name the folder of your work"));
}

TEST_F(ClassFolders, AnArchivesOwnFolderIsOpened) {
  const Lab& lab = course().lab("12");
  const fs::path inner = write("ada/lab 12/schedule.txt", "");
  write("ada/__MACOSX/._schedule.txt", "");
  write("ada/.git/config", "");
  EXPECT_EQ(folder_of_files(lab, inner.parent_path()), inner);
  write("ada/schedule.txt", "");  // the student's last word is in the folder itself
  EXPECT_EQ(folder_of_files(lab, inner.parent_path()), inner.parent_path());
}

// Which of two folders is meant is not guessed, nor is a link followed: it may lead to another student's work.
TEST_F(ClassFolders, OtherFoldersInAFolderAreNot) {
  const Lab& lab = course().lab("12");
  const fs::path two = write("two/a/schedule.txt", "").parent_path();
  write("two/b/schedule.txt", "");
  EXPECT_EQ(folder_of_files(lab, two), two);
  const fs::path other = write("other/README.md", "");
  fs::create_directory(other / "notes");
  EXPECT_EQ(folder_of_files(lab, other), other);
  const fs::path linked = write("linked/README.md", "");
  fs::create_directory_symlink(two / "a", linked / "mine");
  EXPECT_EQ(folder_of_files(lab, linked), linked);
}

TEST_F(ClassFolders, AByteOrderMarkAndWindowsLineEndsChangeNoGrade) {
  const auto lab = grader("12");
  const fs::path solution = course().folder / "staff" / "12_through_lds" / "solution" / "schedule.txt";
  std::string text = "\xef\xbb\xbf";
  for (const char c : read_file(solution, 1 << 20)) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(grade_folder(*lab, {"ada", write("ada/schedule.txt", text)}, kSecret).earned(), 100);
}

TEST_F(ClassFolders, Utf16AndOtherFileNamesAreNamed) {
  const auto lab = grader("12");
  EXPECT_EQ(message(*lab, {"u", write("u/schedule.txt", "\xff\xfes\x01")}),
            "schedule.txt: is UTF-16 text: save it as UTF-8");
  write("n/Schedule (1).txt", "");
  write("n/schedule.txt.bak", "");
  write("n/notes.txt", "");
  EXPECT_EQ(message(*lab, {"n", write("n/readme", "")}),
            "schedule.txt: is missing: the folder has 'Schedule (1).txt', 'schedule.txt.bak': rename the right one to "
            "schedule.txt");
  EXPECT_THAT(message(*lab, {"e", write("e/readme", "")}), HasSubstr("'kvscope lab start 12 DIR' writes"));
}

// All missing files of a submission are named at once.
TEST_F(ClassFolders, EveryMissingFileIsNamed) {
  const auto lab = grader("10");
  EXPECT_THAT(message(*lab, {"ada", write("ada/readme", "")}),
              AllOf(HasSubstr("sum.cu: is missing"), HasSubstr("; stream.cu: is missing"), HasSubstr("store.cu")));
}

// The numbers of lab 01 depend on the name: a folder that Moodle renamed would get 0 points, and nobody would know why.
TEST_F(ClassFolders, WorkOfAnotherNamesTaskIsExplained) {
  const auto lab = grader("1");
  const fs::path folder = write("Ada_4711/answers.json", starter("1", "answers.json"));
  EXPECT_THAT(message(*lab, {"Ada_4711", folder}), HasSubstr("no answer"));  // without the file of lab start
  write("Ada_4711/kvscope-lab.json", R"({"kvscope_lab": 1, "lab": "01_address", "student": "ada"})");
  EXPECT_THAT(message(*lab, {"Ada_4711", folder}), HasSubstr("the work is of student 'ada'"));
  EXPECT_THAT(message(*lab, {"ada", folder}), HasSubstr("no answer"));
  write("Ada_4711/kvscope-lab.json", R"({"kvscope_lab": 1, "lab": "01_address", "student": ""})");
  EXPECT_THAT(message(*lab, {"ada", folder}), HasSubstr("the work is started without --student"));
  for (const char* const text : {"no JSON", "[]", R"({"student": 7})"}) {
    write("Ada_4711/kvscope-lab.json", text);
    EXPECT_THAT(message(*lab, {"ada", folder}), HasSubstr("no answer")) << text;
  }
}

// The message "no answer" would hide which of the written values is wrong.
TEST_F(ClassFolders, AnAnswerOfAnotherKindIsQuoted) {
  const auto lab = grader("1");
  const auto of = [&](const std::string& extents) {
    return message(*lab, {"ada", write("ada/answers.json", R"({"extents": )" + extents + "}")});
  };
  const std::string rest = " is not six whole numbers: write a list such as [6, 5, 4, 3, 2, 1]";
  EXPECT_EQ(of("null"), "no answer: write six whole numbers here");
  EXPECT_EQ(of("4.5"), "4.5" + rest);
  EXPECT_EQ(of(R"("13 2 5")"), R"("13 2 5")" + rest);
  EXPECT_EQ(of(R"({"a": 1})"), "an object" + rest);
  EXPECT_EQ(of("[13, 2, 5, 16, 4]"), "5 numbers given: write six whole numbers here");
  EXPECT_EQ(of("13"), "1 number given: write six whole numbers here");
}

// Every student has the same task in lab 12, so the name does not matter.
TEST_F(ClassFolders, TheNameDoesNotMatterWhereAllHaveOneTask) {
  const auto lab = grader("12");
  const fs::path folder = write("renamed/schedule.txt", starter("12", "schedule.txt"));
  write("renamed/kvscope-lab.json", R"({"kvscope_lab": 1, "lab": "12_through_lds", "student": "ada"})");
  EXPECT_THAT(message(*lab, {"renamed", folder}), Not(HasSubstr("the work is of")));
}

TEST_F(ClassFolders, AMissingSubmissionHasNoPoints) {
  const Grade grade = grade_without_submission(*grader("12"), "eve", kSecret);
  EXPECT_EQ(grade.earned(), 0);
  EXPECT_EQ(grade.points(), 100);
  EXPECT_EQ(grade.seed, grading_seed(kSecret, "eve", "12_through_lds"));
  EXPECT_EQ(grade.results.front().message, "no submission");
}

}  // namespace
}  // namespace kvscope::labs::class_folders_test

// What a class hands in: one folder per student, named as the student.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/labs/grade.h"

namespace kvscope::labs {

struct StudentFolder {
  std::string student;  // the folder's own name, also of "." and "ada/"
  std::filesystem::path path;
};

// InputError, all faults at once: a path that is not a folder, a name with a student_fault() (course_files.h), two
// folders of one student.
[[nodiscard]] std::vector<StudentFolder> student_folders(const std::vector<std::string>& paths);

// The students of a file with one name per line; spaces around a name and empty lines are skipped. InputError:
// UTF-16 text, a name that has a student_fault() or occurs twice, a folder of a student that is not listed. A name
// selects the file of --out, so "../ada" would write outside of it.
[[nodiscard]] std::vector<std::string> read_roster(const std::filesystem::path& file,
                                                   const std::vector<StudentFolder>& folders);

// The folder with the lab's files: `folder`, or the only folder in it when it holds none of them, as archives unpack
// to. Hidden entries and __MACOSX are not counted, symbolic links are not followed.
// Example: "ada" with "ada/lab02/rows.cpp" -> "ada/lab02".
[[nodiscard]] std::filesystem::path folder_of_files(const Lab& lab, const std::filesystem::path& folder);

// InputError for the folder of a whole class: it has no file of the lab, and at least two folders in it have one.
void reject_class_folder(const Lab& lab, const std::filesystem::path& folder);

// A submission that cannot be read, or whose kStudentFile (course_files.h) is of another student's task, gets no
// points, and the reason as its message.
[[nodiscard]] Grade grade_folder(const Grader& grader, const StudentFolder& folder, const std::string& secret);

// The grade of a student without a folder: no points, kNoSubmission.
[[nodiscard]] Grade grade_without_submission(const Grader& grader, const std::string& student,
                                             const std::string& secret);

}  // namespace kvscope::labs

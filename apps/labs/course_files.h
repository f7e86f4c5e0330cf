// Copies of a course's files: a student's folder of one lab, and the course without its staff part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/grade.h"

namespace kvscope::labs {

// In the student's folder: which lab and which student it belongs to.
inline constexpr std::string_view kStudentFile = "kvscope-lab.json";

enum class Language : std::uint8_t { of_lab, triton };

// What is wrong with a student's name, which is also that of the submission's folder and of the report's file: it is
// empty, '.' or '..', has a '/' or a NUL byte, or more than 250 bytes. Empty: nothing.
[[nodiscard]] std::string student_fault(std::string_view student);

// Copies the starter files, and writes the task of the student, which may be empty, and kStudentFile: all of them or
// none. Returns the names of the files. InputError when one of them exists already in `folder`: a student's work is
// never overwritten; when student_fault() has one; and when the lab takes no Triton.
std::vector<std::string> start_lab(const Grader& grader, const std::filesystem::path& folder, std::string_view student,
                                   Language language = Language::of_lab);

// The student of a folder that start_lab() wrote; empty when it has no kStudentFile. InputError when the file is
// invalid, of another version, or belongs to another lab.
[[nodiscard]] std::string student_of(const Lab& lab, const std::filesystem::path& folder);

// The lab, as "02_rows", of a folder that start_lab() wrote; empty for any other folder, or if the file is damaged.
[[nodiscard]] std::string lab_of_folder(const std::filesystem::path& folder);

// Copies the course to `out`/labs, and the pages and figures that its handouts link to beside it, as they are in docs/;
// `out` must not exist, and after an error it does not. `students` omits the staff part. Returns the number of files.
std::size_t pack_course(const Course& course, const std::filesystem::path& out, bool students);

// A course's secret: the text of a file without white space at its ends. InputError when it has fewer than 16 bytes.
[[nodiscard]] std::string read_secret(const std::filesystem::path& path);

}  // namespace kvscope::labs

// The labs of the course that is installed with the program, with the scenarios that they open, and the results of a
// check.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "viz/model/labs.h"

namespace kvscope::apps {

// The course and the gallery beside the program (labs::course_folder, gallery_folder). Without a course, or with one
// that cannot be read, `why_empty` has the reason. A lab whose scenario the gallery lacks has none.
[[nodiscard]] viz::Labs lab_list(const std::filesystem::path& program_folder);

// Whether the file begins as one that `kvscope lab check --json` wrote.
[[nodiscard]] bool is_lab_result(const std::string& path);

// The file that `kvscope lab check --json` wrote; nullopt for any other file. The places are those of the course.
// InputError: the file is damaged, or the course is, or it has no such lab.
[[nodiscard]] std::optional<viz::LabResult> read_lab_result(const std::string& path, const viz::Labs& labs);

}  // namespace kvscope::apps

#include "apps/labs/course_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMaxStudentFile = 4096;  // [bytes]
constexpr std::int64_t kMaxCourseFile = std::int64_t{64} << 20;
constexpr std::size_t kLeastSecret = 16;
constexpr std::int64_t kStudentFileVersion = 1;
constexpr std::size_t kMaxStudent = 250;  // [bytes]; the report is a file NAME.json, and a file's name has at most 255
constexpr std::string_view kPageOfLabs = "08_labs.md";  // beside it are the pages that handouts link to
constexpr std::array<std::string_view, 4> kPageFiles{".md", ".svg", ".png", ".gif"};

}  // namespace

std::vector<std::string> start_lab(const Grader& grader, const fs::path& folder, std::string_view student,
                                   Language language) {
  const Lab& lab = grader.lab();
  const bool triton = language == Language::triton;
  if (const std::string fault = student.empty() ? "" : student_fault(student); !fault.empty()) {
    throw InputError("command line", "--student", fault);
  }
  if (triton && lab.triton.empty()) {
    throw InputError("command line", "--language",
                     fmt::format("lab {} takes no Triton: {}", lab.id(),
                                 lab.without_triton.empty() ? fmt::format("its kind is {}", kind_name(lab.kind))
                                                            : lab.without_triton));
  }
  std::vector<TaskFile> files;
  if (fs::is_directory(lab.starter())) {
    for (const auto& entry : fs::directory_iterator(lab.starter())) {
      if (triton && entry.path().filename() == lab.files.front()) continue;
      files.push_back({entry.path().filename().string(), read_file(entry.path(), kMaxCourseFile)});
    }
  }
  if (triton) files.push_back({lab.triton, read_file(lab.triton_starter(), kMaxCourseFile)});
  for (TaskFile& file : grader.task_files(student)) files.push_back(std::move(file));
  json::Value owner;
  owner.set("kvscope_lab", kStudentFileVersion);
  owner.set("lab", lab.id());
  owner.set("student", student);
  files.push_back({std::string(kStudentFile), json::dump(owner) + "\n"});

  std::vector<Fault> faults;
  std::vector<std::string> names;
  std::error_code error;
  for (const TaskFile& file : files) {
    if (fs::exists(fs::symlink_status(folder / file.name, error))) {
      faults.push_back({file.name, "exists already: choose another folder, or remove the file to start again"});
    }
    names.push_back(file.name);
  }
  if (!faults.empty()) throw InputError(folder.string(), std::move(faults));
  const bool created = fs::create_directories(folder, error);
  if (error) throw InputError(folder.string(), "", fmt::format("cannot be created: {}", system_message(error.value())));
  std::size_t written = 0;
  try {
    for (; written < files.size(); ++written) write_file_atomically(folder / files[written].name, files[written].text);
  } catch (...) {  // a second start would report the files of the first one
    for (std::size_t i = 0; i < written; ++i) fs::remove(folder / files[i].name, error);
    if (created) fs::remove(folder, error);
    throw;
  }
  std::ranges::sort(names);
  return names;
}

std::string student_fault(std::string_view student) {
  if (student.size() > kMaxStudent) {
    return fmt::format("is a name of {} bytes, more than {}: use a shorter one", student.size(), kMaxStudent);
  }
  const bool is_name = !student.empty() && student != "." && student != ".." &&
                       student.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
  if (is_name) return {};
  return fmt::format(
      "'{}' is not a student's name: a submission is a folder of that name, so a name has no '/' and no "
      "NUL byte, and is neither empty nor '.' nor '..'",
      student);
}

std::string student_of(const Lab& lab, const fs::path& folder) {
  const fs::path path = folder / kStudentFile;
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  const json::Value value = json::parse(read_file(path, kMaxStudentFile), path.string());
  const json::Value* student = value.find("student");
  const json::Value* id = value.find("lab");
  if (student == nullptr || student->as_string() == nullptr || id == nullptr || id->as_string() == nullptr) {
    throw InputError(path.string(), "",
                     "must have the texts 'lab' and 'student': write it again with kvscope lab start");
  }
  const json::Value* version = value.find("kvscope_lab");
  if (version == nullptr || version->as_i64() == nullptr || *version->as_i64() != kStudentFileVersion) {
    throw InputError(path.string(), "$.kvscope_lab",
                     fmt::format("must be {}, the version that this kvscope reads: write the file again with kvscope "
                                 "lab start",
                                 kStudentFileVersion));
  }
  if (*id->as_string() != lab.id()) {
    throw InputError(path.string(), "$.lab",
                     fmt::format("is '{}', but lab {} was asked for", *id->as_string(), lab.id()));
  }
  return *student->as_string();
}

std::string lab_of_folder(const fs::path& folder) {
  const fs::path path = folder / kStudentFile;
  std::error_code unread;
  if (!fs::is_regular_file(path, unread)) return {};
  try {
    const json::Value value = json::parse(read_file(path, kMaxStudentFile), path.string());
    const json::Value* id = value.find("lab");
    return id != nullptr && id->as_string() != nullptr ? *id->as_string() : std::string();
  } catch (const InputError&) {
    return {};
  }
}

std::size_t pack_course(const Course& course, const fs::path& out, bool students) {
  std::error_code unreadable;
  if (fs::exists(fs::symlink_status(out, unreadable)))
    throw InputError(out.string(), "", "exists already: name a new folder");
  const fs::path pages = course.folder / "..";
  std::vector<std::pair<fs::path, fs::path>> files;  // from, to in `out`
  for (const auto& entry : fs::recursive_directory_iterator(course.folder)) {
    const fs::path relative = fs::relative(entry.path(), course.folder);
    if (entry.is_regular_file() && !(students && *relative.begin() == "staff")) {
      files.emplace_back(entry.path(), "labs" / relative);
    }
  }
  if (fs::exists(pages / kPageOfLabs)) {
    for (const char* const folder : {".", "figures"}) {
      for (const auto& entry : fs::directory_iterator(pages / folder)) {
        const bool shown = std::ranges::find(kPageFiles, entry.path().extension().string()) != kPageFiles.end();
        if (shown) files.emplace_back(entry.path(), fs::path(folder) / entry.path().filename());
      }
    }
  }
  std::error_code error;
  try {
    for (const auto& [from, to] : files) {
      fs::create_directories((out / to).parent_path(), error);
      if (error) {
        throw InputError(out.string(), "", fmt::format("cannot be created: {}", system_message(error.value())));
      }
      write_file_atomically(out / to, read_file(from, kMaxCourseFile));
    }
  } catch (...) {  // a part of a course would look like a whole one
    fs::remove_all(out, error);
    throw;
  }
  return files.size();
}

std::string read_secret(const fs::path& path) {
  const std::string text = read_file(path, kMaxStudentFile);
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  const std::string secret =
      first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
  if (secret.size() < kLeastSecret) {
    throw InputError(path.string(), "",
                     fmt::format("has {} bytes, fewer than {}: write a long random text into it, as "
                                 "`head -c 32 /dev/urandom | base64` prints",
                                 secret.size(), kLeastSecret));
  }
  return secret;
}

}  // namespace kvscope::labs

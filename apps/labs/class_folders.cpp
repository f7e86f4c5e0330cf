#include "apps/labs/class_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/labs/course_files.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMaxRoster = 1024 * 1024;  // [bytes]

bool has_a_file_of(const Lab& lab, const fs::path& folder) {
  return std::ranges::any_of(lab.files,
                             [&](const std::string& name) { return submitted_name(lab, folder, name).has_value(); });
}

// The student whose task is in the folder: the name given to `kvscope lab start`, empty without one. Nothing where the
// file is missing or no file of `lab start`: a student may submit without it.
std::optional<std::string> student_of_task(const fs::path& folder) {
  std::string fault;
  const std::string text = read_submitted_file(folder / kStudentFile, fault);
  if (!fault.empty()) return std::nullopt;
  try {
    const json::Value value = json::parse(text, std::string(kStudentFile));
    const json::Value* student = value.find("student");
    return student != nullptr && student->as_string() != nullptr ? std::optional(*student->as_string()) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Why the work cannot be graded with the task of `student`; empty if it can.
std::string task_fault(const Grader& grader, const fs::path& folder, const std::string& student) {
  const std::optional<std::string> started = student_of_task(folder);
  if (!started.has_value() || *started == student || grader.task_files(student).empty()) return {};
  const std::string task = started->empty() ? "started without --student" : fmt::format("of student '{}'", *started);
  return fmt::format(
      "the work is {} ({}), but its folder is named '{}', and each name has other numbers: give the folder the name "
      "that the student used, or start the lab with --student '{}'",
      task, kStudentFile, student, student);
}

}  // namespace

std::vector<StudentFolder> student_folders(const std::vector<std::string>& paths) {
  std::vector<StudentFolder> folders;
  std::vector<Fault> faults;
  std::error_code error;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path, error)) {
      const bool exists = fs::exists(path, error);
      faults.push_back({"DIR", fmt::format("{} {}", path, exists ? "is not a folder: unpack it" : "does not exist")});
      continue;
    }
    const std::string student = fs::weakly_canonical(path).filename().string();
    if (const std::string fault = student_fault(student); !fault.empty()) {
      faults.push_back({"DIR", fmt::format("{}: {}", path, fault)});
      continue;
    }
    const auto same = std::ranges::find(folders, student, &StudentFolder::student);
    if (same == folders.end()) {
      folders.push_back({student, path});
    } else {
      faults.push_back({"DIR", fmt::format("{} and {} are both of student '{}': give each student a name of their own",
                                           same->path.string(), path, student)});
    }
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return folders;
}

std::vector<std::string> read_roster(const fs::path& file, const std::vector<StudentFolder>& folders) {
  const std::string text = read_file(file, kMaxRoster);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw InputError(file.string(), "", "is UTF-16 text: save it as UTF-8");
  }
  std::vector<std::string> students;
  std::vector<Fault> faults;
  std::string_view rest = without_byte_order_mark(text);
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (name.ends_with(' ') || name.ends_with('\r') || name.ends_with('\t')) name.remove_suffix(1);
    while (name.starts_with(' ') || name.starts_with('\t')) name.remove_prefix(1);
    if (name.empty()) continue;
    if (std::string fault = student_fault(name); !fault.empty()) {
      faults.push_back({fmt::format("line {}", line), std::move(fault)});
      continue;
    }
    if (std::ranges::find(students, name) != students.end()) {
      faults.push_back({fmt::format("line {}", line), fmt::format("'{}' occurs twice", name)});
    }
    students.emplace_back(name);
  }
  for (const StudentFolder& folder : folders) {
    if (std::ranges::find(students, folder.student) == students.end()) {
      faults.push_back({"", fmt::format("has no line '{}', but {} is a submission: add the line, or rename the folder",
                                        folder.student, folder.path.string())});
    }
  }
  if (!faults.empty()) throw InputError(file.string(), std::move(faults));
  return students;
}

fs::path folder_of_files(const Lab& lab, const fs::path& folder) {
  if (has_a_file_of(lab, folder)) return folder;
  std::vector<fs::path> inner;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || name == "__MACOSX") continue;
    if (entry.symlink_status(error).type() == fs::file_type::directory) inner.push_back(entry.path());
  }
  return inner.size() == 1 && has_a_file_of(lab, inner.front()) ? inner.front() : folder;
}

void reject_class_folder(const Lab& lab, const fs::path& folder) {
  if (has_a_file_of(lab, folder_of_files(lab, folder))) return;
  std::vector<std::string> students;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.symlink_status(error).type() == fs::file_type::directory &&
        has_a_file_of(lab, folder_of_files(lab, entry.path())))
      students.push_back(entry.path().string());
  }
  if (students.size() < 2) return;
  std::ranges::sort(students);
  throw InputError(
      "command line", "DIR",
      fmt::format("{} has no file of lab {}, but {} of its folders have: pass each student's folder, as {} "
                  "or {}/*",
                  folder.string(), lab.id(), students.size(), students.front(), folder.string()));
}

Grade grade_folder(const Grader& grader, const StudentFolder& folder, const std::string& secret) {
  const Lab& lab = grader.lab();
  const Seed seed = grading_seed(secret, folder.student, lab.id());
  const fs::path files = folder_of_files(lab, folder.path);
  const std::string fault = task_fault(grader, files, folder.student);
  if (!fault.empty()) return grade_of(grader, folder.student, seed, all_failed(lab, fault));
  try {
    return grade(grader, read_submission(lab, files, folder.student), seed);
  } catch (const InputError& error) {
    std::string message;
    for (const Fault& part : error.faults()) {
      message += fmt::format("{}{}: {}", message.empty() ? "" : "; ", part.where, part.message);
    }
    return grade_of(grader, folder.student, seed, all_failed(lab, message));
  }
}

Grade grade_without_submission(const Grader& grader, const std::string& student, const std::string& secret) {
  const Lab& lab = grader.lab();
  return grade_of(grader, student, grading_seed(secret, student, lab.id()),
                  all_failed(lab, std::string(kNoSubmission)));
}

}  // namespace kvscope::labs

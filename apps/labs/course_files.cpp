#include "apps/labs/course_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "apps/common/scratch_folder.h"
#include "apps/common/signals.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/pending_folder.h"

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

// A folder with folders, which does not exist yet. It is written below a scratch folder beside it and then renamed;
// without commit(), and after a signal, no part of it is left.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& folder)
      : shown_(folder), final_(with_parents(folder)), scratch_(final_.parent_path() / ".kvscope-pack-", folder) {
    std::error_code error;
    fs::create_directory(scratch_ / "new", error);  // its mode is that of a new folder, unlike the scratch folder's
    if (error) reject(shown_, error.value());
  }
  [[nodiscard]] fs::path written(const fs::path& name) const { return scratch_ / "new" / name; }
  void commit() const {
    const auto move = [this](unsigned flags) {
      const std::string from = (scratch_ / "new").string();
      return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, final_.c_str(), flags) == 0 ? 0 : errno;
    };
    int error = move(RENAME_NOREPLACE);
    if (error == EINVAL) error = move(0);  // a file system without this flag
    if (error != 0) reject(shown_, error);
  }
  [[noreturn]] static void reject(const fs::path& shown, int error) {
    throw InputError(shown.string(), "", fmt::format("cannot be created: {}", system_message(error)));
  }

 private:
  // The absolute path without a last slash, whose parent folders exist now.
  static fs::path with_parents(const fs::path& folder) {
    fs::path whole = fs::absolute(folder).lexically_normal();
    if (!whole.has_filename()) whole = whole.parent_path();
    std::error_code error;
    fs::create_directories(whole.parent_path(), error);
    if (error) reject(folder, error.value());
    return whole;
  }

  fs::path shown_, final_;
  apps::ScratchFolder scratch_;
};

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
  PendingFolder pending(folder, names);  // a part of the files would keep a second start from writing the others
  for (const TaskFile& file : files) write_file_atomically(pending / file.name, file.text);
  {
    const apps::SignalsDelayed delayed;  // in a folder with other files, they are moved one by one
    pending.commit();
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
  NewFolder pending(out);
  for (const auto& [from, to] : files) {
    std::error_code error;
    fs::create_directories(pending.written(to).parent_path(), error);
    if (error) NewFolder::reject(out, error.value());
    write_file_atomically({pending.written(to), out / to}, read_file(from, kMaxCourseFile));
  }
  pending.commit();
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

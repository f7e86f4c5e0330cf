#include "apps/labs/grade.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Files of the folder whose names contain the missing one's stem and extension, in alphabetical order: "rows (1).cpp",
// "Rows.cpp" and "rows.cpp.txt" for "rows.cpp".
std::vector<std::string> similar_names(const fs::path& folder, const fs::path& missing) {
  const std::string stem = lower_case(missing.stem().string()), extension = lower_case(missing.extension().string());
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string(), lower = lower_case(name);
    const std::size_t at = lower.find(stem);
    if (at != std::string::npos && lower.find(extension, at + stem.size()) != std::string::npos) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// What a student or a teacher does about a missing file.
std::string next_step(const Lab& lab, const fs::path& folder, const std::string& missing) {
  std::vector<std::string> similar = similar_names(folder, missing);
  if (similar.empty() && lab.kind == LabKind::cuda) {
    const std::string triton = lab.triton.empty() ? fs::path(missing).stem().string() + ".py" : lab.triton;
    similar = similar_names(folder, triton);
    if (!similar.empty() && lab.triton.empty()) {
      return fmt::format("the folder has '{}', and this lab takes no Triton: {}", fmt::join(similar, "', '"),
                         lab.without_triton);
    }
    if (!similar.empty()) {
      return fmt::format("the folder has '{}': rename the right one to {}", fmt::join(similar, "', '"), triton);
    }
  }
  if (similar.empty()) return fmt::format("'kvscope lab start {} DIR' writes the file to begin with", lab.number);
  return fmt::format("the folder has '{}': rename the right one to {}", fmt::join(similar, "', '"), missing);
}

}  // namespace

const std::string& Submission::file(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &SubmittedFile::name);
  if (found == files.end()) throw InputError("submission", std::string(name), "was not submitted");
  return found->text;
}

std::string ptx_name_of(std::string_view cuda_name) {
  return std::string(cuda_name.substr(0, cuda_name.rfind('.'))) + ".ptx";
}

std::optional<std::string> submitted_name(const Lab& lab, const fs::path& folder, const std::string& file) {
  const auto has = [&folder](const std::string& name) {
    std::error_code error;  // a file that cannot be examined is there
    return fs::symlink_status(folder / name, error).type() != fs::file_type::not_found;
  };
  if (has(file)) return file;
  if (!lab.triton.empty() && has(lab.triton)) return lab.triton;
  if (lab.kind == LabKind::cuda && has(ptx_name_of(file))) return ptx_name_of(file);
  return std::nullopt;
}

std::string read_submitted_file(const fs::path& path, std::string& fault) {
  // The open file is checked, so a name that is replaced between the check and the read changes nothing.
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    fault = errno == ELOOP ? "is a symbolic link: submit the file itself" : system_message(errno);
    return {};
  }
  struct stat status = {};
  std::string bytes;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    fault = "is not a regular file";
  } else if (status.st_size > kMaxSubmittedFile) {
    fault = fmt::format("has {} bytes, more than {}", status.st_size, kMaxSubmittedFile);
  } else {
    bytes.resize(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    for (ssize_t part = 1; part > 0 && done < bytes.size();
         done += static_cast<std::size_t>(std::max<ssize_t>(part, 0))) {
      part = read(file, bytes.data() + done, bytes.size() - done);
    }
    bytes.resize(done);
  }
  close(file);
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) {
    fault = "is UTF-16 text: save it as UTF-8";
    return {};
  }
  return std::string(without_byte_order_mark(bytes));
}

Submission read_submission(const Lab& lab, const fs::path& folder, std::string student) {
  if (std::error_code error; !fs::is_directory(folder, error)) {
    throw InputError(
        folder.string(), "",
        fs::exists(folder, error)
            ? std::string("is not a folder: name the folder of your work")
            : fmt::format("does not exist: 'kvscope lab start {} DIR' creates a folder for your work", lab.number));
  }
  Submission submission{std::move(student), {}};
  std::vector<Fault> faults;
  for (const std::string& listed : lab.files) {
    std::string fault;
    const std::optional<std::string> found = submitted_name(lab, folder, listed);
    const std::string& name = found ? *found : listed;
    std::string bytes = read_submitted_file(folder / name, fault);
    std::error_code error;
    if (!lab.triton.empty() && name == listed && fs::exists(fs::symlink_status(folder / lab.triton, error))) {
      fault = fmt::format("and {} are both in the folder: remove the one that is not your submission", lab.triton);
    }
    if (fault.empty()) {
      submission.files.push_back({name, std::move(bytes)});
    } else {
      if (!found) fault = "is missing: " + next_step(lab, folder, name);
      faults.push_back({name, fault});
    }
  }
  if (!faults.empty()) throw InputError(folder.string(), std::move(faults));
  return submission;
}

TestResult passed(const Lab& lab, std::string_view test, std::string message) {
  const auto points = static_cast<double>(lab.test(test).points);
  return {std::string(test), points, points, std::move(message), {}, 0, {}};
}

TestResult failed(const Lab& lab, std::string_view test, std::string message, std::string case_text,
                  std::optional<int> hint, double fraction) {
  const LabTest& of = lab.test(test);
  const auto points = static_cast<double>(of.points);
  return {of.name, points, points * fraction, std::move(message), std::move(case_text), hint.value_or(of.hint), {}};
}

TestResult with_picture(TestResult result, CasePicture picture) {
  result.picture = std::move(picture);
  return result;
}

std::vector<TestResult> all_failed(const Lab& lab, const std::string& message, std::string case_text, int hint) {
  std::vector<TestResult> results;
  for (const LabTest& test : lab.tests) results.push_back(failed(lab, test.name, message, case_text, hint));
  return results;
}

double Grade::earned() const {
  double sum = 0;
  for (const TestResult& result : results) sum += result.earned;
  return sum;
}

double Grade::points() const {
  double sum = 0;
  for (const TestResult& result : results) sum += result.points;
  return sum;
}

bool Grade::missing() const {
  return std::ranges::all_of(results, [](const TestResult& result) { return result.message == kNoSubmission; });
}

Grade grade_of(const Grader& grader, const std::string& student, const Seed& seed, std::vector<TestResult> results) {
  return {student, grader.lab().id(), seed, std::move(results),
          limit_values(grader.options().limits, grader.lab().kind)};
}

Grade grade(const Grader& grader, const Submission& submission, const Seed& seed) {
  Grade result = grade_of(grader, submission.student, seed, grader.grade(submission, seed));
  const std::vector<LabTest>& tests = grader.lab().tests;
  const bool same = std::ranges::equal(result.results, tests, {}, &TestResult::name, &LabTest::name);
  if (!same) {
    throw InputError((grader.lab().folder / "lab.json").string(), "$.tests",
                     "the tests are not those of this lab's grader, in its order: restore the file");
  }
  return result;
}

}  // namespace kvscope::labs

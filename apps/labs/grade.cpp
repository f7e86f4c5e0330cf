#include "apps/labs/grade.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/errors.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

// The file's bytes, or why it is rejected. The open file is checked, so a name that is replaced between the check and
// the read changes nothing.
std::string read_submitted(const fs::path& path, std::string& fault) {
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
  return bytes;
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

Submission read_submission(const Lab& lab, const fs::path& folder, std::string student) {
  Submission submission{std::move(student), {}};
  std::vector<Fault> faults;
  for (const std::string& listed : lab.files) {
    std::string fault, name = listed;
    std::error_code ignored;
    const bool missing = fs::symlink_status(folder / name, ignored).type() == fs::file_type::not_found;
    if (missing && lab.kind == LabKind::cuda) {
      const auto ptx = fs::symlink_status(folder / ptx_name_of(name), ignored).type();
      if (ptx != fs::file_type::not_found) name = ptx_name_of(name);
    }
    std::string bytes = read_submitted(folder / name, fault);
    if (fault.empty()) {
      submission.files.push_back({name, std::move(bytes)});
    } else {
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

TestResult failed(const Lab& lab, std::string_view test, std::string message, std::string case_text, int hint,
                  double fraction) {
  const auto points = static_cast<double>(lab.test(test).points);
  return {std::string(test), points, points * fraction, std::move(message), std::move(case_text), hint, {}};
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

Grade grade(const Grader& grader, const Submission& submission, const Seed& seed) {
  Grade result{submission.student, grader.lab().id(), seed, grader.grade(submission, seed)};
  const std::vector<LabTest>& tests = grader.lab().tests;
  const bool same = std::ranges::equal(result.results, tests, {}, &TestResult::name, &LabTest::name);
  if (!same) {
    throw InputError((grader.lab().folder / "lab.json").string(), "$.tests",
                     "the tests are not those of this lab's grader, in its order: restore the file");
  }
  return result;
}

}  // namespace kvscope::labs

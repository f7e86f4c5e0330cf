// The grader of a lab: reads a submission, tests it with the cases of a seed, and explains each lost point.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/course.h"
#include "apps/labs/limits.h"
#include "apps/labs/picture.h"
#include "apps/labs/sandbox.h"
#include "apps/labs/seed.h"

namespace kvscope::labs {

struct SubmittedFile {
  std::string name;  // as in lab.json, "rows.cpp"
  std::string text;
};

struct Submission {
  std::string student;  // selects the task; may be empty
  std::vector<SubmittedFile> files;
  [[nodiscard]] const std::string& file(std::string_view name) const;  // InputError when it was not submitted
};

inline constexpr std::int64_t kMaxSubmittedFile = 256 * 1024;  // [bytes]

// The PTX that may be submitted in place of a CUDA file: "gather.cu" -> "gather.ptx".
[[nodiscard]] std::string ptx_name_of(std::string_view cuda_name);

// The name under which the folder has `file` of the lab: the file's own, or that in Triton, or that of its PTX. Nothing
// if it has none of them.
[[nodiscard]] std::optional<std::string> submitted_name(const Lab& lab, const std::filesystem::path& folder,
                                                        const std::string& file);

// Bytes of a file that a student submitted, without the UTF-8 byte order mark of Windows editors. Otherwise empty, and
// `fault` has the reason: there is no such file, it is a symbolic link, not a regular file, larger than
// kMaxSubmittedFile, or UTF-16 text.
[[nodiscard]] std::string read_submitted_file(const std::filesystem::path& path, std::string& fault);

// Reads the files that lab.json names; in place of a CUDA file that is missing, the file in Triton or the PTX.
// InputError: `folder` is no folder; or all faults at once: those of read_submitted_file(), with names of files that
// are probably meant ("rows (1).cpp") for a missing one, and a folder with the file in CUDA and in Triton. Nothing else
// in the folder is read.
[[nodiscard]] Submission read_submission(const Lab& lab, const std::filesystem::path& folder, std::string student);

struct TestResult {
  std::string name;
  double points = 0, earned = 0;
  std::string message;               // empty: full points without a remark
  std::string case_text;             // the first failing case, small enough to work out by hand; may have several lines
  int hint = 0;                      // the hint to read next; 0: none
  std::optional<double> score = {};  // of a test with a leaderboard, the higher the better; no points by itself
  CasePicture picture = {};          // of the failing case; empty: the grader draws none

  [[nodiscard]] bool passed() const { return earned >= points; }
};

// For graders. Without `hint`, that of the test in lab.json. `fraction` of the points that the test still earns.
[[nodiscard]] TestResult passed(const Lab& lab, std::string_view test, std::string message = {});
[[nodiscard]] TestResult failed(const Lab& lab, std::string_view test, std::string message, std::string case_text = {},
                                std::optional<int> hint = std::nullopt, double fraction = 0);
// The result with the picture of its case.
[[nodiscard]] TestResult with_picture(TestResult result, CasePicture picture);
// Every test of the lab fails with one message: the submission does not compile, for example.
[[nodiscard]] std::vector<TestResult> all_failed(const Lab& lab, const std::string& message, std::string case_text = {},
                                                 int hint = 0);

struct GradeOptions {
  SandboxKind sandbox = SandboxKind::none;
  std::filesystem::path course;        // folder of the course: the harness of C++ labs
  std::filesystem::path program = {};  // kvscope itself, which loads NVRTC in the sandbox; empty: NVRTC is not used
  std::filesystem::path nvrtc = {};    // libnvrtc.so in place of nvcc; empty: nvcc, else the library that is found
  bool clang = false;                  // clang in place of nvcc and NVRTC
  std::filesystem::path python = {};   // a Python with the package triton; empty: the python3 in PATH
  std::filesystem::path cache = {};    // compiled submissions, compile_cache.h; empty: every submission is compiled
  LabLimits limits = {};               // of compilers, programs and launches
};

// A file that `lab start` writes beside the starter files: the numbers of a student's own task.
struct TaskFile {
  std::string name, text;
};

class Grader {
 public:
  Grader(Lab lab, GradeOptions options) : lab_(std::move(lab)), options_(std::move(options)) {}
  virtual ~Grader() = default;
  Grader(const Grader&) = delete;
  Grader& operator=(const Grader&) = delete;

  // One result per test of lab.json, in its order.
  [[nodiscard]] virtual std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const = 0;
  [[nodiscard]] virtual std::vector<TaskFile> task_files(std::string_view /*student*/) const { return {}; }
  [[nodiscard]] const Lab& lab() const { return lab_; }
  [[nodiscard]] const GradeOptions& options() const { return options_; }

 private:
  Lab lab_;
  GradeOptions options_;
};

// All graders; each lab's is in a file of its own, lab_NN_name.cpp, and has one line in graders.cpp.
[[nodiscard]] bool has_grader(std::string_view lab_id);
[[nodiscard]] std::unique_ptr<Grader> make_grader(const Lab& lab, const GradeOptions& options);

// The message of every test of a student without a submission.
inline constexpr std::string_view kNoSubmission = "no submission";

// Grades, and checks that the grader returned one result per test. An exception of kvscope's own types that the
// submission caused is a bug of the grader; a submission's faults are results.
struct Grade {
  std::string student, lab_id;
  Seed seed;
  std::vector<TestResult> results;
  std::vector<LimitValue> limits = {};  // that apply to the lab; empty in a file of an earlier version
  [[nodiscard]] double earned() const;
  [[nodiscard]] double points() const;
  [[nodiscard]] bool missing() const;  // every test has the message kNoSubmission
};
// A grade of these results, with the seed and the limits of the grading.
[[nodiscard]] Grade grade_of(const Grader& grader, const std::string& student, const Seed& seed,
                             std::vector<TestResult> results);
[[nodiscard]] Grade grade(const Grader& grader, const Submission& submission, const Seed& seed);

}  // namespace kvscope::labs

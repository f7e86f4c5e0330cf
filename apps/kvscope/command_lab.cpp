// kvscope lab: lists the labs, starts one, checks and grades submissions, and reports on a class.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "apps/labs/class_folders.h"
#include "apps/labs/course.h"
#include "apps/labs/course_files.h"
#include "apps/labs/grade.h"
#include "apps/labs/limits.h"
#include "apps/labs/nvrtc.h"
#include "apps/labs/picture_file.h"
#include "apps/labs/report.h"
#include "apps/launch/options.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/report.h"
#include "core/base/terminal_text.h"

namespace kvscope::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCourseVariable = "KVSCOPE_COURSE";
constexpr std::int64_t kMaxHint = 64 * 1024;         // [bytes]
constexpr std::int64_t kMaxGradeFile = 1024 * 1024;  // [bytes]

struct LabCommand {
  std::string course, lab, folder = ".", student, seed, secret, out, json, junit, gradescope, csv, picture, nvrtc,
                           python, cache, roster, language = "cuda";
  std::vector<std::string> folders;
  std::int64_t hint = 0;
  bool trust = false, students = false, clang = false;
  labs::LabLimits limits;
  const CLI::App* parsed = nullptr;  // of check and grade: which options were given
};

void check_limit_options(const LabCommand& command, const labs::Lab& lab) {
  for (const std::string& option : labs::limit_options()) {
    if (command.parsed->count(option) > 0) labs::require_limit_of(lab, option);
  }
}

labs::Course open_course(const LabCommand& command) {
  if (!command.course.empty()) return labs::load_course(command.course);
  std::error_code ignored;
  const auto folder = labs::course_folder(fs::read_symlink("/proc/self/exe", ignored).parent_path());
  if (!folder) {
    throw InputError("command line", "--course",
                     fmt::format("no course is installed with the program: name the folder that your teacher handed "
                                 "out, or set {} to it",
                                 kCourseVariable));
  }
  return labs::load_course(*folder);
}

// Graders of labs in which the program runs submitted code need a sandbox; the others run none.
std::unique_ptr<labs::Grader> open_grader(const labs::Course& course, const labs::Lab& lab, bool run,
                                          const LabCommand& command) {
  std::error_code ignored;
  labs::GradeOptions options{labs::SandboxKind::none, course.folder, fs::read_symlink("/proc/self/exe", ignored),
                             command.nvrtc,           command.clang, command.python,
                             command.cache,           command.limits};
  const bool compiles = lab.kind == labs::LabKind::cpp || lab.kind == labs::LabKind::cuda;
  if (run && compiles) options.sandbox = labs::require_sandbox(command.trust);
  return labs::make_grader(lab, options);
}

int list_labs(const LabCommand& command) {
  const labs::Course course = open_course(command);
  for (const labs::Lab& lab : course.labs) {
    std::cout << fmt::format("{:02}  {:<14}  {:<8}  {:>3} min  {:>3} points  {}\n", lab.number, lab.name,
                             labs::kind_name(lab.kind), lab.minutes, lab.points(), lab.title);
  }
  for (const labs::Lab& lab : course.without_grader) {
    std::cout << fmt::format("{:02}  {:<14}  no grader in this kvscope: update kvscope, or correct the name of {}\n",
                             lab.number, terminal_text(lab.name), terminal_text(lab.folder.string()));
  }
  return kExitFine;
}

int start(const LabCommand& command) {
  const labs::Course course = open_course(command);
  const labs::Lab& lab = course.lab(command.lab);
  const auto grader = open_grader(course, lab, false, command);
  const std::vector<std::string> names =
      labs::start_lab(*grader, command.folder, command.student,
                      command.language == "triton" ? labs::Language::triton : labs::Language::of_lab);
  std::cout << fmt::format("Lab {:02}: {}\nhandout  {}\n", lab.number, lab.title, (lab.folder / "README.md").string());
  for (const std::string& name : names)
    std::cout << fmt::format("wrote    {}\n", (fs::path(command.folder) / name).string());
  // The commands that are printed as next steps name no course.
  const char* const variable = std::getenv(kCourseVariable);
  if (!command.course.empty() && (variable == nullptr || command.course != variable)) {
    std::cout << fmt::format("once     export {}={}\n", kCourseVariable, fs::absolute(command.course).string());
  }
  std::cout << fmt::format("next     kvscope lab check {} {}\n", lab.number, command.folder);
  return kExitFine;
}

void write_reports(const LabCommand& command, const labs::Lab& lab, const labs::Grade& grade) {
  if (!command.json.empty()) write_file_atomically(command.json, json::dump(labs::grade_json(lab, grade)) + "\n");
  if (!command.junit.empty()) write_file_atomically(command.junit, labs::grade_junit(grade));
  if (!command.gradescope.empty()) {
    write_file_atomically(command.gradescope, json::dump(labs::gradescope_json(lab, grade)) + "\n");
  }
}

void write_picture(const std::string& file, const labs::Lab& lab, const labs::Grade& grade) {
  const labs::TestResult* const failure = labs::first_failure(grade);
  if (failure == nullptr) {
    std::cout << fmt::format("no picture: every test passed, {} is not written\n", file);
    return;
  }
  labs::write_picture_file(file, labs::failure_picture(lab, *failure));
  std::cout << fmt::format("picture of {}: {}\n", failure->name, file);
}

int check(const LabCommand& command) {
  const labs::Course course = open_course(command);
  const labs::Lab& lab = course.lab(command.lab);
  check_limit_options(command, lab);
  if (const std::string fault = command.student.empty() ? "" : labs::student_fault(command.student); !fault.empty()) {
    throw InputError("command line", "--student", fault);
  }
  const std::string student = command.student.empty() ? labs::student_of(lab, command.folder) : command.student;
  const labs::Seed seed = command.seed.empty() ? labs::public_seed(lab.id()) : labs::parse_seed(command.seed);
  if (!command.picture.empty()) labs::check_picture_file(command.picture);  // before the tests run
  const labs::Submission submission = labs::read_submission(lab, command.folder, student);
  const auto grader = open_grader(course, lab, true, command);
  const labs::Grade grade = labs::grade(*grader, submission, seed);
  std::cout << labs::grade_text(lab, grade);
  write_reports(command, lab, grade);
  if (!command.picture.empty()) write_picture(command.picture, lab, grade);
  if (grade.earned() < grade.points()) return kExitCheckFailed;
  const auto next = std::ranges::upper_bound(course.labs, lab.number, {}, &labs::Lab::number);
  if (next != course.labs.end()) {
    std::cout << fmt::format("Next lab: {:02}, {}: kvscope lab start {} DIR\n", next->number, next->title,
                             next->number);
  }
  return kExitFine;
}

int hint(const LabCommand& command) {
  const labs::Course course = open_course(command);
  const labs::Lab& lab = course.lab(command.lab);
  if (command.hint < 1 || command.hint > lab.hints()) {
    throw InputError("command line", "K",
                     fmt::format("{} is outside [1, {}]: the hints of lab {}", command.hint, lab.hints(), lab.id()));
  }
  std::cout << read_file(lab.folder / "hints" / fmt::format("{}.md", command.hint), kMaxHint);
  return kExitFine;
}

int pack(const LabCommand& command) {
  const labs::Course course = open_course(command);
  const std::size_t files = labs::pack_course(course, command.out, command.students);
  std::cout << fmt::format("wrote {} to {}\n", counted(static_cast<std::int64_t>(files), "file"), command.out);
  return kExitFine;
}

// These reports have a place for one submission.
void check_reports_of_class(const LabCommand& command, std::size_t submissions) {
  if (submissions == 1) return;
  for (const auto& [option, file] :
       {std::pair("--json", &command.json), {"--junit", &command.junit}, {"--gradescope", &command.gradescope}}) {
    if (file->empty()) continue;
    throw InputError("command line", option,
                     fmt::format("is the report of one submission, and {} are given: --out DIR writes one JSON file "
                                 "per student, --csv FILE a table of all",
                                 submissions));
  }
}

int grade_class(const LabCommand& command) {
  const labs::Course course = open_course(command);
  const labs::Lab& lab = course.lab(command.lab);
  check_limit_options(command, lab);
  const std::string secret = labs::read_secret(command.secret);
  const std::vector<labs::StudentFolder> folders = labs::student_folders(command.folders);
  if (folders.size() == 1) labs::reject_class_folder(lab, folders.front().path);
  check_reports_of_class(command, folders.size());
  std::vector<std::string> roster;
  if (!command.roster.empty()) roster = labs::read_roster(command.roster, folders);
  const auto grader = open_grader(course, lab, true, command);
  if (!command.out.empty()) {
    std::error_code error;
    fs::create_directories(command.out, error);
    if (error) {
      throw InputError(
          "command line", "--out",
          fmt::format("the folder '{}' cannot be created: {}", command.out, system_message(error.value())));
    }
  }
  std::vector<labs::Grade> grades;
  const auto add = [&](labs::Grade grade) {
    std::cout << fmt::format("{}  seed {}\n{}", terminal_text(grade.student), labs::repeat_text(grade),
                             labs::grade_text(lab, grade));
    if (!command.out.empty()) {
      write_file_atomically(fs::path(command.out) / (grade.student + ".json"),
                            json::dump(labs::grade_json(lab, grade)) + "\n");
    }
    grades.push_back(std::move(grade));
  };
  for (const labs::StudentFolder& folder : folders) add(labs::grade_folder(*grader, folder, secret));
  for (const std::string& student : roster) {
    if (std::ranges::find(folders, student, &labs::StudentFolder::student) != folders.end()) continue;
    add(labs::grade_without_submission(*grader, student, secret));
  }
  if (!command.csv.empty()) write_file_atomically(command.csv, labs::class_csv(lab, grades));
  if (folders.size() == 1) write_reports(command, lab, grades.front());
  return kExitFine;
}

// The part of a CUDA compilation that runs in the sandbox.
int compile_in_sandbox(const LabCommand& command) {
  return labs::compile_with_nvrtc(command.folders[0], command.folders[1], command.folders[2], command.folders[3]);
}

int report(const LabCommand& command) {
  const labs::Course course = open_course(command);
  std::vector<fs::path> paths;
  std::error_code error;
  const fs::directory_iterator entries(command.folder, error);
  if (error) {
    throw InputError(command.folder, "",
                     fmt::format("cannot be read: {}; name the folder that kvscope lab grade --out wrote",
                                 system_message(error.value())));
  }
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<labs::Grade> grades;
  for (const fs::path& path : paths) {
    grades.push_back(labs::read_grade(json::parse(read_file(path, kMaxGradeFile), path.string()), path.string()));
    const auto same = std::ranges::find(grades, grades.back().student, &labs::Grade::student);
    if (same != grades.end() - 1) {
      throw InputError(path.string(), "$.student",
                       fmt::format("is '{}', as in {}: remove the grade that does not count", grades.back().student,
                                   paths[static_cast<std::size_t>(same - grades.begin())].filename().string()));
    }
    if (grades.back().lab_id != grades.front().lab_id) {
      throw InputError(
          path.string(), "$.lab",
          fmt::format("is '{}', but the first grade here is of '{}'", grades.back().lab_id, grades.front().lab_id));
    }
  }
  if (grades.empty()) {
    throw InputError(command.folder, "", "has no grades: write them with kvscope lab grade ... --out DIR");
  }
  const labs::Lab& lab = course.lab(grades.front().lab_id);
  for (std::size_t i = 0; i < grades.size(); ++i) {  // a table has one column for each test of the lab
    if (std::ranges::equal(grades[i].results, lab.tests, {}, &labs::TestResult::name, &labs::LabTest::name)) continue;
    throw InputError(paths[i].string(), "$.tests",
                     fmt::format("are not the tests of lab {} of this course: grade the submission again", lab.id()));
  }
  std::cout << labs::class_text(lab, grades);
  if (!command.csv.empty()) write_file_atomically(command.csv, labs::class_csv(lab, grades));
  return kExitFine;
}

void add_course_option(CLI::App& command, LabCommand& values) {
  command
      .add_option("--course", values.course,
                  "Folder of the course [default: $KVSCOPE_COURSE, else the one installed with the program]")
      ->type_name("DIR")
      ->envname(kCourseVariable);
}

void add_lab_option(CLI::App& command, LabCommand& values) {
  command.add_option("LAB", values.lab, "The lab: its number or its name")->required();
  add_course_option(command, values);
}

// The limits of apps/labs/limits.h. Results of a program are kept in memory, and a compiler's product has a size of its
// own, so these have an upper end.
void add_limit_options(CLI::App& command, labs::LabLimits& limits) {
  constexpr LimitRange kSeconds{1, 86'400}, kRunMemory{std::int64_t{64} << 20, std::int64_t{1} << 40},
      kResults{1024, std::int64_t{1} << 30}, kPtx{1024, labs::kMaxProduct};
  add_kernel_limit_options(command, limits.launch, limits.launch_memory);
  add_limit_option(command, "--max-ptx", limits.ptx_bytes, "PTX of a compiled kernel", "BYTES", kPtx);
  add_limit_option(command, "--max-run-time", limits.run_seconds,
                   "CPU time of a C++ program in a test; wall clock: three times as much", "SECONDS", kSeconds);
  add_limit_option(command, "--max-run-memory", limits.run_memory, "Memory of a C++ program", "BYTES", kRunMemory);
  add_limit_option(command, "--max-run-output", limits.run_output_bytes, "Results of a C++ program in a test", "BYTES",
                   kResults);
  add_limit_option(command, "--max-compile-time", limits.compile_seconds,
                   "CPU time of each compiler process; wall clock: one and a half times as much", "SECONDS", kSeconds);
}

void add_report_options(CLI::App& command, LabCommand& values) {
  command.add_option("--json", values.json, "Write the grade as JSON")->type_name("FILE")->check(writes_file());
  command.add_option("--junit", values.junit, "Write the tests as a JUnit file")
      ->type_name("FILE")
      ->check(writes_file());
  command.add_option("--gradescope", values.gradescope, "Write the results.json of a Gradescope autograder")
      ->type_name("FILE")
      ->check(writes_file());
  command
      .add_option(
          "--nvrtc", values.nvrtc,
          "Compile CUDA with this NVRTC library (libnvrtc.so) [default: nvcc, else NVRTC of a Python wheel, else "
          "clang]")
      ->type_name("FILE");
  command.add_flag("--clang", values.clang, "Compile CUDA with clang")->excludes("--nvrtc");
  command
      .add_option("--python", values.python,
                  "Compile Triton with the package of this Python [default: the python3 in PATH]")
      ->type_name("FILE");
  command
      .add_option("--cache", values.cache, "Keep compiled submissions there: a second grading compiles only new files")
      ->type_name("DIR");
  command.add_flag("--trust", values.trust, "Run submitted code without a sandbox: only for code that you wrote");
  add_limit_options(command, values.limits);
  values.parsed = &command;
}

}  // namespace

void add_lab(CLI::App& app, Action& chosen) {
  CLI::App* lab = app.add_subcommand("lab", "Labs: start one, check your work, and grade the submissions of a class");
  lab->require_subcommand(1);
  const auto add = [&](const char* name, const char* text, int (*action)(const LabCommand&)) {
    const auto values = std::make_shared<LabCommand>();
    CLI::App* command = lab->add_subcommand(name, text);
    command->callback([&chosen, values, action] { chosen = [values, action] { return action(*values); }; });
    return std::pair(command, values);
  };

  const auto listed = add("list", "List the labs of the course", list_labs);
  add_course_option(*listed.first, *listed.second);
  add_examples(*listed.first, {"kvscope lab list"});

  const auto started = add("start", "Copy a lab's starter files to a folder", start);
  add_lab_option(*started.first, *started.second);
  started.first->add_option("DIR", started.second->folder, "Folder for your work; it is created")->required();
  started.first
      ->add_option("--student", started.second->student, "Your name in the course: selects the numbers of your task")
      ->type_name("NAME");
  started.first->add_option("--language", started.second->language, "Of the starter file, in a lab of kind cuda")
      ->check(CLI::IsMember({"cuda", "triton"}))
      ->capture_default_str();
  add_examples(*started.first, {"kvscope lab start 2 lab02", "kvscope lab start 9 lab09 --language triton"});

  const auto checked = add("check", "Test your work with the public cases, and explain each lost point", check);
  add_lab_option(*checked.first, *checked.second);
  checked.first->add_option("DIR", checked.second->folder, "Folder of your work")->capture_default_str();
  checked.first
      ->add_option("--student", checked.second->student, "Your name in the course [default: that of lab start]")
      ->type_name("NAME");
  checked.first->add_option("--seed", checked.second->seed, "Repeat a grading: the seed that lab grade printed")
      ->type_name("HEX");
  checked.first
      ->add_option("--picture", checked.second->picture,
                   "Draw the first failing case to a .svg file, or a .png file (needs the program rsvg-convert)")
      ->type_name("FILE")
      ->check(writes_file());
  add_report_options(*checked.first, *checked.second);
  add_examples(*checked.first, {"kvscope lab start 2 mine", "kvscope lab check 2 mine || true",
                                "kvscope lab check 2 mine --picture case.svg || true"});

  const auto hinted = add("hint", "Print a hint of a lab", hint);
  add_lab_option(*hinted.first, *hinted.second);
  hinted.second->hint = 1;
  hinted.first->add_option("K", hinted.second->hint, "Number of the hint; later ones say more")->capture_default_str();
  add_examples(*hinted.first, {"kvscope lab hint 2"});

  const auto packed = add("pack", "Copy the course to a new folder, with the pages that its handouts link to", pack);
  add_course_option(*packed.first, *packed.second);
  packed.first->add_option("OUT", packed.second->out, "The new folder")->required();
  packed.first->add_flag("--students", packed.second->students, "Without solutions, wrong submissions and notes");
  add_examples(*packed.first, {"kvscope lab pack course --students"});

  const auto graded = add("grade", "Grade submissions with the cases of each student's own seed", grade_class);
  add_lab_option(*graded.first, *graded.second);
  graded.first->add_option("DIR", graded.second->folders, "Folders of submissions, each named as its student")
      ->required();
  graded.first->add_option("--secret", graded.second->secret, "File with the course's secret; it selects the cases")
      ->type_name("FILE")
      ->required();
  graded.first->add_option("--out", graded.second->out, "Write one JSON file per student, for lab report")
      ->type_name("DIR");
  graded.first
      ->add_option("--roster", graded.second->roster,
                   "The class, one student per line: those without a folder are graded with 0 points")
      ->type_name("FILE");
  graded.first->add_option("--csv", graded.second->csv, "Write a table of all grades, for Moodle")
      ->type_name("FILE")
      ->check(writes_file());
  add_report_options(*graded.first, *graded.second);
  add_examples(*graded.first, {"head -c 32 /dev/urandom | base64 > secret", "kvscope lab start 2 ada",
                               "kvscope lab grade 2 ada --secret secret --out grades"});

  const auto reported = add("report", "Print a class's histogram and its most frequent faults", report);
  add_course_option(*reported.first, *reported.second);
  reported.first->add_option("DIR", reported.second->folder, "Folder that lab grade --out wrote")->required();
  reported.first->add_option("--csv", reported.second->csv, "Write a table of all grades, for Moodle")
      ->type_name("FILE")
      ->check(writes_file());
  add_examples(*reported.first, {"head -c 32 /dev/urandom | base64 > secret2", "kvscope lab start 2 grace",
                                 "kvscope lab grade 2 grace --secret secret2 --out class", "kvscope lab report class"});
  const auto compiled = add("nvrtc", "", compile_in_sandbox);
  compiled.first->group("");  // for the program itself
  compiled.first->add_option("ARGUMENTS", compiled.second->folders)->required()->expected(4);

  add_examples(*lab, {"kvscope lab start 2 rows"});  // last: commands that were added later would show it too
}

}  // namespace kvscope::apps

#include "apps/kvscope-viewer/lab_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "apps/kvscope-viewer/gallery.h"
#include "apps/labs/course.h"
#include "apps/labs/report.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"

namespace kvscope::apps {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMaxResult = 8 * 1024 * 1024;          // [bytes]
constexpr std::string_view kResultKey = "\"kvscope_grade\"";  // at the beginning of the file

viz::LabEntry entry_of(const labs::Lab& lab, const std::optional<fs::path>& gallery) {
  viz::LabEntry entry{lab.id(), lab.title, lab.goal,   (lab.folder / "README.md").string(),
                      {},       lab.place, lab.number, lab.minutes};
  std::error_code ignored;
  if (gallery && fs::is_regular_file(*gallery / lab.scenario, ignored)) {
    entry.scenario = (*gallery / lab.scenario).string();
  }
  return entry;
}

// The grader's picture of a test; read_grade() does not read it.
std::string picture_of(const json::Value& file, std::size_t test) {
  const json::Value* picture = (*file.find("tests")->as_array())[test].find("picture");
  return picture == nullptr || picture->as_string() == nullptr ? std::string() : *picture->as_string();
}

}  // namespace

viz::Labs lab_list(const fs::path& program_folder) {
  const std::optional<fs::path> folder = labs::course_folder(program_folder);
  if (!folder) {
    return {{},
            fmt::format("The course is missing: neither share/kvscope/docs/labs beside {} nor docs/labs in a folder "
                        "above it exists.",
                        program_folder.string())};
  }
  try {
    const std::optional<fs::path> gallery = gallery_folder(program_folder);
    viz::Labs list;
    for (const labs::Lab& lab : labs::load_course(*folder).labs) list.entries.push_back(entry_of(lab, gallery));
    return list;
  } catch (const InputError& error) {
    return {{}, fault_lines(error).front()};
  }
}

bool is_lab_result(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && read_file_start(path, 64).find(kResultKey) != std::string::npos;
}

std::optional<viz::LabResult> read_lab_result(const std::string& path, const viz::Labs& labs) {
  if (!is_lab_result(path)) return std::nullopt;
  if (labs.entries.empty()) {
    throw InputError(path, "", "is the result of a lab's check, and the course cannot be read: " + labs.why_empty);
  }
  const json::Value file = json::parse(read_file(path, kMaxResult), path);
  const labs::Grade grade = labs::read_grade(file, path);
  const auto found = std::ranges::find(labs.entries, grade.lab_id, &viz::LabEntry::id);
  if (found == labs.entries.end()) {
    throw InputError(path, "$.lab", fmt::format("'{}' is no lab of the installed course", grade.lab_id));
  }
  const labs::Lab lab = labs::load_lab(fs::path(found->handout).parent_path());
  viz::LabResult result{*found, grade.student, {}};
  for (std::size_t i = 0; i < grade.results.size(); ++i) {
    const labs::TestResult& test = grade.results[i];
    const auto known = std::ranges::find(lab.tests, test.name, &labs::LabTest::name);
    const NoteLink place = known == lab.tests.end() ? found->place : known->place.value_or(found->place);
    result.tests.push_back(
        {test.name, test.earned, test.points, test.message, test.case_text, picture_of(file, i), place});
  }
  return result;
}

}  // namespace kvscope::apps

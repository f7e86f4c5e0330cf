#include "apps/labs/course.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "apps/labs/course_files.h"
#include "apps/labs/grade.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/nearest_name.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMaxManifest = 64 * 1024;  // [bytes]
constexpr std::array<std::pair<LabKind, std::string_view>, 6> kKinds{{{LabKind::answers, "answers"},
                                                                      {LabKind::cpp, "cpp"},
                                                                      {LabKind::cuda, "cuda"},
                                                                      {LabKind::schedule, "schedule"},
                                                                      {LabKind::report, "report"},
                                                                      {LabKind::hunt, "hunt"}}};

constexpr std::array<std::string_view, 13> kKeys{"number", "name",           "title", "kind",  "minutes",
                                                 "goal",   "scenario",       "place", "reads", "files",
                                                 "triton", "without_triton", "tests"};
constexpr std::array<std::string_view, 5> kTestKeys{"name", "points", "text", "hint", "place"};

// Collects the faults of one manifest; each getter returns a value of the member's type in any case.
class Manifest {
 public:
  Manifest(const json::Value& value, std::vector<Fault>& faults, std::string where)
      : value_(value), faults_(faults), where_(std::move(where)) {}

  std::int64_t whole(std::string_view key, std::int64_t low, std::int64_t high) {
    const json::Value* member = value_.find(key);
    const std::int64_t* number = member == nullptr ? nullptr : member->as_i64();
    if (number != nullptr && *number >= low && *number <= high) return *number;
    fault(key, fmt::format("{}must be a whole number in [{}, {}]",
                           number == nullptr ? "" : fmt::format("is {}: ", *number), low, high));
    return low;
  }
  std::string text(std::string_view key) {
    const json::Value* member = value_.find(key);
    const std::string* found = member == nullptr ? nullptr : member->as_string();
    if (found != nullptr && !found->empty()) return *found;
    fault(key, "must be a text that is not empty");
    return {};
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> result;
    for (const json::Value& item : array(key)) {
      if (item.as_string() == nullptr) {
        fault(key, "must be a list of texts");
        break;
      }
      result.push_back(*item.as_string());
    }
    return result;
  }
  const json::Array& array(std::string_view key) {
    static const json::Array nothing;
    const json::Value* member = value_.find(key);
    if (member != nullptr && member->as_array() != nullptr) return *member->as_array();
    fault(key, "must be a list");
    return nothing;
  }
  std::int64_t whole_or_one(std::string_view key, std::int64_t high) {
    return value_.find(key) == nullptr ? 1 : whole(key, 1, high);
  }
  [[nodiscard]] std::string text_or_empty(std::string_view key) {
    return value_.find(key) == nullptr ? std::string() : text(key);
  }
  // As the part of a notes link in parentheses.
  std::optional<NoteLink> place() {
    const std::string words = text_or_empty("place");
    if (words.empty()) return std::nullopt;
    std::vector<std::string> link_faults;
    const std::vector<NotePart> parts = parse_notes(fmt::format("[place]({})", words), link_faults);
    for (std::string& message : link_faults) fault("place", std::move(message));
    if (parts.size() == 1 && parts.front().link) return parts.front().link;
    fault("place", fmt::format("'{}' must be written as 'view=pool, step=6, select=token 3:65'", words));
    return std::nullopt;
  }
  // A mistyped "triton" would otherwise be a lab without Triton.
  void reject_unknown_keys(std::span<const std::string_view> known) {
    if (value_.as_object() == nullptr) return;
    for (const auto& [key, unused] : *value_.as_object()) {
      if (std::ranges::find(known, key) == known.end()) fault(key, "unknown key" + suggest_name(key, known));
    }
  }
  void fault(std::string_view key, std::string message) {
    faults_.push_back({fmt::format("{}.{}", where_, key), std::move(message)});
  }

 private:
  const json::Value& value_;
  std::vector<Fault>& faults_;
  std::string where_;
};

std::vector<std::string> ids_of(const std::vector<Lab>& labs) {
  std::vector<std::string> ids;
  for (const Lab& each : labs) ids.push_back(each.id());
  return ids;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos && name.size() < 100;
}

}  // namespace

std::string_view kind_name(LabKind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<LabKind, std::string_view>::first)->second;
}

std::string Lab::id() const {
  return fmt::format("{:02}_{}", number, name);
}

std::int64_t Lab::points() const {
  std::int64_t sum = 0;
  for (const LabTest& each : tests) sum += each.points;
  return sum;
}

const LabTest& Lab::test(std::string_view test_name) const {
  const auto found = std::ranges::find(tests, test_name, &LabTest::name);
  if (found == tests.end()) {
    throw InputError((folder / "lab.json").string(), "$.tests",
                     fmt::format("the test '{}' of this lab's grader is missing", test_name));
  }
  return *found;
}

std::int64_t Lab::hints() const {
  std::int64_t count = 0;
  while (fs::is_regular_file(folder / "hints" / fmt::format("{}.md", count + 1))) ++count;
  return count;
}

const Lab& Course::lab(std::string_view word) const {
  const auto means = [&](const Lab& each) {
    return word == std::to_string(each.number) || word == fmt::format("{:02}", each.number) || word == each.name ||
           word == each.id();
  };
  const auto found = std::ranges::find_if(labs, means);
  if (found != labs.end()) return *found;
  if (const auto other = std::ranges::find_if(without_grader, means); other != without_grader.end()) {
    throw InputError("command line", "LAB",
                     fmt::format("{} is a lab without a grader in this kvscope: update kvscope, or correct the name of "
                                 "the folder {}",
                                 other->id(), other->folder.string()));
  }
  if (const std::string id = lab_of_folder(fs::path(word)); !id.empty()) {
    const auto its = std::ranges::find(labs, id, &Lab::id);
    if (its != labs.end()) {
      throw InputError(
          "command line", "LAB",
          fmt::format("'{}' is the folder of a lab: write the lab before it, {} {}", word, its->number, word));
    }
  }
  throw InputError("command line", "LAB",
                   fmt::format("'{}' is no lab: use one of {}", word, fmt::join(ids_of(labs), ", ")));
}

std::optional<fs::path> course_folder(const fs::path& program_folder) {
  std::error_code ignored;
  const fs::path installed = program_folder.parent_path() / "share" / "kvscope" / "docs" / "labs";
  if (fs::is_directory(installed, ignored)) return installed;
  for (fs::path folder = program_folder; folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "docs" / "labs", ignored)) return folder / "docs" / "labs";
  }
  return std::nullopt;
}

Lab load_lab(const fs::path& folder) {
  const fs::path path = folder / "lab.json";
  const json::Value value = json::parse(read_file(path, kMaxManifest), path.string());
  std::vector<Fault> faults;
  Manifest manifest(value, faults, "$");
  Lab lab;
  lab.folder = folder;
  lab.number = manifest.whole("number", 1, 99);
  lab.name = manifest.text("name");
  lab.title = manifest.text("title");
  const std::string kind = manifest.text("kind");
  const auto found = std::ranges::find(kKinds, kind, &std::pair<LabKind, std::string_view>::second);
  if (found == kKinds.end()) {
    manifest.fault("kind", fmt::format("'{}' is no kind: use answers, cpp, cuda, schedule, report or hunt", kind));
  } else {
    lab.kind = found->first;
  }
  lab.minutes = manifest.whole("minutes", 1, 600);
  lab.goal = manifest.text_or_empty("goal");
  lab.scenario = manifest.text_or_empty("scenario");
  if (!lab.scenario.empty() && !is_plain_name(lab.scenario))
    manifest.fault("scenario", "must be a file of the gallery");
  lab.place = manifest.place().value_or(NoteLink());
  lab.reads = manifest.texts("reads");
  lab.files = manifest.texts("files");
  manifest.reject_unknown_keys(kKeys);
  if (lab.files.empty() || !std::ranges::all_of(lab.files, is_plain_name)) {
    manifest.fault("files", "must name at least one file, without a folder");
  }
  lab.triton = manifest.text_or_empty("triton");
  lab.without_triton = manifest.text_or_empty("without_triton");
  if (lab.kind == LabKind::cuda && lab.triton.empty() == lab.without_triton.empty()) {
    manifest.fault("triton", "must name a file, or $.without_triton must have the reason why there is none");
  }
  if (lab.kind != LabKind::cuda && !(lab.triton.empty() && lab.without_triton.empty())) {
    manifest.fault("triton", "is for labs of kind cuda");
  }
  if (!lab.triton.empty() && (!is_plain_name(lab.triton) || lab.files.size() != 1)) {
    manifest.fault("triton", "must be a name without a folder, in place of one file");
  }
  for (const json::Value& item : manifest.array("tests")) {
    Manifest test(item, faults, fmt::format("$.tests[{}]", lab.tests.size()));
    lab.tests.push_back({test.text("name"), test.whole("points", 1, 1000), test.text("text"),
                         static_cast<int>(test.whole_or_one("hint", 9)), test.place()});
    test.reject_unknown_keys(kTestKeys);
  }
  for (auto test = lab.tests.begin(); test != lab.tests.end(); ++test) {
    if (std::ranges::find(lab.tests.begin(), test, test->name, &LabTest::name) != test) {
      manifest.fault("tests", fmt::format("the name '{}' occurs twice", test->name));
    }
  }
  if (lab.tests.empty()) manifest.fault("tests", "must not be empty");
  if (faults.empty() && folder.filename() != lab.id()) {
    faults.push_back({"$.name", fmt::format("number and name give '{}', but the folder is '{}'", lab.id(),
                                            folder.filename().string())});
  }
  if (!faults.empty()) throw InputError(path.string(), std::move(faults));
  return lab;
}

Course load_course(const fs::path& whole) {
  std::error_code error, ignored;
  const fs::path folder = fs::is_directory(whole / "labs", ignored) ? whole / "labs" : whole;
  Course course{folder, {}, {}};
  const fs::directory_iterator entries(folder, error);
  if (error) {
    throw InputError(folder.string(), "",
                     fmt::format("is not a course: {}; use --course DIR", system_message(error.value())));
  }
  for (const auto& entry : entries) {
    if (!fs::is_regular_file(entry.path() / "lab.json", ignored)) continue;
    Lab lab = load_lab(entry.path());
    (has_grader(lab.id()) ? course.labs : course.without_grader).push_back(std::move(lab));
  }
  if (course.labs.empty() && !course.without_grader.empty()) {
    throw InputError(
        folder.string(), "",
        fmt::format("has no lab with a grader in this kvscope, only {}: update kvscope, or use --course DIR",
                    fmt::join(ids_of(course.without_grader), ", ")));
  }
  if (course.labs.empty()) {
    throw InputError(folder.string(), "", "has no folder NN_name/ with a lab.json: use --course DIR");
  }
  for (std::vector<Lab>* list : {&course.labs, &course.without_grader}) std::ranges::sort(*list, {}, &Lab::number);
  return course;
}

}  // namespace kvscope::labs

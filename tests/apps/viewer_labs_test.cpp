// The labs in the viewer: every place that a manifest names exists in its scenario, and the results of a check are read.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <QtCore/QTemporaryDir>

#include "apps/kvscope-viewer/lab_list.h"
#include "apps/kvscope-viewer/simulate.h"
#include "apps/labs/course.h"
#include "apps/labs/report.h"
#include "core/base/errors.h"
#include "viz/playback/run.h"
#include "viz/window/note_wish.h"

namespace kvscope::apps::viewer_labs_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const fs::path kPrograms = fs::path(KVSCOPE_VIEWER).parent_path();
const fs::path kCourse = fs::path(KVSCOPE_SOURCE_DIR) / "docs" / "labs";

// A step that the scenario lacks, an object that Find does not take, a tile outside of the model.
TEST(LabPlaces, ExistInTheirScenarios) {
  const viz::Labs labs = lab_list(kPrograms);
  ASSERT_THAT(labs.entries, Not(IsEmpty())) << labs.why_empty;
  std::map<std::string, std::shared_ptr<const viz::Run>> runs;
  for (const viz::LabEntry& entry : labs.entries) {
    const labs::Lab lab = labs::load_lab(kCourse / entry.id);
    EXPECT_EQ(entry.scenario.empty(), lab.scenario.empty()) << entry.id << ": the gallery has no " << lab.scenario;
    if (entry.scenario.empty()) {
      EXPECT_EQ(entry.place, NoteLink()) << entry.id << ": a place without a scenario";
      continue;
    }
    std::shared_ptr<const viz::Run>& run = runs[entry.scenario];
    if (!run) run = viz::Run::open(simulate_in_memory(entry.scenario, {}), entry.scenario);
    EXPECT_NO_THROW(static_cast<void>(viz::wish_of({entry.id, entry.place}, run->facts()))) << entry.id;
    EXPECT_FALSE(entry.place.view.empty()) << entry.id << ": the place shown depends on the last view";
    for (const labs::LabTest& test : lab.tests) {
      if (!test.place) continue;
      EXPECT_NO_THROW(static_cast<void>(viz::wish_of({test.name, *test.place}, run->facts())))
          << entry.id << ' ' << test.name;
    }
  }
}

TEST(LabList, NamesTheReasonWithoutACourse) {
  const viz::Labs labs = lab_list("/nowhere/bin");
  EXPECT_THAT(labs.entries, IsEmpty());
  EXPECT_THAT(labs.why_empty, HasSubstr("/nowhere/bin"));
}

class LabResults : public testing::Test {
 protected:
  [[nodiscard]] std::string put(const std::string& text) const {
    const std::string path = (fs::path(folder.path().toStdString()) / "result.json").string();
    std::ofstream(path) << text;
    return path;
  }
  // A grade of lab 02 in which `blocks` fails with a picture.
  [[nodiscard]] static std::string result() {
    const labs::Lab lab = labs::load_lab(kCourse / "02_rows");
    labs::Grade grade{"ada", lab.id(), labs::public_seed(lab.id()), {}};
    for (const labs::LabTest& test : lab.tests) {
      if (test.name == "blocks") {
        labs::CasePicture picture{{{"rows", {}, {{"row", {{"7", labs::CellMark::wrong}}}}}}};
        grade.results.push_back(labs::with_picture(labs::failed(lab, test.name, "why", "case"), std::move(picture)));
      } else {
        grade.results.push_back(labs::passed(lab, test.name));
      }
    }
    return json::dump(labs::grade_json(lab, grade));
  }
  QTemporaryDir folder;
  viz::Labs labs = lab_list(kPrograms);
};

TEST_F(LabResults, HaveMessageCasePictureAndThePlaceOfTheTest) {
  const auto read = read_lab_result(put(result()), labs);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->lab.id, "02_rows");
  EXPECT_EQ(read->student, "ada");
  const labs::Lab lab = labs::load_lab(kCourse / "02_rows");
  ASSERT_EQ(read->tests.size(), lab.tests.size());
  for (const viz::LabTestResult& test : read->tests) {
    EXPECT_EQ(test.passed(), test.name != "blocks");
    EXPECT_EQ(test.place, lab.test(test.name).place.value_or(lab.place));
    if (test.passed()) continue;
    EXPECT_EQ(test.message, "why");
    EXPECT_EQ(test.text, "case");
    EXPECT_THAT(test.picture, HasSubstr("<svg"));
  }
}

TEST_F(LabResults, AreToldFromOtherFiles) {
  EXPECT_FALSE(read_lab_result(put("{\"kvscope_scenario\": 1}"), labs));
  EXPECT_FALSE(read_lab_result(put(""), labs));
  EXPECT_FALSE(read_lab_result("/nowhere/at.all", labs));
  EXPECT_FALSE(read_lab_result(folder.path().toStdString(), labs)) << "a folder";
}

// Each member missing, of another kind, or outside of its range. A wrong seed named an option of the command line, a member of a test
// had no place, and points past the maximum were shown.
TEST_F(LabResults, AWrongMemberIsNamedWithItsPlace) {
  const json::Value good = json::parse(result(), "result.json");
  const auto fault_of = [&](const json::Value& value) -> std::string {
    const std::string path = put(json::dump(value));
    try {
      static_cast<void>(read_lab_result(path, labs));
    } catch (const InputError& error) {
      EXPECT_EQ(error.source(), path);
      return error.faults().size() == 1 ? error.faults()[0].where + " " + error.faults()[0].message : "several faults";
    }
    return "accepted";
  };
  ASSERT_EQ(fault_of(good), "accepted");
  const auto with = [](json::Value of, const std::string& key, const std::optional<json::Value>& member) {
    json::Object object = *of.as_object();
    std::erase_if(object, [&](const json::Member& each) { return each.first == key; });
    if (member) object.push_back({key, *member});
    return json::Value(std::move(object));
  };
  const auto in_test = [&](const std::string& key, const std::optional<json::Value>& member) {
    json::Array tests = *good.find("tests")->as_array();
    tests[1] = with(tests[1], key, member);
    return fault_of(with(good, "tests", json::Value(std::move(tests))));
  };
  const std::string asks = ": is this a file of kvscope lab --json?";
  for (const std::optional<json::Value>& wrong : {std::optional<json::Value>(), {json::Value(5)}, {json::Value(json::Array())}}) {
    for (const std::string key : {"student", "lab", "seed"}) {
      EXPECT_EQ(fault_of(with(good, key, wrong)), "$." + key + " must be a text" + asks);
    }
    EXPECT_EQ(fault_of(with(good, "tests", wrong && wrong->as_array() ? json::Value("none") : wrong)), "$.tests must be a list");
    for (const std::string key : {"name", "message", "case"}) {
      EXPECT_EQ(in_test(key, wrong), "$.tests[1]." + key + " must be a text" + asks);
    }
    for (const std::string key : {"maximum", "points", "hint"}) {
      EXPECT_EQ(in_test(key, wrong && wrong->is_number() ? json::Value("5") : wrong), "$.tests[1]." + key + " must be a number" + asks);
    }
  }
  EXPECT_EQ(fault_of(with(good, "seed", json::Value("12x"))),
            "$.seed '12x' is not a seed: use the 64 hexadecimal digits that kvscope lab grade printed");
  EXPECT_EQ(fault_of(with(good, "lab", json::Value("98_rows"))), "$.lab '98_rows' is no lab of the installed course");
  const double maximum = good.find("tests")->as_array()->at(1).find("maximum")->number();
  EXPECT_EQ(in_test("points", json::Value(maximum)), "accepted");
  EXPECT_EQ(in_test("points", json::Value(maximum + 1)),
            fmt::format("$.tests[1].points is {}: must be a number from 0 to {}", maximum + 1, maximum));
  EXPECT_EQ(in_test("points", json::Value(-1)), fmt::format("$.tests[1].points is -1: must be a number from 0 to {}", maximum));
  EXPECT_EQ(in_test("hint", json::Value(1e300)), "$.tests[1].hint is 1e+300: must be a whole number from 0 to 1000");
  // A score, a picture and a place are not in every test, nor is every test one of the manifest.
  EXPECT_EQ(in_test("score", json::Value("high")), "$.tests[1].score must be a number" + asks);
  EXPECT_EQ(in_test("picture", json::Value(5)), "accepted");
  EXPECT_EQ(in_test("name", json::Value("a test of another version")), "accepted");
}

// A course in folders of its own, as an installation has them: programs in bin, the course in docs/labs above it.
TEST(LabList, ACourseThatCannotBeReadNamesTheReasonAndAMissingGalleryTheLabsWithoutScenarios) {
  const QTemporaryDir made;
  const fs::path root = made.path().toStdString(), course = root / "docs" / "labs";
  fs::create_directories(root / "bin");
  fs::create_directories(course.parent_path());
  fs::copy(kCourse, course, fs::copy_options::recursive);
  const viz::Labs whole = lab_list(root / "bin");
  ASSERT_EQ(whole.entries.size(), lab_list(kPrograms).entries.size()) << whole.why_empty;
  for (const viz::LabEntry& entry : whole.entries) {
    EXPECT_THAT(entry.scenario, IsEmpty()) << entry.id;
    EXPECT_TRUE(fs::equivalent(entry.handout, course / entry.id / "README.md")) << entry.id;
  }
  std::ofstream(course / "02_rows" / "lab.json") << "{\"kvscope_lab\": ";
  const viz::Labs damaged = lab_list(root / "bin");
  EXPECT_THAT(damaged.entries, IsEmpty());
  EXPECT_THAT(damaged.why_empty, HasSubstr("02_rows/lab.json"));
}

// As in an installation that is incomplete: one scenario of the gallery is there, a folder has the name of another.
TEST(LabList, ScenariosThatTheGalleryLacksAreLeftOut) {
  const QTemporaryDir made;
  const fs::path root = made.path().toStdString(), course = root / "docs" / "labs", gallery = root / "apps" / "scenarios";
  fs::create_directories(course.parent_path());
  fs::create_directories(gallery);
  fs::copy(kCourse, course, fs::copy_options::recursive);
  std::map<std::string, std::string> scenarios;  // of each lab
  for (const viz::LabEntry& entry : lab_list(kPrograms).entries) {
    scenarios[entry.id] = entry.scenario.empty() ? "" : fs::path(entry.scenario).filename().string();
  }
  const std::string kept = scenarios.at("02_rows");
  ASSERT_THAT(kept, Not(IsEmpty()));
  std::ofstream(gallery / kept) << "{}";
  for (const auto& [id, name] : scenarios) {
    if (!name.empty() && name != kept) fs::create_directories(gallery / name);
  }
  for (const viz::LabEntry& entry : lab_list(root / "bin").entries) {
    EXPECT_EQ(entry.scenario, scenarios.at(entry.id) == kept ? (gallery / kept).string() : "") << entry.id;
  }
}

// Folders of a course that are none, empty, huge or damaged: the list names the first manifest that cannot be read.
TEST(LabList, AFolderThatIsNoLabIsSteppedOverAndADamagedOneIsNamed) {
  const QTemporaryDir made;
  const fs::path root = made.path().toStdString(), course = root / "docs" / "labs", added = course / "03_ta\tble";
  fs::create_directories(course);
  EXPECT_EQ(lab_list(root / "bin").why_empty, course.string() + ": has no folder NN_name/ with a lab.json: use --course DIR");
  fs::copy(kCourse / "02_rows", course / "02_rows", fs::copy_options::recursive);
  fs::create_directories(added / "lab.json");
  std::ofstream(course / "04_file") << "no folder";
  fs::create_symlink("05_loop", course / "05_loop");
  ASSERT_EQ(lab_list(root / "bin").entries.size(), 1u);
  EXPECT_EQ(lab_list(root / "bin").entries[0].id, "02_rows");
  fs::remove(added / "lab.json");
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{\"number\": 3"), std::string(8 << 20, ' '),
                                  std::string(100'000, '[')}) {
    std::ofstream(added / "lab.json") << text;
    const viz::Labs labs = lab_list(root / "bin");
    EXPECT_THAT(labs.entries, IsEmpty()) << text.substr(0, 20);
    EXPECT_THAT(labs.why_empty, HasSubstr("ble/lab.json: ")) << text.substr(0, 20);
  }
}

// The message was that the installed course has no such lab.
TEST_F(LabResults, OfACourseThatCannotBeReadNameItsFault) {
  const std::string path = put(result());
  const viz::Labs none{{}, "02_rows/lab.json: line 1: syntax error"};
  try {
    static_cast<void>(read_lab_result(path, none));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(fault_lines(error), std::vector<std::string>{path + ": is the result of a lab's check, and the course cannot be "
                                                           "read: 02_rows/lab.json: line 1: syntax error"});
  }
  EXPECT_FALSE(read_lab_result(put("{}"), none));
}

TEST_F(LabResults, ADamagedFileAndAnUnknownLabAreRejected) {
  EXPECT_THROW(static_cast<void>(read_lab_result(put(result().substr(0, 200)), labs)), InputError);
  std::string unknown = result();
  unknown.replace(unknown.find("02_rows"), 7, "98_rows");
  EXPECT_THROW(static_cast<void>(read_lab_result(put(unknown), labs)), InputError);
}

}  // namespace
}  // namespace kvscope::apps::viewer_labs_test

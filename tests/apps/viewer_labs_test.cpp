// The labs in the viewer: every place that a manifest names exists in its scenario, and the results of a check are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
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
}

TEST_F(LabResults, ADamagedFileAndAnUnknownLabAreRejected) {
  EXPECT_THROW(static_cast<void>(read_lab_result(put(result().substr(0, 200)), labs)), InputError);
  std::string unknown = result();
  unknown.replace(unknown.find("02_rows"), 7, "98_rows");
  EXPECT_THROW(static_cast<void>(read_lab_result(put(unknown), labs)), InputError);
}

}  // namespace
}  // namespace kvscope::apps::viewer_labs_test

#include "gpu/driver/program_reports.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/base/json.h"

namespace kvscope::driver_tests::program_reports_test {

using driver::ProgramReport;
using driver::ReportFormat;
using ptx::Severity;
using testing::HasSubstr;

// Two of one kind, one about no kernel, and a note; texts with what XML and JSON must escape.
std::vector<ProgramReport> reports() {
  return {{.kind = "RACE_WR", .severity = Severity::error, .text = "RACE_WR  <s> & \"t\"\n  by warp 1", .function = "cudaLaunchKernel",
           .call = 4, .kernel = "tile<64>", .source = "tile.cu:5"},
          {.kind = "LEAK", .severity = Severity::warning, .text = "LEAK  64 bytes", .function = "", .call = 0, .kernel = "", .source = ""},
          {.kind = "DOUBLE_FREE", .severity = Severity::error, .text = "DOUBLE_FREE", .function = "cudaFree", .call = 9, .kernel = "",
           .source = ""},
          {.kind = "RACE_WR", .severity = Severity::note, .text = "a note", .function = "cudaLaunchKernel", .call = 4, .kernel = "tile<64>",
           .source = "tile.cu:6"}};
}

std::string text_at(const json::Value& value, std::initializer_list<const char*> path) {
  const json::Value* at = &value;
  for (const char* key : path) {
    at = at == nullptr ? nullptr : at->find(key);
    if (at != nullptr && at->as_array() != nullptr && !at->as_array()->empty()) at = &at->as_array()->front();
  }
  return at == nullptr || at->as_string() == nullptr ? "(none)" : *at->as_string();
}

// The name wins over the ending; a name that is none is no silent text.
TEST(ReportFormats, AreChosenByNameAndWithoutOneByTheEnding) {
  EXPECT_EQ(driver::report_format("", "r.json"), ReportFormat::json);
  EXPECT_EQ(driver::report_format("", "r.xml"), ReportFormat::junit);
  EXPECT_EQ(driver::report_format("", "r.sarif"), ReportFormat::sarif);
  EXPECT_EQ(driver::report_format("", "r.sarif.txt"), ReportFormat::text);
  EXPECT_EQ(driver::report_format("", ""), ReportFormat::text);
  EXPECT_EQ(driver::report_format("json", "r.xml"), ReportFormat::json);
  EXPECT_EQ(driver::report_format("junit", "r.json"), ReportFormat::junit);
  EXPECT_EQ(driver::report_format("sarif", "r.json"), ReportFormat::sarif);
  EXPECT_EQ(driver::report_format("text", "r.json"), ReportFormat::text);
  try {
    (void)driver::report_format("xml", "r.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "command line rejected: --format: 'xml' is not one of text, json, junit, sarif");
  }
}

TEST(ReportFormats, NotesAreStoredAndAreNoFindings) {
  driver::ProgramReports all;
  for (const ProgramReport& report : reports()) all.add(report, false);
  EXPECT_EQ(all.all().size(), 4);
  EXPECT_EQ(all.findings(), 3);
  all.clear();
  EXPECT_EQ(all.all().size() + static_cast<std::size_t>(all.findings()), 0);
}

TEST(ReportFormats, APrintedReportIsFollowedByAnEmptyLine) {
  driver::ProgramReports all;
  testing::internal::CaptureStderr();
  all.add(reports().at(1), true);
  all.add(reports().at(2), false);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "LEAK  64 bytes\n\n");
}

TEST(ReportFormats, TextHasEveryReport) {
  EXPECT_EQ(driver::format_reports(reports(), ReportFormat::text, {}),
            "RACE_WR  <s> & \"t\"\n  by warp 1\n\nLEAK  64 bytes\n\nDOUBLE_FREE\n\na note\n\n");
  EXPECT_EQ(driver::format_reports({}, ReportFormat::text, {}), "");
}

TEST(ReportFormats, JsonHasEveryFieldOfEveryReport) {
  const json::Value out =
      json::parse(driver::format_reports(reports(), ReportFormat::json, {.program = "app", .sum = "hopper"}), "r.json");
  EXPECT_EQ(text_at(out, {"program"}) + " " + text_at(out, {"sum"}), "app hopper");
  const json::Array& list = *out.find("reports")->as_array();
  ASSERT_EQ(list.size(), 4);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ProgramReport expected = reports()[i];
    EXPECT_EQ(text_at(list[i], {"kind"}), expected.kind);
    EXPECT_EQ(text_at(list[i], {"severity"}), ptx::name(expected.severity));
    EXPECT_EQ(text_at(list[i], {"function"}), expected.function);
    EXPECT_EQ(text_at(list[i], {"kernel"}), expected.kernel);
    EXPECT_EQ(text_at(list[i], {"source"}), expected.source);
    EXPECT_EQ(text_at(list[i], {"text"}), expected.text);
    EXPECT_EQ(*list[i].find("call")->as_i64(), expected.call);
  }
}

// A case is named by the kernel, else by the runtime function, else it is of the end of the program.
TEST(ReportFormats, JUnitHasACaseForEachFinding) {
  const std::string out = driver::format_reports(reports(), ReportFormat::junit, {.program = "app", .sum = "seq"});
  EXPECT_THAT(out, HasSubstr("tests=\"3\""));
  EXPECT_THAT(out, HasSubstr("failures=\"3\""));
  EXPECT_THAT(out, HasSubstr("name=\"RACE_WR tile&lt;64&gt;\""));
  EXPECT_THAT(out, HasSubstr("name=\"LEAK at exit\""));
  EXPECT_THAT(out, HasSubstr("name=\"DOUBLE_FREE cudaFree\""));
  EXPECT_THAT(out, Not(HasSubstr("a note")));
  EXPECT_THAT(out, Not(HasSubstr("<s>")));
  // Without findings, the suite has one case that passed: a CI system counts an empty suite as a failure.
  const std::string none = driver::format_reports({reports().at(3)}, ReportFormat::junit, {.program = "app", .sum = "seq"});
  EXPECT_THAT(none, HasSubstr("tests=\"1\""));
  EXPECT_THAT(none, HasSubstr("failures=\"0\""));
  EXPECT_THAT(none, HasSubstr("name=\"no reports\""));
}

json::Value sarif_run(std::vector<ProgramReport> of) {
  const std::string text = driver::format_reports(of, ReportFormat::sarif, {.program = "app", .sum = "exact"});
  const json::Value out = json::parse(text, "r.sarif");
  EXPECT_EQ(text_at(out, {"version"}), "2.1.0");
  return out.find("runs")->as_array()->front();
}

TEST(ReportFormats, SarifHasARuleForEachKindAndALocationWhereTheSourceIsKnown) {
  const json::Value run = sarif_run(reports());
  EXPECT_EQ(text_at(run, {"properties", "sum"}), "exact");
  std::vector<std::string> rules, levels;
  for (const json::Value& rule : *run.find("tool")->find("driver")->find("rules")->as_array()) rules.push_back(text_at(rule, {"id"}));
  EXPECT_THAT(rules, testing::ElementsAre("DOUBLE_FREE", "LEAK", "RACE_WR"));
  const json::Array& results = *run.find("results")->as_array();
  for (const json::Value& result : results) levels.push_back(text_at(result, {"ruleId"}) + " " + text_at(result, {"level"}));
  EXPECT_THAT(levels, testing::ElementsAre("RACE_WR error", "LEAK warning", "DOUBLE_FREE error", "RACE_WR note"));
  EXPECT_EQ(results[1].find("locations"), nullptr);
  EXPECT_EQ(text_at(results[0], {"message", "text"}), reports()[0].text);
}

// The file is a URI: GitHub rejects a whole SARIF file for a space in one. A line is a number from 1.
TEST(ReportFormats, SarifLocationsAreUrisAndLines) {
  const auto location = [](const char* source) {
    ProgramReport report = reports()[0];
    report.source = source;
    const json::Value run = sarif_run({report});
    const json::Value* physical =
        run.find("results")->as_array()->front().find("locations")->as_array()->front().find("physicalLocation");
    const json::Value* region = physical->find("region");
    return text_at(*physical, {"artifactLocation", "uri"}) +
           (region == nullptr ? "" : " line " + std::to_string(*region->find("startLine")->as_i64()));
  };
  EXPECT_EQ(location("src/tile.cu:5"), "src/tile.cu line 5");
  EXPECT_EQ(location("/src/my kernels/50%#1.cu:12"), "/src/my%20kernels/50%25%231.cu line 12");
  EXPECT_EQ(location("sch\xc3\xb6n.cu:3"), "sch%C3%B6n.cu line 3");
  EXPECT_EQ(location("a:b.cu:3"), "a%3Ab.cu line 3");  // "a:" would be a scheme
  EXPECT_EQ(location("Src/[Z]~{z}.cu:3"), "Src/%5BZ%5D~%7Bz%7D.cu line 3");  // on both sides of the letters
  EXPECT_EQ(location("tile.cu:0"), "tile.cu");
  EXPECT_EQ(location("tile.cu:x"), "tile.cu");
  EXPECT_EQ(location("tile.cu"), "tile.cu");
}

}  // namespace kvscope::driver_tests::program_reports_test

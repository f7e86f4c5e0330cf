#include "core/scenario/import_csv.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/core/scenario/support.h"

namespace kvscope::import_csv_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

std::vector<Request> rows(const std::string& text, std::int64_t limit = 0) {
  return import_csv(kHeader + text, "t.csv", limit);
}
std::vector<Fault> faults(const std::string& text) {
  return faults_of([&] { (void)import_csv(text, "t.csv"); });
}
std::vector<Fault> row_faults(const std::string& text) {
  return faults(kHeader + text);
}

TEST(ImportCsv, ReadsTheFirstRowsOfTheRecordedTrace) {
  EXPECT_THAT(rows("2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n"),
              ElementsAre(Request{0, 4808, 10, {}}, Request{52'000, 3180, 8, {}}));
}

// No last newline, carriage returns, a byte-order mark, blank lines at the end: each alone and all together.
TEST(ImportCsv, ToleratesHowFilesEnd) {
  const std::vector<Request> expected = {{0, 7, 1, {}}, {1'000'000, 9, 0, {}}};
  const std::string a = "2024-01-01 00:00:00,7,1", b = "2024-01-01 00:00:01,9,0";
  EXPECT_EQ(rows(a + "\n" + b), expected);
  EXPECT_EQ(rows(a + "\n" + b + "\n"), expected);
  EXPECT_EQ(rows(a + "\n" + b + "\n\n  \n"), expected);
  EXPECT_EQ(
      import_csv("\xef\xbb\xbfTIMESTAMP,ContextTokens,GeneratedTokens\r\n" + a + "\r\n" + b + "\r\n\r\n", "t.csv"),
      expected);
}

// 0 to 9 decimals; parts of a microsecond are cut off, not rounded, and only after the subtraction: .9999999 to
// 1.0000001 is 0.2 us, which gives 0; cutting before the subtraction would give 1 us.
TEST(ImportCsv, TimesHaveUpToNineDecimals) {
  const auto second = [](const std::string& time) {
    return rows("2023-11-16 18:17:00,1,1\n2023-11-16 18:17:" + time + ",1,1").at(1).arrival_us;
  };
  EXPECT_EQ(second("01"), 1'000'000);
  EXPECT_EQ(second("00.5"), 500'000);
  EXPECT_EQ(second("00.000001"), 1);
  EXPECT_EQ(second("00.0000019"), 1);
  EXPECT_EQ(second("59.999999999"), 59'999'999);
  EXPECT_EQ(rows("2023-11-16 18:17:00.9999999,1,1\n2023-11-16 18:17:01.0000001,1,1").at(1).arrival_us, 0);
}

TEST(ImportCsv, TimesCrossDaysLeapYearsAndZones) {
  EXPECT_EQ(rows("2024-02-28 23:59:59,1,1\n2024-03-01T00:00:00Z,1,1").at(1).arrival_us, 86'401'000'000);
  EXPECT_EQ(rows("2023-12-31 23:59:59,1,1\n2024-01-01 00:00:00,1,1").at(1).arrival_us, 1'000'000);
  EXPECT_EQ(rows("2024-05-10 00:00:00+00:00,1,1\n2024-05-10 02:00:00+01:30,1,1").at(1).arrival_us, 1'800'000'000);
  EXPECT_EQ(rows("2024-05-10 00:00:00Z,1,1\n2024-05-09 23:00:00-01:30,1,1").at(1).arrival_us, 1'800'000'000);
}

// Time 0 is the earliest row, not the first one: otherwise the second would arrive before the start of the run.
TEST(ImportCsv, RowsMayStandInAnyOrder) {
  EXPECT_THAT(rows("2024-01-01 00:00:02,5,1\n2024-01-01 00:00:00,6,1\n2024-01-01 00:00:01,7,1"),
              ElementsAre(Request{2'000'000, 5, 1, {}}, Request{0, 6, 1, {}}, Request{1'000'000, 7, 1, {}}));
}

TEST(ImportCsv, ALimitStopsReadingBeforeABadRow) {
  const std::string text = "2024-01-01 00:00:00,5,1\n2024-01-01 00:00:00,6,1\nbad\n";
  EXPECT_EQ(rows(text, 1).size(), 1u);
  EXPECT_EQ(rows(text, 2).size(), 2u);
  EXPECT_THAT(faults_of([&] { (void)rows(text, 3); }), testing::SizeIs(1));
}

TEST(ImportCsv, ABadRowNamesItsLineAndColumn) {
  const std::string good = "2024-01-01 00:00:00,5,1\n";
  EXPECT_THAT(row_faults(good + "2024-01-01 00:00:00,0,1\n"),
              ElementsAre(Fault{
                  "line 3", "ContextTokens \"0\" is not an integer in [1, 2147483647]: correct or remove the row"}));
  EXPECT_THAT(row_faults("2024-01-01 00:00:00,5,-3\n"),
              ElementsAre(Fault{"line 2",
                                "GeneratedTokens \"-3\" is not an integer in [0, 2147483647]: correct or remove the "
                                "row"}));
  EXPECT_THAT(row_faults("2024-01-01 00:00:00,5 ,1e3\n"),
              ElementsAre(Fault{"line 2",
                                "ContextTokens \"5 \" is not an integer in [1, 2147483647]: correct or remove the row"},
                          Fault{"line 2",
                                "GeneratedTokens \"1e3\" is not an integer in [0, 2147483647]: correct or remove the "
                                "row"}));
  EXPECT_THAT(row_faults("2024-01-01 00:00:00,99999999999999999999,1\n"),
              ElementsAre(Fault{"line 2",
                                "ContextTokens \"99999999999999999999\" is not an integer in [1, 2147483647]: correct "
                                "or remove the row"}));
  EXPECT_THAT(
      row_faults("2024-01-01 00:00:00,,x\n"),
      ElementsAre(Fault{"line 2", "ContextTokens \"\" is not an integer in [1, 2147483647]: correct or remove the row"},
                  Fault{"line 2",
                        "GeneratedTokens \"x\" is not an integer in [0, 2147483647]: correct or remove the "
                        "row"}));
  // A long cell is cut, so that a message stays one line of a terminal.
  EXPECT_THAT(
      row_faults("2024-01-01 00:00:00," + std::string(41, '7') + ",1\n"),
      ElementsAre(Fault{"line 2", "ContextTokens \"" + std::string(40, '7') +
                                      "...\" is not an integer in [1, 2147483647]: correct or remove the row"}));
  EXPECT_THAT(row_faults("2024-01-01 00:00:00,2147483647,1\n"),
              ElementsAre(Fault{"line 2",
                                "2147483647 context and 1 generated tokens are together more than 2147483647: "
                                "correct or remove the row"}));
  EXPECT_THAT(row_faults(good + "\n" + good), ElementsAre(Fault{"line 3", "empty between rows: remove the line"}));
  EXPECT_THAT(row_faults("2024-01-01 00:00:00,5\n"),
              ElementsAre(Fault{"line 2",
                                "2 columns instead of 3 (TIMESTAMP,ContextTokens,GeneratedTokens): correct or "
                                "remove the row"}));
  EXPECT_THAT(row_faults("2024-01-01 00:00:00,5,1,\n"),
              ElementsAre(Fault{"line 2",
                                "4 columns instead of 3 (TIMESTAMP,ContextTokens,GeneratedTokens): correct or "
                                "remove the row"}));
}

TEST(ImportCsv, ATimeMustExist) {
  for (const char* time : {"",
                           "2024-01-01",
                           "2024-02-30 00:00:00",
                           "2023-02-29 00:00:00",
                           "2024-13-01 00:00:00",
                           "2024-01-01 24:00:00",
                           "2024-01-01 00:60:00",
                           "2024-01-01 00:00:60",
                           "2024-01-01 00:00:00.",
                           "2024-01-01 00:00:00.1234567890",
                           "1969-12-31 23:59:59",
                           "2262-01-01 00:00:00",
                           "2024-01-01 00:00:00+1",
                           "2024-01-01 00:00:00ZZ",
                           "24-01-01 00:00:00",
                           "2024",
                           "2024/01-01 00:00:00",
                           "2024-01",
                           "2024-01/01 00:00:00",
                           "2024-01-01_00:00:00",
                           "2024-01-01 00",
                           "2024-01-01 00-00:00",
                           "2024-01-01 00:00",
                           "2024-01-01 00:00-00",
                           "2024-01-01 00:00:00.5x",
                           "2024-01-01 00:00:00.5/",
                           "2024-01-01 00:00:00x01:00",
                           "2024-01-01 00:00:00+24:00",
                           "2024-01-01 00:00:00+01-00",
                           "2024-01-01 00:00:00-01:60"}) {
    EXPECT_THAT(
        row_faults(std::string(time) + ",5,1"),
        ElementsAre(Fault{"line 2", "TIMESTAMP \"" + std::string(time) +
                                        "\" is not a time between 1970 and 2261 such as 2023-11-16 18:17:03.9799600: "
                                        "correct or remove the row"}));
  }
}

TEST(ImportCsv, AnotherKindOfFileIsToldByItsHeader) {
  EXPECT_THAT(faults(""),
              ElementsAre(Fault{"", "no rows: the first line should be TIMESTAMP,ContextTokens,GeneratedTokens"}));
  EXPECT_THAT(faults("\x7f"
                     "ELF\x02\x01\n,,,"),
              ElementsAre(Fault{"line 1",
                                "the header is \"?ELF??\", not TIMESTAMP,ContextTokens,GeneratedTokens: is this a "
                                "trace of another kind?"}));
  EXPECT_THAT(
      faults(std::string(2'000'000, 'x') + "\ny"),
      ElementsAre(Fault{"line 1", "2000000 bytes are more than the 1048576 a row may have: is this a request trace?"},
                  Fault{"line 2",
                        "the header is \"y\", not TIMESTAMP,ContextTokens,GeneratedTokens: is this a trace "
                        "of another kind?"}));
}

// 20 faults are reported, the rest is counted: 19, 20 and 21 bad rows.
TEST(ImportCsv, TellsTwentyFaultsAndCountsTheRest) {
  const auto told = [](int bad) {
    std::string text;
    for (int i = 0; i < bad; ++i) text += "?\n";
    return row_faults(text);
  };
  EXPECT_EQ(told(19).size(), 19u);
  EXPECT_EQ(told(20).size(), 20u);
  EXPECT_EQ(told(21).size(), 21u);
  EXPECT_EQ(told(21).back(), (Fault{"", "and 1 more"}));
  EXPECT_EQ(told(500).back(), (Fault{"", "and 480 more"}));
}

TEST(ImportCsv, AHeaderWithoutRowsIsNoTrace) {
  EXPECT_EQ(row_faults(""), (std::vector<Fault>{{"", "no rows after the header: there is nothing to replay"}}));
}

}  // namespace
}  // namespace kvscope::import_csv_test

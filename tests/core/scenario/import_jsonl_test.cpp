#include "core/scenario/import_jsonl.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/core/scenario/support.h"

namespace kvscope::import_jsonl_test {
namespace {

using testing::ElementsAre;

std::vector<Request> rows(const std::string& text, std::int64_t limit = 0) {
  return import_jsonl(text, "t.jsonl", limit);
}
std::vector<Fault> faults(const std::string& text) {
  return faults_of([&] { (void)rows(text); });
}
// A row with the given members in place of valid ones.
std::string row(const std::string& time, const std::string& in, const std::string& out, const std::string& ids) {
  return "{\"timestamp\": " + time + ", \"input_length\": " + in + ", \"output_length\": " + out +
         ", \"hash_ids\": " + ids + "}";
}

// 700 tokens are one whole block and 188 of the next; 512 are one block and not a second, empty one.
TEST(ImportJsonl, HashIdsBecomeSpansAndTheLastIsCut) {
  constexpr std::uint64_t kBase = std::uint64_t{1} << 63;
  EXPECT_EQ(kImportedContent, kBase);
  EXPECT_THAT(rows(row("0", "700", "5", "[0, 41]") + "\n" + row("3", "512", "0", "[0]") + "\n" +
                   row("4", "513", "1", "[7, 8]")),
              ElementsAre(Request{0, 700, 5, {{kBase, 512}, {kBase + 41, 188}}}, Request{3000, 512, 0, {{kBase, 512}}},
                          Request{4000, 513, 1, {{kBase + 7, 512}, {kBase + 8, 1}}}));
}

TEST(ImportJsonl, ToleratesHowFilesEnd) {
  const std::string a = row("5", "1", "2", "[3]"), b = row("6", "2", "2", "[4]");
  const std::vector<Request> expected = rows(a + "\n" + b + "\n");
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[1].arrival_us, 1000);
  EXPECT_EQ(rows(a + "\n" + b), expected);
  EXPECT_EQ(rows(a + "\r\n" + b + "\r\n\r\n"), expected);
  EXPECT_EQ(rows("\xef\xbb\xbf" + a + "\n" + b + "\n \n"), expected);
}

TEST(ImportJsonl, OtherKeysAreLeftAloneAndHashIdsMayBeMissing) {
  EXPECT_THAT(rows(R"({"chat_id": 9, "timestamp": 1.5, "input_length": 600, "output_length": 2, "turn": [1]})"),
              ElementsAre(Request{0, 600, 2, {}}));
}

TEST(ImportJsonl, RowsMayStandInAnyOrderAndTimesHaveFractions) {
  const auto requests = rows(row("2.25", "1", "1", "[1]") + "\n" + row("1", "1", "1", "[1]"));
  EXPECT_EQ(requests[0].arrival_us, 1250);
  EXPECT_EQ(requests[1].arrival_us, 0);
}

TEST(ImportJsonl, ALimitStopsReadingBeforeABadRow) {
  const std::string text = row("0", "1", "1", "[1]") + "\n" + row("0", "1", "1", "[1]") + "\nbad";
  EXPECT_EQ(rows(text, 2).size(), 2u);
  EXPECT_EQ(faults(text).size(), 1u);
}

TEST(ImportJsonl, ABadRowNamesItsLine) {
  const std::string good = row("0", "1", "1", "[1]") + "\n";
  EXPECT_THAT(faults(good + row("0", "6955", "1", "[1, 2]")),
              ElementsAre(Fault{"line 2", "2 hash_ids cover at most 1024 tokens, but input_length is 6955: give 14"}));
  EXPECT_THAT(faults(good + row("0", "512", "1", "[1, 2]")),
              ElementsAre(Fault{"line 2", "2 hash_ids cover at most 1024 tokens, but input_length is 512: give 1"}));
  EXPECT_THAT(faults(row("0", "600", "1", "[1, -2]")),
              ElementsAre(Fault{"line 1",
                                "hash_ids[1] -2 is not an integer in [0, 4611686018427387903]: correct or remove the "
                                "row"}));
  EXPECT_THAT(faults(row("0", "5", "1", "[\"a\"]")),
              ElementsAre(Fault{"line 1",
                                "hash_ids[0] \"a\" is not an integer in [0, 4611686018427387903]: correct or remove "
                                "the row"}));
  EXPECT_THAT(faults(row("0", "5", "1", "null")),
              ElementsAre(Fault{"line 1", "hash_ids is null, not an array: correct or remove the row"}));
  EXPECT_THAT(
      faults(row("-1", "0", "2.5", "[1]")),
      ElementsAre(
          Fault{"line 1",
                "timestamp -1 is not a number of milliseconds in [0, 9000000000000]: correct or "
                "remove the row"},
          Fault{"line 1", "input_length 0 is not an integer in [1, 2147483647]: correct or remove the row"},
          Fault{"line 1", "output_length 2.5 is not an integer in [0, 2147483647]: correct or remove the row"}));
  EXPECT_THAT(
      faults(row("\"now\"", "[]", "{}", "[1]")),
      ElementsAre(
          Fault{"line 1",
                "timestamp \"now\" is not a number of milliseconds in [0, 9000000000000]: correct or "
                "remove the row"},
          Fault{"line 1", "input_length an array is not an integer in [1, 2147483647]: correct or remove the row"},
          Fault{"line 1",
                "output_length an object is not an integer in [0, 2147483647]: correct or remove the "
                "row"}));
  EXPECT_THAT(faults(row("0", "2147483647", "1", "[]")).front(),
              (Fault{"line 1",
                     "input_length 2147483647 and output_length 1 are together more than 2147483647: correct or "
                     "remove the row"}));
  // The last legal value of each number and the first that is not.
  EXPECT_THAT(
      faults(row("9000000000001", "2147483648", "2147483648", "[]")),
      ElementsAre(Fault{"line 1",
                        "timestamp 9000000000001 is not a number of milliseconds in [0, 9000000000000]: correct "
                        "or remove the row"},
                  Fault{"line 1",
                        "input_length 2147483648 is not an integer in [1, 2147483647]: correct or remove the "
                        "row"},
                  Fault{"line 1",
                        "output_length 2147483648 is not an integer in [0, 2147483647]: correct or remove the "
                        "row"}));
  EXPECT_THAT(
      faults(row("9000000000000", "5", "-1", "[4611686018427387903]")),
      ElementsAre(Fault{"line 1", "output_length -1 is not an integer in [0, 2147483647]: correct or remove the row"}));
  EXPECT_THAT(
      faults(row("0", "5", "1", "[4611686018427387904]")),
      ElementsAre(Fault{"line 1",
                        "hash_ids[0] 4611686018427387904 is not an integer in [0, 4611686018427387903]: correct "
                        "or remove the row"}));
  EXPECT_THAT(faults("{}"), ElementsAre(Fault{"line 1", "timestamp is missing: correct or remove the row"},
                                        Fault{"line 1", "input_length is missing: correct or remove the row"},
                                        Fault{"line 1", "output_length is missing: correct or remove the row"}));
  EXPECT_THAT(faults(good + "[1]"),
              ElementsAre(Fault{"line 2", "an array instead of an object: correct or remove the row"}));
  EXPECT_THAT(faults(good + "\n" + good), ElementsAre(Fault{"line 2", "empty between rows: remove the line"}));
}

// The parser reads one line at a time and reports line 1; the message must have the line of the file, 3.
TEST(ImportJsonl, BadSyntaxNamesTheFilesLineAndTheColumn) {
  const std::string good = row("0", "1", "1", "[1]") + "\n";
  const std::vector<Fault> told = faults(good + good + "{\"timestamp\": 0,}");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].where, "line 3");
  EXPECT_THAT(told[0].message, testing::StartsWith("column 1"));
  EXPECT_THAT(told[0].message, testing::Not(testing::HasSubstr("line 1")));
}

TEST(ImportJsonl, NoRowsAtAllIsAMistake) {
  const Fault none{"",
                   "no rows: every line should be an object with timestamp, input_length, output_length and hash_ids"};
  EXPECT_THAT(faults(""), ElementsAre(none));
  EXPECT_THAT(faults("\r\n\r\n"), ElementsAre(none));
}

TEST(ImportJsonl, ALongLineIsRejectedAndTheNextRead) {
  EXPECT_THAT(
      faults(std::string(1'048'577, ' ') + "1\n[]"),
      ElementsAre(Fault{"line 1", "1048578 bytes are more than the 1048576 a row may have: is this a request trace?"},
                  Fault{"line 2", "an array instead of an object: correct or remove the row"}));
}

}  // namespace
}  // namespace kvscope::import_jsonl_test

#include "core/base/errors.h"

#include <gmock/gmock.h>

#include <limits>
#include <new>
#include <stdexcept>

namespace kvscope::errors_test {
namespace {

template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing of that kind was thrown";
}

TEST(ErrorsTest, OneFaultStaysOnOneLineAndSeveralStandBelowEachOther) {
  EXPECT_EQ(format_faults("scenario", {{"$.cache.page_size", "0 is below 1"}}),
            "scenario rejected: $.cache.page_size: 0 is below 1");
  EXPECT_EQ(format_faults("tensor map 'K, layer 3'", {{"box axis 0", "256 B"}, {"", "no base address"}}),
            "tensor map 'K, layer 3' rejected, 2 faults:\n  box axis 0: 256 B\n  no base address");
  EXPECT_EQ(format_faults("scenario", {{"", "empty"}}), "scenario rejected: empty");
}

// A name in a file that ends its line and begins one that looks like another fault.
TEST(ErrorsTest, ALineBreakOfANameDoesNotBeginALine) {
  const InputError error("a.npy", "header", "unknown key 'x\nkvscope: all is well\n'");
  EXPECT_EQ(fault_lines(error),
            std::vector<std::string>{"a.npy: header: unknown key 'x\\u000akvscope: all is well\\u000a'"});
  const InputError excerpt("a.ptx", "3:1", "unexpected '}'\n    \n    ^");
  EXPECT_EQ(fault_lines(excerpt), std::vector<std::string>{"a.ptx: 3:1: unexpected '}'\n    \n    ^"});
}

// One line for each fault, which names the object unless the error has none.
TEST(ErrorsTest, EachKindOfErrorHasLinesForTheTerminal) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(fault_lines(InputError("a.json", "", "empty")), Lines{"a.json: empty"});
  EXPECT_EQ(fault_lines(InputError("a.json", {{"line 1", "bad"}, {"", "worse"}})),
            (Lines{"a.json: line 1: bad", "a.json: worse"}));
  EXPECT_EQ(fault_lines(GeometryError("tile 128 is not a multiple of page 48")),
            Lines{"tile 128 is not a multiple of page 48"});
  EXPECT_EQ(fault_lines(GeometryError("tensor map 'K'", {{"box axis 0", "256 B"}})),
            Lines{"tensor map 'K': box axis 0: 256 B"});
  EXPECT_EQ(fault_lines(GeometryError("tensor map 'K'", {{"box axis 0", "256 B"}, {"", "no base address"}})),
            (Lines{"tensor map 'K': box axis 0: 256 B", "tensor map 'K': no base address"}));
  EXPECT_EQ(fault_lines(std::bad_alloc()), Lines{"out of memory: ask for fewer tokens, layers or heads at a time"});
  EXPECT_EQ(fault_lines(std::runtime_error("late")), Lines{"late"});
}

TEST(ErrorsTest, AnErrorNumberWithoutWordsIsPrintedAsANumber) {
  EXPECT_EQ(system_message(2), "No such file or directory");
  EXPECT_EQ(system_message(99999), "error 99999");
}

TEST(ErrorsTest, EachKindIsCaughtAsTheStandardKindItDerivesFrom) {
  EXPECT_THROW(throw IndexError("x"), std::out_of_range);
  EXPECT_THROW(throw GeometryError("x"), std::invalid_argument);
  EXPECT_THROW(throw UnsupportedError("x"), std::logic_error);
  EXPECT_THROW(throw OverflowError("x"), std::overflow_error);
  EXPECT_THROW(throw InputError("a.json", "line 1", "x"), std::runtime_error);
}

TEST(ErrorsTest, FaultsStayDataThatAViewerCanMark) {
  const InputError input("a.json", {{"line 1, column 2", "bad"}, {"line 3, column 4", "worse"}});
  EXPECT_EQ(input.source(), "a.json");
  ASSERT_EQ(input.faults().size(), 2u);
  EXPECT_EQ(input.faults()[1], (Fault{"line 3, column 4", "worse"}));
  EXPECT_EQ(InputError("command line", "--seq", "7 is outside [0, 5)").what(),
            std::string("command line rejected: --seq: 7 is outside [0, 5)"));
  const GeometryError plain("tile 128 is not a multiple of page 48");
  EXPECT_EQ(plain.what(), std::string("tile 128 is not a multiple of page 48"));
  EXPECT_EQ(plain.faults(), (std::vector<Fault>{{"", "tile 128 is not a multiple of page 48"}}));
}

TEST(ErrorsTest, IndicesAreAcceptedUpToTheEndAndRejectedFromIt) {
  constexpr std::int64_t kEnd = 5;
  for (const std::int64_t inside : {0, 1, 4}) EXPECT_NO_THROW(check_index("head", inside, kEnd));
  for (const std::int64_t outside : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, kEnd, kEnd + 1}) {
    EXPECT_THROW(check_index("head", outside, kEnd), IndexError) << outside;
  }
  EXPECT_THROW(check_index("block", 0, 0), IndexError);
  EXPECT_EQ(message_of<IndexError>([] { check_index("head", 5, 2); }), "head 5 is outside [0, 2)");
  EXPECT_EQ(message_of<IndexError>([] { check_index("token", -1, 9, "give a position of the sequence"); }),
            "token -1 is outside [0, 9): give a position of the sequence");
}

// Checked in every build: an assertion that NDEBUG removes would let a wrong address through in release builds.
TEST(ErrorsDeathTest, AnAssertionStopsTheProgramAndSaysWhere) {
  const int pages = 3;
  KVSCOPE_ASSERT(pages == 3);
  EXPECT_DEATH(KVSCOPE_ASSERT(pages == 4), "internal error at .*errors_test.cpp:[0-9]+: pages == 4 is false");
}

}  // namespace
}  // namespace kvscope::errors_test

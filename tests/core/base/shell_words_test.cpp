#include "core/base/shell_words.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/property.h"

namespace kvscope::shell_words_test {
namespace {

using testing::ElementsAre;

// Words with everything that means something to a shell.
std::vector<std::string> words() {
  std::vector<std::string> out(prop::in_range<std::size_t>(0, 6));
  for (std::string& word : out) word = prop::text_of(" \t\n'\"\\ab,;=@%#$(){}[]-/~");
  return out;
}

TEST(ShellWords, AreThoseThatTheLineWasMadeOf) {
  EXPECT_TRUE(prop::check([] {
    const std::vector<std::string> all = words();
    RC_ASSERT(shell_words(shell_line(all)) == all);
  }));
}

TEST(ShellWords, AreSeparatedAsByAShell) {
  EXPECT_THAT(shell_words(""), testing::IsEmpty());
  EXPECT_THAT(shell_words(" \t\n "), testing::IsEmpty());
  EXPECT_THAT(shell_words("--policy  early\t--arg\nn=4 "), ElementsAre("--policy", "early", "--arg", "n=4"));
  EXPECT_THAT(shell_words("a'b c'\"d e\"f"), ElementsAre("ab cd ef"));
  EXPECT_THAT(shell_words("'' \"\""), ElementsAre("", ""));
  EXPECT_THAT(shell_words(R"("a\"b" 'a\b' a\ b)"), ElementsAre("a\"b", "a\\b", "a b"));
  EXPECT_EQ(shell_line({"--arg", "n=6 4", "", "it's"}), R"(--arg 'n=6 4' '' 'it'\''s')");
}

TEST(ShellWords, AQuoteThatDoesNotEndIsAnInputError) {
  for (const char* line : {"'", "\"", "a 'b c", "a \"b 'c'", R"("\")", "it's"}) {
    try {
      static_cast<void>(shell_words(line));
      ADD_FAILURE() << line;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("does not end")) << line;
      EXPECT_THAT(error.what(), testing::HasSubstr(line));
    }
  }
}

TEST(ShellWords, AQuotedWordIsOneWord) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's"), R"('it'\''s')");
  EXPECT_THAT(shell_words(shell_quoted("a b\\'\"")), ElementsAre("a b\\'\""));
}

}  // namespace
}  // namespace kvscope::shell_words_test

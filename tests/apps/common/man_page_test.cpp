// A man page of words that no program has now: characters that roff would take for requests or print as others, and
// sections with text, lines or neither. tests/apps/man_page_test.py tests the pages of the programs.
#include "apps/common/man_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace kvscope::apps::man_page_test {
namespace {

TEST(ManPage, EscapesWhatRoffWouldChange) {
  CommandWords words;
  words.description = ".hidden files\n'quoted' a.b ~2^63 \\n";
  words.usage = "tool [OPTIONS]";
  OptionWords& option = words.options.emplace_back();
  option.names = {"--dot"};
  option.value = "A^B";
  option.description = ".5 or more";
  option.group = "Options";
  words.sections = {{"Notes", "'tis one", {}}, {"Examples", "", {"  tool ~", ".tool"}}, {"Exit codes", "0 fine", {}}};
  EXPECT_EQ(man_page("tool", words), fmt::format(R"roff(.TH TOOL 1 "" "tool {}" "User Commands"
.SH NAME
tool \- \&.hidden files
\&'quoted' a.b \(ti2\(ha63 \en
.SH SYNOPSIS
\fBtool [OPTIONS]\fR
.SH DESCRIPTION
\&.hidden files
\&'quoted' a.b \(ti2\(ha63 \en
.SH OPTIONS
.TP
\fB\-\-dot\fR \fIA\(haB\fR
\&.5 or more
.SH NOTES
\&'tis one
.SH EXAMPLES
.PP
.nf
  tool \(ti
\&.tool
.fi
.SH EXIT STATUS
0 fine
.SH SEE ALSO
.BR kvscope (1),
.BR kvscope\-viewer (1),
.BR gpu\-check (1)
)roff",
                                                 KVSCOPE_VERSION));
}

// A command's section has its text before its lines, and may have only one of them. The closing dot of NAME's phrase is
// left out where there is one, and a description may be missing.
TEST(ManPage, SectionsHaveTextOrLinesOrBoth) {
  CommandWords words;
  words.usage = "gpu-check";
  CommandWords& run = words.subcommands.emplace_back();
  run.path = {"run"};
  run.description = "Runs it";
  run.usage = "gpu-check run";
  run.sections = {{"Note", "text alone", {}},
                  {"Examples", "", {"gpu-check run"}},
                  {"Files", "both", {"a.b"}},
                  {"Exit codes", "0 fine", {}}};
  const std::string page = man_page("gpu-check", words);
  EXPECT_NE(page.find(".SH NAME\ngpu\\-check \\- \n.SH SYNOPSIS\n"), std::string::npos) << page;
  EXPECT_EQ(page.substr(page.find(".SH COMMANDS")), R"roff(.SH COMMANDS
.SS run
Runs it.
.PP
\fBgpu\-check run\fR
.PP
Note:
text alone
.PP
Examples:
.PP
.nf
gpu\-check run
.fi
.PP
Files:
both
.PP
.nf
a.b
.fi
.SH SEE ALSO
.BR kvscope (1),
.BR kvscope\-viewer (1)
)roff");
  words.description = "Compares GPUs.";
  EXPECT_NE(man_page("gpu-check", words).find("gpu\\-check \\- compares GPUs\n"), std::string::npos);
}

}  // namespace
}  // namespace kvscope::apps::man_page_test

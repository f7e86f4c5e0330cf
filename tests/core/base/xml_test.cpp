#include "core/base/xml.h"

#include <gtest/gtest.h>

namespace kvscope::xml_test {
namespace {

TEST(XmlText, EscapesWhatAnAttributeCannotHoldAndKeepsTheRest) {
  EXPECT_EQ(xml_text("a < \"b\" & c > d"), "a &lt; &quot;b&quot; &amp; c &gt; d");
  EXPECT_EQ(xml_text("h\xc3\xa9"), "h\xc3\xa9");
}

// An XML reader converts an unescaped line end in an attribute to a space.
TEST(XmlText, KeepsLineEndsAndTabsAsNumbers) {
  EXPECT_EQ(xml_text("a\nb\tc\r"), "a&#10;b&#9;c&#13;");
}

TEST(XmlText, PutsAQuestionMarkForWhatXmlCannotHold) {
  EXPECT_EQ(xml_text("a\x01\xff z"), "a?? z");
  EXPECT_EQ(xml_text("\xef\xbf\xbd \xef\xbf\xbe \xef\xbf\xbf"), "\xef\xbf\xbd ??? ???") << "U+FFFD, FFFE, FFFF";
}

}  // namespace
}  // namespace kvscope::xml_test

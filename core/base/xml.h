// Text for an XML file, as attribute or content. Whatever XML 1.0 cannot hold (control characters, bytes that are not
// UTF-8) becomes a question mark; line ends and tabs are kept, also in an attribute.
// Example: xml_text("a < \"b\"") == "a &lt; &quot;b&quot;".
#pragma once

#include <string>
#include <string_view>

namespace kvscope {

[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace kvscope

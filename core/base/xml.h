// Text for an XML file, as attribute or content. What XML 1.0 cannot hold (control characters, bytes that are no UTF-8)
// becomes a question mark; line ends and tabs survive an attribute.
// Example: xml_text("a < \"b\"") == "a &lt; &quot;b&quot;".
#pragma once

#include <string>
#include <string_view>

namespace kvscope {

[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace kvscope

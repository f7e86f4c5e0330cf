#include "apps/common/terminal_output.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/terminal_text.h"

namespace kvscope::apps {

TerminalOutput::TerminalOutput(std::ostream& stream) : stream_(stream), below_(stream.rdbuf()) {
  text_.reserve(6 * buffer_.size());
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  stream_.rdbuf(this);
}

TerminalOutput::~TerminalOutput() {
  sync();
  stream_.rdbuf(below_);
}

bool TerminalOutput::write(std::size_t kept) {
  const std::string_view held(pbase(), static_cast<std::size_t>(pptr() - pbase()));
  text_.clear();
  append_terminal_text(text_, held.substr(0, held.size() - kept));
  const auto size = static_cast<std::streamsize>(text_.size());
  const bool is_written = below_->sputn(text_.data(), size) == size;
  std::copy(held.end() - static_cast<std::ptrdiff_t>(kept), held.end(), buffer_.begin());
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  pbump(static_cast<int>(kept));
  return is_written;
}

TerminalOutput::int_type TerminalOutput::overflow(int_type c) {
  if (!write(unfinished_bytes({pbase(), static_cast<std::size_t>(pptr() - pbase())}))) return traits_type::eof();
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  return sputc(traits_type::to_char_type(c));
}

int TerminalOutput::sync() {
  return write(0) && below_->pubsync() == 0 ? 0 : -1;
}

}  // namespace kvscope::apps

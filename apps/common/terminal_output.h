// A program's standard output and standard error with terminal_text() applied to everything that is printed. The escape
// is applied here rather than where names are printed, so that no message can be left out.
#pragma once

#include <array>
#include <iostream>
#include <streambuf>
#include <string>

namespace kvscope::apps {

// Between a stream and its buffer, from construction to destruction.
class TerminalOutput final : public std::streambuf {
 public:
  explicit TerminalOutput(std::ostream& stream);
  ~TerminalOutput() override;
  TerminalOutput(const TerminalOutput&) = delete;
  TerminalOutput& operator=(const TerminalOutput&) = delete;

 protected:
  int_type overflow(int_type c) override;
  int sync() override;  // also writes the bytes of a character that was cut off

 private:
  [[nodiscard]] bool write(std::size_t kept);  // all but the last `kept` bytes of the buffer

  std::ostream& stream_;
  std::streambuf* below_;
  std::array<char, 1 << 14> buffer_;
  std::string text_;  // what is printed of the buffer; has room from the beginning, so that printing allocates nothing
};

}  // namespace kvscope::apps

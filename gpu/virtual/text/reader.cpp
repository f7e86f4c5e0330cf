#include "gpu/virtual/text/detail/reader.h"

#include <fmt/format.h>

namespace kvscope::ptx {

Token Reader::expect_word(std::string_view what) {
  if (!at_word()) fail_expected(what);
  return take();
}

void Reader::fail_expected(char c) const {
  fail(at(), fmt::format("expected '{}', found {}", c, token().shown()));
}

void Reader::fail_expected(std::string_view what) const {
  fail(at(), fmt::format("expected {}, found {}", what, token().shown()));
}

bool Reader::note(const TextFault& fault) {
  errors_.push_back(fault.error);
  return errors_.size() < kMostErrors;
}

void Reader::skip_statement(int depth) {
  for (;;) {
    try {
      if (at_end() || (is('}') && depth == 0)) return;
      const bool last = is(';');
      if (is('{')) ++depth;
      if (is('}')) --depth;
      advance();
      if (last) return;
    } catch (const TextFault&) {  // inside the skipped statement
    }
  }
}

}  // namespace kvscope::ptx

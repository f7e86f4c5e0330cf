// The state shared by the parts of the parser while one text is read.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "gpu/virtual/text/detail/reader.h"
#include "gpu/virtual/text/detail/source_map.h"
#include "gpu/virtual/text/detail/symbols.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

struct Context {
  explicit Context(std::string_view text) : reader(text) {}

  Reader reader;
  SymbolTable symbols;
  SourceMap sources;
  Module module;
  std::deque<std::string> pieces;        // Module::pieces
  std::int64_t registers = 0;            // of all functions together
  std::vector<std::int32_t> parameters;  // Module::variables: parameters of the function being read
};

// Declares a name in the innermost scope. Throws TextFault "duplicate symbol 'x', first at 3:7" if it is already
// declared.
void declare(Context& context, std::string_view name, SymbolKind kind, std::int32_t index, TextPlace at);
// Throws TextFault if the innermost scope already has the name.
void require_free(const Context& context, std::string_view name, TextPlace at);

[[nodiscard]] inline std::int32_t size32(std::size_t size) {
  return static_cast<std::int32_t>(size);
}

}  // namespace kvscope::ptx

// What the parts of the grammar share while one text is read.
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
  std::vector<std::int32_t> parameters;  // Module::variables of the function being read: its own
};

// Declares a name of the innermost scope; TextFault "duplicate symbol 'x', first at 3:7" when it has it already.
void declare(Context& context, std::string_view name, SymbolKind kind, std::int32_t index, TextPlace at);
// TextFault when the scope has the name.
void require_free(const Context& context, std::string_view name, TextPlace at);

[[nodiscard]] inline std::int32_t size32(std::size_t size) {
  return static_cast<std::int32_t>(size);
}

}  // namespace kvscope::ptx

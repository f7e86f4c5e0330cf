// What a name means here: the names of the module, of a function, of each { } in it. Inner ones hide outer ones.
//
//   .reg .b32 %r<5>;                %r -> range of 5 from register 0
//   { .reg .b32 low, %r<2>;         low -> register 7; %r0, %r1 are new, %r2..%r4 still the outer ones
//     add.s32 %r1, low, %r4;
//   }                               low is gone
//
// A chained hash table over a stack of symbols: the newest of a chain stands first, so that leaving a scope takes
// symbols off the stack and off the front of their chains, and a range is one symbol however many registers it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

enum class SymbolKind : std::uint8_t {
  reg,       // index: Function::registers
  range,     // index: of %r0; count of them, each `stride` registers
  variable,  // index: Module::variables
  function,  // index: Module::functions
  label,     // index: statement
  table,     // index: Function::tables
  // Only so that a name with digits at its end is looked for in the right way; never found itself.
  digits,  // a symbol "%r12" of its own was declared: this one stands at "%r"
};

struct Symbol {
  std::string_view name;
  SymbolKind kind = SymbolKind::reg;
  std::int32_t index = -1;
  std::int32_t count = 1;
  std::int32_t stride = 1;
  std::int32_t scope = 0;
  TextPlace at;
  std::uint32_t hash = 0;
  std::int32_t next = -1;  // older symbol of the chain
};

// Symbol and the register, variable, ... that is meant: 3 of a range from 7 is index 10.
struct Found {
  const Symbol* symbol = nullptr;  // until the next declaration
  std::int32_t index = -1;
  explicit operator bool() const { return symbol != nullptr; }
};

class SymbolTable {
 public:
  SymbolTable();

  void open_scope() { scopes_.push_back(symbols_.size()); }
  void close_scope();
  [[nodiscard]] std::int32_t scope() const { return static_cast<std::int32_t>(scopes_.size()); }

  [[nodiscard]] Found find(std::string_view name) const;
  // As find, but only what the innermost scope declares.
  [[nodiscard]] Found find_here(std::string_view name) const;

  // The caller has looked whether the name is free.
  void declare(std::string_view name, SymbolKind kind, std::int32_t index, TextPlace at);
  // As for ptxas, %r01 is %r1, and a prefix with digits at its end ("%q1<3>") declares registers that no name finds.
  void declare_range(std::string_view prefix, std::int32_t first, std::int32_t count, std::int32_t stride,
                     TextPlace at);

 private:
  void push(Symbol symbol);
  void push_digits(std::string_view prefix, TextPlace at);
  [[nodiscard]] std::int32_t newest(std::string_view name, std::uint32_t hash) const;  // not of a range
  [[nodiscard]] Found find_with_digits(std::string_view name, std::size_t digits_at) const;

  std::vector<Symbol> symbols_;
  std::vector<std::size_t> scopes_;  // symbols_ that stood when each was opened
  std::vector<std::int32_t> chains_;
};

}  // namespace kvscope::ptx

// Name lookup: the names of the module, of a function, of each { } in it. Inner names hide outer ones.
//
//   .reg .b32 %r<5>;                %r -> range of 5 from register 0
//   { .reg .b32 low, %r<2>;         low -> register 7; %r0, %r1 are new, %r2..%r4 are the outer ones
//     add.s32 %r1, low, %r4;
//   }                               low is removed
//
// A chained hash table over a stack of symbols. The newest symbol of a chain is first, so leaving a scope removes
// symbols from the top of the stack and from the fronts of their chains. A range is one symbol regardless of its size.
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
  // Marks names with digits at the end, so that they are looked up as a whole; never returned by a lookup.
  digits,  // a separate symbol "%r12" was declared: this entry is at "%r"
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

// A symbol and the index of the register, variable, ... that the name means: %r3 of a range from 7 is index 10.
struct Found {
  const Symbol* symbol = nullptr;  // valid until the next declaration
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
  // As find, but only in the innermost scope.
  [[nodiscard]] Found find_here(std::string_view name) const;

  // Precondition: the name is free.
  void declare(std::string_view name, SymbolKind kind, std::int32_t index, TextPlace at);
  // As in ptxas, %r01 is %r1, and a prefix that ends in digits ("%q1<3>") declares registers that cannot be named.
  void declare_range(std::string_view prefix, std::int32_t first, std::int32_t count, std::int32_t stride,
                     TextPlace at);

 private:
  void push(Symbol symbol);
  void push_digits(std::string_view prefix, TextPlace at);
  [[nodiscard]] std::int32_t newest(std::string_view name, std::uint32_t hash) const;  // not of a range
  [[nodiscard]] Found find_with_digits(std::string_view name, std::size_t digits_at) const;

  std::vector<Symbol> symbols_;
  std::vector<std::size_t> scopes_;  // size of symbols_ when each scope was opened
  std::vector<std::int32_t> chains_;
};

}  // namespace kvscope::ptx

// Prints one statement as PTX text: the inverse of operands.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpu/virtual/text/detail/names.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

class StatementPrinter {
 public:
  // All arguments must outlive the printer.
  StatementPrinter(const Module& module, const Function& function, const FlatNames& names)
      : module_(module), function_(function), names_(names) {}

  // Appends to `out`, without a ';'.
  void print(std::string& out, const Statement& statement) const;

 private:
  void operand(std::string& out, const Operand& o) const;
  void address(std::string& out, const Operand& o) const;
  void elements(std::string& out, const Operand& o, std::string_view open, std::string_view between,
                std::string_view close) const;

  const Module& module_;
  const Function& function_;
  const FlatNames& names_;
};

}  // namespace kvscope::ptx

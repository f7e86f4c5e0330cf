// The parser of a function's body: scopes, labels, statements and their operands.
//
// A label may be used before it is declared, so uses are resolved when the scope ends: a use refers to the label of its
// own scope, or is passed on to the enclosing scope. A branch may leave a scope but not enter one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/detail/context.h"

namespace kvscope::ptx {

class Body {
 public:
  Body(Context& context, std::int32_t function);
  // Precondition: the token is '{'. Reads past the matching '}' and stores the function in the module.
  void read();

 private:
  // --- body.cpp
  void read_to_end();
  void statement();
  void directive();
  void label();
  void table(const Token& label);
  void instruction();
  std::string_view opcode();
  void guard(Statement& statement);
  void end_of_statement();
  void open_scope();
  void close_scope();
  void note(const TextFault& fault);
  void recover();

  // --- operands.cpp
  void operands(Statement& statement);
  Operand operand();
  Operand simple();  // a register, a constant, a symbol, _: the operands allowed in braces
  Operand symbol();
  Operand variable(std::int32_t index, const Token& token);
  Operand constant();
  Operand negated();
  Operand address();
  Operand list(OperandKind kind, char close);
  Operand register_operand(std::int32_t index, std::string_view member, const Token& token);
  Operand special(SpecialRegister special, const Token& token);
  Operand branch_label();
  [[noreturn]] void fail_unknown(const Token& token) const;
  // Moves the elements gathered since `start` to their final place.
  void gather(Operand& whole, std::size_t start);
  Operand make(OperandKind kind, const Token& token, std::int32_t index = -1, std::int64_t value = 0) const;

  // A use of a label that is not yet declared.
  struct Use {
    Token token;
    std::int32_t operand = -1;  // Function::operands
    std::int32_t table = -1;    // or Function::tables, and which of its targets
    std::int32_t target = -1;
  };

  Context& context_;
  Reader& reader_;
  std::int32_t index_;
  Function f_;  // moved back into the module at the end
  std::vector<Use> uses_;
  std::vector<std::size_t> scope_uses_;  // size of uses_ when each scope was opened
  std::vector<Operand> scratch_;         // operands of the statement being read, elements of incomplete operands
  std::vector<Use> statement_uses_;      // indexes into scratch_ for the statement's operands
  bool is_call_ = false;
  bool is_branch_ = false;
  bool is_move_ = false;
  bool in_address_ = false;
  bool in_braces_ = false;
  bool resume_here_ = false;  // only a ';' was missing: the next statement begins at the token
};

}  // namespace kvscope::ptx

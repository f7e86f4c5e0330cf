#include "gpu/virtual/text/detail/body.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gpu/virtual/text/detail/declarations.h"
#include "gpu/virtual/text/detail/functions.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostScopes = 256;  // nesting depth

}  // namespace

void read_body(Context& context, std::int32_t function) {
  Body(context, function).read();
}

Body::Body(Context& context, std::int32_t function)
    : context_(context),
      reader_(context.reader),
      index_(function),
      f_(std::move(context.module.functions[static_cast<std::size_t>(function)])) {
  context.module.functions[static_cast<std::size_t>(function)].name = f_.name;
}

void Body::read() {
  open_scope();
  read_to_end();
  context_.module.functions[static_cast<std::size_t>(index_)] = std::move(f_);
}

void Body::read_to_end() {
  for (;;) {
    try {
      if (reader_.is('}')) {
        close_scope();
        if (scope_uses_.empty()) return;
      } else if (reader_.at_end()) {
        while (!scope_uses_.empty()) close_scope();
        reader_.fail_expected('}');
      } else {
        statement();
      }
    } catch (const TextFault& fault) {
      note(fault);
      if (scope_uses_.empty()) return;
      recover();
    }
  }
}

void Body::note(const TextFault& fault) {
  if (!reader_.note(fault)) throw Enough{};
}

void Body::recover() {
  scratch_.clear();
  statement_uses_.clear();
  in_address_ = false;
  const int depth = std::exchange(in_braces_, false) ? 1 : 0;
  if (!std::exchange(resume_here_, false)) reader_.skip_statement(depth);
}

void Body::statement() {
  if (reader_.at_directive()) {
    directive();
  } else if (reader_.at_word() && reader_.lexer().colon_follows()) {
    label();
  } else if (reader_.is('{')) {
    open_scope();
  } else {
    instruction();
  }
}

void Body::directive() {
  if (reader_.is(".loc")) {
    reader_.advance();
    context_.sources.read_loc(reader_, context_.module);
  } else if (reader_.accept(".reg")) {
    read_registers(context_, f_);
  } else if (reader_.accept(".pragma")) {
    while (!reader_.is(';') && !reader_.at_end()) reader_.advance();
    reader_.expect(';');
  } else if (space_from_directive(reader_.token().text)) {
    read_variables(context_, Linkage::internal, index_, &f_.variables);
  } else {
    fail(reader_.at(), fmt::format("unknown directive '{}'", reader_.token().text));
  }
}

void Body::label() {
  const Token label = reader_.take();
  reader_.expect(':');
  if (reader_.is(".branchtargets") || reader_.is(".calltargets") || reader_.is(".callprototype")) {
    table(label);
    return;
  }
  const std::int32_t at = size32(f_.body.size());
  declare(context_, label.text, SymbolKind::label, at, label.at);
  f_.labels.push_back({label.text, at});
}

void Body::table(const Token& label) {
  const std::int32_t index = size32(f_.tables.size());
  declare(context_, label.text, SymbolKind::table, index, label.at);
  f_.tables.push_back({label.text, reader_.is(".calltargets"), {}, -1});
  if (reader_.accept(".callprototype")) {
    const std::int32_t prototype = read_prototype(context_);
    f_.tables.back().prototype = prototype;
    end_of_statement();
    return;
  }
  const bool of_calls = reader_.take().is(".calltargets");
  std::vector<std::int32_t>& targets = f_.tables.back().targets;
  do {
    const Token target = reader_.expect_word(of_calls ? "function" : "label");
    if (of_calls) {
      const Found found = context_.symbols.find(target.text);
      if (!found || found.symbol->kind != SymbolKind::function) {
        fail(target.at, fmt::format("unknown function '{}'", target.text));
      }
      targets.push_back(found.index);
    } else {
      uses_.push_back({target, -1, index, size32(targets.size())});
      targets.push_back(-1);
    }
  } while (reader_.accept(','));
  end_of_statement();
}

void Body::instruction() {
  Statement statement;
  if (reader_.is('@')) guard(statement);
  if (!reader_.at_word()) reader_.fail_expected("instruction");
  statement.at = reader_.at();
  statement.opcode = opcode();
  statement.frame = context_.sources.current();
  is_call_ = statement.opcode.starts_with("call");
  is_branch_ = statement.opcode == "bra" || statement.opcode.starts_with("bra.");
  is_move_ = statement.opcode.starts_with("mov.");
  operands(statement);
  f_.body.push_back(statement);
}

// The dotted word. If it is written with blanks ("mov .u32"), it is assembled as a piece of the module.
std::string_view Body::opcode() {
  Lexer& lexer = reader_.lexer();
  bool goes_on = lexer.join_dotted();
  std::string_view word = reader_.token().text;
  if (goes_on) {
    std::string& whole = context_.pieces.emplace_back(word);
    while (goes_on) {
      reader_.advance();
      goes_on = lexer.join_dotted();
      whole += reader_.token().text;
    }
    word = whole;
  }
  reader_.advance();
  return word;
}

void Body::guard(Statement& statement) {
  reader_.expect('@');
  statement.guard_negated = reader_.accept('!');
  const Token token = reader_.expect_word("predicate register");
  const Found found = context_.symbols.find(token.text);
  if (!found || (found.symbol->kind != SymbolKind::reg && found.symbol->kind != SymbolKind::range)) {
    fail(token.at, fmt::format("unknown register '{}'", token.text));
  }
  if (const Type type = f_.registers[static_cast<std::size_t>(found.index)].type; type != Type::pred) {
    fail(token.at, fmt::format("guard '{}' is .{}, expected .pred", token.text, name(type)));
  }
  statement.guard = found.index;
}

void Body::end_of_statement() {
  if (reader_.accept(';')) return;
  // If the token is on a later line, it begins the next statement, so nothing is skipped.
  resume_here_ = reader_.at().line > reader_.lexer().previous_line();
  reader_.fail_expected(';');
}

void Body::open_scope() {
  if (scope_uses_.size() >= kMostScopes)
    fail(reader_.at(), fmt::format("more than {} braces within one another", kMostScopes));
  reader_.expect('{');
  context_.symbols.open_scope();
  scope_uses_.push_back(uses_.size());
}

void Body::close_scope() {
  std::size_t waiting = scope_uses_.back();
  scope_uses_.pop_back();
  const bool outermost = scope_uses_.empty();
  std::vector<TextError> unknown;
  for (std::size_t i = waiting; i < uses_.size(); ++i) {
    const Use& use = uses_[i];
    const Found found = context_.symbols.find_here(use.token.text);
    if (found && found.symbol->kind == SymbolKind::label) {
      if (use.operand >= 0) {
        f_.operands[static_cast<std::size_t>(use.operand)].index = found.index;
      } else {
        f_.tables[static_cast<std::size_t>(use.table)].targets[static_cast<std::size_t>(use.target)] = found.index;
      }
    } else if (outermost) {
      unknown.push_back({use.token.at, fmt::format("unknown label '{}'", use.token.text)});
    } else {
      uses_[waiting++] = use;
    }
  }
  uses_.resize(waiting);
  context_.symbols.close_scope();
  for (const TextError& error : unknown) note({error});
  if (reader_.is('}')) reader_.advance();
}

}  // namespace kvscope::ptx

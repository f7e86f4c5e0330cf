#include "gpu/virtual/text/detail/functions.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "gpu/virtual/text/detail/constant.h"
#include "gpu/virtual/text/detail/declarations.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMostInt32 = std::numeric_limits<std::int32_t>::max();

constexpr std::int64_t kMostParameterBytes = 32764;  // per kernel

std::int32_t read_limit(Reader& reader) {
  return static_cast<std::int32_t>(read_integer(reader, "limit", 0, kMostInt32));
}

// "128", "16, 8" or "8, 4, 4"; missing values are 1.
std::array<std::int32_t, 3> read_three(Reader& reader) {
  std::array<std::int32_t, 3> three = {1, 1, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    three[i] = read_limit(reader);
    if (i == 2 || !reader.accept(',')) break;
  }
  return three;
}

// Reads the directives between a head and its body.
void read_limits(Context& context, KernelLimits& limits) {
  Reader& reader = context.reader;
  while (reader.at_directive()) {
    const Token directive = reader.take();
    if (directive.is(".maxntid")) {
      limits.max_threads = read_three(reader);
    } else if (directive.is(".reqntid")) {
      limits.required_threads = read_three(reader);
    } else if (directive.is(".reqnctapercluster")) {
      limits.cluster = read_three(reader);
    } else if (directive.is(".maxclusterrank")) {
      limits.max_cluster_rank = read_limit(reader);
    } else if (directive.is(".maxnreg")) {
      limits.max_registers = read_limit(reader);
    } else if (directive.is(".minnctapersm")) {
      limits.min_ctas = read_limit(reader);
    } else if (directive.is(".maxnctapersm")) {
      limits.max_ctas = read_limit(reader);
    } else if (directive.is(".explicitcluster")) {
      limits.explicit_cluster = true;
    } else if (directive.is(".noreturn")) {
      limits.no_return = true;
    } else if (directive.is(".abi_preserve") || directive.is(".abi_preserve_control")) {
      read_limit(reader);
    } else if (directive.is(".pragma")) {
      while (!reader.is(';') && !reader.at_end()) reader.advance();
      reader.expect(';');
    } else if (directive.is(".loc")) {
      context.sources.read_loc(reader, context.module);
    } else {
      fail(directive.at, fmt::format("unknown directive '{}'", directive.text));
    }
  }
}

Function& function_at(Context& context, std::int32_t index) {
  return context.module.functions[static_cast<std::size_t>(index)];
}

// Assigns offsets of parameters in the block: the next multiple of the alignment.
void place_parameters(Context& context, Function& function) {
  std::int64_t offset = 0;
  for (const std::int32_t p : function.parameters) {
    Variable& v = context.module.variables[static_cast<std::size_t>(p)];
    offset = (offset + v.align - 1) / v.align * v.align;
    const std::int64_t end = offset + v.bytes;
    if (end > (function.entry ? kMostParameterBytes : kMostInt32)) {
      fail(v.at, fmt::format("parameters of '{}' take {} bytes, at most {}", function.name, end,
                             function.entry ? kMostParameterBytes : kMostInt32));
    }
    v.parameter_offset = static_cast<std::int32_t>(offset);
    offset = end;
  }
  function.parameter_bytes = offset;
}

// A parameter in space reg is also a register of the function.
void place_in_registers(Context& context, std::int32_t index, const std::vector<std::int32_t>& parameters) {
  Function& function = function_at(context, index);
  for (const std::int32_t p : parameters) {
    Variable& v = context.module.variables[static_cast<std::size_t>(p)];
    if (v.space != Space::reg) continue;
    v.in_register = size32(function.registers.size());
    function.registers.push_back({v.name, -1, v.type, -1});
  }
}

// Declares the parameter names in a scope around the body.
void declare_parameters(Context& context, const std::vector<std::int32_t>& parameters) {
  for (const std::int32_t p : parameters) {
    const Variable& v = context.module.variables[static_cast<std::size_t>(p)];
    if (v.name == "_") continue;
    const bool in_register = v.space == Space::reg;
    declare(context, v.name, in_register ? SymbolKind::reg : SymbolKind::variable, in_register ? v.in_register : p,
            v.at);
  }
}

// The scope around a body; also closed when a fault leaves it.
class ParameterScope {
 public:
  explicit ParameterScope(SymbolTable& symbols) : symbols_(symbols), outside_(symbols.scope()) {
    symbols_.open_scope();
  }
  ~ParameterScope() {
    while (symbols_.scope() > outside_) symbols_.close_scope();
  }
  ParameterScope(const ParameterScope&) = delete;
  ParameterScope& operator=(const ParameterScope&) = delete;

 private:
  SymbolTable& symbols_;
  std::int32_t outside_;
};

// The content of a head, before it is known whether it is the first with that name.
struct Head {
  bool entry = false;
  Linkage linkage = Linkage::internal;
  Token name;
  std::vector<std::int32_t> results;
  std::vector<std::int32_t> parameters;
  KernelLimits limits;
};

Head read_head(Context& context, Linkage linkage, std::int32_t function) {
  Reader& reader = context.reader;
  Head head;
  head.linkage = linkage;
  head.entry = reader.take().is(".entry");
  if (!head.entry && reader.is('(')) read_parameters(context, function, head.results);
  head.name = reader.expect_word("function name");
  if (reader.is('(')) read_parameters(context, function, head.parameters);
  read_limits(context, head.limits);
  return head;
}

bool same_parameters(const Module& module, const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Variable& x = module.variables[static_cast<std::size_t>(a[i])];
    const Variable& y = module.variables[static_cast<std::size_t>(b[i])];
    if (x.space != y.space || x.bytes != y.bytes || x.opaque != y.opaque) return false;
  }
  return true;
}

// The variables of a second head replace those of the first: the names in the definition are used.
void merge_parameters(Module& module, const std::vector<std::int32_t>& kept, const std::vector<std::int32_t>& from) {
  for (std::size_t i = 0; i < kept.size(); ++i) {
    module.variables[static_cast<std::size_t>(kept[i])] =
        std::move(module.variables[static_cast<std::size_t>(from[i])]);
  }
}

// The function with that name: a new one, or the one declared before. -1: a second definition of a weak function.
std::int32_t find_or_add(Context& context, Head& head, bool definition, std::size_t variables_before) {
  Module& module = context.module;
  const Found found = context.symbols.find_here(head.name.text);
  if (!found) {
    const std::int32_t index = size32(module.functions.size());
    context.symbols.declare(head.name.text, SymbolKind::function, index, head.name.at);
    Function f;
    f.name = head.name.text;
    f.entry = head.entry;
    f.linkage = head.linkage;
    f.at = f.declared = head.name.at;
    f.parameters = std::move(head.parameters);
    f.results = std::move(head.results);
    module.functions.push_back(std::move(f));
    return index;
  }
  const TextPlace first = found.symbol->at;
  if (found.symbol->kind != SymbolKind::function) require_free(context, head.name.text, head.name.at);
  Function& f = function_at(context, found.index);
  const bool again = definition && f.defined;
  if (again && !(f.linkage == Linkage::weak && head.linkage == Linkage::weak)) {
    require_free(context, head.name.text, head.name.at);
  }
  if (f.entry != head.entry || !same_parameters(module, f.parameters, head.parameters) ||
      !same_parameters(module, f.results, head.results)) {
    fail(head.name.at, fmt::format("'{}' has other parameters than at {}:{}", f.name, first.line, first.column));
  }
  if (definition && !again) {
    merge_parameters(module, f.parameters, head.parameters);
    merge_parameters(module, f.results, head.results);
    f.at = head.name.at;
    if (head.linkage != Linkage::external) f.linkage = head.linkage;
  }
  module.variables.resize(variables_before);
  return again ? -1 : found.index;
}

}  // namespace

void read_parameters(Context& context, std::int32_t function, std::vector<std::int32_t>& into) {
  Reader& reader = context.reader;
  reader.expect('(');
  if (reader.accept(')')) return;
  do {
    const auto space = reader.at_directive() ? space_from_directive(reader.token().text) : std::nullopt;
    if (space != Space::param && space != Space::reg) reader.fail_expected("'.param'");
    Variable variable = read_variable_type(context);
    read_variable_name(context, variable);
    variable.function = function;
    into.push_back(size32(context.module.variables.size()));
    context.module.variables.push_back(std::move(variable));
  } while (reader.accept(','));
  reader.expect(')');
}

std::int32_t read_prototype(Context& context) {
  Reader& reader = context.reader;
  const std::int32_t index = size32(context.module.functions.size());
  Function prototype;
  prototype.at = prototype.declared = reader.at();
  if (reader.is('(')) read_parameters(context, index, prototype.results);
  reader.expect_word("'_'");
  if (reader.is('(')) read_parameters(context, index, prototype.parameters);
  read_limits(context, prototype.limits);
  place_parameters(context, prototype);
  context.module.functions.push_back(std::move(prototype));
  return index;
}

void read_function(Context& context, Linkage linkage) {
  Reader& reader = context.reader;
  Module& module = context.module;
  const std::size_t variables_before = module.variables.size();
  Head head = read_head(context, linkage, size32(module.functions.size()));
  const bool definition = reader.is('{');
  if (!definition) reader.expect(';');
  const KernelLimits limits = head.limits;
  const std::int32_t index = find_or_add(context, head, definition, variables_before);
  if (index < 0) {  // of weak ones the first is kept
    reader.lexer().skip_braces();
    return;
  }
  Function& function = function_at(context, index);
  for (const auto* list : {&function.parameters, &function.results}) {
    for (const std::int32_t p : *list) module.variables[static_cast<std::size_t>(p)].function = index;
  }
  if (definition) function.limits = limits;
  place_parameters(context, function);
  if (!definition) return;
  function.defined = true;
  place_in_registers(context, index, function.results);
  place_in_registers(context, index, function.parameters);
  context.sources.begin_function();
  const ParameterScope scope(context.symbols);
  declare_parameters(context, function.results);
  declare_parameters(context, function.parameters);
  read_body(context, index);
}

}  // namespace kvscope::ptx

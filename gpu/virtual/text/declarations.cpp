#include "gpu/virtual/text/detail/declarations.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <utility>

#include "gpu/virtual/text/detail/constant.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMostAlign = 1 << 20;
constexpr std::int64_t kMostRegistersTogether = 4 * kMostRegisters;

std::int64_t read_align(Reader& reader) {
  const TextPlace at = reader.at();
  const std::int64_t align = read_count(reader);
  if (align < 1 || align > kMostAlign || !std::has_single_bit(static_cast<std::uint64_t>(align))) {
    fail(at, fmt::format("alignment {} is no power of two up to {}", align, kMostAlign));
  }
  return align;
}

// ".v2" -> 2; 0: not a vector size.
std::int32_t vector_from_directive(std::string_view directive) {
  if (directive == ".v2") return 2;
  if (directive == ".v4") return 4;
  if (directive == ".v8") return 8;
  return 0;
}

bool is_opaque(std::string_view directive) {
  return directive == ".texref" || directive == ".samplerref" || directive == ".surfref";
}

// The token is a directive after the space. Returns false if it does not belong to a declaration.
bool read_property(Reader& reader, Variable& v, bool& is_pointer) {
  const std::string_view directive = reader.token().text;
  if (const std::int32_t vector = vector_from_directive(directive); vector != 0) {
    v.vector = vector;
  } else if (directive == ".align") {
    reader.advance();
    (is_pointer ? v.pointer_align : v.align) = read_align(reader);
    return true;
  } else if (directive == ".ptr") {
    is_pointer = true;
    v.pointer_align = 4;  // the default
  } else if (directive == ".attribute") {
    reader.advance();
    reader.expect('(');
    while (!reader.is(')')) {
      if (reader.at_end() || reader.is(';')) reader.fail_expected(')');
      reader.advance();
    }
  } else if (is_opaque(directive)) {
    v.opaque = directive.substr(1);
  } else if (const auto space = space_from_directive(directive); is_pointer && space) {
    v.pointer_space = *space;
  } else if (const auto type = type_from_name(directive.substr(1)); type && is_declarable(*type)) {
    if (v.type != Type::none) reader.fail_expected("name");
    v.type = *type;
  } else {
    return false;
  }
  reader.advance();
  return true;
}

// [4][3]: the product; 0 for [].
std::int64_t read_extents(Reader& reader, Variable& v) {
  std::int64_t elements = 1;  // [] counts as one
  bool open = false;
  while (reader.is('[')) {
    reader.advance();
    const TextPlace at = reader.at();
    const std::int64_t extent = reader.is(']') ? 0 : read_integer(reader, "extent", 1, kMostVariableBytes);
    if (extent == 0 && !v.extents.empty()) fail(at, "only the first extent may be left open");
    reader.expect(']');
    v.extents.push_back(extent);
    open = open || extent == 0;
    if (extent == 0) continue;
    if (elements > kMostVariableBytes / extent) {
      fail(at, fmt::format("'{}' has more than {} bytes", v.name, kMostVariableBytes));
    }
    elements *= extent;
  }
  return open ? 0 : elements;
}

// An earlier declaration of the same variable: an .extern and its definition, or a repeated .extern. Its index, or -1.
std::int32_t declared_before(const Context& context, const Variable& v) {
  if (v.function >= 0) return -1;
  const Found found = context.symbols.find_here(v.name);
  if (!found || found.symbol->kind != SymbolKind::variable) return -1;
  const Variable& before = context.module.variables[static_cast<std::size_t>(found.index)];
  const bool same = before.space == v.space && before.type == v.type && before.vector == v.vector;
  const bool one_is_extern = before.linkage == Linkage::external || v.linkage == Linkage::external;
  const bool both_weak = before.linkage == v.linkage && (v.linkage == Linkage::weak || v.linkage == Linkage::common);
  return same && (one_is_extern || both_weak) ? found.index : -1;
}

void keep_variable(Context& context, Variable variable, std::vector<std::int32_t>* body) {
  Module& module = context.module;
  const std::int32_t before = declared_before(context, variable);
  if (before >= 0) {  // the definition replaces .extern; of weak ones the first remains
    Variable& kept = module.variables[static_cast<std::size_t>(before)];
    variable.at = kept.at;
    if (kept.linkage == Linkage::external && variable.linkage != Linkage::external) kept = std::move(variable);
    return;
  }
  const std::int32_t index = size32(module.variables.size());
  declare(context, variable.name, SymbolKind::variable, index, variable.at);
  if (body != nullptr) body->push_back(index);
  module.variables.push_back(std::move(variable));
}

// "%r<5>", "x" or a vector "v": one register per element.
void read_register(Context& context, Function& function, Type type, std::int32_t vector) {
  Reader& reader = context.reader;
  const Token name = reader.expect_word("register name");
  const std::int32_t first = size32(function.registers.size());
  std::int64_t count = 1;
  const bool range = reader.accept('<');
  if (range) {
    count = read_count(reader);
    reader.expect('>');
  }
  const bool too_many = count > kMostRegisters || first + count * vector > kMostRegisters ||
                        context.registers + count * vector > kMostRegistersTogether;
  if (count < 0 || too_many) {
    fail(name.at, fmt::format("'{}': more than {} registers in a function, or {} in the file", name.text,
                              kMostRegisters, kMostRegistersTogether));
  }
  context.registers += count * vector;
  require_free(context, name.text, name.at);
  const auto n = static_cast<std::int32_t>(count);
  if (range) {
    context.symbols.declare_range(name.text, first, n, vector, name.at);
  } else {
    context.symbols.declare(name.text, SymbolKind::reg, first, name.at);
  }
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int32_t e = 0; e < vector; ++e) {
      function.registers.push_back({name.text, range ? i : -1, type, static_cast<std::int8_t>(vector == 1 ? -1 : e)});
    }
  }
}

}  // namespace

std::optional<Space> space_from_directive(std::string_view directive) {
  if (directive == ".global") return Space::global;
  if (directive == ".shared") return Space::shared;
  if (directive == ".const") return Space::constant;
  if (directive == ".local") return Space::local;
  if (directive == ".param") return Space::param;
  if (directive == ".reg") return Space::reg;
  return std::nullopt;
}

Variable read_variable_type(Context& context) {
  Reader& reader = context.reader;
  Variable v;
  v.space = *space_from_directive(reader.token().text);
  v.align = 0;
  reader.advance();
  bool is_pointer = false;
  while (reader.at_directive()) {
    if (!read_property(reader, v, is_pointer)) reader.fail_expected("type");
  }
  if (v.type == Type::none && v.opaque.empty()) reader.fail_expected("type");
  if (v.type == Type::pred && v.space != Space::reg) fail(reader.at(), "type .pred is for registers only");
  return v;
}

void read_variable_name(Context& context, Variable& v) {
  Reader& reader = context.reader;
  const Token name = reader.expect_word("name");
  v.name = name.text;
  v.at = name.at;
  const std::int64_t elements = read_extents(reader, v);
  const std::int64_t element = bits(v.type) / 8 * v.vector;
  if (v.align == 0) v.align = element == 0 ? 1 : element;
  if (element != 0 && elements > kMostVariableBytes / element) {
    fail(name.at, fmt::format("'{}' has more than {} bytes", v.name, kMostVariableBytes));
  }
  v.bytes = elements * element;
}

void read_variables(Context& context, Linkage linkage, std::int32_t function, std::vector<std::int32_t>* body) {
  Reader& reader = context.reader;
  const Token space = reader.token();
  Variable type = read_variable_type(context);
  if (function < 0 && (type.space == Space::local || type.space == Space::param)) {
    fail(space.at, fmt::format("a {} variable belongs in a body", space.shown()));
  }
  type.linkage = linkage;
  type.function = function;
  do {
    Variable variable = type;
    read_variable_name(context, variable);
    if (declared_before(context, variable) < 0) require_free(context, variable.name, variable.at);
    if (reader.accept('=')) read_initializer(context, variable);
    const bool open = !variable.extents.empty() && variable.extents[0] == 0;
    if (open && linkage != Linkage::external) {
      fail(variable.at, fmt::format("'{}' has no size: only an .extern variable may be open", variable.name));
    }
    keep_variable(context, std::move(variable), body);
  } while (reader.accept(','));
  reader.expect(';');
}

void read_registers(Context& context, Function& function) {
  Reader& reader = context.reader;
  Type type = Type::none;
  std::int32_t vector = 1;
  while (reader.at_directive()) {
    const std::string_view directive = reader.token().text;
    const std::int32_t lanes = vector_from_directive(directive);
    const auto named = type_from_name(directive.substr(1));
    if (directive == ".align") {
      reader.advance();
      read_align(reader);
      continue;
    }
    if (lanes == 2 || lanes == 4) {
      vector = lanes;
    } else if (named && is_declarable(*named)) {
      type = *named;
    } else {
      reader.fail_expected("type");
    }
    reader.advance();
  }
  if (type == Type::none) reader.fail_expected("type");
  if (vector > 1 && type == Type::pred) fail(reader.at(), "predicates are scalar registers");
  if (bits(type) * vector > 128) fail(reader.at(), fmt::format(".v{} .{} has more than 128 bits", vector, name(type)));
  do {
    read_register(context, function, type, vector);
  } while (reader.accept(','));
  reader.expect(';');
}

}  // namespace kvscope::ptx

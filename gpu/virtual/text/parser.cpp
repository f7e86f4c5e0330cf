#include "gpu/virtual/text/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "gpu/virtual/text/detail/constant.h"
#include "gpu/virtual/text/detail/context.h"
#include "gpu/virtual/text/detail/declarations.h"
#include "gpu/virtual/text/detail/functions.h"

namespace kvscope::ptx {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

// ".version 9.0" -> 90.
void read_version(Reader& reader, Module& module) {
  const Token token = reader.token();
  const std::size_t dot = token.text.find('.');
  const auto number = [&](std::string_view digits) {
    const auto value = whole_number<std::int32_t>(digits);
    if (!value || *value >= 1000) reader.fail_expected("version as in 9.0");
    return *value;
  };
  if (token.kind != TokenKind::number || dot == std::string_view::npos) reader.fail_expected("version as in 9.0");
  const std::int32_t major = number(token.text.substr(0, dot));
  module.version = major * 10 + number(token.text.substr(dot + 1));
  reader.advance();
}

// ".target sm_90a, debug" -> 90, 'a'.
void read_target(Reader& reader, Module& module) {
  do {
    const Token token = reader.expect_word("target as in sm_90a");
    if (!token.text.starts_with("sm_")) {
      if (module.target != 0) continue;  // debug, texmode_independent, ...
      fail(token.at, fmt::format("expected target as in sm_90a, found {}", token.shown()));
    }
    const std::string_view digits = token.text.substr(3);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), module.target);
    const std::string_view suffix(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
    if (error != std::errc() || suffix.size() > 1 || (suffix != "" && suffix != "a" && suffix != "f")) {
      fail(token.at, fmt::format("expected target as in sm_90a, found {}", token.shown()));
    }
    module.target_suffix = suffix.empty() ? '\0' : suffix[0];
  } while (reader.accept(','));
}

std::int32_t read_function_name(Context& context) {
  const Token token = context.reader.expect_word("function");
  const Found found = context.symbols.find(token.text);
  if (!found || found.symbol->kind != SymbolKind::function) {
    fail(token.at, fmt::format("unknown function '{}'", token.text));
  }
  return found.index;
}

// ".alias a, b;": a is another name of b.
void read_alias(Context& context) {
  const std::int32_t alias = read_function_name(context);
  context.reader.expect(',');
  context.module.functions[static_cast<std::size_t>(alias)].alias_of = read_function_name(context);
  context.reader.expect(';');
}

std::optional<Linkage> linkage_from_directive(std::string_view directive) {
  if (directive == ".visible") return Linkage::visible;
  if (directive == ".weak") return Linkage::weak;
  if (directive == ".extern") return Linkage::external;
  if (directive == ".common") return Linkage::common;
  return std::nullopt;
}

// ".version 9.0 .target sm_90a .address_size 64", in this order; the last may be left out.
void read_header(Context& context) {
  Reader& reader = context.reader;
  if (!reader.accept(".version")) reader.fail_expected("'.version'");
  read_version(reader, context.module);
  if (!reader.accept(".target")) reader.fail_expected("'.target'");
  read_target(reader, context.module);
  if (!reader.accept(".address_size")) return;
  const TextPlace at = reader.at();
  const std::int64_t size = read_count(reader);
  if (size != 64) fail(at, fmt::format("address size {}, expected 64", size));
}

// Reads one directive of the module, from its first token to its end.
void read_item(Context& context) {
  Reader& reader = context.reader;
  if (!reader.at_directive()) reader.fail_expected("directive");
  Linkage linkage = Linkage::internal;
  if (const auto named = linkage_from_directive(reader.token().text)) {
    linkage = *named;
    reader.advance();
  }
  const Token directive = reader.token();
  const auto space = space_from_directive(directive.text);
  if (directive.is(".entry") || directive.is(".func")) return read_function(context, linkage);
  if (space && *space != Space::reg) return read_variables(context, linkage, -1, nullptr);
  reader.advance();
  if (directive.is(".file")) {
    context.sources.read_file(reader, context.module);
  } else if (directive.is(".loc")) {
    context.sources.read_loc(reader, context.module);
  } else if (directive.is(".section")) {
    context.sources.read_section(reader, context.module);
  } else if (directive.is(".alias")) {
    read_alias(context);
  } else if (directive.is(".pragma")) {
    while (!reader.is(';') && !reader.at_end()) reader.advance();
    reader.expect(';');
  } else if (directive.is(".version") || directive.is(".target") || directive.is(".address_size")) {
    fail(directive.at, fmt::format("{} must be at the head of the file, once", directive.shown()));
  } else {
    fail(directive.at, fmt::format("unknown directive '{}'", directive.text));
  }
}

// Skips past the item's ';' or the '}' that closes its braces.
void skip_item(Reader& reader) {
  bool done = false;
  while (!done && !reader.at_end()) {
    try {
      if (reader.is('{')) {
        reader.lexer().skip_braces();
        if (reader.is(',') || reader.is('}')) continue;  // part of an initializer
        if (reader.is(';')) reader.advance();
        return;
      }
      done = reader.is(';');
      reader.advance();
    } catch (const TextFault&) {  // inside the skipped item
    }
  }
}

// Replaces uses of an alias by the function it refers to.
void resolve_aliases(Module& module) {
  const auto meant = [&](std::int32_t f) {
    for (std::size_t hops = 0; hops < module.functions.size(); ++hops) {  // ends a cycle of aliases
      const std::int32_t next = module.functions[static_cast<std::size_t>(f)].alias_of;
      if (next < 0) break;
      f = next;
    }
    return f;
  };
  bool any = false;
  for (const Function& f : module.functions) any = any || f.alias_of >= 0;
  if (!any) return;
  for (Function& f : module.functions) {
    for (Operand& o : f.operands) {
      if (o.kind == OperandKind::function) o.index = meant(o.index);
    }
  }
  for (Variable& v : module.variables) {
    for (InitItem& item : v.init) {
      if (item.kind == InitItem::Kind::function) item.index = meant(item.index);
    }
  }
}

void read_items(Context& context) {
  Reader& reader = context.reader;
  bool head = true;
  for (;;) {
    try {
      if (head || reader.token().kind == TokenKind::broken) reader.advance();
      if (std::exchange(head, false)) read_header(context);
      if (reader.at_end()) return;
      read_item(context);
    } catch (const TextFault& fault) {
      if (!reader.note(fault)) return;
      head = false;
      skip_item(reader);
    }
  }
}

}  // namespace

void require_free(const Context& context, std::string_view name, TextPlace at) {
  const Found found = context.symbols.find_here(name);
  if (!found) return;
  const TextPlace first = found.symbol->at;
  fail(at, fmt::format("duplicate symbol '{}', first at {}:{}", name, first.line, first.column));
}

void declare(Context& context, std::string_view name, SymbolKind kind, std::int32_t index, TextPlace at) {
  require_free(context, name, at);
  context.symbols.declare(name, kind, index, at);
}

std::string to_text(std::string_view file, std::string_view line, const TextError& error) {
  return fmt::format("{}:{}:{}: error: {}{}", file, error.at.line, error.at.column, error.message,
                     caret_lines(line, error.at.column));
}

std::string caret_lines(std::string_view line, std::int32_t column) {
  constexpr std::size_t kBefore = 60;  // of a long line: the characters shown before the caret
  constexpr std::size_t kWidest = 100;
  std::size_t at = std::min(static_cast<std::size_t>(std::max(column, 1)) - 1, line.size());
  const std::size_t blanks = std::min(line.find_first_not_of(" \t"), at);
  line.remove_prefix(blanks);
  at -= blanks;
  if (line.size() > kWidest && at > kBefore) {
    line.remove_prefix(at - kBefore);
    at = kBefore;
  }
  std::string shown(line.substr(0, kWidest));
  for (char& c : shown) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\t')
      c = ' ';
    else if (code < 0x20 || code >= 0x7f)
      c = '?';
  }
  return fmt::format("\n    {}\n    {}^", shown, std::string(at, ' '));
}

Parsed parse_text(std::string text, std::string file) {
  Parsed parsed;
  const auto kept = std::make_shared<const std::string>(std::move(text));
  if (kept->size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    parsed.errors.push_back({{1, 1}, "the text has 2 GiB or more"});
    return parsed;
  }
  Context context(*kept);
  context.module.file = std::move(file);
  context.module.text = kept;
  try {
    read_items(context);
  } catch (const Enough&) {
  }
  context.module.lines = lines_of(*kept);
  context.sources.finish(context.module, context.pieces);
  context.module.pieces = std::make_shared<const std::deque<std::string>>(std::move(context.pieces));
  parsed.errors = std::move(context.reader.errors());
  std::stable_sort(parsed.errors.begin(), parsed.errors.end(), [](const TextError& a, const TextError& b) {
    return a.at.line != b.at.line ? a.at.line < b.at.line : a.at.column < b.at.column;
  });
  if (parsed.errors.empty()) resolve_aliases(context.module);
  parsed.module = std::move(context.module);
  return parsed;
}

Module parse_module(std::string text, std::string file) {
  Parsed parsed = parse_text(std::move(text), std::move(file));
  if (parsed.errors.empty()) return std::move(parsed.module);
  std::vector<Fault> faults;
  for (const TextError& error : parsed.errors) {
    const auto line = static_cast<std::size_t>(error.at.line);
    const std::string_view shown = line <= parsed.module.lines.size() && line > 0 ? parsed.module.lines[line - 1] : "";
    faults.push_back(
        {fmt::format("{}:{}", error.at.line, error.at.column), error.message + caret_lines(shown, error.at.column)});
  }
  throw InputError(parsed.module.file, std::move(faults));
}

}  // namespace kvscope::ptx

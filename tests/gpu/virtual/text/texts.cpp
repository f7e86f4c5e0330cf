#include "tests/gpu/virtual/text/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(KVSCOPE_SOURCE_DIR) / "tests" / "gpu" / "virtual" / "text" / "data";
constexpr std::string_view kHead = ".version 9.0 .target sm_90a .address_size 64 ";
constexpr std::string_view kRegisters =
    ".reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<10>; .reg .f64 %fd<10>; .reg .pred %p<5>;";

}  // namespace

std::string with_head(std::string_view items) {
  return fmt::format("{}\n{}\n", kHead, items);
}

std::string with_body(std::string_view body) {
  return fmt::format("{}.visible .entry k(.param .u64 x) {{ {}\n{}\n}}\n", kHead, kRegisters, body);
}

Module parse_items(std::string_view items) {
  return parse_module(with_head(items), "items.ptx");
}
Module parse_body(std::string_view body) {
  return parse_module(with_body(body), "body.ptx");
}

const Function& kernel(const Module& module) {
  return module.functions.at(static_cast<std::size_t>(module.find_function("k")));
}

std::vector<std::string> errors_of(std::string text) {
  std::vector<std::string> shown;
  for (const TextError& error : parse_text(std::move(text), "t.ptx").errors) {
    shown.push_back(fmt::format("{}:{}: {}", error.at.line, error.at.column, error.message));
  }
  return shown;
}

std::string shown(const Module& module, const Function& function, const Operand& o) {
  const auto all = [&](const Operand& whole) {
    std::string text;
    for (const Operand& element : function.elements_of(whole)) {
      text += (text.empty() ? "" : " ") + shown(module, function, element);
    }
    return text;
  };
  const auto at = static_cast<std::size_t>(o.index);
  const std::string plus = o.value == 0 ? "" : fmt::format("+{}", o.value);
  switch (o.kind) {
    case OperandKind::reg:
      return (o.negated ? "!" : "") + name(function.registers.at(at)) + plus;
    case OperandKind::special:
      return name(static_cast<SpecialRegister>(o.index));
    case OperandKind::integer:
      return fmt::format("{}", o.value);
    case OperandKind::float_bits:
      return fmt::format("f:{:08x}", o.value);
    case OperandKind::double_bits:
      return fmt::format("d:{:016x}", static_cast<std::uint64_t>(o.value));
    case OperandKind::variable:
      return fmt::format("&{}{}", module.variables.at(at).name, plus);
    case OperandKind::function:
      return fmt::format("fn:{}", module.functions.at(at).name);
    case OperandKind::label:
      return fmt::format("->{}", o.index);
    case OperandKind::address:
      return fmt::format("[{}{}]", all(o), plus);
    case OperandKind::vector:
      return fmt::format("{{{}}}", all(o));
    case OperandKind::pair:
      return fmt::format("<{}>", all(o));
    case OperandKind::list:
      return fmt::format("({})", all(o));
    case OperandKind::sink:
      return "_";
    case OperandKind::table:
      return fmt::format("table:{}", function.tables.at(at).name);
  }
  return "?";
}

std::string operands_of(std::string_view statement) {
  const Module m = parse_body(fmt::format("{};", statement));
  const Function& f = kernel(m);
  std::string text;
  for (const Operand& o : f.operands_of(f.body.back())) text += (text.empty() ? "" : " ") + shown(m, f, o);
  return text;
}

std::string read_data(const std::string& name) {
  std::ifstream in(kData / name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> data_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kData)) {
    if (entry.path().extension() == ".ptx") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kvscope::ptx

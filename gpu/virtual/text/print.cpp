#include "gpu/virtual/text/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <vector>

#include "gpu/virtual/text/detail/names.h"
#include "gpu/virtual/text/detail/statement_printer.h"

namespace kvscope::ptx {
namespace {

template <class... Args>
void put_text(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

std::string_view linkage(Linkage l) {
  switch (l) {
    case Linkage::visible:
      return ".visible ";
    case Linkage::weak:
      return ".weak ";
    case Linkage::external:
      return ".extern ";
    case Linkage::common:
      return ".common ";
    default:
      return "";
  }
}

class ModulePrinter {
 public:
  explicit ModulePrinter(const Module& module) : module_(module), taken_(names_of(module)) {}

  std::string print() {
    put_text(out_, ".version {}.{}\n.target sm_{}", module_.version / 10, module_.version % 10, module_.target);
    if (module_.target_suffix != 0) out_ += module_.target_suffix;
    out_ += "\n.address_size 64\n\n";
    items();
    for (const Function& f : module_.functions) {
      if (f.defined && !f.entry) definition(f);
    }
    for (const Function& f : module_.functions) {
      if (f.alias_of >= 0) {
        put_text(out_, ".alias {}, {};\n", f.name, module_.functions[static_cast<std::size_t>(f.alias_of)].name);
      }
    }
    for (const SourceFile& file : module_.files) put_text(out_, ".file {} \"{}\"\n", file.number, file.path);
    debug_strings();
    return std::move(out_);
  }

 private:
  // Variables of the module, declarations of functions, and kernels, in the order of their first occurrence: each
  // refers only to earlier items. Bodies of device functions follow, because they may refer to any of these.
  void items() {
    struct Item {
      TextPlace at;
      std::size_t index;
      bool function;
    };
    std::vector<Item> all;
    for (std::size_t i = 0; i < module_.functions.size(); ++i) {
      if (!module_.functions[i].name.empty()) all.push_back({module_.functions[i].declared, i, true});
    }
    for (std::size_t i = 0; i < module_.variables.size(); ++i) {
      if (module_.variables[i].function < 0) all.push_back({module_.variables[i].at, i, false});
    }
    std::stable_sort(all.begin(), all.end(), [](const Item& a, const Item& b) {
      return a.at.line != b.at.line ? a.at.line < b.at.line : a.at.column < b.at.column;
    });
    for (const Item& item : all) {
      if (!item.function) {
        variable(module_.variables[item.index], std::string(module_.variables[item.index].name), "");
      } else if (const Function& f = module_.functions[item.index]; f.entry && f.defined) {
        definition(f);
      } else if (f.defined) {  // with the names of its definition, which follows
        const FlatNames names(module_, f, taken_);
        head(f, &names);
        out_ += ";\n";
      } else {
        head(f, nullptr);
        out_ += ";\n";
      }
    }
  }

  void type(const Variable& v, std::string_view name) {
    put_text(out_, ".{}", ptx::name(v.space));
    if (!v.opaque.empty()) {
      put_text(out_, " .{} {}", v.opaque, name);
      return;
    }
    if (v.space != Space::reg) put_text(out_, " .align {}", v.align);
    if (v.vector > 1) put_text(out_, " .v{}", v.vector);
    put_text(out_, " .{}", ptx::name(v.type));
    if (v.pointer_align != 0) {
      out_ += " .ptr";
      if (v.pointer_space != Space::generic) put_text(out_, " .{}", ptx::name(v.pointer_space));
      put_text(out_, " .align {}", v.pointer_align);
    }
    put_text(out_, " {}", name);
    for (const std::int64_t extent : v.extents) {
      if (extent == 0) {
        out_ += "[]";
      } else {
        put_text(out_, "[{}]", extent);
      }
    }
  }

  void variable(const Variable& v, const std::string& name, std::string_view indent) {
    out_ += indent;
    out_ += linkage(v.linkage);
    type(v, name);
    if (!v.init.empty()) {
      out_ += " = ";
      std::vector<std::int64_t> dims = v.extents;
      if (v.vector > 1) dims.push_back(v.vector);
      std::size_t at = 0;
      initializer(v, dims, 0, at);
    }
    out_ += ";\n";
  }

  void initializer(const Variable& v, const std::vector<std::int64_t>& dims, std::size_t level, std::size_t& at) {
    if (level == dims.size()) {
      item(v, v.init[at++]);
      return;
    }
    out_ += '{';
    for (std::int64_t i = 0; i < dims[level] && at < v.init.size(); ++i) {
      if (i > 0) out_ += ", ";
      initializer(v, dims, level + 1, at);
    }
    out_ += '}';
  }

  void item(const Variable& v, const InitItem& i) {
    const auto symbol = [&](std::string_view name) {
      if (i.value == 0) return std::string(name);
      return fmt::format("{}+{}", name, i.value);
    };
    std::string text;
    switch (i.kind) {
      case InitItem::Kind::bits:
        if (v.type == Type::f32) {
          text = fmt::format("0f{:08X}", static_cast<std::uint32_t>(i.value));
        } else if (v.type == Type::f64) {
          text = fmt::format("0d{:016X}", static_cast<std::uint64_t>(i.value));
        } else {
          text = fmt::format("{}", i.value);
        }
        break;
      case InitItem::Kind::function:
        text = symbol(module_.functions[static_cast<std::size_t>(i.index)].name);
        break;
      case InitItem::Kind::variable:
        text = symbol(module_.variables[static_cast<std::size_t>(i.index)].name);
        break;
      case InitItem::Kind::generic_variable:
        text = symbol(fmt::format("generic({})", module_.variables[static_cast<std::size_t>(i.index)].name));
        break;
    }
    for (int byte = 0; byte < 8; ++byte) {
      if (i.byte_mask == 1 << byte) text = fmt::format("0x{:X}({})", std::uint64_t{0xff} << 8 * byte, text);
    }
    out_ += text;
  }

  // "(.param .align 8 .b64 x, ...)"; with their names in the body, or as written.
  void parameters(const std::vector<std::int32_t>& list, const FlatNames* names) {
    out_ += '(';
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Variable& v = module_.variables[static_cast<std::size_t>(list[i])];
      if (i > 0) out_ += ", ";
      type(v, names == nullptr ? std::string(v.name) : names->variable(list[i]));
    }
    out_ += ')';
  }

  void head(const Function& f, const FlatNames* names) {
    out_ += linkage(f.linkage);
    out_ += f.entry ? ".entry " : ".func ";
    if (!f.results.empty()) {
      parameters(f.results, names);
      out_ += ' ';
    }
    out_ += f.name;
    parameters(f.parameters, names);
    limits(f.limits);
  }

  void limits(const KernelLimits& l) {
    const auto three = [&](std::string_view directive, const std::array<std::int32_t, 3>& n) {
      if (n[0] != 0 || n[1] != 0 || n[2] != 0) put_text(out_, " {} {}, {}, {}", directive, n[0], n[1], n[2]);
    };
    const auto one = [&](std::string_view directive, std::int32_t n) {
      if (n != 0) put_text(out_, " {} {}", directive, n);
    };
    three(".maxntid", l.max_threads);
    three(".reqntid", l.required_threads);
    three(".reqnctapercluster", l.cluster);
    if (l.explicit_cluster) out_ += " .explicitcluster";
    one(".maxclusterrank", l.max_cluster_rank);
    one(".minnctapersm", l.min_ctas);
    one(".maxnctapersm", l.max_ctas);
    one(".maxnreg", l.max_registers);
    if (l.no_return) out_ += " .noreturn";
  }

  void registers(const Function& f, const FlatNames& names) {
    for (const RegisterGroup& group : names.registers()) {
      if (is_parameter(f, group.first)) continue;
      out_ += "\t.reg ";
      if (group.vector > 1) put_text(out_, ".v{} ", group.vector);
      put_text(out_, ".{} {}", name(f.registers[static_cast<std::size_t>(group.first)].type), group.name);
      if (group.range) put_text(out_, "<{}>", group.count);
      out_ += ";\n";
    }
  }

  [[nodiscard]] bool is_parameter(const Function& f, std::int32_t reg) const {
    const auto among = [&](const std::vector<std::int32_t>& list) {
      return std::any_of(list.begin(), list.end(), [&](std::int32_t v) {
        return module_.variables[static_cast<std::size_t>(v)].in_register == reg;
      });
    };
    return among(f.results) || among(f.parameters);
  }

  void tables(const Function& f, const FlatNames& names) {
    for (std::size_t i = 0; i < f.tables.size(); ++i) {
      const TargetTable& table = f.tables[i];
      put_text(out_, "{}: ", names.table(static_cast<std::int32_t>(i)));
      if (table.prototype >= 0) {
        const Function& prototype = module_.functions[static_cast<std::size_t>(table.prototype)];
        out_ += ".callprototype ";
        if (!prototype.results.empty()) parameters(prototype.results, nullptr);
        out_ += " _ ";
        parameters(prototype.parameters, nullptr);
        limits(prototype.limits);
      } else {
        out_ += table.of_calls ? ".calltargets" : ".branchtargets";
        std::string_view between = " ";
        for (const std::int32_t target : table.targets) {
          out_ += between;
          out_ += table.of_calls ? std::string(module_.functions[static_cast<std::size_t>(target)].name)
                                 : names.label_before(target);
          between = ", ";
        }
      }
      out_ += ";\n";
    }
  }

  void definition(const Function& f) {
    const FlatNames names(module_, f, taken_);
    head(f, &names);
    out_ += "\n{\n";
    registers(f, names);
    for (const std::int32_t v : f.variables) {
      out_ += '\t';
      variable(module_.variables[static_cast<std::size_t>(v)], names.variable(v), "");
    }
    tables(f, names);
    const StatementPrinter statements(module_, f, names);
    std::size_t label = 0;
    std::int32_t frame = -1;
    const std::vector<std::size_t> labels = labels_in_order(f);
    for (std::size_t i = 0; i <= f.body.size(); ++i) {
      for (; label < labels.size() && f.labels[labels[label]].statement == static_cast<std::int32_t>(i); ++label) {
        put_text(out_, "{}:\n", names.label(labels[label]));
      }
      if (i == f.body.size()) break;
      if (f.body[i].frame != frame) source(frame = f.body[i].frame);
      out_ += '\t';
      statements.print(out_, f.body[i]);
      out_ += ";\n";
    }
    out_ += "}\n";
  }

  static std::vector<std::size_t> labels_in_order(const Function& f) {
    std::vector<std::size_t> order(f.labels.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return f.labels[a].statement < f.labels[b].statement; });
    return order;
  }

  // Prints the chain of a frame, outermost first: each .loc finds its caller directly before it.
  void source(std::int32_t frame) {
    std::vector<std::int32_t> chain;
    for (std::int32_t i = frame; i >= 0; i = module_.frames[static_cast<std::size_t>(i)].outer) chain.push_back(i);
    for (auto i = chain.rbegin(); i != chain.rend(); ++i) {
      const Frame& f = module_.frames[static_cast<std::size_t>(*i)];
      put_text(out_, "\t.loc {} {} {}", f.file, f.line, f.column);
      if (f.outer >= 0) {
        const Frame& outer = module_.frames[static_cast<std::size_t>(f.outer)];
        if (!f.function.empty()) {
          const auto [entry, is_new] = strings_.try_emplace(f.function, strings_.size());
          put_text(out_, ", function_name $L__info_string{}", entry->second);
        }
        put_text(out_, ", inlined_at {} {} {}", outer.file, outer.line, outer.column);
      }
      out_ += '\n';
    }
  }

  void debug_strings() {
    if (strings_.empty()) return;
    out_ += ".section .debug_str\n{\n";
    for (const auto& [text, number] : strings_) {
      put_text(out_, "$L__info_string{}:\n.b8 ", number);
      for (const char c : text) put_text(out_, "{},", static_cast<int>(static_cast<unsigned char>(c)));
      out_ += "0\n";
    }
    out_ += "}\n";
  }

  const Module& module_;
  const std::unordered_set<std::string_view> taken_;
  std::string out_;
  std::map<std::string_view, std::size_t> strings_;  // names of inlined functions, numbered in order of appearance
};

}  // namespace

std::string to_ptx(const Module& module) {
  return ModulePrinter(module).print();
}

std::string to_ptx(const Module& module, const Function& function, const Statement& statement) {
  const std::unordered_set<std::string_view> taken = names_of(module);
  const FlatNames names(module, function, taken);
  std::string out;
  StatementPrinter(module, function, names).print(out, statement);
  return out;
}

}  // namespace kvscope::ptx

#include "apps/launch/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "apps/launch/struct_files.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/bundle/npy.h"
#include "gpu/virtual/text/kernel_names.h"
#include "gpu/virtual/text/launch_notes.h"

namespace kvscope::apps {
namespace {

constexpr std::size_t kMostNames = 12;   // of fields, in a message
constexpr std::int64_t kMapBytes = 128;  // of a tensor map

// "p.in[1].page=3": the parameter "p", the field "in[1].page" and the value "3".
struct NamedWord {
  std::string parameter, field, value;
};

std::optional<NamedWord> read_named(const std::string& word) {
  const std::size_t equals = word.find('=');
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const std::string left = word.substr(0, equals);
  const std::size_t end = std::min(left.find_first_not_of(kName), left.size());
  if (end == 0 || left.find_first_not_of(std::string(kName) + ".[]") != std::string::npos) return std::nullopt;
  if (left.ends_with('.')) return std::nullopt;  // no field is named
  const std::size_t field = end < left.size() && left[end] == '.' ? end + 1 : end;
  return NamedWord{left.substr(0, end), left.substr(field), word.substr(equals + 1)};
}

// Writes a number of that type; `to` has its bytes.
void store_number(ptx::Type type, const ptx::ParamValue& value, std::byte* to) {
  const auto bytes = static_cast<std::size_t>(ptx::bits(type) / 8);
  if (const auto* real = std::get_if<double>(&value)) {
    const DType dtype = type == ptx::Type::f16    ? DType::f16
                        : type == ptx::Type::bf16 ? DType::bf16
                        : type == ptx::Type::f32  ? DType::f32
                                                  : DType::f64;
    store_from_double(dtype, *real, to, Overflow::non_saturating);
  } else {
    std::memcpy(to, &std::get<std::uint64_t>(value), bytes);
  }
}

// Bytes of a struct that a word has set.
struct SetBytes {
  std::int64_t offset = 0, bytes = 0;
  std::string of;  // "field x (s32)"

  [[nodiscard]] bool overlaps(std::int64_t other, std::int64_t other_bytes) const {
    return offset < other + other_bytes && other < offset + bytes;
  }
};

// One parameter while words are read.
struct Parameter {
  const ptx::Variable* variable = nullptr;
  std::optional<ptx::ParameterLayout> layout;
  std::optional<ptx::ParamValue> value;  // of the whole parameter
  std::vector<std::byte> block;          // a struct set by fields
  std::set<std::string> set_fields;
  std::vector<SetBytes> set_bytes;  // in the order of the words

  [[nodiscard]] bool is_struct() const { return !variable->extents.empty(); }
  [[nodiscard]] bool named(std::string_view name) const { return layout && !name.empty() && layout->name == name; }
};

class ArgumentReader {
 public:
  ArgumentReader(ptx::Device& device, const ptx::Module& module, std::int32_t function)
      : name_(ptx::short_name(module, function)), placer_(device) {
    const ptx::Function& kernel = module.functions[static_cast<std::size_t>(function)];
    for (const std::int32_t p : kernel.parameters) {
      parameters_.push_back({&module.variables[static_cast<std::size_t>(p)], {}, {}, {}, {}, {}});
    }
    const auto layouts = ptx::layouts_from_debug_info(module, kernel);
    for (std::size_t i = 0; i < layouts.size(); ++i) parameters_[i].layout = layouts[i];
    source_types_ = ptx::parameter_list(kernel.name);
    unnamed_ = std::ranges::all_of(layouts, [](const auto& layout) { return layout.name.empty(); });
  }

  // The fields of a struct whose --struct was rejected are unknown for that reason alone: no second fault is reported.
  void set_rejected_structs() { rejected_structs_ = true; }

  // "0=params.h:Params".
  void read_struct(const std::string& word) {
    const auto named = read_named(word);
    if (!named || !named->field.empty()) {
      throw InputError("", "", fmt::format("'{}' is not PARAMETER=FILE or PARAMETER=FILE:TYPE", word));
    }
    const std::size_t at = parameter_of(named->parameter);
    Parameter& parameter = parameters_[at];
    ptx::ParameterLayout layout = read_struct_layout(named->value);
    if (layout.bytes != parameter.variable->bytes) {
      throw InputError("", "",
                       fmt::format("{} has {} bytes, but parameter {} has {}: give the struct that the kernel was "
                                   "compiled with",
                                   layout.type_name.empty() ? "the struct" : layout.type_name, layout.bytes,
                                   parameter.variable->name, parameter.variable->bytes));
    }
    if (parameter.layout) layout.name = parameter.layout->name;
    parameter.layout = std::move(layout);
  }

  void read(const std::string& word) {
    const auto named = read_named(word);
    if (!named) return set(next_++, word);
    any_named_ = true;
    const std::size_t at = parameter_of(named->parameter);
    if (named->field.empty()) return set(at, named->value);
    set_field(at, named->field, named->value);
  }

  // The parameters without a value, and too many words.
  [[nodiscard]] std::optional<std::string> count_fault(std::size_t words) const {
    std::vector<std::string> wanted, missing;
    for (const Parameter& p : parameters_) {
      wanted.push_back(declaration(p));
      if (!p.value && p.block.empty()) missing.push_back(declaration(p));
    }
    if (next_ > parameters_.size() || (!missing.empty() && !any_named_)) {
      return fmt::format("{} given, kernel {} takes {}: {}", words, name_, wanted.size(),
                         source_types_.empty() || !unnamed_ ? fmt::format("{}", fmt::join(wanted, ", "))
                                                            : source_types_ + ", one --arg for each");
    }
    if (missing.empty()) return std::nullopt;
    return fmt::format("no value for {}: kernel {} takes {}", fmt::join(missing, ", "), name_, fmt::join(wanted, ", "));
  }

  [[nodiscard]] std::vector<ptx::ParamValue> values() const {
    std::vector<ptx::ParamValue> out;
    for (const Parameter& p : parameters_) out.push_back(p.value ? *p.value : ptx::ParamValue(p.block));
    return out;
  }

  // Of each parameter that is one array: launch_notes.h.
  [[nodiscard]] std::vector<ptx::ArrayArgument> array_arguments() {
    std::vector<ptx::ArrayArgument> out;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto& layout = parameters_[i].layout;
      if (const DeviceArray* array = find_array(placer_.arrays(), std::to_string(i)))
        out.push_back({i, array->dtype, layout ? layout->name : ""});
    }
    return out;
  }

  [[nodiscard]] std::vector<std::string> unset() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& p = parameters_[i];
      if (p.block.empty() || !p.layout || p.set_fields.size() >= p.layout->fields.size()) continue;
      std::vector<std::string> names;
      for (const ptx::ParameterField& f : p.layout->fields) {
        if (!p.set_fields.contains(f.path) && names.size() <= kMostNames) names.push_back(f.path);
      }
      if (names.size() > kMostNames) names.back() = "...";
      out.push_back(fmt::format("parameter {}: {} of {} fields set, the others are 0: {}", i, p.set_fields.size(),
                                p.layout->fields.size(), fmt::join(names, ", ")));
    }
    return out;
  }

  [[nodiscard]] std::vector<DeviceArray>& arrays() { return placer_.arrays(); }

 private:
  // ".u64 f_param_0", or "Params p" where the source is known.
  static std::string declaration(const Parameter& p) {
    const ptx::Variable& v = *p.variable;
    if (p.layout && !p.layout->name.empty()) return fmt::format("{} {}", p.layout->type_name, p.layout->name);
    return v.extents.empty() ? fmt::format(".{} {}", ptx::name(v.type), v.name)
                             : fmt::format("{} bytes {}", v.bytes, v.name);
  }

  [[nodiscard]] std::size_t parameter_of(const std::string& name) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (name == std::to_string(i) || name == parameters_[i].variable->name || parameters_[i].named(name)) return i;
    }
    std::vector<std::string> known;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      known.push_back(fmt::format("{} ({})", i, declaration(parameters_[i])));
    }
    throw InputError("", "",
                     fmt::format("there is no parameter '{}': kernel {} has {}", name, name_,
                                 known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }

  // "2", and "p" where the source is known; with the path of a field, "2.q" and "p.q".
  [[nodiscard]] std::vector<std::string> names_of(std::size_t at, const std::string& field) const {
    const std::string tail = field.empty() || field[0] == '[' ? field : "." + field;
    std::vector<std::string> out{std::to_string(at) + tail};
    if (at < parameters_.size() && parameters_[at].layout && !parameters_[at].layout->name.empty()) {
      out.push_back(parameters_[at].layout->name + tail);
    }
    return out;
  }

  void reject_second(const Parameter& p, std::size_t at) const {
    if (p.value || !p.block.empty()) {
      throw InputError("", "", fmt::format("parameter {} ({}) has a value already", at, declaration(p)));
    }
  }

  void set(std::size_t at, const std::string& word) {
    ArgumentSlot slot{names_of(at, ""), "", ptx::Type::none, 0};
    if (at >= parameters_.size()) {  // the number of words is the fault; a wrong word is another
      static_cast<void>(placer_.value(slot, word));
      return;
    }
    Parameter& p = parameters_[at];
    reject_second(p, at);
    slot.type = p.variable->type;
    slot.bytes = p.variable->bytes;
    slot.of =
        fmt::format("parameter {} ({})", p.variable->name,
                    p.is_struct() ? fmt::format("{} bytes", slot.bytes) : fmt::format(".{}", ptx::name(slot.type)));
    // After a fault the parameter counts as given, so that it is not reported a second time.
    p.value = std::uint64_t{0};
    if (word.starts_with('@') && word.ends_with(".json")) {
      p.value.reset();
      set_from_file(at, word.substr(1));
    } else {
      p.value = placer_.value(slot, word);
    }
  }

  std::vector<std::byte>& block_of(Parameter& p) {
    if (p.block.empty()) p.block.resize(static_cast<std::size_t>(p.variable->bytes));
    return p.block;
  }

  // Rejects a word that sets bytes of a struct that an earlier word has set: it would replace them without a message.
  static void claim(Parameter& p, SetBytes now) {
    for (const SetBytes& before : p.set_bytes) {
      if (before.overlaps(now.offset, now.bytes))
        throw InputError("", "", fmt::format("{} overlaps {}, which has a value already", now.of, before.of));
    }
    p.set_bytes.push_back(std::move(now));
  }

  void set_field(std::size_t at, const std::string& path, const std::string& word) {
    Parameter& p = parameters_[at];
    if (p.value) reject_second(p, at);
    std::vector<std::byte>& block = block_of(p);
    if (!p.layout && rejected_structs_) return;
    if (!p.layout) {
      throw InputError("", "",
                       fmt::format("the fields of parameter {} ({}) are unknown: compile with nvcc -G, or give its "
                                   "definition as --struct {}=FILE.h",
                                   at, declaration(p), at));
    }
    if (word.starts_with("map:")) return set_map(at, path, word);
    const ptx::ParameterField* field = p.layout->find(path);
    if (field == nullptr) throw InputError("", "", unknown_field(p, path));
    const std::string of = fmt::format("field {} ({})", path, field->type_name);
    if (field->type == ptx::Type::none) {
      throw InputError("", "", of + " has no type of whole bytes: set its bytes with @FILE.json and \"at\"");
    }
    if (!p.set_fields.insert(path).second) throw InputError("", "", of + " has a value already");
    claim(p, {field->offset, field->bytes, of});
    const ptx::ParamValue value = placer_.value({names_of(at, path), of, field->type, field->bytes}, word);
    store_number(field->type, value, block.data() + field->offset);
  }

  // A tensor map within a struct: the fields below `path`, in its 128 bytes, are its opaque words.
  void set_map(std::size_t at, const std::string& path, const std::string& word) {
    Parameter& p = parameters_[at];
    std::vector<ptx::ParameterField> covered, others;
    for (const ptx::ParameterField& f : p.layout->fields) {
      const bool below = f.path.starts_with(path) &&
                         (f.path.size() == path.size() || f.path[path.size()] == '.' || f.path[path.size()] == '[');
      (below ? covered : others).push_back(f);
    }
    if (covered.empty()) throw InputError("", "", unknown_field(p, path));
    const std::int64_t first = std::ranges::min(covered, {}, &ptx::ParameterField::offset).offset;
    // In a layout of JSON, one field of any type marks the place of a map. Members of a union overlap.
    for (const ptx::ParameterField& f : others) {
      const SetBytes bytes{f.offset, f.bytes, ""};
      const bool in_union =
          std::ranges::any_of(covered, [&](const ptx::ParameterField& c) { return bytes.overlaps(c.offset, c.bytes); });
      if (!in_union && bytes.overlaps(first, kMapBytes))
        throw InputError("", "",
                         fmt::format("a tensor map of {} bytes at field {} overlaps field {} ({})", kMapBytes, path,
                                     f.path, f.type_name));
    }
    for (const ptx::ParameterField& f : covered) {
      if (f.offset + f.bytes > first + kMapBytes)
        throw InputError(
            "", "",
            fmt::format("field {} has more bytes than a tensor map, which has {}: name a part of it", path, kMapBytes));
    }
    place_map(at, first, "field " + path, names_of(at, path), word);
    for (const ptx::ParameterField& f : covered) p.set_fields.insert(f.path);
  }

  void place_map(std::size_t at, std::int64_t offset, std::string of, std::vector<std::string> names,
                 const std::string& word) {
    Parameter& p = parameters_[at];
    const ArgumentSlot slot{std::move(names), "", ptx::Type::none, 0};
    const auto map = std::get<std::vector<std::byte>>(placer_.value(slot, word));
    if (offset + static_cast<std::int64_t>(map.size()) > p.variable->bytes) {
      throw InputError("", "",
                       fmt::format("a tensor map of {} bytes at offset {} ends after byte {} of parameter {}",
                                   map.size(), offset, p.variable->bytes, at));
    }
    claim(p, {offset, kMapBytes, std::move(of)});
    std::copy(map.begin(), map.end(), p.block.begin() + offset);
  }

  static std::string unknown_field(const Parameter& p, const std::string& path) {
    std::vector<std::string> names;
    for (const ptx::ParameterField& f : p.layout->fields) {
      if (names.size() < kMostNames) names.push_back(f.path);
    }
    const std::size_t more = p.layout->fields.size() - names.size();
    return fmt::format("{} has no field '{}': fields are {}{}", p.layout->type_name, path, fmt::join(names, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  }

  void set_from_file(std::size_t at, const std::string& path) {
    Parameter& p = parameters_[at];
    std::vector<std::byte>& block = block_of(p);  // first: after a fault in the file the parameter counts as given
    const StructValues values = read_struct_values(path);
    if (values.bytes) {
      if (values.bytes->size() != block.size()) {
        throw InputError(
            "", "",
            fmt::format("{}: hex has {} bytes, but parameter {} has {}", path, values.bytes->size(), at, block.size()));
      }
      block = *values.bytes;
      if (p.layout) {
        for (const ptx::ParameterField& f : p.layout->fields) p.set_fields.insert(f.path);
      }
    }
    std::vector<Fault> faults;
    const auto collect = [&](const std::string& where, const auto& step) {
      try {
        step();
      } catch (const std::exception& error) {
        for (const std::string& line : fault_lines(error)) faults.push_back({where, line});
      }
    };
    for (const auto& [field, word] : values.fields) {
      if (values.bytes) p.set_fields.erase(field);
      collect(path + ": fields." + field, [&, &field = field, &word = word] { set_field(at, field, word); });
    }
    for (const StructValues::AtOffset& one : values.at) {
      collect(fmt::format("{}: at.{}", path, one.offset), [&] { set_at(at, one); });
    }
    if (values.bytes) p.set_bytes = {{0, p.variable->bytes, "the hex of " + path}};
    if (!faults.empty()) throw InputError("", std::move(faults));
  }

  void set_at(std::size_t at, const StructValues::AtOffset& one) {
    Parameter& p = parameters_[at];
    std::vector<std::string> names{fmt::format("{}+{}", at, one.offset)};
    const std::string name = fmt::format("at {}", one.offset);
    if (one.word.starts_with("map:")) return place_map(at, one.offset, name, std::move(names), one.word);
    const std::int64_t bytes = ptx::bits(one.type) / 8;
    if (one.offset + bytes > p.variable->bytes) {
      throw InputError("", "", fmt::format("ends after byte {} of parameter {}", p.variable->bytes, at));
    }
    claim(p, {one.offset, bytes, name});
    const ArgumentSlot slot{std::move(names), name, one.type, bytes};
    const ptx::ParamValue value = placer_.value(slot, one.word);
    store_number(one.type, value, p.block.data() + one.offset);
    if (!p.layout) return;
    for (const ptx::ParameterField& f : p.layout->fields) {
      if (f.offset >= one.offset && f.offset + f.bytes <= one.offset + bytes) p.set_fields.insert(f.path);
    }
  }

  std::string name_;          // of the kernel, for messages
  std::string source_types_;  // "(float*, int)" of a mangled name; else empty
  bool unnamed_ = true;       // no parameter has a name of the source
  std::vector<Parameter> parameters_;
  ArgumentPlacer placer_;
  std::size_t next_ = 0;  // the parameter of the next word without a name
  bool any_named_ = false;
  bool rejected_structs_ = false;
};

}  // namespace

KernelArguments place_arguments(ptx::Device& device, const ptx::LoadedModule& module, const std::string& kernel,
                                const std::vector<std::string>& words, const std::vector<std::string>& structs) {
  const ptx::Module& text = *module.program->module;
  ArgumentReader reader(device, text, text.find_function(kernel));
  std::vector<Fault> faults;
  const auto each = [&](const char* option, const std::vector<std::string>& list, const auto& read) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      try {
        read(list[i]);
      } catch (const std::exception& error) {
        for (const std::string& line : fault_lines(error)) faults.push_back({fmt::format("{} {}", option, i), line});
      }
    }
  };
  each("--struct", structs, [&](const std::string& word) { reader.read_struct(word); });
  if (!faults.empty()) reader.set_rejected_structs();
  each("--arg", words, [&](const std::string& word) { reader.read(word); });
  if (const auto fault = reader.count_fault(words.size())) faults.push_back({"--arg", *fault});
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  const ptx::Function& function = text.functions[static_cast<std::size_t>(text.find_function(kernel))];
  // Before the arrays are moved.
  std::vector<std::string> notes = ptx::element_notes(text, function, reader.array_arguments());
  return {ptx::pack_params(module, kernel, reader.values()), std::move(reader.arrays()), reader.unset(),
          std::move(notes)};
}

void save_array(ptx::Device& device, const DeviceArray& array, const std::string& path) {
  golden::write_npy(path, {array.dtype, array.shape, device.memory().read(array.address, array.bytes)});
}

}  // namespace kvscope::apps

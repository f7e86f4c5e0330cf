// The types of a kernel's parameters, from DWARF 2 to 4 in the debug sections of a PTX file.
// Source: DWARF Debugging Information Format 4, sections 7.5 and 5; the output of nvcc -G and of LLVM.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/text/detail/debug_section.h"
#include "gpu/virtual/text/parameter_layout.h"

namespace kvscope::ptx {
namespace {

namespace tag {
constexpr std::uint64_t array = 0x01, class_type = 0x02, enumeration = 0x04, parameter = 0x05, member = 0x0d,
                        pointer = 0x0f, reference = 0x10, structure = 0x13, alias = 0x16, union_type = 0x17,
                        inheritance = 0x1c, subrange = 0x21, base_type = 0x24, constant = 0x26, subprogram = 0x2e,
                        volatile_type = 0x35, restrict_type = 0x37, rvalue = 0x42;
}
namespace attribute {
constexpr std::uint64_t name = 0x03, byte_size = 0x0b, bit_size = 0x0d, upper_bound = 0x2f, abstract_origin = 0x31,
                        count = 0x37, member_location = 0x38, encoding = 0x3e, specification = 0x47, type = 0x49,
                        data_bit_offset = 0x6b, linkage_name = 0x6e, mips_linkage_name = 0x2007;
}
constexpr int kMostDepth = 64;                              // of nested types
constexpr std::int64_t kMostPlace = std::int64_t{1} << 30;  // [bytes] of a member in its record
constexpr std::size_t kMostValues = 16 * kMostFields;  // records without a field, in arrays or nested, would not end

// A description of the source: a type, a member, a function.
struct DebugEntry {
  std::uint64_t tag = 0;
  std::string name, linkage_name;
  std::optional<std::uint64_t> type, origin;  // offsets of other entries
  std::optional<std::int64_t> byte_size, bit_size, location, count;
  std::uint64_t encoding = 0;
  std::vector<std::uint64_t> children;  // offsets
};

// Thrown where the bytes end too early or have an unknown form; the caller does without debug information.
struct BrokenDebugInfo {};

class DebugBytes {
 public:
  explicit DebugBytes(const std::string& bytes, std::size_t at = 0) : bytes_(&bytes), at_(at) {}
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool ended() const { return at_ >= bytes_->size(); }

  std::uint64_t number(int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const unsigned char b = byte();
      value |= std::uint64_t{b & 0x7fu} << shift;
      if ((b & 0x80u) == 0) return value;
    }
    throw BrokenDebugInfo();
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64;) {
      const unsigned char b = byte();
      value |= std::uint64_t{b & 0x7fu} << shift;
      shift += 7;
      if ((b & 0x80u) != 0) continue;
      if ((b & 0x40u) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
    throw BrokenDebugInfo();
  }
  std::string text() {
    const std::size_t end = bytes_->find('\0', at_);
    if (end == std::string::npos) throw BrokenDebugInfo();
    std::string out = bytes_->substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  void skip(std::uint64_t count) {
    if (count > bytes_->size() - at_) throw BrokenDebugInfo();
    at_ += count;
  }

 private:
  unsigned char byte() {
    if (ended()) throw BrokenDebugInfo();
    return static_cast<unsigned char>((*bytes_)[at_++]);
  }
  const std::string* bytes_;
  std::size_t at_;
};

// --- entries ---------------------------------------------------------------------------------------------------------

struct Abbreviation {
  std::uint64_t tag = 0;
  bool children = false;
  std::vector<std::array<std::uint64_t, 2>> attributes;  // name, form
};
using Abbreviations = std::map<std::uint64_t, Abbreviation>;

Abbreviations read_abbreviations(const std::string& section, std::uint64_t at) {
  if (at > section.size()) throw BrokenDebugInfo();
  DebugBytes bytes(section, at);
  Abbreviations out;
  while (!bytes.ended()) {
    const std::uint64_t code = bytes.uleb();
    if (code == 0) break;
    Abbreviation& a = out[code];
    a.tag = bytes.uleb();
    a.children = bytes.number(1) != 0;
    while (true) {
      const std::uint64_t name = bytes.uleb(), form = bytes.uleb();
      if (form == 0) break;
      a.attributes.push_back({name, form});
    }
  }
  return out;
}

// The value of an attribute: a number, a text or a block.
struct AttributeValue {
  std::optional<std::uint64_t> number;
  std::string text;
  std::optional<std::int64_t> offset;  // of a block that adds a constant: DW_OP_plus_uconst
  bool is_reference = false;
};

class DebugEntries {
 public:
  DebugEntries(std::string info, const std::string& abbreviations, const std::string& strings)
      : info_(std::move(info)), abbreviations_(abbreviations), strings_(strings) {
    DebugBytes bytes(info_);
    while (!bytes.ended()) read_unit(bytes);
  }
  [[nodiscard]] const DebugEntry* find(std::uint64_t offset) const {
    const auto found = entries_.find(offset);
    return found == entries_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::map<std::uint64_t, DebugEntry>& all() const { return entries_; }

 private:
  void read_unit(DebugBytes& bytes) {
    const std::uint64_t first = bytes.at();
    const std::uint64_t length = bytes.number(4);
    const std::uint64_t end = bytes.at() + length;
    if (length == 0 || end > info_.size()) throw BrokenDebugInfo();
    const std::uint64_t version = bytes.number(2);
    if (version < 2 || version > 4) throw BrokenDebugInfo();
    const Abbreviations abbreviations = read_abbreviations(abbreviations_, bytes.number(4));
    if (bytes.number(1) != 8) throw BrokenDebugInfo();  // size of an address
    std::vector<std::uint64_t> parents;
    while (bytes.at() < end) {
      const std::uint64_t at = bytes.at();
      const std::uint64_t code = bytes.uleb();
      if (code == 0) {
        if (!parents.empty()) parents.pop_back();
        continue;
      }
      const auto found = abbreviations.find(code);
      if (found == abbreviations.end()) throw BrokenDebugInfo();
      DebugEntry& entry = entries_[at];
      entry.tag = found->second.tag;
      for (const auto& [name, form] : found->second.attributes) set(entry, name, read_value(bytes, form, first));
      if (!parents.empty()) entries_[parents.back()].children.push_back(at);
      if (found->second.children) parents.push_back(at);
    }
  }

  AttributeValue read_value(DebugBytes& bytes, std::uint64_t form, std::uint64_t unit) {
    AttributeValue v;
    const auto number = [&](int size) { v.number = bytes.number(size); };
    const auto block = [&](std::uint64_t size) {
      if (size == 0) return;
      const std::size_t end = bytes.at() + size;
      if (size >= 2 && bytes.number(1) == 0x23) v.offset = static_cast<std::int64_t>(bytes.uleb());
      if (bytes.at() > end) throw BrokenDebugInfo();
      bytes.skip(end - bytes.at());
    };
    const auto reference = [&](std::uint64_t offset, std::uint64_t base) {
      v.number = base + offset;
      v.is_reference = true;
    };
    switch (form) {
      case 0x01:
        number(8);
        break;
      case 0x03:
        block(bytes.number(2));
        break;
      case 0x04:
        block(bytes.number(4));
        break;
      case 0x05:
        number(2);
        break;
      case 0x06:
        number(4);
        break;
      case 0x07:
        number(8);
        break;
      case 0x08:
        v.text = bytes.text();
        break;
      case 0x09:
        block(bytes.uleb());
        break;
      case 0x0a:
        block(bytes.number(1));
        break;
      case 0x0b:
        number(1);
        break;
      case 0x0c:
        number(1);
        break;
      case 0x0d:
        v.number = static_cast<std::uint64_t>(bytes.sleb());
        break;
      case 0x0e:
        v.text = string_at(bytes.number(4));
        break;
      case 0x0f:
        v.number = bytes.uleb();
        break;
      case 0x10:
        reference(bytes.number(4), 0);
        break;
      case 0x11:
        reference(bytes.number(1), unit);
        break;
      case 0x12:
        reference(bytes.number(2), unit);
        break;
      case 0x13:
        reference(bytes.number(4), unit);
        break;
      case 0x14:
        reference(bytes.number(8), unit);
        break;
      case 0x15:
        reference(bytes.uleb(), unit);
        break;
      case 0x17:
        number(4);
        break;
      case 0x18:
        block(bytes.uleb());
        break;
      case 0x19:
        v.number = 1;
        break;
      default:
        throw BrokenDebugInfo();
    }
    return v;
  }

  [[nodiscard]] std::string string_at(std::uint64_t at) const {
    return at < strings_.size() ? std::string(strings_.c_str() + at) : "";
  }

  static void set(DebugEntry& entry, std::uint64_t name, const AttributeValue& v) {
    const auto signed_number = [&] {
      return v.number ? std::optional(static_cast<std::int64_t>(*v.number)) : std::nullopt;
    };
    switch (name) {
      case attribute::name:
        entry.name = v.text;
        break;
      case attribute::linkage_name:
      case attribute::mips_linkage_name:
        entry.linkage_name = v.text;
        break;
      case attribute::byte_size:
        entry.byte_size = signed_number();
        break;
      case attribute::data_bit_offset:
      case attribute::bit_size:
        entry.bit_size = signed_number();
        break;
      case attribute::member_location:
        entry.location = v.offset ? v.offset : signed_number();
        break;
      case attribute::count:
        entry.count = signed_number();
        break;
      case attribute::upper_bound:
        if (v.number && !entry.count) entry.count = static_cast<std::int64_t>(*v.number) + 1;
        break;
      case attribute::encoding:
        entry.encoding = v.number.value_or(0);
        break;
      case attribute::type:
        if (v.is_reference) entry.type = v.number;
        break;
      case attribute::specification:
      case attribute::abstract_origin:
        if (v.is_reference) entry.origin = v.number;
        break;
      default:
        break;
    }
  }

  std::string info_;
  const std::string& abbreviations_;
  const std::string& strings_;
  std::map<std::uint64_t, DebugEntry> entries_;
};

// --- types -----------------------------------------------------------------------------------------------------------

class DebugTypes {
 public:
  explicit DebugTypes(const DebugEntries& entries) : entries_(entries) {}

  ParameterLayout layout(const DebugEntry& parameter, std::string name) {
    ParameterLayout out;
    out.name = std::move(name);
    const DebugEntry& type = resolved(parameter);
    out.type_name = type_name(parameter.type, 0);
    out.bytes = bytes_of(type, 0);
    add(type, parameter.type, "", 0, out.fields, 0);
    // Values are written at these places. A bit field is not written, and its type may be larger than the struct.
    for (const ParameterField& f : out.fields) {
      if (f.type != Type::none && (f.offset < 0 || f.offset + f.bytes > out.bytes)) throw BrokenDebugInfo();
    }
    std::stable_sort(out.fields.begin(), out.fields.end(),
                     [](const ParameterField& a, const ParameterField& b) { return a.offset < b.offset; });
    return out;
  }

 private:
  [[nodiscard]] const DebugEntry& at(std::optional<std::uint64_t> offset) const {
    const DebugEntry* found = offset ? entries_.find(*offset) : nullptr;
    if (found == nullptr) throw BrokenDebugInfo();
    return *found;
  }
  static bool is_alias(std::uint64_t t) {
    return t == tag::alias || t == tag::constant || t == tag::volatile_type || t == tag::restrict_type;
  }
  static bool is_pointer(std::uint64_t t) { return t == tag::pointer || t == tag::reference || t == tag::rvalue; }
  static bool is_record(std::uint64_t t) { return t == tag::structure || t == tag::class_type || t == tag::union_type; }

  // The type of `of`, without typedef, const and volatile.
  [[nodiscard]] const DebugEntry& resolved(const DebugEntry& of) const {
    const DebugEntry* type = &at(of.type);
    for (int i = 0; is_alias(type->tag); ++i) {
      if (i == kMostDepth) throw BrokenDebugInfo();
      type = &at(type->type);
    }
    return *type;
  }

  [[nodiscard]] std::string type_name(std::optional<std::uint64_t> offset, int depth) const {
    if (!offset) return "void";
    if (depth == kMostDepth) throw BrokenDebugInfo();
    const DebugEntry& type = at(offset);
    if (is_pointer(type.tag)) return type_name(type.type, depth + 1) + (type.tag == tag::pointer ? "*" : "&");
    if (type.tag == tag::constant) return "const " + type_name(type.type, depth + 1);
    if (type.tag != tag::alias && is_alias(type.tag)) return type_name(type.type, depth + 1);
    if (type.tag == tag::array) return type_name(type.type, depth + 1) + "[]";
    return type.name.empty() ? "unnamed" : type.name;
  }

  // The extents of an array, outermost first.
  [[nodiscard]] std::vector<std::int64_t> extents(const DebugEntry& array) const {
    std::vector<std::int64_t> out;
    for (const std::uint64_t child : array.children) {
      const DebugEntry& range = at(child);
      if (range.tag == tag::subrange) out.push_back(range.count.value_or(0));
    }
    for (const std::int64_t extent : out) {
      if (extent < 0 || extent > static_cast<std::int64_t>(kMostFields)) throw BrokenDebugInfo();
    }
    return out;
  }

  [[nodiscard]] std::int64_t bytes_of(const DebugEntry& type, int depth) const {
    if (depth == kMostDepth) throw BrokenDebugInfo();
    if (is_pointer(type.tag)) return 8;
    if (type.tag != tag::array) return type.byte_size.value_or(0);
    std::int64_t bytes = bytes_of(resolved(type), depth + 1);
    for (const std::int64_t extent : extents(type)) {
      bytes *= extent;
      if (bytes < 0 || bytes > std::int64_t{1} << 30) throw BrokenDebugInfo();
    }
    return bytes;
  }

  static Type number_type(const DebugEntry& type) {
    constexpr std::array kSigned{Type::s8, Type::s16, Type::s32, Type::s64};
    constexpr std::array kUnsigned{Type::u8, Type::u16, Type::u32, Type::u64};
    constexpr std::array kFloating{Type::none, Type::f16, Type::f32, Type::f64};
    const std::int64_t bytes = type.byte_size.value_or(0);
    const std::size_t i = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
    if (i == 4) return Type::none;
    if (type.encoding == 4) return kFloating[i];
    return type.encoding == 5 || type.encoding == 6 ? kSigned[i] : kUnsigned[i];
  }

  void leaf(const std::string& path, std::int64_t offset, std::int64_t bytes, Type type, bool pointer, std::string name,
            std::vector<ParameterField>& out) {
    if (++leaves_ > kMostFields) throw BrokenDebugInfo();
    out.push_back({path, offset, bytes, type, pointer, std::move(name)});
  }

  // Adds the fields of a value of this type at that offset.
  void add(const DebugEntry& type, std::optional<std::uint64_t> named, const std::string& path, std::int64_t offset,
           std::vector<ParameterField>& out, int depth) {
    if (depth == kMostDepth || ++values_ > kMostValues) throw BrokenDebugInfo();
    const std::int64_t bytes = bytes_of(type, 0);
    if (is_pointer(type.tag)) return leaf(path, offset, 8, Type::u64, true, type_name(named, 0), out);
    if (type.tag == tag::base_type || type.tag == tag::enumeration) {
      return leaf(path, offset, bytes, number_type(type), false, type_name(named, 0), out);
    }
    if (type.name == "__half") return leaf(path, offset, 2, Type::f16, false, "__half", out);
    if (type.name == "__nv_bfloat16") return leaf(path, offset, 2, Type::bf16, false, "__nv_bfloat16", out);
    if (type.tag == tag::array) return add_array(type, path, offset, out, depth);
    if (!is_record(type.tag)) throw BrokenDebugInfo();
    for (const std::uint64_t child : type.children) {
      const DebugEntry& member = at(child);
      if ((member.tag != tag::member && member.tag != tag::inheritance) || !member.type) continue;
      // nvcc writes a base class as a member: "__b_4Base".
      const bool base = member.tag == tag::inheritance || member.name.starts_with("__b_");
      if (member.tag == tag::member && !member.location && type.tag != tag::union_type && !member.bit_size) continue;
      const std::string inner = base ? path : path.empty() ? member.name : path + "." + member.name;
      const std::int64_t within = member.location.value_or(0);
      if (within < 0 || within > kMostPlace) throw BrokenDebugInfo();
      const std::int64_t place = offset + within;
      if (member.bit_size) {
        leaf(inner, place, bytes_of(resolved(member), 0), Type::none, false, type_name(member.type, 0), out);
      } else {
        add(resolved(member), member.type, member.name.empty() ? path : inner, place, out, depth + 1);
      }
    }
  }

  void add_array(const DebugEntry& array, const std::string& path, std::int64_t offset,
                 std::vector<ParameterField>& out, int depth) {
    const DebugEntry& element = resolved(array);
    const std::int64_t bytes = bytes_of(element, 0);
    const std::vector<std::int64_t> shape = extents(array);
    std::vector<std::int64_t> index(shape.size(), 0);
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      count *= extent;
      if (count > static_cast<std::int64_t>(kMostValues)) throw BrokenDebugInfo();
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::string at = path;
      for (const std::int64_t x : index) at += "[" + std::to_string(x) + "]";
      add(element, array.type, at, offset + i * bytes, out, depth + 1);
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        if (++index[axis] < shape[axis]) break;
        index[axis] = 0;
      }
    }
  }

  const DebugEntries& entries_;
  std::size_t leaves_ = 0, values_ = 0;
};

// The bytes of .debug_info, in which each reference to a string is its offset in .debug_str.
std::string linked(const DebugSection& info, const DebugSection& strings) {
  std::string out = info.bytes;
  for (const DebugSection::Reference& r : info.references) {
    const auto label = strings.labels.find(r.label);
    const std::uint64_t value =
        (label == strings.labels.end() ? 0 : label->second) + static_cast<std::uint64_t>(r.offset);
    for (std::size_t i = 0; i < 4 && r.at + i < out.size(); ++i)
      out[r.at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  }
  return out;
}

std::vector<ParameterLayout> read_layouts(const Module& module, const Function& kernel) {
  const DebugSection strings = read_debug_section(module.debug.strings);
  const DebugSection abbreviations = read_debug_section(module.debug.abbreviations);
  const DebugEntries entries(linked(read_debug_section(module.debug.info), strings), abbreviations.bytes,
                             strings.bytes);
  DebugTypes types(entries);
  for (const auto& [offset, entry] : entries.all()) {
    if (entry.tag != tag::subprogram) continue;
    const DebugEntry* origin = entry.origin ? entries.find(*entry.origin) : nullptr;
    const auto is_kernel = [&](const DebugEntry& e) { return e.linkage_name == kernel.name || e.name == kernel.name; };
    if (!is_kernel(entry) && !(origin != nullptr && is_kernel(*origin))) continue;
    std::vector<ParameterLayout> out;
    for (const std::uint64_t child : entry.children) {
      const DebugEntry* parameter = entries.find(child);
      if (parameter->tag != tag::parameter) continue;
      std::string name = parameter->name;
      const DebugEntry* declared = parameter->origin ? entries.find(*parameter->origin) : nullptr;
      if (declared != nullptr && name.empty()) name = declared->name;
      out.push_back(types.layout(parameter->type || declared == nullptr ? *parameter : *declared, std::move(name)));
    }
    if (out.size() == kernel.parameters.size()) return out;
  }
  return {};
}

}  // namespace

const ParameterField* ParameterLayout::find(std::string_view path) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const ParameterField& f) { return f.path == path; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<ParameterLayout> layouts_from_debug_info(const Module& module, const Function& kernel) {
  if (module.debug.info.empty() || module.debug.abbreviations.empty()) return {};
  try {
    std::vector<ParameterLayout> out = read_layouts(module, kernel);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Variable& v = module.variables[static_cast<std::size_t>(kernel.parameters[i])];
      if (out[i].bytes != v.bytes) return {};
    }
    return out;
  } catch (const BrokenDebugInfo&) {
    return {};
  }
}

}  // namespace kvscope::ptx

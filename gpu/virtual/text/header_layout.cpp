// The layout of a C struct, from its definition in a header. Members lie as C++ places them for the GPU and for x86-64
// alike: each at the next multiple of its alignment, the size a multiple of the largest alignment.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "gpu/virtual/text/parameter_layout.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // of a type
constexpr int kMostNested = 64;                             // structs in structs

struct HeaderToken {
  std::string_view text;  // a word, a number or one character; "": the end
  int line = 1;
};

// Words, numbers and punctuation; comments and preprocessor lines are skipped.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view what) : text_(text), what_(what) { advance(); }
  [[nodiscard]] const HeaderToken& token() const { return token_; }
  [[nodiscard]] bool is(std::string_view text) const { return token_.text == text; }
  [[nodiscard]] bool ended() const { return token_.text.empty(); }
  HeaderToken take() {
    const HeaderToken taken = token_;
    advance();
    return taken;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    advance();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("expected '{}', found {}", text, shown()));
  }
  [[nodiscard]] bool at_word() const {
    return !ended() && (std::isalpha(static_cast<unsigned char>(token_.text[0])) != 0 || token_.text[0] == '_');
  }
  std::string_view word(std::string_view meaning) {
    if (!at_word()) fail(fmt::format("expected {}, found {}", meaning, shown()));
    return take().text;
  }
  [[nodiscard]] std::string shown() const { return ended() ? "the end of the file" : fmt::format("'{}'", token_.text); }
  [[noreturn]] void fail(const std::string& problem) const {
    throw InputError(std::string(what_), fmt::format("line {}", token_.line), problem);
  }

 private:
  void advance() {
    skip_blanks();
    token_.line = line_;
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\''; };
    std::size_t length = at_ < text_.size() ? 1 : 0;
    if (length > 0 && text_.substr(at_, 2) == "::") length = 2;
    if (length > 0 && part(text_[at_])) {
      while (at_ + length < text_.size() && part(text_[at_ + length])) ++length;
    }
    token_.text = text_.substr(at_, length);
    at_ += length;
  }
  void skip_to(std::string_view end, std::size_t keep) {
    const std::size_t found = text_.find(end, at_);
    const std::size_t next = found == std::string_view::npos ? text_.size() : found + end.size() - keep;
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(next), '\n'));
    at_ = next;
  }
  void skip_blanks() {
    bool line_start = at_ == 0;
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') {
        ++line_;
        line_start = true;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//" || (text_[at_] == '#' && line_start)) {
        do {
          skip_to("\n", 1);
        } while (text_[at_ - 1] == '\\' && at_ < text_.size() && (++at_, ++line_, true));
      } else if (text_.substr(at_, 2) == "/*") {
        skip_to("*/", 0);
      } else {
        return;
      }
    }
  }

  std::string_view text_, what_;
  std::size_t at_ = 0;
  int line_ = 1;
  HeaderToken token_;
};

struct HeaderType {
  std::int64_t bytes = 0, align = 1;
  std::vector<ParameterField> fields;  // one with path "" for a number
};

HeaderType number_of(Type type, std::string_view name) {
  const std::int64_t bytes = bits(type) / 8;
  return {bytes, bytes, {{"", 0, bytes, type, false, std::string(name)}}};
}

std::optional<HeaderType> known_number(std::string_view name) {
  static const std::map<std::string_view, Type> known{{"bool", Type::u8},
                                                      {"char", Type::s8},
                                                      {"int8_t", Type::s8},
                                                      {"uint8_t", Type::u8},
                                                      {"int16_t", Type::s16},
                                                      {"uint16_t", Type::u16},
                                                      {"int32_t", Type::s32},
                                                      {"uint32_t", Type::u32},
                                                      {"int64_t", Type::s64},
                                                      {"uint64_t", Type::u64},
                                                      {"size_t", Type::u64},
                                                      {"ptrdiff_t", Type::s64},
                                                      {"intptr_t", Type::s64},
                                                      {"uintptr_t", Type::u64},
                                                      {"float", Type::f32},
                                                      {"double", Type::f64},
                                                      {"half", Type::f16},
                                                      {"__half", Type::f16},
                                                      {"half_t", Type::f16},
                                                      {"nv_half", Type::f16},
                                                      {"bfloat16_t", Type::bf16},
                                                      {"__nv_bfloat16", Type::bf16},
                                                      {"nv_bfloat16", Type::bf16},
                                                      {"uint", Type::u32},
                                                      {"cudaTextureObject_t", Type::u64}};
  const auto found = known.find(name);
  if (found == known.end()) return std::nullopt;
  return number_of(found->second, name);
}

// float4, uint2, dim3 and their like: members x, y, z, w.
std::optional<HeaderType> vector_type(std::string_view name) {
  static const std::map<std::string_view, Type> elements{
      {"char", Type::s8},       {"uchar", Type::u8},  {"short", Type::s16},    {"ushort", Type::u16},
      {"int", Type::s32},       {"uint", Type::u32},  {"longlong", Type::s64}, {"long", Type::s64},
      {"ulonglong", Type::u64}, {"ulong", Type::u64}, {"float", Type::f32},    {"double", Type::f64},
      {"dim", Type::u32}};
  if (name.size() < 4 || name.back() < '1' || name.back() > '4') return std::nullopt;
  const auto element = elements.find(name.substr(0, name.size() - 1));
  if (element == elements.end() || (element->first == "dim" && name != "dim3")) return std::nullopt;
  const int count = name.back() - '0';
  const std::int64_t bytes = bits(element->second) / 8;
  HeaderType out{count * bytes, bytes, {}};
  // Two and four elements are aligned as a whole, up to 16 bytes; three are not.
  if (count == 2 || count == 4) out.align = std::min<std::int64_t>(count * bytes, 16);
  for (int i = 0; i < count; ++i) {
    out.fields.push_back({std::string(1, "xyzw"[i]), i * bytes, bytes, element->second, false, std::string(name)});
  }
  return out;
}

// Definitions, one after the other; types by name.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view what) : reader_(text, what) {}

  void read_all() {
    while (!reader_.ended()) read_item();
  }
  [[nodiscard]] const std::vector<std::string>& structs() const { return structs_; }
  [[nodiscard]] const HeaderType* find(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? nullptr : &found->second;
  }

 private:
  void read_item() {
    if (reader_.accept(";") || reader_.accept("}")) return;  // the end of a namespace
    if (reader_.accept("namespace")) {
      while (reader_.at_word() || reader_.is("::")) reader_.take();
      return reader_.expect("{");
    }
    if (reader_.accept("using")) {
      const std::string name(reader_.word("the name of a type"));
      reader_.expect("=");
      HeaderType type = read_type();
      read_pointers(type);
      types_[name] = std::move(type);
      return reader_.expect(";");
    }
    if (reader_.accept("typedef")) return read_typedef();
    if (reader_.is("struct")) {
      static_cast<void>(read_struct());
      return reader_.expect(";");
    }
    reader_.fail(fmt::format("{} is not part of a plain struct: keep only struct definitions, typedef and using",
                             reader_.shown()));
  }

  void read_typedef() {
    HeaderType type = read_type();
    read_pointers(type);
    types_[std::string(reader_.word("the name of a type"))] = std::move(type);
    reader_.expect(";");
  }

  // "struct alignas(16) Name { members }"; the definition's type.
  HeaderType read_struct() {
    reader_.expect("struct");
    std::int64_t align = 1;
    while (reader_.is("alignas") || reader_.is("__align__")) {
      reader_.take();
      reader_.expect("(");
      align = std::max(align, read_alignment());
      reader_.expect(")");
    }
    std::string name;
    if (reader_.at_word()) name = reader_.take().text;
    if (!reader_.is("{")) {
      if (const HeaderType* known = find(name)) return *known;
      reader_.fail(fmt::format("struct {} is not defined before this line", name));
    }
    reader_.expect("{");
    if (++nested_ > kMostNested) reader_.fail(fmt::format("more than {} structs in one another", kMostNested));
    HeaderType out{0, align, {}};
    while (!reader_.accept("}")) read_members(out);
    --nested_;
    out.bytes = std::max<std::int64_t>((out.bytes + out.align - 1) / out.align * out.align, 1);
    if (!name.empty()) {
      types_[name] = out;
      structs_.push_back(name);
    }
    return out;
  }

  // "const float *q, *k, scales[2][4];"
  void read_members(HeaderType& out) {
    if (reader_.accept(";")) return;
    const HeaderType base = read_type();
    do {
      HeaderType type = base;
      read_pointers(type);
      const std::string name(reader_.word("the name of a member"));
      if (type.bytes == 0) {  // an unknown type, of which the first member is a pointer: "Foo *a, b;"
        reader_.fail(fmt::format("member '{}' has a type without size, '{}': only pointers to it are possible", name,
                                 type.fields[0].type_name));
      }
      read_extents(type);
      if (reader_.accept("=") || reader_.is("{")) skip_initializer();
      if (reader_.is("(") || reader_.is(":")) {
        reader_.fail(
            fmt::format("member '{}' is a function or a bit field: keep only numbers, pointers, structs and "
                        "arrays",
                        name));
      }
      place(type, name, out);
    } while (reader_.accept(","));
    reader_.expect(";");
  }

  void skip_initializer() {
    int depth = 0;
    while (!reader_.ended() && (depth > 0 || !(reader_.is(";") || reader_.is(",")))) {
      if (reader_.is("{") || reader_.is("(")) ++depth;
      if (reader_.is("}") || reader_.is(")")) --depth;
      reader_.take();
    }
  }

  void place(const HeaderType& type, const std::string& name, HeaderType& out) {
    const std::int64_t at = (out.bytes + type.align - 1) / type.align * type.align;
    for (ParameterField field : type.fields) {
      const bool joined = field.path.empty() || field.path[0] == '[';
      field.path = joined ? name + field.path : name + "." + field.path;
      field.offset += at;
      out.fields.push_back(std::move(field));
    }
    out.bytes = at + type.bytes;
    limit(out.fields.size(), out.bytes);
    out.align = std::max(out.align, type.align);
  }

  void limit(std::size_t fields, std::int64_t bytes) const {
    if (fields > kMostFields)
      reader_.fail(fmt::format("more than {} fields: a kernel's parameters are smaller", kMostFields));
    if (bytes > kMostBytes)
      reader_.fail(fmt::format("more than {} bytes: a kernel's parameters are smaller", kMostBytes));
  }

  // "const unsigned long long", "struct Inner", "uint4": without the '*' that follow.
  HeaderType read_type() {
    skip_qualifiers();
    if (reader_.is("struct")) return read_struct();
    std::string words;
    int longs = 0;
    bool is_unsigned = false;
    std::string base;
    while (reader_.is("unsigned") || reader_.is("signed") || reader_.is("long") || reader_.is("short") ||
           reader_.is("int") || reader_.is("char")) {
      const std::string_view word = reader_.take().text;
      words += (words.empty() ? "" : " ") + std::string(word);
      if (word == "unsigned") is_unsigned = true;
      if (word == "long") ++longs;
      if (word == "short" || word == "char") base = word;
      skip_qualifiers();
    }
    if (!words.empty()) {
      const int bytes = base == "char" ? 1 : base == "short" ? 2 : longs > 0 ? 8 : 4;
      const Type type = bytes == 1   ? (is_unsigned ? Type::u8 : Type::s8)
                        : bytes == 2 ? (is_unsigned ? Type::u16 : Type::s16)
                        : bytes == 4 ? (is_unsigned ? Type::u32 : Type::s32)
                                     : (is_unsigned ? Type::u64 : Type::s64);
      return number_of(type, words);
    }
    std::string name(reader_.word("a type"));
    while (reader_.accept("::")) name = reader_.word("a type");
    skip_qualifiers();
    if (const HeaderType* known = find(name)) return *known;
    if (const auto number = known_number(name)) return *number;
    if (const auto vector = vector_type(name)) return *vector;
    if (reader_.is("*")) {  // a pointer to a type that need not be known
      HeaderType opaque;
      opaque.fields.push_back({"", 0, 0, Type::none, false, name});
      return opaque;
    }
    reader_.fail(fmt::format("type '{}' is unknown: define it before, or write the type that it stands for", name));
  }

  void skip_qualifiers() {
    while (reader_.is("const") || reader_.is("volatile") || reader_.is("__restrict__") || reader_.is("restrict") ||
           reader_.is("static") || reader_.is("mutable")) {
      if (reader_.is("static")) reader_.fail("a static member is not part of the struct: remove it");
      reader_.take();
    }
  }

  void read_pointers(HeaderType& type) {
    while (reader_.accept("*") || reader_.accept("&")) {
      const bool is_number = type.fields.size() == 1 && type.fields[0].path.empty();
      const std::string name = is_number ? type.fields[0].type_name : "struct";
      type = {8, 8, {{"", 0, 8, Type::u64, true, name + "*"}}};
      skip_qualifiers();
    }
  }

  void read_extents(HeaderType& type) {
    std::vector<std::int64_t> extents;
    while (reader_.accept("[")) {
      extents.push_back(read_number("number of elements"));
      reader_.expect("]");
    }
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      limit(type.fields.size() * static_cast<std::size_t>(extents[axis]), type.bytes * extents[axis]);
      HeaderType array{type.bytes * extents[axis], type.align, {}};
      for (std::int64_t i = 0; i < extents[axis]; ++i) {
        for (ParameterField field : type.fields) {
          const bool joined = field.path.empty() || field.path[0] == '[';
          field.path = fmt::format("[{}]{}{}", i, joined ? "" : ".", field.path);
          field.offset += i * type.bytes;
          array.fields.push_back(std::move(field));
        }
      }
      type = std::move(array);
    }
  }

  std::int64_t read_alignment() {
    const std::string shown = reader_.shown();
    const std::int64_t align = read_number("alignment");
    if ((align & (align - 1)) != 0) reader_.fail(fmt::format("expected alignment, a power of two, found {}", shown));
    return align;
  }

  std::int64_t read_number(std::string_view meaning) {
    const std::string_view text = reader_.token().text;
    const auto value = whole_number<std::int64_t>(text);
    if (!value || *value < 1 || *value > static_cast<std::int64_t>(kMostFields)) {
      reader_.fail(fmt::format("expected {}, a number from 1 to {}, found {}", meaning, kMostFields, reader_.shown()));
    }
    reader_.take();
    return *value;
  }

  HeaderReader reader_;
  std::map<std::string, HeaderType> types_;
  std::vector<std::string> structs_;  // in the order of their definitions
  int nested_ = 0;                    // structs whose closing brace is not read yet
};

}  // namespace

ParameterLayout layout_from_header(std::string_view text, std::string_view what, std::string_view type) {
  HeaderParser parser(text, what);
  parser.read_all();
  std::string known;
  for (const std::string& name : parser.structs()) known += (known.empty() ? "" : ", ") + name;
  std::string name(type);
  if (name.empty() && parser.structs().size() == 1) name = parser.structs().front();
  const HeaderType* found = name.empty() ? nullptr : parser.find(name);
  if (found == nullptr) {
    const std::string have = known.empty() ? "it defines no struct" : "it defines " + known;
    throw InputError(std::string(what), "",
                     name.empty() ? "which struct: " + have : fmt::format("no struct '{}': {}", name, have));
  }
  return {"", name, found->bytes, found->fields};
}

}  // namespace kvscope::ptx

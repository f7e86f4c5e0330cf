#include "apps/launch/struct_files.h"

#include <fmt/format.h>

#include <string_view>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/numbers.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostFile = 16 << 20;   // [bytes] of a header or a JSON file
constexpr std::int64_t kMostStruct = 1 << 20;  // [bytes]; a kernel's parameters have 32,764 at most

std::optional<ptx::Type> number_type(std::string_view name) {
  const auto type = ptx::type_from_name(name);
  if (!type || !ptx::is_declarable(*type) || ptx::bits(*type) < 8 || ptx::bits(*type) > 64) return std::nullopt;
  return type;
}

// Collects all faults of a file, each with the path of its value.
class JsonFaults {
 public:
  explicit JsonFaults(std::string file) : file_(std::move(file)) {}
  void add(const std::string& where, std::string problem) { faults_.push_back({where, std::move(problem)}); }
  void check_keys(const std::string& where, const json::Object& object, const std::vector<std::string_view>& known) {
    for (const auto& [key, value] : object) {
      bool found = false;
      for (const std::string_view k : known) found = found || k == key;
      if (!found) add(where + key, fmt::format("is unknown: keys are {}", fmt::join(known, ", ")));
    }
  }
  void throw_if_any() const {
    if (!faults_.empty()) throw InputError(file_, faults_);
  }

 private:
  std::string file_;
  std::vector<Fault> faults_;
};

ptx::ParameterLayout layout_from_json(const std::string& path) {
  const json::Value document = json::parse(read_file(path, kMostFile), path);
  JsonFaults faults(path);
  ptx::ParameterLayout out;
  const json::Object* object = document.as_object();
  if (object == nullptr) throw InputError(path, "", "is not an object with name, bytes and fields");
  faults.check_keys("", *object, {"name", "bytes", "fields"});
  if (const json::Value* name = document.find("name")) {
    if (name->as_string() != nullptr)
      out.type_name = *name->as_string();
    else
      faults.add("name", "is not a text: write the name of the struct in quotation marks");
  }
  const json::Value* bytes = document.find("bytes");
  const std::int64_t* size = bytes == nullptr ? nullptr : bytes->as_i64();
  const bool sized = size != nullptr && *size >= 1 && *size <= kMostStruct;
  if (!sized) {
    faults.add("bytes", fmt::format("is required: the size of the struct, from 1 to {}", kMostStruct));
  }
  out.bytes = sized ? *size : kMostStruct;  // without a size, only offsets that fit no struct are faults
  const json::Value* fields = document.find("fields");
  const json::Array* list = fields == nullptr ? nullptr : fields->as_array();
  if (list == nullptr || list->empty()) faults.add("fields", "is required: a list of name, offset and type");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const json::Value& field = (*list)[i];
    const std::string where = fmt::format("fields[{}]", i);
    if (field.as_object() == nullptr) {
      faults.add(where, "is not an object with name, offset and type");
      continue;
    }
    faults.check_keys(where + ".", *field.as_object(), {"name", "offset", "type"});
    const json::Value *name = field.find("name"), *offset = field.find("offset"), *type = field.find("type");
    if (name == nullptr || name->as_string() == nullptr || name->as_string()->empty() ||
        out.find(*name->as_string()) != nullptr) {
      faults.add(where + ".name", "is required: a name that no other field has");
      continue;
    }
    const std::string word = type != nullptr && type->as_string() != nullptr ? *type->as_string() : "";
    const bool pointer = word == "pointer";
    const auto number = pointer ? std::optional(ptx::Type::u64) : number_type(word);
    if (!number)
      faults.add(where + ".type", fmt::format("is '{}': write pointer, or a type such as s32, f32 or bf16", word));
    const std::int64_t width = number ? ptx::bits(*number) / 8 : 1;
    if (width > out.bytes) {
      faults.add(where + ".type", fmt::format("is '{}' of {} bytes, but the struct has {}", word, width, out.bytes));
      continue;
    }
    if (offset == nullptr || offset->as_i64() == nullptr || *offset->as_i64() < 0 ||
        *offset->as_i64() > out.bytes - width) {
      faults.add(where + ".offset",
                 fmt::format("is required: the field's first byte, from 0 to {}", out.bytes - width));
      continue;
    }
    if (number) out.fields.push_back({*name->as_string(), *offset->as_i64(), width, *number, pointer, word});
  }
  faults.throw_if_any();
  return out;
}

// A number, truth value or text as a word of --arg; empty: another kind.
std::optional<std::string> word_of(const json::Value& value) {
  if (value.as_string() != nullptr) return *value.as_string();
  if (value.as_bool() != nullptr) return *value.as_bool() ? "1" : "0";
  if (value.is_number()) return json::dump(value, -1);
  if (value.is_null()) return "null";
  return std::nullopt;
}

// {"in": [{"page": 3}]} -> "in[0].page", "3".
void add_fields(const json::Value& value, const std::string& path, StructValues& out, JsonFaults& faults) {
  if (const json::Object* object = value.as_object()) {
    for (const auto& [key, inner] : *object) add_fields(inner, path.empty() ? key : path + "." + key, out, faults);
  } else if (const json::Array* array = value.as_array()) {
    for (std::size_t i = 0; i < array->size(); ++i)
      add_fields((*array)[i], fmt::format("{}[{}]", path, i), out, faults);
  } else if (const auto word = word_of(value)) {
    out.fields.emplace_back(path, *word);
  }
}

void add_at(const json::Object& object, StructValues& out, JsonFaults& faults) {
  for (const auto& [key, value] : object) {
    const std::string where = "at." + key;
    const auto offset = whole_number<std::int64_t>(key);
    if (!offset || *offset < 0 || *offset > kMostStruct) {
      faults.add(where, "is not an offset in bytes from 0");
      continue;
    }
    if (value.as_string() != nullptr || value.is_null()) {
      out.at.push_back({*offset, ptx::Type::u64, *word_of(value)});
      continue;
    }
    const json::Value *type = value.find("type"), *inner = value.find("value");
    const auto number =
        type != nullptr && type->as_string() != nullptr ? number_type(*type->as_string()) : std::nullopt;
    const auto word = inner != nullptr ? word_of(*inner) : std::nullopt;
    if (!number || !word) {
      faults.add(where, "is neither a text, such as \"@0+32\", nor {\"type\": \"s32\", \"value\": 64}");
      continue;
    }
    faults.check_keys(where + ".", *value.as_object(), {"type", "value"});
    out.at.push_back({*offset, *number, *word});
  }
}

std::optional<std::vector<std::byte>> from_hex(std::string_view digits) {
  std::vector<std::byte> out;
  if (digits.size() % 2 != 0 || digits.size() > 2 * static_cast<std::size_t>(kMostStruct)) return std::nullopt;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::string_view pair = digits.substr(i, 2);
    const auto byte = whole_number<std::uint32_t>(pair, 16);
    if (!byte || pair.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return std::nullopt;
    out.push_back(static_cast<std::byte>(*byte));
  }
  return out;
}

}  // namespace

ptx::ParameterLayout read_struct_layout(const std::string& word) {
  std::string path = word, type;
  if (const std::size_t colon = word.rfind(':');
      colon != std::string::npos && word.find('/', colon) == std::string::npos) {
    path = word.substr(0, colon);
    type = word.substr(colon + 1);
  }
  if (!path.ends_with(".json")) return ptx::layout_from_header(read_file(path, kMostFile), path, type);
  if (!type.empty()) throw InputError(path, "", fmt::format("is the layout of one struct: leave out ':{}'", type));
  return layout_from_json(path);
}

StructValues read_struct_values(const std::string& path) {
  const json::Value document = json::parse(read_file(path, kMostFile), path);
  JsonFaults faults(path);
  StructValues out;
  if (document.as_object() == nullptr || document.as_object()->empty()) {
    throw InputError(path, "", "is not an object with fields, at or hex");
  }
  faults.check_keys("", *document.as_object(), {"fields", "at", "hex"});
  if (const json::Value* fields = document.find("fields")) {
    if (fields->as_object() == nullptr)
      faults.add("fields", "is not an object of names and values");
    else
      add_fields(*fields, "", out, faults);
  }
  if (const json::Value* at = document.find("at")) {
    if (at->as_object() == nullptr)
      faults.add("at", "is not an object of offsets and values");
    else
      add_at(*at->as_object(), out, faults);
  }
  if (const json::Value* hex = document.find("hex")) {
    if (hex->as_string() != nullptr) out.bytes = from_hex(*hex->as_string());
    if (!out.bytes) faults.add("hex", "is not a text of two hexadecimal digits for each byte");
  }
  faults.throw_if_any();
  return out;
}

}  // namespace kvscope::apps

// A JSON document as a value: scenarios, manifests of bundles, reports and request traces.
// nlohmann::json does the parsing; only json.cpp includes it, so this header is cheap to include.
// The values are not nlohmann::ordered_json: it reads 20 MB in twice the time and 1.5 times the memory (a member's key
// is const, so growing an object copies its members), compares 1 equal to 1.0, and iterating over items behind an
// opaque pointer would need view and iterator types longer than this class.
//
// Parsing rejects, with line and column: bad syntax, duplicate keys, nesting deeper than 64, numbers outside a double's
// or a 64-bit integer's range, bytes after the document. Integers stay integers over the whole range of i64 and u64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kvscope::json {

class Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
using Object = std::vector<Member>;  // in the order of the file

class Value {
 public:
  using Data = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;

  Value() : data_(nullptr) {}
  Value(std::nullptr_t) : data_(nullptr) {}
  Value(bool b) : data_(b) {}
  Value(int i) : data_(static_cast<std::int64_t>(i)) {}
  Value(std::int64_t i) : data_(i) {}
  Value(std::uint64_t u);  // kept as i64 where it fits, so that equal numbers compare equal
  Value(double d) : data_(d) {}
  Value(const char* s) : data_(std::string(s)) {}
  Value(std::string_view s) : data_(std::string(s)) {}
  Value(std::string s) : data_(std::move(s)) {}
  Value(Array a) : data_(std::move(a)) {}
  Value(Object o) : data_(std::move(o)) {}
  // The copies of std::variant in libstdc++ 12 destroy an alternative that was never constructed if memory runs out.
  Value(const Value& other);
  Value& operator=(const Value& other);
  Value(Value&&) noexcept = default;
  Value& operator=(Value&&) noexcept = default;
  ~Value() = default;

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(data_); }
  [[nodiscard]] bool is_integer() const { return as_i64() != nullptr || std::holds_alternative<std::uint64_t>(data_); }
  [[nodiscard]] bool is_number() const { return is_integer() || std::holds_alternative<double>(data_); }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(data_); }
  [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(data_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Object>(data_); }

  // Null when the value is of another kind.
  [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&data_); }
  [[nodiscard]] const std::int64_t* as_i64() const { return std::get_if<std::int64_t>(&data_); }
  [[nodiscard]] const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  [[nodiscard]] const Array* as_array() const { return std::get_if<Array>(&data_); }
  [[nodiscard]] const Object* as_object() const { return std::get_if<Object>(&data_); }
  [[nodiscard]] Array* as_array() { return std::get_if<Array>(&data_); }
  [[nodiscard]] Object* as_object() { return std::get_if<Object>(&data_); }
  [[nodiscard]] double number() const;  // any number as a double; 0 for a value that is not a number

  // The member of that name; null when it is absent or this value is not an object.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // Appends or replaces a member; a null value becomes an object first.
  Value& set(std::string_view key, Value value);

  [[nodiscard]] std::string_view kind() const;  // "null", "boolean", "integer", "number", "string", "array", "object"
  [[nodiscard]] const Data& data() const { return data_; }
  friend bool operator==(const Value&, const Value&) = default;

 private:
  Data data_;
};

[[nodiscard]] Array strings(const std::vector<std::string>& texts);  // {"a", "b"} -> ["a", "b"]

// Values of one document at most. A value takes 40 bytes and a member's name 32 more, so that a document of 2 bytes a
// value ("[0,0,...") takes up to 50 times its length; this limit bounds it to about 1 GB.
inline constexpr std::size_t kMaxValues = 10'000'000;

// Throws InputError(source, "line L, column C", ...); columns count characters, not bytes. -0 is the double -0.0, as in
// JavaScript and serde_json: no integer has that value.
[[nodiscard]] Value parse(std::string_view text, std::string_view source, std::size_t max_values = kMaxValues);

// One line when indent < 0. Otherwise a list of scalars stays on one line and every other item has a line. Doubles
// print with the fewest digits that read back to the same double, and with a point or an exponent, so that they stay
// doubles. NaN and the infinities, which JSON does not have, print as the strings "nan", "inf", "-inf".
[[nodiscard]] std::string dump(const Value& value, int indent = 2);

}  // namespace kvscope::json

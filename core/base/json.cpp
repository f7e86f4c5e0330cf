#include "core/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
// A build with assertions would end in a C locale whose decimal point has several bytes (Pashto, Persian), because
// nlohmann::json asserts that strtod reads a whole number with the first of them. number_float() ignores that value.
#define JSON_ASSERT(condition) static_cast<void>(condition)
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "core/base/detail/utf8.h"
#include "core/base/errors.h"

namespace kvscope::json {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Passes the parser one byte at a time and exposes its position, which the parser's callbacks do not report.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    *seen_ = at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Columns count characters, not bytes, as in an editor.
std::string place(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const std::size_t newline = before.rfind('\n');
  const std::string_view line = newline == std::string_view::npos ? before : before.substr(newline + 1);
  const auto is_lead = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     std::count_if(line.begin(), line.end(), is_lead) + 1);
}

// Text of an input file for a message: printable, and of bounded length.
std::string printable(std::string_view s) {
  constexpr std::size_t kShown = 120;
  std::string out;
  for (const char c : s.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  if (s.size() > kShown) out += "...";
  return out;
}

// The power of ten of a number's first digit that is not 0: 2 for 123.4, -3 for 0.0012, 306 for 12e305. For a number
// without such a digit, any value.
std::int64_t leading_power(std::string_view number) {
  const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, exponent_at);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = std::min(mantissa.find_first_of("123456789"), mantissa.size());
  const auto power = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) - (first < point ? 1 : 0);
  std::string_view digits = number.substr(std::min(exponent_at + 1, number.size()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t exponent = 0;
  const std::errc error = std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec;
  if (error == std::errc::result_out_of_range) return digits.starts_with('-') ? -1 : 1;
  return power + std::clamp<std::int64_t>(exponent, -1'000'000'000, 1'000'000'000);
}

class Builder {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view text, std::string_view source, std::size_t max_values)
      : text_(text), source_(source), max_values_(max_values), at_(text.data()) {}

  Value run() {
    // nlohmann::json takes a byte of 0 for the end of the text.
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos) {
      reject(nul, "a byte of 0 (NUL), which JSON does not have: the file is damaged or is not text");
    }
    const char* const begin = text_.data();
    const char* const end = begin + text_.size();
    nlohmann::json::sax_parse(CountingIterator(begin, &at_), CountingIterator(end, &at_), this);
    return std::move(root_);
  }

  bool null() { return add(Value()); }
  bool boolean(bool b) { return add(Value(b)); }
  // The parser calls number_unsigned() for every integer without a minus.
  bool number_integer(std::int64_t i) { return add(i == 0 ? Value(-0.0) : Value(i)); }
  bool number_unsigned(std::uint64_t u) { return add(Value(u)); }
  // The number is read from the text again: nlohmann::json's value and its copy of the number have the decimal point of
  // the C locale, which Qt and other hosts of this library set.
  bool number_float(double, const std::string& copy) {
    const std::string_view digits = number(copy.size());
    // nlohmann::json falls back to a double when an integer does not fit in 64 bits.
    if (digits.find_first_of(".eE") == std::string_view::npos) {
      const std::string_view range = digits.front() == '-' ? "below -2^63" : "above 2^64 - 1";
      reject(static_cast<std::size_t>(digits.data() - text_.data()),
             fmt::format("integer {} is {}: it does not fit in 64 bits", printable(digits), range));
    }
    double value = 0;
    const std::from_chars_result read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    KVSCOPE_ASSERT(read.ptr == digits.data() + digits.size());
    const bool is_outside = read.ec == std::errc::result_out_of_range || std::isinf(value);
    if (is_outside && leading_power(digits) > 0) reject_range();
    if (is_outside) value = digits.front() == '-' ? -0.0 : 0.0;  // closer to 0 than to the smallest double
    return add(Value(value));
  }
  bool string(std::string& s) { return add(Value(std::move(s))); }
  bool binary(binary_t&) { return false; }

  bool start_object(std::size_t) { return open(Value(Object{})); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Value(Array{})); }
  bool end_array() { return close(); }

  bool key(std::string& k) {
    Level& level = open_.back();
    Object& members = *level.value->as_object();
    if (is_duplicate(level, members, k)) {
      reject(key_start(), fmt::format("duplicate key \"{}\": keep one of the two", printable(k)));
    }
    members.emplace_back(std::move(k), Value());
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) reject(0, "is empty: a JSON value is expected");
    // "[json.exception.parse_error.101] parse error at line 1, column 8: syntax error while ...":
    // the text after the position.
    std::string_view words = e.what();
    if (const std::size_t column = words.find("column "); column != std::string_view::npos) {
      if (const std::size_t colon = words.find(": ", column); colon != std::string_view::npos) {
        words.remove_prefix(colon + 2);
      }
    } else if (const std::size_t bracket = words.find("] "); bracket != std::string_view::npos) {
      words.remove_prefix(bracket + 2);
    }
    if (dynamic_cast<const nlohmann::detail::out_of_range*>(&e) != nullptr) {
      reject_range();
    }
    reject(position == 0 ? 0 : position - 1, printable(words));
  }

 private:
  struct Level {
    Value* value;
    std::unordered_set<std::string> keys;  // filled once an object is too long to scan
  };

  [[noreturn]] void reject(std::size_t byte, std::string message) const {
    throw InputError(source_, place(text_, byte), std::move(message));
  }

  [[noreturn]] void reject_range() const {
    reject(static_cast<std::size_t>(at_ - text_.data()), "number is outside the range of a double");
  }

  // The number that the parser has just read. The parser may be one byte past it: a number ends in a digit, and no
  // digit follows it.
  [[nodiscard]] std::string_view number(std::size_t length) const {
    const std::string_view read = text_.substr(0, static_cast<std::size_t>(at_ - text_.data()));
    const bool is_past = read.back() < '0' || read.back() > '9';
    return read.substr(read.size() - length - (is_past ? 1 : 0), length);
  }
  // The parser is past the key's closing quote; the opening quote is the last one without a backslash before it.
  [[nodiscard]] std::size_t key_start() const {
    auto i = static_cast<std::size_t>(at_ - text_.data()) - 1;
    for (;;) {
      i = text_.rfind('"', i - 1);
      std::size_t backslashes = 0;
      while (text_[i - backslashes - 1] == '\\') ++backslashes;  // ends at the object's brace, or earlier
      if (backslashes % 2 == 0) return i;
    }
  }

  static bool is_duplicate(Level& level, const Object& members, const std::string& key) {
    constexpr std::size_t kScanned = 16;
    if (members.size() < kScanned) {
      return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.first == key; });
    }
    if (level.keys.empty()) {
      for (const Member& m : members) level.keys.insert(m.first);
    }
    return !level.keys.insert(key).second;
  }

  Value* place_value(Value value) {
    if (++values_ > max_values_) {
      reject(static_cast<std::size_t>(at_ - text_.data()) - 1,
             fmt::format("more than {} values in one document: split it", max_values_));
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Value& parent = *open_.back().value;
    if (Array* items = parent.as_array(); items != nullptr) return &items->emplace_back(std::move(value));
    return &(parent.as_object()->back().second = std::move(value));
  }
  bool add(Value value) {
    place_value(std::move(value));
    return true;
  }
  // A pointer to an open value stays valid, because only the innermost open container grows.
  bool open(Value value) {
    if (open_.size() == kMaxDepth) {
      reject(static_cast<std::size_t>(at_ - text_.data()) - 1, fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    open_.push_back({place_value(std::move(value)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t max_values_;
  std::size_t values_ = 0;
  const char* at_;  // one past the last byte that the parser read
  Value root_;
  std::vector<Level> open_;
};

void dump_string(std::string_view s, std::string& out) {
  out += '"';
  while (!s.empty()) {
    const char c = s.front();
    std::size_t length = 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        length = first_utf8(s).length;
        if (length == 0) {
          out += "\xef\xbf\xbd";  // U+FFFD
          length = 1;
        } else if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += s.substr(0, length);
        }
    }
    s.remove_prefix(length);
  }
  out += '"';
}

void dump_double(double d, std::string& out) {
  if (!std::isfinite(d)) {
    out += std::isnan(d) ? "\"nan\"" : d > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  std::array<char, 32> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), d);
  const std::string_view text(digits.data(), static_cast<std::size_t>(result.ptr - digits.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";  // otherwise it would be read as an integer
}

bool is_scalar(const Value& v) {
  return !v.is_array() && !v.is_object();
}

void dump_value(const Value& value, int indent, int level, std::string& out);

// The items of an array or object, one per line, or all on one line.
template <class Items, class Each>
void dump_items(const Items& items, char open, char close, bool one_line, int indent, int level, std::string& out,
                Each each) {
  const auto new_line = [&](int depth) {
    if (!one_line) out += '\n' + std::string(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  };
  out += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += one_line && indent >= 0 ? ", " : ",";
    first = false;
    new_line(level + 1);
    each(item);
  }
  if (!items.empty()) new_line(level);
  out += close;
}

void dump_value(const Value& value, int indent, int level, std::string& out) {
  if (const Array* items = value.as_array(); items != nullptr) {
    const bool one_line = indent < 0 || std::all_of(items->begin(), items->end(), is_scalar);
    dump_items(*items, '[', ']', one_line, indent, level, out,
               [&](const Value& item) { dump_value(item, indent, level + 1, out); });
  } else if (const Object* members = value.as_object(); members != nullptr) {
    dump_items(*members, '{', '}', indent < 0, indent, level, out, [&](const Member& member) {
      dump_string(member.first, out);
      out += indent < 0 ? ":" : ": ";
      dump_value(member.second, indent, level + 1, out);
    });
  } else if (const std::string* s = value.as_string(); s != nullptr) {
    dump_string(*s, out);
  } else if (const bool* b = value.as_bool(); b != nullptr) {
    out += *b ? "true" : "false";
  } else if (const std::int64_t* i = value.as_i64(); i != nullptr) {
    out += fmt::to_string(*i);
  } else if (const auto* u = std::get_if<std::uint64_t>(&value.data()); u != nullptr) {
    out += fmt::to_string(*u);
  } else if (const double* d = std::get_if<double>(&value.data()); d != nullptr) {
    dump_double(*d, out);
  } else {
    out += "null";
  }
}

}  // namespace

Value::Value(const Value& other) : data_(std::visit([](const auto& x) { return Data(x); }, other.data_)) {}

Value& Value::operator=(const Value& other) {
  return *this = Value(other);
}

Value::Value(std::uint64_t u) {
  if (u <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    data_ = static_cast<std::int64_t>(u);
  } else {
    data_ = u;
  }
}

double Value::number() const {
  if (const double* d = std::get_if<double>(&data_); d != nullptr) return *d;
  if (const auto* u = std::get_if<std::uint64_t>(&data_); u != nullptr) return static_cast<double>(*u);
  if (const std::int64_t* i = as_i64(); i != nullptr) return static_cast<double>(*i);
  return 0;
}

const Value* Value::find(std::string_view key) const {
  const Object* members = as_object();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Value& Value::set(std::string_view key, Value value) {
  if (is_null()) data_ = Object{};
  Object* members = as_object();
  KVSCOPE_ASSERT(members != nullptr);
  for (Member& member : *members) {
    if (member.first == key) return member.second = std::move(value);
  }
  return members->emplace_back(std::string(key), std::move(value)).second;
}

std::string_view Value::kind() const {
  constexpr std::array<std::string_view, 8> kKinds = {"null",   "boolean", "integer", "integer",
                                                      "number", "string",  "array",   "object"};
  return kKinds[data_.index()];
}

Array strings(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

Value parse(std::string_view text, std::string_view source, std::size_t max_values) {
  return Builder(text, source, max_values).run();
}

std::string dump(const Value& value, int indent) {
  std::string out;
  dump_value(value, indent, 0, out);
  return out;
}

}  // namespace kvscope::json

#include "core/layout/layout_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/checked.h"

namespace kvscope::layout {
namespace {

// Limits far above any expression typed by hand, so that a hostile expression costs little.
constexpr std::size_t kMaxCharacters = 4096;
constexpr int kMaxDepth = 16;

// The expression in a message: a long one is cut to a window around the caret.
constexpr std::size_t kShownBefore = 60;
constexpr std::size_t kShownAfter = 40;

char shown(char c) {
  return c >= ' ' && c <= '~' ? c : '?';
}

[[noreturn]] void reject(std::string_view expression, std::size_t at, const std::string& message) {
  const std::size_t first = at > kShownBefore ? at - kShownBefore : 0;
  const std::size_t last = std::min(expression.size(), at + kShownAfter);
  std::string window;
  for (const char c : expression.substr(first, last - first)) window += shown(c);
  throw InputError(fmt::format("layout \"{}\"", window), fmt::format("column {}", at + 1),
                   fmt::format("{}\n  {}\n  {:>{}}", message, window, '^', at - first + 1));
}

// A tuple and where each of its nodes begins, in reading order.
struct Placed {
  IntTuple tuple;
  std::vector<std::size_t> begins;
};

class Parser {
 public:
  explicit Parser(std::string_view expression) : text_(expression) {}

  Layout run() {
    if (text_.size() > kMaxCharacters) {
      reject(text_, kMaxCharacters,
             fmt::format("{} characters, but at most {} are read", text_.size(), kMaxCharacters));
    }
    Layout layout;
    skip_space();
    layout.swizzle = swizzle();
    Placed shape;
    shape_at_ = at_;
    shape.tuple = tuple(shape.begins, 1, "a shape is 1 or more");
    check_size(shape.tuple);
    Placed stride;
    if (accept(':')) {
      stride.tuple = tuple(stride.begins, 0, "");
      std::size_t node = 0;
      check_congruent(shape.tuple, stride, stride.tuple, node);
    } else {
      std::int64_t product = 1;
      stride.tuple = column_major(shape.tuple, product);
    }
    if (at_ < text_.size()) reject(text_, at_, stride.begins.empty() ? "expected ':' or the end" : "expected the end");
    layout.shape = std::move(shape.tuple);
    layout.stride = std::move(stride.tuple);
    try {
      (void)cosize(layout);
    } catch (const OverflowError&) {
      reject(text_, stride.begins.front(), "the largest offset does not fit in 64 bits: use smaller strides");
    }
    return layout;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip_space();
    return true;
  }
  void expect(char c, const char* message) {
    if (!accept(c)) reject(text_, at_, message);
  }

  // CuTe prints compile-time integers with an underscore before them: "_8" is 8.
  std::int64_t integer(const char* expected) {
    if (at_ < text_.size() && text_[at_] == '_') ++at_;
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{text_[at_] - '0'}, &value)) {
        reject(text_, begin, "the number does not fit in 64 bits");
      }
    }
    if (at_ == begin) reject(text_, at_, expected);
    skip_space();
    return value;
  }

  // "Sw<3,3,3> o " or, as CuTe prints it with its offset, "Sw<3,3,3> o _0 o ".
  std::optional<Swizzle> swizzle() {
    const std::size_t begin = at_;
    if (!text_.substr(at_).starts_with("Sw")) return std::nullopt;
    at_ += 2;
    skip_space();
    expect('<', "expected '<'");
    const std::int64_t bits = integer("expected a number");
    expect(',', "expected ','");
    const std::int64_t base = integer("expected a number");
    expect(',', "expected ','");
    const bool negative = accept('-');
    const std::int64_t shift = integer("expected a number");
    expect('>', "expected '>'");
    expect('o', "expected 'o' and the layout that the swizzle follows");
    skip_offset();
    try {
      const auto small = [](std::int64_t x) { return static_cast<int>(std::min<std::int64_t>(x, 1000)); };
      return Swizzle(small(bits), small(base), negative ? -small(shift) : small(shift));
    } catch (const GeometryError& e) {
      const Fault& fault = e.faults().front();
      reject(text_, begin, fault.where.empty() ? fault.message : fault.where + " " + fault.message);
    }
  }

  void skip_offset() {
    const std::size_t begin = at_;
    if (at_ >= text_.size() || text_[at_] == '(') return;
    const std::int64_t offset = integer("expected a number or '('");
    if (!accept('o')) {
      at_ = begin;
    } else if (offset != 0) {
      reject(text_, begin, "an offset between swizzle and layout must be 0");
    }
  }

  IntTuple tuple(std::vector<std::size_t>& begins, std::int64_t least, const char* too_small, int depth = 0) {
    const std::size_t begin = at_;
    begins.push_back(begin);
    IntTuple result;
    if (!accept('(')) {
      result.value = integer("expected a number or '('");
      if (result.value < least) reject(text_, begin, too_small);
      return result;
    }
    if (depth == kMaxDepth) reject(text_, begin, fmt::format("nested deeper than {} levels", kMaxDepth));
    result.leaf = false;
    do {
      result.items.push_back(tuple(begins, least, too_small, depth + 1));
    } while (accept(','));
    expect(')', "expected ',' or ')'");
    return result;
  }

  void check_size(const IntTuple& shape) const {
    try {
      (void)size(shape);
    } catch (const OverflowError&) {
      reject(text_, shape_at_, "the size does not fit in 64 bits: use a smaller shape");
    }
  }

  void check_congruent(const IntTuple& shape, const Placed& stride, const IntTuple& part, std::size_t& node) const {
    const std::size_t begin = stride.begins[node++];
    if (shape.leaf && part.leaf) return;
    if (shape.leaf || part.leaf || shape.items.size() != part.items.size()) {
      const auto words = [](const IntTuple& t) {
        return t.leaf ? std::string("a number") : fmt::format("a tuple of {}", t.items.size());
      };
      reject(text_, begin,
             fmt::format("stride {} is {} where shape {} is {}", text(part), words(part), text(shape), words(shape)));
    }
    for (std::size_t i = 0; i < shape.items.size(); ++i) {
      check_congruent(shape.items[i], stride, part.items[i], node);
    }
  }

  static IntTuple column_major(const IntTuple& shape, std::int64_t& product) {
    IntTuple stride;
    if (shape.leaf) {
      stride.value = product;
      product *= shape.value;  // fits: check_size() has passed
      return stride;
    }
    stride.leaf = false;
    for (const IntTuple& item : shape.items) stride.items.push_back(column_major(item, product));
    return stride;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t shape_at_ = 0;
};

void print(const IntTuple& tuple, std::string& out) {
  if (tuple.leaf) {
    out += fmt::to_string(tuple.value);
    return;
  }
  out += '(';
  for (std::size_t i = 0; i < tuple.items.size(); ++i) {
    if (i > 0) out += ',';
    print(tuple.items[i], out);
  }
  out += ')';
}

// A precondition for callers that build a Layout themselves; parse_layout() and is_injective() check it.
void require_congruent(const IntTuple& shape, const IntTuple& stride) {
  if (shape.leaf == stride.leaf && shape.items.size() == stride.items.size()) return;
  throw GeometryError(
      fmt::format("layout {}:{} rejected: the stride is not nested as the shape is", text(shape), text(stride)));
}

// Largest offset of a part: the sum over leaves of (shape - 1) * stride.
std::int64_t largest_offset(const IntTuple& shape, const IntTuple& stride) {
  require_congruent(shape, stride);
  if (shape.leaf) return checked_mul(shape.value - 1, stride.value, "largest offset");
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    sum = checked_add(sum, largest_offset(shape.items[i], stride.items[i]), "largest offset");
  }
  return sum;
}

// Distributes an integer coordinate over the leaves, leftmost fastest; divides `rest` by the part it used.
std::int64_t offset_of_integer(const IntTuple& shape, const IntTuple& stride, std::int64_t& rest) {
  require_congruent(shape, stride);
  if (shape.leaf) {
    const std::int64_t digit = rest % shape.value;
    rest /= shape.value;
    return checked_mul(digit, stride.value, "offset");
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    sum = checked_add(sum, offset_of_integer(shape.items[i], stride.items[i], rest), "offset");
  }
  return sum;
}

std::int64_t offset_of_part(const IntTuple& shape, const IntTuple& stride, const IntTuple& coordinate) {
  require_congruent(shape, stride);
  if (coordinate.leaf) {
    check_index("coordinate", coordinate.value, size(shape), fmt::format("the mode's shape is {}", text(shape)));
    std::int64_t rest = coordinate.value;
    return offset_of_integer(shape, stride, rest);
  }
  if (shape.leaf || shape.items.size() != coordinate.items.size()) {
    throw IndexError(fmt::format("coordinate {} has {} modes where shape {} has {}", text(coordinate), rank(coordinate),
                                 text(shape), shape.leaf ? std::string("none") : fmt::to_string(rank(shape))));
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    sum = checked_add(sum, offset_of_part(shape.items[i], stride.items[i], coordinate.items[i]), "offset");
  }
  return sum;
}

}  // namespace

Layout parse_layout(std::string_view expression) {
  return Parser(expression).run();
}

std::string text(const IntTuple& tuple) {
  std::string out;
  print(tuple, out);
  return out;
}

std::string text(const Layout& layout) {
  const std::string plain = text(layout.shape) + ":" + text(layout.stride);
  if (!layout.swizzle) return plain;
  const Swizzle& s = *layout.swizzle;
  return fmt::format("Sw<{},{},{}> o {}", s.bits(), s.base(), s.shift(), plain);
}

int rank(const IntTuple& tuple) {
  return tuple.leaf ? 1 : static_cast<int>(tuple.items.size());
}

int depth(const IntTuple& tuple) {
  int deepest = -1;
  for (const IntTuple& item : tuple.items) deepest = std::max(deepest, depth(item));
  return tuple.leaf ? 0 : deepest + 1;
}

std::int64_t size(const IntTuple& tuple) {
  if (tuple.leaf) return tuple.value;
  std::int64_t product = 1;
  for (const IntTuple& item : tuple.items) product = checked_mul(product, size(item), "layout size");
  return product;
}

std::int64_t size(const Layout& layout) {
  return size(layout.shape);
}

std::int64_t cosize(const Layout& layout) {
  return checked_add(largest_offset(layout.shape, layout.stride), 1, "layout cosize");
}

std::int64_t offset_of(const Layout& layout, std::int64_t coordinate) {
  IntTuple leaf;
  leaf.value = coordinate;
  return offset_of(layout, leaf);
}

std::int64_t offset_of(const Layout& layout, const IntTuple& coordinate) {
  const std::int64_t offset = offset_of_part(layout.shape, layout.stride, coordinate);
  return layout.swizzle ? (*layout.swizzle)(offset) : offset;
}

}  // namespace kvscope::layout

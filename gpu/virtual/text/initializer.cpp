// Initializers: the bytes of a variable when a module is loaded. Braces as in ptxas: none for a single value, one pair
// per dimension (a vector's elements are one more), numbers only in the innermost; missing values are zero.
//
//   .b32 a[2][3] = {{1}, {2, 3}}        elements 1 0 0 2 3
//   .u64 p[2] = {generic(a)+8, f}       addresses of a variable and of a function
#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/virtual/text/detail/constant.h"
#include "gpu/virtual/text/detail/declarations.h"

namespace kvscope::ptx {
namespace {

// Limit of the zeros written for incomplete braces, such as "{{1},{2}}" for a [1 << 20][1 << 20].
constexpr std::int64_t kMostFilledZeros = 1 << 20;

class Initializer {
 public:
  Initializer(Context& context, Variable& variable)
      : context_(context), reader_(context.reader), v_(variable), dims_(variable.extents) {
    if (v_.vector > 1) dims_.push_back(v_.vector);
  }

  void read() {
    if (v_.space != Space::global && v_.space != Space::constant) {
      fail(reader_.at(), fmt::format("no initial value in space .{}", name(v_.space)));
    }
    if (v_.type == Type::f16 || v_.type == Type::bf16 || v_.type == Type::none) {
      fail(reader_.at(), fmt::format("no initial value for type .{}", v_.opaque.empty() ? name(v_.type) : v_.opaque));
    }
    if (dims_.empty()) {
      v_.init.push_back(read_item());
    } else {
      read_braces(0);
    }
  }

 private:
  // The number of elements that one pair of braces of this level covers.
  [[nodiscard]] std::int64_t block(std::size_t level) const {
    std::int64_t n = 1;
    for (std::size_t i = level; i < dims_.size(); ++i) n *= dims_[i];
    return n;
  }

  void read_braces(std::size_t level) {
    reader_.expect('{');
    const TextPlace at = reader_.at();
    const auto first = static_cast<std::int64_t>(v_.init.size());
    std::int64_t here = 0;
    if (!reader_.is('}')) {
      do {
        if (++here > dims_[level] && dims_[level] != 0) {
          fail(reader_.at(), fmt::format("'{}': more than {} initializers", v_.name, dims_[level]));
        }
        if (level + 1 < dims_.size()) {
          read_braces(level + 1);
        } else {
          v_.init.push_back(read_item());
        }
      } while (reader_.accept(','));
    }
    reader_.expect('}');
    if (v_.vector > 1 && level + 1 == dims_.size() && here != v_.vector) {
      fail(at, fmt::format("'{}': {} initializers of a vector of {}", v_.name, here, v_.vector));
    }
    if (level > 0) fill(first + block(level), at);
    if (level == 0 && dims_[0] == 0) {
      v_.extents[0] = here;
      v_.bytes = here * block(1) * (bits(v_.type) / 8);
    }
  }

  void fill(std::int64_t end, TextPlace at) {
    const std::int64_t missing = end - static_cast<std::int64_t>(v_.init.size());
    filled_ += missing;
    if (filled_ > kMostFilledZeros) {
      fail(at, fmt::format("'{}': braces leave more than {} zeros to fill in", v_.name, kMostFilledZeros));
    }
    v_.init.resize(static_cast<std::size_t>(end));
  }

  InitItem read_item() {
    if (reader_.at_word() && !reader_.is("WARP_SZ")) return read_symbol();
    const TextPlace at = reader_.at();
    if (!at_constant(reader_)) reader_.fail_expected("initializer");
    const Constant constant = read_constant(reader_);
    if (constant.kind == Constant::Kind::integer && reader_.accept('(')) return read_masked(constant.value, at);
    return {InitItem::Kind::bits, -1, bits_of(constant, at), 0};
  }

  // The number in the variable's type: 1.5 for a .f32 is 3fc00000.
  [[nodiscard]] std::int64_t bits_of(const Constant& constant, TextPlace at) const {
    const bool is_float = constant.kind != Constant::Kind::integer;
    const TypeClass cls = class_of(v_.type);
    const int width = bits(v_.type);
    if (!is_float && cls != TypeClass::floating) return constant.value;
    if (!is_float)
      fail(at, fmt::format("an integer for '.{} {}', expected a number as in 1.5", name(v_.type), v_.name));
    if ((cls != TypeClass::floating && cls != TypeClass::bits) || (width != 32 && width != 64)) {
      fail(at, fmt::format("a floating-point number for '.{} {}'", name(v_.type), v_.name));
    }
    const auto low = static_cast<std::uint32_t>(constant.value);
    if (constant.kind == Constant::Kind::float_bits) {
      return width == 32 ? low : std::bit_cast<std::int64_t>(static_cast<double>(std::bit_cast<float>(low)));
    }
    if (width == 64) return constant.value;
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(constant.value)));
  }

  // 0xFF00(sym): the second byte of its address.
  InitItem read_masked(std::int64_t mask, TextPlace at) {
    InitItem item = read_symbol();
    reader_.expect(')');
    for (int byte = 0; byte < 8; ++byte) {
      if (static_cast<std::uint64_t>(mask) == std::uint64_t{0xff} << 8 * byte) item.byte_mask = 1 << byte;
    }
    if (item.byte_mask == 0) fail(at, fmt::format("mask 0x{:x} is not one byte of an address", mask));
    return item;
  }

  InitItem read_symbol() {
    const bool generic = reader_.accept("generic");
    if (generic) reader_.expect('(');
    const Token token = reader_.expect_word("name");
    if (generic) reader_.expect(')');
    const Found found = context_.symbols.find(token.text);
    if (!found) fail(token.at, fmt::format("unknown symbol '{}'", token.text));
    InitItem item;
    item.index = found.index;
    if (found.symbol->kind == SymbolKind::function) {
      item.kind = InitItem::Kind::function;
    } else if (found.symbol->kind == SymbolKind::variable) {
      item.kind = generic ? InitItem::Kind::generic_variable : InitItem::Kind::variable;
    } else {
      fail(token.at, fmt::format("'{}' has no address to initialize with", token.text));
    }
    item.value = read_offset(reader_);
    return item;
  }

  Context& context_;
  Reader& reader_;
  Variable& v_;
  std::vector<std::int64_t> dims_;  // extents, and a vector's elements
  std::int64_t filled_ = 0;
};

}  // namespace

void read_initializer(Context& context, Variable& variable) {
  Initializer(context, variable).read();
}

}  // namespace kvscope::ptx

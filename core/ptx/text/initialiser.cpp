// Initialisers: what a variable's bytes are when a module is loaded.
#include <fmt/format.h>

#include <bit>
#include <cstddef>

#include "core/ptx/text/constant.h"
#include "core/ptx/text/declarations.h"

namespace kvscope::ptx {
namespace {

// Zeros written for braces that say less than an extent: more than the text is long, so that rows half filled are no
// trouble, and bounded, so that "{{1},{2}}" of a [1 << 30][1 << 30] is.
constexpr std::size_t kMostFilledZeros = 1 << 20;

class Initialiser {
 public:
  Initialiser(Context& context, Variable& variable) : context_(context), reader_(context.reader), v_(variable) {
    open_ = !v_.extents.empty() && v_.extents[0] == 0;
    elements_ = v_.vector;
    for (const std::int64_t extent : v_.extents) elements_ *= extent;
  }

  void read() {
    if (reader_.is('{')) {
      read_braces(0);
    } else {
      push(read_item());
    }
    if (!open_) return;
    std::int64_t row = v_.vector;
    for (std::size_t i = 1; i < v_.extents.size(); ++i) row *= v_.extents[i];
    v_.extents[0] = (size() + row - 1) / row;
    v_.bytes = v_.extents[0] * row * (bits(v_.type) / 8);
  }

 private:
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(v_.init.size()); }

  // Elements of what braces of this level hold: of the whole variable at 0, of one row of [4][3] at 1.
  [[nodiscard]] std::int64_t block(std::size_t level) const {
    std::int64_t n = v_.vector;
    for (std::size_t i = level; i < v_.extents.size(); ++i) n *= v_.extents[i];
    return n;
  }

  void read_braces(std::size_t level) {
    if (level > v_.extents.size() + (v_.vector > 1 ? 1 : 0)) fail(reader_.at(), "more braces than extents");
    reader_.expect('{');
    const std::int64_t first = size();
    while (!reader_.is('}')) {
      if (reader_.is('{')) {
        read_braces(level + 1);
      } else {
        push(read_item());
      }
      if (!reader_.accept(',')) break;
    }
    reader_.expect('}');
    if (level == 0) return;  // what is missing there is zero anyway
    const std::int64_t whole = level > v_.extents.size() ? v_.vector : block(level);
    while (size() - first < whole) {
      if (++filled_ > kMostFilledZeros) fail(reader_.at(), "braces leave more than a million zeros to fill in");
      push({});
    }
  }

  void push(InitItem item) {
    if (!open_ && size() >= elements_) {
      fail(reader_.at(), fmt::format("more initialisers than the {} elements of '{}'", elements_, v_.name));
    }
    v_.init.push_back(item);
  }

  InitItem read_item() {
    if (reader_.at_word() && !reader_.is("WARP_SZ")) return read_symbol();
    const TextPlace at = reader_.at();
    if (!at_constant(reader_)) reader_.fail_expected("initialiser");
    const Constant constant = read_constant(reader_);
    if (constant.kind == Constant::Kind::integer && reader_.accept('(')) return read_masked(constant.value, at);
    return {InitItem::Kind::bits, -1, bits_of(constant, at), 0};
  }

  // The number in the variable's type: 1.5 of a .f32 is 3fc00000.
  [[nodiscard]] std::int64_t bits_of(const Constant& constant, TextPlace at) const {
    if (constant.kind != Constant::Kind::double_bits || bits(v_.type) == 64) return constant.value;
    if (bits(v_.type) != 32) fail(at, fmt::format("a double initialises '.{} {}'", name(v_.type), v_.name));
    const auto narrow = static_cast<float>(std::bit_cast<double>(constant.value));
    return static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(narrow));
  }

  // 0xFF00(sym): the second byte of its address. The mask picks whole bytes that stand together.
  InitItem read_masked(std::int64_t mask, TextPlace at) {
    InitItem item = read_symbol();
    reader_.expect(')');
    for (int byte = 0; byte < 8; ++byte) {
      if (static_cast<std::uint64_t>(mask) == std::uint64_t{0xff} << 8 * byte)
        item.byte_mask = 1 << byte;  // bit i: byte i
    }
    if (item.byte_mask == 0) fail(at, fmt::format("mask 0x{:x} is not one byte of an address", mask));
    return item;
  }

  InitItem read_symbol() {
    if (reader_.is("generic")) {
      reader_.advance();
      reader_.expect('(');
      InitItem item = read_name();
      if (item.kind == InitItem::Kind::variable) item.kind = InitItem::Kind::generic_variable;
      item.value = read_offset(reader_);
      reader_.expect(')');
      add_offset(item);
      return item;
    }
    InitItem item = read_name();
    add_offset(item);
    return item;
  }

  void add_offset(InitItem& item) {
    const auto more = static_cast<std::uint64_t>(read_offset(reader_));
    item.value = static_cast<std::int64_t>(static_cast<std::uint64_t>(item.value) + more);
  }

  InitItem read_name() {
    const Token token = reader_.expect_word("initialiser");
    const Found found = context_.symbols.find(token.text);
    if (!found) fail(token.at, fmt::format("unknown symbol '{}'", token.text));
    if (found.symbol->kind == SymbolKind::variable) return {InitItem::Kind::variable, found.index, 0, 0};
    if (found.symbol->kind == SymbolKind::function) return {InitItem::Kind::function, found.index, 0, 0};
    fail(token.at, fmt::format("'{}' has no address to initialise with", token.text));
  }

  Context& context_;
  Reader& reader_;
  Variable& v_;
  bool open_ = false;
  std::int64_t elements_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace

void read_initialiser(Context& context, Variable& variable) {
  Initialiser(context, variable).read();
}

}  // namespace kvscope::ptx

#include "tests/gpu/virtual/semantics/one_op.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx::testing {
namespace {

constexpr std::size_t kBufferBytes = 16 * 1024;
constexpr int kPoison = 0xa5;

struct Buffer {
  alignas(64) std::array<std::byte, kBufferBytes> bytes;
};

int type_register_bytes(Type type) {
  const int width = bits(type);
  return type == Type::pred ? 0 : width <= 16 ? 2 : width / 8;
}

struct Element {
  int bytes = 0;  // 0: a predicate
  bool written = false;
  std::uint32_t reg = kNoRegister;
};

// The elements of all operands in the order written, d|p as two.
struct Layout {
  Instr instr;
  std::vector<Element> elements;
  bool lists = false;
  int operands = 0;
};

Layout parsed_layout(const Case& c) {
  Layout layout;
  layout.instr = understand(c.word);
  if (!layout.instr.unsupported.empty()) {
    ADD_FAILURE() << c.word << ": " << layout.instr.unsupported;
    return layout;
  }
  if (c.results > 0) {
    layout.lists = true;
    layout.elements.assign(static_cast<std::size_t>(c.results) + c.in.size(), Element{});
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.results); ++i) layout.elements[i].written = true;
    return layout;
  }
  for (int count = 1; count <= kMostOperands; ++count) {
    const std::vector<OperandRule> rules = operand_rules(layout.instr, count);
    std::vector<Element> elements;
    std::size_t read = 0;
    bool vectors = false;
    for (const OperandRule& rule : rules) {
      const bool written = rule.role == Role::written;
      for (int e = 0; e < rule.elements; ++e)
        elements.push_back({type_register_bytes(rule.type), written, kNoRegister});
      if (!written) read += static_cast<std::size_t>(rule.elements);
      vectors = vectors || rule.elements > 1;
    }
    if (rules.empty() || read != c.in.size()) continue;
    layout.lists = vectors || count > 4;
    layout.operands = count;
    layout.elements = std::move(elements);
    return layout;
  }
  ADD_FAILURE() << c.word << ": no form of it reads " << c.in.size() << " values";
  return layout;
}

// A test runs one instruction on thousands of values: its word is parsed once.
Layout layout_of(const Case& c) {
  static std::map<std::tuple<std::string, int, std::size_t>, Layout> parsed;
  const std::tuple key{c.word, c.results, c.in.size()};
  const auto found = parsed.find(key);
  if (found != parsed.end()) return found->second;
  Layout layout = parsed_layout(c);
  if (!layout.elements.empty()) parsed.emplace(key, layout);
  return layout;
}

OpRequest request_of(const Case& c, const Layout& layout) {
  OpRequest request{.instr = &layout.instr, .register_bytes = {}, .sum = c.sum, .results = 0};
  if (c.results > 0) request.results = static_cast<std::uint8_t>(c.results);
  std::vector<int> bytes;
  for (const Element& e : layout.elements) {
    bytes.push_back(e.bytes);
    if (layout.lists && c.pair && bytes.size() == 1) bytes.push_back(0);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(5, bytes.size()); ++i) {
    request.register_bytes[i] = static_cast<std::uint8_t>(bytes[i]);
  }
  return request;
}

void widen(const Case& c, Layout& layout) {
  for (std::size_t i = 0; i < c.register_bytes.size() && i < layout.elements.size(); ++i) {
    if (c.register_bytes[i] != 0) layout.elements[i].bytes = c.register_bytes[i];
  }
}

void put(std::byte* rows, const Element& e, const Lanes& values) {
  if (e.bytes == 0) {
    LaneMask word = 0;
    for (std::size_t i = 0; i < 32; ++i) word |= static_cast<LaneMask>(values[i] & 1) << i;
    std::memcpy(rows + e.reg, &word, sizeof word);
    return;
  }
  const auto width = static_cast<std::size_t>(e.bytes);
  for (std::size_t i = 0; i < 32; ++i)
    std::memcpy(rows + e.reg + width * i, &values[i], std::min<std::size_t>(width, 8));
}

Lanes get(const std::byte* rows, const Element& e) {
  Lanes values{};
  if (e.bytes == 0) {
    LaneMask word = 0;
    std::memcpy(&word, rows + e.reg, sizeof word);
    for (std::size_t i = 0; i < 32; ++i) values[i] = word >> i & 1;
    return values;
  }
  const auto width = static_cast<std::size_t>(e.bytes);
  for (std::size_t i = 0; i < 32; ++i)
    std::memcpy(&values[i], rows + e.reg + width * i, std::min<std::size_t>(width, 8));
  return values;
}

void expect_untouched(const Case& c, const std::vector<Element>& results, const Buffer& before, const Buffer& after) {
  Buffer expected = after;
  for (const Element& e : results) {
    const std::size_t bytes = e.bytes == 0 ? 4 : 32 * static_cast<std::size_t>(e.bytes);
    std::memcpy(expected.bytes.data() + e.reg, before.bytes.data() + e.reg, bytes);
  }
  EXPECT_EQ(std::memcmp(expected.bytes.data(), before.bytes.data(), kBufferBytes), 0)
      << c.word << " wrote where it has no result";
  for (const Element& e : results) {
    const Lanes was = get(before.bytes.data(), e);
    const Lanes is = get(after.bytes.data(), e);
    for (std::size_t i = 0; i < 32; ++i) {
      if ((c.mask >> i & 1) == 0) {
        EXPECT_EQ(is[i], was[i]) << c.word << " wrote lane " << i << " outside of its mask";
      }
    }
  }
}

}  // namespace

OpHandler handler_of(const Case& c) {
  Layout layout = layout_of(c);
  widen(c, layout);
  return find_op_handler(request_of(c, layout), c.simd);
}

Outcome run(const Case& c) {
  Layout layout = layout_of(c);
  widen(c, layout);
  const bool carry = layout.instr.has(Mod::cc) || layout.instr.opcode == Opcode::addc ||
                     layout.instr.opcode == Opcode::subc || layout.instr.opcode == Opcode::madc;
  const OpHandler handler = find_op_handler(request_of(c, layout), c.simd);
  if (handler == nullptr) {
    ADD_FAILURE() << c.word << " has no handler";
    return {{Lanes{}}, {}};
  }
  const auto before = std::make_unique<Buffer>();
  std::memset(before->bytes.data(), kPoison, kBufferBytes);
  std::uint32_t next = 64;
  const auto take = [&next](int bytes) {
    const std::uint32_t reg = next;
    next += (bytes == 0 ? 64u : 32u * static_cast<std::uint32_t>(bytes)) + 64u;
    return reg;
  };
  Element second{0, true, kNoRegister};
  if (c.pair || carry) second.reg = take(0);
  for (Element& e : layout.elements) e.reg = take(e.bytes);
  if (c.in_place) {
    for (const Element& e : layout.elements) {
      if (e.written || e.bytes != layout.elements[0].bytes) continue;
      layout.elements[0].reg = e.reg;
      break;
    }
  }
  std::vector<Element> results;
  std::size_t source = 0;
  for (const Element& e : layout.elements) {
    if (e.written) put(before->bytes.data(), e, c.before);
  }
  for (const Element& e : layout.elements) {
    if (e.written) {
      results.push_back(e);
    } else {
      put(before->bytes.data(), e, c.in[source++]);
    }
  }
  if (second.reg != kNoRegister) put(before->bytes.data(), second, carry ? c.before : Lanes{});
  const auto after = std::make_unique<Buffer>(*before);

  std::vector<std::uint32_t> list;
  for (std::size_t i = 0; i < layout.elements.size(); ++i) {
    list.push_back(layout.elements[i].reg);
    if (i == 0 && c.pair) list.push_back(second.reg);
  }
  Op op;
  op.negated = c.negated;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, layout.elements.size()); ++i) {
    const int code = std::countr_zero(static_cast<unsigned>(layout.elements[i].bytes | 32)) % 5;
    op.widths = static_cast<std::uint16_t>(op.widths | code << (3 * i));
  }
  if (layout.lists) {
    op.list = list.data();
    op.count = static_cast<std::uint16_t>(list.size());
    if (carry) op.at[4] = second.reg;
  } else {
    for (std::size_t i = 0; i < layout.elements.size(); ++i) op.at[i] = layout.elements[i].reg;
    op.at[4] = second.reg;
  }
  handler(after->bytes.data(), op, c.mask);

  Outcome outcome;
  for (const Element& e : results) outcome.d.push_back(get(after->bytes.data(), e));
  if (second.reg != kNoRegister) {
    outcome.p = get(after->bytes.data(), second);
    results.push_back(second);
  }
  expect_untouched(c, results, *before, *after);
  return outcome;
}

std::vector<Simd> simds() {
  std::vector<Simd> there{Simd::baseline};
  if (best_simd() >= Simd::avx2) there.push_back(Simd::avx2);
  if (best_simd() >= Simd::avx512) there.push_back(Simd::avx512);
  return there;
}

Lanes all(std::uint64_t value) {
  Lanes lanes;
  lanes.fill(value);
  return lanes;
}

namespace {

Both everywhere(Case c, std::initializer_list<std::uint64_t> in) {
  for (const std::uint64_t value : in) c.in.push_back(all(value));
  c.before = c.pair ? Lanes{} : all(0);
  Both first;
  bool any = false;
  for (const Simd simd : simds()) {
    for (const LaneMask mask : {kAllLanes, LaneMask{0x80010420}}) {
      c.simd = simd;
      c.mask = mask;
      const Outcome outcome = run(c);
      for (std::size_t i = 0; i < 32; ++i) {
        if ((mask >> i & 1) == 0) continue;
        const Both here{outcome.d[0][i], outcome.p[i]};
        if (!any) first = here;
        any = true;
        EXPECT_EQ(here.d, first.d) << c.word << " lane " << i << " instruction set " << static_cast<int>(simd);
        EXPECT_EQ(here.p, first.p) << c.word << " lane " << i << " instruction set " << static_cast<int>(simd);
      }
    }
  }
  return first;
}

}  // namespace

std::uint64_t one(const std::string& word, std::initializer_list<std::uint64_t> in, std::vector<int> register_bytes) {
  Case c;
  c.word = word;
  c.register_bytes = std::move(register_bytes);
  return everywhere(c, in).d;
}
Both both(const std::string& word, std::initializer_list<std::uint64_t> in) {
  Case c;
  c.word = word;
  c.pair = true;
  return everywhere(c, in);
}

std::uint64_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}
float as_float(std::uint64_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x));
}
double as_double(std::uint64_t x) {
  return std::bit_cast<double>(x);
}

}  // namespace kvscope::ptx::testing

#include "gpu/virtual/machine/tensor/product_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx {
namespace {

constexpr int kStepBytes = 32;  // of k, of each row
constexpr int kStoredChunkBytes = 16;

int field_of(std::uint32_t word, int lowest, int bits) {
  return static_cast<int>(word >> lowest & ((1U << bits) - 1));
}

// The number of a sign, exponent and mantissa of `exponent` and `mantissa` bits, without infinities and NaN.
float small_number(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(bits & ((1U << mantissa_bits) - 1));
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const bool negative = (bits >> (exponent_bits + mantissa_bits) & 1) != 0;
  const float size =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
  return negative ? -size : size;
}
float small_number(ElementType type, std::uint32_t bits) {
  if (type == ElementType::e2m3) return small_number(bits, 2, 3);
  if (type == ElementType::e3m2) return small_number(bits, 3, 2);
  return small_number(bits, 2, 1);
}

bool is_small(ElementType type) {
  return type == ElementType::e2m3 || type == ElementType::e3m2 || type == ElementType::e2m1;
}

// `code` of a field of 3 bits; false: the kind has no such type.
bool element_of(const Instr& instr, int code, ElementType& type) {
  const auto choose = [&](std::initializer_list<std::pair<int, ElementType>> choices) {
    for (const auto& [number, choice] : choices) {
      if (number == code) {
        type = choice;
        return true;
      }
    }
    return false;
  };
  if (instr.has(Mod::kind_f16)) return choose({{0, ElementType::f16}, {1, ElementType::bf16}});
  if (instr.has(Mod::kind_tf32)) return choose({{2, ElementType::tf32}});
  if (instr.has(Mod::kind_i8)) return choose({{0, ElementType::u8}, {1, ElementType::s8}});
  if (instr.has(Mod::kind_mxf4) || instr.has(Mod::kind_mxf4nvf4)) return choose({{1, ElementType::e2m1_packed}});
  return choose({{0, ElementType::e4m3},
                 {1, ElementType::e5m2},
                 {3, ElementType::e2m3},
                 {4, ElementType::e3m2},
                 {5, ElementType::e2m1}});
}

class DescriptionReader {
 public:
  DescriptionReader(const Instr& instr, std::uint32_t bits)
      : instr_(instr), bits_(bits), scaled_(instr.has(Mod::block_scale)) {}

  TensorProduct read() {
    p_.pair = instr_.has(Mod::cta_group_2);
    p_.weight_stationary = instr_.opcode == Opcode::tcgen05_mma_ws || instr_.opcode == Opcode::tcgen05_mma_ws_sp;
    p_.sparse = instr_.opcode == Opcode::tcgen05_mma_sp || instr_.opcode == Opcode::tcgen05_mma_ws_sp;
    p_.m = 16 * field_of(bits_, 24, 5);
    p_.n = 8 * field_of(bits_, 17, 6);
    p_.negate_a = field_of(bits_, 13, 1) != 0;
    p_.negate_b = field_of(bits_, 14, 1) != 0;
    p_.a_along_m = field_of(bits_, 15, 1) != 0;
    p_.b_along_n = field_of(bits_, 16, 1) != 0;
    sparsity();
    types();
    if (faults_.empty()) {
      p_.k = 8 * kStepBytes / stored_bits(p_.a) * (p_.sparse ? 2 : 1);
      majors();
      shape();
    }
    if (scaled_) {
      scales();
    } else {
      result();
    }
    if (!faults_.empty())
      throw GeometryError(fmt::format("instruction descriptor 0x{:08x}", bits_), std::move(faults_));
    return p_;
  }

 private:
  void fail(std::string what, std::string why) { faults_.push_back({std::move(what), std::move(why)}); }

  void sparsity() {
    const bool bit = field_of(bits_, 2, 1) != 0;
    if (bit && !p_.sparse) fail("sparsity", "bit 2 is 1, but only tcgen05.mma.sp multiplies a sparse A");
    if (!bit && p_.sparse) fail("sparsity", "bit 2 is 0, but tcgen05.mma.sp multiplies a sparse A: set it to 1");
    if (!p_.sparse || scaled_) return;  // with block scales the selector counts as 0
    p_.selector = field_of(bits_, 0, 2);
    const bool selects = instr_.has(Mod::kind_f16) || instr_.has(Mod::kind_tf32);
    if (!selects && p_.selector != 0)
      fail("sparsity selector", fmt::format("{} in bits 0-1: this kind takes 0", p_.selector));
    if (selects && p_.selector > 1)
      fail("sparsity selector", fmt::format("{} in bits 0-1: 0 or 1, a column of the metadata", p_.selector));
  }

  void types() {
    if (!element_of(instr_, field_of(bits_, 7, 3), p_.a))
      fail("type of A", fmt::format("{} in bits 7-9 is none of this kind", field_of(bits_, 7, 3)));
    if (!element_of(instr_, field_of(bits_, 10, 3), p_.b))
      fail("type of B", fmt::format("{} in bits 10-12 is none of this kind", field_of(bits_, 10, 3)));
    const bool integer = instr_.has(Mod::kind_i8);
    if (integer && (p_.negate_a || p_.negate_b)) fail("sign", "bits 13 and 14 must be 0: integers are not negated");
  }

  void majors() {
    const auto check = [&](std::string_view what, bool along, ElementType type) {
      if (!along) return;
      if (is_small(type) || type == ElementType::e2m1_packed)
        fail(std::string(what), "elements of 6 and 4 bits must be K-major");
    };
    check("A", p_.a_along_m, p_.a);
    check("B", p_.b_along_n, p_.b);
  }

  void shape() {
    const auto is_n = [&](int least, int step) { return p_.n >= least && p_.n <= 256 && p_.n % step == 0; };
    const auto wrong_m = [&](std::string_view of) { fail("M", fmt::format("{} in bits 24-28: {}", p_.m, of)); };
    const auto wrong_n = [&](std::string_view of) { fail("N", fmt::format("{} in bits 17-22: {}", p_.n, of)); };
    if (p_.weight_stationary) {
      if (p_.m != 32 && p_.m != 64 && p_.m != 128) wrong_m("32, 64 or 128");
      if (p_.n != 64 && p_.n != 128 && p_.n != 256) wrong_n("64, 128 or 256");
      return;
    }
    if (p_.sparse && p_.pair && p_.m == 128)
      throw UnsupportedError("a sparse product of a pair of CTAs with M 128 is not modeled: use M 256");
    if (p_.pair) {
      if (p_.m != 128 && p_.m != 256) wrong_m("128 or 256 for a pair of CTAs");
      const int step = scaled_ ? 16 : 32;
      if (!is_n(step, step)) wrong_n(fmt::format("a multiple of {} to 256 for a pair of CTAs", step));
      return;
    }
    if (scaled_) {
      if (p_.m != 128) wrong_m("128");
      if (!is_n(8, 8)) wrong_n("a multiple of 8 to 256");
      return;
    }
    if (p_.m != 64 && p_.m != 128) wrong_m("64 or 128");
    if (instr_.has(Mod::kind_i8)) {
      if (!is_n(16, 16) && p_.n != 8 && p_.n != 24) wrong_n("8, 24, or a multiple of 16 to 256");
    } else if (const int step = p_.m == 128 ? 16 : 8; !is_n(step, step)) {
      wrong_n(fmt::format("a multiple of {} to 256 with M {}", step, p_.m));
    }
  }

  void result() {
    const int code = field_of(bits_, 4, 2);
    const bool integer = instr_.has(Mod::kind_i8), halves = instr_.has(Mod::kind_f16) || instr_.has(Mod::kind_f8f6f4);
    p_.d = code == 0 ? Type::f16 : code == 1 ? Type::f32 : Type::s32;
    const bool fits = integer ? code == 2 : code == 1 || (code == 0 && halves);
    if (!fits) fail("type of D", fmt::format("{} in bits 4-5 is none of this kind", code));
    p_.saturate = field_of(bits_, 3, 1) != 0;
    if (p_.saturate && !integer) fail("saturation", "bit 3 must be 0: only integers saturate");
    if (field_of(bits_, 23, 1) != 0 || field_of(bits_, 29, 1) != 0 || field_of(bits_, 6, 1) != 0)
      fail("reserved bits", "6, 23 and 29 must be 0");
    if (!p_.weight_stationary && field_of(bits_, 30, 2) != 0) fail("shift", "bits 30-31 must be 0: only .ws shifts B");
    constexpr std::array<int, 4> kMostShift{0, 8, 16, 32};
    p_.most_shift = kMostShift[static_cast<std::size_t>(field_of(bits_, 30, 2))];
  }

  void scales() {
    const bool nv = instr_.has(Mod::kind_mxf4nvf4);
    p_.scale = field_of(bits_, 23, 1) != 0 ? ScaleType::ue8m0 : ScaleType::ue4m3;
    if (!nv && p_.scale == ScaleType::ue4m3) fail("type of scales", "bit 23 must be 1: ue8m0");
    const bool four = instr_.has(Mod::scale_vec_4X) || instr_.has(Mod::block16);
    p_.scales = instr_.has(Mod::kind_mxf8f6f4) ? 1 : four ? 4 : 2;
    if (nv && !four && p_.scale == ScaleType::ue4m3)
      fail("type of scales", "blocks of 32 elements need ue8m0: bit 23 is 1");
    p_.b_scale_byte = field_of(bits_, 4, 2);
    p_.a_scale_byte = field_of(bits_, 29, 2);
    if (p_.a_scale_byte % p_.scales != 0 || p_.b_scale_byte % p_.scales != 0) {
      fail("scale bytes", fmt::format("A {} in bits 29-30, B {} in bits 4-5: a multiple of {}, the scales of a row",
                                      p_.a_scale_byte, p_.b_scale_byte, p_.scales));
    }
    if (field_of(bits_, 31, 1) != 0) throw UnsupportedError("a product with K 96 needs sm_103a, not modeled");
    if (field_of(bits_, 3, 1) != 0 || field_of(bits_, 6, 1) != 0) fail("reserved bits", "3 and 6 must be 0");
    if (p_.pair && p_.m == 128)
      throw UnsupportedError("block scales of a pair of CTAs with M 128 are not modeled: use M 256");
  }

  const Instr& instr_;
  std::uint32_t bits_;
  bool scaled_;
  TensorProduct p_;
  std::vector<Fault> faults_;
};

}  // namespace

ColumnMask column_mask_of(const TensorProduct& product, std::uint64_t descriptor) {
  const auto field = [descriptor](int lowest, int bits) {
    return static_cast<int>(descriptor >> lowest & ((std::uint64_t{1} << bits) - 1));
  };
  std::vector<Fault> faults;
  ColumnMask mask;
  mask.skipped = field(56, 6);
  mask.zero.resize(static_cast<std::size_t>(product.n));
  if (field(36, 3) != 0 || field(62, 2) != 0) faults.push_back({"reserved bits", "36-38 and 62-63 must be 0"});
  const int most = std::min(product.most_shift, product.m == 32 ? 16 : 32);
  if (mask.skipped > most) {
    faults.push_back({"column shift", fmt::format("{} in bits 56-61: at most {}, by M and by bits 30-31 of the "
                                                  "instruction descriptor",
                                                  mask.skipped, most)});
  }
  const int zeros = field(40, 8) + 1, used = field(48, 8) + 1, part = product.n * product.m / 128;
  for (int i = 0; field(39, 1) != 0 && i < product.n / part; ++i) {
    const int start = field(8 * i, 8);
    const bool begins_with_zeros = field(32 + i, 1) != 0;
    if (start >= (begins_with_zeros ? zeros : used)) {
      faults.push_back(
          {fmt::format("start count {}", i), fmt::format("{}: less than the first run of the mask, {} columns", start,
                                                         begins_with_zeros ? zeros : used)});
    }
    for (int n = 0; n < part; ++n) {
      const int at = (n + start) % (zeros + used);
      mask.zero[static_cast<std::size_t>(i * part + n)] = begins_with_zeros ? at < zeros : at >= used;
    }
  }
  if (!faults.empty()) throw GeometryError(fmt::format("zero-column mask 0x{:016x}", descriptor), std::move(faults));
  return mask;
}

TensorProduct product_of(const Instr& instr, std::uint32_t descriptor) {
  return DescriptionReader(instr, descriptor).read();
}

Type product_type(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return Type::f16;
    case ElementType::bf16:
      return Type::bf16;
    case ElementType::tf32:
      return Type::tf32;
    case ElementType::e5m2:
      return Type::e5m2;
    case ElementType::u8:
      return Type::u8;
    case ElementType::s8:
      return Type::s8;
    default:
      return Type::e4m3;
  }
}

int stored_bits(ElementType type) {
  switch (type) {
    case ElementType::f16:
    case ElementType::bf16:
      return 16;
    case ElementType::tf32:
      return 32;
    case ElementType::e2m1_packed:
      return 4;
    default:
      return 8;
  }
}

void decode_chunk(ElementType type, const std::byte* from, float* to) {
  if (!is_small(type) && type != ElementType::e2m1_packed) {
    return decode_elements(product_type(type), from, 8 * kStoredChunkBytes / stored_bits(type), to);
  }
  const int width = type == ElementType::e2m1 || type == ElementType::e2m1_packed ? 4 : 6;
  const int count = type == ElementType::e2m1_packed ? 32 : 16;
  for (int i = 0; i < count; ++i) {
    const int bit = i * width;
    std::uint32_t bits = std::to_integer<std::uint32_t>(from[bit / 8]);
    if (bit % 8 + width > 8) bits |= std::to_integer<std::uint32_t>(from[bit / 8 + 1]) << 8;
    to[i] = small_number(type, bits >> (bit % 8) & ((1U << width) - 1));
  }
}
void decode_chunk(ElementType type, const std::byte* from, std::int32_t* to) {
  decode_elements(product_type(type), from, kStoredChunkBytes, to);
}

void decode_cell(ElementType type, std::uint32_t cell, float* to) {
  if (is_small(type)) {
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t byte = cell >> (8 * i);
      to[i] = small_number(type, type == ElementType::e2m1 ? byte >> 2 & 0xf : byte & 0x3f);
    }
  } else if (type == ElementType::e2m1_packed) {
    for (int i = 0; i < 8; ++i) to[i] = small_number(type, cell >> (4 * i) & 0xf);
  } else {
    std::byte bytes[sizeof cell];
    std::memcpy(bytes, &cell, sizeof cell);
    decode_elements(product_type(type), bytes, 32 / stored_bits(type), to);
  }
}
void decode_cell(ElementType type, std::uint32_t cell, std::int32_t* to) {
  std::byte bytes[sizeof cell];
  std::memcpy(bytes, &cell, sizeof cell);
  decode_elements(product_type(type), bytes, 4, to);
}

double decode_scale(ScaleType type, std::uint8_t bits) {
  return decode_scale(type == ScaleType::ue8m0 ? Type::ue8m0 : Type::ue4m3, bits);
}

}  // namespace kvscope::ptx

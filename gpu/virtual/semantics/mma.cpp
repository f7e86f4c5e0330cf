// mma of a warp: registers -> tiles -> product -> registers, for all shapes and types, with a sparse A and with block
// scales; and movmatrix.
//
// E numbers per register (tf32, f64 1, 16-bit 2, 8-bit 4, 4-bit 8, 1-bit 32; .kind::f8f6f4 and mxf8f6f4 4); g = lane / 4, t = lane % 4; number e of
// register r of lane (g,t):
//
//   A, m16   row g + 8 (r % 2), k = t E + e + 4 E (r / 2)        A, m8   row g, k = t E + e + 4 E r
//   B        k = t E + e + 4 E r, column g
//   sparse A   as an A of half as many k; its metadata is in one more register (isa/sparse_metadata.h)
//   scales     a register each: byte b + s is scale s of a row or column; of A, row g from lane 4 g + 2 l and row g + 8
//              from the next lane; of B, column g from lane 4 g + l. {b, l} is an operand
//   C, D     register i: row g + 8 (i / 2), column 2t + i % 2; for f16 register i: row g + 8 i, columns 2t, 2t + 1
//
// Source: PTX ISA, "Matrix Fragments for mma", "Block Scaling for mma.sync". Tested by mma_test.cpp,
// sparse_mma_test.cpp and scaled_mma_test.cpp in tests/gpu/virtual/semantics.
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/semantics/detail/float_bits.h"
#include "gpu/virtual/semantics/detail/lanes.h"
#include "gpu/virtual/semantics/detail/op_families.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx::semantics {
namespace {

constexpr int kMostA = 16 * 256;  // numbers: m16n8k256 of b1
constexpr int kMostB = 256 * 8;
constexpr int kMostD = 16 * 8;

struct MmaForm {
  MatrixProduct product;
  bool in_bytes = false;  // elements of 6 and 4 bits take 8
  Type scale = Type::none;
  int scales = 0;  // per row and column
  friend bool operator==(const MmaForm&, const MmaForm&) = default;
};

constexpr int element_bits(const MmaForm& form) {
  switch (form.product.a) {
    case Type::f64:
      return 64;
    case Type::f16:
    case Type::bf16:
      return 16;
    case Type::e4m3:
    case Type::e5m2:
    case Type::e2m3:
    case Type::e3m2:
    case Type::s8:
    case Type::u8:
      return 8;
    case Type::e2m1:
      return form.in_bytes ? 8 : 4;
    case Type::s4:
    case Type::u4:
      return 4;
    case Type::b1:
      return 1;
    default:
      return 32;
  }
}

// The registers of a fragment as 32 lanes each, decoded: [register][lane][number].
template <class T>
void decode_registers(const MmaForm& form, Type type, const std::byte* registers, const u32* list, int count,
                      T* numbers) {
  const int per_register = 32 / element_bits(form);
  for (int r = 0; r < count; ++r) {
    T* const to = numbers + r * kLanes * per_register;
    if (form.in_bytes && type == Type::e2m1) {  // in bits 2 to 5 of its byte
      u32 words[kLanes];
      __builtin_memcpy(words, registers + list[r], sizeof words);
      u8 codes[2 * kLanes];
      for (int i = 0; i < 2 * kLanes; ++i) {
        const u32 half = words[i / 2] >> (16 * (i % 2));
        codes[i] = static_cast<u8>((half >> 2 & 0xf) | (half >> 6 & 0xf0));
      }
      decode_elements(type, reinterpret_cast<const std::byte*>(codes), kLanes * per_register, to);
      continue;
    }
    decode_elements(type, registers + list[r], kLanes * per_register, to);
  }
}
void decode_registers(const MmaForm&, Type, const std::byte* registers, const u32* list, int count, double* numbers) {
  for (int r = 0; r < count; ++r) __builtin_memcpy(numbers + r * kLanes, registers + list[r], 8 * kLanes);
}

struct Counts {
  int per_register, a_k, a, b, d;  // numbers per register, columns of A in registers, registers
};
constexpr Counts counts_of(const MmaForm& form) {
  const MatrixProduct& p = form.product;
  const int bits = element_bits(form);
  const int per_register = bits == 64 ? 1 : 32 / bits;
  const int per_row = kLanes * per_register, a_k = p.sparse ? p.k / 2 : p.k;
  return {per_register, a_k, p.m * a_k / per_row, p.k * p.n / per_row, p.m * p.n / (p.d == Type::f16 ? 64 : 32)};
}

template <class T>
void gather(const MatrixProduct& p, const Counts& n, const T* in_a, const T* in_b, T* a, T* b) {
  const int rows_a = p.m / 8;  // groups of eight rows
  for (int r = 0; r < n.a; ++r) {
    for (int i = 0; i < kLanes * n.per_register; ++i) {
      const int row_of_a = i / (4 * n.per_register) + 8 * (r % rows_a);
      a[row_of_a * n.a_k + i % (4 * n.per_register) + 4 * n.per_register * (r / rows_a)] =
          in_a[r * kLanes * n.per_register + i];
    }
  }
  for (int r = 0; r < n.b; ++r) {
    for (int i = 0; i < kLanes * n.per_register; ++i) {
      const int k = i % (4 * n.per_register) + 4 * n.per_register * r;
      b[k * p.n + i / (4 * n.per_register)] = in_b[r * kLanes * n.per_register + i];
    }
  }
}

// The position in the tile of a lane's register i.
int place(int n, int i, int lane) {
  return (lane / 4 + 8 * (i / 2)) * n + 2 * (lane % 4) + i % 2;
}

template <class T>
void read_tile(const MatrixProduct& p, const Counts& n, const std::byte* registers, const u32* list, T* tile) {
  for (int i = 0; i < n.d; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::byte* from = registers + list[i] + sizeof(T) * static_cast<u32>(lane);
      __builtin_memcpy(tile + place(p.n, i, lane), from, sizeof(T));
    }
  }
}
template <class T>
void write_tile(const MatrixProduct& p, const Counts& n, const T* tile, std::byte* registers, const u32* list,
                LaneMask lanes) {
  for (int i = 0; i < n.d; ++i) {
    if (list[i] == kNoRegister) continue;  // _
    for (int lane = 0; lane < kLanes; ++lane) {
      std::byte* to = registers + list[i] + sizeof(T) * static_cast<u32>(lane);
      if ((lanes >> lane & 1) != 0) __builtin_memcpy(to, tile + place(p.n, i, lane), sizeof(T));
    }
  }
}
void read_f16_tile(const MatrixProduct& p, const Counts& n, const std::byte* registers, const u32* list, float* tile) {
  for (int i = 0; i < 2 * n.d; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      u16 x;
      __builtin_memcpy(&x, registers + list[i / 2] + 4 * lane + 2 * (i % 2), sizeof x);
      tile[place(p.n, i, lane)] = float_of_f16_bits(x);
    }
  }
}
void write_f16_tile(const MatrixProduct& p, const Counts& n, const float* tile, std::byte* registers, const u32* list,
                    LaneMask lanes) {
  for (int i = 0; i < 2 * n.d; ++i) {
    if (list[i / 2] == kNoRegister) continue;  // _
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      const u16 x = f16_bits_of(tile[place(p.n, i, lane)]);
      __builtin_memcpy(registers + list[i / 2] + 4 * lane + 2 * (i % 2), &x, sizeof x);
    }
  }
}

// The scales of rows or columns: [count][scales]. `register_at`, `choice`: of the scales and of {byte, lane}.
void read_scales(const MmaForm& form, const std::byte* registers, const u32* list, bool of_a, double* to) {
  u32 words[kLanes];
  u16 first_byte, chosen;
  __builtin_memcpy(words, registers + list[0], sizeof words);
  __builtin_memcpy(&first_byte, registers + list[1], sizeof first_byte);
  __builtin_memcpy(&chosen, registers + list[2], sizeof chosen);
  for (int row = 0; row < (of_a ? 16 : 8); ++row) {
    const int lane = of_a ? 4 * (row % 8) + 2 * (chosen & 1) + row / 8 : 4 * row + (chosen & 3);
    for (int s = 0; s < form.scales; ++s)
      to[row * form.scales + s] =
          decode_scale(form.scale, static_cast<u8>(words[lane] >> (8 * ((first_byte + s) & 3))));
  }
}

// Multiplied by multiply_add_in_halves: fp8 on Hopper.
bool is_two_products(const MmaForm& form) {
  const MatrixProduct& p = form.product;
  return p.sum == SumMode::hopper && !form.in_bytes && (p.a == Type::e4m3 || p.a == Type::e5m2);
}

// After the registers of C: metadata and selector of a sparse A, scales of A and B with {byte, lane} each.
template <class T>
void multiply_registers(const MmaForm& form, const T* a, const T* b, const std::byte* registers, const u32* list,
                        T* d) {
  const MatrixProduct& p = form.product;
  u16 columns[kMostA / 2];
  if constexpr (!std::is_same_v<T, double>) {
    if (p.sparse) {
      u32 words[kLanes], selector;
      __builtin_memcpy(words, registers + list[0], sizeof words);
      __builtin_memcpy(&selector, registers + list[1], sizeof selector);
      metadata_columns(element_bits(form), p.k, static_cast<int>(selector), words, columns);
      list += 2;
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (is_two_products(form)) return multiply_add_in_halves(p, a, p.sparse ? columns : nullptr, b, d);
    if (form.scales > 0) {
      double of_a[16 * 4], of_b[8 * 4];
      read_scales(form, registers, list, true, of_a);
      read_scales(form, registers, list + 3, false, of_b);
      return multiply_add_scaled(p, {p.k / form.scales, of_a, of_b}, a, p.sparse ? columns : nullptr, b, d);
    }
  }
  if constexpr (!std::is_same_v<T, double>) {
    if (p.sparse) return multiply_add_sparse(p, a, columns, b, d);
  }
  multiply_add(p, a, b, d);
}

template <class T>
void run_mma(const MmaForm& form, std::byte* registers, const Op& op, LaneMask lanes) {
  const MatrixProduct& p = form.product;
  const Counts n = counts_of(form);
  const u32* list_d = op.list;
  const u32* list_a = list_d + n.d;
  const u32* list_b = list_a + n.a;
  const u32* list_c = list_b + n.b;
  T in_a[kMostA], in_b[kMostB], a[kMostA], b[kMostB], d[kMostD];
  decode_registers(form, p.a, registers, list_a, n.a, in_a);
  decode_registers(form, p.b, registers, list_b, n.b, in_b);
  gather(p, n, in_a, in_b, a, b);
  if constexpr (std::is_same_v<T, float>) {
    if (p.d == Type::f16) {
      read_f16_tile(p, n, registers, list_c, d);
      multiply_registers(form, a, b, registers, list_c + n.d, d);
      return write_f16_tile(p, n, d, registers, list_d, lanes);
    }
  }
  read_tile(p, n, registers, list_c, d);
  multiply_registers(form, a, b, registers, list_c + n.d, d);
  write_tile(p, n, d, registers, list_d, lanes);
}

// --- all forms, and a handler for each -------------------------------------------------------------------------------

template <std::size_t kMost>
struct FormList {
  std::array<MmaForm, kMost> forms{};
  std::size_t count = 0;

  constexpr void add(const MmaForm& form) {
    if (count < kMost) forms[count] = form;
    ++count;
  }
};

constexpr MatrixProduct of(int m, int k, Type d, Type a, Type b, SumMode sum, bool sparse) {
  MatrixProduct p;
  p.m = m;
  p.n = 8;
  p.k = k;
  p.a = a;
  p.b = b;
  p.d = d;
  p.sum = sum;
  p.sparse = sparse;
  return p;
}

constexpr Type kFp8[] = {Type::e4m3, Type::e5m2};
constexpr Type kUpTo8Bits[] = {Type::e4m3, Type::e5m2, Type::e2m3, Type::e3m2, Type::e2m1};

template <class List>
constexpr void add_floats(List& list, SumMode sum, bool sparse) {
  const int twice = sparse ? 2 : 1;
  const auto add = [&](int k, Type d, Type a, Type b, bool in_bytes) {
    list.add({of(16, k * twice, d, a, b, sum, sparse), in_bytes});
  };
  for (const int k : {8, 16}) {
    add(k, Type::f32, Type::f16, Type::f16, false);
    add(k, Type::f16, Type::f16, Type::f16, false);
    add(k, Type::f32, Type::bf16, Type::bf16, false);
    add(k / 2, Type::f32, Type::tf32, Type::tf32, false);
  }
  for (const Type d : {Type::f32, Type::f16}) {
    for (const Type a : kFp8) {
      for (const Type b : kFp8) {
        if (!sparse) add(16, d, a, b, false);
        add(32, d, a, b, false);
      }
    }
    for (const Type a : kUpTo8Bits) {
      for (const Type b : kUpTo8Bits) add(32, d, a, b, true);
    }
    for (const Type a : kFp8) {
      for (const Type b : kFp8) {
        if (!sparse) add(16, d, a, b, true);
      }
    }
  }
}

template <class List>
constexpr void add_scaled(List& list, bool sparse) {
  const int twice = sparse ? 2 : 1;
  for (const Type a : kUpTo8Bits) {
    for (const Type b : kUpTo8Bits)
      list.add({of(16, 32 * twice, Type::f32, a, b, SumMode::seq, sparse), true, Type::ue8m0, 1});
  }
  const MatrixProduct p = of(16, 64 * twice, Type::f32, Type::e2m1, Type::e2m1, SumMode::seq, sparse);
  list.add({p, false, Type::ue8m0, 2});
  list.add({p, false, Type::ue4m3, 4});
}

template <class List>
constexpr void add_integers(List& list, bool sparse, bool saturate) {
  const auto add = [&](int m, int k, Type a, Type b) {
    MmaForm form{of(m, sparse ? 2 * k : k, Type::s32, a, b, SumMode::seq, sparse)};
    form.product.saturate = saturate;
    list.add(form);
  };
  for (const int bits : {8, 4}) {
    const Type types[] = {bits == 8 ? Type::s8 : Type::s4, bits == 8 ? Type::u8 : Type::u4};
    const int unit = 128 / bits;  // k of m8n8, and the smallest k of m16n8
    for (const Type a : types) {
      for (const Type b : types) {
        if (!sparse) add(8, unit, a, b);
        add(16, unit, a, b);
        add(16, 2 * unit, a, b);
      }
    }
  }
}

template <class List>
constexpr void add_all(List& list) {
  for (const bool sparse : {false, true}) {
    for (const SumMode sum : {SumMode::seq, SumMode::exact, SumMode::hopper}) add_floats(list, sum, sparse);
    add_scaled(list, sparse);
    for (const bool saturate : {false, true}) add_integers(list, sparse, saturate);
  }
  for (const bool both : {false, true}) {
    for (const auto& [m, k] : {std::pair{8, 128}, std::pair{16, 128}, std::pair{16, 256}}) {
      MmaForm form{of(m, k, Type::s32, Type::b1, Type::b1, SumMode::seq, false)};
      form.product.both = both;
      list.add(form);
    }
  }
  for (const auto& [m, k] : {std::pair{8, 4}, std::pair{16, 4}, std::pair{16, 8}, std::pair{16, 16}}) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up}) {
      MmaForm form{of(m, k, Type::f64, Type::f64, Type::f64, SumMode::seq, false)};
      form.product.rounding = rounding;
      list.add(form);
    }
  }
}

constexpr std::size_t count_forms() {
  FormList<1> list;
  add_all(list);
  return list.count;
}
constexpr std::size_t kFormCount = count_forms();
constexpr std::array<MmaForm, kFormCount> every_form() {
  FormList<kFormCount> list;
  add_all(list);
  return list.forms;
}
constexpr std::array<MmaForm, kFormCount> kForms = every_form();

template <std::size_t kNumber>
void mma(std::byte* registers, const Op& op, LaneMask lanes) {
  constexpr Type kD = kForms[kNumber].product.d;
  if constexpr (kD == Type::f64) {
    run_mma<double>(kForms[kNumber], registers, op, lanes);
  } else if constexpr (kD == Type::s32) {
    run_mma<i32>(kForms[kNumber], registers, op, lanes);
  } else {
    run_mma<float>(kForms[kNumber], registers, op, lanes);
  }
}
template <std::size_t... kNumber>
constexpr std::array<OpHandler, kFormCount> mma_handlers(std::index_sequence<kNumber...>) {
  return {mma<kNumber>...};
}
constexpr std::array<OpHandler, kFormCount> kMmaHandlers = mma_handlers(std::make_index_sequence<kFormCount>{});

OpHandler find_mma(const MmaForm& wanted) {
  for (std::size_t i = 0; i < kFormCount; ++i) {
    if (kForms[i] == wanted) return kMmaHandlers[i];
  }
  return nullptr;
}

// --- movmatrix -------------------------------------------------------------------------------------------------------
// Transposes an 8x8 matrix of 16-bit elements: lane (g,t) holds (g, 2t) and (g, 2t+1), and receives (2t, g) and (2t+1,
// g).
void transpose(std::byte* registers, const Op& op, LaneMask lanes) {
  u16 from[8][8];
  __builtin_memcpy(from, registers + at(op, 1), sizeof from);
  std::byte* d = registers + at(op, 0);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const int g = lane / 4;
    const int t = lane % 4;
    const u32 word = static_cast<u32>(from[2 * t + 1][g]) << 16 | from[2 * t][g];
    __builtin_memcpy(d + 4 * lane, &word, sizeof word);
  }
}

}  // namespace

OpHandler matrices(const OpQuery& query) {
  if (query.opcode == Opcode::movmatrix) return transpose;
  if (query.opcode != Opcode::mma || query.n != 8) return nullptr;
  const bool floats = (query.type == Type::f32 || query.type == Type::f16) && query.scales == 0;
  MmaForm wanted{
      of(query.m, query.k, query.type, query.type2, query.type3, floats ? query.sum : SumMode::seq, query.sparse),
      query.in_bytes, query.scale, query.scales};
  wanted.product.saturate = query.satfinite;
  wanted.product.rounding = query.rounding;
  wanted.product.both = query.type2 == Type::b1 && query.combine == Combine::and_;
  return find_mma(wanted);
}

}  // namespace kvscope::ptx::semantics

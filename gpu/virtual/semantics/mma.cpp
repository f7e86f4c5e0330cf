// mma of a warp: registers -> tiles -> product -> registers, for all shapes and types; and movmatrix.
//
// E numbers per register (tf32, f64 1, 16-bit 2, 8-bit 4, 4-bit 8, 1-bit 32); g = lane / 4, t = lane % 4; number e of
// register r of lane (g,t):
//
//   A, m16   row g + 8 (r % 2), k = t E + e + 4 E (r / 2)        A, m8   row g, k = t E + e + 4 E r
//   B        k = t E + e + 4 E r, column g
//   C, D     register i: row g + 8 (i / 2), column 2t + i % 2; for f16 register i: row g + 8 i, columns 2t, 2t + 1
//
// Source: PTX ISA, "Matrix Fragments for mma". Tested by tests/gpu/virtual/semantics/mma_test.cpp.
#include "gpu/virtual/semantics/detail/lanes.h"
#include "gpu/virtual/semantics/detail/op_families.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx::semantics {
namespace {

constexpr int kMostA = 16 * 256;  // numbers: m16n8k256 of b1
constexpr int kMostB = 256 * 8;
constexpr int kMostD = 16 * 8;

constexpr int element_bits(Type type) {
  switch (type) {
    case Type::f64:
      return 64;
    case Type::f16:
    case Type::bf16:
      return 16;
    case Type::e4m3:
    case Type::e5m2:
    case Type::s8:
    case Type::u8:
      return 8;
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
void decode_registers(Type type, const std::byte* registers, const u32* list, int count, T* numbers) {
  const int per_register = 32 / element_bits(type);
  for (int r = 0; r < count; ++r) {
    decode_elements(type, registers + list[r], kLanes * per_register, numbers + r * kLanes * per_register);
  }
}
void decode_registers(Type, const std::byte* registers, const u32* list, int count, double* numbers) {
  for (int r = 0; r < count; ++r) __builtin_memcpy(numbers + r * kLanes, registers + list[r], 8 * kLanes);
}

struct Counts {
  int per_register, a, b, d;
};
constexpr Counts counts_of(const MatrixProduct& p) {
  const int bits = element_bits(p.a);
  const int per_register = bits == 64 ? 1 : 32 / bits;
  const int per_row = kLanes * per_register;
  return {per_register, p.m * p.k / per_row, p.k * p.n / per_row, p.m * p.n / (p.d == Type::f16 ? 64 : 32)};
}

template <class T>
void gather(const MatrixProduct& p, const Counts& n, const T* in_a, const T* in_b, T* a, T* b) {
  const int rows_a = p.m / 8;  // groups of eight rows
  for (int r = 0; r < n.a; ++r) {
    for (int i = 0; i < kLanes * n.per_register; ++i) {
      const int row_of_a = i / (4 * n.per_register) + 8 * (r % rows_a);
      a[row_of_a * p.k + i % (4 * n.per_register) + 4 * n.per_register * (r / rows_a)] =
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

template <class T>
void run_mma(const MatrixProduct& p, std::byte* registers, const Op& op, LaneMask lanes) {
  const Counts n = counts_of(p);
  const u32* list_d = op.list;
  const u32* list_a = list_d + n.d;
  const u32* list_b = list_a + n.a;
  const u32* list_c = list_b + n.b;
  T in_a[kMostA], in_b[kMostB], a[kMostA], b[kMostB], d[kMostD];
  decode_registers(p.a, registers, list_a, n.a, in_a);
  decode_registers(p.b, registers, list_b, n.b, in_b);
  gather(p, n, in_a, in_b, a, b);
  if constexpr (sizeof(T) == 4) {
    if (p.d == Type::f16) {
      if constexpr (T(0.5f) != 0) {
        read_f16_tile(p, n, registers, list_c, d);
        multiply_add(p, a, b, d);
        write_f16_tile(p, n, d, registers, list_d, lanes);
      }
      return;
    }
  }
  read_tile(p, n, registers, list_c, d);
  multiply_add(p, a, b, d);
  write_tile(p, n, d, registers, list_d, lanes);
}

template <class T, MatrixProduct kProduct>
void mma(std::byte* registers, const Op& op, LaneMask lanes) {
  run_mma<T>(kProduct, registers, op, lanes);
}

// --- selection of the handler ----------------------------------------------------------------------------------------

struct Entry {
  MatrixProduct product;
  OpHandler handler;
};

constexpr MatrixProduct of(int m, int n, int k, Type d, Type a, Type b, SumMode sum = SumMode::seq,
                           bool saturate = false, bool both = false) {
  return {m, n, k, a, b, d, sum, saturate, both};
}

template <Type kD, Type kA, Type kB, int kK, SumMode kSum>
constexpr Entry kFloats{of(16, 8, kK, kD, kA, kB, kSum), mma<float, of(16, 8, kK, kD, kA, kB, kSum)>};
template <Type kA, Type kB, int kM, int kK, bool kSaturate>
constexpr Entry kIntegers{of(kM, 8, kK, Type::s32, kA, kB, SumMode::seq, kSaturate),
                          mma<i32, of(kM, 8, kK, Type::s32, kA, kB, SumMode::seq, kSaturate)>};
template <int kM, int kK, bool kBoth>
constexpr Entry kBits{of(kM, 8, kK, Type::s32, Type::b1, Type::b1, SumMode::seq, false, kBoth),
                      mma<i32, of(kM, 8, kK, Type::s32, Type::b1, Type::b1, SumMode::seq, false, kBoth)>};
template <int kM, int kK>
constexpr Entry kDoubles{of(kM, 8, kK, Type::f64, Type::f64, Type::f64),
                         mma<double, of(kM, 8, kK, Type::f64, Type::f64, Type::f64)>};

bool matches(const Entry& entry, const MatrixProduct& wanted, OpHandler& found) {
  if (entry.product == wanted) found = entry.handler;
  return found != nullptr;
}

template <Type kD, Type kA, Type kB, int kK>
bool find_float(const MatrixProduct& wanted, OpHandler& found) {
  return matches(kFloats<kD, kA, kB, kK, SumMode::seq>, wanted, found) ||
         matches(kFloats<kD, kA, kB, kK, SumMode::exact>, wanted, found) ||
         matches(kFloats<kD, kA, kB, kK, SumMode::hopper>, wanted, found);
}
template <Type kA, Type kB>
bool find_fp8(const MatrixProduct& wanted, OpHandler& found) {
  return find_float<Type::f32, kA, kB, 16>(wanted, found) || find_float<Type::f32, kA, kB, 32>(wanted, found) ||
         find_float<Type::f16, kA, kB, 16>(wanted, found) || find_float<Type::f16, kA, kB, 32>(wanted, found);
}
template <Type kA, Type kB, int kM, int kK>
bool find_integer(const MatrixProduct& wanted, OpHandler& found) {
  return matches(kIntegers<kA, kB, kM, kK, false>, wanted, found) ||
         matches(kIntegers<kA, kB, kM, kK, true>, wanted, found);
}
template <Type kA, Type kB, int kUnit>  // kUnit: k of m8n8, and the smallest k of m16n8
bool find_integers(const MatrixProduct& wanted, OpHandler& found) {
  return find_integer<kA, kB, 8, kUnit>(wanted, found) || find_integer<kA, kB, 16, kUnit>(wanted, found) ||
         find_integer<kA, kB, 16, 2 * kUnit>(wanted, found);
}
template <bool kBoth>
bool find_bits(const MatrixProduct& wanted, OpHandler& found) {
  return matches(kBits<8, 128, kBoth>, wanted, found) || matches(kBits<16, 128, kBoth>, wanted, found) ||
         matches(kBits<16, 256, kBoth>, wanted, found);
}

OpHandler find_mma(const MatrixProduct& wanted) {
  OpHandler found = nullptr;
  const bool there =
      find_float<Type::f32, Type::f16, Type::f16, 8>(wanted, found) ||
      find_float<Type::f32, Type::f16, Type::f16, 16>(wanted, found) ||
      find_float<Type::f16, Type::f16, Type::f16, 8>(wanted, found) ||
      find_float<Type::f16, Type::f16, Type::f16, 16>(wanted, found) ||
      find_float<Type::f32, Type::bf16, Type::bf16, 8>(wanted, found) ||
      find_float<Type::f32, Type::bf16, Type::bf16, 16>(wanted, found) ||
      find_float<Type::f32, Type::tf32, Type::tf32, 4>(wanted, found) ||
      find_float<Type::f32, Type::tf32, Type::tf32, 8>(wanted, found) ||
      find_fp8<Type::e4m3, Type::e4m3>(wanted, found) || find_fp8<Type::e4m3, Type::e5m2>(wanted, found) ||
      find_fp8<Type::e5m2, Type::e4m3>(wanted, found) || find_fp8<Type::e5m2, Type::e5m2>(wanted, found) ||
      find_integers<Type::s8, Type::s8, 16>(wanted, found) || find_integers<Type::s8, Type::u8, 16>(wanted, found) ||
      find_integers<Type::u8, Type::s8, 16>(wanted, found) || find_integers<Type::u8, Type::u8, 16>(wanted, found) ||
      find_integers<Type::s4, Type::s4, 32>(wanted, found) || find_integers<Type::s4, Type::u4, 32>(wanted, found) ||
      find_integers<Type::u4, Type::s4, 32>(wanted, found) || find_integers<Type::u4, Type::u4, 32>(wanted, found) ||
      find_bits<false>(wanted, found) || find_bits<true>(wanted, found) || matches(kDoubles<8, 4>, wanted, found) ||
      matches(kDoubles<16, 4>, wanted, found) || matches(kDoubles<16, 8>, wanted, found) ||
      matches(kDoubles<16, 16>, wanted, found);
  return there ? found : nullptr;
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
  if (query.opcode != Opcode::mma) return nullptr;
  const bool floats = query.type == Type::f32 || query.type == Type::f16;
  if (query.type == Type::f64 && query.rounding != Rounding::nearest) return nullptr;
  return find_mma(of(query.m, query.n, query.k, query.type, query.type2, query.type3, floats ? query.sum : SumMode::seq,
                     query.satfinite, query.type2 == Type::b1 && query.combine == Combine::and_));
}

}  // namespace kvscope::ptx::semantics

// mov of several values: a vector to a vector, the pieces of a value to the value, and the inverse. Element 0 is the
// least significant. All inputs are read before any output is written, because a register may be both.
//
//   mov.b64 r, {a, b}      list r a b      r = b << 32 | a
//   mov.b32 {h, _}, r      list h _ r      h = low half of r
//   mov.v4.u32 {..}, {..}  list d0 d1 d2 d3 s0 s1 s2 s3
#include "gpu/virtual/semantics/detail/lanes.h"
#include "gpu/virtual/semantics/detail/op_families.h"

namespace kvscope::ptx::semantics {
namespace {

// One piece and its register type: 8 bits are in a register of 16.
template <int kBytes>
struct Piece;
template <>
struct Piece<1> {
  using Value = u8;
  using Stored = u16;
};
template <int kBytes>
requires(kBytes > 1) struct Piece<kBytes> {
  using Value = typename OfBytes<kBytes>::Unsigned;
  using Stored = Value;
};

template <int kBytes, int kPieces>
void pack_of(std::byte* registers, const Op& op, LaneMask lanes) {
  using Value = typename Piece<kBytes / kPieces>::Value;
  using Stored = typename Piece<kBytes / kPieces>::Stored;
  struct Whole {
    Value piece[kPieces];
  };
  alignas(64) Whole whole[kLanes];
  for (int p = 0; p < kPieces; ++p) {
    const Cell<Stored>* from = register_of<Stored>(registers, op.list[1 + p]);
    for (int i = 0; i < kLanes; ++i) whole[i].piece[p] = static_cast<Value>(from[i]);
  }
  std::byte* d = registers + op.list[0];
  if (lanes == kAllLanes) {
    __builtin_memcpy(d, whole, sizeof whole);
    return;
  }
  for (int i = 0; i < kLanes; ++i) {
    if ((lanes >> i & 1) != 0) __builtin_memcpy(d + kBytes * i, &whole[i], kBytes);
  }
}

template <int kBytes, int kPieces>
void unpack_of(std::byte* registers, const Op& op, LaneMask lanes) {
  using Value = typename Piece<kBytes / kPieces>::Value;
  using Stored = typename Piece<kBytes / kPieces>::Stored;
  struct Whole {
    Value piece[kPieces];
  };
  alignas(64) Whole whole[kLanes];
  __builtin_memcpy(whole, registers + op.list[kPieces], sizeof whole);
  for (int p = 0; p < kPieces; ++p) {
    if (op.list[p] == kNoRegister) continue;
    Cell<Stored>* to = register_of<Stored>(registers, op.list[p]);
    for (int i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) != 0) to[i] = whole[i].piece[p];
    }
  }
}

template <int kBytes>
void pack(std::byte* registers, const Op& op, LaneMask lanes) {
  if (op.count == 3) return pack_of<kBytes, 2>(registers, op, lanes);
  if constexpr (kBytes >= 4) pack_of<kBytes, 4>(registers, op, lanes);
}
template <int kBytes>
void unpack(std::byte* registers, const Op& op, LaneMask lanes) {
  if (op.count == 3) return unpack_of<kBytes, 2>(registers, op, lanes);
  if constexpr (kBytes >= 4) unpack_of<kBytes, 4>(registers, op, lanes);
}

template <int kElements, int kBytes>
void copy_vector(std::byte* registers, const Op& op, LaneMask lanes) {
  alignas(64) std::byte values[kElements][kBytes * kLanes];
  for (int e = 0; e < kElements; ++e) {
    __builtin_memcpy(values[e], registers + op.list[kElements + e], sizeof values[e]);
  }
  for (int e = 0; e < kElements; ++e) {
    if (op.list[e] == kNoRegister) continue;
    std::byte* d = registers + op.list[e];
    for (int i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) != 0) __builtin_memcpy(d + kBytes * i, values[e] + kBytes * i, kBytes);
    }
  }
}

template <int kElements>
OpHandler find_vector(const OpQuery& query) {
  switch (query.bytes) {
    case 2:
      return copy_vector<kElements, 2>;
    case 4:
      return copy_vector<kElements, 4>;
    case 8:
      return copy_vector<kElements, 8>;
    default:
      return nullptr;
  }
}

template <int kBytes>
OpHandler find_pieces(const OpQuery& query) {
  // One result of the full width is a pack, several narrower ones are an unpack.
  if (query.results != 0) return query.results == 1 ? pack<kBytes> : unpack<kBytes>;
  if (kBytes == 2) return nullptr;  // bytes are in registers of 16 bits: the widths are ambiguous
  return query.register_bytes[0] == kBytes ? pack<kBytes> : unpack<kBytes>;
}

}  // namespace

OpHandler moves(const OpQuery& query) {
  if (query.opcode != Opcode::mov) return nullptr;
  if (query.vector == 2) return find_vector<2>(query);
  if (query.vector == 4) return find_vector<4>(query);
  if (!query.uses_list) return nullptr;
  switch (query.bytes) {
    case 2:
      return find_pieces<2>(query);
    case 4:
      return find_pieces<4>(query);
    case 8:
      return find_pieces<8>(query);
    case 16:
      return find_pieces<16>(query);
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx::semantics

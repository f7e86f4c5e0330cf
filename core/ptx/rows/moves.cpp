// mov of several values: a vector to a vector, the pieces of a value to the value, and back. Element 0 is the least
// significant. Everything is read before anything is written: a piece may stand in a row that is also a result.
//
//   mov.b64 r, {a, b}      list r a b      r = b << 32 | a
//   mov.b32 {h, _}, r      list h _ r      h = low half of r
//   mov.v4.u32 {..}, {..}  list d0 d1 d2 d3 s0 s1 s2 s3
#include "core/ptx/rows/lanes.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx::rows {
namespace {

// The pieces of 8 bits of a b16 or b32 stand in rows of 16.
constexpr int row_bytes_of_piece(int piece_bytes) {
  return piece_bytes == 1 ? 2 : piece_bytes;
}

void copy_lane(std::byte* to, const std::byte* from, int bytes) {
  switch (bytes) {
    case 1: __builtin_memcpy(to, from, 1); break;
    case 2: __builtin_memcpy(to, from, 2); break;
    case 4: __builtin_memcpy(to, from, 4); break;
    default: __builtin_memcpy(to, from, 8); break;
  }
}

template <int kBytes>
void pack(std::byte* rows, const Op& op, LaneMask lanes) {
  const int pieces = op.count - 1;
  const int bytes = kBytes / pieces;
  const int stride = row_bytes_of_piece(bytes);
  alignas(64) std::byte whole[kBytes * kLanes];
  for (int p = 0; p < pieces; ++p) {
    const std::byte* piece = rows + op.list[1 + p];
    for (int i = 0; i < kLanes; ++i) copy_lane(whole + kBytes * i + bytes * p, piece + stride * i, bytes);
  }
  std::byte* d = rows + op.list[0];
  for (int i = 0; i < kLanes; ++i) {
    if ((lanes >> i & 1) != 0) __builtin_memcpy(d + kBytes * i, whole + kBytes * i, kBytes);
  }
}

template <int kBytes>
void unpack(std::byte* rows, const Op& op, LaneMask lanes) {
  const int pieces = op.count - 1;
  const int bytes = kBytes / pieces;
  const int stride = row_bytes_of_piece(bytes);
  alignas(64) std::byte whole[kBytes * kLanes];
  __builtin_memcpy(whole, rows + op.list[pieces], sizeof whole);
  for (int p = 0; p < pieces; ++p) {
    if (op.list[p] == kNoRow) continue;
    std::byte* piece = rows + op.list[p];
    for (int i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) == 0) continue;
      if (stride != bytes) piece[stride * i + 1] = std::byte{0};  // a byte in a wider register
      copy_lane(piece + stride * i, whole + kBytes * i + bytes * p, bytes);
    }
  }
}

template <int kElements, int kBytes>
void copy_vector(std::byte* rows, const Op& op, LaneMask lanes) {
  alignas(64) std::byte values[kElements][kBytes * kLanes];
  for (int e = 0; e < kElements; ++e) {
    __builtin_memcpy(values[e], rows + op.list[kElements + e], sizeof values[e]);
  }
  for (int e = 0; e < kElements; ++e) {
    if (op.list[e] == kNoRow) continue;
    std::byte* d = rows + op.list[e];
    for (int i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) != 0) __builtin_memcpy(d + kBytes * i, values[e] + kBytes * i, kBytes);
    }
  }
}

template <int kElements>
RowHandler find_vector(const Ask& ask) {
  switch (ask.bytes) {
    case 2: return copy_vector<kElements, 2>;
    case 4: return copy_vector<kElements, 4>;
    case 8: return copy_vector<kElements, 8>;
    default: return nullptr;
  }
}

template <int kBytes>
RowHandler find_pieces(const Ask& ask) {
  // One result of the whole width is a pack, several narrower ones are its opposite.
  if (ask.results != 0) return ask.results == 1 ? pack<kBytes> : unpack<kBytes>;
  if (kBytes == 2) return nullptr;  // bytes have rows of 16 bits: the widths do not tell
  return ask.row_bytes[0] == kBytes ? pack<kBytes> : unpack<kBytes>;
}

}  // namespace

RowHandler moves(const Ask& ask) {
  if (ask.opcode != Opcode::mov) return nullptr;
  if (ask.vector == 2) return find_vector<2>(ask);
  if (ask.vector == 4) return find_vector<4>(ask);
  if (!ask.uses_list) return nullptr;
  switch (ask.bytes) {
    case 2: return find_pieces<2>(ask);
    case 4: return find_pieces<4>(ask);
    case 8: return find_pieces<8>(ask);
    case 16: return find_pieces<16>(ask);
    default: return nullptr;
  }
}

}  // namespace kvscope::ptx::rows

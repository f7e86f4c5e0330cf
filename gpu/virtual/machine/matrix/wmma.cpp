#include "gpu/virtual/machine/matrix/detail/wmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx {
namespace {

constexpr int kMostChunk = 16;      // [bytes] that a lane accesses at once
constexpr int kMostTile = 1024;     // [bytes] of memory: 16 x 16 of 32 bits, 32 x 16 of 16
constexpr int kMostNumbers = 1024;  // 8 x 128 of b1
constexpr int kMostDistance = 16;   // [bytes] maximum multiple required of the distance between rows

enum class Matrix : std::uint8_t { a, b, c };  // c: also D

// The positions of a register's elements in the tile; for types under 8 bits, an element of memory is a whole register.
struct MatrixFragment {
  Matrix matrix = Matrix::a;
  Type type = Type::none;
  int m = 0, n = 0, k = 0;  // k in elements as counted here
  int per_register = 1;     // E
  int register_bytes = 4;
  int registers = 0;

  struct Place {
    int row = 0, column = 0;
  };
  [[nodiscard]] int rows() const { return matrix == Matrix::b ? k : m; }
  [[nodiscard]] int columns() const { return matrix == Matrix::a ? k : n; }
  [[nodiscard]] int halves() const { return m == 8 ? 1 : 2; }
  [[nodiscard]] int steps() const { return k / (4 * per_register); }
  // Registers without the copies.
  [[nodiscard]] int distinct() const { return rows() * columns() / (kLanes * per_register); }
  [[nodiscard]] Place place(int r, int lane, int e) const {
    const int g = lane / 4, t = lane % 4;
    r %= distinct();
    if (m == 8 && n == 32) return turned_place(r, g, t, e);
    switch (matrix) {
      case Matrix::a: {
        const int half = r % halves(), step = r / halves() % steps(), block = r / (halves() * steps());
        return {16 * block + 8 * half + g, t * per_register + e + 4 * per_register * step};
      }
      case Matrix::b:
        return {t * per_register + e + 4 * per_register * (r % steps()), 8 * (r / steps()) + g};
      case Matrix::c:
        break;
    }
    const int two = per_register == 2 ? e : r % 2;  // the column of the pair
    const int half = (per_register == 2 ? r : r / 2) % halves();
    const int block = (per_register == 2 ? r : r / 2) / halves();
    const int across = n / 8;
    return {8 * halves() * (block / across) + 8 * half + g, 8 * (block % across) + 2 * t + two};
  }

 private:
  // m8n32k16 is the product of B^T with 32 rows and A^T: registers as in m32n8k16 with A and B exchanged (docs/hardware).
  [[nodiscard]] Place turned_place(int r, int g, int t, int e) const {
    const MatrixFragment turned{.matrix = matrix == Matrix::a   ? Matrix::b
                                          : matrix == Matrix::b ? Matrix::a
                                                                : Matrix::c,
                                .type = type,
                                .m = n,
                                .n = m,
                                .k = k,
                                .per_register = per_register,
                                .register_bytes = register_bytes,
                                .registers = registers};
    const Place p = turned.place(r, 4 * g + t, e);
    return {p.column, p.row};
  }
};

struct Types {
  Type d = Type::none, a = Type::none, b = Type::none, c = Type::none;
};
Types types_of(const Instr& instr) {
  if (instr.type_count == 2) return {instr.type(0), Type::f16, Type::f16, instr.type(1)};
  return {instr.type(0), instr.type(1), instr.type(2), instr.type(3)};
}

// `of_memory`: elements as stored in memory, at least one byte each.
MatrixFragment fragment_of(const Instr& instr, Matrix matrix, Type type, bool of_memory) {
  MatrixFragment f;
  f.matrix = matrix;
  f.type = type;
  f.m = instr.shape.m, f.n = instr.shape.n, f.k = instr.shape.k;
  f.register_bytes = bits(type) == 64 ? 8 : 4;
  f.per_register = 8 * f.register_bytes / bits(type);
  if (of_memory && bits(type) < 8) f.k /= f.per_register, f.per_register = 1;
  f.registers = type == Type::f16 && matrix != Matrix::c ? 8 : f.distinct();
  return f;
}

// --- tiles in memory -------------------------------------------------------------------------------------------------

struct Tile {
  MatrixFragment fragment;
  bool by_columns = false;
  int element = 0;  // [bytes]
  int line = 0;     // [bytes] of a row, or of a column
  int bytes = 0;
  int chunk = 0;  // [bytes] of a lane
  std::uint64_t base = 0;
  std::uint64_t distance = 0;  // [bytes] between lines
  AccessRequest request;

  [[nodiscard]] int offset(MatrixFragment::Place p) const {
    return by_columns ? p.column * line + p.row * element : p.row * line + p.column * element;
  }
};

Matrix matrix_of(const Instr& instr) {
  return instr.has(Mod::a) ? Matrix::a : instr.has(Mod::b) ? Matrix::b : Matrix::c;
}

// A value that must be equal in all lanes; std::nullopt: different values were reported.
std::optional<std::uint64_t> of_all(Exec& exec, const Op& op, LaneMask lanes, const LaneAddresses& values,
                                    std::string_view what) {
  const int first = std::countr_zero(lanes);
  const std::uint64_t value = values.at[static_cast<std::size_t>(first)];
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t other = values.at[static_cast<std::size_t>(lane)];
    if (other == value) continue;
    fault(exec, op, lane, ReportKind::diverged,
          fmt::format("lanes of a warp name different {} of one matrix: 0x{:x} in lane {}, 0x{:x} in lane {}", what,
                      value, first, other, lane),
          "one matrix, and one stride, for all lanes");
    return std::nullopt;
  }
  return value;
}

// The tile that the operands name. std::nullopt: a fault was reported.
std::optional<Tile> tile_of(Exec& exec, const Op& op, LaneMask lanes, AccessKind kind) {
  const Instr& instr = exec.program().instr(op);
  Tile tile;
  tile.fragment = fragment_of(instr, matrix_of(instr), instr.type(), true);
  const MatrixFragment& f = tile.fragment;
  tile.by_columns = instr.has(Mod::col);
  tile.element = f.register_bytes / f.per_register;
  tile.line = tile.element * (tile.by_columns ? f.rows() : f.columns());
  tile.bytes = tile.element * f.rows() * f.columns();
  tile.chunk = std::min(kMostChunk, tile.bytes / kLanes);
  const Space space = space_of(instr);
  tile.request = {.space = space, .kind = kind, .bytes = tile.chunk, .own_cta = space == Space::shared};

  LaneAddresses named;
  operand_addresses(exec, op, kind == AccessKind::load ? 1 : 0, named);
  const auto base = of_all(exec, op, lanes, named, "addresses");
  if (!base) return std::nullopt;
  tile.base = *base;
  tile.distance = static_cast<std::uint64_t>(tile.line);
  if (op.at[2] != kNoRegister) {
    for (int lane = 0; lane < kLanes; ++lane) {
      named.at[static_cast<std::size_t>(lane)] = lane_value(exec, op.at[2], width_of(op, 2), lane) & 0xffffffffU;
    }
    const auto stride = of_all(exec, op, lanes, named, "strides");
    if (!stride) return std::nullopt;
    tile.distance = *stride * static_cast<std::uint64_t>(bits(f.type)) / 8;
  }
  const auto fragment_bytes = static_cast<std::uint64_t>(f.registers * f.register_bytes);
  const std::uint64_t apart = std::min<std::uint64_t>(kMostDistance, fragment_bytes);
  const int lane = std::countr_zero(lanes);
  if (tile.base % fragment_bytes != 0) {
    fault(exec, op, lane, ReportKind::misaligned,
          fmt::format("a matrix at 0x{:x}: not a multiple of its fragment's {} bytes", tile.base, fragment_bytes));
    return std::nullopt;
  }
  if (tile.distance % apart != 0) {
    fault(exec, op, lane, ReportKind::misaligned,
          fmt::format("{} of a matrix {} bytes apart: not a multiple of {}", tile.by_columns ? "columns" : "rows",
                      tile.distance, apart));
    return std::nullopt;
  }
  return tile;
}

// Accesses the tile, one chunk per lane and as many times as needed: visit(reach, offset of lane 0's chunk, addresses).
// Returns false if stopped.
template <class Visit>
bool reach_tile(Exec& exec, const Op& op, const Tile& tile, const Visit& visit) {
  for (int from = 0; from < tile.bytes; from += kLanes * tile.chunk) {
    LaneAddresses addresses;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int at = from + lane * tile.chunk;
      addresses.at[static_cast<std::size_t>(lane)] = tile.base +
                                                     static_cast<std::uint64_t>(at / tile.line) * tile.distance +
                                                     static_cast<std::uint64_t>(at % tile.line);
    }
    Reach r;
    for (LaneMask left = kAllLanes; left != 0;) {
      if (!reach(exec, op, tile.request, addresses, left, r)) return false;
      if (r.lanes == 0) continue;
      if (exec.launch.monitor != nullptr) tell_access(exec, op, tile.request, r, addresses);
      visit(r, from, addresses);
    }
  }
  return true;
}

// Calls visit(register, offset in the row of registers [bytes], offset in the tile [bytes]) for each element.
template <class Visit>
void for_each_element(const Tile& tile, const Visit& visit) {
  const MatrixFragment& f = tile.fragment;
  for (int r = 0; r < f.registers; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < f.per_register; ++e) {
        visit(r, lane * f.register_bytes + e * tile.element, tile.offset(f.place(r, lane, e)));
      }
    }
  }
}

using TileBytes = std::array<std::byte, kMostTile>;

Flow load_matrix(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  TileBytes bytes;
  bytes.fill(std::byte{0xff});  // for bytes that are not accessible
  const std::optional<Tile> tile = tile_of(exec, op, lanes, AccessKind::load);
  if (!tile) return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
  const bool goes_on = reach_tile(exec, op, *tile, [&](const Reach& r, int from, const LaneAddresses&) {
    for (LaneMask left = r.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::memcpy(bytes.data() + from + lane * tile->chunk, r.of(lane, tile->chunk),
                  static_cast<std::size_t>(tile->chunk));
    }
  });
  if (!goes_on) return Flow::stopped;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->collective(exec, op, lanes);
  for_each_element(*tile, [&](int r, int in_register, int in_tile) {
    if (op.list[r] == kNoRegister) return;
    std::memcpy(exec.registers + op.list[r] + in_register, bytes.data() + in_tile,
                static_cast<std::size_t>(tile->element));
  });
  return Flow::next;
}

Flow store_matrix(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  const std::optional<Tile> tile = tile_of(exec, op, lanes, AccessKind::store);
  if (!tile) return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
  TileBytes bytes;
  const std::uint32_t* const registers = op.list + 1;
  for_each_element(*tile, [&](int r, int in_register, int in_tile) {
    std::memcpy(bytes.data() + in_tile, exec.registers + registers[r] + in_register,
                static_cast<std::size_t>(tile->element));
  });
  if (exec.launch.monitor != nullptr) exec.launch.monitor->collective(exec, op, lanes);
  const bool goes_on = reach_tile(exec, op, *tile, [&](const Reach& r, int from, const LaneAddresses& addresses) {
    for (LaneMask left = r.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::memcpy(r.of(lane, tile->chunk), bytes.data() + from + lane * tile->chunk,
                  static_cast<std::size_t>(tile->chunk));
    }
    if (exec.launch.monitor != nullptr) tell_stored(exec, op, tile->request, r, addresses);
  });
  event(exec);
  return goes_on ? Flow::next : Flow::stopped;
}

// --- products --------------------------------------------------------------------------------------------------------

template <class T>
using MatrixNumbers = std::array<T, kMostNumbers>;  // row-major

// A or B.
template <class T>
void read_factor(const Exec& exec, const MatrixFragment& f, const std::uint32_t* list, MatrixNumbers<T>& to) {
  std::array<T, kLanes * 32> decoded;
  for (int r = 0; r < f.distinct(); ++r) {
    if constexpr (std::is_same_v<T, double>) {
      std::memcpy(decoded.data(), exec.registers + list[r], kLanes * sizeof(T));
    } else {
      decode_elements(f.type, exec.registers + list[r], kLanes * f.per_register, decoded.data());
    }
    for (int i = 0; i < kLanes * f.per_register; ++i) {
      const MatrixFragment::Place p = f.place(r, i / f.per_register, i % f.per_register);
      to[static_cast<std::size_t>(p.row * f.columns() + p.column)] = decoded[static_cast<std::size_t>(i)];
    }
  }
}

// C and D: calls visit(the element's bytes, its number in the tile).
template <class Visit>
void for_each_sum(const Exec& exec, const MatrixFragment& f, const std::uint32_t* list, const Visit& visit) {
  for (int r = 0; r < f.registers; ++r) {
    if (list[r] == kNoRegister) continue;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < f.per_register; ++e) {
        const MatrixFragment::Place p = f.place(r, lane, e);
        visit(exec.registers + list[r] + lane * f.register_bytes + e * (f.register_bytes / f.per_register),
              static_cast<std::size_t>(p.row * f.n + p.column));
      }
    }
  }
}

// On Hopper, wmma of tf32 is two instructions, of four columns of A each.
void multiply_tf32(const MatrixProduct& p, const MatrixNumbers<float>& a, const MatrixNumbers<float>& b,
                   MatrixNumbers<float>& sums, Simd simd) {
  MatrixProduct part = p;
  part.k = 4;
  MatrixNumbers<float> columns;
  for (int first = 0; first < p.k; first += part.k) {
    for (int i = 0; i < p.m * part.k; ++i)
      columns[static_cast<std::size_t>(i)] = a[static_cast<std::size_t>(i / part.k * p.k + first + i % part.k)];
    multiply_add(part, columns.data(), b.data() + first * p.n, sums.data(), simd);
  }
}

template <class T>
void multiply(Exec& exec, const Op& op, const Instr& instr) {
  const Types types = types_of(instr);
  const MatrixFragment d = fragment_of(instr, Matrix::c, types.d, false),
                       c = fragment_of(instr, Matrix::c, types.c, false);
  const MatrixFragment a = fragment_of(instr, Matrix::a, types.a, false),
                       b = fragment_of(instr, Matrix::b, types.b, false);
  const std::uint32_t *list_d = op.list, *list_a = list_d + d.registers, *list_b = list_a + a.registers,
                      *list_c = list_b + b.registers;
  MatrixNumbers<T> factor_a, factor_b, sums;
  read_factor(exec, a, list_a, factor_a);
  read_factor(exec, b, list_b, factor_b);
  const bool half_c = types.c == Type::f16, half_d = types.d == Type::f16;
  for_each_sum(exec, c, list_c, [&](const std::byte* from, std::size_t at) {
    if (half_c) {
      std::uint16_t h;
      std::memcpy(&h, from, sizeof h);
      sums[at] = static_cast<T>(float_of_f16_bits(h));
    } else {
      std::memcpy(&sums[at], from, sizeof(T));
    }
  });
  MatrixProduct p;
  p.m = instr.shape.m, p.n = instr.shape.n, p.k = instr.shape.k;
  p.a = types.a, p.b = types.b, p.d = types.d;
  p.saturate = instr.has(Mod::satfinite);
  p.rounding = rounding_of(instr);
  p.both = instr.has(Mod::and_);
  if constexpr (std::is_same_v<T, float>) {
    p.sum = exec.program().options.sum;
    // Hopper adds to a C of f32 in f32, and rounds the sum to f16.
    if (p.sum == SumMode::hopper && half_d && !half_c) p.d = Type::f32;
    const Simd simd = exec.program().options.simd;
    if (p.sum == SumMode::hopper && p.a == Type::tf32) {
      multiply_tf32(p, factor_a, factor_b, sums, simd);
    } else {
      multiply_add(p, factor_a.data(), factor_b.data(), sums.data(), simd);
    }
  } else {
    multiply_add(p, factor_a.data(), factor_b.data(), sums.data());
  }
  for_each_sum(exec, d, list_d, [&](std::byte* to, std::size_t at) {
    if (half_d) {
      const std::uint16_t h = f16_bits_of(static_cast<float>(sums[at]));
      std::memcpy(to, &h, sizeof h);
    } else {
      std::memcpy(to, &sums[at], sizeof(T));
    }
  });
}

Flow mma(Exec& exec, const Op& op, LaneMask lanes) {
  if (!all_lanes_here(exec, lanes)) return Flow::waits;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->collective(exec, op, lanes);
  const Instr& instr = exec.program().instr(op);
  switch (instr.type()) {
    case Type::s32:
      multiply<std::int32_t>(exec, op, instr);
      break;
    case Type::f64:
      multiply<double>(exec, op, instr);
      break;
    default:
      multiply<float>(exec, op, instr);
      break;
  }
  return Flow::next;
}

}  // namespace

MachineHandler find_wmma(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::wmma_load:
      return load_matrix;
    case Opcode::wmma_store:
      return store_matrix;
    case Opcode::wmma_mma:
      return mma;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx

#include "gpu/virtual/machine/tensor/tensor_layout.h"

#include <algorithm>

namespace kvscope::ptx {
namespace {

TensorShape shape_of(const Instr& instr) {
  if (instr.has(Mod::shape_16x64b)) return TensorShape::s16x64b;
  if (instr.has(Mod::shape_16x128b)) return TensorShape::s16x128b;
  if (instr.has(Mod::shape_16x256b)) return TensorShape::s16x256b;
  if (instr.has(Mod::shape_16x32bx2)) return TensorShape::s16x32bx2;
  return TensorShape::s32x32b;
}

TensorRegion region_from(TensorAddress from, std::int64_t lane, std::int64_t lanes, std::int64_t columns) {
  return {static_cast<std::int32_t>(from.lane + lane), static_cast<std::int32_t>(lanes),
          static_cast<std::int32_t>(from.column), static_cast<std::int32_t>(columns)};
}

}  // namespace

TensorMove tensor_move(const Instr& instr) {
  constexpr Mod kRepeats[] = {Mod::x1, Mod::x2, Mod::x4, Mod::x8, Mod::x16, Mod::x32, Mod::x64, Mod::x128};
  TensorMove move;
  move.shape = shape_of(instr);
  move.halves = instr.has(Mod::pack_16b) || instr.has(Mod::unpack_16b);
  move.registers = move.shape == TensorShape::s16x256b ? 4 : move.shape == TensorShape::s16x128b ? 2 : 1;
  for (const Mod repeat : kRepeats) {
    if (instr.has(repeat)) break;
    move.registers *= 2;
  }
  return move;
}

TensorAddress cell_of(const TensorMove& move, int t, int j) {
  const std::int64_t wide = move.halves ? 2 : 1;
  switch (move.shape) {
    case TensorShape::s32x32b:
      return {t, wide * j};
    case TensorShape::s16x64b:
      return {t / 4 + 8 * (t % 2), wide * (2 * j + t / 2 % 2)};
    case TensorShape::s16x128b:
      return {t / 4 + 8 * (j % 2), wide * (4 * (j / 2) + t % 4)};
    case TensorShape::s16x256b:
      return {t / 4 + 8 * (j / 2 % 2), wide * (8 * (j / 4) + 2 * (t % 4) + j % 2)};
    case TensorShape::s16x32bx2:
      return {t % 16, wide * j + (t >= 16 ? move.split : 0)};
  }
  return {};
}

std::vector<TensorRegion> regions_of(const TensorMove& move, TensorAddress from) {
  const std::int64_t wide = move.halves ? 2 : 1, registers = wide * move.registers;
  switch (move.shape) {
    case TensorShape::s32x32b:
      return {region_from(from, 0, 32, registers)};
    case TensorShape::s16x32bx2:
      return {region_from(from, 0, 16, registers),
              region_from({from.lane, from.column + move.split}, 0, 16, registers)};
    default:  // two lanes of the warp's threads hold one column of a row
      return {region_from(from, 0, 16, 2 * registers)};
  }
}

TensorLayout layout_of_product(int m, bool pair, bool weight_stationary) {
  if (pair) return m == 256 ? TensorLayout::a : TensorLayout::b;
  if (m == 128) return TensorLayout::d;
  if (weight_stationary) return m == 64 ? TensorLayout::e : TensorLayout::g;
  return TensorLayout::f;
}

TensorCell cell_of(TensorLayout layout, int m, int n, int columns) {
  switch (layout) {
    case TensorLayout::a:
      return {m / 128, m % 128, n};
    case TensorLayout::b:
      return {m / 64, m % 64 + 64 * (n / (columns / 2)), n % (columns / 2)};
    case TensorLayout::d:
      return {0, m, n};
    case TensorLayout::e:
      return {0, m + 64 * (n / (columns / 2)), n % (columns / 2)};
    case TensorLayout::f:
      return {0, 32 * (m / 16) + m % 16, n};
    case TensorLayout::g:
      return {0, m + 32 * (n / (columns / 4)), n % (columns / 4)};
  }
  return {};
}

std::vector<TensorRegion> regions_of(TensorLayout layout, int columns, TensorAddress from) {
  switch (layout) {
    case TensorLayout::a:
    case TensorLayout::d:
      return {region_from(from, 0, 128, columns)};
    case TensorLayout::b:
    case TensorLayout::e:
      return {region_from(from, 0, 128, columns / 2)};
    case TensorLayout::g:
      return {region_from(from, 0, 128, columns / 4)};
    case TensorLayout::f:
      break;
  }
  std::vector<TensorRegion> quarters;
  for (int q = 0; q < 4; ++q) quarters.push_back(region_from(from, 32 * q, 16, columns));
  return quarters;
}

}  // namespace kvscope::ptx

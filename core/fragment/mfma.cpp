#include "core/fragment/mfma.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr std::array<MfmaShape, 5> kShapes = {{
    {Mfma::bf16_32x32x8, "mfma 32x32x8 bf16, two", 32, 16, 2, 8, 2},
    {Mfma::bf16_32x32x16, "mfma 32x32x16 bf16", 32, 16, 2, 8, 1},
    {Mfma::bf16_16x16x32, "mfma 16x16x32 bf16", 16, 32, 2, 8, 1},
    {Mfma::fp8_32x32x64, "mfma 32x32x64 fp8", 32, 64, 1, 32, 1},
    {Mfma::fp8_16x16x128, "mfma 16x16x128 fp8", 16, 128, 1, 32, 1},
}};

FragmentInfo info_of(const MfmaShape& shape, std::string_view operand, int rows, int columns, const char* row_name,
                     const char* column_name) {
  return {fmt::format("{}, {}", shape.name, operand),
          row_name,
          column_name,
          64,
          rows * columns / 64,
          rows,
          columns,
          4 / shape.element_bytes};
}

// The order of the sum's rows, four at a time: four of group 0, four of group 1, ..., then the next four of
// each.
int row_of_sum(const MfmaShape& shape, int lane, int element) {
  return 4 * shape.groups() * (element / 4) + 4 * (lane / shape.M) + element % 4;
}

void check_registers(const MfmaShape& shape, const char* what, std::size_t count, int elements) {
  const auto expected = static_cast<std::size_t>(64 * elements);
  if (count == expected) return;
  throw GeometryError(fmt::format("{}, {}: {} values, but 64 lanes of {} elements are {}", shape.name, what, count,
                                  elements, expected));
}

}  // namespace

std::span<const MfmaShape> all_mfma_shapes() {
  return kShapes;
}

const MfmaShape& mfma_shape(Mfma mfma) {
  const auto index = static_cast<std::size_t>(mfma);
  KVSCOPE_ASSERT(index < kShapes.size() && kShapes[index].id == mfma);
  return kShapes[index];
}

FragmentMap mfma_k_map(Mfma mfma) {
  const MfmaShape& shape = mfma_shape(mfma);
  const int packs = shape.elements / shape.vector();
  return {info_of(shape, "K", shape.M, shape.K, "key", "depth"), [&](FragmentPlace at) {
            const int pack = at.element / shape.vector();
            return TilePlace{at.lane % shape.M, pack * (shape.K / packs) + shape.vector() * (at.lane / shape.M) +
                                                    at.element % shape.vector()};
          }};
}

FragmentMap mfma_v_map(Mfma mfma) {
  const MfmaShape& shape = mfma_shape(mfma);
  return {info_of(shape, "V", shape.K, shape.M, "key", "depth"), [&](FragmentPlace at) {
            // P of the widest shape goes through shared memory, so its V need not follow the sum.
            const int key = mfma == Mfma::fp8_16x16x128 ? shape.elements * (at.lane / shape.M) + at.element
                                                        : row_of_sum(shape, at.lane, at.element);
            return TilePlace{key, at.lane % shape.M};
          }};
}

FragmentMap mfma_sum_map(Mfma mfma) {
  const MfmaShape& shape = mfma_shape(mfma);
  FragmentInfo info = info_of(shape, "sum", shape.M, shape.M, "row", "column");
  info.elements_per_register = 1;  // f32
  return {std::move(info), [&](FragmentPlace at) {
            return TilePlace{row_of_sum(shape, at.lane, at.element), at.lane % shape.M};
          }};
}

std::vector<double> mfma_multiply_add(Mfma mfma, std::span<const double> a, std::span<const double> b,
                                      std::span<const double> sum) {
  const MfmaShape& shape = mfma_shape(mfma);
  const FragmentMap map = mfma_sum_map(mfma);
  check_registers(shape, "a", a.size(), shape.elements);
  check_registers(shape, "b", b.size(), shape.elements);
  check_registers(shape, "sum", sum.size(), map.info().elements);
  std::vector<double> result(sum.begin(), sum.end());
  for (int lane = 0; lane < 64; ++lane) {
    for (int p = 0; p < map.info().elements; ++p) {
      const TilePlace at = map.tile_of({lane, p});
      double& value = result[static_cast<std::size_t>(lane * map.info().elements + p)];
      for (int g = 0; g < shape.groups(); ++g) {
        for (int e = 0; e < shape.elements; ++e) {
          value += a[static_cast<std::size_t>((g * shape.M + at.row) * shape.elements + e)] *
                   b[static_cast<std::size_t>((g * shape.M + at.column) * shape.elements + e)];
        }
      }
    }
  }
  return result;
}

}  // namespace kvscope

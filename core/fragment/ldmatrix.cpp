#include "core/fragment/ldmatrix.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr int kRowBytes = 16;

void check_shape(const LdmatrixShape& shape) {
  if (shape.matrices == 1 || shape.matrices == 2 || shape.matrices == 4) return;
  throw GeometryError("ldmatrix", {{"matrices", fmt::format("{} is not one of 1, 2, 4", shape.matrices)}});
}

std::string object_of(const LdmatrixShape& shape) {
  return fmt::format("ldmatrix.x{}{}", shape.matrices, shape.trans ? ".trans" : "");
}

void check_addresses(const SharedImage& image, std::span<const std::int64_t> row_addresses,
                     const LdmatrixShape& shape) {
  check_shape(shape);
  if (row_addresses.size() != 32) {
    throw GeometryError(object_of(shape),
                        {{"row addresses", fmt::format("{}, but a warp has 32 lanes", row_addresses.size())}});
  }
  std::vector<Fault> faults;
  for (int lane = 0; lane < 8 * shape.matrices; ++lane) {
    const std::int64_t address = row_addresses[static_cast<std::size_t>(lane)];
    if (address % kRowBytes != 0) {
      faults.push_back(
          {fmt::format("lane {}", lane), fmt::format("address {} is not a multiple of 16: a row is 16 bytes "
                                                     "and is read in one piece",
                                                     address)});
    } else if (address < 0 || address > image.size() - kRowBytes) {
      faults.push_back({fmt::format("lane {}", lane),
                        fmt::format("row [{}, +16) leaves the shared memory of {} B", address, image.size())});
    }
  }
  if (!faults.empty()) throw GeometryError(object_of(shape), std::move(faults));
}

struct Use {
  std::string_view name;
  int keys = 0;       // of the piece
  int row_bytes = 0;  // [bytes] of depth
  bool trans = false;
};

Use use_of(LdmatrixUse use) {
  switch (use) {
    case LdmatrixUse::k_as_b:
      return {"K as B", 16, 32, false};
    case LdmatrixUse::k_as_a:
      return {"K as A", 16, 32, false};
    case LdmatrixUse::v_as_b:
      return {"V as B", 16, 32, true};
    case LdmatrixUse::v_as_a:
      return {"V as A", 16, 32, true};
    case LdmatrixUse::v_fp8:
      break;
  }
  return {"V fp8", 32, 16, true};
}

void check_element(LdmatrixUse use, int element_bytes) {
  const bool one = use != LdmatrixUse::v_as_b && use != LdmatrixUse::v_as_a, two = use != LdmatrixUse::v_fp8;
  if ((element_bytes == 1 && one) || (element_bytes == 2 && two)) return;
  throw GeometryError(fmt::format("ldmatrix, {}", use_of(use).name),
                      {{"element", fmt::format("{} B: use {}", element_bytes,
                                               one && two ? "1 or 2"
                                               : one      ? "1"
                                                          : "2 (fp8 V has a separate use)")}});
}

}  // namespace

LdmatrixSource ldmatrix_source(const LdmatrixShape& shape, int lane, int reg, int byte) {
  check_shape(shape);
  check_index("lane", lane, 32);
  check_index("register of ldmatrix", reg, shape.matrices);
  check_index("byte of a register", byte, 4);
  const int g = lane / 4, t = lane % 4;
  if (shape.trans) return {reg, 2 * t + byte / 2, 2 * g + byte % 2};
  return {reg, g, 4 * t + byte};
}

LdmatrixRegisters ldmatrix(const SharedImage& image, std::span<const std::int64_t> row_addresses,
                           const LdmatrixShape& shape) {
  check_addresses(image, row_addresses, shape);
  LdmatrixRegisters registers(32);
  for (int lane = 0; lane < 32; ++lane) {
    for (int reg = 0; reg < shape.matrices; ++reg) {
      std::uint32_t& value = registers[static_cast<std::size_t>(lane)][static_cast<std::size_t>(reg)];
      for (int byte = 0; byte < 4; ++byte) {
        const LdmatrixSource from = ldmatrix_source(shape, lane, reg, byte);
        const std::int64_t row = row_addresses[static_cast<std::size_t>(8 * from.matrix + from.row)];
        value |= static_cast<std::uint32_t>(image.read(row + from.byte, 1)[0]) << (8 * byte);
      }
    }
  }
  return registers;
}

LdmatrixShape ldmatrix_shape(LdmatrixUse use) {
  return {4, use_of(use).trans};
}

TilePlace ldmatrix_row(LdmatrixUse use, int element_bytes, int lane) {
  check_element(use, element_bytes);
  check_index("lane", lane, 32);
  const int vector = kRowBytes / element_bytes;
  switch (use) {
    case LdmatrixUse::k_as_b:
    case LdmatrixUse::v_as_a:
      return {lane % 8 + 8 * (lane / 16), vector * (lane / 8 % 2)};
    case LdmatrixUse::k_as_a:
    case LdmatrixUse::v_as_b:
      return {lane % 16, vector * (lane / 16)};
    case LdmatrixUse::v_fp8:
      break;
  }
  return {lane, 0};
}

FragmentMap ldmatrix_map(LdmatrixUse use, int element_bytes) {
  check_element(use, element_bytes);
  const Use u = use_of(use);
  const int per_register = 4 / element_bytes;
  FragmentInfo info{fmt::format("ldmatrix.x4{}, {}, {} B elements", u.trans ? ".trans" : "", u.name, element_bytes),
                    "key",
                    "depth",
                    32,
                    4 * per_register,
                    u.keys,
                    u.row_bytes / element_bytes,
                    per_register};
  return {std::move(info), [&](FragmentPlace at) {
            const LdmatrixSource from = ldmatrix_source(ldmatrix_shape(use), at.lane, at.element / per_register,
                                                        at.element % per_register * element_bytes);
            const TilePlace row = ldmatrix_row(use, element_bytes, 8 * from.matrix + from.row);
            return TilePlace{row.row, row.column + from.byte / element_bytes};
          }};
}

}  // namespace kvscope

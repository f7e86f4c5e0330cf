// A fragment map as a table of the tile: the holder of each element, as "T<lane>.<register>".
//
//   mma.m16n8k16, C
//          n0     n1     n2     n3  ...
//   row0  T0.0   T0.1   T1.0   T1.1
//
// Elements in the same register have the same name, so a bf16 A of 16 columns shows pairs. The output is deterministic.
#pragma once

#include <cstdint>
#include <string>

#include "core/fragment/fragment_map.h"

namespace kvscope {

enum class TableForm : std::uint8_t { text, markdown };

// The part of the tile to draw; -1: to the end.
struct TableWindow {
  int first_row = 0, rows = -1;
  int first_column = 0, columns = -1;
};

// GeometryError: a window that leaves the tile.
[[nodiscard]] std::string fragment_table(const FragmentMap& map, TableForm form, const TableWindow& window = {});

}  // namespace kvscope

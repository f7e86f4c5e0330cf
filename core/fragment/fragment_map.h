// A fragment map: which element of a tile each element of each lane's registers holds, and the inverse.
//
//   mma.m16n8k16, C:   lane 5 = (g 1, t 1)     element  0      1      2      3
//                                              tile   (1,2)  (1,3)  (9,2)  (9,3)
//
// One type serves every instruction: extents and two functions. The constructor verifies that the map is a bijection.
// Lanes number all threads that hold a part: 32 of a warp, 64 of a wave, 128 of a warpgroup.
// Example: mma_sync_map(MmaSync::m16n8k16, MmaOperand::c).tile_of({5, 2}) == TilePlace{9, 2}.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace kvscope {

struct FragmentPlace {
  int lane = 0;
  int element = 0;  // of the lane's fragment, in the order of its registers, low bits first
  friend auto operator<=>(const FragmentPlace&, const FragmentPlace&) = default;
};

struct TilePlace {
  int row = 0;
  int column = 0;
  friend auto operator<=>(const TilePlace&, const TilePlace&) = default;
};

struct FragmentInfo {
  std::string name;         // "mma.m16n8k16, A"
  std::string row_name;     // "row", "key"
  std::string column_name;  // "k", "depth"
  int lanes = 0;
  int elements = 0;               // of a lane
  int rows = 0;                   // of the tile
  int columns = 0;                // of the tile
  int elements_per_register = 1;  // elements that share 32 bits
};

class FragmentMap {
 public:
  // Calls `tile_of` once for each place. GeometryError unless the results cover the tile exactly once.
  FragmentMap(FragmentInfo info, const std::function<TilePlace(FragmentPlace)>& tile_of);

  [[nodiscard]] const FragmentInfo& info() const { return info_; }
  // IndexError outside the extents, naming the map.
  [[nodiscard]] TilePlace tile_of(FragmentPlace place) const;
  [[nodiscard]] FragmentPlace fragment_of(TilePlace place) const;
  // The 32-bit register of the lane that holds the element.
  [[nodiscard]] int register_of(int element) const { return element / info_.elements_per_register; }

 private:
  FragmentInfo info_;
  std::vector<TilePlace> tile_;          // [lane, element]
  std::vector<FragmentPlace> fragment_;  // [row, column]
};

// GeometryError unless `count` values are a whole tile of the map.
void check_count(const FragmentMap& map, const char* what, std::size_t count);

// Reorders the values of a tile into the order of the registers, and back. Registers are [lane, element], the tile
// [row, column]. GeometryError: a wrong number of values.
template <class T>
[[nodiscard]] std::vector<T> tile_to_registers(const FragmentMap& map, const std::vector<T>& tile) {
  check_count(map, "tile", tile.size());
  std::vector<T> registers;
  for (int lane = 0; lane < map.info().lanes; ++lane) {
    for (int element = 0; element < map.info().elements; ++element) {
      const TilePlace at = map.tile_of({lane, element});
      registers.push_back(tile[static_cast<std::size_t>(at.row * map.info().columns + at.column)]);
    }
  }
  return registers;
}
template <class T>
[[nodiscard]] std::vector<T> registers_to_tile(const FragmentMap& map, const std::vector<T>& registers) {
  check_count(map, "registers", registers.size());
  std::vector<T> tile;
  for (int row = 0; row < map.info().rows; ++row) {
    for (int column = 0; column < map.info().columns; ++column) {
      const FragmentPlace at = map.fragment_of({row, column});
      tile.push_back(registers[static_cast<std::size_t>(at.lane * map.info().elements + at.element)]);
    }
  }
  return tile;
}

}  // namespace kvscope

#include "core/fragment/fragment_map.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/fragment/fp8_v.h"
#include "core/fragment/fragment_table.h"
#include "core/fragment/ldmatrix.h"
#include "core/fragment/mfma.h"
#include "core/fragment/mma_sync.h"
#include "core/fragment/wgmma.h"

namespace kvscope::fragment_map_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

template <class Error, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no such error";
}

std::vector<FragmentMap> every_map() {
  std::vector<FragmentMap> maps;
  for (const MfmaShape& shape : all_mfma_shapes()) {
    maps.push_back(mfma_k_map(shape.id));
    maps.push_back(mfma_v_map(shape.id));
    maps.push_back(mfma_sum_map(shape.id));
  }
  for (const auto mma : {MmaSync::m16n8k16, MmaSync::m16n8k32}) {
    for (const auto operand : {MmaOperand::a, MmaOperand::b, MmaOperand::c}) maps.push_back(mma_sync_map(mma, operand));
    maps.push_back(wgmma_a_map(mma));
  }
  for (const auto use : {LdmatrixUse::k_as_b, LdmatrixUse::k_as_a}) {
    for (const int bytes : {1, 2}) maps.push_back(ldmatrix_map(use, bytes));
  }
  maps.push_back(ldmatrix_map(LdmatrixUse::v_as_b, 2));
  maps.push_back(ldmatrix_map(LdmatrixUse::v_as_a, 2));
  maps.push_back(ldmatrix_map(LdmatrixUse::v_fp8, 1));
  maps.push_back(fp8_v_map());
  for (int N = 8; N <= 256; N += 8) maps.push_back(wgmma_sum_map(N));
  return maps;
}

// Both directions of every map, over every place: none twice, none missing, and the inverse gives the place back.
TEST(EveryFragmentMap, IsABijectionThatItsInverseUndoes) {
  std::set<std::string> names;
  for (const FragmentMap& map : every_map()) {
    const FragmentInfo& info = map.info();
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(info.lanes * info.elements, info.rows * info.columns) << info.name;
    EXPECT_EQ(info.elements % info.elements_per_register, 0) << info.name;
    std::set<TilePlace> seen;
    for (int lane = 0; lane < info.lanes; ++lane) {
      for (int element = 0; element < info.elements; ++element) {
        const TilePlace at = map.tile_of({lane, element});
        seen.insert(at);
        ASSERT_EQ(map.fragment_of(at), (FragmentPlace{lane, element})) << info.name;
      }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(info.rows * info.columns)) << info.name;
  }
}

TEST(EveryFragmentMap, CarriesATileIntoRegistersAndBack) {
  for (const FragmentMap& map : every_map()) {
    std::vector<int> tile(static_cast<std::size_t>(map.info().rows * map.info().columns));
    for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<int>(3 * i + 1);
    const auto registers = tile_to_registers(map, tile);
    EXPECT_EQ(registers_to_tile(map, registers), tile) << map.info().name;
    const TilePlace last = map.tile_of({map.info().lanes - 1, map.info().elements - 1});
    EXPECT_EQ(registers.back(), 3 * (last.row * map.info().columns + last.column) + 1) << map.info().name;
  }
}

TEST(AFragmentMap, IsRejectedWhenTwoLanesHoldOneElement) {
  const FragmentInfo info{"a wrong map", "row", "column", 2, 2, 2, 2, 1};
  EXPECT_EQ(message_of<GeometryError>([&] {
              return FragmentMap(info, [](FragmentPlace at) { return TilePlace{at.element, at.element}; });
            }),
            "a wrong map rejected, 2 faults:\n"
            "  lane 1, element 0: (0, 0) is held by lane 0, element 0 already\n"
            "  lane 1, element 1: (1, 1) is held by lane 0, element 1 already");
  EXPECT_EQ(message_of<GeometryError>([&] {
              return FragmentMap(info, [](FragmentPlace at) { return TilePlace{at.lane + at.element, at.element}; });
            }),
            "a wrong map rejected: lane 1, element 1: (2, 1) is outside 2 x 2");
  EXPECT_EQ(
      message_of<GeometryError>([&] {
        return FragmentMap({"a small tile", "row", "column", 2, 2, 3, 2, 1}, [](FragmentPlace at) {
          return TilePlace{at.lane, at.element};
        });
      }),
      "a small tile rejected: extents: 2 lanes of 2 elements are 4 places, but 3 x 2 are 6: make them equal, and at "
      "most 1048576");
  EXPECT_THAT(
      message_of<GeometryError>([&] {
        return FragmentMap({"nothing", "row", "column", 0, 1, 1, -1, 0}, [](FragmentPlace) { return TilePlace{}; });
      }),
      StartsWith("nothing rejected, 3 faults:\n  lanes: 0 is outside [1, 1048576]\n  columns: -1 is outside"));
  // A formula that is wrong everywhere is reported for its first places only.
  const FragmentInfo large{"all wrong", "row", "column", 64, 8, 32, 16, 1};
  try {
    const FragmentMap map(large, [](FragmentPlace) { return TilePlace{-1, 0}; });
    ADD_FAILURE();
  } catch (const GeometryError& e) {
    EXPECT_EQ(e.faults().size(), 8u);
  }
}

TEST(AFragmentMap, NamesThePlaceThatItDoesNotHave) {
  const FragmentMap c = mma_sync_map(MmaSync::m16n8k16, MmaOperand::c);
  EXPECT_EQ(message_of<IndexError>([&] { return c.tile_of({32, 0}); }), "mma.m16n8k16, C: lane 32 is outside [0, 32)");
  EXPECT_EQ(message_of<IndexError>([&] { return c.tile_of({0, 4}); }), "mma.m16n8k16, C: element 4 is outside [0, 4)");
  EXPECT_EQ(message_of<IndexError>([&] {
              return c.fragment_of({16, 0});
            }),
            "mma.m16n8k16, C: row 16 is outside [0, 16)");
  EXPECT_EQ(message_of<IndexError>([&] { return c.fragment_of({0, -1}); }), "mma.m16n8k16, C: n -1 is outside [0, 8)");
  EXPECT_EQ(message_of<GeometryError>([&] { return tile_to_registers(c, std::vector<int>(127)); }),
            "tile of mma.m16n8k16, C: 127 values, but 32 lanes of 4 elements are 128");
  EXPECT_EQ(message_of<GeometryError>([&] { return registers_to_tile(c, std::vector<int>(129)); }),
            "registers of mma.m16n8k16, C: 129 values, but 32 lanes of 4 elements are 128");
}

// Pairs of bf16 share a register and therefore a name; the values of the sum do not.
TEST(FragmentTables, NameTheLaneAndRegisterOfEachElement) {
  EXPECT_EQ(fragment_table(mma_sync_map(MmaSync::m16n8k16, MmaOperand::c), TableForm::text, {0, 2, 0, 4}),
            "mma.m16n8k16, C\n"
            "       n 0   n 1   n 2   n 3\n"
            "row 0  T0.0  T0.1  T1.0  T1.1\n"
            "row 1  T4.0  T4.1  T5.0  T5.1\n");
  EXPECT_EQ(fragment_table(mma_sync_map(MmaSync::m16n8k16, MmaOperand::a), TableForm::markdown, {7, 2, 6, 3}),
            "**mma.m16n8k16, A**\n\n"
            "|       | k 6   | k 7   | k 8   |\n"
            "|-------|-------|-------|-------|\n"
            "| row 7 | T31.0 | T31.0 | T28.2 |\n"
            "| row 8 | T3.1  | T3.1  | T0.3  |\n");
}

TEST(FragmentTables, DrawTheWholeTileUnlessAskedForAPart) {
  for (const FragmentMap& map : every_map()) {
    if (map.info().rows * map.info().columns > 2048) continue;
    const std::string text = fragment_table(map, TableForm::markdown);
    EXPECT_EQ(text, fragment_table(map, TableForm::markdown));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), map.info().rows + 4) << map.info().name;
    EXPECT_EQ(
        std::count(text.begin(), text.end(), 'T') - std::count(map.info().name.begin(), map.info().name.end(), 'T'),
        map.info().rows * map.info().columns)
        << map.info().name;
  }
  const FragmentMap c = mma_sync_map(MmaSync::m16n8k16, MmaOperand::c);
  EXPECT_THAT(fragment_table(c, TableForm::text), HasSubstr("\nrow 15  T28.2  T28.3  T29.2"));
  EXPECT_EQ(message_of<GeometryError>([&] {
              return fragment_table(c, TableForm::text, {15, 2, 8, -1});
            }),
            "table of mma.m16n8k16, C rejected, 2 faults:\n"
            "  rows: [15, 17) is not a part of [0, 16)\n"
            "  columns: [8, 8) is not a part of [0, 8)");
}

}  // namespace
}  // namespace kvscope::fragment_map_test

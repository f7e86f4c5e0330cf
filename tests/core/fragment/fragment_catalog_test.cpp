#include "core/fragment/fragment_catalog.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/fragment/fragment_table.h"

namespace kvscope::fragment_catalog_test {
namespace {

TEST(FragmentCatalog, HasEveryNameOfItsHeaderOnce) {
  std::vector<std::string> names;
  for (const CatalogedFragment& entry : fragment_catalog()) names.push_back(entry.name);
  std::vector<std::string> expected;
  for (const char* mma : {"mma.m16n8k16", "mma.m16n8k32"}) {
    for (const char* operand : {".a", ".b", ".c"}) expected.push_back(std::string(mma) + operand);
  }
  for (const char* shape : {"32x32x8", "32x32x16", "16x16x32", "32x32x64", "16x16x128"}) {
    for (const char* operand : {".k", ".v", ".sum"}) expected.push_back(std::string("mfma.") + shape + operand);
  }
  for (const char* use : {"k_as_b.16", "k_as_b.8", "k_as_a.16", "k_as_a.8", "v_as_b.16", "v_as_a.16"}) {
    expected.push_back(std::string("ldmatrix.") + use);
  }
  expected.emplace_back("fp8_v");
  for (const char* n : {"8", "16", "32", "64", "128", "256"}) expected.push_back(std::string("wgmma.m64n") + n + ".d");
  expected.emplace_back("wgmma.a.16");
  expected.emplace_back("wgmma.a.8");
  EXPECT_EQ(names, expected);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

// Sizes as in the instructions' names: an entry that builds the map of the next entry has other sizes.
TEST(FragmentCatalog, EveryMapIsBuiltWithTheSizesOfItsName) {
  const auto sizes = [](const std::string& name) {
    const FragmentInfo info = cataloged_fragment("test", name).info();
    return std::vector<int>{info.rows, info.columns, info.lanes, info.elements};
  };
  using Numbers = std::vector<int>;
  EXPECT_EQ(sizes("mma.m16n8k16.a"), (Numbers{16, 16, 32, 8}));
  EXPECT_EQ(sizes("mma.m16n8k16.b"), (Numbers{16, 8, 32, 4}));
  EXPECT_EQ(sizes("mma.m16n8k16.c"), (Numbers{16, 8, 32, 4}));
  EXPECT_EQ(sizes("mma.m16n8k32.a"), (Numbers{16, 32, 32, 16}));
  EXPECT_EQ(sizes("mma.m16n8k32.b"), (Numbers{32, 8, 32, 8}));
  EXPECT_EQ(sizes("mfma.32x32x8.k"), (Numbers{32, 16, 64, 8}));  // two of them
  EXPECT_EQ(sizes("mfma.32x32x16.k"), (Numbers{32, 16, 64, 8}));
  EXPECT_EQ(sizes("mfma.16x16x32.v"), (Numbers{32, 16, 64, 8}));
  EXPECT_EQ(sizes("mfma.32x32x64.k"), (Numbers{32, 64, 64, 32}));
  EXPECT_EQ(sizes("mfma.16x16x128.v"), (Numbers{128, 16, 64, 32}));
  EXPECT_EQ(sizes("mfma.32x32x64.sum"), (Numbers{32, 32, 64, 16}));
  EXPECT_EQ(sizes("mfma.16x16x128.sum"), (Numbers{16, 16, 64, 4}));
  EXPECT_EQ(sizes("ldmatrix.k_as_b.16"), (Numbers{16, 16, 32, 8}));
  EXPECT_EQ(sizes("ldmatrix.k_as_a.8"), (Numbers{16, 32, 32, 16}));
  EXPECT_EQ(sizes("ldmatrix.v_as_a.16"), (Numbers{16, 16, 32, 8}));
  EXPECT_EQ(sizes("fp8_v"), (Numbers{32, 16, 32, 16}));
  EXPECT_EQ(sizes("wgmma.m64n256.d"), (Numbers{64, 256, 128, 128}));
  EXPECT_EQ(sizes("wgmma.a.8"), (Numbers{64, 32, 128, 16}));
}

// Building a map checks that it is a bijection; no two maps may have the same name.
TEST(FragmentCatalog, EveryMapDrawsATableAndNoTwoHaveOneName) {
  std::set<std::string> titles;
  for (const CatalogedFragment& entry : fragment_catalog()) {
    const FragmentMap map = entry.make();
    EXPECT_TRUE(titles.insert(map.info().name).second) << entry.name;
    EXPECT_EQ(map.info().lanes * map.info().elements, map.info().rows * map.info().columns) << entry.name;
    EXPECT_NE(fragment_table(map, TableForm::text).find("T0.0"), std::string::npos) << entry.name;
  }
}

TEST(FragmentCatalog, AnUnknownNameIsRejectedWithTheNearestOne) {
  const auto message = [](const char* name) -> std::string {
    try {
      static_cast<void>(cataloged_fragment("command line", name));
    } catch (const InputError& error) {
      return error.faults().at(0).message;
    }
    return "no error";
  };
  EXPECT_EQ(message("mma.m16n8k61.a"), R"('mma.m16n8k61.a' is not a fragment: did you mean "mma.m16n8k16.a"?)");
  EXPECT_EQ(message("ldmatrix.k_as_b"), R"('ldmatrix.k_as_b' is not a fragment: did you mean "ldmatrix.k_as_b.8"?)");
  EXPECT_THAT(
      message("nothing of the kind"),
      testing::StartsWith("'nothing of the kind' is not a fragment: choose one of mma.m16n8k16.a, mma.m16n8k16.b"));
}

}  // namespace
}  // namespace kvscope::fragment_catalog_test

#include "core/tma/tensor_map_json.h"

#include <gmock/gmock.h>

#include <array>
#include <ostream>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope {

static void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.where << ": " << fault.message;
}

namespace {

// The example of the header.
constexpr std::string_view kExample = R"({ "kvscope_tensor_map": 1,
  "type": "bf16", "base": 4096, "dims": [64, 20], "strides": [128], "box": [64, 8], "element_strides": [1, 1],
  "swizzle": "128B", "interleave": "none", "l2_promotion": "none", "fill": "zeros", "target": "sm_90",
  "copy": { "at": [0, 17], "dst": 0 } })";

std::vector<Fault> faults_of(std::string_view text) {
  try {
    static_cast<void>(parse_tensor_map(text, "map.json"));
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), "map.json");
    return error.faults();
  }
  return {};
}

// A valid map except for `members`, which are appended.
std::vector<Fault> faults_with(const std::string& members) {
  return faults_of(R"({"kvscope_tensor_map": 1, "type": "bf16", "dims": [64, 20], "strides": [128], "box": [64, 8], )" +
                   members + "}");
}

TEST(TensorMapJson, TheHeadersExampleIsTheMapItSays) {
  const TensorMapFile file = parse_tensor_map(kExample, "map.json");
  TensorMap map;
  map.data_type = TmaDataType::bf16;
  map.rank = 2;
  map.base = 4096;
  map.dims = {64, 20};
  map.strides = {128};
  map.box = {64, 8};
  map.swizzle = TmaSwizzle::b128;
  EXPECT_EQ(file.map, map);
  EXPECT_EQ(file.target, TmaTarget::sm_90);
  ASSERT_TRUE(file.at);
  EXPECT_EQ(file.at->rank, 2);
  EXPECT_EQ(file.at->at[0], 0);
  EXPECT_EQ(file.at->at[1], 17);
  EXPECT_EQ(file.dst, 0);
  EXPECT_TRUE(check_tensor_map(file.map, file.target).broken.empty());
}

// Lists of five different numbers: a reversed or shifted list gives another map.
TEST(TensorMapJson, EveryMemberOfAMapOfFiveDimensionsIsRead) {
  const TensorMapFile file = parse_tensor_map(
      R"({"kvscope_tensor_map": 1, "$schema": "x", "description": "y", "type": "u6x16_align16",
          "base": 18446744073709551615, "dims": [1, 2, 3, 4, 4294967296], "strides": [16, 32, 48, 1099511627776],
          "box": [5, 6, 7, 8, 4294967295], "element_strides": [9, 1, 2, 3, 4], "swizzle": "128B_ATOM_32B_FLIP_8B",
          "interleave": "32B", "l2_promotion": "256B", "fill": "nan", "target": "sm_100",
          "copy": {"at": [-1, 2, -2147483648, 2147483647, 0], "dst": 1152}})",
      "map.json");
  TensorMap map;
  map.data_type = TmaDataType::u6x16_align16;
  map.rank = 5;
  map.base = 18446744073709551615u;
  map.dims = {1, 2, 3, 4, 4294967296};
  map.strides = {16, 32, 48, 1099511627776};
  map.box = {5, 6, 7, 8, 4294967295};
  map.element_strides = {9, 1, 2, 3, 4};
  map.swizzle = TmaSwizzle::b128_atom32_flip8;
  map.interleave = TmaInterleave::b32;
  map.l2 = L2Promotion::b256;
  map.fill = OobFill::nan_request_zero_fma;
  EXPECT_EQ(file.map, map);
  EXPECT_EQ(file.target, TmaTarget::sm_100);
  ASSERT_TRUE(file.at);
  EXPECT_EQ(file.at->at, (std::array<std::int32_t, 5>{-1, 2, -2147483648, 2147483647, 0}));
  EXPECT_EQ(file.dst, 1152);
}

// Words of the file against the driver's numbers (CUDA driver API, the enumerations of a tensor map).
TEST(TensorMapJson, EveryWordHasTheNumberOfTheDriversEnumeration) {
  const auto words = [](const char* member, const std::vector<std::string>& all, const auto& number) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string text = R"({"kvscope_tensor_map": 1, "dims": [64, 20], "strides": [128], "box": [64, 8], )" +
                               (std::string(member) == "type" ? std::string() : R"("type": "bf16", )") + '"' + member +
                               "\": \"" + all[i] + "\"}";
      EXPECT_EQ(number(parse_tensor_map(text, "map.json").map), i) << all[i];
    }
  };
  words("type",
        {"u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz",
         "u4x16_align8", "u4x16_align16", "u6x16_align16"},
        [](const TensorMap& map) { return static_cast<std::size_t>(map.data_type); });
  words("swizzle", {"none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"},
        [](const TensorMap& map) { return static_cast<std::size_t>(map.swizzle); });
  words("interleave", {"none", "16B", "32B"},
        [](const TensorMap& map) { return static_cast<std::size_t>(map.interleave); });
  words("l2_promotion", {"none", "64B", "128B", "256B"},
        [](const TensorMap& map) { return static_cast<std::size_t>(map.l2); });
  words("fill", {"zeros", "nan"}, [](const TensorMap& map) { return static_cast<std::size_t>(map.fill); });
}

TEST(TensorMapJson, WhatIsLeftOutHasTheDefaultsOfTheModel) {
  const TensorMapFile file = parse_tensor_map(
      R"({"kvscope_tensor_map": 1, "type": "u8", "dims": [64], "strides": [], "box": [32]})", "map.json");
  TensorMap map;
  map.rank = 1;
  map.dims = {64};
  map.box = {32};
  EXPECT_EQ(file.map, map);
  EXPECT_EQ(file.target, TmaTarget::sm_90);
  EXPECT_FALSE(file.at);
  EXPECT_EQ(file.dst, 0);
  EXPECT_TRUE(check_tensor_map(file.map, file.target).broken.empty());
  // A map of rank 1 has no strides and must not be required to have any.
  EXPECT_EQ(parse_tensor_map(R"({"kvscope_tensor_map": 1, "type": "u8", "dims": [64], "box": [32]})", "map.json").map,
            map);
  EXPECT_EQ(faults_of(R"({"kvscope_tensor_map": 1, "type": "u8", "dims": [64], "strides": [16], "box": [32]})"),
            (std::vector<Fault>{{"$.strides", "has 1 numbers, the rank asks for 0"}}));
}

// A map that breaks rules can be read, so that the broken rules can be reported.
TEST(TensorMapJson, ABrokenRuleIsNotAFaultOfTheForm) {
  const TensorMapFile file = parse_tensor_map(
      R"({"kvscope_tensor_map": 1, "type": "bf16", "dims": [72, 20], "strides": [72], "box": [72, 0]})", "map.json");
  EXPECT_EQ(check_tensor_map(file.map, file.target).broken.size(), 2u);
}

TEST(TensorMapJson, AllFaultsOfAFileAtOnceInTheOrderOfItsMembers) {
  const std::vector<Fault> expected{
      {"$.boxs", R"(unknown key: did you mean "box"?)"},
      {"$.kvscope_tensor_map", "2 is not the version this program reads: 1"},
      {"$.type", R"("bf61" is not a legal word: did you mean "bf16"?)"},
      {"$.swizzle",
       "128 instead of a word: choose one of none, 32B, 64B, 128B, 128B_ATOM_32B, 128B_ATOM_32B_FLIP_8B, "
       "128B_ATOM_64B"},
      {"$.target", R"("sm_80" is not a legal word: did you mean "sm_90"?)"},
      {"$.base", "-16 instead of an integer in [0, 18446744073709551615]"},
      {"$.dims[1]", "2.5 instead of an integer in [0, 18446744073709551615]"},
      {"$.strides", "has 2 numbers, the rank asks for 1"},
      {"$.box", "missing: a list of integers, fastest dimension first"},
      {"$.element_strides[0]", "4294967296 instead of an integer in [0, 4294967295]"},
      {"$.copy.to", "unknown key: choose one of at, dst"},
      {"$.copy.at[1]", "2147483648 instead of an integer in [-2147483648, 2147483647]"},
      {"$.copy.dst", R"("0" instead of an integer in [-9223372036854775808, 9223372036854775807])"},
  };
  EXPECT_EQ(faults_of(R"({"kvscope_tensor_map": 2, "type": "bf61", "swizzle": 128, "target": "sm_80", "base": -16,
                          "dims": [64, 2.5], "strides": [128, 128], "boxs": [64, 8],
                          "element_strides": [4294967296, 1],
                          "copy": {"at": [0, 2147483648], "dst": "0", "to": 1}})"),
            expected);
}

TEST(TensorMapJson, WhatIsMissingIsNamedWithWhatToWrite) {
  const std::vector<Fault> expected{
      {"$.kvscope_tensor_map", "missing: write 1, the version of this format"},
      {"$.type",
       "missing: choose one of u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz, "
       "u4x16_align8, u4x16_align16, u6x16_align16"},
      {"$.dims", "missing: a list of integers, fastest dimension first"},
      {"$.strides", "missing: a list of integers, fastest dimension first"},
      {"$.box", "missing: a list of integers, fastest dimension first"},
  };
  EXPECT_EQ(faults_of("{}"), expected);
}

TEST(TensorMapJson, FormsThatAreNone) {
  EXPECT_EQ(faults_of("[1]"), (std::vector<Fault>{{"$", "an array instead of an object"}}));
  EXPECT_EQ(faults_of("{"), (std::vector<Fault>{{"line 1, column 2",
                                                 "syntax error while parsing object key - unexpected end of input; "
                                                 "expected string literal"}}));
  EXPECT_EQ(faults_with(R"("copy": [0, 17])"), (std::vector<Fault>{{"$.copy", "an array instead of an object"}}));
  for (const char* version : {"\"1\"", "1.0", "true", "2"}) {
    const std::string document =
        std::string(R"({"kvscope_tensor_map": )") + version + R"(, "type": "u8", "dims": [64], "box": [32]})";
    ASSERT_EQ(faults_of(document).size(), 1U) << version;
    EXPECT_EQ(faults_of(document)[0].where, "$.kvscope_tensor_map");
    EXPECT_THAT(faults_of(document)[0].message, testing::HasSubstr(" is not the version this program reads: 1"));
  }
  EXPECT_EQ(faults_with(R"("copy": {"at": [0, 0], "dst": 9223372036854775808})"),
            (std::vector<Fault>{{"$.copy.dst",
                                 "9223372036854775808 instead of an integer in "
                                 "[-9223372036854775808, 9223372036854775807]"}}));
  EXPECT_EQ(faults_with(R"("copy": {})"),
            (std::vector<Fault>{{"$.copy.at", "missing: a list of integers, fastest dimension first"}}));
  EXPECT_EQ(faults_with(R"("copy": {"at": [0]})"),
            (std::vector<Fault>{{"$.copy.at", "has 1 numbers, the rank asks for 2"}}));
  EXPECT_EQ(faults_with(R"("element_strides": 1)"),
            (std::vector<Fault>{{"$.element_strides", "1 instead of a list of integers"}}));
  EXPECT_EQ(faults_with(R"("fill": "NaN")"),
            (std::vector<Fault>{{"$.fill", R"("NaN" is not a legal word: did you mean "nan"?)"}}));
}

// Ranks 0 and 6 are not legal, and the lengths of other lists are then not checked.
TEST(TensorMapJson, ARankOfNoneAndOfSixIsNone) {
  const auto rank = [](const char* dims) {
    return faults_of(std::string(R"({"kvscope_tensor_map": 1, "type": "u8", "strides": [16], "box": [16], "dims": )") +
                     dims + "}");
  };
  EXPECT_EQ(rank("[]"), (std::vector<Fault>{{"$.dims", "has 0 numbers, a map has 1 to 5"}}));
  EXPECT_EQ(rank("[1, 1, 1, 1, 1, 1]"), (std::vector<Fault>{{"$.dims", "has 6 numbers, a map has 1 to 5"}}));
  EXPECT_EQ(rank("{}"), (std::vector<Fault>{{"$.dims", "an object instead of a list of integers"}}));
}

}  // namespace
}  // namespace kvscope

#include "core/tma/tensor_map_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/file.h"
#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::tensor_map_record_test {
namespace {

using test::message_of;

// The arguments of a call of the driver's encoder.
struct Call {
  alignas(64) std::array<std::byte, kTensorMapBytes> out{};
  std::array<std::uint64_t, 2> dims{64, 20};
  std::array<std::uint64_t, 1> strides{128};
  std::array<std::uint32_t, 2> box{64, 8};
  std::array<std::uint32_t, 2> element_strides{1, 1};

  [[nodiscard]] TensorMapArguments arguments() const {
    return {.data_type = TmaDataType::bf16,
            .rank = 2,
            .base = 0x1000,
            .dims = dims.data(),
            .strides = strides.data(),
            .box = box.data(),
            .element_strides = element_strides.data(),
            .swizzle = TmaSwizzle::b128};
  }
};

TEST(EncodeCall, WritesTheRecordOnlyWhenNothingIsBroken) {
  Call call;
  call.out.fill(std::byte{0xEE});
  call.box[0] = 72;
  EXPECT_EQ(encode_tensor_map(call.out.data(), call.arguments(), TmaTarget::sm_90).broken.front().rule,
            TensorMapRule::V17);
  EXPECT_TRUE(std::all_of(call.out.begin(), call.out.end(), [](std::byte b) { return b == std::byte{0xEE}; }));
  call.box[0] = 64;
  EXPECT_EQ(encode_tensor_map(call.out.data(), call.arguments(), TmaTarget::sm_90).result(), TensorMapResult::success);
  const TensorMap map = decode_tensor_map("record", call.out);
  EXPECT_EQ(map.dims, (std::array<std::uint64_t, 5>{64, 20}));
  EXPECT_EQ(map.strides, (std::array<std::uint64_t, 4>{128}));
  EXPECT_EQ(map.base, 0x1000U);
}

// Rule V01: names the pointer, and reports no other rule when an array is missing.
TEST(EncodeCall, RejectsMissingAndMisalignedPointers) {
  Call call;
  const auto broken = [&](void* out, const TensorMapArguments& arguments) {
    const TensorMapReport report = encode_tensor_map(out, arguments, TmaTarget::sm_90);
    std::string text;
    for (const BrokenMapRule& rule : report.broken) {
      text += std::string(name(rule.rule)) + " " + rule.where + ": " + rule.message + "\n";
    }
    return text;
  };
  EXPECT_EQ(broken(nullptr, call.arguments()), "V01 output: is null: give 128 bytes\n");
  EXPECT_EQ(broken(call.out.data() + 16, call.arguments()),
            "V01 output: 16 B past a multiple of 64: align the 128 bytes\n");
  TensorMapArguments none = call.arguments();
  none.dims = none.strides = nullptr;
  none.box = none.element_strides = nullptr;
  EXPECT_EQ(broken(call.out.data(), none),
            "V01 dims: is null: give an array of rank entries\n"
            "V01 strides: is null: give an array of rank entries\n"
            "V01 box: is null: give an array of rank entries\n"
            "V01 elementStrides: is null: give an array of rank entries\n");
  for (const auto& [array, without] : std::vector<std::pair<std::string, void (*)(TensorMapArguments&)>>{
           {"dims", [](TensorMapArguments& a) { a.dims = nullptr; }},
           {"strides", [](TensorMapArguments& a) { a.strides = nullptr; }},
           {"box", [](TensorMapArguments& a) { a.box = nullptr; }},
           {"elementStrides", [](TensorMapArguments& a) { a.element_strides = nullptr; }}}) {
    TensorMapArguments one = call.arguments();
    without(one);
    EXPECT_EQ(broken(call.out.data(), one), "V01 " + array + ": is null: give an array of rank entries\n");
  }
  TensorMapArguments line = call.arguments();
  line.rank = 1;
  line.strides = nullptr;  // rank 1 reads none, but the driver wants a pointer
  EXPECT_EQ(broken(call.out.data(), line),
            "V01 strides: is null: the driver wants an array for rank 1 too, and reads none of it\n");
  line.strides = call.strides.data();
  EXPECT_EQ(encode_tensor_map(call.out.data(), line, TmaTarget::sm_90).result(), TensorMapResult::success);
  const TensorMap row = decode_tensor_map("record", call.out);
  EXPECT_EQ(row.rank, 1);
  EXPECT_EQ(row.dims, (std::array<std::uint64_t, 5>{64}));
  EXPECT_EQ(row.strides, (std::array<std::uint64_t, 4>{}));
  EXPECT_EQ(test::hex(call.out, 24, 32), std::string(64, '0'));  // no strides
  // Only `rank` entries are read: a rank past 5 reads none.
  TensorMapArguments six = call.arguments();
  six.rank = 6;
  EXPECT_EQ(broken(call.out.data(), six), "V03 rank: 6 is outside 1 to 5\n");
  six.rank = 0xFFFF'FFFF;
  EXPECT_EQ(encode_tensor_map(call.out.data(), six, TmaTarget::sm_90).broken.front().rule, TensorMapRule::V03);
}

TensorMap five_axes() {
  TensorMap map =
      test::map_of(TmaDataType::f32, {std::uint64_t{1} << 32, 7, 9, 11, 13},
                   {(std::uint64_t{1} << 40) - 16, 32, 48, 64}, {16, 1, 256, 3, 5}, TmaSwizzle::b64, {1, 8, 7, 6, 5});
  map.base = 0xFEDC'BA98'7654'3210;
  map.l2 = L2Promotion::b256;
  map.fill = OobFill::nan_request_zero_fma;
  return map;
}

// The format, byte by byte, from its description.
TEST(Record, HasEveryFieldWhereTheFormatSaysSo) {
  const TensorMapRecord record = encode_tensor_map("map", five_axes(), TmaTarget::sm_90);
  EXPECT_EQ(std::memcmp(record.data(), "kvsc-map", 8), 0);
  EXPECT_EQ(test::hex(record, 8, 2), "0100");
  EXPECT_EQ(test::hex(record, 10, 6), "070500020301");
  EXPECT_EQ(test::hex(record, 16, 8), "1032547698badcfe");
  EXPECT_EQ(test::hex(record, 24, 16), "f0ffffffff0000002000000000000000");
  EXPECT_EQ(test::hex(record, 40, 16), "30000000000000004000000000000000");
  EXPECT_EQ(test::hex(record, 56, 20), "ffffffff06000000080000000a0000000c000000");
  EXPECT_EQ(test::hex(record, 76, 10), "10000100000103000500");
  EXPECT_EQ(test::hex(record, 86, 5), "0108070605");
  EXPECT_EQ(test::hex(record, 91, 33), std::string(66, '0'));
}

// With interleave the first element stride is used, and kept; without, it is written as 1.
TEST(Record, KeepsTheFirstElementStrideWhereItCounts) {
  TensorMap map = test::map_of(TmaDataType::u8, {32, 20, 8}, {32, 640}, {16, 4, 2}, TmaSwizzle::none, {2, 1, 1});
  EXPECT_EQ(test::hex(encode_tensor_map("map", map, TmaTarget::sm_90), 86, 3), "010101");
  map.interleave = TmaInterleave::b16;
  const TensorMapReport report = check_tensor_map(map, TmaTarget::sm_90);
  ASSERT_TRUE(report.broken.empty()) << report.broken[0].where << ": " << report.broken[0].message;
  const TensorMapRecord record = encode_tensor_map("map", map, TmaTarget::sm_90);
  EXPECT_EQ(test::hex(record, 86, 3), "020101");
  EXPECT_EQ(decode_tensor_map("record", record), map);
}

// sm_100 has types that sm_90 rejects.
TEST(Record, AKernelsMapIsCheckedForItsTarget) {
  TensorMap map = test::map_of(TmaDataType::u4x16_align8, {128, 20}, {64}, {128, 8}, TmaSwizzle::none);
  EXPECT_THROW((void)map_bytes(map, 90), UnsupportedError);
  const std::vector<std::byte> bytes = map_bytes(map, 100);
  EXPECT_EQ(decode_tensor_map("record", bytes), map);
}

TEST(Record, KeepsEveryMap) {
  EXPECT_EQ(decode_tensor_map("record", encode_tensor_map("map", five_axes(), TmaTarget::sm_90)), five_axes());
  EXPECT_TRUE(prop::check("a legal map comes back as it was", [] {
    TensorMap map;
    map.data_type = prop::one_of(TmaDataType::u8, TmaDataType::bf16, TmaDataType::f32, TmaDataType::i64);
    map.rank = prop::in_range(1, 6);
    map.base = prop::in_range<std::uint64_t>(0, 1U << 20) * 16;
    for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
      map.dims[i] = prop::in_range<std::uint64_t>(1, 1U << 20);
      map.box[i] = i == 0 ? static_cast<std::uint32_t>(16 / size_of(map.data_type))
                          : prop::in_range(1U, i == 1 ? 257U : 5U);  // at most 228 KiB
      if (i > 0) map.strides[i - 1] = prop::in_range<std::uint64_t>(0, 1U << 30) * 16;
      if (i > 0) map.element_strides[i] = prop::in_range(1U, 9U);
    }
    map.swizzle = static_cast<TmaSwizzle>(prop::in_range(0, 7));
    const TensorMapRecord record = encode_tensor_map("map", map, TmaTarget::sm_100);
    RC_ASSERT(decode_tensor_map("record", record) == map);
  }));
}

// Any single wrong bit is detected by checksum, magic or version.
TEST(Record, RejectsEverySingleWrongBit) {
  const TensorMapRecord good = encode_tensor_map("map", five_axes(), TmaTarget::sm_90);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    TensorMapRecord bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_THROW((void)decode_tensor_map("record", bad), InputError) << "bit " << bit;
  }
}

// The record with changed bytes and a matching checksum, as from an attacker or a bug of the writer.
std::string rejected_with(std::size_t at, std::uint8_t value) {
  TensorMapRecord record = encode_tensor_map(
      "map", test::map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, TmaSwizzle::b128), TmaTarget::sm_90);
  record[at] = static_cast<std::byte>(value);
  const std::uint32_t crc = crc32({reinterpret_cast<const char*>(record.data()), 124});
  for (std::size_t i = 0; i < 4; ++i) record[124 + i] = static_cast<std::byte>(crc >> (8 * i) & 0xFF);
  return message_of<InputError>([&] { (void)decode_tensor_map("a.map", record); });
}

TEST(Record, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(message_of<InputError>([] { (void)decode_tensor_map("a.map", std::array<std::byte, 127>{}); }),
            "a.map rejected: 127 bytes are not a tensor map, which has 128");
  EXPECT_EQ(message_of<InputError>([] { (void)decode_tensor_map("a.map", TensorMapRecord{}); }),
            "a.map rejected: byte 0: this is not a tensor map of kvscope; the driver's own 128 bytes are private and "
            "cannot be "
            "read");
  EXPECT_EQ(rejected_with(8, 2), "a.map rejected: byte 8: version 2 is not 1: use the program that wrote it");
  EXPECT_EQ(rejected_with(11, 6), "a.map rejected: rank (V03): 6 is outside 1 to 5");
  EXPECT_EQ(rejected_with(11, 0), "a.map rejected: rank (V03): 0 is outside 1 to 5");
  EXPECT_EQ(rejected_with(13, 7), "a.map rejected: swizzle (V02): 7 is in no table: use 0 to 6");
  EXPECT_EQ(rejected_with(16, 8), "a.map rejected: base (V05): 0x20008 is 8 B past a multiple of 16: move the tensor");
  EXPECT_EQ(rejected_with(64, 1),
            "a.map rejected: byte 64: 1 where this map's record has 0: unused bytes have fixed values");
  EXPECT_EQ(rejected_with(86, 2),
            "a.map rejected: byte 86: 2 where this map's record has 1: unused bytes have fixed values");
  EXPECT_EQ(rejected_with(100, 9),
            "a.map rejected: byte 100: 9 where this map's record has 0: unused bytes have fixed values");
  TensorMapRecord record = encode_tensor_map("map", five_axes(), TmaTarget::sm_90);
  record[30] ^= std::byte{1};
  EXPECT_THAT(
      message_of<InputError>([&] { (void)decode_tensor_map("a.map", record); }),
      testing::MatchesRegex("a.map rejected: byte 124: checksum [0-9a-f]{8}, but the bytes have [0-9a-f]{8}: the "
                            "record is damaged"));
  EXPECT_THROW((void)encode_tensor_map("map", TensorMap{}, TmaTarget::sm_90), GeometryError);
}

}  // namespace
}  // namespace kvscope::tensor_map_record_test

// Every rule of the encoder: a map that breaks it, the nearest legal map, and the exact message.
#include "core/tma/tensor_map_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/core/tma/gold.h"

namespace kvscope::tensor_map_rules_test {
namespace {

using test::message_of;
using Change = std::function<void(TensorMap&)>;

// bf16 {64, 20} in rows of 128 B, boxes of 8 rows with the 128B swizzle.
TensorMap baseline() {
  TensorMap map = test::map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, TmaSwizzle::b128);
  map.base = 0x1000;
  return map;
}
TensorMap baseline_of_rank_3() {
  TensorMap map = test::map_of(TmaDataType::bf16, {64, 20, 4}, {128, 2560}, {64, 8, 1}, TmaSwizzle::b128);
  map.base = 0x1000;
  return map;
}
TensorMap packed(TmaDataType type, std::vector<std::uint64_t> dims, std::uint64_t stride,
                 std::vector<std::uint32_t> box) {
  TensorMap map = test::map_of(type, dims, {stride}, box, TmaSwizzle::none);
  map.base = 0x1000;
  return map;
}

// The first broken rule in the order of the encoder's documentation; "accept" when there is none.
std::string first_broken(TensorMap map, TmaTarget target, const Change& change) {
  change(map);
  const TensorMapReport report = check_tensor_map(map, target);
  return report.broken.empty() ? "accept" : std::string(name(report.broken.front().rule));
}

struct Row {
  const char* what;
  Change change;
  const char* expected;
  TmaTarget target = TmaTarget::sm_90;
};

// Rows of 1 KiB.
void f32_box(TensorMap& map, std::uint32_t rows, std::uint32_t every) {
  map.data_type = TmaDataType::f32;
  map.swizzle = TmaSwizzle::none;
  map.dims = {256, 256};
  map.strides = {1024};
  map.box = {256, rows};
  map.element_strides = {1, every};
}

TEST(TensorMapRules, AcceptAndRejectAsTheEncoderDocuments) {
  constexpr std::uint64_t k32 = std::uint64_t{1} << 32, k40 = std::uint64_t{1} << 40;
  const std::vector<Row> table = {
      {"nothing", [](TensorMap&) {}, "accept"},
      {"rank 0", [](TensorMap& m) { m.rank = 0; }, "V03"},
      {"rank 6", [](TensorMap& m) { m.rank = 6; }, "V03"},
      {"interleave 16B", [](TensorMap& m) { m.interleave = TmaInterleave::b16; }, "V04"},
      {"base 0x1008", [](TensorMap& m) { m.base = 0x1008; }, "V05"},
      {"base 0x1010", [](TensorMap& m) { m.base = 0x1010; }, "accept"},
      {"base 0", [](TensorMap& m) { m.base = 0; }, "accept"},
      {"dims {0,20}", [](TensorMap& m) { m.dims[0] = 0; }, "V08"},
      {"dims {64,2^32}", [](TensorMap& m) { m.dims[1] = k32; }, "accept"},
      {"dims {64,2^32+1}", [](TensorMap& m) { m.dims[1] = k32 + 1; }, "V08"},
      {"dims {63,20}", [](TensorMap& m) { m.dims[0] = 63; }, "accept"},
      {"strides {120}", [](TensorMap& m) { m.strides[0] = 120; }, "V10"},
      {"strides {144}", [](TensorMap& m) { m.strides[0] = 144; }, "accept"},
      {"strides {64}, rows overlap", [](TensorMap& m) { m.strides[0] = 64; }, "accept"},
      {"strides {2^40}", [](TensorMap& m) { m.strides[0] = k40; }, "V11"},
      {"strides {2^40-16}", [](TensorMap& m) { m.strides[0] = k40 - 16; }, "accept"},
      {"swizzle 7", [](TensorMap& m) { m.swizzle = static_cast<TmaSwizzle>(7); }, "V02"},
      {"fill NaN", [](TensorMap& m) { m.fill = OobFill::nan_request_zero_fma; }, "accept"},
      {"ATOM_32B, 100", [](TensorMap& m) { m.swizzle = TmaSwizzle::b128_atom32; }, "accept", TmaTarget::sm_100},
      {"ATOM_32B, 90", [](TensorMap& m) { m.swizzle = TmaSwizzle::b128_atom32; }, "target"},
      {"box {0,8}", [](TensorMap& m) { m.box[0] = 0; }, "V13"},
      {"box {64,257}", [](TensorMap& m) { m.box[1] = 257; }, "V13"},
      {"box {64,256}", [](TensorMap& m) { m.box[1] = 256; }, "accept"},
      {"box {4,8}", [](TensorMap& m) { m.box[0] = 4; }, "V14"},
      {"box {12,8}", [](TensorMap& m) { m.box[0] = 12; }, "V14"},
      {"box {8,8}", [](TensorMap& m) { m.box[0] = 8; }, "accept"},
      {"box {72,8}", [](TensorMap& m) { m.box[0] = 72; }, "V17"},
      {"64B, box {40,8}", [](TensorMap& m) { m.swizzle = TmaSwizzle::b64, m.box[0] = 40; }, "V17"},
      {"64B, box {32,8}", [](TensorMap& m) { m.swizzle = TmaSwizzle::b64, m.box[0] = 32; }, "accept"},
      {"32B, box {24,8}", [](TensorMap& m) { m.swizzle = TmaSwizzle::b32, m.box[0] = 24; }, "V17"},
      {"32B, box {16,8}", [](TensorMap& m) { m.swizzle = TmaSwizzle::b32, m.box[0] = 16; }, "accept"},
      {"NONE, box {256,8}", [](TensorMap& m) { m.swizzle = TmaSwizzle::none, m.box[0] = 256; }, "accept"},
      {"elementStrides {1,0}", [](TensorMap& m) { m.element_strides[1] = 0; }, "V16"},
      {"elementStrides {1,9}", [](TensorMap& m) { m.element_strides[1] = 9; }, "V16"},
      {"elementStrides {1,8}", [](TensorMap& m) { m.element_strides[1] = 8; }, "accept"},
      // Not in the documentation: an H100 rejects these (docs/hardware, probe H8).
      {"elementStrides {0,1}", [](TensorMap& m) { m.element_strides[0] = 0; }, "V16"},
      {"elementStrides {9,1}", [](TensorMap& m) { m.element_strides[0] = 9; }, "V16"},
      {"elementStrides {8,1}", [](TensorMap& m) { m.element_strides[0] = 8; }, "accept"},
      {"f32 {256,228}, 228 KiB", [](TensorMap& m) { f32_box(m, 228, 1); }, "accept"},
      {"f32 {256,229}", [](TensorMap& m) { f32_box(m, 229, 1); }, "V23"},
      {"f32 {256,256}, every second row", [](TensorMap& m) { f32_box(m, 256, 2); }, "accept"},
      {"f32 {256,257}", [](TensorMap& m) { f32_box(m, 257, 1); }, "V13"},
      {"u16 + NaN", [](TensorMap& m) { m.data_type = TmaDataType::u16, m.fill = OobFill::nan_request_zero_fma; },
       "V22"},
      {"u8 + NaN", [](TensorMap& m) { m.data_type = TmaDataType::u8, m.fill = OobFill::nan_request_zero_fma; }, "V22"},
      {"rank 1", [](TensorMap& m) { m.rank = 1; }, "accept"},
      {"rank 1 of 72", [](TensorMap& m) { m.rank = 1, m.box[0] = 72; }, "V17"},
      {"rank 1, interleave 16B", [](TensorMap& m) { m.rank = 1, m.interleave = TmaInterleave::b16; }, "V04"},
      {"rank 1, values past it", [](TensorMap& m) { m.rank = 1, m.strides[0] = 8, m.box[1] = 0; }, "accept"},
      {"type 16", [](TensorMap& m) { m.data_type = static_cast<TmaDataType>(16); }, "V02"},
      {"interleave 3", [](TensorMap& m) { m.interleave = static_cast<TmaInterleave>(3); }, "V02"},
      {"L2 promotion 4", [](TensorMap& m) { m.l2 = static_cast<L2Promotion>(4); }, "V02"},
      {"L2 promotion 3", [](TensorMap& m) { m.l2 = L2Promotion::b256; }, "accept"},
      {"fill 2", [](TensorMap& m) { m.fill = static_cast<OobFill>(2); }, "V02"},
  };
  for (const Row& row : table) EXPECT_EQ(first_broken(baseline(), row.target, row.change), row.expected) << row.what;
}

TEST(TensorMapRules, HoldInterleavedMapsToTheirOwnAlignment) {
  const auto b32 = [](TensorMap& m) { m.interleave = TmaInterleave::b32, m.swizzle = TmaSwizzle::b32; };
  const std::vector<Row> table = {
      {"nothing", [](TensorMap&) {}, "accept"},
      {"16B", [](TensorMap& m) { m.interleave = TmaInterleave::b16; }, "accept"},
      {"32B + swizzle 128B", [](TensorMap& m) { m.interleave = TmaInterleave::b32; }, "V18"},
      {"32B + swizzle 32B", b32, "accept"},
      {"base 0x1010", [&](TensorMap& m) { b32(m), m.base = 0x1010; }, "V06"},
      {"strides {144,2880}",
       [&](TensorMap& m) {
         b32(m), m.strides = {144, 2880};
       },
       "V12"},
      {"elementStrides {9,1,1}", [&](TensorMap& m) { b32(m), m.element_strides[0] = 9; }, "V16"},
      {"box {72,8,1}: no limit of a span", [&](TensorMap& m) { b32(m), m.box[0] = 72; }, "accept"},
      {"6-bit", [](TensorMap& m) { m.interleave = TmaInterleave::b16, m.data_type = TmaDataType::u6x16_align16; },
       "V09"},
  };
  for (const Row& row : table) {
    EXPECT_EQ(first_broken(baseline_of_rank_3(), row.target, row.change), row.expected) << row.what;
  }
  TensorMap six_bits = baseline_of_rank_3();
  six_bits.interleave = TmaInterleave::b16, six_bits.data_type = TmaDataType::u6x16_align16;
  six_bits.dims[0] = 128, six_bits.box[0] = 128, six_bits.strides = {96, 1920};
  EXPECT_EQ(first_broken(six_bits, TmaTarget::sm_100, [](TensorMap&) {}), "V19");
}

TEST(TensorMapRules, HoldPackedTypesToWholeGroups) {
  const auto check = [](const TensorMap& map) { return first_broken(map, TmaTarget::sm_100, [](TensorMap&) {}); };
  constexpr auto u4_8 = TmaDataType::u4x16_align8, u4_16 = TmaDataType::u4x16_align16, u6 = TmaDataType::u6x16_align16;
  EXPECT_EQ(check(packed(u4_8, {128, 4}, 64, {32, 4})), "accept");
  EXPECT_EQ(check(packed(u4_8, {128, 4}, 64, {16, 4})), "V14");
  EXPECT_EQ(check(packed(u4_8, {127, 4}, 64, {32, 4})), "V09");
  EXPECT_EQ(check(packed(u4_16, {256, 4}, 128, {128, 4})), "accept");
  EXPECT_EQ(check(packed(u4_16, {256, 4}, 128, {64, 4})), "V15");
  EXPECT_EQ(check(packed(u4_16, {192, 4}, 128, {128, 4})), "V09");
  EXPECT_EQ(check(packed(u4_16, {256, 4}, 144, {128, 4})), "V12");
  EXPECT_EQ(check(packed(u6, {128, 4}, 96, {128, 4})), "accept");
  EXPECT_EQ(check(packed(u6, {128, 4}, 112, {128, 4})), "V12");
  const auto with = [&](TensorMap map, TmaSwizzle swizzle) {
    map.swizzle = swizzle;
    return check(map);
  };
  EXPECT_EQ(with(packed(u4_16, {256, 4}, 128, {128, 4}), TmaSwizzle::b64), "V17");
  EXPECT_EQ(with(packed(u4_16, {256, 4}, 128, {128, 4}), TmaSwizzle::b128), "accept");
  EXPECT_EQ(with(packed(u4_16, {256, 4}, 128, {128, 4}), TmaSwizzle::b128_atom32), "accept");
  EXPECT_EQ(with(packed(u4_16, {256, 4}, 128, {128, 4}), TmaSwizzle::b128_atom64), "V21");
  EXPECT_EQ(with(packed(u6, {128, 4}, 96, {128, 4}), TmaSwizzle::b32), "V17");
  EXPECT_EQ(with(packed(u6, {128, 4}, 96, {128, 4}), TmaSwizzle::b128_atom32_flip8), "V20");
  EXPECT_EQ(with(packed(u6, {128, 4}, 96, {128, 4}), TmaSwizzle::b128_atom64), "accept");
  TensorMap odd_base = packed(u4_16, {256, 4}, 128, {128, 4});
  odd_base.base = 0x1010;
  EXPECT_EQ(check(odd_base), "V07");
  TensorMap nan = packed(u4_8, {128, 4}, 64, {32, 4});
  nan.fill = OobFill::nan_request_zero_fma;
  EXPECT_EQ(check(nan), "V22");
  EXPECT_EQ(check_tensor_map(packed(u6, {128, 4}, 96, {128, 4}), TmaTarget::sm_90).result(),
            TensorMapResult::unsupported_on_target);
}

// The result of the encoder, and the result that only kvscope has.
TEST(TensorMapRules, TellTheDriversAnswerFromOurOwn) {
  TensorMap map = baseline();
  EXPECT_EQ(check_tensor_map(map, TmaTarget::sm_90).result(), TensorMapResult::success);
  map.swizzle = TmaSwizzle::b128_atom64;
  EXPECT_EQ(check_tensor_map(map, TmaTarget::sm_90).result(), TensorMapResult::unsupported_on_target);
  EXPECT_EQ(check_tensor_map(map, TmaTarget::sm_100).result(), TensorMapResult::success);
  map.base = 8;
  EXPECT_EQ(check_tensor_map(map, TmaTarget::sm_90).result(), TensorMapResult::invalid_value);
}

// Shipped kernels use overlapping rows; a stride of 0 is legal, but its effect is not documented.
TEST(TensorMapRules, NoteAStrideOfZeroAndRejectItNot) {
  TensorMap map = baseline();
  map.strides[0] = 0;
  const TensorMapReport report = check_tensor_map(map, TmaTarget::sm_90);
  EXPECT_EQ(report.result(), TensorMapResult::success);
  EXPECT_EQ(report.notes,
            (std::vector<Fault>{
                {"strides[0]", "0 B is legal by the rules, but whether hardware repeats one row is unknown"}}));
}

TEST(TensorMapRules, TellEveryFaultAtOnceInTheOrderOfTheRules) {
  TensorMap map = baseline();
  map.base = 0x1008;
  map.dims[1] = 0;
  map.strides[0] = 120;
  map.box = {72, 257};
  map.element_strides[1] = 9;
  EXPECT_EQ(message_of<GeometryError>([&] { check_tensor_map(map, TmaTarget::sm_90).throw_if_broken("'K, layer 3'"); }),
            "tensor map of 'K, layer 3' rejected, 6 faults:\n"
            "  base (V05): 0x1008 is 8 B past a multiple of 16: move the tensor\n"
            "  dims[1] (V08): 0 is outside 1 to 2^32\n"
            "  strides[0] (V10): 120 B is not a multiple of 16 B: pad the rows\n"
            "  box[1] (V13): 257 is outside 1 to 256: copy the tile in several boxes\n"
            "  elementStrides[1] (V16): 9 is outside 1 to 8\n"
            "  box[0] (V17): 72 x bf16 = 144 B, but 128B swizzle takes at most 128 B: use boxes of 64 elements");
  // A fault of the target alone is another kind of error: the map is legal.
  TensorMap atom = baseline();
  atom.swizzle = TmaSwizzle::b128_atom32;
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { check_tensor_map(atom, TmaTarget::sm_90).throw_if_broken("K"); }),
      "tensor map of K rejected: swizzle (target): 128B_ATOM_32B swizzle needs sm_100: use the 128B swizzle on sm_90");
  EXPECT_NO_THROW(check_tensor_map(atom, TmaTarget::sm_100).throw_if_broken("K"));
}

// One message of every other rule: value, legal values, next step.
TEST(TensorMapRules, SayValueRangeAndNextStep) {
  const auto message = [](TensorMap map, const Change& change, TmaTarget target = TmaTarget::sm_100) {
    change(map);
    const auto report = check_tensor_map(map, target);
    return report.broken.empty() ? std::string() : report.broken.front().where + ": " + report.broken.front().message;
  };
  EXPECT_EQ(message(baseline(), [](TensorMap& m) { m.swizzle = static_cast<TmaSwizzle>(7); }),
            "swizzle: 7 is in no table: use 0 to 6");
  EXPECT_EQ(message(baseline(), [](TensorMap& m) { m.rank = 6; }), "rank: 6 is outside 1 to 5");
  EXPECT_EQ(message(baseline(), [](TensorMap& m) { m.rank = 0; }), "rank: 0 is outside 1 to 5");
  EXPECT_EQ(message(baseline(), [](TensorMap& m) { m.interleave = TmaInterleave::b16; }),
            "rank: 2 with 16B interleave: it takes 3 to 5");
  const auto b32 = [](TensorMap& m) { m.interleave = TmaInterleave::b32, m.swizzle = TmaSwizzle::b32; };
  EXPECT_EQ(message(baseline_of_rank_3(), [&](TensorMap& m) { b32(m), m.base = 0x1010; }),
            "base: 0x1010 is 16 B past a multiple of 32, as 32B interleave requires: move the tensor");
  EXPECT_EQ(message(packed(TmaDataType::u4x16_align16, {256, 4}, 128, {128, 4}), [](TensorMap& m) { m.base = 16; }),
            "base: 0x10 is 16 B past a multiple of 32, as u4x16_align16 wants: move the tensor");
  EXPECT_EQ(message(packed(TmaDataType::u4x16_align8, {127, 4}, 64, {32, 4}), [](TensorMap&) {}),
            "dims[0]: 127 values of u4x16_align8 are not a multiple of 2: pad the rows");
  EXPECT_EQ(message(baseline(), [](TensorMap& m) { m.strides[0] = std::uint64_t{1} << 40; }),
            "strides[0]: 1099511627776 B is not below 2^40: use several maps");
  EXPECT_EQ(message(baseline_of_rank_3(),
                    [&](TensorMap& m) {
                      b32(m), m.strides = {128, 2576};
                    }),
            "strides[1]: 2576 B is not a multiple of 32 B: pad the rows");
  EXPECT_EQ(message(baseline(), [](TensorMap& m) { m.box[0] = 12; }),
            "box[0]: 12 x bf16 = 24 B is not a multiple of 16 B: use a multiple of 8 elements");
  EXPECT_EQ(message(packed(TmaDataType::u6x16_align16, {128, 4}, 96, {96, 4}), [](TensorMap&) {}),
            "box[0]: 96 x u6x16_align16 = 72 B is not a multiple of 16 B: use a multiple of 64 elements");
  EXPECT_EQ(message(packed(TmaDataType::u4x16_align16, {256, 4}, 128, {64, 4}), [](TensorMap&) {}),
            "box[0]: 64 values of u4x16_align16: it takes 128");
  EXPECT_EQ(message(packed(TmaDataType::u4x16_align16, {256, 4}, 128, {128, 4}),
                    [](TensorMap& m) { m.swizzle = TmaSwizzle::b64; }),
            "box[0]: 128 x u4x16_align16 = 128 B, but 64B swizzle takes at most 64 B: use a 128B swizzle");
  EXPECT_EQ(message(baseline_of_rank_3(), [](TensorMap& m) { m.interleave = TmaInterleave::b32; }),
            "swizzle: 128B swizzle with 32B interleave: it takes the 32B swizzle");
  EXPECT_EQ(
      message(packed(TmaDataType::u6x16_align16, {128, 4}, 96, {128, 4}),
              [](TensorMap& m) { m.swizzle = TmaSwizzle::b128_atom32_flip8; }),
      "swizzle: 128B_ATOM_32B_FLIP_8B swizzle with u6x16_align16: it takes none, 128B, ATOM_32B, and ATOM_64B for "
      "stores");
  EXPECT_EQ(message(packed(TmaDataType::u4x16_align16, {256, 4}, 128, {128, 4}),
                    [](TensorMap& m) { m.swizzle = TmaSwizzle::b128_atom64; }),
            "swizzle: 128B_ATOM_64B swizzle with u4x16_align16: it takes none, 128B and ATOM_32B");
  EXPECT_EQ(
      message(baseline(), [](TensorMap& m) { m.data_type = TmaDataType::u16, m.fill = OobFill::nan_request_zero_fma; }),
      "fill: NaN with u16, which has none: fill with zeros");
  EXPECT_EQ(message(
                packed(TmaDataType::u4x16_align8, {128, 4}, 64, {32, 4}), [](TensorMap&) {}, TmaTarget::sm_90),
            "data type: u4x16_align8 needs sm_100: unpack to u8 on sm_90");
}

TEST(TensorMapEnumerations, HaveTheDriversValuesAndSizes) {
  struct Type {
    TmaDataType type;
    int value;
    int bits;
    bool is_float;
  };
  constexpr std::array<Type, 16> kTable = {{{TmaDataType::u8, 0, 8, false},
                                            {TmaDataType::u16, 1, 16, false},
                                            {TmaDataType::u32, 2, 32, false},
                                            {TmaDataType::i32, 3, 32, false},
                                            {TmaDataType::u64, 4, 64, false},
                                            {TmaDataType::i64, 5, 64, false},
                                            {TmaDataType::f16, 6, 16, true},
                                            {TmaDataType::f32, 7, 32, true},
                                            {TmaDataType::f64, 8, 64, true},
                                            {TmaDataType::bf16, 9, 16, true},
                                            {TmaDataType::f32_ftz, 10, 32, true},
                                            {TmaDataType::tf32, 11, 32, true},
                                            {TmaDataType::tf32_ftz, 12, 32, true},
                                            {TmaDataType::u4x16_align8, 13, 4, false},
                                            {TmaDataType::u4x16_align16, 14, 4, false},
                                            {TmaDataType::u6x16_align16, 15, 6, false}}};
  for (const Type& row : kTable) {
    EXPECT_EQ(static_cast<int>(row.type), row.value);
    EXPECT_EQ(bits(row.type), row.bits);
    EXPECT_EQ(is_float(row.type), row.is_float);
  }
  EXPECT_EQ(static_cast<int>(TmaSwizzle::b128_atom64), 6);
  EXPECT_EQ(static_cast<int>(TmaInterleave::b32), 2);
  EXPECT_EQ(static_cast<int>(L2Promotion::b256), 3);
  EXPECT_EQ(name(static_cast<TmaSwizzle>(7)), "unknown swizzle");
  EXPECT_EQ(name(static_cast<TmaDataType>(16)), "unknown type");
  EXPECT_EQ(name(static_cast<TmaInterleave>(3)), "unknown interleave");
}

}  // namespace
}  // namespace kvscope::tensor_map_rules_test

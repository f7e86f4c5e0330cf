#include "core/base/dtype.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "core/base/errors.h"

namespace kvscope::dtype_test {
namespace {

struct Expected {
  DType dtype;
  const char* name;
  int bits;
  bool integer;
};

// Written out from the definition of each type, not from the table under test.
constexpr Expected kExpected[] = {
    {DType::f64, "f64", 64, false},   {DType::f32, "f32", 32, false},  {DType::f16, "f16", 16, false},
    {DType::bf16, "bf16", 16, false}, {DType::e4m3, "e4m3", 8, false}, {DType::e5m2, "e5m2", 8, false},
    {DType::e8m0, "e8m0", 8, false},  {DType::e2m1, "e2m1", 4, false}, {DType::i8, "i8", 8, true},
    {DType::u8, "u8", 8, true},       {DType::i16, "i16", 16, true},   {DType::u16, "u16", 16, true},
    {DType::i32, "i32", 32, true},    {DType::u32, "u32", 32, true},   {DType::i64, "i64", 64, true},
    {DType::u64, "u64", 64, true},
};
static_assert(sizeof(kExpected) / sizeof(Expected) == kDTypeCount);

TEST(DTypeTest, EveryTypeHasItsNameWidthAndKind) {
  std::set<std::string_view> names;
  for (const Expected& e : kExpected) {
    EXPECT_EQ(name(e.dtype), e.name);
    EXPECT_EQ(bits(e.dtype), e.bits) << e.name;
    EXPECT_EQ(is_integer(e.dtype), e.integer) << e.name;
    EXPECT_EQ(is_float(e.dtype), !e.integer) << e.name;
    EXPECT_EQ(dtype_from_name(e.name), e.dtype);
    if (e.bits >= 8) {
      EXPECT_EQ(size_of(e.dtype), e.bits / 8) << e.name;
    }
    names.insert(name(e.dtype));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kDTypeCount));
}

// A size of half a byte rounded up to 1 would misplace the elements of an fp4 row.
TEST(DTypeTest, AFourBitElementHasNoByteSize) {
  try {
    (void)size_of(DType::e2m1);
    FAIL() << "no UnsupportedError";
  } catch (const UnsupportedError& e) {
    EXPECT_STREQ(e.what(), "e2m1 has 4 bits: an element has no address");
  }
}

TEST(DTypeTest, OtherProjectsNamesAreUnderstoodAndUnknownOnesAreNot) {
  EXPECT_EQ(dtype_from_name("float32"), DType::f32);
  EXPECT_EQ(dtype_from_name("half"), DType::f16);
  EXPECT_EQ(dtype_from_name("bfloat16"), DType::bf16);
  EXPECT_EQ(dtype_from_name("fp8_e4m3"), DType::e4m3);
  EXPECT_EQ(dtype_from_name("float8_e4m3fn"), DType::e4m3);
  EXPECT_EQ(dtype_from_name("fp8_e5m2"), DType::e5m2);
  EXPECT_EQ(dtype_from_name("float8_e8m0fnu"), DType::e8m0);
  EXPECT_EQ(dtype_from_name("int64"), DType::i64);
  for (const char* unknown : {"", "F32", "f32 ", "e4m3fnuz", "f8", "bf1", "bf161"}) {
    EXPECT_EQ(dtype_from_name(unknown), std::nullopt) << unknown;
  }
}

TEST(DTypeTest, ATypeOutsideTheTableIsNamedInvalidAndHasNoWidth) {
  const auto past = static_cast<DType>(kDTypeCount);
  EXPECT_EQ(name(past), "invalid dtype");
  EXPECT_THROW((void)bits(past), UnsupportedError);
  EXPECT_THROW((void)size_of(static_cast<DType>(255)), UnsupportedError);
}

template <class T>
void expect_storage(DType dtype) {
  EXPECT_EQ(dtype_of<T>, dtype);
  if (dtype != DType::e2m1) {
    EXPECT_EQ(static_cast<std::int64_t>(sizeof(T)), size_of(dtype)) << name(dtype);
  }
}

TEST(DTypeTest, TheStorageTypeOfEachIsAsWideAsItsElement) {
  expect_storage<double>(DType::f64);
  expect_storage<float>(DType::f32);
  expect_storage<f16>(DType::f16);
  expect_storage<bf16>(DType::bf16);
  expect_storage<e4m3>(DType::e4m3);
  expect_storage<e5m2>(DType::e5m2);
  expect_storage<e8m0>(DType::e8m0);
  expect_storage<e2m1>(DType::e2m1);
  expect_storage<std::int8_t>(DType::i8);
  expect_storage<std::uint8_t>(DType::u8);
  expect_storage<std::int16_t>(DType::i16);
  expect_storage<std::uint16_t>(DType::u16);
  expect_storage<std::int32_t>(DType::i32);
  expect_storage<std::uint32_t>(DType::u32);
  expect_storage<std::int64_t>(DType::i64);
  expect_storage<std::uint64_t>(DType::u64);
}

}  // namespace
}  // namespace kvscope::dtype_test

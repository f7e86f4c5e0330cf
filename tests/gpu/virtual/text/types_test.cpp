// Names, widths and classes of types; names of special registers.
#include "gpu/virtual/text/types.h"

#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx::types_test {
namespace {

// Would catch a row of the table that is shifted relative to the enumeration.
TEST(Types, EveryNameLeadsBackToItsType) {
  for (int i = 1; i <= static_cast<int>(Type::b1); ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_EQ(type_from_name(name(type)), type) << name(type);
  }
  EXPECT_EQ(name(Type::none), "");
  for (const char* no : {"", "b", "u128", "F32", "v2", ".u32"}) EXPECT_FALSE(type_from_name(no)) << no;
}

// PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats"; a packed type is the sum of its elements.
TEST(Types, WidthsAndClassesAreThoseOfTheManual) {
  const struct {
    const char* name;
    int bits;
    TypeClass cls;
  } rows[] = {{"pred", 1, TypeClass::predicate},
              {"b8", 8, TypeClass::bits},
              {"b128", 128, TypeClass::bits},
              {"u16", 16, TypeClass::unsigned_integer},
              {"s64", 64, TypeClass::signed_integer},
              {"f16", 16, TypeClass::floating},
              {"bf16", 16, TypeClass::floating},
              {"tf32", 32, TypeClass::floating},
              {"f64", 64, TypeClass::floating},
              {"e4m3", 8, TypeClass::floating},
              {"e5m2x2", 16, TypeClass::floating},
              {"f16x2", 32, TypeClass::floating},
              {"s16x2", 32, TypeClass::signed_integer},
              {"u4", 4, TypeClass::unsigned_integer},
              {"b1", 1, TypeClass::bits}};
  for (const auto& row : rows) {
    const Type type = type_from_name(row.name).value();
    EXPECT_EQ(bits(type), row.bits) << row.name;
    EXPECT_EQ(class_of(type), row.cls) << row.name;
  }
  EXPECT_TRUE(is_declarable(Type::bf16));
  EXPECT_FALSE(is_declarable(Type::tf32));  // ptxas: "may only be used as an instruction type"
  EXPECT_FALSE(is_declarable(Type::none));
  EXPECT_EQ(name(Space::constant), "const");
}

TEST(SpecialRegisters, EveryNameLeadsBackToItsRegister) {
  for (int i = 0; i < static_cast<int>(SpecialRegister::count); ++i) {
    const auto special = static_cast<SpecialRegister>(i);
    EXPECT_EQ(special_from_name(name(special)), special) << name(special);
  }
  EXPECT_EQ(name(SpecialRegister::tid_x), "%tid.x");
  EXPECT_EQ(name(SpecialRegister::is_explicit_cluster), "%is_explicit_cluster");
  EXPECT_EQ(name(static_cast<SpecialRegister>(static_cast<int>(SpecialRegister::envreg0) + 31)), "%envreg31");
}

TEST(SpecialRegisters, AVectorWithoutItsMemberIsItsFirst) {
  EXPECT_EQ(special_from_name("%tid"), SpecialRegister::tid_x);
  EXPECT_EQ(special_from_name("%cluster_nctaid"), SpecialRegister::cluster_nctaid_x);
  for (const char* no :
       {"%laneid.x", "tid.x", "%tid.w", "%envreg", "%envreg32", "%envreg01", "%envreg3x", "%clock.x"}) {
    EXPECT_FALSE(special_from_name(no)) << no;
  }
}

TEST(SpecialRegisters, AreWideOnlyWhereTheyCountTime) {
  EXPECT_EQ(bits(SpecialRegister::clock64), 64);
  EXPECT_EQ(bits(SpecialRegister::globaltimer), 64);
  EXPECT_EQ(bits(SpecialRegister::globaltimer_lo), 32);
  EXPECT_EQ(bits(SpecialRegister::is_explicit_cluster), 1);
  EXPECT_EQ(bits(SpecialRegister::tid_x), 32);
}

}  // namespace
}  // namespace kvscope::ptx::types_test

#include "gpu/virtual/isa/grammar.h"

#include <gtest/gtest.h>

#include <set>

namespace kvscope::ptx::grammar_test {
namespace {

// An opcode without a row could never be decoded.
TEST(Grammar, HasARowForEachOpcode) {
  std::set<Opcode> seen;
  for (const Pattern& p : patterns()) seen.insert(p.opcode);
  for (int i = 0; i < static_cast<int>(Opcode::unsupported); ++i) {
    EXPECT_EQ(seen.count(static_cast<Opcode>(i)), 1u) << name(static_cast<Opcode>(i));
  }
}

// A modifier that is in no row is unreachable: code that tests for it would have no effect.
TEST(Grammar, NamesEachModifierSomewhere) {
  std::set<Mod> seen{Mod::barrier};  // not written: of barrier.sync
  for (const Pattern& p : patterns()) {
    for (const Slot& slot : p.slots) {
      for (const Choice& choice : slot.choices) {
        if (choice.kind == Choice::Kind::mod) seen.insert(choice.mod);
      }
    }
  }
  for (int i = 0; i < static_cast<int>(Mod::count); ++i) {
    EXPECT_EQ(seen.count(static_cast<Mod>(i)), 1u) << name(static_cast<Mod>(i)) << " (" << i << ")";
  }
}

TEST(Grammar, NamesNoMoreTypesThanAnInstructionHolds) {
  for (const Pattern& p : patterns()) {
    std::size_t types = 0;
    for (const Slot& slot : p.slots) {
      types += slot.choices.at(0).kind == Choice::Kind::type || slot.choices.back().kind == Choice::Kind::type;
    }
    EXPECT_LE(types, Instr{}.types.size()) << p.form->base << " " << p.form->words;
    EXPECT_LE(p.operands.size(), static_cast<std::size_t>(kMostOperands)) << p.form->base;
  }
}

TEST(Grammar, ExpandsARowOfSeveral) {
  // {reduce}: add, add of halves, min and max, inc and dec, and or xor
  int rows = 0;
  for (const Pattern& p : patterns()) {
    if (p.form->base == "red" && p.form->words == "<reduction-order>? <scope>? <shared> {reduce}") ++rows;
  }
  EXPECT_EQ(rows, 5);
}

TEST(Grammar, HasNoRowForAnUnknownOpcode) {
  EXPECT_TRUE(patterns_of("foo").empty());
  EXPECT_TRUE(patterns_of("").empty());
  EXPECT_TRUE(patterns_of("cp.async.bulk.tensor.2d").empty());
  EXPECT_FALSE(patterns_of("cp.async.bulk.tensor").empty());
  EXPECT_FALSE(patterns_of("barrier.cta.sync").empty());
}

// An unsupported opcode must not also have a row: the reason would be lost, or the instruction would run.
TEST(Grammar, HasNoRowForAWhollyUnsupportedOpcode) {
  for (const Refusal& r : refusals()) {
    if (r.word.empty()) {
      EXPECT_TRUE(patterns_of(r.base).empty()) << r.base;
    }
    EXPECT_FALSE(r.message.empty()) << r.base << r.word;
  }
}

}  // namespace
}  // namespace kvscope::ptx::grammar_test

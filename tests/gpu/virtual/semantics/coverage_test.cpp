// Every word of the grammar that computes a result has a handler in every instruction set, and all handlers compute the
// same bits.
#include <gtest/gtest.h>

#include <bit>

#include "gpu/virtual/isa/grammar.h"
#include "tests/gpu/virtual/semantics/one_op.h"

namespace kvscope::ptx::testing::coverage_test {
namespace {

// The words of a form: every choice of every slot, at most `limit`, with the first choices of each slot used often.
void spell(const Pattern& pattern, std::size_t slot, const std::string& so_far, std::vector<std::string>& words) {
  if (words.size() > 4000) return;
  if (slot == pattern.slots.size()) {
    words.push_back(so_far);
    return;
  }
  const Slot& s = pattern.slots[slot];
  if (s.optional) spell(pattern, slot + 1, so_far, words);
  for (const Choice& choice : s.choices) spell(pattern, slot + 1, so_far + "." + std::string(choice.written), words);
}

bool is_pure(Opcode opcode) {
  return (opcode <= Opcode::cvt_pack && opcode != Opcode::mov) || opcode == Opcode::mma;
}

std::vector<std::string> pure_words() {
  std::vector<std::string> words;
  for (const Pattern& pattern : patterns()) {
    std::vector<std::string> of_form;
    spell(pattern, 0, std::string(pattern.form->base), of_form);
    if (of_form.empty() || !is_pure(understand(of_form.front()).opcode)) continue;
    for (const std::string& word : of_form) {
      if (understand(word).unsupported.empty()) words.push_back(word);
    }
  }
  return words;
}

int read_elements(const Instr& instr) {
  for (int count = 1; count <= kMostOperands; ++count) {
    const auto rules = operand_rules(instr, count);
    int read = 0;
    for (const OperandRule& rule : rules) read += rule.role == Role::written ? 0 : rule.elements;
    if (!rules.empty()) return read;
  }
  return 0;
}

TEST(Coverage, EveryWordThatComputesHasAHandler) {
  int count = 0;
  for (const std::string& word : pure_words()) {
    Case c;
    c.word = word;
    c.in.resize(static_cast<std::size_t>(read_elements(understand(word))));
    c.pair = word.starts_with("lop3.and") || word.starts_with("lop3.or");
    for (const Simd simd : simds()) {
      c.simd = simd;
      EXPECT_NE(handler_of(c), nullptr) << word;
    }
    ++count;
  }
  EXPECT_GT(count, 2000);
}

// Numbers at edges: zeros, ones, ends of ranges, NaN, infinities, subnormals, ties, and random ones.
std::uint64_t edgy(Random& random, int kind) {
  static constexpr std::uint64_t kEdges[] = {0,
                                             1,
                                             2,
                                             31,
                                             32,
                                             33,
                                             63,
                                             64,
                                             0x7f,
                                             0x80,
                                             0xff,
                                             0x7fff,
                                             0x8000,
                                             0xffff,
                                             0x3c00,
                                             0x7c00,
                                             0xfc00,
                                             0x7bff,
                                             0x0400,
                                             0x83ff,
                                             0x7f80,
                                             0x7fffffff,
                                             0x80000000,
                                             0xffffffff,
                                             0x3f800000,
                                             0xbf800000,
                                             0x7f800000,
                                             0xff800000,
                                             0x7fc00000,
                                             0x00800000,
                                             0x807fffff,
                                             0x4b000001,
                                             0x4f000000,
                                             0x3effffff,
                                             0x477fe000,
                                             0x33000000,
                                             0x38800001,
                                             0x3ff0000000000000,
                                             0xbff8000000000000,
                                             0x7ff0000000000000,
                                             0xfff0000000000000,
                                             0x7ff8000000000001,
                                             0x000fffffffffffff,
                                             0x8000000000000000,
                                             0x7fffffffffffffff,
                                             0xffffffffffffffff,
                                             0x43e0000000000000,
                                             0x41dfffffffc00000,
                                             0x3e60000000000001,
                                             0xb5a9c64212345678};
  const std::uint64_t x = random.next();
  switch (kind) {
    case 0:
      return kEdges[x % std::size(kEdges)];
    case 1:
      return x;
    case 2:
      return (x & 0x807fffffu) | (100 + (x >> 40) % 60) << 23;  // floats around 1
    default:
      return (x & 0x800fffffffffffffu) | (1000 + (x >> 56) % 50) << 52;  // doubles around 1
  }
}

// Detects a wider vector loop with a different rounding, order or mask, and one that writes outside its lanes.
TEST(Coverage, AllInstructionSetsComputeTheSameBitsAndLeaveOtherLanesAlone) {
  Random random{20240917};
  int number = 0;
  for (const std::string& word : pure_words()) {
    Case c;
    c.word = word;
    if (word.starts_with("mma") && ++number % 7 != 0) continue;  // these have separate tests
    c.in.resize(static_cast<std::size_t>(read_elements(understand(word))));
    c.pair =
        word.starts_with("lop3.and") || word.starts_with("lop3.or") || (word.starts_with("setp") && number % 2 == 0);
    ++number;
    for (Lanes& lanes : c.in) {
      const auto kind = static_cast<int>(random.next() % 4);
      for (std::uint64_t& x : lanes) x = edgy(random, kind);
    }
    for (std::uint64_t& x : c.before) x = random.next();
    for (const LaneMask mask : {kAllLanes, static_cast<LaneMask>(random.next())}) {
      c.mask = mask;
      c.in_place = false;
      c.simd = Simd::baseline;
      const Outcome expected = run(c);
      for (const Simd simd : simds()) {
        c.simd = simd;
        for (const bool in_place : {false, true}) {
          if (in_place && mask != kAllLanes) continue;
          c.in_place = in_place;
          const Outcome here = run(c);
          ASSERT_EQ(here.d, expected.d) << word << " in instruction set " << static_cast<int>(simd) << " in place "
                                        << in_place;
          ASSERT_EQ(here.p, expected.p) << word << " in instruction set " << static_cast<int>(simd);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::testing::coverage_test

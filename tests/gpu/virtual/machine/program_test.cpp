// A lowered module: the placement of variables, and the registers that share a place.
#include <gtest/gtest.h>

#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::program_test {
namespace {

std::shared_ptr<const Program> program_of(const std::string& body, bool share = true, const std::string& before = "") {
  return make_program(parse_module(".version 9.0\n.target sm_90a\n.address_size 64\n" + before +
                                       ".visible .entry k(.param .u64 p0, .param .u32 p1) {\n" + body + "\n}\n",
                                   "p.ptx"),
                      ProgramOptions{.registers_by_liveness = share});
}

// A module is at least for an architecture that runs it; the machine's default runs older ones.
TEST(Program, TargetForIsThatOfTheModuleButAtLeastTheDefault) {
  const auto target_of = [](const std::string& name) {
    return target_for(parse_module(".version 9.0\n.target " + name + "\n.address_size 64\n", "p.ptx"));
  };
  EXPECT_EQ(target_of("sm_52"), 90);
  EXPECT_EQ(target_of("sm_90a"), 90);
  EXPECT_EQ(target_of("sm_100"), 100);
  EXPECT_EQ(target_of("sm_103a"), 103);
  EXPECT_EQ(target_of("sm_120f"), 120);
}

// 48 static bytes at 0x400; the dynamic part after them at its own alignment, equal for each extern symbol.
TEST(Program, SharedMemoryBeginsAt0x400AndTheDynamicPartAtItsAlignment) {
  const auto program = program_of(R"(
    .reg .b32 %r<4>; .shared .align 8 .b8 bars[48];
    mov.u32 %r1, ring; mov.u32 %r2, bars; mov.u32 %r3, other;)",
                                  true,
                                  ".shared .b8 unused[64];\n.extern .shared .align 16 .b8 other[];\n"
                                  ".extern .shared .align 1024 .b8 ring[];\n");
  const KernelLayout& layout = program->kernels.begin()->second;
  EXPECT_EQ(layout.static_shared, 48);
  EXPECT_EQ(layout.dynamic_shared_align, 1024);
  EXPECT_EQ(layout.dynamic_shared, 0x800);
  for (const auto& [variable, offset] : layout.shared) {
    const Variable& v = program->module->variables[static_cast<std::size_t>(variable)];
    EXPECT_EQ(offset, v.name == "bars" ? 0x400 : 0x800) << v.name;
  }
  EXPECT_EQ(layout.shared.size(), 3u) << "what the kernel does not use has no place";
}

TEST(Program, RegistersThatAreNeverNeededTogetherShareARow) {
  const std::string body = R"(
    .reg .b32 %r<5>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, 5;
    add.u32 %r2, %r1, 1;
    add.u32 %r3, %r1, 2;
    st.global.v2.u32 [%d0], {%r2, %r3};)";
  const auto shared = program_of(body);
  const auto& registers = shared->functions[0].registers;
  EXPECT_EQ(registers[3].reg, registers[1].reg) << "%r1 is read for the last time where %r3 is written";
  EXPECT_NE(registers[2].reg, registers[1].reg);
  EXPECT_EQ(registers[0].reg, kNoRegister) << "no statement names it";
  using Ranges = std::vector<std::pair<std::int32_t, std::int32_t>>;
  EXPECT_EQ(registers[1].alive, (Ranges{{2, 4}}));
  EXPECT_EQ(registers[2].alive, (Ranges{{3, 5}}));
  EXPECT_EQ(registers[3].alive, (Ranges{{4, 5}}));
  const auto apart = program_of(body, false);
  EXPECT_NE(apart->functions[0].registers[3].reg, apart->functions[0].registers[1].reg);
}

// A guard preserves the old value in some lanes, and a loop returns: in both cases the value is live longer than the
// text suggests.
TEST(Program, AValueLivesThroughAGuardAndRoundALoop) {
  const auto program = program_of(R"(
    .reg .b32 %r<6>; .reg .b64 %d<2>; .reg .pred %p<3>;
    ld.param.u64 %d0, [p0];
    ld.param.u32 %r1, [p1];
    mov.u32 %r2, 7;
  LOOP: add.u32 %r3, %r2, 1;
    setp.lt.u32 %p1, %r3, 9;
    @%p1 mov.u32 %r2, 3;
    add.u32 %r4, %r3, %r3;
    add.u32 %r1, %r1, -1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra LOOP;
    st.global.u32 [%d0], %r2;)");
  const auto& registers = program->functions[0].registers;
  EXPECT_NE(registers[2].reg, registers[3].reg);
  EXPECT_NE(registers[2].reg, registers[4].reg);
  EXPECT_EQ(registers[2].alive, (std::vector<std::pair<std::int32_t, std::int32_t>>{{3, 11}}));
}

TEST(Program, AnAddressIsARowAndAnOffset) {
  const auto program = program_of(R"(
    .reg .b32 %r<5>; .reg .b64 %d<2>; .shared .b32 s[4];
    ld.param.u32 %r1, [p1];
    ld.shared.u32 %r2, [s+8];
    ld.global.v2.u32 {%r3, %r4}, [%d1+-4];)");
  EXPECT_EQ(program->ops[0].at[1], kNoRegister);
  EXPECT_EQ(address_offset(program->ops[0], 1), 8) << "p1 follows the 8 bytes of p0";
  EXPECT_NE(program->ops[1].at[1], kNoRegister);
  EXPECT_EQ(address_offset(program->ops[1], 1), 8);
  EXPECT_NE(program->ops[1].flags & kUniformAddress, 0);
  EXPECT_EQ(program->ops[2].count, 3);
  EXPECT_EQ(program->ops[2].list[2], program->ops[2].at[1]);
  EXPECT_EQ(address_offset(program->ops[2], 1), -4);
  EXPECT_EQ(width_of(program->ops[2], 0), 4);
  EXPECT_EQ(width_of(program->ops[2], 1), 8);
}

TEST(Program, AnUnsupportedStatementIsATrapWithItsPlace) {
  const auto program = program_of(".reg .b32 %r<2>;\n mov.u32 %r1, 5;");
  EXPECT_EQ(program->text(0), "mov.u32 %r1, 5");
  EXPECT_EQ(program->source_text(0), "p.ptx:6");
  EXPECT_EQ(program->statement(1).opcode, "ret") << "a function ends with one, written or not";
}

}  // namespace
}  // namespace kvscope::ptx::program_test

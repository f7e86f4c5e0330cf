// A module printed and parsed again is the same module.
#include "gpu/virtual/text/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::print_test {
namespace {

using testing::HasSubstr;

// The content of a function without its places and the indexes of variables and frames, which printing may change.
std::vector<std::string> digest(const Module& m, const Function& f) {
  std::vector<std::string> all = {std::string(f.name), f.entry ? "entry" : "func", std::to_string(f.parameter_bytes)};
  const auto variables = [&](const std::vector<std::int32_t>& list) {
    for (const std::int32_t i : list) {
      const Variable& v = m.variables[static_cast<std::size_t>(i)];
      all.push_back(std::string(name(v.space)) + " " + std::string(name(v.type)) + " " + std::to_string(v.bytes) + "@" +
                    std::to_string(v.align) + " " + std::to_string(v.parameter_offset));
    }
  };
  variables(f.results);
  variables(f.parameters);
  variables(f.variables);
  for (const Register& r : f.registers) all.push_back(std::string(name(r.type)) + " " + std::to_string(r.number));
  for (const TargetTable& t : f.tables) {
    std::string targets = "table";
    if (!t.of_calls) {
      for (const std::int32_t target : t.targets) targets += " " + std::to_string(target);
    }
    all.push_back(targets + " " + std::to_string(t.targets.size()) + (t.prototype >= 0 ? " prototype" : ""));
  }
  for (const Statement& s : f.body) {
    std::string text = s.guard < 0 ? "" : std::string(s.guard_negated ? "@!" : "@") + std::to_string(s.guard) + " ";
    text += s.opcode;
    for (const Operand& o : f.operands_of(s)) {
      text += ' ' + std::to_string(static_cast<int>(o.kind)) + ":" + std::to_string(o.count) + ":";
      text += o.kind == OperandKind::reg || o.kind == OperandKind::label ? std::to_string(o.index) : shown(m, f, o);
    }
    for (std::int32_t i = s.frame; i >= 0;) {
      const Frame& frame = m.frames[static_cast<std::size_t>(i)];
      text += " <- " + std::to_string(frame.file) + ":" + std::to_string(frame.line) + ":" +
              std::to_string(frame.column) + std::string(frame.function);
      i = frame.outer;
    }
    all.push_back(text);
  }
  return all;
}

// shown() contains names; names that occur in two scopes differ by the suffix "$2" after printing.
void drop_suffixes(std::vector<std::string>& lines) {
  for (std::string& line : lines) {
    for (const char* suffix : {"$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12"}) {
      for (std::size_t at = line.find(suffix); at != std::string::npos; at = line.find(suffix)) {
        const bool longer = at + std::string(suffix).size() < line.size() &&
                            line[at + std::string(suffix).size()] >= '0' &&
                            line[at + std::string(suffix).size()] <= '9';
        if (longer) break;
        line.erase(at, std::string(suffix).size());
      }
    }
  }
}

void expect_round_trip(const Module& m) {
  const std::string printed = to_ptx(m);
  const Module again = parse_module(printed, "printed.ptx");
  EXPECT_EQ(to_ptx(again), printed);
  EXPECT_EQ(again.version, m.version);
  EXPECT_EQ(again.target, m.target);
  EXPECT_EQ(again.target_suffix, m.target_suffix);
  std::size_t named = 0;
  for (const Function& f : m.functions) {
    if (f.name.empty()) continue;
    ++named;
    const Function& g = again.functions.at(static_cast<std::size_t>(again.find_function(f.name)));
    std::vector<std::string> a = digest(m, f);
    std::vector<std::string> b = digest(again, g);
    drop_suffixes(a);
    drop_suffixes(b);
    EXPECT_EQ(a, b) << f.name;
    EXPECT_EQ(f.linkage, g.linkage) << f.name;
    EXPECT_EQ(f.limits.max_threads, g.limits.max_threads) << f.name;
    EXPECT_EQ(f.limits.cluster, g.limits.cluster) << f.name;
    EXPECT_EQ(f.limits.min_ctas, g.limits.min_ctas) << f.name;
  }
  EXPECT_GT(named, 0u);
  for (const Variable& v : m.variables) {
    if (v.function >= 0) continue;
    const Variable& w = again.variables.at(static_cast<std::size_t>(again.find_variable(v.name)));
    EXPECT_EQ(v.bytes, w.bytes) << v.name;
    EXPECT_EQ(v.align, w.align) << v.name;
    EXPECT_EQ(v.linkage, w.linkage) << v.name;
    EXPECT_EQ(v.extents, w.extents) << v.name;
    ASSERT_EQ(v.init.size(), w.init.size()) << v.name;
    for (std::size_t i = 0; i < v.init.size(); ++i) {
      EXPECT_EQ(v.init[i].kind, w.init[i].kind) << v.name;
      EXPECT_EQ(v.init[i].value, w.init[i].value) << v.name;
      EXPECT_EQ(v.init[i].byte_mask, w.init[i].byte_mask) << v.name;
    }
  }
}

// Output of nvcc 13.0 in both dialects, with line tables and as a debug build.
TEST(Print, FilesOfNvccRoundTrip) {
  const std::vector<std::string> files = data_files();
  EXPECT_GE(files.size(), 5u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    expect_round_trip(parse_module(read_data(file), file));
  }
}

TEST(Print, EveryFormRoundTrips) {
  expect_round_trip(
      parse_items(".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                  ".func (.reg .b32 r) g(.reg .b32 a) { add.u32 r, a, 1; ret; }\n"
                  ".func h; .func i() { ret; } .alias h, i; .global .u32 late;\n"
                  ".global .align 8 .u64 p[2] = {g, 0};\n.global .b8 q[4] = {0xFF(p), 0xFF00(generic(p)+4), 1};\n"
                  ".global .u64 t[2][2] = {{generic(p)+8}, {1, 2}};\n.const .v2 .f32 c = {1.5, 0f3f800000};\n"
                  ".const .f64 d = 1.5;\n.extern .shared .align 16 .b8 dyn[];\n.weak .global .texref tex;\n"));
}

TEST(Print, EveryOperandRoundTrips) {
  expect_round_trip(parse_body(
      ".reg .v4 .f32 v; .reg .v2 .b32 w<3>; .local .align 4 .b8 depot[16];\n"
      "T: .branchtargets L, E;\nP: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn;\nC: .calltargets k;\n"
      ".loc 1 7 3\n@!%p1 bra L;\nmov.v4.u32 {%r1, _, %r2, %r3}, %tid;\nmov.v4.f32 v, {v.x, v.y, v.z, 0f3f800000};\n"
      "mov.b32 w2.y, w0.x;\nvabsdiff4.u32.u32.u32 %r1, %r2.b3210, %r3, %r4;\nadd.f64 %fd1, %fd2, -1.5;\n"
      "mov.u64 %rd1, depot+8;\nld.local.u32 %r1, depot[3];\nld.local.u32 %r1, [16];\nand.pred %p1, %p2, !%p3;\n"
      "elect.sync _|%p1, -1;\ncall (_), %rd1, (%r1, 3), P;\ncall %rd1, C;\nbrx.idx %r1, T;\n"
      "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];\n"
      "mov.b64 %rd1, -9223372036854775808;\nmov.b64 %rd1, 0xFFFFFFFFFFFFFFFF;\nL: ret;\nE:"));
}

// In one scope, equal names of sibling scopes would collide.
TEST(Print, NamesOfSiblingScopesAreTakenApart) {
  const Module m = parse_body(
      "{ .reg .b32 low, %r2, %q<2>; W: mov.b32 low, %r2; bra W; }\n"
      "{ .reg .b64 low, %q<2>; W: mov.b64 low, %q1; bra W; }\nmov.b32 %r2, 3;\n{ .reg .b32 x; mov.b32 x, 1; }");
  const std::string printed = to_ptx(m);
  EXPECT_THAT(printed, HasSubstr("\tmov.b32 low, %r2$2;\n\tbra W;\nW$2:\n\tmov.b64 low$2, %q$2_1;\n\tbra W$2;\n"
                                 "\tmov.b32 %r2, 3;\n\tmov.b32 x$2, 1;\n"));
}

// The definition of g renames its parameter, which has the name of a variable; its declaration before it has the same
// name for it, or a second printing would change the text.
TEST(Print, ADeclarationHasTheNamesOfItsDefinition) {
  const std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".func (.reg .b32 r) g(.reg .b32 q) { add.u32 r, q, 1; ret; }\n"
      ".global .b8 q[4] = {1, 2, 3};\n.visible .entry k() { ret; }\n";
  const std::string once = to_ptx(parse_module(text, "a.ptx"));
  EXPECT_EQ(to_ptx(parse_module(once, "b.ptx")), once);
  EXPECT_THAT(once, HasSubstr("g(.reg .b32 q$2);"));
}

TEST(Print, AStatementAloneIsItsLine) {
  const Module m = parse_body("@!%p1 ld.global.v2.u32 {%r3, _}, [%rd3+-4];");
  EXPECT_EQ(to_ptx(m, kernel(m), kernel(m).body[0]), "@!%p1 ld.global.v2.u32 {%r3, _}, [%rd3+-4]");
}

}  // namespace
}  // namespace kvscope::ptx::print_test

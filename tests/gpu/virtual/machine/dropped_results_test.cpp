// Results written to _: the instruction runs, the other results are those of the same instruction without _, and no
// other register changes.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::dropped_results_test {
namespace {

using ::testing::IsEmpty;

struct Form {
  std::string before;  // statements
  std::string opcode;
  char kind;  // of the result registers: r, f, d (double)
  int results;
  std::string sources;  // the operands after the results
};

const std::vector<Form>& forms() {
  const std::string a4 = "{%r20, %r21, %r22, %r23}", b2 = "{%r24, %r25}";
  const std::string address =
      "mov.u32 %r10, s; mul.lo.u32 %r9, %r0, 16; add.u32 %r10, %r10, %r9; "
      "st.shared.v4.u32 [%r10], {%r0, %r9, %r10, 5}; bar.sync 0;";
  static const std::vector<Form> all = {
      {"", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 'f', 4,
       a4 + ", " + b2 + ", {%f20, %f21, %f22, %f23}"},
      {"", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 'r', 2, a4 + ", " + b2 + ", {%r26, %r27}"},
      {"", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 'f', 4, a4 + ", " + b2 + ", {%f20, %f21, %f22, %f23}"},
      {"", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 'f', 4,
       a4 + ", " + b2 + ", {%f20, %f21, %f22, %f23}"},
      {"", "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", 'r', 4, a4 + ", " + b2 + ", {%r26, %r27, %r28, %r29}"},
      {"", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 'd', 2, "{%fd20}, {%fd21}, {%fd22, %fd23}"},
      {address, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 'r', 4, "[%r10]"},
      {address, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", 'r', 2, "[%r10]"},
      {address, "ld.shared.v4.u32", 'r', 4, "[%r10]"},
      {address, "ld.shared.v2.f32", 'f', 2, "[%r10]"},
      {address, "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", 'r', 8, "[s]"},
      {"", "mov.b64", 'r', 2, "%rd20"},
  };
  return all;
}

std::string name_of(char kind, int i) {
  return (kind == 'r' ? "%r" : kind == 'f' ? "%f" : "%fd") + std::to_string(1 + i);
}

// The results of every lane, with those in `dropped` (a bit each) written to _; their registers hold a mark before.
std::vector<std::uint64_t> results_of(const Form& form, unsigned dropped) {
  std::string body =
      "mul.lo.u32 %r8, %r0, 64; cvt.u64.u32 %rd9, %r8; add.s64 %rd7, %rd0, %rd9; cvt.u64.u32 %rd20, %r8;";
  for (int i = 20; i < 30; ++i) {  // sources: small numbers of every type, another in each lane
    const std::string n = std::to_string(i);
    body += "mad.lo.u32 %r" + n + ", %r0, 257, 0x3c00" + n + "; mov.b32 %f" + n + ", %r" + n + ";";
    if (i < 24) body += "cvt.rn.f64.s32 %fd" + n + ", %r0;";
  }
  for (int i = 0; i < form.results; ++i) {
    body += form.kind == 'd' ? "mov.f64 " + name_of('d', i) + ", 0d4029000000000000;"
                             : "mov.b32 " + name_of(form.kind, i) + ", 0x4d61726b;";
  }
  body += form.before + form.opcode + " {";
  for (int i = 0; i < form.results; ++i) {
    body += (i > 0 ? ", " : "") + ((dropped >> i & 1) != 0 ? std::string("_") : name_of(form.kind, i));
  }
  body += "}, " + form.sources + ";";
  for (int i = 0; i < form.results; ++i) {
    body += std::string("st.global.") + (form.kind == 'd' ? "f64" : "b32") + " [%rd7+" + std::to_string(8 * i) + "], " +
            name_of(form.kind, i) + ";";
  }
  const Ran ran = run({.body = body, .out_bytes = 64 * 32});
  EXPECT_THAT(ran.messages, IsEmpty()) << body;
  std::vector<std::uint64_t> results;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < form.results; ++i)
      results.push_back(ran.at<std::uint64_t>(8 * lane + static_cast<std::size_t>(i)));
  }
  return results;
}

TEST(DroppedResults, LeaveTheOtherResultsAndTheirOwnRegistersAsTheyAre) {
  for (const Form& form : forms()) {
    const std::vector<std::uint64_t> whole = results_of(form, 0);
    const std::uint64_t mark = form.kind == 'd' ? 0x4029000000000000u : 0x4d61726bu;
    EXPECT_THAT(whole, ::testing::Each(::testing::Ne(mark))) << form.opcode;
    const unsigned all = (1u << form.results) - 1;
    for (int i = 0; i < form.results; ++i) {
      for (const unsigned dropped : {1u << i, all & ~(1u << i)}) {
        const std::vector<std::uint64_t> some = results_of(form, dropped);
        for (std::size_t n = 0; n < whole.size(); ++n) {
          const bool is_dropped = (dropped >> n % static_cast<std::size_t>(form.results) & 1) != 0;
          EXPECT_EQ(some[n], is_dropped ? mark : whole[n]) << form.opcode << " without " << dropped << ", result " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::dropped_results_test

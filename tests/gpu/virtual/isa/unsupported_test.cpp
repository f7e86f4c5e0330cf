// Unsupported PTX features, each by name: the statement is a trap with a reason, and never executes wrongly.
#include <gtest/gtest.h>

#include <string>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx::unsupported_test {
namespace {

struct Refused {
  const char* word;
  const char* message;
};

TEST(Unsupported, IsNamedWithItsReason) {
  const Refused cases[] = {
      {"tex.2d.v4.f32.s32", "needs textures, not modeled"},
      {"tld4.r.2d.v4.f32.f32", "needs textures, not modeled"},
      {"txq.width.b32", "needs textures, not modeled"},
      {"istypep.texref", "needs textures, not modeled"},
      {"suld.b.2d.b32.trap", "needs surfaces, not modeled"},
      {"sust.b.2d.b32.trap", "needs surfaces, not modeled"},
      {"sured.b.add.1d.u32.trap", "needs surfaces, not modeled"},
      {"suq.width.b32", "needs surfaces, not modeled"},
      {"tcgen05.shift.cta_group::1.down", "moves rows of tensor memory, not modeled"},
      {"tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32", "needs sm_103a, not modeled"},
      {"tcgen05.mma.cta_group::1.kind::f16.ashift", "moves the rows of A, not modeled"},
      {"tcgen05.mma.sp.cta_group::1.kind::f16.ashift", "moves the rows of A, not modeled"},
      {"multimem.ld_reduce.relaxed.sys.global.add.f32", "needs memory of several GPUs, not modeled"},
      {"multimem.red.relaxed.sys.global.add.f32", "needs memory of several GPUs, not modeled"},
      {"cp.async.bulk.global.shared::cta.bulk_group.cp_mask", "needs sm_100, not modeled"},
      {"cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
       "needs im2col copies, not modeled"},
      {"cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes",
       "needs im2col copies, not modeled"},
      {"cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group", "needs im2col copies, not modeled"},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile::scatter4.bulk_group",
       "a reduction of scattered rows is not in the PTX ISA, not modeled"},
      {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "mma m8n8k4 of f16 is not modeled"},
      {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "needs sm_100, not modeled"},
      {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", "needs sm_100, not modeled"},
      {"add.f32.f16", "needs sm_100, not modeled"},
      {"fma.rn.f32.bf16", "needs sm_100, not modeled"},
      {"vadd.s32.s32.s32", "a video instruction, not modeled"},
      {"vset4.s32.u32.lt", "a video instruction, not modeled"},
      {"vabsdiff4.s32.s32.s32", "a video instruction, not modeled"},
  };
  for (const Refused& refused : cases) {
    const Instr instr = understand(refused.word);
    EXPECT_EQ(instr.unsupported, refused.message) << refused.word;
    EXPECT_EQ(instr.opcode, Opcode::unsupported) << refused.word;
  }
}

// m8n8k4 is rejected only for f16, tile::gather4 is supported in a CTA, and plain copies are not im2col.
TEST(Unsupported, DoesNotAffectSupportedForms) {
  for (const char* word : {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "add.rn.f32", "add.rn.f16",
                           "cvt.rn.f16.f32", "vabsdiff4.u32.u32.u32.add", "cp.async.bulk.global.shared::cta.bulk_group",
                           "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes",
                           "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group", "cvt.rs.f16x2.f32",
                           "redux.sync.min.s32", "st.global.b32", "fma.rn.bf16"}) {
    EXPECT_EQ(understand(word).unsupported, "") << word;
  }
}

}  // namespace
}  // namespace kvscope::ptx::unsupported_test

// Each supported spelling is decoded as its opcode. Real files have many spellings: a survey of 25 PTX files found 228
// words on 52 base names.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx::tier_words_test {
namespace {

struct Row {
  Opcode opcode;
  const char* words;  // separated by blanks
};

class TierWords : public ::testing::TestWithParam<Row> {};

TEST_P(TierWords, AreUnderstood) {
  std::istringstream in(GetParam().words);
  int words = 0;
  for (std::string word; in >> word; ++words) {
    const Instr instr = understand(word);
    EXPECT_EQ(instr.unsupported, "") << word;
    EXPECT_EQ(instr.opcode, GetParam().opcode) << word << " " << name(instr.opcode);
  }
  EXPECT_GT(words, 0);
}

constexpr Row kIntegers[] = {
    {Opcode::add,
     "add.s16 add.s32 add.s64 add.u16 add.u32 add.u64 add.u16x2 add.s16x2 add.sat.s32 add.cc.u32 add.cc.s64"},
    {Opcode::sub, "sub.s16 sub.s32 sub.s64 sub.u16 sub.u32 sub.u64 sub.sat.s32 sub.cc.u32 sub.cc.u64"},
    {Opcode::addc, "addc.u32 addc.cc.u32 addc.s64 addc.cc.u64"},
    {Opcode::subc, "subc.u32 subc.cc.s32 subc.u64 subc.cc.u64"},
    {Opcode::mul, "mul.lo.s16 mul.lo.s32 mul.lo.u64 mul.hi.u16 mul.hi.s32 mul.hi.s64 mul.wide.u16 mul.wide.s32"},
    {Opcode::mad,
     "mad.lo.s32 mad.lo.u64 mad.hi.u32 mad.hi.sat.s32 mad.wide.s16 mad.wide.u32 mad.lo.cc.u32 mad.hi.cc.u64"},
    {Opcode::madc, "madc.lo.u32 madc.lo.cc.u32 madc.hi.u32 madc.hi.cc.s64"},
    {Opcode::mul24, "mul24.lo.u32 mul24.lo.s32 mul24.hi.u32 mul24.hi.s32"},
    {Opcode::mad24, "mad24.lo.u32 mad24.hi.s32 mad24.hi.sat.s32"},
    {Opcode::div, "div.s16 div.u16 div.s32 div.u32 div.s64 div.u64"},
    {Opcode::rem, "rem.s16 rem.u16 rem.s32 rem.u32 rem.s64 rem.u64"},
    {Opcode::abs, "abs.s16 abs.s32 abs.s64"},
    {Opcode::neg, "neg.s16 neg.s32 neg.s64"},
    {Opcode::min, "min.s16 min.u16 min.s32 min.u32 min.s64 min.u64 min.s16x2 min.u16x2 min.relu.s32 min.relu.s16x2"},
    {Opcode::max, "max.s16 max.u16 max.s32 max.u32 max.s64 max.u64 max.s16x2 max.u16x2 max.relu.s32 max.s16x2.relu"},
    {Opcode::sad, "sad.u16 sad.s16 sad.u32 sad.s32 sad.u64 sad.s64"},
    {Opcode::dp4a, "dp4a.u32.u32 dp4a.s32.u32 dp4a.u32.s32 dp4a.s32.s32"},
    {Opcode::dp2a, "dp2a.lo.u32.u32 dp2a.hi.s32.s32 dp2a.lo.s32.u32"},
    {Opcode::popc, "popc.b32 popc.b64"},
    {Opcode::clz, "clz.b32 clz.b64"},
    {Opcode::brev, "brev.b32 brev.b64"},
    {Opcode::bfind, "bfind.u32 bfind.s32 bfind.u64 bfind.s64 bfind.shiftamt.u32 bfind.shiftamt.s64"},
    {Opcode::fns, "fns.b32"},
    {Opcode::bfe, "bfe.u32 bfe.s32 bfe.u64 bfe.s64"},
    {Opcode::bfi, "bfi.b32 bfi.b64"},
    {Opcode::bmsk, "bmsk.clamp.b32 bmsk.wrap.b32"},
    {Opcode::szext, "szext.clamp.u32 szext.wrap.s32"},
    {Opcode::vabsdiff4, "vabsdiff4.u32.u32.u32 vabsdiff4.u32.u32.u32.add"},
};
INSTANTIATE_TEST_SUITE_P(Integers, TierWords, ::testing::ValuesIn(kIntegers));

constexpr Row kBits[] = {
    {Opcode::and_, "and.b16 and.b32 and.b64 and.pred"},
    {Opcode::or_, "or.b16 or.b32 or.b64 or.pred"},
    {Opcode::xor_, "xor.b16 xor.b32 xor.b64 xor.pred"},
    {Opcode::not_, "not.b16 not.b32 not.b64 not.pred"},
    {Opcode::cnot, "cnot.b16 cnot.b32 cnot.b64"},
    {Opcode::lop3, "lop3.b32 lop3.and.b32 lop3.or.b32"},
    {Opcode::shl, "shl.b16 shl.b32 shl.b64"},
    {Opcode::shr, "shr.b16 shr.b32 shr.b64 shr.u16 shr.u32 shr.u64 shr.s16 shr.s32 shr.s64"},
    {Opcode::shf, "shf.l.wrap.b32 shf.l.clamp.b32 shf.r.wrap.b32 shf.r.clamp.b32"},
    {Opcode::prmt, "prmt.b32 prmt.b32.f4e prmt.b32.b4e prmt.b32.rc8 prmt.b32.ecl prmt.b32.ecr prmt.b32.rc16"},
    {Opcode::selp,
     "selp.b16 selp.b32 selp.b64 selp.u16 selp.u32 selp.u64 selp.s16 selp.s32 selp.s64 selp.f32 selp.f64"},
    {Opcode::slct, "slct.b32.s32 slct.u64.s32 slct.f32.f32 slct.ftz.s32.f32 slct.f64.f32"},
    {Opcode::mov,
     "mov.b16 mov.b32 mov.b64 mov.b128 mov.u16 mov.u32 mov.u64 mov.s32 mov.f32 mov.f64 mov.pred mov.v4.u32"},
    {Opcode::setp,
     "setp.eq.b16 setp.ne.b64 setp.lt.s32 setp.le.s64 setp.gt.s16 setp.ge.u32 setp.lo.u32 setp.ls.u16 setp.hi.u64 "
     "setp.hs.u32 setp.eq.f32 setp.ne.f64 setp.equ.f32 setp.neu.f32 setp.ltu.f64 setp.leu.f32 setp.gtu.f32 "
     "setp.geu.f32 "
     "setp.num.f32 setp.nan.f64 setp.lt.ftz.f32 setp.lt.and.s32 setp.ne.or.ftz.f32 setp.eq.xor.b32 setp.gt.f16 "
     "setp.gt.f16x2 setp.le.bf16 setp.nan.bf16x2 setp.eq.and.f16x2"},
    {Opcode::set,
     "set.eq.u32.s32 set.lt.s32.f32 set.gt.f32.f32 set.ge.ftz.f32.f32 set.eq.f16.f16 set.lt.bf16.bf16 "
     "set.gtu.f16x2.f16x2 set.nan.bf16x2.bf16x2 set.ne.u32.bf16x2 set.lt.and.u32.s32 set.hs.u32.u64"},
    {Opcode::testp,
     "testp.finite.f32 testp.infinite.f64 testp.number.f32 testp.notanumber.f32 testp.normal.f64 "
     "testp.subnormal.f32"},
};
INSTANTIATE_TEST_SUITE_P(Bits, TierWords, ::testing::ValuesIn(kBits));

constexpr Row kFloats[] = {
    {Opcode::add,
     "add.f32 add.rn.f32 add.rz.ftz.f32 add.rm.sat.f32 add.rp.f64 add.f16 add.rn.ftz.sat.f16x2 add.bf16 "
     "add.rn.bf16x2 add.f32x2 add.rz.ftz.f32x2"},
    {Opcode::sub, "sub.f32 sub.rn.ftz.sat.f32 sub.f64 sub.f16x2 sub.bf16x2 sub.rn.f32x2"},
    {Opcode::mul, "mul.f32 mul.rn.f32 mul.ftz.f32 mul.rz.f64 mul.f16 mul.bf16x2 mul.ftz.f32x2"},
    {Opcode::fma,
     "fma.rn.f32 fma.rm.f32 fma.rz.ftz.sat.f32 fma.rp.f64 fma.rn.f16 fma.rn.ftz.sat.f16x2 fma.rn.relu.f16x2 "
     "fma.rn.bf16 fma.rn.relu.bf16x2 fma.rn.oob.f16 fma.rn.oob.relu.bf16x2 fma.rp.ftz.f32x2"},
    {Opcode::mad, "mad.rn.f32 mad.rn.ftz.sat.f32 mad.rz.f64"},
    {Opcode::div,
     "div.rn.f32 div.rz.ftz.f32 div.rp.f64 div.approx.f32 div.approx.ftz.f32 div.full.f32 div.full.ftz.f32"},
    {Opcode::rcp, "rcp.rn.f32 rcp.rm.f64 rcp.approx.f32 rcp.approx.ftz.f32 rcp.approx.ftz.f64"},
    {Opcode::sqrt, "sqrt.rn.f32 sqrt.rz.f64 sqrt.approx.f32 sqrt.approx.ftz.f32"},
    {Opcode::rsqrt, "rsqrt.approx.f32 rsqrt.approx.ftz.f32 rsqrt.approx.f64 rsqrt.approx.ftz.f64"},
    {Opcode::ex2,
     "ex2.approx.f32 ex2.approx.ftz.f32 ex2.approx.f16 ex2.approx.f16x2 ex2.approx.ftz.bf16 "
     "ex2.approx.ftz.bf16x2"},
    {Opcode::lg2, "lg2.approx.f32 lg2.approx.ftz.f32"},
    {Opcode::sin, "sin.approx.f32 sin.approx.ftz.f32"},
    {Opcode::cos, "cos.approx.f32 cos.approx.ftz.f32"},
    {Opcode::tanh, "tanh.approx.f32 tanh.approx.f16 tanh.approx.f16x2 tanh.approx.bf16 tanh.approx.bf16x2"},
    {Opcode::min,
     "min.f32 min.ftz.f32 min.NaN.f32 min.ftz.NaN.xorsign.abs.f32 min.f64 min.f16 min.NaN.f16x2 "
     "min.xorsign.abs.bf16x2 min.NaN.bf16"},
    {Opcode::max, "max.f32 max.ftz.NaN.f32 max.xorsign.abs.f32 max.f64 max.ftz.f16x2 max.bf16 max.NaN.bf16x2"},
    {Opcode::abs, "abs.f32 abs.ftz.f32 abs.f64 abs.f16 abs.ftz.f16x2 abs.bf16 abs.bf16x2"},
    {Opcode::neg, "neg.f32 neg.ftz.f32 neg.f64 neg.f16 neg.f16x2 neg.bf16 neg.bf16x2"},
    {Opcode::copysign, "copysign.f32 copysign.f64"},
};
INSTANTIATE_TEST_SUITE_P(Floats, TierWords, ::testing::ValuesIn(kFloats));

constexpr Row kConversions[] = {
    {Opcode::cvt,
     "cvt.u16.u8 cvt.s8.s32 cvt.u64.u32 cvt.s64.s32 cvt.u8.u64 cvt.sat.u8.s32 cvt.sat.s8.s16 cvt.sat.u32.s64"},
    {Opcode::cvt,
     "cvt.rni.s32.f32 cvt.rzi.u32.f32 cvt.rmi.s64.f64 cvt.rpi.u8.f16 cvt.rzi.ftz.s32.f32 cvt.rzi.sat.s32.f32 "
     "cvt.rni.s16.bf16"},
    {Opcode::cvt,
     "cvt.rn.f32.s32 cvt.rz.f32.u64 cvt.rm.f64.s64 cvt.rp.f16.u16 cvt.rn.bf16.s32 cvt.rn.f32.u8 cvt.rn.f32.f64"},
    {Opcode::cvt, "cvt.rni.f32.f32 cvt.rzi.f64.f64 cvt.rmi.f16.f16 cvt.rpi.bf16.bf16 cvt.rni.ftz.f32.f32"},
    {Opcode::cvt,
     "cvt.sat.f32.f32 cvt.ftz.f32.f32 cvt.ftz.sat.f32.f32 cvt.f32.f16 cvt.f64.f32 cvt.f64.f16 cvt.f32.bf16"},
    {Opcode::cvt,
     "cvt.rn.f16.f32 cvt.rz.f16.f32 cvt.rn.relu.f16.f32 cvt.rn.satfinite.f16.f32 cvt.rn.bf16.f32 "
     "cvt.rz.relu.satfinite.bf16.f32 cvt.rn.f16x2.f32 cvt.rn.relu.f16x2.f32 cvt.rn.bf16x2.f32 "
     "cvt.rz.satfinite.bf16x2.f32 cvt.rn.f16.f64 cvt.rn.bf16.f16 cvt.rn.f16.bf16"},
    {Opcode::cvt,
     "cvt.rn.satfinite.e4m3x2.f32 cvt.rn.satfinite.relu.e5m2x2.f32 cvt.rn.satfinite.e4m3x2.f16x2 "
     "cvt.rn.f16x2.e4m3x2 cvt.rn.relu.f16x2.e5m2x2"},
    {Opcode::cvt, "cvt.rna.tf32.f32 cvt.rna.satfinite.tf32.f32 cvt.rn.tf32.f32 cvt.rz.relu.tf32.f32"},
    {Opcode::cvt_pack, "cvt.pack.sat.s8.s32.b32 cvt.pack.sat.u8.s32.b32 cvt.pack.sat.s16.s32 cvt.pack.sat.u16.s32"},
};
INSTANTIATE_TEST_SUITE_P(Conversions, TierWords, ::testing::ValuesIn(kConversions));

constexpr Row kMemory[] = {
    {Opcode::ld,
     "ld.param.u64 ld.param.v4.u8 ld.param.b32 ld.const.f32 ld.local.b64 ld.global.f32 ld.shared.b8 ld.u32 "
     "ld.shared::cta.u32 ld.shared::cluster.u32 ld.global.v2.f64 ld.global.v4.b32 ld.global.b128"},
    {Opcode::ld,
     "ld.weak.global.u32 ld.volatile.global.u32 ld.volatile.shared.f32 ld.relaxed.gpu.global.u32 "
     "ld.acquire.sys.global.b64 ld.acquire.cluster.shared::cluster.u32 ld.mmio.relaxed.sys.global.u32"},
    {Opcode::ld,
     "ld.global.nc.f32 ld.global.nc.v4.u32 ld.global.nc.L1::no_allocate.L2::128B.v4.f32 "
     "ld.global.L2::cache_hint.b32 ld.global.ca.u32 ld.global.cg.v2.f32 ld.global.cs.u32 ld.lu.u32 ld.cv.u32 "
     "ld.global.L1::evict_last.L2::256B.b64 ld.global.v8.b32 ld.global.v4.b64"},
    {Opcode::st,
     "st.param.b32 st.param.v4.b8 st.global.f32 st.shared.v4.f32 st.local.u8 st.b64 st.global.b128 "
     "st.volatile.shared.u32 st.relaxed.cta.global.u32 st.release.gpu.global.u32 st.mmio.relaxed.sys.global.u32 "
     "st.global.wb.u32 st.global.cg.u32 st.cs.u32 st.wt.u32 st.global.L1::no_allocate.v4.f32 "
     "st.global.L2::cache_hint.v2.b64 st.shared::cluster.u32 st.global.v8.f32"},
    {Opcode::ldu, "ldu.global.u32 ldu.global.v4.f32 ldu.b64"},
    {Opcode::cvta,
     "cvta.global.u64 cvta.shared.u64 cvta.local.u64 cvta.const.u64 cvta.param.u64 cvta.to.global.u64 "
     "cvta.to.shared.u64 cvta.to.local.u64 cvta.shared::cluster.u64"},
    {Opcode::isspacep, "isspacep.global isspacep.shared isspacep.local isspacep.const isspacep.shared::cluster"},
    {Opcode::alloca, "alloca.u64"},
    {Opcode::stacksave, "stacksave.u64"},
    {Opcode::stackrestore, "stackrestore.u64"},
    {Opcode::prefetch,
     "prefetch.global.L1 prefetch.global.L2 prefetch.L1 prefetch.local.L2 "
     "prefetch.global.L2::evict_last prefetch.global.L2::evict_normal"},
    {Opcode::prefetchu, "prefetchu.L1"},
    {Opcode::prefetch_tensormap, "prefetch.tensormap prefetch.param.tensormap prefetch.const.tensormap"},
    {Opcode::applypriority, "applypriority.global.L2::evict_normal"},
    {Opcode::createpolicy,
     "createpolicy.fractional.L2::evict_last.b64 "
     "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 "
     "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 createpolicy.cvt.L2.b64"},
    {Opcode::discard, "discard.global.L2 discard.L2"},
    {Opcode::mapa, "mapa.shared::cluster.u32 mapa.u64"},
    {Opcode::getctarank, "getctarank.shared::cluster.u32 getctarank.u64"},
};
INSTANTIATE_TEST_SUITE_P(Memory, TierWords, ::testing::ValuesIn(kMemory));

constexpr Row kWarp[] = {
    {Opcode::shfl, "shfl.sync.up.b32 shfl.sync.down.b32 shfl.sync.bfly.b32 shfl.sync.idx.b32"},
    {Opcode::vote, "vote.sync.all.pred vote.sync.any.pred vote.sync.uni.pred vote.sync.ballot.b32"},
    {Opcode::match, "match.any.sync.b32 match.any.sync.b64 match.all.sync.b32 match.all.sync.b64"},
    {Opcode::redux,
     "redux.sync.add.u32 redux.sync.add.s32 redux.sync.min.s32 redux.sync.max.u32 redux.sync.and.b32 "
     "redux.sync.or.b32 redux.sync.xor.b32 redux.sync.min.f32 redux.sync.max.abs.NaN.f32"},
    {Opcode::elect, "elect.sync"},
    {Opcode::activemask, "activemask.b32"},
    {Opcode::bar_warp_sync, "bar.warp.sync"},
    {Opcode::movmatrix, "movmatrix.sync.aligned.m8n8.trans.b16"},
};
INSTANTIATE_TEST_SUITE_P(Warp, TierWords, ::testing::ValuesIn(kWarp));

constexpr Row kControl[] = {
    {Opcode::bra, "bra bra.uni"},
    {Opcode::brx, "brx.idx brx.idx.uni"},
    {Opcode::call, "call call.uni"},
    {Opcode::ret, "ret ret.uni"},
    {Opcode::exit, "exit"},
    {Opcode::trap, "trap"},
    {Opcode::brkpt, "brkpt"},
    {Opcode::nanosleep, "nanosleep.u32"},
    {Opcode::griddepcontrol, "griddepcontrol.wait griddepcontrol.launch_dependents"},
    {Opcode::pmevent, "pmevent"},
    {Opcode::setmaxnreg, "setmaxnreg.inc.sync.aligned.u32 setmaxnreg.dec.sync.aligned.u32"},
    {Opcode::bar_sync,
     "bar.sync bar.cta.sync barrier.sync barrier.sync.aligned barrier.cta.sync barrier.cta.sync.aligned"},
    {Opcode::bar_arrive, "bar.arrive bar.cta.arrive barrier.arrive barrier.cta.arrive.aligned"},
    {Opcode::bar_red,
     "bar.red.popc.u32 bar.red.and.pred bar.red.or.pred barrier.red.popc.u32 barrier.cta.red.or.pred "
     "bar.cta.red.and.pred barrier.red.aligned.and.pred"},
    {Opcode::membar, "membar.cta membar.gl membar.sys membar.proxy.alias"},
    {Opcode::fence,
     "fence.cta fence.sc.gpu fence.acq_rel.sys fence.acquire.cluster fence.release.gpu fence.sc.cta "
     "fence.mbarrier_init.release.cluster fence.proxy.async fence.proxy.async.global "
     "fence.proxy.async.shared::cta fence.proxy.async.shared::cluster fence.proxy.alias "
     "fence.proxy.tensormap::generic.release.gpu fence.proxy.tensormap::generic.acquire.sys "
     "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster "
     "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster "
     "fence.acquire.sync_restrict::shared::cluster.cluster "
     "fence.release.sync_restrict::shared::cta.cluster"},
    {Opcode::barrier_cluster_arrive,
     "barrier.cluster.arrive barrier.cluster.arrive.release "
     "barrier.cluster.arrive.relaxed.aligned barrier.cluster.arrive.aligned"},
    {Opcode::barrier_cluster_wait,
     "barrier.cluster.wait barrier.cluster.wait.acquire.aligned "
     "barrier.cluster.wait.aligned"},
};
INSTANTIATE_TEST_SUITE_P(Control, TierWords, ::testing::ValuesIn(kControl));

constexpr Row kAtomics[] = {
    {Opcode::atom,
     "atom.add.u32 atom.global.add.s32 atom.shared.add.u64 atom.global.add.f32 atom.add.f64 "
     "atom.global.add.noftz.f16 atom.add.noftz.f16x2 atom.global.add.noftz.bf16 atom.add.noftz.bf16x2"},
    {Opcode::atom,
     "atom.min.u32 atom.global.max.s32 atom.shared.min.u64 atom.max.s64 atom.global.inc.u32 atom.dec.u32"},
    {Opcode::atom,
     "atom.and.b32 atom.global.or.b64 atom.shared.xor.b32 atom.exch.b32 atom.global.exch.b64 "
     "atom.exch.b128 atom.cas.b16 atom.global.cas.b32 atom.shared.cas.b64 atom.cas.b128"},
    {Opcode::atom,
     "atom.relaxed.global.cas.b32 atom.acq_rel.gpu.global.add.u32 atom.acquire.cta.shared.cas.b32 "
     "atom.release.sys.exch.b64 atom.shared::cta.add.u32 atom.shared::cluster.add.u32 "
     "atom.global.L2::cache_hint.add.f32"},
    {Opcode::atom,
     "atom.global.add.v2.f32 atom.global.add.v4.f32 atom.global.v4.f32.add atom.global.add.noftz.v2.f16 "
     "atom.global.min.noftz.v8.f16 atom.global.max.noftz.v4.bf16 atom.global.add.noftz.v2.f16x2 "
     "atom.global.max.noftz.v4.bf16x2"},
    {Opcode::red,
     "red.global.add.f32 red.shared.add.u32 red.relaxed.gpu.global.add.s32 red.release.gpu.global.add.u32 "
     "red.add.f64 red.and.b32 red.max.s64 red.inc.u32 red.global.add.noftz.bf16x2 red.global.add.v4.f32 "
     "red.global.min.noftz.v2.f16x2 red.shared::cluster.or.b64"},
};
INSTANTIATE_TEST_SUITE_P(Atomics, TierWords, ::testing::ValuesIn(kAtomics));

constexpr Row kCopies[] = {
    {Opcode::cp_async,
     "cp.async.ca.shared.global cp.async.cg.shared.global cp.async.cg.shared::cta.global "
     "cp.async.cg.shared.global.L2::128B cp.async.ca.shared.global.L2::cache_hint "
     "cp.async.cg.shared.global.L2::cache_hint.L2::256B"},
    {Opcode::cp_async_commit_group, "cp.async.commit_group"},
    {Opcode::cp_async_wait_group, "cp.async.wait_group"},
    {Opcode::cp_async_wait_all, "cp.async.wait_all"},
    {Opcode::cp_async_mbarrier_arrive,
     "cp.async.mbarrier.arrive.shared.b64 cp.async.mbarrier.arrive.noinc.shared.b64 "
     "cp.async.mbarrier.arrive.noinc.shared::cta.b64 cp.async.mbarrier.arrive.b64"},
    {Opcode::cp_async_bulk,
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
     "cp.async.bulk.global.shared::cta.bulk_group"},
    {Opcode::cp_async_bulk_commit_group, "cp.async.bulk.commit_group"},
    {Opcode::cp_async_bulk_wait_group, "cp.async.bulk.wait_group cp.async.bulk.wait_group.read"},
    {Opcode::cp_async_bulk_prefetch,
     "cp.async.bulk.prefetch.L2.global cp.async.bulk.prefetch.L2.global.L2::cache_hint"},
    {Opcode::cp_reduce_async_bulk,
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.bf16 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u64 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 "
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b64 "
     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 "
     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.and.b32"},
    {Opcode::cp_async_bulk_tensor,
     "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
     "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
     "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
     "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
     "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group "
     "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"},
    {Opcode::cp_async_bulk_prefetch_tensor,
     "cp.async.bulk.prefetch.tensor.2d.L2.global "
     "cp.async.bulk.prefetch.tensor.5d.L2.global.tile.L2::cache_hint"},
    {Opcode::cp_reduce_async_bulk_tensor,
     "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group "
     "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group "
     "cp.reduce.async.bulk.tensor.3d.global.shared::cta.xor.bulk_group"},
    {Opcode::st_async,
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64"},
    {Opcode::red_async,
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 "
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
     "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.xor.b32"},
    {Opcode::tensormap_replace,
     "tensormap.replace.tile.global_address.shared::cta.b1024.b64 "
     "tensormap.replace.tile.rank.global.b1024.b32 "
     "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 "
     "tensormap.replace.tile.global_stride.global.b1024.b64 "
     "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32"},
    {Opcode::tensormap_cp_fenceproxy,
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"},
    {Opcode::mbarrier_init, "mbarrier.init.shared.b64 mbarrier.init.shared::cta.b64 mbarrier.init.b64"},
    {Opcode::mbarrier_inval, "mbarrier.inval.shared.b64"},
    {Opcode::mbarrier_arrive,
     "mbarrier.arrive.shared.b64 mbarrier.arrive.b64 mbarrier.arrive.release.cta.shared::cta.b64 "
     "mbarrier.arrive.release.cluster.shared::cluster.b64 mbarrier.arrive.noComplete.shared.b64 "
     "mbarrier.arrive.relaxed.cluster.b64 mbarrier.arrive.expect_tx.shared::cta.b64 "
     "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 "
     "mbarrier.arrive.noComplete.release.cta.shared::cta.b64"},
    {Opcode::mbarrier_arrive_drop,
     "mbarrier.arrive_drop.shared.b64 mbarrier.arrive_drop.noComplete.shared.b64 "
     "mbarrier.arrive_drop.expect_tx.shared::cta.b64 "
     "mbarrier.arrive_drop.release.cluster.shared::cluster.b64"},
    {Opcode::mbarrier_expect_tx,
     "mbarrier.expect_tx.shared::cta.b64 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "
     "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64"},
    {Opcode::mbarrier_complete_tx,
     "mbarrier.complete_tx.shared::cta.b64 "
     "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64"},
    {Opcode::mbarrier_test_wait,
     "mbarrier.test_wait.shared.b64 mbarrier.test_wait.parity.shared.b64 "
     "mbarrier.test_wait.acquire.cta.shared::cta.b64"},
    {Opcode::mbarrier_try_wait,
     "mbarrier.try_wait.shared.b64 mbarrier.try_wait.parity.shared::cta.b64 "
     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
     "mbarrier.try_wait.relaxed.cta.shared.b64"},
    {Opcode::mbarrier_pending_count, "mbarrier.pending_count.b64"},
};
INSTANTIATE_TEST_SUITE_P(Copies, TierWords, ::testing::ValuesIn(kCopies));

constexpr Row kMatrices[] = {
    {Opcode::mma,
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
     "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16"},
    {Opcode::mma,
     "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32 "
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
     "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 mma.sync.aligned.m16n8k8.row.col.rn.f64.f64.f64.f64 "
     "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"},
    {Opcode::mma,
     "mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32 mma.sync.aligned.m16n8k64.row.col.satfinite.s32.u4.u4.s32 "
     "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc "
     "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"},
    {Opcode::ldmatrix,
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 "
     "ldmatrix.sync.aligned.m8n8.x4.b16"},
    {Opcode::stmatrix, "stmatrix.sync.aligned.m8n8.x1.shared.b16 stmatrix.sync.aligned.m8n8.x4.trans.shared.b16"},
    {Opcode::wmma_load,
     "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 wmma.load.b.sync.aligned.col.m32n8k16.global.bf16 "
     "wmma.load.a.sync.aligned.col.m8n32k16.s8 wmma.load.b.sync.aligned.row.m16n16k8.tf32 "
     "wmma.load.c.sync.aligned.row.m16n16k16.f32 wmma.load.c.sync.aligned.col.m8n32k16.s32"},
    {Opcode::wmma_store,
     "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 wmma.store.d.sync.aligned.col.m32n8k16.f16"},
    {Opcode::wmma_mma,
     "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 wmma.mma.sync.aligned.col.row.m32n8k16.f16.f16 "
     "wmma.mma.sync.aligned.row.row.m8n32k16.f32.bf16.bf16.f32 "
     "wmma.mma.sync.aligned.row.col.m16n16k16.satfinite.s32.u8.u8.s32 "
     "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32"},
    {Opcode::wgmma_fence, "wgmma.fence.sync.aligned"},
    {Opcode::wgmma_commit_group, "wgmma.commit_group.sync.aligned"},
    {Opcode::wgmma_wait_group, "wgmma.wait_group.sync.aligned"},
    {Opcode::wgmma_mma_async,
     "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
     "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 wgmma.mma_async.sync.aligned.m64n72k8.f32.tf32.tf32 "
     "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e5m2 wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2 "
     "wgmma.mma_async.sync.aligned.m64n240k32.s32.s8.u8 "
     "wgmma.mma_async.sync.aligned.m64n24k32.satfinite.s32.u8.u8 "
     "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc"},
};
INSTANTIATE_TEST_SUITE_P(Matrices, TierWords, ::testing::ValuesIn(kMatrices));

}  // namespace
}  // namespace kvscope::ptx::tier_words_test

#include "tests/gpu/virtual/kernels/vectors.h"

#include <string_view>

namespace kvscope::ptx::test {
namespace {

// Values that an assembler computes for constant inputs, that hardware manuals state, or that independent programs
// computed.
std::vector<VectorRow> integer_rows() {
  constexpr std::uint64_t a = 0x89abcdef, b = 0xfedcba98, all = 0xffffffff, least = 0x80000000;
  constexpr std::uint64_t all64 = ~std::uint64_t{0}, least64 = std::uint64_t{1} << 63;
  const auto minus = [](std::int64_t v) { return static_cast<std::uint64_t>(v) & 0xffffffff; };
  return {
      {"add.s32 d, a, b", "r:rr", {{{0x7fffffff, 1}, least}, {{all, 2}, 1}}},
      {"add.sat.s32 d, a, b", "r:rr", {{{0x7fffffff, 1}, 0x7fffffff}, {{least, all}, least}, {{5, all}, 4}}},
      {"sub.sat.s32 d, a, b", "r:rr", {{{least, 1}, least}, {{0x7fffffff, all}, 0x7fffffff}}},
      {"add.u16x2 d, a, b", "r:rr", {{{0x0001ffff, 0x00010001}, 0x00020000}}},
      {"sub.s16 d, a, b", "h:hh", {{{0, 1}, 0xffff}}},
      {"add.u64 d, a, b", "q:qq", {{{all64, 2}, 1}}},
      {"sub.cc.u32 d, a, b; subc.u32 d, c, e", "r:rrrr", {{{0, 1, 5, 2}, 2}, {{1, 0, 5, 2}, 3}}},
      {"add.cc.u32 d, a, b; addc.u32 d, c, e", "r:rrrr", {{{all, 1, 5, 2}, 8}, {{all, 0, 5, 2}, 7}}},
      {"mul.lo.s32 d, a, b", "r:rr", {{{a, b}, 0xad05ebe8}}},
      {"mul.hi.s32 d, a, b", "r:rr", {{{a, b}, 0x0086a1c9}}},
      {"mul.hi.u32 d, a, b", "r:rr", {{{a, b}, 0x890f2a50}}},
      {"mul.wide.s16 d, a, b", "r:hh", {{{0xfff9, 300}, 0xfffff7cc}}},
      {"mul.wide.u32 d, a, b", "q:rr", {{{a, b}, 0x890f2a50ad05ebe8U}}},
      {"mad.wide.s32 d, a, b, c", "q:rrq", {{{a, b, 1}, 0x0086a1c9ad05ebe9U}}},
      {"mul.hi.u64 d, a, b", "q:qq", {{{all64, all64}, all64 - 1}}},
      {"mul24.lo.u32 d, a, b", "r:rr", {{{a, b}, 0x3305ebe8}}},
      {"mul24.hi.u32 d, a, b", "r:rr", {{{a, b}, 0x94223305}}},
      {"mul24.lo.s32 d, a, b", "r:rr", {{{a, b}, 0xac05ebe8}}},
      {"mul24.hi.s32 d, a, b", "r:rr", {{{a, b}, 0x0b99ac05}}},
      {"mad24.lo.u32 d, a, b, c", "r:rrr", {{{a, b, 8}, 0x3305ebf0}}},
      // A divisor of zero gives all ones, remainders too.
      {"div.u32 d, a, b", "r:rr", {{{7, 0}, all}, {{7, 2}, 3}}},
      {"rem.u32 d, a, b", "r:rr", {{{7, 0}, all}, {{7, 2}, 1}}},
      {"div.s32 d, a, b", "r:rr", {{{7, 0}, all}, {{minus(-7), 2}, minus(-3)}, {{least, all}, least}}},
      {"rem.s32 d, a, b", "r:rr", {{{7, 0}, all}, {{minus(-7), 2}, all}, {{7, minus(-2)}, 1}, {{least, all}, 0}}},
      {"div.s64 d, a, b", "q:qq", {{{9, 0}, all64}, {{least64, all64}, least64}}},
      {"rem.u16 d, a, b", "h:hh", {{{9, 0}, 0xffff}, {{9, 4}, 1}}},
      {"abs.s32 d, a", "r:r", {{{least}, least}, {{all}, 1}}},
      {"neg.s16 d, a", "h:h", {{{0x8000}, 0x8000}, {{1}, 0xffff}}},
      {"min.s32 d, a, b", "r:rr", {{{all, 1}, all}}},
      {"min.u32 d, a, b", "r:rr", {{{all, 1}, 1}}},
      {"max.relu.s32 d, a, b", "r:rr", {{{minus(-5), minus(-3)}, 0}, {{5, 3}, 5}}},
      {"max.s16x2 d, a, b", "r:rr", {{{0xffff0005, 0x0001fffe}, 0x00010005}}},
      {"sad.s32 d, a, b, c", "r:rrr", {{{minus(-5), 4, 100}, 109}}},
      {"sad.u32 d, a, b, c", "r:rrr", {{{4, 9, 100}, 105}}},
      {"dp4a.u32.u32 d, a, b, c", "r:rrr", {{{0x80ff017f, 0x05fe8103, 100}, 0x000101e4}}},
      {"dp4a.u32.s32 d, a, b, c", "r:rrr", {{{0x80ff017f, 0x05fe8103, 100}, 0x000001e4}}},
      {"dp4a.s32.u32 d, a, b, c", "r:rrr", {{{0x80ff017f, 0x05fe8103, 100}, 0xfffffee4}}},
      {"dp4a.s32.s32 d, a, b, c", "r:rrr", {{{0x80ff017f, 0x05fe8103, 100}, 0xfffffee4}}},
      {"dp2a.lo.s32.s32 d, a, b, c", "r:rrr", {{{0x8000017f, 0x02fe8003, 100}, 0x004004e1}}},
      {"dp2a.hi.s32.s32 d, a, b, c", "r:rrr", {{{0x8000017f, 0x02fe8003, 100}, 0xfffefd66}}},
      {"popc.b32 d, a", "r:r", {{{a}, 20}}},
      {"clz.b32 d, a", "r:r", {{{0}, 32}, {{1}, 31}}},
      {"clz.b64 d, a", "r:q", {{{0}, 64}, {{1}, 63}}},
      {"brev.b32 d, a", "r:r", {{{0x00012340}, 0x02c48000}}},
      {"bfind.s32 d, a", "r:r", {{{least}, 0x1e}, {{all}, all}}},
      {"bfind.u32 d, a", "r:r", {{{0}, all}, {{0x00012340}, 16}}},
      {"bfind.shiftamt.u32 d, a", "r:r", {{{0x00012340}, 15}}},
      {"fns.b32 d, a, b, c",
       "r:rrr",
       {{{0xaaaaaaaa, 0, 2}, 3},
        {{0xaaaaaaaa, 3, 0}, 3},
        {{0xaaaaaaaa, 2, 0}, all},
        {{0xaaaaaaaa, 31, minus(-2)}, 0x1d}}},
      {"bfe.u32 d, a, b, c", "r:rrr", {{{a, 8, 8}, 0xcd}, {{a, 28, 8}, 8}, {{a, 32, 8}, 0}, {{a, 0x108, 8}, 0xcd}}},
      {"bfe.s32 d, a, b, c",
       "r:rrr",
       {{{a, 8, 8}, 0xffffffcd}, {{a, 28, 8}, 0xfffffff8}, {{a, 32, 8}, all}, {{a, 8, 0}, 0}, {{a, 0, 64}, a}}},
      {"bfi.b32 d, e, a, b, c",
       "r:rrrr",
       {{{a, 8, 8, 0x5a5a5aff}, 0x89abffef},
        {{a, 28, 8, 0x5a5a5aff}, 0xf9abcdef},
        {{a, 32, 8, 0x5a5a5aff}, a},
        {{a, 0, 32, 0x5a5a5aff}, 0x5a5a5aff},
        {{a, 0, 64, 0x5a5a5aff}, 0x5a5a5aff},
        {{a, 8, 264, 0x5a5a5aff}, 0x89abffef}}},
      {"bmsk.clamp.b32 d, a, b",
       "r:rr",
       {{{4, 8}, 0xff0}, {{30, 8}, 0xc0000000}, {{32, 4}, 0}, {{4, 32}, 0xfffffff0}, {{0, 33}, all}}},
      {"bmsk.wrap.b32 d, a, b", "r:rr", {{{4, 8}, 0xff0}, {{32, 4}, 0xf}, {{4, 32}, 0}, {{0, 33}, 1}}},
      {"szext.clamp.s32 d, a, b", "r:rr", {{{a, 0}, 0}, {{a, 32}, a}, {{a, 40}, a}, {{a, 8}, 0xffffffef}}},
      {"szext.wrap.u32 d, a, b", "r:rr", {{{a, 0}, 0}, {{a, 32}, 0}, {{a, 40}, 0xef}}},
      {"vabsdiff4.u32.u32.u32.add d, a, b, c", "r:rrr", {{{0x01ff0510, 0x05fe8103, 10}, 10 + 4 + 1 + 0x7c + 13}}},
      {"vabsdiff4.u32.u32.u32 d, a, b, c", "r:rrr", {{{0x01ff0510, 0x05fe8103, 10}, 0x04017c0d}}},
  };
}

std::vector<VectorRow> bit_rows() {
  constexpr std::uint64_t all = 0xffffffff;
  constexpr std::uint64_t x = 0x9abcdef0, hi = 0xaabbccdd, lo = 0x11223344;  // shf: a is the lower word
  constexpr std::uint64_t p = 0x83828180, q = 0x77767574;
  return {
      {"cnot.b32 d, a", "r:r", {{{0}, 1}, {{7}, 0}}},
      {"not.b64 d, a", "q:q", {{{0}, ~std::uint64_t{0}}}},
      {"lop3.b32 d, a, b, c, 0x96", "r:rrr", {{{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa}, 0x96969696}}},
      {"lop3.b32 d, a, b, c, 0xe8", "r:rrr", {{{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa}, 0xe8e8e8e8}}},
      {"shr.s32 d, a, b", "r:rr", {{{x, 32}, all}, {{x, 40}, all}, {{x, all}, all}, {{x, 4}, 0xf9abcdef}}},
      {"shr.u32 d, a, b", "r:rr", {{{x, 32}, 0}, {{x, all}, 0}, {{x, 4}, 0x09abcdef}}},
      {"shl.b32 d, a, b", "r:rr", {{{x, 32}, 0}, {{x, 4}, 0xabcdef00}}},
      {"shr.s16 d, a, b", "h:hr", {{{0x9abc, 16}, 0xffff}, {{0x9abc, 4}, 0xf9ab}}},
      {"shl.b64 d, a, b", "q:qr", {{{1, 63}, std::uint64_t{1} << 63}, {{1, 64}, 0}}},
      {"shf.l.wrap.b32 d, a, b, c", "r:rrr", {{{lo, hi, 4}, 0xabbccdd1}, {{lo, hi, 32}, hi}}},
      {"shf.l.clamp.b32 d, a, b, c", "r:rrr", {{{lo, hi, 4}, 0xabbccdd1}, {{lo, hi, 32}, lo}}},
      {"shf.r.wrap.b32 d, a, b, c", "r:rrr", {{{lo, hi, 4}, 0xd1122334}, {{lo, hi, 36}, 0xd1122334}}},
      {"shf.r.clamp.b32 d, a, b, c", "r:rrr", {{{lo, hi, 4}, 0xd1122334}, {{lo, hi, 36}, hi}}},
      {"prmt.b32 d, a, b, c",
       "r:rrr",
       {{{p, q, 0x7531}, 0x77758381}, {{p, q, 0xfedc}, 0}, {{p, q, 0x0123}, 0x80818283}, {{p, q, 0x4440}, 0x74747480}}},
      {"prmt.b32.f4e d, a, b, c",
       "r:rrr",
       {{{p, q, 0}, p}, {{p, q, 1}, 0x74838281}, {{p, q, 2}, 0x75748382}, {{p, q, 3}, 0x76757483}}},
      {"prmt.b32.b4e d, a, b, c",
       "r:rrr",
       {{{p, q, 0}, 0x75767780}, {{p, q, 1}, 0x76778081}, {{p, q, 2}, 0x77808182}, {{p, q, 3}, 0x80818283}}},
      {"prmt.b32.rc8 d, a, b, c", "r:rrr", {{{p, q, 0}, 0x80808080}, {{p, q, 3}, 0x83838383}}},
      {"prmt.b32.ecl d, a, b, c",
       "r:rrr",
       {{{p, q, 0}, p}, {{p, q, 1}, 0x83828181}, {{p, q, 2}, 0x83828282}, {{p, q, 3}, 0x83838383}}},
      {"prmt.b32.ecr d, a, b, c",
       "r:rrr",
       {{{p, q, 0}, 0x80808080}, {{p, q, 1}, 0x81818180}, {{p, q, 2}, 0x82828180}, {{p, q, 3}, p}}},
      {"prmt.b32.rc16 d, a, b, c",
       "r:rrr",
       {{{p, q, 0}, 0x81808180}, {{p, q, 1}, 0x83828382}, {{p, q, 2}, 0x81808180}, {{p, q, 3}, 0x83828382}}},
      {"slct.u32.s32 d, a, b, c", "r:rrr", {{{1, 2, 0}, 1}, {{1, 2, all}, 2}}},
      // -0 counts as not below zero, NaN as below.
      {"slct.u32.f32 d, a, b, c", "r:rrr", {{{1, 2, 0x80000000}, 1}, {{1, 2, 0x7fc00000}, 2}, {{1, 2, 0xbf800000}, 2}}},
      {"set.lt.u32.s32 d, a, b", "r:rr", {{{all, 0}, all}, {{0, 0}, 0}}},
      {"set.gt.f32.u32 d, a, b", "r:rr", {{{all, 0}, 0x3f800000}, {{0, 0}, 0}}},
      {"testp.normal.f32 d, a", "p:r", {{{0}, 1}, {{0x3f800000}, 1}, {{1}, 0}, {{0x7f800000}, 0}}},
      {"testp.subnormal.f32 d, a", "p:r", {{{0}, 0}, {{1}, 1}}},
      {"testp.number.f32 d, a", "p:r", {{{0x7fc00000}, 0}, {{0x7f800000}, 1}}},
      {"testp.finite.f64 d, a", "p:q", {{{0x7ff0000000000000U}, 0}, {{0}, 1}}},
  };
}

std::vector<VectorRow> float_rows() {
  constexpr std::uint64_t one = 0x3f800000, inf = 0x7f800000, nan = 0x7fc12345, minus = 0x80000000;
  constexpr std::uint64_t canonical = 0x7fffffff, tiny = 1, half_least = 0x00400000;  // 2^-149, 2^-127
  return {
      {"add.f32 d, a, b", "r:rr", {{{nan, one}, canonical}, {{inf, inf | minus}, canonical}, {{tiny, tiny}, 2}}},
      {"add.ftz.f32 d, a, b", "r:rr", {{{tiny, tiny}, 0}, {{tiny | minus, tiny | minus}, minus}}},
      {"add.sat.f32 d, a, b", "r:rr", {{{nan, one}, 0}, {{one, one}, one}, {{minus, minus}, 0}}},
      {"add.rz.f32 d, a, b", "r:rr", {{{one, 0x33ffffff}, one}}},
      {"add.rp.f32 d, a, b", "r:rr", {{{one, 1}, 0x3f800001}}},
      {"add.rm.f32 d, a, b", "r:rr", {{{one, minus | 1}, 0x3f7fffff}}},
      // A NaN becomes the canonical one; constant folding of the assembler keeps its payload, an H100 does not.
      {"neg.f32 d, a", "r:r", {{{nan}, canonical}, {{one}, one | minus}}},
      {"abs.f32 d, a", "r:r", {{{nan | minus}, canonical}, {{one | minus}, one}}},
      {"add.f16x2 d, a, b", "r:rr", {{{0x3c007bff, 0x14007bff}, 0x3c017c00}}},
      {"fma.rn.f16x2 d, a, b, c", "r:rrr", {{{0x3c01bc01, 0x3c013c01, 0x80003c00}, 0x3c029800}}},
      {"fma.rn.relu.f16x2 d, a, b, c", "r:rrr", {{{0x3c01bc01, 0x3c013c01, 0x80003c00}, 0x3c020000}}},
      {"fma.rn.sat.f16x2 d, a, b, c", "r:rrr", {{{0x3c01bc01, 0x3c013c01, 0x80003c00}, 0x3c000000}}},
      {"fma.rn.f32 d, a, b, c", "r:rrr", {{{0x3f800001, 0x3f800001, 0xbf800002}, 0x28800000}}},
      // A divisor above 2^126: div.approx gives 0, div.full does not.
      {"div.approx.f32 d, a, b", "r:rr", {{{one, 0x7f000000}, 0}}},
      {"div.full.f32 d, a, b", "r:rr", {{{one, 0x7f000000}, half_least}}},
      {"div.rn.f32 d, a, b", "r:rr", {{{one, 0x40400000}, 0x3eaaaaab}, {{one, 0x7f000000}, half_least}}},
      {"rcp.rn.f32 d, a", "r:r", {{{0}, inf}, {{minus}, inf | minus}, {{inf | minus}, minus}}},
      {"rcp.approx.f32 d, a", "r:r", {{{0}, inf}, {{minus}, inf | minus}, {{inf | minus}, minus}}},
      {"sqrt.rn.f32 d, a", "r:r", {{{minus}, minus}, {{one | minus}, canonical}, {{0x40000000}, 0x3fb504f3}}},
      {"rsqrt.approx.f32 d, a", "r:r", {{{minus}, inf | minus}}},
      {"rsqrt.approx.ftz.f32 d, a", "r:r", {{{tiny}, inf}}},
      {"ex2.approx.f32 d, a",
       "r:r",
       {{{0xc2fe0000}, half_least}, {{0xc3150000}, tiny}, {{tiny}, one}, {{0x43000000}, inf}, {{inf | minus}, 0}}},
      {"ex2.approx.ftz.f32 d, a", "r:r", {{{0xc2fe0000}, 0}, {{0xc3150000}, 0}, {{tiny}, one}}},
      {"lg2.approx.f32 d, a",
       "r:r",
       {{{0}, inf | minus}, {{minus}, inf | minus}, {{half_least}, 0xc2fe0000}, {{one | minus}, canonical}}},
      {"lg2.approx.ftz.f32 d, a", "r:r", {{{half_least}, inf | minus}}},
      {"sin.approx.f32 d, a", "r:r", {{{minus}, minus}, {{inf}, canonical}}},
      {"cos.approx.f32 d, a", "r:r", {{{0}, one}, {{inf}, canonical}}},
      {"tanh.approx.f32 d, a", "r:r", {{{inf}, one}, {{inf | minus}, one | minus}}},
      {"min.f32 d, a, b",
       "r:rr",
       {{{0, minus}, minus}, {{minus, 0}, minus}, {{nan, one}, one}, {{nan, nan}, canonical}}},
      {"max.f32 d, a, b", "r:rr", {{{0, minus}, 0}, {{minus, 0}, 0}, {{one, nan}, one}}},
      {"max.NaN.f32 d, a, b", "r:rr", {{{nan, one}, canonical}}},
      {"min.xorsign.abs.f32 d, a, b",
       "r:rr",
       {{{0xc0000000, 0x40400000}, 0xc0000000}, {{0xbf800000, 0xc0000000}, one}}},
      {"copysign.f32 d, a, b", "r:rr", {{{minus, one}, one | minus}, {{0, one | minus}, one}}},
  };
}

std::vector<VectorRow> compare_rows() {
  constexpr std::uint64_t one = 0x3f800000, nan = 0x7fc00000, minus = 0x80000000;
  return {
      // Ordered comparisons are false with NaN, ne too; `a != b` of C++ is neu.
      {"setp.ne.f32 d, a, b", "p:rr", {{{nan, one}, 0}, {{one, 0}, 1}}},
      {"setp.neu.f32 d, a, b", "p:rr", {{{nan, one}, 1}, {{one, one}, 0}}},
      {"setp.eq.f32 d, a, b", "p:rr", {{{0, minus}, 1}, {{nan, nan}, 0}}},
      {"setp.equ.f32 d, a, b", "p:rr", {{{nan, nan}, 1}}},
      {"setp.num.f32 d, a, b", "p:rr", {{{nan, one}, 0}, {{one, one}, 1}}},
      {"setp.nan.f32 d, a, b", "p:rr", {{{nan, one}, 1}, {{one, one}, 0}}},
      {"setp.lt.f32 d, a, b", "p:rr", {{{minus | 1, 0}, 1}}},
      {"setp.lt.ftz.f32 d, a, b", "p:rr", {{{minus | 1, 0}, 0}}},
      {"setp.lo.u32 d, a, b", "p:rr", {{{1, 0xffffffff}, 1}}},
      {"setp.hs.u32 d, a, b", "p:rr", {{{1, 0xffffffff}, 0}, {{1, 1}, 1}}},
      {"setp.lt.s32 d, a, b", "p:rr", {{{1, 0xffffffff}, 0}}},
      {"{.reg .pred t, u; setp.ne.u32 t, c, 0; setp.lt.and.s32 u|d, a, b, t;}",
       "p:rrr",
       {{{1, 2, 1}, 0}, {{2, 1, 1}, 1}, {{2, 1, 0}, 0}}},
  };
}

std::vector<VectorRow> convert_rows() {
  constexpr std::uint64_t inf = 0x7f800000, nan = 0x7fc00000, least64 = std::uint64_t{1} << 63;
  return {
      {"cvt.rzi.s32.f32 d, a",
       "r:r",
       {{{inf}, 0x7fffffff}, {{0x4f9502f9}, 0x7fffffff}, {{0xcf32d05e}, 0x80000000}, {{nan}, 0}}},
      {"cvt.rzi.u32.f32 d, a", "r:r", {{{inf}, 0xffffffff}, {{0x4f9502f9}, 0xffffffff}, {{0xcf32d05e}, 0}, {{nan}, 0}}},
      {"cvt.rzi.s64.f32 d, a", "q:r", {{{nan}, least64}}},
      {"cvt.rzi.s32.f64 d, a", "r:q", {{{0x7ff8000000000000U}, 0x80000000}, {{0xc008000000000000U}, 0xfffffffd}}},
      {"cvt.rni.s32.f32 d, a", "r:r", {{{0x40200000}, 2}, {{0x40600000}, 4}}},
      {"cvt.sat.u8.s32 e, a; cvt.u32.u16 d, e", "r:r h", {{{300}, 0xff}, {{0xffffffff}, 0}}},
      {"cvt.sat.s8.s32 e, a; cvt.u32.u16 d, e", "r:r h", {{{0xfffffed4}, 0xff80}}},
      {"cvt.s8.s32 d, a", "h:r", {{{0xfffffed4}, 0xffd4}}},
      {"cvt.u8.s32 d, a", "h:r", {{{0xfffffed4}, 0x00d4}}},
      {"cvt.s32.s8 d, a", "r:r", {{{0x0001ff80}, 0xffffff80}}},
      {"cvt.rn.f32.s32 d, a", "r:r", {{{16777217}, 0x4b800000}}},
      {"cvt.rn.f32.u32 d, a", "r:r", {{{0xffffffff}, 0x4f800000}}},
      {"cvt.rni.f32.f32 d, a",
       "r:r",
       {{{0x40200000}, 0x40000000}, {{0x40600000}, 0x40800000}, {{0xbe800000}, 0x80000000}}},
      {"cvt.sat.f32.f32 d, a", "r:r", {{{nan}, 0}, {{0x80000000}, 0}, {{0x40000000}, 0x3f800000}}},
      {"cvt.f32.f16 d, a", "r:h", {{{0x7e01}, 0x7fffffff}, {{0x0001}, 0x33800000}, {{0xbc00}, 0xbf800000}}},
      {"cvt.f32.bf16 d, a", "r:h", {{{0x7fc1}, 0x7fc10000}, {{0xbf80}, 0xbf800000}}},
      {"cvt.rn.f16.f32 d, a",
       "h:r",
       {{{0x477fef00}, 0x7bff}, {{0x477ff000}, 0x7c00}, {{0x33000000}, 0}, {{0x33000001}, 1}, {{nan}, 0x7fff}}},
      {"cvt.rn.bf16.f32 d, a",
       "h:r",
       {{{0x3f808000}, 0x3f80}, {{0x3f818000}, 0x3f82}, {{0x7f7f8000}, 0x7f80}, {{0x00008001}, 1}, {{nan}, 0x7fff}}},
      // a becomes the upper half.
      {"cvt.rn.f16x2.f32 d, a, b", "r:rr", {{{0x3f800000, 0xc0000000}, 0x3c00c000}}},
      {"cvt.rn.bf16x2.f32 d, a, b", "r:rr", {{{0x3f800000, 0xc0000000}, 0x3f80c000}}},
      {"cvt.rn.satfinite.e4m3x2.f32 d, a, b",
       "h:rr",
       {{{0x43e00000, 0x43e80000}, 0x7e7e},
        {{nan, 0xff800000}, 0x7ffe},
        {{0x3a800000, 0x3ac00000}, 0x0001},
        {{0x322bcc77, 0xbb449ba6}, 0x0082},
        {{0x80000000, 0x3f800000}, 0x8038}}},
      {"cvt.rn.satfinite.e5m2x2.f32 d, a, b",
       "h:rr",
       {{{0x43e00000, 0x43e80000}, 0x5f5f},
        {{nan, 0xff800000}, 0x7ffb},
        {{0x3a800000, 0x3ac00000}, 0x1416},
        {{0x322bcc77, 0xbb449ba6}, 0x009a},
        {{0x80000000, 0x3f800000}, 0x803c},
        {{0x47600000, 0x47700000}, 0x7b7b}}},
      {"cvt.rn.f16x2.e4m3x2 d, a", "r:h", {{{0x7f08}, 0x7fff2400}, {{0xff81}, 0x7fff9800}, {{0x7e00}, 0x5f000000}}},
      {"cvt.rn.f16x2.e5m2x2 d, a", "r:h", {{{0x7c7d}, 0x7c007fff}, {{0x0480}, 0x04008000}}},
      {"cvt.rna.tf32.f32 d, a", "r:r", {{{0x3f801000}, 0x3f802000}, {{nan}, 0x7fc00000}, {{0x7f7fffff}, inf}}},
      {"cvt.pack.sat.s8.s32.b32 d, a, b, c", "r:rrr", {{{300, 0xfffffed4, 12345678}, 0x614e7f80}}},
      {"cvt.pack.sat.u16.s32 d, a, b", "r:rr", {{{70000, 0xfffffed4}, 0xffff0000}}},
  };
}

}  // namespace

const std::vector<VectorRow>& vector_rows() {
  static const std::vector<VectorRow> rows = [] {
    std::vector<VectorRow> all;
    for (const auto& part : {integer_rows(), bit_rows(), float_rows(), compare_rows(), convert_rows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

std::string vector_kernels(const std::vector<VectorRow>& rows) {
  const auto bits_of = [](char width) { return width == 'h' ? "16" : width == 'r' ? "32" : "64"; };
  std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::string_view widths = rows[r].widths;
    const char result = widths[0];
    text += "// " + std::string(rows[r].statements) + "\n.visible .entry row_" + std::to_string(r) +
            "(.param .u64 in, .param .u64 out) {\n  .reg .b64 %from, %to, %lane, %word;\n  .reg .b32 %thread;\n";
    text += result == 'p' ? "  .reg .pred d;\n" : std::string("  .reg .b") + bits_of(result) + " d;\n";
    text +=
        "  ld.param.u64 %from, [in];\n  ld.param.u64 %to, [out];\n  mov.u32 %thread, %tid.x;\n"
        "  mul.wide.u32 %lane, %thread, 8;\n  add.s64 %to, %to, %lane;\n"
        "  mul.wide.u32 %lane, %thread, 32;\n  add.s64 %from, %from, %lane;\n";
    constexpr std::string_view kNames = "abce";
    std::size_t operand = 0;
    for (std::size_t i = 2; i < widths.size(); ++i) {
      if (widths[i] == ' ') {  // the other registers have no value
        operand = 3;
        continue;
      }
      const std::string name(1, kNames[operand]);
      text += std::string("  .reg .b") + bits_of(widths[i]) + " " + name + ";\n";
      text += "  ld.global.b64 %word, [%from+" + std::to_string(8 * operand) + "];\n";
      if (widths[i] == 'q')
        text += "  mov.b64 " + name + ", %word;\n";
      else
        text += std::string("  cvt.u") + bits_of(widths[i]) + ".u64 " + name + ", %word;\n";
      ++operand;
    }
    text +=
        "  " + std::string(rows[r].statements) + (std::string_view(rows[r].statements).back() == '}' ? "\n" : ";\n");
    if (result == 'p')
      text += "  selp.b64 %word, 1, 0, d;\n";
    else if (result == 'q')
      text += "  mov.b64 %word, d;\n";
    else
      text += std::string("  cvt.u64.u") + bits_of(result) + " %word, d;\n";
    text += "  st.global.b64 [%to], %word;\n  ret;\n}\n";
  }
  return text;
}

}  // namespace kvscope::ptx::test

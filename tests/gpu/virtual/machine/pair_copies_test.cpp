// Tensor copies with .cta_group::2: both CTAs of a pair load into their own shared memory, and the bytes arrive at the
// barrier of the CTA that the barrier's address names. Without it, a CTA's bytes arrive at its own barrier.
#include <gmock/gmock.h>

#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"
#include "tests/core/tma/gold.h"

namespace kvscope::ptx::test::pair_copies_test {
namespace {

using kvscope::test::map_of;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kRowBytes = 64;

// CTA `rank` of `ctas` loads row `rank` of a tensor, with a barrier of the even CTA of its pair. The even CTA expects the
// bytes of two rows, waits, and stores both rows to `out`; then the odd CTA leaves.
std::string text_of(const std::string& words, const std::string& mask) {
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])
{
  .shared .align 128 .b8 s[128]; .shared .align 8 .b64 full;
  .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .b16 %h<2>;
  mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, s; mov.u32 %r2, full;
  mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait;
  and.b32 %r3, %r0, 1; setp.ne.u32 %p1, %r3, 0; and.b32 %r4, %r0, 0xfffffffe;
  @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
  mapa.shared::cluster.u32 %r5, %r2, %r4; mapa.shared::cluster.u32 %r6, %r1, %r0;
  mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; mov.u16 %h0, )" +
         (mask.empty() ? "0" : mask) + R"(;
  cp.async.bulk.tensor.2d.)" +
         words + R"( [%r6], [%rd1, {0, %r0}], [%r5])" + (mask.empty() ? "" : ", %h0") + R"(;
  @%p1 bra LEAVE;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r0, 64; add.u64 %rd2, %rd2, %rd3;
  mov.u32 %r7, 0;
COPY: add.u32 %r8, %r1, %r7; ld.shared.u32 %r9, [%r8]; add.u32 %r10, %r0, 1; mapa.shared::cluster.u32 %r11, %r8, %r10;
  ld.shared::cluster.u32 %r12, [%r11]; st.global.u32 [%rd2], %r9; st.global.u32 [%rd2+64], %r12;
  add.u64 %rd2, %rd2, 4; add.u32 %r7, %r7, 4; setp.lt.u32 %p3, %r7, 64; @%p3 bra COPY;
LEAVE: barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}
)";
}

struct Pairs {
  std::vector<std::string> messages;
  std::vector<std::byte> out;  // [CTA][64]
};
Pairs run_pairs(const std::string& words, const std::string& mask, int ctas, Policy policy) {
  TensorMap map = map_of(TmaDataType::u8, {kRowBytes, 4}, {kRowBytes}, {kRowBytes, 1}, TmaSwizzle::none);
  const kvscope::test::Tensor source(map);
  Device device(ProgramOptions{.target = 100});
  const LoadedModule& module = device.load(parse_module(text_of(words, mask), "pair.ptx"));
  const std::uint64_t out = device.memory().allocate(kRowBytes * 4, "out");
  map.base = device.memory().allocate(static_cast<std::int64_t>(source.bytes.size()), "tensor");
  device.memory().write(map.base, source.bytes);
  const TensorMapRecord record = encode_tensor_map("test", map, TmaTarget::sm_100);
  LaunchConfig config;
  config.kernel = "k";
  config.grid = {ctas, 1, 1};
  config.block = {1, 1, 1};
  config.cluster = {ctas, 1, 1};
  config.options.policy = policy;
  config.options.seed = 7;
  config.params = pack_params(module, "k", {out, std::vector<std::byte>(record.begin(), record.end())});
  Pairs pairs;
  for (const Report& r : device.launch(module, config).reports)
    pairs.messages.push_back(std::string(ptx::name(r.kind)) + " " + r.message);
  pairs.out = device.memory().read(out, kRowBytes * ctas);
  return pairs;
}

TEST(PairCopies, ArriveAtTheBarrierThatTheAddressNames) {
  for (const char* words : {"cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes",
                            "shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::2"}) {
    for (const int ctas : {2, 4}) {
      for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
        const Pairs pairs = run_pairs(words, "", ctas, policy);
        EXPECT_THAT(pairs.messages, IsEmpty()) << words;
        for (std::size_t i = 0; i < pairs.out.size(); ++i)
          ASSERT_EQ(pairs.out[i], static_cast<std::byte>(kvscope::test::source_byte(i))) << words << " byte " << i;
      }
    }
  }
}

TEST(PairCopies, WithoutTheGroupTheBytesOfTheOddCtaDoNotArrive) {
  const Pairs pairs = run_pairs("shared::cluster.global.mbarrier::complete_tx::bytes", "", 2, Policy::late);
  EXPECT_THAT(pairs.messages, Not(IsEmpty()));
}

TEST(TensorMulticast, AMaskThatNamesNoCtaOfTheClusterIsReportedAtTheCopy) {
  const std::string words = "shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster";
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
    EXPECT_THAT(run_pairs(words, "35", 2, policy).messages,
                Contains("BAD_WINDOW cp.async.bulk.tensor: mask 0x0023 names rank 5 of a cluster of 2"));
    EXPECT_THAT(run_pairs(words, "0", 2, policy).messages,
                Contains("BAD_WINDOW cp.async.bulk.tensor: mask 0x0000 names no CTA of a cluster of 2"));
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::pair_copies_test

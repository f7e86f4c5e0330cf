// The order of accesses to tensor memory: a clean pipeline of a product and its epilogue, and each way to break it.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test::tensor_checker_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Warp 0 allocates; thread 0 multiplies zeros (M 128, N 16, K 16) into D and commits; four warps read D, warp 0 frees
// it. The marks in $ are the parts that a test leaves out or replaces.
constexpr const char* kPipeline = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k() {
  .reg .b32 %r<40>; .reg .b64 %rd<8>; .reg .pred %p<8>;
  .shared .align 1024 .b8 s[8192]; .shared .align 8 .b64 full; .shared .align 8 .b64 again;
  .shared .align 4 .b32 address;
  mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; setp.ge.u32 %p1, %r0, 32;
  mul.lo.u32 %r2, %r0, 64; mov.u32 %r3, s; add.u32 %r2, %r2, %r3; mov.u32 %r4, 0;
  st.shared.v4.u32 [%r2], {%r4, %r4, %r4, %r4}; st.shared.v4.u32 [%r2+16], {%r4, %r4, %r4, %r4};
  st.shared.v4.u32 [%r2+32], {%r4, %r4, %r4, %r4}; st.shared.v4.u32 [%r2+48], {%r4, %r4, %r4, %r4};
  $proxy fence.proxy.async;$
  @%p1 bra ALLOCATED;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 32;
  ALLOCATED:
  @%p0 bra READY;
  mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [again], 1;
  fence.mbarrier_init.release.cluster;
  READY:
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r1, [address];
  and.b32 %r5, %r0, 96; shl.b32 %r5, %r5, 16; add.u32 %r5, %r5, %r1;
  $first$
  @%p0 bra ISSUED;
  mov.b64 %rd0, 0x0000400800010040; mov.b64 %rd1, 0x0000400800010100; mov.b32 %r6, 0x08040010;
  setp.ne.u32 %p2, %r0, %r0;
  tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd0, %rd1, %r6, %p2;
  tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd0, %rd1, %r6, %p2;
  $commit tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [full];$
  ISSUED:
  $wait WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [full], 0; @!%p3 bra WAIT;$
  $after tcgen05.fence::after_thread_sync;$
  tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, [%r5];
  $loaded tcgen05.wait::ld.sync.aligned;$
  $before tcgen05.fence::before_thread_sync;$
  $barrier bar.sync 0;$
  $second$
  @%p1 bra FREED;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
  FREED:
  ret;
}
)";

// `parts`: {"wait", ""} removes a part, {"first", "..."} fills one in.
std::vector<std::string> messages_of(const std::vector<std::pair<std::string, std::string>>& parts,
                                     Policy policy = Policy::late) {
  std::string text = kPipeline;
  for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos;) {
    const std::size_t end = text.find('$', at + 1), blank = std::min(text.find(' ', at), end);
    const std::string name = text.substr(at + 1, blank - at - 1);
    std::string with = blank < end ? text.substr(blank + 1, end - blank - 1) : "";
    for (const auto& [part, value] : parts) {
      if (part == name) with = value;
    }
    text.replace(at, end - at + 1, with);
    at += with.size();
  }
  Device device(ProgramOptions{.target = 100});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  Checks checks;
  LaunchConfig config;
  config.kernel = "k";
  config.block = {128, 1, 1};
  config.options.policy = policy;
  config.options.seed = policy == Policy::seeded ? 3 : 0;
  const LaunchResult result = device.launch(module, config, checks.monitor());
  std::vector<std::string> out;
  for (const Report& r : result.reports) {
    EXPECT_FALSE(r.parties.empty()) << r.message;
    std::string line = std::string(name(r.kind)) + " " + r.message;
    for (const ReportParty& p : r.parties) line += "; " + p.action + " " + p.opcode.substr(0, p.opcode.find('.', 8));
    out.push_back(line);
  }
  return out;
}
std::string first_of(const std::vector<std::pair<std::string, std::string>>& parts) {
  const auto all = messages_of(parts);
  return all.empty() ? "" : all[0];
}

TEST(TensorChecker, FindsNothingInACorrectPipeline) {
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded})
    EXPECT_THAT(messages_of({}, policy), IsEmpty());
}

// Other warps may load before the product is issued: then the product is the second access.
TEST(TensorChecker, ReportsALoadThatDoesNotWaitForTheProduct) {
  const std::string first = first_of({{"wait", ""}});
  EXPECT_THAT(first, HasSubstr("TENSOR_ORDER"));
  EXPECT_THAT(first, HasSubstr("on them is known to be complete"));
  EXPECT_THAT(first, HasSubstr("read tcgen05.ld"));
  EXPECT_THAT(first, HasSubstr("write tcgen05.mma"));
}

TEST(TensorChecker, ReportsAMissingCommit) {
  EXPECT_THAT(first_of({{"commit", ""}}), HasSubstr("DEADLOCK"));
  // An arrival of the thread itself says nothing about its products.
  EXPECT_THAT(first_of({{"commit", "mbarrier.arrive.shared.b64 %rd4, [full];"}}),
              HasSubstr("TENSOR_ORDER tcgen05.ld reads"));
}

TEST(TensorChecker, ReportsMissingFences) {
  EXPECT_THAT(first_of({{"after", ""}}),
              HasSubstr("TENSOR_FENCE tcgen05.ld reads columns 0 to 3 of tensor memory after a synchronization without "
                        "tcgen05.fence::after_thread_sync"));
  // A product after the epilogue needs both sides.
  const std::string next =
      "tcgen05.fence::after_thread_sync; @%p0 bra NEXT; tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd0, %rd1, %r6, %p2;"
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [again];"
      "NEXT: mbarrier.try_wait.parity.shared.b64 %p3, [again], 0; @!%p3 bra NEXT;";
  EXPECT_THAT(messages_of({{"second", next}}), IsEmpty());
  EXPECT_THAT(first_of({{"second", next}, {"before", ""}}), HasSubstr("without tcgen05.fence::before_thread_sync"));
  EXPECT_THAT(first_of({{"second", next}, {"barrier", ""}}), HasSubstr("TENSOR_ORDER tcgen05.mma writes"));
}

TEST(TensorChecker, ReportsLoadsAndStoresThatAreNotWaitedFor) {
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r0};";
  EXPECT_THAT(first_of({{"loaded", ""}, {"second", store}}),
              HasSubstr("tcgen05.st writes column 0 of tensor memory before tcgen05.ld"));
  EXPECT_THAT(first_of({{"first", store}}), HasSubstr("TENSOR_ORDER tcgen05.mma writes columns 0 to 15"));
  const std::string ordered = store +
                              "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"
                              "tcgen05.fence::after_thread_sync;";
  EXPECT_THAT(messages_of({{"first", ordered}}), IsEmpty());
}

TEST(TensorChecker, ReportsColumnsThatAreFreedTooEarly) {
  const auto messages = messages_of({{"wait", ""}, {"after", ""}});
  EXPECT_FALSE(messages.empty());
  EXPECT_THAT(first_of({{"loaded", ""}}), HasSubstr("TENSOR_ORDER tcgen05.dealloc writes columns 0 to 31"));
}

// The operands of a product are read through the async proxy.
TEST(TensorChecker, LeavesOperandsInSharedMemoryToTheRaceChecker) {
  EXPECT_THAT(first_of({{"proxy", ""}}), HasSubstr("PROXY_FENCE"));
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_checker_test

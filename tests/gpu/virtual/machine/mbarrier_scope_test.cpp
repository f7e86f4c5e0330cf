// Order and scope of every operation on an mbarrier, as reported to monitors: the default is .release or .acquire at
// CTA scope.
#include <gmock/gmock.h>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::mbarrier_scope_test {
namespace {

class Recorder final : public Monitor {
 public:
  std::vector<std::string> told;
  void mbarrier(Launch&, const Cta&, const Exec*, LaneMask, MbarrierEvent event, std::uint64_t, std::int64_t,
                Order order, Scope scope) override {
    constexpr const char* kEvents[] = {"init",        "inval",      "arrive",    "expect_tx",
                                       "complete_tx", "phase_done", "wait_true", "wait_false"};
    constexpr const char* kOrders[] = {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc"};
    constexpr const char* kScopes[] = {"none", "cta", "cluster", "gpu", "sys"};
    told.push_back(std::string(kEvents[static_cast<int>(event)]) + " " + kOrders[static_cast<int>(order)] + " " +
                   kScopes[static_cast<int>(scope)]);
  }
};

// The events of one instruction on an object that is not completed; %r10 is its address, %rd10 its generic address.
std::string told_of(const std::string& instruction) {
  Recorder recorder;
  const Ran ran = run({.body = "mov.u32 %r10, s; mov.u64 %rd9, s; cvta.shared.u64 %rd10, %rd9;"
                               "mbarrier.init.shared.b64 [%r10], 100;" +
                               instruction + "mbarrier.inval.shared.b64 [%r10];",
                       .threads = 1,
                       .monitor = &recorder});
  EXPECT_THAT(ran.messages, ::testing::IsEmpty()) << instruction;
  EXPECT_EQ(recorder.told.at(0), "init weak none");
  std::string rest;
  EXPECT_EQ(recorder.told.back(), "inval weak none");
  for (std::size_t i = 1; i + 1 < recorder.told.size(); ++i) rest += (i > 1 ? ", " : "") + recorder.told[i];
  return rest;
}

TEST(MbarrierScope, IsTheOneThatTheInstructionNames) {
  const std::pair<const char*, const char*> cases[] = {
      {"mbarrier.arrive.shared.b64 _, [%r10];", "arrive release cta"},
      {"mbarrier.arrive.release.cta.shared::cta.b64 _, [%r10];", "arrive release cta"},
      {"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];", "arrive release cluster"},
      {"mbarrier.arrive.relaxed.cluster.b64 _, [%rd10];", "arrive relaxed cluster"},
      {"mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r10];", "arrive release cluster"},
      {"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r10], 16;",
       "expect_tx release cluster, arrive release cluster"},
      {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r10], 16;", "expect_tx relaxed cta"},
      {"mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r10], 16;", "expect_tx relaxed cluster"},
      {"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r10], 16;", "complete_tx relaxed cluster"},
      {"mbarrier.test_wait.parity.shared.b64 %p1, [%r10], 0;", "wait_false acquire cta"},
      {"mbarrier.test_wait.parity.shared.b64 %p1, [%r10], 1;", "wait_true acquire cta"},
      {"mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r10], 1;", "wait_true acquire cluster"},
      {"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r10], 1;", "wait_true acquire cluster"},
      {"mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [%r10], 1;", "wait_true relaxed cta"},
      {"mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [%r10], 1;", "wait_true relaxed cluster"},
  };
  for (const auto& [instruction, told] : cases) EXPECT_EQ(told_of(instruction), told) << instruction;
}

}  // namespace
}  // namespace kvscope::ptx::test::mbarrier_scope_test

// Handlers that a program has for SIGSEGV when it loads the library: they are called as before.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>

#include "gpu/driver/runtime.h"

namespace kvscope::driver_tests::host_fault_test {

void plain(int signal) {
  _exit(signal == SIGSEGV ? 7 : 1);
}
void with_info(int, siginfo_t* info, void*) {
  _exit(info->si_addr == reinterpret_cast<void*>(std::uintptr_t{64}) ? 8 : 1);
}

// Starts the library, as the process does at its first call, and reads an address without memory.
void fault() {
  static_cast<void>(driver::runtime());
  static_cast<void>(*reinterpret_cast<volatile int*>(std::uintptr_t{64}));
}

class HostFault : public testing::Test {
 protected:
  // A separate process for each: the library takes the handler over only once.
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(HostFault, APlainHandlerIsCalled) {
  EXPECT_EXIT((::signal(SIGSEGV, plain), fault()), testing::ExitedWithCode(7), "");
}

TEST_F(HostFault, AHandlerWithInformationIsCalled) {
  struct sigaction action = {};
  action.sa_sigaction = with_info;
  action.sa_flags = SA_SIGINFO;
  EXPECT_EXIT((sigaction(SIGSEGV, &action, nullptr), fault()), testing::ExitedWithCode(8), "");
}

TEST_F(HostFault, WithoutAHandlerTheProcessEnds) {
  for (const auto none : {SIG_DFL, SIG_IGN})
    EXPECT_EXIT((::signal(SIGSEGV, none), fault()), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace kvscope::driver_tests::host_fault_test

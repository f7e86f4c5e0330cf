// Runs one small kernel with all checkers. Each line of its body is a line of the file k.ptx, from line 1 on.
//
//   const Seen seen = watch({.body = "st.shared.u32 [s], %r0;\nld.shared.u32 %r1, [s];", .threads = 64});
//   seen.races == {"RACE_WW s+0 4: write thread 0 (warp 0 lane 0) k.ptx:1; write thread 32 (warp 1 lane 0) k.ptx:1"}
//
// %r0 is the thread, %r1 the lane, %r2 the warp, %r3 the address s + 4 * thread; `s` has 4096 bytes, `m` is one mbarrier
// object and `n` 16. %rd0 points to 4096 bytes of device memory; byte i is i % 251.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::ptx::test {

struct Watched {
  std::string body;
  std::int64_t threads = 64;
  std::int64_t grid = 1;
  std::array<std::int64_t, 3> cluster{};
  LaunchOptions launch = {};
  CheckOptions checks = {.init = false};
  Monitor* also = nullptr;              // receives the same events
  std::int64_t instructions = 100'000;  // a launch that executes more ends
};

struct Seen {
  LaunchResult result;
  std::vector<std::string> races;  // one line per report
  std::string text;                // the first report in full
};

[[nodiscard]] Seen watch(const Watched& kernel);
// Runs under the policies late, early, and seeded with 1 to 3. Returns the lines of each run.
[[nodiscard]] std::vector<std::vector<std::string>> watch_each(Watched kernel);
// The distinct lines of these runs, sorted.
[[nodiscard]] std::vector<std::string> watch_all(Watched kernel);
[[nodiscard]] std::string line_of(const Report& report);

}  // namespace kvscope::ptx::test

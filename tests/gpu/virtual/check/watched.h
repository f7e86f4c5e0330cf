// One small kernel with every checker watching: its body is the statements of the file's lines, from line 1 on.
//
//   const Seen seen = watch({.body = "st.shared.u32 [s], %r0;\nld.shared.u32 %r1, [s];", .threads = 64});
//   seen.races == {"RACE_WW s+0 4: write thread 0 (warp 0 lane 0) k.ptx:1; write thread 32 (warp 1 lane 0) k.ptx:1"}
//
// %r0 is the thread, %r1 the lane, %r2 the warp, %r3 4 * the thread; `s` 4096 bytes, `m` and `n` objects; %rd0 points at
// 4096 bytes of device memory that hold what counted() gives.
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
  Monitor* also = nullptr;  // watches beside the checks
};

struct Seen {
  LaunchResult result;
  std::vector<std::string> races;  // one line a report
  std::string text;                // the first report as a person reads it
};

[[nodiscard]] Seen watch(const Watched& kernel);
// Under every policy and seeds 1 to 3; the lines of all of them, each once, in the order of their letters.
[[nodiscard]] std::vector<std::string> watch_all(Watched kernel);
[[nodiscard]] std::string line_of(const Report& report);

}  // namespace kvscope::ptx::test

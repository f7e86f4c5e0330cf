// The last writer of a byte of shared memory: threads, copies, none; also after moving backward.
#include "gpu/virtual/debug/last_writers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "tests/gpu/virtual/debug/kernel_text.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::last_writers_test {
namespace {

TEST(LastWriters, NamesLanesAndLineOfEachByte) {
  const auto launch = test::steps_launch(1);
  ControlledRun run(launch->device, *launch->module, launch->config);
  EXPECT_EQ(writers_text(run.writers(), *run.launch().program, 0, 0x400, 16), "0x00400-0x0040f  not written\n");
  static_cast<void>(run.to(StopReason::barrier));
  EXPECT_EQ(writers_text(run.writers(), *run.launch().program, 0, 0x474, 24),
            "0x00474-0x0047f  warp 0 lanes 29-31  st.shared.u32  steps.cu:3  step 14\n"
            "0x00480-0x0048b  warp 1 lanes 0-2  st.shared.u32  steps.cu:3  step 30\n");
  const Writer writer = run.writers().of(0, 0x485);
  EXPECT_EQ(writer.thread, 33);
  EXPECT_FALSE(writer.engine);
  EXPECT_EQ(run.launch().program->statement(writer.pc).opcode, "st.shared.u32");
  // Past the end, in a CTA that has not begun, below the first byte: not written.
  EXPECT_EQ(run.writers().of(0, 0x500), Writer{});
  EXPECT_EQ(run.writers().of(2, 0x485), Writer{});
  EXPECT_EQ(run.writers().of(0, 0x3ff), Writer{});
}

// Before the store the byte is not written, after it the byte is: at every step of a run, from its end to its
// beginning, with one snapshot and with many.
TEST(LastWriters, GoBackWithTheRun) {
  for (const std::int64_t snapshot_bytes : {std::int64_t{1}, std::int64_t{1} << 30}) {
    const auto launch = test::steps_launch(20);
    ControlledRun run(launch->device, *launch->module, launch->config, nullptr, snapshot_bytes);
    std::vector<Writer> seen;
    for (; !run.ended(); static_cast<void>(run.steps(1))) seen.push_back(run.writers().of(1, 0x4fc));
    const auto written = std::count_if(seen.begin(), seen.end(), [](const Writer& w) { return w.pc >= 0; });
    EXPECT_GT(written, 3);
    EXPECT_LT(written, static_cast<std::ptrdiff_t>(seen.size()) / 2);
    for (std::size_t step = seen.size(); step-- > 0;) {
      static_cast<void>(run.seek(step));
      ASSERT_EQ(run.writers().of(1, 0x4fc), seen[step]) << "step " << step;
    }
    // From the last write back to the start of its CTA.
    const auto last = std::find_if(seen.rbegin(), seen.rend(), [](const Writer& w) { return w.pc >= 0; });
    static_cast<void>(run.seek(static_cast<std::uint64_t>(seen.rend() - last) - 1));
    ASSERT_EQ(run.writers().of(1, 0x4fc), *last);
    static_cast<void>(run.seek(0));
    EXPECT_EQ(run.writers().of(1, 0x4fc), Writer{});
  }
}

// Copied bytes belong to the copy, and the barrier's bytes to its initialization.
TEST(LastWriters, ACopyIsNamedWithItsIssuer) {
  std::string text;
  class Last final : public Monitor {
   public:
    explicit Last(std::string& text) : text_(text) {}
    void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, std::span<const ByteRange> reads,
                     std::span<const ByteRange> writes) override {
      writers_.async_moves(launch, cta, op, reads, writes);
    }
    void stored(const Exec& exec, const Op& op, const WarpAccess& access) override {
      writers_.stored(exec, op, access);
    }
    void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                  std::uint64_t address, std::int64_t amount, Order order, Scope scope) override {
      writers_.mbarrier(launch, cta, exec, lanes, event, address, amount, order, scope);
    }
    void launch_ends(Launch& launch) override {
      text_ =
          writers_text(writers_, *launch.program, 0, 0x400, 48) + writers_text(writers_, *launch.program, 0, 0xc00, 16);
    }

   private:
    std::string& text_;
    LastWriters writers_;
  } last(text);
  static_cast<void>(test::run({.body = R"(
  mov.u32 %r1, s;
  setp.eq.u32 %p1, %r0, 3;
  @%p1 mbarrier.init.shared.b64 [%r1+2048], 1;
  bar.warp.sync 0xffffffff;
  @%p1 cp.async.ca.shared.global [%r1+16], [%rd1], 16;
  cp.async.wait_all;
  @%p1 st.shared.u16 [%r1+20], 7;
)",
                               .monitor = &last}));
  const auto starts_with = [&](std::size_t line, const std::string& what) {
    std::size_t from = 0;
    for (; line > 0; --line) from = text.find('\n', from) + 1;
    EXPECT_EQ(text.substr(from, what.size()), what) << text;
  };
  starts_with(0, "0x00400-0x0040f  not written");
  starts_with(1, "0x00410-0x00413  cp.async issued by warp 0 lane 3  cp.async.ca.shared.global");
  starts_with(2, "0x00414-0x00415  warp 0 lane 3  st.shared.u16");
  starts_with(3, "0x00416-0x0041f  cp.async issued by warp 0 lane 3");
  starts_with(4, "0x00420-0x0042f  not written");
  starts_with(5, "0x00c00-0x00c07  warp 0 lane 3  mbarrier.init.shared.b64");
  starts_with(6, "0x00c08-0x00c0f  not written");
}

}  // namespace
}  // namespace kvscope::ptx::last_writers_test

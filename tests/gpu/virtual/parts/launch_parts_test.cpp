// Launches on several threads: bytes, reports, counters, printed text and steps are those of one thread, whatever the
// number of threads, for kernels without and with faults across CTAs; and each reason for one thread.
#include "gpu/virtual/machine/launch_parts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/interruption.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/machine/diagnosis/suppressions.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test::launch_parts_test {
namespace {

using ::testing::HasSubstr;

// A kernel with two arrays of 64 KiB, x (counted bytes) and y (uninitialized). %r0 is the thread, %r1 the CTA, %r2 the
// thread in the grid; %rd0 and %rd1 point to x and y, %rd2 and %rd3 to 4 bytes of x and y for this thread.
struct Kernel {
  std::string body;
  std::int64_t grid = 24;
  std::int64_t threads = 64;
  CheckOptions checks = {};
  LaunchOptions options = {};
  std::array<std::int64_t, 3> cluster{};
  Monitor* also = nullptr;
};

// All that a user can see of a launch.
struct Seen {
  std::vector<std::byte> x, y;
  std::uint64_t steps = 0;
  LaunchStatus status = LaunchStatus::running;
  std::string reports, printed;
  std::int64_t repeated = 0;
  std::vector<OpCounts> counts;
  std::int64_t missing = 0;  // the first byte of y that nothing has written
  friend bool operator==(const Seen&, const Seen&) = default;
};
struct Ran {
  Seen seen;
  std::string jobs;
};

constexpr std::int64_t kBytes = 65536;

Ran run(Kernel kernel, std::int64_t jobs) {
  const std::string text =
      ".version 8.6 .target sm_90a .address_size 64\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 format[8] = {99, 116, 97, 32, 37, 100, 10, 0};\n"
      ".visible .entry k(.param .u64 px, .param .u64 py) {\n"
      ".local .align 8 .b8 stack[8]; .reg .b16 %h<4>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .pred %p<8>;\n"
      ".shared .align 16 .b8 s[1024];\n"
      "ld.param.u64 %rd0, [px]; ld.param.u64 %rd1, [py]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r3, %ntid.x; mad.lo.u32 %r2, %r1, %r3, %r0; mad.wide.u32 %rd2, %r2, 4, %rd0;\n"
      "mad.wide.u32 %rd3, %r2, 4, %rd1;\n" +
      kernel.body + "\nret; }\n";
  Device device(ProgramOptions{.target = 90});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  const std::uint64_t x = device.memory().allocate(kBytes, "x"), y = device.memory().allocate(kBytes, "y", false);
  std::vector<std::byte> bytes(kBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  device.memory().write(x, bytes);
  LaunchConfig config;
  config.kernel = "k";
  config.grid = {kernel.grid, 1, 1};
  config.block = {kernel.threads, 1, 1};
  config.cluster = kernel.cluster;
  config.options = kernel.options;
  config.options.jobs = jobs;
  config.params = pack_params(module, "k", {x, y});
  Checks checks(kernel.checks);
  InitChecker written({.shared = false, .global = true});
  checks.add(written);
  Counters counters(*module.program);
  checks.add(counters);
  if (kernel.also != nullptr) checks.add(*kernel.also);
  LaunchResult result = device.launch(module, config, checks.monitor());
  Ran out;
  out.seen = {device.memory().read(x, kBytes),
              device.memory().read(y, kBytes),
              result.steps,
              result.status,
              "",
              result.printed,
              result.repeated_reports,
              counters.ops(),
              written.host_missing(device.memory(), y, kBytes)};
  for (const Report& report : result.reports)
    out.seen.reports += fmt::format("{} {}\n{}\n", report.step, report.repeated, to_text(report));
  out.jobs = result.jobs_text();
  return out;
}

// Runs with 1, 2, 3 and 8 threads. Returns jobs_text() of 3 threads.
std::string same_for_all(const Kernel& kernel) {
  const Ran one = run(kernel, 1);
  EXPECT_EQ(one.jobs, "");
  std::string jobs;
  for (const std::int64_t n : {2, 3, 8}) {
    const Ran several = run(kernel, n);
    EXPECT_EQ(several.seen.reports, one.seen.reports) << n;
    EXPECT_EQ(several.seen.printed, one.seen.printed) << n;
    EXPECT_TRUE(several.seen == one.seen) << n;
    if (n == 3) jobs = several.jobs;
  }
  return jobs;
}

const char* const kScale = "ld.global.u32 %r4, [%rd2]; mul.lo.u32 %r4, %r4, 3; st.global.u32 [%rd3], %r4;";

TEST(LaunchParts, CtasThatCannotSeeOneAnotherRunOnSeveralThreads) {
  EXPECT_EQ(same_for_all({.body = kScale}), "3 threads");
  // In place: each CTA writes what it reads.
  EXPECT_EQ(same_for_all({.body = "ld.global.u32 %r4, [%rd2]; add.u32 %r4, %r4, 7; st.global.u32 [%rd2], %r4;"}),
            "3 threads");
  // All CTAs read the same bytes, which none writes.
  EXPECT_EQ(same_for_all({.body = "ld.global.u32 %r4, [%rd0+40]; ld.global.nc.u32 %r5, [%rd0+44];\n"
                                  "add.u32 %r4, %r4, %r5; st.global.u32 [%rd3], %r4;"}),
            "3 threads");
  EXPECT_EQ(same_for_all({.body = kScale, .grid = 2}), "2 threads");
  EXPECT_EQ(same_for_all({.body = kScale, .grid = 25, .checks = {.global_race = true, .uninit_regs = true}}),
            "3 threads");
  // Scattered stores, of lanes of several pages, and diverged lanes.
  EXPECT_EQ(same_for_all({.body = "mul.lo.u32 %r4, %r2, 40; and.b32 %r4, %r4, 0xfffc; cvt.u64.u32 %rd4, %r4;\n"
                                  "add.u64 %rd4, %rd1, %rd4; setp.lt.u32 %p0, %r0, 21; @%p0 st.global.u32 [%rd4], %r2;",
                          .grid = 6}),
            "3 threads");
}

TEST(LaunchParts, PrintedTextIsInTheOrderOfTheCtas) {
  const char* const kPrint =
      "setp.ne.u32 %p0, %r0, 0; @%p0 ret; mov.u64 %rd4, stack; cvta.local.u64 %rd4, %rd4; st.local.u32 [stack], %r1;\n"
      "mov.u64 %rd5, format; cvta.global.u64 %rd5, %rd5;\n"
      "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd5; st.param.b64 [a], %rd4;\n"
      "call (r), vprintf, (f, a); }";
  EXPECT_EQ(same_for_all({.body = kPrint}), "3 threads");
  EXPECT_EQ(run({.body = kPrint}, 1).seen.reports, "");
  EXPECT_THAT(run({.body = kPrint}, 3).seen.printed, HasSubstr("cta 0\ncta 1\ncta 2\n"));
  // Past the limit, one thread prints up to it and reports it.
  LaunchOptions few;
  few.limits.printed_bytes = 100;
  EXPECT_EQ(same_for_all({.body = kPrint, .options = few}), "one thread: it reaches the limit of printed bytes");
}

TEST(LaunchParts, CopiesOfBytesReadAndWriteThePartsMemory) {
  EXPECT_EQ(same_for_all({.body = "mov.u32 %r4, s; mad.lo.u32 %r4, %r0, 4, %r4;\n"
                                  "cp.async.ca.shared.global [%r4], [%rd2], 4; cp.async.wait_all;\n"
                                  "ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd3], %r5;"}),
            "3 threads");
  EXPECT_EQ(same_for_all({.body = "setp.ne.u32 %p0, %r0, 0; @%p0 ret; mov.u32 %r4, s; st.shared.u32 [s], %r1;\n"
                                  "st.shared.u32 [s+4], %r1; st.shared.u32 [s+8], %r1; st.shared.u32 [s+12], %r1;\n"
                                  "fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group\n"
                                  "[%rd3], [%r4], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"}),
            "3 threads");
}

TEST(LaunchParts, AFaultAcrossCtasIsThatOfOneThread) {
  // Write-write: the last CTA's number stays.
  EXPECT_EQ(same_for_all({.body = "st.global.u32 [%rd1], %r1;"}),
            "one thread: two of its CTAs access 'y' + 0, and one of them writes");
  // The first and the last CTA only, which are in different parts.
  EXPECT_EQ(same_for_all({.body = "and.b32 %r4, %r1, 7; setp.eq.u32 %p0, %r4, 0; @%p0 st.global.u32 [%rd1+60], %r1;"}),
            "one thread: two of its CTAs access 'y' + 60, and one of them writes");
  // Read-write: each CTA reads what the one before it wrote.
  EXPECT_EQ(same_for_all({.body = "ld.global.u32 %r4, [%rd0]; st.global.u32 [%rd3], %r4; add.u32 %r4, %r4, 1;\n"
                                  "st.global.u32 [%rd0], %r4;"}),
            "one thread: two of its CTAs access 'x' + 0, and one of them writes");
  // Write-read in the other direction: an early CTA reads what a later one writes.
  EXPECT_EQ(same_for_all({.body = "ld.global.u32 %r4, [%rd2+1024]; st.global.u32 [%rd2], %r4;"}),
            "one thread: two of its CTAs access 'x' + 1024, and one of them writes");
  for (const bool global_race : {false, true}) {
    const CheckOptions checks{.global_race = global_race};
    EXPECT_THAT(same_for_all({.body = "st.global.u32 [%rd0], %r1;", .checks = checks}), HasSubstr("one thread: "));
    EXPECT_THAT(
        same_for_all({.body = "ld.global.nc.u32 %r4, [%rd2+256]; st.global.u32 [%rd2], %r4;", .checks = checks}),
        HasSubstr("one thread: "));
  }
  // Bytes of one word, by CTAs of different parts: the check of read-only loads has cells of 4 bytes.
  EXPECT_EQ(same_for_all({.body = "cvt.u64.u32 %rd4, %r1; add.u64 %rd4, %rd4, %rd0; ld.global.nc.u8 %h0, [%rd4];\n"
                                  "st.global.u8 [%rd4], %h0;",
                          .grid = 8,
                          .threads = 1}),
            "one thread: two of its CTAs access 'x' + 0, and one of them writes");
}

TEST(LaunchParts, AReportIsThatOfOneThread) {
  EXPECT_EQ(
      same_for_all({.body = "add.u64 %rd4, %rd3, 65000; setp.eq.u32 %p0, %r1, 20; @%p0 st.global.u32 [%rd4], 1;"}),
      "one thread: its CTAs make a report");
  EXPECT_EQ(same_for_all({.body = "st.shared.u32 [s], %r0; ld.shared.u32 %r4, [s]; st.global.u32 [%rd3], %r4;"}),
            "one thread: its CTAs make a report");
  EXPECT_EQ(same_for_all({.body = "ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd2], %r4;"}),
            "one thread: its CTAs make a report")
      << "uninitialized";
  // A suppressed report is counted once.
  Suppressions suppressions;
  suppressions.add("RACE_WR | * | *\nRACE_WW | * | *\nRACE_RW | * | *\nSAME_VALUE | * | *\n", "known.txt");
  LaunchOptions options;
  options.suppressions = &suppressions;
  const Kernel race{.body = "st.shared.u32 [s], %r0; ld.shared.u32 %r4, [s]; st.global.u32 [%rd3], %r4;",
                    .options = options};
  static_cast<void>(run(race, 1));
  const std::int64_t matched = suppressions.matched();
  EXPECT_GT(matched, 0);
  EXPECT_THAT(run(race, 3).jobs, HasSubstr("make a report"));
  EXPECT_EQ(suppressions.matched(), 2 * matched);
}

TEST(LaunchParts, KernelsWhoseCtasCommunicateRunOnOneThread) {
  EXPECT_EQ(same_for_all({.body = "atom.global.add.u32 %r4, [%rd0], 1; st.global.u32 [%rd3], %r4;"}),
            "one thread: its CTAs can see one another: atom.global.add.u32 (k.ptx:10)");
  // Each CTA waits for the one before it.
  EXPECT_THAT(same_for_all({.body = "setp.ne.u32 %p0, %r0, 0; @%p0 ret; setp.eq.u32 %p1, %r1, 0; @%p1 bra GO;\n"
                                    "WAIT: ld.acquire.gpu.global.u32 %r4, [%rd0]; setp.ne.u32 %p2, %r4, %r1;\n"
                                    "@%p2 bra WAIT;\nGO: add.u32 %r5, %r1, 1; st.release.gpu.global.u32 [%rd0], %r5;"}),
              HasSubstr("one thread: its CTAs can see one another: ld.acquire.gpu.global.u32"));
  EXPECT_EQ(same_for_all({.body = "mov.u64 %rd4, %globaltimer; cvt.u32.u64 %r4, %rd4; st.global.u32 [%rd3], %r4;"}),
            "one thread: its CTAs can see one another: %globaltimer");
  EXPECT_EQ(same_for_all({.body = "and.b64 %rd4, %rd3, -128; discard.global.L2 [%rd4], 128;"}),
            "one thread: the module discards bytes");
}

// The host starts no thread if its stack does not fit, and the later ones fail if all stacks together do not.
class Stacks {
 public:
  explicit Stacks(std::size_t bytes) {
    pthread_attr_init(&attributes_);
    pthread_getattr_default_np(&attributes_);
    pthread_attr_getstacksize(&attributes_, &before_);
    set(bytes);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() {
    set(before_);
    pthread_attr_destroy(&attributes_);
  }

 private:
  void set(std::size_t bytes) {
    pthread_attr_setstacksize(&attributes_, bytes);
    EXPECT_EQ(pthread_setattr_default_np(&attributes_), 0);
  }
  pthread_attr_t attributes_;
  std::size_t before_ = 0;
};

TEST(LaunchParts, ThreadsThatTheHostDoesNotStartAreDoneWithout) {
  const Kernel kernel{.body = "st.global.u32 [%rd2], %r2;"};
  const Ran one = run(kernel, 1);
  {
    const Stacks none(std::size_t{1} << 47);  // all addresses of a process
    const Ran alone = run(kernel, 8);
    EXPECT_EQ(alone.jobs, "one thread: the host starts no more threads");
    EXPECT_TRUE(alone.seen == one.seen);
  }
  constexpr std::size_t kStack = std::size_t{1} << 30;
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  ASSERT_TRUE(statm >> pages);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + kStack * 5 / 2;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  Ran some;
  {
    const Stacks two(kStack);
    some = run(kernel, 8);
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(some.jobs, "2 threads");
  EXPECT_TRUE(some.seen == one.seen);
  EXPECT_EQ(run(kernel, 8).jobs, "8 threads");
}

TEST(LaunchParts, LaunchesThatNeedOneThreadTellWhy) {
  EXPECT_EQ(same_for_all({.body = kScale, .grid = 1}), "one thread: it has one CTA");
  EXPECT_EQ(same_for_all({.body = kScale, .grid = 4, .cluster = {4, 1, 1}}), "one thread: it has one cluster");
  EXPECT_EQ(same_for_all({.body = kScale, .options = {.policy = Policy::seeded, .seed = 3}}),
            "one thread: its schedule depends on a seed");
  EXPECT_EQ(same_for_all({.body = kScale, .options = {.cooperative = true}}), "one thread: it is cooperative");
  LaunchOptions few;
  few.limits.instructions = 200;
  EXPECT_EQ(same_for_all({.body = kScale, .options = few}), "one thread: it reaches the limit of instructions");
  Monitor plain;
  EXPECT_EQ(same_for_all({.body = kScale, .also = &plain}),
            "one thread: its events are recorded in the order of one thread");
}

TEST(LaunchParts, ClustersAndSamplesAreDividedWhole) {
  // Each CTA reads a word of the next CTA of its cluster.
  const char* const kPairs =
      "st.shared.u32 [s], %r1; barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r4, s; mov.u32 %r5, "
      "%cluster_ctarank;\n"
      "xor.b32 %r5, %r5, 1; mapa.shared::cluster.u32 %r6, %r4, %r5; ld.shared::cluster.u32 %r7, [%r6];\n"
      "barrier.cluster.arrive; barrier.cluster.wait; st.global.u32 [%rd3], %r7;";
  EXPECT_EQ(same_for_all({.body = kPairs, .threads = 1, .cluster = {2, 1, 1}}), "3 threads");
  LaunchOptions sampled;
  sampled.ctas = "1-4,9,11,last";
  EXPECT_EQ(same_for_all({.body = kScale, .options = sampled}), "3 threads");
  EXPECT_EQ(same_for_all({.body = kPairs, .threads = 1, .options = sampled, .cluster = {2, 1, 1}}), "3 threads");
}

TEST(LaunchParts, AnInterruptionEndsAllThreads) {
  const Interruptible scope([] { return false; });
  EXPECT_THROW(run({.body = "AGAIN: add.u32 %r4, %r4, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra AGAIN;"}, 2), Cancelled);
}

}  // namespace
}  // namespace kvscope::ptx::test::launch_parts_test

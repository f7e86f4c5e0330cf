// Limits of the memory, output and time that a kernel takes, and the one report past each.
#include "gpu/virtual/machine/limits.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <functional>

#include "core/base/errors.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::limits_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Outcome {
  LaunchResult result;
  std::vector<std::string> messages;  // "KIND message"
};

struct Kernel {
  std::string before = {};  // declarations
  std::string body;         // of kernel k, without parameters
  std::int64_t grid = 1;
  std::int64_t threads = 1;
  LaunchOptions options = {};
  std::int64_t device_bytes = kDeviceBytes;
};

Outcome run(const Kernel& kernel) {
  Device device({}, kernel.device_bytes);
  const LoadedModule& module = device.load(parse_module(
      ".version 9.0\n.target sm_90a\n.address_size 64\n" + kernel.before +
          ".visible .entry k() {\n.reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<4>;\n" + kernel.body + "\nret;\n}\n",
      "k.ptx"));
  LaunchConfig config;
  config.kernel = "k";
  config.grid = {kernel.grid, 1, 1};
  config.block = {kernel.threads, 1, 1};
  config.options = kernel.options;
  Outcome outcome{.result = device.launch(module, config), .messages = {}};
  for (const Report& r : outcome.result.reports) {
    outcome.messages.push_back(std::string(name(r.kind)) + " " + r.message);
    if (r.kind == ReportKind::limit) {
      EXPECT_THAT(r.hint, HasSubstr("--max-")) << r.message;
    }
  }
  return outcome;
}

std::string rejection(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(no error)";
}

constexpr const char* kPrintf = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.global .align 1 .b8 text[11] = {48, 49, 50, 51, 52, 53, 54, 55, 56, 10, 0};
.global .align 1 .b8 wide[14] = {37, 50, 48, 48, 48, 48, 48, 48, 48, 48, 48, 100, 10, 0};
)";

std::string print(const std::string& text) {
  return R"(
  mov.u64 %d0, )" +
         text + R"(;
  cvta.global.u64 %d0, %d0;
  mov.u64 %d1, 0;
  { .param .b64 f; .param .b64 v; .param .b32 back;
    st.param.b64 [f], %d0; st.param.b64 [v], %d1;
    call.uni (back), vprintf, (f, v); })";
}

TEST(Limits, OutputOfPrintfEndsTheLaunchAtItsLimit) {
  Kernel kernel{.before = kPrintf, .body = "LOOP:" + print("text") + "\nbra LOOP;"};
  kernel.options.limits.printed_bytes = 25;
  const Outcome outcome = run(kernel);
  EXPECT_EQ(outcome.result.printed, "012345678\n012345678\n");
  EXPECT_THAT(outcome.messages,
              ElementsAre("LIMIT printf: 10 bytes or more of one call; the launch has printed 20 of at most 25 bytes"));
  EXPECT_EQ(outcome.result.status, LaunchStatus::failed);
}

TEST(Limits, AWidthOfTwoBillionIsReportedAndNotPrinted) {
  const Outcome outcome = run({.before = kPrintf, .body = print("wide")});
  EXPECT_THAT(
      outcome.messages,
      ElementsAre("LIMIT printf: '%2000000000d' has a width or precision of 2000000000: at most 4096; the launch "
                  "has printed 0 of at most 16777216 bytes"));
}

constexpr const char* kHeap = R"(
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
)";
constexpr const char* kMalloc = R"(
  { .param .b64 q; .param .b64 back;
    st.param.b64 [q], 16;
    call.uni (back), malloc, (q);
    ld.param.b64 %d1, [back]; })";
constexpr const char* kFree = R"(
  { .param .b64 q;
    st.param.b64 [q], %d1;
    call.uni free, (q); })";

TEST(Limits, MallocReturnsZeroPastTheHeap) {
  Kernel kernel{.before = kHeap, .body = kMalloc, .threads = 5};
  kernel.options.limits.heap_bytes = 64;
  EXPECT_THAT(run(kernel).messages, ElementsAre("LEAK 4 malloc blocks are not freed, 64 bytes"));
}

// The device has no room for the heap: malloc returns 0, and no error leaves the launch.
TEST(Limits, MallocReturnsZeroWhenTheDeviceIsFull) {
  Kernel kernel{.before = kHeap, .body = kMalloc, .threads = 5, .device_bytes = 40};
  EXPECT_THAT(run(kernel).messages, ElementsAre("LEAK 2 malloc blocks are not freed, 32 bytes"));
}

TEST(Limits, ALoopOfMallocAndFreeEndsAtItsLimit) {
  Kernel kernel{.before = kHeap, .body = std::string("LOOP:") + kMalloc + kFree + "\nbra LOOP;"};
  kernel.options.limits.heap_blocks = 1000;
  EXPECT_THAT(run(kernel).messages,
              ElementsAre("LIMIT malloc: 1000 blocks of this launch, freed ones included, are the limit"));
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

// Twice the blocks take twice the time, not four times: with 200,000 blocks a quadratic count of the heap takes minutes.
TEST(Limits, AFloodOfMallocIsLinear) {
  Kernel kernel{.before = kHeap,
                .body = std::string("mov.u32 %r0, 0; LOOP:") + kMalloc +
                        "\nadd.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 200000; @%p0 bra LOOP;"};
  const double before = cpu_seconds();
  EXPECT_THAT(run(kernel).messages, ElementsAre("LEAK 200000 malloc blocks are not freed, 3200000 bytes"));
  EXPECT_LT(cpu_seconds() - before, 20);
}

// Freed memory is given back to the host: 256 MiB in all, 1 MiB at a time.
TEST(Limits, FreedBlocksTakeNoMemory) {
  DeviceMemory memory(std::int64_t{2} << 20);
  for (int i = 0; i < 256; ++i) memory.free(memory.allocate(1 << 20, "block", true, true));
  EXPECT_EQ(memory.heap_bytes(), 0);
  EXPECT_EQ(memory.room(), 2 << 20);
  const Allocation* freed = memory.find(DeviceMemory::kHeapBase + 5);
  ASSERT_NE(freed, nullptr);  // still known by name, for a report of a use after free
  EXPECT_TRUE(freed->freed);
  EXPECT_EQ(freed->size, 1u << 20);
  EXPECT_EQ(memory.at(DeviceMemory::kHeapBase + 5, 1), nullptr);
}

TEST(Limits, LocalMemoryPerThreadIsAFaultOfTheLaunch) {
  // The text's limit of a variable is 2^32 bytes.
  EXPECT_THAT(rejection([] { run({.body = ".local .b8 x[1099511627776]; st.local.u8 [x], 1;"}); }),
              HasSubstr("1099511627776"));
  EXPECT_EQ(rejection([] { run({.body = ".local .b8 x[4294967296]; st.local.u8 [x], 1;"}); }),
            "launch of 'k' rejected: local: 'k' needs 4294967296 bytes of local memory per thread: at most 524288");
}

TEST(Limits, LocalMemoryOfAClusterOrACooperativeGridIsAFaultOfTheLaunch) {
  Kernel kernel{.body = ".local .b8 x[1000]; st.local.u8 [x], 1;", .grid = 10, .threads = 32};
  kernel.options.limits.local_bytes = 40'000;
  EXPECT_THAT(run(kernel).messages, IsEmpty());  // one CTA after the other
  kernel.options.cooperative = true;
  EXPECT_EQ(
      rejection([&] { run(kernel); }),
      "launch of 'k' rejected: local: 10 CTAs start together, with 32256 bytes of local memory each: at most 40000 "
      "in total; a smaller grid or block, or a larger limit: --max-local");
  kernel.options.limits.local_bytes = 322'560;
  EXPECT_THAT(run(kernel).messages, IsEmpty());
}

TEST(Limits, CallsWithinOneAnotherStopAtTheLocalMemoryOfAllThreads) {
  Kernel kernel{.before = R"(
.func deep(.param .b32 n) {
  .reg .b32 %a<2>; .local .b8 x[1000];
  ld.param.u32 %a0, [n];
  st.local.u8 [x], 1;
  { .param .b32 q; st.param.b32 [q], %a0; call.uni deep, (q); }
  ret;
}
)",
                .body = "{ .param .b32 q; st.param.b32 [q], 0; call.uni deep, (q); }",
                .threads = 32};
  kernel.options.limits.local_bytes = 100'000;
  EXPECT_THAT(
      run(kernel).messages,
      // Three levels of 1008 bytes, and 16 bytes of .param variables of the kernel and of four levels, for 32 threads each.
      ElementsAre("LIMIT 'deep' needs 4032 bytes of local memory per thread: the threads that have started hold "
                  "99328 of at most 100000 bytes"));
}

// .param variables have memory for 32 lanes of a warp. 2^22 bytes of a kernel would be 128 MiB for each warp.
TEST(Limits, ParamVariablesCountAsLocalMemory) {
  EXPECT_EQ(rejection([] { run({.body = ".param .b8 y[4194304]; st.param.b8 [y], 1;"}); }),
            "launch of 'k' rejected: local: 'k' needs 4194304 bytes of .param variables per thread: at most 524288");
  Kernel own{.body = ".param .b8 y[1000]; st.param.b8 [y], 1;", .threads = 33};
  own.options.limits.local_bytes = 64'512;  // two warps of 32 * 1008
  EXPECT_THAT(run(own).messages, IsEmpty());
  own.options.limits.local_bytes = 64'511;
  EXPECT_EQ(
      rejection([&] { run(own); }),
      "launch of 'k' rejected: local: 1 CTAs start together, with 64512 bytes of local memory each: at most 64511 "
      "in total; a smaller grid or block, or a larger limit: --max-local");
  // One CTA after the other: the memory of one that has ended is free.
  own.grid = 10;
  own.options.limits.local_bytes = 64'512;
  EXPECT_THAT(run(own).messages, IsEmpty());
}

TEST(Limits, ParametersOfCallsCountAsLocalMemory) {
  const std::string deep = R"(
.func deep(.param .b32 n, .param .align 8 .b8 x[1000]) {
  .reg .b32 %a<2>; .reg .pred %p;
  ld.param.u32 %a0, [n];
  setp.eq.u32 %p, %a0, 0;
  @%p bra END;
  sub.u32 %a0, %a0, 1;
  { .param .b32 m; .param .align 8 .b8 y[1000]; st.param.b32 [m], %a0; call deep, (m, y); }
  END: ret;
}
)";
  const std::string call = "{ .param .b32 m; .param .align 8 .b8 y[1000]; st.param.b32 [m], 40; call deep, (m, y); }\n";
  Kernel kernel{.before = deep, .body = call};
  kernel.options.limits.local_bytes = 200'000;
  // The kernel has 1008 bytes a lane, each level 2016: 32256 and 64512 of 32 lanes.
  EXPECT_THAT(run(kernel).messages,
              ElementsAre("LIMIT 'deep' needs 2016 bytes of parameters and .param variables per thread: the threads "
                          "that have started hold 161280 of at most 200000 bytes"));
  kernel.options.limits.local_bytes = 32'256 + 41 * 64'512 - 1;
  EXPECT_THAT(run(kernel).messages, ElementsAre(StartsWith("LIMIT 'deep' needs 2016 bytes")));
  kernel.options.limits.local_bytes += 1;
  EXPECT_THAT(run(kernel).messages, IsEmpty());
  // The second call uses the memory of the first; the kernel itself has two sets of variables.
  kernel.body = call + call;
  kernel.options.limits.local_bytes = 42 * 64'512;
  EXPECT_THAT(run(kernel).messages, IsEmpty());
  // Of one function.
  const Kernel large{.before = ".func large(.param .align 8 .b8 x[524296]) {\n ret;\n}\n",
                     .body = "{ .param .align 8 .b8 y[524280]; call large, (y); }"};
  EXPECT_THAT(run(large).messages,
              ElementsAre("STACK 'large' needs 524304 bytes of parameters and .param variables per thread: at most "
                          "524288"));
}

TEST(Limits, AllocaCountsAndItsAlignmentCannotOverflow) {
  Kernel kernel{.body = "alloca.u64 %d0, 8;\nalloca.u64 %d0, 1000, 2147483648;"};
  EXPECT_THAT(run(kernel).messages, ElementsAre(StartsWith("STACK alloca of 1000 bytes after")));
  kernel.body = "alloca.u64 %d0, 1000;";
  kernel.options.limits.local_bytes = 999;
  EXPECT_THAT(run(kernel).messages,
              ElementsAre(StartsWith("LIMIT 'alloca' needs 1000 bytes of local memory per thread")));
}

// 2 billion CTAs that all start together would take terabytes.
TEST(Limits, CtasOfACooperativeGridAreAFaultOfTheLaunch) {
  Kernel kernel{.body = "", .grid = 2'000'000'000};
  kernel.options.cooperative = true;
  EXPECT_EQ(rejection([&] { run(kernel); }),
            "launch of 'k' rejected: grid: 2000000000 CTAs of a cooperative launch start together: at most 4224; a "
            "smaller grid, or a larger limit: --max-ctas");
  kernel.options.limits.cooperative_ctas = 100;
  kernel.grid = 100;
  EXPECT_THAT(run(kernel).messages, IsEmpty());
}

TEST(Limits, CopiesThatNothingWaitsForEndTheLaunch) {
  for (const char* commit : {"", "cp.async.commit_group;"}) {
    Kernel kernel{.before = ".global .align 16 .b8 from[16];\n",
                  .body = std::string(".shared .align 16 .b8 s[16]; mov.u64 %d0, from;\nLOOP: "
                                      "cp.async.ca.shared.global [s], [%d0], 16;\n") +
                          commit + " bra LOOP;"};
    kernel.options.limits.copies = 10'000;
    kernel.options.limits.instructions = 1'000'000;
    const Outcome outcome = run(kernel);
    ASSERT_EQ(outcome.messages.size(), 1u) << commit;
    EXPECT_THAT(outcome.messages[0], StartsWith("LIMIT "));
    EXPECT_THAT(outcome.messages[0],
                EndsWith("asynchronous copies and groups of this CTA are in flight: at most 10000"));
  }
}

TEST(Limits, ALimitBelowOneIsAFaultOfTheLaunch) {
  Kernel kernel{.body = ""};
  kernel.options.limits.instructions = -1;
  EXPECT_EQ(rejection([&] { run(kernel); }), "launch of 'k' rejected: limit of instructions: -1: at least 1");
}

TEST(Limits, VariablesAboveTheDevicesMemoryAreNamed) {
  EXPECT_EQ(rejection([] { run({.before = ".global .b8 huge[4000000000];\n", .body = "", .device_bytes = 1 << 20}); }),
            "allocation 'huge' of 4000000000 bytes: 1048576 of the device's 1048576 bytes are left: smaller "
            "arrays, or a larger limit: --max-memory");
}

}  // namespace
}  // namespace kvscope::ptx::limits_test

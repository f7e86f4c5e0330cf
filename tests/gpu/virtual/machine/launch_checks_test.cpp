// Each rule of a launch on both sides of its limit, with the message that contains the value and the allowed range.
#include "gpu/virtual/machine/launch_checks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test::launch_checks_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Module {
  std::string target = "sm_90";
  std::string limits = "";  // after the kernel's head
  std::string body = "";
  std::string params = ".param .u64 p0";
};

std::vector<std::string> faults(const Module& of, const std::function<void(LaunchConfig&)>& change, int machine = 90) {
  const auto program =
      make_program(parse_module(".version 8.6\n.target " + of.target + "\n.address_size 64\n.visible .entry k(" +
                                    of.params + ") " + of.limits + "\n{ .reg .b32 %r<4>;\n" + of.body + "\nret; }\n",
                                "k.ptx"),
                   {.target = machine});
  LaunchConfig config;
  config.kernel = "k";
  config.block = {64, 1, 1};
  config.params.resize(8);
  change(config);
  std::vector<std::string> out;
  for (const Fault& f : launch_faults(*program, config)) out.push_back(f.where + ": " + f.message);
  return out;
}

using Config = LaunchConfig;

TEST(LaunchChecks, ABlockHas1To1024ThreadsAndALimitInEachDirection) {
  EXPECT_THAT(faults({}, [](Config& c) { c.block = {1024, 1, 1}; }), IsEmpty());
  EXPECT_THAT(faults({}, [](Config& c) { c.block = {1, 1, 64}; }), IsEmpty());
  EXPECT_THAT(faults({}, [](Config& c) { c.block = {1, 1024, 1}; }), IsEmpty());
  EXPECT_THAT(faults({}, [](Config& c) { c.block = {1025, 1, 1}; }), ElementsAre("block: x is 1025: 1 to 1024"));
  EXPECT_THAT(faults({},
                     [](Config& c) {
                       c.block = {1, 1025, 65};
                     }),
              ElementsAre("block: y is 1025: 1 to 1024", "block: z is 65: 1 to 64"));
  EXPECT_THAT(faults({},
                     [](Config& c) {
                       c.block = {0, -1, 1};
                     }),
              ElementsAre("block: x is 0: 1 to 1024", "block: y is -1: 1 to 1024"));
  EXPECT_THAT(faults({}, [](Config& c) { c.block = {41, 25, 1}; }), ElementsAre("block: 1025 threads: 1 to 1024"));
}

TEST(LaunchChecks, ABlockIsWhatTheKernelWasCompiledFor) {
  const Module most{.limits = ".maxntid 16, 4, 2"}, exactly{.limits = ".reqntid 16, 4"};
  EXPECT_THAT(faults(most, [](Config& c) { c.block = {128, 1, 1}; }), IsEmpty());  // only the product counts
  EXPECT_THAT(faults(most,
                     [](Config& c) {
                       c.block = {129, 1, 1};
                     }),
              ElementsAre("block: 129 threads: the kernel's .maxntid is 128"));
  EXPECT_THAT(faults(exactly, [](Config& c) { c.block = {16, 4, 1}; }), IsEmpty());
  EXPECT_THAT(faults(exactly,
                     [](Config& c) {
                       c.block = {4, 16, 1};
                     }),
              ElementsAre("block: (4, 16, 1): the kernel's .reqntid is (16, 4, 1)"));
}

TEST(LaunchChecks, AGridHasALimitInEachDirection) {
  EXPECT_THAT(faults({}, [](Config& c) { c.grid = {2147483647, 65535, 65535}; }), IsEmpty());
  EXPECT_THAT(faults({},
                     [](Config& c) {
                       c.grid = {2147483648, 65536, 65536};
                     }),
              ElementsAre("grid: x is 2147483648: 1 to 2147483647", "grid: y is 65536: 1 to 65535",
                          "grid: z is 65536: 1 to 65535"));
  EXPECT_THAT(faults({}, [](Config& c) { c.grid = {1, 0, 1}; }), ElementsAre("grid: y is 0: 1 to 65535"));
}

TEST(LaunchChecks, SharedMemoryBeyond48KiBIsOptedInFor) {
  const Module of{.body = ".shared .b8 s[1000]; mov.u32 %r1, s;"};
  const auto with = [&](std::int64_t dynamic, std::int64_t opt_in, int machine = 90) {
    return faults(
        of,
        [&](Config& c) {
          c.dynamic_shared = dynamic;
          c.options.shared_opt_in = opt_in;
        },
        machine);
  };
  EXPECT_THAT(with(48152, 0), IsEmpty());
  EXPECT_THAT(with(48153, 0),
              ElementsAre("shared: 1000 static + 48153 dynamic bytes = 49153: at most 49152; opt in for up to 232448"));
  EXPECT_THAT(with(48153, 0, 120),
              ElementsAre("shared: 1000 static + 48153 dynamic bytes = 49153: at most 49152; opt in for up to 101376"));
  EXPECT_THAT(with(231448, 232448), IsEmpty());
  EXPECT_THAT(with(99001, 100000),
              ElementsAre("shared: 1000 static + 99001 dynamic bytes = 100001: at most 100000; opt "
                          "in for up to 232448"));
  EXPECT_THAT(with(231449, 232448), ElementsAre("shared: 1000 static + 231449 dynamic bytes = 232449: at most 232448"));
  EXPECT_THAT(with(0, 232449), ElementsAre("shared: opted in for 232449 bytes: at most 232448"));
  EXPECT_THAT(with(0, 101377, 120), ElementsAre("shared: opted in for 101377 bytes: at most 101376"));
  EXPECT_THAT(with(-1, 0), ElementsAre("shared: -1 dynamic bytes: 0 or more"));
}

TEST(LaunchChecks, ParametersAreTheKernelsToTheByte) {
  EXPECT_THAT(faults({}, [](Config& c) { c.params.resize(7); }),
              ElementsAre("params: 7 bytes: the kernel's block has 8"));
  EXPECT_THAT(faults({}, [](Config& c) { c.params.resize(9); }),
              ElementsAre("params: 9 bytes: the kernel's block has 8"));
  EXPECT_THAT(faults({.params = ".param .b8 p[32764]"}, [](Config& c) { c.params.resize(32764); }), IsEmpty());
}

TEST(LaunchChecks, AClusterDividesTheGridAndHasUpTo8Ctas) {
  const auto with = [](std::array<std::int64_t, 3> grid, std::array<std::int64_t, 3> cluster, bool large = false) {
    return faults({}, [&](Config& c) {
      c.grid = grid;
      c.cluster = cluster;
      c.options.non_portable_cluster = large;
    });
  };
  EXPECT_THAT(with({16, 2, 2}, {2, 2, 2}), IsEmpty());
  EXPECT_THAT(with({16, 2, 2}, {0, 0, 0}), IsEmpty());
  // Taken as 1, or as no cluster, they would hide an extent that the program computed wrongly.
  for (const std::array<std::int64_t, 3>& low :
       {std::array<std::int64_t, 3>{-1, 1, 1}, {2, 0, 1}, {2, 1, -3}, {0, 2, 1}, {0, 0, 1}}) {
    EXPECT_THAT(
        with({16, 2, 2}, low),
        ElementsAre(fmt::format("cluster: ({}, {}, {}): each extent is at least 1, or all are 0: the kernel's own",
                                low[0], low[1], low[2])));
  }
  EXPECT_THAT(with({16, 1, 1}, {16, 1, 1}),
              ElementsAre("cluster: (16, 1, 1): at most 8 CTAs, 16 with a non-portable size"));
  EXPECT_THAT(with({16, 3, 1}, {3, 3, 1}), ElementsAre("cluster: 9 CTAs: at most 8, 16 with a non-portable size",
                                                       "cluster: x is 3, which does not divide the grid's 16"));
  EXPECT_THAT(with({16, 1, 1}, {16, 1, 1}, true), IsEmpty());
  EXPECT_THAT(with({34, 1, 1}, {17, 1, 1}, true), ElementsAre("cluster: (17, 1, 1): at most 16 CTAs"));
  EXPECT_THAT(with({4, 3, 5}, {2, 2, 2}), ElementsAre("cluster: y is 2, which does not divide the grid's 3",
                                                      "cluster: z is 2, which does not divide the grid's 5"));
}

TEST(LaunchChecks, AClusterIsWhatTheKernelWasCompiledFor) {
  const Module of{.limits = ".reqnctapercluster 2, 2"}, most{.limits = ".maxclusterrank 4"};
  const auto four = [](Config& c) { c.grid = {4, 4, 1}; };
  EXPECT_THAT(faults(of, four), IsEmpty());
  EXPECT_THAT(faults(of,
                     [](Config& c) {
                       c.grid = {3, 4, 1};
                     }),
              ElementsAre("cluster: x is 2, which does not divide the grid's 3"));
  EXPECT_THAT(faults(of,
                     [&](Config& c) {
                       four(c), c.cluster = {4, 1, 1};
                     }),
              ElementsAre("cluster: (4, 1, 1): the kernel's .reqnctapercluster is (2, 2, 1)"));
  EXPECT_THAT(faults(most,
                     [&](Config& c) {
                       four(c), c.cluster = {4, 2, 1};
                     }),
              ElementsAre("cluster: 8 CTAs: the kernel's .maxclusterrank is 4"));
}

TEST(LaunchChecks, TheMachineCoversTheModulesTarget) {
  const auto none = [](Config&) {};
  EXPECT_THAT(faults({.target = "sm_80"}, none, 90), IsEmpty());
  EXPECT_THAT(faults({.target = "sm_90a"}, none, 90), IsEmpty());
  EXPECT_THAT(faults({.target = "sm_100"}, none, 90),
              ElementsAre("target: the module is for sm_100, the virtual GPU is sm_90: pass --target 100"));
  EXPECT_THAT(faults({.target = "sm_90a"}, none, 100),
              ElementsAre("target: the module is for sm_90a, the virtual GPU is sm_100: pass --target 90"));
  EXPECT_THAT(faults({.target = "sm_100f"}, none, 103), IsEmpty());
  EXPECT_THAT(faults({.target = "sm_100f"}, none, 120),
              ElementsAre("target: the module is for sm_100f, the virtual GPU is sm_120: pass --target 100"));
}

TEST(LaunchChecks, EveryRuleThatIsBrokenIsToldOf) {
  EXPECT_THAT(faults({.target = "sm_100", .limits = ".reqntid 32"},
                     [](Config& c) {
                       c.grid = {0, 1, 1};
                       c.dynamic_shared = 60000;
                       c.params.clear();
                       c.cluster = {3, 3, 1};  // the grid is invalid, so this is not checked
                     }),
              ElementsAre("target: the module is for sm_100, the virtual GPU is sm_90: pass --target 100",
                          "block: (64, 1, 1): the kernel's .reqntid is (32, 1, 1)", "grid: x is 0: 1 to 2147483647",
                          "shared: 0 static + 60000 dynamic bytes = 60000: at most 49152; opt in for up to 232448",
                          "params: 0 bytes: the kernel's block has 8"));
}

}  // namespace
}  // namespace kvscope::ptx::test::launch_checks_test

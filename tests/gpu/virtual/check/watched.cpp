#include "tests/gpu/virtual/check/watched.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <utility>

#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test {

std::string line_of(const Report& report) {
  std::string out(name(report.kind));
  if (report.address.known) {
    const ReportAddress& a = report.address;
    out += fmt::format(" {}+{} {}", a.symbol, a.offset, a.bytes);
  }
  const char* between = ": ";
  for (const ReportParty& p : report.parties) {
    out += fmt::format("{}{} {} {}", between, p.action, p.actor, p.source);
    between = "; ";
  }
  return out;
}

Seen watch(const Watched& kernel) {
  const std::string text =
      ".version 8.6 .target sm_90a .address_size 64 .visible .entry k(.param .u64 p0) { .reg .b16 %h<4>; .reg .b32 "
      "%r<64>; .reg .b64 %rd<32>; .reg .f32 %f<16>; .reg .pred %p<8>; .shared .align 1024 .b8 s[4096]; .shared .align "
      "8 "
      ".b64 m; .shared .align 8 .b64 n[16]; ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; "
      "shr.u32 "
      "%r2, "
      "%r0, 5; shl.b32 %r3, %r0, 2; mov.u32 %r60, s; add.u32 %r3, %r3, %r60; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, "
      "%r1, 0; setp.lt.u32 %p2, %r0, 32; " +
      kernel.body + "\nret; }\n";
  Device device(ProgramOptions{.target = 90});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  const std::uint64_t memory = device.memory().allocate(4096, "x");
  std::vector<std::byte> bytes(4096);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  device.memory().write(memory, bytes);
  LaunchConfig config;
  config.kernel = "k";
  config.grid = {kernel.grid, 1, 1};
  config.block = {kernel.threads, 1, 1};
  config.cluster = kernel.cluster;
  config.options = kernel.launch;
  config.options.limits.instructions = kernel.instructions;
  config.params = pack_params(module, "k", {memory});
  Checks checks(kernel.checks);
  if (kernel.also != nullptr) checks.add(*kernel.also);
  Seen seen;
  seen.result = device.launch(module, config, checks.monitor());
  for (const Report& report : seen.result.reports) seen.races.push_back(line_of(report));
  if (!seen.result.reports.empty()) seen.text = to_text(seen.result.reports.front());
  return seen;
}

std::vector<std::vector<std::string>> watch_each(Watched kernel) {
  std::vector<std::vector<std::string>> runs;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    kernel.launch.policy = seed == 0 ? Policy::late : seed == 1 ? Policy::early : Policy::seeded;
    kernel.launch.seed = seed < 2 ? 0 : seed - 1;
    runs.push_back(watch(kernel).races);
  }
  return runs;
}

std::vector<std::string> watch_all(Watched kernel) {
  std::set<std::string> all;
  for (const std::vector<std::string>& run : watch_each(std::move(kernel))) all.insert(run.begin(), run.end());
  return {all.begin(), all.end()};
}

}  // namespace kvscope::ptx::test

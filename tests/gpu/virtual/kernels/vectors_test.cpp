// K17: every published result of a single instruction, through the whole machine.
#include "tests/gpu/virtual/kernels/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::vectors_test {
namespace {

TEST(K17, EveryInstructionGivesItsPublishedResult) {
  const std::vector<VectorRow>& rows = vector_rows();
  Device device;
  const LoadedModule& module = device.load(parse_module(vector_kernels(rows), "vectors.ptx"));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const VectorRow& row = rows[r];
    ASSERT_LE(row.lanes.size(), 32U);
    std::vector<std::uint64_t> in(32 * 4, 0), out(32, 0x5555555555555555U);
    for (std::size_t lane = 0; lane < row.lanes.size(); ++lane)
      for (std::size_t i = 0; i < row.lanes[lane].in.size(); ++i) in[lane * 4 + i] = row.lanes[lane].in[i];
    const auto upload = [&](const std::vector<std::uint64_t>& words, const char* name) {
      const std::uint64_t at = device.memory().allocate(static_cast<std::int64_t>(words.size() * 8), name);
      device.memory().write(at, std::as_bytes(std::span(words)));
      return at;
    };
    const std::uint64_t from = upload(in, "in"), to = upload(out, "out");

    LaunchConfig config;
    config.kernel = "row_" + std::to_string(r);
    config.block = {static_cast<std::int64_t>(row.lanes.size()), 1, 1};
    config.params = pack_params(module, config.kernel, {from, to});
    const LaunchResult result = device.launch(module, config);
    // Some rows divide by 0: a warning.
    const bool expected = std::all_of(result.reports.begin(), result.reports.end(),
                                      [](const Report& report) { return report.kind == ReportKind::div_by_zero; });
    EXPECT_TRUE(result.status == LaunchStatus::finished && expected) << row.statements << '\n' << reports_text(result);

    const std::vector<std::byte> bytes = device.memory().read(to, 32 * 8);
    for (std::size_t lane = 0; lane < row.lanes.size(); ++lane) {
      std::uint64_t got = 0;
      std::memcpy(&got, bytes.data() + lane * 8, 8);
      EXPECT_EQ(got, row.lanes[lane].out)
          << row.statements << " lane " << lane << std::hex << ": got " << got << ", expected " << row.lanes[lane].out;
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::vectors_test

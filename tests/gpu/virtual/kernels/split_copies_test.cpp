// Under a seed a box is copied row by row: each row moves separately, in any order, and credits its own bytes. K07 to
// K10 and K19 test that the results are equal under seeds; this file tests that the rows really move separately.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/monitor.h"
#include "tests/gpu/virtual/kernels/qk_case.h"

namespace kvscope::ptx::test::split_copies_test {
namespace {

struct Moves final : Monitor {
  std::vector<std::int64_t> copies, moved, credited;  // [bytes]
  std::vector<std::uint64_t> order;                   // numbers of operations as they move
  std::vector<std::uint64_t> places;                  // shared addresses likewise

  void copy_issued(const Exec&, const PendingOp& copy) override { copies.push_back(copy.bytes); }
  void async_moves(Launch&, const Cta&, const AsyncOp& op, std::span<const ByteRange>,
                   std::span<const ByteRange> writes) override {
    ASSERT_EQ(writes.size(), 1u);
    order.push_back(op.number);
    moved.push_back(writes[0].bytes);
    places.push_back(writes[0].address);
  }
  void mbarrier(Launch&, const Cta&, const Exec*, LaneMask, MbarrierEvent event, std::uint64_t, std::int64_t amount,
                Order, Scope) override {
    if (event == MbarrierEvent::complete_tx) credited.push_back(amount);
  }
};

// Two boxes of 64 rows of 128 bytes.
TEST(SplitCopies, UnderASeedEachRowComesByItself) {
  const QkCase data;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("qk.ptx", schedule);
    const QkCase::Launch launch = data.by_tensor_copies(gpu, "qk_tensor");
    Moves moves;
    EXPECT_TRUE(gpu.run(launch.run, &moves).clean());
    EXPECT_EQ(data.differences(gpu, launch), 0);
    const bool seeded = schedule.policy == Policy::seeded;
    EXPECT_EQ(moves.copies, std::vector<std::int64_t>(2, 8192));
    EXPECT_EQ(moves.moved, seeded ? std::vector<std::int64_t>(128, 128) : std::vector<std::int64_t>(2, 8192));
    EXPECT_EQ(moves.credited, moves.moved);
    EXPECT_EQ(std::is_sorted(moves.order.begin(), moves.order.end()), !seeded);
    // Every row once.
    std::vector<std::uint64_t> places = moves.places;
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i) {
      EXPECT_EQ(places[i] - places[i - 1], static_cast<std::uint64_t>(moves.moved[0]));
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::split_copies_test

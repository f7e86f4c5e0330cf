// The tiles of small kernels as the model's events. For a compiled kernel compared with the model see
// tests/gpu/virtual/kernels/paged_tile_test.cpp.
#include "gpu/virtual/debug/tile_trace.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tma/tensor_map_record.h"
#include "core/trace/event_text.h"
#include "gpu/virtual/machine/device.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::tile_trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

struct Schedule {
  Policy policy;
  std::uint64_t seed;
};
std::vector<Schedule> schedules() {
  std::vector<Schedule> out = {{Policy::late, 0}, {Policy::early, 0}};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) out.push_back({Policy::seeded, seed});
  return out;
}

std::vector<std::string> events_of(test::OneKernel kernel, TileTraceOptions options = {}, Schedule schedule = {}) {
  trace::MemoryRecorder recorder;
  TileTrace tiles(recorder, std::move(options));
  kernel.monitor = &tiles;
  kernel.options.policy = schedule.policy;
  kernel.options.seed = schedule.seed;
  const test::Ran ran = test::run(kernel);
  EXPECT_THAT(ran.messages, IsEmpty());
  std::vector<std::string> out;
  for (const trace::Event& event : recorder.events()) out.push_back(trace::to_text(event));
  return out;
}

std::string opened(const std::string& rest) {
  return "tile_opened step=0 seq=0 layer=0 head=0 value=0 " + rest;
}

// Two warps load groups of 1024 bytes into two alternating places, three groups, each issued before the previous one is
// waited for; in the last one, threads from 40 on load zeros.
test::OneKernel ring() {
  std::string body = R"(
  mov.u32 %r1, s;
  shl.b32 %r2, %r0, 4;
  add.u32 %r3, %r1, %r2;
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd3, %rd1, %rd2;
  setp.lt.u32 %p1, %r0, 40;
  selp.u32 %r4, 16, 0, %p1;
)";
  const auto bring = [&](int group) {
    body += "  cp.async.cg.shared.global [%r3+" + std::to_string(group % 2 * 1024) + "], [%rd3+" +
            std::to_string(group * 1024) + "], 16" + (group == 2 ? ", %r4" : "") + ";\n  cp.async.commit_group;\n";
  };
  bring(0);
  for (int group = 0; group < 3; ++group) {
    if (group < 2) bring(group + 1);
    body += "  cp.async.wait_group " + std::string(group < 2 ? "1" : "0") + ";\n  bar.sync 0;\n";
    body += "  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3+" + std::to_string(group % 2 * 1024) + "];\n";
    body += "  bar.sync 0;\n";
  }
  return {.body = body, .in = test::counted(3072), .threads = 64};
}

// A group is a tile, whichever warp runs first: copies by warp, waits, reads by warp. The third tile overwrites the
// bytes of the first, and reads of these bytes belong to it.
TEST(TileTraceOfCpAsync, AGroupIsATileUnderEverySchedule) {
  std::vector<std::string> expected;
  for (int group = 0; group < 3; ++group) {
    const std::string stage = std::to_string(group % 2), left = group < 2 ? "1" : "0";
    expected.push_back(opened("tma=0 first_token=0 rows=0 tokens=0 columns=0 bytes=1024"));
    for (const int warp : {0, 1}) {
      const std::string w = std::to_string(warp);
      const int zeros = group == 2 ? warp * 24 : 0;  // lanes 8 to 31 of the second warp
      expected.push_back("lds_copied copy=" + w + " wave=" + w + " stage=" + stage +
                         " shared=" + std::to_string(512 * warp) + " zero_lanes=" + std::to_string(zeros));
    }
    for (const char* warp : {"0", "1"}) {
      expected.push_back(std::string("wave_waited wave=") + warp + " outstanding=" + (group < 2 ? "2" : "1") +
                         " allowed=" + left);
    }
    for (const char* warp : {"0", "1"}) {
      expected.push_back(std::string("fragment_read read=") + warp + " wave=" + warp +
                         " first_register=0 registers=4 cycles=4 conflicts=0");
    }
  }
  for (const Schedule& schedule : schedules()) {
    EXPECT_THAT(events_of(ring(), {}, schedule), ElementsAreArray(expected)) << "seed " << schedule.seed;
  }
}

TEST(TileTraceOfCpAsync, LanesSayWhereEachChunkCameFromAndWhereEachReadWent) {
  const std::vector<std::string> events = events_of(ring(), {.warp = 1, .lanes = true});
  // Tile 2, copy 1: threads 32 to 63.
  EXPECT_THAT(events, ::testing::Contains("chunk_landed copy=1 row=-1 column=-1 pool=2672 shared=624"));  // thread 39
  EXPECT_THAT(events, ::testing::Contains("chunk_landed copy=1 row=-1 column=-1 pool=-1 shared=640"));    // thread 40
  int reads = 0, lanes = 0;
  for (const std::string& event : events) {
    reads += event.starts_with("fragment_read") ? 1 : 0;
    lanes += event.starts_with("lane_read") ? 1 : 0;
    EXPECT_FALSE(event.starts_with("fragment_read") && event.find("wave=0") != std::string::npos) << event;
  }
  EXPECT_EQ(reads, 3);
  EXPECT_EQ(lanes, 96);
  EXPECT_THAT(events, ::testing::Contains("lane_read read=0 lane=7 shared=624"));
}

// Copies of one lane have consecutive numbers: a wait for the first group does not wait for the second.
TEST(TileTraceOfCpAsync, AWaitIsForTheGroupsThatItNames) {
  const std::vector<std::string> events = events_of({.body = R"(
  mov.u32 %r1, s;
  cp.async.cg.shared.global [%r1], [%rd1], 16;
  cp.async.commit_group;
  cp.async.cg.shared.global [%r1+16], [%rd1+16], 16;
  cp.async.commit_group;
  cp.async.wait_group 1;
  cp.async.wait_group 0;
)",
                                                     .in = test::counted(64),
                                                     .threads = 1});
  const std::string tile = opened("tma=0 first_token=0 rows=0 tokens=0 columns=0 bytes=16");
  EXPECT_THAT(events, ElementsAre(tile, "lds_copied copy=0 wave=0 stage=0 shared=0 zero_lanes=0",
                                  "wave_waited wave=0 outstanding=2 allowed=1", tile,
                                  "lds_copied copy=0 wave=0 stage=1 shared=0 zero_lanes=0",
                                  "wave_waited wave=0 outstanding=1 allowed=0"));
}

TEST(TileTraceOfCpAsync, OfAnotherCtaNothingIsRecorded) {
  test::OneKernel kernel = ring();
  kernel.grid = 2;
  EXPECT_EQ(events_of(kernel, {.cta = 1}), events_of(ring()));
  EXPECT_THAT(events_of(ring(), {.cta = 1}), IsEmpty());
}

// One barrier counts the copies to one place, phase after phase: 512 bytes by a bulk copy, read by one warp. Between
// two phases the threads overwrite the bytes and read them.
test::OneKernel phases() {
  return {.body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  shl.b32 %r3, %r0, 4;
  add.u32 %r3, %r1, %r3;
  mov.u32 %r5, 0;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
PHASE:
  @!%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 512, [%r2];
WAIT:
  and.b32 %r6, %r5, 1;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r6;
  @!%p2 bra AGAIN;
  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3];
  bar.sync 0;
  st.shared.v4.u32 [%r3], {%r10, %r11, %r12, %r13};
  ld.shared.u32 %r10, [%r3];
  fence.proxy.async.shared::cta;
  bar.sync 0;
  add.s64 %rd1, %rd1, 512;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, 3;
  @%p3 bra PHASE;
)",
          .in = test::counted(1536)};
}

TEST(TileTraceOfBarriers, APhaseIsATileAndWhatThreadsStoreIsNone) {
  for (const Schedule& schedule : schedules()) {
    std::vector<std::string> expected;
    for (int phase = 0; phase < 3; ++phase) {
      expected.push_back(opened("tma=1 first_token=0 rows=1 tokens=1 columns=0 bytes=512"));
      expected.emplace_back("barrier_expects phase=0 bytes=512");
      expected.push_back("box_copied copy=0 sub_tile=0 column=0 row=" + std::to_string(512 * phase) +
                         " shared=0 bytes=512 filled=0");
      expected.emplace_back("barrier_completed phase=0");
      expected.emplace_back("fragment_read read=0 wave=0 first_register=0 registers=4 cycles=4 conflicts=0");
    }
    EXPECT_THAT(events_of(phases(), {}, schedule), ElementsAreArray(expected)) << "seed " << schedule.seed;
  }
}

// A tile that is smaller than the previous one in its place: reads of the older tile's bytes belong to the new tile, as
// with the last tile of a sequence. Bytes that a thread has overwritten belong to no tile.
TEST(TileTraceOfBarriers, AShorterTileHasTheBytesOfTheOneBeforeIt) {
  std::string body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  shl.b32 %r3, %r0, 3;
  add.u32 %r3, %r1, %r3;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
)";
  for (int phase = 0; phase < 2; ++phase) {
    const std::string bytes = phase == 0 ? "512" : "256", wait = "WAIT" + std::to_string(phase);
    body += "  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " + bytes + ";\n" +
            "  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], " + bytes +
            ", [%r2];\n" + wait + ": mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], " + std::to_string(phase) +
            ";\n  @!%p2 bra " + wait + ";\n  ld.shared.v2.u32 {%r10, %r11}, [%r3];\n" +
            "  ld.shared.v2.u32 {%r10, %r11}, [%r3+256];\n  bar.sync 0;\n";
  }
  body += "  st.shared.u32 [%r3], %r10;\n  ld.shared.u32 %r10, [%r3];\n";
  TileTraceOptions options;
  options.notes.resize(2);
  options.notes[1].bytes = 512;
  const std::vector<std::string> events = events_of({.body = body, .in = test::counted(512)}, options);
  const std::string read = "fragment_read read=", rest = " registers=2 cycles=2 conflicts=0";
  ASSERT_EQ(events.size(), 12u);
  for (const std::size_t tile : {0u, 6u}) {
    EXPECT_TRUE(events[tile].ends_with(" bytes=512")) << events[tile];
    EXPECT_EQ(events[tile + 4], read + "0 wave=0 first_register=0" + rest);
    EXPECT_EQ(events[tile + 5], read + "1 wave=0 first_register=2" + rest);
  }
}

// Notes apply to the first tile, the second, ...
TEST(TileTraceOfBarriers, NotesGoToTheTilesInOrder) {
  TileTraceOptions options;
  options.notes.resize(2);
  options.notes[0].seq = 7;
  options.notes[1] = {.step = 3, .value = 1, .head = 2, .rows = 2, .columns = 128, .bytes = 1024, .shared = 0x3f0};
  const std::vector<std::string> events = events_of(phases(), options);
  ASSERT_EQ(events.size(), 15u);
  EXPECT_EQ(events[0],
            "tile_opened step=0 seq=7 layer=0 head=0 value=0 tma=1 first_token=0 rows=1 tokens=1 columns=0 bytes=512");
  EXPECT_EQ(
      events[5],
      "tile_opened step=3 seq=0 layer=0 head=2 value=1 tma=1 first_token=0 rows=2 tokens=2 columns=128 bytes=1024");
  EXPECT_EQ(events[7], "box_copied copy=0 sub_tile=0 column=0 row=512 shared=16 bytes=512 filled=0");
  EXPECT_EQ(events[10], opened("tma=1 first_token=0 rows=1 tokens=1 columns=0 bytes=512"));
}

// 512 bytes land in each CTA of a cluster of two: one copy to both, or one copy per CTA.
test::OneKernel cluster_of_two(const std::string& copy) {
  return {.body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  setp.eq.u32 %p1, %r0, 0;
  mov.u32 %r3, %cluster_ctarank;
  setp.eq.and.u32 %p3, %r3, 0, %p1;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u16 %rs1, 3;
)" + copy + R"(
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  shl.b32 %r4, %r0, 4;
  add.u32 %r4, %r1, %r4;
  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r4];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
)",
          .in = test::counted(512),
          .grid = 2,
          .cluster = {2, 1, 1}};
}

// A copy belongs to the tile of each CTA that it writes to, whichever CTA issued it, and to no other.
TEST(TileTraceOfBarriers, ACopyIsInTheTileOfEachCtaThatItReaches) {
  const std::string load = " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
  for (const std::string& copy : {"@%p3" + load + ".multicast::cluster [%r1], [%rd1], 512, [%r2], %rs1;",
                                  "@%p1" + load + " [%r1], [%rd1], 512, [%r2];"}) {
    for (const std::int32_t cta : {0, 1}) {
      EXPECT_THAT(events_of(cluster_of_two(copy), {.cta = cta}),
                  ElementsAre(opened("tma=1 first_token=0 rows=1 tokens=1 columns=0 bytes=512"),
                              "barrier_expects phase=0 bytes=512",
                              "box_copied copy=0 sub_tile=0 column=0 row=0 shared=0 bytes=512 filled=0",
                              "barrier_completed phase=0",
                              "fragment_read read=0 wave=0 first_register=0 registers=4 cycles=4 conflicts=0"))
          << "cta " << cta << ": " << copy;
    }
  }
}

// Four rows by one instruction: one box, whose chunks contain the gathered rows. 32 columns of bf16 are 64 bytes;
// the last row is outside.
TEST(TileTraceOfBarriers, AGatherIsOneBoxOfFourRows) {
  TensorMap map;
  map.data_type = TmaDataType::bf16;
  map.rank = 2;
  map.base = DeviceMemory::kBase + DeviceMemory::kSpacing;  // of `in`, the second array
  map.dims = {32, 16};
  map.strides = {64};
  map.box = {32, 1};
  test::OneKernel kernel{.body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
  @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd2, {0, 3, 9, 5, 16}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
)",
                         .in = test::counted(1024),
                         .third = map_bytes(map, 100),
                         .target = "sm_100a"};
  std::vector<std::string> expected = {opened("tma=1 first_token=0 rows=4 tokens=4 columns=32 bytes=256"),
                                       "tile_map columns=32 heads=1 rows=16 box_columns=32 box_heads=1 box_rows=4",
                                       "tile_shared rows=4 row_bytes=64 swizzle_bits=0 swizzle_base=0 swizzle_shift=0 "
                                       "banks=32 stages=1",
                                       "tile_fragments instruction=0 unread=0 mma_m=0 mma_n=0 mma_k=0 width=0 lanes=32 "
                                       "warps=0 registers=0 steps=0",
                                       "barrier_expects phase=0 bytes=256",
                                       "box_copied copy=0 sub_tile=0 column=0 row=3 shared=0 bytes=256 filled=64"};
  const std::vector<int> rows = {3, 9, 5, -1};
  for (int row = 0; row < 4; ++row) {
    for (int chunk = 0; chunk < 4; ++chunk) {
      const int pool =
          rows[static_cast<std::size_t>(row)] < 0 ? -1 : rows[static_cast<std::size_t>(row)] * 64 + chunk * 16;
      expected.push_back("chunk_landed copy=0 row=" + std::to_string(row) + " column=" + std::to_string(8 * chunk) +
                         " pool=" + std::to_string(pool) + " shared=" + std::to_string(row * 64 + chunk * 16));
    }
  }
  expected.emplace_back("barrier_completed phase=0");
  EXPECT_THAT(events_of(kernel, {.lanes = true}), ElementsAreArray(expected));
  EXPECT_THAT(events_of(kernel, {.lanes = true}, {Policy::seeded, 3}), ElementsAreArray(expected));
}

// 16 keys of 64 bf16, 128B swizzle: two products read the first 32 k-values through a descriptor each. The chunks that a
// descriptor addresses are those that the copy stored for these rows and columns; none of the four warps takes a
// register of it, and only the first is counted.
TEST(TileTraceOfBarriers, WgmmaReadsCoreMatricesThroughADescriptor) {
  TensorMap map;
  map.data_type = TmaDataType::bf16;
  map.rank = 2;
  map.base = DeviceMemory::kBase + DeviceMemory::kSpacing;
  map.dims = {64, 16};
  map.strides = {128};
  map.box = {64, 16};
  map.swizzle = TmaSwizzle::b128;
  std::string body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  @!%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {0, 0}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  setp.ne.u32 %p3, %r0, %r0;
  mov.b32 %r20, 0;
  wgmma.fence.sync.aligned;
)";
  // Start 1024, leading 16, stride 1024, 128B swizzle (matrix_operand.h); 32 bytes are 16 values of k.
  for (const char* descriptor : {"0x4000004000010040", "0x4000004000010042"}) {
    body += std::string("  mov.b64 %rd3, ") + descriptor + R"(;
  wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, {%r20, %r20, %r20, %r20}, %rd3, %p3, 1, 1, 0;
)";
  }
  body += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
  const std::vector<std::string> events = events_of(
      {.body = body, .in = test::counted(2048), .threads = 128, .third = map_bytes(map, 100)}, {.lanes = true});
  std::map<int, std::pair<int, int>> stored;  // shared byte -> row, column
  std::vector<std::string> reads;
  int chunks = 0;
  for (const std::string& event : events) {
    int copy = 0, row = 0, column = 0, pool = 0, shared = 0, read = 0, line = 0, k = 0;
    if (std::sscanf(event.c_str(), "chunk_landed copy=%d row=%d column=%d pool=%d shared=%d", &copy, &row, &column,
                    &pool, &shared) == 5) {
      stored[shared] = {row, column};
    } else if (std::sscanf(event.c_str(), "operand_chunk read=%d line=%d k=%d shared=%d", &read, &line, &k, &shared) ==
               4) {
      EXPECT_EQ(stored.at(shared), std::pair(line, 16 * read + k)) << event;
      ++chunks;
    }
    if (event.starts_with("operand_read") || event.starts_with("tile_fragments")) reads.push_back(event);
    EXPECT_FALSE(event.starts_with("fragment_read")) << event;
  }
  EXPECT_EQ(chunks, 2 * 16 * 2);
  const std::string rest = " leading=16 stride=1024 span=128 mn_major=0 lines=16 depth=16";
  EXPECT_THAT(reads, ElementsAre(::testing::StartsWith("tile_fragments instruction=7 "),
                                 "operand_read read=0 wave=0 operand=1 start=0" + rest,
                                 "operand_read read=1 wave=0 operand=1 start=32" + rest));
}

// 8 rows of ldmatrix.x1 in one bank, then in all: a tile of 1024 bytes, rows 128 and 16 bytes apart.
TEST(TileTraceOfBarriers, ConflictsAreCountedByBanks) {
  const std::vector<std::string> events = events_of({.body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
  @!%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 1024, [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  and.b32 %r3, %r0, 7;
  shl.b32 %r4, %r3, 7;
  add.u32 %r4, %r1, %r4;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r4];
  shl.b32 %r4, %r3, 4;
  add.u32 %r4, %r1, %r4;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r4];
)",
                                                     .in = test::counted(1024)});
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[4], "fragment_read read=0 wave=0 first_register=0 registers=1 cycles=8 conflicts=7");
  EXPECT_EQ(events[5], "fragment_read read=1 wave=0 first_register=1 registers=1 cycles=1 conflicts=0");
}

}  // namespace
}  // namespace kvscope::ptx::tile_trace_test

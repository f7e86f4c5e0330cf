// Random writes and reads of a window against a model that keeps the last write of every byte.
#include "gpu/virtual/check/shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "tests/property.h"

namespace kvscope::ptx::shadow_test {
namespace {

constexpr std::uint64_t kFirst = 0x400;
constexpr std::size_t kChunks = 40;  // not a power of two

int below(int n) {
  return prop::uniform<int>(0, n);
}

using Writes = std::array<std::tuple<ActorKey, Step, std::int32_t>,
                          kChunks * kChunkBytes>;  // step 0: none

// The number of a chunk agrees with its marks, and the marks are the last writes.
void same(Shadow& shadow, const Writes& model, std::size_t chunk) {
  const std::uint64_t address = kFirst + chunk * kChunkBytes;
  const Shadow::Writer writer = shadow.last()[chunk] >> 1;
  const Mark said = shadow.mark_of(writer);
  Writes::value_type found[kChunkBytes] = {};
  const Mark* const alone = shadow.alone(address);
  if (alone != nullptr && alone->bytes != 0) RC_ASSERT(alone->bytes == Shadow::kWholeChunk);
  for (const Mark& mark : shadow.marks(address)) {
    if (!mark.write) continue;
    if (writer == Shadow::kNobody) RC_FAIL("a chunk without a writer has a write");
    if (writer != Shadow::kSeveral) RC_ASSERT(mark.actor == said.actor && mark.step == said.step);
    for (std::size_t i = 0; i < kChunkBytes; ++i) {
      if ((mark.bytes >> i & 1) == 0) continue;
      RC_ASSERT(std::get<1>(found[i]) == 0u);
      found[i] = {mark.actor, mark.step, mark.pc};
    }
  }
  for (std::size_t i = 0; i < kChunkBytes; ++i) RC_ASSERT(found[i] == model[chunk * kChunkBytes + i]);
}

TEST(Shadow, KeepsTheLastWriteOfEveryByte) {
  EXPECT_TRUE(prop::check("last writes", [] {
    Shadow shadow(kFirst, kChunks * kChunkBytes);
    Writes model{};
    Step step = 1;
    const int many = below(8) == 0 ? 3000 : 60;  // more writers than are kept before unused numbers are freed
    for (int n = 0; n < many; ++n) {
      if (below(3) != 0) ++step;
      const std::size_t chunk = static_cast<std::size_t>(below(kChunks));
      const std::uint64_t address = kFirst + chunk * kChunkBytes;
      Mark mark{.actor = static_cast<ActorKey>(below(3) * kLanes), .lanes = 1, .step = step, .pc = n};
      mark.shift = Mark::kEveryLane;
      mark.bytes = below(2) == 0 ? Shadow::kWholeChunk : static_cast<ChunkBytes>(0xff << 4 * below(3) & 0xffff);
      mark.write = below(3) != 0;
      if (!mark.write) {
        shadow.read(address, mark);
        continue;
      }
      std::size_t chunks = 1;
      if (below(3) == 0) {
        mark.actor = kEngines + static_cast<ActorKey>(below(2));
        mark.lanes = 0;
      }
      if (mark.lanes == 0 && below(2) == 0) {
        mark.bytes = Shadow::kWholeChunk;
        chunks = 1 + static_cast<std::size_t>(below(static_cast<int>(kChunks - chunk)));
        shadow.write_chunks(address, chunks, shadow.writer_of(mark, static_cast<std::uint64_t>(n + 1)));
      } else {
        shadow.write(address, mark, static_cast<std::uint64_t>(n + 1));
      }
      for (std::size_t i = 0; i < chunks * kChunkBytes; ++i) {
        if ((mark.bytes >> i % kChunkBytes & 1) != 0) model[chunk * kChunkBytes + i] = {mark.actor, mark.step, mark.pc};
      }
      if (mark.bytes == Shadow::kWholeChunk) RC_ASSERT(shadow.written_at(address) == static_cast<std::uint64_t>(n + 1));
      if (below(4) == 0) same(shadow, model, static_cast<std::size_t>(below(kChunks)));
    }
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) same(shadow, model, chunk);
  }));
}

bool is_same(const Mark& a, const Mark& b) {
  return a.actor == b.actor && a.lanes == b.lanes && a.step == b.step && a.pc == b.pc && a.bytes == b.bytes &&
         a.write == b.write && a.strong == b.strong;
}

// One chunk with many reads by engines and lanes, and writes of some bytes in between: what the index of a long list
// answers, against a search of all marks. An index that is not renewed after marks were removed would return another
// read, or none.
TEST(Shadow, FindsTheReadThatALaterOneReplacesHoweverManyThereAre) {
  EXPECT_TRUE(prop::check("replaced reads", [] {
    Shadow shadow(kFirst, kChunkBytes);
    const int engines = 1 + below(200);
    for (int n = 0; n < 600; ++n) {
      Mark mark{.step = static_cast<Step>(n + 1), .pc = n};
      if (below(4) != 0) {
        mark.actor = kEngines + static_cast<ActorKey>(below(engines));
      } else {
        mark.actor = static_cast<ActorKey>(below(3) * kLanes);
        mark.lanes = LaneMask{1} << below(kLanes);
        mark.shift = Mark::kEveryLane;
        mark.strong = below(3) == 0;
      }
      mark.bytes = below(2) == 0 ? Shadow::kWholeChunk : static_cast<ChunkBytes>(0xff << 4 * below(3) & 0xffff);
      mark.write = below(60) == 0;
      if (mark.write) {
        shadow.write(kFirst, mark, static_cast<std::uint64_t>(n + 1));
        continue;
      }
      const std::span<Mark> all = shadow.marks(kFirst);
      const auto expected = std::find_if(all.begin(), all.end(), [&](const Mark& m) { return m.is_replaced_by(mark); });
      Mark* const found = shadow.replaced_read(kFirst, mark);
      RC_ASSERT(found == (expected == all.end() ? nullptr : &*expected));
      const std::span<Mark> writes = shadow.writes(kFirst);
      for (const Mark& one : all) {
        RC_ASSERT(!one.write ||
                  std::any_of(writes.begin(), writes.end(), [&](const Mark& m) { return is_same(m, one); }));
      }
      if (found != nullptr) {
        *found = mark;
      } else {
        shadow.read(kFirst, mark);
      }
      if (below(30) == 0) {  // some reads have become redundant
        for (Mark& one : shadow.marks(kFirst)) {
          if (!one.write && below(3) == 0) one.bytes = 0;
        }
        shadow.drop_empty(kFirst);
      }
    }
  }));
}

// Reads of other engines are not among the marks that a read is checked against.
TEST(Shadow, OfALongListOnlyTheWritesConcernARead) {
  Shadow shadow(kFirst, kChunkBytes);
  const Mark write{.actor = kEngines, .step = 1, .bytes = Shadow::kWholeChunk, .write = true};
  shadow.write(kFirst, write, 1);
  for (Step i = 1; i <= 1000; ++i) shadow.read(kFirst, {.actor = kEngines + i, .step = 1 + i, .bytes = 0x00ff});
  EXPECT_EQ(shadow.marks(kFirst).size(), 1001u);
  ASSERT_EQ(shadow.writes(kFirst).size(), 1u);
  EXPECT_TRUE(is_same(shadow.writes(kFirst)[0], write));
  const Mark part{.actor = kEngines + 2000, .step = 2000, .bytes = 0xff00, .write = true};
  shadow.write(kFirst, part, 2);
  ASSERT_EQ(shadow.writes(kFirst).size(), 2u);
  EXPECT_EQ(shadow.writes(kFirst)[0].bytes, 0x00ff);
  EXPECT_TRUE(is_same(shadow.writes(kFirst)[1], part));
}

// A random access of a chunk: an engine's whole chunk, or 1 to 8 bytes by a lane or by several.
Mark random_mark(int n, Step step) {
  Mark mark{.actor = static_cast<ActorKey>(below(2) * kLanes), .step = step, .pc = n, .write = below(3) != 0};
  if (below(6) == 0) {
    mark.actor = kEngines + static_cast<ActorKey>(below(2));
    mark.bytes = Shadow::kWholeChunk;
    return mark;
  }
  mark.shift = static_cast<std::uint8_t>(below(4));
  mark.first = static_cast<std::uint8_t>(below(kChunkBytes >> mark.shift) << mark.shift);
  mark.lanes = LaneMask{1} << below(kLanes);
  mark.bytes = static_cast<ChunkBytes>(((1u << (1u << mark.shift)) - 1) << mark.first);
  if (below(4) == 0) {
    mark.lanes |= LaneMask{1} << below(kLanes);
    mark.shift = Mark::kEveryLane;
  }
  return mark;
}

// The lanes of a column, in one call, against a write of each chunk. The call stops at the first chunk where it would overwrite another
// lane's bytes that are not `before` it.
TEST(Shadow, WritesOfAColumnAreTheWritesOfItsChunks) {
  int stopped = 0, complete = 0;
  EXPECT_TRUE(prop::check("columns", [&] {
    Shadow columns(kFirst, kChunks * kChunkBytes), chunks(kFirst, kChunks * kChunkBytes);
    Step step = 1;
    const int many = below(2) == 0 ? 20 : 200;
    for (int n = 0; n < many; ++n) {
      if (below(3) != 0) ++step;
      const auto now = static_cast<std::uint64_t>(n + 1);
      if (below(3) != 0) {
        const Mark mark = random_mark(n, step);
        const std::uint64_t address = kFirst + static_cast<std::uint64_t>(below(kChunks)) * kChunkBytes;
        for (Shadow* shadow : {&columns, &chunks}) {
          if (mark.write) {
            shadow->write(address, mark, now);
          } else {
            shadow->read(address, mark);
          }
        }
        continue;
      }
      const int bytes = 1 << below(4), within = below(static_cast<int>(kChunkBytes) / bytes) * bytes;
      const int first = below(static_cast<int>(kChunks) - kLanes);
      const Mark like{.actor = static_cast<ActorKey>(below(2) * kLanes), .step = step, .pc = n, .write = true};
      const Step before = step - std::min<Step>(step, static_cast<Step>(below(4) * below(30)));
      const auto is_before = [&](const Mark& mark) { return mark.step <= before; };
      std::array<std::int32_t, kLanes> offsets;
      for (int i = 0; i < kLanes; ++i)
        offsets[static_cast<std::size_t>(i)] = (first + i) * static_cast<int>(kChunkBytes) + within;
      LaneMask left = 0;
      for (int i = 0; i < kLanes && left == 0; ++i) {
        const std::uint64_t address = kFirst + static_cast<std::uint64_t>(offsets[static_cast<std::size_t>(i)]);
        Mark mark = like;
        mark.lanes = LaneMask{1} << i;
        mark.first = static_cast<std::uint8_t>(within);
        mark.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(bytes)));
        mark.bytes = static_cast<ChunkBytes>(((1u << bytes) - 1) << within);
        for (const Mark& one : chunks.marks(address)) {
          const bool own = one.actor == mark.actor && one.lanes == mark.lanes;
          if ((one.bytes & mark.bytes) != 0 && !own && !is_before(one)) left = kAllLanes << i;
        }
        if (left == 0) chunks.write(address, mark, now);
      }
      RC_ASSERT(columns.write_lanes(like, bytes, kAllLanes, offsets.data(), is_before) == left);
      (left == 0 ? complete : stopped) += 1;
    }
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      const std::uint64_t address = kFirst + chunk * kChunkBytes;
      const std::span<Mark> a = columns.marks(address), b = chunks.marks(address);
      RC_ASSERT(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        RC_ASSERT(is_same(a[i], b[i]) && a[i].same_places(b[i]) == b[i].same_places(b[i]));
      RC_ASSERT(columns.written_at(address) == chunks.written_at(address));
      const auto a_last = columns.last()[chunk] >> 1, b_last = chunks.last()[chunk] >> 1;
      RC_ASSERT((a_last == Shadow::kSeveral) == (b_last == Shadow::kSeveral));
      if (a_last > Shadow::kSeveral) {
        RC_ASSERT(columns.mark_of(a_last).actor == chunks.mark_of(b_last).actor &&
                  columns.mark_of(a_last).step == chunks.mark_of(b_last).step);
      }
    }
  }));
  EXPECT_GT(stopped, 0);
  EXPECT_GT(complete, 0);
}

// Every write of a chunk is among the past ones, with an extent that has the chunk. Writes that are dropped are ordered before all threads.
TEST(Shadow, ThePastHasEveryWriteThatIsNotOrderedBeforeAllThreads) {
  EXPECT_TRUE(prop::check("past writes", [] {
    Shadow shadow(kFirst, kChunks * kChunkBytes);
    Clock over(2);
    std::array<Step, 2> step{1, 1}, known{0, 0};
    const int many = below(6) == 0 ? 3000 : 80;
    for (int n = 0; n < many; ++n) {
      const auto warp = static_cast<std::size_t>(below(2));
      if (below(3) != 0) ++step[warp];
      if (below(8) == 0) {
        known[warp] = step[warp];
        over.raise_warp(warp * kLanes, step[warp]++);
      }
      const std::size_t chunk = static_cast<std::size_t>(below(kChunks));
      const std::uint64_t address = kFirst + chunk * kChunkBytes;
      Mark mark{.actor = warp * kLanes, .lanes = 1, .step = step[warp], .pc = n, .write = true};
      mark.shift = Mark::kEveryLane;
      mark.bytes = below(2) == 0 ? Shadow::kWholeChunk : ChunkBytes{0xff};
      shadow.write(address, mark, static_cast<std::uint64_t>(n + 1));
      if (shadow.past_is_long() || below(20) == 0) shadow.forget_past(over);
    }
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      for (const Mark& mark : shadow.marks(kFirst + chunk * kChunkBytes)) {
        bool found = mark.step <= known[mark.actor / kLanes];
        for (std::uint64_t i = shadow.past_begin(); i < shadow.past_end(); ++i) {
          const Shadow::Past& one = shadow.past(i);
          found = found || (one.actor == mark.actor && one.step == mark.step && one.low <= chunk && chunk <= one.high);
        }
        RC_ASSERT(found);
      }
    }
    RC_ASSERT(shadow.past_end() - shadow.past_begin() <= static_cast<std::uint64_t>(many));
  }));
}

}  // namespace
}  // namespace kvscope::ptx::shadow_test

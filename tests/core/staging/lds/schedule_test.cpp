// The loops of the kernels, first as lists of steps, then executed: in every tested interleaving, exact and low counts
// read only the right tile; counts that are too high read copies in flight.
#include "core/staging/lds/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/staging/lds/dram_to_lds.h"
#include "tests/core/staging/lds/support.h"
#include "tests/property.h"

namespace kvscope::schedule_test {
namespace {

using test::message_of;
using test::named;
using test::p16;

std::vector<std::string> texts(const std::vector<ScheduleStep>& steps) {
  std::vector<std::string> list;
  for (const ScheduleStep& step : steps) list.push_back(to_text(step));
  return list;
}

TEST(PrefillSchedule, IsThePublishedLoop) {
  EXPECT_THAT(texts(prefill_schedule({.tiles = 2, .masked = {}, .k_count = 4, .v_count = 3})),
              testing::ElementsAre(
                  "tile 0: issue K into stage 0", "tile 0: issue V into stage 0", "tile 0: wait vmcnt(3)",
                  "tile 0: barrier", "tile 0: read K from stage 0", "tile 0: S = Q K^T", "tile 1: issue K into stage 1",
                  "tile 1: issue V into stage 1", "tile 0: softmax", "tile 0: wait vmcnt(7)", "tile 0: barrier",
                  "tile 0: read V from stage 0", "tile 0: rescale, O += P V",  //
                  "tile 1: wait vmcnt(0)", "tile 1: barrier", "tile 1: read K from stage 1", "tile 1: S = Q K^T",
                  "tile 1: softmax", "tile 1: barrier", "tile 1: read V from stage 1", "tile 1: rescale, O += P V"));
}

TEST(PrefillSchedule, PassesOverAWhollyMaskedTileButBringsTheNext) {
  EXPECT_THAT(
      texts(prefill_schedule({.tiles = 2, .masked = {true, true}, .k_count = 4, .v_count = 4})),
      testing::ElementsAre("tile 0: issue K into stage 0", "tile 0: issue V into stage 0", "tile 0: wait vmcnt(4)",
                           "tile 0: barrier", "tile 1: issue K into stage 1", "tile 1: issue V into stage 1",
                           "tile 0: barrier", "tile 1: wait vmcnt(0)", "tile 1: barrier", "tile 1: barrier"));
  EXPECT_TRUE(prefill_schedule({}).empty());
  EXPECT_EQ(message_of<GeometryError>(
                [] { (void)prefill_schedule({.tiles = 3, .masked = {true}, .k_count = -1, .v_count = -2}); }),
            "prefill schedule rejected, 3 faults:\n"
            "  k_count: -1 is negative: give 0 or more\n"
            "  v_count: -2 is negative: give 0 or more\n"
            "  masked: 1 masks for 3 tiles: give one a tile or none");
  EXPECT_THROW((void)prefill_schedule({.tiles = -1}), GeometryError);
}

// The known counters: 8 / 4 before K, up to 12, 12 / 8 before V. For configuration A, whose loads are four copies each.
TEST(PrefillSchedule, HasThePublishedCounters) {
  const auto steps = prefill_schedule({.tiles = 3, .masked = {}, .k_count = 4, .v_count = 4});
  const auto counts = outstanding(steps, 4, 4);
  std::vector<Outstanding> waits;
  std::int64_t peak = 0;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (steps[n].kind == StepKind::wait_vm) waits.push_back(counts[n]);
    peak = std::max(peak, counts[n].after);
  }
  EXPECT_EQ(waits, (std::vector<Outstanding>{{8, 4}, {12, 8}, {8, 4}, {12, 8}, {8, 0}}));
  EXPECT_EQ(peak, 12);

  const auto peak_of = [](std::int64_t k, std::int64_t v) {
    const auto list = outstanding(prefill_schedule({.tiles = 3, .masked = {}, .k_count = k, .v_count = v}), k, v);
    return std::max_element(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.after < b.after; })
        ->after;
  };
  EXPECT_EQ(peak_of(8, 8), 24);  // D
  EXPECT_EQ(peak_of(21, 21), 63);
  EXPECT_EQ(message_of<GeometryError>([&] { (void)peak_of(22, 21); }),
            "schedule: tile 1: issue V into stage 1 leaves 64 copies outstanding, and the counter has 6 bits: copy "
            "smaller tiles");
}

// A wait for more copies than are outstanding lands none and does not raise the counter.
TEST(PrefillSchedule, HasWaitsThatAskForLessThanThereIs) {
  const auto steps = prefill_schedule({.tiles = 1, .masked = {true}, .k_count = 9, .v_count = 9});
  EXPECT_EQ(outstanding(steps, 2, 3)[1], (Outstanding{2, 5}));
  const std::vector<ScheduleStep> wait{{.kind = StepKind::wait_vm, .stage = {}, .count = 9, .note = {}}};
  EXPECT_EQ(outstanding(wait, 2, 3)[0], (Outstanding{0, 0}));
}

TEST(DecodeSchedule, DrainsTheCounterBeforeEveryRead) {
  EXPECT_THAT(texts(decode_schedule({.tiles = 2, .double_buffer_k = true, .v = DecodeV::own_region})),
              testing::ElementsAre(
                  "tile 0: issue K into stage 0", "tile 0: issue V into stage 0",  //
                  "tile 0: wait vmcnt(0)", "tile 0: wait lgkmcnt(0)", "tile 0: barrier", "tile 0: read K from stage 0",
                  "tile 0: S = Q K^T", "tile 0: softmax", "tile 0: P to LDS", "tile 0: wait lgkmcnt(0)",
                  "tile 0: barrier", "tile 0: read V from stage 0", "tile 0: wait lgkmcnt(0)", "tile 0: barrier",
                  "tile 1: issue K into stage 1", "tile 1: issue V into stage 0", "tile 0: rescale", "tile 0: O += P V",
                  "tile 0: wait vmcnt(0)", "tile 0: wait lgkmcnt(0)", "tile 0: barrier",  //
                  "tile 1: wait vmcnt(0)", "tile 1: wait lgkmcnt(0)", "tile 1: barrier", "tile 1: read K from stage 1",
                  "tile 1: S = Q K^T", "tile 1: softmax", "tile 1: P to LDS", "tile 1: wait lgkmcnt(0)",
                  "tile 1: barrier", "tile 1: read V from stage 0", "tile 1: rescale", "tile 1: O += P V",
                  "tile 1: wait vmcnt(0)", "tile 1: wait lgkmcnt(0)", "tile 1: barrier"));
}

TEST(DecodeSchedule, CopiesVOverKWhereTheyShareARegionAndNeverWhereVIsK) {
  const auto shared = texts(decode_schedule({.tiles = 2, .double_buffer_k = false, .v = DecodeV::shared_region}));
  EXPECT_THAT(std::vector<std::string>(shared.begin(), shared.begin() + 16),
              testing::ElementsAre("tile 0: issue K into stage 0", "tile 0: wait vmcnt(0)", "tile 0: wait lgkmcnt(0)",
                                   "tile 0: barrier", "tile 0: read K from stage 0", "tile 0: S = Q K^T",
                                   "tile 0: softmax", "tile 0: P to LDS", "tile 0: wait lgkmcnt(0)", "tile 0: barrier",
                                   "tile 0: issue V into stage 0", "tile 0: wait vmcnt(0)", "tile 0: barrier",
                                   "tile 0: read V from stage 0", "tile 0: wait lgkmcnt(0)", "tile 0: barrier"));
  EXPECT_EQ(shared[16], "tile 1: issue K into stage 0");
  EXPECT_EQ(shared[17], "tile 0: rescale");
  const auto image = texts(decode_schedule({.tiles = 3, .double_buffer_k = true, .v = DecodeV::k_image}));
  for (const std::string& step : image) EXPECT_EQ(step.find("issue V"), std::string::npos);
  EXPECT_EQ(std::count(image.begin(), image.end(), "tile 1: read V from stage 1"), 1);
  EXPECT_TRUE(decode_schedule({}).empty());
  EXPECT_EQ(message_of<GeometryError>([] { (void)decode_schedule({.tiles = -1}); }),
            "decode schedule: -1 tiles: give 0 or more");
}

// --- execution -------------------------------------------------------------------------------------------------------

// Waves of K and V over one image, `tiles` tiles long.
struct Kernel {
  test::TokenCache k_tokens, v_tokens;
  KVBufferConfig k_config, v_config;
  SharedImage image;
  PendingCopies pending;
  std::vector<std::unique_ptr<KVBuffer>> owned;
  ScheduleWaves waves;

  // V's region begins at `v_base` bytes; `slice`: V is read through per-wave buffers.
  Kernel(const KVBufferParams& k, const KVBufferParams& v, std::int64_t tiles, std::int64_t v_base,
         const std::vector<KVBufferParams>& slice = {}, bool copies_v = true)
      : k_tokens(cache(k, tiles)),
        v_tokens(cache(v, tiles)),
        k_config(k),
        v_config(v),
        image(std::max(k_config.constants().region_bytes, v_base + v_config.constants().region_bytes)),
        pending(image, k_config.constants().waves) {
    waves.pending = &pending;
    for (std::int64_t w = 0; w < pending.waves(); ++w) {
      waves.k.push_back(add(k_config, k_tokens, 0, w, k.BN * tiles));
      KVBuffer* copy = add(v_config, v_tokens, v_base, w, v.BN * tiles);
      if (copies_v) waves.v_copy.push_back(copy);
      waves.v_read.push_back(slice.empty() ? copy : add(KVBufferConfig(slice[0]), v_tokens, v_base, w, v.BN * tiles));
    }
  }
  static test::TokenCache cache(const KVBufferParams& p, std::int64_t tiles) {
    return test::cache_for(p, p16, p.BN * std::max<std::int64_t>(tiles, 1));
  }
  KVBuffer* add(const KVBufferConfig& config, const test::TokenCache& tokens, std::int64_t base, std::int64_t wave,
                std::int64_t end) {
    owned.push_back(std::make_unique<KVBuffer>(config, tokens.cache(), SeqIdx{0}, HeadIdx{0}, LdsRegion{&pending, base},
                                               TokIdx{end}, WaveIdx{wave}));
    return owned.back().get();
  }
};

KVBufferParams operand(bool transpose, std::int64_t BN, std::int64_t depth, std::int64_t waves) {
  KVBufferParams p = named(transpose ? "B K" : "B V");
  p.BN = BN;
  p.WN = BN;
  p.depth = depth;
  p.num_threads = waves * 64;
  return p;
}

struct Sizes {
  std::int64_t BN, depth, waves;
};
// Even and uneven splits of sub-tiles over waves: 2 over 2, 8 over 4, 6 over 4, 6 over 4 again with three row groups.
const Sizes kSizes[] = {{32, 64, 2}, {64, 128, 4}, {64, 96, 4}, {96, 64, 4}};

std::vector<std::int64_t> copies_of(const KVBufferConfig& config) {
  std::vector<std::int64_t> list;
  for (std::int64_t w = 0; w < config.constants().waves; ++w) list.push_back(copies_per_load(config, WaveIdx{w}));
  return list;
}

std::vector<ScheduleFault> run(const std::vector<ScheduleStep>& steps, const Kernel& kernel, Landing landing) {
  return run_schedule(steps, kernel.waves, landing, [](std::int64_t n) { return prop::uniform<std::int64_t>(0, n); });
}

TEST(RunSchedule, MeetsOnlyItsOwnTilesWithExactOrLowCounts) {
  EXPECT_TRUE(prop::check("prefill, any masks, any interleaving", [] {
    const Sizes size = kSizes[prop::uniform<std::size_t>(0, 4)];
    const KVBufferParams k = operand(true, size.BN, size.depth, size.waves);
    const KVBufferParams v = operand(false, size.BN, size.depth, size.waves);
    const std::int64_t tiles = prop::in_range<std::int64_t>(1, 9);
    const Kernel kernel(k, v, tiles, KVBufferConfig(k).constants().region_bytes);
    const auto per_wave = copies_of(kernel.k_config);
    const std::int64_t exact = *std::min_element(per_wave.begin(), per_wave.end());
    PrefillPlan plan{.tiles = tiles,
                     .masked = {},
                     .k_count = prop::uniform<std::int64_t>(0, exact + 1),
                     .v_count = prop::uniform<std::int64_t>(0, exact + 1)};
    for (std::int64_t i = 0; i < tiles; ++i) plan.masked.push_back(prop::uniform(0, 3) == 0);
    const Landing landing = prop::one_of(Landing::late, Landing::early, Landing::any);
    const auto faults = run(prefill_schedule(plan), kernel, landing);
    if (!faults.empty()) RC_FAIL(faults[0].message);
  }));
}

TEST(RunSchedule, MeetsCopiesUnderWayWithACountThatIsTooHigh) {
  EXPECT_TRUE(prop::check("prefill, copies as late as they may be", [] {
    const Sizes size = kSizes[prop::uniform<std::size_t>(0, 4)];
    const KVBufferParams k = operand(true, size.BN, size.depth, size.waves);
    const KVBufferParams v = operand(false, size.BN, size.depth, size.waves);
    const std::int64_t tiles = prop::in_range<std::int64_t>(2, 6);
    const Kernel kernel(k, v, tiles, KVBufferConfig(k).constants().region_bytes);
    const auto per_wave = copies_of(kernel.k_config);
    const std::int64_t exact = *std::min_element(per_wave.begin(), per_wave.end());
    const std::int64_t excess = prop::uniform<std::int64_t>(1, exact + 1);
    const bool of_v = prop::any<bool>();
    const auto faults = run(prefill_schedule({.tiles = tiles,
                                              .masked = {},
                                              .k_count = exact + (of_v ? 0 : excess),
                                              .v_count = exact + (of_v ? excess : 0)}),
                            kernel, Landing::late);
    RC_ASSERT(!faults.empty());
    // A count of V that is too high omits the wait for K; one of K omits the wait for V.
    RC_ASSERT(faults[0].message.find(of_v ? "(tile 0: read K from stage 0)" : "(tile 0: read V from stage 0)") !=
              std::string::npos);
  }));
}

// Six sub-tiles over four waves are 4, 4, 2 and 2 copies, and the older rule counts 4 for all: waves 2 and 3 do not
// wait for their part of K. The newer rule counts 0 and waits for all copies.
TEST(RunSchedule, ShowsTheRaceOfTheOlderCountOverAnUnevenSplit) {
  for (const VmCountRule rule : {VmCountRule::seed, VmCountRule::newer}) {
    KVBufferParams k = operand(true, 96, 64, 4), v = operand(false, 96, 64, 4);
    k.vm_rule = v.vm_rule = rule;
    const Kernel kernel(k, v, 3, KVBufferConfig(k).constants().region_bytes);
    EXPECT_THAT(copies_of(kernel.k_config), testing::ElementsAre(4, 4, 2, 2));
    const auto steps = prefill_schedule({.tiles = 3,
                                         .masked = {},
                                         .k_count = kernel.k_config.constants().vm_instrs_per_load,
                                         .v_count = kernel.v_config.constants().vm_instrs_per_load});
    const auto faults = run_schedule(steps, kernel.waves, Landing::late, [](std::int64_t) { return 0; });
    if (rule == VmCountRule::newer) {
      EXPECT_TRUE(faults.empty());
      continue;
    }
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults[0].message,
              "step 4 (tile 0: read K from stage 0), wave 0: wave 0 reads byte 0x0800 before copy 16 of wave 2 has "
              "written it "
              "(K, tile at token 0, stage 0)");
    EXPECT_EQ(faults[0].step, 4U);
    EXPECT_EQ(faults[0].wave, WaveIdx{0});
    for (const Race& race : kernel.pending.races()) EXPECT_GE(race.writer.value, 2);
    // The bytes that were read instead had not been written.
    EXPECT_TRUE(std::any_of(faults.begin(), faults.end(), [](const ScheduleFault& fault) {
      return fault.message.find("bytes that no copy has brought") != std::string::npos;
    }));
  }
}

// 128-byte rows take twice as many instructions as the constant: the only effect is a longer wait.
TEST(RunSchedule, OnlyWaitsLongerWhereRowsAre128Bytes) {
  KVBufferParams k = named("G K"), v = named("G-Vd");
  const Kernel kernel(k, v, 3, KVBufferConfig(k).constants().region_bytes);
  EXPECT_THAT(copies_of(kernel.k_config), testing::Each(2 * kernel.k_config.constants().vm_instrs_per_load));
  const auto steps = prefill_schedule({.tiles = 3, .masked = {}, .k_count = 2, .v_count = 2});
  EXPECT_TRUE(run_schedule(steps, kernel.waves, Landing::late, [](std::int64_t) { return 0; }).empty());
}

TEST(RunSchedule, MeetsOnlyItsOwnTilesInDecode) {
  EXPECT_TRUE(prop::check("decode, every place of V", [] {
    const std::int64_t tiles = prop::in_range<std::int64_t>(1, 6);
    const auto where = prop::one_of(DecodeV::own_region, DecodeV::shared_region, DecodeV::k_image);
    const bool doubled = prop::any<bool>();
    KVBufferParams k = named("F K"), v = named("F-Vd");
    if (where == DecodeV::k_image) v.swizzle = k.swizzle;
    const std::int64_t base = where == DecodeV::own_region ? KVBufferConfig(k).constants().region_bytes : 0;
    // A wave's slice of V has one stage, so V is read from the first stage of a double-buffered K.
    const bool sliced = where != DecodeV::k_image && prop::any<bool>();
    const Kernel kernel(k, v, tiles, base, sliced ? std::vector{named("F-Vw")} : std::vector<KVBufferParams>{},
                        where != DecodeV::k_image);
    const auto steps = decode_schedule({.tiles = tiles, .double_buffer_k = doubled, .v = where});
    const auto faults = run(steps, kernel, prop::one_of(Landing::late, Landing::early, Landing::any));
    if (!faults.empty()) RC_FAIL(faults[0].message);
  }));
}

// Every wait and every barrier that a step depends on is necessary: without it some interleaving has a fault.
TEST(RunSchedule, NeedsTheWaitsAndBarriersBeforeItsReads) {
  const auto broken = [](std::vector<ScheduleStep> steps, std::size_t without, bool decode) {
    const KVBufferParams k = decode ? named("F K") : operand(true, 32, 64, 2);
    const KVBufferParams v = decode ? named("F-Vd") : operand(false, 32, 64, 2);
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(without));
    bool found = false;
    for (const Landing landing : {Landing::late, Landing::early}) {
      // The first wave runs ahead of the others, or the last does.
      for (const bool first : {true, false}) {
        const Kernel kernel(k, v, 3, KVBufferConfig(k).constants().region_bytes);
        const auto faults =
            run_schedule(steps, kernel.waves, landing, [&](std::int64_t n) { return first ? 0 : n - 1; });
        found = found || !faults.empty();
      }
    }
    return found;
  };
  const auto prefill = prefill_schedule({.tiles = 3, .masked = {}, .k_count = 2, .v_count = 2});
  for (std::size_t n = 0; n < prefill.size(); ++n) {
    if (prefill[n].kind != StepKind::wait_vm && prefill[n].kind != StepKind::barrier) continue;
    // The last tile has already waited for all copies and passed a barrier before K, so its second barrier is
    // redundant.
    if (prefill[n].tile == 2 && prefill[n + 1].kind == StepKind::read && prefill[n + 1].operand == KOrV::v) continue;
    EXPECT_TRUE(broken(prefill, n, false)) << "without step " << n << ", " << to_text(prefill[n]);
  }
  const auto decode = decode_schedule({.tiles = 3, .double_buffer_k = false, .v = DecodeV::own_region});
  // Decode drains its counter at a tile's end and again at the start of the next one, and its barrier after P orders P,
  // not the copies. Only the barrier before the next copies is necessary.
  for (std::size_t n = 0; n < decode.size(); ++n) {
    const bool before_issue =
        decode[n].kind == StepKind::barrier && n + 1 < decode.size() && decode[n + 1].kind == StepKind::issue;
    if (before_issue) {
      EXPECT_TRUE(broken(decode, n, true)) << "without step " << n;
    }
  }
}

// K of the same tile in place of V is a fault too: V was not copied over it.
TEST(RunSchedule, KnowsKFromVWhereTheyShareARegion) {
  const Kernel kernel(named("F K"), named("F-Vd"), 1, 0);
  auto steps = decode_schedule({.tiles = 1, .double_buffer_k = false, .v = DecodeV::shared_region});
  std::erase_if(steps,
                [](const ScheduleStep& step) { return step.kind == StepKind::issue && step.operand == KOrV::v; });
  const auto faults = run_schedule(steps, kernel.waves, Landing::late, [](std::int64_t) { return 0; });
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0].message, "step 12 (tile 0: read V from stage 0), wave 0: bytes of copy 0: K, tile at token 0");
}

// Without a wait the result depends on the speed of memory.
TEST(RunSchedule, LandsCopiesOnlyAtWaitsOrAtOnceAsItIsTold) {
  const KVBufferParams k = operand(true, 32, 64, 2), v = operand(false, 32, 64, 2);
  const std::vector<ScheduleStep> steps{{.kind = StepKind::issue, .stage = StageIdx{1}, .note = {}},
                                        {.kind = StepKind::barrier, .stage = {}, .note = {}},
                                        {.kind = StepKind::read, .stage = StageIdx{1}, .note = {}}};
  for (const Landing landing : {Landing::late, Landing::early}) {
    const Kernel kernel(k, v, 1, KVBufferConfig(k).constants().region_bytes);
    const auto faults = run_schedule(steps, kernel.waves, landing, [](std::int64_t) { return 0; });
    EXPECT_EQ(faults.empty(), landing == Landing::early);
  }
}

TEST(RunSchedule, RejectsWavesThatDoNotMatch) {
  const KVBufferParams k = operand(true, 32, 64, 2), v = operand(false, 32, 64, 2);
  Kernel kernel(k, v, 1, KVBufferConfig(k).constants().region_bytes);
  const auto steps = prefill_schedule({.tiles = 1});
  kernel.waves.v_copy.clear();
  EXPECT_EQ(message_of<GeometryError>(
                [&] { (void)run_schedule(steps, kernel.waves, Landing::late, [](std::int64_t) { return 0; }); }),
            "schedule: it copies V, and no buffer does: give v_copy");
  kernel.waves.v_read.pop_back();
  EXPECT_EQ(message_of<GeometryError>(
                [&] { (void)run_schedule(steps, kernel.waves, Landing::late, [](std::int64_t) { return 0; }); }),
            "schedule: 2 waves of K, 0 that copy V and 1 that read it: give one of each a wave");
}

}  // namespace
}  // namespace kvscope::schedule_test

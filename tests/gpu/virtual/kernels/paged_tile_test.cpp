// A tile of a paged cache loaded by a compiled kernel and by the model: the same events, and the same registers.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/pipeline/run_scenario.h"
#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "core/trace/diff.h"
#include "core/trace/event_text.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/debug/tile_trace.h"
#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::paged_tile_test {
namespace {

constexpr std::int64_t kLayers = 2, kHeads = 2, kDim = 128, kPage = 16, kBlocks = 32, kTileRows = 64;
constexpr std::int64_t kRowsPerBlock = 2 * kLayers * kPage;

// Two sequences of 150 and 70 tokens; the second layer, its second head, the longer sequence's third tile, which is
// only partly filled: no index is 0 by chance.
Scenario scenario() {
  Scenario s;
  s.name = "paged tile";
  s.model = {"custom", kLayers, 4, kHeads, kDim, false, 128};
  s.cache.dtype = DType::bf16;
  s.cache.kind = CacheKind::paged;
  s.cache.page_size = kPage;
  s.cache.blocks = kBlocks;
  s.requests.list = {Request{0, 70, 3, {}}, Request{0, 150, 3, {}}};
  s.tile = {.BN = kTileRows, .BK = kDim};
  s.focus = {.layer = 1, .head = 1, .tile = 2, .staging = StagingDetail::lanes};
  return s;
}

class PagedTile {
 public:
  explicit PagedTile(bool value) : value_(value), scenario_(scenario()) {
    trace::Recorder off;
    const EngineRun run = run_engine(scenario_, scenario_.requests.list, off);
    state_ = state_at(scenario_, scenario_.requests.list, focus_step(scenario_, run.report)).cache;
    tile_ = focus_tile(scenario_, state_, value ? KOrV::v : KOrV::k, kTileRows);
    pool_ = bf16_noise(static_cast<std::size_t>((kBlocks + 1) * kRowsPerBlock * kHeads * kDim), 7);
  }

  // The model's events of this tile by TMA.
  [[nodiscard]] std::vector<trace::Event> model() const {
    trace::MemoryRecorder recorder;
    record_staging(scenario_, state_, recorder);
    std::vector<trace::Event> out;
    bool inside = false;
    for (const trace::Event& event : recorder.events()) {
      if (const auto* opened = std::get_if<trace::TileOpened>(&event)) inside = opened->tma && opened->value == value_;
      if (inside) out.push_back(event);
    }
    return out;
  }

  // The kernel's events; its registers are stored in `registers`. `bug` of the kernel with mistakes, otherwise -1.
  std::vector<trace::Event> kernel(const Schedule& schedule, int bug = -1) {
    Gpu gpu("paged_tile.ptx", schedule);
    const std::uint64_t pool = gpu.upload("pool", pool_), table = gpu.upload("table", table_of_tile());
    const std::uint64_t registers = gpu.zeros("registers", 32 * 128 * 4);
    const std::int64_t first_row = ((value_ ? kLayers : 0) + tile_.layer.value) * kPage, row_bytes = kHeads * kDim * 2;
    const auto rows = static_cast<std::uint64_t>(kBlocks * kRowsPerBlock + kPage);
    const TensorMap map =
        tensor_map(TmaDataType::bf16, pool + static_cast<std::uint64_t>(first_row * row_bytes), {kDim, kHeads, rows},
                   {kDim * 2, static_cast<std::uint64_t>(row_bytes)}, {64, 1, kPage}, TmaSwizzle::b128);
    Run run{.kernel = bug >= 0 ? "paged_keys_bug"
                      : value_ ? "paged_values"
                               : "paged_keys",
            .values = {pool, map_bytes(map), table, value(tokens()), value(kRowsPerBlock), value(tile_.head.value),
                       registers},
            .dynamic_shared = kTileRows * kDim * 2};
    if (bug >= 0) run.values.push_back(value(bug));
    trace::MemoryRecorder recorder;
    TileTrace tiles(recorder, {.lanes = true, .notes = {note()}});
    Checks checks;
    checks.add(tiles);
    const LaunchResult result = gpu.run(run, checks.monitor());
    if (bug <= 0) {
      EXPECT_TRUE(result.clean()) << reports_text(result);
    }
    registers_ = gpu.download<std::uint32_t>(registers, 32 * 128);
    return recorder.events();
  }

  // Register `r` of a lane, computed from the pool by the definition of ldmatrix.
  [[nodiscard]] std::uint32_t expected_register(int lane, int r) const {
    const int piece = r / 4, m = r % 4, g = lane / 4, t = lane % 4;
    std::uint32_t word = 0;
    for (int half = 0; half < 2; ++half) {
      const int row = value_ ? 8 * (m % 2) + 2 * t + half : 8 * (m / 2) + g;
      const int column = value_ ? 8 * (m / 2) + g : 8 * (m % 2) + 2 * t + half;
      word |= std::uint32_t{element(piece / 8 * 16 + row, piece % 8 * 16 + column)} << 16 * half;
    }
    return word;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& registers() const { return registers_; }

 private:
  [[nodiscard]] std::int64_t tokens() const { return std::min(kTileRows, tile_.tokens - tile_.first_token.value); }
  // The part of the trace that the kernel's instructions do not contain.
  [[nodiscard]] TileNote note() const {
    return {.step = state_.step.value,
            .seq = state_.batch[static_cast<std::size_t>(tile_.batch_row.value)].value,
            .layer = tile_.layer.value,
            .value = value_ ? 1 : 0,
            .first_token = tile_.first_token.value,
            .rows = kTileRows,
            .tokens = tokens(),
            .bytes = kTileRows * kDim * 2,
            .page_size = kPage,
            .layers = kLayers,
            .kinds = 2};
  }
  [[nodiscard]] std::vector<std::uint32_t> table_of_tile() const {
    const auto row = state_.lookup_table.begin() + tile_.batch_row.value * state_.table_columns;
    const auto first = row + tile_.first_token.value / kPage;
    return {first, row + state_.table_columns};
  }
  // A row of a token without a page is zero.
  [[nodiscard]] std::uint16_t element(int row, int column) const {
    const std::int64_t page = row / kPage;
    if (page * kPage >= tokens()) return 0;
    const std::int64_t block = table_of_tile()[static_cast<std::size_t>(page)];
    const std::int64_t at = block * kRowsPerBlock + ((value_ ? kLayers : 0) + tile_.layer.value) * kPage + row % kPage;
    return pool_[static_cast<std::size_t>((at * kHeads + tile_.head.value) * kDim + column)];
  }

  bool value_;
  Scenario scenario_;
  CacheState state_;
  StagedTile tile_;
  std::vector<std::uint16_t> pool_;
  std::vector<std::uint32_t> registers_;
};

// Geometry, banks and registers are compared too; of tile_fragments only the read: the kernel's instructions do not
// contain which product takes the registers.
std::string first_difference(std::vector<trace::Event> model, std::vector<trace::Event> kernel) {
  for (trace::Event& event : model) {
    if (auto* fragments = std::get_if<trace::TileFragments>(&event)) {
      fragments->mma_m = fragments->mma_n = fragments->mma_k = 0;
    }
  }
  const auto found = trace::first_divergence(model, kernel);
  if (!found) return "none";
  const auto text = [](const std::vector<trace::Event>& side) {
    return side.empty() ? "the end" : trace::to_text(side.front());
  };
  return text(found->left) + " | " + text(found->right);
}

class PagedTileTrace : public ::testing::TestWithParam<bool> {};

// Tile, bytes, every box with its row, every chunk with its byte of the pool, every lane's read: 22 tokens are on two
// pages of four. A different swizzle, table entry or row of ldmatrix on either side would be the first difference.
TEST_P(PagedTileTrace, IsTheModelsUnderEverySchedule) {
  PagedTile tile(GetParam());
  const std::vector<trace::Event> model = tile.model();
  ASSERT_GT(model.size(), 32u * 33u);
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(first_difference(model, tile.kernel(schedule)), "none");
    for (int lane = 0; lane < 32; ++lane) {
      for (int r = 0; r < 128; ++r) {
        ASSERT_EQ(tile.registers()[static_cast<std::size_t>(lane * 128 + r)], tile.expected_register(lane, r))
            << "lane " << lane << " register " << r;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paged, PagedTileTrace, ::testing::Bool(),
                         [](const auto& which) { return std::string(which.param ? "Values" : "Keys"); });

// Mistakes with plausible results, each identified by the first event that it changes.
TEST(PagedTileTraceOf, AMistakeNamesTheFirstEventThatDiffers) {
  using ::testing::AllOf;
  using ::testing::MatchesRegex;
  PagedTile tile(false);
  const std::vector<trace::Event> model = tile.model();
  const auto difference = [&](int bug) { return first_difference(model, tile.kernel(kLate, bug)); };
  EXPECT_EQ(difference(0), "none");
  // The second page is loaded from the first one's block.
  EXPECT_THAT(difference(1), MatchesRegex("tile_page page=9 block=([0-9]+) .* \\| tile_page page=9 block=[0-9]+ .*"));
  // Rows 4 to 7 of a piece are read at the addresses of a four-row swizzle. Bank conflicts are the first difference.
  EXPECT_THAT(difference(2), MatchesRegex("fragment_read read=0 .* cycles=4 conflicts=0 \\| "
                                          "fragment_read read=0 .* cycles=8 conflicts=4"));
  EXPECT_EQ(difference(3), "barrier_expects phase=0 bytes=8192 | barrier_expects phase=0 bytes=6144");
  EXPECT_THAT(difference(4), MatchesRegex("box_copied copy=0 .* shared=0 .* \\| box_copied copy=0 .* shared=8192 .*"));
}

}  // namespace
}  // namespace kvscope::ptx::test::paged_tile_test

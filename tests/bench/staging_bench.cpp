// The steps of a tile after its copies: staging through LDS, counting bank conflicts, solving for a layout, and the
// explanation of one token over the whole chain. The bound of an explanation in docs/BENCHMARKS.md is 5 ms, for each
// small scenario of the gallery, from scratch: the engine runs up to the step, then the chain is explained to the
// register.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/fragment/tile_reads.h"
#include "core/paging/paging_engine.h"
#include "core/pipeline/layer_data.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/smem/access_patterns.h"
#include "core/smem/banks.h"
#include "core/smem/swizzle_solver.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/staging/staged_image.h"

namespace kvscope {
namespace {

namespace fs = std::filesystem;

const fs::path kGallery = fs::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";

// A scenario, and the step in which its longest sequence has its maximum number of tokens.
struct Standing {
  Scenario scenario;
  std::vector<Request> requests;
  FocusState focus;
  StagedTile tile;

  explicit Standing(const Scenario& s) : scenario(s), requests(make_requests(s, kGallery)) {
    trace::Recorder off;
    PagingEngine engine(scenario, requests, off);
    while (engine.step()) {
    }
    focus = state_at(scenario, requests, focus_step(scenario, engine.report()));
    std::size_t longest = 0;
    for (std::size_t b = 0; b < focus.cache.batch.size(); ++b) {
      if (tokens(b) > tokens(longest)) longest = b;
    }
    tile.batch_row = SeqIdx{static_cast<std::int64_t>(longest)};
    tile.tokens = tokens(longest);
  }
  [[nodiscard]] std::int64_t tokens(std::size_t b) const {
    return std::int64_t{focus.cache.cache_lengths[b]} + focus.cache.new_tokens[b];
  }
  // The question is about the last token.
  [[nodiscard]] trace::Question question() const {
    trace::Question question;
    question.seq = focus.cache.batch[static_cast<std::size_t>(tile.batch_row.value)];
    question.token = TokIdx{tile.tokens - 1};
    question.dim = DimIdx{scenario.model.head_size - 1};
    question.step = focus.cache.step;
    return question;
  }
};

Scenario llama() {
  Scenario scenario;
  scenario.name = "staging bench";
  scenario.model = {"llama", 1, 32, 8, 128, false, 128};
  scenario.cache.dtype = DType::bf16;
  scenario.cache.page_size = 64;  // a tile that is staged through LDS must be within one page
  scenario.tile.BN = 64;
  scenario.tile.BK = 128;
  Request request;
  request.prompt_tokens = 200;
  request.generate_tokens = 8;
  scenario.requests.list = {request};
  return scenario;
}

void StageByTma(benchmark::State& state) {
  const Standing at(llama());
  LayerData data = layer_data(at.scenario, at.focus);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(stage_by_tma(at.scenario, at.focus.cache, data.bytes(), at.tile, DimIdx{0}));
  }
}
BENCHMARK(StageByTma);

void StageThroughLds(benchmark::State& state) {
  const Standing at(llama());
  LayerData data = layer_data(at.scenario, at.focus);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(stage_through_lds(at.scenario, at.focus.cache, data.bytes(), at.tile));
  }
}
BENCHMARK(StageThroughLds);

// --- banks -----------------------------------------------------------------------------------------------------------

// 32 lanes on rows 64 B apart: four of eight collide.
void BankReportLdmatrix(benchmark::State& state) {
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 4);
  SharedAccess access{16, {}};
  for (std::int64_t lane = 0; lane < 32; ++lane) access.addresses.emplace_back(lane * 64);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(bank_report(profile, access));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BankReportLdmatrix);

void SolveLayout(benchmark::State& state) {
  const TileRows tile{64, state.range(0)};
  const std::vector<AccessPattern> patterns{ldmatrix_reads(LdmatrixUse::k_as_b, 2, tile),
                                            column_pattern(SharedTarget::nvidia, 16, tile, tile.pitch)};
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(solve_layout(tile, patterns));
}
BENCHMARK(SolveLayout)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);

// --- explain ---------------------------------------------------------------------------------------------------------

// Scenarios small enough for interactive questions: less than a thousand steps.
const std::vector<std::string>& small_scenarios() {
  static const std::vector<std::string> kNames = {
      "first_light", "prefix_sharing", "preemption",    "page_size_fragmentation", "continuous", "parallel_samples",
      "mla",         "quantized_e4m3", "sliding_window"};
  return kNames;
}

void explain_ready(benchmark::State& state, const std::string& name) {
  const Standing at(load_scenario(kGallery / (name + ".json")));
  const trace::Question question = at.question();
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(explain(at.scenario, at.requests, question, at.focus.cache));
  }
}

void explain_from_scratch(benchmark::State& state, const std::string& name) {
  const Standing at(load_scenario(kGallery / (name + ".json")));
  const trace::Question question = at.question();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(explain(at.scenario, at.requests, question));
  state.counters["step"] = static_cast<double>(question.step.value);
}

const bool kRegistered = [] {
  for (const std::string& name : small_scenarios()) {
    benchmark::RegisterBenchmark(("ExplainReady/" + name).c_str(), explain_ready, name)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("ExplainFromScratch/" + name).c_str(), explain_from_scratch, name)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace kvscope

// Small scenarios whose sizes do not divide one another, and the pool's state reconstructed from its events.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/paging/paging_engine.h"
#include "core/scenario/scenario.h"
#include "core/trace/recorder.h"

namespace kvscope::testing_support {

// Three requests with a common prefix of 11 tokens, pages of 4, 3 layers, 2 KV heads of 6 elements.
inline Scenario small_scenario() {
  Scenario scenario;
  scenario.name = "small";
  scenario.model = {"small", 3, 4, 2, 6, false, 6};
  scenario.cache.page_size = 4;
  scenario.cache.blocks = 19;
  scenario.requests.list = {Request{0, 14, 5, {{1, 11}, {2, 3}}}, Request{9000, 13, 3, {{1, 11}, {3, 2}}},
                            Request{9000, 6, 2, {}}};
  scenario.scheduler.max_step_tokens = 9;
  scenario.tile.BN = 8;
  scenario.tile.BK = 8;
  scenario.seed = 5;
  return scenario;
}

inline Scenario quantized_scenario() {
  Scenario scenario = small_scenario();
  scenario.cache.dtype = DType::e4m3;
  scenario.cache.quantization = Quantization{DType::f32, 4};  // 2 granules, the second one half full
  return scenario;
}

inline Scenario mla_scenario() {
  Scenario scenario = small_scenario();
  scenario.model = {"mla", 2, 5, 1, 12, true, 8};
  scenario.attention.scale = 0.25;
  return scenario;
}

inline Scenario continuous_scenario() {
  Scenario scenario = small_scenario();
  scenario.cache.kind = CacheKind::continuous;
  scenario.cache.blocks = 2;
  scenario.cache.max_tokens = 21;
  scenario.cache.prefix_sharing = false;
  return scenario;
}

// (sequence, page) -> block at the end of every step, from block events alone: the lookup table must agree with it. No
// code of the engine or of explain is used.
class TableFromEvents final : public trace::Recorder {
 public:
  using Table = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;
  TableFromEvents() : Recorder(trace::Detail::full) {}
  // During step k, before any request finished: the state that the step's kernels see.
  [[nodiscard]] const Table& at(std::int64_t step) const { return tables_.at(static_cast<std::size_t>(step)); }
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(tables_.size()); }

 private:
  void write(const trace::Event& event) override {
    if (const auto* a = std::get_if<trace::BlockAllocated>(&event))
      now_[{a->seq.value, a->page.value}] = a->block.value;
    if (const auto* s = std::get_if<trace::BlockShared>(&event)) now_[{s->seq.value, s->page.value}] = s->block.value;
    if (const auto* r = std::get_if<trace::BlockReleased>(&event)) now_.erase({r->seq.value, r->page.value});
    if (std::holds_alternative<trace::TokensWritten>(event)) seen_ = now_;
    if (std::holds_alternative<trace::StepEnded>(event)) tables_.push_back(seen_);
  }
  Table now_, seen_;
  std::vector<Table> tables_;
};

}  // namespace kvscope::testing_support

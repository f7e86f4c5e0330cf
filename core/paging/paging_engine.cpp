// The engine's public members: the last step as its kernels saw it, the report, and the invariants recounted.
#include "core/paging/paging_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/base/interruption.h"
#include "core/paging/detail/paging_state.h"
#include "core/paging/lookup_table.h"

namespace kvscope {

PagingEngine::PagingEngine(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder,
                           RunLimits limits)
    : state_(std::make_unique<State>(scenario, requests, recorder, limits)) {}

PagingEngine::~PagingEngine() = default;

bool PagingEngine::step() {
  interruption_point();
  return state_->step();
}

CacheState PagingEngine::state() const {
  const State& s = *state_;
  CacheState out;
  out.step = s.last_step;
  out.page_size = s.paged ? s.block_tokens : 0;
  out.blocks = s.pool.blocks();
  std::vector<LutRow> rows;
  for (const State::BatchRow& row : s.batch) {
    const std::int64_t total = row.cache_length + row.new_tokens;
    out.batch.push_back(SeqIdx(static_cast<std::int64_t>(row.seq)));
    out.cache_lengths.push_back(narrow<std::uint32_t>(row.cache_length, "cache length"));
    out.new_tokens.push_back(narrow<std::uint32_t>(row.new_tokens, "new tokens"));
    out.max_seq_length = std::max(out.max_seq_length, out.new_tokens.back());
    out.max_cache_length = std::max(out.max_cache_length, narrow<std::uint32_t>(total, "context length"));
    rows.push_back(LutRow{s.sequences[row.seq].pages.blocks, total, false});
  }
  if (s.paged) {
    Lut table =
        build_lookup_table(rows, LutLimits{s.pool.blocks(), s.block_tokens, s.scheduler.max_batch}, std::nullopt);
    out.lookup_table = std::move(table.entries);
    out.table_columns = table.columns;
  } else {
    for (const LutRow& row : rows) out.lookup_table.push_back(row.blocks.front());
    out.table_columns = 1;
  }
  return out;
}

std::vector<std::uint64_t> PagingEngine::token_ids(std::int64_t batch_row) const {
  check_index("batch row", batch_row, static_cast<std::int64_t>(state_->batch.size()), "rows are those of state()");
  const State::BatchRow& row = state_->batch[static_cast<std::size_t>(batch_row)];
  return state_->sequences[row.seq].text.token_ids(row.cache_length + row.new_tokens);
}

const RunReport& PagingEngine::report() const {
  return state_->report;
}

std::vector<std::string> PagingEngine::broken_invariants() const {
  const State& s = *state_;
  std::vector<const SequencePages*> holders;
  for (const std::uint32_t r : s.running) holders.push_back(&s.sequences[r].pages);
  std::vector<std::string> broken = s.pool.broken_invariants(holders);
  const auto fail = [&](std::string text) { broken.push_back(std::move(text)); };
  for (const SequencePages* pages : holders) {
    const std::int64_t needed = ceil_div(pages->tokens, s.block_tokens);
    if (static_cast<std::int64_t>(pages->blocks.size()) != needed) {
      fail(fmt::format("sequence {}: {} tokens in {} blocks, expected {}", pages->seq.value, pages->tokens,
                       pages->blocks.size(), needed));
    }
  }
  std::vector<std::uint8_t> seen(s.sequences.size());
  for (const std::uint32_t r : s.running) {
    if (seen[r]++ > 0) fail(fmt::format("sequence {} is running twice", r));
    if (s.sequences[r].prefilling && r != s.running.back()) {
      fail(fmt::format("sequence {} has prompt left, but {} was admitted after it", r, s.running.back()));
    }
  }
  for (const std::uint32_t w : s.waiting) {
    if (seen[w]++ > 0) fail(fmt::format("sequence {} waits and runs, or waits twice", w));
    if (!s.sequences[w].pages.blocks.empty()) fail(fmt::format("sequence {} waits and holds blocks", w));
  }
  if (static_cast<std::int64_t>(s.running.size()) > s.scheduler.max_batch) {
    fail(fmt::format("{} requests run, at most {} may", s.running.size(), s.scheduler.max_batch));
  }
  std::int64_t unforked = 0;
  for (std::size_t n = 0; n < s.arrived; ++n) {
    const auto r = static_cast<std::size_t>(s.order[n]);
    if (!s.sequences[r].unforked || !s.can_ever_fit(*s.sequences[r].request)) continue;
    ++unforked;
    if (seen[r] > 0) fail(fmt::format("sequence {} waits for its parent, and runs or queues", r));
    const std::size_t parent = r - static_cast<std::size_t>(s.sequences[r].request->sample_of);
    if (seen[parent] == 0) fail(fmt::format("sequence {} waits for {}, which neither runs nor waits", r, parent));
  }
  if (unforked != s.unforked) fail(fmt::format("{} samples wait for parents, counted {}", s.unforked, unforked));
  const std::int64_t accounted = s.report.finished + s.report.refused + static_cast<std::int64_t>(s.running.size()) +
                                 static_cast<std::int64_t>(s.waiting.size()) + s.unforked +
                                 static_cast<std::int64_t>(s.order.size() - s.arrived);
  if (accounted != s.report.requests) {
    fail(fmt::format("{} requests accounted for, {} given", accounted, s.report.requests));
  }
  return broken;
}

PoolSnapshot PagingEngine::pool() const {
  return state_->pool.snapshot();
}

}  // namespace kvscope

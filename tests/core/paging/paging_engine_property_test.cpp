// Small random scenarios, every step checked: the invariants are recounted, the state reconstructed from the trace must
// equal the engine's, and at the end the numbers of tokens must balance.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/paging/lookup_table.h"
#include "core/paging/paging_engine.h"
#include "core/paging/run_report.h"
#include "core/scenario/requests.h"
#include "tests/core/cache/trace_fold.h"
#include "tests/property.h"

namespace kvscope::paging_engine_property_test {
namespace {

using testing_support::TraceFold;

struct Case {
  Scenario scenario;
  std::vector<Request> requests;
};

// Pools so small that preemption, eviction and rejection happen in most cases, texts so few that prefixes are shared.
Case make_case() {
  Case c;
  const auto pick = [](std::int64_t low, std::int64_t high) {  // the whole range from the first case on
    return prop::uniform<std::int64_t>(low, high + 1);
  };
  CacheConfig& cache = c.scenario.cache;
  cache.kind = pick(0, 4) == 0 ? CacheKind::continuous : CacheKind::paged;
  cache.page_size = pick(0, 3) == 0 ? pick(1, 2) : pick(3, 5);
  cache.blocks = pick(0, 3) == 0 ? pick(1, 12) : pick(5, 13);
  cache.max_tokens = cache.kind == CacheKind::continuous ? pick(6, 40) : pick(0, 3) == 0 ? pick(6, 40) : 0;
  cache.prefix_sharing = pick(0, 3) != 0;
  c.scenario.scheduler.max_batch = pick(1, 5);
  c.scenario.scheduler.max_step_tokens = pick(1, 12);
  c.scenario.scheduler.base_us = static_cast<double>(pick(0, 20));
  c.scenario.scheduler.per_token_us = 1;
  const std::int64_t count = pick(2, 9);
  for (std::int64_t i = 0; i < count; ++i) {
    Request r;
    r.arrival_us = pick(0, 300);
    r.generate_tokens = pick(0, 2) == 0 ? pick(0, 2) : pick(0, 24);
    if (pick(0, 3) == 0) {
      r.prompt_tokens = pick(1, 20);
    } else {
      for (std::int64_t s = pick(1, 2); s > 0; --s) {
        r.content.push_back({static_cast<std::uint64_t>(pick(0, 4) / 4), pick(0, 4) > 0 ? 8 : pick(1, 9)});
        r.prompt_tokens += r.content.back().length;
      }
    }
    if (cache.kind == CacheKind::paged && pick(0, 2) == 0) r.samples = pick(2, 4);
    c.requests.push_back(r);
  }
  c.requests = expand_samples(c.requests);
  return c;
}

std::int64_t block_tokens(const CacheConfig& cache) {
  return cache.kind == CacheKind::continuous ? cache.max_tokens : cache.page_size;
}

void expect_same_pool(const PagingEngine& engine, const TraceFold& fold) {
  const PoolSnapshot pool = engine.pool();
  for (std::size_t b = 0; b < pool.ref_counts.size(); ++b) {
    const auto it = fold.held.find(static_cast<std::int64_t>(b));
    EXPECT_EQ(pool.ref_counts[b], it == fold.held.end() ? 0 : it->second.holders.size()) << "block " << b;
    EXPECT_EQ(pool.filled[b], it == fold.held.end() ? 0 : it->second.filled) << "block " << b;
    EXPECT_EQ(pool.hashes[b] != PageHash{}, it != fold.held.end() && it->second.findable) << "block " << b;
  }
  for (const auto& [block, what] : fold.held) EXPECT_LT(block, pool.never_used);
}

// The batch as its kernels saw it against the trace: which sequences computed how many tokens, and in which blocks.
void expect_same_batch(const PagingEngine& engine, const TraceFold& fold, const std::vector<trace::Event>& events,
                       std::size_t first_event, const Case& c) {
  struct Row {
    std::int64_t first = 0, count = 0;
  };
  std::vector<std::pair<std::int64_t, Row>> rows;  // in the order of computing
  for (std::size_t i = first_event; i < events.size(); ++i) {
    const auto* e = std::get_if<trace::TokensWritten>(&events[i]);
    if (e == nullptr) continue;
    if (rows.empty() || rows.back().first != e->seq.value) rows.push_back({e->seq.value, {e->first_token.value, 0}});
    rows.back().second.count += e->tokens;
  }
  const CacheState state = engine.state();
  const std::int64_t tokens_a_block = block_tokens(c.scenario.cache);
  const bool paged = c.scenario.cache.kind == CacheKind::paged;
  ASSERT_EQ(state.batch.size(), rows.size());
  EXPECT_EQ(state.page_size, paged ? tokens_a_block : 0);
  std::int64_t most_new = 0, longest = 0;
  for (const auto& [seq, row] : rows) {
    most_new = std::max(most_new, row.count);
    longest = std::max(longest, row.first + row.count);
  }
  const std::int64_t pages = (longest + tokens_a_block - 1) / tokens_a_block;
  EXPECT_EQ(state.table_columns, paged ? (pages + 7) / 8 * 8 + 16 : 1);
  EXPECT_EQ(state.max_seq_length, most_new);
  EXPECT_EQ(state.max_cache_length, longest);
  ASSERT_EQ(state.lookup_table.size(), rows.size() * static_cast<std::size_t>(state.table_columns));
  std::pair<std::int64_t, std::int64_t> admitted_before = {0, 0};
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const auto& [seq, row] = rows[b];
    const TraceFold::Life& life = fold.lives.at(seq);
    EXPECT_EQ(state.batch[b].value, seq);
    EXPECT_EQ(state.cache_lengths[b], row.first);
    EXPECT_EQ(state.new_tokens[b], row.count);
    EXPECT_GT(life.admitted, admitted_before) << "rows are in the order of admission";
    admitted_before = life.admitted;
    const auto& table = life.finished ? life.last_table : life.table;
    for (std::int64_t column = 0; column < state.table_columns; ++column) {
      const auto it = table.find(column);
      const std::int64_t expected = it == table.end() ? state.blocks : it->second;
      EXPECT_EQ(
          state.lookup_table[b * static_cast<std::size_t>(state.table_columns) + static_cast<std::size_t>(column)],
          expected);
    }
    EXPECT_EQ(static_cast<std::int64_t>(engine.token_ids(static_cast<std::int64_t>(b)).size()), row.first + row.count);
  }
}

RunReport run_checked(const Case& c, std::vector<trace::Event>* kept, std::int64_t* left_over = nullptr) {
  trace::MemoryRecorder recorder;
  PagingEngine engine(c.scenario, c.requests, recorder);
  const CacheConfig& cache = c.scenario.cache;
  const bool sharing = cache.kind == CacheKind::paged && cache.prefix_sharing;
  TraceFold fold(c.requests, cache.blocks, block_tokens(cache), sharing, c.scenario.scheduler.max_batch);
  for (std::size_t seen = 0; engine.step(); seen = recorder.events().size()) {
    fold.read(recorder.events());
    EXPECT_EQ(engine.broken_invariants(), std::vector<std::string>{});
    expect_same_pool(engine, fold);
    expect_same_batch(engine, fold, recorder.events(), seen, c);
    RC_ASSERT(engine.report().steps < 5000);  // requests must not preempt each other without end
    RC_ASSERT(!testing::Test::HasFailure());
  }
  const RunReport& r = engine.report();
  std::int64_t stored = 0, prompt = 0, generated = 0, refused = 0;
  const std::int64_t pool_tokens = cache.blocks * cache.page_size;
  const std::int64_t limit = cache.kind == CacheKind::continuous ? cache.max_tokens
                             : cache.max_tokens > 0              ? std::min(cache.max_tokens, pool_tokens)
                                                                 : pool_tokens;
  for (std::size_t i = 0; i < c.requests.size(); ++i) {
    const Request& q = c.requests[i];
    const std::int64_t needs = q.prompt_tokens + (q.generate_tokens > 0 ? q.generate_tokens - 1 : 0);
    const TraceFold::Life& life = fold.lives[static_cast<std::int64_t>(i)];
    EXPECT_EQ(life.refused, needs > limit);
    EXPECT_EQ(life.finished, needs <= limit);
    refused += needs > limit;
    if (needs > limit) continue;
    stored += needs;
    prompt += q.prompt_tokens;
    generated += q.generate_tokens;
  }
  const auto count = static_cast<std::int64_t>(c.requests.size());
  EXPECT_EQ(r.requests, count);
  EXPECT_EQ(r.finished, count - refused);
  EXPECT_EQ(r.refused, refused);
  EXPECT_EQ(r.prompt_tokens, prompt);
  EXPECT_EQ(r.generated_tokens, generated);
  EXPECT_EQ(r.computed_tokens + r.hit_tokens, stored + r.lost_tokens) << "the numbers of tokens balance";
  EXPECT_EQ(r.computed_tokens, fold.computed);
  EXPECT_EQ(r.recomputed_tokens, fold.recomputed);
  EXPECT_EQ(r.hit_tokens, fold.hits);
  EXPECT_EQ(r.forked_tokens, fold.forked_tokens);
  EXPECT_EQ(r.copies, fold.copies);
  EXPECT_EQ(r.lost_tokens, fold.lost);
  EXPECT_EQ(r.evictions, fold.evictions);
  EXPECT_EQ(r.preemptions, fold.preemptions);
  EXPECT_EQ(r.steps, fold.steps);
  EXPECT_EQ(r.curve.size(), static_cast<std::size_t>(r.steps));
  for (const auto& [number, block] : fold.held)
    EXPECT_TRUE(block.holders.empty()) << "block " << number << " is still held";
  if (left_over != nullptr) *left_over += fold.left_over;
  if (kept != nullptr) *kept = recorder.events();
  RC_ASSERT(!testing::Test::HasFailure());
  return r;
}

bool same_event(const trace::Event& a, const trace::Event& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& left) {
        const auto& right = std::get<std::decay_t<decltype(left)>>(b);
        return std::apply(
            [&](const auto&... field) {
              return ((trace::to_i64(left.*(field.member)) == trace::to_i64(right.*(field.member))) && ...);
            },
            left.fields());
      },
      a);
}

TEST(PagingEngineProperty, KeepsEveryInvariantAndItsTraceTellsTheWholeState) {
  std::int64_t steps = 0, preemptions = 0, hits = 0, evictions = 0, refused = 0;
  std::int64_t forked_tokens = 0, copies = 0, left_over = 0;
  EXPECT_TRUE(prop::check("engine == fold of its events", [&] {
    for (int round = 0; round < 20; ++round) {
      const RunReport r = run_checked(make_case(), nullptr, &left_over);
      steps += r.steps;
      preemptions += r.preemptions;
      hits += r.hit_tokens - r.forked_tokens;
      forked_tokens += r.forked_tokens;
      copies += r.copies;
      evictions += r.evictions;
      refused += r.refused;
    }
  }));
  // The random cases must reach the difficult paths.
  EXPECT_GT(steps, 20'000);
  EXPECT_GT(preemptions, 200);
  EXPECT_GT(hits, 5'000);
  EXPECT_GT(evictions, 2'000);
  EXPECT_GT(refused, 500);
  EXPECT_GT(forked_tokens, 5'000);
  EXPECT_GT(copies, 500);
  EXPECT_GT(left_over, 200) << "samples for which the batch had no place";
}

TEST(PagingEngineProperty, GivesTheSameEventsTwiceAndTheSameReportWithOrWithoutARecorder) {
  EXPECT_TRUE(prop::check("two runs are one", [] {
    const Case c = make_case();
    std::vector<trace::Event> first, second;
    const RunReport a = run_checked(c, &first);
    const RunReport b = run_checked(c, &second);
    RC_ASSERT(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i) RC_ASSERT(same_event(first[i], second[i]));
    trace::Recorder off;
    PagingEngine silent(c.scenario, c.requests, off);
    while (silent.step()) {
    }
    RC_ASSERT(json::dump(to_json(silent.report(), true)) == json::dump(to_json(a, true)));
    RC_ASSERT(json::dump(to_json(b, true)) == json::dump(to_json(a, true)));
  }));
}

}  // namespace
}  // namespace kvscope::paging_engine_property_test

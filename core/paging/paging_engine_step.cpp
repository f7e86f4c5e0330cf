// One step of the paging engine, part by part, in the order of paging_engine.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/paging/detail/paging_checks.h"
#include "core/paging/detail/paging_state.h"

namespace kvscope {
namespace {

// Tokens a request stores in its whole life: the last generated one is never an input.
std::int64_t stored_at_end(const Request& r) {
  return r.prompt_tokens + std::max<std::int64_t>(r.generate_tokens - 1, 0);
}

std::int64_t tokens_in_a_block(const CacheConfig& cache) {
  return cache.kind == CacheKind::continuous ? cache.max_tokens : cache.page_size;
}

std::int64_t longest_sequence(const CacheConfig& cache) {
  if (cache.kind == CacheKind::continuous) return cache.max_tokens;
  const std::int64_t pool = checked_mul(cache.blocks, cache.page_size, "tokens of the pool");
  return cache.max_tokens > 0 ? std::min(cache.max_tokens, pool) : pool;
}

}  // namespace

PagingEngine::State::State(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& rec,
                           RunLimits run_limits)
    : limits(run_limits),
      scheduler(scenario.scheduler),
      paged(scenario.cache.kind == CacheKind::paged),
      sharing(paged && scenario.cache.prefix_sharing),
      longest((check_paging_sizes(scenario, requests), longest_sequence(scenario.cache))),
      most_left(ceil_div(scenario.cache.blocks, std::int64_t{100})),
      recorder(rec),
      pool(scenario.cache.blocks, tokens_in_a_block(scenario.cache), rec, limits.blocks),
      order(requests.size()),
      block_tokens(tokens_in_a_block(scenario.cache)) {
  sequences.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    sequences.emplace_back(requests[i], SeqIdx(static_cast<std::int64_t>(i)));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].generate_tokens <= limits.steps || !can_ever_fit(requests[i])) continue;
    throw OverflowError(
        fmt::format("request {} generates {} tokens, one in a step: a run has at most {} steps; shorten "
                    "the request, or raise the limit with --max-steps of kvscope run",
                    i, requests[i].generate_tokens, limits.steps));
  }
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return requests[static_cast<std::size_t>(a)].arrival_us < requests[static_cast<std::size_t>(b)].arrival_us;
  });
  report.paged = paged;
  report.page_size = block_tokens;
  report.blocks = scenario.cache.blocks;
  report.requests = static_cast<std::int64_t>(requests.size());
}

bool PagingEngine::State::can_ever_fit(const Request& r) const {
  return stored_at_end(r) <= longest;
}

bool PagingEngine::State::step() {
  if (running.empty() && waiting.empty() && arrived == order.size()) return false;
  if (report.steps >= limits.steps) {
    throw OverflowError(
        fmt::format("the run has more than {} steps: give fewer or shorter requests, or raise the limit "
                    "with --max-steps of kvscope run",
                    limits.steps));
  }
  for (const std::uint32_t s : done) std::vector<std::uint32_t>().swap(sequences[s].pages.blocks);
  done.clear();
  batch.clear();
  batch_context = 0;
  figures = StepFigures{};
  budget = scheduler.max_step_tokens;
  last_step = StepIdx(report.steps);

  if (running.empty() && waiting.empty()) jump_to_next_arrival();
  recorder.record(trace::StepBegan{last_step, clock_us});
  arrive();
  decode();
  prefill();
  if (figures.preemptions == 0) admit();
  compute();
  end_step();
  return true;
}

// Jumps to the next request that will run. Requests before it that can never run are rejected at that later time, which
// affects no other state.
void PagingEngine::State::jump_to_next_arrival() {
  std::size_t n = arrived;
  while (n + 1 < order.size() && !can_ever_fit(arrival(n))) ++n;
  clock_us = std::max(clock_us, arrival(n).arrival_us);
}

void PagingEngine::State::arrive() {
  for (; arrived < order.size() && arrival(arrived).arrival_us <= clock_us; ++arrived) {
    const Request& r = arrival(arrived);
    const SeqIdx seq(order[arrived]);
    recorder.record(trace::RequestArrived{seq, r.prompt_tokens, r.generate_tokens});
    if (can_ever_fit(r) && r.sample_of > 0) {
      ++unforked;
    } else if (can_ever_fit(r)) {
      waiting.push_back(static_cast<std::uint32_t>(seq.value));
    } else {
      ++report.refused;
      recorder.record(trace::RequestRefused{seq, stored_at_end(r), longest});
    }
  }
}

void PagingEngine::State::decode() {
  for (std::size_t i = 0; i < running.size() && budget > 0; ++i) {
    const std::uint32_t s = running[i];
    Sequence& seq = sequences[s];
    if (seq.prefilling) continue;
    bool kept = true;
    while (kept && !pool.reserve(seq.pages, 1)) kept = make_room_by_preempting(s);
    if (!kept) preempt_most_recent();
    if (!kept) break;  // it was the last one in the list
    seq.scheduled = 1;
    --budget;
  }
}

// Only the most recently admitted request can have prompt left: no request is admitted after one that lacks
// tokens or blocks.
void PagingEngine::State::prefill() {
  if (running.empty() || !sequences[running.back()].prefilling) return;
  Sequence& seq = sequences[running.back()];
  const std::int64_t in_last_page =
      static_cast<std::int64_t>(seq.pages.blocks.size()) * block_tokens - seq.pages.tokens;
  const std::int64_t fits = in_last_page + std::min(pool.available(), ceil_div(budget, block_tokens)) * block_tokens;
  const std::int64_t chunk = std::min({seq.remaining(), budget, fits});
  if (chunk <= 0) return;
  KVSCOPE_ASSERT(pool.reserve(seq.pages, chunk));
  seq.scheduled = chunk;
  budget -= chunk;
}

// False when no request was admitted after `keep`.
bool PagingEngine::State::make_room_by_preempting(std::uint32_t keep) {
  if (running.back() == keep) return false;
  preempt_most_recent();
  return true;
}

void PagingEngine::State::preempt_most_recent() {
  Sequence& seq = sequences[running.back()];
  recorder.record(trace::RequestPreempted{seq.pages.seq, seq.pages.tokens});
  report.lost_tokens += seq.pages.tokens;
  pool.release(seq.pages);
  std::vector<std::uint32_t>().swap(seq.pages.blocks);
  seq.pages.tokens = 0;
  seq.text.forget_hashes();
  KVSCOPE_ASSERT(seq.scheduled == 0);  // requests that need its blocks were admitted, and are served, before it
  seq.prefilling = true;
  waiting.push_front(running.back());
  running.pop_back();
  front_lacks = 0;
  ++figures.preemptions;
}

void PagingEngine::State::admit() {
  while (!waiting.empty() && static_cast<std::int64_t>(running.size()) < scheduler.max_batch && budget > 0) {
    if (!admit_front()) break;
    front_lacks = 0;
  }
}

bool PagingEngine::State::admit_front() {
  const std::int64_t watermark = paged ? std::min(static_cast<std::int64_t>(running.size()), most_left) : 0;
  if (!running.empty() && pool.available() < watermark + std::max<std::int64_t>(front_lacks, 1)) return false;

  const std::uint32_t s = waiting.front();
  Sequence& seq = sequences[s];
  std::int64_t revived = 0;
  const std::int64_t hit_pages = sharing ? find_prefix(seq, revived) : 0;
  const std::int64_t hit_tokens = hit_pages * block_tokens;
  const std::int64_t chunk = std::min(seq.known() - hit_tokens, budget);
  const std::int64_t needed = revived + ceil_div(chunk, block_tokens);
  if (pool.available() < needed + watermark) {
    KVSCOPE_ASSERT(!running.empty());
    front_lacks = needed;
    return false;
  }

  waiting.pop_front();
  running.push_back(s);
  recorder.record(trace::RequestAdmitted{seq.pages.seq, hit_tokens});
  if (sharing) figures.query_tokens += seq.known();
  figures.hit_tokens += hit_tokens;
  for (std::int64_t p = 0; p < hit_pages; ++p) {
    pool.share(seq.pages, pool.find(seq.text.page_hash(PageIdx(p), block_tokens)).block);
  }
  KVSCOPE_ASSERT(pool.reserve(seq.pages, chunk));
  seq.scheduled = chunk;
  budget -= chunk;
  return true;
}

// Counts full pages of the known tokens in the prefix index, from the first on; at least one token stays to compute.
std::int64_t PagingEngine::State::find_prefix(Sequence& seq, std::int64_t& held_by_nobody) {
  const std::int64_t most = (seq.known() - 1) / block_tokens;
  std::int64_t pages = 0;
  for (; pages < most; ++pages) {
    const BlockPool::Found found = pool.find(seq.text.page_hash(PageIdx(pages), block_tokens));
    if (found.block == pool.null_page()) break;
    held_by_nobody += found.cached ? 1 : 0;
  }
  return pages;
}

void PagingEngine::State::compute() {
  std::vector<Parent> parents;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < running.size(); ++i) {
    const std::uint32_t s = running[i];
    Sequence& seq = sequences[s];
    running[kept++] = s;
    if (seq.scheduled == 0) continue;
    const std::int64_t before = seq.pages.tokens;
    const std::int64_t tokens = std::exchange(seq.scheduled, 0);
    const bool decoded = !seq.prefilling;
    pool.write(seq.pages, tokens, decoded);
    (decoded ? figures.decode_tokens : figures.prefill_tokens) += tokens;
    report.recomputed_tokens += std::clamp<std::int64_t>(seq.most_stored - before, 0, tokens);
    seq.most_stored = std::max(seq.most_stored, seq.pages.tokens);
    batch.push_back(BatchRow{s, before, tokens});
    batch_context += seq.pages.tokens;
    if (sharing) {
      for (std::int64_t p = before / block_tokens; p < seq.pages.tokens / block_tokens; ++p) {
        pool.publish(seq.pages, PageIdx(p), seq.text.page_hash(PageIdx(p), block_tokens));
      }
    }
    if (seq.remaining() > 0) continue;
    generate_one(seq);
    if (seq.ended()) {
      --kept;
      done.push_back(s);
    }
    if (s + 1 < sequences.size() && sequences[s + 1].unforked) parents.push_back({s, kept});
  }
  running.resize(kept);
  fork_samples(parents);
  for (const std::uint32_t s : done) finish(sequences[s]);
}

// Generates a token from the logits of the last one.
void PagingEngine::State::generate_one(Sequence& seq) {
  seq.prefilling = false;
  if (seq.generated < seq.request->generate_tokens) ++seq.generated;
}

// Samples that do not fit in the batch go to the front of the queue: all waiting requests arrived after the parent.
void PagingEngine::State::fork_samples(std::span<const Parent> parents) {
  std::vector<std::uint32_t> left_over;
  std::size_t joined = 0;
  for (const Parent& parent : parents) {
    for (std::uint32_t s = parent.seq + 1; s < sequences.size() && sequences[s].unforked; ++s) {
      sequences[s].unforked = false;
      --unforked;
      if (static_cast<std::int64_t>(running.size()) == scheduler.max_batch) {
        left_over.push_back(s);
        continue;
      }
      fork(sequences[parent.seq], sequences[s]);
      if (sequences[s].ended()) {
        done.push_back(s);
      } else {
        running.insert(running.begin() + static_cast<std::ptrdiff_t>(parent.behind + joined++), s);
      }
    }
  }
  waiting.insert(waiting.begin(), left_over.begin(), left_over.end());
  if (!left_over.empty()) front_lacks = 0;
}

void PagingEngine::State::fork(const Sequence& parent, Sequence& sample) {
  const std::int64_t tokens = parent.pages.tokens;
  recorder.record(trace::RequestAdmitted{sample.pages.seq, tokens});
  sample.pages = pool.fork(parent.pages, sample.pages.seq);
  sample.most_stored = tokens;
  generate_one(sample);
  figures.query_tokens += tokens;
  figures.hit_tokens += tokens;
  report.forked_tokens += tokens;
}

void PagingEngine::State::finish(Sequence& seq) {
  recorder.record(trace::RequestFinished{seq.pages.seq, seq.known()});
  pool.release(seq.pages);
  seq.text.forget_hashes();
  ++figures.finished;
  report.prompt_tokens += seq.request->prompt_tokens;
  report.generated_tokens += seq.generated;
}

void PagingEngine::State::end_step() {
  const std::int64_t tokens = figures.prefill_tokens + figures.decode_tokens;
  if (tokens > 0) {
    const double lasts = std::floor(scheduler.base_us + scheduler.per_token_us * static_cast<double>(tokens) +
                                    scheduler.per_context_us * static_cast<double>(batch_context) + 0.5);
    if (!(lasts < 9.2e18)) {
      throw OverflowError(
          fmt::format("a step of {} tokens over {} attended lasts {:.3g} us, which 64 bits cannot count: lower the "
                      "scheduler's costs",
                      tokens, batch_context, lasts));
    }
    clock_us = checked_add(clock_us, static_cast<std::int64_t>(lasts), "simulated time [us]");
  } else {
    KVSCOPE_ASSERT(running.empty() && waiting.empty() && unforked == 0);
  }
  StepFigures& f = figures;
  f.time_us = clock_us;
  f.waiting = static_cast<std::int64_t>(waiting.size()) + unforked;
  f.running = static_cast<std::int64_t>(running.size());
  f.used_blocks = pool.used();
  f.cached_blocks = pool.cached();
  f.free_blocks = pool.free();
  f.slots_filled = pool.slots_filled();
  recorder.record(trace::StepEnded{last_step, f.time_us, f.waiting, f.running, f.used_blocks, f.cached_blocks,
                                   f.free_blocks, f.slots_filled, f.prefill_tokens, f.decode_tokens, f.hit_tokens,
                                   f.query_tokens, f.preemptions, f.finished});
  report.curve.push_back(f);
  ++report.steps;
  report.finished += f.finished;
  report.preemptions += f.preemptions;
  report.duration_us = clock_us;
  report.computed_tokens += tokens;
  report.hit_tokens += f.hit_tokens;
  report.query_tokens += f.query_tokens;
  report.evictions = pool.evictions();
  report.copies = pool.copies();
  report.peak_used_blocks = pool.peak_used();
}

}  // namespace kvscope

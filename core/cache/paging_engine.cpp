#include "core/cache/paging_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/cache/lookup_table.h"
#include "core/cache/page_hash.h"

namespace kvscope {
namespace {

// Tokens a request stores in its whole life: the last generated one is never an input.
std::int64_t stored_at_end(const Request& r) {
  return r.prompt_tokens + std::max<std::int64_t>(r.generate_tokens - 1, 0);
}

// Stands behind its parent or the sample before it, and differs from that only in its place.
bool is_in_place(std::span<const Request> requests, std::size_t i) {
  if (i == 0 || requests[i].sample_of < 1) return false;
  Request before = requests[i];
  --before.sample_of;
  return before == requests[i - 1];
}

void check_sizes(const Scenario& scenario, std::span<const Request> requests) {
  std::vector<Fault> faults;
  const auto at_least = [&](const char* where, std::int64_t value, std::int64_t low) {
    if (value < low) faults.push_back({where, fmt::format("{}; at least {}", value, low)});
  };
  at_least("max_batch", scenario.scheduler.max_batch, 1);
  at_least("max_step_tokens", scenario.scheduler.max_step_tokens, 1);
  at_least("blocks", scenario.cache.blocks, 1);
  at_least("max_tokens", scenario.cache.max_tokens, scenario.cache.kind == CacheKind::continuous ? 1 : 0);
  if (scenario.cache.kind == CacheKind::paged) at_least("page_size", scenario.cache.page_size, 1);
  for (const auto& [where, cost] :
       {std::pair{"base_us", scenario.scheduler.base_us}, std::pair{"per_token_us", scenario.scheduler.per_token_us},
        std::pair{"per_context_us", scenario.scheduler.per_context_us}}) {
    if (!(cost >= 0 && cost <= 1e12)) faults.push_back({where, fmt::format("{} is outside [0, 1e12]", cost)});
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& r = requests[i];
    const auto fault = [&](std::string text) { faults.push_back({fmt::format("request {}", i), std::move(text)}); };
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (r.arrival_us < 0) fault(fmt::format("arrives at {} us; at least 0", r.arrival_us));
    if (r.prompt_tokens < 1 || r.prompt_tokens > kMost) {
      fault(fmt::format("{} prompt tokens, outside [1, {}]", r.prompt_tokens, kMost));
    }
    if (r.generate_tokens < 0 || r.generate_tokens > kMost) {
      fault(fmt::format("{} tokens to generate, outside [0, {}]", r.generate_tokens, kMost));
    }
    std::int64_t spans = 0;
    bool negative = false;
    for (const ContentSpan& span : r.content) {
      negative = negative || span.length < 0;
      spans = negative ? spans : checked_add(spans, span.length, "content");
    }
    if (negative) fault("a content span has a negative length");
    if (r.samples != 1) fault(fmt::format("asks for {} samples; expand_samples() makes requests of them", r.samples));
    if (r.sample_of != 0 && !is_in_place(requests, i)) {
      fault(fmt::format("sample {}, but the request before it is neither the parent nor sample {} of the same prompt",
                        r.sample_of, r.sample_of - 1));
    }
    if (r.sample_of != 0 && scenario.cache.kind == CacheKind::continuous) {
      fault("is a sample, and a continuous cache shares nothing");
    }
    if (!negative && !r.content.empty() && spans != r.prompt_tokens) {
      fault(fmt::format("content spans add up to {} tokens, the prompt has {}", spans, r.prompt_tokens));
    }
  }
  if (!faults.empty()) throw GeometryError("paging engine", std::move(faults));
}

std::int64_t tokens_in_a_block(const CacheConfig& cache) {
  return cache.kind == CacheKind::continuous ? cache.max_tokens : cache.page_size;
}

std::int64_t longest_sequence(const CacheConfig& cache) {
  if (cache.kind == CacheKind::continuous) return cache.max_tokens;
  const std::int64_t pool = checked_mul(cache.blocks, cache.page_size, "tokens of the pool");
  return cache.max_tokens > 0 ? std::min(cache.max_tokens, pool) : pool;
}

// A request's life. Its page list exists only while it runs.
struct Sequence {
  Sequence(const Request& r, SeqIdx seq)
      : request(&r), pages{seq, {}, 0}, text(r, seq, SeqIdx(seq.value - r.sample_of)), unforked(r.sample_of > 0) {}

  const Request* request;
  SequencePages pages;
  SequenceText text;
  std::int64_t generated = 0;
  std::int64_t most_stored = 0;  // [tokens] the furthest it ever got: computing below that is recomputation
  std::int64_t scheduled = 0;    // [tokens] of the step being built
  bool prefilling = true;
  bool unforked = false;  // a sample that waits outside the queue for its parent's prompt

  [[nodiscard]] std::int64_t known() const { return request->prompt_tokens + generated; }
  [[nodiscard]] std::int64_t remaining() const { return known() - pages.tokens; }
  [[nodiscard]] bool ended() const { return !prefilling && generated == request->generate_tokens; }
};

}  // namespace

struct PagingEngine::State {
  State(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& rec);

  bool step();
  [[nodiscard]] bool can_ever_fit(const Request& r) const { return stored_at_end(r) <= longest; }
  [[nodiscard]] const Request& arrival(std::size_t n) const {
    return *sequences[static_cast<std::size_t>(order[n])].request;
  }

  // The five parts of a step.
  void arrive();
  void decode();
  void prefill();
  void admit();
  void compute();

  void jump_to_next_arrival();
  bool admit_front();
  std::int64_t find_prefix(Sequence& seq, std::int64_t& held_by_nobody);
  bool make_room_by_preempting(std::uint32_t keep);
  void preempt_most_recent();
  struct Parent {  // its prompt is stored since this step, and samples wait for that
    std::uint32_t seq;
    std::size_t behind;  // where in `running` they belong
  };
  void fork_samples(std::span<const Parent> parents);
  void fork(const Sequence& parent, Sequence& sample);
  void generate_one(Sequence& seq);
  void finish(Sequence& seq);
  void end_step();

  SchedulerConfig scheduler;
  bool paged;
  bool sharing;
  std::int64_t longest;    // [tokens] a sequence may store
  std::int64_t most_left;  // blocks that admission leaves available at most: one percent of the pool, rounded up
  trace::Recorder& recorder;
  BlockPool pool;

  std::vector<Sequence> sequences;  // [request]
  std::vector<std::int64_t> order;  // requests by arrival, the first of equals first
  std::size_t arrived = 0;          // order[0 .. arrived) have
  std::deque<std::uint32_t> waiting;
  std::int64_t unforked = 0;           // samples that have arrived and wait for their parents
  std::vector<std::uint32_t> running;  // in order of admission
  std::int64_t clock_us = 0;

  std::int64_t budget = 0;       // [tokens] the step has left
  std::int64_t front_lacks = 0;  // blocks the front of the queue needed when it last did not fit; 0: not looked up yet
  StepFigures figures;           // of the step being built

  // The step last run, as its kernels saw it.
  struct BatchRow {
    std::uint32_t seq;
    std::int64_t cache_length, new_tokens;  // [tokens]
  };
  std::vector<BatchRow> batch;
  std::vector<std::uint32_t> done;  // finished in it: their page lists are kept until the next step begins
  StepIdx last_step;

  std::int64_t batch_context = 0;  // [tokens] attended in the step
  std::int64_t block_tokens;
  RunReport report;
};

PagingEngine::State::State(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& rec)
    : scheduler(scenario.scheduler),
      paged(scenario.cache.kind == CacheKind::paged),
      sharing(paged && scenario.cache.prefix_sharing),
      longest((check_sizes(scenario, requests), longest_sequence(scenario.cache))),
      most_left(ceil_div(scenario.cache.blocks, std::int64_t{100})),
      recorder(rec),
      pool(scenario.cache.blocks, tokens_in_a_block(scenario.cache), rec),
      order(requests.size()),
      block_tokens(tokens_in_a_block(scenario.cache)) {
  sequences.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    sequences.emplace_back(requests[i], SeqIdx(static_cast<std::int64_t>(i)));
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

// --- one step ---------------------------------------------------------------------------------------------------

bool PagingEngine::State::step() {
  if (running.empty() && waiting.empty() && arrived == order.size()) return false;
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

// To the next one that will run; those refused on the way are refused late, which nobody can tell.
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
    if (!kept) break;  // it was the last of the list
    seq.scheduled = 1;
    --budget;
  }
}

// Only the most recently admitted request can have prompt left: nobody is admitted behind one that lacks
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

// False when nobody was admitted after `keep`.
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
  KVSCOPE_ASSERT(seq.scheduled == 0);  // whoever needs its blocks was admitted before it, and is served before it
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

// Full pages of the known tokens that can be found, from the first on; at least one token is left to compute.
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

// From the logits of its last token.
void PagingEngine::State::generate_one(Sequence& seq) {
  seq.prefilling = false;
  if (seq.generated < seq.request->generate_tokens) ++seq.generated;
}

// Those that find no place in the batch go to the front of the queue: whoever waits there came after the parent.
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

// --- the engine from outside ------------------------------------------------------------------------------------

PagingEngine::PagingEngine(const Scenario& scenario, std::span<const Request> requests, trace::Recorder& recorder)
    : state_(std::make_unique<State>(scenario, requests, recorder)) {}

PagingEngine::~PagingEngine() = default;

bool PagingEngine::step() {
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

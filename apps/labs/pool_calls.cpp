#include "apps/labs/pool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/paging/block_pool.h"
#include "core/paging/paging_engine.h"
#include "core/scenario/requests.h"

namespace kvscope::labs {
namespace {

// The model's pool behind the calls of the lab.
class PoolModel {
 public:
  PoolModel(std::int64_t blocks, std::int64_t page_size) : pool_(blocks, page_size, recorder_) {
    script_.blocks = blocks;
    script_.page_size = page_size;
    record(0);
  }

  // Returns the result of the call.
  std::int64_t call(PoolCall::Kind kind, std::int64_t sequence, std::int64_t other = 0) {
    const std::int64_t result = perform(kind, sequence, other);
    script_.calls.push_back({kind, sequence, other});
    if (kind == PoolCall::Kind::publish) hashes_.insert(other);
    record(result);
    return result;
  }

  [[nodiscard]] const BlockPool& pool() const { return pool_; }
  [[nodiscard]] SequencePages pages(std::int64_t sequence) const {
    const auto at = sequences_.find(sequence);
    return at == sequences_.end() ? SequencePages{SeqIdx(sequence), {}, 0} : at->second;
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(script_.calls.size()); }
  [[nodiscard]] PoolScript take() { return std::move(script_); }

 private:
  SequencePages& of(std::int64_t sequence) {
    return sequences_.try_emplace(sequence, SequencePages{SeqIdx(sequence), {}, 0}).first->second;
  }

  std::int64_t perform(PoolCall::Kind kind, std::int64_t sequence, std::int64_t other) {
    SequencePages& own = of(sequence);
    const PageHash hash = hash_of(other);
    const std::int64_t last = static_cast<std::int64_t>(own.blocks.size()) - 1;
    switch (kind) {
      case PoolCall::Kind::append:
        return pool_.append(own, 1, true) ? std::int64_t{own.blocks.back()} : kNoBlock;
      case PoolCall::Kind::publish:
        pool_.publish(own, PageIdx(last), hash);
        return 0;
      case PoolCall::Kind::share: {
        const BlockIdx found = pool_.find(hash).block;
        if (found == pool_.null_page()) return kNoBlock;
        pool_.share(own, found);
        return found.value;
      }
      case PoolCall::Kind::fork:
        sequences_.insert_or_assign(other, pool_.fork(own, SeqIdx(other)));
        return 0;
      case PoolCall::Kind::release:
        pool_.release(own);
        sequences_.erase(sequence);
        return 0;
    }
    return 0;
  }

  [[nodiscard]] static PageHash hash_of(std::int64_t number) { return {static_cast<std::uint64_t>(number), 1}; }

  void record(std::int64_t result) {
    script_.states.push_back(state(result));
    PoolContents contents;
    for (const auto& [sequence, pages] : sequences_) contents.tokens[sequence] = pages.tokens;
    for (const std::int64_t hash : hashes_) {
      const BlockIdx found = pool_.find(hash_of(hash)).block;
      if (found != pool_.null_page()) contents.found[hash] = found.value;
    }
    script_.contents.push_back(std::move(contents));
  }

  [[nodiscard]] PoolState state(std::int64_t result) const {
    const PoolSnapshot snapshot = pool_.snapshot();
    PoolState state;
    state.result = result;
    for (const auto& [sequence, pages] : sequences_) {
      state.pages[sequence] = Words(pages.blocks.begin(), pages.blocks.end());
    }
    state.holders = Words(snapshot.ref_counts.begin(), snapshot.ref_counts.end());
    state.holders.resize(static_cast<std::size_t>(pool_.blocks()), 0);
    for (std::int64_t block = snapshot.never_used; block < pool_.blocks(); ++block) state.free.push_back(block);
    state.free.insert(state.free.end(), snapshot.freed.begin(), snapshot.freed.end());
    state.cached = Words(snapshot.lru.begin(), snapshot.lru.end());
    return state;
  }

  trace::Recorder recorder_;
  BlockPool pool_;
  std::map<std::int64_t, SequencePages> sequences_;
  std::set<std::int64_t> hashes_;  // that were published
  PoolScript script_;
};

// A sequence of a random walk: its first pages have the text of one of a few prompts, later ones a text of its own.
struct WalkSequence {
  std::int64_t number = 0, prompt = 0, prompt_pages = 0;
  [[nodiscard]] std::int64_t hash(std::int64_t page) const {
    return page < prompt_pages ? prompt * 100 + page : (1000 + number) * 100 + page;
  }
};

class Walk {
 public:
  Walk(const PoolWalk& walk, const CounterRng& random)
      : walk_(walk), random_(random), model_(walk.blocks, walk.page_size) {}

  PoolScript run() {
    if (walk_.publishes) compute_one_page_twice();
    while (model_.size() < walk_.calls) {
      const std::int64_t choice = pick(0, 99);
      if (live_.empty() || (choice < 14 && live_.size() < 6)) {
        begin();
      } else if (walk_.forks && choice < 30 && live_.size() < 6) {
        fork(one_of_the_live());
      } else if (choice < (walk_.forks ? 42 : 26) && live_.size() > 1) {
        release(one_of_the_live());
      } else {
        append(one_of_the_live());
      }
    }
    return model_.take();
  }

 private:
  using Kind = PoolCall::Kind;

  std::int64_t pick(std::int64_t low, std::int64_t high) { return random_.integer(at_++, low, high); }
  std::size_t one_of_the_live() {
    return static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(live_.size()) - 1));
  }

  void begin() {
    WalkSequence made{next_++, pick(1, 2), walk_.publishes ? pick(1, 3) : 0};
    live_.push_back(made);
    bool found = walk_.publishes;
    for (std::int64_t page = 0; found && page < made.prompt_pages; ++page) {
      found = model_.call(Kind::share, made.number, made.hash(page)) != kNoBlock;
    }
    // As many tokens at once as a prompt has, so that pages become full.
    for (std::int64_t i = pick(1, walk_.page_size + 1); i > 0 && !live_.empty() && live_.back().number == made.number;
         --i) {
      append(live_.size() - 1);
    }
  }

  // Two sequences with one prompt begin together, so that neither finds a page of the other and both publish one hash.
  void compute_one_page_twice() {
    for (int i = 0; i < 2; ++i) {
      live_.push_back({next_++, 1, 2});
      model_.call(Kind::share, live_.back().number, live_.back().hash(0));
    }
    for (std::int64_t slot = 0; slot < walk_.page_size; ++slot) {
      append(0);
      append(1);
    }
  }

  void append(std::size_t index) {
    const WalkSequence sequence = live_[index];
    const std::int64_t needed = model_.pool().blocks_needed(model_.pages(sequence.number), 1);
    const std::int64_t allowed = walk_.evicts ? model_.pool().available() : model_.pool().free();
    if (needed > allowed && !(walk_.fails && model_.pool().available() == 0)) return release(one_of_the_live());
    if (model_.call(Kind::append, sequence.number) == kNoBlock) {
      if (pick(0, 1) == 0) release(one_of_the_live());
      return;
    }
    const std::int64_t tokens = model_.pages(sequence.number).tokens;
    if (!walk_.publishes || tokens % walk_.page_size != 0) return;
    model_.call(Kind::publish, sequence.number, sequence.hash(tokens / walk_.page_size - 1));
  }

  // The last page of a parent and of its child becomes full with different tokens.
  void fork(std::size_t index) {
    WalkSequence& parent = live_[index];
    const std::int64_t full = model_.pages(parent.number).tokens / walk_.page_size;
    parent.prompt_pages = std::min(parent.prompt_pages, full);
    WalkSequence child = parent;
    child.number = next_++;
    model_.call(Kind::fork, parent.number, child.number);
    live_.push_back(child);
  }

  void release(std::size_t index) {
    model_.call(Kind::release, live_[index].number);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  PoolWalk walk_;
  CounterRng random_;
  PoolModel model_;
  std::vector<WalkSequence> live_;
  std::int64_t next_ = 0;
  std::uint64_t at_ = 0;
};

// Turns the events of an engine into calls. Hashes are numbered in the order in which they occur.
class Recording {
 public:
  Recording(const Scenario& scenario, const std::vector<Request>& requests)
      : requests_(requests), model_(scenario.cache.blocks, scenario.cache.page_size), page_(scenario.cache.page_size) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      texts_.emplace_back(requests[i], SeqIdx(number), SeqIdx(number - requests[i].sample_of));
    }
  }

  void operator()(const trace::RequestAdmitted& event) {
    const std::int64_t sequence = event.seq.value;
    const Request& request = requests_[static_cast<std::size_t>(sequence)];
    const bool first = admitted_.insert(sequence).second;
    // A fork covers the whole prompt; a prefix that is found never does.
    if (first && request.sample_of > 0 && event.hit_tokens == request.prompt_tokens) {
      model_.call(Kind::fork, sequence - request.sample_of, sequence);
      return;
    }
    // One page more is looked up than the engine found, unless no token of the prompt would be left to compute.
    for (std::int64_t page = 0; page <= event.hit_tokens / page_ && (page + 1) * page_ < request.prompt_tokens;
         ++page) {
      if (model_.call(Kind::share, sequence, hash(sequence, page)) == kNoBlock) break;
    }
  }
  // The engine reserves the blocks of a step before it stores tokens; these calls do both for one token at a time, so a
  // page may be evicted later than in the engine.
  void operator()(const trace::TokensWritten& event) {
    const std::int64_t sequence = event.seq.value, end = event.first_token.value + event.tokens;
    for (std::int64_t token = model_.pages(sequence).tokens; token < end; ++token) {
      if (model_.call(Kind::append, sequence) == kNoBlock) break;
      if ((token + 1) % page_ == 0) model_.call(Kind::publish, sequence, hash(sequence, token / page_));
    }
  }
  void operator()(const trace::RequestPreempted& event) { release(event.seq); }
  void operator()(const trace::RequestFinished& event) { release(event.seq); }
  template <class Other>
  void operator()(const Other& /*event*/) {}

  [[nodiscard]] PoolScript take() { return model_.take(); }

 private:
  using Kind = PoolCall::Kind;

  void release(SeqIdx sequence) { model_.call(Kind::release, sequence.value); }
  std::int64_t hash(std::int64_t sequence, std::int64_t page) {
    const PageHash whole = texts_[static_cast<std::size_t>(sequence)].page_hash(PageIdx(page), page_);
    return hashes_.try_emplace(whole, 101 + static_cast<std::int64_t>(hashes_.size())).first->second;
  }

  const std::vector<Request>& requests_;
  PoolModel model_;
  std::int64_t page_;
  std::vector<SequenceText> texts_;
  std::set<std::int64_t> admitted_;
  std::map<PageHash, std::int64_t> hashes_;
};

// Reads numbers one after the other; after the last one, `ended` is set and every number is 0.
struct WordReader {
  const Words& words;
  std::size_t at = 0;
  bool ended = false;

  std::int64_t next() {
    ended = ended || at >= words.size();
    return ended ? 0 : words[at++];
  }
  Words list(std::int64_t count) {
    ended = ended || count < 0 || count > static_cast<std::int64_t>(words.size() - at);
    if (ended) return {};
    Words taken(words.begin() + static_cast<std::ptrdiff_t>(at),
                words.begin() + static_cast<std::ptrdiff_t>(at) + static_cast<std::ptrdiff_t>(count));
    at += taken.size();
    return taken;
  }
};

}  // namespace

std::string text_of(const PoolCall& call) {
  switch (call.kind) {
    case PoolCall::Kind::append:
      return fmt::format("append({})", call.sequence);
    case PoolCall::Kind::publish:
      return fmt::format("publish({}, hash {})", call.sequence, call.other);
    case PoolCall::Kind::share:
      return fmt::format("share({}, hash {})", call.sequence, call.other);
    case PoolCall::Kind::fork:
      return fmt::format("fork({}, {})", call.sequence, call.other);
    case PoolCall::Kind::release:
      return fmt::format("release({})", call.sequence);
  }
  return {};
}

PoolScript random_walk(const PoolWalk& walk, const CounterRng& random) {
  return Walk(walk, random).run();
}

PoolScript engine_script(std::int64_t count, const CounterRng& random) {
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  Scenario scenario;
  scenario.cache.page_size = 4;
  scenario.cache.blocks = 14;
  scenario.scheduler = {.max_batch = 5, .max_step_tokens = 32, .base_us = 1000, .per_token_us = 0, .per_context_us = 0};
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    Request request;
    request.arrival_us = i < 2 ? 0 : i * 3000;  // the first two compute their common pages in one step
    request.prompt_tokens = pick(9, 15);
    request.generate_tokens = pick(4, 11);
    request.samples = i % 3 == 1 ? 2 : 1;
    // Prompts of one group have two pages in common.
    const auto own = static_cast<std::uint64_t>(10 + i);
    request.content = {{i < 2 ? 1 : static_cast<std::uint64_t>(pick(1, 3)), 8}, {own, request.prompt_tokens - 8}};
    requests.push_back(std::move(request));
  }
  requests = expand_samples(std::move(requests));
  trace::MemoryRecorder recorder;
  PagingEngine engine(scenario, requests, recorder);
  while (engine.step()) {
  }
  Recording recording(scenario, requests);
  for (const trace::Event& event : recorder.events()) std::visit(recording, event);
  return recording.take();
}

PoolState parse_pool_state(const Words& words, std::int64_t blocks, std::string& fault) {
  WordReader reader{words};
  PoolState state;
  state.result = reader.next();
  for (std::int64_t left = reader.next(); left > 0 && !reader.ended; --left) {
    const std::int64_t sequence = reader.next();
    state.pages[sequence] = reader.list(reader.next());
  }
  state.holders = reader.list(blocks);
  state.free = reader.list(reader.next());
  state.cached = reader.list(reader.next());
  if (reader.ended || reader.at != words.size())
    fault = "the result has another size: does your code write to the pipe?";
  return state;
}

}  // namespace kvscope::labs

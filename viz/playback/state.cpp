#include "viz/playback/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "core/trace/event_text.h"

namespace kvscope::viz {
namespace {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::absent:
      return "has not arrived";
    case Phase::waiting:
      return "is waiting";
    case Phase::running:
      return "is running";
    case Phase::preempted:
      return "is preempted";
    case Phase::finished:
      return "has finished";
    case Phase::refused:
      return "was rejected";
  }
  return "";
}

bool is_live(Phase phase) {
  return phase == Phase::waiting || phase == Phase::running || phase == Phase::preempted;
}

// Applies one event to one state. Each operator() checks the event before it writes: a rejected event changes nothing.
class Fold {
 public:
  Fold(State& state, const Facts& facts) : state_(state), facts_(facts) {}

  // --- the engine's clock ---

  void operator()(const trace::StepBegan& e) {
    if (state_.in_step) reject(e, fmt::format("step {} has not ended", state_.step.value));
    if (e.step <= state_.step) reject(e, fmt::format("it must come after step {}", state_.step.value));
    if (e.time_us < state_.time_us) reject(e, fmt::format("the clock is already at {} us", state_.time_us));
    state_.step = e.step;
    state_.time_us = e.time_us;
    state_.in_step = true;
  }

  void operator()(const trace::StepEnded& e) {
    if (!state_.in_step) reject(e, "no step has begun");
    if (e.step != state_.step) reject(e, fmt::format("step {} has begun", state_.step.value));
    if (e.time_us < state_.time_us) reject(e, fmt::format("the clock is already at {} us", state_.time_us));
    const bool by_steps = facts_.detail != trace::Detail::full;
    if (by_steps && (e.used_blocks < 0 || e.cached_blocks < 0 || e.used_blocks > state_.blocks.size() ||
                     e.cached_blocks > state_.blocks.size() - e.used_blocks)) {
      reject(e, fmt::format("the pool has {} blocks", state_.blocks.size()));
    }
    state_.time_us = e.time_us;
    state_.in_step = false;
    if (by_steps) {
      state_.used_blocks = e.used_blocks;
      state_.cached_blocks = e.cached_blocks;
    }
  }

  // --- the life of a request ---

  void operator()(const trace::RequestArrived& e) {
    expect_phase(e, {Phase::absent});
    if (e.prompt_tokens < 0 || e.generate_tokens < 0) reject(e, "a number of tokens must be at least 0");
    SequenceState& seq = state_.sequences.at(e.seq.value);
    seq.phase = Phase::waiting;
    seq.prompt_tokens = e.prompt_tokens;
    seq.generate_tokens = e.generate_tokens;
    state_.live.insert(place(e.seq), e.seq);
  }

  void operator()(const trace::RequestAdmitted& e) {
    expect_phase(e, {Phase::absent, Phase::waiting, Phase::preempted});
    if (e.hit_tokens < 0) reject(e, "a number of tokens must be at least 0");
    run(e.seq).hit_tokens = e.hit_tokens;
  }

  void operator()(const trace::RequestPreempted& e) {
    expect_phase(e, {Phase::running});
    SequenceState& seq = state_.sequences.at(e.seq.value);
    seq.phase = Phase::preempted;
    seq.hit_tokens = 0;
    ++seq.preemptions;
  }

  void operator()(const trace::RequestFinished& e) {
    expect_phase(e, {Phase::running});
    leave(e.seq, Phase::finished);
  }

  void operator()(const trace::RequestRefused& e) {
    expect_phase(e, {Phase::waiting});
    leave(e.seq, Phase::refused);
  }

  // --- blocks ---

  void operator()(const trace::BlockAllocated& e) {
    expect_running(e);
    expect_free(e, e.block);
    expect_next_page(e);
    state_.blocks.at(e.block.value) = BlockState{narrow(e.seq.value), narrow(e.page.value), 1, 0, false};
    ++state_.used_blocks;
    run(e.seq).pages.set(e.page.value, narrow(e.block.value));
  }

  void operator()(const trace::BlockShared& e) {
    expect_running(e);
    const BlockState& now = expect_block(e, e.block);
    if (now.owner < 0) reject(e, fmt::format("block {} is free: it has no content to share", e.block.value));
    // A page's content depends on its position in the sequence, so the block is the same page of all its holders.
    if (now.page != e.page.value) reject(e, fmt::format("block {} holds page {}", e.block.value, now.page));
    if (e.ref_count != now.ref_count + 1)
      reject(e, fmt::format("block {} had reference count {} before", e.block.value, now.ref_count));
    expect_next_page(e);
    BlockState& block = state_.blocks.at(e.block.value);
    if (std::exchange(block.cached, false)) {
      --state_.cached_blocks;
      ++state_.used_blocks;
      block.owner = narrow(e.seq.value);
    }
    ++block.ref_count;
    SequenceState& seq = run(e.seq);
    seq.pages.set(e.page.value, narrow(e.block.value));
    if (seq.tokens == e.page.value * facts_.page_size) seq.tokens += block.filled;
  }

  void operator()(const trace::BlockCopied& e) {
    expect_running(e);
    expect_held(e, e.from);
    const BlockState& from = expect_block(e, e.from);
    if (from.ref_count < 2) reject(e, fmt::format("no other sequence holds block {}", e.from.value));
    expect_free(e, e.to);
    if (e.tokens < 0 || e.tokens > from.filled)
      reject(e, fmt::format("block {} holds {} tokens", e.from.value, from.filled));
    SequenceState& seq = run(e.seq);
    seq.pages.set(e.page.value, narrow(e.to.value));
    const std::int64_t copied_to = e.page.value * facts_.page_size + e.tokens;
    if (e.tokens < facts_.page_size) seq.tokens = std::min(seq.tokens, copied_to);
    state_.blocks.at(e.to.value) = BlockState{narrow(e.seq.value), narrow(e.page.value), 1, narrow(e.tokens), false};
    ++state_.used_blocks;
    BlockState& left = state_.blocks.at(e.from.value);
    --left.ref_count;
    pass_on(left, e.from, e.seq);
  }

  void operator()(const trace::BlockReleased& e) {
    expect_sequence(e);
    expect_held(e, e.block);
    const BlockState& now = expect_block(e, e.block);
    if (e.ref_count != now.ref_count - 1)
      reject(e, fmt::format("block {} had reference count {} before", e.block.value, now.ref_count));
    if (e.cached && e.ref_count > 0) reject(e, "a block that is still held cannot be cached");
    SequenceState& seq = state_.sequences.at(e.seq.value);
    seq.pages.set(e.page.value, -1);
    seq.tokens = std::min(seq.tokens, e.page.value * facts_.page_size);
    BlockState& block = state_.blocks.at(e.block.value);
    --block.ref_count;
    if (block.ref_count > 0) return pass_on(block, e.block, e.seq);
    --state_.used_blocks;
    if (e.cached) {
      block.cached = true;
      ++state_.cached_blocks;
    } else {
      block = BlockState{};
    }
  }

  void operator()(const trace::BlockEvicted& e) {
    if (!expect_block(e, e.block).cached) reject(e, fmt::format("block {} is not cached", e.block.value));
    state_.blocks.at(e.block.value) = BlockState{};
    --state_.cached_blocks;
  }

  // --- tokens ---

  void operator()(const trace::TokensWritten& e) {
    expect_running(e);
    const std::int64_t page_size = facts_.page_size;
    if (e.first_token.value < 0 || e.tokens < 1 || e.slot < 0)
      reject(e, "first_token and slot must be at least 0, and tokens at least 1");
    if (e.slot >= page_size || e.tokens > page_size - e.slot) {
      reject(e, fmt::format("a block has {} slots", page_size));
    }
    const std::int64_t page = e.first_token.value / page_size;
    if (e.first_token.value % page_size != e.slot) {
      reject(e, fmt::format("token {} belongs in slot {}", e.first_token.value, e.first_token.value % page_size));
    }
    const SequenceState& now = state_.sequences[e.seq.value];
    static_cast<void>(expect_block(e, e.block));
    if (now.pages[page] != e.block.value) {
      reject(e, fmt::format("page {} of sequence {} is not in block {}", page, e.seq.value, e.block.value));
    }
    if (e.first_token.value > now.tokens) {
      reject(e, fmt::format("sequence {} has {} tokens in the cache", e.seq.value, now.tokens));
    }
    // The tokens of a sequence fill its blocks without gaps, so after this write there is no gap either.
    BlockState& block = state_.blocks.at(e.block.value);
    block.filled = std::max(block.filled, narrow(e.slot + e.tokens));
    SequenceState& seq = state_.sequences.at(e.seq.value);
    seq.tokens = std::max(seq.tokens, e.first_token.value + e.tokens);
  }

  // --- a tile is loaded into registers: the cache does not change ---

  void operator()(const trace::TileOpened&) {}
  void operator()(const trace::BarrierExpects&) {}
  void operator()(const trace::BoxCopied&) {}
  void operator()(const trace::BarrierCompleted&) {}
  void operator()(const trace::LdsCopied&) {}
  void operator()(const trace::WaveWaited&) {}
  void operator()(const trace::FragmentRead&) {}
  void operator()(const trace::ChunkLanded&) {}
  void operator()(const trace::LaneRead&) {}
  void operator()(const trace::TileMemory&) {}
  void operator()(const trace::TilePage&) {}
  void operator()(const trace::TileMap&) {}
  void operator()(const trace::TileShared&) {}
  void operator()(const trace::TileFragments&) {}
  void operator()(const trace::BankPhase&) {}
  void operator()(const trace::RegisterFilled&) {}
  void operator()(const trace::OperandRead&) {}
  void operator()(const trace::OperandChunk&) {}

 private:
  template <class E>
  [[noreturn]] static void reject(const E& event, std::string why) {
    throw InputError("trace", "event", fmt::format("{}: {}", trace::to_text(trace::Event(event)), why));
  }

  // The narrowing is safe: kMostBlocks, kMostSequences and the number of events bound blocks, sequences and pages.
  static std::int32_t narrow(std::int64_t number) { return static_cast<std::int32_t>(number); }

  template <class E>
  const SequenceState& expect_sequence(const E& e) const {
    const std::int64_t count = state_.sequences.size();
    if (e.seq.value < 0 || e.seq.value >= count) reject(e, fmt::format("sequences are numbered [0, {})", count));
    return state_.sequences[e.seq.value];
  }

  template <class E>
  void expect_phase(const E& e, std::initializer_list<Phase> phases) const {
    const Phase now = expect_sequence(e).phase;
    if (std::find(phases.begin(), phases.end(), now) == phases.end()) {
      reject(e, fmt::format("sequence {} {}", e.seq.value, phase_name(now)));
    }
  }

  // A trace may begin in the middle of a run: a sequence without request_arrived runs from its first event on.
  template <class E>
  void expect_running(const E& e) const {
    const Phase now = expect_sequence(e).phase;
    if (now != Phase::running && now != Phase::absent)
      reject(e, fmt::format("sequence {} {}", e.seq.value, phase_name(now)));
  }

  template <class E>
  const BlockState& expect_block(const E& e, BlockIdx block) const {
    const std::int64_t count = state_.blocks.size();
    if (block.value < 0 || block.value >= count)
      reject(e, fmt::format("the pool's blocks are numbered [0, {})", count));
    return state_.blocks[block.value];
  }

  template <class E>
  void expect_free(const E& e, BlockIdx block) const {
    const BlockState& now = expect_block(e, block);
    if (now.cached) reject(e, fmt::format("block {} is cached, and was not evicted", block.value));
    if (now.ref_count > 0)
      reject(e, fmt::format("block {} is page {} of sequence {}", block.value, now.page, now.owner));
  }

  // Pages are assigned in order, so a lookup-table row has at most as many entries as the run has events.
  template <class E>
  void expect_next_page(const E& e) const {
    const PageTable& pages = state_.sequences[e.seq.value].pages;
    if (e.page.value < 0 || e.page.value > pages.size()) {
      reject(e, fmt::format("the next page of sequence {} is {}", e.seq.value, pages.size()));
    }
    if (pages[e.page.value] >= 0) {
      reject(e, fmt::format("page {} of sequence {} is in block {}", e.page.value, e.seq.value, pages[e.page.value]));
    }
  }

  template <class E>
  void expect_held(const E& e, BlockIdx block) const {
    const PageTable& pages = state_.sequences[e.seq.value].pages;
    if (e.page.value < 0 || e.page.value >= pages.size() || pages[e.page.value] != block.value || block.value < 0) {
      reject(e, fmt::format("page {} of sequence {} is not in block {}", e.page.value, e.seq.value, block.value));
    }
  }

  std::vector<SeqIdx>::iterator place(SeqIdx seq) {
    return std::lower_bound(state_.live.begin(), state_.live.end(), seq);
  }

  SequenceState& run(SeqIdx number) {
    SequenceState& seq = state_.sequences.at(number.value);
    if (!is_live(seq.phase)) state_.live.insert(place(number), number);
    seq.phase = Phase::running;
    return seq;
  }

  void leave(SeqIdx seq, Phase phase) {
    state_.sequences.at(seq.value).phase = phase;
    state_.live.erase(place(seq));
  }

  // `seq` released a block that other sequences still hold: one of them becomes the owner.
  void pass_on(BlockState& block, BlockIdx number, SeqIdx seq) {
    if (block.owner != seq.value) return;
    for (const SeqIdx other : state_.live) {
      if (state_.sequences[other.value].pages[block.page] == number.value) {
        block.owner = narrow(other.value);
        return;
      }
    }
  }

  State& state_;
  const Facts& facts_;
};

}  // namespace

void PageTable::set(std::int64_t page, std::int32_t block) {
  if (block < 0 && page >= size()) return;
  if (!pages_) {
    pages_ = std::make_shared<std::vector<std::int32_t>>();
  } else if (pages_.use_count() > 1) {
    pages_ = std::make_shared<std::vector<std::int32_t>>(*pages_);
  }
  const auto at = static_cast<std::size_t>(page);
  if (at >= pages_->size()) pages_->resize(at + 1, -1);
  (*pages_)[at] = block;
  while (!pages_->empty() && pages_->back() < 0) pages_->pop_back();
  if (pages_->empty()) pages_.reset();
}

State empty_state(const Facts& facts) {
  State state;
  state.blocks.resize(facts.blocks);
  state.sequences.resize(facts.sequences);
  return state;
}

void apply(State& state, const Facts& facts, const trace::Event& event) {
  if (trace::kind_detail(event.index()) > facts.detail) {
    throw InputError("trace", "event",
                     fmt::format("{}: a trace of detail '{}' has none of these", trace::to_text(event),
                                 trace::detail_name(facts.detail)));
  }
  std::visit(Fold(state, facts), event);
}

void fetch_objects(const State& state, const trace::Event& event) {
  std::visit(
      [&](const auto& e) {
        if constexpr (requires { e.seq.value; }) state.sequences.prefetch(e.seq.value);
        if constexpr (requires { e.block.value; }) state.blocks.prefetch(e.block.value);
      },
      event);
}

void fetch_row(const State& state, const trace::Event& event) {
  std::visit(
      [&](const auto& e) {
        if constexpr (requires { e.seq.value; } && (
                                                       requires { e.page.value; } || requires { e.slot; })) {
          if (e.seq.value < 0 || e.seq.value >= state.sequences.size()) return;
          if constexpr (requires { e.page.value; }) {
            state.sequences[e.seq.value].pages.prefetch(e.page.value);
          } else if constexpr (requires { e.first_token.value; }) {
            state.sequences[e.seq.value].pages.prefetch(state.sequences[e.seq.value].pages.size() - 1);
          }
        }
      },
      event);
}

}  // namespace kvscope::viz

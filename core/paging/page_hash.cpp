#include "core/paging/page_hash.h"

#include <algorithm>

#include "core/base/errors.h"

namespace kvscope {
namespace {

__extension__ using u128 = unsigned __int128;

constexpr u128 make_u128(std::uint64_t hi, std::uint64_t lo) {
  return (static_cast<u128>(hi) << 64) | lo;
}

// An odd multiplier: multiplication by it, like the XOR of the state with a shift of itself, is a bijection of the
// 128-bit state. Adding a word therefore loses no information; two different pages collide only by chance.
constexpr u128 kMultiplier = make_u128(0x2360ed051fc65da4, 0x4385df649fccf645);
constexpr u128 kSeed = make_u128(0x9e3779b97f4a7c15, 0xf39cc0605cedc835);

constexpr u128 absorb(u128 state, std::uint64_t word) {
  state ^= word;
  state *= kMultiplier;
  state ^= state >> 64;
  state *= kMultiplier;
  return state ^ (state >> 59);
}

constexpr u128 absorb(u128 state, const TokenRun& run) {
  state = absorb(state, (static_cast<std::uint64_t>(run.kind) << 56) | static_cast<std::uint64_t>(run.length));
  state = absorb(state, run.content);
  return absorb(state, static_cast<std::uint64_t>(run.offset));
}

}  // namespace

PageHash chain(PageHash parent, std::span<const TokenRun> runs) {
  u128 state = kSeed ^ make_u128(parent.hi, parent.lo);
  for (const TokenRun& run : runs) state = absorb(state, run);
  return PageHash{static_cast<std::uint64_t>(state), static_cast<std::uint64_t>(state >> 64)};
}

std::uint64_t token_id(TextKind kind, std::uint64_t content, std::int64_t position) {
  const u128 state = absorb(kSeed, TokenRun{kind, content, position, 1});
  return static_cast<std::uint64_t>(state) ^ static_cast<std::uint64_t>(state >> 64);
}

TokenRun SequenceText::next_run(std::int64_t limit) {
  const auto seq = static_cast<std::uint64_t>(seq_.value);
  const auto prompt_of = static_cast<std::uint64_t>(prompt_of_.value);
  const auto& spans = request_->content;
  const std::size_t span_count = spans.empty() ? 1 : spans.size();
  while (span_ < span_count) {
    const std::int64_t length = spans.empty() ? request_->prompt_tokens : spans[span_].length;
    if (in_span_ < length) {
      const std::int64_t taken = std::min(limit, length - in_span_);
      const TokenRun run = spans.empty() ? TokenRun{TextKind::own_prompt, prompt_of, in_span_, taken}
                                         : TokenRun{TextKind::named, spans[span_].content, in_span_, taken};
      in_span_ += taken;
      return run;
    }
    ++span_;
    in_span_ = 0;
  }
  const TokenRun run{TextKind::generated, seq, in_span_, limit};
  in_span_ += limit;
  return run;
}

PageHash SequenceText::page_hash(PageIdx page, std::int64_t page_size) {
  KVSCOPE_ASSERT(page.value >= 0);
  std::vector<TokenRun> many;  // a page rarely holds more than a few runs: those stay on the stack
  while (static_cast<std::int64_t>(hashes_.size()) <= page.value) {
    TokenRun few[4];
    std::size_t count = 0;
    many.clear();
    for (std::int64_t left = page_size; left > 0;) {
      const TokenRun run = next_run(left);
      left -= run.length;
      if (count < std::size(few)) {
        few[count] = run;
      } else {
        if (count == std::size(few)) many.assign(std::begin(few), std::end(few));
        many.push_back(run);
      }
      ++count;
    }
    const PageHash parent = hashes_.empty() ? PageHash{} : hashes_.back();
    hashes_.push_back(chain(
        parent, count <= std::size(few) ? std::span<const TokenRun>(few, count) : std::span<const TokenRun>(many)));
  }
  return hashes_[static_cast<std::size_t>(page.value)];
}

std::vector<std::uint64_t> SequenceText::token_ids(std::int64_t count) const {
  SequenceText reader(*request_, seq_, prompt_of_);
  std::vector<std::uint64_t> ids;
  ids.reserve(static_cast<std::size_t>(count));
  while (count > 0) {
    const TokenRun run = reader.next_run(count);
    for (std::int64_t i = 0; i < run.length; ++i) ids.push_back(token_id(run.kind, run.content, run.offset + i));
    count -= run.length;
  }
  return ids;
}

void SequenceText::forget_hashes() {
  std::vector<PageHash>().swap(hashes_);
  span_ = 0;
  in_span_ = 0;
}

}  // namespace kvscope

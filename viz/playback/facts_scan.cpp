#include "viz/playback/facts_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::viz {
namespace {

std::optional<Scenario> scenario_of(const trace::Meta& meta) {
  const auto found = meta.find("scenario");
  if (found == meta.end()) return std::nullopt;
  try {
    return parse_scenario(found->second, "scenario");
  } catch (const InputError&) {
    return std::nullopt;  // for example of a newer version: the facts are computed from the events
  }
}

// Invalid numbers are ignored here: apply() rejects them with a message that names the event.
void raise(std::int64_t& count, std::int64_t index) {
  if (index >= 0 && index < std::int64_t{1} << 62) count = std::max(count, index + 1);
}

void check_limit(const std::string& shown, const char* what, std::int64_t value, std::int64_t most) {
  if (value > most) {
    throw InputError(shown, what, fmt::format("{} are more than the {} that can be shown", value, most));
  }
}

}  // namespace

std::string why_no_step(std::int64_t step, const Facts& facts) {
  if (facts.first_step == facts.end_step) return "the run has no step";
  if (step >= facts.first_step && step < facts.end_step) return {};
  return fmt::format("step {} is outside [{}, {})", step, facts.first_step, facts.end_step);
}

FactsScan::FactsScan(const EventSource& source, std::string shown) : shown_(std::move(shown)) {
  facts_.scenario = scenario_of(source.meta());
  facts_.detail = source.detail();
  facts_.events = source.events();
  facts_.rows = source.rows();
  if (facts_.rows > 1) {
    facts_.first_step = source.span(1).step.value;
    facts_.end_step = source.span(facts_.rows - 1).step.value + 1;
  }
  facts_.name = facts_.scenario && !facts_.scenario->name.empty() ? facts_.scenario->name : shown_;
  if (facts_.scenario) {
    const CacheConfig& cache = facts_.scenario->cache;
    facts_.description = facts_.scenario->description;
    facts_.cache = cache.kind;
    facts_.blocks = cache.blocks;
    facts_.page_size = cache.kind == CacheKind::paged ? cache.page_size : cache.max_tokens;
  }
}

void FactsScan::add(const trace::Event& event) {
  std::visit(
      [&]<class E>(const E& e) {
        // The events of a tile name sequences, pages and blocks that other events introduce.
        if constexpr (std::is_same_v<E, trace::TileOpened> || std::is_same_v<E, trace::TilePage>) return;
        if constexpr (requires { e.seq; }) raise(sequences_, e.seq.value);
        if constexpr (requires { e.block; }) raise(blocks_, e.block.value);
        if constexpr (requires { e.to; }) raise(blocks_, e.from.value), raise(blocks_, e.to.value);
        if constexpr (requires { e.page; }) raise(pages_, e.page.value);
      },
      event);
  if (const auto* written = std::get_if<trace::TokensWritten>(&event)) {
    if (written->slot >= 0 && written->slot <= written->first_token.value && written->tokens > 0) {
      starts_ = std::gcd(starts_, written->first_token.value - written->slot);
      if (written->slot < kMostPageSize && written->tokens <= kMostPageSize - written->slot) {
        raise(slots_, written->slot + written->tokens - 1);
      }
    }
  } else if (const auto* ended = std::get_if<trace::StepEnded>(&event)) {
    std::int64_t counted = 0;
    if (!__builtin_add_overflow(ended->used_blocks, ended->cached_blocks, &counted) &&
        !__builtin_add_overflow(counted, ended->free_blocks, &counted)) {
      blocks_ = std::max(blocks_, counted);
    }
  }
}

Facts FactsScan::finish() const {
  Facts facts = facts_;
  facts.sequences = sequences_;
  facts.table_columns = std::max<std::int64_t>(pages_, 1);
  if (!facts.scenario) {
    facts.blocks = blocks_;
    facts.page_size = std::max<std::int64_t>(starts_ > 0 ? starts_ : slots_, 1);
  }
  check_limit(shown_, "blocks", facts.blocks, kMostBlocks);
  check_limit(shown_, "sequences", facts.sequences, kMostSequences);
  check_limit(shown_, "tokens of a block", facts.page_size, kMostPageSize);
  return facts;
}

}  // namespace kvscope::viz

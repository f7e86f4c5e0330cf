#include "core/staging/locate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/layout/strided_view.h"
#include "core/scenario/pool_extents.h"
#include "core/staging/focus.h"
#include "core/staging/staged_tile.h"

namespace kvscope {
namespace {

// The pool's extents and one index tuple, outermost first.
struct PoolIndex {
  std::int64_t block = 0, kv = 0, layer = 0, slot = 0, head = 0, dim = 0;
};

// Splits from the innermost axis outwards; explain multiplies from the outermost inwards.
PoolIndex split(std::int64_t element, const Shape<6>& sizes) {
  Shape<6> at{};
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    at[axis] = element % sizes[axis];
    element /= sizes[axis];
  }
  return {at[0], at[1], at[2], at[3], at[4], at[5]};
}

struct Holder {
  SeqIdx seq;
  std::int64_t page = 0;
  std::int64_t tokens = 0;  // of the sequence, in the cache at this step
};

// The lowest sequence of the batch that has `block` as one of its pages. A sequence's pages are in different blocks,
// and sequences that share a block hold the same tokens in it.
std::optional<Holder> holder_of(const CacheState& state, std::int64_t block, std::int64_t page_size) {
  std::optional<Holder> lowest;
  for (std::size_t row = 0; row < state.batch.size(); ++row) {
    if (lowest && lowest->seq < state.batch[row]) continue;
    const std::int64_t tokens = tokens_of(state, SeqIdx{static_cast<std::int64_t>(row)});
    const std::uint32_t* first = state.lookup_table.data() + row * static_cast<std::size_t>(state.table_columns);
    const std::span pages(first, static_cast<std::size_t>(ceil_div(tokens, page_size)));
    const auto found = std::ranges::find(pages, block);
    if (found != pages.end()) lowest = Holder{state.batch[row], found - pages.begin(), tokens};
  }
  return lowest;
}

}  // namespace

trace::Question locate(const Scenario& scenario, const CacheState& state, std::int64_t byte) {
  const Shape<6> sizes = pool_extents(scenario, scenario.model.layers, scenario.model.head_size);
  const std::int64_t element_bytes = size_of(scenario.cache.dtype);
  check_index("byte", byte, checked_mul(count_of(sizes), element_bytes, "bytes of the pool"),
              fmt::format("the pool is [{}] of {}, {} B an element", fmt::join(sizes, ", "), name(scenario.cache.dtype),
                          element_bytes));
  const PoolIndex at = split(byte / element_bytes, sizes);
  if (scenario.cache.kind == CacheKind::paged && at.block == scenario.cache.blocks) {
    throw IndexError(fmt::format(
        "byte {} is in the null page, block {}: unused table entries point there, and no token does", byte, at.block));
  }
  const std::optional<Holder> holder = holder_of(state, at.block, sizes[3]);
  if (!holder) {
    throw IndexError(
        fmt::format("byte {} is in block {}, which no sequence of the batch of step {} holds: choose another step, or "
                    "a block that is in use",
                    byte, at.block, state.step.value));
  }
  const std::int64_t token = holder->page * sizes[3] + at.slot;
  if (token >= holder->tokens) {
    throw IndexError(
        fmt::format("byte {} is in slot {} of block {}, which holds no token yet: page {} of sequence {} ends after {} "
                    "of {} slots at step {}",
                    byte, at.slot, at.block, holder->page, holder->seq.value, holder->tokens - holder->page * sizes[3],
                    sizes[3], state.step.value));
  }
  trace::Question question;
  question.seq = holder->seq;
  question.token = TokIdx{token};
  question.layer = LayerIdx{at.layer};
  question.head = HeadIdx{at.head};
  question.dim = DimIdx{at.dim};
  question.kv = at.kv == 0 ? KOrV::k : KOrV::v;
  question.step = state.step;
  return question;
}

trace::Question locate(const Scenario& scenario, std::span<const Request> requests, std::int64_t byte, StepIdx step) {
  if (step.value < 0) {
    throw IndexError(
        fmt::format("step {} is before the first: nothing is stored yet, go to step 0 or later", step.value));
  }
  return locate(scenario, state_at(scenario, requests, step).cache, byte);
}

}  // namespace kvscope

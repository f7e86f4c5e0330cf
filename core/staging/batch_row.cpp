#include "core/staging/detail/batch_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {

std::optional<SeqIdx> batch_row_of(const CacheState& state, SeqIdx seq) {
  const auto found = std::ranges::find(state.batch, seq);
  if (found == state.batch.end()) return std::nullopt;
  return SeqIdx{found - state.batch.begin()};
}

SeqIdx require_batch_row(const CacheState& state, SeqIdx seq) {
  if (const auto row = batch_row_of(state, seq)) return *row;
  throw IndexError(
      fmt::format("sequence {} is not in the batch of step {}, which holds {}: choose one of these, or another step",
                  seq.value, state.step.value, batch_text(state)));
}

std::string batch_text(const CacheState& state) {
  constexpr std::size_t kShown = 8;
  std::vector<std::int64_t> shown;
  for (const SeqIdx seq : state.batch) shown.push_back(seq.value);
  const bool cut = shown.size() > kShown;
  if (cut) shown.resize(kShown);
  return fmt::format("{}{}", fmt::join(shown, ", "), cut ? fmt::format(", ... {} in all", state.batch.size()) : "");
}

}  // namespace kvscope

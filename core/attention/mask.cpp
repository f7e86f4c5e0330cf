#include "core/attention/mask.h"

#include <algorithm>

namespace kvscope::attention {
namespace {

// Both limits may be huge (a window of 2^62 is "no limit" in some engines), so they are compared before the addition.
std::int64_t reach_left(std::int64_t position, std::int64_t left) {
  return left < 0 || left > position ? 0 : position - left;
}

std::int64_t reach_right(std::int64_t position, std::int64_t right, std::int64_t keys) {
  return right < 0 || right >= keys - position ? keys : position + right + 1;
}

}  // namespace

std::int64_t query_position(const Options& options, std::int64_t query, std::int64_t queries, std::int64_t keys) {
  return options.alignment == CausalAlignment::bottom_right ? keys - queries + query : query;
}

KeyRange visible_keys(const Options& options, std::int64_t query, std::int64_t queries, std::int64_t keys) {
  const std::int64_t position = query_position(options, query, queries, keys);
  KeyRange range{0, keys};
  switch (options.mask) {
    case MaskKind::none:
      break;
    case MaskKind::causal:
      range.last = position + 1;
      break;
    case MaskKind::sliding_window:
      range.first = reach_left(position, options.window_left);
      range.last = reach_right(position, options.window_right, keys);
      break;
    case MaskKind::chunked:
      range.first = position < 0 ? 0 : position / options.chunk * options.chunk;
      range.last = position + 1;
      break;
  }
  range.last = std::min(range.last, keys);
  return range.first < range.last ? range : KeyRange{};
}

KeyRange visible_keys_of(const Options& options, std::int64_t first_query, std::int64_t last_query,
                         std::int64_t queries, std::int64_t keys) {
  KeyRange all;
  for (std::int64_t query = first_query; query < last_query; ++query) {
    const KeyRange one = visible_keys(options, query, queries, keys);
    if (one.empty()) continue;
    all = all.empty() ? one : KeyRange{std::min(all.first, one.first), std::max(all.last, one.last)};
  }
  return all;
}

}  // namespace kvscope::attention

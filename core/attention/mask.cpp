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
  // Both ends of a query's range rise with the query, so the queries that see a key are consecutive: those before them
  // are before the first key, those after them are past what the mask shows of the last one. Offsets of a file can
  // claim 2^40 queries, so they are not visited one by one.
  const auto sees_none = [&](std::int64_t query) { return visible_keys(options, query, queries, keys).empty(); };
  const auto first_that = [&](std::int64_t from, const auto& holds) {  // rising: false, then true
    for (std::int64_t end = last_query; from < end;) {
      const std::int64_t middle = from + (end - from) / 2;
      if (holds(middle)) {
        end = middle;
      } else {
        from = middle + 1;
      }
    }
    return from;
  };
  const std::int64_t first = first_that(first_query, [&](std::int64_t query) {
    return query_position(options, query, queries, keys) >= 0 || !sees_none(query);
  });
  const std::int64_t end = first_that(first, sees_none);
  if (first >= end) return {};
  return {visible_keys(options, first, queries, keys).first, visible_keys(options, end - 1, queries, keys).last};
}

}  // namespace kvscope::attention

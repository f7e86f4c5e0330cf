// Hypotheses about the loops over the keys of a sequence, its pages and tiles: a loop that starts late, ends early or
// has the wrong step leaves out the same slots of each page or tile.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

// Leaves out the keys of each sequence for which `is_left_out` holds.
void add_left_out(Trials& trials, std::string name, std::string cause, std::string look_at,
                  std::function<bool(std::int64_t position, std::int64_t keys)> is_left_out) {
  trials.add(std::move(name), std::move(cause), std::move(look_at),
             [is_left_out = std::move(is_left_out)](Recipe& recipe, const RowEvaluator& row) {
               const std::int64_t keys = row.problem().keys(row.sequence());
               std::erase_if(recipe.keys, [&](const KeyRead& key) { return is_left_out(key.position, keys); });
             });
}

void add_first_keys(Trials& trials) {
  for (const std::int64_t count : {2, 4, 8}) {
    if (count == trials.problem.k.page_size) continue;  // the first page
    add_left_out(trials, "first_keys_missing", fmt::format("the first {} keys of each sequence are left out", count),
                 "where the loop over keys starts", [count](std::int64_t at, std::int64_t) { return at < count; });
  }
}

// Each of `warps` warps takes `chunk` keys in turn, and some of their results are lost.
void add_warps(Trials& trials, std::int64_t warps, std::int64_t chunk, std::int64_t longest) {
  if (chunk * (warps - 1) >= longest) return;  // no keys for the last of them
  const std::string how = fmt::format("warps take {} in turn", chunk == 1 ? "one key" : fmt::format("{} keys", chunk));
  const std::string look_at =
      "the sum over warps: each writes its maximum, sum and output to shared memory, then a barrier";
  add_left_out(trials, "one_warp_used", fmt::format("only the part of warp 0 of {} is used ({})", warps, how), look_at,
               [warps, chunk](std::int64_t at, std::int64_t) { return at / chunk % warps != 0; });
  add_left_out(trials, "one_warp_used", fmt::format("only the part of the last of {} warps is used ({})", warps, how),
               look_at, [warps, chunk](std::int64_t at, std::int64_t) { return at / chunk % warps != warps - 1; });
  for (std::int64_t warp = 0; warp < warps; ++warp) {
    add_left_out(trials, "warp_missing", fmt::format("the part of warp {} of {} is lost ({})", warp, warps, how),
                 look_at, [warps, chunk, warp](std::int64_t at, std::int64_t) { return at / chunk % warps == warp; });
  }
}

void add_longest_lengths(Trials& trials, std::int64_t longest) {
  for (std::int64_t count = 16; count < longest; count *= 2) {
    add_left_out(trials, "length_limited", fmt::format("only the first {} keys of each sequence are used", count),
                 "a limit of the number of keys: an array in shared memory, a maximum length, one split or tile only",
                 [count](std::int64_t at, std::int64_t) { return at >= count; });
  }
}

// The same keys of each page, or of each tile of `size` keys.
void add_parts(Trials& trials, std::int64_t size, bool is_page) {
  const std::string what = is_page ? "page" : fmt::format("tile of {} keys", size);
  const std::string look_at = fmt::format("the loop over {}: its start, its end and its step",
                                          is_page ? "the slots of a page" : "the keys of a tile");
  const auto add = [&](std::string cause, std::function<bool(std::int64_t position, std::int64_t keys)> left_out) {
    add_left_out(trials, is_page ? "page_slots_missing" : "tile_keys_missing", std::move(cause), look_at,
                 std::move(left_out));
  };
  const std::int64_t half = size / 2;
  add(fmt::format("the first key of each {} is left out", what),
      [size](std::int64_t at, std::int64_t) { return at % size == 0; });
  add(fmt::format("the last key of each {} is left out, full or not", what),
      [size](std::int64_t at, std::int64_t keys) { return at % size == size - 1 || at == keys - 1; });
  add(fmt::format("the last key of each full {} is left out", what),
      [size](std::int64_t at, std::int64_t) { return at % size == size - 1; });
  if (half < 2) return;  // one key, as above
  add(fmt::format("the first {} keys of each {} are left out", half, what),
      [size, half](std::int64_t at, std::int64_t) { return at % size < half; });
  add(fmt::format("the last {} keys of each {} are left out", size - half, what),
      [size, half](std::int64_t at, std::int64_t) { return at % size >= half; });
}

}  // namespace

void add_loops(Trials& trials) {
  const std::int64_t longest = trials.longest();
  add_first_keys(trials);
  for (const std::int64_t odd : {1, 0}) {
    add_left_out(trials, "keys_skipped", fmt::format("every second key is left out, from key {} on", odd),
                 "the step of the loop over keys", [odd](std::int64_t at, std::int64_t) { return at % 2 == odd; });
  }
  const std::int64_t page = trials.problem.k.page_size;
  std::vector<std::int64_t> sizes{page};  // first: of faults with the same output, the first is named
  for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
    if (tile != page) sizes.push_back(tile);
  }
  for (const std::int64_t size : sizes) {
    // In one page or tile, its first or last key is that of the sequence.
    if (size > 1 && size < longest) add_parts(trials, size, size == page);
  }
  trials.one_of_many = true;
  add_longest_lengths(trials, longest);
  std::set<std::int64_t> chunks{1, 4, 8, 16, 32, 64, page};
  for (const std::int64_t chunk : chunks) {
    for (const std::int64_t warps : {3, 4, 8}) add_warps(trials, warps, chunk, longest);
  }
  trials.one_of_many = false;
}

}  // namespace kvscope::golden

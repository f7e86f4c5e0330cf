// Hypotheses about tiles of K and V in shared memory and in the registers of matrix instructions: swizzle, the order of
// rows, the squares that ldmatrix transposes, and the elements of a row that take part.
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

void add_swizzles(Trials& trials) {
  const auto fits = [](const attention::PagedRows& rows, std::int64_t span) {
    return bits(rows.dtype) >= 8 && rows.head_size * size_of(rows.dtype) % span == 0;
  };
  for (const std::int64_t span : {128, 64, 32}) {
    const bool k = fits(trials.problem.k, span), v = fits(trials.problem.v, span);
    const auto add = [&](const char* of, bool of_k, bool of_v) {
      trials.add("swizzle",
                 fmt::format("the 16-byte chunks of {} are not where the {}-byte swizzle puts them", of, span),
                 "the swizzle mode of the tensor map, and the XOR of the address that reads shared memory",
                 [=](Recipe& r, const RowEvaluator&) {
                   if (of_k) r.k_swizzle = span;
                   if (of_v) r.v_swizzle = span;
                 });
    };
    if (k) add("K", true, false);
    if (v) add("V", false, true);
    if (k && v) add("K and V", true, true);
  }
}

// V of each key is read from the row of another key of the tile, K correctly; or the other way round. Rows past the end
// of the sequence hold what their slots hold, or zeros.
void add_rows(Trials& trials) {
  using Other = std::function<std::int64_t(std::int64_t position)>;
  const auto add = [&](const std::string& cause, const std::string& look_at, bool of_v, const Other& other) {
    for (const bool zeros : {false, true}) {
      trials.add("tile_rows", cause, look_at, [=](Recipe& r, const RowEvaluator& row) {
        const std::int64_t keys = row.problem().keys(row.sequence());
        for (KeyRead& key : r.keys) {
          const std::int64_t from = other(key.position);
          const KeyRead read = from >= 0 ? keys_of(row.problem(), row.sequence(), from, from + 1).front() : key;
          const bool is_past = from < 0 || from >= keys;
          if (of_v) {
            key.v_block = read.block;
            key.v_slot = read.slot;
            key.v_scale_block = read.v_scale_block;
            key.v_zeros = zeros && is_past;
          } else {
            key.v_block = key.block;
            key.v_slot = key.slot;
            key.block = read.block;
            key.slot = read.slot;
            key.k_scale_block = read.k_scale_block;
          }
        }
      });
      if (!of_v) return;  // the score of a row of zeros is masked with its key
    }
  };
  const std::string order =
      "the rows of V that a thread multiplies with its probabilities: the order of keys in a fragment of P";
  for (const std::int64_t bit : {1, 2, 4, 8}) {
    add(fmt::format("key t is multiplied with row t ^ {} of V", bit), order, true,
        [bit](std::int64_t t) { return t ^ bit; });
  }
  // Two accumulators of 8 keys as one operand of 16: a thread has keys 2q, 2q + 1 of each.
  add("the keys of V are in the order of one thread's registers: 0, 1, 8, 9, 2, 3, 10, 11, ... of 16", order, true,
      [](std::int64_t t) { return t / 16 * 16 + t % 16 / 4 * 2 + t % 4 / 2 * 8 + t % 2; });
  add("the keys of P are in the order of one thread's registers: 0, 1, 8, 9, 2, 3, 10, 11, ... of 16", order, true,
      [](std::int64_t t) { return t / 16 * 16 + t % 8 / 2 * 4 + t % 16 / 8 * 2 + t % 2; });
  const std::string start = "the first row of each tile: the coordinates of the copies of K and V";
  for (const std::int64_t by : {1, -1}) {
    const char* which = by > 0 ? "next" : "previous";
    add(fmt::format("V is read from the {} key, K correctly", which), start, true,
        [by](std::int64_t t) { return t + by; });
    add(fmt::format("K is read from the {} key, V correctly", which), start, false,
        [by](std::int64_t t) { return t + by; });
  }
}

void add_transposed(Trials& trials) {
  const auto add = [&](const char* of, bool of_k, bool of_v) {
    trials.add("squares_transposed", fmt::format("squares of 8 keys and 8 elements of {} are transposed", of),
               "ldmatrix with .trans and without: V takes the one that K does not",
               [=](Recipe& r, const RowEvaluator&) {
                 r.k_transposed = of_k;
                 r.v_transposed = of_v;
               });
  };
  const bool k = trials.problem.k.head_size % 8 == 0, v = trials.problem.v.head_size % 8 == 0;
  if (v) add("V", false, true);
  if (k) add("K", true, false);
  if (k && v) add("K and V", true, true);
}

// A dot product over fewer elements than the head has.
void add_used_elements(Trials& trials) {
  const std::int64_t size = trials.problem.k.head_size;
  std::set<std::int64_t, std::greater<>> counts{size - 4,     size - 8, size - 16, size - 32,
                                                size / 4 * 3, size / 2, size / 4};
  for (const std::int64_t boxes : {32, 64, 128, 256, 512}) counts.insert(boxes);
  for (const std::int64_t count : counts) {
    if (count <= 0 || count >= size) continue;
    if (trials.problem.k.data == trials.problem.v.data && count == trials.problem.v.head_size)
      continue;  // rope_part_missing
    trials.add("elements_left_out",
               fmt::format("the scores have the products of the first {} of {} elements only", count, size),
               "the loop over the elements of a head, and the boxes of K that were copied",
               [count](Recipe& r, const RowEvaluator&) { r.k_used = count; });
  }
}

}  // namespace

void add_staging(Trials& trials) {
  add_swizzles(trials);
  add_rows(trials);
  add_transposed(trials);
  add_used_elements(trials);
}

}  // namespace kvscope::golden

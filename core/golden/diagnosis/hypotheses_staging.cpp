// Hypotheses about tiles of K and V in shared memory and in the registers of matrix instructions: swizzle, the order of
// rows, the squares that ldmatrix transposes, and the elements of a row that take part.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/golden/diagnosis/detail/splits.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

bool fits(const attention::PagedRows& rows, SwizzleMode mode) {
  return bits(rows.dtype) >= 8 && rows.head_size % swizzle_granularity(rows.dtype, mode) == 0;
}

// `cause` of K, V, or both, whose chunks are taken in `order`.
void add_chunk_order(Trials& trials, const ChunkOrder& order, const std::string& look_at,
                     const std::function<std::string(const char* of)>& cause) {
  const auto add = [&](const char* of, bool of_k, bool of_v) {
    trials.add("swizzle", cause(of), look_at, [=](Recipe& r, const RowEvaluator&) {
      if (of_k) r.k_chunks = order;
      if (of_v) r.v_chunks = order;
    });
  };
  const bool k = fits(trials.problem.k, order.stored), v = fits(trials.problem.v, order.stored);
  if (k) add("K", true, false);
  if (v) add("V", false, true);
  if (k && v) add("K and V", true, true);
}

std::string row_bits(int shift, std::int64_t mask) {
  return shift == 0 ? fmt::format("(row & {})", mask) : fmt::format("(row >> {} & {})", shift, mask);
}

constexpr const char* kExclusiveOr =
    "the swizzle mode of the tensor map, and the XOR of the address that reads shared memory";

// A swizzle that the reader undoes with the wrong bits of the row. Example: the 128-byte swizzle stores chunk c of row
// r at c ^ (r & 7).
void add_other_row_bits(Trials& trials, SwizzleMode mode) {
  const std::int64_t all = bytes(mode) / kChunkBytes - 1;  // bits of a chunk's number
  const int correct = mode == SwizzleMode::b128 ? 0 : mode == SwizzleMode::b64 ? 1 : 2;
  for (const int shift : {0, 1, 2, 3}) {
    for (std::int64_t mask = all; mask > 0; mask /= 2) {
      if (shift == correct && mask == all) continue;
      add_chunk_order(trials, {mode, shift, mask}, kExclusiveOr, [=](const char* of) {
        return fmt::format(
            "chunks of {} are read at chunk ^ {} instead of chunk ^ {}, where the {}-byte swizzle puts them", of,
            row_bits(shift, mask), row_bits(correct, all), bytes(mode));
      });
    }
  }
  const std::int64_t period = 8 * bytes(mode);
  for (std::int64_t past = 128; past < period; past += 128) {
    add_chunk_order(trials, {mode, correct, all, past / bytes(mode)},
                    "the alignment of the tile in shared memory: the swizzle takes the bits of the address",
                    [=](const char* of) {
                      return fmt::format(
                          "the tile of {} begins {} bytes after a multiple of {}, and the reader's XOR "
                          "counts rows from its beginning",
                          of, past, period);
                    });
  }
}

// A swizzle that the reader does not undo, or undoes wrongly. The latter for the widest one that a row allows, which
// kernels use.
void add_swizzles(Trials& trials) {
  bool widest = true;
  for (const SwizzleMode mode : {SwizzleMode::b128, SwizzleMode::b64, SwizzleMode::b32}) {
    if (!fits(trials.problem.k, mode) && !fits(trials.problem.v, mode)) continue;
    add_chunk_order(trials, {.stored = mode}, kExclusiveOr, [mode](const char* of) {
      return fmt::format("the 16-byte chunks of {} are not where the {}-byte swizzle puts them", of, bytes(mode));
    });
    if (std::exchange(widest, false)) add_other_row_bits(trials, mode);
  }
}

// The key of whose row K or V is read: that of the key at `position` of `keys`; below 0: a row of zeros.
using Other = std::function<std::int64_t(std::int64_t position, std::int64_t keys)>;

// Rows past the end of the sequence hold what their slots hold, or zeros.
void add_other_rows(Trials& trials, const std::string& cause, const std::string& look_at, bool of_k, bool of_v,
                    const Other& other) {
  for (const bool zeros : {false, true}) {
    trials.add("tile_rows", cause, look_at, [=](Recipe& r, const RowEvaluator& row) {
      const std::int64_t keys = row.problem().keys(row.sequence());
      for (KeyRead& key : r.keys) {
        const std::int64_t from = other(key.position, keys);
        const KeyRead own = key;
        const KeyRead read = from >= 0 ? key_of(row.problem(), row.sequence(), from) : key;
        const KeyRead& v = of_v ? read : own;
        key.v_block = v.block;
        key.v_slot = v.slot;
        key.v_scale_block = v.v_scale_block;
        key.v_zeros = of_v && (from < 0 || (zeros && from >= keys));
        if (!of_k) continue;
        key.block = read.block;
        key.slot = read.slot;
        key.k_scale_block = read.k_scale_block;
      }
    });
    if (!of_v) return;  // the score of a row of zeros is masked with its key
  }
}

// V of each key is read from the row of another key, K correctly, or the other way round.
void add_rows(Trials& trials) {
  const std::string order = "the order of keys in a fragment of P, and of the rows of V and K that a thread multiplies";
  for (const bool of_k : {false, true}) {
    for (const std::int64_t bit : {1, 2, 4, 8}) {
      add_other_rows(trials, fmt::format("key t is multiplied with row t ^ {} of {}", bit, of_k ? "K" : "V"), order,
                     of_k, !of_k, [bit](std::int64_t t, std::int64_t) { return t ^ bit; });
    }
  }
  // Two accumulators of 8 keys as one operand of 16: a thread has keys 2q, 2q + 1 of each.
  const std::string fragment = "are in the order of one thread's registers: 0, 1, 8, 9, 2, 3, 10, 11, ... of 16";
  add_other_rows(trials, "the keys of V " + fragment, order, false, true,
                 [](std::int64_t t, std::int64_t) { return t / 16 * 16 + t % 16 / 4 * 2 + t % 4 / 2 * 8 + t % 2; });
  add_other_rows(trials, "the keys of P " + fragment, order, false, true,
                 [](std::int64_t t, std::int64_t) { return t / 16 * 16 + t % 8 / 2 * 4 + t % 16 / 8 * 2 + t % 2; });
  const std::string start = "the first row of each tile: the coordinates of the copies of K and V";
  for (const std::int64_t by : {1, -1}) {
    for (const bool of_k : {false, true}) {
      add_other_rows(trials,
                     fmt::format("{} is read from the {} key, {} correctly", of_k ? "K" : "V",
                                 by > 0 ? "next" : "previous", of_k ? "V" : "K"),
                     start, of_k, !of_k, [by](std::int64_t t, std::int64_t) { return t + by; });
    }
  }
}

// Tiles in two stages of shared memory: while a tile is used, the next one is copied to the other stage, which keeps
// the tile before once there is no next one. Stage 0 alone has each tile of an even number, or the one after. A copy of
// the tile in use instead of the next one leaves each tile but the first with the tile before it. `cut`: splits whose
// tiles are counted anew; nullptr: one split.
void add_stages(Trials& trials, std::int64_t tile, const Splits* cut) {
  const auto other_stage = [tile](std::int64_t t, std::int64_t keys) {
    return t / tile < (keys - 1) / tile ? t + tile : t - tile;
  };
  const auto stage_0 = [tile, other_stage](std::int64_t t, std::int64_t keys) {
    return t / tile % 2 == 0 ? t : other_stage(t, keys);
  };
  const auto tile_before = [tile](std::int64_t t, std::int64_t) { return t < tile ? t : t - tile; };
  const auto in_split = [cut](Other other) -> Other {
    if (cut == nullptr) return other;
    return [of_keys = *cut, other = std::move(other)](std::int64_t t, std::int64_t keys) {
      const std::int64_t size = of_keys.size(keys), first = t / size * size;
      return first + other(t - first, std::min(size, keys - first));
    };
  };
  const std::string where = cut == nullptr ? "" : ", in each of " + cut->how;
  const std::string index =
      "the index of the stage: the tile's number modulo the stages, for the copy and for the reader";
  for (const auto& [what, of_k, of_v] :
       {std::tuple{"V is", false, true}, {"K is", true, false}, {"K and V are", true, true}}) {
    const auto add = [&, what = what, of_k = of_k, of_v = of_v](const char* from, const std::string& look_at,
                                                                const Other& other) {
      add_other_rows(trials, fmt::format("{} read from {}, in tiles of {} keys{}", what, from, tile, where), look_at,
                     of_k, of_v, in_split(other));
    };
    // What a split of one tile finds in the other stage is not known.
    if (cut == nullptr) add("the other of two stages", index, other_stage);
    add("stage 0 of two stages", index, stage_0);
    // Pages of one split: the lookup table's column before (hypotheses_table.cpp).
    if (cut == nullptr && of_k && of_v && tile == trials.problem.k.page_size) continue;
    add("the tile before, except the first tile", "the number of the tile that is copied ahead: the next one",
        tile_before);
  }
}

// A tile of several pages for which one table entry is read.
void add_pages_of_tiles(Trials& trials, std::int64_t tile) {
  const std::int64_t page = trials.problem.k.page_size;
  const std::string look_at = "the copy of a tile: one for each page, with the page's entry of the lookup table";
  const auto first = [tile](const RowEvaluator& row, const KeyRead& key) {
    return key_of(row.problem(), row.sequence(), key.position / tile * tile);
  };
  const auto add = [&](std::string cause, std::function<void(KeyRead & key, const KeyRead& first)> change) {
    trials.add("tile_pages", std::move(cause), look_at, [=](Recipe& r, const RowEvaluator& row) {
      for (KeyRead& key : r.keys) {
        if (key.position % tile >= page) change(key, first(row, key));
      }
    });
  };
  add(fmt::format("all pages of a tile of {} keys are read from the block of its first page", tile),
      [](KeyRead& key, const KeyRead& first_key) {
        key.block = first_key.block;
        key.k_scale_block = first_key.k_scale_block;
        key.v_scale_block = first_key.v_scale_block;
      });
  add(fmt::format("a tile of {} keys is read as if its pages were consecutive blocks", tile),
      [tile, page](KeyRead& key, const KeyRead& first_key) {
        key.block = first_key.block + key.position % tile / page;
        if (first_key.k_scale_block >= 0) key.k_scale_block = first_key.k_scale_block + key.position % tile / page;
        if (first_key.v_scale_block >= 0) key.v_scale_block = first_key.v_scale_block + key.position % tile / page;
      });
  add(fmt::format("only the first page of each tile of {} keys is copied: the other rows are zeros", tile),
      [](KeyRead& key, const KeyRead&) { key.zeros = true; });
}

void add_tiles(Trials& trials) {
  const std::int64_t longest = trials.longest();
  const std::int64_t page = trials.problem.k.page_size;
  std::set<std::int64_t> tiles{page, 16, 32, 64, 128};
  tiles.erase(1);
  for (const std::int64_t tile : tiles) {
    if (tile < longest) add_stages(trials, tile, nullptr);
    if (tile > page && tile % page == 0 && longest > page) add_pages_of_tiles(trials, tile);
  }
  trials.longer_form = true;
  const std::vector<Splits> splits = common_splits(trials.problem, longest);
  for (const std::int64_t tile : tiles) {
    for (const Splits& cut : splits) {
      const bool whole = cut.unit == tile || (cut.unit == page && page % tile == 0);
      if (whole && cut.size(longest) > tile) add_stages(trials, tile, &cut);
    }
  }
  trials.longer_form = false;
}

void add_transposed(Trials& trials) {
  const auto add = [&](const char* of, bool of_k, bool of_v) {
    for (const bool zeros : {false, true}) {
      trials.add("squares_transposed", fmt::format("squares of 8 keys and 8 elements of {} are transposed", of),
                 "ldmatrix with .trans and without: V takes the one that K does not",
                 [=](Recipe& r, const RowEvaluator&) {
                   r.k_transposed = of_k;
                   r.v_transposed = of_v;
                   r.zeros_past_end = zeros;
                 });
    }
  };
  const bool k = trials.problem.k.head_size % 8 == 0, v = trials.problem.v.head_size % 8 == 0;
  if (v) add("V", false, true);
  if (k) add("K", true, false);
  if (k && v) add("K and V", true, true);
}

// A dot product over fewer elements than the head has.
void add_used_elements(Trials& trials) {
  const std::int64_t size = trials.problem.k.head_size;
  std::set<std::int64_t, std::greater<>> counts{size - 1,  size - 2,     size - 4, size - 8, size - 16,
                                                size - 32, size / 4 * 3, size / 2, size / 4};
  for (const std::int64_t boxes : {8, 16, 32, 64, 128, 256, 512}) counts.insert(boxes);
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

// A score that is added over half of the lanes. Element e of a head belongs to lane e % 32, or to lane e / n with n
// elements in each lane: either way, the halves are runs of elements whose number is a power of two.
void add_half_scores(Trials& trials) {
  using Output = LaneHalves::Output;
  const std::int64_t size = trials.problem.k.head_size, longest = trials.longest();
  const auto add = [&](std::int64_t run, const std::string& what, Output output, const Splits* cut) {
    trials.add("score_half_added",
               fmt::format("a shuffle step of the score's sum is missing: {} of the elements e with e / {} % 2 = {}{}",
                           what, run, output == Output::of_half_0 ? "0" : fmt::format("d / {} % 2", run),
                           cut == nullptr ? "" : " (" + cut->how + ")"),
               "the shuffles that add a score over the lanes of a warp: their offsets are 16, 8, 4, 2 and 1",
               [=, size = cut == nullptr ? nullptr : cut->of_keys](Recipe& r, const RowEvaluator&) {
                 r.lanes = {run, output, 0};
                 if (size) r.merged_split = size(static_cast<std::int64_t>(r.keys.size()));
               });
  };
  const std::vector<Splits> splits = common_splits(trials.problem, longest);
  for (std::int64_t run = 1; run < size; run *= 2) {
    if (2 * run < size) add(run, "it has the products", Output::of_half_0, nullptr);  // else elements_left_out
    if (run >= trials.problem.v.head_size) continue;                                  // no element of o in half 1
    const std::string own = "element d of o has the scores";
    add(run, own, Output::by_own_sum, nullptr);
    add(run, own + ", but not the sum,", Output::by_sum_0, nullptr);
    for (const Splits& cut : splits) {
      if (cut.number > 0 && (cut.unit == 1 || cut.unit == trials.problem.k.page_size)) {
        add(run, own + ", but not the sum,", Output::by_sum_0, &cut);
      }
    }
  }
}

}  // namespace

void add_staging(Trials& trials) {
  add_swizzles(trials);
  trials.one_of_many = true;
  add_rows(trials);
  add_tiles(trials);
  trials.one_of_many = false;
  add_transposed(trials);
  add_used_elements(trials);
  add_half_scores(trials);
}

}  // namespace kvscope::golden

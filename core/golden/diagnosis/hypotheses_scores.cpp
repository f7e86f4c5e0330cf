// Hypotheses about scores: scale, soft cap, ALiBi, sinks, rotary embedding, lse, mask, length.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/golden/diagnosis/detail/trials.h"

namespace kvscope::golden {
namespace {

using attention::KeyRange;

std::size_t first_head_of_group(const RowEvaluator& row) {
  const std::int64_t group = row.problem().query_heads / row.problem().k.heads;
  return static_cast<std::size_t>(row.head() / group * group);
}

// --- conventions -----------------------------------------------------------------------------------------------------

void add_conventions(Trials& trials) {
  const attention::Options& options = trials.problem.options;
  const double scale = options.scale;
  const std::string where = "the factor of q . k before the softmax";
  const auto scaled = [&](const std::string& name, const std::string& cause, double factor) {
    if (factor == scale) return;
    trials.add(name, cause, where, [factor](Recipe& r, const RowEvaluator&) { r.scale = factor; });
  };
  scaled("scale_missing", fmt::format("the scores are not multiplied by the scale {:.6g}", scale), 1.0);
  scaled("scale_missing",
         fmt::format("the scores are not multiplied by the scale {:.6g}, and exp2 is used without the factor log2(e)",
                     scale),
         std::numbers::ln2);
  scaled("scale_twice", fmt::format("the scale {:.6g} is applied twice (for example 1/d for 1/sqrt(d))", scale),
         scale * scale);
  scaled("scale_base_two", "exp2 is used without the factor log2(e)", scale * std::numbers::ln2);
  scaled("scale_base_two", "the factor log2(e) of exp2 is applied twice, or exp is used with it",
         scale * std::numbers::log2e);
  std::set<std::int64_t> sizes{
      16, 32, 64, 80, 96, 128, 192, 256, 512, 576, trials.problem.k.head_size, trials.problem.v.head_size};
  for (const std::int64_t size : sizes) {
    const double other = 1.0 / std::sqrt(static_cast<double>(size));
    if (std::fabs(other - scale) < 1e-12) continue;
    scaled("scale_of_other_head_size",
           fmt::format("the scores are scaled by 1/sqrt({}) = {:.6g} instead of {:.6g}", size, other, scale), other);
  }
  if (options.soft_cap) {
    trials.add("soft_cap_missing", fmt::format("the soft cap {} is not applied", *options.soft_cap),
               "cap * tanh(score / cap), after the scale and before the mask",
               [](Recipe& r, const RowEvaluator&) { r.soft_cap.reset(); });
    trials.add("soft_cap_before_scale", "the soft cap is applied to q . k before the scale",
               "the order of scale and soft cap: the scale comes first",
               [](Recipe& r, const RowEvaluator&) { r.cap_before_scale = true; });
  } else {
    for (const double cap : {20.0, 30.0, 50.0}) {
      trials.add("soft_cap_added", fmt::format("a soft cap of {} is applied, but the golden has none", cap),
                 "the kernel's soft cap parameter", [cap](Recipe& r, const RowEvaluator&) { r.soft_cap = cap; });
    }
  }
  if (!options.alibi_slopes.empty()) {
    trials.add("alibi_missing", "the ALiBi bias is not added", "slope * (key position - query position)",
               [](Recipe& r, const RowEvaluator&) { r.slope = 0; });
    trials.add("alibi_sign", "the ALiBi bias is subtracted instead of added", "the sign of the slope",
               [](Recipe& r, const RowEvaluator&) { r.slope = -r.slope; });
    trials.add("alibi_origin", "the ALiBi bias counts from key 0 instead of the query's position",
               "the origin of the bias: it changes lse only",
               [](Recipe& r, const RowEvaluator&) { r.slope_origin = 0; });
    trials.add("alibi_of_kv_head", "the ALiBi slope of the KV head is used instead of the query head's",
               "the index into the slopes", [](Recipe& r, const RowEvaluator& row) {
                 r.slope = row.problem().options.alibi_slopes[static_cast<std::size_t>(r.k_head)];
               });
    trials.add("alibi_of_kv_head", "the ALiBi slope of the first query head of a group is used for the whole group",
               "the index into the slopes", [](Recipe& r, const RowEvaluator& row) {
                 r.slope = row.problem().options.alibi_slopes[first_head_of_group(row)];
               });
  }
  if (!options.bias.empty()) {
    const auto with_biases_of = [](Recipe& r, const RowEvaluator& row, std::int64_t head) {
      const KeyRange seen = visible_with(row.problem().options, row, row.problem().keys(row.sequence()));
      r.keys = keys_of(row.problem(), row.sequence(), seen.first, seen.last);
      if (head >= 0) add_biases(row.problem(), row.sequence(), row.query_in_sequence(), head, r.keys);
    };
    trials.add("bias_missing", "the biases of the mask tensor are not added", "the mask that the kernel is given",
               [with_biases_of](Recipe& r, const RowEvaluator& row) { with_biases_of(r, row, -1); });
    if (options.bias.head_stride != 0) {
      trials.add("bias_of_other_head", "the biases of query head 0 are used for every head",
                 "the stride of the mask's head axis",
                 [with_biases_of](Recipe& r, const RowEvaluator& row) { with_biases_of(r, row, 0); });
      trials.add("bias_of_other_head", "the biases of the KV head's number are used instead of the query head's",
                 "the index into the mask's head axis",
                 [with_biases_of](Recipe& r, const RowEvaluator& row) { with_biases_of(r, row, r.k_head); });
    }
  }
  if (!options.sinks.empty()) {
    trials.add("sink_missing", "the attention sink is left out of the denominator", "the sink logit of each head",
               [](Recipe& r, const RowEvaluator&) { r.sink.reset(); });
    trials.add("sink_of_kv_head", "the sink of the KV head is used instead of the query head's",
               "the index into the sinks", [](Recipe& r, const RowEvaluator& row) {
                 r.sink = row.problem().options.sinks[static_cast<std::size_t>(r.k_head)];
               });
    trials.add("sink_of_kv_head", "the sink of the first query head of a group is used for the whole group",
               "the index into the sinks", [](Recipe& r, const RowEvaluator& row) {
                 r.sink = row.problem().options.sinks[first_head_of_group(row)];
               });
    trials.add("sink_scaled", "the sink logit is multiplied by the scale", "the sink joins the softmax unscaled",
               [](Recipe& r, const RowEvaluator&) { r.sink = *r.sink * r.scale; });
  }
  for (const double base : {10000.0, 500000.0, 1000000.0}) {
    for (const bool interleaved : {false, true}) {
      for (const auto& [query, key] : {std::pair{true, true}, {true, false}, {false, true}}) {
        const char* of = query && key ? "q and K" : query ? "q" : "K";
        trials.add(
            "rotary_twice",
            fmt::format("the rotary embedding (base {}, {} pairs) is applied again to {}", base,
                        interleaved ? "interleaved" : "half", of),
            "the cache holds K after the embedding: do not rotate it again",
            [rotary = Rotary{base, interleaved, query, key}](Recipe& r, const RowEvaluator&) { r.rotary = rotary; });
      }
    }
  }
}

// The maximum and log(sum) in different bases: a kernel that uses exp2 has a maximum in base 2, and log2 of the sum.
// Each factor is then 1, log2(e) or ln(2). With a sink, the maximum may include it or not.
void add_mixed_bases(Trials& trials) {
  struct Factor {
    double value;
    const char* maximum;
    const char* sum;
  };
  constexpr Factor kFactors[] = {{1.0, "maximum", "log(sum)"},
                                 {std::numbers::log2e, "maximum * log2(e)", "log2(sum)"},
                                 {std::numbers::ln2, "maximum * ln(2)", "log(sum) * ln(2)"}};
  const bool two = trials.problem.options.lse_base == attention::LseBase::two;
  for (const Factor& maximum : kFactors) {
    for (const Factor& sum : kFactors) {
      const bool same = maximum.value == sum.value;
      if (same && maximum.value != std::numbers::ln2) continue;  // correct, or in the other base
      for (const SinkJoins joins : {SinkJoins::first_tile, SinkJoins::after}) {
        if (joins == SinkJoins::after && trials.problem.options.sinks.empty()) continue;
        trials.add(same ? "lse_base" : "lse_mixed_bases",
                   fmt::format("lse is {} + {} instead of {}", maximum.maximum, sum.sum,
                               two ? "maximum * log2(e) + log2(sum)" : "maximum + log(sum)"),
                   "the base of the maximum and of the logarithm of the sum: exp goes with log, exp2 with log2",
                   [m = maximum.value, s = sum.value, joins](Recipe& r, const RowEvaluator&) {
                     r.stored_lse = StoredLse::mixed_bases;
                     r.lse_maximum = m;
                     r.lse_sum = s;
                     r.sink_joins = joins;
                   });
      }
    }
  }
}

void add_lse(Trials& trials) {
  const bool two = trials.problem.options.lse_base == attention::LseBase::two;
  trials.add("lse_base", fmt::format("lse is in base {} instead of base {}", two ? "e" : "2", two ? "2" : "e"),
             "the unit of lse (kvscope golden --lse-base)",
             [](Recipe& r, const RowEvaluator&) { r.stored_lse = StoredLse::other_base; });
  trials.add("lse_without_maximum", "lse is log(sum) without the maximum", "lse = maximum + log(sum)",
             [](Recipe& r, const RowEvaluator&) { r.stored_lse = StoredLse::sum_only; });
  add_mixed_bases(trials);
  trials.add("lse_is_maximum", "lse holds the maximum score only", "lse = maximum + log(sum)",
             [](Recipe& r, const RowEvaluator&) { r.stored_lse = StoredLse::maximum_only; });
}

// --- mask and length -------------------------------------------------------------------------------------------------

// Tiles that the mask cuts are taken as whole: their masked keys count.
void add_tile_edges(Trials& trials) {
  const attention::Options options = trials.problem.options;
  const std::string where = "which tiles of keys are computed without the mask";
  for (const std::int64_t tile : {16, 32, 64, 128, 256}) {
    trials.add_visible("tile_edge_unmasked",
                       fmt::format("tiles of {} keys that the window cuts on its left are not masked", tile), where,
                       [options, tile](const RowEvaluator& row, std::int64_t keys) {
                         KeyRange range = visible_with(options, row, keys);
                         range.first = range.first / tile * tile;
                         return range;
                       });
    trials.add_visible("tile_edge_unmasked",
                       fmt::format("tiles of {} keys that the causal limit cuts are not masked", tile), where,
                       [options, tile](const RowEvaluator& row, std::int64_t keys) {
                         KeyRange range = visible_with(options, row, keys);
                         range.last = std::min(keys, ceil_div(range.last, tile) * tile);
                         return range;
                       });
    for (const std::int64_t rows : {16, 64, 128}) {
      trials.add_visible(
          "tile_edge_unmasked",
          fmt::format("tiles of {} keys that the last of {} query rows sees whole are not masked for the others", tile,
                      rows),
          where, [options, tile, rows](const RowEvaluator& row, std::int64_t keys) {
            KeyRange range = visible_with(options, row, keys);
            const std::int64_t bottom = std::min(queries_of(row), (row.query_in_sequence() / rows + 1) * rows) - 1;
            const KeyRange last_row = attention::visible_keys(options, bottom, queries_of(row), keys);
            range.last = std::max(range.last, last_row.last / tile * tile);
            return range;
          });
    }
  }
}

void add_masks(Trials& trials) {
  const attention::Options options = trials.problem.options;
  const std::string mask = "the mask's limits";
  const auto with = [&](const std::string& name, const std::string& cause, const attention::Options& other) {
    trials.add_visible(name, cause, mask,
                       [other](const RowEvaluator& row, std::int64_t keys) { return visible_with(other, row, keys); });
  };
  attention::Options other = options;
  if (options.mask == MaskKind::causal || options.mask == MaskKind::sliding_window) {
    const bool bottom = options.alignment == CausalAlignment::bottom_right;
    other.alignment = bottom ? CausalAlignment::top_left : CausalAlignment::bottom_right;
    with("causal_alignment",
         bottom ? "the causal mask starts at the top left instead of the bottom right"
                : "the causal mask starts at the bottom right instead of the top left",
         other);
  }
  if (options.mask == MaskKind::sliding_window) {
    for (const auto& [left, right] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}}) {
      other = options;
      if (left != 0 && options.window_left < 0) continue;
      if (right != 0 && options.window_right < 0) continue;
      other.window_left += left;
      other.window_right += right;
      if (options.window_left >= 0 && other.window_left < 0) continue;
      if (options.window_right >= 0 && other.window_right < 0) continue;
      with("window_off_by_one",
           fmt::format("the window is ({}, {}) instead of ({}, {})", other.window_left, other.window_right,
                       options.window_left, options.window_right),
           other);
    }
    other = options;
    other.window_left = -1;
    with("window_missing", "the window's left limit is ignored", other);
    trials.add_visible("window_at_start", "as many keys as the window has are read from the sequence's first key on",
                       mask, [options](const RowEvaluator& row, std::int64_t keys) {
                         const KeyRange range = visible_with(options, row, keys);
                         return KeyRange{0, range.last - range.first};
                       });
  }
  if (options.mask == MaskKind::causal || options.mask == MaskKind::none) {
    for (std::int64_t width = 16; width <= 8192; width *= 2) {
      for (const std::int64_t left : {width - 1, width}) {
        other = options;
        other.mask = MaskKind::sliding_window;
        other.window_left = left;
        other.window_right = options.mask == MaskKind::causal ? 0 : -1;
        with("window_added",
             fmt::format("a sliding window of {} keys before the own is applied, but the golden has none", left),
             other);
      }
    }
  }
  if (options.mask != MaskKind::none) {
    other = options;
    other.mask = MaskKind::none;
    with("mask_missing", "no mask: a query sees keys after its own position, and outside its window", other);
  } else {
    other = options;
    other.mask = MaskKind::causal;
    with("causal_added", "a causal mask is applied, but the golden has none", other);
  }
  const auto shifted = [&](const std::string& name, const std::string& cause, std::int64_t by) {
    trials.add_visible(name, cause, "the comparison of key and query position (< or <=)",
                       [options, by](const RowEvaluator& row, std::int64_t keys) {
                         KeyRange range = visible_with(options, row, keys);
                         range.last = std::clamp(range.last + by, range.first, std::max(range.first, keys));
                         return range;
                       });
  };
  if (options.mask != MaskKind::none) add_tile_edges(trials);
  if (options.mask != MaskKind::none) {
    shifted("own_token_masked", "each query misses its last visible key (the mask is < instead of <=)", -1);
    shifted("next_token_seen", "each query sees one key after its own position", 1);
  }
}

void add_lengths(Trials& trials) {
  const attention::Options options = trials.problem.options;
  const std::int64_t page = trials.problem.k.page_size;
  const auto length = [&](const std::string& name, const std::string& cause,
                          std::function<std::int64_t(std::int64_t keys, std::int64_t queries)> changed) {
    trials.add_visible(name, cause, "the length passed to the kernel (with or without this step's tokens), and its use",
                       [options, changed = std::move(changed)](const RowEvaluator& row, std::int64_t keys) {
                         const std::int64_t other = std::max<std::int64_t>(0, changed(keys, queries_of(row)));
                         return visible_with(options, row, other);
                       });
  };
  // The queries keep their positions when only the end of the keys moves.
  const auto end = [&](const std::string& name, const std::string& cause, const std::string& look_at,
                       std::function<std::int64_t(std::int64_t keys)> changed) {
    trials.add_visible(name, cause, look_at,
                       [options, changed = std::move(changed)](const RowEvaluator& row, std::int64_t keys) {
                         KeyRange range = visible_with(options, row, keys);
                         const std::int64_t last = changed(keys);
                         if (range.last == keys || last < range.last) range.last = last;
                         range.last = std::max(range.first, range.last);
                         return range;
                       });
  };
  length("length_without_new", "the sequence length leaves out this step's new tokens",
         [](std::int64_t keys, std::int64_t queries) { return keys - queries; });
  length("length_with_new_twice", "the sequence length counts this step's new tokens twice",
         [](std::int64_t keys, std::int64_t queries) { return keys + queries; });
  end("last_token_missing", "the last key of each sequence is left out", "the loop's end over keys",
      [](std::int64_t keys) { return keys - 1; });
  end("one_token_too_many", "one slot after the last key is read", "the loop's end over keys",
      [](std::int64_t keys) { return keys + 1; });
  if (page > 1) {
    end("one_token_too_many", "one slot after the last key is read, where the last page has one",
        "the comparison that masks the last page (< or <=)",
        [page](std::int64_t keys) { return keys % page == 0 ? keys : keys + 1; });
  }
  // Whether a sequence ends with a full page or tile: others cannot tell a fault of full ones from one of all.
  const auto ends_full = [&](std::int64_t tile) {
    for (std::int64_t b = 0; b < trials.problem.batch; ++b) {
      if (trials.problem.keys(b) > 0 && trials.problem.keys(b) % tile == 0) return true;
    }
    return false;
  };
  if (page > 1 && ends_full(page)) {
    end("last_token_missing", "the last key of each sequence is left out if its last page is partly filled",
        "the number of keys in a last page that is partly filled: len % page_size",
        [page](std::int64_t keys) { return keys % page == 0 ? keys : keys - 1; });
    end("last_page_missing", "the last page of each sequence is left out if it is full",
        "the number of keys in the last page: len % page_size is 0 for a full one",
        [page](std::int64_t keys) { return keys % page == 0 ? keys - page : keys; });
  }
  end("last_page_unmasked", fmt::format("all {} slots of the last page are read, also those without a token", page),
      "the mask of the last page", [page](std::int64_t keys) { return ceil_div(keys, page) * page; });
  // Loops that end too early: at the last full page or tile, or one page or tile before the end.
  std::vector<std::int64_t> tiles{page};  // first: of faults with the same output, the first is named
  for (const std::int64_t tile : {16, 32, 64, 128, 256, 512}) {
    if (tile != page) tiles.push_back(tile);
  }
  for (const std::int64_t tile : tiles) {
    const bool is_page = tile == page;
    const std::string name = is_page ? "last_page_missing" : "last_tile_missing";
    const std::string what = is_page ? "page" : fmt::format("tile of {} keys", tile);
    const std::string look_at = fmt::format("the number of {}s: it rounds up", is_page ? "page" : "tile");
    if (tile > 1) {
      end(name, fmt::format("the partly filled last {} is left out", what), look_at,
          [tile](std::int64_t keys) { return keys / tile * tile; });
    }
    if (tile == 1 || !ends_full(tile)) continue;
    end(name, fmt::format("the last {} is left out, full or not", what), look_at,
        [tile](std::int64_t keys) { return std::max<std::int64_t>(0, ceil_div(keys, tile) - 1) * tile; });
  }
  // Keys past the end of a sequence that are zeros, as a copy fills them, and whose scores of 0 are not masked.
  const auto zeros = [&](const std::string& until, std::function<std::int64_t(std::int64_t keys)> changed) {
    trials.add("zeros_counted", fmt::format("slots past the last key, {}, are read as zeros and not masked", until),
               "the mask of keys past the end: their scores must be -infinity",
               [options, changed](Recipe& r, const RowEvaluator& row) {
                 const std::int64_t keys = row.problem().keys(row.sequence());
                 if (visible_with(options, row, keys).last < keys) return;
                 for (std::int64_t t = keys; t < changed(keys); ++t) {
                   KeyRead key;
                   key.zeros = true;
                   key.position = t;
                   r.keys.push_back(key);
                 }
               });
  };
  const auto past_end = [&](const std::string& until, std::function<std::int64_t(std::int64_t keys)> changed) {
    trials.add(
        "v_not_masked",
        fmt::format("V of slots past the last key, {}, is multiplied by a weight of 0: a NaN in them stays NaN", until),
        "the rows of V past the end: set them to zero before the product",
        [options, changed](Recipe& r, const RowEvaluator& row) {
          const std::int64_t keys = row.problem().keys(row.sequence());
          if (visible_with(options, row, keys).last < keys) return;
          r.zero_weight_keys = keys_of(row.problem(), row.sequence(), keys, changed(keys));
        });
  };
  zeros("the next one", [](std::int64_t keys) { return keys + 1; });
  for (const std::int64_t tile : std::set<std::int64_t>{page, 8, 16, 32, 64, 128}) {
    const std::string until =
        tile == page ? "to the end of its page" : fmt::format("to the end of its tile of {} keys", tile);
    const auto end_of_tile = [tile](std::int64_t keys) { return ceil_div(keys, tile) * tile; };
    zeros(until, end_of_tile);
    past_end(until, end_of_tile);
  }
  trials.add_visible("first_page_missing", "the first page is left out", "the first page of the loop",
                     [options, page](const RowEvaluator& row, std::int64_t keys) {
                       KeyRange range = visible_with(options, row, keys);
                       range.first = std::min(range.last, std::max(range.first, page));
                       return range;
                     });
}

}  // namespace

void add_scores(Trials& trials) {
  add_conventions(trials);
  add_lse(trials);
  add_lengths(trials);
  add_masks(trials);
}

}  // namespace kvscope::golden

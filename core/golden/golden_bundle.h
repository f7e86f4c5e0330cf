// The golden bundle: the reference's output, the terms of the error bounds, and the place of each row.
//
//   o, a1, a2, running              f64 [query, query_head, value_dim]
//   lse, smax, p2, key_counts, repeats  f64 [query, query_head]
//   clump, faint   f64 [query, query_head, 3]: of P in narrow types (attention/weight_terms.h)
//   lost           f64 [query, query_head, 5]: errors of P below the normal range of f16 and e4m3 (the same file)
//   partial_sums   f64 [query, query_head, 2]: how large partial sums are (attention/partial_sums.h)
//   row_sum_cut    f64 [query, query_head, 3]: what matrix instructions cut from row sums (attention/partial_sums.h)
//   largest_value  f64 [query, query_head]: largest |v| of rows with few faint keys, else -1 (attention/result.h)
//   golden_error   f64 [query, query_head, 2]: score_error and sum_error, of the fast path only (attention/fast.h)
//   query_offsets  i64 [batch + 1]                           key_lengths i64 [batch]
//   block_table    u32 [batch, columns]: blocks of the pages that a query sees, 2^32 - 1 elsewhere
//   manifest       producer, layout, seed, page_size, types, sizes,
//                  accuracy "fast" of the fast path,
//                  conventions {mask, alignment, ..., lse_base, empty_row}
//
// A bundle of the output alone (output_bundle) has o, lse, query_offsets, key_lengths, block_table and, of the fast
// path,
//   o_error, lse_error  f64 [query, query_head]: largest errors (attention/fast.h)
// and its manifest says "holds": "output". No candidate can be judged with it.
//
// A candidate needs `o` [query, query_head, value_dim] in its own type, and may have `lse`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/attention/problem.h"
#include "core/attention/result.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

inline constexpr std::uint32_t kUnknownBlock = 0xffffffffu;

struct Origin {
  std::string producer = "kvscope";
  std::string layout;  // "max", "nhd", ...; empty: not from a file
  std::optional<std::uint64_t> seed;
};

// `result` is the result of the reference, or of its fast path, for `problem`. Table entries of pages that no query
// sees are not read.
[[nodiscard]] Bundle golden_bundle(const attention::Problem& problem, const attention::Result& result,
                                   const Origin& origin);

[[nodiscard]] Bundle output_bundle(const attention::Problem& problem, const attention::Output& output,
                                   const Origin& origin);

// The manifest's members that describe the problem: producer, layout, sizes and types.
void describe_problem(const attention::Problem& problem, const Origin& origin, json::Value& manifest);

// The output tensors of a golden: those that golden_bundle() writes, and o_unquantized of a scenario's golden.
[[nodiscard]] std::span<const std::string_view> golden_answer_names();

// Why rows of a golden's `o` are NaN or infinite: values of the input are, which is rarely intended. Empty if none is.
// Example: "4 of 32 rows of o are NaN or infinite, the first at query 0, head 0: V of a token that it sees is"
[[nodiscard]] std::string non_finite_rows(const Bundle& golden);

// Every option by name, as in the manifest and in every report. Example: {"mask": "causal", "alignment":
// "bottom_right", "scale": 0.125, "soft_cap": null, "alibi": false, "sinks": false, "lse_base": "natural", "empty_row":
// "-inf"}; "window_left" and "window_right" with a sliding window, "chunk" with chunks.
[[nodiscard]] json::Value conventions(const attention::Options& options);

// The same on one line, without options that are not set: " mask=causal alignment=bottom_right scale=0.125 ...".
[[nodiscard]] std::string conventions_text(const attention::Options& options);

}  // namespace kvscope::golden

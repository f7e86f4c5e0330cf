// The fast path of the reference: K and V are decoded to float, in registers for f32, f16, bf16, e4m3 and e5m2 rows of
// a multiple of 32 elements without scales. Products are added in float, a few at a time, before a double takes their
// sum. Weights are floats; masks, scores' options, denominators and lse are computed in double, as by the reference.
// The error of the result is known and is part of the result.
//
// With u = 2^-24, L = ceil(head_size / 16), i_q, i_k and i_v = the roundings that decoding an element takes (0 for f32
// and narrower floats; 1 for wider types; 1 more with scales):
//
//   score_error  ((|scale| * |q| * max |k| * (L + 6 + i_q + i_k) + 3) * u + 10 * s * 2^-53) * 1.01  [query, query_head]
//                a dot product is 16 sums of L products, folded in a tree of 4 levels; sum |q_d k_d| <= |q| |k|, where
//                |x| is the Euclidean norm. The exponential has a relative error of 3 u, which changes a weight as an
//                error of 3 u in its score does. ALiBi and biases are added in double, by the reference too, and round
//                in proportion to the largest |score| s
//   sum_error    (64 + 3 + i_v) * u * 1.01                                    one number
//                at most 64 products are added in float
//
//   |lse - lse64| <= score_error           in base 2: times log2(e)
//   |o - o64|     <= 1.01 * score_error * (a1 + |o|) + sum_error * a1
//
// because a weight p_t changes by at most p_t * score_error, and o by sum p_t * score_error * |v_t - o|. Soft caps do
// not increase the error of a score. The bits depend on the instruction set, the bound does not.
//
// A block of queries with values that floats do not hold is computed by the reference, and its score_error is 0:
// infinite or NaN results, weights below 2^-125, scores of 2^29 or more, keys whose squares overflow, and results
// below 2^-32; without the terms of the bound, the largest |v| below 2^-32 instead.
//
// Example: head size 128, |q| = |k| = 11.3, scale 1 / 11.3: score_error 9.7e-6; with a1 = 0.8 and o = 0.02, o differs
// by at most 1.1e-5. A bf16 kernel's own bound is about 1e-4 there.
//
// Throws the errors of check_problem (problem_checks.h).
#pragma once

#include "core/attention/problem.h"
#include "core/attention/reference.h"
#include "core/attention/result.h"

namespace kvscope::attention {

[[nodiscard]] Result fast_reference(const Problem& problem);
// o and lse alone, with their errors: lse_error is score_error, in the base of lse, and o_error has the largest |v|, A,
// in place of a1 and |o|, which are at most A:
//   o_error = (2.02 * score_error + sum_error) * A
// A is of the KV head's keys that the queries of a block see, at most 16 of them. The bits are those of fast_reference,
// unless only one of the two computes a block by the reference.
[[nodiscard]] Output fast_output(const Problem& problem);
// UnsupportedError when this machine or build does not have `set`.
[[nodiscard]] Result fast_reference(const Problem& problem, InstructionSet set);
[[nodiscard]] Output fast_output(const Problem& problem, InstructionSet set);

}  // namespace kvscope::attention

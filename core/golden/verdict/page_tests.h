// Tests for one wrong page among many, or a wrong scale, which move every element by less than its bound.
//
// A missing page changes a row of o along a known direction: d = sum over its keys t of p_t (o - v_t), and lse by
// log(1 - sum of p_t). A page that is exchanged with a last page of r keys loses its keys from slot r on. If page g is
// read from the block of page h, the change is d_g - d_h. A scale that is too large by a share changes o by that share
// of the sum over all keys of p_t (s_t - mean score) (v_t - o), and lse by that share of the mean score. For each page
// and each pair of pages, and for the scale, the test adds up the errors of all heads of a sequence's last query, and
// of each head alone, weighted with the direction:
// L = sum of a_i (x_i - golden_i), a = d / variance. Errors of a correct kernel have no such direction.
//
// An error that multiplies a whole row of o, such as the common part of P's rounding, is no page's: a is made
// orthogonal to o. The rest of a correct kernel's L is at most
//
//   sum |a_i| systematic_i + c * sum_t p_t |a . (v_t - o)|
//     + sqrt(2 x) * sqrt(r^2 sum_t p_t^2 (a . (v_t - o))^2 + sum a_i^2 s_i^2)
//     + sqrt(2 x sum a_i^2 min(e_i step_i, step_i^2 / 4)) + x / 3 * max |a_i| step_i
//
// with r and c the independent and the common relative error of a probability, s_i the deviation of the sum over the
// keys, e_i the size of the errors before the output is rounded in steps of step_i, and x = ln(4 tests / 1e-7). Below
// the normal range of P's type, r is larger: the error is up to half the smallest number of that type. The second line
// is Hoeffding's inequality over keys, so that errors of different elements may depend on each other as V makes them;
// the third is Bernstein's for the rounding of the output. It assumes that the golden values of a row fall on
// independent places between two output values. In a row of nearly equal values they do not, and steps of values near
// the middle of two are systematic. A correct kernel fails with a probability of at most 1e-7.
//
// Example: 8 heads of 64 elements in f32, 4,096 normal keys in 256 pages: a missing page is 70 times the allowed L.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/attention/bounds.h"
#include "core/attention/problem.h"
#include "core/golden/verdict/failing_group.h"
#include "core/golden/verdict/golden_terms.h"

namespace kvscope::golden {

struct PageTestInput {
  const attention::Problem& problem;  // the golden's inputs
  const GoldenTerms& terms;           // of the golden, with lse
  std::span<const double> o;          // [query, head, dim] the candidate's
  std::span<const double> lse;        // [query, head]; empty: none
  attention::Rounding rounding;       // of o
  attention::Rounding lse_rounding;   // of lse
};

struct PageTestResult {
  std::int64_t tests = 0, failing = 0, rows = 0;
  double ratio = 0;    // largest |L| / allowed
  std::string worst;   // "page 3 of sequence 0, all heads", "page 3 of sequence 0 from the block of page 5, head 2"
  FailingGroup place;  // the same
};

struct PageTests {
  bool same_problem = true;  // false: the inputs do not reproduce the golden, and no page was tested
  PageTestResult o;
  std::optional<PageTestResult> lse;
  std::int64_t untested = 0;  // sequences with at least two pages that are past the limit
};

// Sequences with at least two pages are tested in order, as long as the tests read at most 2^26 elements of K and V. A
// sequence that would exceed that is left out, and later ones that fit are tested.
[[nodiscard]] PageTests test_pages(const PageTestInput& input);

}  // namespace kvscope::golden

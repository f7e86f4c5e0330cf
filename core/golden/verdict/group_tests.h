// Tests on groups of rows: a fault that moves every element by less than its bound moves many of them.
//
// A row of o, or one lse, has a sum of squared excesses z^2. The excess of an element is its distance from the golden
// value, less the rounding of the output and the systematic part of the bound, in standard deviations of the
// independent errors. An element whose golden value is t deviations away from the nearest rounding boundary of the
// output's type shows an error only when the errors before that rounding exceed t, so the expected sum is known:
// E[z^2; |z| >= t]. Errors within a row may be fully correlated; rows with different golden values are independent.
//
// A group fails when its sum exceeds expected + sqrt(2 V x) + 2 c x, with V the sum of the rows' second moments, c the
// largest number of elements of a row that can show an error, and x = ln(groups / 1e-7): Bernstein's bound for sums of
// chi-square variables, exceeded with probability at most 1e-7 in a report.
//
// Groups are the rows of one head of a sequence, of one sequence, and of one head over all sequences. A row whose lse
// occurs twice in the golden is counted once.
//
// Example: 32 heads of 128 f32 elements: a group fails at 2.0 deviations rms, a single element at 7.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/golden/verdict/failing_group.h"

namespace kvscope::golden {

struct EvidenceBlock;  // detail/verdict_loops.h

// The evidence of one row. `add` takes an element's error, see the formula above.
struct RowEvidence {
  double sum = 0, expected = 0;
  double root_second_moment = 0;  // sum over the elements of sqrt(E[z^4; |z| >= t])
  double visible = 0;             // elements that can show an error
  // `excess` and `boundary` in units of `deviation`; `deviations` as in attention::Rounding.
  void add(double excess, double boundary, double deviations);
  void add(const EvidenceBlock& elements, std::int64_t count);
};

struct RowLabel {
  std::int64_t sequence = 0, head = 0;
  double identity = 0;  // equal for rows with the same golden value
};

struct GroupResult {
  std::int64_t groups = 0, failing = 0;
  std::string worst;     // "sequence 1, all heads"
  FailingGroup place;    // the same
  double ratio = 0;      // worst sum / allowed sum
  std::size_t rows = 0;  // of the worst group
};
// The groups of an output's rows, for the tests of o and of lse.
class RowGroups {
 public:
  explicit RowGroups(std::span<const RowLabel> labels);
  [[nodiscard]] GroupResult test(std::span<const RowEvidence> rows) const;  // one for each label

 private:
  struct Member {
    std::uint32_t sequence = 0, head = 0;                     // indices of sequences_ and heads_
    bool in_both = true, in_sequence = true, in_head = true;  // false: a row before it has the same identity
  };
  std::vector<std::int64_t> sequences_, heads_;  // sorted
  std::vector<Member> members_;
};
[[nodiscard]] GroupResult test_groups(std::span<const RowEvidence> rows, std::span<const RowLabel> labels);

}  // namespace kvscope::golden

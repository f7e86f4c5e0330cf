// The loops over elements in vectors, against conversions and measures of one element at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "core/base/convert.h"
#include "core/base/random.h"
#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/detail/verdict_loops.h"
#include "core/golden/verdict/group_tests.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::golden::verdict_loops_test {
namespace {

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// Golden values of all magnitudes of `type`, ties between two of its numbers among them, and candidates of the type that
// are near, far or of the other sign.
struct Pairs {
  std::vector<double> candidate, golden;
};
Pairs pairs(DType type, std::uint64_t seed) {
  const CounterRng rng(seed, 7);
  const attention::StepOfType step = attention::step_of(type);
  const double lowest = std::log2(step.smallest) + std::log2(step.unit) - 2, highest = -std::log2(step.smallest);
  Pairs p;
  for (std::uint64_t i = 0; i < 203; ++i) {
    double g = std::exp2(lowest + (highest - lowest) * rng.uniform(4 * i)) * (rng.uniform(4 * i + 1) < 0.5 ? -1 : 1);
    if (i % 4 == 0) g = rounded_to(type, g) + attention::half_step(type, rounded_to(type, g));
    if (i % 17 == 0) g = i % 2 == 0 ? 0.0 : -0.0;
    const double near = g + (4 * rng.uniform(4 * i + 2) - 2) * attention::half_step(type, g);
    double x = rounded_to(type, i % 3 == 0 ? near : i % 3 == 1 ? g : -g * rng.uniform(4 * i + 3));
    if (!std::isfinite(x) || !std::isfinite(rounded_to(type, g))) x = g = 1;
    p.candidate.push_back(x);
    p.golden.push_back(g);
  }
  return p;
}

std::uint64_t pattern_of(DType type, double x) {
  std::uint64_t pattern = 0;
  store_from_double(type, x, reinterpret_cast<std::byte*>(&pattern), Overflow::non_saturating);
  return pattern;
}

TEST(VerdictLoops, MeasureEachElementAsConversionsDo) {
  for (const attention::InstructionSet set : attention::available_instruction_sets()) {
    const VerdictLoops& loops = verdict_loops(set);
    for (const DType type : kTypes) {
      const Pairs p = pairs(type, 3);
      // One element at a time, so that each one's steps are seen, then all together.
      std::uint64_t most = 0;
      double max_abs = 0;
      MeasuredBlock block;
      for (std::size_t i = 0; i < p.golden.size(); ++i) {
        const double x = p.candidate[i], g = p.golden[i];
        std::vector<double> xs(9, x), gs(9, g);  // a vector and a single element
        loops.measure(number_type(type), xs.data(), gs.data(), 9, &block);
        const std::uint64_t ulp = ulp_distance(type, pattern_of(type, x), pattern_of(type, rounded_to(type, g)));
        ASSERT_TRUE(block.finite) << name(type) << ' ' << x << ' ' << g;
        ASSERT_EQ(block.max_ulp, ulp) << name(type) << ' ' << x << ' ' << g;
        most = std::max(most, ulp);
        max_abs = std::max(max_abs, std::fabs(x - g));
      }
      loops.measure(number_type(type), p.candidate.data(), p.golden.data(), static_cast<std::int64_t>(p.golden.size()),
                    &block);
      EXPECT_EQ(block.max_ulp, most) << name(type);
      EXPECT_EQ(block.max_abs, max_abs) << name(type);
      for (std::size_t i = 0; i < p.golden.size(); ++i) {
        const double x = p.candidate[i], g = p.golden[i];
        EXPECT_EQ(block.error2[i], (x - g) * (x - g));
        EXPECT_EQ(block.golden2[i], g * g);
        EXPECT_EQ(block.cross[i], x * g);
        EXPECT_EQ(block.both2[i], x * x + g * g);
      }
    }
  }
}

TEST(VerdictLoops, FindEachValueThatIsNotFiniteInTheType) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const attention::InstructionSet set : attention::available_instruction_sets()) {
    for (const DType type : kTypes) {
      const NumberType t = number_type(type);
      const double past = type == DType::f64 ? inf : t.largest + attention::half_step(type, t.largest);  // a tie
      MeasuredBlock block;
      for (std::size_t at = 0; at < 9; ++at) {
        std::vector<double> x(9, 1), g(9, 1);
        g[at] = type == DType::f64 ? t.largest : std::nextafter(past, 0);
        verdict_loops(set).measure(t, x.data(), g.data(), 9, &block);
        EXPECT_TRUE(block.finite) << name(type) << ' ' << at;
        for (const double bad : {past, -past, inf, -inf, nan, 0x1p1023}) {
          if (type == DType::f64 && bad == 0x1p1023) continue;
          g[at] = bad;
          verdict_loops(set).measure(t, x.data(), g.data(), 9, &block);
          EXPECT_FALSE(block.finite) << name(type) << ' ' << at << ' ' << bad;
        }
        g[at] = 1;
        for (const double bad : {inf, -inf, nan}) {
          x[at] = bad;
          verdict_loops(set).measure(t, x.data(), g.data(), 9, &block);
          EXPECT_FALSE(block.finite) << name(type) << ' ' << at << ' ' << bad;
        }
      }
    }
  }
}

TEST(VerdictLoops, WeighEachElementAsRowEvidenceDoes) {
  constexpr double kDeviations = 7.5;
  for (const attention::InstructionSet set : attention::available_instruction_sets()) {
    for (const DType type : kTypes) {
      Pairs p = pairs(type, 11);
      for (std::size_t i = 0; i < p.golden.size(); ++i) {  // squares of larger ones of f64 overflow
        if (std::fabs(p.golden[i]) > 0x1p400 || std::fabs(p.candidate[i]) > 0x1p400) p.golden[i] = p.candidate[i] = 1;
      }
      const CounterRng rng(12, 0);
      std::vector<double> systematic, variance;
      for (std::uint64_t i = 0; i < p.golden.size(); ++i) {
        const double step = attention::half_step(type, p.golden[i]);
        systematic.push_back(0.1 * step * rng.uniform(2 * i));
        const double deviation = std::max(step, 0x1p-400) * (0.05 + rng.uniform(2 * i + 1));
        variance.push_back(deviation * deviation);
      }
      EvidenceBlock block;
      verdict_loops(set).weigh(number_type(type), kDeviations, p.candidate.data(), p.golden.data(), systematic.data(),
                               variance.data(), static_cast<std::int64_t>(p.golden.size()), &block);
      ASSERT_TRUE(block.usable) << name(type);
      RowEvidence want, have;
      have.add(block, static_cast<std::int64_t>(p.golden.size()));
      for (std::size_t i = 0; i < p.golden.size(); ++i) {
        const double x = p.candidate[i], g = p.golden[i], deviation = std::sqrt(variance[i]);
        const double boundary = attention::half_step(type, g) - std::fabs(rounded_to(type, g) - g) - systematic[i];
        const double excess = std::fabs(x - g) - attention::half_step(type, x) - systematic[i];
        const double z = std::max(0.0, excess) / deviation, t = std::max(0.0, boundary) / deviation;
        want.add(z, t, kDeviations);
        EXPECT_NEAR(block.excess2[i], z * z, 1e-12 * (z * z + 1)) << name(type) << ' ' << g;
        EXPECT_NEAR(block.visible[i], std::max(0.0, 1 - t * t / (kDeviations * kDeviations)), 1e-12);
        EXPECT_NEAR(block.boundary[i] + 0.5, std::min(t * kTailSteps, kTailEntries - 0.5), 0.501) << t;
      }
      EXPECT_NEAR(have.sum, want.sum, 1e-12 * want.sum + 1e-12);
      EXPECT_NEAR(have.expected, want.expected, 1e-9 * want.expected);
      EXPECT_NEAR(have.root_second_moment, want.root_second_moment, 1e-9 * want.root_second_moment);
      EXPECT_NEAR(have.visible, want.visible, 1e-12 * want.visible);
    }
  }
}

TEST(VerdictLoops, ReportAVarianceThatTheirSquaresCannotHold) {
  for (const attention::InstructionSet set : attention::available_instruction_sets()) {
    for (const double bad : {0.0, 1e-300, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
      std::vector<double> ones(9, 1), none(9, 0), variance(9, 1);
      EvidenceBlock block;
      verdict_loops(set).weigh(number_type(DType::f32), 7, ones.data(), ones.data(), none.data(), variance.data(), 9,
                               &block);
      EXPECT_TRUE(block.usable);
      variance[4] = bad;
      verdict_loops(set).weigh(number_type(DType::f32), 7, ones.data(), ones.data(), none.data(), variance.data(), 9,
                               &block);
      EXPECT_FALSE(block.usable) << bad;
    }
  }
}

TEST(VerdictLoops, FindEachErrorPastItsShareAndEachNumberOfAnotherType) {
  for (const attention::InstructionSet set : attention::available_instruction_sets()) {
    const VerdictLoops& loops = verdict_loops(set);
    for (std::size_t at = 0; at < 9; ++at) {
      std::vector<double> x(9, 1), g(9, 1), allowed(9, 0.5);
      x[at] = 1.25;
      EXPECT_FALSE(loops.exceeds(x.data(), g.data(), allowed.data(), 0.5, 9)) << at;
      EXPECT_TRUE(loops.exceeds(x.data(), g.data(), allowed.data(), 0.49, 9)) << at;
      allowed[at] = std::numeric_limits<double>::quiet_NaN();
      EXPECT_TRUE(loops.exceeds(x.data(), g.data(), allowed.data(), 1, 9)) << at;
      EXPECT_TRUE(loops.all_of_type(number_type(DType::bf16), x.data(), 9));
      x[at] = 1 + 0x1p-8;
      EXPECT_FALSE(loops.all_of_type(number_type(DType::bf16), x.data(), 9)) << at;
      EXPECT_TRUE(loops.all_of_type(number_type(DType::f16), x.data(), 9)) << at;
      x[at] = 0x1p17;
      EXPECT_FALSE(loops.all_of_type(number_type(DType::f16), x.data(), 9)) << at;
    }
  }
}

// Identities that occur once, a few times and often, against a set for each group.
TEST(RowGroups, CountARowOnceInEachGroupHoweverOftenItsIdentityOccurs) {
  const CounterRng rng(21, 0);
  std::vector<RowEvidence> rows;
  std::vector<RowLabel> labels;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::set<double>, std::size_t>> groups;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const auto sequence = static_cast<std::int64_t>(i / 60), head = static_cast<std::int64_t>(i % 6);
    double identity = std::floor(rng.uniform(i) * (i % 2 == 0 ? 8 : 300)) + (i % 2 == 0 ? 1000 : 0);
    if (i % 50 == 0) identity = std::numeric_limits<double>::quiet_NaN();
    RowEvidence row;
    row.sum = 1;
    rows.push_back(row);
    labels.push_back({sequence, head, identity});
    for (const auto& key :
         {std::pair{sequence, head}, std::pair{sequence, std::int64_t{-1}}, std::pair{std::int64_t{-1}, head}}) {
      auto& [seen, counted] = groups[key];
      if (seen.insert(identity).second || std::isnan(identity)) ++counted;
    }
  }
  std::size_t most = 0;  // all rows have a sum of 1, so the largest group is the worst
  for (const auto& [key, group] : groups) most = std::max(most, group.second);
  const GroupResult result = test_groups(rows, labels);
  EXPECT_EQ(result.groups, static_cast<std::int64_t>(groups.size()));
  EXPECT_EQ(result.rows, most);
}

// A row of 300 dims is two blocks. The worst element, the failing ones and their heads are those of output_budget().
TEST(Comparison, OfLongRowsGivesTheNumbersOfEachElementsOwnBudget) {
  for (const double error : {0.3, 3.0}) {  // in units of the bound: none fails, or most do
    const CounterRng rng(31, 0);
    std::uint64_t n = 0;
    const auto tensor = [&](std::vector<std::int64_t> shape, const auto& value) {
      std::vector<double> all;
      std::int64_t count = 1;
      for (const std::int64_t extent : shape) count *= extent;
      for (std::int64_t i = 0; i < count; ++i) all.push_back(value());
      return tensor_of<double>(std::move(shape), std::span<const double>(all));
    };
    Bundle golden;
    golden.tensors.emplace("o", tensor({3, 2, 300}, [&] { return 2 * rng.uniform(n++) - 1; }));
    golden.tensors.emplace("a1", tensor({3, 2, 300}, [&] { return 1 + rng.uniform(n++); }));
    golden.tensors.emplace("a2", tensor({3, 2, 300}, [&] { return rng.uniform(n++); }));
    golden.tensors.emplace("smax", tensor({3, 2}, [&] { return 3 * rng.uniform(n++); }));
    const attention::Rounding rounding = [] {
      attention::Rounding r = attention::rounding_of(DType::f32);
      r.deviations = attention::deviations_for(1800);
      return r;
    }();
    const auto o = values<double>(golden.tensors.at("o")), a1 = values<double>(golden.tensors.at("a1")),
               a2 = values<double>(golden.tensors.at("a2")), smax = values<double>(golden.tensors.at("smax"));
    Tensor have = make_tensor(DType::f32, {3, 2, 300});
    std::int64_t failing = 0;
    std::map<std::int64_t, std::int64_t> by_head;
    double worst = 0;
    for (std::size_t i = 0; i < o.size(); ++i) {
      attention::RowTerms row;
      row.head_size = 300;
      row.smax = smax[i / 300];
      const double allowed = attention::output_budget(rounding, row, {o[i], a1[i], a2[i], a1[i]}).total();
      const auto x = static_cast<float>(o[i] + error * allowed * (2 * rng.uniform(n++) - 1));
      values<float>(have)[i] = x;
      const double ratio = std::fabs(static_cast<double>(x) - o[i]) / allowed;
      worst = std::max(worst, ratio);
      if (ratio > 1) ++failing, ++by_head[static_cast<std::int64_t>(i / 300 % 2)];
    }
    Bundle candidate;
    candidate.tensors.emplace("o", have);
    const CompareResult result = compare(golden, candidate);
    ASSERT_TRUE(result.tensors.at(0).worst);
    EXPECT_EQ(result.tensors[0].worst->ratio, worst);
    EXPECT_EQ(result.criteria.at(1).passed, failing == 0);
    EXPECT_EQ(failing > 0, error > 1);
    std::int64_t listed = 0;
    for (const HeadSummary& head : result.worst_heads) {
      EXPECT_EQ(head.failing, by_head[head.head]);
      listed += head.failing;
    }
    EXPECT_EQ(listed, failing);
  }
}

}  // namespace
}  // namespace kvscope::golden::verdict_loops_test

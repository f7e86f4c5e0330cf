// Typical mistakes of kernels, each run as a candidate: the tiled algorithm over a problem with one error. Every
// candidate must exceed its bound in at least one case; without an error it must stay within the bound in all cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::mutation_test {
namespace {

using testing::PagedCase;
using testing::Poison;
using testing::Spec;

Spec shaped(std::vector<std::int64_t> lengths, std::vector<std::int64_t> queries, DType dtype) {
  Spec spec;
  spec.lengths = std::move(lengths);
  spec.queries = std::move(queries);
  spec.query_heads = 8;
  spec.kv_heads = 2;
  spec.head_size = spec.value_size = 64;
  spec.page_size = 16;
  spec.dtype = spec.q_dtype = dtype;
  spec.options.scale = 0.125;
  spec.poison = Poison::plausible;  // a stale slot holds plausible numbers, which are harder to detect than NaN
  return spec;
}

struct Case {
  const char* name;
  DType type;  // of probabilities and output
  Spec spec;
};

// Short lengths detect errors that long ones hide, and vice versa; a scale error is invisible at length 1.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    cases.push_back({"decode around a page", type, shaped({1, 15, 16, 17, 33}, {1, 1, 1, 1, 1}, type)});
    cases.push_back({"decode, long", type, shaped({1000, 517}, {1, 1}, type)});
    cases.push_back({"chunked prefill", type, shaped({50, 20}, {7, 20}, type)});
    Spec window = shaped({90, 41}, {3, 1}, type);
    window.options.mask = MaskKind::sliding_window;
    window.options.window_left = 20;
    window.options.soft_cap = 2.0;
    window.options.scale = 0.25;
    window.slopes.assign(8, 0.03125);
    window.sinks.assign(8, 1.0);
    cases.push_back({"window, cap, ALiBi, sinks", type, window});
    Spec quantized = shaped({70, 18}, {1, 2}, type);
    quantized.dtype = DType::e4m3;
    quantized.granularity = 32;
    quantized.own_scales_table = true;
    cases.push_back({"fp8 with scales", type, quantized});
  }
  return cases;
}

// A candidate keeps what it changed alive while it runs.
struct Candidate {
  explicit Candidate(const PagedCase& c) : source(c), problem(c.problem), k_table(c.table), v_table(c.table) {
    problem.k.table = k_table.data();
    problem.v.table = v_table.data();
  }
  const PagedCase& source;
  Problem problem;
  std::vector<std::uint32_t> k_table, v_table;
  std::vector<std::int64_t> lengths;
  std::vector<std::byte> bytes, scales;

  [[nodiscard]] std::size_t columns() const { return static_cast<std::size_t>(problem.k.table_stride); }
  [[nodiscard]] std::int64_t length(std::size_t b) const { return source.spec.lengths[b]; }
  [[nodiscard]] std::size_t last_page(std::size_t b) const {
    return b * columns() + static_cast<std::size_t>((length(b) - 1) / source.spec.page_size);
  }
  void change_lengths(std::int64_t by) {
    lengths = source.spec.lengths;
    for (std::int64_t& n : lengths) {
      if (by < 0 || n % source.spec.page_size != 0) n += by;  // one token more only where its page exists
    }
    problem.key_lengths = lengths;
  }
  void last_pages(std::uint32_t block, std::vector<std::uint32_t>& table) const {
    for (std::size_t b = 0; b < source.spec.lengths.size(); ++b) table[last_page(b)] = block;
  }
};

using Mutation = std::function<PartialState(Candidate&, const TiledConfig&)>;

// Most mistakes are a changed problem, run without further changes.
Mutation changing(const std::function<void(Candidate&)>& spoil) {
  return [spoil](Candidate& c, const TiledConfig& config) {
    spoil(c);
    return tiled(c.problem, config);
  };
}

// Query head h reads KV head h % Hk: the queries are permuted to the wrong groups, the output is permuted back.
PartialState wrong_head_map(Candidate& c, const TiledConfig& config) {
  const Spec& spec = c.source.spec;
  const std::int64_t group = spec.query_heads / spec.kv_heads;
  const auto dealt = [&](std::int64_t slot) { return (slot % group) * spec.kv_heads + slot / group; };
  const auto row = static_cast<std::size_t>(spec.head_size) * static_cast<std::size_t>(size_of(spec.q_dtype));
  c.bytes.resize(c.source.q.size());
  for (std::int64_t i = 0; i < c.problem.total_queries(); ++i) {
    for (std::int64_t slot = 0; slot < spec.query_heads; ++slot) {
      std::memcpy(c.bytes.data() + static_cast<std::size_t>(i * spec.query_heads + slot) * row,
                  c.source.q.data() + static_cast<std::size_t>(i * spec.query_heads + dealt(slot)) * row, row);
    }
  }
  c.problem.q = c.bytes.data();
  const PartialState turned = tiled(c.problem, config);
  PartialState result = turned;
  for (std::size_t i = 0; i < turned.lse.shape(0); ++i) {
    for (std::int64_t slot = 0; slot < spec.query_heads; ++slot) {
      const auto from = static_cast<std::size_t>(slot), to = static_cast<std::size_t>(dealt(slot));
      result.lse(i, to) = turned.lse(i, from);
      for (std::size_t d = 0; d < turned.o.shape(2); ++d) result.o(i, to, d) = turned.o(i, from, d);
    }
  }
  return result;
}

void swap_two_v_rows(Candidate& c) {
  PagedRows& v = c.problem.v;
  c.bytes = c.source.v_pool;
  const std::int64_t base = v.data - c.source.v_pool.data();
  const std::int64_t row = v.token_stride * size_of(v.dtype);
  for (std::size_t b = 0; b < c.source.spec.lengths.size(); ++b) {
    if (c.length(b) < 3) continue;
    const std::size_t page_before_last = c.last_page(b) - (c.length(b) > c.source.spec.page_size ? 1 : 0);
    std::byte* page = c.bytes.data() + base + c.v_table[page_before_last] * v.block_stride * size_of(v.dtype);
    std::swap_ranges(page + row, page + 2 * row, page + 2 * row);
  }
  v.data = c.bytes.data() + base;
}

void swap_two_v_pages(Candidate& c) {
  for (std::size_t b = 0; b < c.source.spec.lengths.size(); ++b) {
    if (c.length(b) > 2 * c.source.spec.page_size) std::swap(c.v_table[c.last_page(b)], c.v_table[c.last_page(b) - 1]);
  }
}

struct NamedMutation {
  const char* name;
  Mutation run;
};

std::vector<NamedMutation> all_mutations() {
  return {
      {"last token dropped", changing([](Candidate& c) { c.change_lengths(-1); })},
      {"one token too many", changing([](Candidate& c) { c.change_lengths(1); })},
      {"stale last page", changing([](Candidate& c) {
         c.last_pages(c.source.stale_block, c.k_table);
         c.last_pages(c.source.stale_block, c.v_table);
       })},
      {"zero-filled last page", changing([](Candidate& c) {
         c.last_pages(c.source.zero_block, c.k_table);
         c.last_pages(c.source.zero_block, c.v_table);
       })},
      {"zero-filled last page of V alone",
       changing([](Candidate& c) { c.last_pages(c.source.zero_block, c.v_table); })},
      {"one wrong page", changing([](Candidate& c) {
         const std::size_t page = c.last_page(0), other = c.last_page(1);
         c.k_table[page] = c.v_table[page] = c.k_table[other];
       })},
      {"pages of the first sequence for all", changing([](Candidate& c) {
         for (std::size_t b = 1; b < c.source.spec.lengths.size(); ++b) {
           const std::size_t page = c.last_page(b);
           if (c.k_table[b * c.columns()] < c.problem.k.blocks && c.k_table[0] < c.problem.k.blocks) {
             c.k_table[b * c.columns()] = c.v_table[b * c.columns()] = c.k_table[0];
           } else {
             c.k_table[page] = c.v_table[page] = c.k_table[c.last_page(0)];
           }
         }
       })},
      {"two V rows swapped", changing(swap_two_v_rows)},
      {"two V pages swapped", changing(swap_two_v_pages)},
      {"K and V swapped", changing([](Candidate& c) { std::swap(c.problem.k, c.problem.v); })},
      {"kv head = h % Hk instead of h / group", wrong_head_map},
      {"scale off by 1 %", changing([](Candidate& c) { c.problem.options.scale *= 1.01; })},
      {"scale 1 / d",
       changing([](Candidate& c) { c.problem.options.scale = 1 / static_cast<double>(c.source.spec.head_size); })},
      {"lse in base 2 for natural", changing([](Candidate& c) { c.problem.options.lse_base = LseBase::two; })},
      {"top-left causal", changing([](Candidate& c) { c.problem.options.alignment = CausalAlignment::top_left; })},
      {"no mask", changing([](Candidate& c) {
         if (c.problem.options.mask == MaskKind::causal) c.problem.options.mask = MaskKind::none;
       })},
      {"NHD read as HND", changing([](Candidate& c) {
         for (PagedRows* r : {&c.problem.k, &c.problem.v}) {
           r->head_stride = r->page_size * r->head_size;
           r->token_stride = r->head_size;
         }
       })},
      {"layer stride forgotten", changing([](Candidate& c) {
         c.problem.k.block_stride /= c.source.spec.layers;
         c.problem.v.block_stride /= c.source.spec.layers;
       })},
      {"layer next to the right one", changing([](Candidate& c) {
         for (PagedRows* r : {&c.problem.k, &c.problem.v}) {
           r->data -= r->block_stride / c.source.spec.layers * size_of(r->dtype);
         }
       })},
      {"page size 1 assumed inside the page", changing([](Candidate& c) { c.problem.k.token_stride = 0; })},
      {"last dim of K not read", changing([](Candidate& c) {
         c.bytes = c.source.q;
         const std::int64_t row = c.source.spec.head_size * size_of(c.problem.q_dtype);
         for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.bytes.size()) / row; ++i) {
           std::fill_n(c.bytes.data() + (i + 1) * row - size_of(c.problem.q_dtype), size_of(c.problem.q_dtype),
                       std::byte{0});
         }
         c.problem.q = c.bytes.data();
       })},
      {"window one key short", changing([](Candidate& c) {
         if (c.problem.options.window_left > 0) --c.problem.options.window_left;
       })},
      {"soft cap forgotten", changing([](Candidate& c) { c.problem.options.soft_cap.reset(); })},
      {"ALiBi forgotten", changing([](Candidate& c) { c.problem.options.alibi_slopes = {}; })},
      {"sinks forgotten", changing([](Candidate& c) { c.problem.options.sinks = {}; })},
      {"scales forgotten", changing([](Candidate& c) { c.problem.k.scales = c.problem.v.scales = nullptr; })},
      {"scales through the table of the values",
       changing([](Candidate& c) { c.problem.k.scales_table = c.problem.v.scales_table = nullptr; })},
      {"scale of the first granule for all",
       changing([](Candidate& c) { c.problem.k.granularity = c.problem.v.granularity = c.problem.k.head_size; })},
  };
}

// The first element outside its bound, as text; empty when the candidate passes.
std::optional<std::string> first_failure(const Result& golden, const PartialState& candidate, DType type) {
  Rounding rounding = rounding_of(type);
  rounding.deviations = deviations_for(static_cast<double>(golden.o.size()));
  for (std::size_t row = 0; row < golden.o.shape(0); ++row) {
    for (std::size_t h = 0; h < golden.o.shape(1); ++h) {
      const RowTerms terms = row_terms(golden, row, h, static_cast<double>(golden.o.shape(2)));
      const auto where = [&] { return "query " + std::to_string(row) + ", head " + std::to_string(h); };
      if (!lse_within(rounding, terms, candidate.lse(row, h))) {
        return where() + ": lse " + std::to_string(candidate.lse(row, h)) + ", golden " +
               std::to_string(golden.lse(row, h));
      }
      for (std::size_t d = 0; d < golden.o.shape(2); ++d) {
        if (!output_within(rounding, terms, element_terms(golden, row, h, d), candidate.o(row, h, d))) {
          return where() + ", dim " + std::to_string(d) + ": o " + std::to_string(candidate.o(row, h, d)) +
                 ", golden " + std::to_string(golden.o(row, h, d));
        }
      }
    }
  }
  return std::nullopt;
}

// As first_failure, with the output alone, as for a kernel that returns no lse.
std::optional<std::string> first_output_failure(const Result& golden, PartialState candidate, DType type) {
  candidate.lse = golden.lse;
  return first_failure(golden, candidate, type);
}

struct Prepared {
  Case what;
  std::unique_ptr<PagedCase> data;
  Result golden;
  TiledConfig config;
};

const std::vector<Prepared>& prepared() {
  static const std::vector<Prepared> kPrepared = [] {
    std::vector<Prepared> list;
    for (const Case& c : all_cases()) {
      auto data = std::make_unique<PagedCase>(c.spec);
      Result golden = reference(data->problem);
      list.push_back(
          {c, std::move(data), std::move(golden), {.tile_keys = 32, .probabilities = c.type, .output = c.type}});
    }
    return list;
  }();
  return kPrepared;
}

// Whether `failure` detects the mistake in any case of `type`. A mistake that reads a page which the window has
// released throws an IndexError before there is an output; such a case is not counted.
template <class Failure>
bool caught_on_any_case(const NamedMutation& mutation, DType type, const Failure& failure) {
  for (const Prepared& p : prepared()) {
    if (p.what.type != type) continue;
    Candidate candidate(*p.data);
    try {
      if (failure(p.golden, mutation.run(candidate, p.config), type)) return true;
    } catch (const IndexError&) {
      continue;
    }
  }
  return false;
}

TEST(Mutations, FlowWithoutAMistakePassesEveryCase) {
  for (const Prepared& p : prepared()) {
    EXPECT_EQ(first_failure(p.golden, tiled(p.data->problem, p.config), p.what.type), std::nullopt)
        << p.what.name << ", " << name(p.what.type);
  }
}

TEST(Mutations, EveryMistakeIsCaughtInEveryType) {
  for (const NamedMutation& mutation : all_mutations()) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      EXPECT_TRUE(caught_on_any_case(mutation, type, first_failure))
          << mutation.name << " passes every case in " << name(type);
    }
  }
}

// A kernel may return no lse. The only mistake that the lse alone detects is the wrong base.
TEST(Mutations, EveryMistakeButTheBaseShowsInTheOutputAlone) {
  for (const NamedMutation& mutation : all_mutations()) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      const bool only_lse = std::string(mutation.name) == "lse in base 2 for natural";
      EXPECT_EQ(caught_on_any_case(mutation, type, first_output_failure), !only_lse)
          << mutation.name << ", " << name(type);
    }
  }
}

// At length 1 the softmax is 1 for each scale, so only longer cases detect a wrong scale.
TEST(Mutations, ScaleErrorHidesAtLengthOne) {
  const PagedCase c(shaped({1}, {1}, DType::bf16));
  const Result golden = reference(c.problem);
  Candidate candidate(c);
  candidate.problem.options.scale *= 1.01;
  const TiledConfig config{.probabilities = DType::bf16, .output = DType::bf16};
  EXPECT_EQ(first_output_failure(golden, tiled(candidate.problem, config), DType::bf16), std::nullopt);
}

}  // namespace
}  // namespace kvscope::attention::mutation_test

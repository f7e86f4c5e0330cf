#include "core/attention/tiled.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/mask.h"
#include "core/attention/problem_checks.h"
#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/base/interruption.h"
#include "core/layout/filled.h"
#include "core/layout/strided_view.h"

namespace kvscope::attention {
namespace {

double rounded_to(DType dtype, double x) {
  switch (dtype) {
    case DType::f16:
      return to_double(from_double<f16>(x, Overflow::non_saturating));
    case DType::bf16:
      return to_double(from_double<bf16>(x, Overflow::non_saturating));
    default:
      return x;
  }
}

void check_config(const TiledConfig& config) {
  if (config.tile_keys < 1) {
    throw GeometryError("tiled flow: tile of " + std::to_string(config.tile_keys) + " keys: at least 1 is needed");
  }
  if (config.splits < 1) {
    throw GeometryError("tiled flow: " + std::to_string(config.splits) + " splits: at least 1 is needed");
  }
  for (const DType dtype : {config.probabilities, config.output}) {
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
      throw UnsupportedError("tiled flow in " + std::string(name(dtype)) +
                             ": f32, f16 or bf16 is what kernels round to");
    }
  }
}

// K or V through a strided view [block, slot, head, dim], one element at a time.
template <class Real>
class Elements {
 public:
  explicit Elements(const PagedRows& rows)
      : rows_(rows),
        values_(const_cast<std::byte*>(rows.data), rows.dtype,
                {rows.blocks, rows.page_size, rows.heads, rows.head_size},
                {rows.block_stride, rows.token_stride, rows.head_stride, 1}) {
    if (rows.scales == nullptr) return;
    const std::int64_t blocks = rows.scale_blocks == 0 ? rows.blocks : rows.scale_blocks;
    scales_ = {const_cast<std::byte*>(rows.scales),
               rows.scale_dtype,
               {blocks, rows.page_size, rows.heads, ceil_div(rows.head_size, rows.granularity)},
               {rows.scale_block_stride, rows.scale_token_stride, rows.scale_head_stride, 1}};
  }

  // Row of one token, as the tile's next row.
  void append(std::int64_t sequence, std::int64_t token, std::int64_t head, std::vector<Real>& tile) const {
    const std::int64_t slot = token % rows_.page_size;
    const std::int64_t page = token / rows_.page_size;
    const std::int64_t block = rows_.table[sequence * rows_.table_stride + page];
    const std::int64_t scale_block = scale_block_of(sequence, page, block);
    for (std::int64_t dim = 0; dim < rows_.head_size; ++dim) {
      double x = load_as_double(rows_.dtype, values_.at(block, slot, head, dim));
      if (rows_.scales != nullptr) {
        x *= load_as_double(rows_.scale_dtype, scales_.at(scale_block, slot, head, dim / rows_.granularity));
      }
      tile.push_back(static_cast<Real>(x));
    }
  }

 private:
  [[nodiscard]] std::int64_t scale_block_of(std::int64_t sequence, std::int64_t page, std::int64_t block) const {
    if (rows_.scales == nullptr || rows_.scales_table == nullptr) return block;
    const std::int64_t own = rows_.scales_table_stride;
    return rows_.scales_table[sequence * (own == 0 ? rows_.table_stride : own) + page];
  }

  const PagedRows& rows_;
  AnyView<4> values_;  // [block, slot, head, dim]
  AnyView<4> scales_;  // [block, slot, head, granule]
};

// The state of one query row between tiles.
template <class Real>
struct Running {
  Real largest = -std::numeric_limits<Real>::infinity();
  Real sum = 0;
  std::vector<Real> o;  // [value_dim]
};

template <class Real>
class Flow {
 public:
  Flow(const Problem& problem, const TiledConfig& config)
      : p_(problem), config_(config), k_(problem.k), v_(problem.v), group_(problem.query_heads / problem.k.heads) {}

  PartialState run() {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const double empty = p_.options.empty_row == EmptyRow::minus_infinity ? -kInfinite : kInfinite;
    PartialState result;
    result.o = filled(0.0, p_.total_queries(), p_.query_heads, p_.v.head_size);
    result.lse = filled(empty, p_.total_queries(), p_.query_heads);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t kv_head = 0; kv_head < p_.k.heads; ++kv_head) {
        process(b, kv_head, [&](std::int64_t at, std::int64_t head) {
          return std::pair<std::span<double>, double*>(
              {&result.o(at, head, 0), static_cast<std::size_t>(p_.v.head_size)}, &result.lse(at, head));
        });
      }
    }
    for (double& x : result.o) x = rounded_to(config_.output, x);
    return result;
  }

  // As run(), for one row; its state after each tile is appended to the trace.
  TiledRowTrace run_row(const TiledRow& row) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    TiledRowTrace trace;
    only_ = &row;
    trace_ = &trace;
    trace.o.assign(static_cast<std::size_t>(p_.v.head_size), 0.0);
    trace.lse = p_.options.empty_row == EmptyRow::minus_infinity ? -kInfinite : kInfinite;
    process(row.sequence, row.head / group_,
            [&](std::int64_t, std::int64_t) { return std::pair<std::span<double>, double*>(trace.o, &trace.lse); });
    for (double& x : trace.o) x = rounded_to(config_.output, x);
    return trace;
  }

 private:
  // Every split processes its share of the tiles, then is merged into `output_of(row of o, head)`: o and lse.
  void process(std::int64_t sequence, std::int64_t kv_head, const auto& output_of) {
    const KeyRange needed = needed_keys(p_, sequence);
    const std::int64_t first_tile = needed.first / config_.tile_keys;
    const std::int64_t tiles = ceil_div(needed.last, config_.tile_keys) - first_tile;
    load_queries(sequence, kv_head);
    for (std::int64_t split = 0; split < config_.splits; ++split) {
      const std::int64_t from = first_tile + split * tiles / config_.splits;
      const std::int64_t to = first_tile + (split + 1) * tiles / config_.splits;
      Running<Real> fresh;
      fresh.o.assign(static_cast<std::size_t>(p_.v.head_size), Real{0});
      state_.assign(static_cast<std::size_t>(queries_ * group_), fresh);
      split_ = split;
      for (std::int64_t tile = from; tile < to; ++tile) {
        visit({std::max(needed.first, tile * config_.tile_keys), std::min(needed.last, (tile + 1) * config_.tile_keys)},
              sequence, kv_head);
      }
      finish(sequence, kv_head, split == 0, output_of);
    }
  }

  // Whether this row is computed: all of them, or the one of run_row().
  [[nodiscard]] bool is_wanted(std::int64_t query, std::int64_t head) const {
    return only_ == nullptr || (only_->query == query && only_->head == head);
  }

  void load_queries(std::int64_t sequence, std::int64_t kv_head) {
    queries_ = query_count(p_, sequence);
    first_row_ = p_.first_query(sequence);
    const AnyView<3> q(const_cast<std::byte*>(p_.q), p_.q_dtype, {p_.total_queries(), p_.query_heads, p_.k.head_size});
    q_.clear();
    std::vector<double> group(static_cast<std::size_t>(group_ * p_.k.head_size));  // [head, dim]
    for (std::int64_t query = 0; query < queries_; ++query) {
      to_doubles(p_.q_dtype, q.at(first_row_ + query, kv_head * group_, 0), group);
      q_.insert(q_.end(), group.begin(), group.end());
    }
  }

  void visit(KeyRange tile, std::int64_t sequence, std::int64_t kv_head) {
    k_tile_.clear();
    v_tile_.clear();
    for (std::int64_t key = tile.first; key < tile.last; ++key) {
      k_.append(sequence, key, kv_head, k_tile_);
      v_.append(sequence, key, kv_head, v_tile_);
    }
    const std::int64_t keys = p_.keys(sequence);
    for (std::int64_t query = 0; query < queries_; ++query) {
      interruption_point();
      const KeyRange visible = visible_keys(p_.options, query, queries_, keys);
      const std::int64_t first = std::max(tile.first, visible.first);
      const std::int64_t last = std::min(tile.last, visible.last);
      if (first >= last) continue;
      const std::int64_t position = query_position(p_.options, query, queries_, keys);
      for (std::int64_t i = 0; i < group_; ++i) {
        if (!is_wanted(query, kv_head * group_ + i)) continue;
        Running<Real>& state = state_[static_cast<std::size_t>(query * group_ + i)];
        const Real before = state.largest;
        score(query * group_ + i, kv_head * group_ + i, first, last, tile.first, position);
        if (!p_.options.bias.empty()) add_biases(sequence, kv_head * group_ + i, query, first);
        const Real tile_sum = fold_in(state, first - tile.first);
        if (trace_ != nullptr && !std::isinf(state.largest)) record(state, {first, last}, before, tile_sum);
      }
    }
  }

  // Four sums from the last dim down; the reference uses eight from the first up.
  static Real dot(const Real* a, const Real* b, std::int64_t count) {
    Real sum[4] = {};
    std::int64_t d = count;
    for (; d >= 4; d -= 4) {
      for (int lane = 0; lane < 4; ++lane) sum[lane] += a[d - 1 - lane] * b[d - 1 - lane];
    }
    for (; d > 0; --d) sum[0] += a[d - 1] * b[d - 1];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  void score(std::int64_t row, std::int64_t head, std::int64_t first, std::int64_t last, std::int64_t tile_first,
             std::int64_t position) {
    const std::int64_t size = p_.k.head_size;
    const auto scale = static_cast<Real>(p_.options.scale);
    scores_.clear();
    for (std::int64_t key = first; key < last; ++key) {
      Real s = scale * dot(q_.data() + row * size, k_tile_.data() + (key - tile_first) * size, size);
      if (p_.options.soft_cap) {
        const auto cap = static_cast<Real>(*p_.options.soft_cap);
        s = cap * std::tanh(s / cap);
      }
      if (!p_.options.alibi_slopes.empty()) {
        const auto slope = static_cast<Real>(p_.options.alibi_slopes.data()[head]);
        s -= slope * static_cast<Real>(position - key);
      }
      scores_.push_back(s);
    }
  }

  void add_biases(std::int64_t sequence, std::int64_t head, std::int64_t query, std::int64_t key) {
    for (Real& s : scores_) s += static_cast<Real>(p_.options.bias.at(sequence, head, query, key++));
  }

  void record(const Running<Real>& state, KeyRange keys, Real before, Real tile_sum) {
    TiledStep step;
    step.split = split_;
    step.first_key = keys.first;
    step.last_key = keys.last;
    step.largest_before = static_cast<double>(before);
    step.largest = static_cast<double>(state.largest);
    step.rescale = static_cast<double>(std::exp(before - state.largest));
    step.tile_sum = static_cast<double>(tile_sum);
    step.sum = static_cast<double>(state.sum);
    step.o.assign(state.o.begin(), state.o.end());
    trace_->steps.push_back(std::move(step));
  }

  // Returns the sum of the tile's probabilities.
  Real fold_in(Running<Real>& state, std::int64_t first_in_tile) {
    Real largest = state.largest;
    for (const Real s : scores_) largest = std::max(largest, s);
    if (largest == -std::numeric_limits<Real>::infinity()) return 0;  // all keys so far are hidden
    if (largest > state.largest && state.sum != 0) {
      const Real shrink = std::exp(state.largest - largest);
      state.sum *= shrink;
      for (Real& x : state.o) x *= shrink;
    }
    state.largest = largest;
    const std::size_t dims = state.o.size();
    const Real* v = v_tile_.data() + first_in_tile * static_cast<std::int64_t>(dims);
    Real tile_sum = 0;
    for (const Real s : scores_) {
      const Real p = std::exp(s - largest);
      tile_sum += p;
      const auto weight = static_cast<Real>(rounded_to(config_.probabilities, static_cast<double>(p)));
      for (std::size_t d = 0; d < dims; ++d) state.o[d] += weight * v[d];
      v += dims;
    }
    state.sum += tile_sum;
    return tile_sum;
  }

  // Adds the sink to the first split, divides, and merges with the splits before.
  void finish(std::int64_t sequence, std::int64_t kv_head, bool first_split, const auto& output_of) {
    const std::int64_t keys = p_.keys(sequence);
    std::vector<double> row(static_cast<std::size_t>(p_.v.head_size));
    for (std::int64_t query = 0; query < queries_; ++query) {
      if (visible_keys(p_.options, query, queries_, keys).empty()) continue;
      for (std::int64_t i = 0; i < group_; ++i) {
        const std::int64_t head = kv_head * group_ + i;
        if (!is_wanted(query, head)) continue;
        Running<Real>& state = state_[static_cast<std::size_t>(query * group_ + i)];
        if (first_split && !p_.options.sinks.empty() && any_shown(sequence, head, query))
          add_sink(state, static_cast<Real>(p_.options.sinks.data()[head]));
        if (state.sum == 0) continue;
        std::ranges::transform(state.o, row.begin(), [&](Real x) { return static_cast<double>(x / state.sum); });
        const Real natural = state.largest + std::log(state.sum);
        const Real in_base = p_.options.lse_base == LseBase::two ? natural / std::log(Real{2}) : natural;
        const auto output = output_of(first_row_ + query, head);
        merge_row(output.first, *output.second, row, static_cast<double>(in_base), p_.options.lse_base,
                  p_.options.empty_row);
      }
    }
  }

  // Whether the row has a key that its biases do not hide. A sink alone makes no output.
  [[nodiscard]] bool any_shown(std::int64_t sequence, std::int64_t head, std::int64_t query) const {
    if (p_.options.bias.empty()) return true;
    const KeyRange visible = visible_keys(p_.options, query, queries_, p_.keys(sequence));
    for (std::int64_t key = visible.first; key < visible.last; ++key) {
      if (!std::isinf(p_.options.bias.at(sequence, head, query, key))) return true;
    }
    return false;
  }

  static void add_sink(Running<Real>& state, Real sink) {
    const Real largest = std::max(state.largest, sink);
    const Real shrink = std::exp(state.largest - largest);
    for (Real& x : state.o) x *= shrink;
    state.sum = state.sum * shrink + std::exp(sink - largest);
    state.largest = largest;
  }

  const Problem& p_;
  const TiledConfig config_;
  Elements<Real> k_;
  Elements<Real> v_;
  std::int64_t group_;
  std::int64_t queries_ = 0;
  std::int64_t first_row_ = 0;
  std::int64_t split_ = 0;
  const TiledRow* only_ = nullptr;    // null: all rows
  TiledRowTrace* trace_ = nullptr;    // null: no state is recorded
  std::vector<Running<Real>> state_;  // [query, head of the group]
  std::vector<Real> q_;               // [query, head of the group, dim]
  std::vector<Real> k_tile_;          // [tile key, dim]
  std::vector<Real> v_tile_;          // [tile key, value_dim]
  std::vector<Real> scores_;          // [visible key of the tile]
};

}  // namespace

PartialState tiled(const Problem& problem, const TiledConfig& config) {
  check_config(config);
  check_problem(problem);
  return Flow<float>(problem, config).run();
}

TiledRowTrace tiled_row(const Problem& problem, const TiledRow& row, const TiledConfig& config) {
  check_config(config);
  check_problem(problem);
  check_index("sequence", row.sequence, problem.batch, "sequences of the batch");
  check_index("query", row.query, query_count(problem, row.sequence), "queries of the sequence");
  check_index("head", row.head, problem.query_heads, "query heads");
  return Flow<float>(problem, config).run_row(row);
}

PartialState tiled_double(const Problem& problem, std::int64_t tile_keys, std::int64_t splits) {
  const TiledConfig config{.tile_keys = tile_keys, .splits = splits};
  check_config(config);
  check_problem(problem);
  return Flow<double>(problem, config).run();
}

}  // namespace kvscope::attention

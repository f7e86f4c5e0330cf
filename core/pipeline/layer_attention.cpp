#include "core/pipeline/layer_attention.h"

#include <cmath>

#include "core/attention/kv_operand.h"
#include "core/base/random.h"

namespace kvscope {
namespace {

constexpr std::uint64_t kSinkStream = 3;

// K or V of a [block, kv, 1, page_row, head, head_dim] tensor: the first `used_size` elements of each head.
attention::PagedRows rows_of(const golden::Tensor& pool, KOrV k_or_v, std::int64_t used_size, const FocusState& focus) {
  attention::PagedRows rows =
      attention::rows_of_pool(pool.bytes.data(), pool.dtype, golden::shape_of<6>(pool), k_or_v, LayerIdx{0});
  rows.head_size = used_size;
  rows.table = focus.cache.lookup_table.data();
  rows.table_stride = focus.cache.table_columns;
  return rows;
}

void set_scales(attention::PagedRows& rows, const Scenario& scenario, const golden::Tensor& scales, KOrV k_or_v) {
  attention::set_scales(rows, scales.bytes.data(), scales.dtype, golden::shape_of<6>(scales), k_or_v, LayerIdx{0},
                        scenario.cache.quantization->granularity);
}

// 2^(-8 (h + 1) / heads): the slopes of the ALiBi paper for a power of two of heads. By repeated square roots of 1/2,
// so that the bits are the same everywhere.
std::vector<double> alibi_slopes(std::int64_t heads) {
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < heads; ++h) {
    double exponent = 8.0 * static_cast<double>(h + 1) / static_cast<double>(heads);
    const double whole = std::floor(exponent);
    double slope = std::ldexp(1.0, -static_cast<int>(whole));
    double root = 0.5;
    for (exponent -= whole; exponent > 0;) {
      root = std::sqrt(root);
      exponent *= 2;
      if (exponent >= 1) {
        slope *= root;
        exponent -= 1;
      }
    }
    slopes.push_back(slope);
  }
  return slopes;
}

LayerAttention attention_over(const Scenario& scenario, const FocusState& focus, const LayerData& data,
                              const golden::Tensor& pool, bool scaled) {
  LayerAttention result;
  attention::Problem& problem = result.problem;
  const KOrV values = scenario.model.is_mla ? KOrV::k : KOrV::v;  // MLA: the first elements of the key rows
  problem.batch = static_cast<std::int64_t>(focus.cache.batch.size());
  problem.query_heads = scenario.model.query_heads;
  problem.q = data.q.bytes.data();
  problem.q_dtype = data.q.dtype;
  problem.query_offsets = data.query_offsets;
  problem.key_lengths = data.key_lengths;
  problem.k = rows_of(pool, KOrV::k, scenario.model.head_size, focus);
  problem.v = rows_of(pool, values, scenario.model.value_size, focus);
  if (scaled) {
    set_scales(problem.k, scenario, data.scales, KOrV::k);
    set_scales(problem.v, scenario, data.scales, values);
  }
  problem.options = attention_options(scenario);
  if (scenario.attention.alibi) result.alibi_slopes = alibi_slopes(scenario.model.query_heads);
  if (scenario.attention.sinks) {
    const CounterRng rng(scenario.seed, kSinkStream);
    for (std::int64_t h = 0; h < scenario.model.query_heads; ++h) {
      result.sinks.push_back(rng.bell(static_cast<std::uint64_t>(h)));
    }
  }
  problem.options.alibi_slopes = result.alibi_slopes;
  problem.options.sinks = result.sinks;
  return result;
}

}  // namespace

attention::Options attention_options(const Scenario& scenario) {
  const AttentionConfig& config = scenario.attention;
  attention::Options options;
  options.mask = config.mask;
  options.alignment = config.alignment;
  if (config.mask == MaskKind::sliding_window) options.window_left = config.window - 1;
  if (config.mask == MaskKind::chunked) options.chunk = config.window;
  options.scale = config.scale.value_or(1.0 / std::sqrt(static_cast<double>(scenario.model.head_size)));
  options.soft_cap = config.soft_cap;
  return options;
}

LayerAttention layer_attention(const Scenario& scenario, const FocusState& focus, const LayerData& data) {
  return attention_over(scenario, focus, data, data.blocks, scenario.cache.quantization.has_value());
}

LayerAttention exact_attention(const Scenario& scenario, const FocusState& focus, const LayerData& data) {
  return attention_over(scenario, focus, data, data.exact, false);
}

double multiply_adds(const Scenario& scenario, const FocusState& focus) {
  double pairs = 0;  // query, key
  for (std::size_t b = 0; b < focus.cache.batch.size(); ++b) {
    const double queries = focus.cache.new_tokens[b];
    pairs += queries * (queries + focus.cache.cache_lengths[b]);
  }
  return pairs * static_cast<double>(scenario.model.query_heads) *
         static_cast<double>(scenario.model.head_size + 3 * scenario.model.value_size);  // o, a1 and a2 each read V
}

}  // namespace kvscope

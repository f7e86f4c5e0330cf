#include "core/pipeline/layer_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <xtensor/xadapt.hpp>
#include <xtensor/xtensor.hpp>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/base/interruption.h"
#include "core/base/random.h"
#include "core/cache/layer_view.h"
#include "core/layout/filled.h"
#include "core/scenario/pool_extents.h"

namespace kvscope {
namespace {

// Random streams: one for each kind of number, so that adding one never moves another.
constexpr std::uint64_t kQueryStream = 2;
constexpr std::uint64_t kFirstLayerStream = 16;  // + 2 * layer + k_or_v

// One layer of the pool with `last` numbers per head: [blocks, kv, 1, page_row, heads, last].
golden::Tensor poisoned(DType dtype, const Scenario& scenario, std::int64_t last) {
  golden::Tensor tensor;
  tensor.dtype = dtype;
  const Shape<6> extents = pool_extents(scenario, 1, last);
  tensor.shape.assign(extents.begin(), extents.end());
  const auto size = static_cast<std::size_t>(size_of(dtype));
  tensor.bytes.resize(static_cast<std::size_t>(count_of(extents)) * size);
  if (tensor.bytes.empty()) return tensor;
  store_from_double(dtype, std::numeric_limits<double>::quiet_NaN(), tensor.bytes.data(), Overflow::non_saturating);
  for (std::size_t filled = size; filled < tensor.bytes.size(); filled *= 2) {
    std::memcpy(tensor.bytes.data() + filled, tensor.bytes.data(), std::min(filled, tensor.bytes.size() - filled));
  }
  return tensor;
}

// K or V of that layer: [block, page_row, head, last].
AnyView<4> view_of(golden::Tensor& tensor, KOrV k_or_v) {
  const Shape<6> extents = golden::shape_of<6>(tensor);
  return layer_view(AnyView<6>(tensor.bytes.data(), tensor.dtype, extents),
                    compute_kv_cache_dynamic_shape_strides(extents), k_or_v, LayerIdx{0});
}

// The numbers of token `id` in one stream, in order: [head, head_dim]. Token ids are hashes, so the products do not
// overlap for consecutive tokens.
xt::xtensor<double, 2> values_of(const CounterRng& rng, std::uint64_t id, std::int64_t heads, std::int64_t head_size) {
  xt::xtensor<double, 2> values = filled(0.0, heads, head_size);
  std::uint64_t n = id * 0x9e3779b97f4a7c15u;
  for (double& value : values) value = rng.bell(n++);
  return values;
}

// Calls per_token(row of the batch, token, id) for tokens [first(row), keys of the row).
void each_token(const FocusState& focus, const LayerData& data, const auto& first, const auto& per_token) {
  for (std::size_t row = 0; row < focus.cache.batch.size(); ++row) {
    for (std::int64_t t = first(row); t < data.key_lengths[row]; ++t) {
      interruption_point();
      per_token(row, t, focus.token_ids[row][static_cast<std::size_t>(t)]);
    }
  }
}

// Writes numbers as `dtype`, packed; returns the address after the last one.
std::byte* store(DType dtype, std::span<const double> numbers, std::byte* at) {
  for (const double x : numbers) {
    store_from_double(dtype, x, at, Overflow::non_saturating);
    at += size_of(dtype);
  }
  return at;
}

// The scale's type may be too narrow: a scale that would round to 0 becomes the type's smallest number, pattern 1,
// because 0 / 0 is NaN. e8m0 has no 0.
double store_scale(DType dtype, double scale, std::byte* at) {
  store_from_double(dtype, scale, at, Overflow::saturate);
  if (load_as_double(dtype, at) == 0) *at = std::byte{1};
  return load_as_double(dtype, at);
}

// One scale per granule, rounded to the scale's type; then each element / scale, rounded once.
void quantize_row(const Scenario& scenario, std::span<const double> row, std::byte* elements, std::byte* scales) {
  const Quantization& quantization = *scenario.cache.quantization;
  const DType dtype = scenario.cache.dtype;
  const auto granularity = static_cast<std::size_t>(quantization.granularity);
  for (std::size_t first = 0, granule = 0; first < row.size(); first += granularity, ++granule) {
    const std::span<const double> part = row.subspan(first, std::min(granularity, row.size() - first));
    double amax = 0;
    for (const double x : part) amax = std::max(amax, std::abs(x));
    std::byte* scale_at = scales + static_cast<std::int64_t>(granule) * size_of(quantization.scale_dtype);
    const double scale = store_scale(quantization.scale_dtype, scale_of(quantization.quantizer, amax, dtype), scale_at);
    for (std::size_t i = 0; i < part.size(); ++i) {
      store_from_double(dtype, part[i] / scale, elements + static_cast<std::int64_t>(first + i) * size_of(dtype),
                        Overflow::saturate);
    }
  }
}

DType query_dtype(DType cache) {
  return size_of(cache) == 1 ? DType::bf16 : cache;
}

void fill_queries(const Scenario& scenario, const FocusState& focus, LayerData& data) {
  const std::int64_t heads = scenario.model.query_heads, head_size = scenario.model.head_size;
  const CounterRng rng(scenario.seed, kQueryStream);
  data.query_offsets = {0};
  for (std::size_t row = 0; row < focus.cache.batch.size(); ++row) {
    data.query_offsets.push_back(data.query_offsets.back() + focus.cache.new_tokens[row]);
    data.key_lengths.push_back(std::int64_t{focus.cache.cache_lengths[row]} + focus.cache.new_tokens[row]);
  }
  data.q.dtype = query_dtype(scenario.cache.dtype);
  data.q.shape = {data.query_offsets.back(), heads, head_size};
  const std::int64_t token_bytes = heads * head_size * size_of(data.q.dtype);
  data.q.bytes.resize(static_cast<std::size_t>(checked_mul(data.query_offsets.back(), token_bytes, "queries")));
  std::byte* at = data.q.bytes.data();
  each_token(
      focus, data, [&](std::size_t row) { return std::int64_t{focus.cache.cache_lengths[row]}; },
      [&](std::size_t, std::int64_t, std::uint64_t id) {
        at = store(data.q.dtype, values_of(rng, id, heads, head_size), at);
      });
}

}  // namespace

double scale_of(Quantizer quantizer, double amax, DType dtype) {
  if (amax == 0) return 1.0;
  const double largest = dtype == DType::e5m2 ? 57344.0 : 448.0;
  if (quantizer == Quantizer::amax) return amax / largest;
  // amax = m * 2^e and largest = n * 2^f with m and n in [0.5, 1): their quotient is m / n * 2^(e - f), and m / n,
  // between 0.5 and 2, needs 1 or 2.
  int e = 0, f = 0;
  const double m = std::frexp(amax, &e), n = std::frexp(largest, &f);
  return std::ldexp(1.0, e - f + (m > n ? 1 : 0));
}

std::int64_t layer_bytes(const Scenario& scenario) {
  const std::int64_t head_size = scenario.model.head_size;
  const std::int64_t elements = count_of(pool_extents(scenario, 1, head_size));
  const std::int64_t stored = checked_mul(elements, size_of(scenario.cache.dtype), "pool size");
  const auto& quantization = scenario.cache.quantization;
  if (!quantization) return stored;
  const std::int64_t scales = count_of(pool_extents(scenario, 1, ceil_div(head_size, quantization->granularity)));
  return checked_add(checked_add(stored, checked_mul(elements, size_of(DType::f32), "pool size")),  // and `exact`
                     checked_mul(scales, size_of(quantization->scale_dtype), "pool size"), "pool size");
}

LayerData layer_data(const Scenario& scenario, const FocusState& focus) {
  const std::int64_t head_size = scenario.model.head_size, heads = scenario.model.kv_heads;
  const auto& quantization = scenario.cache.quantization;
  LayerData data;
  data.blocks = poisoned(scenario.cache.dtype, scenario, head_size);
  if (quantization) {
    data.scales = poisoned(quantization->scale_dtype, scenario, ceil_div(head_size, quantization->granularity));
    data.exact = poisoned(DType::f32, scenario, head_size);
  }
  fill_queries(scenario, focus, data);

  const std::vector<std::size_t> table_shape{focus.cache.batch.size(),
                                             static_cast<std::size_t>(focus.cache.table_columns)};
  const auto table = xt::adapt(focus.cache.lookup_table, table_shape);  // [batch, columns]
  for (const KOrV kv : {KOrV::k, KOrV::v}) {
    if (kv == KOrV::v && scenario.model.is_mla) break;
    const CounterRng rng(scenario.seed, kFirstLayerStream + static_cast<std::uint64_t>(2 * scenario.focus.layer) +
                                            static_cast<std::uint64_t>(kv));
    const AnyView<4> blocks = view_of(data.blocks, kv);
    const AnyView<4> plain = quantization ? view_of(data.exact, kv) : blocks;
    const AnyView<4> scales = quantization ? view_of(data.scales, kv) : AnyView<4>{};
    const std::int64_t page = blocks.dim(1);
    const auto from_start = [](std::size_t) { return std::int64_t{0}; };
    each_token(focus, data, from_start, [&](std::size_t b, std::int64_t t, std::uint64_t id) {
      const std::int64_t block = table(b, t / page);
      xt::xtensor<double, 2> values = values_of(rng, id, heads, head_size);
      // The quantized values are those of `exact`, so that the difference is the quantization error alone.
      if (quantization) values = xt::cast<float>(values);
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::span<const double> row(&values(head, 0), values.shape(1));
        if (quantization) {
          quantize_row(scenario, row, blocks.at(block, t % page, head, 0), scales.at(block, t % page, head, 0));
        }
        store(plain.dtype, row, plain.at(block, t % page, head, 0));
      }
    });
  }
  return data;
}

}  // namespace kvscope

#include "core/pipeline/golden_bundle.h"

#include "core/base/convert.h"

namespace kvscope {
namespace {

template <class T>
golden::Tensor vector_of(const std::vector<T>& elements) {
  return golden::tensor_of<T>({static_cast<std::int64_t>(elements.size())}, elements);
}

template <class Array>
std::vector<std::int64_t> shape_of(const Array& array) {
  return {array.shape().begin(), array.shape().end()};
}

template <class Array>
golden::Tensor array_of(const Array& array) {
  return golden::tensor_of<double>(shape_of(array), std::span(array.data(), array.size()));
}

template <class Array>
golden::Tensor array_as(DType dtype, const Array& array) {
  golden::Tensor tensor = golden::make_tensor(dtype, shape_of(array));
  convert(DType::f64, reinterpret_cast<const std::byte*>(array.data()), dtype, tensor.bytes.data(),
          static_cast<std::int64_t>(array.size()), Overflow::non_saturating);
  return tensor;
}

std::string_view mask_name(MaskKind mask) {
  switch (mask) {
    case MaskKind::none: return "none";
    case MaskKind::causal: return "causal";
    case MaskKind::sliding_window: return "sliding_window";
    case MaskKind::chunked: return "chunked";
  }
  return "";
}

}  // namespace

json::Value conventions(const attention::Options& options) {
  json::Value value;
  value.set("mask", mask_name(options.mask));
  value.set("alignment", options.alignment == CausalAlignment::bottom_right ? "bottom_right" : "top_left");
  if (options.mask == MaskKind::sliding_window) {
    value.set("window_left", options.window_left);
    value.set("window_right", options.window_right);
  }
  if (options.mask == MaskKind::chunked) value.set("chunk", options.chunk);
  value.set("scale", options.scale);
  if (options.soft_cap) value.set("soft_cap", *options.soft_cap);
  value.set("alibi", !options.alibi_slopes.empty());
  value.set("sinks", !options.sinks.empty());
  value.set("lse_base", options.lse_base == attention::LseBase::natural ? "natural" : "two");
  value.set("empty_row_lse", options.empty_row == attention::EmptyRow::minus_infinity ? "-inf" : "+inf");
  return value;
}

void add_result(golden::Bundle& bundle, const attention::Result& result) {
  bundle.tensors["o"] = array_of(result.o);
  bundle.tensors["lse"] = array_of(result.lse);
  bundle.tensors["a1"] = array_of(result.a1);
  bundle.tensors["a2"] = array_of(result.a2);
  bundle.tensors["smax"] = array_of(result.smax);
}

golden::Bundle golden_bundle(const Scenario& scenario, const GoldenRun& run) {
  golden::Bundle bundle;
  const CacheState& cache = run.focus.cache;
  const auto batch = static_cast<std::int64_t>(cache.batch.size());
  auto& tensors = bundle.tensors;
  tensors["blocks"] = run.data.blocks;
  if (scenario.cache.quantization) tensors["scales"] = run.data.scales;
  tensors["lookup_table"] = golden::tensor_of<std::uint32_t>({batch, cache.table_columns}, cache.lookup_table);
  tensors["cache_lengths"] = vector_of(cache.cache_lengths);
  tensors["query_offsets"] = vector_of(run.data.query_offsets);
  tensors["q"] = run.data.q;
  if (!run.attention.sinks.empty()) tensors["sinks"] = vector_of(run.attention.sinks);
  if (!run.attention.alibi_slopes.empty()) tensors["alibi_slopes"] = vector_of(run.attention.alibi_slopes);
  add_result(bundle, run.result);

  json::Value& manifest = bundle.manifest;
  manifest.set("layout", "max");
  manifest.set("scenario", scenario.name);
  manifest.set("seed", scenario.seed);
  manifest.set("step", cache.step.value);
  manifest.set("layer", scenario.focus.layer);
  manifest.set("layers_in_blocks", 1);
  manifest.set("value_size", scenario.model.value_size);
  if (scenario.cache.quantization) {
    manifest.set("quantization_granularity", scenario.cache.quantization->granularity);
    manifest.set("quantizer", "scale = amax / largest finite, one for each granule; elements saturate");
  }
  manifest.set("conventions", conventions(run.attention.problem.options));
  return bundle;
}

golden::Bundle candidate_bundle(const attention::PartialState& state, DType output) {
  golden::Bundle bundle;
  bundle.tensors["o"] = array_as(output, state.o);
  bundle.tensors["lse"] = array_as(DType::f32, state.lse);
  return bundle;
}

}  // namespace kvscope

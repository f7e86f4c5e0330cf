#include "core/pipeline/scenario_bundle.h"

#include "core/base/convert.h"
#include "core/golden/golden_bundle.h"

namespace kvscope {
namespace {

template <class T>
golden::Tensor vector_of(const std::vector<T>& elements) {
  return golden::tensor_of<T>({static_cast<std::int64_t>(elements.size())}, elements);
}

json::Value row_major_strides(const golden::Tensor& tensor) {
  json::Array strides(tensor.shape.size());
  std::int64_t product = 1;
  for (std::size_t axis = strides.size(); axis-- > 0; product *= tensor.shape[axis]) strides[axis] = product;
  return strides;
}

template <class Array>
golden::Tensor array_as(DType dtype, const Array& array) {
  golden::Tensor tensor = golden::make_tensor(dtype, {array.shape().begin(), array.shape().end()});
  convert(DType::f64, reinterpret_cast<const std::byte*>(array.data()), dtype, tensor.bytes.data(),
          static_cast<std::int64_t>(array.size()), Overflow::non_saturating);
  return tensor;
}

}  // namespace

golden::Bundle scenario_bundle(const Scenario& scenario, const GoldenRun& run, std::string producer) {
  golden::Bundle bundle =
      golden::golden_bundle(run.attention.problem, run.result, {std::move(producer), "max", scenario.seed});
  const CacheState& cache = run.focus.cache;
  const auto batch = static_cast<std::int64_t>(cache.batch.size());
  auto& tensors = bundle.tensors;
  tensors["blocks"] = run.data.blocks;
  tensors["lookup_table"] = golden::tensor_of<std::uint32_t>({batch, cache.table_columns}, cache.lookup_table);
  tensors["cache_lengths"] = vector_of(cache.cache_lengths);
  tensors["q"] = run.data.q;
  if (scenario.cache.quantization) {
    tensors["scales"] = run.data.scales;
    tensors["o_unquantized"] = array_as(DType::f64, run.o_unquantized);
  }
  if (!run.attention.sinks.empty()) tensors["sinks"] = vector_of(run.attention.sinks);
  if (!run.attention.alibi_slopes.empty()) tensors["alibi_slopes"] = vector_of(run.attention.alibi_slopes);

  json::Value& manifest = bundle.manifest;
  manifest.set("scenario", scenario.name);
  manifest.set("step", cache.step.value);
  manifest.set("layer", scenario.focus.layer);
  manifest.set("layers_in_blocks", 1);
  json::Value strides;  // [elements]; files store only packed tensors, but a kernel needs the pool's strides
  for (const char* name : {"blocks", "scales", "q"}) {
    if (const auto found = tensors.find(name); found != tensors.end())
      strides.set(name, row_major_strides(found->second));
  }
  manifest.set("strides", std::move(strides));
  if (scenario.cache.quantization) {
    manifest.set("quantizer", quantizer_rule(scenario.cache.quantization->quantizer));
  }
  return bundle;
}

golden::Bundle candidate_bundle(const attention::PartialState& state, DType output,
                                const attention::Options& conventions) {
  golden::Bundle bundle;
  bundle.tensors["o"] = array_as(output, state.o);
  bundle.tensors["lse"] = array_as(DType::f32, state.lse);
  bundle.manifest.set("conventions", golden::conventions(conventions));
  return bundle;
}

}  // namespace kvscope

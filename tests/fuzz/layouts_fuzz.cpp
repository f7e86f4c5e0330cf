// Any tensors in any layout: a file is read as every supported layout and gives a problem or an error that names the
// mismatch. Names and shapes come from the file and must be checked before use.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/layouts/layouts.h"

namespace {

using kvscope::DType;
using kvscope::golden::Bundle;
using kvscope::golden::LayoutOptions;

constexpr std::size_t kLargest = std::size_t{1} << 20;  // [bytes] of a file; larger ones are only slower

std::vector<LayoutOptions> options_of(const std::string& layout) {
  LayoutOptions plain;
  plain.layout = layout;

  LayoutOptions bit_patterns = plain;
  bit_patterns.layer = layout == "max" ? 1 : 0;  // the only layout with more than one layer
  bit_patterns.cache_type = kvscope::golden::CacheType{DType::e4m3};
  bit_patterns.query_dtype = DType::bf16;
  bit_patterns.granularity = 2;
  bit_patterns.scale = 0.5;

  LayoutOptions latent = plain;
  latent.value_size = 4;
  latent.scale = 0.5;
  latent.attention.mask = kvscope::MaskKind::sliding_window;
  latent.attention.window_left = 3;
  return {plain, bit_patterns, latent};
}

Bundle parse(std::string_view bytes) {
  if (bytes.starts_with("PK")) return kvscope::golden::parse_npz(bytes, "fuzz.npz");
  return {kvscope::golden::parse_safetensors(bytes, "fuzz.safetensors").tensors, {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kLargest) return 0;
  try {
    const Bundle bundle = parse({reinterpret_cast<const char*>(data), size});
    for (const std::string& layout : kvscope::golden::layout_names()) {
      for (const LayoutOptions& options : options_of(layout)) {
        try {
          static_cast<void>(kvscope::golden::prepare_problem(bundle, options, "fuzz"));
        } catch (const kvscope::InputError&) {
        } catch (const kvscope::GeometryError&) {
        } catch (const kvscope::IndexError&) {
        }
      }
    }
  } catch (const kvscope::InputError&) {
  }
  return 0;
}

#include "core/golden/reduce/detail/tensor_axes.h"

#include <algorithm>
#include <array>

namespace kvscope::golden {
namespace {

struct AxesLine {
  std::string_view layout, name, axes;  // layout "": every layout
};

constexpr auto kAxes = std::to_array<AxesLine>({
    {"max", "blocks", "N2LPHD"},
    {"max", "scales", "N2LPHG"},
    {"max", "lookup_table", "BC"},
    {"max", "cache_lengths", "B"},
    {"nhd", "k_cache", "NPHD"},
    {"nhd", "v_cache", "NPHD"},
    {"hnd", "k_cache", "NHPD"},
    {"hnd", "v_cache", "NHPD"},
    {"flashinfer", "kv_cache", "N2PHD"},
    {"flashinfer", "k_cache", "NPHD"},
    {"flashinfer", "v_cache", "NPHD"},
    {"flashinfer_hnd", "kv_cache", "N2HPD"},
    {"flashinfer_hnd", "k_cache", "NHPD"},
    {"flashinfer_hnd", "v_cache", "NHPD"},
    {"vllm_legacy", "key_cache", "NHEPX"},
    {"vllm_legacy", "value_cache", "NHDP"},
    {"sglang", "k_buffer", "NHD"},
    {"sglang", "v_buffer", "NHD"},
    {"mla", "kv_cache", "NP."},
    {"mla", "kv_cache", "NP.."},
    {"mla", "ckv", "NP."},
    {"mla", "kpe", "NP."},
    {"", "block_table", "BC"},
    {"", "block_tables", "BC"},
    {"", "cache_seqlens", "B"},
    {"", "seq_lens", "B"},
    {"", "q", "TQD"},
    {"", "q", "BSQD"},
    {"", "sinks", "Q"},
    {"", "alibi_slopes", "Q"},
    {"", "sm_scale", ""},
    {"", "sm_scale", "."},
});

std::int64_t axis_extent(char axis, const ScaleSizes& sizes) {
  switch (axis) {
    case 'N':
      return sizes.blocks;
    case 'P':
      return sizes.page_size;
    case 'M':
      return sizes.blocks * sizes.page_size;
    case 'H':
      return sizes.heads;
    case 'L':
      return sizes.layers;
    case 'B':
      return sizes.batch;
    case '2':
      return 2;
    default:
      return 1;
  }
}

}  // namespace

std::optional<std::string> tensor_axes(std::string_view layout, std::string_view canonical, std::size_t rank,
                                       bool is_mla) {
  for (const AxesLine& line : kAxes) {
    if (line.name != canonical || line.axes.size() != rank || (!line.layout.empty() && line.layout != layout)) continue;
    std::string axes(line.axes);
    if (is_mla) std::ranges::replace(axes, 'D', '.');
    return axes;
  }
  return std::nullopt;
}

std::optional<std::string> scale_axes(const std::vector<std::int64_t>& shape, std::string_view cache_axes,
                                      bool covers_both, bool by_sequence, const ScaleSizes& sizes) {
  std::string all(cache_axes);
  if (covers_both && all.find('2') == std::string::npos) all.insert(0, "2");
  if (!covers_both) std::erase(all, '2');
  const auto fits = [&](std::string_view axes) {
    if (axes.size() != shape.size()) return false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axis_extent(axes[i], sizes) != shape[i]) return false;
    }
    return true;
  };
  // Each subset of the cache's axes: compact, with a last 1, with 1 for the axes left out, and with N P as one.
  for (unsigned subset = 0; subset < 1u << all.size(); ++subset) {
    std::string compact, whole;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool has = (subset >> i & 1u) != 0;
      if (has) compact += all[i];
      whole += has ? all[i] : '.';
    }
    if (compact.find('P') != std::string::npos && compact.find('N') == std::string::npos) continue;
    std::vector<std::string> forms{compact, compact + ".", whole, whole + "."};
    if (const std::size_t at = compact.find("NP"); at != std::string::npos) {
      std::string merged = compact;
      merged.replace(at, 2, "M");
      forms.push_back(merged);
      forms.push_back(merged + ".");
    }
    for (const std::string& form : forms) {
      if (fits(form)) return form;
    }
  }
  if (by_sequence && fits("BH")) return "BH";
  return std::nullopt;
}

}  // namespace kvscope::golden

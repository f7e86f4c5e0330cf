// The meaning of each axis of a layout's tensors, as letters: N block, 2 K or V, L layer, P slot, H KV head, D dim,
// E group of x dims, X dim within it, T query row, S query of a sequence, Q query head, B sequence, C table column,
// G scale of a head, M block and slot as one; '.' an axis that is not cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::golden {

// Axes of the tensor of that canonical name and rank; empty for index tensors of indptr layouts and unknown tensors.
// `is_mla`: D is not cut.
[[nodiscard]] std::optional<std::string> tensor_axes(std::string_view layout, std::string_view canonical,
                                                     std::size_t rank, bool is_mla);

struct ScaleSizes {
  std::int64_t blocks = 0, page_size = 0, heads = 0, layers = 1, batch = 0;
};

// Axes of k_scale, v_scale or kv_scale by its shape; `cache_axes` in the order of the layout, without D: "NPH", "N2PH".
[[nodiscard]] std::optional<std::string> scale_axes(const std::vector<std::int64_t>& shape, std::string_view cache_axes,
                                                    bool covers_both, bool by_sequence, const ScaleSizes& sizes);

}  // namespace kvscope::golden

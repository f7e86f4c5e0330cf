// The tensors that a layout reads: canonical names, synonyms and shapes. Those of the cache and of its table come from
// the layout's description, the others are common to all layouts. A tensor of the input that is not in the table of its
// layout is an error that names the nearest known tensor (layouts.h, --ignore).
//
// B sequences, N blocks, P tokens a page, H KV heads, Hq query heads, D head size, L layers, T query rows.
// Example: layout nhd reads K's scales from k_scale, k_scales, k_descale, key_scale, key_scales, k_cache_scale or
// k_scale_cache, whichever one of them the input has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/golden/layouts/layout_description.h"

namespace kvscope::golden {

struct KnownTensor {
  std::string name;      // canonical, the name that messages use when the tensor is missing
  std::string synonyms;  // other names of the same tensor, separated by spaces
  std::string shape;     // in words, for documentation and messages
};

// The words of a list separated by spaces. Example: "a b" -> {"a", "b"}.
[[nodiscard]] std::vector<std::string_view> words(std::string_view list);

// The tensors that `layout` reads: the cache, its table, then those of all layouts.
[[nodiscard]] std::vector<KnownTensor> known_tensors_of(const LayoutDescription& layout);

}  // namespace kvscope::golden

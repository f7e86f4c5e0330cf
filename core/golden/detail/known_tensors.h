// The tensors that each layout reads: one table of canonical names, synonyms and shapes. A tensor of the input that is
// not in the table of its layout is an error that names the nearest known tensor (layouts.h, --ignore).
//
// B sequences, N blocks, P tokens a page, H KV heads, Hq query heads, D head size, L layers, T query rows.
// Example: layout nhd reads K's scales from k_scale, k_scales, k_descale, key_scale, key_scales, k_cache_scale or
// k_scale_cache, whichever one of them the input has.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace kvscope::golden {

struct KnownTensor {
  std::string_view layouts;   // layouts that read it, separated by spaces; "" for all
  std::string_view name;      // canonical, the name that messages use when the tensor is missing
  std::string_view synonyms;  // other names of the same tensor, separated by spaces
  std::string_view shape;     // in words, for documentation and messages
};

// The words of a list separated by spaces. Example: "a b" -> {"a", "b"}.
[[nodiscard]] std::vector<std::string_view> words(std::string_view list);

// The whole table, inputs of the problem in the order in which layouts read them.
[[nodiscard]] std::span<const KnownTensor> known_tensors();

// The tensors that `layout` reads, in the order of the table.
[[nodiscard]] std::vector<KnownTensor> known_tensors_of(std::string_view layout);

}  // namespace kvscope::golden

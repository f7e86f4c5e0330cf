// The steps of a conversion: which form of the target can hold the cache, and the table of the target; then the tensors
// beside cache and table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/golden/layouts/detail/cache_reader.h"
#include "core/golden/layouts/detail/layout_scales.h"
#include "core/golden/layouts/detail/token_map.h"

namespace kvscope::golden {

[[nodiscard]] bool form_has(const CacheForm& form, std::string_view axis);

struct FormRequest {
  const CacheReading& cache;
  std::int64_t blocks = 0, page_size = 0;    // of the result
  bool several_layers = false;               // all of them are converted
  std::function<bool()> values_are_leading;  // V of the input is the first elements of its K, bit for bit
};

struct ChosenForm {
  CacheForm form;       // with its block scales
  CacheForm described;  // as the layout has it
  CacheSizes sizes;
  std::string reason;  // not empty: the property of the layout that cannot hold the cache
};

// The first form that can hold the cache, of those that store V as the input does before the others. Otherwise the
// reason of the form that passes the largest number of checks.
[[nodiscard]] ChosenForm choose_form_of(const LayoutDescription& to, const FormRequest& request);

// Types of the index tensors.
struct TableTypes {
  DType entry = DType::i32, length = DType::i32, offset = DType::i32;
};

// Adds the tensors of the table. `same_table`, if given, is copied with its unread entries. Reports faults to the
// reader.
void write_table(const LayoutDescription& to, const TokenMap& want, const std::vector<std::int64_t>& queries,
                 const TableTypes& types, const Tensor* same_table, LayoutReader& r, Bundle& made);

// The slots of the input with contents, and the slot of the result to which each moves.
struct MovedSlots {
  const TokenMap &have, &want;
  bool kept_pool = false;  // every slot of the pool stays where it is

  // Calls move(slot of the input, slot of the result).
  void each(const auto& move) const {
    if (kept_pool) {
      for (std::int64_t slot = 0; slot < want.blocks * want.page_size; ++slot) move(slot, slot);
      return;
    }
    for (std::size_t b = 0; b < have.slots.size(); ++b) {
      for (std::size_t t = 0; t < have.slots[b].size(); ++t) move(have.slots[b][t], want.slots[b][t]);
    }
  }
};

struct ConvertedCache {
  const LayoutDescription &from, &to;
  const CacheForm& form;    // of the result
  const CacheSizes& sizes;  // of the result
  MovedSlots slots;
  const std::vector<std::int64_t>& queries;  // of each sequence
};

// Adds q, scales and masks, with their axes in the order of the target, and copies every other tensor but those of
// `ignore` and the outputs of a golden. Reports faults to the reader.
void copy_other_tensors(const Bundle& bundle, const std::vector<std::string>& ignore, const CacheScales& scales,
                        const ConvertedCache& cache, LayoutReader& r, Bundle& made);

}  // namespace kvscope::golden

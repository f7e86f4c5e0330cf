// The steps of a conversion that depend on the target alone: which of its forms can hold the cache, and its table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/golden/layouts/detail/cache_reader.h"
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

}  // namespace kvscope::golden

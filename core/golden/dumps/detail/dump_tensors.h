// Shared by the readers of dumps: JSON members, tensors from files, and MLA's indices as a block table.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/golden/dumps/dump.h"

namespace kvscope::golden {

// The last line of a .jsonl file that is not empty; InputError when there is none.
[[nodiscard]] json::Value last_json_line(const std::filesystem::path& path);
[[nodiscard]] std::string json_text(const json::Value& object, std::string_view key);  // "" unless it is a string

// The last axes of two tensors side by side; InputError naming `source` when their types or other axes differ.
[[nodiscard]] Tensor joined(const Tensor& a, const Tensor& b, std::string_view names, std::string_view source);

// An index tensor as 64-bit integers; InputError for another type.
[[nodiscard]] std::vector<std::int64_t> dump_integers(const Bundle& bundle, const std::string& name,
                                                      std::string_view source);

// Replaces kv_indptr and kv_indices by block_table [B, columns] (-1 behind a sequence's pages), and sets cache_seqlens.
// `lengths` empty: from kv_last_page_len.
void indptr_to_table(Bundle& bundle, std::vector<std::int64_t> lengths, std::int64_t page_size,
                     std::string_view source);

}  // namespace kvscope::golden

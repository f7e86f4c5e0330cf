// What every layout adapter asks of a bundle: a tensor of a name and rank, an index tensor as integers, and a place for
// everything that is wrong. Adapters go on after a fault, so that one run shows all of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/golden/layouts.h"
#include "core/golden/tensor.h"

namespace kvscope::golden {

class LayoutReader {
 public:
  LayoutReader(const Bundle& bundle, const LayoutOptions& options) : bundle_(bundle), options_(options) {}

  // Where one of K or V begins and how it is walked; strides in elements.
  struct Walk {
    const std::byte* data = nullptr;
    std::int64_t block = 0, token = 0, head = 0;
  };

  void fault(std::string where, std::string message) { faults.push_back({std::move(where), std::move(message)}); }
  [[nodiscard]] bool has(const std::string& name) const { return bundle_.tensors.contains(name); }
  [[nodiscard]] bool ok() const { return faults.empty(); }

  // The tensor, or null and a fault that gives the wanted shape in words: "k_cache [N, P, H, D]".
  const Tensor* tensor(const std::string& name, std::size_t rank, std::string_view shape_words);
  // A cache tensor: its type must be one that values are stored in; all of one problem share it.
  const Tensor* cache(const std::string& name, std::size_t rank, std::string_view shape_words);
  // An index tensor of any integer type as 64-bit integers; empty after a fault.
  std::vector<std::int64_t> integers(const std::string& name, std::size_t rank, std::string_view shape_words);

  // `rows` becomes K or V as `walk` says.
  void set_rows(attention::PagedRows& rows, const Walk& walk, DType dtype) const;

  std::vector<Fault> faults;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;

  // What the cache tensors say; adapters set these.
  DType cache_dtype = DType::f32;
  std::int64_t blocks = 0, page_size = 0, heads = 0, head_size = 0, value_size = 0;

  // What the index tensors say: entries of each sequence's pages, and its keys.
  struct Pages {
    std::string table_name;
    std::vector<std::int64_t> entries;  // all of them, in the order of the tensor
    std::vector<std::int64_t> first;    // [batch] index of a sequence's first entry
    std::vector<std::int64_t> columns;  // [batch] entries that it may use
    std::vector<std::int64_t> lengths;  // [batch] as the tensor has them
    std::string lengths_name;
    bool lengths_without_new = false;  // keys = length + queries
  };
  Pages pages;

  [[nodiscard]] const Bundle& bundle() const { return bundle_; }
  [[nodiscard]] const LayoutOptions& options() const { return options_; }

  // The three ways engines write down where pages are.
  void read_table(const std::string& table_name, const std::string& lengths_name, bool lengths_without_new);
  void read_indptr_pages();   // kv_indptr, kv_indices, kv_last_page_len
  void read_indptr_tokens();  // kv_indptr, kv_indices: one entry a token

 private:
  const Bundle& bundle_;
  const LayoutOptions& options_;
};

}  // namespace kvscope::golden

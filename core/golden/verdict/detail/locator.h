// The place of an output element: sequence, query, position, page, slot and block, from a golden's tensors.
// check_comparable() has found its offsets and lengths valid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/golden/golden_bundle.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::golden {

class Locator {
 public:
  explicit Locator(const Bundle& golden) {
    const auto tensor = [&](const char* tensor_name) -> const Tensor* {
      const auto found = golden.tensors.find(tensor_name);
      return found == golden.tensors.end() ? nullptr : &found->second;
    };
    const Tensor* offsets = tensor("query_offsets");
    const Tensor* lengths = tensor("key_lengths");
    const Tensor* table = tensor("block_table");
    if (offsets == nullptr) return;
    const auto o = values<std::int64_t>(*offsets);
    offsets_.assign(o.begin(), o.end());
    if (lengths == nullptr || lengths->bytes.size() + 8 != offsets->bytes.size()) return;
    const auto l = values<std::int64_t>(*lengths);
    lengths_.assign(l.begin(), l.end());
    const json::Value* page_size = golden.manifest.find("page_size");
    if (page_size == nullptr || page_size->as_i64() == nullptr || *page_size->as_i64() < 1) return;
    page_size_ = *page_size->as_i64();
    if (table != nullptr && table->dtype == DType::u32 && table->shape.size() == 2 &&
        table->shape[0] == static_cast<std::int64_t>(lengths_.size())) {
      const auto t = values<std::uint32_t>(*table);
      table_.assign(t.begin(), t.end());
      columns_ = table->shape[1];
    }
  }

  [[nodiscard]] Place place(std::int64_t row, std::int64_t head, std::int64_t dim) const {
    Place p;
    p.head = head;
    p.dim = dim;
    p.query = row;
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), row);
    if (after == offsets_.begin() || after == offsets_.end()) return p;
    p.sequence = after - offsets_.begin() - 1;
    p.query = row - *(after - 1);
    if (lengths_.empty()) return p;
    const std::int64_t position = lengths_[static_cast<std::size_t>(p.sequence)] - (*after - row);
    if (position < 0) return p;
    p.position = position;
    if (page_size_ == 0) return p;
    p.page = position / page_size_;
    p.slot = position % page_size_;
    if (p.page < columns_) {
      const std::uint32_t block = table_[static_cast<std::size_t>(p.sequence * columns_ + p.page)];
      if (block != kUnknownBlock) p.block = block;
    }
    return p;
  }

 private:
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::uint32_t> table_;
  std::int64_t columns_ = 0;
  std::int64_t page_size_ = 0;
};

}  // namespace kvscope::golden

// The table of a converted cache, in each form of table.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/golden/layouts/detail/convert_parts.h"

namespace kvscope::golden {
namespace {

// Lists of entries by sequence as rows of `columns`, filled up with -1.
std::vector<std::int64_t> rows_of(const std::vector<std::int64_t>& entries, const std::vector<std::int64_t>& starts,
                                  std::int64_t columns) {
  std::vector<std::int64_t> rows;
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    rows.insert(rows.end(), entries.begin() + starts[b], entries.begin() + starts[b + 1]);
    rows.resize(static_cast<std::size_t>((static_cast<std::int64_t>(b) + 1) * columns), -1);
  }
  return rows;
}

}  // namespace

void write_table(const LayoutDescription& to, const TokenMap& want, const std::vector<std::int64_t>& queries,
                 const TableTypes& types, const Tensor* same_table, LayoutReader& r, Bundle& made) {
  const auto set_integers = [&](const char* role, std::vector<std::int64_t> shape,
                                const std::vector<std::int64_t>& numbers, DType dtype) {
    Tensor tensor = make_tensor(dtype, std::move(shape));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::byte* at = tensor.bytes.data() + static_cast<std::int64_t>(i) * size_of(dtype);
      std::memcpy(at, &numbers[i], static_cast<std::size_t>(size_of(dtype)));  // little-endian: the low bytes
    }
    made.tensors[to.table.name(role)] = std::move(tensor);
  };
  const auto batch = static_cast<std::int64_t>(want.slots.size());
  std::vector<std::int64_t> lengths, starts{0}, pages{0}, tokens, indices, last;
  std::int64_t most_pages = 0, longest = 0;
  for (const auto& row : want.slots) {
    const auto keys = static_cast<std::int64_t>(row.size());
    const std::int64_t count = ceil_div(keys, want.page_size);
    lengths.push_back(keys);
    starts.push_back(starts.back() + keys);
    pages.push_back(pages.back() + count);
    tokens.insert(tokens.end(), row.begin(), row.end());
    for (std::int64_t p = 0; p < count; ++p) {
      indices.push_back(row[static_cast<std::size_t>(p * want.page_size)] / want.page_size);
    }
    last.push_back(count == 0 ? 0 : keys - (count - 1) * want.page_size);
    most_pages = std::max(most_pages, count);
    longest = std::max(longest, keys);
  }
  const auto& [entry, length, offset] = types;
  if (to.table.lengths_without_new) {
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (lengths[b] < queries[b]) {
        r.fault("--to", fmt::format("layout '{}' counts cached tokens; sequence {} has {} keys and {} queries", to.name,
                                    b, lengths[b], queries[b]));
      }
      lengths[b] -= queries[b];
    }
  }
  switch (to.table.form) {
    case TableForm::blocks: {
      if (same_table != nullptr) {
        made.tensors[to.table.name("table")] = *same_table;
      } else {
        set_integers("table", {batch, most_pages}, rows_of(indices, pages, most_pages), entry);
      }
      return set_integers("lengths", {batch}, lengths, length);
    }
    case TableForm::offsets: {
      std::vector<std::int64_t> entries;
      const std::vector<std::int64_t> rows = rows_of(indices, pages, most_pages);
      for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t kv = 0; kv < 2; ++kv) {
          for (std::int64_t c = 0; c < most_pages; ++c) {
            const std::int64_t block = rows[static_cast<std::size_t>(b * most_pages + c)];
            entries.push_back(block < 0 ? -1 : 2 * block + kv);
          }
        }
      }
      set_integers("table", {batch, 2, most_pages}, entries, entry);
      return set_integers("lengths", {batch}, lengths, length);
    }
    case TableForm::indptr:
      set_integers("indptr", {batch + 1}, pages, offset);
      set_integers("indices", {static_cast<std::int64_t>(indices.size())}, indices, entry);
      if (to.table.has("last_page_len")) return set_integers("last_page_len", {batch}, last, length);
      return set_integers("lengths", {batch}, lengths, length);
    case TableForm::tokens:
      set_integers("indptr", {batch + 1}, starts, offset);
      return set_integers("indices", {static_cast<std::int64_t>(tokens.size())}, tokens, entry);
    case TableForm::requests: {
      std::vector<std::int64_t> numbers(static_cast<std::size_t>(batch));
      std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
      set_integers("table", {batch, longest}, rows_of(tokens, starts, longest), entry);
      set_integers("requests", {batch}, numbers, entry);
      return set_integers("lengths", {batch}, lengths, length);
    }
    case TableForm::dense:
      return set_integers("lengths", {batch}, lengths, length);
    case TableForm::ragged:
      return set_integers("indptr", {batch + 1}, starts, offset);
    case TableForm::chunk:
    case TableForm::sparse:
      break;
  }
}

}  // namespace kvscope::golden

// The table of a slice, in each form of table.
#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/golden/reduce/detail/slice_parts.h"

namespace kvscope::golden {

std::int64_t pages_of(const SequenceSlice& sequence, std::int64_t page_size) {
  return std::max<std::int64_t>(ceil_div(sequence.keys, page_size) - sequence.first_page, 0);
}

std::int64_t kept_keys(const SequenceSlice& sequence, std::int64_t page_size) {
  return std::max<std::int64_t>(sequence.keys - sequence.first_page * page_size, 0);
}

KeptPositions kept_positions(const SlicedInput& input, const ProblemSlice& slice) {
  const bool has_lengths = input.role("lengths") != nullptr || input.role("attention_mask") != nullptr;
  KeptPositions kept{0, input.sizes.page_size};
  if (has_lengths && !slice.only_used_columns) return kept;
  const std::int64_t page = input.prepared.problem.k.page_size;
  kept = {input.sizes.page_size, 1};
  for (const SequenceSlice& sequence : slice.sequences) {
    const std::int64_t before = input.padding(sequence.index);
    kept.first = std::min(kept.first, before + (input.pages.by_token ? sequence.first_page * page : 0));
    kept.end = std::max(kept.end, before + sequence.keys);
    if (!has_lengths && sequence.keys != slice.sequences.front().keys) {
      throw InputError("slice", "", "sequences without a tensor of lengths have one length");
    }
  }
  kept.first = std::min(kept.first, kept.end - 1);
  return kept;
}

Indices kept_tokens(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice) {
  Indices kept;
  const auto add = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t token = from; token < to; ++token) kept.push_back(token);
  };
  if (input.form() == TableForm::chunk) {
    add(slice.sequences.front().first_page, slice.sequences.front().keys);
    return kept;
  }
  const Indices indptr = integers_of(tensors.tensors.at(*input.role("indptr")));
  const bool with_rest = input.role("lengths") != nullptr && !slice.only_used_blocks;
  for (const SequenceSlice& sequence : slice.sequences) {
    const std::int64_t start = indptr[static_cast<std::size_t>(sequence.index)];
    const std::int64_t end = indptr[static_cast<std::size_t>(sequence.index) + 1];
    add(start + sequence.first_page, with_rest ? end : start + sequence.keys);
  }
  if (!slice.only_used_blocks) add(indptr.back(), input.sizes.blocks);
  return kept;
}

namespace {

class TableCut {
 public:
  TableCut(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& blocks,
           Bundle& made)
      : in_(input),
        tensors_(tensors),
        slice_(slice),
        blocks_(blocks),
        made_(made),
        page_(input.prepared.problem.k.page_size),
        batch_(static_cast<std::int64_t>(slice.sequences.size())) {
    for (const SequenceSlice& sequence : slice.sequences) {
      const std::int64_t keys = kept_keys(sequence, page_);
      const bool without_new = input.pages.lengths_without_new;
      lengths_.push_back(without_new ? keys - (sequence.end_query - sequence.first_query) : keys);
      columns_ = std::max(columns_, pages_of(sequence, page_));
    }
  }

  void cut() {
    switch (in_.form()) {
      case TableForm::blocks:
        return cut_blocks();
      case TableForm::offsets:
        return cut_offsets();
      case TableForm::indptr:
      case TableForm::tokens:
        return cut_indptr();
      case TableForm::requests:
        return cut_requests();
      case TableForm::dense:
        return cut_dense();
      case TableForm::ragged:
        return cut_ragged();
      case TableForm::sparse:
        return cut_sparse();
      case TableForm::chunk:
        break;
    }
  }

 private:
  [[nodiscard]] std::int64_t renumbered(std::int64_t entry) const {
    if (!slice_.only_used_blocks || in_.flat) return entry;
    const auto at = std::ranges::lower_bound(blocks_, in_.block_of(entry));
    if (entry < 0 || at == blocks_.end() || *at != in_.block_of(entry)) return -1;
    const std::int64_t block = at - blocks_.begin();
    return in_.pages.by_token ? block * in_.sizes.page_size + entry % in_.sizes.page_size : block;
  }

  void put(const char* role, std::vector<std::int64_t> shape, const Indices& numbers) {
    const std::string* name = in_.role(role);
    if (name == nullptr) return;
    made_.tensors[*name] = integers_as(tensors_.tensors.at(*name).dtype, std::move(shape), numbers);
  }

  // Columns of a table of `all` columns.
  [[nodiscard]] std::int64_t kept_columns(std::int64_t all) const { return slice_.only_used_columns ? columns_ : all; }

  void cut_blocks() {
    const std::int64_t columns = kept_columns(tensors_.tensors.at(*in_.role("table")).shape[1]);
    Indices table;
    for (const SequenceSlice& sequence : slice_.sequences) {
      for (std::int64_t column = 0; column < columns; ++column) {
        table.push_back(renumbered(in_.entry(sequence.index, sequence.first_page + column)));
      }
    }
    put("table", {batch_, columns}, table);
    put("lengths", {batch_}, lengths_);
  }

  // [B, 2, columns] or [1, B, 2, columns], an entry for K and one for V. Entries that are not read need not be pairs.
  void cut_offsets() {
    const Tensor& given = tensors_.tensors.at(*in_.role("table"));
    const Indices all = integers_of(given);
    const std::int64_t before = given.shape.back(), columns = kept_columns(before);
    Indices table;
    for (const SequenceSlice& sequence : slice_.sequences) {
      for (std::int64_t kv = 0; kv < 2; ++kv) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t from = sequence.first_page + column;
          const std::int64_t entry =
              from < before ? all[static_cast<std::size_t>((sequence.index * 2 + kv) * before + from)] : -1;
          const bool renumber = slice_.only_used_blocks && !in_.flat;
          const std::int64_t block = renumber && entry >= 0 ? renumbered(entry / 2) : -1;
          table.push_back(!renumber ? entry : block < 0 ? -1 : 2 * block + entry % 2);
        }
      }
    }
    std::vector<std::int64_t> shape{batch_, 2, columns};
    if (given.shape.size() == 4) shape.insert(shape.begin(), 1);
    put("table", std::move(shape), table);
    put("lengths", {batch_}, lengths_);
  }

  // Whole sequences: their pages, and their columns of length_info.
  void cut_windows() {
    const Indices indptr = integers_of(tensors_.tensors.at(*in_.role("indptr")));
    const Indices indices = integers_of(tensors_.tensors.at(*in_.role("indices")));
    Indices offsets{0}, flat, sequences;
    for (const SequenceSlice& sequence : slice_.sequences) {
      const auto at = static_cast<std::size_t>(sequence.index);
      for (std::int64_t i = indptr[at]; i < indptr[at + 1]; ++i) {
        const std::int64_t block = indices[static_cast<std::size_t>(i)];
        const auto kept = std::ranges::lower_bound(blocks_, block);
        const bool renumber = slice_.only_used_blocks && !in_.flat;
        flat.push_back(!renumber ? block : kept == blocks_.end() || *kept != block ? -1 : kept - blocks_.begin());
      }
      offsets.push_back(static_cast<std::int64_t>(flat.size()));
      sequences.push_back(sequence.index);
    }
    put("indptr", {batch_ + 1}, offsets);
    put("indices", {static_cast<std::int64_t>(flat.size())}, flat);
    const std::string& info = *in_.role("last_page_len");
    made_.tensors[info] = take(tensors_.tensors.at(info), 1, sequences);
  }

  void cut_indptr() {
    if (in_.windows) return cut_windows();
    Indices offsets{0}, flat, last;
    for (const SequenceSlice& sequence : slice_.sequences) {
      const std::int64_t pages = pages_of(sequence, page_);
      for (std::int64_t page = 0; page < pages; ++page) {
        flat.push_back(renumbered(in_.entry(sequence.index, sequence.first_page + page)));
      }
      offsets.push_back(static_cast<std::int64_t>(flat.size()));
      last.push_back(pages == 0 ? 0 : kept_keys(sequence, page_) - (pages - 1) * page_);
    }
    put("indptr", {batch_ + 1}, offsets);
    put("indices", {static_cast<std::int64_t>(flat.size())}, flat);
    put("last_page_len", {batch_}, last);
    put("lengths", {batch_}, lengths_);
  }

  // Rows of requests that no sequence names stay until the columns are cut too: a kernel may use the wrong row.
  void cut_requests() {
    const Tensor& given = tensors_.tensors.at(*in_.role("table"));
    const Indices requests = integers_of(tensors_.tensors.at(*in_.role("requests")));
    const std::int64_t before = given.shape[1], columns = kept_columns(before);
    Indices table = slice_.only_used_columns ? Indices(static_cast<std::size_t>(batch_ * columns)) : integers_of(given);
    if (!slice_.only_used_columns) std::ranges::transform(table, table.begin(), [&](auto x) { return renumbered(x); });
    Indices numbers;
    for (std::int64_t b = 0; b < batch_; ++b) {
      const SequenceSlice& sequence = slice_.sequences[static_cast<std::size_t>(b)];
      const std::int64_t request = requests[static_cast<std::size_t>(sequence.index)];
      const std::int64_t row = slice_.only_used_columns ? b : request;
      if (sequence.first_page > 0 && !slice_.only_used_columns && std::ranges::count(requests, request) > 1) {
        throw InputError("slice", "", "sequences of one request keep its first tokens");
      }
      numbers.push_back(row);
      for (std::int64_t column = 0; column < columns; ++column) {
        table[static_cast<std::size_t>(row * columns + column)] =
            renumbered(in_.entry(sequence.index, sequence.first_page + column));
      }
    }
    put("table", {static_cast<std::int64_t>(table.size()) / columns, columns}, table);
    put("requests", {batch_}, numbers);
    put("lengths", {batch_}, lengths_);
  }

  void cut_dense() {
    const KeptPositions kept = kept_positions(in_, slice_);
    Indices padding;
    for (const SequenceSlice& sequence : slice_.sequences) {
      padding.push_back(in_.padding(sequence.index) + sequence.first_page * page_ - kept.first);
    }
    put("lengths", {batch_}, lengths_);
    put("left_padding", {batch_}, padding);
    const std::string* name = in_.role("attention_mask");
    if (name == nullptr) return;
    Indices sequences;
    for (const SequenceSlice& sequence : slice_.sequences) sequences.push_back(sequence.index);
    Tensor mask = take(tensors_.tensors.at(*name), 0, sequences);
    const std::int64_t size = size_of(mask.dtype);
    for (std::int64_t b = 0; b < batch_; ++b) {
      const SequenceSlice& sequence = slice_.sequences[static_cast<std::size_t>(b)];
      const std::int64_t start = in_.padding(sequence.index);
      for (std::int64_t i = 0; i < mask.shape[1]; ++i) {
        if (i >= start + sequence.first_page * page_ && i < start + sequence.keys) continue;
        std::fill_n(mask.bytes.begin() + (b * mask.shape[1] + i) * size, size, std::byte{0});
      }
    }
    Indices positions;
    for (std::int64_t i = kept.first; i < kept.end; ++i) positions.push_back(i);
    made_.tensors[*name] = take(mask, 1, positions);
  }

  void cut_ragged() {
    const Indices indptr = integers_of(tensors_.tensors.at(*in_.role("indptr")));
    const bool with_rest = in_.role("lengths") != nullptr && !slice_.only_used_blocks;
    Indices offsets{0};
    for (const SequenceSlice& sequence : slice_.sequences) {
      const auto at = static_cast<std::size_t>(sequence.index);
      const std::int64_t end = with_rest ? indptr[at + 1] - indptr[at] : sequence.keys;
      offsets.push_back(offsets.back() + end - sequence.first_page);
    }
    put("indptr", {batch_ + 1}, offsets);
    put("lengths", {batch_}, lengths_);
  }

  // Entries of -1 among the kept ones stay where they are.
  void cut_sparse() {
    const Tensor& given = tensors_.tensors.at(*in_.role("indices"));
    const Indices all = integers_of(given);
    const std::int64_t width = given.shape.back();
    const std::string* counts_name = in_.role("lengths");
    const Indices counts = counts_name == nullptr ? Indices{} : integers_of(tensors_.tensors.at(*counts_name));
    std::vector<Indices> rows;
    Indices lengths;
    std::int64_t most = 1;
    for (const SequenceSlice& sequence : slice_.sequences) {
      const auto at = static_cast<std::size_t>(sequence.index);
      const bool whole = sequence.first_page == 0 && sequence.keys == in_.pages.columns[at];
      const std::int64_t count = counts.empty() ? width : counts[at];
      Indices& row = rows.emplace_back();
      std::int64_t key = 0;  // entries that are tokens, before this one
      for (std::int64_t i = 0; i < (whole ? width : count); ++i) {
        const std::int64_t entry = all[at * static_cast<std::size_t>(width) + static_cast<std::size_t>(i)];
        const bool inside = entry < 0 ? key > sequence.first_page && key < sequence.keys
                                      : key >= sequence.first_page && key < sequence.keys;
        if (whole || inside) row.push_back(renumbered(entry));
        if (entry >= 0) ++key;
      }
      const auto kept = static_cast<std::int64_t>(row.size());
      lengths.push_back(whole ? count : kept);
      most = std::max(most, whole ? count : kept);
    }
    const std::int64_t columns = slice_.only_used_columns ? most : width;
    Indices table;
    for (Indices& row : rows) {
      row.resize(static_cast<std::size_t>(columns), -1);
      table.insert(table.end(), row.begin(), row.end());
    }
    put("indices",
        given.shape.size() == 3 ? std::vector{batch_, std::int64_t{1}, columns} : std::vector{batch_, columns}, table);
    put("lengths", {batch_}, lengths);
  }

  const SlicedInput& in_;
  const Bundle& tensors_;
  const ProblemSlice& slice_;
  const Indices& blocks_;
  Bundle& made_;
  std::int64_t page_, batch_;
  std::int64_t columns_ = 1;  // the most pages of a kept sequence
  Indices lengths_;
};

}  // namespace

void cut_table(const SlicedInput& input, const Bundle& tensors, const ProblemSlice& slice, const Indices& blocks,
               Bundle& made) {
  TableCut(input, tensors, slice, blocks, made).cut();
}

}  // namespace kvscope::golden

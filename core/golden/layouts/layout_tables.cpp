// The forms in which engines store the location of pages: each is read as entries and lengths by sequence.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/golden/layouts/detail/layout_reader.h"

namespace kvscope::golden {
namespace {

// A larger length is an input error; the limit keeps sums within 64 bits.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

// Checks for increasing offsets into `count` entries; otherwise adds a fault and returns false.
bool check_indptr(LayoutReader& reader, const std::string& name, const std::vector<std::int64_t>& indptr,
                  std::int64_t count, const std::string& counted) {
  if (indptr.empty()) {
    reader.fault(name, "is empty; layout needs [B + 1] entries, the first 0");
    return false;
  }
  if (indptr[0] != 0) {
    reader.fault(name + "[0]", fmt::format("is {}; the first sequence starts at 0", indptr[0]));
    return false;
  }
  for (std::size_t b = 1; b < indptr.size(); ++b) {
    if (indptr[b] < indptr[b - 1]) {
      reader.fault(fmt::format("{}[{}]", name, b),
                   fmt::format("is {} after {}; it must not fall", indptr[b], indptr[b - 1]));
      return false;
    }
  }
  if (indptr.back() > count) {
    reader.fault(name, fmt::format("ends at {}, but {} has {} entries", indptr.back(), counted, count));
    return false;
  }
  return true;
}

}  // namespace

void LayoutReader::read_pages() {
  if (const EngineLimit& limit = layout_.index_bits; limit.value > 0) {
    for (const std::string& role : table_roles(layout_.table.form)) {
      if (!layout_.table.has(role)) continue;
      const std::string& name = layout_.table.name(role);
      if (const Tensor* index = find(name); index != nullptr && bits(index->dtype) > limit.value) {
        warnings.push_back(fmt::format("{} is {}: {} read {}-bit indices, and wrong ones where these are given",
                                       given(name), kvscope::name(index->dtype), limit.engine, limit.value));
      }
    }
  }
  pages.lengths_without_new = layout_.table.lengths_without_new;
  switch (layout_.table.form) {
    case TableForm::blocks:
      return read_blocks();
    case TableForm::indptr:
      return read_indptr();
    case TableForm::tokens:
      return read_tokens();
    case TableForm::requests:
      return read_requests();
    case TableForm::offsets:
      return read_offsets();
    case TableForm::dense:
      return read_dense();
    case TableForm::ragged:
      return read_ragged();
    case TableForm::chunk:
      return read_chunk();
    case TableForm::sparse:
      return read_sparse();
  }
}

void LayoutReader::check_lengths() {
  for (std::size_t b = 0; b < pages.lengths.size(); ++b) {
    const std::int64_t length = pages.lengths[b];
    if (length < 0 || length > kMostTokens) {
      fault(fmt::format("{}[{}]", pages.lengths_name, b), fmt::format("is {}, not a length in [0, 2^40]", length));
    }
  }
}

void LayoutReader::forget_sequences() {
  pages.first.clear();
  pages.columns.clear();
  pages.lengths.clear();
}

void LayoutReader::read_blocks() {
  const std::string& table_name = layout_.table.name("table");
  const std::string& lengths_name = layout_.table.name("lengths");
  pages.table_name = given(table_name);
  pages.lengths_name = given(lengths_name);
  pages.entries = integers(table_name, 2, "[B, columns]");
  const std::size_t faults_before = faults.size();  // lengths without a fault are a number of sequences
  pages.lengths = integers(lengths_name, 1, "[B]");
  if (faults.size() > faults_before || !has(table_name)) return;
  const auto& shape = find(table_name)->shape;
  const auto batch = static_cast<std::int64_t>(pages.lengths.size());
  if (shape.size() != 2) return;
  if (shape[0] != batch) {
    fault(pages.table_name, fmt::format("has {} rows, but {} has {} entries", shape[0], pages.lengths_name, batch));
    return;
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    pages.first.push_back(b * shape[1]);
    pages.columns.push_back(shape[1]);
  }
  check_lengths();
}

void LayoutReader::read_indptr() {
  const bool by_last = layout_.table.has("last_page_len");
  const std::string& indptr_name = layout_.table.name("indptr");
  const std::string& indices_name = layout_.table.name("indices");
  const std::string& lengths_name = layout_.table.name(by_last ? "last_page_len" : "lengths");
  pages.table_name = given(indices_name);
  pages.lengths_name = given(lengths_name);
  const std::size_t faults_before = faults.size();
  const std::vector<std::int64_t> indptr = integers(indptr_name, 1, "[B + 1]");
  pages.entries = integers(indices_name, 1, "[pages]");
  if (const Tensor* info = peek(lengths_name); by_last && info != nullptr && info->shape.size() == 2) {
    const std::vector<std::int64_t> windows = integers(lengths_name, 2, "[B], or [3, B] for a sliding window");
    if (faults.size() == faults_before && page_size > 0) read_windows(indptr, windows);
    return;
  }
  std::vector<std::int64_t> lengths = integers(lengths_name, 1, "[B]");
  if (faults.size() > faults_before || page_size == 0) return;
  const auto entries = static_cast<std::int64_t>(pages.entries.size());
  if (!check_indptr(*this, given(indptr_name), indptr, entries, pages.table_name)) return;
  if (lengths.size() + 1 != indptr.size()) {
    fault(pages.lengths_name, fmt::format("has {} entries, but {} has {}: one less is needed", lengths.size(),
                                          given(indptr_name), indptr.size()));
    return;
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t count = indptr[b + 1] - indptr[b];
    pages.first.push_back(indptr[b]);
    pages.columns.push_back(count);
    if (!by_last) continue;
    if (count > 0 && (lengths[b] < 1 || lengths[b] > page_size)) {
      fault(fmt::format("{}[{}]", pages.lengths_name, b),
            fmt::format("is {}, but a last page holds 1 to {} tokens: a kernel would read past the page", lengths[b],
                        page_size));
      lengths[b] = std::clamp<std::int64_t>(lengths[b], 0, page_size);
    }
    lengths[b] = count == 0 ? 0 : (count - 1) * page_size + lengths[b];
  }
  pages.lengths = std::move(lengths);
  if (!by_last) check_lengths();
}

// MLC's length_info of a sliding window: rows of the last page's tokens, of the first slot of the window, and of the
// attention sinks before it. Key i is slot i of the pages for i < sinks, and slot i - sinks + window for the others.
void LayoutReader::read_windows(const std::vector<std::int64_t>& indptr, const std::vector<std::int64_t>& info) {
  const std::string& name = layout_.table.name("last_page_len");
  const Tensor* tensor = peek(name);
  if (!check_indptr(*this, given(layout_.table.name("indptr")), indptr, static_cast<std::int64_t>(pages.entries.size()),
                    pages.table_name)) {
    return;
  }
  const auto batch = static_cast<std::int64_t>(indptr.size()) - 1;
  if (tensor->shape[0] != 3 || tensor->shape[1] != batch) {
    fault(given(name),
          fmt::format("has shape {}; a sliding window needs [3, {}]: the last page's tokens, the first slot "
                      "of the window, and the sinks",
                      shape_text(tensor->shape), batch));
    return;
  }
  std::vector<std::int64_t> entries;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto at = [&](std::int64_t row) { return info[static_cast<std::size_t>(row * batch + b)]; };
    const std::int64_t from = indptr[static_cast<std::size_t>(b)];
    const std::int64_t count = indptr[static_cast<std::size_t>(b) + 1] - from;
    const std::int64_t last = at(0), window = at(1), sinks = at(2);
    const std::int64_t slots = count == 0 ? 0 : (count - 1) * page_size + last;
    const bool last_fits = count == 0 || (last >= 1 && last <= page_size);
    if (!last_fits || sinks < 0 || window < sinks || window > slots) {
      fault(fmt::format("{}[:, {}]", given(name), b),
            last_fits ? fmt::format("has a window from slot {} after {} sinks, outside [sinks, {}], the slots of the "
                                    "sequence",
                                    window, sinks, slots)
                      : fmt::format("is {}, but a last page holds 1 to {} tokens: a kernel would read past the page",
                                    last, page_size));
      forget_sequences();
      return;
    }
    pages.first.push_back(static_cast<std::int64_t>(entries.size()));
    for (std::int64_t key = 0; key < slots - window + sinks; ++key) {
      const std::int64_t slot = key < sinks ? key : key - sinks + window;
      const std::int64_t block = pages.entries[static_cast<std::size_t>(from + slot / page_size)];
      if (block < 0 || block >= blocks) {
        fault(fmt::format("{}[{}]", pages.table_name, from + slot / page_size),
              fmt::format("is {}, outside the {} blocks; sequence {} has {} keys and reads its page {}", block, blocks,
                          b, slots - window + sinks, slot / page_size));
        forget_sequences();
        return;
      }
      entries.push_back(block * page_size + slot % page_size);
    }
    pages.columns.push_back(static_cast<std::int64_t>(entries.size()) - pages.first.back());
    pages.lengths.push_back(pages.columns.back());
  }
  pages.entries = std::move(entries);
  pages.by_token = page_size > 1;
}

void LayoutReader::read_tokens() {
  const std::string& indptr_name = layout_.table.name("indptr");
  const std::string& indices_name = layout_.table.name("indices");
  pages.table_name = given(indices_name);
  pages.lengths_name = given(indptr_name);
  const std::size_t faults_before = faults.size();
  const std::vector<std::int64_t> indptr = integers(indptr_name, 1, "[B + 1]");
  pages.entries = integers(indices_name, 1, "[tokens]");
  if (faults.size() > faults_before) return;
  const auto entries = static_cast<std::int64_t>(pages.entries.size());
  if (!check_indptr(*this, pages.lengths_name, indptr, entries, pages.table_name)) return;
  pages.by_token = page_size > 1;
  for (std::size_t b = 0; b + 1 < indptr.size(); ++b) {
    pages.first.push_back(indptr[b]);
    pages.columns.push_back(indptr[b + 1] - indptr[b]);
    pages.lengths.push_back(indptr[b + 1] - indptr[b]);
  }
}

void LayoutReader::read_requests() {
  const std::string& table_name = layout_.table.name("table");
  const std::string& requests_name = layout_.table.name("requests");
  const std::string& lengths_name = layout_.table.name("lengths");
  pages.table_name = given(table_name);
  pages.lengths_name = given(lengths_name);
  const std::size_t faults_before = faults.size();
  pages.entries = integers(table_name, 2, "[requests, tokens]");
  const std::vector<std::int64_t> requests = integers(requests_name, 1, "[B]");
  pages.lengths = integers(lengths_name, 1, "[B]");
  if (faults.size() > faults_before) return;
  const Tensor* table = find(table_name);
  if (requests.size() != pages.lengths.size()) {
    fault(given(requests_name),
          fmt::format("has {} entries, but {} has {}", requests.size(), pages.lengths_name, pages.lengths.size()));
    return;
  }
  pages.by_token = page_size > 1;
  for (std::size_t b = 0; b < requests.size(); ++b) {
    if (requests[b] < 0 || requests[b] >= table->shape[0]) {
      fault(fmt::format("{}[{}]", given(requests_name), b),
            fmt::format("is {}, outside the {} rows of {}", requests[b], table->shape[0], pages.table_name));
    }
    pages.first.push_back(std::clamp<std::int64_t>(requests[b], 0, std::max<std::int64_t>(table->shape[0] - 1, 0)) *
                          table->shape[1]);
    pages.columns.push_back(table->shape[1]);
  }
  check_lengths();
}

// TensorRT-LLM counts K and V of a block as separate entries: block n has K at 2n and V at 2n + 1.
void LayoutReader::read_offsets() {
  const std::string& table_name = layout_.table.name("table");
  const std::string& lengths_name = layout_.table.name("lengths");
  pages.table_name = given(table_name);
  pages.lengths_name = given(lengths_name);
  const Tensor* given_table = peek(table_name);
  const bool pools = given_table != nullptr && given_table->shape.size() == 4;
  const std::size_t faults_before = faults.size();
  const std::vector<std::int64_t> offsets =
      integers(table_name, pools ? 4 : 3, "[B, 2, columns] or [1, B, 2, columns]");
  pages.lengths = integers(lengths_name, 1, "[B]");
  if (faults.size() > faults_before) return;
  std::vector<std::int64_t> shape = given_table->shape;
  if (pools && shape[0] != 1) {
    fault(pages.table_name, fmt::format("has shape {}: axis 0 is 1, one pool", shape_text(shape)));
    return;
  }
  if (pools) shape.erase(shape.begin());
  const auto batch = static_cast<std::int64_t>(pages.lengths.size());
  if (shape[0] != batch || shape[1] != 2) {
    fault(pages.table_name, fmt::format("has shape {}; {} has {} entries, which need [{}, 2, columns]",
                                        shape_text(given_table->shape), pages.lengths_name, batch, batch));
    return;
  }
  check_lengths();
  const std::int64_t columns = shape[2];
  for (std::int64_t b = 0; b < batch; ++b) {
    pages.first.push_back(b * columns);
    pages.columns.push_back(columns);
    const std::int64_t length = pages.lengths[static_cast<std::size_t>(b)];
    const std::int64_t used =
        page_size > 0 ? std::min(ceil_div(std::max<std::int64_t>(length, 0), page_size), columns) : 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t k = offsets[static_cast<std::size_t>((b * 2) * columns + c)];
      const std::int64_t v = offsets[static_cast<std::size_t>((b * 2 + 1) * columns + c)];
      const bool paired = k >= 0 && k % 2 == 0 && v - k == 1;
      if (c < used && !paired) {
        fault(fmt::format("{}[{}, :, {}]", pages.table_name, b, c),
              fmt::format("is {} for K and {} for V; K of a block is at an even entry, V at the next one", k, v));
      }
      pages.entries.push_back(paired ? k / 2 : -1);
    }
  }
}

void LayoutReader::read_attention_mask(std::vector<std::int64_t>& padding) {
  const std::string& name = layout_.table.name("attention_mask");
  if (const Tensor* dense = peek(name); dense != nullptr && dense->shape.size() == 4) {
    static_cast<void>(find(name));
    fault(given(name),
          fmt::format("has shape {}, a mask of queries and keys: save it as attn_mask", shape_text(dense->shape)));
    return;
  }
  const Tensor* mask = tensor(name, 2, "[B, S]");
  if (mask == nullptr) return;
  pages.lengths_name = given(name);
  if (mask->shape[0] != blocks || mask->shape[1] != page_size) {
    fault(given(name), fmt::format("has shape {}, but the cache holds {} sequences of {} positions",
                                   shape_text(mask->shape), blocks, page_size));
    return;
  }
  std::vector<double> seen(static_cast<std::size_t>(blocks * page_size));
  to_doubles(mask->dtype, mask->bytes.data(), seen);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const auto row = seen.begin() + b * page_size, end = row + page_size;
    const auto first = std::find_if(row, end, [](double x) { return x != 0; });
    const auto last = std::find_if(first, end, [](double x) { return x == 0; });
    if (std::find_if(last, end, [](double x) { return x != 0; }) != end) {
      fault(fmt::format("{}[{}]", given(name), b),
            "has a 0 between its ones; only padding before or after the tokens is supported");
    }
    padding.push_back(first == end ? 0 : first - row);
    pages.lengths.push_back(last - first);
  }
}

void LayoutReader::read_dense() {
  const TableDescription& table = layout_.table;
  const auto given_role = [&](const char* role) { return table.has(role) && has(table.name(role)); };
  pages.table_name = "the cache";
  pages.lengths_name = "the cache";
  std::vector<std::int64_t> padding;
  const std::size_t faults_before = faults.size();
  const bool by_mask = !given_role("lengths") && given_role("attention_mask");  // it states the padding too
  if (given_role("left_padding") && !by_mask) padding = integers(table.name("left_padding"), 1, "[B]");
  if (given_role("lengths")) {
    pages.lengths_name = given(table.name("lengths"));
    pages.lengths = integers(table.name("lengths"), 1, "[B]");
    check_lengths();
  } else if (by_mask) {
    read_attention_mask(padding);
  } else {
    pages.lengths.assign(static_cast<std::size_t>(std::max<std::int64_t>(blocks, 0)), page_size);
  }
  if (blocks == 0 || faults.size() > faults_before) return;
  const auto batch = static_cast<std::size_t>(blocks);
  const bool padded = given_role("left_padding") && !by_mask;
  const std::string padding_name = padded ? given(table.name("left_padding")) : pages.lengths_name;
  if (pages.lengths.size() != batch || (padded && padding.size() != batch)) {
    const bool lengths = pages.lengths.size() != batch;
    fault(lengths ? pages.lengths_name : padding_name,
          fmt::format("has {} entries, but the cache holds {} sequences",
                      lengths ? pages.lengths.size() : padding.size(), blocks));
    return;
  }
  pages.by_token = std::ranges::any_of(padding, [](std::int64_t tokens) { return tokens != 0; });
  for (std::int64_t b = 0; b < blocks; ++b) {
    if (!pages.by_token) {
      pages.first.push_back(b);
      pages.columns.push_back(1);
      pages.entries.push_back(b);
      continue;
    }
    const std::int64_t skipped = padding[static_cast<std::size_t>(b)];
    if (skipped < 0 || skipped > page_size) {
      fault(fmt::format("{}[{}]", padding_name, b),
            fmt::format("is {}, outside [0, {}], the positions of a sequence", skipped, page_size));
      forget_sequences();
      return;
    }
    pages.first.push_back(static_cast<std::int64_t>(pages.entries.size()));
    pages.columns.push_back(page_size - skipped);
    for (std::int64_t t = skipped; t < page_size; ++t) pages.entries.push_back(b * page_size + t);
  }
}

void LayoutReader::read_ragged() {
  const std::string& indptr_name = layout_.table.name("indptr");
  const std::size_t faults_before = faults.size();
  const std::vector<std::int64_t> indptr = integers(indptr_name, 1, "[B + 1]");
  pages.table_name = given(indptr_name);
  pages.lengths_name = given(indptr_name);
  const bool used = layout_.table.has("lengths") && has(layout_.table.name("lengths"));
  if (used) {
    pages.lengths_name = given(layout_.table.name("lengths"));
    pages.lengths = integers(layout_.table.name("lengths"), 1, "[B]");
    check_lengths();
  }
  if (faults.size() > faults_before || blocks == 0) return;
  if (!check_indptr(*this, given(indptr_name), indptr, blocks, "the cache")) return;
  if (used && pages.lengths.size() + 1 != indptr.size()) {
    fault(pages.lengths_name, fmt::format("has {} entries, but {} has {}: one less is needed", pages.lengths.size(),
                                          given(indptr_name), indptr.size()));
    return;
  }
  pages.entries.resize(static_cast<std::size_t>(blocks));
  std::iota(pages.entries.begin(), pages.entries.end(), std::int64_t{0});
  for (std::size_t b = 0; b + 1 < indptr.size(); ++b) {
    pages.first.push_back(indptr[b]);
    pages.columns.push_back(indptr[b + 1] - indptr[b]);
    if (!used) pages.lengths.push_back(indptr[b + 1] - indptr[b]);
  }
}

void LayoutReader::read_chunk() {
  if (blocks == 0) return;
  pages.table_name = pages.lengths_name = "the chunk";
  pages.entries.resize(static_cast<std::size_t>(blocks));
  std::iota(pages.entries.begin(), pages.entries.end(), std::int64_t{0});
  pages.first = {0};
  pages.columns = {blocks};
  pages.lengths = {blocks};
}

void LayoutReader::read_sparse() {
  const std::string& indices_name = layout_.table.name("indices");
  pages.table_name = pages.lengths_name = given(indices_name);
  const Tensor* given_indices = peek(indices_name);
  const std::size_t rank = given_indices != nullptr && given_indices->shape.size() == 3 ? 3 : 2;
  const std::size_t faults_before = faults.size();
  const std::vector<std::int64_t> indices = integers(indices_name, rank, "[T, k] or [B, queries, k]");
  if (faults.size() > faults_before || indices.empty() || blocks == 0) return;
  const std::int64_t width = given_indices->shape.back();
  const std::int64_t rows = rank == 3 ? given_indices->shape[0] * given_indices->shape[1] : given_indices->shape[0];
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows), width);
  if (layout_.table.has("lengths") && has(layout_.table.name("lengths"))) {
    const std::string& name = layout_.table.name("lengths");
    lengths = integers(name, 1, "[T]");
    if (faults.size() > faults_before) return;
    const bool bad = std::ranges::any_of(lengths, [&](std::int64_t n) { return n < 0 || n > width; });
    if (std::cmp_not_equal(lengths.size(), rows) || bad) {
      fault(given(name), fmt::format("must be {} entries in [0, {}]", rows, width));
      return;
    }
  }
  pages.by_token = page_size > 1;
  QueryMasks& kept = masks.emplace();
  kept.form = QueryMasks::Form::indices;
  kept.name = given(indices_name);
  kept.width = width;
  kept.indices = indices;
  kept.lengths = lengths;
  kept.page_size = page_size;
  kept.blocks = blocks;
  for (std::int64_t row = 0; row < rows; ++row) {
    pages.first.push_back(static_cast<std::int64_t>(pages.entries.size()));
    for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(row)]; ++i) {
      const std::int64_t slot = indices[static_cast<std::size_t>(row * width + i)];
      if (slot >= 0) pages.entries.push_back(slot);
    }
    pages.columns.push_back(static_cast<std::int64_t>(pages.entries.size()) - pages.first.back());
    pages.lengths.push_back(pages.columns.back());
  }
}

}  // namespace kvscope::golden

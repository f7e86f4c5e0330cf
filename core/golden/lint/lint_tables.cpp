// The tables of lint in each form: their sequences and entries, and the faults of offsets and lengths.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/golden/lint/detail/lint_inputs.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kLongestSequence = std::int64_t{1} << 40;  // [tokens]

// A length of a cache that holds at most `most` tokens of the sequence.
bool check_length(const std::string& object, std::int64_t length, std::int64_t most, const std::string& holds,
                  std::vector<LintFinding>& findings) {
  if (length >= 0 && length <= most) return true;
  findings.push_back(lint_fault("length", object, fmt::format("is {}", length), fmt::format("[0, {}], {}", most, holds),
                                length < 0 ? "a length counts tokens" : "the kernel would read past the sequence",
                                length));
  return false;
}

// The new tokens of each sequence. Without `batch`, the table has a fault already and the number of sequences is not
// known: only what does not depend on it is checked.
std::vector<std::int64_t> new_tokens(const LintTensors& tensors, std::optional<std::size_t> batch, LintIndices& indices,
                                     std::vector<LintFinding>& findings) {
  std::vector<std::int64_t> queries(batch.value_or(0), 1);
  const LintTensor q = tensors.get("q"), offsets = tensors.get("query_offsets");
  const bool has_rows = q.tensor != nullptr && q.tensor->shape.size() == 3;
  if (const LintTensor lens = tensors.get("q_lens"); lens.tensor != nullptr) {  // q is padded
    const auto given = index_values(lens, 1, "[B]", findings);
    if (!given) return queries;
    if (batch && given->size() != *batch) {
      findings.push_back(lint_fault("shape", lens.name, fmt::format("has {} entries", given->size()),
                                    fmt::format("{}", *batch), "one number of queries per sequence",
                                    static_cast<std::int64_t>(given->size())));
      return queries;
    }
    const bool padded = q.tensor != nullptr && q.tensor->shape.size() == 4;
    const std::int64_t most = padded     ? q.tensor->shape[tensors.layout().queries_by_head ? 2 : 1]
                              : has_rows ? q.tensor->shape[0]
                                         : kLongestSequence;
    const std::string holds = padded     ? "the queries of a sequence in " + q.name
                              : has_rows ? "the rows of " + q.name
                                         : "of any q";
    for (std::size_t b = 0; b < queries.size(); ++b) {
      const bool fits = check_length(fmt::format("{}[{}]", lens.name, b), (*given)[b], most, holds, findings);
      queries[b] = fits ? (*given)[b] : -1;  // no mask is read for it
    }
    indices.queries_known = true;
    return queries;
  }
  if (offsets.tensor != nullptr) {
    const auto given = index_values(offsets, 1, "[B + 1]", findings);
    if (!given) return queries;
    const std::int64_t rows = has_rows ? q.tensor->shape[0] : kLongestSequence;
    const std::vector<bool> usable = check_offsets(offsets.name, *given, rows, "the rows of q", findings);
    if (given->empty()) return queries;
    if (batch && given->size() != *batch + 1) {
      findings.push_back(lint_fault("shape", offsets.name, fmt::format("has {} entries", given->size()),
                                    fmt::format("{}", *batch + 1), "one offset per sequence, and the end",
                                    static_cast<std::int64_t>(given->size())));
      return queries;
    }
    if (has_rows && !usable.empty() && usable.back() && given->back() < rows) {
      findings.push_back(lint_fault("indptr", fmt::format("{}[{}]", offsets.name, usable.size()),
                                    fmt::format("is {}, but q has {} rows", given->back(), rows),
                                    fmt::format("{}", rows), "the last rows belong to no sequence", given->back()));
    }
    for (std::size_t b = 0; b < queries.size(); ++b) {
      if (usable[b]) queries[b] = (*given)[b + 1] - (*given)[b];
    }
    indices.queries_known = true;
  } else if (q.tensor != nullptr && q.tensor->shape.size() == 4) {
    const std::int64_t of_each = q.tensor->shape[tensors.layout().queries_by_head ? 2 : 1];
    std::ranges::fill(queries, std::min(of_each, kLongestSequence));
    if (batch && q.tensor->shape[0] != static_cast<std::int64_t>(*batch)) {
      findings.push_back(lint_fault("shape", q.name, fmt::format("has {} sequences", q.tensor->shape[0]),
                                    fmt::format("{}", *batch), "q and the table belong to different batches",
                                    q.tensor->shape[0]));
    }
    indices.queries_known = true;
  } else if (has_rows) {
    indices.queries_known = !batch || q.tensor->shape[0] == static_cast<std::int64_t>(*batch);
    if (!indices.queries_known) {
      findings.push_back(
          lint_fault("shape", q.name, fmt::format("has {} rows for {} sequences", q.tensor->shape[0], *batch),
                     fmt::format("{}, or offsets", *batch), "add query_offsets [B + 1]", q.tensor->shape[0]));
    }
  }
  return queries;
}

// Rows of pages: form blocks, [B, columns], and offsets, [B, 2, columns] with entries for K and for V.
void read_lint_rows(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
                    std::vector<LintFinding>& findings) {
  const bool without_new = tensors.layout().table.lengths_without_new;
  const bool apart = indices.form == TableForm::offsets;
  const LintTensor table = tensors.role("table"), lengths = tensors.role("lengths");
  indices.table_name = table.name;
  const bool has_pools = apart && table.tensor != nullptr && table.tensor->shape.size() == 4;
  auto entries = index_values(table,
                              has_pools ? 4
                              : apart   ? 3
                                        : 2,
                              apart ? "[B, 2, columns] or [1, B, 2, columns]" : "[B, columns]", findings);
  const auto given = index_values(lengths, 1, "[B]", findings);
  const std::vector<std::int64_t> queries =
      new_tokens(tensors, given ? std::optional(given->size()) : std::nullopt, indices, findings);
  if (!entries || !given) return;
  const std::size_t batch = given->size();
  const std::vector<std::int64_t>& shape = table.tensor->shape;
  const std::int64_t rows = shape[has_pools ? 1 : 0], columns = shape.back();
  if ((has_pools && shape[0] != 1) || (apart && shape[has_pools ? 2 : 1] != 2)) {
    findings.push_back(lint_fault("shape", table.name, fmt::format("has shape {}", shape_text(shape)),
                                  "[B, 2, columns] or [1, B, 2, columns]",
                                  "one pool, and an entry for K and one for V"));
    return;
  }
  if (rows != static_cast<std::int64_t>(batch)) {
    findings.push_back(lint_fault("shape", table.name, fmt::format("has {} rows", rows),
                                  fmt::format("{}, the entries of {}", batch, lengths.name),
                                  "table and lengths belong to different batches", rows));
  }
  indices.table_columns = columns;
  if (apart) {
    for (std::size_t at = 0; at < entries->size(); ++at) {
      const bool is_v = at / static_cast<std::size_t>(columns) % 2 != 0;
      (is_v ? indices.v_entries : indices.entries).push_back((*entries)[at]);
    }
  } else {
    indices.entries = std::move(*entries);
  }
  for (std::int64_t b = 0; b < std::min<std::int64_t>(rows, static_cast<std::int64_t>(batch)); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t length = (*given)[at];
    LintSequence sequence{b * columns, columns, 0, queries[at], 0, 0, true};
    const std::string object = fmt::format("{}[{}]", lengths.name, b);
    if (length < 0 || length > kLongestSequence) {
      findings.push_back(
          lint_fault("length", object, fmt::format("is {}", length), "[0, 2^40]", "a length counts tokens", length));
      sequence.known = false;
    } else {
      sequence.keys = length + (without_new ? sequence.queries : 0);
      const std::int64_t needed = cache.page_size > 0 ? ceil_div(sequence.keys, cache.page_size) : 0;
      if (needed > columns) {
        findings.push_back(lint_fault(
            "length", object,
            fmt::format("is {}: {} keys are {} pages of {} tokens", length, sequence.keys, needed, cache.page_size),
            fmt::format("at most {} pages, the columns of {}", columns, table.name),
            "the kernel would take further pages from the next row", length));
      }
    }
    indices.sequences.push_back(sequence);
  }
}

// Rows 1 and 2 of a sliding window's lengths: its first slot, and the attention sinks before it.
void check_window(const std::string& name, std::size_t b, const std::vector<std::int64_t>& info, std::size_t batch,
                  std::int64_t slots, std::vector<LintFinding>& findings) {
  const std::int64_t window = info[batch + b], sinks = info[2 * batch + b];
  if (sinks < 0) {
    findings.push_back(lint_fault("length", fmt::format("{}[2, {}]", name, b), fmt::format("is {}", sinks),
                                  "at least 0", "it counts the attention sinks", sinks));
  } else if (window < sinks || window > slots) {
    findings.push_back(lint_fault("length", fmt::format("{}[1, {}]", name, b), fmt::format("is {}", window),
                                  fmt::format("[{}, {}], from the sinks to the slots of the pages", sinks, slots),
                                  "the window starts at that slot", window));
  }
}

// Lists of entries with offsets: form indptr, of pages, and tokens.
void read_lint_list(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
                    std::vector<LintFinding>& findings) {
  const bool by_page = indices.form == TableForm::indptr;
  const LintTensor indptr = tensors.role("indptr"), entries = tensors.role("indices");
  indices.table_name = entries.name;
  const auto offsets = index_values(indptr, 1, "[B + 1]", findings);
  auto given = index_values(entries, 1, by_page ? "[pages]" : "[tokens]", findings);
  const bool by_length = by_page && !tensors.layout().table.has("last_page_len");
  const LintTensor last = tensors.role(by_length ? "lengths" : "last_page_len");
  const bool windows = by_page && !by_length && last.tensor != nullptr && last.tensor->shape.size() == 2;
  const auto last_lengths =
      by_page ? index_values(last, windows ? 2 : 1, windows ? "[B] or [3, B]" : "[B]", findings) : std::nullopt;
  const std::optional<std::size_t> sequences =
      offsets && !offsets->empty() ? std::optional(offsets->size() - 1) : std::nullopt;
  const std::vector<std::int64_t> queries = new_tokens(tensors, sequences, indices, findings);
  if (!offsets) return;
  const std::size_t batch = sequences.value_or(0);
  const std::vector<bool> usable =
      check_offsets(indptr.name, *offsets, given ? static_cast<std::int64_t>(given->size()) : kLongestSequence,
                    "the entries of " + entries.name, findings);
  const bool has_last =
      last_lengths && (windows ? last.tensor->shape == std::vector<std::int64_t>{3, std::ssize(queries)}
                               : last_lengths->size() == batch);
  if (last_lengths && sequences && !has_last) {
    findings.push_back(
        lint_fault("shape", last.name,
                   windows ? fmt::format("has shape {}", shape_text(last.tensor->shape))
                           : fmt::format("has {} entries", last_lengths->size()),
                   windows ? fmt::format("[3, {}]", batch) : fmt::format("{}, the sequences of {}", batch, indptr.name),
                   "one length per sequence", static_cast<std::int64_t>(last_lengths->size())));
  }
  if (given) indices.entries = std::move(*given);
  for (std::size_t b = 0; b < usable.size(); ++b) {
    LintSequence sequence{0, 0, 0, queries[b], 0, 0, usable[b] && given.has_value()};
    if (sequence.known) {
      sequence.first = (*offsets)[b];
      sequence.columns = (*offsets)[b + 1] - (*offsets)[b];
      sequence.keys = sequence.columns * std::max<std::int64_t>(indices.page_tokens, 1);
      if (has_last && sequence.columns > 0) {
        const std::int64_t before = by_length ? (sequence.columns - 1) * std::max<std::int64_t>(cache.page_size, 1) : 0;
        const std::int64_t tokens = std::clamp((*last_lengths)[b], -kLongestSequence, kLongestSequence) - before;
        if (tokens < 1 || (cache.page_size > 0 && tokens > cache.page_size)) {
          findings.push_back(lint_fault(
              "last-page", fmt::format("{}[{}]", last.name, b), fmt::format("is {}", before + tokens),
              cache.page_size > 0 ? fmt::format("[{}, {}]", before + 1, before + cache.page_size) : "at least 1",
              tokens < 1 ? "a page without tokens must not be in the list of pages"
                         : "the kernel would read past the page",
              before + tokens));
        } else {
          sequence.keys += tokens - std::max<std::int64_t>(cache.page_size, 1);
        }
        if (windows) check_window(last.name, b, *last_lengths, batch, sequence.keys, findings);
      }
    }
    indices.sequences.push_back(sequence);
  }
}

// Token slots by request: table [requests, columns], requests [B], lengths [B].
void read_lint_requests(const LintTensors& tensors, LintIndices& indices, std::vector<LintFinding>& findings) {
  const LintTensor table = tensors.role("table"), requests = tensors.role("requests"),
                   lengths = tensors.role("lengths");
  indices.table_name = table.name;
  auto entries = index_values(table, 2, "[requests, columns]", findings);
  const auto numbers = index_values(requests, 1, "[B]", findings);
  const auto given = index_values(lengths, 1, "[B]", findings);
  const std::vector<std::int64_t> queries =
      new_tokens(tensors, numbers ? std::optional(numbers->size()) : std::nullopt, indices, findings);
  if (!entries || !numbers || !given) return;
  const std::size_t batch = numbers->size();
  if (given->size() != batch) {
    findings.push_back(lint_fault("shape", lengths.name, fmt::format("has {} entries", given->size()),
                                  fmt::format("{}, the entries of {}", batch, requests.name), "one length per request",
                                  static_cast<std::int64_t>(given->size())));
    return;
  }
  const std::int64_t rows = table.tensor->shape[0], columns = table.tensor->shape[1];
  indices.entries = std::move(*entries);
  indices.table_columns = columns;
  for (std::size_t b = 0; b < batch; ++b) {
    const std::int64_t row = (*numbers)[b];
    const std::string object = fmt::format("{}[{}]", requests.name, b);
    LintSequence sequence{0, columns, 0, queries[b], 0, 0, true};
    if (row < 0 || row >= rows) {
      findings.push_back(lint_fault("range", object, fmt::format("is {}", row),
                                    fmt::format("[0, {}), the rows of {}", rows, table.name),
                                    "the kernel would take a row outside the table", row));
      sequence.known = false;
    } else if (const auto first = std::ranges::find(*numbers, row) - numbers->begin(); std::cmp_less(first, b)) {
      findings.push_back(lint_fault("duplicate", object, fmt::format("is {}, which sequence {} also has", row, first),
                                    "", "two sequences of a batch are different requests", row));
    }
    sequence.first = std::clamp<std::int64_t>(row, 0, std::max<std::int64_t>(rows - 1, 0)) * columns;
    sequence.known = check_length(fmt::format("{}[{}]", lengths.name, b), (*given)[b], columns,
                                  "the columns of " + table.name, findings) &&
                     sequence.known;
    if (sequence.known) sequence.keys = (*given)[b];
    indices.sequences.push_back(sequence);
  }
}

// The first position of each row of an attention mask, and the number of tokens; a 0 between ones is a fault.
void read_padding(const LintTensor& mask, std::int64_t batch, std::int64_t positions,
                  std::vector<std::int64_t>& padding, std::vector<std::int64_t>& lengths,
                  std::vector<LintFinding>& findings) {
  const Tensor& tensor = *mask.tensor;
  if (tensor.shape != std::vector{batch, positions} || tensor.dtype == DType::e2m1) {
    findings.push_back(lint_fault("shape", mask.name, fmt::format("is {}", describe(tensor)),
                                  shape_text(std::vector{batch, positions}),
                                  "an entry for each position of each sequence of the cache"));
    return;
  }
  std::vector<double> seen(static_cast<std::size_t>(batch * positions));
  to_doubles(tensor.dtype, tensor.bytes.data(), seen);
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto row = seen.begin() + b * positions, end = row + positions;
    const auto first = std::find_if(row, end, [](double x) { return x != 0; });
    const auto last = std::find_if(first, end, [](double x) { return x == 0; });
    if (const auto again = std::find_if(last, end, [](double x) { return x != 0; }); again != end) {
      findings.push_back(lint_fault("padding", fmt::format("{}[{}, {}]", mask.name, b, last - row),
                                    fmt::format("is 0 between tokens: position {} is a token again", again - row),
                                    "padding before or after the tokens",
                                    "kernels that take lengths instead of a mask cannot skip it", last - row));
    }
    padding.push_back(first == end ? 0 : first - row);
    lengths.push_back(last - first);
  }
}

// A cache by sequence and position: lengths, left padding or an attention mask.
void read_lint_dense(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
                     std::vector<LintFinding>& findings) {
  const auto batch = static_cast<std::size_t>(cache.blocks);
  const std::int64_t positions = cache.page_size;
  const LintTensor lengths = tensors.role("lengths"), left = tensors.role("left_padding"),
                   mask = tensors.role("attention_mask");
  indices.table_name = "the cache";
  const std::vector<std::int64_t> queries =
      new_tokens(tensors, cache.blocks > 0 ? std::optional(batch) : std::nullopt, indices, findings);
  // One number for each sequence; empty after a fault.
  const auto of_sequences = [&](const LintTensor& found) {
    std::optional<std::vector<std::int64_t>> numbers = index_values(found, 1, "[B]", findings);
    if (!numbers) return std::vector<std::int64_t>{};
    if (cache.blocks > 0 && numbers->size() != batch) {
      findings.push_back(lint_fault("shape", found.name, fmt::format("has {} entries", numbers->size()),
                                    fmt::format("{}, the sequences of the cache", batch), "one entry per sequence",
                                    static_cast<std::int64_t>(numbers->size())));
      numbers->clear();
    }
    return *numbers;
  };
  std::vector<std::int64_t> padding, tokens;
  if (left.tensor != nullptr) padding = of_sequences(left);
  if (lengths.tensor != nullptr) {
    tokens = of_sequences(lengths);
  } else if (mask.tensor != nullptr && cache.blocks > 0) {
    padding.clear();  // the mask states it too
    read_padding(mask, cache.blocks, positions, padding, tokens, findings);
  } else {
    tokens.assign(batch, positions);
  }
  for (std::size_t b = 0; b < batch; ++b) {
    indices.entries.push_back(static_cast<std::int64_t>(b));
    LintSequence sequence{static_cast<std::int64_t>(b), 1, 0, queries[b], 0, 0, b < tokens.size()};
    const std::int64_t before = b < padding.size() ? padding[b] : 0;
    if (before < 0 || before > positions) {
      findings.push_back(lint_fault("padding", fmt::format("{}[{}]", left.name, b), fmt::format("is {}", before),
                                    fmt::format("[0, {}], the positions of a sequence", positions),
                                    "the first token would be outside the sequence", before));
      sequence.known = false;
    } else if (sequence.known) {
      sequence.known = check_length(
          fmt::format("{}[{}]", lengths.name, b), tokens[b], positions - before,
          before > 0 ? fmt::format("the positions after {} of padding", before) : "the positions", findings);
    }
    if (sequence.known) sequence.keys = tokens[b];
    sequence.padding = before;
    indices.sequences.push_back(sequence);
  }
}

// The tokens of all sequences one after the other: offsets [B + 1], and lengths [B] of those that are used.
void read_lint_ragged(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
                      std::vector<LintFinding>& findings) {
  const LintTensor indptr = tensors.role("indptr"), lengths = tensors.role("lengths");
  indices.table_name = indptr.name;
  const auto offsets = index_values(indptr, 1, "[B + 1]", findings);
  const auto used = lengths.tensor == nullptr ? std::nullopt : index_values(lengths, 1, "[B]", findings);
  const std::optional<std::size_t> sequences =
      offsets && !offsets->empty() ? std::optional(offsets->size() - 1) : std::nullopt;
  const std::vector<std::int64_t> queries = new_tokens(tensors, sequences, indices, findings);
  if (!offsets) return;
  const std::size_t batch = sequences.value_or(0);
  const std::vector<bool> usable = check_offsets(
      indptr.name, *offsets, cache.blocks > 0 ? cache.blocks : kLongestSequence, "the tokens of the cache", findings);
  if (used && sequences && used->size() != batch) {
    findings.push_back(lint_fault("shape", lengths.name, fmt::format("has {} entries", used->size()),
                                  fmt::format("{}, the sequences of {}", batch, indptr.name), "one length per sequence",
                                  static_cast<std::int64_t>(used->size())));
  }
  indices.entries.resize(static_cast<std::size_t>(cache.blocks));
  std::iota(indices.entries.begin(), indices.entries.end(), std::int64_t{0});
  for (std::size_t b = 0; b < usable.size(); ++b) {
    LintSequence sequence{0, 0, 0, queries[b], 0, 0, usable[b]};
    if (sequence.known) {
      sequence.first = (*offsets)[b];
      sequence.columns = sequence.keys = (*offsets)[b + 1] - (*offsets)[b];
    }
    if (sequence.known && used && used->size() == batch) {
      sequence.known = check_length(fmt::format("{}[{}]", lengths.name, b), (*used)[b], sequence.columns,
                                    "the tokens of the sequence in " + indptr.name, findings);
      sequence.keys = sequence.known ? (*used)[b] : 0;
    }
    indices.sequences.push_back(sequence);
  }
}

// The slots that each query sees: [T, k] or [B, queries, k]; -1 for none.
void read_lint_sparse(const LintTensors& tensors, LintIndices& indices, std::vector<LintFinding>& findings) {
  const LintTensor table = tensors.role("indices"), lengths = tensors.role("lengths"), q = tensors.get("q");
  indices.table_name = table.name;
  const std::size_t rank = table.tensor != nullptr && table.tensor->shape.size() == 3 ? 3 : 2;
  auto entries = index_values(table, rank, "[T, k] or [B, queries, k]", findings);
  const auto counts = lengths.tensor == nullptr ? std::nullopt : index_values(lengths, 1, "[T]", findings);
  if (!entries) return;
  const std::int64_t columns = table.tensor->shape.back();
  const std::int64_t rows = rank == 3 ? table.tensor->shape[0] * table.tensor->shape[1] : table.tensor->shape[0];
  const std::size_t q_rank = q.tensor == nullptr ? 0 : q.tensor->shape.size();
  const std::int64_t q_rows = q_rank == 3   ? q.tensor->shape[0]
                              : q_rank == 4 ? q.tensor->shape[0] * q.tensor->shape[1]
                                            : rows;
  if (q_rows != rows) {
    findings.push_back(lint_fault("shape", table.name, fmt::format("has {} rows", rows),
                                  fmt::format("{}, the queries of {}", q_rows, q.name), "one row per query", rows));
  }
  if (counts && std::cmp_not_equal(counts->size(), rows)) {
    findings.push_back(lint_fault("shape", lengths.name, fmt::format("has {} entries", counts->size()),
                                  fmt::format("{}, the rows of {}", rows, table.name), "one length per query",
                                  static_cast<std::int64_t>(counts->size())));
  }
  indices.entries = std::move(*entries);
  indices.table_columns = columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    LintSequence sequence{row * columns, columns, columns, 1, 0, 0, true};
    if (counts && std::cmp_equal(counts->size(), rows)) {
      const std::int64_t count = (*counts)[static_cast<std::size_t>(row)];
      sequence.known = check_length(fmt::format("{}[{}]", lengths.name, row), count, columns,
                                    "the columns of " + table.name, findings);
      sequence.keys = sequence.known ? count : 0;
    }
    indices.sequences.push_back(sequence);
  }
}

}  // namespace

void read_lint_table(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
                     std::vector<LintFinding>& findings) {
  switch (indices.form) {
    case TableForm::blocks:
    case TableForm::offsets:
      return read_lint_rows(tensors, cache, indices, findings);
    case TableForm::indptr:
    case TableForm::tokens:
      return read_lint_list(tensors, cache, indices, findings);
    case TableForm::requests:
      return read_lint_requests(tensors, indices, findings);
    case TableForm::dense:
      return read_lint_dense(tensors, cache, indices, findings);
    case TableForm::ragged:
      return read_lint_ragged(tensors, cache, indices, findings);
    case TableForm::sparse:
      return read_lint_sparse(tensors, indices, findings);
    case TableForm::chunk:
      break;
  }
  indices.table_name = "the chunk";
  indices.entries.resize(static_cast<std::size_t>(cache.blocks));
  std::iota(indices.entries.begin(), indices.entries.end(), std::int64_t{0});
  if (cache.blocks > 0) {
    const std::vector<std::int64_t> queries = new_tokens(tensors, 1, indices, findings);
    indices.sequences.push_back({0, cache.blocks, cache.blocks, queries[0], 0, 0, true});
  }
}

}  // namespace kvscope::golden
